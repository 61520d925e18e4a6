"""The threads of a block whose roles run beside each other: what they do at barriers with phases, and at barriers of one role."""

from __future__ import annotations

import functools
import random
from collections.abc import Callable, Iterator

import numpy as np

from tilelang.expr import Expr
from tilelang.lowering import instruction_groups, ir
from tilelang.lowering.concurrent_roles import Phase, Phases, Ready, run_beside
from tilelang.lowering.findings import Site
from tilelang.lowering.memory_model import Mask, Memory
from tilelang.lowering.threads import Threads

Order = str | int  # as for `simulate.run`


class RoleThreads(Threads):
    """All threads of a block: they prepare what the roles need, then each role goes its way."""

    def __init__(
        self, memory: Memory, sites: dict[tuple[int, object], Site], early: Callable[[], bool], order: Order,
        phases: Phases | None = None,
    ) -> None:  # fmt: skip
        super().__init__(memory, sites, early)
        self.order, self.phases = order, phases or Phases(memory)
        self._mine = self.batch.all  # the threads that meet at a barrier

    def _barrier(self, stmt: ir.Barrier, mask: Mask) -> None:
        """A barrier of the threads of a role, or of the block before its roles begin."""
        if mask.threads.size < self._mine.threads.size:
            missing = self._mine.threads[~mask.flags[self._mine.threads]][:1]
            text = f"does not reach this barrier, which thread {mask.threads[0]} does"
            self.memory.report_threads("divergent-barrier", missing, self._site("barrier", "", "barrier"), text)
        self.phases.clocks.meet(mask.threads)

    def signalling(self, stmt: ir.Instruction, mask: Mask) -> instruction_groups.Send | None:
        """What begins the copy of an instruction that signals a barrier."""
        phase = None if stmt.signal is None else self._phase(*stmt.signal, mask)
        return None if phase is None else functools.partial(self.phases.send, phase=phase)

    def _roles(self, stmt: ir.Roles, mask: Mask) -> None:
        made = [_OneRole(self, role) for role in stmt.body]
        coin = random.Random(self.order) if isinstance(self.order, int) else None

        def choose(count: int) -> int:
            return coin.randrange(count) if coin is not None else count - 1

        in_order = made if self.order == "late" else made[::-1]  # the last that can go on goes first
        run_beside([(r.steps(r.role.body, r.mine), r.report_stuck) for r in in_order], self.phases, choose, self.order == "late")
        for role in made:
            role.finish()
        for flight in self.phases.flights:
            text = "the kernel ends before anybody awaits this copy"
            self.memory.report_threads("copy-never-awaited", flight.target.touch.thread[:1], flight.target.site, text)

    def _init_phases(self, stmt: ir.InitPhases, mask: Mask) -> None:
        self.phases.initialise(stmt, int(mask.threads[0]))

    def _phase(self, buffer: ir.Buffer, number: Expr, mask: Mask) -> Phase | None:
        """The barrier that the active threads name; what they name apart is an error of the compiler's own."""
        values = np.unique(np.broadcast_to(self.evaluate(number, mask), mask.flags.shape)[mask.threads])
        assert values.size == 1, f"{buffer.name}[{number}] is named outside a role, or by threads apart"
        return self.phases.at(buffer, int(values[0]), mask.threads, self._site("phases", buffer.name, "barrier"))

    def _arrive(self, stmt: ir.Arrive, mask: Mask) -> None:
        phase = self._phase(stmt.phases, stmt.index, mask)
        together = self._mine.threads.reshape(-1, stmt.together)
        active = mask.flags[together]
        if (active.any(axis=1) & ~active.all(axis=1)).any():
            apart = mask.threads[:1]
            self.memory.report_threads(
                "divergent-instruction", apart, self._site("arrive", "", "barrier"), "arrives without the others"
            )
        if phase is not None:
            self.phases.arrive(phase, together[active.all(axis=1)], stmt.bytes)

    def _await(self, stmt: ir.Await, mask: Mask) -> None:
        """The phase has ended, or else the threads would not have come here."""
        phase = self._phase(stmt.phases, stmt.index, mask)
        if phase is not None:
            self.phases.learn(phase, mask.threads)


class _OneRole(RoleThreads):
    """The threads of one role, which run until they must await something."""

    def __init__(self, whole: RoleThreads, role: ir.Role) -> None:
        super().__init__(whole.memory, whole._sites, whole._early, whole.order, whole.phases)
        self.role = role
        self._vars = {**whole._vars, ir.THREAD.name: self.batch.thread - role.first}
        flags = np.zeros(self.batch.threads, bool)
        flags[role.first : role.first + role.threads] = True
        self.mine = self._mine = Mask(flags)
        self._pausing = {id(s) for s in ir.statements(role.body) if _pauses(s)}

    def steps(self, stmt: ir.Stmt, mask: Mask) -> Iterator[Ready]:
        """Runs a statement; where others may go on, gives whether these threads can."""
        if id(stmt) not in self._pausing or not mask.threads.size:
            self.execute(stmt, mask)
            return
        self._statement = stmt
        match stmt:
            case ir.Seq(body):
                for child in body:
                    yield from self.steps(child, mask)
            case ir.For():
                for inner, inside in self._rounds(stmt, mask):
                    yield from self.steps(inner, inside)
            case ir.If():
                for inner, inside in self._branches(stmt, mask):
                    yield from self.steps(inner, inside)
            case ir.Await():
                phase, parity = self._phase(stmt.phases, stmt.index, mask), self.evaluate(stmt.parity, mask)
                awaited = int(np.broadcast_to(parity, mask.flags.shape)[mask.threads[0]])
                yield lambda: phase is None or phase.parity != awaited
                self._statement = stmt
                self.execute(stmt, mask)
            case _:
                self.execute(stmt, mask)
                yield lambda: True

    def report_stuck(self) -> None:
        """These threads can never go on."""
        site = self._site("await", "", "barrier")
        text = f"the {self.role.name} waits here for ever: no other role can go on, and no copy is under way"
        self.memory.report_threads("deadlock", self.mine.threads[:1], site, text)


def _pauses(stmt: ir.Stmt) -> bool:
    return any(isinstance(s, (ir.Await, ir.Arrive)) for s in ir.statements(stmt))


RoleThreads.statements = {
    **Threads.statements, ir.Roles: RoleThreads._roles, ir.Role: RoleThreads._roles, ir.Barrier: RoleThreads._barrier,
    ir.InitPhases: RoleThreads._init_phases, ir.Arrive: RoleThreads._arrive, ir.Await: RoleThreads._await,
}  # fmt: skip
