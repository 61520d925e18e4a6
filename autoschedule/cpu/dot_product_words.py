"""Products of small integers by dot-product instructions of 32-bit words on CPUs: `vpdpbusd`, `sdot` and others.

Such an instruction adds to each 32-bit lane the products of a few elements that are consecutive along the reduction: those of one row,
which all lanes share, and those of the lane itself. Counted in words of 32 bits, the task is a product of 32-bit elements, so growth,
search and model need not treat it specially: `in_words` turns a task and its loops to words, and `in_elements` turns steps in words
back to steps in elements.

Generated schedules use only the integer instructions, because integer sums do not depend on the order. Floating-point ones round
differently and flush small numbers to 0, so only schedules that name them use them.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from tilelang.autoschedule.common.accesses import Access, Operand, axis_of
from tilelang.autoschedule.common.loop_summary import Loops, Placed
from tilelang.autoschedule.common.matrix_units import usable
from tilelang.autoschedule.common.task_accesses import Nest
from tilelang.computations.computation import Tensor
from tilelang.core.dtype import DType, int32
from tilelang.core.expr import INDEX, Axis, Binary, Cast, Expr, Pad, Read, Var, substitute
from tilelang.core.layout import Layout
from tilelang.core.lazy import cached_property
from tilelang.instructions.instruction import Instruction
from tilelang.profiles.profile import Profile
from tilelang.schedules.steps import Do, Place, Split, Step, Tile, Vectorize

if TYPE_CHECKING:
    from tilelang.autoschedule.cpu.device import CpuDevice


@dataclasses.dataclass(frozen=True)
class Dot:
    """A dot-product instruction of one thread."""

    made: Instruction
    lanes: int
    depth: int  # the number of elements along the reduction that each lane adds
    row: DType  # the type of the operand that all lanes share
    lane: DType  # the type of the other operand, which differs between lanes
    result: DType
    columns: str  # the names of its axes
    reduced: str


@functools.lru_cache(maxsize=64)
def dots(profile: Profile) -> tuple[Dot, ...]:
    """The integer dot-product instructions of a device, the widest first."""
    found = [dot for made in usable(profile, ()) if made.level == "thread" and (dot := _dot_of(made)) is not None]
    return tuple(sorted(found, key=lambda dot: -dot.lanes))


def _dot_of(made: Instruction) -> Dot | None:
    """An instruction as a dot product of words; None for other instructions."""
    means, axes = made.means, (made.means.target_axes, made.means.reduced)
    if means.combiner != "sum" or [len(a) for a in axes] != [1, 1] or made.operand(made.writes).memory != "register":
        return None
    (columns,), (reduced,) = axes
    reads = sorted(_factors(means.value) or (), key=lambda r: len(r.indices))
    if [set(r.indices) for r in reads] != [{reduced}, {reduced, columns}]:
        return None
    row, lane, result = (made.operand(name) for name in (*(r.tensor.name for r in reads), made.writes))
    fragment, whole = lane.fragment, any(len(o.dtypes) != 1 or o.memory != "register" for o in (row, lane))
    if whole or fragment is None or result.dtypes[0].bytes != 4 or result.dtypes[0].kind not in ("int", "uint"):
        return None
    at = [d.name for d in lane.dims]
    wanted = [{reduced.name: slot % reduced.extent, columns.name: slot // reduced.extent} for slot in range(fragment.slots)]
    if fragment.lanes != 1 or fragment.table[0].tolist() != [[point[d] for d in at] for point in wanted]:
        return None
    if row.dtypes[0].bytes * reduced.extent != 4 or lane.dtypes[0].bytes * reduced.extent != 4:
        return None
    types = row.dtypes[0], lane.dtypes[0], result.dtypes[0]
    return Dot(made, columns.extent, reduced.extent, *types, columns.name, reduced.name)


def _factors(value: Expr) -> tuple[Read, Read] | None:
    """Both reads, padded or not, of a product whose factors are cast to its type; None for other values."""
    if not isinstance(value, Binary) or value.op != "*":
        return None
    wholes = [side.operand for side in (value.left, value.right) if isinstance(side, Cast)]
    reads = [e.read if isinstance(e, Pad) else e for e in wholes]
    first, second = reads if len(reads) == 2 else (None, None)
    return (first, second) if isinstance(first, Read) and isinstance(second, Read) else None


@dataclasses.dataclass(frozen=True, eq=False)
class Words:
    """A nest that is computed by dot products of words."""

    nest: Nest
    dots: Mapping[int, Dot]  # by their number of lanes
    row: Access  # the read of the operand that all lanes share
    lane: Access  # the read of the other operand
    reduced: str  # the axis along which consecutive elements form a word

    @cached_property
    def depth(self) -> int:
        return next(iter(self.dots.values())).depth

    def count(self, sizes: Mapping[str, int]) -> dict[str, int]:
        """Extents in words."""
        return {a: -(-n // self.depth) if a == self.reduced else n for a, n in sizes.items()}

    def name(self, access: Access, axis: str, layout: Layout | None) -> str:
        """The name of an axis in the region of a read: that of its dimension, or its own name if the region is laid out over axes."""
        dims = {d.name for d in access.tensor.dims}
        if layout is not None and set(layout.dims) != dims:
            return axis
        return next((d.name for d, i in zip(access.tensor.dims, access.indices, strict=True) if axis_of(i) == axis), axis)

    @cached_property
    def nest_in_words(self) -> Nest:
        """The nest in words."""
        extents = self.count(self.nest.extents)
        axes = tuple(dataclasses.replace(a, extent=extents[a.name]) for a in self.nest.axes)
        operation = {max(self.dots.items())[1].made.name: 1}
        return dataclasses.replace(self.nest, axes=axes, accesses=tuple(map(self.access, self.nest.accesses)),
                                   varying={frozenset(a.name for a in axes): operation})  # fmt: skip

    @cached_property
    def _accesses(self) -> dict[Access, Access]:
        return {access: self._in_words(access) for access in (self.row, self.lane)}

    def access(self, access: Access) -> Access:
        """A read of the nest in words."""
        return self._accesses.get(access, access)

    def _in_words(self, access: Access) -> Access:
        along = self.name(access, self.reduced, None)
        dims = tuple(Axis(d.name, -(-d.extent // self.depth)) if d.name == along else d for d in access.tensor.dims)
        return dataclasses.replace(access, tensor=Tensor(access.name, int32, dims))

    @cached_property
    def staged(self) -> frozenset[Operand]:
        """Operands that cannot be read in place: that of the lanes, and a row that is padded or not contiguous along the reduction."""
        apart = self.row.padded or self.row.stride(self.reduced) != 1
        return frozenset((self.lane.operand, self.row.operand) if apart else (self.lane.operand,))

    def takes(self, vector: tuple[str, int] | None) -> bool:
        """Whether one of the instructions has its lanes along such a vector."""
        if vector is None or vector[1] not in self.dots or vector[0] not in self.nest.spatial_extents:
            return False
        return vector[0] in self.lane.axes and vector[0] not in self.row.axes


def words(nest: Nest, device: CpuDevice, reduced: str | None = None) -> Iterator[Words]:
    """The ways to compute a nest with the dot products of a device. reduced: only along this axis."""
    states = nest.task.states
    if len(states) != 1 or states[0].reduce.combiner.name != "sum" or states[0].reduce.condition is not None:
        return
    reads = _factors(states[0].reduce.values[0])
    if reads is None:
        return
    found = [[a for a in nest.reads if (a.tensor, a.written) == (r.tensor, r.indices)] for r in reads]
    if any(len(a) != 1 or len(nest.operands[a[0].operand]) > 1 for a in found):
        return
    (first,), (second,) = found
    for row, lane in ((first, second), (second, first)):
        types = row.tensor.dtype, lane.tensor.dtype, states[0].reduce.values[0].dtype
        fitting = {dot.lanes: dot for dot in device.dots if (dot.row, dot.lane, dot.result) == types}
        depth = max((dot.depth for dot in fitting.values()), default=0)
        axes = [a for a in nest.reduced if reduced in (None, a.name) and a.extent >= depth]
        along = [a for a in axes if _alone(row, a.name) and _alone(lane, a.name)]
        if fitting and along:
            axis = max(along, key=lambda a: (row.stride(a.name) == 1, a.extent))
            yield Words(nest, fitting, row, lane, axis.name)


def _alone(access: Access, axis: str) -> bool:
    """Whether an axis is one index of a read by itself, and occurs in no other."""
    along = [i for i in access.indices if any(isinstance(e, Expr) and axis_of(e) == axis for e in i.walk())]
    return len(along) == 1 and axis_of(along[0]) == axis


# ---------------------------------------------------------------- loops


def in_words(loops: Loops, device: CpuDevice) -> Loops:
    """The loops of a schedule that ends in a dot product, in words; other loops unchanged."""
    if loops.instruction is None or (dot := next((d for d in device.dots if d.made.name == loops.instruction), None)) is None:
        return loops
    bound = dict(loops.binding)
    vector = bound.get(dot.columns, dot.columns), dot.lanes
    made = next((w for w in words(loops.nest, device, bound.get(dot.reduced, dot.reduced)) if w.takes(vector)), None)
    if made is None:
        return loops
    try:
        # the row operand in registers is broadcast to all lanes, like a single element
        kept = [p for p in loops.places if p.access is not made.row or p.memory != "register"]
        places = tuple(_placed(p, made) for p in kept)
    except NotInWords:
        return loops
    tiles = tuple(map(made.count, loops.tiles))
    return dataclasses.replace(loops, nest=made.nest_in_words, tiles=tiles, places=places, vector=vector)


class NotInWords(Exception):
    """The steps have a layout in which the elements of a word are not contiguous."""


def _placed(place: Placed, made: Words) -> Placed:
    tile, cut = made.count(place.tile), made.count(place.cut or {})
    if place.access is None or place.access not in (made.row, made.lane):
        return dataclasses.replace(place, tile=tile, cut=cut)
    layout, vector = place.layout, place.vector
    name = made.name(place.access, made.reduced, layout)
    if vector is not None and vector[0] == name:
        vector = (name, vector[1] // made.depth) if vector[1] >= 2 * made.depth else None
    if place.memory == "shared" and layout is not None and layout.terms:
        layout = _layout_in_words(layout, Var(name, INDEX), made.depth)
    return dataclasses.replace(place, access=made.access(place.access), tile=tile, cut=cut, layout=layout, vector=vector)


def _layout_in_words(layout: Layout, variable: Var, depth: int) -> Layout:
    """The layout of words, from a layout of elements in which the elements of a word are last."""
    whole, rest = variable // depth, variable % depth
    terms = tuple(variable if t == whole else t for t in layout.terms[:-1])
    if layout.terms[-1] != rest or whole in terms or rest in terms:
        raise NotInWords
    return dataclasses.replace(layout, terms=terms)


# ---------------------------------------------------------------- steps


def in_elements(steps: tuple[Step, ...], made: Words) -> tuple[Step, ...]:
    """Steps in words, which end in vectors, as steps of the nest itself, which end in the instruction."""
    *above, vector = steps
    assert isinstance(vector, Vectorize) and isinstance(vector.lanes, int)
    return tuple(_ToElements(made, vector.axis, vector.lanes).steps(above))


class _ToElements:
    """Translates steps in words to steps of the nest. layouts: of the operands in shared memory."""

    def __init__(self, made: Words, axis: str, lanes: int) -> None:
        self.made, self.axis, self.lanes = made, axis, lanes
        self.layouts: dict[Operand, Layout | None] = {}
        self.loaded = False  # whether the lanes' operand is in registers

    def steps(self, above: list[Step]) -> Iterator[Step]:
        made = self.made
        walks = [n for n, s in enumerate(above) if isinstance(s, Split) and not s.unroll and made.reduced in dict(s.sizes)]
        if walks and made.nest.extents[made.reduced] % made.depth:  # a partial last word, peeled off
            above[walks[-1]] = above[walks[-1]].replace(peel=True)
        for step in above:
            yield self.step(step)
        if not self.loaded:
            yield self.registers(made.lane, self.axis, self.lanes)
        yield self.registers(made.row, made.reduced, made.depth)
        dot = made.dots[self.lanes]
        yield Do(dot.made.name, ((dot.columns, self.axis), (dot.reduced, made.reduced)))

    def step(self, step: Step) -> Step:
        match step:
            case Tile(sizes=sizes) | Split(sizes=sizes):
                return step.replace(sizes=tuple((a, self.size(a, n) if isinstance(n, int) else n) for a, n in sizes))
            case Place(verb="load", memory="shared") if step.what in (self.made.row.operand, self.made.lane.operand):
                return self.staged(step)
            case Place(verb="load", memory="register"):
                self.loaded = self.loaded or step.what in (self.made.lane.operand,)
        return step

    def size(self, axis: str, size: int) -> int:
        """A size in elements. Along the vectors it is rounded up to whole vectors, because the instruction has no partial ones."""
        if axis == self.axis:
            return -(-size // self.lanes) * self.lanes
        return size * self.made.depth if axis == self.made.reduced else size

    def registers(self, access: Access, axis: str, lanes: int) -> Place:
        """The load of an instruction's operand into registers, in vectors along an axis."""
        name = self.made.name(access, axis, self.layouts.get(access.operand))
        return Place("load", access.operand, "register", steps=(Vectorize(name, lanes),))

    def staged(self, step: Place) -> Place:
        """The load of an operand into shared memory, where the elements of a word are contiguous."""
        made = self.made
        access = made.row if step.what in (made.row.operand,) else made.lane
        names, layout = [d.name for d in access.tensor.dims], step.layout
        if layout is None:
            if access is made.row and names[-1] == made.name(access, made.reduced, None):
                return step.replace(steps=None)  # they are contiguous in the tensor
            layout = Layout(tuple(Var(n, INDEX) for n in names))
        name = made.name(access, made.reduced, layout)
        word = Var(name, INDEX)
        terms = tuple(substitute(t, {word: word // made.depth}) for t in layout.terms)
        layout = self.layouts[access.operand] = layout.replace(terms=(*terms, word % made.depth))
        return step.replace(layout=layout, steps=self.moved(step.steps, access, name))

    def moved(self, steps: tuple[Step, ...] | None, access: Access, name: str) -> tuple[Step, ...] | None:
        """A copy of whole words, if their elements are contiguous in memory; otherwise a vectorized copy along the contiguous axis, for
        one element of each word after another."""
        depth = self.made.depth
        if access.stride(self.made.reduced) == 1:
            return (Vectorize(name, depth),)
        match steps:
            case (Vectorize(axis, lanes),):
                return Split(((name, depth), (axis, lanes))), Split(((name, 1),), unroll=True), Vectorize(axis, lanes)
            case _:
                return None
