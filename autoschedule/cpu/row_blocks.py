"""Products in one kernel on CPUs, several rows at a time: a loop over chunks of rows, whose values stay in the core's cache.

A chunk has whole rows, so its reductions along the rows, such as the peaks and totals of weights, are complete, and products read them
from the cache. Results along the rows are stored for each chunk; those that sum over the rows, such as the gradient of a weight, are
added to memory. So backward passes write no values between their products to memory, and compute each product once.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator

from tilelang.autoschedule.common.axes import in_parts
from tilelang.autoschedule.common.device_model import Steps
from tilelang.autoschedule.common.kernel_part import Part, reads_of
from tilelang.autoschedule.common.row_fusion import Rows, common_extents
from tilelang.autoschedule.common.shared_loops import Sharing
from tilelang.autoschedule.common.task_accesses import Nest, nest_of
from tilelang.autoschedule.cpu.constants import CPU
from tilelang.autoschedule.cpu.device import CpuDevice
from tilelang.autoschedule.cpu.growth import vectors
from tilelang.autoschedule.cpu.shared_loops import ChunkedKernel
from tilelang.autoschedule.cpu.tile import box_layout, output_holds_sums
from tilelang.computations.computation import Tensor
from tilelang.core.layout import Layout
from tilelang.schedules.shared_loops import reads_any
from tilelang.schedules.steps import Place, Split, Step, Tile, Vectorize
from tilelang.schedules.task import Unplaced, made_with


def by_row_blocks(part: Part, device: CpuDevice) -> Iterator[tuple[Rows, Steps]]:
    """Kernels for a part whose last task sums over rows, and whose stages have products along them; nothing for others."""
    found = swept_by(part)
    if found is None:
        return
    last, axis = found.rows.last, found.axis
    outer = [a for a in last.spatial if a.name in found.rows.axes and a.extent > 1]
    blocks, extent = math.prod(a.extent for a in outer), last.extents[axis]
    share = extent
    if blocks < device.cores:
        if len(found.members) > 1:  # a block cannot add to an output that others add to
            return
        share = in_parts(extent, -(-device.cores * CPU.several_blocks // blocks), 1)
    fitting = 0
    for rows in dict.fromkeys(min(n, share) for n in CPU.row_blocks):
        made = RowBlocks(found, device, axis, {**dict.fromkeys(found.rows.axes, 1), axis: rows}, share, False).steps()
        if made is not None:
            device.pruning.keeps()
            yield found.rows, made
            fitting += 1
        if fitting == CPU.fitting_row_blocks:
            return


def swept_by(part: Part) -> Sharing | None:
    """The rows that a part's last task sums over, the tasks that compute their values for each chunk, and the reductions that sum over
    all of them; None if the last task does not sum over rows, a stage needs such a sum, or no stage is a product."""
    placed = _placed(part)
    try:
        last = nest_of(part.task(placed))
        stages = {t: nest_of(part.stage(t, placed)) for t in placed if t.member == 0}
    except Unplaced:
        return None
    if len(last.reduced) != 1 or not last.points:
        return None
    axis = last.reduced[0].name
    sums = {t for t, nest in stages.items() if any(a.name == axis for a in nest.reduced)}
    chunked = [t for t in stages if t not in sums]
    stored = {t for first in part.stored for t in made_with(first)}
    if not sums <= stored or any(len(t.definition.tensors) > 1 or len(stages[t].reduced) > 1 for t in sums if t.definition):
        return None
    if reads_any([r for t in chunked for r in _reads(t)], {*sums, *(t for s in last.task.states for t in s.tensors)}):
        return None
    sweeping = [last, *(stages[t] for t in sums)]
    common = common_extents(chunked, [*stages.values(), last], sweeping)
    if axis not in common or not any(stages[t].multiplied is not None and stages[t].reduced for t in chunked):
        return None
    rows = Rows(part, [a.name for a in last.spatial if a.name in common], placed, list(stages.values()), last)
    members = (*(t.name for t in sums), *(t.name for s in last.task.states for t in s.tensors))
    ordered = tuple(d.tensors[0].name for d in part.definitions if d.tensors[0].name in members)
    return Sharing(rows, axis, ordered, (), tuple(_in_order(stages, stored)))


def _reads(tensor: Tensor) -> tuple[Tensor, ...]:
    assert tensor.definition is not None
    return tensor.definition.reads


def _placed(part: Part) -> list[Tensor]:
    """The tensors that are kept of a chunk: those of `Part.on_chip`, and pointwise values that a reduction with more axes reads, as a
    product reads its factors."""
    known, kept = reads_of(part.computation), set(part.on_chip(keeps_few=False))
    outputs = {*part.outputs, *part.computation.outputs}
    for reader in part.definitions:
        if reader.reduction is not None:
            over = len(reader.axes) + len(reader.reduction.axes)
            read = (t for t in known[reader][1] if t.definition in part.definitions and t not in outputs)
            kept.update(t for t in read if t.definition and t.definition.reduction is None and len(t.definition.axes) < over)
    return [t for d in part.definitions for t in d.tensors if t in kept]


def _in_order(stages: dict[Tensor, Nest], stored: set[Tensor]) -> Iterator[tuple[Tensor, Nest]]:
    """The stages in the order of their definitions, but those that store outputs as early as possible, so that what only they read is
    needed for a short time."""
    names, made = {t.name for t in stages}, set[str]()
    waiting = [t for t in stages if t in stored]
    for tensor in stages:
        if tensor in stored:
            continue
        yield tensor, stages[tensor]
        made.add(tensor.name)
        for ready in [t for t in waiting if {a.name for a in stages[t].reads} & names <= made]:
            waiting.remove(ready)
            yield ready, stages[ready]
            made.add(ready.name)
    yield from ((t, stages[t]) for t in waiting)


def _room_bytes(device: CpuDevice) -> float:
    """The memory for the values of a chunk. They may exceed the core's caches if there is another one behind these."""
    return device.room_bytes * (CPU.row_block_share if device.last_level is not None else 1)


