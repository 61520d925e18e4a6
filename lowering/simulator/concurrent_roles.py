"""Runs the roles of a block concurrently. A role yields when it waits for a barrier phase or has arrived at one.

Each role is a generator over its statements. The scheduler picks the next role that can run and decides when a copy that signals
a barrier completes, as for asynchronous copies: roles in order and copies immediately ("early"), roles in reverse order and
copies only when nothing else can run ("late"), or both at random. Races that no single order of events exposes are found by the
vector clocks of `vector_clocks`. If a role has not ended and nothing can run, the block is deadlocked.
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
    """One barrier: the parity of its current phase, the arrivals and bytes still missing, and the clocks of those that have arrived."""

    arrivals: int
    maker: int  # the thread that initialised it; `initialised` is its step at that time
    initialised: int
    known: Array
    parity: int = 0
    missing: int = 0
    bytes: int = 0
    ended: Array | None = None  # the joined clocks of the last phase at its end

    def count(self, arrivals: int, bytes: int, known: Array) -> None:
        """Counts arrivals and bytes; when none are missing, the phase ends."""
        self.missing -= arrivals
        self.bytes -= bytes
        self.known = np.maximum(self.known, known)
        if self.missing == 0 and self.bytes == 0:
            self.parity, self.missing = 1 - self.parity, self.arrivals
            self.ended, self.known = self.known, np.zeros_like(self.known)


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Flight:
    """A copy in progress that will signal a barrier. told: the issuing thread's clock at the issue."""

    target: Part
    source: Part
    values: Callable[[], Array]
    marks: Marks | None
    phase: Phase
    told: Array
    block: int  # the block that receives the data


class Phases:
    """The phase barriers of a block and the copies that signal them."""

    def __init__(self, memory: Memory) -> None:
        clocks = memory.batch.clocks
        assert clocks is not None, "a kernel without roles has no barriers with phases"
        self._memory, self.clocks = memory, clocks
        self._all: dict[tuple[int, str, int], Phase] = {}
        self.flights: list[Flight] = []
        self.running = dict.fromkeys(range(memory.batch.blocks), 0)  # roles of each block that have not ended
        # cluster barriers, across all blocks of a cluster
        self.meetings, self._come, self._brought = 0, 0, np.zeros(self.clocks.agents, np.int32)
        self.met = self._brought

    def initialise(self, stmt: ir.InitPhases, thread: int) -> None:
        step, block = int(self.clocks.knows[thread, thread]), int(self._memory.batch.local_block[thread])
        for number in range(stmt.phases.elements):
            nothing = np.zeros(self.clocks.agents, np.int32)
            self._all[block, stmt.phases.name, number] = Phase(stmt.arrivals, thread, step, nothing, missing=stmt.arrivals)

    def at(self, buffer: ir.Buffer, number: int, threads: Array, site: Site, block: int) -> Phase | None:
        """The barrier that some threads use. Reports a finding, and returns None if it was never initialised."""
        found = self._all.get((block, buffer.name, number))
        self.check_running(block, threads, site)
        if found is None:
            self._memory.report_threads("uninitialised-read", threads, site, f"{buffer.name}[{number}] has no phase yet")
        elif (late := threads[self.clocks.knows[threads, found.maker] < found.initialised]).size:
            text = f"{buffer.name}[{number}] was given its first phase with no barrier between"
            self._memory.report_threads("data-race", late, site, text)
        return found

    def check_running(self, block: int, threads: Array, site: Site) -> None:
        """Reports an access to the memory of a block that has ended."""
        if not self.running[block]:
            self._memory.report_threads("block-has-ended", threads[:1], site, f"block {block} of its cluster has ended before")

    def gather(self, threads: Array) -> int:
        """Threads arrive at a cluster barrier; returns the number of that barrier."""
        number = self.meetings
        self._brought = np.maximum(self._brought, self.clocks.told(threads))
        self._come += threads.size
        if self._come == self._memory.batch.threads:
            self.meetings, self._come, self.met = number + 1, 0, self._brought
        return number

    def arrive(self, phase: Phase, groups: Array, bytes: int) -> None:
        """One arrival per row of threads, each announcing `bytes` to come."""
        for threads in groups:
            phase.bytes += bytes
            phase.count(1, 0, self.clocks.told(threads))

    def learn(self, phase: Phase, threads: Array) -> None:
        """Threads have waited for a phase: their clocks join those of its arrivals and copies."""
        if phase.ended is not None:
            self.clocks.learn(threads, phase.ended)

    def send(
        self, target: Part, source: Part, values: Callable[[], Array], marks: Marks | None, phase: Phase, block: int
    ) -> None:
        """One thread issues a copy to the memory of a block; it completes later."""
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
        """A copy writes its data and counts its bytes at its barrier."""
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
    """Runs generators to their end. A generator yields wherever another may run; it yields a function that tells whether it can
    continue.

    roles: each with a function that reports that it can never continue. choose: picks one of the n roles that can continue. late:
    copies complete only when no role can continue.
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
