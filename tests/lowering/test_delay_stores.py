"""Stores that stay behind: in a loop of the next round where that is the same, at their own place elsewhere."""

from __future__ import annotations

import numpy as np
import pytest

import tilelang as tl
from tilelang.lowering import ir
from tilelang.lowering.build.program import build_program
from tilelang.lowering.passes.delay_stores import delay_stores
from tilelang.lowering.passes.fuse_loops import fuse_loops
from tilelang.testing import check_schedule
from tilelang.testing.planner import tiny_profile


def softmax(rows: int, columns: int, block: int, lanes: int = 8, behind: int = 1, threads: int = 1) -> tl.Schedule:
    i, j = tl.axes(i=rows, j=columns)
    x = tl.input("X", tl.float32, i, j)
    peak = tl.define("peak", tl.max(x[i, j], over=j), i)
    shifted = tl.define("shifted", tl.exp(x[i, j] - peak[i]), i, j)
    total = tl.define("total", tl.sum(shifted[i, j], over=j), i)
    wide = tl.move().vectorize(j=lanes)
    made = (
        tl.schedule(tl.define("Y", shifted[i, j] / total[i], i, j))
        .tile(i=block).to(tl.block)
        .split(i=1)
        .via(tl.register, stream=True, behind=behind)
        .compute("peak", tl.register, steps=wide)
        .compute("shifted", tl.shared, steps=wide)
        .compute("total", tl.register, steps=wide)
    )  # fmt: skip
    return made.tile(j=lanes).to(tl.thread, threads).vectorize(j=lanes) if threads > 1 else made.vectorize(j=lanes)


def overlapped(schedule: tl.Schedule) -> tuple[int, int]:
    """How many stores of the output were moved into another round, and how many stayed."""
    program = build_program(schedule.computation, schedule.steps, tiny_profile())
    stores = [
        s
        for k in program.kernels
        for s in ir.statements(delay_stores(fuse_loops(k)).body)
        if isinstance(s, ir.Store) and s.streaming
    ]
    return sum(not s.behind for s in stores), sum(s.behind > 0 for s in stores)


def faults(schedule: tl.Schedule) -> list[str]:
    rng = np.random.default_rng(1)
    arrays = {t.name: rng.standard_normal(t.shape).astype(np.float32) for t in schedule.computation.inputs}
    return check_schedule(schedule, arrays)


def test_the_store_runs_in_the_loop_of_the_next_round_and_once_after_the_walk() -> None:
    assert overlapped(softmax(8, 64, 4)) == (2, 0)


@pytest.mark.parametrize("rows", [0, 1, 3, 4, 7, 8])
@pytest.mark.parametrize("columns", [1, 8, 37])
def test_every_row_is_stored(rows: int, columns: int) -> None:
    assert not faults(softmax(rows, columns, 4))


def test_no_walk_around_it_leaves_the_store_where_it_is() -> None:
    schedule = softmax(8, 64, 1)
    assert overlapped(schedule) == (0, 1)
    assert not faults(schedule)


def test_rounds_of_blocks_are_a_walk_too() -> None:
    i, j = tl.axes(i=7, j=20)
    x = tl.input("X", tl.float32, i, j)
    square = tl.define("square", x[i, j] * x[i, j], i, j)
    schedule = (
        tl.schedule(tl.define("Y", square[i, j] + 1.0, i, j))
        .tile(i=1).to(tl.block, 2)
        .via(tl.register, stream=True, behind=1)
        .compute("square", tl.shared, steps=tl.move().vectorize(j=4))
        .vectorize(j=4)
    )  # fmt: skip
    assert overlapped(schedule) == (2, 0)
    assert not faults(schedule)


def test_what_the_next_round_overwrites_too_early_stays() -> None:
    """The row is reversed: an element is overwritten rounds before it is stored."""
    i, j = tl.axes(i=6, j=32)
    x = tl.input("X", tl.float32, i, j)
    double = tl.define("double", x[i, j] * 2.0, i, j)
    schedule = (
        tl.schedule(tl.define("Y", double[i, 31 - j], i, j))
        .tile(i=3).to(tl.block).split(i=1)
        .via(tl.register, stream=True, behind=1)
        .compute("double", tl.shared, steps=tl.move().split(j=1))
        .split(j=1)
    )  # fmt: skip
    assert overlapped(schedule) == (0, 1)
    assert not faults(schedule)


def test_threads_share_a_row() -> None:
    assert not faults(softmax(6, 64, 3, lanes=4, threads=4))


def test_a_stop_in_shared_memory() -> None:
    i, j = tl.axes(i=6, j=32)
    x = tl.input("X", tl.float32, i, j)
    schedule = (
        tl.schedule(tl.define("Y", x[i, j] * 2.0, i, j))
        .tile(i=3).to(tl.block).split(i=1)
        .via(tl.shared, stream=True, behind=1)
        .vectorize(j=8)
    )  # fmt: skip
    assert not faults(schedule)


def test_results_of_a_reduction() -> None:
    i, j, k = tl.axes(i=9, j=8, k=5)
    a, b = tl.input("A", tl.float32, i, k), tl.input("B", tl.float32, k, j)
    schedule = (
        tl.schedule(tl.define("Y", tl.sum(a[i, k] * b[k, j], over=k), i, j))
        .tile(i=3).to(tl.block).split(i=1)
        .accumulate(tl.register, stream=True, behind=1)
        .split(k=1)
        .vectorize(j=8)
    )  # fmt: skip
    assert not faults(schedule)


def test_a_walk_over_nothing_has_no_store() -> None:
    b, i, r = tl.axes(b=2, i=0, r=2)
    x = tl.input("X", tl.float32, b, i, r)
    made = tl.schedule(tl.define("Y", tl.sum(x[b, i, r], over=r), b, i))
    assert not faults(made.accumulate(tl.shared, behind=1).vectorize(i=4))
