"""Orders of tiles: the tile that each unit takes, if a schedule numbers the units by the terms of a layout.

The terms of an order are the digits of a unit's number, most significant first. To invert an order, the terms are solved for the axes,
one after the other: an axis, a quotient or a remainder of it, a sum of these with strides, one of them xored with a known value, or one
rotated by it. Units beyond the last tile of an axis get a tile that does not exist.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping, Sequence

from tilelang.core.expr import INDEX, Binary, Const, Expr, Var, free, index, substitute, to_text
from tilelang.core.layout import Layout
from tilelang.core.simplify import interval, linear, simplify
from tilelang.errors import Refusal

MOST_UNITS = 1 << 18  # that are enumerated
Piece = tuple[str, int, int]  # axis, c, k: the value axis // c % k


def order_extents(order: Layout, counts: Mapping[str, int]) -> list[int]:
    """The number of values of each term of an order: n/8 and n%8 have ceil(n/8) and 8. counts: the number of tiles along each axis.

    >>> from tilelang.core.layout import layout
    >>> order_extents(layout(lambda m, n: (n // 8, m, n % 8)), {"m": 3, "n": 20})
    [3, 3, 8]
    """
    ranges: dict[Expr, Expr] = {Var(a, INDEX): Var(a, INDEX, 0, max(0, n - 1)) for a, n in counts.items()}
    out = []
    for term in order.terms:
        piece = _piece(term, {})
        high = interval(substitute(term, ranges))[1]
        out.append(piece[2] if piece is not None and piece[2] else 1 + (high or 0))
    return out


def tile_of(order: Layout, counts: Mapping[str, int], number: Expr) -> dict[str, Expr] | None:
    """The tile along each axis that unit `number` takes; None if the terms cannot be solved.

    >>> from tilelang.core.layout import layout
    >>> found = tile_of(layout(lambda m, n: (m, n ^ (m % 2))), {"m": 2, "n": 4}, Var("unit", INDEX, 0, 7))
    >>> print(found["m"], found["n"])
    unit // 4 unit % 4 ^ unit // 4
    """
    digits: list[Expr] = []
    rest = number
    extents = order_extents(order, counts)
    for k, extent in reversed(list(enumerate(extents))):
        digits.insert(0, simplify(rest % extent) if k else rest)
        rest = simplify(rest // extent)
    pieces: dict[str, dict[tuple[int, int], Expr]] = {a: {} for a in counts}
    open_terms = {k: term for k, term in enumerate(order.terms) if extents[k] > 1 or not _says_nothing(term, counts)}
    named = {v.name for term in open_terms.values() for v in free(term) if isinstance(v, Var)}
    known: dict[Expr, Expr] = {Var(a, INDEX): index(0) for a, n in counts.items() if n <= 1 and a not in named}
    while open_terms:
        for k, term in open_terms.items():
            found = _solved(term, digits[k], known, counts)
            if found is not None:
                break
        else:
            alone = [Var(a, INDEX) for a, n in counts.items() if n <= 1 and Var(a, INDEX) not in known]
            if not alone:
                return None
            known.update(dict.fromkeys(alone, index(0)))  # no term determines these axes, which have one tile
            continue
        del open_terms[k]
        for (axis, c, modulus), value in found.items():
            if (c, modulus) in pieces[axis]:
                return None
            pieces[axis][c, modulus] = simplify(value)
            whole = _together(pieces[axis], counts[axis])
            if whole is not None:
                known[Var(axis, INDEX)] = whole
    return {a: known[Var(a, INDEX)] for a in counts} if all(Var(a, INDEX) in known for a in counts) else None


def _says_nothing(term: Expr, counts: Mapping[str, int]) -> bool:
    """Whether a term is 0 for all tiles, such as n/8 for eight tiles."""
    ranges: dict[Expr, Expr] = {Var(a, INDEX): Var(a, INDEX, 0, max(0, n - 1)) for a, n in counts.items()}
    return bool(free(term)) and interval(substitute(term, ranges)) == (0, 0)


def _piece(e: Expr, known: Mapping[Expr, Expr]) -> Piece | None:
    """An unknown axis, or a quotient, a remainder, or both, of one. k is 0 if there is no remainder."""
    match e:
        case Var(name=name) if e not in known:
            return name, 1, 0
        case Binary("//", Var(name=name) as v, Const(value=c)) if v not in known:
            return name, int(c), 0
        case Binary("%", inner, Const(value=k)):
            found = _piece(inner, known)
            return (found[0], found[1], int(k)) if found is not None and not found[2] else None
    return None


def _solved(term: Expr, digit: Expr, known: Mapping[Expr, Expr], counts: Mapping[str, int]) -> dict[Piece, Expr] | None:
    """The pieces of axes that a term determines, given its digit; an empty dict if they are already known."""
    piece = _piece(term, known)
    if piece is not None:
        return {piece: digit}
    match term:
        case Binary("^", left, right):
            for mine, other in ((left, right), (right, left)):
                piece = _piece(mine, known)
                if piece is not None and free(other) <= known.keys():
                    return {piece: Binary("^", digit, substitute(other, known))}
        case Binary("%", inner, Const(value=n)):
            found = _strided(inner, digit, known, counts, int(n))
            return None if found is None else {p: v % int(n) for p, v in found.items()}
    return _strided(term, digit, known, counts, 0)


def _strided(
    e: Expr, digit: Expr, known: Mapping[Expr, Expr], counts: Mapping[str, int], around: int
) -> dict[Piece, Expr] | None:
    """Solves a sum of pieces with strides, and of known values. around: the sum is taken modulo this number, and is then of a single
    piece of that length."""
    terms, constant = linear(e)
    rest, strides = digit - constant, dict[Piece, int]()
    for atom, c in terms:
        piece = _piece(atom, known)
        if piece is not None:
            strides[piece] = c
        elif free(atom) <= known.keys():
            rest = rest - substitute(atom, known) * c
        else:
            return None
    if len(strides) == 1:
        ((piece, c),) = strides.items()
        length = piece[2] or -(-counts[piece[0]] // piece[1])
        return {piece: rest * c} if abs(c) == 1 and around in (0, length) else None
    ordered = sorted(strides.items(), key=lambda x: x[1])
    if around or not ordered or ordered[0][1] != 1:
        return None
    found: dict[Piece, Expr] = {}
    for (piece, c), (_, following) in zip(ordered, [*ordered[1:], (None, 0)], strict=True):
        length = piece[2] or -(-counts[piece[0]] // piece[1])
        if following and (following % c or c * length > following):
            return None
        found[piece] = rest % following // c if following else rest // c
    return found


def _together(pieces: Mapping[tuple[int, int], Expr], extent: int) -> Expr | None:
    """An axis from its consecutive pieces; None if one is missing."""
    total: Expr = index(0)
    below = 1
    for (c, k), value in sorted(pieces.items()):
        if c != below:
            return None
        total = total + value * c
        below = c * k if k else 0
    return simplify(total) if below == 0 or below >= extent else None


def check_order(order: Layout, counts: Mapping[str, int]) -> None:
    """Refuses an order of units that does not take every tile exactly once. counts: the number of tiles along each axis.

    The terms of an order are the digits of a unit's number. Raises Refusal: `order-axis`, `tile-not-covered` (with two tiles that have
    the same number), `tile-covered-twice` (with a tile and two units), `order-term` if no rule finds the tile of a unit.

    >>> from tilelang.core.layout import layout
    >>> check_order(layout("m"), {"m": 2, "n": 2})
    Traceback (most recent call last):
    tilelang.errors.Refusal: error[tile-not-covered]: ...
    """
    _check_order(order, tuple(counts.items()))


@functools.lru_cache(256)
def _check_order(order: Layout, tiles: tuple[tuple[str, int], ...]) -> None:
    """`check_order` with a cache, because each later step of a schedule checks again."""
    counts = dict(tiles)
    check_order_form(order, tuple(counts))
    names, text = ", ".join(counts), str(order).replace("layout", "order")
    if any(n == 0 for n in counts.values()):
        return
    clash = _same_number(order, counts)
    if clash is not None:
        first, second = clash
        raise Refusal(
            "tile-not-covered",
            f"`{text}` gives two tiles the same unit, so one of them would not be computed",
            counterexample=f"tiles ({names}) = {_tuple(first)} and {_tuple(second)} have the same number",
            help="use every axis completely: as n, or as the pair n/8 and n%8",
        )
    if not _takes_each_once(order, counts):
        raise _takes_some_twice(order, counts, text)


def check_order_form(order: Layout, axes: Sequence[str]) -> None:
    """Refuses an order that cannot number tiles of these axes, whatever their number. Raises Refusal.

    >>> from tilelang.core.layout import layout
    >>> check_order_form(layout("q"), ["m"])
    Traceback (most recent call last):
    tilelang.errors.Refusal: error[order-axis]: ...
    """
    names = ", ".join(axes)
    if not order.terms or order.padding or order.swizzle_bytes:
        raise Refusal(
            "order-term",
            f"an order numbers units by terms over {names}, without padding or swizzle",
            help=f"pass only terms, as in tl.layout({', '.join(map(repr, reversed(axes)))})",
        )
    for name in order.dims:
        if name not in axes:
            raise Refusal(
                "order-axis",
                f"the order names `{name}`, which this tile does not divide",
                help=f"order the axes of this tile: {names}",
            )


def _takes_some_twice(order: Layout, counts: Mapping[str, int], text: str) -> Refusal:
    """The error for an order without a clash of numbers: a superfluous term, a negative term, or one that cannot be solved."""
    for k, term in reversed(list(enumerate(order.terms))):
        if not free(term):
            return Refusal("order-term", f"`{to_text(term)}` of `{text}` is the same for all tiles", help="remove it")
        if _says_nothing(term, counts):
            continue
        if _same_number(order.replace(terms=(*order.terms[:k], *order.terms[k + 1 :])), counts) is None:  # it is superfluous
            name = ", ".join(sorted(str(v) for v in free(term)))
            return Refusal(
                "tile-covered-twice",
                f"`{text}` counts the tiles along {name} twice, so a tile would be computed by two units",
                counterexample=f"tile ({', '.join(counts)}) = {_tuple((0,) * len(counts))} is taken by units 0 and "
                f"{_stride_after(order, k, counts)}",
                help=f"use {name} once: as {name}, or as the pair {name}/8 and {name}%8",
            )
    ranges: dict[Expr, Expr] = {Var(a, INDEX): Var(a, INDEX, 0, n - 1) for a, n in counts.items()}
    for term in order.terms:
        low = interval(substitute(term, ranges))[0]
        if low is not None and low < 0:
            return Refusal(
                "order-term",
                f"`{to_text(term)}` in `{text}` can be {low}, but numbers begin at 0",
                help=f"count down from the last tile, as in {to_text(simplify(index(-low) + term))}",
            )
    return Refusal(
        "order-term",
        f"`{text}` cannot be inverted: no rule computes a tile from its number",
        counterexample=f"the terms are {', '.join(to_text(t) for t in order.terms)}",
        help="write one axis after the other: as n, as n/8 and n%8, as n ^ t or (n + t) % tiles with t a term of the other axes, or as"
        " m + 8*n",
    )


def _takes_each_once(order: Layout, counts: Mapping[str, int]) -> bool:
    """Whether the units' tiles can be computed, and are all tiles, each once. Only the first units of large orders are checked."""
    from tilelang.core.distribution import Distribution  # late: imports NumPy

    count, total = math.prod(order_extents(order, counts)), math.prod(counts.values())
    unit = Var("unit", INDEX, 0, count - 1)
    found = tile_of(order, counts, unit)
    if found is None:
        return False
    exists = tuple(found[a] < n for a, n in counts.items())
    points = Distribution(((unit, min(count, MOST_UNITS)),), tuple(found[a] for a in counts), exists).table()
    assert points is not None, "only the unit decides its tile"
    inside = all((c >= 0).all() for c in points.coordinates)
    return inside and points.shared() is None and (count >= MOST_UNITS or points.holder.size == total)


def _tuple(values: tuple[int, ...]) -> str:
    return f"({', '.join(map(str, values))})"


def _same_number(order: Layout, counts: Mapping[str, int]) -> tuple[tuple[int, ...], tuple[int, ...]] | None:
    """Two tiles with the same number, by enumeration; None if there are none."""
    from tilelang.core.distribution import Distribution  # late: imports NumPy

    parts = tuple((Var(a, INDEX), n) for a, n in counts.items())
    points = Distribution(parts, order.terms).shortened(MOST_UNITS, kept=0).table()
    assert points is not None, "only the axes decide a number"
    return points.shared()


def _stride_after(order: Layout, k: int, counts: Mapping[str, int]) -> int:
    """The difference between the numbers of two units whose term k differs by one."""
    ranges = {Var(a, INDEX): Var(a, INDEX, 0, n - 1) for a, n in counts.items()}
    return math.prod((interval(substitute(term, ranges))[1] or 0) + 1 for term in order.terms[k + 1 :])
