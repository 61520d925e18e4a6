"""Planted faults: without one of its barriers, guards, fills or waits a kernel is found out, or did not need it.

The kernels are the examples', at odd sizes and with tiny tiles; `benchmarks/mutations.py` runs all of them and lists the survivors.
"""

from __future__ import annotations

import pytest

import tilelang as tl
from tests.test_examples import SIZES, load
from tilelang.core import dtype as dt
from tilelang.core.expr import INDEX, Expr, Select, Var, binary, const, index
from tilelang.lowering import ir, printer
from tilelang.testing.mutants import KINDS, Mutant, mutants
from tilelang.testing.mutations import DOUBLED, IDLE, UNSEEN, Judge, Tally, Verdict, decided

QUICK = ["02_batched_gelu.simt", "06_row_sum.simt", "08_softmax.softmax_rows", "12_embedding_bag.simt", "13_causal_product.simt"]


def awaited(m: int = 9, k: int = 40) -> tl.Schedule:
    """Rows summed, brought by asynchronous copies two rounds ahead."""
    i, j = tl.axes(i=m, j=k)
    x = tl.input("X", tl.float16, i, j)
    y = tl.define("Y", tl.sum(x[i, j], over=j), i)
    steps = tl.move().tile(i=1, j=8).to(tl.thread).do("cp_async_16")
    return (
        tl.schedule(y).tile(i=4).to(tl.block).accumulate(tl.register).split(j=16)
        .load("X", tl.shared, ahead=2, steps=steps).tile(i=1).to(tl.thread)
    )  # fmt: skip


@pytest.mark.parametrize("name", QUICK)
def test_what_is_dropped_is_noticed_or_was_not_needed(name: str) -> None:
    example, chosen = name.split(".")
    schedule = load(example).schedules(*SIZES[example][1], small=True)[chosen]
    tally = Tally()
    tally.run(decided(schedule, tl.load_profile("sapphire_rapids")), schedule.computation)
    assert not tally.missed, str(tally)
    assert tally.noticed["barrier"] == tally.total["barrier"] > 0, str(tally)
    assert tally.share >= 0.65, str(tally)


def test_every_wait_is_needed() -> None:
    schedule = awaited()
    program = decided(schedule, tl.load_profile("ampere"))
    assert any(isinstance(s, ir.Wait) for k in program.kernels for s in ir.statements(k.body))
    tally = Tally()
    tally.run(program, schedule.computation)
    assert tally.noticed["wait"] == tally.total["wait"] > 0, str(tally)
    assert not tally.missed, str(tally)


def test_a_kernel_without_protection_has_no_mutants() -> None:
    (i,) = (tl.axes(i=8),)
    y = tl.define("Y", tl.input("X", tl.float32, i)[i] + 1, i)
    tally = Tally()
    tally.run(decided(tl.schedule(y).tile(i=4).to(tl.block)), tl.schedule(y).computation)
    assert tally.total.total() == 0
    assert tally.share == 1.0


def test_text_counts_every_kind() -> None:
    tally = Tally()
    assert all(kind in str(tally) for kind in KINDS)


# ---------------------------------------------------------------- single changes

I, J = Var("i", INDEX, 0, 7), Var("j", INDEX, 0, 7)
X, Y = ir.Buffer("X", dt.float32, (8,), "global", "input"), ir.Buffer("Y", dt.float32, (8,), "global", "output")
S = ir.Buffer("S", dt.float32, (8,), "shared")
WRITE = ir.Store(S, (I,), ir.Load(X, (I,)))


def changed(*body: ir.Stmt) -> list[Mutant]:
    """The mutants of a kernel of one block of eight threads."""
    kernel = ir.Kernel("k", (1, 1, 1), 8, (X, Y, S), ir.Seq(body))
    return list(mutants(ir.Program((kernel,), (X, Y))))


def test_each_condition_of_a_guard_is_left_out_alone() -> None:
    both = binary("and", binary("<", I, 5), binary("<", J, 6))
    first, second = changed(ir.If(both, WRITE))
    assert "without `i < 5`" in first.text and "without `j < 6`" in second.text
    assert [s.condition for m in (first, second) for s in ir.statements(m.program.kernels[0].body) if isinstance(s, ir.If)] == [
        binary("<", J, 6),
        binary("<", I, 5),
    ]
    choice = ir.Store(S, (I,), Select(both, ir.Load(X, (I,)), const(0, dt.float32)))
    assert [m.kind for m in changed(choice)] == ["fill", "guard", "guard"]


def test_each_bound_of_a_loop_is_left_out_alone() -> None:
    extent = binary("max", binary("min", binary("-", 9, J), 8), 1)
    hows = [m.text.split(":")[1].strip() for m in changed(ir.For(I, extent, WRITE))]
    assert hows == ["without the least of rounds", "rounds beyond 9 - j"]
    assert not changed(ir.For(I, index(8), WRITE))


def test_waits_are_left_out_and_made_weaker() -> None:
    found = [m.text for m in changed(ir.Commit(), ir.Wait(1))]
    assert found == ["k: no commit", "k: no wait 1", "k: one group less: wait 1"]
    wait = changed(ir.Wait(1))[1].program.kernels[0].body
    assert [s.pending for s in ir.statements(wait) if isinstance(s, ir.Wait)] == [2]


