"""Confirms the counterexamples of refusals by a naive interpretation of the refused schedule.

A refusal shows a point, a unit or an element for which the schedule is wrong. `confirmed` asks the naive interpretation about it: which
unit has the tile, which thread holds the element, where the points of an instruction's tile are. Like naive.py, it knows only steps,
expressions and computations. `READ` lists the counterexamples that it can check. It cannot check those about the lane maps of
instructions (`instruction-mismatch`, `fragment-...`, `lanes-not-in-a-row`, lanes and slots in `reader-is-not-owner`), about memory
(`memory-over-capacity`, `registers-too-many`, `register-budget`), or about the order of execution (`stage-order`). If the computation
itself is refused (`read-outside`, `combiner-refuted`), there is no schedule to interpret.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from tilelang.computations.computation import Computation, Tensor
from tilelang.schedules.steps import Do, Place, Split, Step, Tile
from tilelang.testing import naive
from tilelang.testing.kernels import Claim, Kernel, resolved
from tilelang.testing.points import Pieces, Table, block_of, order_extents, value
from tilelang.testing.reach import NotRead

Array = Any


class Refused:
    """A refused schedule and the words of its counterexample. levels: the number of threads of a unit of each level."""

    def __init__(
        self, computation: Computation, steps: Sequence[Step], levels: Mapping[str, int], values: Mapping[Tensor, Array]
    ):
        self.computation, self.levels, self.values = computation, levels, values
        self.steps = resolved(computation, steps)

    def kernels(self) -> list[Kernel]:
        return naive.read(self.computation, self.steps, self.levels, self.values)

    def chains(self) -> list[tuple[Table, tuple[Step, ...]]]:
        """The points of the last kernel, and of each earlier kernel that has its own steps, before the first step."""
        return naive.chains(self.computation, self.steps, self.levels)

    def before(self, kind: type[Step]) -> list[tuple[Table, Step]]:
        """The points before each step of a kind, divided by the steps before it."""
        found = []
        for k in range(len(self.steps)):
            if isinstance(self.steps[k], kind):
                (table, steps) = self.chains()[-1]
                for s in steps[:k]:
                    table.take(s)
                found.append((table, self.steps[k]))
        return found

    def orders(self) -> list[tuple[Tile, dict[str, int]]]:
        """Every tile with an order, and its number of tiles along each axis."""
        found = []
        for table, steps in self.chains():
            for s in steps:
                if isinstance(s, Tile) and s.order is not None:
                    found.append((s, {a: -(-table.left[a] // n) for a, n in s.sizes if isinstance(n, int)}))
                table.take(s)
        return found


def confirmed(refused: Refused, code: str, example: str) -> bool | None:
    """Whether the naive interpretation agrees with a counterexample; None if it cannot be checked."""
    for pattern, ask in READ.get(code, ()):
        found = re.match(pattern, example)
        if found is not None:
            try:
                return ask(refused, *found.groups())
            except NotRead:
                return None
    return None


# ---------------------------------------------------------------- units and tiles


def _numbers(words: str) -> tuple[int, ...]:
    return tuple(map(int, re.findall(r"-?\d+", words)))


def _number_of(step: Tile, rounds: Mapping[str, int], tile: Mapping[str, Any]) -> Array:
    """The number of a tile by its order, row-major over the terms."""
    assert step.order is not None
    number: Array = np.int64(0)
    for term, n in zip(step.order.terms, order_extents(step.order, rounds), strict=True):
        number = number * n + value(term, tile)
    return number


def _same_number(refused: Refused, names: str, first: str, second: str) -> bool:
    """Two different tiles have the same number, so one unit would have to take both."""
    axes = names.split(", ")
    one, other = (dict(zip(axes, map(np.int64, _numbers(t)), strict=True)) for t in (first, second))
    return one != other and any(
        list(rounds) == axes
        and all(0 <= t[a] < n for t in (one, other) for a, n in rounds.items())
        and _number_of(step, rounds, one) == _number_of(step, rounds, other)
        for step, rounds in refused.orders()
    )


def _two_units(refused: Refused, names: str, tile: str, first: str, second: str) -> bool:
    """Of two units that take the same tile, at most one has its number."""
    axes, units = names.split(", "), (int(first), int(second))
    at = dict(zip(axes, map(np.int64, _numbers(tile)), strict=True))
    for step, rounds in refused.orders():
        if list(rounds) == axes:
            grid = dict(zip(rounds, np.indices(tuple(rounds.values())).reshape(len(rounds), -1), strict=True))
            every = set(_number_of(step, rounds, grid).tolist())
            if units[0] != units[1] and int(_number_of(step, rounds, at)) in units and not every.issuperset(units):
                return True
    return False


def _numbers_and_tiles(refused: Refused, numbers: str, tiles: str) -> bool:
    orders = [(math.prod(order_extents(s.order, rounds)), math.prod(rounds.values())) for s, rounds in refused.orders()]
    return (int(numbers), int(tiles)) in orders


def _of_roles(refused: Refused, first: str, one: str, second: str, other: str) -> bool:
    roles = refused.chains()[-1][0].block_of.roles
    return {name: n for name, (_, n) in roles.items()} == {one: int(first), other: int(second)}


def _without_tile(refused: Refused, thread: str, lanes: str) -> bool:
    """A thread has no points although its warp has some."""
    table, steps = refused.chains()[-1]
    for s in steps:
        table.take(s)
    having = {int(t) for f in np.unique(table.first[table.exists]) for t in range(f, f + table.width)}
    return int(lanes) == refused.levels["warp"] and 0 in having and int(thread) not in having


# ---------------------------------------------------------------- points


def _past_the_end(refused: Refused, axis: str, point: str, size: str, begin: str) -> bool:
    """A tile of an instruction, in the steps of the kernel or of a move, includes a point that does not exist."""
    inside = int(begin) <= int(point) < int(begin) + int(size)
    for k, step in enumerate(refused.steps):
        inner = step.steps or () if isinstance(step, Place) else (step,)
        if not inner or not isinstance(inner[-1], Do):
            continue
        table, steps = refused.chains()[-1]
        for s in steps[:k]:
            table.take(s)
        if axis not in table.roots or not inside or int(point) < table.roots[axis]:
            continue
        sizes = [dict(s.sizes)[axis] for s in inner if isinstance(s, (Tile, Split)) and axis in dict(s.sizes)]
        begins = set(np.unique(table.base[axis]).tolist())
        left = table.left[axis]
        for n in (n for n in sizes if isinstance(n, int)):
            begins, left = {b + d for b in begins for d in range(0, left, n)}, n
        if int(begin) in begins and int(begin) < table.roots[axis] and left == int(size):
            return True
    return False


def _in_rounds(refused: Refused, axis: str, first: str, last: str, after: str, end: str) -> bool:
    """A loop around an accumulator divides its reduction: one iteration covers the given points, and the next one covers others."""
    for table, step in refused.before(Place):
        if isinstance(step, Place) and step.verb == "accumulate" and axis in table.reduced:
            begins = np.unique(table.base[axis])
            rounds = [(int(b), min(int(b) + table.left[axis], table.roots[axis]) - 1) for b in begins]
            if [(int(first), int(last)), (int(after), int(end))] == rounds[:2]:
                return True
    return False


def _one_place(refused: Refused, names: str, first: str, second: str) -> bool:
    """A layout stores two elements in the same place."""
    axes = names.split(", ")
    one, other = (dict(zip(axes, map(np.int64, _numbers(t)), strict=True)) for t in (first, second))
    layouts = [s.layout for s in refused.steps if isinstance(s, Place) and s.layout is not None]
    return one != other and any(
        all(value(t, one) == value(t, other) for t in layout.terms) for layout in layouts if layout.terms is not None
    )


# ---------------------------------------------------------------- owners


def _threads(claims: Sequence[Claim], element: int) -> set[int]:
    """The threads of the first block that are claimed for an element."""
    found = set[int]()
    for c in claims:
        for first in np.unique(c.first[(c.element == element) & (c.block == 0)]):
            found |= set(range(int(first), int(first) + c.width))
    return found


def _reader_is_not_owner(refused: Refused, name: str, place: str, reader: str, owners: str) -> bool | None:
    """A thread reads an element from registers of other threads, by the steps that computed or loaded it."""
    tensor = refused.computation.tensor(name)
    for kernel in refused.kernels():
        readers = kernel.reads.get(("register", name), [])
        holders = kernel.writes.get(("register", name)) or kernel.reads.get(("global", name), [])
        here = [c.element[c.block == 0] for c in holders]
        at = _numbers(place)
        if not readers or not here or len(at) != len(tensor.shape):
            continue
        low = [int(x.min()) for x in np.unravel_index(np.concatenate(here), tensor.shape)]
        there = [a + b for a, b in zip(low, at, strict=True)]
        if any(c >= n for c, n in zip(there, tensor.shape, strict=True)):
            continue
        element = int(np.ravel_multi_index(there, tensor.shape))
        hold = _threads(holders, element)
        if int(reader) in _threads(readers, element) and int(reader) not in hold and set(_numbers(owners)) <= hold:
            return True
    return None if len(_numbers(place)) != len(tensor.shape) else False


def _stored_by_another(refused: Refused, name: str, place: str, thread: str, owners: str) -> bool:
    """The steps of an accumulator's store map an element to another thread than the steps below it."""
    table, steps = refused.chains()[-1]
    k = next(k for k, s in enumerate(steps) if isinstance(s, Place) and s.verb == "accumulate")
    for s in steps[:k]:
        table.take(s)
    axes = {a: n for a, n in table.left.items() if a not in table.reduced}
    units = block_of(steps, dict(table.roots), refused.levels)
    start = np.zeros(1, np.int64)
    braces = steps[k].steps or ()  # type: ignore[attr-defined]
    stores = Table(axes, Pieces(dict.fromkeys(axes, start), start, start, table.width), braces, units)
    for s in braces:
        stores.take(s)
    base = {a: b.copy() for a, b in table.base.items()}
    for s in steps[k:]:
        table.take(s)
    wanted = dict(zip(axes, _numbers(place), strict=True))

    def having(t: Table, origin: Mapping[str, Array]) -> set[int]:
        here = np.logical_and.reduce([t.exists, t.block == 0, *(t.local[a] - origin[a] == n for a, n in wanted.items())])
        return {int(x) for f in np.unique(t.first[here]) for x in range(f, f + t.width)}

    return int(thread) in having(stores, dict.fromkeys(axes, np.int64(0))) and having(table, base) == set(_numbers(owners))


