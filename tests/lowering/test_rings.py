"""Rings in nested walks: they go on where an inner walk ends and an outer one begins another round, or drain and say why."""

from __future__ import annotations

from typing import Any

import pytest

import tilelang as tl
from tilelang.core.expr import INDEX, Expr, Var, index
from tilelang.lowering import ir
from tilelang.lowering.build.frame import EnclosingLoop, Trim
from tilelang.lowering.build.pipelining.iteration_count import Iterations
from tilelang.lowering.pipeline import lower
from tilelang.profiles.profile import Profile
from tilelang.schedules.schedule import Schedule
from tilelang.schedules.steps import Place
from tilelang.testing.case import arrays
from tilelang.testing.checking import check_schedule
from tilelang.testing.mutations import Tally, decided

SIMULATED, POCL = tl.load_profile("simulated"), tl.load_profile("sapphire_rapids")
SIZES = [(16, 16, 32), (17, 19, 29), (5, 3, 7), (16, 16, 0)]


def check(plan: Schedule, profile: Profile, opencl: bool = False) -> None:
    """It is right to the bit, and the simulator has nothing to say, with copies as early and as late as allowed."""
    assert check_schedule(plan, arrays(plan.computation, "integers"), profile=profile, opencl=opencl, exactly=True) == []


def kernel(plan: Schedule, profile: Profile = SIMULATED) -> ir.Kernel:
    (found,) = lower(plan.computation, plan.steps, profile).kernels
    return found


def matmul(m: int, n: int, k: int) -> tl.Tensor:
    i, j, r = tl.axes(m=m, n=n, k=k)
    A, B = tl.input("A", tl.float32, i, r), tl.input("B", tl.float32, r, j)
    return tl.define("C", tl.sum(A[i, r] * B[r, j], over=r), i, j)


def blocked(c: tl.Tensor) -> Schedule:
    return tl.schedule(c).tile(m=16, n=16).to(tl.block)


def nested(c: tl.Tensor, ahead: int = 1) -> Schedule:
    """Two walks over the reduction, the inner one with two rings in shared memory."""
    return (
        blocked(c).accumulate(tl.register).split(k=8).split(k=2)
        .load("A", tl.shared, ahead=ahead).load("B", tl.shared, ahead=ahead).tile(m=1, n=4).to(tl.thread)
    )  # fmt: skip


def twice(c: tl.Tensor) -> Schedule:
    """Two walks over the reduction, each with the same step: a ring, and one that reads it."""
    plan = blocked(c).accumulate(tl.register)
    for k in (8, 2):
        plan = plan.split(k=k).load("A", tl.shared, ahead=1)
    return plan.tile(m=1, n=4).to(tl.thread)


def both_memories(c: tl.Tensor, shared: int, register: int) -> Schedule:
    """Rings in shared memory, and rings in registers inside, which read them."""
    return (
        blocked(c).accumulate(tl.register).split(k=8).load("A", tl.shared, ahead=shared).load("B", tl.shared, ahead=shared)
        .split(k=2).load("A", tl.register, ahead=register).load("B", tl.register, ahead=register).tile(m=1, n=4).to(tl.thread)
    )  # fmt: skip


def fills(found: ir.Kernel, name: str) -> list[int]:
    """In how many loops each statement that fills a buffer stands, loops of a move's own not counted."""
    depths = []

    def visit(stmt: ir.Stmt, depth: int) -> None:
        buffer = stmt.target if isinstance(stmt, ir.Copy) else stmt.buffer if isinstance(stmt, ir.Store) else None
        if buffer is not None and buffer.name == name:
            depths.append(depth)
        walks = isinstance(stmt, ir.For) and stmt.var.name.split("_")[0] in ("m", "n", "k") and "round" not in stmt.var.name
        for part in ir.parts(stmt):
            visit(part, depth + walks)

    visit(found.body, 0)
    return depths


# ---------------------------------------------------------------- going on


@pytest.mark.parametrize("size", SIZES)
def test_equal_steps_in_one_chain_have_rings_of_their_own(size: tuple[int, int, int]) -> None:
    plan = twice(matmul(*size))
    outer, inner = (s for s in plan.steps if isinstance(s, Place) and s.verb == "load")
    assert outer == inner
    check(plan, SIMULATED)
    rings = [b.shape for b in kernel(plan).buffers if b.memory == "shared"]
    assert rings == [(2, 16, 8) if size[2] > 8 else (16, 8), (2, 16, 2)]