@dataclasses.dataclass(frozen=True)
class RowBlocks(ChunkedKernel):
    """A kernel of several rows at a time. Values of a chunk are contiguous along the rows, and so are the vectors that compute them;
    outputs are computed in vectors along their own last axis."""

    def steps(self) -> Steps | None:
        """The steps; None if the values do not fit in the cache, or a read cannot be transposed to the order of the vectors."""
        last, axis = self.sharing.rows.last, self.sharing.axis
        inside = [(t, self.cut(nest)) for t, nest in self.sharing.inside]
        names = {t.name for t, _ in inside}
        sums = not output_holds_sums(last)
        if self.device.pruning.drops("shared", self.live_bytes(inside, sums) > _room_bytes(self.device) or self.is_far(inside)):
            return None
        product = self.product(last, names)
        if product is None:
            return None
        vector, tail = product
        made: list[Step] = []
        for tensor, nest in inside:
            stores = self.stores(tensor)
            rows_apart = stores and tensor.dims[-1].name != self.along
            how = self.stored(nest, names) if rows_apart else self.computed(nest, names)
            if how is None:
                return None
            memory = "global" if stores else "shared"
            made.append(Place("compute", tensor.name, memory, self.layout(tensor), steps=how or None))
        outer = [(a.name, 1) for a in last.spatial if a.name in self.sharing.rows.axes]
        block = (*outer, *([(axis, self.part)] if self.part < last.extents[axis] else []))
        head: list[Step] = [Tile(block or ((last.spatial[-1].name, last.spatial[-1].extent),), "block")]
        head += [Place("accumulate", None, "shared", steps=(vector,))] if sums else []
        members = self.sharing.members if len(self.sharing.members) > 1 else ()
        return (*head, Split(((axis, self.chunk[axis]),), of=members), *made, *tail)

    def stores(self, tensor: Tensor) -> bool:
        """Whether a stage stores an output."""
        return any(tensor in made_with(t) for t in self.sharing.rows.part.stored)

    def layout(self, tensor: Tensor) -> Layout | None:
        """The layout of a chunk's values; None for outputs."""
        return None if self.stores(tensor) else super().layout(tensor)

    def live_bytes(self, inside: list[tuple[Tensor, Nest]], sums: bool) -> int:
        """The most bytes of values of a chunk that are in shared memory at a time, with the kernel's accumulators."""
        readers: list[Nest] = [*(nest for _, nest in inside), self.cut(self.sharing.rows.last)]
        held = [0 if self.stores(t) else nest.outputs * t.dtype.bytes for t, nest in inside]
        until = [max((n for n, r in enumerate(readers) if any(a.name == t.name for a in r.reads)), default=k)
                 for k, (t, _) in enumerate(inside)]  # fmt: skip
        most = max(sum(h for k, h in enumerate(held) if k <= n <= until[k]) for n in range(len(readers)))
        return most + (readers[-1].outputs * readers[-1].state_bytes if sums else 0)

    def is_far(self, inside: list[tuple[Tensor, Nest]]) -> bool:
        """Whether what every chunk reads or adds to, such as all keys and their gradients, exceeds a part of the core's share of the
        last cache: it would come from memory, again for each chunk."""
        touched: dict[str, int] = {}
        for nest in (*(nest for _, nest in inside), self.cut(self.sharing.rows.last)):
            for access in (a for a in nest.accesses if self.sharing.axis not in a.axes):
                touched[access.name] = max(touched.get(access.name, 0), access.footprint_bytes(nest.extents))
        last = self.device.last_level
        return last is not None and sum(touched.values()) > last.bytes * CPU.row_block_reread_share

    def computed(self, nest: Nest, staged: set[str]) -> Steps | None:
        """The steps of a stage in vectors along the rows, with operands transposed to that order."""
        turned: dict[str, Step] = {}
        for read in nest.reads:
            if read.name not in staged and self.along in read.axes and read.stride(self.along) != 1:
                if not read.affine or read.read is not None:
                    return None
                turned.setdefault(read.name, Place("load", read.name, "shared", box_layout(read, self.along)))
        how = self.stage(nest, staged | set(turned))
        return None if how is None else (*turned.values(), *how)

    def stored(self, nest: Nest, staged: set[str]) -> Steps | None:
        """The steps of a stage that stores an output whose rows are contiguous."""
        if nest.reduced:
            found = self.product(nest, staged)
            return None if found is None else found[1]
        axis, lanes = next(((a, n) for a, n in vectors(nest, self.device) if a in nest.spatial_extents), ("", 1))
        return (Vectorize(axis, lanes),) if axis else None
