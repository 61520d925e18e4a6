"""Several reductions in one shared loop on GPUs: warps take rows, and keep all values of a chunk in the registers of their lanes.

The products inside the loop are computed by matrix instructions. The lanes that own an element of a result follow from the lane map of
the instruction, and every later stage of the chunk gives its elements to the same lanes, so that a value is read where it was computed.
Of the instructions and of their orientations, those are preferred whose results are owned as the next product reads them; otherwise
values are exchanged between the lanes of a warp.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Iterator, Mapping

from tilelang.autoschedule.common.accesses import Access
from tilelang.autoschedule.common.device_model import Steps
from tilelang.autoschedule.common.kernel_part import Part
from tilelang.autoschedule.common.row_fusion import Rows
from tilelang.autoschedule.common.shared_loops import Sharing, sharing_of
from tilelang.autoschedule.common.task_accesses import Nest
from tilelang.autoschedule.gpu.constants import GPU
from tilelang.autoschedule.gpu.device import GpuDevice
from tilelang.autoschedule.gpu.matrix_tiles import Fit, contiguous_slots, fits, stage_operand
from tilelang.autoschedule.gpu.row_fusion import within
from tilelang.autoschedule.gpu.staging import vector_lanes
from tilelang.autoschedule.gpu.tile import Staged, load, load_fragment
from tilelang.instructions.fragment import Fragment
from tilelang.instructions.operand import Operand
from tilelang.schedules.steps import Do, Place, Split, Step, Tile, Vectorize


def by_shared_loops(part: Part, device: GpuDevice) -> Iterator[tuple[Rows, Steps]]:
    """Kernels for a part in which one loop computes all reductions over an axis; nothing if they cannot share a loop, or if a product
    in it has no matrix instruction."""
    found = sharing_of(part)
    if found is None or found.before:
        return
    for kernel in _kernels(found, device):
        made = kernel.steps()
        made = within(found.rows, made, device) if made is not None else None
        if made is not None:
            device.pruning.keeps()
            yield found.rows, made


# ---------------------------------------------------------------- the lanes that own a chunk's values


@dataclasses.dataclass(frozen=True)
class Owners:
    """The lanes that own the elements of a tile over two axes: the pieces of the lanes of a warp are side by side. pieces: axis and
    extent of a piece, in the order in which lanes number them, the last fastest; lanes: their number along each axis.

    >>> from tilelang.instructions.shipped.warp_matrix import accumulator_16x8
    >>> owners_of(accumulator_16x8, ("i", "j"))
    Owners(pieces=(('i', 1), ('j', 2)), lanes=(8, 4))
    """

    pieces: tuple[tuple[str, int], ...]
    lanes: tuple[int, ...]

    def steps(self) -> Steps:
        """The steps that give a warp's tile to these lanes."""
        rounds = tuple((a, n * count) for (a, n), count in zip(self.pieces, self.lanes, strict=True))
        return Split(rounds), Tile(self.pieces, "thread")

    def hold(self, fragment: Fragment, axes: tuple[str, ...]) -> bool:
        """Whether each lane of a fragment holds only coordinates that it owns. axes: of the fragment's dimensions, which may include
        others than the owners'."""
        inside = 1
        for (axis, n), count in reversed([*zip(self.pieces, self.lanes, strict=True)]):
            held = [fragment.table[:, :, d] // n % count for d, name in enumerate(axes) if name == axis]
            if any(int(c) != lane // inside % count for numbers in held for lane, row in enumerate(numbers) for c in row):
                return False
            inside *= count
        return True


def owners_of(held: Fragment, axes: tuple[str, str]) -> Owners | None:
    """The owners of a result with this lane map over two axes; None if they do not have this form."""
    table = held.table
    pieces = [contiguous_slots(held, d) for d in (0, 1)]
    counts = [len({int(c) // n for c in table[:, 0, d]}) for d, n in enumerate(pieces)]
    slow, fast = (0, 1) if table[0, 0, 0] == table[-1 if held.lanes < 2 else 1, 0, 0] else (1, 0)
    found = Owners(((axes[slow], pieces[slow]), (axes[fast], pieces[fast])), (counts[slow], counts[fast]))
    return found if math.prod(counts) == held.lanes and found.hold(held, axes) else None


# ---------------------------------------------------------------- instructions


@dataclasses.dataclass(frozen=True, eq=False)
class _Products:
    """The instructions of the products in the loop. inside: of its stages, by name; last: of the last task; held: that one's operand
    that the loop computes; given: the other; owners: the lanes that own the chunk's values."""

    inside: Mapping[str, Fit]
    last: Fit
    held: tuple[Operand, Access]
    given: tuple[Operand, Access]
    owners: Owners
    row: str
    axis: str

    def step(self, axis: str) -> int:
        """The least common multiple of the instructions' extents along an axis of the nests."""
        bound = [(fit, mine) for fit in (*self.inside.values(), self.last) for mine, own in fit.binding if own == axis]
        rounds = [n * count for (a, n), count in zip(self.owners.pieces, self.owners.lanes, strict=True) if a == axis]
        return math.lcm(*(fit.made.shape[mine] for fit, mine in bound), *rounds)

    @property
    def stay(self) -> bool:
        """Whether the last task's instruction reads the chunk's values from the lanes that own them."""
        operand, bound = self.held[0], dict(self.last.binding)
        assert operand.fragment is not None
        return self.owners.hold(operand.fragment, tuple(bound[d.name] for d in operand.dims))


def _products(sharing: Sharing, device: GpuDevice) -> list[_Products]:
    """Instructions for all products in a loop: those that exchange no values between lanes or, if there are none, all."""
    axis, rows = sharing.axis, set(sharing.rows.axes)
    made = {t.name for t, _ in sharing.inside}
    nests = {t.name: nest for t, nest in sharing.inside if nest.reduced and axis in nest.spatial_extents}

    def whole(nest: Nest, fit: Fit) -> bool:
        """Whether the axes that the loop does not cut are multiples of the instruction's: nothing fills what is outside."""
        return all(nest.extents[own] % fit.made.shape[mine] == 0 for mine, own in fit.binding if own != axis and own not in rows)

    def fitting(nest: Nest) -> list[Fit]:
        every = (fit for turned in (False, True) for fit in fits(nest, device, "register", turned))
        return [fit for fit in every if axis in fit.axes and len(rows.intersection(fit.axes)) == 1 and whole(nest, fit)]

    found = []
    for last in fitting(sharing.rows.last) if nests else []:
        (row,) = rows.intersection(last.axes)
        held, given = sorted((last.left, last.right), key=lambda o: o[1].name not in made)
        for each in itertools.product(*map(fitting, nests.values())):
            inside = dict(zip(nests, each, strict=True))
            results = [(fit.made.fragment(fit.made.writes), fit.axes[:2]) for fit in each]
            owners = {owners_of(lanes, axes) for lanes, axes in results if lanes is not None}
            sums = last.made.fragment(last.made.writes)  # repaired by the lanes that own the values of their rows
            own = owners.pop() if len(owners) == 1 else None
            if own is None or sums is None or not own.hold(sums, last.axes[:2]) or not _covered(sharing, inside, last, row):
                continue
            found.append(_Products(inside, last, held, given, own, row, axis))
    return [p for p in found if p.stay] or found


def _covered(sharing: Sharing, inside: Mapping[str, Fit], last: Fit, row: str) -> bool:
    """Whether the products read operands from memory, each once, and whether instructions, the loop and single rows cover all axes."""
    made = {t.name for t, _ in sharing.inside}
    reads = [a.name for fit in inside.values() for _, a in (fit.left, fit.right)]
    ends = [a.name for _, a in (last.left, last.right)]
    given = [name for name in ends if name not in made]
    if len(given) != 1 or not made.isdisjoint(reads) or len({*reads, *given}) < len(reads) + 1:
        return False
    if not all(row in fit.axes for fit in inside.values()):
        return False
    known = {*sharing.rows.axes, sharing.axis}
    nests = [(nest, inside.get(t.name)) for t, nest in sharing.inside]
    return all(
        a.name in known or (fit is not None and a.name in fit.axes)
        for nest, fit in (*nests, (sharing.rows.last, last)) for a in nest.axes if a.extent > 1
    )  # fmt: skip


# ---------------------------------------------------------------- kernels


def _kernels(sharing: Sharing, device: GpuDevice) -> Iterator[_Kernel]:
    """Every kernel of this family: instructions, rows of a warp, warps of a block, points of a chunk, how far ahead it is loaded."""
    from tilelang.core.distribution import MOST_POINTS  # late: imports NumPy

    extents = sharing.rows.last.extents
    for products in _products(sharing, device):
        least, step = products.step(products.row), products.step(sharing.axis)
        chunks = _filled([n for n in GPU.chunks if n % step == 0] or [step], extents[sharing.axis])
        blocks = {(n, warps): least * n * warps for n in GPU.warp_rounds for warps in GPU.loop_warps}
        wide = _filled(sorted(blocks.values()), extents[products.row])
        for (n, warps), rows in blocks.items():
            if rows in wide and not device.pruning.drops("threads", warps * device.warp > device.profile.max_block_threads):
                ahead = 1 if device.profile.async_copy else 0  # otherwise, what is loaded ahead waits in registers
                known = (chunk for chunk in chunks if rows * chunk * warps * device.warp <= MOST_POINTS)  # owners are enumerated
                yield from (_Kernel(sharing, device, products, least * n, warps, chunk, ahead) for chunk in known)


def _filled(sizes: list[int], extent: int) -> list[int]:
    """The sizes that an extent fills by more than half; if there are none, the smallest size."""
    return [n for n in sizes if n < 2 * extent] or sizes[:1]


@dataclasses.dataclass(frozen=True, eq=False)
class _Kernel:
    """A kernel with a shared loop. rows: of a warp; warps: of a block; chunk: the points of one iteration; ahead: the iterations by
    which operands are loaded before they are read."""

    sharing: Sharing
    device: GpuDevice
    products: _Products
    rows: int
    warps: int
    chunk: int
    ahead: int

    def steps(self) -> Steps | None:
        """The steps; None if an operand has no layout in shared memory that serves the lanes of its instruction."""
        last, axis, products = self.sharing.rows.last, self.sharing.axis, self.products
        warp, lanes, least = Tile(((products.row, self.rows),), "warp"), products.owners.steps(), products.step(products.row)
        if self.rows > least:  # rows are numbered by instructions, as in their results
            lanes = Split(((products.row, least),)), *lanes
        before, loads, stages = list[Step](), list[Step](), list[Step]()
        for tensor, nest in self.sharing.inside:
            how, fit = (warp, *lanes), products.inside.get(tensor.name)
            if fit is not None:
                operands = [self.operand(nest, fit, *read) for read in (fit.left, fit.right)]
                staged = [o for o in operands if o is not None]
                if len(staged) < 2:
                    return None
                before += [load(o) for o in staged if axis not in o.access.axes]
                loads += [load(o) for o in staged if axis in o.access.axes]
                stages.append(Place("compute", tensor.name, "register", steps=(warp, *self.instruct(fit, staged))))
                stages.append(Place("load", tensor.name, "register", steps=how))
            else:
                stages.append(Place("compute", tensor.name, "register", steps=how))
        factor = self.operand(last, products.last, *products.given)
        if factor is None:
            return None
        block = [(a.name, self.rows * self.warps if a.name == products.row else 1)
                 for a in last.spatial if a.name in self.sharing.rows.axes]  # fmt: skip
        head = (Tile(tuple(block), "block"), Place("accumulate", None, "register", steps=self.stores() or None))
        loop = Split(((axis, self.chunk),), of=self.sharing.members)
        tail = (warp, Place("load", products.held[1].name, "register"), *self.instruct(products.last, [factor]))
        return (*head, *before, loop, *loads, load(factor), *stages, *tail)

    def instruct(self, fit: Fit, staged: list[Staged]) -> Steps:
        """The steps of a product of a warp: along its reduction, operands are loaded for one instruction at a time."""
        own, name = fit.binding[2]
        return Split(((name, fit.made.shape[own]),)), *map(load_fragment, staged), Do(fit.made.name, fit.binding)

    def operand(self, nest: Nest, fit: Fit, operand: Operand, access: Access) -> Staged | None:
        """An operand in shared memory."""
        taken = {self.products.row: self.rows * self.warps, self.sharing.axis: self.chunk}
        sizes = dict.fromkeys(self.sharing.rows.axes, 1) | taken
        tile = {a.name: min(a.extent, sizes.get(a.name, a.extent)) for a in nest.axes}
        tile |= {a: n for a, n in sizes.items() if a in tile and a in fit.axes}  # whole tiles, even beyond the axes
        part = {a: tile[a] for a in fit.axes} | {self.products.row: self.rows, fit.axes[2]: fit.made.shape[fit.binding[2][0]]}
        found = stage_operand(nest, self.device, fit, operand, access, tile, part, self.warps * self.device.warp)
        if found is None:
            return None
        return dataclasses.replace(found, ahead=self.ahead if self.sharing.axis in access.axes else 0)

    def stores(self) -> Steps:
        """Stores as vectors of the neighbouring results that a lane holds."""
        fit, write = self.products.last, self.sharing.rows.last.writes[0]
        held = fit.made.fragment(fit.made.writes)
        for d, axis in enumerate(fit.axes[:2]):
            lanes = min(contiguous_slots(held, d), vector_lanes(write, axis, self.device)) if held is not None else 1
            if lanes > 1:
                return (Vectorize(axis, lanes),)
        return ()
