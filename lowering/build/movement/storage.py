"""Where a tensor is resident: whole, as a region in a buffer, as slices in registers, or as one slot of them.

A Residence answers "where is element [i, j] of tensor X".
"""

from __future__ import annotations

import abc
import dataclasses
from collections.abc import Mapping, Sequence

from tilelang.computations.computation import Tensor
from tilelang.core.expr import Const, Expr, Pad, Read, Var, index
from tilelang.core.layout import Placement
from tilelang.core.simplify import FALSE, interval, linear, simplify
from tilelang.lowering import ir
from tilelang.lowering.sets import extremes
from tilelang.schedules.spec import AxisState, Bound, point
from tilelang.schedules.steps import Step


def is_thread_part(atom: Expr) -> bool:
    """Whether a term of an index differs between the threads of a block."""
    return any(isinstance(e, Var) and e.name == "thread" for e in atom.walk())


TENSOR_END = "tensor:"  # prefix of the keys of bounds at a tensor's own ends


@dataclasses.dataclass(frozen=True)
class Residence(abc.ABC):
    """A tensor, or one read of it, in a buffer.

    fill: the value of every element that the move found outside the bounds (None: such elements are undefined). outside: whether
    elements outside the tensor hold `fill` too. steps: the tiles that distributed it over its owners. points: if it was staged by
    access, the axes in place of the dimensions: one element per point. ends: bounds of each dimension, counted from its begin,
    beyond which the buffer has room but no elements. moved: bounds within which it holds the tensor's own elements; its other
    elements hold `fill`.
    """

    tensor: Tensor
    read: Read | Pad | None
    buffer: ir.Buffer
    fill: Const | None = None
    outside: bool = False
    steps: tuple[Step, ...] = ()
    points: tuple[Var, ...] = ()
    ends: tuple[tuple[Bound, ...], ...] = ()
    moved: tuple[tuple[Bound, ...], ...] = ()

    def serves(self, read: Read, whole: Read | Pad) -> bool:
        """Whether a read can be served from here. whole: the read with its padding."""
        return read.tensor is self.tensor and (self.read is None or self.read is whole or self.read is read)

    def element(self, indices: tuple[Expr, ...], axes: Mapping[Expr, Expr]) -> tuple[Expr, ...]:
        """The coordinates of an element in this residence. indices: in the tensor; axes: the value of every axis at the reader."""
        return tuple(axes[p] for p in self.points) or indices

    @abc.abstractmethod
    def at(self, indices: tuple[Expr, ...]) -> tuple[Expr, ...]:
        """Buffer indices of an element."""

    def there(self, element: tuple[Expr, ...]) -> list[Expr]:
        """The conditions under which an element is in the buffer and has been written; before the layout is applied."""
        return within(self.at(element), self.buffer.shape or (1,))

    def _made(self, element: tuple[Expr, ...], low: tuple[Expr, ...]) -> list[Expr]:
        return [b.holds(simplify(i - begin)) for i, begin, ends in zip(element, low, self.ends, strict=False) for b in ends]

    def own(self, element: tuple[Expr, ...]) -> tuple[Expr, ...]:
        """The conditions under which the buffer holds this element and not another one in its place."""
        return ()


@dataclasses.dataclass(frozen=True)
class Whole(Residence):
    """The whole tensor, in global memory."""

    def at(self, indices: tuple[Expr, ...]) -> tuple[Expr, ...]:
        return indices


@dataclasses.dataclass(frozen=True)
class Scalar(Whole):
    """A tensor without dimensions: one element."""

    def at(self, indices: tuple[Expr, ...]) -> tuple[Expr, ...]:
        return (index(0),)


