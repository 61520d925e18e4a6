"""What schedules with roles are lowered to, event by event, in every interleaving of the roles: no deadlock, no slot overwritten."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.lowering.ring_model import Arrive, Await, Begin, Copy, End, Event, Fault, Write, explore
from tests.lowering.test_roles import by_boxes, by_hand, linear, lowered, matmul
from tilelang import testing
from tilelang.core.expr import Expr, Var
from tilelang.core.layout import evaluate
from tilelang.instructions.instruction import IN_ORDER_GROUP
from tilelang.lowering import ir
from tilelang.profiles.files import load_profile


class Unfolding:
    """The events of one role of one block: its loops written out, reads and writes of rings numbered by their turn."""

    def __init__(self, kernel: ir.Kernel, role: ir.Role, block: int) -> None:
        self.named: dict[str, int] = {"block_x": block, "thread": 0}
        self.fills: Counter[str] = Counter()  # how often a slot was filled by this role, or taken by it
        self.reading: dict[str, None] = {}
        self.written: dict[str, None] = {}
        self.groups: list[list[str]] = [[]]  # what instructions read that complete later: of each group, the open one last
        self.events: list[Event] = list(self.statement(role.body))

    def number(self, e: Expr) -> int:
        names = {v: self.named[v.name] for v in e.walk() if isinstance(v, Var)}
        return int(evaluate(e, names))

    def at(self, buffer: ir.Buffer, index: Expr) -> str:
        return f"{buffer.name}[{self.number(index)}]"

    def statement(self, stmt: ir.Stmt) -> Iterator[Event]:
        match stmt:
            case ir.Seq(body):
                for child in body:
                    yield from self.statement(child)
            case ir.For(var, extent, body):
                for n in range(self.number(extent)):
                    self.named[var.name] = n
                    yield from self.statement(body)
            case ir.Let(var, value):
                self.named[var.name] = self.number(value)
            case ir.If(condition, then):
                if not any(isinstance(v, Var) and v.name not in self.named for v in condition.walk()) and not ir.loads(condition):
                    yield from self.statement(then) if self.number(condition) else ()
            case ir.Await(phases, index, parity):
                yield Await(self.at(phases, index), self.number(parity))
            case ir.Commit(queue=str(queue)) if queue:
                self.groups.append([])
            case ir.Wait(pending, queue=str(queue)) if queue:
                while len(self.groups) > pending + 1:
                    for slot in self.groups.pop(0):
                        yield End(slot)
                        self.fills[slot] += 1
            case ir.Arrive(phases, index, _, bytes):
                yield from self.ended()
                yield Arrive(self.at(phases, index), bytes)
            case ir.Instruction(signal=signal) if signal is not None:
                target = next((b, at) for name, b, at in stmt.operands if name == stmt.semantics.writes)
                slot = self.at(target[0], target[1][0])
                yield Copy(slot, self.fills[slot], self.at(*signal))
                self.fills[slot] += 1
            case _:
                yield from self.accesses(stmt)

    def accesses(self, stmt: ir.Stmt) -> Iterator[Event]:
        """Plain stores to rings, and what is read of them until the next arrival."""
        if isinstance(stmt, ir.Store) and stmt.buffer.ring:
            slot = self.at(stmt.buffer, stmt.indices[0])
            if slot not in self.written:
                self.written[slot] = None
                yield Write(slot, self.fills[slot])
        places = [(load.buffer, load.indices) for e in ir.expressions(stmt) for load in ir.loads(e)]
        if isinstance(stmt, ir.Instruction):
            read = [(b, at) for name, b, at in stmt.operands if name in stmt.semantics.reads]
            if stmt.semantics.completes == IN_ORDER_GROUP:
                yield from self.begun(read)
            else:
                places += read
        for buffer, indices in places:
            slot = self.at(buffer, indices[0]) if buffer.ring else ""
            if slot and slot not in self.reading:
                self.reading[slot] = None
                yield Begin(slot, self.fills[slot])

    def begun(self, places: list[tuple[ir.Buffer, tuple[Expr, ...]]]) -> Iterator[Event]:
        """What an instruction reads until the wait for its group."""
        for slot in [self.at(buffer, indices[0]) for buffer, indices in places if buffer.ring]:
            if slot not in self.groups[-1]:
                self.groups[-1].append(slot)
                yield Begin(slot, self.fills[slot])

    def ended(self) -> Iterator[Event]:
        """What was read until here is no more, and what was written is a whole round's."""
        for slot in self.reading:
            yield End(slot)
        for slot in (*self.reading, *self.written):
            self.fills[slot] += 1
        self.reading, self.written = {}, {}


