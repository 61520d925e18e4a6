"""Asynchronous copies that have been issued and not yet awaited, as the simulator keeps them.

A copy may land at any moment between its issue and its wait. `early` ones land at once, `late` ones at the wait, reading their
source only then; both mark their target as incoming and their source as outgoing, so that whoever touches either too soon is
reported whatever the values are. For races a copy counts as an access at its issue and again at its wait.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import numpy.typing as npt

from tilelang.lowering import ir
from tilelang.lowering.findings import Site
from tilelang.lowering.memory_model import Mask, Memory, Touch

Array = npt.NDArray[Any]


@dataclasses.dataclass(slots=True)
class _Flight:
    """Copies of one statement. `source_address` has, for each element of `target`, where it comes from; -1: it becomes zero."""

    copy: ir.Copy
    target: Touch
    source: Touch
    source_address: Array
    group: Array  # per element of target: the group of its thread that it belongs to
    source_group: Array
    landed: bool
    sites: tuple[Site, Site]


class CopyQueue:
    """The copies under way of the threads of one batch."""

    def __init__(self, memory: Memory) -> None:
        self._memory = memory
        self._closed = np.zeros(memory.batch.threads, np.int64)  # groups closed so far, per thread
        self._flights: list[_Flight] = []

    def issue(self, copy: ir.Copy, target: Touch, source: Touch, *, early: bool, sites: tuple[Site, Site]) -> None:
        """Starts a copy of the elements of `source` to those of `target` with the same thread and lane.

        `sites` are those of the writing and of the reading.
        """
        memory = self._memory
        memory.observe_read(copy.source, source, sites[1])
        memory.observe_write(copy.target, target, sites[0])
        dense = np.full((memory.batch.threads, copy.lanes), -1, np.int64)
        dense[source.thread, source.lane] = source.address
        groups = self._closed[target.thread], self._closed[source.thread]
        flight = _Flight(copy, target, source, dense[target.thread, target.lane], *groups, early, sites)
        if early:
            self._land(flight, np.ones(target.address.size, bool))
        into, out_of = memory.storage[copy.target.name], memory.storage[copy.source.name]
        incoming, _ = into.shadow.expect_copies()
        _, outgoing = out_of.shadow.expect_copies()
        incoming[into.granules(target.address)] = 1
        np.add.at(outgoing, out_of.granules(source.address), 1)
        self._flights.append(flight)

    def _land(self, flight: _Flight, which: Array) -> None:
        """Moves the values of the chosen elements."""
        into, out_of = self._memory.storage[flight.copy.target.name], self._memory.storage[flight.copy.source.name]
        addresses = flight.source_address[which]
        values = np.zeros(addresses.shape, into.data.dtype)
        values[addresses >= 0] = out_of.data[addresses[addresses >= 0]]
        into.data[flight.target.address[which]] = values

    def commit(self, mask: Mask) -> None:
        """Closes the current group of the active threads."""
        self._closed[mask.threads] += 1

    def wait(self, pending: int, mask: Mask) -> None:
        """The active threads wait until at most `pending` of their latest closed groups are unfinished."""
        finished = np.where(mask.flags, self._closed - pending, 0)
        left = []
        for flight in self._flights:
            rest = self._complete(flight, finished)
            if rest is not None:
                left.append(rest)
        self._flights = left

    def _complete(self, flight: _Flight, finished: Array) -> _Flight | None:
        """Ends the copies whose group is finished; what remains of the flight."""
        memory, copy = self._memory, flight.copy
        done = flight.group < finished[flight.target.thread]
        source_done = flight.source_group < finished[flight.source.thread]
        if not done.any() and not source_done.any():
            return flight
        if not flight.landed:
            self._land(flight, done)
        into, out_of = memory.storage[copy.target.name], memory.storage[copy.source.name]
        target, source = _part(flight.target, done), _part(flight.source, source_done)
        incoming, _ = into.shadow.expect_copies()
        _, outgoing = out_of.shadow.expect_copies()
        incoming[into.granules(target.address)] = 0
        np.subtract.at(outgoing, out_of.granules(source.address), 1)
        into.set_written(target.address)
        memory.observe(copy.target, target, flight.sites[0], writes=True)
        memory.observe(copy.source, source, flight.sites[1], writes=False)
        if done.all() and source_done.all():
            return None
        return dataclasses.replace(
            flight,
            target=_part(flight.target, ~done),
            source=_part(flight.source, ~source_done),
            source_address=flight.source_address[~done],
            group=flight.group[~done],
            source_group=flight.source_group[~source_done],
        )

    def finish(self) -> None:
        """The kernel ends: reports the copies that nobody waited for."""
        for flight in self._flights:
            threads = np.unique(flight.target.thread)
            self._memory.report_threads(
                "copy-never-awaited", threads, flight.sites[0], "the kernel ends before a wait for this copy"
            )


def _part(touch: Touch, which: Array) -> Touch:
    return Touch(touch.thread[which], touch.lane[which], touch.element[which], touch.address[which], False)