@dataclasses.dataclass(frozen=True)
class Partial(Residence):
    """The partial results of a block in a workspace, indexed by the block's number along each split axis, then by the
    coordinates.

    grid: (axis, tile size) of each split axis.
    """

    grid: tuple[tuple[str, int], ...] = ()

    def element(self, indices: tuple[Expr, ...], axes: Mapping[Expr, Expr]) -> tuple[Expr, ...]:
        # An axis that is fused or unfused later was not cut: one block has all of it.
        return (*(axes.get(point(n), index(0)) // size for n, size in self.grid), *indices)

    def at(self, indices: tuple[Expr, ...]) -> tuple[Expr, ...]:
        return indices


@dataclasses.dataclass(frozen=True)
class Box(Residence):
    """A region from `low` on, in a buffer with a layout. slot: which buffer of a ring; unit: which unit's copy, if each has its own."""

    low: tuple[Expr, ...] = ()
    placement: Placement | None = None
    slot: Expr | None = None
    unit: tuple[Expr, ...] = ()

    def at(self, indices: tuple[Expr, ...]) -> tuple[Expr, ...]:
        assert self.placement is not None
        local = tuple(simplify(i - low) for i, low in zip(indices, self.low, strict=True))
        ring = () if self.slot is None else (self.slot,)
        return (*ring, *self.unit, *self.placement.at(local))

    def there(self, element: tuple[Expr, ...]) -> list[Expr]:
        assert self.placement is not None
        extents = tuple((v.upper or 0) + 1 for v in self.placement.variables)
        local = tuple(simplify(i - low) for i, low in zip(element, self.low, strict=True))
        return [*within(local, extents), *self._made(element, self.low)]


@dataclasses.dataclass(frozen=True)
class DimShare:
    """The coordinates of one dimension that a thread has: unit + the offsets {least + sum c_k x_k}, 0 <= x_k < n_k.

    unit: constant for a thread's part. strides maps each c_k to the step of its slot numbers; None: slots are offsets (dense). own: the
    offsets that a thread really has, if a loop or vector runs beyond its tile; None: all. by_thread: the offsets of each thread if they
    differ, as with more threads than tiles; `own` is then their union. thread: the thread index.
    """

    unit: Expr
    least: int
    size: int
    strides: tuple[tuple[int, int, int], ...] | None  # (c_k, n_k, slot stride), largest c first
    own: tuple[int, ...] | None = None
    by_thread: tuple[tuple[int, ...], ...] | None = None
    thread: Expr | None = None

    def slot(self, rest: list[tuple[Expr, int]], constant: int) -> Expr | None:
        """The slot of an offset, given as terms; None if it is not a sum of terms with constant strides."""
        if self.strides is None:
            return self.digits(rest, constant)[0][0]
        strides = {c: stride for c, _, stride in self.strides}
        if constant != self.least or any(c not in strides for _, c in rest):
            return None
        total: Expr = index(0)
        for atom, c in rest:
            total = total + atom * strides[c]
        return simplify(total)

    def tests(self, rest: list[tuple[Expr, int]], constant: int) -> list[tuple[Expr, Sequence[int]]]:
        """(x, values) for an offset that has a slot: the thread has the element if every x is one of its values."""
        if self.own is None:
            return [(x, range(n)) for x, n in self.digits(rest, constant)]
        total: Expr = index(constant)
        for atom, c in rest:
            total = total + atom * c
        found: list[tuple[Expr, Sequence[int]]] = [(simplify(total), self.own)]
        if self.by_thread is not None and self.thread is not None and self.own:
            least, count = min(self.own), max(self.own) - min(self.own) + 1  # numbers the offsets of all threads without overlap
            numbers = tuple(t * count + o - least for t, offsets in enumerate(self.by_thread) for o in offsets)
            found.append((simplify(self.thread * count + total - least), numbers))
        return found

    def digits(self, rest: list[tuple[Expr, int]], constant: int) -> list[tuple[Expr, int]]:
        """(x, n) for an offset that has a slot: it lies in the share if every 0 <= x < n."""
        if self.strides is None:
            total: Expr = index(constant - self.least)
            for atom, c in rest:
                total = total + atom * c
            return [(simplify(total), self.size)]
        found = []
        for c, n, _ in self.strides:
            digit: Expr = index(0)
            for atom, d in rest:
                digit = digit + atom if d == c else digit
            found.append((simplify(digit), n))
        return found

    def offset(self, slot: Expr) -> Expr:
        """The offset that a slot holds."""
        if self.strides is None:
            return slot + self.least
        total: Expr = index(self.least)
        for c, n, stride in self.strides:
            total = total + ((slot // stride) % n) * c
        return simplify(total)


@dataclasses.dataclass(frozen=True)
class Owners:
    """Which thread made which element of a share; needed to pass elements on to other threads.

    leaf: the tile of a thread along each dimension, over the look-ahead's loop variables: a thread owns the elements within these
    bounds. present: the conditions under which a thread has any. alone: the conditions that select one of several threads with
    the same elements. units: the threads of each unit (warp, warpgroup, block) that has its own copy of the elements.
    """

    leaf: tuple[AxisState, ...]
    units: int
    present: tuple[Expr, ...] = ()
    alone: tuple[Expr, ...] = ()

    @property
    def walks(self) -> tuple[Var, ...]:
        """Its look-ahead loop variables, in order."""
        found = (v for a in self.leaf for e in (a.base, *(b.offset for b in a.bounds)) for v in e.walk())
        return tuple(dict.fromkeys(v for v in found if isinstance(v, Var) and v.name.startswith("?")))


@dataclasses.dataclass(frozen=True)
class Share(Residence):
    """A tensor distributed over the registers of threads, dimension by dimension. owners: None if elements are never passed to
    other threads."""

    low: tuple[Expr, ...] = ()
    dims: tuple[DimShare, ...] = ()
    owners: Owners | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the dimensions, or of the axes in their place."""
        return tuple(p.name[1:] for p in self.points) or tuple(d.name for d in self.tensor.dims)

    def at(self, indices: tuple[Expr, ...]) -> tuple[Expr, ...]:
        found = []
        for d, (i, low, share) in enumerate(zip(indices, self.low, self.dims, strict=True)):
            terms = self._terms(share, i - low)
            slot = None if terms is None else share.slot(*terms)
            if slot is None:
                raise self.foreign(d, indices)
            if share.size > 1:  # the buffer has no dimension where every thread has one element
                found.append(slot)
        return tuple(found) or (index(0),)

    def inside(self, at: tuple[Expr, ...]) -> tuple[Expr, ...]:
        """The element that the thread has in a register, counted from the start of the region."""
        slots = iter(at)
        return tuple(simplify(d.unit + d.offset(next(slots) if d.size > 1 else index(0))) for d in self.dims)

    def piece(self) -> tuple[tuple[Var, ...], tuple[Expr, ...], tuple[Expr, ...]]:
        """What a thread holds of one innermost tile: the variables that iterate over it, the register, and the element
        relative to the tile's first."""
        assert self.owners is not None
        return (), self.at(tuple(a.base for a in self.owners.leaf)), tuple(index(0) for _ in self.dims)

    @staticmethod
    def _terms(share: DimShare, offset: Expr) -> tuple[list[tuple[Expr, int]], int] | None:
        """An offset as terms relative to the begin of this thread's part; None if it belongs to another part."""
        terms, constant = linear(offset - share.unit)
        if not any(is_thread_part(atom) for atom, _ in terms):
            return list(terms), constant
        if share.unit is index(0) and share.strides is None:  # every thread has all elements
            return [(simplify(offset), 1)], 0
        return None

    def beyond(self, indices: tuple[Expr, ...]) -> list[tuple[int, Expr, Sequence[int]]]:
        """(dimension, x, values) for indices that have slots: the thread has the element only if x is one of the values, which
        is not certain."""
        found = []
        for d, (i, low, share) in enumerate(zip(indices, self.low, self.dims, strict=True)):
            terms = self._terms(share, i - low)
            for x, values in share.tests(*terms) if terms is not None else ():
                if not any(_all_among(*ends(x), values) for ends in (interval, _extremes)):
                    found.append((d, x, values))
        return found

    def there(self, element: tuple[Expr, ...]) -> list[Expr]:
        written = self.own(element) if self.fill is None else ()  # a move fills all of a thread's registers, a stage does not
        return [*super().there(element), *self._made(element, self.low), *written]

    def own(self, element: tuple[Expr, ...]) -> tuple[Expr, ...]:
        found: list[Expr] = []
        for _, x, values in self.beyond(element):
            run = isinstance(values, range) and values.step == 1
            found += [index(values[0]) <= x, x <= index(values[-1])] if run else [FALSE]
        return tuple(found)

    def foreign(self, d: int, indices: tuple[Expr, ...]) -> NotOwner:
        """The error of a reader that needs an element which its thread does not have. d: the dimension that shows it."""
        return NotOwner(self, d, [simplify(i - low) for i, low in zip(indices, self.low, strict=True)])


@dataclasses.dataclass(frozen=True)
class Fixed(Residence):
    """A single slot of a register buffer."""

    slots: tuple[Expr, ...] = ()

    def at(self, indices: tuple[Expr, ...]) -> tuple[Expr, ...]:
        return self.slots


@dataclasses.dataclass(frozen=True)
class Staging(Residence):
    """Registers in which fetched elements wait; their slots follow the loops of the move."""

    def at(self, indices: tuple[Expr, ...]) -> tuple[Expr, ...]:
        return ()


class NotOwner(Exception):
    """A thread reads an element that it does not have. offsets: the element, from the start of the share's region; dim: the
    dimension that shows it."""

    def __init__(self, share: Share, dim: int, offsets: Sequence[Expr]) -> None:
        super().__init__(share.tensor.name)
        self.share, self.dim, self.offsets = share, dim, offsets


def within(indices: Sequence[Expr], shape: Sequence[int]) -> list[Expr]:
    """The conditions under which indices lie in a shape."""
    return [c for i, n in zip(indices, shape, strict=True) for c in (index(0) <= i, i < n)]


def _extremes(x: Expr) -> tuple[int | None, int | None]:
    return extremes(x, ())


def _all_among(first: int | None, last: int | None, values: Sequence[int]) -> bool:
    """Whether every whole number from first to last is one of the values. None: no bound is known."""
    if first is None or last is None:
        return False
    if isinstance(values, range):  # a range may be too long to enumerate
        return first in values and last in values and (values.step == 1 or first == last)
    return last - first < len(values) and all(v in values for v in range(first, last + 1))
