"""The points of a spec, enumerated, and how tiles and splits divide them among blocks and threads.

An axis that is cut into tiles of s1, s2, ... is numbered by digits: the tile of s1, the tile of s2 in it, and so on down to a single
coordinate. A point is a choice of all digits; a step takes the next digit of its axes and tells which unit has it. Nothing is
simplified, and there are no bounds: a choice beyond the end of a tile is listed, too, and marked as a point that does not exist.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tilelang.core.expr import Axis, Binary, Const, Expr, Var
from tilelang.schedules.steps import Fuse, Split, Step, Tile, Unfuse, Units, Vectorize
from tilelang.testing.reach import MOST_POINTS, OPERATIONS, NotRead

Array = Any
Numbered = dict[str, tuple[Array, int]]  # digits by axis, and how many values each has


@dataclasses.dataclass(frozen=True)
class Block:
    """The threads of a spec: those of its role. levels: the number of threads of a unit of each level; roles: first thread and
    number."""

    levels: Mapping[str, int]
    first: int
    threads: int
    main: str = ""
    roles: Mapping[str, tuple[int, int]] = dataclasses.field(default_factory=dict)
    cluster: int = 1

    def unit(self, level: str) -> int:
        if level not in self.levels:
            raise NotRead(f"units of {level}")
        return self.levels[level]


@dataclasses.dataclass
class Pieces:
    """Regions that are divided in the same way. low: the start of each, by axis; block, first: its unit, of `width` threads."""

    low: dict[str, Array]
    block: Array
    first: Array
    width: int


class Table:
    """One row for each choice of digits in each region. at: coordinates by axis; number: equal for rows with equal digits so far.

    over: the axes of a reduction. An empty reduction has one point, marked as nonexistent, so that a unit stores the identity.
    """

    def __init__(
        self, extents: Mapping[str, int], pieces: Pieces, steps: Sequence[Step], block: Block, over: Sequence[Axis] = ()
    ) -> None:
        self.block_of, self.width = block, pieces.width
        self.roots, self.relabels = _relabelled(extents, steps)
        self.reduced = {a.name for a in over}
        for s, _ in self.relabels:
            before, after = (s.axes, (s.name,)) if isinstance(s, Fuse) else ((s.axis,), tuple(n for n, _ in s.parts))
            self.reduced |= set(after) if self.reduced & set(before) else set()
        self.roots |= {r: max(1, n) for r, n in self.roots.items() if r in self.reduced}
        sizes: dict[str, list[int]] = {root: [] for root in self.roots}
        for s in steps:
            cuts = s.sizes if isinstance(s, (Tile, Split)) else ((s.axis, s.lanes),) if isinstance(s, Vectorize) else ()
            for axis, size in cuts:
                if axis not in sizes or not isinstance(size, int):
                    raise NotRead(f"{s}")
                sizes[axis].append(size)
        numbers = self._radices(steps, sizes)
        radices = [n for root in self.roots for n in numbers[root]]
        count = math.prod(radices)
        many = pieces.block.size
        if count * many > MOST_POINTS:
            raise NotRead("too many points to list")
        every_digit = np.indices(tuple(radices)) if count else np.zeros(0, np.int64)  # np.indices multiplies the other extents
        columns = iter(every_digit.reshape(len(radices), count))
        self.digits: dict[str, list[tuple[Array, int]]] = {}
        self.exists: Array = np.ones(count * many, bool)
        self.kept: Array = np.ones(count * many, bool)  # whether it exists along the axes that are not reduced
        self.local: dict[str, Array] = {}
        self.left: dict[str, int] = dict(self.roots)
        self.walked: dict[str, int] = {}  # the extents of the pieces that a sequential loop divides
        self.inside: Array = np.ones(count * many, bool)  # whether the point is in a piece that a sequential loop reaches
        self.sizes = {root: [*cuts, 1] for root, cuts in sizes.items()}
        for root, n in self.roots.items():
            every = [(np.tile(next(columns), many), radix) for radix in numbers[root]]
            rest: Array = np.zeros(count * many, np.int64)
            for (digit, _), size, around in reversed(list(zip(every, self.sizes[root], [n, *sizes[root]], strict=True))):
                rest = rest + digit * size
                self.exists &= rest < around
                self.kept &= (rest < around) | (root in self.reduced)
            self.digits[root], self.local[root] = every, rest
        self.base: dict[str, Array] = {root: np.zeros(count * many, np.int64) for root in self.roots}
        self.number = np.repeat(np.arange(many), count)
        self.low = {axis: np.repeat(low, count) for axis, low in pieces.low.items()}
        self.block, self.first = np.repeat(pieces.block, count), np.repeat(pieces.first, count)
        self.in_cluster: Array | None = None
        self.at = self.whole(self.local)

    def _radices(self, steps: Sequence[Step], sizes: Mapping[str, list[int]]) -> dict[str, list[int]]:
        """The number of values of each digit. Idle units, also in the last iteration, count as if there were tiles for them."""
        found = {
            root: [-(-a // b) for a, b in zip([n, *sizes[root]], [*sizes[root], 1], strict=True)]
            for root, n in self.roots.items()
        }
        taken, width = dict.fromkeys(self.roots, 0), self.width
        for s in steps:
            axes = [a for a, _ in s.sizes] if isinstance(s, (Tile, Split)) else []
            rounds = {a: found[a][taken[a]] for a in axes}
            if isinstance(s, Tile) and s.order is not None and all(rounds.values()):
                rounds = _numbered(s.order, rounds)
            in_cluster = any(isinstance(other, Tile) and other.level == "cluster" for other in steps)
            if isinstance(s, Tile) and s.level != "cluster" and (s.level != "block" or in_cluster):
                width, units = self._units_of(s, width) if s.level != "block" else (width, self._blocks_of(s))
                self.wraps |= len(axes) > 1 and math.prod(rounds.values()) > units
                if s.level != "block" and self._fits_apart(s):
                    for a, fit in _abreast(rounds, units).items():
                        rounds[a] = -(-rounds[a] // fit) * fit
                else:
                    others = math.prod(max(1, n) for n in list(rounds.values())[1:])
                    numbers = -(-rounds[axes[0]] * others // units) * units
                    again = 1 if s.order is None else max(1, rounds[axes[0]])  # an order numbers all tiles before it begins again
                    rounds[axes[0]] = -(-numbers // (others * again)) * again
            for a in axes:
                found[a][taken[a]] = rounds[a]
                taken[a] += 1
        return found

    def _units_of(self, step: Tile, width: int) -> tuple[int, int]:
        """The number of threads of a unit that takes a tile, and the number of units."""
        level = self.block_of.main if step.level in self.block_of.roles else step.level
        per = min(self.block_of.unit(level), width)
        return per, min(step.count, width // per) if isinstance(step.count, int) else width // per

    def _fits_apart(self, step: Tile) -> bool:
        """Whether each axis of a tile takes separate units, if several units share a reduction."""
        return step.order is None and len(step.sizes) > 1 and bool(self.reduced & {a for a, _ in step.sizes})

    def _blocks_of(self, step: Tile) -> int:
        """The number of blocks of a cluster that a tile is mapped to."""
        return min(step.count, self.block_of.cluster) if isinstance(step.count, int) else self.block_of.cluster

    def whole(self, local: Mapping[str, Array], low: Mapping[str, Array] | None = None) -> dict[str, Array]:
        """The coordinates of the original axes, from local ones after `fuse` and `unfuse`. low: their start, if it differs."""
        at = dict(local)
        for s, extents in reversed(self.relabels):
            if isinstance(s, Fuse):
                rest = at.pop(s.name)
                for axis in reversed(s.axes[1:]):
                    at[axis], rest = rest % max(1, extents[axis]), rest // max(1, extents[axis])
                at[s.axes[0]] = rest
            else:
                at[s.axis] = np.int64(0)
                for part, n in s.parts:
                    at[s.axis] = at[s.axis] * n + at.pop(part)
        return {axis: at[axis] + begin for axis, begin in (self.low if low is None else low).items()}

    def within(self) -> Array:
        """The points inside the pieces so far, even if later cuts are longer than these."""
        found = self.inside.copy()
        for root, extent in self.left.items():
            found &= self.local[root] - self.base[root] < extent
        return found

    def again(self) -> dict[str, Array]:
        """For points that do not exist, the points one vector earlier, which a partial last vector that is shifted back touches
        again."""
        found = dict(self.local)
        for root, (size, *_) in ((r, s[-2:]) for r, s in self.sizes.items() if len(s) > 1 and r in self.vectors):
            found[root] = np.where(self.exists, found[root], np.maximum(found[root] - size, 0))
        return self.whole(found)

    wraps = False  # whether units take several tiles along several axes: the tiles of one unit are then not a region
    vectors: frozenset[str] = frozenset()
    in_block = False  # whether a cluster's tile was divided among its blocks
    spare: tuple[
        tuple[Array, int], ...
    ] = ()  # for each parallel tile that leaves threads without a unit: the first of them, and their number

    def take(self, step: Step) -> None:
        """Assigns the points to units by one more step."""
        match step:
            case Split(sizes=sizes):
                for axis, (digit, _) in self.cut(sizes).items():
                    size, around = self.left[axis], self.walked.get(axis, self.left[axis])
                    self.inside &= (digit * size < around) | (axis not in self.walked)
                    self.walked[axis] = min(size, around)
            case Tile(sizes=sizes, level="cluster"):
                self.in_cluster = self.block + self._wrapped(step, self.cut(sizes))
                self.block = self.in_cluster * self.block_of.cluster
            case Tile(sizes=sizes, level="block") if self.in_cluster is not None:
                inner = _number(step, self.cut(sizes)) % self._blocks_of(step)
                self.block, self.in_block = self.in_cluster * self.block_of.cluster + inner, True
            case Tile(sizes=sizes, level="block"):
                self.block = self.block + self._wrapped(step, self.cut(sizes), self.block_of.cluster)
            case Tile():
                self._units(step)
                self.walked |= {axis: size for axis, size in step.sizes if isinstance(size, int)}
            case Vectorize(axis=axis):
                self.vectors |= {axis}
            case _:
                pass

    def cut(self, sizes: Any) -> Numbered:
        """The next digit of some axes, and the number of pieces."""
        found: Numbered = {}
        for axis, size in sizes:
            digit, radix = self.digits[axis].pop(0)
            found[axis] = digit, max(1, -(-self.left[axis] // size))
            self.base[axis] = self.base[axis] + digit * size
            self.left[axis] = size
            self.number = self.number * max(1, radix) + digit
        return found

    def _wrapped(self, step: Tile, pieces: Numbered, whole: int = 1) -> Array:
        """The unit of each tile. whole: the group size in which units are launched, along the grid's first axis."""
        wide = [axis for axis, (_, n) in pieces.items() if n > 1]
        if step.order is None and step.count is None and 1 < len(wide) <= 3:
            digit, n = pieces[wide[-1]]
            pieces = {**pieces, wide[-1]: (digit, -(-n // whole) * whole)}
        number = _number(step, pieces)
        rounds = {a: n for a, (_, n) in pieces.items()}
        total = math.prod(rounds.values() if step.order is None else order_extents(step.order, rounds))
        return number % (-(-step.count // whole) * whole) if isinstance(step.count, int) and step.count < total else number

    def _units(self, step: Tile) -> None:
        """If there are more tiles than units, each unit takes several. If several axes share a reduction, the last axes take as many
        units as possible."""
        pieces = self.cut(step.sizes)
        per, units = self._units_of(step, self.width)
        if self._fits_apart(step):
            abreast = _abreast({a: n for a, (_, n) in pieces.items()}, units)
            units = math.prod(abreast.values())
            unit = _row_major([(digit % abreast[a], abreast[a]) for a, (digit, _) in pieces.items()])
        else:
            unit = _number(step, pieces) % units
        if units * per < self.width:
            self.spare = (*self.spare, (self.first + units * per, self.width - units * per))
        self.first, self.width = self.first + unit * per, per


def _relabelled(extents: Mapping[str, int], steps: Sequence[Step]) -> tuple[dict[str, int], list[Any]]:
    """The axes that steps cut, and every `fuse` and `unfuse` with the extents before it."""
    left, relabels = dict(extents), []
    for s in steps:
        if isinstance(s, (Fuse, Unfuse)):
            gone = s.axes if isinstance(s, Fuse) else (s.axis,)
            if not set(gone) <= left.keys():
                raise NotRead(f"{s}")
            relabels.append((s, dict(left)))
            several = [left.pop(a) for a in gone]
            left.update({s.name: math.prod(several)} if isinstance(s, Fuse) else dict(s.parts))
    return left, relabels


def _abreast(pieces: Mapping[str, int], units: int) -> dict[str, int]:
    """The number of units along each axis: the last axis takes as many as possible, and so on."""
    found: dict[str, int] = {}
    for axis, n in reversed(list(pieces.items())):
        found[axis] = min(max(1, n), units)
        units //= found[axis]
    return found


def _row_major(digits: Sequence[tuple[Array, int]]) -> Array:
    number: Array = np.int64(0)
    for digit, n in digits:
        number = number * n + digit
    return number


def _number(step: Tile, pieces: Numbered) -> Array:
    """The number of each tile: the last axis varies fastest, or an order determines it, repeated along the first axis."""
    if step.order is None:
        return _row_major(list(pieces.values()))
    values, rounds = {a: digit for a, (digit, _) in pieces.items()}, {a: n for a, (_, n) in pieces.items()}
    first, extents, again = next(iter(pieces)), order_extents(step.order, rounds), np.int64(0)
    if _numbered(step.order, rounds) == rounds:
        again, values[first] = np.divmod(values[first], rounds[first])
    return again * math.prod(extents) + _row_major(
        [(value(t, values), n) for t, n in zip(step.order.terms, extents, strict=True)]
    )


def _numbered(order: Any, rounds: Mapping[str, int]) -> dict[str, int]:
    """The number of tiles along each axis that an order numbers. It can exceed the number of tiles, by a remainder or xor."""
    found = dict(rounds)
    for term, n in zip(order.terms, order_extents(order, rounds), strict=True):
        for e in term.walk():
            match e:
                case Binary("%", (Var() | Axis()) as axis, Const(value=c)) if (
                    e is term or not isinstance(term, Binary) or term.op != "^"
                ):
                    found[axis.name] = max(found[axis.name], -(-rounds[axis.name] // int(c)) * int(c))
                case Binary("^", Binary("//", (Var() | Axis()) as axis, Const(value=c)), _):
                    found[axis.name] = max(found[axis.name], n * int(c))
                case Binary("^", (Var() | Axis()) as axis, _):
                    found[axis.name] = max(found[axis.name], n)
                case _:
                    pass
    return found


def order_extents(order: Any, rounds: Mapping[str, int]) -> list[int]:
    """The number of values of each term of an order; a remainder has all of its values."""
    grid = dict(zip(rounds, np.indices(tuple(rounds.values())).reshape(len(rounds), -1), strict=True))
    return [int(t.right.value) if isinstance(t, Binary) and t.op == "%" and isinstance(t.right, Const)
            else int(np.max(value(t, grid))) + 1 for t in order.terms]  # fmt: skip


def value(e: Expr, values: Mapping[str, Array]) -> Array:
    """An integer expression at every point. Raises NotRead."""
    match e:
        case Const(value=number):
            return np.int64(number)
        case Var(name=name) | Axis(name=name) if name in values:
            return values[name]
        case Binary(op, left, right) if op in OPERATIONS:
            return OPERATIONS[op](value(left, values), value(right, values))
    raise NotRead(f"{e}")


def block_of(steps: Sequence[Step], extents: Mapping[str, int], levels: Mapping[str, int]) -> Block:
    """The threads of a block, by `units` or else by the product of the tiles below the block."""
    teams = next((s.teams for s in steps if isinstance(s, Units) and s.level == "block"), ())
    cluster = _cluster(steps, extents)
    plain = Block(levels, 0, 1, cluster=cluster)
    if not any(t.role for t in teams):
        threads = sum(t.count * plain.unit(t.level) for t in teams) if teams else _threads(plain, steps, extents)
        return dataclasses.replace(plain, threads=max(1, threads))
    roles, first = {}, 0
    for t in sorted(teams, key=lambda t: -plain.unit(t.level)):  # units begin at multiples of their size
        roles[str(t.role)] = first, t.count * plain.unit(t.level)
        first += t.count * plain.unit(t.level)
    tiled = [s.level for s in steps if isinstance(s, Tile) and s.level in roles]
    loading = {getattr(s, "on", None) for s in steps}
    free = tiled[:1] or [r for r in roles if r not in loading]
    if not free:
        raise NotRead("loads on every role")
    main = max(reversed(free), key=lambda r: roles[r][1])
    level = next(t.level for t in teams if t.role == main)
    return Block(levels, *roles[main], level, roles, cluster)


def _cluster(steps: Sequence[Step], extents: Mapping[str, int]) -> int:
    """The number of blocks in a cluster, by `units` or else by the block tiles in a cluster tile."""
    for s in steps:
        if isinstance(s, Units) and s.level == "cluster":
            return s.teams[0].count
    around = next(
        ({a: n for a, n in s.sizes if isinstance(n, int)} for s in steps if isinstance(s, Tile) and s.level == "cluster"), None
    )
    inner = next((s for s in steps if isinstance(s, Tile) and s.level == "block"), None)
    if around is None or inner is None:
        return 1
    left = {**extents, **around}
    tiles = [max(1, -(-left[a] // n)) for a, n in inner.sizes if isinstance(n, int)]
    return math.prod(tiles)


def _threads(block: Block, steps: Sequence[Step], extents: Mapping[str, int]) -> int:
    left = dict(extents)
    total = inside = 1
    for step in steps:
        match step:
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
                if level in ("block", "cluster"):
                    continue
                per = block.unit(level)
                tiles = math.prod(rounds.values()) if order is None else math.prod(order_extents(order, rounds))
                total *= 1 if inside > 1 else per * (count if isinstance(count, int) else tiles)
                inside = per
            case _:
                pass
    return total