def test_fences_of_shared_memory_are_left_out() -> None:
    assert [m.text for m in changed(ir.Fence("q", "register"), ir.Fence("q", "shared"))] == ["k: no fence shared for q"]
    inside = ir.Roles((ir.Role("r", 0, 8, ir.seq(WRITE, ir.Fence("q", "shared"))),))
    (found,) = changed(inside)
    assert not any(isinstance(s, ir.Fence) for s in ir.statements(found.program.kernels[0].body))


def test_what_a_temporary_register_holds_beyond_a_count_is_no_guard() -> None:
    store = ir.Store(S, (index(0),), ir.Load(X, (index(0),), 4), index(3))
    assert [m.kind for m in changed(store)] == ["guard"]
    assert not changed(store.replace(buffer=ir.Buffer("t", dt.float32, (4,), "register", "temporary")))


def test_barriers_are_left_out_whole_and_by_memory_but_not_those_for_a_compiler() -> None:
    found = [m.text for m in changed(ir.Barrier(("global", "shared")))]
    assert found == [
        "k: no barrier global shared",
        "k: not for global: barrier global shared",
        "k: not for shared: barrier global shared",
    ]


def test_counts_are_left_out_bound_by_bound() -> None:
    lanes = ir.Load(X, (index(0),), 4, binary("min", binary("-", 7, I), binary("-", 6, J)), const(0, dt.float32))
    store = ir.Store(S, (index(0),), lanes, binary("-", 7, I))
    assert [m.kind for m in changed(store)] == ["guard", "guard", "guard", "fill"]


def test_identities_are_left_out_and_garbage_stands_for_what_is_held_back() -> None:
    (mutant,) = changed(ir.Store(S, (I,), const(0, dt.float32)))
    assert mutant.kind == "fill" and mutant.text == "k: not set: S[i] = 0.0: float32"
    assert mutant.garbage is not None and "S[i] = nan" in printer.to_text(mutant.garbage)
    (guard,) = changed(ir.If(binary("<", I, 5), WRITE))
    assert guard.garbage is not None and "S[i] = nan" in printer.to_text(guard.garbage)
    assert changed(ir.If(binary("<", I, 5), WRITE, WRITE))[0].garbage is None  # the other branch is not held back


# ---------------------------------------------------------------- verdicts


SHORT = X.replace(shape=(5,))


Y5 = Y.replace(shape=(5,))
BLOCK = ir.BLOCK[0].replace(upper=0)


def judged(body: ir.Stmt, outputs: int) -> list[Verdict]:
    """What becomes of the mutants of a kernel that is to give X and then zeros."""
    (a,) = (tl.axes(a=outputs),)
    y = tl.define("Y", tl.pad(tl.input("X", tl.float32, a=5)[a], 0), a)
    out = Y.replace(shape=(outputs,))
    program = ir.Program((ir.Kernel("k", (1, 1, 1), 1, (SHORT, out, S), body),), (SHORT, out))
    return list(Judge(program, tl.schedule(y).computation).verdicts())


def verdicts(value: Expr, *, reads: int) -> dict[str, str]:
    """Those of one that keeps `value` of i in 0..8 in S and gives the first `reads` of them."""
    k, out = Var("k", INDEX, 0, reads - 1), Y.replace(shape=(reads,))
    body = ir.Seq((ir.For(I, index(8), ir.Store(S, (I,), value)), ir.For(k, index(reads), ir.Store(out, (k,), ir.Load(S, (k,))))))
    return {v.mutant.text.split(":")[1].strip(): v.how for v in judged(body, reads)}


def test_a_fill_that_nobody_reads_is_unseen() -> None:
    x = ir.Load(SHORT, (I,))
    found = verdicts(Select(binary("<", I, 5), x, const(0, dt.float32)), reads=5)
    assert found == {"left as it was": UNSEEN, "always X[i]": "out-of-bounds"}


def test_what_is_protected_twice_is_doubled() -> None:
    x = ir.Load(SHORT, (I,))
    inner = Select(binary("<", I, 5), x, const(0, dt.float32))
    twice = Select(binary("<=", I, 4), inner, const(0, dt.float32))
    found = verdicts(twice, reads=8)
    assert found["always where(i < 5, X[i], 0.0)"] == DOUBLED  # and what it gives is in the way of the other one's garbage
    assert found["always X[i]"] == UNSEEN
    assert found["left as it was"] == "uninitialised-read"


def test_what_changes_nothing_is_idle() -> None:
    more = Var("more", INDEX, 0, 3)
    body = ir.Seq((
        ir.For(I, index(5), ir.Store(Y5, (I,), ir.Load(SHORT, (I,)))),
        ir.For(more, binary("-", 2, BLOCK), ir.For(I, index(5), ir.Store(Y5, (I,), ir.Load(Y5, (I,))))),
    ))  # fmt: skip
    assert {v.how for v in judged(body, 5)} == {IDLE}
