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


TENSOR_END = "tensor:"  # what the keys of bounds at a tensor's own ends begin with


@dataclasses.dataclass(frozen=True)
class Residence(abc.ABC):
    """A tensor, or one read of it, in a buffer.

    fill: the value of every element that the move found outside (None: such elements hold nothing). outside: elements outside the
    tensor hold `fill` too. steps: how its owners were spread. points: by
    access, the axes that stand for the dimensions: one element per point of them. ends: bounds of each dimension, counted from where it
    begins, beyond which it holds nothing at all, though there is room. moved: those within which it holds the tensor's own elements, of
    what was moved; its other elements hold `fill`.
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
        """Whether it holds what a read wants. whole: the read as it stands, its padding included."""
        return read.tensor is self.tensor and (self.read is None or self.read is whole or self.read is read)

    def element(self, indices: tuple[Expr, ...], axes: Mapping[Expr, Expr]) -> tuple[Expr, ...]:
        """How an element is counted here. indices: in the tensor; axes: the coordinate of every axis at the reader."""
        return tuple(axes[p] for p in self.points) or indices

    @abc.abstractmethod
    def at(self, indices: tuple[Expr, ...]) -> tuple[Expr, ...]:
        """Buffer indices of an element."""

    def there(self, element: tuple[Expr, ...]) -> list[Expr]:
        """The conditions under which an element stands in the buffer and something was written there. Layouts come after that."""
        return within(self.at(element), self.buffer.shape or (1,))

    def _made(self, element: tuple[Expr, ...], low: tuple[Expr, ...]) -> list[Expr]:
        return [b.holds(simplify(i - begin)) for i, begin, ends in zip(element, low, self.ends, strict=False) for b in ends]

    def own(self, element: tuple[Expr, ...]) -> tuple[Expr, ...]:
        """The conditions without which what stands there is another element."""
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
    """A block's partial states in a workspace: at the block's number along each split axis, then the coordinates.

    grid: (axis, piece) of each of these axes.
    """

    grid: tuple[tuple[str, int], ...] = ()

    def element(self, indices: tuple[Expr, ...], axes: Mapping[Expr, Expr]) -> tuple[Expr, ...]:
        # An axis that is fused or unfused below was not cut: one block takes it whole.
        return (*(axes.get(point(n), index(0)) // size for n, size in self.grid), *indices)

    def at(self, indices: tuple[Expr, ...]) -> tuple[Expr, ...]:
        return indices


@dataclasses.dataclass(frozen=True)
class Box(Residence):
    """A region from `low` on, in a buffer with a layout. slot: the ring's current buffer; unit: whose copy, where each has one."""

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
    """Which coordinates of one dimension a thread has: unit + the offsets {least + sum c_k x_k}, 0 <= x_k < n_k.

    unit: fixed while the thread has them. strides maps each c_k to the step of its slot numbers; None: slots are offsets (dense). own:
    the offsets of these that a thread has, where a walk or a vector goes beyond its tile; None: all. by_thread: those of each thread,
    where they are not the same for all, as where there are more threads than tiles; own is then what any has. thread: the number of a
    thread.
    """

    unit: Expr
    least: int
    size: int
    strides: tuple[tuple[int, int, int], ...] | None  # (c_k, n_k, slot stride), largest c first
    own: tuple[int, ...] | None = None
    by_thread: tuple[tuple[int, ...], ...] | None = None
    thread: Expr | None = None

    def slot(self, rest: list[tuple[Expr, int]], constant: int) -> Expr | None:
        """The slot of an offset given as terms; None where it has no constant-stride form."""
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
        """(x, values) for an offset that has a slot: the thread has the element where every x is one of its values."""
        if self.own is None:
            return [(x, range(n)) for x, n in self.digits(rest, constant)]
        total: Expr = index(constant)
        for atom, c in rest:
            total = total + atom * c
        found: list[tuple[Expr, Sequence[int]]] = [(simplify(total), self.own)]
        if self.by_thread is not None and self.thread is not None and self.own:
            least, count = min(self.own), max(self.own) - min(self.own) + 1  # each thread's offsets have numbers of their own
            numbers = tuple(t * count + o - least for t, offsets in enumerate(self.by_thread) for o in offsets)
            found.append((simplify(self.thread * count + total - least), numbers))
        return found

    def digits(self, rest: list[tuple[Expr, int]], constant: int) -> list[tuple[Expr, int]]:
        """(x, n) for an offset that has a slot, which lies in the share where every 0 <= x < n."""
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
    """Who made the elements of a share, so that others may be handed them.

    leaf: what a thread has at a time along each dimension, over the walks of look-ahead: an element is its own within these bounds.
    present: the conditions under which a thread has any; alone: those under which no other of its unit hands on the same elements.
    units: the threads of each unit (warp, warpgroup, block) that owns one copy of the elements.
    """

    leaf: tuple[AxisState, ...]
    units: int
    present: tuple[Expr, ...] = ()
    alone: tuple[Expr, ...] = ()

    @property
    def walks(self) -> tuple[Var, ...]:
        """The variables of its walks, in order."""
        found = (v for a in self.leaf for e in (a.base, *(b.offset for b in a.bounds)) for v in e.walk())
        return tuple(dict.fromkeys(v for v in found if isinstance(v, Var) and v.name.startswith("?")))


