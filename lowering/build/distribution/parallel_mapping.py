"""Maps the tiles of a step to units (threads, warps, blocks): one tile per unit, or several in a loop.

Lowering, the look-ahead to the innermost statement, and the shapes of register accumulators all use this mapping, so they agree.
"""

from __future__ import annotations

import dataclasses
import difflib
import math
from collections.abc import Mapping

from tilelang.core.expr import Expr, index
from tilelang.core.layout import Layout
from tilelang.core.simplify import simplify
from tilelang.lowering.build.refusals import refuse
from tilelang.profiles.profile import Profile
from tilelang.schedules.check import check_step_order
from tilelang.schedules.spec import LEVELS
from tilelang.schedules.steps import Do, Hole, Place, Split, Step, Tile
from tilelang.schedules.task import Task
from tilelang.schedules.unit_numbering import order_extents, tile_of
from tilelang.schedules.walk import Extents, count_pieces


def numbers(step: Tile | Split) -> dict[str, int]:
    """The sizes of a cut as numbers; there must be no hole."""
    return {axis: whole_number(step, size) for axis, size in step.sizes}


def whole_number(step: Step, size: int | Hole) -> int:
    """A size as a number; it must not be a hole."""
    assert not isinstance(size, Hole), f"`{step}`: `check_lowered` refuses holes"
    return size


def digits(number: Expr, extents: Mapping[str, int]) -> dict[str, Expr]:
    """Splits a number into one index per axis, last axis fastest. The first axis gets the whole quotient, even beyond its extent."""
    out: dict[str, Expr] = {}
    stride = 1
    first = next(iter(extents))
    for axis in reversed(list(extents)):
        quotient = number // stride
        if axis == first:
            out[axis] = simplify(quotient)
        else:
            out[axis] = simplify(quotient % extents[axis]) if extents[axis] > 1 else index(0)
        stride *= extents[axis]
    return {axis: out[axis] for axis in extents}


def units_numbered(order: Layout | None, rounds: Mapping[str, int]) -> int:
    """How many units the tiles need. If a pair n/8, n%8 of an order does not divide the extent, some units have no tile."""
    return math.prod(rounds.values() if order is None else order_extents(order, rounds))


