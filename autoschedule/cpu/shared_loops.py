"""Several reductions in one shared loop on CPUs: a core takes some rows, and computes their values chunk by chunk in its cache.

The sums of the last task are kept in shared memory between chunks; the sums of a chunk are computed in registers, as in any product.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Iterator

from tilelang.autoschedule.common.accesses import Access
from tilelang.autoschedule.common.axes import in_parts
from tilelang.autoschedule.common.device_model import Steps
from tilelang.autoschedule.common.kernel_part import Part
from tilelang.autoschedule.common.row_fusion import Rows
from tilelang.autoschedule.common.shared_loops import Sharing, sharing_of
from tilelang.autoschedule.common.task_accesses import Nest, NestAxis
from tilelang.autoschedule.cpu.constants import CPU
from tilelang.autoschedule.cpu.device import CpuDevice
from tilelang.autoschedule.cpu.growth import nearest_bytes, register_tiles, vectors
from tilelang.autoschedule.cpu.tile import BOX, CpuTile, box_layout, reused, steps
from tilelang.computations.computation import Tensor
from tilelang.core.expr import INDEX, Var
from tilelang.core.layout import Layout
from tilelang.schedules.steps import Place, Split, Step, Tile, Vectorize


def by_shared_loops(part: Part, device: CpuDevice) -> Iterator[tuple[Rows, Steps]]:
    """Kernels for a part in which one loop computes all reductions over an axis; nothing if they cannot share a loop."""
    found = sharing_of(part)
    if found is None:
        return
    last = found.rows.last
    row = next((a for a in reversed(last.spatial) if a.name in found.rows.axes and a.extent > 1), None)
    ways = [found.axis, *([row.name] if row is not None and row.extent >= device.lanes else [])]
    rows, chunks = _rows(found, row, device), _sizes(last.extents[found.axis], CPU.chunks)
    for along, count, piece in itertools.product(ways, rows, chunks):
        chunk = dict.fromkeys(found.rows.axes, 1) | {found.axis: piece} | ({row.name: count} if row is not None else {})
        few = (False, True) if count < device.lanes else (False,)
        for share, dots in itertools.product(_parts(last, found.axis, chunk, device), few):
            made = ChunkedKernel(found, device, along, chunk, share, dots).steps()
            if made is not None:
                device.pruning.keeps()
                yield found.rows, made


def _rows(sharing: Sharing, row: NestAxis | None, device: CpuDevice) -> list[int]:
    """Candidates for the rows of a block; among them one row if the rows have no operand of the loop in common, as heads with keys of
    their own."""
    if row is None:
        return [1]
    nests = [*(nest for _, nest in sharing.inside), sharing.rows.last]
    made = {t.name for t, _ in sharing.inside}
    common = any(row.name not in a.axes for nest in nests for a in nest.reads if a.name not in made and sharing.axis in a.axes)
    return [*_sizes(row.extent, CPU.shared_rows), *(() if common else (1,))]


def _parts(last: Nest, axis: str, chunk: dict[str, int], device: CpuDevice) -> list[int]:
    """Candidates for the points of the shared axis that a block takes: all; and, if there are fewer blocks of rows than several for
    each core, parts that make as many blocks."""
    extent, blocks = last.extents[axis], math.prod(-(-n // chunk.get(a, n)) for a, n in last.spatial_extents.items())
    shares = (device.cores * share for share in (1, CPU.several_blocks))
    found = [in_parts(extent, -(-wanted // blocks), chunk[axis]) for wanted in shares if wanted > blocks]
    return list(dict.fromkeys((extent, *(n for n in found if n < extent))))


def _sizes(extent: int, among: tuple[int, ...]) -> list[int]:
    """Those of some sizes that divide an extent; if none does, those that do not exceed it.

    >>> _sizes(96, (16, 64)), _sizes(100, (16, 64, 128)), _sizes(5, (16, 64))
    ([16], [16, 64], [5])
    """
    return [n for n in among if extent % n == 0] or [n for n in among if n <= extent] or [extent]


@dataclasses.dataclass(frozen=True)
class ChunkedKernel:
    """A kernel with a loop over chunks of an axis, whose values stay in the core's cache.

    along: the axis along which values inside the loop are vectorized; chunk: the extents of one iteration; part: the points of the axis
    that a block takes; dots: whether the products inside the loop are vectorized along their reductions, so that no operand is
    transposed for a few rows.
    """

    sharing: Sharing
    device: CpuDevice
    along: str
    chunk: dict[str, int]
    part: int
    dots: bool

    def steps(self) -> Steps | None:
        """The steps; None if the values do not fit in the cache, or a read cannot be transposed to the order of the vectors."""
        last, axis = self.sharing.rows.last, self.sharing.axis
        inside = [(t, self.cut(nest)) for t, nest in self.sharing.inside]
        if self.device.pruning.drops("shared", self.held_bytes(inside) > self.device.room_bytes or not self.stays_near(inside)):
            return None
        product = self.product(last, {t.name for t, _ in inside})
        if product is None:
            return None
        vector, tail = product
        turned: dict[str, Access] = {}
        made: list[Step] = []
        if self.dots and not any(self.inner(nest) for _, nest in inside):
            return None
        for tensor, nest in inside:
            for read in nest.reads if not self.inner(nest) else ():
                if read.name not in {t.name for t, _ in inside} and self.along in read.axes and read.stride(self.along) != 1:
                    if not read.affine or read.read is not None or (self.in_place(nest) and not reused(nest, read)):
                        return None
                    turned.setdefault(read.name, read)
            how = self.stage(nest, set(turned) | {t.name for t, _ in inside})
            if how is None:
                return None
            made.append(Place("compute", tensor.name, "shared", self.layout(tensor), steps=how or None))
        loads = {True: list[Step](), False: list[Step]()}  # inside the loop, and before it
        for name, read in turned.items():
            loads[axis in read.axes].append(Place("load", name, "shared", box_layout(read, self.along)))
        rows = [(a.name, self.chunk[a.name]) for a in last.spatial if a.name in self.sharing.rows.axes and a.extent > 1]
        block = (*rows, *([(axis, self.part)] if self.part < last.extents[axis] else []))
        head: list[Step] = [Tile(block or ((self.sharing.rows.axes[-1], 1),), "block")]
        head += [Place("compute", t.name, "shared", steps=_vectors(nest, self.device)) for t, nest in self.sharing.before]
        sums = Place("accumulate", None, "shared", steps=(vector,))
        head += [*loads[False], sums, Split(((axis, self.chunk[axis]),), of=self.sharing.members)]
        return (*head, *loads[True], *made, *tail)

    def held_bytes(self, inside: list[tuple[Tensor, Nest]]) -> int:
        """The bytes of the accumulators, and of the values of one chunk."""
        last = self.cut(self.sharing.rows.last)
        return sum(nest.outputs * t.dtype.bytes for t, nest in inside) + last.outputs * last.state_bytes

    def stays_near(self, inside: list[tuple[Tensor, Nest]]) -> bool:
        """Whether each tensor's part in a chunk fills at most half of the first-level cache, if a product rereads it for every register
        tile. The smallest chunk is always accepted."""
        nests = [nest for _, nest in inside] + [self.cut(self.sharing.rows.last)]
        reread = ((a, nest) for nest in nests for a in nest.reads if self.sharing.axis in a.axes and reused(nest, a))
        touched = (a.footprint_bytes(nest.extents) for a, nest in reread)
        return self.chunk[self.sharing.axis] <= min(CPU.chunks) or max(touched, default=0) <= nearest_bytes(self.device) // 2

    def cut(self, nest: Nest) -> Nest:
        """The part of a nest that one iteration computes, with the chunk's values in their layout."""
        axes = tuple(NestAxis(a.name, min(a.extent, self.chunk.get(a.name, a.extent)), a.reduction) for a in nest.axes)
        return dataclasses.replace(nest, axes=axes, accesses=tuple(map(self.laid_out, nest.accesses)))

    def laid_out(self, access: Access) -> Access:
        """An access in the layout of its tensor, if the loop computes that tensor."""
        if not any(access.tensor is t for t, _ in self.sharing.inside) or self.layout(access.tensor) is None:
            return access
        order = sorted(range(len(access.indices)), key=lambda d: access.tensor.dims[d].name == self.along)
        tensor = Tensor(access.name, access.tensor.dtype, tuple(access.tensor.dims[d] for d in order))
        return dataclasses.replace(access, tensor=tensor, indices=tuple(access.indices[d] for d in order))

    def layout(self, tensor: Tensor) -> Layout | None:
        """The layout of a chunk's values: contiguous along the vectors."""
        names = [d.name for d in tensor.dims]
        if self.along not in names or names[-1] == self.along:
            return None
        return Layout(tuple(Var(n, INDEX) for n in sorted(names, key=lambda n: n == self.along)))

    def stage(self, nest: Nest, staged: set[str]) -> Steps | None:
        """The steps of a stage inside the loop."""
        lanes, extent = self.device.lanes, nest.extents.get(self.along, 1)
        if extent < 2:
            return ()
        if self.is_product(nest):
            axis = self.inner(nest) or self.along
            return self.tile(nest, axis, min(lanes, 1 << (nest.extents[axis].bit_length() - 1)), staged)
        width = min(CPU.row_vectors * lanes, 1 << (extent.bit_length() - 1))
        found: list[Step] = []
        if nest.reduced and self.along in nest.spatial_extents:
            if extent > width:
                found.append(Split(((self.along, width),)))
            found += [Place("accumulate", None, "register"), Split(tuple((a.name, 1) for a in nest.reduced))]
        elif nest.reduced:
            wide = tuple((a.name, 1) for a in nest.wide)
            found += [Split(wide)] if wide else []
        return (*found, Vectorize(self.along, width))

    def is_product(self, nest: Nest) -> bool:
        """Whether a stage is a product whose results are chunks of the shared axis."""
        along = {self.along, self.sharing.axis} <= nest.spatial_extents.keys()
        return bool(nest.reduced) and nest.multiplied is not None and along

    def inner(self, nest: Nest) -> str:
        """The reduction along which a product is vectorized in place; empty if it is vectorized along its results."""
        return self.in_place(nest) if self.dots else ""

    def in_place(self, nest: Nest) -> str:
        """The reduction along which a product can be vectorized in place; empty if there is none."""
        if not self.is_product(nest):
            return ""
        return next((a.name for a in nest.reduced if a.extent > 1 and all(r.stride(a.name) == 1 for r in nest.reads)), "")

    def product(self, last: Nest, staged: set[str]) -> tuple[Step, Steps] | None:
        """The vectors of the results, and the steps of the last task inside the loop."""
        nest = self.cut(last)
        for axis, lanes in vectors(nest, self.device):
            if axis in nest.spatial_extents and (found := self.tile(nest, axis, lanes, staged)) is not None:
                return Vectorize(axis, lanes), found
        return None

    def tile(self, nest: Nest, axis: str, lanes: int, staged: set[str]) -> Steps | None:
        """A product with a register tile: of those with nearly the fewest cycles, the one with the fewest loads."""
        found = register_tiles(nest, self.device, axis, lanes, whole=True) or register_tiles(nest, self.device, axis, lanes)
        if not found:
            return None
        chosen = min([*found, *_whole_row(nest, axis, lanes)], key=lambda piece: _loaded(nest, piece, axis, lanes))
        there = {r.operand: BOX for r in nest.reads if r.name in staged}
        tile = CpuTile((), nest.spatial_extents, nest.reduced_extents, chosen, (axis, lanes), there)
        return tuple(s for s in steps(nest, tile) if not (isinstance(s, Tile) or isinstance(s, Place) and _brings(s)))