@dataclasses.dataclass(frozen=True)
class Share(Residence):
    """Every thread has some elements, in registers: its share, dimension by dimension. owners: None where nobody is handed them."""

    low: tuple[Expr, ...] = ()
    dims: tuple[DimShare, ...] = ()
    owners: Owners | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """What the elements are counted along."""
        return tuple(p.name[1:] for p in self.points) or tuple(d.name for d in self.tensor.dims)

    def at(self, indices: tuple[Expr, ...]) -> tuple[Expr, ...]:
        found = []
        for d, (i, low, share) in enumerate(zip(indices, self.low, self.dims, strict=True)):
            terms = self._terms(share, i - low)
            slot = None if terms is None else share.slot(*terms)
            if slot is None:
                raise self.foreign(d, indices)
            if share.size > 1:  # the buffer has no dimension for what every thread has one of
                found.append(slot)
        return tuple(found) or (index(0),)

    def inside(self, at: tuple[Expr, ...]) -> tuple[Expr, ...]:
        """The element that the thread has in a register, counted from where the region begins."""
        slots = iter(at)
        return tuple(simplify(d.unit + d.offset(next(slots) if d.size > 1 else index(0))) for d in self.dims)

    def piece(self) -> tuple[tuple[Var, ...], tuple[Expr, ...], tuple[Expr, ...]]:
        """What a thread has of one leaf: the variables that run over it, the register, and the element from the leaf's first."""
        assert self.owners is not None
        return (), self.at(tuple(a.base for a in self.owners.leaf)), tuple(index(0) for _ in self.dims)

    @staticmethod
    def _terms(share: DimShare, offset: Expr) -> tuple[list[tuple[Expr, int]], int] | None:
        """An offset from where this thread's part begins, as terms; None where it is another part."""
        terms, constant = linear(offset - share.unit)
        if not any(is_thread_part(atom) for atom, _ in terms):
            return list(terms), constant
        if share.unit is index(0) and share.strides is None:  # everybody has all of it
            return [(simplify(offset), 1)], 0
        return None

    def beyond(self, indices: tuple[Expr, ...]) -> list[tuple[int, Expr, Sequence[int]]]:
        """(dimension, x, values) for indices that have slots: the thread has the element only where x is one of the values, which is
        not certain."""
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
        """That a reader wants an element that the thread has not; d: the dimension that tells."""
        return NotOwner(self, d, [simplify(i - low) for i, low in zip(indices, self.low, strict=True)])


@dataclasses.dataclass(frozen=True)
class Fixed(Residence):
    """One slot of a register buffer."""

    slots: tuple[Expr, ...] = ()

    def at(self, indices: tuple[Expr, ...]) -> tuple[Expr, ...]:
        return self.slots


@dataclasses.dataclass(frozen=True)
class Staging(Residence):
    """Where a fetched element waits; its slots come from the walks of the move."""

    def at(self, indices: tuple[Expr, ...]) -> tuple[Expr, ...]:
        return ()


class NotOwner(Exception):
    """A reader wants an element that it has not. offsets: the element, from where the share's region begins; dim: where it fails."""

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
    if isinstance(values, range):  # it may have more numbers than can be looked at
        return first in values and last in values and (values.step == 1 or first == last)
    return last - first < len(values) and all(v in values for v in range(first, last + 1))
