"""Finds by enumeration which register of which thread holds each element that a reader wants.

A share says which element each thread has in each register. If all elements of one of the reader's registers come from a lane
whose number is a sum over the bits of the reader's own lane and over the enclosing loop variables, and from one of a few
registers there, a warp shuffle fetches them. If that lane is the reader itself, the register is only renamed.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from tilelang.core import distribution
from tilelang.core.distribution import Distribution, Numbers, parts, variables
from tilelang.core.expr import Expr, Var, index
from tilelang.core.simplify import simplify
from tilelang.lowering.build.movement.storage import Share, within

MOST_LANES = 1 << 24  # the most (point, lane of a warp) pairs that are enumerated
MOST_SOURCES = 4  # the most registers that lanes select from; with more, memory is cheaper


@dataclasses.dataclass(frozen=True)
class Fetch:
    """Where the value of one register comes from: register sources[which] of the given lane, or of the thread itself if the lane
    is None.

    Without sources, no element of the region belongs in this register.
    """

    at: tuple[Expr, ...]
    sources: tuple[tuple[Expr, ...], ...] = ()
    which: Expr = index(0)
    lane: Expr | None = None


@dataclasses.dataclass(frozen=True)
class Held:
    """Which elements of a tensor each thread holds, counted from the beginning of its unit's part.

    extents: of the elements counted. where[element, thread]: the number of the register, or -1 if the thread does not hold it.
    """

    extents: tuple[int, ...]
    where: Numbers


def held(share: Share, thread: Var) -> Held | None:
    """The elements that the owners of a share hold; None if there are too many to enumerate."""
    owners = share.owners
    assert owners is not None
    slots, at, inside = share.piece()
    found = parts([thread, *owners.walks, *slots])
    assert found is not None, "a walk has numbers"
    elements = tuple(simplify(a.base - low + e) for a, low, e in zip(owners.leaf, share.low, inside, strict=True))
    bounds = [b.replace(known=False).holds(e) for a, e in zip(owners.leaf, inside, strict=True) for b in a.bounds]
    told = tuple(c for c in (*owners.present, *bounds) if set(variables([c])) <= {v for v, _ in found})
    table = Distribution(found, (*elements, *at), told).table()
    if table is None:
        return None
    places, registers = table.coordinates[: len(elements)], table.coordinates[len(elements) :]
    extents = tuple(int(x.max(initial=-1)) + 1 for x in places)
    if math.prod(extents) * found[0][1] > distribution.MOST_POINTS:
        return None
    where = np.full((math.prod(extents), found[0][1]), -1, np.int64)
    where[_flat(places, extents), table.holder] = np.ravel_multi_index(registers, share.buffer.shape)
    return Held(extents, where)


def fetches(source: Share, has: Held, target: Share, extents: Sequence[int], thread: Var, warp: int) -> list[Fetch] | None:
    """Where each register of `target` comes from; None if memory must carry some. extents: of the region that `target` covers.

    warp: how many lanes can exchange registers; 0 if none can.
    """
    found = []
    for numbers in itertools.product(*map(range, target.buffer.shape)):
        at = tuple(map(index, numbers))
        inside = target.inside(at)
        local = tuple(simplify(e + low - o) for e, low, o in zip(inside, target.low, source.low, strict=True))
        walks = [v for v in variables(local) if v != thread]
        points = parts([*walks, thread])
        exists = (*within(inside, extents), *within(local, has.extents))
        grid = None if points is None else Distribution(points, local, exists).grid()
        if grid is None:
            return None
        places, needed = grid
        fetch: Fetch | None = Fetch(at)
        if needed.any():
            element = _flat([np.where(needed, x, 0) for x in places], has.extents, needed.shape)
            fetch = _fetch(at, source, has.where, element, needed, walks, thread, warp)
        if fetch is None:
            return None
        found.append(fetch)
    return found


def _fetch(at: tuple[Expr, ...], source: Share, where: Numbers, element: Numbers, needed: Any, walks: Sequence[Var],
           thread: Var, warp: int) -> Fetch | None:  # fmt: skip
    """Where a register's value comes from. element: which element each thread wants in it, in every iteration of the loops;
    needed: whether."""
    assert source.owners is not None
    threads = np.broadcast_to(np.arange(where.shape[1]), needed.shape)
    register, lane = where[element, threads], None
    whole = warp and where.shape[1] % warp == 0
    if (register < 0)[needed].any():
        if not whole or element.size * warp > MOST_LANES:
            return None
        register, lanes = _first_lanes(where, element, threads, warp, source.owners.units)
        lane = _of_lanes(lanes, needed, walks, thread, warp)
        if lane is None or (register < 0)[needed].any():
            return None
    first = np.where(needed, register, np.iinfo(np.int64).max).min(axis=-1, keepdims=True)
    steps, numbers = np.unique((register - first)[needed], return_inverse=True)
    which: Expr | None = index(0)
    if len(steps) > 1:
        table = np.zeros(needed.shape, np.int64)
        table[needed] = numbers
        which = _of_lanes(table, needed, walks, thread, warp) if whole and len(steps) <= MOST_SOURCES else None
    rounds = needed.any(axis=-1)
    begins = np.where(rounds, first[..., 0], 0)
    if begins.max() + steps.max() >= math.prod(source.buffer.shape):
        return None  # a register that some iterations select lies outside the buffer in others
    places = [np.unravel_index(begins + step, source.buffer.shape) for step in steps]
    sources = [[_sum(x, rounds, walks) for x in place] for place in places]
    if which is None or any(e is None for indices in sources for e in indices):
        return None
    return Fetch(at, tuple(tuple(e for e in indices if e is not None) for indices in sources), which, lane)


def _first_lanes(where: Numbers, element: Numbers, threads: Numbers, warp: int, units: int) -> tuple[Numbers, Numbers]:
    """The first lane in each reader's warp and unit that has its element, and the register there; -1 if no lane has it."""
    mine = where.reshape(len(where), -1, warp)[element, threads // warp]  # [walks, reader, lane of an owner in its warp]
    owner = (threads // warp * warp)[..., None] + np.arange(warp)
    mine = np.where(owner // units == threads[..., None] // units, mine, -1)
    lanes = (mine >= 0).argmax(axis=-1)
    return np.take_along_axis(mine, lanes[..., None], axis=-1)[..., 0], lanes


def _of_lanes(values: Numbers, needed: Any, walks: Sequence[Expr], thread: Var, warp: int) -> Expr | None:
    """A table over loops and threads as a sum over loop variables and lane bits; None if it is no such sum or differs between warps."""
    by_warp, told = (x.reshape(*x.shape[:-1], -1, warp) for x in (values, needed))
    least = np.where(told, by_warp, np.iinfo(np.int64).max).min(axis=-2)
    most = np.where(told, by_warp, -1).max(axis=-2)
    known = told.any(axis=-2)
    return _sum(np.where(known, most, 0), known, walks, thread) if (least == most)[known].all() else None


def _sum(values: Numbers, known: Any, walks: Sequence[Expr], thread: Var | None = None) -> Expr | None:
    """A table over loops (and over a thread's lanes) as a constant plus multiples of the loop variables (and of the lane's bits).

    None if it is no such sum. known: where the table has a meaning.
    """
    bits = 0 if thread is None else values.shape[-1].bit_length() - 1
    shape = (*np.shape(values)[: len(walks)], *[2] * bits)
    table, told = np.reshape(values, shape), np.reshape(known, shape)
    steps = [_step(table, told, d) for d in range(len(shape))]
    rest = table - sum((g * s for g, s in zip(np.indices(shape), steps, strict=True)), np.zeros(shape, np.int64))
    start = int(rest[told].min())
    if (rest != start)[told].any():
        return None
    total: Expr = index(start)
    for v, step in zip(walks, steps, strict=False):
        total = total + v * step
    of_bits, low = list(reversed(steps[len(walks) :])), 0
    while thread is not None and low < bits:
        high = low + 1
        while high < bits and of_bits[high] == of_bits[low] << (high - low):
            high += 1
        total = total + (thread // (1 << low)) % (1 << (high - low)) * of_bits[low]
        low = high
    return simplify(total)


def _step(table: Numbers, told: Any, axis: int) -> int:
    """The difference between neighbours along an axis, from the first pair that is known."""
    both = np.logical_and(np.delete(told, 0, axis), np.delete(told, -1, axis))
    return int(np.diff(table, axis=axis)[both][0]) if both.any() else 0


def _flat(places: Sequence[Numbers], extents: Sequence[int], shape: tuple[int, ...] | None = None) -> Any:
    """Coordinates as one linear number each."""
    if not places:
        return np.zeros(shape or (), np.int64)
    return np.ravel_multi_index(tuple(places), tuple(extents))
