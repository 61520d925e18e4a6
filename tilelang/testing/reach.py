"""The elements that the points of a computation read, each with the unit that has the point: part of the naive interpretation.

It knows expressions and definitions, but not the lowering. Indices, conditions, padding and gathers are evaluated at every point; reads
of an inlined definition are followed, element by element, to what is in memory: the inputs, and what was placed or computed before.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Collection, Iterable, Mapping
from typing import Any

import numpy as np

from tilelang.computations.computation import Tensor
from tilelang.core.expr import Axis, Binary, Cast, Const, Expr, Pad, Read, Reduce, Select, Unary, Var

Array = Any
MOST_POINTS = 1 << 20
MOST_MARKS = 1 << 22
FAR = 1 << 40  # a coordinate outside of any tensor
_by_zero = np.errstate(divide="ignore", invalid="ignore")  # which gives 0
OPERATIONS = {"+": np.add, "-": np.subtract, "*": np.multiply, "^": np.bitwise_xor,
              "//": _by_zero(np.floor_divide), "%": _by_zero(np.mod),
              "min": np.minimum, "max": np.maximum, "&": np.bitwise_and, "|": np.bitwise_or, "==": np.equal, "!=": np.not_equal,
              "<": np.less, "<=": np.less_equal, "and": np.logical_and, "or": np.logical_or}  # fmt: skip


class NotRead(Exception):
    """A step or a computation that the naive interpretation does not cover."""


@dataclasses.dataclass
class Points:
    """Points of a definition. at: the coordinates by axis; unit: for each point, the number of the unit that has it."""

    at: dict[str, Array]
    unit: Array

    def where(self, chosen: Array) -> Points:
        return Points({name: column[chosen] for name, column in self.at.items()}, self.unit[chosen])


@dataclasses.dataclass
class Reach:
    """The elements that points reach.

    must: only the elements that are read whatever the data are. Otherwise all elements that may be read, ignoring conditions and
    padding, so that coordinates may be out of bounds. values: of every tensor. stops: the tensors that are not followed. later: those
    that are computed as whole regions, and followed. over: the axes of the reduction that the points range over. shared: the reductions
    that share its loop.
    """

    values: Mapping[Tensor, Array]
    stops: Collection[str]
    later: Collection[str]
    over: Collection[str]
    must: bool
    only: Read | None = None
    shared: Collection[str] = ()
    found: dict[Tensor, Array] = dataclasses.field(default_factory=dict)
    waiting: dict[Tensor, list[Array]] = dataclasses.field(default_factory=dict)
    _seen: dict[tuple[int, Tensor, tuple[Expr, ...]], Points] = dataclasses.field(default_factory=dict)

    def run(self, expressions: Iterable[Expr], points: Points) -> dict[Tensor, Array]:
        """The elements of every tensor that expressions reach at these points: (unit, coordinates...) in columns, each once."""
        for e in expressions:
            self._visit(e, points)
        while self.waiting:
            tensor = max(self.waiting, key=lambda t: t.serial)  # its readers are done
            rows = distinct(np.concatenate(self.waiting.pop(tensor), axis=1))
            if tensor.definition is None or tensor.name in self.stops:
                self.found[tensor] = rows
            else:
                self._follow(tensor, filled(rows) if tensor.name in self.later and not self.must else rows)
        return self.found

    def _follow(self, tensor: Tensor, rows: Array) -> None:
        definition = tensor.definition
        assert definition is not None
        if self.must:
            rows = rows[:, inside(rows, tensor.shape)]
        points = Points({a.name: c for a, c in zip(definition.axes, rows[1:], strict=True)}, rows[0])
        if definition.reduction is not None:
            shape = tuple(a.extent for a in definition.reduction.axes)
            many = math.prod(shape)
            if many * points.unit.size > MOST_POINTS:
                raise NotRead("too many points to list")
            inner = np.indices(shape).reshape(len(shape), -1)
            points = Points({n: np.repeat(c, many) for n, c in points.at.items()}, np.repeat(points.unit, many))
            points.at.update({a.name: np.tile(c, rows.shape[1]) for a, c in zip(definition.reduction.axes, inner, strict=True)})
        self._visit(definition.values[tensor.member], points)

    def _visit(self, e: Expr, points: Points) -> None:
        if not points.unit.size:
            return
        match e:
            case Reduce(axes=axes) if self.must and any(a.extent == 0 for a in axes):
                return
            case Reduce(values=values, condition=condition):
                for v in values:
                    self._visit(v, points if condition is None else self._chosen(condition, points)[0])
            case Pad(read=read) if self.must:
                self._visit(read, points.where(self._within(read, points)))
            case Pad(read=read):
                self._visit(read, points)
            case Select(condition=condition, then=then, otherwise=otherwise):
                for branch, chosen in zip((then, otherwise), self._chosen(condition, points), strict=True):
                    self._visit(branch, chosen)
            case Binary(op="and" | "or", left=left) if self.must:
                self._visit(left, points)
            case Read(tensor=tensor, indices=indices):
                self._read(tensor, indices, points)
            case _:
                for c in e.children():
                    if isinstance(c, Expr):
                        self._visit(c, points)

    def _chosen(self, condition: Expr, points: Points) -> tuple[Points, Points]:
        """The points at which a condition holds, and the others. Without `must`, both sets are all points. With it,
        both are empty if the condition depends on floats that are read."""
        self._visit(condition, points)
        if not self.must:
            return points, points
        if any(isinstance(n, Read) and n.dtype.is_float for n in condition.walk()):
            none = points.where(np.zeros(points.unit.size, bool))
            return none, none
        holds = np.broadcast_to(self._value(condition, points), points.unit.shape).astype(bool)
        return points.where(holds), points.where(~holds)

    def _read(self, tensor: Tensor, indices: tuple[Expr, ...], points: Points) -> None:
        if (id(points), tensor, indices) in self._seen:
            return
        self._seen[id(points), tensor, indices] = points  # which keeps its identity
        for i in indices:
            self._visit(i, points)
        at = [np.broadcast_to(self._value(i, points), points.unit.shape) for i in indices]
        definition = tensor.definition
        if definition is not None and tensor.name not in self.stops and self._carries(tensor, indices, points):
            inner = {name: points.at[name] for name in self.over} | {a.name: c for a, c in zip(definition.axes, at, strict=True)}
            self._visit(definition.values[tensor.member], Points(inner, points.unit))
            return
        if self.only is not None and tensor is self.only.tensor and indices != self.only.indices:
            return
        rows = np.stack([points.unit, *(c.astype(np.int64).clip(-FAR, FAR) for c in at)])
        self.waiting.setdefault(tensor, []).append(rows if self.must else self._anywhere(tensor, indices, points, rows))

    def _anywhere(self, tensor: Tensor, indices: tuple[Expr, ...], points: Points, rows: Array) -> Array:
        """The rows of a read. If an index is itself read past the end of a tensor, it may have any value."""
        wild = np.zeros((len(indices), points.unit.size), bool)
        for d, i in enumerate(indices):
            padded = {e.read for e in i.walk() if isinstance(e, Pad)}
            for e in (e for e in i.walk() if isinstance(e, Read) and e not in padded):
                wild[d] |= ~self._within(e, points)
        for d, n in enumerate(tensor.shape if wild.any() else ()):
            chosen = np.flatnonzero(wild[d])
            if chosen.size * n > MOST_POINTS:
                raise NotRead("too many points to list")
            every = np.repeat(rows[:, chosen], n, axis=1)
            every[d + 1] = np.tile(np.arange(n), chosen.size)
            rows = np.concatenate([np.delete(rows, chosen, axis=1), every], axis=1)
            wild = np.concatenate([np.delete(wild, chosen, axis=1), np.repeat(wild[:, chosen], n, axis=1)], axis=1)
        return rows

    def _carries(self, tensor: Tensor, indices: tuple[Expr, ...], points: Points) -> bool:
        """Whether a read in a reduction is of that reduction, or of a value that may be computed from it."""
        if not set(self.over) <= points.at.keys() or tensor.name in self.later and tensor.name not in self.shared:
            return False
        pointwise = tensor.definition is not None and tensor.definition.reduction is None
        return reduces(tensor, indices, self.over) or pointwise and bool(self.over) and _each(indices)

    def _within(self, read: Read, points: Points) -> Array:
        """The points at which a read is in bounds."""
        found = np.ones(points.unit.size, bool)
        for i, n in zip(read.indices, read.tensor.shape, strict=True):
            at = self._value(i, points)
            found = found & (at >= 0) & (at < n)
        return found

    def _value(self, e: Expr, points: Points) -> Array:
        match e:
            case Const(value=value):
                return _computed(np.asarray(value, e.dtype.numpy))
            case Var(name=name) | Axis(name=name):
                return points.at[name]
            case Read(tensor=tensor, indices=indices):
                at = [self._value(i, points) for i in indices]
                if not all(tensor.shape):
                    return np.zeros(points.unit.shape, np.int64)
                return _computed(self.values[tensor][tuple(np.clip(i, 0, n - 1) for i, n in zip(at, tensor.shape, strict=True))])
            case Pad(read=read, value=fill):
                return np.where(self._within(read, points), self._value(read, points), fill.value)
            case Cast(operand=operand, type=kind):
                return _computed(np.asarray(self._value(operand, points)).astype(kind.numpy))
            case Binary(op, left, right) if op in OPERATIONS:
                return OPERATIONS[op](self._value(left, points), self._value(right, points))
            case Unary(op="not", operand=operand):
                return np.logical_not(self._value(operand, points))
            case Unary(op="-", operand=operand):
                return np.negative(self._value(operand, points))
            case Select(condition=condition, then=then, otherwise=otherwise):
                return np.where(self._value(condition, points), self._value(then, points), self._value(otherwise, points))
        raise NotRead(f"value of {type(e).__name__}")


def _computed(values: Array) -> Array:
    """Integers of 8 and 16 bits as they are computed with: in 32 bits."""
    small = values.dtype.kind in "iu" and values.dtype.itemsize < 4
    return values.astype({"i": np.int32, "u": np.uint32}[values.dtype.kind]) if small else values


def reduces(tensor: Tensor, indices: tuple[Expr, ...], over: Collection[str]) -> bool:
    """Whether a read is of a reduction over these axes, element by element."""
    reduction = None if tensor.definition is None else tensor.definition.reduction
    return reduction is not None and bool(over) and _each(indices) and {a.name for a in reduction.axes} == set(over)


def _each(indices: tuple[Expr, ...]) -> bool:
    return all(isinstance(i, Axis) for i in indices) and len(set(indices)) == len(indices)


def inside(rows: Array, shape: tuple[int, ...]) -> Array:
    """Which of (unit, coordinates...) are inside a tensor."""
    found = np.ones(rows.shape[1], bool)
    for c, n in zip(rows[1:], shape, strict=True):
        found &= (c >= 0) & (c < n)
    return found


def flat(rows: Array, shape: tuple[int, ...]) -> tuple[Array, Array]:
    """(unit, row-major element) for those of (unit, coordinates...) that are inside a tensor."""
    rows = rows[:, inside(rows, shape)]
    element = np.zeros(rows.shape[1], np.int64)
    for c, n in zip(rows[1:], shape, strict=True):
        element = element * n + c
    return rows[0], element


def distinct(rows: Array) -> Array:
    """Columns of integers without duplicates, in lexicographic order."""
    if rows.shape[1] < 2:
        return rows
    low = rows.min(axis=1)
    extents = tuple(int(n) for n in rows.max(axis=1) - low + 1)
    if math.prod(extents) >= 1 << 62:
        return np.unique(rows, axis=1)
    code = np.ravel_multi_index(tuple(rows - low[:, None]), extents)
    code.sort()
    code = code[np.flatnonzero(np.diff(code, prepend=-1))]
    return np.stack(np.unravel_index(code, extents)) + low[:, None]


def among(rows: Array, others: Array) -> Array:
    """Which columns of integers occur among others."""
    number = ranked(*(c - min(0, c.min(initial=0)) for c in np.concatenate([rows, others], axis=1)))[1]
    return np.isin(number[: rows.shape[1]], number[rows.shape[1] :])


def ranked(*columns: Array) -> tuple[Array, Array]:
    """For rows of integers: the position of the first occurrence of each row, in order; and the number of each row among these."""
    code, *others = columns
    for c in others:
        if code.max(initial=0) >= MOST_MARKS:
            _, code = ranked(code)
        code = code * (int(c.max(initial=0)) + 1) + c
    most = int(code.max(initial=-1)) + 1
    if most > MOST_MARKS:
        _, first, rank = np.unique(code, return_index=True, return_inverse=True)
        return first, rank.reshape(-1)
    first = np.full(most, -1)
    first[code[::-1]] = np.arange(code.size)[::-1]
    found = first >= 0
    return first[found], (np.cumsum(found) - 1)[code]


def regions(rows: Array) -> tuple[Array, Array, Array]:
    """Each unit, and its least and greatest coordinates, (dimensions, units)."""
    first = np.flatnonzero(np.diff(rows[0], prepend=-1))  # rows are in order
    if not first.size:
        return rows[0], rows[1:], rows[1:]
    return rows[0][first], np.minimum.reduceat(rows[1:], first, axis=1), np.maximum.reduceat(rows[1:], first, axis=1)


def filled(rows: Array, alike: bool = False) -> Array:
    """All coordinates between the least and the greatest of each unit. alike: the same number for all units, from the least on."""
    units, low, high = regions(rows)
    if not units.size or not low.size:
        return rows
    shape = tuple(int(n) for n in (high - low).max(axis=1) + 1)
    if math.prod(shape) * units.size > MOST_POINTS:
        raise NotRead("too many points to list")
    local = np.indices(shape).reshape(len(shape), 1, -1)
    at = low[:, :, None] + local
    keep = (at <= high[:, :, None]).all(axis=0) | alike
    return np.stack([np.broadcast_to(units[:, None], keep.shape)[keep], *(c[keep] for c in at)])
