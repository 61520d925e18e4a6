"""A second, naive reading of a schedule: which block and which threads own each element of the outputs.

It knows steps, expressions and computations, and nothing of specs, tasks or the lowering. All points of the outputs and of the
reductions stand in one table, with a column of coordinates for each axis; a step replaces columns by quotients and remainders and says
which unit has a point. Nothing is simplified, and there are no bounds: a tile's tail is where the table has no points.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from tilelang.computation import Computation, Tensor
from tilelang.expr import Axis, Binary, Const, Expr, Read, Reduce, Var
from tilelang.steps import Fuse, Place, Split, Step, Tile, Unfuse, Units, When

Array = Any
MOST_POINTS = 1 << 22


class NotRead(Exception):
    """A step, or a computation, that this reading does not know."""


@dataclasses.dataclass
class Owners:
    """Who has the points of the output `tensor`, one row a point.

    element: flat, row-major. block: the number in the grid, its first dimension fastest. first: the first of the `width` threads of the
    unit that has the point. Where units share a reduction, each of them owns the element.
    """

    tensor: Tensor
    element: Array
    block: Array
    first: Array
    width: int


def owners(computation: Computation, steps: tuple[Step, ...], levels: Mapping[str, int]) -> Owners:
    """Who owns the elements of the first output. levels: how many threads a unit of each level below the block has.

    Raises NotRead for steps that it does not know.
    """
    output = computation.outputs[0]
    assert output.definition is not None
    axes = output.definition.axes
    table = _Table(axes, _reduced(output, axes), _threads(computation, steps, levels), levels)
    for step in steps:
        table.take(step)
    element: Array = np.zeros(table.count, np.int64)
    for a in axes:
        element = element * a.extent + table.whole[a.name]
    return Owners(output, element, table.block, table.first, table.width)


def _reduced(tensor: Tensor, axes: tuple[Axis, ...]) -> tuple[Axis, ...]:
    """The axes of the reduction that a tensor is, or that its value reads element for element."""
    definition = tensor.definition
    if definition is None:
        return ()
    value = definition.values[tensor.member]
    if isinstance(value, Reduce):
        return value.axes
    for read in value.walk():
        if isinstance(read, Read) and len(read.indices) == len(axes) and set(read.indices) == set(definition.axes):
            found = _reduced(read.tensor, axes)
            if found:
                return found
    return ()


def _threads(computation: Computation, steps: tuple[Step, ...], levels: Mapping[str, int]) -> int:
    """The threads of a block: as `units` says, else what the tiles below the block multiply to."""
    output = computation.outputs[0]
    assert output.definition is not None
    left = {a.name: a.extent for a in (*output.definition.axes, *_reduced(output, output.definition.axes))}
    total = inside = 1
    for step in steps:
        match step:
            case Units("block", (team,)) if team.role is None:
                return team.count * _size(levels, team.level)
            case Fuse(name, axes):
                left[name] = math.prod(left.pop(a) for a in axes)
            case Unfuse(axis, parts):
                del left[axis]
                left.update(parts)
            case Split(sizes):
                left.update({a: int(n) for a, n in sizes if isinstance(n, int)})
            case Tile(sizes, level, count, order):
                rounds = {a: max(1, -(-left[a] // n)) for a, n in sizes if isinstance(n, int)}
                left.update({a: n for a, n in sizes if isinstance(n, int)})
                if level == "block":
                    continue
                per = _size(levels, level)
                tiles = math.prod(rounds.values()) if order is None else math.prod(_extents(order, rounds))
                total *= 1 if inside > 1 else per * (count if isinstance(count, int) else tiles)
                inside = per
            case _:
                pass
    return max(1, total)


def _size(levels: Mapping[str, int], level: str) -> int:
    if level not in levels:
        raise NotRead(f"units of {level}")
    return levels[level]


class _Table:
    """One row a point. local: the coordinate in what is left of each axis; extent: how long that is; whole: the coordinate at first."""

    def __init__(self, axes: tuple[Axis, ...], reduced: tuple[Axis, ...], threads: int, levels: Mapping[str, int]) -> None:
        # A sum of nothing is made too: its reduction counts as one point.
        every = (*axes, *(Axis(a.name, max(1, a.extent)) for a in reduced))
        self.count = math.prod(a.extent for a in every)
        if self.count > MOST_POINTS:
            raise NotRead(f"{self.count} points")
        grid = np.indices(tuple(a.extent for a in every)).reshape(len(every), -1)
        self.local = dict(zip([a.name for a in every], grid, strict=True))
        self.whole, self.extent = dict(self.local), {a.name: a.extent for a in every}
        self.reduced = {a.name for a in reduced}
        self.block, self.first = np.zeros(self.count, np.int64), np.zeros(self.count, np.int64)
        self.width, self.levels = threads, levels

    def take(self, step: Step) -> None:
        match step:
            case Fuse(name, axes):
                number = self._row_major({a: (self.local.pop(a), self.extent[a]) for a in axes})
                self.local[name], self.extent[name] = number, math.prod(self.extent.pop(a) for a in axes)
                self.reduced |= {name} if axes[0] in self.reduced else set()
            case Unfuse(axis, parts):
                rest = self.local.pop(axis)
                for name, extent in reversed(parts):
                    self.local[name], self.extent[name] = rest % extent, extent
                    rest = rest // extent
                self.reduced |= {n for n, _ in parts} if axis in self.reduced else set()
            case Split(sizes=sizes, of=()):
                self._cut(sizes)
            case Tile(level="block"):
                self._blocks(step)
            case Tile():
                self._units(step)
            case Place(verb="load" | "compute" | "accumulate", memory="shared" | "register" | "l1" | "l2", on=None) if not any(
                isinstance(s, Place) for s in step.steps or ()
            ):
                if step.verb == "accumulate" and step.memory == "shared":
                    raise NotRead(f"{step}")
            case Place() | When():
                raise NotRead(f"{step}")
            case Units("block", (team,)) if team.role is None:
                pass
            case Units():
                raise NotRead(f"{step}")
            case _:
                pass

    def _cut(self, sizes: Any) -> dict[str, tuple[Array, int]]:
        """The number of the piece along each axis, and how many pieces there are."""
        found = {}
        for axis, size in sizes:
            found[axis] = self.local[axis] // size, max(1, -(-self.extent[axis] // size))
            self.local[axis], self.extent[axis] = self.local[axis] % size, size
        return found

    @staticmethod
    def _row_major(pieces: Mapping[str, tuple[Array, int]]) -> Array:
        number: Array = np.int64(0)
        for at, n in pieces.values():
            number = number * n + at
        return number

    def _blocks(self, step: Tile) -> None:
        pieces = self._cut(step.sizes)
        if self.reduced & pieces.keys():
            raise NotRead(f"a reduction over blocks, {step}")
        number = self._number(step, pieces)
        total = math.prod(n for _, n in pieces.values())
        self.block = self.block + number % (min(step.count, total) if isinstance(step.count, int) else 1 << 60)

    def _number(self, step: Tile, pieces: Mapping[str, tuple[Array, int]]) -> Array:
        if step.order is None:
            return self._row_major(pieces)
        extents = _extents(step.order, {a: n for a, (_, n) in pieces.items()})
        values = {a: at for a, (at, _) in pieces.items()}
        terms = [_value(t, values) for t in step.order.terms]
        return self._row_major({str(k): (t, n) for k, (t, n) in enumerate(zip(terms, extents, strict=True))})

    def _units(self, step: Tile) -> None:
        """More tiles than units go in rounds; where several axes share a reduction, the last axes take as many units as they can."""
        pieces = self._cut(step.sizes)
        per = min(_size(self.levels, step.level), self.width)
        units = min(step.count, self.width // per) if isinstance(step.count, int) else self.width // per
        if step.order is None and len(pieces) > 1 and self.reduced & pieces.keys():
            abreast, left = {}, units
            for axis, (at, n) in reversed(pieces.items()):
                fit = min(n, left)
                abreast[axis] = at % fit, fit
                left //= fit
            unit = self._row_major({a: abreast[a] for a in pieces})
        else:
            unit = self._number(step, pieces) % units
        self.first, self.width = self.first + unit * per, per


def _extents(order: Any, rounds: Mapping[str, int]) -> list[int]:
    """How many values each term of an order takes: a remainder all of its own."""
    grid = dict(zip(rounds, np.indices(tuple(rounds.values())).reshape(len(rounds), -1), strict=True))
    return [int(t.right.value) if isinstance(t, Binary) and t.op == "%" and isinstance(t.right, Const)
            else int(np.max(_value(t, grid))) + 1 for t in order.terms]  # fmt: skip


def _value(e: Expr, values: Mapping[str, Array]) -> Array:
    """A whole-number expression at every point."""
    match e:
        case Const(value=value):
            return np.int64(value)
        case Var(name=name) | Axis(name=name):
            return values[name]
        case Binary(op, left, right):
            a, b = _value(left, values), _value(right, values)
            made = {"+": np.add, "-": np.subtract, "*": np.multiply, "//": np.floor_divide, "%": np.mod, "^": np.bitwise_xor,
                    "min": np.minimum, "max": np.maximum, "&": np.bitwise_and, "|": np.bitwise_or}.get(op)  # fmt: skip
            if made is not None:
                return made(a, b)
    raise NotRead(f"{e}")
