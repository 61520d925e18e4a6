"""The threads of a block with concurrent roles: their behaviour at phase barriers and at barriers of one role."""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Callable, Iterator

import numpy as np

from tilelang.core.expr import Expr
from tilelang.lowering import ir
from tilelang.lowering.simulator import instruction_groups
from tilelang.lowering.simulator.batch import Mask
from tilelang.lowering.simulator.concurrent_roles import Phase, Phases, Ready, run_beside
from tilelang.lowering.simulator.copy_queue import Part
from tilelang.lowering.simulator.definedness import Marks
from tilelang.lowering.simulator.findings import Site
from tilelang.lowering.simulator.memory_model import Memory
from tilelang.lowering.simulator.shadow_memory import Array
from tilelang.lowering.simulator.threads import Threads

Order = str | int  # as for `simulate.run`


class RoleThreads(Threads):
    """All threads of a block: they execute the common setup, then each role runs on its own."""

    def __init__(
        self, memory: Memory, sites: dict[tuple[int, object], Site], early: Callable[[], bool], order: Order,
        phases: Phases | None = None,
    ) -> None:  # fmt: skip
        super().__init__(memory, sites, early)
        self.order, self.phases = order, phases or Phases(memory)
        self._mine = self.batch.all  # the threads that synchronize at a barrier

    def _barrier(self, stmt: ir.Barrier, mask: Mask) -> None:
        """A barrier among the threads of a role, or of the block before its roles begin."""
        if mask.threads.size < self._mine.threads.size:
            missing = self._mine.threads[~mask.flags[self._mine.threads]][:1]
            text = f"does not reach this barrier, which thread {mask.threads[0]} does"
            self.memory.report_threads("divergent-barrier", missing, self._site("barrier", "", "barrier"), text)
        for block in np.unique(self.batch.local_block[mask.threads]):
            self.phases.clocks.meet(mask.threads[self.batch.local_block[mask.threads] == block])

    def _cluster_barrier(self, stmt: ir.ClusterBarrier, mask: Mask) -> None:
        """A barrier of all threads of a cluster, before their roles begin."""
        self.phases.clocks.meet(mask.threads)

    def signalling(self, stmt: ir.Instruction, mask: Mask) -> instruction_groups.Send | None:
        """A function that starts the copy of an instruction that signals a barrier."""
        if stmt.signal is None:
            return None
        blocks = range(self.batch.blocks) if stmt.in_cluster else [self._block(mask)]
        found = {block: self._phase(*stmt.signal, mask, block) for block in blocks}

        def send(target: Part, source: Part, values: Callable[[], Array], marks: Marks | None) -> None:
            for block, phase in found.items():
                if phase is not None:
                    self.phases.send(self._in_block(target, block), source, values, marks, phase, block)

        return send

    def _block(self, mask: Mask) -> int:
        """The block of the active threads."""
        return int(self.batch.local_block[mask.threads[0]])

    def _in_block(self, part: Part, block: int) -> Part:
        """The same location in the shared memory of another block."""
        there = np.full_like(part.touch.thread, block * self.batch.kernel.threads)
        address = self.memory.storage[part.buffer.name].addresses(there, part.touch.element)
        return dataclasses.replace(part, touch=part.touch._replace(address=address))

    def _roles(self, stmt: ir.Roles, mask: Mask) -> None:
        made = [_OneRole(self, role, block) for block in range(self.batch.blocks) for role in stmt.body]
        coin = random.Random(self.order) if isinstance(self.order, int) else None

        def choose(count: int) -> int:
            return coin.randrange(count) if coin is not None else count - 1

        in_order = made if self.order == "late" else made[::-1]  # the last one that can run goes first
        run_beside([(r.whole(), r.report_stuck) for r in in_order], self.phases, choose, self.order == "late")
        for role in made:
            role.finish()
        for flight in self.phases.flights:
            text = "the kernel ends before anybody awaits this copy"
            self.memory.report_threads("copy-never-awaited", flight.target.touch.thread[:1], flight.target.site, text)

    def _init_phases(self, stmt: ir.InitPhases, mask: Mask) -> None:
        for thread in mask.threads:
            self.phases.initialise(stmt, int(thread))

    def _phase(self, buffer: ir.Buffer, number: Expr, mask: Mask, block: int | None = None) -> Phase | None:
        """The phase barrier that the active threads name. Different barriers for different threads are a compiler bug."""
        values = np.unique(np.broadcast_to(self.defined(number, mask), mask.flags.shape)[mask.threads])
        assert values.size == 1, f"{buffer.name}[{number}] is named outside a role, or by threads apart"
        site = self._site("phases", buffer.name, "barrier")
        return self.phases.at(buffer, int(values[0]), mask.threads, site, self._block(mask) if block is None else block)

    def _arrive(self, stmt: ir.Arrive, mask: Mask) -> None:
        together = self._mine.threads.reshape(-1, stmt.together)
        active = mask.flags[together]
        if (active.any(axis=1) & ~active.all(axis=1)).any():
            apart = mask.threads[:1]
            self.memory.report_threads(
                "divergent-instruction", apart, self._site("arrive", "", "barrier"), "arrives without the others"
            )
        for block in range(self.batch.blocks) if stmt.in_cluster else [self._block(mask)]:
            phase = self._phase(stmt.phases, stmt.index, mask, block)
            if phase is not None:
                self.phases.arrive(phase, together[active.all(axis=1)], stmt.bytes)

    def _await(self, stmt: ir.Await, mask: Mask) -> None:
        """The scheduler resumed the threads, so the phase has ended."""
        phase = self._phase(stmt.phases, stmt.index, mask)
        if phase is not None:
            self.phases.learn(phase, mask.threads)


