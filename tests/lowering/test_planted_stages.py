"""Planted faults in what stages, rings and accumulators hold: each of them is found when the kernel is simulated.

Every statement that writes the buffer is changed in turn, in kernels that need all that they write.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import pytest

import tilelang as tl
from tests.lowering.test_rings import SIMULATED, blocked, both_memories, matmul, nested
from tests.lowering.test_roles import by_hand
from tests.lowering.test_roles import matmul as product
from tilelang.core.expr import Expr, binary, index
from tilelang.lowering import ir
from tilelang.lowering.simulator.simulate import run
from tilelang.schedules.schedule import Schedule
from tilelang.testing import Expected, arrays, check_simulated
from tilelang.testing.mutations import decided

POCL, HOPPER = tl.load_profile("sapphire_rapids"), tl.load_profile("hopper")
Loops = tuple[ir.For, ...]
Fault = Callable[[ir.Stmt, Loops], ir.Stmt | None]  # None: not here


def stages() -> Schedule:
    """Three stages in shared memory, made anew in each round of a walk."""
    (i,) = (tl.axes(i=16),)
    X = tl.input("X", tl.float32, i)
    a = tl.define("a", X[i] * 2 + tl.pad(X[i + 1], 0), i)
    b = tl.define("b", a[i] - tl.pad(a[i + 1], 0), i)
    c = tl.define("c", b[i] - tl.pad(b[i + 1], 0), i)
    made = tl.schedule(c).tile(i=8).to(tl.block).split(i=4).compute("a", tl.shared).compute("b", tl.shared)
    return made.tile(i=1).to(tl.thread)


def staged() -> Schedule:
    """Operands brought to shared memory round by round, none ahead."""
    made = blocked(matmul(16, 16, 32)).accumulate(tl.register).split(k=8).load("A", tl.shared).load("B", tl.shared)
    return made.tile(m=1, n=4).to(tl.thread)


def ring(ahead: int) -> Schedule:
    made = blocked(matmul(16, 16, 64)).accumulate(tl.register).split(k=8).load("A", tl.shared, ahead=ahead)
    return made.tile(m=1, n=4).to(tl.thread)


CASES: dict[str, tuple[Callable[[], Schedule], tl.Profile]] = {
    "stages": (stages, POCL),
    "staged": (staged, POCL),
    "ring": (lambda: ring(1), POCL),
    "asynchronous ring": (lambda: ring(2), SIMULATED),
    "nested ring": (lambda: nested(matmul(16, 16, 64)), SIMULATED),
    "two rings": (lambda: both_memories(matmul(16, 16, 64), 2, 1), SIMULATED),
    "roles": (lambda: by_hand(product(16, 32, 64)), HOPPER),
}


def dropped(stmt: ir.Stmt, loops: Loops) -> ir.Stmt | None:
    return ir.Seq(())


def narrowed(stmt: ir.Stmt, loops: Loops) -> ir.Stmt | None:
    """All is written but the last element of each row."""
    buffer, indices = target(stmt)
    lanes = stmt.lanes if isinstance(stmt, ir.Copy) else ir.lanes(stmt.value) if isinstance(stmt, ir.Store) else 1
    return ir.If(binary("<", indices[-1], buffer.shape[-1] - lanes), stmt)


def narrowed_once(stmt: ir.Stmt, loops: Loops) -> ir.Stmt | None:
    """One round of the walk does not write the last element of each row."""
    if not loops:
        return None
    less = narrowed(stmt, loops)
    assert isinstance(less, ir.If)
    return less.replace(condition=binary("or", binary("!=", loops[0].var, 1), less.condition))


def shifted(stmt: ir.Stmt, loops: Loops) -> ir.Stmt | None:
    """The next slot of the ring is filled."""
    buffer, (slot, *rest) = target(stmt)
    indices = (binary("%", slot + index(1), buffer.ring), *rest)
    return stmt.replace(**{"target_indices" if isinstance(stmt, ir.Copy) else "indices": indices})


def skipped(stmt: ir.Stmt, loops: Loops) -> ir.Stmt | None:
    """One round of the walk does not fill."""
    return ir.If(binary("!=", loops[0].var, 1), stmt) if loops else None


def reused(stmt: ir.Stmt, loops: Loops) -> ir.Stmt | None:
    """The first round of the walk fills, and the others use what it left."""
    return ir.If(binary("<", loops[0].var, 1), stmt) if loops else None


def target(stmt: ir.Stmt) -> tuple[ir.Buffer, tuple[tl.Expr, ...]]:
    if isinstance(stmt, ir.Copy):
        return stmt.target, stmt.target_indices
    assert isinstance(stmt, ir.Store)
    return stmt.buffer, stmt.indices


def planted(body: ir.Stmt, name: str, number: int, fault: Fault) -> ir.Stmt | None:
    """The body with the fault in one of the statements that write a buffer; None: there are not so many, or it has no such fault."""
    left, done = number, False

    def visit(stmt: ir.Stmt, loops: Loops) -> ir.Stmt:
        nonlocal left, done
        if isinstance(stmt, (ir.Store, ir.Copy)):
            left -= target(stmt)[0].name == name
            if left < 0 and not done:
                done = True
                return fault(stmt, loops) or stmt
            return stmt
        inner = (*loops, stmt) if isinstance(stmt, ir.For) else loops
        return stmt.map_children(lambda c: visit(c, inner) if isinstance(c, ir.Stmt) else c)

    changed = visit(body, ())
    return changed if done else None


@functools.cache
def kernel(case: str) -> tuple[ir.Program, dict[str, Any]]:
    """The program of a case, and its inputs."""
    schedule, profile = CASES[case]
    made = schedule()
    return decided(made, profile), arrays(made.computation, "random", 3)


def found(case: str, name: str, fault: Fault, most: int = 99) -> list[bool]:
    """For each of the statements that write a buffer, whether its fault is reported, whatever the results are."""
    program, inputs = kernel(case)
    (whole,) = program.kernels
    reports = []
    for number in range(most):
        body = planted(whole.body, name, number, fault)
        if body is None:
            break
        if body != whole.body:
            broken = program.replace(kernels=(whole.replace(body=body),))
            reports.append(any(run(broken, inputs, order=order).counts for order in ("early", "late")))
    return reports


@pytest.mark.parametrize("case", CASES)
def test_what_is_whole_is_right(case: str) -> None:
    program, inputs = kernel(case)
    assert not check_simulated(program, Expected(CASES[case][0]().computation, inputs))


# Statements that write the buffer: all of them, and those in a loop.
WRITES = {
    ("stages", "a_shared"): (1, 1), ("stages", "b_shared"): (1, 1), ("staged", "A_shared"): (1, 1), ("staged", "B_shared"): (1, 1),
    ("ring", "A_shared"): (2, 2), ("asynchronous ring", "A_shared"): (3, 3), ("nested ring", "A_shared"): (2, 1),
    ("nested ring", "B_shared"): (2, 1), ("two rings", "A_shared"): (3, 3), ("two rings", "B_shared"): (3, 3),
    ("roles", "A_shared"): (1, 1), ("roles", "B_shared"): (1, 1),
}  # fmt: skip


@pytest.mark.parametrize(("case", "name"), WRITES, ids=".".join)
def test_every_fault_of_a_stage_or_ring_is_found(case: str, name: str) -> None:
    all_writes, in_loops = WRITES[case, name]
    assert found(case, name, dropped) == found(case, name, narrowed) == [True] * all_writes
    assert found(case, name, narrowed_once) == found(case, name, skipped) == found(case, name, reused) == [True] * in_loops
    if any(b.name == name and b.ring for k in kernel(case)[0].kernels for b in k.buffers):
        assert found(case, name, shifted) == [True] * all_writes


@pytest.mark.parametrize("case", [c for c in CASES if c != "stages"])
def test_an_accumulator_that_is_not_initialised_is_found(case: str) -> None:
    assert found(case, "C_state", dropped, most=1) == [True]


def read_early(body: ir.Stmt, name: str) -> ir.Stmt:
    """All that reads a ring reads the slot after the one that it should."""

    def next_slot(buffer: ir.Buffer, indices: tuple[tl.Expr, ...]) -> tuple[tl.Expr, ...]:
        return (binary("%", indices[0] + index(1), buffer.ring), *indices[1:]) if buffer.name == name else indices

    def load(e: Any) -> Any:
        e = e.map_children(load)
        return e.replace(indices=next_slot(e.buffer, e.indices)) if isinstance(e, ir.Load) else e

    def visit(stmt: ir.Stmt) -> ir.Stmt:
        if isinstance(stmt, ir.Instruction):
            reads = stmt.semantics.reads
            return stmt.replace(operands=tuple((n, b, next_slot(b, ix) if n in reads else ix) for n, b, ix in stmt.operands))
        return stmt.map_children(lambda c: visit(c) if isinstance(c, ir.Stmt) else load(c) if isinstance(c, Expr) else c)

    return visit(body)


RINGS = [("ring", "A_shared"), ("asynchronous ring", "A_shared"), ("nested ring", "B_shared"), ("two rings", "B_shared")]


@pytest.mark.parametrize(("case", "name"), [*RINGS, ("roles", "A_shared")])
def test_a_slot_that_is_read_early_is_found(case: str, name: str) -> None:
    program, inputs = kernel(case)
    (whole,) = program.kernels
    body = read_early(whole.body, name)
    assert body != whole.body
    broken = program.replace(kernels=(whole.replace(body=body),))
    assert check_simulated(broken, Expected(CASES[case][0]().computation, inputs))


def test_a_barrier_of_another_stage_is_found() -> None:
    """A role awaits always the first stage's barrier, or arrives at it."""
    program, inputs = kernel("roles")
    (whole,) = program.kernels
    expected, tried = Expected(CASES["roles"][0]().computation, inputs), 0
    places = [s for s in ir.statements(whole.body) if isinstance(s, (ir.Await, ir.Arrive)) and s.phases.elements > 1]
    for place in places:

        def first(stmt: ir.Stmt, place: ir.Stmt = place) -> ir.Stmt:
            if stmt is place:
                return stmt.replace(index=index(0))
            return stmt.map_children(lambda c: first(c) if isinstance(c, ir.Stmt) else c)

        broken = program.replace(kernels=(whole.replace(body=first(whole.body)),))
        if broken != program:
            tried += 1
            assert check_simulated(broken, expected), str(place)
    assert tried >= 2
