"""Which thread has which element: what a refusal of a reader that is not the owner shows, and whether a store fits its owners.

Everything here enumerates threads and walks in NumPy; it runs where a schedule is refused, or where it declares owners twice.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from tilelang.core.expr import Expr, Var, index
from tilelang.core.layout import evaluate
from tilelang.core.simplify import interval
from tilelang.errors import Refusal
from tilelang.lowering import ir
from tilelang.lowering.build.movement.storage import NotOwner, Share
from tilelang.schedules.spec import Bound, Spec
from tilelang.schedules.steps import Step

BLOCKS = frozenset(v.name for v in ir.BLOCK)
MOST_POINTS = 1 << 22  # of threads and walks that are enumerated; beyond, the walks are cut short


def coordinates(indices: Sequence[Expr], threads: int) -> list[Any] | None:
    """The thread, then each index, as arrays over every thread and every round of the walks; None where they are not numbers."""
    variables: dict[Expr, int] = {}
    thread: Expr | None = None
    for e in indices:
        for v in e.walk():
            if isinstance(v, Var) and v.name == "thread":
                thread = v
            elif isinstance(v, Var):
                variables[v] = (interval(v)[1] or 0) + 1 if _is_walked(v) else 1
    counts = [threads, *variables.values()]
    while math.prod(counts) > MOST_POINTS and max(counts[1:], default=1) > 1:
        k = 1 + counts[1:].index(max(counts[1:]))
        counts[k] = -(-counts[k] // 2)
    grids = [g.ravel() for g in np.meshgrid(*[np.arange(n) for n in counts], indexing="ij")]
    values = dict(zip(variables, grids[1:], strict=True))
    if thread is not None:
        values[thread] = grids[0]
    try:
        return [grids[0], *(np.broadcast_to(evaluate(e, values), grids[0].shape) for e in indices)]
    except KeyError:
        return None


def existing_beyond(beyond: Sequence[tuple[int, Expr, Sequence[int]]], conditions: Sequence[Expr], threads: int) -> int | None:
    """The dimension along which a point that exists wants what its thread has not; None where there is no such point.

    beyond: (dimension, x, values), where the thread has an element only if x is one of the values. conditions: under which a point
    exists. Those that others than the thread and the walks in x decide are left out, as if they held; where there are too many points,
    one may exist.
    """
    for d, x, values in beyond:
        walks = {v for v in x.walk() if isinstance(v, Var)}
        told = [c for c in conditions if not (mine := {v for v in c.walk() if isinstance(v, Var)}) or mine & walks]
        told = [c for c in told if all(_is_walked(v) for v in c.walk() if isinstance(v, Var))]
        if not all(_is_walked(v) for v in walks) or _points([x, *told], threads) > MOST_POINTS:
            return d
        found = coordinates([x, *told], threads)
        if found is None:
            return d
        exists = np.logical_and.reduce([np.ones(found[0].shape, bool), *found[2:]])
        if (exists & ~np.isin(found[1], values)).any():
            return d
    return None


def offsets_within(offset: Expr, bounds: Sequence[Bound], threads: int) -> tuple[tuple[int, ...], ...]:
    """The values of an offset that each thread has: over all rounds of the walks in it where the bounds hold."""
    found = coordinates([offset, *(b.holds(index(0)) for b in bounds)], threads)
    assert found is not None, "a walk has numbers"
    own = np.logical_and.reduce(found[2:])
    of, offsets = found[0][own], found[1][own]
    return tuple(tuple(int(x) for x in np.unique(offsets[of == t])) for t in range(threads))


def _is_walked(v: Var) -> bool:
    """Whether a variable is the thread's number or runs from 0 to a known end inside a block."""
    low, high = interval(v)
    return v.name == "thread" or low == 0 and high is not None and v.name not in BLOCKS


def _points(indices: Sequence[Expr], threads: int) -> int:
    """How many points of threads and walks decide these."""
    variables = {v for e in indices for v in e.walk() if isinstance(v, Var) and v.name != "thread"}
    return threads * math.prod((interval(v)[1] or 0) + 1 for v in variables)