class _OneRole(RoleThreads):
    """The threads of one role of a block, which run until they have to wait."""

    def __init__(self, whole: RoleThreads, role: ir.Role, block: int) -> None:
        super().__init__(whole.memory, whole._sites, whole._early, whole.order, whole.phases)
        self.role, self.block, self.lifetimes = role, block, whole.lifetimes
        self.phases.running[block] += 1
        self._vars.update(whole._vars)
        self._vars[ir.THREAD.name] = self.batch.thread - role.first
        self._numbers.update(whole._numbers)
        flags = np.zeros(self.batch.threads, bool)
        first = block * self.batch.kernel.threads + role.first
        flags[first : first + role.threads] = True
        self.mine = self._mine = Mask(flags, lasting=True)
        self._pausing = {id(s) for s in ir.statements(role.body) if _pauses(s)}

    def whole(self) -> Iterator[Ready]:
        """The whole body of the role."""
        yield from self.steps(self.role.body, self.mine)
        self.phases.running[self.block] -= 1

    def steps(self, stmt: ir.Stmt, mask: Mask) -> Iterator[Ready]:
        """Runs a statement; yields, wherever others may run, a function that tells whether these threads can continue."""
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
                phase, parity = self._phase(stmt.phases, stmt.index, mask), self.defined(stmt.parity, mask, "a condition")
                awaited = int(np.broadcast_to(parity, mask.flags.shape)[mask.threads[0]])
                yield lambda: phase is None or phase.parity != awaited
                self._statement = stmt
                self.execute(stmt, mask)
            case ir.ClusterBarrier():
                number = self.phases.gather(mask.threads)
                yield lambda: self.phases.meetings > number
                self.phases.clocks.learn(mask.threads, self.phases.met)
            case _:
                self.execute(stmt, mask)
                yield lambda: True

    def report_stuck(self) -> None:
        """Reports that these threads can never continue."""
        site = self._site("await", "", "barrier")
        text = f"the {self.role.name} waits here for ever: no other role can go on, and no copy is under way"
        self.memory.report_threads("deadlock", self.mine.threads[:1], site, text)


def _pauses(stmt: ir.Stmt) -> bool:
    return any(isinstance(s, (ir.Await, ir.Arrive, ir.ClusterBarrier)) for s in ir.statements(stmt))


RoleThreads.statements = {
    **Threads.statements, ir.Roles: RoleThreads._roles, ir.Role: RoleThreads._roles, ir.Barrier: RoleThreads._barrier,
    ir.InitPhases: RoleThreads._init_phases, ir.Arrive: RoleThreads._arrive, ir.Await: RoleThreads._await,
    ir.ClusterBarrier: RoleThreads._cluster_barrier,
}  # fmt: skip
