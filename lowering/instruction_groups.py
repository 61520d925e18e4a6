"""How the simulator runs an Instruction statement: by groups of consecutive threads, through the instruction's own `simulate`.

The convention between the two. An operand's slots lie, from the first element that a thread names, one after another in the
row-major order of the buffer. `semantics.fragment(name)` says how many slots each of its lanes has; where it is None the operand is
a dense region named by the group's first thread, whose coordinates are added to the last indices. `semantics.simulate` gets, for
every name in `semantics.reads`, an array (groups, lanes, slots) or (groups, *dims) of the buffer's type, and gives the same form
for `semantics.writes`; what it gives is rounded to the buffer's type.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from tilelang.errors import TileLangError
from tilelang.lowering import ir
from tilelang.lowering.findings import Site
from tilelang.lowering.memory_model import Batch, Mask, Memory, pick
from tilelang.lowering.scalar_semantics import Value

Array = npt.NDArray[Any]
SiteOf = Callable[[Any, str, str], Site]  # key, buffer, access


def execute(stmt: ir.Instruction, first: Mapping[str, Sequence[Value]], mask: Mask, memory: Memory, site_of: SiteOf) -> None:
    """Runs the instruction in every group that is active as a whole; a group that is active in part is reported.

    first: by operand name, the indices of its first element as each thread sees them.
    """
    whole = _whole_groups(mask, stmt.width, memory.batch)
    if whole.threads.size < mask.threads.size:
        partial = mask.threads[~whole.flags[mask.threads]]
        site = site_of("instruction", "", "instruction")
        memory.report_threads("divergent-instruction", partial, site, "is not joined by its whole group")
    if not whole.threads.size:
        return
    buffers = {name: buffer for name, buffer, _ in stmt.operands}
    gathered = {}
    for name in stmt.semantics.reads:
        places = _Places(stmt, name, buffers[name], first[name], whole, memory)
        gathered[name] = places.gather(site_of(("read", name), buffers[name].name, "load"))
    result, done = _simulate(stmt, gathered, whole, memory, site_of)
    name = stmt.semantics.writes
    places = _Places(stmt, name, buffers[name], first[name], whole, memory)
    places.scatter(result, done, site_of(("write", name), buffers[name].name, "store"))


def _simulate(
    stmt: ir.Instruction, gathered: dict[str, Array], whole: Mask, memory: Memory, site_of: SiteOf
) -> tuple[Array, Array]:
    """The written operand of every group, and which groups gave one; the others' operands were refused and reported."""
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
    done = np.array([r is not None for r in results])
    some = [r for r in results if r is not None]
    blank = np.zeros_like(some[0]) if some else np.zeros(())
    return np.stack([blank if r is None else r for r in results]), done


class _Places:
    """Where the elements of one operand lie, for the threads of all groups that take part."""

    def __init__(
        self, stmt: ir.Instruction, name: str, buffer: ir.Buffer, first: Sequence[Value], whole: Mask, memory: Memory
    ) -> None:
        self.buffer, self.memory = buffer, memory
        held = stmt.semantics.fragment(name)
        self.groups = whole.threads.size // stmt.width
        lanes = held.lanes if held is not None else 1
        flags = np.zeros_like(whole.flags)
        flags[whole.threads.reshape(self.groups, stmt.width)[:, :lanes]] = True
        self.mask = Mask(flags)
        dims: tuple[int, ...] = () if held is not None else stmt.semantics.operand(name).shape
        self.form = (self.groups, lanes, held.slots) if held is not None else (self.groups, *dims)
        self.slots = (
            [_after(buffer, first, slot) for slot in range(held.slots)]
            if held is not None
            else [_beside(first, point) for point in np.ndindex(*dims)]
        )

    def gather(self, site: Site) -> Array:
        """The operand as stored; 0 where it lies out of bounds."""
        columns = []
        for indices in self.slots:
            touch = self.memory.locate(self.buffer, indices, 1, None, self.mask, site)
            out = np.zeros(self.memory.batch.threads, self.buffer.dtype.numpy)
            out[touch.thread] = self.memory.read(self.buffer, touch, site)
            columns.append(out[self.mask.threads])
        return np.stack(columns, axis=1).reshape(self.form)

    def scatter(self, values: Array, done: Array, site: Site) -> None:
        """Writes the operand of the groups that are done."""
        columns = np.broadcast_to(values, self.form).reshape(self.mask.threads.size, math.prod(self.form[1:]) // self._lanes())
        taking_part = Mask(self.mask.flags.copy())
        if not done.all():
            taking_part.flags[self.mask.threads.reshape(self.groups, -1)[~done]] = False
            taking_part = Mask(taking_part.flags)
        for slot, indices in enumerate(self.slots):
            dense = np.zeros(self.memory.batch.threads, self.buffer.dtype.numpy)
            dense[self.mask.threads] = columns[:, slot].astype(self.buffer.dtype.numpy)
            touch = self.memory.locate(self.buffer, indices, 1, None, taking_part, site)
            self.memory.write(self.buffer, touch, pick(dense, touch), site)

    def _lanes(self) -> int:
        return self.mask.threads.size // self.groups


def _after(buffer: ir.Buffer, first: Sequence[Value], slot: int) -> list[Value]:
    """The indices of the element `slot` places after the first in row-major order; out of bounds stays out of bounds."""
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
    """The active threads whose group of `width` threads of a block is active as a whole."""
    if width == 1:
        return mask
    per_block = batch.kernel.threads
    usable = per_block // width * width
    flags = mask.flags.reshape(batch.blocks, per_block)
    groups = flags[:, :usable].reshape(batch.blocks, -1, width).all(axis=2)
    whole = np.zeros_like(flags)
    whole[:, :usable] = np.repeat(groups, width, axis=1)
    return Mask(whole.reshape(-1))
