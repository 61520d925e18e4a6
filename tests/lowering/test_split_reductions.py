"""Reductions spread over blocks: partial states, one per block, and the kernel that combines them."""

import pytest

import tilelang as tl
from tests.lowering.test_shares import faults
from tilelang import testing


def matrix_sum(kind: str = "sum") -> tl.Schedule:
    i, j, k = tl.axes(i=5, j=6, k=7)
    X = tl.input("X", tl.float32, i, j, k)
    made = tl.sum(X[i, j, k], over=(j, k), where=k <= j) if kind == "where" else tl.sum(X[i, j, k], over=(j, k))
    return tl.schedule(tl.define("y", tl.relu(made), i))


@pytest.mark.parametrize("kind", ["sum", "where"])
@pytest.mark.parametrize("piece", [1, 10, 42])
@pytest.mark.parametrize("threads", [False, True])
def test_a_fused_reduction_over_blocks(kind: str, piece: int, threads: bool) -> None:
    made = matrix_sum(kind).fuse(jk=("j", "k")).tile(i=2, jk=piece).to("block")
    made = made.tile(jk=4).to("thread") if threads else made.split(jk=3)
    assert not faults(made)
    first, _ = testing.lowered(made).kernels
    (partial,) = [b for b in first.buffers if b.name.endswith("_partial")]
    assert partial.shape[0] == -(-42 // piece)


def test_one_part_of_a_reduction_over_blocks() -> None:
    made = matrix_sum().unfuse(j={"outer": 2, "inner": 3}).tile(outer=1, i=2).to("block")
    assert not faults(made.split(k=3))


def test_parts_of_a_reduction_fused_anew() -> None:
    made = matrix_sum().unfuse(j={"outer": 2, "inner": 3}).fuse(rest=("inner", "k")).tile(rest=4, outer=1).to("block")
    assert not faults(made.tile(i=1).to("thread"))


def test_an_axis_that_a_block_takes_whole_is_relabelled_below() -> None:
    assert not faults(matrix_sum().tile(j=6, k=7).to("block").fuse(jk=("j", "k")).split(jk=5))
    assert not faults(matrix_sum().tile(j=6, k=2).to("block").unfuse(j={"outer": 2, "inner": 3}).split(outer=1))


def test_a_split_convolution_by_implicit_gemm() -> None:
    """The channels and windows of a filter as one axis, which blocks share; pixels and filters are staged by access."""
    p, f, r, c = tl.axes(p=6, f=4, r=3, c=5)
    X, W = tl.input("X", tl.float32, p=6, c=5), tl.input("W", tl.float32, f, r, c)
    z = tl.define("Z", tl.sum(tl.pad(X[p + r - 1, c], 0) * W[f, r, c], over=(r, c)), p, f)
    made = tl.schedule(z).fuse(rc=("r", "c")).tile(p=4, rc=8).to("block").accumulate("register").split(rc=4)
    made = made.load("X", "shared", layout=tl.layout("rc", "p"), ahead=1).load("W", "shared", layout=tl.layout("rc", "f"))
    assert not faults(made.tile(p=2, f=1).to("thread"))


def test_what_meets_needs_a_reduction_of_a_reduction() -> None:
    """The stages stand in the kernel of the parts; the kernel where these meet reads them from memory, made one after the other."""
    q, p, m, j = tl.axes(q=6, p=5, m=4, j=5)
    A = tl.input("A", tl.float32, q, p, m)
    F = tl.define("F", tl.max(A[q, p, m], over=m), q, p)
    E = tl.define("E", tl.min(F[q, p], over=p), q)
    total = tl.define("total", tl.sum(A[q, j, 0] * E[q], over=j), q)
    last = tl.define("Z", total[q] + E[(q + 1) % 6], q)
    assert not faults(tl.schedule(last).tile(j=2).to("block").compute("F", "shared").compute("E", "shared"))


def test_what_meets_reads_a_reduction_over_the_same_axes() -> None:
    """A stage that could be a state of the second kernel has no parts there: it is made before."""
    m, k = tl.axes(m=16, k=64)
    A = tl.input("A", tl.float32, m, k)
    R = tl.define("R", tl.sum(A[m, k], over=k), m)
    T = tl.define("T", R[m] * 2, m)
    total = tl.define("total", tl.sum(A[m, k] * A[m, k], over=k), m)
    last = tl.define("Z", total[m] + T[m], m)
    assert not faults(tl.schedule(last).tile(m=4, k=16).to("block").compute("R", "shared").compute("T", "shared"))
