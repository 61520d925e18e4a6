"""What a cache's ways cost: copies by columns of rows a power of two apart, and what construction does instead."""

from __future__ import annotations

import dataclasses

import pytest

import tilelang as tl
from tilelang.autoschedule.bodies import body_depth, piece_depth
from tilelang.autoschedule.construct import construct
from tilelang.autoschedule.cost import estimate_schedule
from tilelang.autoschedule.loops import loops_of
from tilelang.autoschedule.traffic import Cache, Traffic
from tilelang.computation import as_computation
from tilelang.machine import Profile
from tilelang.schedule import Schedule
from tilelang.steps import Place

L1 = Cache("l1", 32 << 10, 8, 64)


def zen4() -> Profile:
    """A processor whose caches have eight ways each: 32 KiB and 1 MiB."""
    ways = {"l1": {"capacity_bytes": 32 << 10, "ways": 8}, "l2": {"capacity_bytes": 1 << 20, "ways": 8}}
    return tl.load_profile("sapphire_rapids").with_queried(shared_bytes=1 << 20, memories=ways)


def transposed(rows: int, columns: int) -> tl.Tensor:
    i, j = tl.axes(i=rows, j=columns)
    return tl.define("Y", tl.input("X", tl.float32, i, j)[i, j], j, i)


def by_columns(y: tl.Tensor, rows: int) -> Schedule:
    """Each element of a copy goes where it lies in the result, so that the copy goes down the columns of so many rows."""
    plan = tl.schedule(y).tile(j=32, i=rows).to(tl.block).via(tl.register, stream=True)
    return plan.load("X", tl.shared, layout=tl.layout("j", "i")).split(j=1).vectorize(i=16)


def lines(columns: int, rows: int, cache: Cache = L1) -> float:
    """Bytes of X that come from beyond a cache for each of its bytes."""
    loops = loops_of(by_columns(transposed(4096, columns), rows), zen4())[0]
    found = Traffic(loops, body_depth(loops), piece_depth(loops)).missed(cache)
    return next(b for s, b in found if s.access.name == "X" and not s.packed) / (4.0 * 4096 * columns)


@pytest.mark.parametrize(
    ("columns", "rows", "again"), [(4096, 8, 1), (4096, 16, 16), (4096, 64, 16), (4112, 64, 1), (1024, 16, 16)]
)
def test_rows_a_power_of_two_apart_drive_each_others_lines_out(columns: int, rows: int, again: float) -> None:
    """Eight lines of one set stay near; of sixteen each is brought again for every element of it."""
    assert lines(columns, rows) == pytest.approx(again, rel=0.05)


def test_more_ways_hold_more_rows() -> None:
    assert lines(4096, 12, dataclasses.replace(L1, bytes=48 << 10, ways=12)) == pytest.approx(1, rel=0.05)
    assert lines(4096, 12) == pytest.approx(16, rel=0.05)


def test_many_rows_by_columns_take_longer_where_they_share_a_set() -> None:
    apart, together = (
        estimate_schedule(by_columns(transposed(4096, columns), 64), zen4()).seconds / columns for columns in (4112, 4096)
    )
    assert together > 2 * apart


def test_a_copy_by_squares_goes_by_rows() -> None:
    move = tl.move().split(i=16).split(j=16).split(i=1, unroll=True).vectorize(j=16)
    plan = tl.schedule(transposed(4096, 4096)).tile(j=256, i=256).to(tl.block).via(tl.register, stream=True)
    squares = plan.load("X", tl.shared, layout=tl.layout("j", "i"), steps=move).split(j=1).vectorize(i=64)
    place = next(p for p in loops_of(squares, zen4())[0].places if p.verb == "load")
    assert place.turned and not place.by_columns
    assert (
        estimate_schedule(squares, zen4()).seconds < estimate_schedule(by_columns(transposed(4096, 4096), 64), zen4()).seconds / 3
    )


@pytest.mark.parametrize("columns", [4096, 1008, 2048])
def test_a_constructed_transposition_turns_squares(columns: int) -> None:
    best = construct(as_computation(transposed(4096, columns)), zen4())[0].schedule
    loads = [s for s in best.steps if isinstance(s, Place) and s.verb == "load"]
    assert [str(s) for s in loads[0].steps or ()] == [
        "split i=16", "split j=16", "load X in l2 ahead 4", "split i=1 unroll", "vectorize j=16",
    ]  # fmt: skip
