"""The memory of the blocks that are simulated together: addresses, and checks of every access.

`Memory` resolves an access (indices, lanes, count, active threads) to elements. It reports and skips out-of-bounds ones, and checks the
rest elementwise through `shadow_memory`. Shared memory is raw bytes per block, so buffers that the pass `allocate_shared` overlaps
really alias: data written through one is garbage to the other, and their accesses race. Buffers without an offset are consecutive.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from tilelang.lowering import ir
from tilelang.lowering.simulator import definedness
from tilelang.lowering.simulator.batch import Batch, Mask, Touch
from tilelang.lowering.simulator.definedness import Known, Marks
from tilelang.lowering.simulator.findings import Finding, Recorder, Site, count_conflicts, count_transactions
from tilelang.lowering.simulator.scalar_semantics import Value, all_inside, widen
from tilelang.lowering.simulator.shadow_memory import Access, Conflict, Rows, Shadow, Storage, poison
from tilelang.lowering.simulator.vector_clocks import ClockedRaces

Array = npt.NDArray[Any]


Place = Rows | Touch | None  # the elements of an access that are all in bounds: rows of storage, or each of them

PATTERNS, PATTERN_ELEMENTS = 4096, 4096  # number of access patterns that are cached, and their maximum size
WIDE_BYTES = 16  # size of the reads that wide_read_lanes describes


@dataclasses.dataclass(frozen=True, slots=True)
class Device:
    """Device parameters that the counts depend on."""

    warp: int
    banks: int
    bank_bytes: int
    transaction_bytes: int
    wide_read_lanes: tuple[int, ...] = ()


@dataclasses.dataclass(frozen=True, slots=True)
class Watched:
    """One execution of one access by the threads of a batch, as passed to the watcher of `simulate.run`.

    requests, cost: as in the report; 0 for copies that the device makes on its own. `memory` is the state before a write or at a read.
    """

    memory: Memory
    buffer: ir.Buffer
    touch: Touch
    site: Site
    writes: bool
    requests: int
    cost: int


class Memory:
    """All buffers of a kernel as one batch sees them. `shadows` are those of the global buffers and last for the whole launch."""

    def __init__(
        self, batch: Batch, globals_: dict[str, Array], shadows: dict[str, Shadow], device: Device, recorder: Recorder
    ) -> None:
        self.batch, self.device, self.recorder = batch, device, recorder
        self.findings = recorder.findings
        self.storage: dict[str, Storage] = {}
        self.buffers = {b.name: b for b in batch.kernel.buffers}
        self._zeros = zeros = np.zeros(batch.threads, np.int64)
        for buffer in batch.kernel.arguments:
            self.storage[buffer.name] = Storage(globals_[buffer.name], zeros, 1, shadows[buffer.name])
            races = shadows[buffer.name].races
            if isinstance(races, ClockedRaces) and batch.clocks is not None:
                races.clocks = batch.clocks
        for buffer in batch.kernel.registers:
            elements = buffer.elements * batch.threads
            shadow = Shadow(elements, batch.kernel.threads, tracks_races=False)
            data = poison(elements, buffer.dtype.numpy)
            self.storage[buffer.name] = Storage(data, np.arange(batch.threads), batch.threads, shadow)
        if batch.kernel.shared:
            self._lay_out_shared(batch.kernel.shared)

    def _lay_out_shared(self, buffers: tuple[ir.Buffer, ...]) -> None:
        alignment = 128
        offsets, end = [], max((b.offset + b.bytes for b in buffers if b.offset is not None), default=0)
        for b in buffers:
            if b.offset is None:
                end = -(-end // alignment) * alignment
                offsets.append(end)
                end += b.bytes
            else:
                offsets.append(b.offset)
        block_bytes = max(alignment, -(-end // alignment) * alignment)
        granule = min(b.dtype.bytes for b in buffers)
        arena = np.full(block_bytes * self.batch.blocks, 0xFF, np.uint8)  # 0xFF bytes are NaN in every float type
        shadow = Shadow(arena.size // granule, self.batch.kernel.threads, tracks_races=self.batch.kernel.threads > 1)
        if any(isinstance(s, ir.Instruction) and s.semantics.proxy for s in ir.statements(self.batch.kernel.body)):
            shadow.unpublished = np.zeros(shadow.granules, np.int32)
        if self.batch.clocks is not None:
            shadow.races = ClockedRaces(shadow.granules, self.batch.clocks, self.device.warp)
        for number, (b, offset) in enumerate(zip(buffers, offsets, strict=True), start=1):
            size = b.dtype.bytes
            base = (self.batch.local_block * block_bytes + offset) // size
            data = arena.view(b.dtype.numpy)
            self.storage[b.name] = Storage(data, base, 1, shadow, number=number, per_element=size // granule, slots=b.ring)

    # ------------------------------------------------------------ from indices to elements

    def place(self, buffer: ir.Buffer, indices: Sequence[Value], lanes: int, mask: Mask, across: bool) -> Place:
        """The elements of an access by the active threads, if all exist and are in bounds, in the form that is cheapest to access."""
        rows = None if across else self._rows(buffer, indices, lanes, mask)
        return rows if rows is not None else self.inside(buffer, indices, lanes, mask, across)

    def inside(self, buffer: ir.Buffer, indices: Sequence[Value], lanes: int, mask: Mask, across: bool) -> Touch | None:
        """The elements of an access, if all of them exist and are in bounds."""
        threads = mask.threads
        if not threads.size or (mask.lanes is not None and lanes > 1):
            return None
        chosen = indices if mask.full else [value[threads] if value.ndim else value for value in indices]
        start: Any = np.int64(0)
        for value, extent in zip(chosen, buffer.shape, strict=True):
            start = start * extent + value
        places, extents = ((*chosen, start), (*buffer.shape, buffer.elements)) if across else (chosen, buffer.shape)
        if not all_inside(places, extents, lanes):
            return None
        storage = self.storage[buffer.name]
        start = start + self._zeros[: threads.size]
        address = storage.addresses(slice(None) if mask.full else threads, start)
        thread, lane = mask.spread(lanes)
        if lanes > 1:
            numbers = np.arange(lanes)
            element = (start[:, None] + numbers).reshape(-1)
            same = address is start
            address = element if same else (address[:, None] + numbers * storage.step).reshape(-1)
            return Touch(thread, lane, element, address, mask.full)
        return Touch(thread, lane, start, address, mask.full)

    def locate(
        self, buffer: ir.Buffer, indices: Sequence[Value], lanes: int, count: Value | None, mask: Mask, site: Site,
        across: bool = False,
    ) -> Touch:  # fmt: skip
        """The elements of an access by the active threads that exist and are in bounds; reports the others."""
        touch = self.inside(buffer, indices, lanes, mask, across) if count is None else None
        if touch is not None:
            return touch
        threads = mask.threads
        start: Any = np.int64(0)
        chosen = [value[threads] if value.ndim else value for value in indices]
        for value, extent in zip(chosen, buffer.shape, strict=True):
            start = start * extent + value
        by_lane = mask.lanes[threads] if mask.lanes is not None and lanes > 1 else None
        places, extents = ((*chosen, start), (*buffer.shape, buffer.elements)) if across else (chosen, buffer.shape)
        lane = np.arange(lanes)
        shape = (threads.size, lanes)
        good = np.ones(shape, bool)
        for dimension, (value, extent) in enumerate(zip(places, extents, strict=True)):
            position = np.reshape(value, (-1, 1))
            if dimension == len(places) - 1:
                position = position + lane
            good &= (position >= 0) & (position < extent)
        exists = np.ones(shape, bool) if by_lane is None else by_lane
        if count is not None:
            exists = exists & (lane < np.reshape(count[threads] if count.ndim else count, (-1, 1)))
        outside, good = exists & ~good, exists & good
        if outside.any():
            self._report_outside(buffer, indices, np.argwhere(outside), mask, site)
        row, lane_of = np.nonzero(good)
        thread, element = threads[row], np.broadcast_to(start, threads.shape)[row] + lane_of
        return Touch(thread, lane_of, element, self.storage[buffer.name].addresses(thread, element), False)

    def locate_region(
        self, buffer: ir.Buffer, coordinates: Sequence[Array], threads: Array, site: Site, told: bool
    ) -> tuple[Touch, Array]:
        """The existing elements of the regions that threads name, and their positions among all.

        coordinates: (threads, points) for each dimension of the buffer. told: report elements that are out of bounds.
        """
        shape = (threads.size, max(c.shape[1] for c in coordinates))
        element, good = np.zeros(shape, np.int64), np.ones(shape, bool)
        for c, extent in zip(coordinates, buffer.shape, strict=True):
            element = element * extent + c
            good &= (c >= 0) & (c < extent)
        if told and not good.all():
            row, point = np.argwhere(~good)[0]
            where = [int(np.broadcast_to(c, shape)[row, point]) for c in coordinates]
            self.findings.room("out-of-bounds", site.number, int((~good).sum()) - 1)
            if self.findings.room("out-of-bounds", site.number, 1):
                text = f"{site}: {buffer.name}{where} lies outside its shape {list(buffer.shape)}"
                self._add("out-of-bounds", buffer.name, tuple(where), (int(threads[row]),), site, text)
        position = np.flatnonzero(good)
        row, point = np.divmod(position, shape[1])
        thread, elements = threads[row], element.reshape(-1)[position]
        return Touch(thread, point, elements, self.storage[buffer.name].addresses(thread, elements), False), position

    def _report_outside(self, buffer: ir.Buffer, indices: Sequence[Value], where: Array, mask: Mask, site: Site) -> None:
        for row, lane in where[: self.findings.room("out-of-bounds", site.number, len(where))]:
            thread = int(mask.threads[row])
            index = [int(v[thread] if v.ndim else v) for v in indices]
            if index:
                index[-1] += int(lane)
            text = f"{site}: {buffer.name}{index} lies outside its shape {list(buffer.shape)}"
            self._add("out-of-bounds", buffer.name, tuple(index), (thread,), site, text)

    def _add(self, kind: str, buffer: str, element: tuple[int, ...], threads: tuple[int, ...], site: Site, text: str) -> None:
        """Adds one finding. `threads` are numbered in the batch; the first one is at fault."""
        inside = tuple(int(self.batch.thread[t]) for t in threads)
        block = self.batch.block_index(int(self.batch.block[threads[0]]))
        message = f"thread {inside[0]} of block {block}, {text}"
        self.findings.add(Finding(kind, buffer, element, inside, block, site.span, message))

    def report(self, kind: str, buffer: ir.Buffer, touch: Touch, positions: Array, site: Site, text: str) -> None:
        """One finding for each of the given positions of an access."""
        for p in positions[: self.findings.room(kind, site.number, positions.size)]:
            element = _element(buffer, int(touch.element[p]))
            self._add(kind, buffer.name, element, (int(touch.thread[p]),), site, f"{site}: {buffer.name}{list(element)} {text}")

    def report_threads(self, kind: str, threads: Array, site: Site, text: str) -> None:
        """One finding for each of the given threads of the batch."""
        for thread in threads[: self.findings.room(kind, site.number, threads.size)]:
            self._add(kind, site.buffer, (), (int(thread),), site, f"{site}: {text}")

    # ------------------------------------------------------------ reading and writing

    def undefined(self, buffer: ir.Buffer, touch: Touch, site: Site) -> Marks | None:
        """Marks of the elements that an access reads; None if all are defined. Reports elements that are still being copied to."""
        storage = self.storage[buffer.name]
        unwritten = storage.unwritten(touch.address, touch.thread)
        if unwritten is not None and (incoming := storage.shadow.incoming) is not None:
            unwritten = unwritten[~(incoming[storage.granules(touch.address[unwritten])] > 0).any(axis=1)]
        if unwritten is None or not unwritten.size:
            return None
        marks = np.zeros(touch.address.shape, np.int64)
        marks[unwritten] = storage.marks(touch.address[unwritten], definedness.read(site.number, touch.element[unwritten]))
        return marks

    def report_undefined(self, marks: Marks, threads: Array, text: str) -> None:
        """One finding per mark that is set, for undefined data used where it matters. text: what the threads do with it."""
        for number in np.unique(marks[marks > 0] >> definedness.ELEMENT_BITS):
            site, mine = self.recorder.sites[number], np.flatnonzero((marks > 0) & (marks >> definedness.ELEMENT_BITS == number))
            buffer = self.buffers[site.buffer]
            for p in mine[: self.findings.room("uninitialised-read", site.number, mine.size)]:
                element = _element(buffer, definedness.origin(int(marks[p]))[1])
                told = f"{site}: {buffer.name}{list(element)} is read before anything was written there, and {text}"
                self._add("uninitialised-read", buffer.name, element, (int(threads[p]),), site, told)

    def observe_read(self, buffer: ir.Buffer, touch: Touch, site: Site, counted: bool = True) -> None:
        """Performs all checks of a read, without its value and marks. counted: threads make it, so its memory cost is counted."""
        storage = self.storage[buffer.name]
        incoming = storage.shadow.incoming
        if incoming is not None:
            early = np.flatnonzero((incoming[storage.granules(touch.address)] > 0).any(axis=1))
            if early.size:
                self.report("read-before-wait", buffer, touch, early, site, "is still being copied to: no wait has passed")
        self.observe(buffer, touch, site, writes=False)
        self._count(buffer, touch, site, writes=False, counted=counted)

    def observe_proxy(self, buffer: ir.Buffer, touch: Touch, site: Site) -> None:
        """Checks an access through a proxy: every thread that wrote the data must have executed a fence since."""
        storage = self.storage[buffer.name]
        unpublished = storage.shadow.unpublished
        if unpublished is not None and (hidden := np.flatnonzero(unpublished[storage.granules(touch.address)].any(axis=1))).size:
            text = "was written by a thread and is reached through a proxy: no fence has passed"
            self.report("missing-fence", buffer, touch, hidden, site, text)

    def publish(self, mask: Mask) -> None:
        """The active threads execute a fence: proxies now see what they have written to shared memory."""
        for shadow in {self.storage[b.name].shadow for b in self.batch.kernel.shared}:
            if shadow.unpublished is not None:
                shadow.unpublished[np.concatenate(([False], mask.flags))[shadow.unpublished]] = 0

    def write(self, buffer: ir.Buffer, touch: Touch, values: Array, site: Site, marks: Marks | None = None) -> None:
        """Writes the elements touched (one of `values` each, rounded to the buffer's type) with all checks."""
        storage = self.storage[buffer.name]
        self.observe_write(buffer, touch, site)
        storage.data[touch.address] = values.astype(storage.data.dtype)
        storage.set_written(touch.address, touch.thread)
        self.set_undefined(buffer, touch, marks, site)

    def set_undefined(self, buffer: ir.Buffer, touch: Touch, marks: Marks | None, site: Site) -> None:
        """Marks written elements as undefined, which is a finding if they are in global memory."""
        if marks is None or not marks.any():
            return
        if buffer.memory == "global":
            self.report_undefined(marks, touch.thread, f"is stored in {site}")
        else:
            self.storage[buffer.name].set_undefined(touch.address, marks)

    def observe_write(self, buffer: ir.Buffer, touch: Touch, site: Site, counted: bool = True, later: bool = False) -> None:
        """Performs all checks of a write, without its value. counted: as for a read. later: the device makes it asynchronously."""
        storage = self.storage[buffer.name]
        storage.date(touch.address, touch.thread)
        shadow = storage.shadow
        if shadow.incoming is not None and shadow.outgoing is not None:
            granules = storage.granules(touch.address)
            early = np.flatnonzero((shadow.incoming[granules] > 0).any(axis=1))
            if early.size:
                self.report("write-before-wait", buffer, touch, early, site, "is still being copied to: no wait has passed")
            needed = np.flatnonzero((shadow.outgoing[granules] > 0).any(axis=1))
            if needed.size:
                self.report("source-overwritten", buffer, touch, needed, site, "is still being copied from: no wait has passed")
        self.observe(buffer, touch, site, writes=True, later=later)
        self._count(buffer, touch, site, writes=True, counted=counted)

    def observe(self, buffer: ir.Buffer, touch: Touch, site: Site, *, writes: bool, later: bool = False) -> None:
        """Reports races of an access. later: the device makes it asynchronously for the thread that issued it."""
        storage = self.storage[buffer.name]
        races = storage.shadow.races
        if races is None or touch.element.size == 0:
            return
        granules = storage.granules(touch.address).reshape(-1)
        clocks = self.batch.clocks
        if clocks is None:
            epoch = self.batch.epochs[buffer.memory][self.batch.local_block[touch.thread]]
            thread = self.batch.global_thread[touch.thread]
        else:
            agent = touch.thread + later * clocks.threads
            epoch, thread = clocks.knows[agent, agent], self.batch.first * clocks.agents + agent
        if storage.per_element > 1:
            epoch, thread = np.repeat(epoch, storage.per_element), np.repeat(thread, storage.per_element)
        access = Access(granules, thread, epoch, site.number)
        conflict = races.write(access) if writes else races.read(access)
        if conflict is not None:
            self._report_races(buffer, touch, conflict, site, "writes" if writes else "reads")

    def _report_races(self, buffer: ir.Buffer, touch: Touch, conflict: Conflict, site: Site, verb: str) -> None:
        per_element = self.storage[buffer.name].per_element
        positions, first = np.unique(conflict.position // per_element, return_index=True)
        threads = self.batch.kernel.threads
        per_block = threads if self.batch.clocks is None else self.batch.clocks.agents
        for p, at in list(zip(positions, first, strict=True))[: self.findings.room("data-race", site.number, positions.size)]:
            element, thread = _element(buffer, int(touch.element[p])), int(touch.thread[p])
            other = int(conflict.other[at])
            block = self.batch.block_index(int(self.batch.block[thread]))
            other_block = self.batch.block_index(self._block_of(other))
            did = "wrote" if conflict.other_wrote[at] else "read"
            message = (
                f"thread {other % per_block % threads} of block {other_block} {did} {buffer.name}{list(element)} in"
                f" {self.recorder.sites[int(conflict.other_site[at])]}, and thread {int(self.batch.thread[thread])} of block {block}"
                f" {verb} it in {site}, " + ("with no barrier between" if block == other_block else "and blocks are not ordered")
            )
            both = (other % per_block % threads, int(self.batch.thread[thread]))
            self.findings.add(Finding("data-race", buffer.name, element, both, block, site.span, message))

    def _block_of(self, other: int) -> int:
        """The block of a thread of the launch, or of a clock's agent (agents are numbered across the batch)."""
        clocks, threads = self.batch.clocks, self.batch.kernel.threads
        if clocks is None:
            return other // threads
        return other // clocks.agents + other % clocks.agents % clocks.threads // threads

    def _count(self, buffer: ir.Buffer, touch: Touch, site: Site, *, writes: bool, counted: bool) -> None:
        """Adds the memory cost of an access and notifies the watcher."""
        if buffer.memory == "register" or not touch.element.size:
            return
        counted = counted and self.recorder.costs
        requests, cost = self.cost(buffer, touch, writes=writes) if counted else (0, 0)
        if counted:
            (self.recorder.transactions if buffer.memory == "global" else self.recorder.conflicts).add(site, requests, cost)
        if self.recorder.watch is not None:
            self.recorder.watch(Watched(self, buffer, touch, site, writes, requests, cost))

    def cost(self, buffer: ir.Buffer, touch: Touch, *, writes: bool) -> tuple[int, int]:
        """The warps that issue an access, and its transactions (global) or bank-conflict replays (shared).

        Costs are cached by pattern: a shifted repetition is looked up.
        """
        first = int(touch.address.min()) * buffer.dtype.bytes
        period = self.device.transaction_bytes if buffer.memory == "global" else self.device.banks * self.device.bank_bytes
        offset = (
            (touch.address * buffer.dtype.bytes - first // period * period)
            if first >= period
            else touch.address * buffer.dtype.bytes
        )
        key = (buffer.memory, buffer.dtype.bytes, writes, offset.tobytes(), touch.thread.tobytes())
        cost = self.recorder.patterns.get(key)
        if cost is None:
            if buffer.memory == "global":
                cost = count_transactions(offset, self.batch.warp[touch.thread], self.device.transaction_bytes)
            else:
                cost = self._conflicts(buffer, touch, offset, writes)
            if offset.size <= PATTERN_ELEMENTS and len(self.recorder.patterns) < PATTERNS:
                self.recorder.patterns[key] = cost
        return cost

    def _conflicts(self, buffer: ir.Buffer, touch: Touch, offset: Array, writes: bool) -> tuple[int, int]:
        word, group, ideal = self.words(buffer, touch, offset, writes=writes)
        return np.unique(self.batch.warp[touch.thread]).size, count_conflicts(word, group, self.device.banks, ideal)

    def words(self, buffer: ir.Buffer, touch: Touch, offset: Array, *, writes: bool) -> tuple[Array, Array, int]:
        """The shared-memory words that an access requests, for each word the group of threads served together that requests it,
        and the number of words per bank that a group may request without a replay."""
        device, warp, lane = self.device, self.batch.warp[touch.thread], self.batch.lane[touch.thread]
        words = max(1, (int(touch.lane.max()) + 1) * buffer.dtype.bytes // device.bank_bytes)
        served = max(1, device.banks // words)  # threads whose accesses are served together
        if device.wide_read_lanes and words * device.bank_bytes == WIDE_BYTES and not writes:
            turn, period = np.argsort(device.wide_read_lanes), len(device.wide_read_lanes)
            lane = lane // period * period + turn[lane % period]
        group = warp * device.warp + lane // served
        word = offset // device.bank_bytes
        pieces = buffer.dtype.bytes // device.bank_bytes
        if pieces > 1:
            word, group = (word[:, None] + np.arange(pieces)).reshape(-1), np.repeat(group, pieces)
        return word, group, max(1, -(-words // device.banks))

    # ------------------------------------------------------------ values of loads and stores

    def load(self, load: ir.Load, touch: Touch, site: Site) -> Known:
        """The value of a Load: an array over threads, or over (threads, lanes); 0 for threads that do not execute it."""
        marks = self.undefined(load.buffer, touch, site)
        self.observe_read(load.buffer, touch, site)
        fill = load.fill.value if load.fill is not None else None
        values = widen(self._by_lane(self.storage[load.buffer.name].data[touch.address], touch, load.lanes, fill), load.dtype)
        return values if marks is None else definedness.partly(values, self._by_lane(marks, touch, load.lanes, None))

    def _by_lane(self, values: Array, touch: Touch, lanes: int, fill: Any) -> Array:
        """Scatters the values of the touched elements to an array over (threads, lanes). fill: the others; None: 0."""
        if not touch.whole:
            size = self.batch.threads * lanes
            out = np.zeros(size, values.dtype) if fill is None else np.full(size, fill, values.dtype)
            out[touch.thread if lanes == 1 else touch.thread * lanes + touch.lane] = values
            values = out
        return values if lanes == 1 else values.reshape(-1, lanes)

    def store(self, store: ir.Store, touch: Touch, value: Known, lanes: int, site: Site) -> None:
        """Executes a Store whose `value` has been evaluated."""
        marks = pick(value.marks, touch, lanes) if type(value) is definedness.Partly else None
        self.write(store.buffer, touch, pick(definedness.plain(value), touch, lanes), site, marks)

    def _rows(self, buffer: ir.Buffer, indices: Sequence[Value], lanes: int, mask: Mask) -> Rows | None:
        """The rows of storage of an access in bounds whose only check is that the elements were written. All threads touch the same
        elements of their registers, or the batch is one thread, whose accesses are neither counted nor watched."""
        threads = self.batch.threads
        if not mask.full or (threads > 1 and any(v.ndim for v in indices)):
            return None
        storage = self.storage[buffer.name]
        if buffer.memory != "register" and (threads > 1 or self.recorder.observes or not storage.is_plain):
            return None
        element, last = 0, len(buffer.shape) - 1
        for i, (value, extent) in enumerate(zip(indices, buffer.shape, strict=True)):
            at = int(value.item())
            if at < 0 or at + (lanes if i == last else 1) > extent:
                return None
            element = element * extent + at
        first = int(storage.base[0]) + element * threads
        return Rows(slice(first, first + lanes * threads), threads, buffer.memory == "register")


def pick(value: Value, touch: Touch, lanes: int) -> Array:
    """The values for the elements of an access of so many lanes: value[thread, lane], broadcast."""
    if value.ndim == 0:
        return np.broadcast_to(value, touch.thread.shape)
    if touch.whole:
        rows = value[:, None] if value.ndim == 1 else value
        every: Array = np.broadcast_to(rows, (touch.thread.size // lanes, lanes)).reshape(-1)
        return every
    if value.ndim == 1:
        picked: Array = value[touch.thread]
        return picked
    thread = touch.thread if value.shape[0] > 1 else np.zeros_like(touch.thread)
    lane = touch.lane if value.shape[1] > 1 else np.zeros_like(touch.lane)
    chosen: Array = value[thread, lane]
    return chosen


def _element(buffer: ir.Buffer, flat: int) -> tuple[int, ...]:
    return tuple(int(i) for i in np.unravel_index(flat, buffer.shape)) if buffer.shape else ()
