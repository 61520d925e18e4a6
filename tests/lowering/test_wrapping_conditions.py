"""Conditions whose terms nearly fill, or leave, 64 bits: index arithmetic wraps, so that no term may change sides."""

from __future__ import annotations

import numpy as np
import pytest

import tilelang as tl
from tilelang.schedules.schedule import Schedule
from tilelang.testing.checking import check_schedule

NEAR = 2**63 - 11  # 12 + NEAR wraps, 15 - NEAR does not
HALF = 2**62  # twice as much wraps: it is the least number of all


def rows(plan: Schedule, **given: np.ndarray) -> np.ndarray:
    """The output, which the simulator and the processor give as well."""
    assert check_schedule(plan, given, profile=tl.load_profile("zen4"), opencl=True, exactly=True) == []
    found = np.asarray(plan.computation.evaluate(**given))
    np.testing.assert_array_equal(tl.compile(plan, "cpu")(**given), found)
    return found


@pytest.mark.parametrize("factor, count, whole", [(-NEAR, 2, [1]), (HALF, 4, [2, 3])], ids=["nearly", "wraps"])
def test_a_vector_takes_the_lanes_for_which_a_condition_holds(factor: int, count: int, whole: list[int]) -> None:
    c, i = tl.axes(c=count, i=16)
    X = tl.input("X", tl.int32, i)
    Y = tl.define("Y", tl.where(i + c * factor < 12, X[i], 0), c, i)
    x = np.arange(1, 17, dtype=np.int32)
    expected = np.zeros((count, 16), np.int32)
    expected[0, :12], expected[whole] = x[:12], x
    assert (rows(tl.schedule(Y).tile(c=1).to(tl.block).vectorize(i=16), X=x) == expected).all()


@pytest.mark.parametrize("factor, count, whole", [(-NEAR, 2, [1]), (HALF, 4, [2, 3])], ids=["nearly", "wraps"])
def test_a_square_is_moved_as_far_as_a_condition_holds(factor: int, count: int, whole: list[int]) -> None:
    c, i, j = tl.axes(c=count, i=16, j=16)
    X = tl.input("X", tl.int32, j, i)
    C = tl.define("C", tl.where(i + c * factor < 12, X[j, i], 0), c, i, j)
    Y = tl.define("Y", C[c, i, j], c, i, j)
    x = np.arange(1, 257, dtype=np.int32).reshape(16, 16)
    expected = np.zeros((count, 16, 16), np.int32)
    expected[0, :12], expected[whole] = x.T[:12], x.T
    plan = tl.schedule(Y).tile(c=count, i=16, j=16).to(tl.block).split(c=1).compute(C, tl.shared)
    assert (rows(plan, X=x) == expected).all()


def test_a_walk_ends_where_a_condition_says_so_only_if_it_can_be_solved() -> None:
    """`k - c * K < 20` stays within 64 bits, `k < 20 + c * K` does not."""
    c, k = tl.axes(c=2, k=64)
    X = tl.input("X", tl.int32, k)
    Y = tl.define("Y", tl.sum(X[k], over=k, where=k - c * NEAR < 20), c)
    x = np.arange(1, 65, dtype=np.int32)
    plan = tl.schedule(Y).tile(c=1).to(tl.block).accumulate(tl.register).split(k=4).vectorize(k=4)
    assert rows(plan, X=x).tolist() == [x[:20].sum(), x.sum()]


@pytest.mark.parametrize("vectors", [False, True], ids=["loop", "vector"])
@pytest.mark.parametrize("sign", [1, -1], ids=["none", "all"])
def test_iterations_and_lanes_are_counted_in_64_bits(sign: int, vectors: bool) -> None:
    """How many there are is solved from the condition: 5 in the first row, -4294967287 or 4294967297 in the third."""
    i, k = tl.axes(i=6, k=16)
    X = tl.input("X", tl.int32, i, k)
    holds = k + i * (sign * (2**31 - 2)) < 5
    x = np.arange(1, 97, dtype=np.int32).reshape(6, 16)
    expected = np.zeros_like(x) if sign > 0 else x.copy()
    expected[0] = np.where(np.arange(16) < 5, x[0], 0)
    if vectors:
        Y = tl.define("Y", tl.where(holds, X[i, k], 0), i, k)
        assert (rows(tl.schedule(Y).tile(i=1).to(tl.block).vectorize(k=16), X=x) == expected).all()
    else:
        Y = tl.define("Y", tl.sum(X[i, k], over=k, where=holds), i)
        assert (rows(tl.schedule(Y), X=x) == expected.sum(axis=1)).all()