def _whole_row(nest: Nest, axis: str, lanes: int) -> list[dict[str, int]]:
    """The register tile of a product with a single row: that row, so that its operand is read from end to end. It saves no loads of
    that operand to take a part."""
    row = nest.spatial_extents
    alone = all(n == 1 for a, n in row.items() if a != axis)
    return [dict(row)] if alone and axis in row and lanes * CPU.unrolled_vectors >= row[axis] else []


def _loaded(nest: Nest, piece: dict[str, int], axis: str, lanes: int) -> float:
    """The vectors and scalars that a register tile loads for each of its result vectors."""
    count = {a: -(-n // lanes) if a == axis else n for a, n in piece.items()}
    loads = sum(math.prod(count[a] for a in read.axes if a in count) for read in nest.reads)
    return loads / math.prod(count.values())


def _brings(step: Place) -> bool:
    return step.verb == "load" and step.memory == "shared"


def _vectors(nest: Nest, device: CpuDevice) -> Steps | None:
    """The vectors of a stage before the loop: along its last axis."""
    axis = next((a for a in reversed(nest.reduced or nest.spatial) if a.extent > 1), None)
    if axis is None:
        return None
    return (Vectorize(axis.name, min(device.lanes, 1 << (axis.extent.bit_length() - 1))),)