@pytest.mark.parametrize("size", SIZES, ids=str)
@pytest.mark.parametrize("ahead", [1, 5])
def test_a_ring_goes_on_over_the_walk_around_it(size: tuple[int, int, int], ahead: int) -> None:
    """With more rounds ahead than the inner walk has, too."""
    plan = nested(matmul(*size), ahead)
    check(plan, SIMULATED)
    check(plan, POCL)


def test_a_ring_that_goes_on_is_right_on_the_device() -> None:
    check(nested(matmul(17, 19, 29), 2), POCL, opencl=True)


@pytest.mark.parametrize("ahead", [7, 12, 40])
def test_copies_of_many_rounds_are_in_flight(ahead: int) -> None:
    plan = blocked(matmul(16, 16, 170)).accumulate(tl.register).split(k=4).load("A", tl.shared, ahead=ahead)
    check(plan.tile(m=4, n=4).to(tl.thread), tl.load_profile("ampere"))


def test_it_is_filled_once_and_its_slots_follow_all_rounds() -> None:
    found = kernel(nested(matmul(16, 16, 32), 2))
    assert fills(found, "A_shared") == [0, 0, 2]
    (inside,) = [s for s in ir.statements(found.body) if isinstance(s, ir.Copy) and "next" in str(s.source_indices)][:1]
    assert str(inside.target_indices[0]) == "(k * 4 + k_1 + 2) % 3"
    waits = [s.pending for s in ir.statements(found.body) if isinstance(s, ir.Wait)]
    assert waits == [1]
    assert sum(isinstance(s, ir.Barrier) for s in ir.statements(found.body)) == 1


def test_through_three_walks_and_an_accumulator() -> None:
    """The walk between spreads nothing and cuts another axis; states come and go inside the outermost."""
    for size in ((16, 16, 32), (17, 19, 21)):
        plan = (
            blocked(matmul(*size)).accumulate(tl.shared).split(k=16).split(n=8).accumulate(tl.register).split(k=4)
            .load("A", tl.shared, ahead=2).load("B", tl.shared, ahead=1).tile(m=1, n=2).to(tl.thread)
        )  # fmt: skip
        check(plan, SIMULATED)
        check(plan, POCL)
    assert fills(kernel(plan), "A_shared") == [2, 2, 3]  # 21: the walk over k is shorter in its second time
    even = tl.schedule(matmul(16, 16, 32)).computation
    assert fills(kernel(Schedule(even, plan.steps)), "A_shared") == [0, 0, 3]


@pytest.mark.parametrize("profile", [SIMULATED, POCL], ids=lambda p: p.name)
def test_a_ring_in_registers_goes_on(profile: Profile) -> None:
    for size in reversed(SIZES):
        plan = (
            blocked(matmul(*size)).accumulate(tl.register).split(k=8).split(k=2).load("A", tl.register, ahead=2)
            .load("B", tl.shared).tile(m=1, n=4).to(tl.thread)
        )  # fmt: skip
        check(plan, profile)
    assert set(fills(kernel(plan, profile), "A_ring")) == {0, 2}  # before both walks; where the values move on


def test_over_three_walks_with_tails_in_each() -> None:
    """Nine in pieces of 6, of 3, of 2: what is in flight is the same after any number of rounds of all three."""
    plan = (
        blocked(matmul(17, 13, 9)).accumulate(tl.register).split(k=6).split(k=3).split(k=2)
        .load("A", tl.shared, ahead=1).load("B", tl.shared, ahead=2).tile(m=2, n=2).to(tl.thread)
    )  # fmt: skip
    check(plan, SIMULATED)
    check(plan, POCL)
    assert fills(kernel(plan), "A_shared") == [0, 3]


def convolution(n: int, p: int, c: int, f: int, window: int, stride: int) -> tl.Tensor:
    """Z[n, p, q, f] = sum over r, s, c of the padded X[n, stride p + r - 1, stride q + s - 1, c] W[f, r, s, c]."""
    i, y, x, o, r, s, k = tl.axes(n=n, p=p, q=p, f=f, r=window, s=window, c=c)
    X = tl.input("X", tl.float32, n=n, h=stride * p, w=stride * p, c=c)
    W = tl.input("W", tl.float32, o, r, s, k)
    pixel = tl.pad(X[i, stride * y + r - 1, stride * x + s - 1, k], 0)
    return tl.define("Z", tl.sum(pixel * W[o, r, s, k], over=(r, s, k)), i, y, x, o)


