"""One read or write of a tensor in a task: the region that a tile touches, its strides, and how far it is contiguous.

All of it is derived by propagating extents through the indices.
"""

from __future__ import annotations

import dataclasses
import functools
import math
import operator
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from tilelang.computations.computation import Tensor
from tilelang.core.expr import Axis, Binary, Const, Expr, Read, Var
from tilelang.core.lazy import cached_property
from tilelang.core.simplify import linear

Tile = Mapping[str, int]  # the extent of a tile along each axis, by name
Operand: TypeAlias = str | Read  # what a `load` names: a tensor, or one read of it


def span(index: Expr, tile: Tile) -> int | None:
    """The distance from the least to the greatest value of an index in an aligned tile, both included; None if it depends on data.

    A remainder counts as if it did not wrap around: i % c takes at most c different values, and at most as many as i.

    >>> from tilelang.core.expr import Axis
    >>> i, r = Axis("i", 56), Axis("r", 3)
    >>> span(i * 2 + r - 1, {"i": 8, "r": 3}), span(i // 4, {"i": 8}), span(i % 4, {"i": 8})
    (17, 2, 4)
    """
    total = 1
    for atom, factor in linear(index)[0]:
        inner = _atom_span(atom, tile)
        if inner is None:
            return None
        total += abs(factor) * (inner - 1)
    return total


