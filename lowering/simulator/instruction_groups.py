"""Simulates an Instruction statement: groups of consecutive threads call the instruction's own `simulate`.

Calling convention: an operand's slots are consecutive in the row-major order of its buffer, starting at the element that a thread
names. `semantics.fragment(name)` gives the number of slots per lane. If it is None, the operand is a dense region named by the
group's first thread, and the region's coordinates are added to the last indices. `semantics.simulate` gets an array
(groups, lanes, slots) or (groups, *dims) of the buffer's type for each name in `semantics.reads`, and returns the same form for
`semantics.writes`, which is rounded to the buffer's type. A move that completes with an in-order group goes through the queue of
asynchronous copies; every other instruction completes immediately here.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from tilelang.errors import TileLangError
from tilelang.instructions.instruction import AT_ONCE, BARRIER_BY_BYTES
from tilelang.lowering import ir
from tilelang.lowering.simulator.batch import Batch, Mask, Touch
from tilelang.lowering.simulator.copy_queue import CopyQueue, Part
from tilelang.lowering.simulator.definedness import Marks
from tilelang.lowering.simulator.findings import Site
from tilelang.lowering.simulator.memory_model import Memory
from tilelang.lowering.simulator.scalar_semantics import Value

Array = npt.NDArray[Any]
SiteOf = Callable[[Any, str, str], Site]  # key, buffer, access
Send = Callable[[Part, Part, Callable[[], Array], Marks | None], None]  # target, source, the values, their marks


def execute(
    stmt: ir.Instruction,
    first: Mapping[str, Sequence[Value]],
    mask: Mask,
    memory: Memory,
    copies: CopyQueue,
    site_of: SiteOf,
    send: Send | None = None,
) -> None:
    """Runs the instruction in every group whose threads are all active; reports groups that are partly active.

    first: per operand, the indices of its first element as each thread sees them. For an operand in `stmt.regions`, the indices
    of all its elements, (threads, elements). send: starts a copy that signals a barrier.
    """
    semantics = stmt.semantics
    whole = _whole_groups(mask, stmt.width, memory.batch)
    if whole.threads.size < mask.threads.size:
        partial = mask.threads[~whole.flags[mask.threads]]
        site = site_of("instruction", "", "instruction")
        memory.report_threads("divergent-instruction", partial, site, "is not joined by its whole group")
    if not whole.threads.size:
        return
    buffers = {name: buffer for name, buffer, _ in stmt.operands}
    reads = {}
    for name in semantics.reads:
        site = site_of(("read", name), buffers[name].name, "load")
        reads[name] = _Operand(stmt, name, buffers[name], first[name], whole, memory, site)
    site = site_of(("write", semantics.writes), buffers[semantics.writes].name, "store")
    target = _Operand(stmt, semantics.writes, buffers[semantics.writes], first[semantics.writes], whole, memory, site)

    for operand in (*reads.values(), target):
        if operand.part.by_proxy:
            memory.observe_proxy(*operand.access)

    def compute() -> tuple[Array, Array]:
        return _simulate(stmt, {name: operand.values() for name, operand in reads.items()}, whole, memory, site_of)

    if semantics.kind == "move" and semantics.completes != AT_ONCE and len(reads) == 1:
        (source,) = reads.values()
        source.drop_what_is_not_written(target)
        marks = _undefined(stmt, reads, target, memory)
        if semantics.completes == BARRIER_BY_BYTES:
            assert send is not None, "a kernel without roles has no barriers with phases"
            send(target.part, source.part, lambda: target.flat(compute()[0]), marks)
        else:
            copies.issue(target.part, source.part, lambda: target.flat(compute()[0]), marks, counted=target.by_lanes)
        return
    later = semantics.completes != AT_ONCE
    for name, operand in reads.items():
        if not (later and name == semantics.writes):  # instructions of one queue update it without waiting for each other
            memory.observe_read(*operand.access, counted=operand.by_lanes)
    marks = _undefined(stmt, reads, target, memory)
    result, done = compute()
    kept = np.repeat(done, target.per_group)[target.position]
    part, values = target.part.chosen(kept), target.flat(result)[kept]
    marks = None if marks is None else marks[kept]
    if later:
        copies.hold(part, [o.part for name, o in reads.items() if name != semantics.writes], values, marks)
    else:
        memory.write(part.buffer, part.touch, values, part.site, marks)


def _undefined(stmt: ir.Instruction, reads: Mapping[str, _Operand], target: _Operand, memory: Memory) -> Marks | None:
    """Marks of the result, per element of the target; None if all of it is defined."""
    marks = {name: memory.undefined(*operand.access) for name, operand in reads.items()}
    if all(found is None for found in marks.values()):
        return None
    given = {name: operand.form_of(marks[name]) for name, operand in reads.items()}
    result = stmt.semantics.undefined({name: operand.values() for name, operand in reads.items()}, given)
    return np.broadcast_to(result, target.form).reshape(-1)[target.position]


def _simulate(
    stmt: ir.Instruction, gathered: dict[str, Array], whole: Mask, memory: Memory, site_of: SiteOf
) -> tuple[Array, Array]:
    """The written operand of every group, and the groups that computed one; operands of other groups were rejected and reported."""
    groups, name = whole.threads.size // stmt.width, stmt.semantics.writes
    try:
        result = np.asarray(stmt.semantics.simulate(gathered)[name])
        if not gathered:
            result = np.broadcast_to(result, (groups, *result.shape))
        return result, np.ones(groups, bool)
    except TileLangError:
        pass
    results: list[Array | None] = []
    for group in range(groups):
        try:
            results.append(np.asarray(stmt.semantics.simulate({n: a[group] for n, a in gathered.items()})[name]))
        except TileLangError as error:
            results.append(None)
            site = site_of("instruction", "", "instruction")
            detail = f"{error.message}: {error.counterexample}"
            memory.report_threads("instruction-operand", whole.threads[[group * stmt.width]], site, detail)
    some = [r for r in results if r is not None]
    blank = np.zeros_like(some[0]) if some else np.zeros(())
    return np.stack([blank if r is None else r for r in results]), np.array([r is not None for r in results])


class _Operand:
    """The elements of one operand. `form` is (groups, lanes, slots) or (groups, *dims).

    `part` holds the elements that are in bounds, and `position` their flat index in `form`.
    """

    def __init__(
        self, stmt: ir.Instruction, name: str, buffer: ir.Buffer, first: Sequence[Value], whole: Mask, memory: Memory, site: Site
    ) -> None:
        semantics = stmt.semantics
        by_proxy = bool(semantics.proxy) and buffer.memory == "shared"
        held = semantics.fragment(name)
        groups = whole.threads.size // stmt.width
        self.by_lanes = held is not None
        self.outside = getattr(semantics, "outside", None) if buffer.memory == "global" else None
        self._data = memory.storage[buffer.name].data
        if stmt.region(name) is not None:
            dims: tuple[int, ...] = semantics.operand(name).shape
            self.form: tuple[int, ...] = (groups, *dims)
            self.per_group = math.prod(dims)
            leaders = whole.threads.reshape(groups, stmt.width)[:, 0]
            points = [
                np.broadcast_to(i, (i.shape[0], self.per_group))[leaders if i.shape[0] > 1 else [0] * groups] for i in first
            ]
            touch, self.position = memory.locate_region(buffer, points, leaders, site, self.outside is None)
            self.part = Part(buffer, touch, site, by_proxy)
            return
        lanes = held.lanes if held is not None else 1
        flags = np.zeros_like(whole.flags)
        flags[whole.threads.reshape(groups, stmt.width)[:, :lanes]] = True
        mask = Mask(flags)
        dims = () if held is not None else semantics.operand(name).shape
        self.form = (groups, lanes, held.slots) if held is not None else (groups, *dims)
        self.per_group = math.prod(self.form[1:])
        slots = held.slots if held is not None else self.per_group
        row = memory.inside(buffer, first, slots, mask, False) if held is not None else None
        if row is None:
            each = (
                [_after(buffer, first, slot) for slot in range(slots)]
                if held is not None
                else [_beside(first, point) for point in np.ndindex(*dims)]
            )
            row = _joined([memory.locate(buffer, indices, 1, None, mask, site) for indices in each])
        self.part = Part(buffer, row, site, by_proxy)
        rank = np.zeros(flags.size, np.int64)
        rank[mask.threads] = np.arange(mask.threads.size)
        self.position = rank[row.thread] * slots + row.lane

    @property
    def access(self) -> tuple[ir.Buffer, Touch, Site]:
        return self.part.buffer, self.part.touch, self.part.site

    def values(self) -> Array:
        """The operand's current values; out-of-bounds elements get the instruction's fill value, or 0."""
        out = np.full(math.prod(self.form), self.outside or 0, self._data.dtype)
        out[self.position] = self._data[self.part.touch.address]
        return out.reshape(self.form)

    def form_of(self, marks: Marks | None) -> Marks:
        """Marks of the elements of `part`, in the operand's form; out-of-bounds elements have none."""
        out = np.zeros(math.prod(self.form), np.int64)
        if marks is not None:
            out[self.position] = marks
        return out.reshape(self.form)

    def drop_what_is_not_written(self, target: _Operand) -> None:
        """For a move of a region: drops source elements whose target element does not exist."""
        if target.outside is not None and target.form == self.form:
            kept = np.isin(self.position, target.position)
            self.position, self.part = self.position[kept], self.part.chosen(kept)

    def flat(self, values: Array) -> Array:
        """Takes the elements of `part` from an array of the operand's form, in the buffer's type."""
        found: Array = np.broadcast_to(values, self.form).reshape(-1)[self.position].astype(self._data.dtype)
        return found


