"""Bank conflicts: how many cycles an access of a warp to banked memory takes, counted lane by lane, by the simulator's rule.

Lanes are served together until their accesses fill the banks once. Within such a group, different words of the same bank are
served one after the other, and a word that several lanes read is fetched once.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence

from tilelang.core.expr import INDEX, Const, Expr, Var, index, substitute
from tilelang.core.layout import Layout, evaluate
from tilelang.core.simplify import interval, simplify

Spread = tuple[tuple[str, int, int], ...]  # (axis, lanes along it, elements from one lane to the next); the last varies fastest


@functools.lru_cache(maxsize=4096)
def coordinates(spread: Spread, lanes: int) -> Mapping[str, list[int]]:
    """The coordinate along every axis at which each lane begins.

    >>> coordinates((("m", 2, 4), ("n", 4, 1)), 8)
    {'m': [0, 0, 0, 0, 4, 4, 4, 4], 'n': [0, 1, 2, 3, 0, 1, 2, 3]}
    """
    from tilelang.core.distribution import Distribution  # late: imports NumPy

    lane, below, found = Var("lane", INDEX), 1, dict[str, Expr]()
    for axis, count, apart in reversed(spread):
        found[axis] = found.get(axis, index(0)) + lane // below % count * apart
        below *= count
    grid = Distribution(((lane, lanes),), tuple(reversed(found.values()))).grid()
    assert grid is not None, "only the lane decides where it begins"
    return {axis: begins.tolist() for axis, begins in zip(reversed(found), grid[0], strict=True)}


def phases(byte_addresses: Sequence[int], access_bytes: int, banks: int, bank_bytes: int) -> int:
    """The number of phases that serve one access per lane, each of `access_bytes` bytes at the given addresses.

    >>> phases([4 * lane for lane in range(32)], 4, 32, 4), phases([128 * lane for lane in range(32)], 4, 32, 4)
    (1, 32)
    """
    return _phases(tuple(byte_addresses), access_bytes, banks, bank_bytes)


@functools.lru_cache(maxsize=4096)
def _phases(byte_addresses: tuple[int, ...], access_bytes: int, banks: int, bank_bytes: int) -> int:
    words = max(1, access_bytes // bank_bytes)
    served = max(1, banks // words)
    total = 0
    for first in range(0, len(byte_addresses), served):
        wanted = {b // bank_bytes + w for b in byte_addresses[first : first + served] for w in range(words)}
        per_bank: dict[int, int] = {}
        for word in wanted:
            per_bank[word % banks] = per_bank.get(word % banks, 0) + 1
        total += max(per_bank.values())
    return total


@functools.lru_cache(maxsize=4096)
def layout_phases(
    layout: Layout, extents: tuple[tuple[str, int], ...], spread: Spread, lanes: int, shape: tuple[int, int, int, int]
) -> int:
    """The same for lanes that access elements of a shared buffer with a layout and these extents.

    shape: bytes of an element, elements of an access, number of banks, bytes of a bank.
    """
    element_bytes, elements, banks, bank_bytes = shape
    return phases(
        [p * element_bytes for p in places(layout, dict(extents), spread, lanes)], elements * element_bytes, banks, bank_bytes
    )


def places(layout: Layout, extents: Mapping[str, int], spread: Spread, lanes: int) -> list[int]:
    """The position, in elements, at which each lane's access begins; a dimension that the layout omits has one value."""
    at = coordinates(spread, lanes)
    return places_at(layout, extents, {d: at.get(d, [0] * lanes) for d in layout.dims or ("",)})


def places_at(layout: Layout, extents: Mapping[str, int], at: Mapping[str, Sequence[int]]) -> list[int]:
    """The same for given coordinates, a list per dimension."""
    sizes = tuple((d, extents.get(d, 1)) for d in layout.dims)
    return list(_places_at(layout, sizes, tuple((d, tuple(xs)) for d, xs in at.items())))


@functools.lru_cache(maxsize=4096)
def _places_at(layout: Layout, extents: tuple[tuple[str, int], ...], at: tuple[tuple[str, tuple[int, ...]], ...]) -> list[int]:
    import numpy as np  # late: NumPy takes long to import

    values = {Var(d, INDEX): np.asarray(xs, dtype=np.int64) for d, xs in at}
    bound = {Var(d, INDEX): Var(d, INDEX, 0, max(0, extent - 1)) for d, extent in extents}
    terms = layout.terms or (index(0),)
    sizes = [_size(simplify(substitute(t, bound))) for t in terms]
    sizes[-1] += layout.padding
    place = np.zeros_like(next(iter(values.values())))
    for term, size in zip(terms, sizes, strict=True):
        place = place * size + evaluate(term, values)
    found: list[int] = place.tolist()
    return found


def _size(term: Expr) -> int:
    if isinstance(term, Const):
        return 1
    high = interval(term)[1]
    return 1 if high is None else int(high) + 1