def _owns_fewer(refused: Refused, count: str, axis: str, begin: str, own: str) -> bool:
    """A thread that owns the first element of a vector owns only some of its elements."""
    table, steps = refused.chains()[-1]
    for s in steps:
        table.take(s)
    here = table.exists & (table.block == 0)
    at = table.local[axis]
    first = np.unique(table.first[here & (at == int(begin))])
    mine = np.unique(at[here & np.isin(table.first, first)])
    return first.size == 1 and int(((mine >= int(begin)) & (mine < int(begin) + int(count))).sum()) == int(own) < int(count)


Ask = Callable[..., bool | None]
TILE, AT = r"\(?([\w, ]+?)\)? = (\([-\d, ]+\)|-?\d+)", r"\(?[\w, ]+?\)? = (\([-\d, ]+\)|-?\d+)"
READ: dict[str, tuple[tuple[str, Ask], ...]] = {
    "tile-not-covered": ((rf"tiles {TILE} and (\(?[-\d, ]+\)?) have the same number$", _same_number),),
    "tile-covered-twice": ((rf"tile {TILE} is taken by units (\d+) and (\d+)$", _two_units),),
    "order-term": ((r"there are (\d+) numbers and (\d+) tiles$", _numbers_and_tiles),),
    "too-many-threads": ((r"(\d+) of the (\w+) and (\d+) of the (\w+)$", _of_roles),),
    "warp-not-filled": ((r"thread (\d+) of (\d+) has no tile$", _without_tile),),
    "unguardable-do": (
        (r"(\w+) = (\d+) is past the end, but the tile of (\d+) that begins at \w+ = (\d+) includes it", _past_the_end),
    ),
    "state-under-walk": (
        (r"the first iteration stores in .* over (\w+) = (\d+)\.\.(\d+).*; the second combines (\d+)\.\.(\d+) ", _in_rounds),
    ),
    "layout-not-injective": ((rf"{TILE} and (\(?[-\d, ]+\)?)$", _one_place),),
    "reader-is-not-owner": (
        (rf"the element of (\w+) at {AT}, .* is read by thread (\d+) but is in (.*)$", _reader_is_not_owner),
        (rf"the element of (\w+) at {AT}, .* is stored by thread (\d+) but is in (.*)$", _stored_by_another),
    ),
    "store-width": ((r"of the (\d+) elements that begin at (\w+) = (\d+), the thread owns (\d+)$", _owns_fewer),),
}  # fmt: skip
