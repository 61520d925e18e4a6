"""Which register of which thread has what a reader wants, found by enumerating both owner maps.

A share says what each thread has in each register. Where every register of the reader comes from one lane of its warp, whose number
is a sum over the bits of the reader's own and over the walks around, and from one of a few registers there, that is an exchange of
registers; where the lane is the reader itself it is a renaming.
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

MOST_LANES = 1 << 24  # of points, each with the lanes of a warp
MOST_SOURCES = 4  # registers among which lanes choose; beyond, memory is cheaper


@dataclasses.dataclass(frozen=True)
class Fetch:
    """Where the value of one register comes from: sources[which], of the lane of that number, of the thread's own where that is None.

    No sources: there is no element of the region that it could hold.
    """

    at: tuple[Expr, ...]
    sources: tuple[tuple[Expr, ...], ...] = ()
    which: Expr = index(0)
    lane: Expr | None = None


@dataclasses.dataclass(frozen=True)
class Held:
    """What each thread holds of a tensor, counted from the beginning of its unit's part.

    extents: of the elements counted; where[element, thread]: the register, -1: none.
    """

    extents: tuple[int, ...]
    where: Numbers


def held(share: Share, thread: Var) -> Held | None:
    """What a share's owners have; None where it is too much to enumerate."""
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
    """Where each register of `target` comes from; None where memory must carry it. extents: of the region that target is of.

    warp: how many lanes exchange registers; 0: none do.
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
    """Where a register's value comes from. element: what each thread wants in it, round for round of the walks, if needed."""
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
        return None  # a register that is chosen in some rounds lies outside the buffer in others
    places = [np.unravel_index(begins + step, source.buffer.shape) for step in steps]
    sources = [[_sum(x, rounds, walks) for x in place] for place in places]
    if which is None or any(e is None for indices in sources for e in indices):
        return None
    return Fetch(at, tuple(tuple(e for e in indices if e is not None) for indices in sources), which, lane)


def _first_lanes(where: Numbers, element: Numbers, threads: Numbers, warp: int, units: int) -> tuple[Numbers, Numbers]:
    """The first lane of each reader's warp and unit that has its element, and the register there; -1: none has."""
    mine = where.reshape(len(where), -1, warp)[element, threads // warp]  # [walks, reader, lane of an owner in its warp]
    owner = (threads // warp * warp)[..., None] + np.arange(warp)
    mine = np.where(owner // units == threads[..., None] // units, mine, -1)
    lanes = (mine >= 0).argmax(axis=-1)
    return np.take_along_axis(mine, lanes[..., None], axis=-1)[..., 0], lanes


def _of_lanes(values: Numbers, needed: Any, walks: Sequence[Expr], thread: Var, warp: int) -> Expr | None:
    """A table over walks and threads as a sum over walks and bits of the lane; None where it is none, or differs between warps."""
    by_warp, told = (x.reshape(*x.shape[:-1], -1, warp) for x in (values, needed))
    least = np.where(told, by_warp, np.iinfo(np.int64).max).min(axis=-2)
    most = np.where(told, by_warp, -1).max(axis=-2)
    known = told.any(axis=-2)
    return _sum(np.where(known, most, 0), known, walks, thread) if (least == most)[known].all() else None


def _sum(values: Numbers, known: Any, walks: Sequence[Expr], thread: Var | None = None) -> Expr | None:
    """A table over walks, and over a thread's lanes if given, as a constant and multiples of walks and of the lane's bits.

    None where it is no such sum. known: where the table says anything.
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
    """How much neighbours along an axis differ, by the first two that are told."""
    both = np.logical_and(np.delete(told, 0, axis), np.delete(told, -1, axis))
    return int(np.diff(table, axis=axis)[both][0]) if both.any() else 0


def _flat(places: Sequence[Numbers], extents: Sequence[int], shape: tuple[int, ...] | None = None) -> Any:
    """Coordinates as one number each."""
    if not places:
        return np.zeros(shape or (), np.int64)
    return np.ravel_multi_index(tuple(places), tuple(extents))
