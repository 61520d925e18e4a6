"""Where a buffer is filled anew, what the filling leaves out is undefined: nothing of an earlier filling is found there."""

from __future__ import annotations

import functools
from collections.abc import Callable

import pytest

import tilelang as tl
from tests.lowering.small_kernels import THREAD, array, program, shared
from tests.lowering.test_planted_stages import Fault, Loops, dropped, planted
from tests.lowering.test_register_rings import matmul, ring
from tilelang.core import dtype as dt
from tilelang.core.expr import INDEX, Expr, Var, binary, const, index
from tilelang.lowering import ir
from tilelang.lowering.simulator.refills import refills
from tilelang.lowering.simulator.simulate import run
from tilelang.testing import Expected, arrays, check_simulated
from tilelang.testing.mutations import decided

THREADS = 8
K, E = Var("k", INDEX, 0, 2), Var("e", INDEX, 0, 3)
ONE = const(1.0, dt.float32)
OUT = array("out", 4, THREADS, 4, role="output")
STAGE, HELD, SLOT = (
    shared("stage", THREADS, 4),
    ir.Buffer("held", dt.float32, (4,), "register"),
    ir.Buffer("slot", dt.float32, (4,), "register"),
)


def each(statement: Callable[[Expr], ir.Stmt]) -> ir.Stmt:
    return ir.For(E, index(4), statement(E))


def at(buffer: ir.Buffer, e: Expr) -> tuple[Expr, ...]:
    return (THREAD, e) if buffer.memory == "shared" else (e,)


def fill(buffer: ir.Buffer, when: Callable[[Expr], Expr] | None = None) -> ir.Stmt:
    """Writes ones, to the elements for which a condition holds."""

    def one(e: Expr) -> ir.Stmt:
        store = ir.Store(buffer, at(buffer, e), ONE)
        return store if when is None else ir.If(when(e), store)

    return each(one)


def give(buffer: ir.Buffer, round: Expr) -> ir.Stmt:
    return each(lambda e: ir.Store(OUT, (round, THREAD, e), ir.Load(buffer, at(buffer, e))))


def move(into: ir.Buffer, source: ir.Buffer) -> ir.Stmt:
    return each(lambda e: ir.Store(into, at(into, e), ir.Load(source, at(source, e))))


def counts(*body: ir.Stmt) -> dict[str, int]:
    whole = ir.seq(*body)
    found = run(program(whole, OUT, STAGE, HELD, SLOT, threads=THREADS), {}).counts
    return {kind: n for kind, n in found.items() if kind != "unwritten-output"}


@pytest.mark.parametrize("buffer", [STAGE, HELD], ids=lambda b: b.name)
def test_a_partial_result_is_not_used_again_within_an_iteration(buffer: ir.Buffer) -> None:
    """Two fillings in a row, the second of which leaves out the last element, in registers and in shared memory."""
    less = fill(buffer, lambda e: e < 3)
    assert counts(fill(buffer), give(buffer, index(0)), fill(buffer), give(buffer, index(1))) == {}
    assert counts(fill(buffer), give(buffer, index(0)), less, give(buffer, index(1))) == {"uninitialised-read": THREADS}
    walk = ir.For(K, index(3), ir.seq(fill(buffer), give(buffer, K), less, give(buffer, index(3))))
    assert counts(walk) == {"uninitialised-read": 3 * THREADS}


def slots(refill: ir.Stmt) -> tuple[ir.Stmt, ...]:
    """A ring in registers: held is used, slot is for the next round; a walk of three rounds fills it twice more."""
    again = ir.If(binary("<", K, 2), ir.seq(move(HELD, SLOT), refill))
    return fill(HELD), fill(SLOT), ir.For(K, index(3), ir.seq(give(HELD, K), again))


def test_a_slot_of_a_ring_in_registers_is_filled_whole_each_time() -> None:
    assert counts(*slots(fill(SLOT))) == {}
    # The last refilling is not used: two are left of which one is.
    assert counts(*slots(fill(SLOT, lambda e: e < 3))) == {"uninitialised-read": THREADS}
    assert counts(*slots(fill(SLOT, lambda e: binary("or", K >= 1, binary("<", e, 3))))) == {"uninitialised-read": THREADS}


