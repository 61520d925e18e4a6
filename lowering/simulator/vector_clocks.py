"""Who knows what has happened: vector clocks of the threads of a block whose roles run beside each other.

Between roles no barrier orders everything, so whether one access comes after another follows from what the threads know: a thread that
arrives at a barrier with phases hands on what it knows, and who awaits the phase knows it from then on. What a thread lets the device
do later is an agent of its own, which knows what the thread knew when it began; nobody knows of its end but through the barrier that
it signals. `ClockedRaces` stands in for `shadow_memory.Races` in such kernels.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from tilelang.lowering.simulator.shadow_memory import Access, Array, Conflict


class Clocks:
    """The agents of one block: threads 0 .. threads-1, then, in the same order, what each of them lets the device do.

    knows[a, b]: up to which of its steps agent a knows agent b; an agent's own entry is the step that it is at.
    """

    def __init__(self, threads: int) -> None:
        self.threads, self.agents = threads, 2 * threads
        self.knows = np.eye(self.agents, dtype=np.int32)

    def meet(self, threads: Array) -> None:
        """A barrier of these threads: each knows what all of them did before."""
        self.knows[threads] = self.knows[threads].max(axis=0)
        self.knows[threads, threads] += 1

    def told(self, threads: Array) -> Array:
        """What these threads know together; what they do from here on is not part of it."""
        known: Array = self.knows[threads].max(axis=0)
        self.knows[threads, threads] += 1
        return known

    def learn(self, threads: Array, known: Array) -> None:
        self.knows[threads] = np.maximum(self.knows[threads], known)

    def begun(self, thread: int) -> Array:
        """What the device knows of what it is told to do by a thread now."""
        known: Array = self.knows[thread].copy()
        self.knows[thread, thread] += 1
        return known

    def done(self, thread: int, known: Array) -> Array:
        """The device does now what a thread told it, knowing what it knew then; what whoever is told of its end knows."""
        agent = self.threads + thread
        step = self.knows[agent, agent] + 1
        self.knows[agent] = known
        self.knows[agent, agent] = step
        ended: Array = self.knows[agent].copy()
        return ended


class ClockedRaces:
    """The last writer of each granule, and of every warp of agents the last reader since. `clocks` are those of the running block.

    Agents are numbered through all blocks of the launch; those of different blocks know nothing of each other.
    """

    def __init__(self, granules: int, clocks: Clocks, warp: int) -> None:
        self.clocks, self._warp = clocks, max(1, warp)
        groups = -(-clocks.agents // self._warp)
        self._writer = np.full(granules, -1, np.int64)
        self._write_step, self._write_site = np.zeros((2, granules), np.int32)
        self._reader = np.full((granules, groups), -1, np.int64)
        self._read_step, self._read_site = np.zeros((2, granules, groups), np.int32)

    def _unknown(self, other: Array, step: npt.NDArray[np.int32], access: Access) -> Array:
        """Whether an earlier access by `other` is not known to who makes this one."""
        shape = (-1,) + (1,) * (other.ndim - 1)
        agents = self.clocks.agents
        mine = (access.thread % agents).reshape(shape)
        elsewhere = other // agents != (access.thread // agents).reshape(shape)
        others = (other >= 0) & (other != access.thread.reshape(shape))
        unknown: Array = others & (elsewhere | (self.clocks.knows[mine, other % agents] < step))
        return unknown

    def read(self, access: Access) -> Conflict | None:
        """Records reads; the conflicts with earlier writes."""
        granule = access.granule
        writer = self._writer[granule]
        bad = self._unknown(writer, self._write_step[granule], access)
        group = access.thread % self.clocks.agents // self._warp
        self._reader[granule, group], self._read_step[granule, group] = access.thread, access.epoch
        self._read_site[granule, group] = access.site
        at = np.flatnonzero(bad)
        return Conflict(at, writer[at], self._write_site[granule[at]], np.ones(at.size, bool)) if at.size else None

    def write(self, access: Access) -> Conflict | None:
        """Records writes; the conflicts with earlier writes and reads, and of two threads within this access."""
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
