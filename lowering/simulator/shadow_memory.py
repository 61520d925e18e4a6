"""Shadow memory: for every element, its last writer, its readers, and pending asynchronous accesses.

A shadow covers one address space (a global buffer, the shared memory of the blocks that run together, one register buffer) in
granules. Two accesses of one granule race if different threads make them, one is a write, and no barrier of their block that
orders this memory separates them. Threads of different blocks are never ordered. Each block counts its barriers (its epoch), and
an access records the epoch in which it was made, so that no barrier visits the shadow.
"""

from __future__ import annotations

import dataclasses
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
UNDEFINED = -1


class Access(NamedTuple):
    """One access of many threads to many granules, elementwise. `thread` is numbered across all blocks of the launch."""

    granule: Array
    thread: Array
    epoch: Array
    site: int


@dataclasses.dataclass(frozen=True, slots=True)
class Conflict:
    """The elements of an access that race, each with the other thread, that thread's site, and whether it wrote."""

    position: Array
    other: Array
    other_site: Array
    other_wrote: Array


class Races:
    """The last writer of each granule, and enough readers to detect a race with any later writer.

    Kept readers: two different threads of the block and epoch that read last, and one reader of another block.
    """

    def __init__(self, granules: int, threads_per_block: int) -> None:
        self._threads = threads_per_block
        self._writer = np.full(granules, -1, np.int64)
        self._write_epoch = np.zeros(granules, np.int32)
        self._write_site = np.zeros(granules, np.int32)
        self._reader = np.full(granules, -1, np.int64)
        self._second = np.full(granules, -1, np.int64)
        self._foreign = np.full(granules, -1, np.int64)
        self._read_epoch = np.zeros(granules, np.int32)
        self._read_site = np.zeros(granules, np.int32)

    def _unordered(self, other: Array, other_epoch: Array, access: Access, block: Array) -> Array:
        """Whether the earlier access by `other` is by another thread and not separated by a barrier."""
        unordered: Array = (
            (other >= 0) & (other != access.thread) & ((other // self._threads != block) | (other_epoch == access.epoch))
        )
        return unordered

    def read(self, access: Access) -> Conflict | None:
        """Records reads; returns conflicts with earlier writes."""
        granule, thread = access.granule, access.thread
        block = thread // self._threads
        writer = self._writer[granule]
        bad = self._unordered(writer, self._write_epoch[granule], access, block)
        conflict = None
        if bad.any():
            at = np.flatnonzero(bad)
            conflict = Conflict(at, writer[at], self._write_site[granule[at]], np.ones(at.size, bool))
        reader = self._reader[granule]
        foreign = (reader >= 0) & (reader // self._threads != block)
        stale = (reader < 0) | foreign | (self._read_epoch[granule] != access.epoch)
        self._foreign[granule[foreign]] = reader[foreign]
        fresh = granule[stale]
        self._reader[fresh] = thread[stale]
        self._second[fresh] = -1
        self._read_epoch[fresh] = access.epoch[stale]
        self._read_site[granule] = access.site
        now = self._reader[granule]
        differs = now != thread
        if differs.any():
            same_block = differs & (now // self._threads == block)
            self._second[granule[same_block]] = thread[same_block]
            elsewhere = differs & ~same_block
            self._foreign[granule[elsewhere]] = thread[elsewhere]
        return conflict

    def write(self, access: Access) -> Conflict | None:
        """Records writes; returns conflicts with earlier writes and reads, and between two threads of this access."""
        granule, thread = access.granule, access.thread
        block = thread // self._threads
        writer, reader = self._writer[granule], self._reader[granule]
        second, foreign = self._second[granule], self._foreign[granule]
        read_epoch = self._read_epoch[granule]
        wrote = self._unordered(writer, self._write_epoch[granule], access, block)
        read_first = self._unordered(reader, read_epoch, access, block)
        read_second = self._unordered(second, read_epoch, access, block)
        read_foreign = (foreign >= 0) & (foreign // self._threads != block)
        old_sites = self._write_site[granule]
        self._writer[granule] = thread
        self._write_epoch[granule] = access.epoch
        self._write_site[granule] = access.site
        last = self._writer[granule]
        twice = last != thread
        bad = wrote | read_first | read_second | read_foreign | twice
        if not bad.any():
            return None
        at = np.flatnonzero(bad)
        by_writer, by_reader = wrote[at], read_first[at] | read_second[at] | read_foreign[at]
        readers = np.where(read_first, reader, np.where(read_second, second, foreign))[at]
        other = np.where(by_writer, writer[at], np.where(by_reader, readers, last[at]))
        reads = by_reader & ~by_writer
        sites = np.where(by_writer, old_sites[at], np.where(reads, self._read_site[granule[at]], access.site))
        return Conflict(at, other, sites, ~reads)


class WatchesRaces(Protocol):
    """Records accesses and returns those that race with earlier ones."""

    def read(self, access: Access) -> Conflict | None: ...

    def write(self, access: Access) -> Conflict | None: ...


class Shadow:
    """One address space.

    owner: per granule, the number of the buffer that last wrote it; 0 if never written; UNDEFINED if undefined data was written,
    whose mark is in `origins`.
    incoming: 1 + the number of the asynchronous copy that will write a granule. outgoing: how many copies may still read it. Both
    exist only once copies are used.
    complete: everything is written, and nothing changes that.
    unpublished: for kernels with proxies, 1 + the thread that last wrote a granule and has not executed a fence since.
    """

    def __init__(self, granules: int, threads_per_block: int, *, tracks_races: bool) -> None:
        self.granules = granules
        self.owner = np.zeros(granules, np.int32)
        self.complete = False
        self.losses = 0  # how often elements have become undefined, but not a whole buffer
        self.numbers = 1 << 16  # the last number given to a forgotten buffer; declared buffers have smaller ones
        self.races: WatchesRaces | None = Races(granules, threads_per_block) if tracks_races else None
        self.origins: Array | None = None
        self.incoming: Array | None = None
        self.outgoing: Array | None = None
        self.unpublished: Array | None = None

    def expect_copies(self) -> tuple[Array, Array]:
        """Allocates `incoming` and `outgoing`."""
        if self.incoming is None or self.outgoing is None:
            self.incoming = np.zeros(self.granules, np.int32)
            self.outgoing = np.zeros(self.granules, np.int32)
        return self.incoming, self.outgoing

    def awaits(self, place: slice) -> bool:
        """Whether an asynchronous copy or instruction may still write or read any of some granules."""
        return (
            self.incoming is not None and self.outgoing is not None and bool((self.incoming[place] | self.outgoing[place]).any())
        )


class Storage:
    """The elements of one buffer as the threads that run together see them.

    Element e of thread t is `data[base[t] + e * step]`; it covers `per_element` granules of the shadow, which are numbered like
    `data`. A write through this buffer sets the shadow's owner to `number`. An element of a circular buffer becomes undefined
    after `slots` iterations.
    """

    def __init__(
        self, data: Array, base: Array, step: int, shadow: Shadow, *, number: int = 1, per_element: int = 1, slots: int = 0
    ) -> None:
        self.data, self.base, self.step, self.shadow = data, base, step, shadow
        self.number, self.per_element, self.slots = number, per_element, slots
        self._is_flat = step == 1 and not base.any()  # elements are their addresses
        self._rounds = np.zeros(base.size if slots else 0, np.int32)  # iterations begun, per thread
        self._made = np.zeros(data.size if slots else 0, np.int32)  # the iteration in which each element was written

    @property
    def is_plain(self) -> bool:
        """Whether an access by the only thread of a launch can only be wrong by reading what was never written."""
        shadow = self.shadow
        pending = shadow.incoming is not None or shadow.outgoing is not None or shadow.unpublished is not None
        return self.per_element == 1 and not self.slots and shadow.races is None and not pending

    def addresses(self, threads: Array | slice, elements: Array) -> Array:
        """The positions in `data` of one element for each thread."""
        if self._is_flat:
            return elements
        addresses: Array = self.base[threads] + (elements if self.step == 1 else elements * self.step)
        return addresses

    def granules(self, addresses: Array) -> Array:
        """(elements, per_element)"""
        if self.per_element == 1:
            return addresses[:, None]
        return (addresses * self.per_element)[:, None] + np.arange(self.per_element)

    def forget(self) -> None:
        """Makes all contents undefined by changing the buffer's number."""
        self.shadow.numbers += 1
        self.number = self.shadow.numbers

    def lose(self, addresses: Array) -> None:
        """Makes some of the contents undefined."""
        self.shadow.owner[self.granules(addresses)] = 0
        self.shadow.losses += 1

    def turn(self, threads: Array) -> None:
        """The readers of a circular buffer begin another iteration. threads: flags."""
        self._rounds[threads] += 1

    def date(self, addresses: Array, threads: Array) -> None:
        """Records that these elements are written now, or by copies issued now."""
        if self.slots:
            self._made[addresses] = self._rounds[threads]

    def unwritten(self, addresses: Array, threads: Array) -> Array | None:
        """The elements that, for the reading thread, hold nothing written by this buffer; None if all were written."""
        if self.shadow.complete:
            return None
        written = self.shadow.owner[addresses] == self.number if self.per_element == 1 else None
        if written is None:
            written = (self.shadow.owner[self.granules(addresses)] == self.number).all(axis=1)
        if self.slots:
            written = written & (self._rounds[threads] - self._made[addresses] <= self.slots)
        return None if written.all() else np.flatnonzero(~written)

    def marks(self, addresses: Array, fresh: Array) -> Array:
        """The marks of undefined elements: that of the undefined data written there, if any, else one of `fresh`."""
        if self.shadow.origins is None:
            return fresh
        granules = self.granules(addresses)
        found: Array = np.where(self.shadow.owner[granules] == UNDEFINED, self.shadow.origins[granules], 0).max(axis=1)
        return np.where(found, found, fresh)

    def set_undefined(self, addresses: Array, marks: Array) -> None:
        """Marks written elements as undefined where a mark is set."""
        if self.shadow.origins is None:
            self.shadow.origins = np.zeros(self.shadow.granules, np.int64)
        granules = self.granules(addresses[marks > 0])
        self.shadow.losses += 1
        self.shadow.owner[granules] = UNDEFINED
        self.shadow.origins[granules] = marks[marks > 0, None]

    def set_written(self, addresses: Array, threads: Array | None = None) -> None:
        """Records that these elements have been written, by `threads` or (None) through a proxy."""
        granules = addresses if self.per_element == 1 else self.granules(addresses).reshape(-1)
        self.shadow.owner[granules] = self.number
        if self.shadow.unpublished is not None:
            self.shadow.unpublished[granules] = 0 if threads is None else np.repeat(threads + 1, self.per_element)


class Rows:
    """Consecutive elements of `data`, with one column for each thread, that are accessed with no other check than whether they were
    written. own: no other buffer shares their shadow."""

    __slots__ = ("_own", "_place", "_seen", "_threads")

    def __init__(self, place: slice, threads: int, own: bool) -> None:
        self._place, self._threads, self._own = place, threads, own
        self._seen = (-1, -1)  # when all of them were last found to be written

    def are_plain(self, storage: Storage) -> bool:
        """Whether there is still nothing else to check."""
        return storage.is_plain or self._own and not storage.shadow.awaits(self._place)

    def are_written(self, storage: Storage) -> bool:
        """Whether there is nothing else to check, and all of the elements were written."""
        shadow = storage.shadow
        if self._own and self._seen == (storage.number, shadow.losses) and not shadow.awaits(self._place):
            return True
        if not self.are_plain(storage) or not (shadow.owner[self._place] == storage.number).all():
            return False
        self._seen = (storage.number, shadow.losses)
        return True

    def values(self, storage: Storage, lanes: int, wide: np.dtype[Any]) -> Array:
        """The elements, over threads or over (threads, lanes), in the type to compute in."""
        data = storage.data[self._place]
        return np.array(data if lanes == 1 else data.reshape(lanes, -1).T, wide, order="C")

    def set(self, storage: Storage, value: Any) -> None:
        """Writes the elements."""
        storage.data[self._place].reshape(-1, self._threads)[...] = value.T  # NumPy rounds to the stored type
        storage.shadow.owner[self._place] = storage.number


def poison(elements: int, type: np.dtype[Any]) -> Array:
    """Memory that was never written: NaN, or an unlikely value."""
    if type.kind == "b":
        return np.ones(elements, bool)
    if type.kind in "iu":
        return np.full(elements, np.iinfo(type).max // 3 * 2, type)
    return np.full(elements, np.nan).astype(type)