def tile_numbered(order: Layout | None, rounds: Mapping[str, int], number: Expr) -> dict[str, Expr]:
    """The tile of unit `number`, as an index per axis: last axis fastest, or as `order` says. Numbers past the last tile give
    tiles outside."""
    if order is None:
        return digits(number, rounds)
    total, first = units_numbered(order, rounds), next(iter(rounds))
    found = tile_of(order, rounds, simplify(number % total))
    assert found is not None, "an order is checked when it is written"
    found[first] = simplify(found[first] + number // total * rounds[first])
    return found


@dataclasses.dataclass(frozen=True)
class UnitMapping:
    """How tiles are mapped to units below the block.

    per: threads of one unit. count: units in use. rounds: the number of tiles along each axis. abreast: how many of them are
    computed at once. walks: (axis, iterations) of the loops over the others. order: numbers the tiles, if not in the order of
    their axes. idle: there are more threads than the units in use have. over: threads left over beside whole units. linear: all
    tiles are numbered in one sequence, which one loop covers; otherwise every axis has its own loop.
    """

    sizes: Mapping[str, int]
    per: int
    count: int
    rounds: Mapping[str, int]
    abreast: Mapping[str, int]
    walks: tuple[tuple[str, int], ...]
    linear: bool
    idle: bool
    over: int = 0
    order: Layout | None = None

    def indices(self, lane: Expr, again: Mapping[str, Expr]) -> dict[str, Expr]:
        """The tile along each axis that the unit of a lane takes. again: the current iteration of each of the loops `walks`."""
        digit = simplify(lane // self.per)
        if self.walks and self.idle:  # units beyond the count get tiles beyond the last one, which do not exist
            digit = simplify(digit + digit // self.count * units_numbered(self.order, self.rounds))
        if self.linear:
            number = next((again[a] * self.count for a, _ in self.walks), index(0))
            return tile_numbered(self.order, self.rounds, simplify(number + digit))
        found = digits(digit, self.abreast)
        return {a: simplify(again[a] * self.abreast[a] + found[a]) if a in again else found[a] for a in self.rounds}

    def reduced_digits(self, reduced: frozenset[str], lane: Expr, units: int) -> list[tuple[Expr, int, int, int]]:
        """(index, tiles, units along it, stride in threads) of every reduced axis that several units share.

        Along the first axis there may be more units than tiles; the extra units are idle.
        """
        found = []
        stride = self.per
        first = next(iter(self.rounds))
        for axis in reversed(list(self.rounds)):
            tiles = self.abreast[axis]
            abreast = -(-units // stride) if axis == first else tiles
            if axis in reduced and abreast > 1:
                quotient = lane // stride
                found.append((simplify(quotient if axis == first else quotient % tiles), tiles, abreast, stride))
            stride *= tiles
        return found

    def active(self, lane: Expr) -> list[Expr]:
        """The conditions under which the unit of a lane is in use."""
        return [simplify(lane // self.per) < self.count] if self.idle else []

    def present(self, lane: Expr, units: int) -> list[Expr]:
        """The conditions under which a lane, one of `units`, belongs to a whole unit."""
        return [simplify(lane < units - self.over)] if self.over else []


def following_owners(task: Task, left: Extents, steps: tuple[Step, ...]) -> tuple[Step, ...]:
    """The steps, with the tile mapping of a register tensor appended if the steps below that tensor map nothing to units.

    The tiles come from the braces of the last register tensor. Without them one thread would read the tensor, and it holds only
    its own part. left: the task's axes.
    """
    owners: tuple[Tile, ...] = ()
    for s in steps:
        if isinstance(s, Do) or isinstance(s, Tile) and s.level == "thread":
            return steps
        if isinstance(s, Tile):
            owners = ()
        elif isinstance(s, Place) and s.verb in ("load", "compute") and s.memory == "register":
            if any(r.tensor.name == s.tensor_name for r in task.reads()):
                owners = tuple(t for t in s.steps or () if isinstance(t, Tile))
    if not owners or not {a for t in owners for a, _ in t.sizes} <= left.after(steps).sizes.keys():
        return steps
    return (*steps, *owners)  # `complete` moves the innermost step to the end


def check_level(profile: Profile, step: Tile) -> None:
    """Checks that the device has the level that tiles are mapped to. Raises Refusal `level-not-here`."""
    if not profile.has_level(step.level):
        near = [] if step.level in LEVELS else difflib.get_close_matches(step.level, profile.level_names, 1)
        raise refuse(step, "level-not-here", f"`{step}`: the profile `{profile.name}` has no level `{step.level}`",
                     (f"did you mean `{near[0]}`? The levels are " if near else "use one of the levels ")
                     + ", ".join(profile.level_names))  # fmt: skip


def map_tiles(profile: Profile, step: Tile, left: Extents, units: int, is_move: bool) -> UnitMapping:
    """The mapping of a step's tiles to `units` threads; left: the remaining extent of each axis.

    The tiles are numbered in one sequence, so that every iteration but the last uses all units, in moves, if an order numbers the
    tiles, or if the units of outputs do not divide evenly among the axes. Units that share a reduction work side by side on one
    set of tiles; units for which no set is left are idle. If there are fewer threads than a unit has, they form one unit; threads
    beside whole units are idle. Raises Refusal if the step needs more units than there are.
    """
    check_step_order(step, left.sizes, left.reduced)
    sizes = numbers(step)
    check_level(profile, step)
    per = min(profile.level(step.level).threads or 1, units)
    available, over = divmod(units, per)
    tiled = count_pieces(sizes, left.sizes)
    order = step.order if all(left.sizes[a] for a in sizes) else None  # without tiles the order does not matter
    tiles = units_numbered(order, tiled)
    wanted = available if step.count is None else whole_number(step, step.count)
    if wanted > available and not is_move:
        raise refuse(
            step,
            "too-many-units",
            f"`{step}` needs {wanted} {step.level}s, but only {available} are available",
            f"use at most {available}, or enlarge the block with `units block = ...`",
        )
    count = min(wanted, available)
    rest = math.prod(list(tiled.values())[1:])
    first = next(iter(sizes))
    if len(sizes) == 1 or is_move or order is not None or (count % rest != 0 and not left.reduced & set(sizes)):
        repeats = -(-tiles // count)
        abreast = {**tiled, first: min(tiled[first], max(1, count // rest))}
        again = ((first, repeats),) if repeats > 1 else ()
        return UnitMapping(sizes, per, count, tiled, abreast, again, True, count * per < units, over, order)
    abreast = _abreast(tiled, count)
    walks = tuple((a, -(-tiled[a] // abreast[a])) for a in sizes if tiled[a] > abreast[a])
    used = math.prod(abreast.values())
    return UnitMapping(sizes, per, used, tiled, abreast, walks, False, used * per < units, over)


def _abreast(rounds: Mapping[str, int], units: int) -> dict[str, int]:
    """How many tiles along each axis are computed at once: the last axis gets as many units as it can use, then the axes
    before it.

    >>> _abreast({"m": 12, "k": 12}, 16)
    {'m': 1, 'k': 12}
    """
    found = {}
    for axis in reversed(list(rounds)):
        found[axis] = min(rounds[axis], units)
        units //= found[axis]
    return {axis: found[axis] for axis in rounds}
