"""Loads that run ahead in registers, whose owners are what readers read, declared by spreads, or an instruction's lanes."""

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

from ..test_instruct_schedules import gemm_ampere

POCL, AMPERE = tl.load_profile("sapphire_rapids"), tl.load_profile("ampere")
SIZES = [(37, 11, 13), (5, 3, 2)]


def matmul(m: int, n: int, k: int, type: Any = tl.float32) -> Any:
    i, j, r = tl.axes(m=m, n=n, k=k)
    A, B = tl.input("A", type, i, r), tl.input("B", type, r, j)
    return tl.define("C", tl.sum(A[i, r] * B[r, j], over=r), i, j)


def ring(c: tl.Tensor, ahead: int, owners: int = 2) -> Schedule:
    return (
        tl.schedule(c).tile(m=32, n=8).to(tl.block).accumulate(tl.register).split(k=4)
        .load("A", tl.register, ahead=ahead, steps=tl.move().tile(m=owners).to(tl.thread)).load("B", tl.shared, ahead=1)
        .tile(m=2).to(tl.thread)
    )  # fmt: skip


def in_vectors(c: tl.Tensor, ahead: int) -> Schedule:
    return (
        tl.schedule(c).tile(m=32, n=8).to(tl.block).accumulate(tl.register).split(k=4)
        .load("A", tl.register, ahead=ahead, steps=tl.move().tile(m=2).to(tl.thread).vectorize(k=4)).tile(m=2).to(tl.thread)
    )  # fmt: skip


@pytest.mark.parametrize("size", SIZES, ids=str)
@pytest.mark.parametrize("ahead", [1, 2])
@pytest.mark.parametrize("plan", [ring, in_vectors], ids=lambda p: p.__name__)
def test_owners_are_declared(plan: Callable[[tl.Tensor, int], Schedule], ahead: int, size: tuple[int, int, int]) -> None:
    made = plan(matmul(*size), ahead)
    given = arrays(made.computation, "integers")
    assert check_schedule(made, given, profile=POCL, opencl=True, exactly=True) == []


def test_every_prefix_runs() -> None:
    made = ring(matmul(5, 3, 6), 1)
    assert check_prefixes(made, arrays(made.computation, "random"), POCL) == []


def test_a_ring_has_a_buffer_for_each_round() -> None:
    plan = ring(matmul(64, 16, 16), 2)
    (kernel,) = lower(plan.computation, plan.steps, POCL).kernels
    assert [(b.name, b.shape) for b in kernel.registers if "ring" in b.name] == [
        ("A_ring", (2, 4)), ("A_ring_1", (2, 4)), ("A_ring_2", (2, 4)),
    ]  # fmt: skip


@pytest.mark.parametrize(("k", "widths"), [(4, {4}), (16, {16}), (6, {2}), (3, {1})])
def test_a_ring_moves_on_in_vectors(k: int, widths: set[int]) -> None:
    """Rows of k elements, in the widest vectors that divide them."""
    plan = tl.schedule(matmul(32, 8, 48)).tile(m=32, n=8).to(tl.block).accumulate(tl.register).split(k=k)
    plan = plan.load("A", tl.register, ahead=2, steps=tl.move().tile(m=2).to(tl.thread)).tile(m=2).to(tl.thread)
    (kernel,) = lower(plan.computation, plan.steps, POCL).kernels
    stores = [s for s in ir.statements(kernel.body) if isinstance(s, ir.Store) and s.buffer.name.startswith("A_ring")]
    moved = [s.value for s in stores if isinstance(s.value, ir.Load) and s.value.buffer.memory == "register"]
    assert {load.lanes for load in moved} == widths


def test_a_reader_of_a_ring_must_own_it() -> None:
    with pytest.raises(Refusal) as caught:
        ring(matmul(64, 16, 16), 1, 4).check(POCL)
    assert caught.value.code == "reader-is-not-owner" and "(m, k) = (2, 0)" in (caught.value.counterexample or "")


def test_gemm_ampere_is_right() -> None:
    plan = gemm_ampere(matmul(128, 128, 96, tl.float16))
    assert check_schedule(plan, arrays(plan.computation, "integers"), profile=AMPERE, exactly=True) == []


@pytest.mark.parametrize("name", ["A", "B"])
@pytest.mark.parametrize("cuts", [(10, 5, 2), (7, 2, 1), (4, 2, 3), (4, 1, 2)], ids=str)
def test_below_a_fused_axis_every_round_has_the_shares_that_its_readers_find(cuts: tuple[int, int, int], name: str) -> None:
    """Of a first round more is known than of others, so that threads would share less, or from another element on."""
    block, walk, thread = cuts
    made = tl.schedule(matmul(9, 6, 8)).fuse(mn=("m", "n")).tile(mn=block).to("block").split(mn=walk)
    made = made.load(name, "register", ahead=1).tile(mn=thread).to("thread")
    assert check_schedule(made, arrays(made.computation), profile=POCL, opencl=True) == []


@pytest.mark.parametrize("walk", [1, 3])
def test_owners_of_more_than_there_is_have_the_fill(walk: int) -> None:
    """A ring moves on as a whole, so nothing of it may be left unwritten."""
    made = tl.schedule(matmul(9, 6, 8)).tile(m=2, n=4).to("block").split(k=walk)
    made = made.load("B", "register", ahead=1, steps=tl.move().tile(k=2).to("warp"))
    assert check_schedule(made, arrays(made.computation), profile=POCL, opencl=True) == []


@pytest.mark.parametrize("bag", [0, 5])
def test_rows_of_an_empty_bag_are_not_looked_up(bag: int) -> None:
    b, t, e = tl.axes(b=7, t=bag, e=17)
    table = tl.input("table", tl.float32, v=11, e=17)
    ids = tl.input("ids", tl.int32, b, t, range=(0, 11))
    plan = (
        tl.schedule(tl.define("Y", tl.max(table[ids[b, t], e], over=t), b, e))
        .tile(b=2, e=4).to(tl.block).accumulate(tl.register).split(b=1).load("table", tl.register, ahead=2).vectorize(e=4)
    )  # fmt: skip
    assert not check_schedule(plan, arrays(plan.computation, "random", 1), opencl=True)
