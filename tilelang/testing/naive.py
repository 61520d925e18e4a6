"""A second, naive reading of a schedule: which block and which threads own each element, and what their points read.

It knows steps, expressions and computations, and nothing of specs, tasks or the lowering. All points of the outputs and of the
reductions stand in one table, with a column of coordinates for each axis; a step replaces columns by quotients and remainders and says
which unit has a point. Nothing is simplified, and there are no bounds: a tile's tail is where the table has no points.
"""

from __future__ import annotations

import copy
import dataclasses
import math
from collections.abc import Iterator, Mapping
from typing import Any, cast

import numpy as np

from tilelang.computation import Computation, Tensor
from tilelang.expr import Axis, Binary, Const, Expr, Read, Var
from tilelang.steps import Fuse, Place, Split, Step, Tile, Unfuse, Units, When
from tilelang.testing.reach import OPERATIONS, NotRead, Points, Reach, is_spread

Array = Any
MOST_POINTS = 1 << 22


@dataclasses.dataclass
class Owners:
    """Who has the points of `tensor`, one row a point.

    element: flat, row-major. block: the number in the grid, its first dimension fastest. first: the first of the `width` threads of the
    unit that stores the point's element, any of which may; where units share a reduction, each of them owns the element. at: the
    coordinates by axis. unit: the first of the `parts` threads of the unit that computes the point. over_blocks: blocks have parts of
    the reduction, and another kernel stores. spread: the axes of the reduction that `states` are. placed: tensors that have a place of
    their own. made: those of other kernels. loose: some pieces are cut short, or of fused axes, so that regions may be larger than what
    is read.
    """

    tensor: Tensor
    element: Array
    block: Array
    first: Array
    width: int
    at: dict[str, Array]
    unit: Array
    parts: int
    over_blocks: bool
    spread: tuple[str, ...]
    states: tuple[Tensor, ...]
    placed: frozenset[str]
    made: frozenset[str]
    loose: bool

    def reach(self, values: Mapping[Tensor, Array], by_unit: bool, sure: bool, regions: bool = False) -> dict[Tensor, Array]:
        """What the points read: (unit, flat element) in columns, by tensor. values, sure, regions: as for `Reach`.

        A unit is a block's number, or (by_unit) 65536 times that and its first thread. Raises NotRead.
        """
        unit = self.block * 65536 + self.unit if by_unit else self.block
        definition = self.tensor.definition
        assert definition is not None
        value = definition.values[self.tensor.member]
        seen: list[Expr] = [value]
        if self.over_blocks and definition.reduction is None:
            seen = [r for r in value.walk() if isinstance(r, Read) and is_spread(r.tensor, r.indices, self.spread)]
        return Reach(values, self.made, self.placed, self.spread, sure, regions).run(seen, Points(self.at, unit))


def main_output(computation: Computation) -> Tensor:
    """The output that a schedule's steps are about: the last that is defined."""
    return max(computation.outputs, key=lambda t: (t.serial - t.member, -t.member))


def owners(computation: Computation, steps: tuple[Step, ...], levels: Mapping[str, int]) -> Owners:
    """Who owns the elements of the main output. levels: how many threads a unit of each level below the block has.

    Raises NotRead for steps that it does not know.
    """
    every = resolved(computation, steps)
    return _owned(main_output(computation), every, levels, _made(computation, every), every)


def resolved(computation: Computation, steps: tuple[Step, ...]) -> tuple[Step, ...]:
    """The steps with the chosen ones in place of each `when`. Raises NotRead where a device is asked."""
    extents = {a.name: np.int64(a.extent) for a in computation.axes}
    found: list[Step] = []
    for s in steps:
        if not isinstance(s, When):
            found.append(s)
            continue
        if any(isinstance(e, Var) and e.name not in extents for e in s.condition.walk()):
            raise NotRead(f"when {s.condition}")
        found += resolved(computation, s.then if _value(s.condition, extents) else s.otherwise)
    return tuple(found)


def kernels(steps: tuple[Step, ...]) -> dict[str, tuple[Step, ...]]:
    """The tensors that kernels of their own make, as far as steps say it, and the steps of each."""
    return {s.tensor_name: s.steps or () for s in steps if isinstance(s, Place) and s.verb == "compute" and s.memory == "global"}


def owners_before(computation: Computation, steps: tuple[Step, ...], levels: Mapping[str, int]) -> Iterator[Owners]:
    """The same for each tensor that a kernel of its own makes by steps in braces. Raises NotRead."""
    steps = resolved(computation, steps)
    for name, own in kernels(steps).items():
        if own:
            yield _owned(computation.tensor(name), own, levels, _made(computation, steps) - {name}, steps)


def _made(computation: Computation, steps: tuple[Step, ...]) -> frozenset[str]:
    """What other kernels make: what the steps put in global memory, and reductions that they do not make in this one."""
    here = {s.tensor_name for s in steps if isinstance(s, Place) and s.verb == "compute" and s.memory != "global"}
    states = {t.name for t in _reduced(main_output(computation), frozenset(_placed(steps)))}
    left = [d for d in computation.definitions if d.reduction is not None and not {t.name for t in d.tensors} & (here | states)]
    return frozenset(kernels(steps)) | {t.name for d in left for t in d.tensors}