def implicit_gemm(c: int, ahead: int) -> Schedule:
    """One walk over three axes, two rings in it: pixels by access, filters by region."""
    z = convolution(n=2, p=3, c=c, f=5, window=2, stride=2)
    return (
        tl.schedule(z).fuse(npq=("n", "p", "q")).tile(npq=8, f=4).to(tl.block).accumulate(tl.register).split(r=1, s=1, c=4)
        .load("X", tl.shared, layout=tl.layout(lambda npq, c: (npq, c ^ npq % 4)), ahead=ahead).load("W", tl.shared, ahead=ahead)
        .tile(npq=2, f=1).to(tl.thread)
    )  # fmt: skip


@pytest.mark.parametrize("profile", [SIMULATED, POCL], ids=lambda p: p.name)
@pytest.mark.parametrize("c, ahead", [(8, 1), (7, 2), (3, 3)])
def test_in_a_walk_over_several_axes(c: int, ahead: int, profile: Profile) -> None:
    plan = implicit_gemm(c, ahead)
    check(plan, profile, opencl=profile is POCL)
    assert "drains" not in "\n".join(kernel(plan, profile).notes)


def test_in_a_walk_over_axes_of_the_output() -> None:
    plan = blocked(matmul(17, 19, 6)).split(m=8, n=4).load("A", tl.shared, ahead=1).load("B", tl.register, ahead=1)
    check(plan.tile(m=2, n=1).to(tl.thread), POCL, opencl=True)


@pytest.mark.parametrize("ahead", [(1, 1), (2, 1), (3, 4), (2, 5)], ids=str)
def test_a_ring_in_registers_goes_on_over_one_in_shared_memory(ahead: tuple[int, int]) -> None:
    for size in SIZES:
        check(both_memories(matmul(*size), *ahead), SIMULATED)
        check(both_memories(matmul(*size), *ahead), POCL)


def test_a_ring_over_another_is_right_on_the_device() -> None:
    check(both_memories(matmul(17, 19, 29), 2, 1), POCL, opencl=True)


def test_the_last_inner_round_waits_for_the_next_outer_one() -> None:
    """One wait and one barrier a round, in the branch that reads the next region; and one of each before the first."""
    found = kernel(both_memories(matmul(16, 16, 64), 3, 1))
    statements = list(ir.statements(found.body))
    assert [s.pending for s in statements if isinstance(s, ir.Wait)] == [2, 2]
    assert sum(isinstance(s, ir.Barrier) for s in statements) == 2
    (crossing,) = [s for s in statements if isinstance(s, ir.If) and any(isinstance(x, ir.Wait) for x in ir.parts(s.then))]
    assert str(crossing.condition) == "k < 7"
    assert not [n for n in found.notes if "drains" in n]


def test_what_comes_at_the_end_of_a_round_cannot_be_read_in_it() -> None:
    """Staged through registers one round ahead, the next region is stored when this one has been read."""
    (first, *_) = [n for n in kernel(both_memories(matmul(16, 16, 64), 1, 1), POCL).notes if "drains" in n]
    assert first.endswith("drains in every iteration over k, because its source is in shared memory only during that iteration")
    (far, *_) = [n for n in kernel(both_memories(matmul(16, 16, 64), 2, 5)).notes if "drains" in n]
    assert far.endswith("drains in every iteration over k, because it is 5 iterations ahead, and the inner loop has only 4")


def test_both_rings_of_two_walks() -> None:
    """The outer walk has a ring of its own, another tensor's."""
    for size in SIZES:
        plan = (
            blocked(matmul(*size)).accumulate(tl.register).split(k=8).load("B", tl.shared, ahead=1)
            .split(k=2).load("A", tl.shared, ahead=3).tile(m=1, n=4).to(tl.thread)
        )  # fmt: skip
        check(plan, SIMULATED)
        check(plan, POCL)


def test_equal_loads_in_two_walks_are_two_rings() -> None:
    plan = (
        blocked(matmul(17, 19, 29)).accumulate(tl.register).split(k=8).load("A", tl.shared, ahead=1)
        .split(k=2).load("A", tl.shared, ahead=1).tile(m=1, n=4).to(tl.thread)
    )  # fmt: skip
    check(plan, SIMULATED)
    assert {b.name for b in kernel(plan).shared} == {"A_shared", "A_shared_1"}


# ---------------------------------------------------------------- draining


def drains(plan: Schedule) -> str:
    check(plan, SIMULATED)
    (note,) = [n for n in kernel(plan).notes if "drains" in n]
    return note.partition("drains in every iteration over ")[2]


