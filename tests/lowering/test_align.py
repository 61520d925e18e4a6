"""Vectors that begin with the lines of the caches, wherever an array begins."""

from __future__ import annotations

import numpy as np
import pytest

import tilelang as tl
from tilelang import testing
from tilelang.lowering import ir
from tilelang.lowering.pipeline import lower
from tilelang.lowering.printer import to_text

PROFILE = tl.load_profile("sapphire_rapids")
N = 1000


def text(schedule: tl.Schedule, profile: tl.Profile = PROFILE) -> str:
    (kernel,) = lower(schedule.computation, schedule.steps, profile).kernels
    return to_text(kernel.body)


def doubled(elements: int = N) -> tl.Tensor:
    i = tl.axes(i=elements)
    return tl.define("Y", 2 * tl.input("X", tl.float32, i)[i], i)


def vectors(computation: tl.Tensor) -> tl.Schedule:
    return tl.schedule(computation).tile(i=256).to(tl.block).split(i=16).vectorize(i=16)


def test_elements_are_moved_to_the_lines() -> None:
    lines = text(vectors(doubled())).splitlines()
    assert lines[:4] == [
        "let before: int64 = before_line(Y, 64)",
        "if block_x == 0:",
        "  for first in 0..before:",
        "    Y[first] = 2.0 * X[first]",
    ]
    assert "    Y[block_x * 256 + i * 16 + before:16] = 2.0 * X[block_x * 256 + i * 16 + before:16]" in lines


def test_an_array_may_begin_at_a_line_or_one_element_behind() -> None:
    plan = vectors(doubled())
    (kernel,) = lower(plan.computation, plan.steps, PROFILE).kernels
    (before,) = [s.var for s in ir.statements(kernel.body) if isinstance(s, ir.Let)]
    assert (before.lower, before.upper) == (0, 15)
    (first,) = [s.var for s in ir.statements(kernel.body) if isinstance(s, ir.For) and s.var.name == "first"]
    assert (first.lower, first.upper) == (0, 14)


@pytest.mark.parametrize("elements", [16, 17, 255, 256, N])
@pytest.mark.parametrize("begin", [0, 1, 4, 15])
def test_values_are_right_wherever_the_arrays_begin(elements: int, begin: int) -> None:
    kernel = tl.compile(vectors(doubled(elements)))
    x, guarded = np.arange(elements + 40, dtype=np.float32), np.full(elements + 64, -1, np.float32)
    first = -guarded.ctypes.data % 64 // 4 + begin
    kernel(x[3 : 3 + elements], out=guarded[first : first + elements])
    np.testing.assert_array_equal(guarded[first : first + elements], 2 * x[3 : 3 + elements])
    assert (guarded[:first] == -1).all() and (guarded[first + elements :] == -1).all()


def test_others_stay_as_they_are() -> None:
    i, j = tl.axes(i=N, j=64)
    x, rows, b = tl.input("X", tl.float32, i), tl.input("A", tl.float32, i, j), tl.input("b", tl.float32, j)
    of_neighbours = tl.define("Y", x[i] + tl.input("Z", tl.float32, tl.axes(z=N + 1))[i + 1], i)
    by_rows = tl.schedule(tl.define("Y", rows[i, j] + b[j], i, j)).tile(i=8).to(tl.block).vectorize(j=16)
    assert "before" not in text(vectors(of_neighbours))
    assert "before" not in text(by_rows)
    assert "before" not in text(tl.schedule(doubled()).tile(i=256).to(tl.block))  # no vectors


@pytest.mark.parametrize("pad", [1, 8, 16])
def test_a_padded_copy_reads_nothing_behind_the_tensor(pad: int) -> None:
    plan = tl.schedule(doubled(160)).load("X", tl.global_, layout=tl.layout("i").pad(pad)).tile(i=16).to(tl.block)
    assert testing.check_kernel(tl.compile(plan, "cpu")) == []


def test_only_where_the_device_works_in_the_hosts_memory() -> None:
    schedule = tl.schedule(doubled()).tile(i=4).to(tl.thread).vectorize(i=4)
    assert "before" not in text(schedule, tl.load_profile("ampere"))


def test_an_array_shorter_than_a_line_has_no_whole_one() -> None:
    schedule = tl.schedule(doubled(15)).tile(i=15).to(tl.block).vectorize(i=8)
    assert "before" not in text(schedule)


def test_a_line_is_of_whole_elements() -> None:
    buffer = ir.Buffer("Y", tl.float32, (64,), "global", "output")
    assert str(ir.BeforeLine(buffer, 64)) == "before_line(Y, 64)"
