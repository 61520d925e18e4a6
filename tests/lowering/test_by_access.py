"""Staging by access: one element per point of a read through a fused axis or an integer tensor, in shared memory and in registers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import tilelang as tl
from tilelang.errors import Refusal
from tilelang.lowering import ir
from tilelang.lowering.pipeline import lower
from tilelang.schedules.schedule import Schedule
from tilelang.testing.case import arrays
from tilelang.testing.checking import check_prefixes, check_schedule

POCL = tl.load_profile("sapphire_rapids")


def rows(count: int = 13, width: int = 24) -> tl.Tensor:
    b, e = tl.axes(b=count, e=width)
    ids, table = tl.input("ids", tl.int32, b, range=(0, 50)), tl.input("table", tl.float32, v=50, e=width)
    return tl.define("Y", table[ids[b], e] * 2, b, e)


def bag(rows: int = 13) -> tl.Tensor:
    b, e, t = tl.axes(b=rows, e=24, t=5)
    ids, table = tl.input("ids", tl.int32, b, t, range=(0, 50)), tl.input("table", tl.float32, v=50, e=24)
    return tl.define("Y", tl.sum(table[ids[b, t], e], over=t), b, e)


def squares(m: int, n: int) -> tl.Tensor:
    i, j = tl.axes(m=m, n=n)
    A = tl.input("A", tl.float32, i, j)
    return tl.define("C", A[i, j] * A[i, j], i, j)


def convolution() -> tl.Tensor:
    n, p, q, k, c, r, s = tl.axes(n=1, p=6, q=6, k=5, c=3, r=3, s=3)
    X, W = tl.input("X", tl.float32, n=1, h=6, w=6, c=3), tl.input("W", tl.float32, r, s, c, k)
    return tl.define("Z", tl.sum(tl.pad(X[n, p + r - 1, q + s - 1, c], 0) * W[r, s, c, k], over=(r, s, c)), n, p, q, k)


def gathered(**kwargs: Any) -> Schedule:
    return (
        tl.schedule(rows()).tile(b=4, e=8).to(tl.block).load("table", tl.register, **kwargs)
        .tile(b=1, e=4).to(tl.thread).vectorize(e=4)
    )  # fmt: skip


def summed() -> Schedule:
    return tl.schedule(bag()).tile(b=4, e=8).to(tl.block).accumulate(tl.register).split(t=2)


def convolved(owners: int, readers: int) -> Schedule:
    return (
        tl.schedule(convolution()).fuse(npq=("n", "p", "q")).tile(npq=16, k=5).to(tl.block).accumulate(tl.register)
        .split(r=1, s=1, c=2).load("X", tl.register, steps=tl.move().tile(npq=owners).to(tl.thread)).load("W", tl.shared)
        .tile(npq=readers).to(tl.thread)
    )  # fmt: skip


def fused(*size: int) -> Schedule:
    return tl.schedule(squares(*size)).fuse(mn=("m", "n")).tile(mn=64).to(tl.block)


PLANS: dict[str, Callable[[], Schedule]] = {
    "a gather": gathered,
    "in vectors": lambda: gathered(steps=tl.move().vectorize(e=4)),
    "declared": lambda: gathered(steps=tl.move().tile(b=1, e=4).to(tl.thread).vectorize(e=4)),
    "of one element": lambda: tl.schedule(rows()).tile(b=4, e=8).to(tl.block).tile(b=1, e=4).to(tl.thread).split(e=1)
    .load("table", tl.register),
    "in rounds": lambda: summed().load("table", tl.register).tile(b=1, e=4).to(tl.thread),
    "ahead": lambda: summed().load("table", tl.register, ahead=1).tile(b=1, e=4).to(tl.thread),
    "from shared": lambda: summed().load("table", tl.shared).split(t=1).load("table", tl.register).tile(b=1, e=4).to(tl.thread),
    "shared twice": lambda: summed().load("table", tl.shared).split(t=1).load("table", tl.shared).tile(b=1, e=4).to(tl.thread),
    "a tail of a layout": lambda: tl.schedule(rows(13, 40)).tile(b=4, e=32).to(tl.block).tile(b=1).to(tl.warp)
    .load("table", tl.shared, layout=tl.layout("e")).tile(e=1).to(tl.thread),
    "fused": lambda: fused(12, 13).load("A", tl.register, steps=tl.move().vectorize(mn=4)).tile(mn=4).to(tl.thread)
    .vectorize(mn=4),
    "fused, of whole rows": lambda: fused(12, 16).load("A", tl.register, steps=tl.move().vectorize(mn=4)).tile(mn=4).to(tl.thread)
    .vectorize(mn=4),
    "spread by fused points of whole rows": lambda: fused(12, 16)
    .load("A", tl.shared, steps=tl.move().tile(mn=4).to(tl.thread).vectorize(mn=4)).tile(mn=4).to(tl.thread),
    "fused and interleaved": lambda: fused(12, 13).load("A", tl.register).split(mn=32).tile(mn=4).to(tl.thread).vectorize(mn=4),
    "a convolution": lambda: convolved(2, 2),
}  # fmt: skip


@pytest.mark.parametrize("plan", PLANS.values(), ids=PLANS)
def test_one_element_per_point(plan: Callable[[], Schedule]) -> None:
    made = plan()
    for data in ("random", "integers"):
        given = arrays(made.computation, data)
        assert check_schedule(made, given, profile=POCL, opencl=True, exactly=data == "integers") == []
    assert check_prefixes(made, given, POCL) == []


def test_a_thread_holds_the_points_it_reads() -> None:
    plan = gathered()
    (kernel,) = lower(plan.computation, plan.steps, POCL).kernels
    assert [(b.name, b.shape) for b in kernel.registers] == [("table_register", (4,))]
    assert [x.lanes for s in ir.statements(kernel.body) for e in ir.expressions(s) for x in ir.loads(e) if x.buffer.name == "ids"]


def test_a_vector_of_fused_points_is_one_access() -> None:
    plan = PLANS["fused"]()
    (kernel,) = lower(plan.computation, plan.steps, POCL).kernels
    loads = [x for s in ir.statements(kernel.body) for e in ir.expressions(s) for x in ir.loads(e) if x.buffer.name == "A"]
    assert loads and all(x.lanes == 4 and x.across for x in loads)


def test_a_reader_of_points_must_own_them() -> None:
    with pytest.raises(Refusal) as caught:
        convolved(4, 2).check(POCL)
    assert caught.value.code == "reader-is-not-owner"
    assert "the element of X at (npq, c) = (2, 0)" in (caught.value.counterexample or "")


def test_points_are_no_region() -> None:
    plan = fused(12, 13).load("A", tl.shared).split(mn=16).load("A", tl.shared, layout=tl.layout("m", "n"))
    with pytest.raises(Refusal) as caught:
        plan.tile(mn=4).to(tl.thread).check(POCL)
    assert caught.value.code == "layout-dimension" and "one element per point of mn" in caught.value.message


@pytest.mark.parametrize("memory", ["shared", "register"])
@pytest.mark.parametrize("fused", [True, False])
def test_a_read_that_a_condition_keeps_inside_is_staged_inside(memory: str, fused: bool) -> None:
    i, j = tl.axes(i=3, j=13)
    X = tl.input("X", tl.float32, i, j)
    left = X[i, j - 1]
    made = tl.schedule(tl.define("Y", tl.where(j >= 1, left, 0.0) + tl.where(j < 12, X[i, j + 1], 1.0), i, j))
    made = made.fuse(ij=("i", "j")).tile(ij=16).to("block") if fused else made.tile(i=2, j=8).to("block")
    layout = (tl.layout("ij") if fused else tl.layout("i", "j")) if memory == "shared" else None
    made = made.load(left, memory, layout=layout)
    made = made.tile(ij=1).to("thread") if fused else made.tile(i=1, j=1).to("thread")
    assert check_schedule(made, arrays(made.computation), opencl=True) == []


@pytest.mark.parametrize("memory", ["shared", "register"])
@pytest.mark.parametrize("again", [False, True])
def test_rows_named_by_a_table_that_stands_by_its_points(memory: str, again: bool) -> None:
    """The ids stand by the parts of b, of which a block sees one only and a walk takes the other piece by piece."""
    made = tl.schedule(bag(15)).unfuse(b={"b1": 5, "b2": 3}).tile(b2=1, e=8).to("block").accumulate("register")
    made = made.load("ids", memory).split(b1=1).load("table", "register")
    made = made.load("ids", "register") if again else made
    assert not check_schedule(made, arrays(made.computation, "integers"), opencl=True, exactly=True)


def test_a_layout_of_dimensions_does_not_fit_a_gather() -> None:
    r, e = tl.axes(r=5, e=4)
    ids, table = tl.input("ids", tl.int32, r, range=(0, 9)), tl.input("table", tl.float32, v=9, w=4)
    plan = tl.schedule(tl.define("Y", table[ids[r], e], r, e)).tile(r=5).to(tl.block)
    with pytest.raises(tl.Refusal) as caught:
        plan.load("table", tl.shared, layout=tl.layout("w", "v")).check("simulated")
    assert caught.value.code == "layout-dimension" and caught.value.help == "name the axes of the read: layout (r, e)"
    plan.load("table", tl.shared, layout=tl.layout("r", "e")).check("simulated")


@pytest.mark.parametrize("gathered_first", [False, True])
def test_a_gather_beside_a_read_of_a_whole_dimension_is_no_region(gathered_first: bool) -> None:
    """Where a gathered element lies is not known, whatever region the other reads have."""
    b = tl.axes(b=31)
    X, ids = tl.input("X", tl.float32, p=31, q=31), tl.input("ids", tl.int32, b, range=(0, 31))
    near, far = X[(b * 2 + 1) % 31, b] + X[b, (b * 2 + 1) % 31], X[b, ids[b]]
    made = tl.define("Y", far + near if gathered_first else near + far, b)
    with pytest.raises(tl.Refusal) as caught:
        tl.schedule(made).tile(b=2).to("block").load("X", "shared").check("simulated")
    assert caught.value.code == "reads-differ" and "X[b, cast(ids[b], int64)]" in caught.value.message


@pytest.mark.parametrize("memory", [tl.shared, tl.register], ids=str)
@pytest.mark.parametrize(("shift", "least"), [(0, 0), (1, 0), (0, 1)])
def test_an_index_that_its_reader_keeps_inside_is_kept_inside_by_the_move(
    memory: tl.profiles.profile.Memory, shift: int, least: int
) -> None:
    """ids has 7 elements, the axis 8: the move reads ids at every point, whatever condition its reader has."""
    b, e = tl.axes(b=8, e=6)
    ids, table = tl.input("ids", tl.int32, i=7, range=(least, least + 5)), tl.input("table", tl.float32, v=5, e=6)
    inside = b >= 1 if shift else b < 7
    made = tl.define("Y", tl.where(inside, table[ids[b - shift] - least, e], 1.0), b, e)
    plan = tl.schedule(made).tile(b=2).to(tl.block).load("table", memory)
    assert not tl.simulate(tl.compile(plan, tl.target("cpu", profile="avx2"))).counts
