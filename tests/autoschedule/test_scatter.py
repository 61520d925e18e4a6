"""Sums whose points data sends to a place: the model counts one iteration, and generated schedules for CPUs use it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilelang as tl
from tilelang.autoschedule.common.loop_summary import loops_of
from tilelang.autoschedule.common.task_accesses import nest_of
from tilelang.schedules.task import tasks_of
from tilelang.testing.case import arrays
from tilelang.testing.checking import check_schedule
from tilelang.testing.kernel_checks import check_kernel

ZEN = tl.target("cpu", profile="zen4")


def scatter(points: int, width: int, places: int, chosen: bool = False, shift: int = 0) -> tl.Tensor:
    t, e, v = tl.axes(t=points, e=width, v=places)
    ids, X = tl.input("ids", tl.int32, t, range=(0, places)), tl.input("X", tl.float32, t, e)
    here: Any = tl.equal(ids[t] + shift, v)
    if chosen:
        return tl.define("Y", tl.sum(tl.where(here, X[t, e], 0), over=t), v, e)
    return tl.define("Y", tl.sum(X[t, e], over=t, where=here), v, e)


@pytest.mark.parametrize("chosen", [False, True])
@pytest.mark.parametrize(("points", "width", "places"), [(1000, 64, 150), (2000, 1, 3000), (300, 300, 150), (900, 5, 1000)])
def test_many_places_are_reached_by_their_points(points: int, width: int, places: int, chosen: bool) -> None:
    kernel = tl.compile(scatter(points, width, places, chosen), ZEN)
    assert "accumulate in shared" in str(kernel.schedule) and "split t=1" in str(kernel.schedule)
    given = arrays(kernel.computation, "integers")
    assert check_schedule(kernel.schedule, given, profile=tl.load_profile("zen4"), exactly=True) == []
    expected = np.zeros((places, width), np.float32)
    np.add.at(expected, given["ids"], given["X"])
    np.testing.assert_array_equal(tl.compile(kernel.schedule)(**given), expected)


def test_few_places_are_summed_in_registers() -> None:
    kernel = tl.compile(scatter(100_000, 1, 4), ZEN)
    assert "accumulate in shared" not in str(kernel.schedule)
    small = tl.compile(scatter(1000, 1, 4))
    assert check_kernel(small, arrays(small.computation)) == []


def test_a_shifted_place_is_right() -> None:
    kernel = tl.compile(scatter(700, 8, 900, shift=-3))
    assert check_kernel(kernel, arrays(kernel.computation)) == []


@pytest.mark.parametrize(("memory", "order", "visits"), [
    ("shared", "split t=1; split v=1", 100), ("register", "split v=1; split t=1", 100 * 9), ("shared", "split v=1; split t=1", 100 * 9),
])  # fmt: skip
def test_the_model_counts_what_data_leaves(memory: str, order: str, visits: int) -> None:
    text = tl.computation("c", scatter(100, 8, 9)).text
    plan = tl.parse(f"{text}schedule s for c {{ accumulate in {memory}; {order}; vectorize e=8 }}").schedule("s")
    (loops,) = loops_of(plan, tl.load_profile("zen4"))
    assert loops.passes(len(loops.loops)) == visits


def test_which_axes_data_decides() -> None:
    def decided(o: tl.Tensor) -> dict[str, frozenset[str]]:
        return dict(nest_of(tasks_of(tl.computation("c", o), ())[-1]).decided)

    assert decided(scatter(10, 4, 3)) == decided(scatter(10, 4, 3, chosen=True)) == {"v": frozenset("t")}
    i, j = tl.axes(i=4, j=5)
    L, X = tl.input("L", tl.int32, i), tl.input("X", tl.float32, i, j)
    assert decided(tl.define("Y", tl.sum(X[i, j], over=j, where=j < L[i]), i)) == {}
    assert decided(tl.define("Y", tl.sum(X[i, j], over=j, where=tl.equal(i, j)), i)) == {}