def _owned(
    tensor: Tensor, steps: tuple[Step, ...], levels: Mapping[str, int], made: frozenset[str], every: tuple[Step, ...]
) -> Owners:
    assert tensor.definition is not None
    axes = tensor.definition.axes
    placed = frozenset(_placed(every)) | frozenset(_placed(steps))
    states = _reduced(tensor, placed)
    reduction = states[0].definition.reduction if states and states[0].definition is not None else None
    reduced = () if reduction is None else reduction.axes
    table = _Table(axes, reduced, _threads((*axes, *reduced), steps, levels), levels)
    for step in steps:
        table.take(step)
    element: Array = np.zeros(table.count, np.int64)
    for a in axes:
        element = element * a.extent + table.whole[a.name]
    stored = table.stored or table
    return Owners(tensor, element, table.block, stored.first, stored.width, table.whole, table.first, table.width, table.over_blocks,
                  tuple(a.name for a in reduced), states, placed, made, table.loose)  # fmt: skip


def _placed(steps: tuple[Step, ...]) -> Iterator[str]:
    for s in steps:
        if isinstance(s, Place):
            yield from [s.tensor_name] if s.what is not None and s.memory not in ("l1", "l2") else []
            yield from _placed(s.steps or ())


def _reduced(tensor: Tensor, placed: frozenset[str]) -> tuple[Tensor, ...]:
    """The reduction that a tensor is, or that its value reads element for element without a place of its own."""
    definition = tensor.definition
    if definition is None:
        return ()
    if definition.reduction is not None:
        return definition.tensors
    for read in definition.values[tensor.member].walk():
        if isinstance(read, Read) and read.tensor.name not in placed and set(read.indices) == set(definition.axes):
            found = _reduced(read.tensor, placed)
            if found:
                return found
    return ()


def _threads(axes: tuple[Axis, ...], steps: tuple[Step, ...], levels: Mapping[str, int]) -> int:
    """The threads of a block: as `units` says, else what the tiles below the block multiply to."""
    left = {a.name: a.extent for a in axes}
    total = inside = 1
    for step in steps:
        match step:
            case Units("block", (team,)) if team.role is None:
                return team.count * _size(levels, team.level)
            case Fuse(name, several):
                left[name] = math.prod(left.pop(a) for a in several)
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
        grid = [c.reshape(-1) for c in np.indices(tuple(a.extent for a in every))]
        self.local = dict(zip([a.name for a in every], grid, strict=True))
        self.whole, self.extent = dict(self.local), {a.name: a.extent for a in every}
        self.reduced = {a.name for a in reduced}
        self.block, self.first = np.zeros(self.count, np.int64), np.zeros(self.count, np.int64)
        self.width, self.levels = threads, levels
        self.over_blocks, self.loose, self.stored = False, False, cast("_Table | None", None)

    def take(self, step: Step) -> None:
        match step:
            case Fuse(name, axes):
                self.loose = True
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
            case Place(verb="load" | "compute", memory="shared" | "register" | "l1" | "l2"):
                pass
            case Place(verb="compute", memory="global"):
                pass
            case Place(verb="accumulate" | "via", memory="shared" | "register", on=None):
                self._stops(step)
            case Place() | When():
                raise NotRead(f"{step}")
            case Units("block", (team,)) if team.role is None:
                pass
            case Units():
                raise NotRead(f"{step}")
            case _:
                pass

    def _stops(self, step: Place) -> None:
        """Where results stop in shared memory, others may store them: whoever the steps say, else any thread of this unit."""
        inner = step.steps or ()
        stop = next((k for k, s in enumerate(inner) if isinstance(s, Place)), None)
        stops = [s for s in inner if isinstance(s, Place)]
        if len(stops) > 1 or any(s.steps for s in stops):
            raise NotRead(f"{step}")
        if self.stored is not None or all(s.memory != "shared" for s in (step, *stops)):
            return
        self.stored = copy.copy(self)
        self.stored.local, self.stored.extent = dict(self.local), dict(self.extent)
        for s in inner[0 if stop is None else stop + 1 :]:
            if isinstance(s, (Tile, Split)) and not {a for a, _ in s.sizes} <= self.local.keys():
                raise NotRead(f"{step}, of fused axes")
            self.stored.take(s)

    def _cut(self, sizes: Any) -> dict[str, tuple[Array, int]]:
        """The number of the piece along each axis, and how many pieces there are."""
        found = {}
        for axis, size in sizes:
            self.loose |= self.extent[axis] % size > 0
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
        self.over_blocks |= bool(self.reduced & pieces.keys())
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
            if op in OPERATIONS:
                return OPERATIONS[op](a, b)
    raise NotRead(f"{e}")
