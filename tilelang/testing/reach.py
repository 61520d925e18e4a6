"""Which elements of the inputs the points of a computation read, each with the unit that has the point: a second, naive reading.

It knows expressions and definitions, and nothing of the lowering. Indices, conditions, padding, gathers are evaluated at every point;
what a definition reads is followed, element by element, to the inputs and to what other kernels made.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Collection, Mapping
from typing import Any

import numpy as np

from tilelang.computation import Tensor
from tilelang.expr import Axis, Binary, Cast, Const, Expr, Pad, Read, Reduce, Select, Unary, Var

Array = Any
MOST_POINTS = 1 << 22
OPERATIONS = {"+": np.add, "-": np.subtract, "*": np.multiply, "//": np.floor_divide, "%": np.mod, "^": np.bitwise_xor,
              "min": np.minimum, "max": np.maximum, "&": np.bitwise_and, "|": np.bitwise_or, "==": np.equal, "!=": np.not_equal,
              "<": np.less, "<=": np.less_equal, "and": np.logical_and, "or": np.logical_or}  # fmt: skip


class NotRead(Exception):
    """A step, or a computation, that the naive reading does not know."""


@dataclasses.dataclass
class Points:
    """Points of a definition. at: the coordinates by axis; unit: the number of the unit that computes each point."""

    at: dict[str, Array]
    unit: Array

    def where(self, chosen: Array) -> Points:
        return Points({name: column[chosen] for name, column in self.at.items()}, self.unit[chosen])


@dataclasses.dataclass
class Reach:
    """What points reach. sure: leave out what a condition on data may leave out; else take it in. regions: take in what any condition
    leaves out, and, of `placed` tensors, all between the least and the greatest coordinates that a unit reads.

    values: every tensor's, by tensor. made: the tensors that other kernels make. spread: the axes of the reduction whose points are
    listed with those of the output. found: for each input, and each tensor of `made`, (unit, flat element) in columns, each once.
    """

    values: Mapping[Tensor, Array]
    made: Collection[str]
    placed: Collection[str]
    spread: Collection[str]
    sure: bool
    regions: bool = False
    found: dict[Tensor, Array] = dataclasses.field(default_factory=dict)
    waiting: dict[Tensor, list[Array]] = dataclasses.field(default_factory=dict)

    def run(self, expressions: Collection[Expr], points: Points) -> dict[Tensor, Array]:
        """Everything that expressions reach at these points."""
        for e in expressions:
            self._visit(e, points)
        while self.waiting:
            tensor = max(self.waiting, key=lambda t: t.serial)  # its readers are done
            pairs: Array = np.unique(np.concatenate(self.waiting.pop(tensor), axis=1), axis=1)
            if self.regions and tensor.name in self.placed:
                pairs = _hull(pairs, tensor.shape)
            if tensor.definition is None or tensor.name in self.made:
                self.found[tensor] = pairs
            else:
                self._follow(tensor, pairs)
        return self.found

    def _follow(self, tensor: Tensor, pairs: Array) -> None:
        definition = tensor.definition
        assert definition is not None
        at = np.unravel_index(pairs[1], tensor.shape) if tensor.shape else ()
        points = Points({a.name: c for a, c in zip(definition.axes, at, strict=True)}, pairs[0])
        reduction = definition.reduction
        if reduction is not None:
            shape = tuple(a.extent for a in reduction.axes)
            many = math.prod(shape)
            if many * points.unit.size > MOST_POINTS:
                raise NotRead("many points")
            inner = np.indices(shape).reshape(len(shape), -1)
            points = Points({n: np.repeat(c, many) for n, c in points.at.items()}, np.repeat(points.unit, many))
            points.at.update({a.name: np.tile(c, pairs.shape[1]) for a, c in zip(reduction.axes, inner, strict=True)})
        self._visit(definition.values[tensor.member], points)

    def _visit(self, e: Expr, points: Points) -> None:
        if not points.unit.size:
            return
        match e:
            case Reduce(axes=axes) if any(a.extent == 0 for a in axes):
                return
            case Reduce(values=values, condition=condition):
                for chosen in self._chosen(condition, points)[:1]:
                    for v in values:
                        self._visit(v, chosen)
            case Pad(read=read):
                indices = [self._value(i, points) for i in read.indices]
                inside: Array = np.ones(points.unit.size, bool)
                for i, extent in zip(indices, read.tensor.shape, strict=True):
                    inside &= (i >= 0) & (i < extent)
                self._visit(read, points.where(inside))
            case Select(condition=condition, then=then, otherwise=otherwise):
                for branch, chosen in zip((then, otherwise), self._chosen(condition, points), strict=False):
                    self._visit(branch, chosen)
            case Binary(op="and" | "or", left=left, right=right):
                self._visit(left, points)
                if not self.sure:
                    self._visit(right, points)
            case Read(tensor=tensor, indices=indices):
                self._read(tensor, indices, points)
            case _:
                for c in e.children():
                    if isinstance(c, Expr):
                        self._visit(c, points)

    def _chosen(self, condition: Expr | None, points: Points) -> list[Points]:
        """The points at which a condition holds, and the others; where data decide, none or all of them."""
        if condition is None:
            return [points, points.where(np.zeros(points.unit.size, bool))]
        self._visit(condition, points)
        if self.regions or any(isinstance(n, Read) and n.dtype.is_float for n in condition.walk()):
            return [] if self.sure else [points, points]
        holds = np.broadcast_to(self._value(condition, points), points.unit.shape).astype(bool)
        return [points.where(holds), points.where(~holds)]

    def _read(self, tensor: Tensor, indices: tuple[Expr, ...], points: Points) -> None:
        for i in indices:
            self._visit(i, points)
        at = [np.broadcast_to(self._value(i, points), points.unit.shape) for i in indices]
        definition = tensor.definition
        if definition is not None and tensor.name not in self.made and is_spread(tensor, indices, self.spread):
            inner = {name: points.at[name] for name in self.spread} | {
                a.name: c for a, c in zip(definition.axes, at, strict=True)
            }
            self._visit(definition.values[tensor.member], Points(inner, points.unit))
            return
        element: Array = np.zeros(points.unit.size, np.int64)
        for c, extent in zip(at, tensor.shape, strict=True):
            element = element * extent + c
        self.waiting.setdefault(tensor, []).append(np.stack([points.unit, element]))

    def _value(self, e: Expr, points: Points) -> Array:
        match e:
            case Const(value=value):
                return np.asarray(value)
            case Var(name=name) | Axis(name=name):
                return points.at[name]
            case Read(tensor=tensor, indices=indices):
                return self.values[tensor][tuple(self._value(i, points) for i in indices)]
            case Pad(read=read, value=fill):
                at = [self._value(i, points) for i in read.indices]
                inside = np.logical_and.reduce([(i >= 0) & (i < n) for i, n in zip(at, read.tensor.shape, strict=True)])
                near = tuple(np.clip(i, 0, n - 1) for i, n in zip(at, read.tensor.shape, strict=True))
                return np.where(inside, self.values[read.tensor][near], fill.value)
            case Cast(operand=operand, type=kind):
                return np.asarray(self._value(operand, points)).astype(kind.numpy)
            case Binary(op, left, right) if op in OPERATIONS:
                return OPERATIONS[op](self._value(left, points), self._value(right, points))
            case Unary(op="not", operand=operand):
                return np.logical_not(self._value(operand, points))
            case Unary(op="-", operand=operand):
                return np.negative(self._value(operand, points))
            case Select(condition=condition, then=then, otherwise=otherwise):
                return np.where(self._value(condition, points), self._value(then, points), self._value(otherwise, points))
        raise NotRead(f"value of {type(e).__name__}")


def is_spread(tensor: Tensor, indices: tuple[Expr, ...], spread: Collection[str]) -> bool:
    """Whether a read is of a reduction over these axes, element for element."""
    reduction = None if tensor.definition is None else tensor.definition.reduction
    whole = all(isinstance(i, Axis) for i in indices) and len(set(indices)) == len(indices)
    return reduction is not None and bool(spread) and whole and {a.name for a in reduction.axes} == set(spread)


def _hull(pairs: Array, shape: tuple[int, ...]) -> Array:
    """All elements between the least and the greatest coordinates that each unit has."""
    if not shape or not pairs.size:
        return pairs
    found = []
    for unit in np.unique(pairs[0]):
        at = np.unravel_index(pairs[1][pairs[0] == unit], shape)
        box = np.meshgrid(*(np.arange(c.min(), c.max() + 1) for c in at), indexing="ij")
        element = np.ravel_multi_index(tuple(c.reshape(-1) for c in box), shape)
        found.append(np.stack([np.full(element.size, unit), element]))
    return np.concatenate(found, axis=1)