def test_what_is_not_filled_whole_keeps_what_it_holds() -> None:
    halves = [fill(HELD, lambda e: e < 2), fill(HELD, lambda e: 2 <= e)]
    one_by_one = (
        ir.seq(*(ir.Store(HELD, (index(e),), ONE) for e in range(2))),
        ir.seq(*(ir.Store(HELD, (index(e),), ONE) for e in range(2, 4))),
    )
    first = each(lambda e: ir.If(binary("<", e, 2), ir.Store(OUT, (index(0), THREAD, e), ir.Load(HELD, (e,)))))
    assert counts(one_by_one[0], first, one_by_one[1], give(HELD, index(1))) == {}
    by_round = ir.For(K, index(2), ir.If(binary("==", K, 0), halves[0], halves[1]))
    assert counts(by_round, give(HELD, index(1))) == {}
    only_first = ir.For(K, index(3), ir.seq(ir.If(K < 1, fill(HELD)), give(HELD, K)))
    assert counts(fill(HELD), give(HELD, index(3)), only_first) == {}
    accumulated = ir.seq(fill(HELD), ir.For(K, index(3), each(lambda e: ir.Store(HELD, (e,), ir.Load(HELD, (e,)) + ONE))))
    assert counts(accumulated, give(HELD, index(0)), accumulated, give(HELD, index(1))) == {}


def test_an_index_may_be_an_expression_without_variables() -> None:
    """As in a mutant of lowered IR, which no pass simplifies."""
    filling = ir.seq(*(ir.Store(HELD, (binary("%", index(e + 4), index(4)),), ONE) for e in range(4)))
    assert counts(filling, give(HELD, index(0)), filling, give(HELD, index(1))) == {}


def test_threads_that_are_elsewhere_keep_what_they_hold() -> None:
    some = ir.If(binary("<", THREAD, 4), ir.seq(fill(HELD), fill(STAGE)))
    for buffer in (HELD, STAGE):
        assert counts(fill(HELD), fill(STAGE), give(HELD, index(0)), give(STAGE, index(1)), some, give(buffer, index(2))) == {}


@functools.cache
def walk() -> tuple[ir.Program, Expected]:
    made = ring(matmul(64, 16, 24), 2)
    return decided(made, tl.load_profile("sapphire_rapids")), Expected(made.computation, arrays(made.computation, "random", 3))


def one_early(stmt: ir.Stmt, loops: Loops) -> ir.Stmt | None:
    """The slot is moved on from the one after the next."""
    (name,) = {load.buffer.name for e in ir.expressions(stmt) for load in ir.loads(e)}
    other = {"A_ring_1": "A_ring_2", "A_ring_2": "A_ring"}.get(name)
    if other is None:
        return None
    (kernel,) = walk()[0].kernels
    (buffer,) = (b for b in kernel.buffers if b.name == other)
    return ir.map_expressions(stmt, lambda e: e.replace(buffer=buffer) if isinstance(e, ir.Load) else e)


def in_one_round_less(stmt: ir.Stmt, loops: Loops) -> ir.Stmt | None:
    return ir.If(binary("!=", loops[0].var, 1), stmt) if loops else None


@pytest.mark.parametrize("name", ["A_ring", "A_ring_1", "A_ring_2"])
@pytest.mark.parametrize("fault", [dropped, in_one_round_less, one_early], ids=lambda f: f.__name__)
def test_every_fault_of_a_ring_in_registers_is_found(name: str, fault: Fault) -> None:
    whole, expected = walk()
    (kernel,) = whole.kernels
    assert not check_simulated(whole, expected)
    tried = 0
    for number in range(99):
        body = planted(kernel.body, name, number, fault)
        if body is None:
            break
        if body != kernel.body:
            tried += 1
            broken = whole.replace(kernels=(kernel.replace(body=body),))
            assert check_simulated(broken, expected), f"{name}: fault {number}"
    assert tried == (fault is not one_early) + (name != "A_ring_2")


def test_fillings_of_a_ring_in_registers_are_seen() -> None:
    (kernel,) = walk()[0].kernels
    assert {name for at in refills(kernel).values() for names in at.values() for name in names} == {"A_ring", "A_ring_1"}