def test_a_source_that_comes_with_the_outer_round_drains() -> None:
    plan = blocked(matmul(17, 19, 29)).accumulate(tl.register).split(k=8).load("A", tl.shared).split(k=2)
    said = drains(plan.load("A", tl.register, ahead=1).tile(m=1, n=4).to(tl.thread))
    assert said == "k, because its source is in shared memory only during that iteration"


def test_inner_walks_of_different_lengths_drain() -> None:
    """The short one is not the last of all: the middle walk runs again after it."""
    plan = (
        blocked(matmul(16, 16, 21)).accumulate(tl.shared).split(k=16).split(n=8).accumulate(tl.register).split(k=4)
        .load("A", tl.shared, ahead=1).tile(m=1, n=2).to(tl.thread)
    )  # fmt: skip
    assert drains(plan) == "n, because the loop over k is shorter in some of them"


def test_a_region_that_a_tensor_names_drains() -> None:
    b, e, j = tl.axes(b=8, e=16, j=12)
    ids = tl.input("ids", tl.int32, b, j, range=(0, 40))
    table = tl.input("table", tl.float32, v=40, e=16)
    y = tl.define("Y", tl.sum(table[ids[b, j], e], over=j), b, e)
    plan: Any = tl.schedule(y).tile(b=4).to(tl.block).accumulate(tl.register).split(j=4).split(j=1)
    plan = plan.load("table", tl.shared, layout=tl.layout("b", "j", "e"), ahead=1).tile(b=1, e=1).to(tl.thread)
    assert drains(plan) == "j, because the indices are read from a tensor"


def test_peeled_walks_and_rounds_of_a_spread_drain() -> None:
    """What stands inside is written twice, or stands in a loop that is not a walk: the ring is filled in each."""
    start = blocked(matmul(17, 19, 29)).accumulate(tl.register)
    for plan in (
        start.split(k=8, peel=True).split(k=2).load("A", tl.shared, ahead=1).tile(m=1, n=4).to(tl.thread),
        start.split(k=8).tile(m=2).to(tl.thread, 4).split(k=2).load("A", tl.register, ahead=1),
    ):
        check(plan, SIMULATED)
        check(plan, POCL)


# ---------------------------------------------------------------- planted faults


@pytest.mark.parametrize("profile", [SIMULATED, POCL], ids=lambda p: p.name)
def test_every_wait_and_barrier_is_needed(profile: Profile) -> None:
    tally = Tally()
    for plan in (nested(matmul(9, 10, 29), 2), both_memories(matmul(9, 10, 29), 2, 1)):
        tally.run(decided(plan, profile), plan.computation)
    assert (tally.noticed["wait"] > 0) == (profile is SIMULATED), str(tally)
    assert tally.noticed["barrier"] == tally.total["barrier"] > 0, str(tally)
    assert not tally.missed and "no wait" not in str(tally), str(tally)


# ---------------------------------------------------------------- counting


def walk(name: str, rounds: int, end: Expr | None = None, bound: str = "", axis: str = "k") -> EnclosingLoop:
    v = Var(name, INDEX, 0, rounds - 1)
    return EnclosingLoop(axis, v, v, rounds, None if end is None else Trim(index(0), end, frozenset({bound})), f"{name}<", 0)


def test_rounds_are_counted_through_all_walks() -> None:
    rounds = Iterations((walk("i", 3), walk("j", 4), walk("k", 5)))
    assert str(rounds.number) == "i * 20 + j * 5 + k"
    assert [str(e) for e in rounds.at(index(37)).values()] == ["1", "3", "2"]
    assert str(rounds.exists(rounds.number + 2)) == "i * 20 + j * 5 + k < 58"
    assert rounds.exists(index(59)) is None


def test_a_last_round_may_be_shorter() -> None:
    outer = walk("i", 3)
    inner = walk("k", 4, tl.core.expr.binary("min", index(4), 10 - outer.var * 4), "i<")
    assert inner.whole_until_the_end_of(outer) and not inner.whole
    assert not walk("k", 4, inner.end, "other<").whole_until_the_end_of(outer)
    assert not walk("k", 4, inner.end, "i<", "n").whole_until_the_end_of(outer)
    there = [n for n in range(12) if Iterations((outer, inner)).exists(index(n)) is None]
    assert there == list(range(10))


@pytest.mark.parametrize("memory", ["shared", "register"])
@pytest.mark.parametrize("profile", [SIMULATED, POCL], ids=lambda p: p.name)
def test_a_load_written_twice_runs_ahead_once(profile: Profile, memory: str) -> None:
    plan = blocked(matmul(7, 6, 9)).split(k=2)
    for _ in range(2):
        plan = plan.load("A", memory, ahead=1)
    check(plan.split(k=1), profile)
