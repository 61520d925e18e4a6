"""Runs the roles of a block beside each other: one goes on until it awaits a phase, or has arrived somewhere, then any other may.

Each role is a generator over its statements. Which of those that can go on is next, and when a copy that signals a barrier lands, is
decided as for asynchronous copies: roles in their order and copies at once ("early"), roles in the other order and copies when nothing
else can happen ("late"), or both by lot. What no order of events may show, the clocks of `clocks` do. Where nothing can happen any more
and a role has not ended, that is a deadlock.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator

import numpy as np

from tilelang.lowering import ir
from tilelang.lowering.simulator.copy_queue import Part
from tilelang.lowering.simulator.definedness import Marks
from tilelang.lowering.simulator.findings import Site
from tilelang.lowering.simulator.memory_model import Memory
from tilelang.lowering.simulator.shadow_memory import Array

Ready = Callable[[], bool]


@dataclasses.dataclass(slots=True)
class Phase:
    """One barrier: the parity of its current phase, what it still waits for, and what is known of those who came."""

    arrivals: int
    maker: int  # the thread that made it, and the step in which it did
    initialised: int
    known: Array
    parity: int = 0
    missing: int = 0
    bytes: int = 0
    ended: Array | None = None  # what was known of the last phase when it ended

    def count(self, arrivals: int, bytes: int, known: Array) -> None:
        """Arrivals and bytes that have come; where nothing is missing any more, the phase ends."""
        self.missing -= arrivals
        self.bytes -= bytes
        self.known = np.maximum(self.known, known)
        if self.missing == 0 and self.bytes == 0:
            self.parity, self.missing = 1 - self.parity, self.arrivals
            self.ended, self.known = self.known, np.zeros_like(self.known)


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Flight:
    """A copy under way that will signal a barrier. told: what the device knew when it was told."""

    target: Part
    source: Part
    values: Callable[[], Array]
    marks: Marks | None
    phase: Phase
    told: Array
    block: int  # in whose memory it lands


class Phases:
    """The barriers with phases of a block, and the copies that signal them."""

    def __init__(self, memory: Memory) -> None:
        clocks = memory.batch.clocks
        assert clocks is not None, "a kernel without roles has no barriers with phases"
        self._memory, self.clocks = memory, clocks
        self._all: dict[tuple[int, str, int], Phase] = {}
        self.flights: list[Flight] = []
        self.running = dict.fromkeys(range(memory.batch.blocks), 0)  # roles of each block that have not ended
        self.meetings, self._come, self._brought = 0, 0, np.zeros(self.clocks.agents, np.int32)  # of all blocks of a cluster
        self.met = self._brought

    def initialise(self, stmt: ir.InitPhases, thread: int) -> None:
        step, block = int(self.clocks.knows[thread, thread]), int(self._memory.batch.local_block[thread])
        for number in range(stmt.phases.elements):
            nothing = np.zeros(self.clocks.agents, np.int32)
            self._all[block, stmt.phases.name, number] = Phase(stmt.arrivals, thread, step, nothing, missing=stmt.arrivals)

    def at(self, buffer: ir.Buffer, number: int, threads: Array, site: Site, block: int) -> Phase | None:
        """A barrier of a block as some threads find it; None, with a finding, where they cannot know that it has begun."""
        found = self._all.get((block, buffer.name, number))
        self.check_running(block, threads, site)
        if found is None:
            self._memory.report_threads("uninitialised-read", threads, site, f"{buffer.name}[{number}] has no phase yet")
        elif (late := threads[self.clocks.knows[threads, found.maker] < found.initialised]).size:
            text = f"{buffer.name}[{number}] was given its first phase with no barrier between"
            self._memory.report_threads("data-race", late, site, text)
        return found

    def check_running(self, block: int, threads: Array, site: Site) -> None:
        """Reports what is done in the memory of a block that has ended."""
        if not self.running[block]:
            self._memory.report_threads("block-has-ended", threads[:1], site, f"block {block} of its cluster has ended before")

    def gather(self, threads: Array) -> int:
        """Threads come to where all of a cluster meet; the number of the meeting."""
        number = self.meetings
        self._brought = np.maximum(self._brought, self.clocks.told(threads))
        self._come += threads.size
        if self._come == self._memory.batch.threads:
            self.meetings, self._come, self.met = number + 1, 0, self._brought
        return number

    def arrive(self, phase: Phase, groups: Array, bytes: int) -> None:
        """One arrival by each row of threads, each of which announces bytes."""
        for threads in groups:
            phase.bytes += bytes
            phase.count(1, 0, self.clocks.told(threads))

    def learn(self, phase: Phase, threads: Array) -> None:
        """Threads have awaited a phase: they know what its arrivals and copies knew."""
        if phase.ended is not None:
            self.clocks.learn(threads, phase.ended)

    def send(
        self, target: Part, source: Part, values: Callable[[], Array], marks: Marks | None, phase: Phase, block: int
    ) -> None:
        """A copy to the memory of a block begins, told by one thread; it lands later."""
        self._memory.observe_read(source.buffer, source.touch, source.site, counted=False)
        told = self.clocks.begun(int(target.touch.thread[0]))
        incoming, _ = self._memory.storage[target.buffer.name].shadow.expect_copies()
        granules = self._memory.storage[target.buffer.name].granules(target.touch.address)
        if (early := np.flatnonzero((incoming[granules] > 0).any(axis=1))).size:
            text = "is still being copied to: no wait has passed"
            self._memory.report("write-before-wait", target.buffer, target.touch, early, target.site, text)
        incoming[granules] = 1
        self.flights.append(Flight(target, source, values, marks, phase, told, block))

    def land(self, flight: Flight) -> None:
        """A copy writes what it brings, and its bytes count at its barrier."""
        self.flights.remove(flight)
        target, thread = flight.target, int(flight.target.touch.thread[0])
        self.check_running(flight.block, flight.target.touch.thread, target.site)
        storage = self._memory.storage[target.buffer.name]
        incoming, _ = storage.shadow.expect_copies()
        incoming[storage.granules(target.touch.address)] = 0
        known = self.clocks.done(thread, flight.told)
        self._memory.observe_write(target.buffer, target.touch, target.site, counted=False, later=True)
        storage.data[target.touch.address] = flight.values()
        storage.set_written(target.touch.address)
        self._memory.set_undefined(target.buffer, target.touch, flight.marks, target.site)
        flight.phase.count(0, target.touch.element.size * target.buffer.dtype.bytes, known)


def run_beside(
    roles: list[tuple[Iterator[Ready], Callable[[], None]]], phases: Phases, choose: Callable[[int], int], late: bool
) -> None:
    """Runs generators, each of which gives, wherever another one may go on, whether it can itself, until they end.

    roles: with what reports that one of them can never go on. choose: one of so many that can. late: copies land only when no role
    can go on.
    """
    waiting: dict[int, Ready] = dict.fromkeys(range(len(roles)), lambda: True)
    while waiting:
        ready = [role for role, can in waiting.items() if can()]
        landing = len(phases.flights) if not late or not ready else 0
        if not ready and not landing:
            for role in waiting:
                roles[role][1]()
            return
        chosen = choose(len(ready) + landing)
        if chosen >= len(ready):
            phases.land(phases.flights[chosen - len(ready)])
            continue
        role = ready[chosen]
        following = next(roles[role][0], None)
        if following is None:
            del waiting[role]
        else:
            waiting[role] = following