def bytes_of(copies: list[Copy], kernel: ir.Kernel) -> dict[str, int]:
    """How many bytes each copy brings, by its slot: one slot of its ring."""
    found = {b.name: b.bytes // b.ring for b in kernel.shared if b.ring}
    return {c.slot: found[c.slot.split("[")[0]] for c in copies}


def model(kernel: ir.Kernel, block: int = 0) -> tuple[int, Fault | None]:
    """Every interleaving of a kernel's roles in one block. Arrivals of one statement count as one, a copy's bytes as one byte."""
    programs: dict[str, list[Event]] = {}
    arrivals: Counter[str] = Counter()
    for role in kernel.roles:
        events = Unfolding(kernel, role, block).events
        sizes = bytes_of([e for e in events if isinstance(e, Copy)], kernel)
        waited: list[Event] = []
        for k, e in enumerate(events):
            if isinstance(e, Arrive) and e.bytes:
                following = [c for c in events[k + 1 :] if isinstance(c, Copy) and c.barrier == e.barrier]
                n = next(n for n in range(len(following) + 1) if sum(sizes[c.slot] for c in following[:n]) >= e.bytes)
                assert sum(sizes[c.slot] for c in following[:n]) == e.bytes, "bytes are announced of whole slots"
                e = Arrive(e.barrier, n)
            waited.append(e)
        programs[role.name] = waited
        for name, _ in {
            (e.barrier, e.bytes > 0) for e in waited if isinstance(e, Arrive)
        }:  # for what it copies, and what it stores
            arrivals[name] += 1
    for phases in (b for b in kernel.shared if b.role == "phases"):
        for n in range(phases.elements):
            arrivals[f"{phases.name}[{n}]"] += 0
    return explore(programs, {name: max(1, count) for name, count in arrivals.items()})


PLANS: dict[str, Any] = {
    "by hand, once": (by_hand(matmul(16, 32, 40), 1), "simulated"),
    "by hand, persistent": (by_hand(matmul(32, 64, 20), 2, 1), "simulated"),
    "by hand, without a ring": (by_hand(matmul(16, 32, 24), 0), "simulated"),
    "boxes": (by_boxes(linear(128, 64, 320), 64, None, ahead=2, back="registers"), "hopper"),
    "boxes, persistent": (by_boxes(linear(128, 192, 128), 64, 1, ahead=2, back="registers"), "hopper"),
    "boxes, two slots": (by_boxes(linear(128, 128, 192), 64, 1, ahead=1, back="registers"), "hopper"),
    "boxes, one slot": (by_boxes(linear(128, 64, 192), 64, None, ahead=0, back="registers"), "hopper"),
}


@pytest.mark.parametrize("what", PLANS)
def test_no_interleaving_goes_wrong(what: str) -> None:
    plan, profile = PLANS[what]
    states, fault = model(lowered(plan, profile).kernels[0])
    assert fault is None, str(fault)
    assert states > 20


@given(st.integers(0, 2**32))
@settings(max_examples=max(4, settings().max_examples // 10))
def test_random_products_in_boxes_are_right(number: int) -> None:
    """Copies in boxes by one role and products of another, whatever their sizes: in the simulator, and in every interleaving."""
    plan, profile = testing.draw_boxes(testing.Seeded(number)), load_profile("hopper")
    faults = testing.check_schedule(plan, testing.arrays(plan.computation, "random", number % 1000), profile=profile)
    assert not faults, "\n".join(faults)
    states, fault = model(lowered(plan, "hopper").kernels[0])
    assert fault is None, str(fault)
    assert states > 5


@pytest.mark.parametrize("what", PLANS)
@pytest.mark.parametrize("kind", [ir.Await, ir.Arrive])
def test_nothing_of_it_is_superfluous(what: str, kind: type[ir.Stmt]) -> None:
    """Without its waits or its arrivals, either role goes wrong in some interleaving."""
    plan, profile = PLANS[what]
    (kernel,) = lowered(plan, profile).kernels

    def go(s: Any) -> Any:
        return ir.Seq(()) if isinstance(s, kind) else s.map_children(go) if isinstance(s, ir.Stmt) else s

    for role in kernel.roles:
        broken = kernel.with_roles(go(r.body) if r is role else r.body for r in kernel.roles)
        assert model(broken)[1] is not None, role.name


@pytest.mark.parametrize("what", ["boxes", "boxes, persistent", "boxes, two slots"])
def test_a_slot_is_given_back_when_the_products_that_read_it_have_ended(what: str) -> None:
    """With a group more in flight it would be filled anew while they read it."""
    plan, profile = PLANS[what]
    (kernel,) = lowered(plan, profile).kernels

    def go(s: Any) -> Any:
        if isinstance(s, ir.Wait) and s.pending:
            return s.replace(pending=s.pending + 1)
        return s.map_children(go) if isinstance(s, ir.Stmt) else s

    _, fault = model(kernel.with_roles(go(r.body) for r in kernel.roles))
    assert fault is not None and fault.kind == "overwritten", str(fault)