def not_owner(error: NotOwner, step: Step | None, threads: int) -> Refusal:
    """The refusal of a read by a thread that has not the element, with the element and the two threads."""
    share = error.share
    name, dims = share.tensor.name, share.names
    around = _taken_in_rounds(share)
    if around:
        which = " and ".join(around)
        return Refusal(
            "not-lowered-yet",
            f"threads process the tiles of {name} along {which} in iterations that do not begin at whole rows of tiles: in registers"
            " this is valid, but not supported yet for this target",
            span=getattr(step, "span", None),
            mend="use more threads (units block = ...), or larger tiles in the braces of the load, so that each thread has at most one",
            proven=False,
        )
    example = _foreign_element(share, dims, error.offsets, threads)
    if example is None:
        return Refusal(
            "reader-is-not-owner",
            f"the register that a thread reads for an element of {name} is not known at compile time",
            span=getattr(step, "span", None),
            counterexample=f"along {dims[error.dim]}, the element {error.offsets[error.dim]} of its region",
            mend=f"load {name} in register again for this reader, or use the same loops for it and the owner",
            proven=False,
        )
    return Refusal(
        "reader-is-not-owner",
        f"a thread reads an element of {name} that is in another thread's registers",
        span=getattr(step, "span", None),
        counterexample=example,
        mend=f"load {name} in register again for this reader, or use the same tiles for it and the owner",
    )


def _taken_in_rounds(share: Share) -> list[str]:
    """The dimensions along which a round of the units goes on together, so that no dimension tells by itself what a thread has."""
    rounds = [{v for v in d.unit.walk() if isinstance(v, Var) and v.name != "thread" and _is_walked(v)} for d in share.dims]
    return [n for n, mine in zip(share.names, rounds, strict=True) if any(sum(v in r for r in rounds) > 1 for v in mine)]


def _foreign_element(share: Share, dims: Sequence[str], offsets: Sequence[Expr], threads: int) -> str | None:
    """The first element that a thread reads and does not have, in words."""
    points = coordinates(offsets, threads)
    units = coordinates([d.unit for d in share.dims], threads)
    if points is None or units is None:
        return None
    owned = []
    for d, dim in enumerate(share.dims):
        first = np.zeros(threads, np.int64)
        first[units[0][::-1]] = units[1 + d][::-1]  # in round 0 of what else the unit depends on
        own = [int(evaluate(dim.offset(index(slot)), {})) for slot in range(dim.size)] if dim.own is None else dim.own
        mine = np.array([[o in offsets for o in own] for offsets in dim.by_thread or (own,)], bool)
        owned.append(np.where(mine, first[:, None] + np.array(own, np.int64), -1))  # elements count from 0
    has = np.ones(points[0].shape, bool)
    for d, wanted in enumerate(points[1:]):
        has &= (owned[d][points[0]] == wanted[:, None]).any(axis=1)
    wrong = np.nonzero(~has)[0]
    if not wrong.size:
        return None
    p = int(wrong[0])
    element = [int(x[p]) for x in points[1:]]
    owners = np.ones(threads, bool)
    for d, x in enumerate(element):
        owners &= (owned[d] == x).any(axis=1)
    return f"{_element(share.tensor.name, dims, element)} is read by thread {int(points[0][p])} but is in {_registers(owners)}"


def _element(name: str, dims: Sequence[str], element: Sequence[int]) -> str:
    places = ", ".join(map(str, element))
    at = f"{dims[0]} = {places}" if len(dims) == 1 else f"({', '.join(dims)}) = ({places})"
    return f"the element of {name} at {at}, relative to the start of its region,"


def _registers(owners: Any) -> str:
    found = [str(int(t)) for t in np.nonzero(owners)[0]]
    if not found:
        return "no thread's registers"
    which = f"thread {found[0]}" if len(found) == 1 else f"threads {', '.join(found[:4])}{', ...' if len(found) > 4 else ''}"
    return f"the registers of {which}"


def stored_by_another(name: str, whole: Spec, owner: Spec, store: Spec, threads: int) -> str | None:
    """The first element of a tile that is stored by a thread that does not hold it, in words; None where every one fits.

    whole: the spec of the tile; owner, store: its leaves by the steps that compute and by those that store.
    """
    axes = [a for a in whole.axes if not a.reduction]
    names = [a.name for a in axes]
    extents = np.array([max(1, a.extent) for a in axes])
    places = []
    for leaf in (owner, store):
        found = coordinates([leaf.axis(a.name).base - a.base for a in axes], threads)
        if found is None:
            return f"the elements of {name} have no numbers"
        inside = np.all([x < n for x, n in zip(found[1:], extents, strict=True)], axis=0)
        flat = np.ravel_multi_index([x[inside] for x in found[1:]], extents) if axes else np.zeros(int(inside.sum()), np.int64)
        places.append((flat, found[0][inside]))
    (held, holder), (stored, storer) = places
    wrong = np.nonzero(~np.isin(stored * threads + storer, held * threads + holder))[0]
    if not wrong.size:
        return None
    p = wrong[np.argmin(stored[wrong])]
    element = [int(x) for x in np.unravel_index(int(stored[p]), extents)]
    owners = np.zeros(threads, bool)
    owners[holder[held == stored[p]]] = True
    return f"{_element(name, names, element)} is stored by thread {int(storer[p])} but is in {_registers(owners)}"