def _joined(touches: Sequence[Touch]) -> Touch:
    """The elements of all slots."""
    return Touch(
        np.concatenate([t.thread for t in touches]),
        np.concatenate([np.full(t.thread.size, slot) for slot, t in enumerate(touches)]),
        np.concatenate([t.element for t in touches]),
        np.concatenate([t.address for t in touches]),
        False,
    )


def _after(buffer: ir.Buffer, first: Sequence[Value], slot: int) -> list[Value]:
    """Indices of the element `slot` positions after the first in row-major order; an out-of-bounds start stays out of bounds."""
    if slot == 0 or len(buffer.shape) < 2:
        return [*first[:-1], first[-1] + np.int64(slot)] if buffer.shape else list(first)
    flat: Any = np.int64(slot)
    for index, stride in zip(first, buffer.strides, strict=True):
        flat = flat + index * np.int64(stride)
    out = []
    for stride in buffer.strides:
        out.append(flat // stride)
        flat = flat % stride
    return out


def _beside(first: Sequence[Value], point: tuple[int, ...]) -> list[Value]:
    start = len(first) - len(point)
    return [i if d < start else i + np.int64(point[d - start]) for d, i in enumerate(first)]


def _whole_groups(mask: Mask, width: int, batch: Batch) -> Mask:
    """The active threads whose group (`width` consecutive threads of a block) is entirely active."""
    if width == 1:
        return mask
    per_block = batch.kernel.threads
    usable = per_block // width * width
    flags = mask.flags.reshape(batch.blocks, per_block)
    groups = flags[:, :usable].reshape(batch.blocks, -1, width).all(axis=2)
    whole = np.zeros_like(flags)
    whole[:, :usable] = np.repeat(groups, width, axis=1)
    return Mask(whole.reshape(-1))
