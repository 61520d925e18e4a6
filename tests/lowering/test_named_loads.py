"""Several named loads of one tensor: each is filled from where its own read lay before it."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import tilelang as tl
from tests.lowering.test_shares import faults
from tilelang.testing import families


def gram() -> tuple[tl.Tensor, tl.Expr, tl.Expr]:
    """G = A'A, and the two reads of A."""
    m, n, k = tl.axes(m=6, n=6, k=11)
    A = tl.input("A", tl.float32, k, m)
    one, other = A[k, m], A[k, n]
    return tl.define("G", tl.sum(one * other, over=k), m, n), one, other


def covariance() -> tuple[tl.Tensor, tl.Expr, tl.Expr]:
    """C = c c', c = X less the means of its rows: a tensor that is computed in global."""
    m, n, k = tl.axes(m=6, n=6, k=11)
    X = tl.input("X", tl.float32, m, k)
    mean = tl.define("mean", tl.sum(X[m, k], over=k) / 11.0, m)
    c = tl.define("c", X[m, k] - mean[m], m, k)
    one, other = c[m, k], c[n, k]
    return tl.define("C", tl.sum(one * other, over=k), m, n), one, other


def padded() -> tuple[tl.Tensor, tl.Expr, tl.Expr]:
    m, n, k = tl.axes(m=6, n=6, k=11)
    A = tl.input("A", tl.float32, m, k)
    one, other = A[m, k], tl.pad(A[n + 1, k], 2.0)
    return tl.define("P", tl.sum(one * other, over=k), m, n), one, A[n + 1, k]


CASES: dict[str, Callable[[], tuple[tl.Tensor, tl.Expr, tl.Expr]]] = {"gram": gram, "covariance": covariance, "padded": padded}


def begun(case: str) -> tuple[tl.Schedule, tl.Expr, tl.Expr]:
    made, one, other = CASES[case]()
    s = tl.schedule(made)
    return s.compute("c", "global") if case == "covariance" else s, one, other


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("second", ["shared", "register"])
@pytest.mark.parametrize("swapped", [False, True])
def test_both_reads_are_staged(case: str, second: str, swapped: bool) -> None:
    s, one, other = begun(case)
    one, other = (other, one) if swapped else (one, other)
    s = s.tile(m=4, n=2).to("block").accumulate("register").split(k=4).load(one, "shared").load(other, second)
    assert not faults(s.tile(m=1, n=1).to("thread"))


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("ahead", [(1, 0), (0, 1), (2, 1)])
def test_both_reads_run_ahead(case: str, ahead: tuple[int, int]) -> None:
    s, one, other = begun(case)
    s = s.tile(m=4, n=4).to("block").accumulate("register").split(k=4)
    s = s.load(one, "shared", ahead=ahead[0]).load(other, "shared", ahead=ahead[1])
    assert not faults(s.tile(m=2, n=1).to("thread"))


@pytest.mark.parametrize("case", CASES)
def test_each_read_finds_its_own_place_again(case: str) -> None:
    s, one, other = begun(case)
    s = s.tile(m=4, n=4).to("block").accumulate("register").split(k=4).load(one, "shared").load(other, "shared")
    s = s.tile(m=2, n=2).to("thread").split(k=1).load(other, "register").load(one, "register")
    assert not faults(s)
    for load in ("A_register", "c_register"):
        stores = [line for line in tl.compile(s).source.splitlines() if load in line and " = " in line and "float " in line]
        assert all("_shared" in line for line in stores)


def test_a_load_of_all_reads_below_a_load_of_one_comes_from_where_all_lay() -> None:
    i, j = tl.axes(i=9, j=6)
    X = tl.input("X", tl.float32, i=12, j=6)
    here, there = X[i, j], X[i + 2, j]
    s = tl.schedule(tl.define("Y", here * there, i, j)).tile(i=4).to("block").load(there, "shared").load("X", "shared")
    assert not faults(s.tile(i=1, j=2).to("thread"))


@pytest.mark.parametrize("memory", ["shared", "register"])
def test_a_transposed_read_of_the_same_tensor(memory: str) -> None:
    i, j = tl.axes(i=7, j=7)
    X = tl.input("X", tl.float32, i, j)
    here, there = X[i, j], X[j, i]
    s = tl.schedule(tl.define("Y", here + 2.0 * there, i, j)).tile(i=4, j=2).to("block").load(here, "shared").load(there, memory)
    assert not faults(s.tile(i=1, j=1).to("thread"))


@pytest.mark.parametrize("split", [2, 3])
def test_points_are_taken_out_of_a_region(split: int) -> None:
    """Fused axes: the buffer in shared memory holds rows, each thread's share in registers one element per point."""
    i, j, k = tl.axes(i=3, j=4, k=5)
    A, B = tl.input("A", tl.float32, i, k), tl.input("B", tl.float32, j, k)
    s = tl.schedule(tl.define("C", tl.sum(A[i, k] * B[j, k], over=k), i, j)).fuse(ij=("i", "j")).tile(ij=12).to("block")
    assert not faults(s.accumulate("register").load("B", "shared").split(ij=split).load("B", "register").split(ij=1))


def test_points_of_one_fused_axis_out_of_a_region() -> None:
    c = families.convolution(
        n=1, channels=3, size=8, filters=4, window=2, stride=2, dilation=1, pad=2, dtype="float32", depthwise=True
    )
    s = tl.schedule(c).fuse(rs=("r", "s")).tile(n=1, p=4, q=5, c=1).to("block").accumulate("register")
    assert not faults(s.load("X", "shared").split(p=3).tile(rs=1).to("thread").load("X", "register").split(p=1).vectorize(rs=4))


@pytest.mark.parametrize("second", ["shared", "register"])
@pytest.mark.parametrize("size", [4, 5])
def test_a_read_out_of_a_buffer_that_another_padding_filled(second: str, size: int) -> None:
    """What is outside the tensor in the first buffer is the first padding's value; the second one's readers want theirs."""
    i = tl.axes(i=10)
    X = tl.input("X", tl.float32, i)
    before, after = X[i - 1], X[i + 1]
    made = tl.define("Y", tl.pad(before, 0.0) * 2 + tl.pad(after, 5.0), i)
    s = tl.schedule(made).tile(i=size).to("block").load("X", "shared").load(after, second)
    assert not faults(s.tile(i=1).to("thread"))
