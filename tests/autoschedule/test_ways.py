"""Copies whose rows and columns change places: what their lines cost, and how construction cuts them."""

from __future__ import annotations

from typing import Any

import pytest

import tilelang as tl
from tilelang.autoschedule.common.construct import construct
from tilelang.autoschedule.common.loop_summary import loops_of
from tilelang.autoschedule.cpu.cache_traffic import Cache, Traffic
from tilelang.autoschedule.models import estimate_schedule
from tilelang.computations.computation import as_computation
from tilelang.profiles.profile import Profile
from tilelang.schedules.schedule import Schedule
from tilelang.schedules.steps import Place, Tile

L1 = Cache("l1", 32 << 10, 8, 64)


def zen4() -> Profile:
    """A processor whose caches have eight ways each: 32 KiB and 1 MiB."""
    ways = {"l1": {"capacity_bytes": 32 << 10, "ways": 8}, "l2": {"capacity_bytes": 1 << 20, "ways": 8}}
    return tl.load_profile("sapphire_rapids").with_queried(shared_bytes=1 << 20, memories=ways)


def transposed(rows: int, columns: int) -> tl.Tensor:
    i, j = tl.axes(i=rows, j=columns)
    return tl.define("Y", tl.input("X", tl.float32, i, j)[i, j], j, i)


def by_squares(y: tl.Tensor, rows: int, **steps: Any) -> Schedule:
    """A transposition that stages blocks of so many rows in the result's order, so that squares move them."""
    plan = tl.schedule(y).tile(j=32, i=rows).to(tl.block).via(tl.register, stream=True)
    return plan.load("X", tl.shared, layout=tl.layout("j", "i"), **steps).split(j=1).vectorize(i=16)


def lines(columns: int, rows: int, cache: Cache = L1) -> float:
    """Bytes of X that come from beyond a cache for each of its bytes."""
    loops = loops_of(by_squares(transposed(4096, columns), rows), zen4())[0]
    found = Traffic(loops, loops.body_depth, loops.piece_depth).missed(cache)
    return next(b for s, b in found if s.access.name == "X" and not s.packed) / (4.0 * 4096 * columns)


@pytest.mark.parametrize(("columns", "rows"), [(4096, 16), (4096, 64), (4112, 64), (1024, 16)])
def test_a_copy_by_squares_brings_each_line_once(columns: int, rows: int) -> None:
    """Rows a power of two apart share a cache's few places, but whole lines of them are read at once."""
    assert lines(columns, rows) == pytest.approx(1, rel=0.05)


def test_a_copy_costs_the_same_whether_its_steps_say_squares_or_not() -> None:
    move = tl.move().split(i=16).split(j=16).split(i=1, unroll=True).vectorize(j=16)
    y = transposed(4096, 4096)
    said, chosen = (dict(estimate_schedule(by_squares(y, 64, **steps), zen4()).parts) for steps in ({"steps": move}, {}))
    assert said["move X"] == pytest.approx(chosen["move X"])


def test_rows_that_are_written_past_the_caches_take_time_to_begin() -> None:
    """1.86 times a copy with rows of 256 on a Xeon, 5.71 times with rows of 16."""
    y, slow = transposed(4096, 4096), zen4().with_queried(rates={"streamed_row_ns": 20.0})
    short, long = (estimate_schedule(by_squares(y, rows), slow).seconds for rows in (16, 256))
    assert short - long > 0.9 * 20e-9 * (4096 * 4096 // 16 - 4096 * 4096 // 256) / 2, "on two cores"
    even = zen4().with_queried(rates={"streamed_row_ns": 0.0})
    assert short - estimate_schedule(by_squares(y, 16), even).seconds > 0.9 * 20e-9 * 4096 * 4096 / 16 / 2


@pytest.mark.parametrize("columns", [4096, 1008, 2048])
@pytest.mark.parametrize(("slow", "least"), [(20.0, 128), (0.0, 16)])
def test_a_constructed_transposition_goes_by_squares(columns: int, slow: float, least: int) -> None:
    """Where rows begin slowly past the caches, its blocks are longer along them."""
    device = zen4().with_queried(rates={"streamed_row_ns": slow})
    best = construct(as_computation(transposed(4096, columns)), device)[0].schedule
    load = next(s for s in best.steps if isinstance(s, Place) and s.verb == "load")
    assert str(load.layout) == "layout (j, i)"
    (tile,) = (s for s in best.steps if isinstance(s, Tile))
    rows = dict(tile.sizes)["i"]
    assert isinstance(rows, int) and rows >= least