def _atom_span(atom: Expr, tile: Tile) -> int | None:
    match atom:
        case Var(name=name):
            return tile.get(name.removeprefix("@"), 1)
        case Axis(name=name):
            return tile.get(name, 1)
        case Binary("//", left, Const(value=c)) if (inner := span(left, tile)) is not None:
            divisor = int(c)
            aligned = inner % divisor == 0 or divisor % inner == 0
            return -(-inner // divisor) + (not aligned)
        case Binary("%", left, Const(value=c)) if (inner := span(left, tile)) is not None:
            return min(inner, int(c))
        case _:
            return None


def _points(index: Expr, tile: Tile) -> int:
    """The number of points of a tile along the axes of an index."""
    return math.prod([tile.get(name, 1) for name in axes_of(index)])


def axes_of(index: Expr) -> frozenset[str]:
    """The names of the axes on which an expression depends."""
    return frozenset(e.name.removeprefix("@") for e in index.walk() if isinstance(e, (Axis, Var)))


def axis_of(index: Expr) -> str:
    """The name of the axis, if an index is a plain axis; else the empty string."""
    return index.name.removeprefix("@") if isinstance(index, (Var, Axis)) else ""


@functools.lru_cache(maxsize=1 << 10)
def steps_of(index: Expr) -> Mapping[str, int]:
    """The coefficient of each axis in an index; axes inside quotients and remainders are left out."""
    found: dict[str, int] = {}
    for atom, factor in linear(index)[0]:
        if isinstance(atom, (Var, Axis)):
            found[axis_of(atom)] = found.get(axis_of(atom), 0) + factor
    return found


def _value(index: Expr, at: Tile) -> int | None:
    """The value of an index at a point, with 0 for axes that are not named and for values read from memory; None if unknown."""
    total = linear(index)[1]
    for atom, factor in linear(index)[0]:
        match atom:
            case Var(name=name):
                inner: int | None = at.get(name.removeprefix("@"), 0)
            case Axis(name=name):
                inner = at.get(name, 0)
            case Binary("//" | "%" as op, left, Const(value=c)):
                whole = _value(left, at)
                inner = None if whole is None else whole // int(c) if op == "//" else whole % int(c)
            case Read():
                inner = 0
            case _:
                inner = None
        if inner is None:
            return None
        total += factor * inner
    return total


@dataclasses.dataclass(frozen=True, eq=False)
class Access:
    """One read, or the write, of a tensor at indices over the nest's axes. written: the same indices over the task's own axes, in which
    schedules name a read; padded: whether a read outside the tensor gives a constant; ways: the number of different padding constants
    with which the computation reads this element, where a read without padding counts as one; read: the read itself, if no region
    serves it together with the others of its tensor, as A[i, k] and A[j, k] in the product of a matrix and its own transpose; named:
    whether a step can name this operand. A read that comes from a substituted definition occurs in no text."""

    tensor: Tensor
    indices: tuple[Expr, ...]
    written: tuple[Expr, ...] = ()
    store: bool = False
    padded: bool = False
    ways: int = 1
    read: Read | None = None
    named: bool = True

    @cached_property
    def name(self) -> str:
        return self.tensor.name

    @cached_property
    def operand(self) -> Operand:
        """What a `load` of it names: its tensor, or the read itself if other reads of the tensor need loads of their own."""
        return self.name if self.read is None else self.read

    @cached_property
    def affine(self) -> bool:
        """Whether every index is a sum of axes, so that its operand can be staged as a box."""
        return self.named and all(terms is not None for terms in self._sums)

    @cached_property
    def element_bytes(self) -> int:
        return self.tensor.dtype.bytes

    @cached_property
    def axes(self) -> frozenset[str]:
        """The axes on which it depends, without those that simplification removes, as in `i % 1`."""
        return frozenset(name for i in self.indices for atom, _ in linear(i)[0] for name in axes_of(atom))

    @cached_property
    def dims(self) -> frozenset[str]:
        """The names of its tensor's dimensions."""
        return frozenset(d.name for d in self.tensor.dims)

    @cached_property
    def beside(self) -> frozenset[str]:
        """The axes along which its elements are contiguous in memory."""
        return frozenset(a for a in self.axes if self.stride(a) == 1)

    @cached_property
    def gathered(self) -> bool:
        """Whether an index is read from a tensor."""
        return any(isinstance(e, Read) for i in self.indices for e in i.walk())

    @cached_property
    def divisions(self) -> int:
        """The largest number of quotients and remainders that its indices take of any one axis."""
        parts = [axes_of(e) for i in self.indices for e in i.walk() if isinstance(e, Binary) and e.op in ("//", "%")]
        return max((sum(a in names for names in parts) for a in self.axes), default=0)

    @cached_property
    def strides(self) -> tuple[int, ...]:
        """Elements from one index of a dimension to the next, row-major."""
        return tuple(math.prod(self.tensor.shape[d + 1 :]) for d in range(len(self.tensor.shape)))

    @cached_property
    def _sums(self) -> tuple[tuple[tuple[str, int], ...] | None, ...]:
        """For each index that is a linear combination of axes, its terms: axis names and coefficients. None for other indices."""
        forms = [linear(i)[0] for i in self.indices]
        plain = [all(isinstance(atom, (Var, Axis)) for atom, _ in form) for form in forms]
        named = [tuple((axis_of(atom), factor) for atom, factor in form) for form in forms]
        return tuple(terms if sums else None for terms, sums in zip(named, plain, strict=True))

    def _span(self, dim: int, tile: Tile) -> int | None:
        """The `span` of one of its indices."""
        if (terms := self._sums[dim]) is None:
            return span(self.indices[dim], tile)
        total = 1
        for name, factor in terms:
            total += abs(factor) * (tile.get(name, 1) - 1)
        return total

    @cached_property
    def _extents(self) -> Callable[[Tile], Any]:
        """The extents of a tile along its axes, as one key."""
        return operator.itemgetter(*sorted(self.axes)) if self.axes else lambda _: ()

    @cached_property
    def _boxes(self) -> dict[Any, tuple[int, ...]]:
        """Cached results of `box`, by the extents along its axes."""
        return {}

    @cached_property
    def _beyond(self) -> dict[Any, tuple[int, ...]]:
        """Cached results of `spans`."""
        return {}

    @cached_property
    def _footprints(self) -> dict[Any, int]:
        """Cached results of `footprint_bytes`."""
        return {}

    @cached_property
    def flat(self) -> Access:
        """The same access with fewer dimensions: those that a fused axis traverses without a gap in memory are merged."""
        dims, indices = list(self.tensor.dims[:1]), list(self.indices[:1])
        for dim, index in zip(self.tensor.dims[1:], self.indices[1:], strict=True):
            together = indices[-1] * dim.extent + index
            if len(linear(together)[0]) < len(linear(indices[-1])[0]) + len(linear(index)[0]):
                dims[-1], indices[-1] = Axis(f"{dims[-1].name}_{dim.name}", dims[-1].extent * dim.extent), together
            else:
                dims.append(dim)
                indices.append(index)
        if len(dims) == len(self.indices):
            return self
        return dataclasses.replace(self, tensor=Tensor(self.name, self.tensor.dtype, tuple(dims)), indices=tuple(indices))

    def _key(self, tile: Tile) -> Any:
        """The extents of a tile along its axes; 1 along those that the tile does not name."""
        try:
            return self._extents(tile)
        except KeyError:
            return self._extents({**dict.fromkeys(self.axes, 1), **tile})

    def box(self, tile: Tile) -> tuple[int, ...]:
        """The number of elements that a tile touches along each dimension, at most all. Where an index is read from a tensor, these are
        as many as it has points."""
        key = self._key(tile)
        found = self._boxes.get(key)
        if found is None:
            spans = [_points(i, tile) if (n := self._span(dim, tile)) is None else n for dim, i in enumerate(self.indices)]
            found = tuple([min(n, d) for n, d in zip(spans, self.tensor.shape, strict=True)])
            self._boxes[key] = found
        return found

    def region(self, tile: Tile) -> tuple[int, ...]:
        """The extents of the region that is copied for a tile: as `box`, but all of a dimension whose index is read from a tensor."""
        return tuple([min(n, d) for n, d in zip(self.spans(tile), self.tensor.shape, strict=True)])

    def spans(self, tile: Tile) -> tuple[int, ...]:
        """The extents of the region that a tile touches, without clipping it to the tensor; the tensor's where an index depends on
        data."""
        key = self._key(tile)
        found = self._beyond.get(key)
        if found is None:
            found = tuple([self._span(dim, tile) or extent for dim, extent in enumerate(self.tensor.shape)])
            self._beyond[key] = found
        return found

    def footprint_bytes(self, tile: Tile) -> int:
        """The bytes of the region in `box`."""
        key = self._key(tile)
        found = self._footprints.get(key)
        if found is None:
            found = self._footprints[key] = math.prod(self.box(tile)) * self.element_bytes
        return found

    def stride(self, axis: str) -> int | None:
        """The distance in row-major memory, in elements, from the first point of an axis to the second; None if it depends on data."""
        if axis not in self._strides and self._steps is not None:
            self._strides[axis] = self._steps.get(axis, 0)
        elif axis not in self._strides:
            gathered = (e for i in self.indices for e in i.walk() if isinstance(e, Read))
            decided = any(axis in axes_of(e) for e in gathered)
            first, second = self._offset({}), self._offset({axis: 1})
            self._strides[axis] = None if decided or first is None or second is None else second - first
        return self._strides[axis]

    @cached_property
    def _steps(self) -> Mapping[str, int] | None:
        """The strides of its axes if every index is a linear combination of axes, else None."""
        found: dict[str, int] = {}
        for terms, stride in zip(self._sums, self.strides, strict=True):
            if terms is None:
                return None
            for name, factor in terms:
                found[name] = found.get(name, 0) + factor * stride
        return found

    @cached_property
    def _strides(self) -> dict[str, int | None]:
        return {}

    def run(self, axis: str, extent: int) -> int:
        """How many points from the beginning of an axis are contiguous in memory; 1 if its stride is not 1.

        >>> import tilelang as tl
        >>> n, k = tl.axes(n=6, k=4)
        >>> Access(tl.input("B", tl.float32, k, n), (k, n)).run("n", 6)
        6
        """
        if self.stride(axis) != 1:
            return 1
        return self.regular(axis, extent)

    def regular(self, axis: str, extent: int) -> int:
        """How many points from the beginning of an axis are equally spaced: all of them, unless a fused axis ends a row."""
        step = self.stride(axis)
        if step is None or extent < 2:
            return 1
        if self._steps is not None:
            return extent
        if (axis, extent) not in self._regular:
            first, low, high = self._offset({}) or 0, 1, extent
            while low < high:  # binary search: once an offset is off the line, all later ones are
                middle = (low + high + 1) // 2
                low, high = (
                    (middle, high) if self._offset({axis: middle - 1}) == first + (middle - 1) * step else (low, middle - 1)
                )
            self._regular[axis, extent] = low
        return self._regular[axis, extent]

    @cached_property
    def _regular(self) -> dict[tuple[str, int], int]:
        return {}

    def _offset(self, at: Tile) -> int | None:
        found = [_value(i, at) for i in self.indices]
        if any(v is None for v in found):
            return None
        return sum(v * s for v, s in zip(found, self.strides, strict=True) if v is not None)
