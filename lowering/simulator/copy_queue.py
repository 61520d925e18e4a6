"""The simulator's queue of asynchronous copies that have been issued but not yet waited for.

A copy may complete at any moment between its issue and its wait. An `early` copy completes at once; a `late` one completes at the wait
and reads its source only then. Both mark the target as incoming and the source as outgoing in between, so that touching either too soon
is reported whatever the values are. The race detector sees a copy twice: as an access at the issue and at the wait.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from tilelang.lowering import ir
from tilelang.lowering.simulator.batch import Mask, Touch
from tilelang.lowering.simulator.definedness import Marks
from tilelang.lowering.simulator.findings import Site
from tilelang.lowering.simulator.memory_model import Memory

Array = npt.NDArray[Any]


@dataclasses.dataclass(frozen=True, slots=True)
class Part:
    """One side of a copy: the elements of one buffer and the access. by_proxy: the access goes through a proxy."""

    buffer: ir.Buffer
    touch: Touch
    site: Site
    by_proxy: bool = False

    def chosen(self, which: Array) -> Part:
        """A subset of the elements."""
        t = self.touch
        touch = Touch(t.thread[which], t.lane[which], t.element[which], t.address[which], False)
        return dataclasses.replace(self, touch=touch)


@dataclasses.dataclass(frozen=True, slots=True)
class _Flight:
    """Copies of one statement. `values()` computes the target's new elements from the memory at the time of the call."""

    target: Part
    source: Part
    values: Callable[[], Array]
    target_group: Array  # per element: the commit group of its thread that the copy belongs to
    source_group: Array
    landed: bool
    marks: Marks | None = None  # per element of the target; None if all are defined


class CopyQueue:
    """The pending copies of a batch's threads, or their asynchronous instructions of one family. `early()`: complete the next at
    once?"""

    def __init__(self, memory: Memory, early: Callable[[], bool]) -> None:
        self._memory, self._early = memory, early
        self._closed = np.zeros(memory.batch.threads, np.int64)  # groups closed so far, per thread
        self._flights: list[_Flight] = []

    def copy(self, target: Part, source: Part, lanes: int) -> None:
        """Starts a copy from `source` to `target`, matched by thread and lane; targets without a source become zero."""
        places = np.full((self._memory.batch.threads, lanes), -1, np.int64)
        places[source.touch.thread, source.touch.lane] = source.touch.address
        addresses = places[target.touch.thread, target.touch.lane]
        data = self._memory.storage[source.buffer.name].data
        marks = self._memory.undefined(source.buffer, source.touch, source.site)
        if marks is not None:
            brought = np.zeros(places.shape, np.int64)
            brought[source.touch.thread, source.touch.lane] = marks
            marks = brought[target.touch.thread, target.touch.lane]

        def values() -> Array:
            found = np.zeros(addresses.shape, data.dtype)
            found[addresses >= 0] = data[addresses[addresses >= 0]]
            return found

        self.issue(target, source, values, marks)

    def issue(self, target: Part, source: Part, values: Callable[[], Array], marks: Marks | None, counted: bool = True) -> None:
        """Starts a move whose `values` are computed from `source`: one value and one mark per element of `target`."""
        memory = self._memory
        memory.observe_read(source.buffer, source.touch, source.site, counted)
        memory.observe_write(target.buffer, target.touch, target.site, counted)
        early = self._early()
        if early:
            memory.storage[target.buffer.name].data[target.touch.address] = values()
        self._fly(target, source, values, early, marks)

    def hold(self, target: Part, sources: Sequence[Part], values: Array, marks: Marks | None) -> None:
        """Records an instruction that has computed `values`: until the wait, its target must not be touched nor its sources written."""
        into = self._memory.storage[target.buffer.name]
        into.data[target.touch.address] = values.astype(into.data.dtype)
        into.set_written(target.touch.address)
        into.date(target.touch.address, target.touch.thread)
        self._memory.set_undefined(target.buffer, target.touch, marks, target.site)
        for source in sources:
            self._fly(target, source, lambda: values, True, marks)

    def _fly(self, target: Part, source: Part, values: Callable[[], Array], early: bool, marks: Marks | None) -> None:
        memory = self._memory
        if not target.touch.element.size and not source.touch.element.size:
            return  # a TMA tile that is entirely outside its tensor
        groups = self._closed[target.touch.thread], self._closed[source.touch.thread]
        into, out_of = memory.storage[target.buffer.name], memory.storage[source.buffer.name]
        incoming, _ = into.shadow.expect_copies()
        _, outgoing = out_of.shadow.expect_copies()
        incoming[into.granules(target.touch.address)] = 1
        np.add.at(outgoing, out_of.granules(source.touch.address), 1)
        self._flights.append(_Flight(target, source, values, *groups, early, marks))

    def commit(self, mask: Mask) -> None:
        """Closes the current commit group of the active threads."""
        self._closed[mask.threads] += 1

    def wait(self, pending: int, mask: Mask) -> None:
        """The active threads wait until at most `pending` of their latest closed groups are unfinished."""
        finished = np.where(mask.flags, self._closed - pending, 0)
        rests = [self._complete(flight, finished) for flight in self._flights]
        self._flights = [rest for rest in rests if rest is not None]

    def _complete(self, flight: _Flight, finished: Array) -> _Flight | None:
        """Completes the copies whose group is finished; returns the rest, or None."""
        memory = self._memory
        done = flight.target_group < finished[flight.target.touch.thread]
        source_done = flight.source_group < finished[flight.source.touch.thread]
        if not done.any() and not source_done.any():
            return flight
        target, source = flight.target.chosen(done), flight.source.chosen(source_done)
        into, out_of = memory.storage[target.buffer.name], memory.storage[source.buffer.name]
        values = flight.values() if not flight.landed else None
        if values is not None:
            into.data[target.touch.address] = values[done]
        incoming, _ = into.shadow.expect_copies()
        _, outgoing = out_of.shadow.expect_copies()
        incoming[into.granules(target.touch.address)] = 0
        np.subtract.at(outgoing, out_of.granules(source.touch.address), 1)
        into.set_written(target.touch.address, None if target.by_proxy else target.touch.thread)
        if flight.marks is not None:
            memory.set_undefined(target.buffer, target.touch, flight.marks[done], target.site)
        memory.observe(target.buffer, target.touch, target.site, writes=True)
        memory.observe(source.buffer, source.touch, source.site, writes=False)
        if done.all() and source_done.all():
            return None
        left = np.flatnonzero(~done)
        return _Flight(
            flight.target.chosen(~done),
            flight.source.chosen(~source_done),
            lambda: flight.values()[left],
            flight.target_group[~done],
            flight.source_group[~source_done],
            flight.landed,
            None if flight.marks is None else flight.marks[left],
        )

    def finish(self) -> None:
        """The kernel ends: reports copies that were never waited for."""
        for flight in self._flights:
            threads = np.unique(flight.target.touch.thread)
            text = "the kernel ends before a wait for this copy"
            self._memory.report_threads("copy-never-awaited", threads, flight.target.site, text)
