"""Simplification of index expressions, and interval analysis.

An index is brought into a linear form: a sum of integer multiples of atoms, and a constant. An atom is a variable, or an expression
that is not linear: a quotient, a remainder, a minimum, a load. Rules on quotients and remainders use intervals, from the ranges that
variables carry. Values of the computation are rebuilt over simplified children and otherwise left alone, so that no rounding changes.
64-bit integers have the type of indices, INDEX, and wrap around: their sums and products have the same linear forms, whereas
comparisons, quotients and extremes use the forms only if these provably stay within 64 bits (`_exact`).
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Sequence
from math import gcd, inf

from tilelang.core import dtype as dt
from tilelang.core.expr import COMPARISONS, INDEX, Axis, Binary, Cast, Const, Expr, Pad, Read, Select, Unary, Var, index
from tilelang.core.interval import OPERATORS, Interval, interval_of_operator

Linear = tuple[tuple[tuple[Expr, int], ...], int]  # ((atom, coefficient), ...) in order of first appearance, constant

TRUE, FALSE = Const(True, dt.bool_), Const(False, dt.bool_)

_BITWISE = {"^": operator.xor, "&": operator.and_, "|": operator.or_, "<<": operator.lshift, ">>": operator.rshift}

_linear: dict[Expr, Linear] = {}
_interval: dict[Expr, Interval] = {}
_simplified: dict[Expr, Expr] = {}
_size: dict[Expr, float] = {}

LARGEST = 1 << 63
UNBOUNDED_INDEX = 1 << 40  # no index reaches it, whatever the range of its variable


def simplify(expr: Expr) -> Expr:
    """An equal expression in canonical form.

    >>> from tilelang.core.expr import Axis
    >>> i = Axis("i", 4)
    >>> print(simplify((i * 8 + 3) // 8))
    i
    """
    found = _simplified.get(expr)
    if found is None:
        found = _simplified[expr] = _simplify(expr)
        _simplified[found] = found
    return found


def _simplify(e: Expr) -> Expr:
    if e.dtype is INDEX and not isinstance(e, (Const, Var, Axis)):
        return from_linear(linear(e))
    match e:
        case Binary(op, left, right) if op in COMPARISONS:
            return _compare(op, simplify(left), simplify(right))
        case Binary("and" | "or" as op, left, right):
            return _logic(op, simplify(left), simplify(right))
        case Unary("not", operand):
            inner = simplify(operand)
            if isinstance(inner, Const):
                return FALSE if inner.value else TRUE
            return Unary("not", inner)
        case Select(condition, then, otherwise):
            c = simplify(condition)
            if isinstance(c, Const):
                return simplify(then if c.value else otherwise)
            a, b = simplify(then), simplify(otherwise)
            return a if a is b else Select(c, a, b)
        case _:
            return e.map_children(lambda child: simplify(child) if isinstance(child, Expr) else child)


def _compare(op: str, left: Expr, right: Expr) -> Expr:
    if left.dtype is not INDEX:
        if isinstance(left, Const) and isinstance(right, Const):
            a, b = left.value, right.value
            return TRUE if {"==": a == b, "!=": a != b, "<": a < b, "<=": a <= b}[op] else FALSE
        return Binary(op, left, right)
    if not _exact(linear(left), linear(right)):
        return Binary(op, left, right)
    difference = linear(Binary("-", left, right))
    low, high = interval_of(difference)
    verdict: bool | None = None
    if op == "<":
        verdict = True if high is not None and high < 0 else False if low is not None and low >= 0 else None
    elif op == "<=":
        verdict = True if high is not None and high <= 0 else False if low is not None and low > 0 else None
    else:
        same = True if low == high == 0 else False if (low or 0) > 0 or (high or 0) < 0 else None
        verdict = same if op == "==" or same is None else not same
    if verdict is not None:
        return TRUE if verdict else FALSE
    terms, constant = difference  # atoms with positive factors stay on the left, the others move to the right
    plus = tuple((a, c) for a, c in terms if c > 0)
    minus = tuple((a, -c) for a, c in terms if c < 0)
    return Binary(op, from_linear((plus, max(constant, 0))), from_linear((minus, max(-constant, 0))))


def _logic(op: str, left: Expr, right: Expr) -> Expr:
    absorbing, neutral = (FALSE, TRUE) if op == "and" else (TRUE, FALSE)
    if left is absorbing or right is absorbing:
        return absorbing
    if left is neutral:
        return right
    return left if right is neutral or left is right else Binary(op, left, right)


def linear(e: Expr) -> Linear:
    """The linear form of an index expression."""
    found = _linear.get(e)
    if found is None:
        found = _linear[e] = _to_linear(e)
    return found


def _to_linear(e: Expr) -> Linear:
    match e:
        case Const(value=value):
            return (), int(value)
        case Binary("+", left, right):
            return _add(linear(left), linear(right), 1)
        case Binary("-", left, right):
            return _add(linear(left), linear(right), -1)
        case Unary("-", operand):
            return _scale(linear(operand), -1)
        case Binary("*", left, right):
            a, b = linear(left), linear(right)
            if not a[0]:
                return _scale(b, a[1])
            if not b[0]:
                return _scale(a, b[1])
            return _atom(Binary("*", from_linear(a), from_linear(b)))
        case Binary("//" | "%" as op, left, right):
            a, b = linear(left), linear(right)
            return _atom(Binary(op, from_linear(a), from_linear(b))) if b[0] else _divided(op, a, b[1])
        case Binary("min" | "max" as op, left, right):
            return _extreme(op, simplify(left), simplify(right))
        case Binary(op, left, right):
            first, second = simplify(left), simplify(right)
            if isinstance(first, Const) and isinstance(second, Const) and op in _BITWISE:
                x, y = int(first.value), int(second.value)
                if op not in ("<<", ">>") or 0 <= y < 64:  # otherwise a shift is undefined
                    return (), _BITWISE[op](x, y)
            if op == "^" and isinstance(first, Const) and first.value == 0:
                return linear(second)
            if op == "^" and isinstance(second, Const) and second.value == 0:
                return linear(first)
            return _atom(Binary(op, first, second))
        case Select(condition, then, otherwise):
            c = simplify(condition)
            if isinstance(c, Const):
                return linear(then if c.value else otherwise)
            return _atom(Select(c, simplify(then), simplify(otherwise)))
        case Var() | Axis():
            return _atom(e)
        case _:
            return _atom(e.map_children(lambda child: simplify(child) if isinstance(child, Expr) else child))


def _atom(e: Expr) -> Linear:
    return ((e, 1),), 0


def _add(a: Linear, b: Linear, sign: int) -> Linear:
    terms = dict(a[0])
    for atom, c in b[0]:
        terms[atom] = terms.get(atom, 0) + sign * c
    return _recombine({k: c for k, c in terms.items() if c}, a[1] + sign * b[1])


def weighted_sum(indices: Sequence[Expr], factors: Sequence[int]) -> Linear:
    """The linear form of a weighted sum of index expressions, such as an element's offset by its strides."""
    return _weighted_sum(tuple(indices), tuple(factors))


@functools.lru_cache(maxsize=1 << 12)
def _weighted_sum(indices: tuple[Expr, ...], factors: tuple[int, ...]) -> Linear:
    total: Linear = (), 0
    for i, factor in zip(indices, factors, strict=True):
        total = _add(total, _scale(linear(i), factor), 1)
    return total


def _scale(a: Linear, factor: int) -> Linear:
    return (tuple((k, c * factor) for k, c in a[0]), a[1] * factor) if factor else ((), 0)


def _recombine(terms: dict[Expr, int], constant: int) -> Linear:
    """Rewrites x // c * (k c) + x % c * k to x * k."""
    for atom, k in list(terms.items()):
        if isinstance(atom, Binary) and atom.op == "%" and isinstance(atom.right, Const):
            c = int(atom.right.value)
            if k * c not in terms.values():
                continue
            for (found, number), *more in (q for q in _quotients(atom.left, c) if q):
                if not more and number == 1 and terms.get(found) == k * c:
                    rest = {a: v for a, v in terms.items() if a is not atom and a is not found}
                    return _add((tuple(rest.items()), constant), _scale(linear(atom.left), k), 1)
    return tuple(terms.items()), constant


@functools.lru_cache(maxsize=1 << 12)
def _quotients(e: Expr, c: int) -> tuple[tuple[tuple[Expr, int], ...], ...]:
    """The terms of e // c without its constant; also with an inner quotient resolved, since (y + z // d) // c is (y d + z) // (c d)."""
    a = linear(e)
    forms = [_quotient(a, c)]
    for atom, number in a[0] if c > 0 else ():
        if number == 1 and isinstance(atom, Binary) and atom.op == "//" and isinstance(atom.right, Const):
            d = int(atom.right.value)
            others = tuple(t for t in a[0] if t[0] is not atom), a[1]
            forms += [_quotient(_add(_scale(others, d), linear(atom.left), 1), c * d)] if d > 0 else []
    return tuple(terms for terms, constant in forms if constant == 0)


def _split(a: Linear, c: int) -> tuple[Linear, Linear]:
    """Splits a = c * whole + rest, with `whole` as large as the factors show and the constant of `rest` in 0 .. c-1."""
    whole = tuple((k, v // c) for k, v in a[0] if v % c == 0)
    rest = tuple((k, v) for k, v in a[0] if v % c)
    return (whole, a[1] // c), (rest, a[1] % c)


def _divided(op: str, a: Linear, c: int) -> Linear:
    """A quotient or remainder by a constant. By 0 it is 0; if the divisor is negative, both operands are negated."""
    if c == 0:
        return (), 0
    if c > 0:
        return _quotient(a, c) if op == "//" else _remainder(a, c)
    if not _exact(a):
        return _atom(Binary(op, from_linear(a), index(c)))
    opposite = _scale(a, -1)
    return _quotient(opposite, -c) if op == "//" else _scale(_remainder(opposite, -c), -1)


def _quotient(a: Linear, c: int) -> Linear:
    if c == 1:
        return a
    if not _exact(a):
        return _atom(Binary("//", from_linear(a), index(c)))
    whole, rest = _split(a, c)
    low, high = interval_of(rest)
    if low is not None and high is not None and low // c == high // c:
        return whole[0], whole[1] + low // c
    factor, steps, _ = _carry_free(rest, c)
    if factor > 1:
        reduced = tuple((k, v // factor) for k, v in steps[0]), steps[1] // factor
        return _add(whole, _quotient(reduced, c // factor), 1)
    if len(rest[0]) == 1 and rest[1] == 0 and rest[0][0][1] == 1:
        atom = rest[0][0][0]
        if isinstance(atom, Binary) and atom.op == "//" and isinstance(atom.right, Const):
            return _add(whole, _quotient(linear(atom.left), c * int(atom.right.value)), 1)
    return _add(whole, _atom(Binary("//", from_linear(rest), index(c))), 1)


def _carry_free(rest: Linear, c: int) -> tuple[int, Linear, Linear]:
    """(g, steps, inside) with rest = steps + inside, where g > 1 divides c and all factors of `steps`, and `inside` is in 0 .. g-1, so
    that it never carries into a quotient by c. g is 1 if there is no such split."""
    shared = c
    for _, v in rest[0]:
        shared = gcd(shared, v)
    for factor in sorted({shared, *(gcd(c, v) for _, v in rest[0])} - {1}, reverse=True):
        inside = tuple((k, v) for k, v in rest[0] if v % factor), rest[1] % factor
        low, high = interval_of(inside)
        if low is not None and high is not None and 0 <= low and high < factor:
            return factor, (tuple((k, v) for k, v in rest[0] if v % factor == 0), rest[1] - inside[1]), inside
    return 1, rest, ((), 0)


def _remainder(a: Linear, c: int) -> Linear:
    if c == 1:
        return (), 0
    if not _exact(a):
        return _atom(Binary("%", from_linear(a), index(c)))
    _, rest = _split(a, c)
    low, high = interval_of(rest)
    if low is not None and high is not None and low // c == high // c:
        return rest[0], rest[1] - low // c * c
    if len(rest[0]) == 1 and rest[1] == 0 and rest[0][0][1] == 1:
        atom = rest[0][0][0]
        if isinstance(atom, Binary) and atom.op == "%" and isinstance(atom.right, Const) and int(atom.right.value) % c == 0:
            return _remainder(linear(atom.left), c)
    factor, steps, inside = _carry_free(rest, c)
    if factor > 1:
        reduced = tuple((k, v // factor) for k, v in steps[0]), steps[1] // factor
        return _add(_scale(_remainder(reduced, c // factor), factor), inside, 1)
    return _atom(Binary("%", from_linear(rest), index(c)))


def _extreme(op: str, a: Expr, b: Expr) -> Linear:
    low, high = interval_of(_add(linear(a), linear(b), -1)) if _exact(linear(a), linear(b)) else (None, None)  # a - b
    if (high is not None and high <= 0) or (low is not None and low >= 0):
        smaller = high is not None and high <= 0
        return linear(a if smaller == (op == "min") else b)
    return _atom(Binary(op, a, b))


def _exact(*forms: Linear) -> bool:
    """Whether sums and differences of linear forms provably stay within 64 bits, so that they equal the values of their expressions."""
    return sum(abs(constant) + sum(abs(c) * _size_of(atom) for atom, c in terms) for terms, constant in forms) < LARGEST


def magnitude(e: Expr) -> float:
    """The maximum magnitude of an index expression; infinite if unknown.

    >>> from tilelang.core.expr import Axis
    >>> i = Axis("i", 10)
    >>> magnitude(i * i - 2)
    83
    """
    terms, constant = linear(e)
    return abs(constant) + sum(abs(c) * _size_of(atom) for atom, c in terms)


def exact(*sides: Expr) -> bool:
    """Whether index expressions provably equal their linear forms as integers, i.e. never wrap in 64 bits.

    >>> from tilelang.core.expr import Axis
    >>> i = Axis("i", 4)
    >>> exact(i * 2**61 + 5), exact(i * 2**62)
    (True, False)
    """
    return all(linear(e) == _atom(e) or magnitude(e) < LARGEST for e in sides)


def difference(left: Expr, right: Expr) -> Linear | None:
    """The linear form of left - right, if it can be solved for each of its terms within 64 bits; None if that might wrap."""
    return linear(left - right) if magnitude(left) + magnitude(right) < LARGEST // 2 else None


def _size_of(atom: Expr) -> float:
    """The maximum magnitude of an atom; infinite if unknown."""
    found = _size.get(atom)
    if found is None:
        low, high = _atom_interval(atom)
        known = low is not None and high is not None
        found = _size[atom] = max(abs(low or 0), abs(high or 0)) if known else _unbounded_size(atom)
    return found


def _unbounded_size(atom: Expr) -> float:
    match atom:
        case Var() | Axis():
            return UNBOUNDED_INDEX
        case Cast(operand) if operand.dtype.kind == "bool" or (operand.dtype.is_integer and operand.dtype.bits < 64):
            return 1 << 32
        case Binary("*", left, right):
            return magnitude(left) * magnitude(right)
        case Binary("<<", left, Const(value=bits)) if bits >= 0:
            return magnitude(left) * 2.0 ** int(bits)
        case Binary("//" | ">>", left):
            return magnitude(left)
        case Binary("min" | "max", left, right) | Select(_, left, right):
            return max(magnitude(left), magnitude(right))
        case Binary("&" | "^" | "|", left, right):  # at most one bit longer than the longer operand
            return 2 * max(magnitude(left), magnitude(right), 1)
        case Binary("%", _, right) | Unary("~", right):
            return magnitude(right) + 1
        case _:
            return inf


def from_linear(form: Linear) -> Expr:
    """The expression of a linear form."""
    terms, constant = form
    if not -LARGEST <= constant < LARGEST or any(not -LARGEST <= c < LARGEST for _, c in terms):
        terms, constant = tuple((a, _wrapped(c)) for a, c in terms if _wrapped(c)), _wrapped(constant)
    positive = sorted((t for t in terms if t[1] > 0), key=lambda t: -t[1])
    negative = [t for t in terms if t[1] < 0]
    total: Expr | None = None
    for atom, c in positive:
        term = atom if c == 1 else Binary("*", atom, index(c))
        total = term if total is None else Binary("+", total, term)
    if total is None:
        total = index(constant)
    elif constant > 0:
        total = Binary("+", total, index(constant))
    for atom, c in negative:
        term = atom if c == -1 else Binary("*", atom, index(-c))
        total = Binary("-", total, term)
    if positive and constant < 0:
        total = Binary("-", total, index(-constant))
    return total


def _wrapped(value: int) -> int:
    return (value + LARGEST) % (2 * LARGEST) - LARGEST


def interval(e: Expr) -> Interval:
    """The least and greatest value of an index expression, from its variables' ranges."""
    found = _interval.get(e)
    if found is None:
        found = _interval[e] = interval_of(linear(e)) if e.dtype is INDEX else (None, None)
    return found


def interval_of(form: Linear) -> Interval:
    low: int | None = form[1]
    high: int | None = form[1]
    for atom, c in form[0]:
        a, b = _atom_interval(atom)
        if c < 0:
            a, b = b, a
        low = None if low is None or a is None else low + c * a
        high = None if high is None or b is None else high + c * b
    return (low, high) if -LARGEST <= (low or 0) and (high or 0) < LARGEST else (None, None)


def _atom_interval(atom: Expr) -> Interval:
    match atom:
        case Var(lower=lower, upper=upper):
            return lower, upper
        case Axis(extent=extent):
            return 0, max(0, extent - 1)
        case Read(tensor=tensor):
            known = getattr(tensor, "range", None)
            return (known[0], known[1] - 1) if known else _type_range(atom)
        case Pad(read, outside):
            low, high = _atom_interval(read)
            return None if low is None else min(low, int(outside.value)), None if high is None else max(high, int(outside.value))
        case Binary(op, left, right) if op in OPERATORS:
            divisor, found = _range(right), interval_of_operator(op, _range(left), _range(right))
            exact = op in _WITHIN_OPERANDS or (op == "//" and divisor[0] is not None and divisor[0] > 0)
            return found if exact and None in found else _held(atom, *found)
        case Unary("-" | "~" as op, operand):
            return _held(atom, *interval_of_operator("-", (0, 0) if op == "-" else (-1, -1), _range(operand)))
        case Select(_, then, otherwise):
            (a, b), (c_, d) = _range(then), _range(otherwise)
            return None if a is None or c_ is None else min(a, c_), None if b is None or d is None else max(b, d)
        case Cast(operand) if operand.dtype.is_integer:
            return _held(atom, *_range(operand))
        case Cast(operand):
            return (0, 1) if operand.dtype.kind == "bool" else _type_range(atom)
        case _:
            return None, None


def _range(e: Expr) -> Interval:
    """The least and greatest value of a subexpression of any integer type."""
    if isinstance(e, Const):
        return int(e.value), int(e.value)
    return interval(e) if e.dtype is INDEX else _atom_interval(e)


_WITHIN_OPERANDS = {"min", "max", "%", "&", "|", "^", ">>"}  # operators whose exact values the operands' type holds


def _held(e: Expr, low: int | None, high: int | None) -> Interval:
    """The interval of exact values as values of e's type: if the type cannot hold them, they wrap to any of its values."""
    kept = low is not None and high is not None and e.dtype.lowest <= low and high <= e.dtype.highest
    return (low, high) if kept else _type_range(e)


def _type_range(e: Expr) -> Interval:
    if not e.dtype.is_integer or (e.dtype.bits >= 64 and e.dtype.kind == "int"):
        return None, None
    return int(e.dtype.lowest), int(e.dtype.highest)


def conjunction(conditions: list[Expr]) -> Expr | None:
    """All conditions joined, without duplicates and simplified; None if nothing is left to test."""
    total: Expr = TRUE
    for part in dict.fromkeys(part for c in conditions for part in conjuncts(simplify(c))):
        total = _logic("and", total, part)
    return None if total is TRUE else total


def conjuncts(condition: Expr) -> list[Expr]:
    """The conjuncts of a condition, in order."""
    if isinstance(condition, Binary) and condition.op == "and":
        return [*conjuncts(condition.left), *conjuncts(condition.right)]
    return [condition]
