"""Race detection with vector clocks, for blocks whose roles run concurrently.

Between roles no barrier orders everything, so the order of two accesses follows from what threads know of each other. A thread
that arrives at a phase barrier publishes its clock, and a thread that waits for the phase joins it. Each thread's asynchronous
operations have an agent of their own, which starts with the thread's clock at the issue; other threads learn of its end only
through the barrier that it signals. `ClockedRaces` replaces `shadow_memory.Races` in such kernels.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from tilelang.lowering.simulator.shadow_memory import Access, Array, Conflict


class Clocks:
    """The clocks of one block. Agents are its threads 0 .. threads-1, then in the same order each thread's asynchronous operations.

    knows[a, b]: the latest step of agent b that agent a knows of; an agent's own entry is its current step.
    """

    def __init__(self, threads: int) -> None:
        self.threads, self.agents = threads, 2 * threads
        self.knows = np.eye(self.agents, dtype=np.int32)

    def meet(self, threads: Array) -> None:
        """A barrier of these threads: each learns all that the others did before."""
        self.knows[threads] = self.knows[threads].max(axis=0)
        self.knows[threads, threads] += 1

    def told(self, threads: Array) -> Array:
        """The joined clocks of these threads, which then begin a new step."""
        known: Array = self.knows[threads].max(axis=0)
        self.knows[threads, threads] += 1
        return known

    def learn(self, threads: Array, known: Array) -> None:
        self.knows[threads] = np.maximum(self.knows[threads], known)

    def begun(self, thread: int) -> Array:
        """The clock with which an asynchronous operation of the thread starts; the thread begins a new step."""
        known: Array = self.knows[thread].copy()
        self.knows[thread, thread] += 1
        return known

    def done(self, thread: int, known: Array) -> Array:
        """An asynchronous operation, issued with clock `known`, takes effect now; returns the clock that its completion publishes."""
        agent = self.threads + thread
        step = self.knows[agent, agent] + 1
        self.knows[agent] = known
        self.knows[agent, agent] = step
        ended: Array = self.knows[agent].copy()
        return ended


class ClockedRaces:
    """For each granule, the last writer, and the last reader of every warp of agents since. `clocks` are those of the running block.

    Agents are numbered across all blocks of the launch; those of different blocks know nothing of each other.
    """

    def __init__(self, granules: int, clocks: Clocks, warp: int) -> None:
        self.clocks, self._warp = clocks, max(1, warp)
        groups = -(-clocks.agents // self._warp)
        self._writer = np.full(granules, -1, np.int64)
        self._write_step, self._write_site = np.zeros((2, granules), np.int32)
        self._reader = np.full((granules, groups), -1, np.int64)
        self._read_step, self._read_site = np.zeros((2, granules, groups), np.int32)

    def _unknown(self, other: Array, step: npt.NDArray[np.int32], access: Access) -> Array:
        """Whether an earlier access by `other` is unknown to the thread that makes this one."""
        unknown: Array = (other >= 0) & (other != access.thread.reshape((-1,) + (1,) * (other.ndim - 1)))
        where = unknown.nonzero()
        if where[0].size:
            earlier, thread, agents = other[where], access.thread[where[0]], self.clocks.agents
            late = self.clocks.knows[thread % agents, earlier % agents] < step[where]
            unknown[where] = late | (earlier // agents != thread // agents)
        return unknown

    def read(self, access: Access) -> Conflict | None:
        """Records reads; returns conflicts with earlier writes."""
        granule = access.granule
        writer = self._writer[granule]
        bad = self._unknown(writer, self._write_step[granule], access)
        group = access.thread % self.clocks.agents // self._warp
        self._reader[granule, group], self._read_step[granule, group] = access.thread, access.epoch
        self._read_site[granule, group] = access.site
        at = np.flatnonzero(bad)
        return Conflict(at, writer[at], self._write_site[granule[at]], np.ones(at.size, bool)) if at.size else None

    def write(self, access: Access) -> Conflict | None:
        """Records writes; returns conflicts with earlier writes and reads, and between two threads of this access."""
        granule = access.granule
        writer, readers = self._writer[granule], self._reader[granule]
        wrote = self._unknown(writer, self._write_step[granule], access)
        read = self._unknown(readers, self._read_step[granule], access)
        sites, read_sites = self._write_site[granule], self._read_site[granule]
        self._writer[granule], self._write_step[granule] = access.thread, access.epoch
        self._write_site[granule] = access.site
        self._reader[granule] = -1
        last = self._writer[granule]
        bad = wrote | read.any(axis=1) | (last != access.thread)
        if not bad.any():
            return None
        at = np.flatnonzero(bad)
        row, group = np.arange(at.size), read[at].argmax(axis=1)
        by_reader = read[at].any(axis=1) & ~wrote[at]
        other = np.where(wrote[at], writer[at], np.where(by_reader, readers[at][row, group], last[at]))
        site = np.where(wrote[at], sites[at], np.where(by_reader, read_sites[at][row, group], access.site))
        return Conflict(at, other, site, ~by_reader)
