"""Dependence test: can two accesses of a block touch one element from different threads? The proof behind every barrier.

An access is a set of elements per thread: index expressions over the thread, over variables that both sides share (loops that are
running, the block), and over variables of its own (`bound`: loops that are finished, where any iteration counts). `conflict`
enumerates threads and variables in NumPy. A shared variable is enumerated over one period only: `(i + 1) % 2` against `i % 2` needs
two values of i; equal terms of shared variables on both sides are left out. What cannot be evaluated, or is too large, counts as a
conflict: an extra barrier is slow, a missing one is wrong.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable, Mapping
from math import gcd, lcm, prod
from typing import Any

import numpy as np
import numpy.typing as npt

from tilelang.core.expr import Binary, Const, Expr, Unary, Var, free, index, substitute
from tilelang.core.simplify import interval, linear, simplify
from tilelang.errors import Span
from tilelang.lowering import ir
from tilelang.lowering.simulator.scalar_semantics import BINARY

Array = npt.NDArray[Any]

LIMIT = 1 << 20  # points enumerated for one side of a proof; above it the two accesses count as conflicting
GUARDED_LIMIT = 1 << 16  # the limit of the second attempt, which uses the guards


@dataclasses.dataclass(frozen=True, slots=True)
class Access:
    """One statement's read or write of a buffer.

    guards: the conditions under which it happens. bound: variables not shared with other accesses. round: 0 in the current
    iteration of the innermost loop, 1 in the previous one, 2 in any earlier one; `when` says it in a reason. survived: conditions
    that have held since, because the other branch of each contains a barrier.
    """

    buffer: ir.Buffer
    indices: tuple[Expr, ...]
    lanes: int
    writes: bool
    guards: tuple[Expr, ...] = ()
    bound: frozenset[Var] = frozenset()
    round: int = 0
    survived: frozenset[Expr] = frozenset()
    span: Span | None = dataclasses.field(default=None, compare=False)
    when: str = dataclasses.field(default="", compare=False)
    _hash: int = dataclasses.field(init=False, repr=False, compare=False)  # cached, because accesses are looked up very often

    def __post_init__(self) -> None:
        compared = (self.buffer.name, self.indices, self.lanes, self.writes, self.guards, self.bound, self.round, self.survived)
        object.__setattr__(self, "_hash", hash(compared))

    def __hash__(self) -> int:
        return self._hash

    def __str__(self) -> str:
        inside = ", ".join(str(simplify(i)) for i in self.indices) + (f" : {self.lanes}" if self.lanes > 1 else "")
        inside = re.sub(r"@[\d.]*'?", "", inside)  # without the suffixes that make names unique
        place = f" at {self.span}" if self.span is not None else ""
        return f"{'write' if self.writes else 'read'} of {self.buffer.name}[{inside}]{place}{self.when}"

    def substituted(self, mapping: Mapping[Var, Expr], bound: Iterable[Var] = (), guards: tuple[Expr, ...] = ()) -> Access:
        """The same access with variables replaced; if any occurs in it, more bound variables and guards are added."""
        if mapping.keys().isdisjoint(self.variables()):
            return self
        return dataclasses.replace(
            self,
            indices=tuple(substitute(i, mapping) for i in self.indices),
            guards=(*(substitute(g, mapping) for g in self.guards), *guards),
            bound=self.bound | frozenset(bound),
        )

    def variables(self) -> frozenset[Var]:
        """Every variable in its indices and guards."""
        return frozenset(v for e in (*self.indices, *self.guards) for v in free(e))


class Opaque(Exception):
    """The expression has no value that is known at compile time: a memory read, a float."""


def is_thread(v: Any) -> bool:
    """Whether a variable is the thread index."""
    return isinstance(v, Var) and v.name == ir.THREAD.name


def evaluate(e: Expr, values: Mapping[Expr, Array]) -> Array:
    """An integer or boolean expression over NumPy arrays; raises Opaque."""
    found = values.get(e)
    if found is not None:
        return found
    match e:
        case Const(value=value) if isinstance(value, (bool, int)):
            return np.asarray(value)
        case Binary(op, left, right) if op in _FUNCTIONS:
            result: Array = _FUNCTIONS[op](evaluate(left, values), evaluate(right, values))
            return result
        case Unary("not", operand):
            return ~evaluate(operand, values).astype(bool)
        case _:
            raise Opaque


_FUNCTIONS = {op: function for op, function in BINARY.items() if op not in ("/", "pow")}  # indices are integers


def is_opaque(e: Expr) -> bool:
    """Whether `evaluate` raises Opaque for an expression, for any values of its variables."""
    match e:
        case Var():
            return not e.dtype.is_integer
        case Const(value=value):
            return not isinstance(value, (bool, int))
        case Binary(op, left, right):
            return op not in _FUNCTIONS or is_opaque(left) or is_opaque(right)
        case Unary("not", operand):
            return is_opaque(operand)
        case _:
            return True


def step(e: Expr, v: Var) -> tuple[int, int] | None:
    """(p, d) such that e(v + p) = e(v) + d for every v; None if no such pair is known.

    >>> from tilelang.core.expr import Var, INDEX
    >>> i = Var("i", INDEX)
    >>> step((i + 1) % 4, i), step(i * 8, i), step((i * 6) // 4 % 3, i)
    ((4, 0), (1, 8), (2, 0))
    """
    match e:
        case Var():
            return (1, 1) if e is v else (1, 0)
        case Const():
            return (1, 0)
        case Binary("+" | "-" as op, left, right):
            a, b = step(left, v), step(right, v)
            if a is None or b is None:
                return None
            p = lcm(a[0], b[0])
            return p, a[1] * (p // a[0]) + (1 if op == "+" else -1) * b[1] * (p // b[0])
        case Binary("*", factor, Const(value=value)) | Binary("*", Const(value=value), factor):
            inner = step(factor, v)
            return None if inner is None else (inner[0], inner[1] * int(value))
        case Binary("//" | "%" as op, dividend, Const(value=value)) if value:
            inner = step(dividend, v)
            if inner is None:
                return None
            times = abs(int(value)) // gcd(inner[1], int(value))
            return inner[0] * times, (inner[1] * times // int(value) if op == "//" else 0)
        case _:
            inside = [step(child, v) for child in e.children() if isinstance(child, Expr)]
            known = [s for s in inside if s is not None and s[1] == 0]
            return (lcm(*(s[0] for s in known)), 0) if len(known) == len(inside) else None


def _period(v: Var, pairs: Iterable[tuple[Expr, Expr]]) -> int | None:
    """A distance by which v can move without changing whether the two sides of each pair are equal; None if unknown."""
    period = 1
    for left, right in pairs:
        a, b = step(left, v), step(right, v)
        if a is None or b is None:
            return None
        p = lcm(a[0], b[0])
        if a[1] * (p // a[0]) != b[1] * (p // b[0]):
            return None
        period = lcm(period, p)
    return period


def _repeats(v: Var, indices: Iterable[Expr]) -> int | None:
    """The number of values of v after which all indices repeat; None if they do not, or if it is unknown."""
    steps = [step(i, v) for i in indices]
    known = [s[0] for s in steps if s is not None and s[1] == 0]
    return lcm(*known) if len(known) == len(steps) else None


def _numbers(r: range, limit: int) -> Array:
    """The numbers of a range. Raises Opaque if there are more than the limit."""
    if len(r) > limit:
        raise Opaque
    return np.arange(r.start, r.stop, dtype=np.int64)


def _choices(v: Var, guards: list[Expr], repeats: int | None) -> Array:
    """The values of a variable that satisfy the guards on it alone; of values that differ by a multiple of `repeats`, only one."""
    if v.upper is None:
        raise Opaque
    low = v.lower or 0
    count = v.upper - low + 1
    if repeats is not None and not guards:
        count = min(count, repeats)
    chosen = _numbers(range(low, low + count), LIMIT)
    for g in guards:
        chosen = chosen[np.broadcast_to(evaluate(g, {v: chosen}), chosen.shape)]
    if repeats is None:
        return chosen
    _, first = np.unique((chosen - low) % repeats, return_index=True)
    return chosen[np.sort(first)]


@dataclasses.dataclass(frozen=True, slots=True)
class Points:
    """The points of an access as broadcastable arrays: an array per coordinate, the thread of each point, and which points exist."""

    rows: list[Array]
    threads: Array
    keep: Array

    def kept(self, numbers: Any) -> tuple[Array, Array]:
        """The given numbers of the points that exist, and their threads."""
        shape, which = self.keep.shape, self.keep
        every = bool(which.all())
        a, b = (np.broadcast_to(x, shape) for x in (numbers, self.threads))
        return (a.reshape(-1), b.reshape(-1)) if every else (a[which], b[which])


class Prover:
    """Answers `conflict` for one kernel, and caches the answers."""

    def __init__(self, threads: int) -> None:
        self.threads = threads
        self._known: dict[tuple[Access, Access], bool] = {}

    def conflict(self, older: Access, newer: Access) -> bool:
        """Whether different threads may access one element, at least one of them writing; True if that cannot be excluded."""
        if not (older.writes or newer.writes) or self.threads == 1:
            return False
        if older.buffer.name != newer.buffer.name and not overlap(older.buffer, newer.buffer):
            return False
        key = (older, newer)
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = self._decide(older, newer)
        return found

    def _decide(self, a: Access, b: Access) -> bool:
        """Enumerates only the variables of the indices and, if that finds a conflict, also those of the guards.

        In two buffers that share bytes any elements may overlap, so only guards can show that the accesses never happen together.
        """
        if not self._meets(a, b, guarded=False):
            return False
        return self._meets(a, b, guarded=True) if a.guards or b.guards else True

    def _meets(self, a: Access, b: Access, guarded: bool) -> bool:
        if a.buffer.name == b.buffer.name:
            a, b = _less_what_both_add(*_undivided(a, b))
        beside = [] if a.buffer.name != b.buffer.name else enumerate(zip(a.indices, b.indices, strict=True))
        own = a.bound | b.bound
        known = {d: (i, j) for d, (i, j) in beside if not is_opaque(i) and not is_opaque(j)}
        pairs = list(known.values())
        wanted = {v for pair in pairs for e in pair for v in free(e)} - own
        if guarded:
            wanted |= {v for g in (*a.guards, *b.guards) if not is_opaque(g) for v in free(g) if v.upper is not None} - own
        shared: dict[Var, range] = {}
        whole: set[Var] = set()  # enumerated over their whole range, so that guards on them apply
        for v in sorted((v for v in wanted if not is_thread(v)), key=lambda v: str(v.name)):
            low = v.lower if v.lower is not None else 0
            size = v.upper - low + 1 if v.upper is not None else None
            period = None if guarded and size is not None else _period(v, pairs)
            if size is None and period is None:
                return True
            if period is None or (size is not None and size <= period):
                whole.add(v)
                shared[v] = range(low, low + (size or 0))
            else:
                shared[v] = range(low, low + period)
        try:
            if _always_apart(pairs, shared):
                return False
            first = self._points(a, {d: left for d, (left, _) in known.items()}, shared, whole, guarded)
            second = first if a == b else self._points(b, {d: right for d, (_, right) in known.items()}, shared, whole, guarded)
        except Opaque:
            return True
        return _meet(first, second, self.threads)

    def _points(self, a: Access, indices: dict[int, Expr], shared: dict[Var, range], whole: set[Var], guarded: bool) -> Points:
        """Every point of an access; its coordinates are the shared variables, then the indices in these dimensions."""
        limit = GUARDED_LIMIT if guarded else LIMIT
        lanes = a.lanes if len(a.indices) - 1 in indices else 1
        used = {v for i in indices.values() for v in free(i)}
        if guarded:
            used |= {v for g in a.guards if not is_opaque(g) for v in free(g) if v in a.bound and v.upper is not None}
        private = {v for v in used if v not in shared and not is_thread(v)}
        guards = [g for g in a.guards if not is_opaque(g) and all(v in whole or v in private or is_thread(v) for v in free(g))]
        bound = sorted(private, key=lambda v: (str(v.name), v.upper or 0))
        axes = [_numbers(r, limit) for r in shared.values()]
        for v in bound:
            alone = [g for g in guards if free(g) == {v}]
            guards = [g for g in guards if g not in alone]
            repeats = None if any(v in free(g) for g in guards) else _repeats(v, indices.values())
            axes.append(_choices(v, alone, repeats))
        axes += [np.arange(self.threads, dtype=np.int64), np.arange(lanes, dtype=np.int64)]
        sizes = tuple(len(x) for x in axes)
        if prod(sizes) > limit:
            raise Opaque
        grids = [x.reshape([-1 if i == d else 1 for i in range(len(axes))]) for d, x in enumerate(axes)]
        values: dict[Expr, Array] = dict(zip([*shared, *bound], grids, strict=False))
        for v in used | {v for g in guards for v in free(g)}:
            if is_thread(v):
                values[v] = grids[-2]
        rows = [grids[i] for i in range(len(shared))]
        for d, i in indices.items():
            coordinate = evaluate(i, values)
            rows.append(coordinate + grids[-1] if d == len(a.indices) - 1 and lanes > 1 else coordinate)
        keep: Any = np.broadcast_to(True, sizes)
        for g in guards:
            keep = keep & evaluate(g, values)
        return Points(rows, grids[-2], keep)


def _undivided(a: Access, b: Access) -> tuple[Access, Access]:
    """Two accesses of one buffer in which indices that are digits of one number, as from a fused axis, are replaced by that
    number.

    The number takes the place of the last digit, because the lanes of an access are consecutive along the last dimension.
    """
    left, right = list(a.indices), list(b.indices)
    for first in range(len(left) - 1):
        one, other = _number(left[first:]), _number(right[first:])
        if one is not None and other is not None and one[1] == other[1]:
            above, digits = [index(0)] * len(one[1]), 1 + len(one[1])
            left[first : first + digits] = [*above, one[0]]
            right[first : first + digits] = [*above, other[0]]
    return dataclasses.replace(a, indices=tuple(left)), dataclasses.replace(b, indices=tuple(right))


def _number(indices: list[Expr]) -> tuple[Expr, tuple[int, ...]] | None:
    """The number whose digits the first indices are, and the extents of all digits but the first; None if they are not such
    digits.

    For x // 6, x // 2 % 3, x % 2, it is x with (3, 2).
    """
    digits: list[Digit] = []
    for e in indices:
        digits.append(_digit(e))
        if (digits[-1].count is None) != (len(digits) == 1):
            return None
        if digits[-1].place == 1:
            break
    (top, *middle), last = digits[:-1] or [digits[0]], digits[-1]
    if len(digits) < 2 or last.place != 1:
        return None
    counts = tuple(d.count or 1 for d in digits[1:])
    number = top.of(last.number, prod(counts), counts[-1])
    for k, digit in enumerate(middle, 1):
        if number is None or digit.of(number, prod(counts[k:]), prod(counts[k - 1 :])) is None:
            return None
    return (number, counts) if number is not None else None


@dataclasses.dataclass(frozen=True, slots=True)
class Digit:
    """number // place % count; without the remainder if count is None."""

    number: Expr
    place: int
    count: int | None

    def of(self, other: Expr, place: int, period: int) -> Expr | None:
        """If this is also a digit of another number, at a place and up to lower digits, that number modulo the period; else None."""
        more, rest = divmod(place, self.place)
        low, high = interval(simplify(other - self.number * more))
        if rest or low is None or high is None:
            return None
        above = low // period * period
        return simplify(other - above) if high - above < more else None


def _digit(e: Expr) -> Digit:
    """An index as a digit of a number. x % 5 * 4 + y with y < 4 is one too: of x * 4 + y."""
    for term, factor in linear(e)[0]:
        match term:
            case Binary("%", number, Const(value=count)) if factor > 0:
                rest = simplify(e - term * factor)
                low, high = interval(rest)
                if factor == 1 and (low, high) == (0, 0):
                    return dataclasses.replace(_quotient(number), count=int(count))
                if low is not None and high is not None and 0 <= low <= high < factor:
                    return Digit(simplify(number * factor + rest), 1, int(count) * factor)
    return _quotient(e)


def _quotient(e: Expr) -> Digit:
    """An index as the leading digit of a number."""
    terms, added = linear(e)
    if len(terms) == 1 and terms[0][1] == 1:
        match terms[0][0]:
            case Binary("//", number, Const(value=place)) if int(place) > 0:
                return Digit(simplify(number + added * int(place)), int(place), None)
    return Digit(e, 1, None)


def _less_what_both_add(a: Access, b: Access) -> tuple[Access, Access]:
    """Two accesses of one buffer without the terms that are equal in the indices of both and depend on shared variables only."""
    own = a.bound | b.bound
    left, right = list(a.indices), list(b.indices)
    for d, (i, j) in enumerate(zip(a.indices, b.indices, strict=True)):
        if is_opaque(i) or is_opaque(j):
            continue
        other = dict(linear(simplify(j))[0])
        for term, factor in linear(simplify(i))[0]:
            if other.get(term) == factor and not any(v in own or is_thread(v) for v in free(term)):
                left[d], right[d] = (simplify(e - term * factor) for e in (left[d], right[d]))
    return dataclasses.replace(a, indices=tuple(left)), dataclasses.replace(b, indices=tuple(right))


def _always_apart(pairs: list[tuple[Expr, Expr]], shared: Mapping[Var, range]) -> bool:
    """Whether some dimension that all threads index alike (such as the slot of a ring) always differs."""
    for left, right in pairs:
        names = sorted(free(left) | free(right), key=lambda v: str(v.name))
        if all(v in shared for v in names) and prod(len(shared[v]) for v in names) <= GUARDED_LIMIT:
            axes = np.ix_(*(np.arange(shared[v].start, shared[v].stop) for v in names)) if names else ()
            values = dict(zip(names, axes, strict=True))
            if not np.any(evaluate(left, values) == evaluate(right, values)):
                return True
    return False


def _meet(first: Points, second: Points, threads: int) -> bool:
    """Whether both sets contain the same point for different threads."""
    if not first.keep.size or not second.keep.size:
        return False
    a: Any = 0  # the coordinates of a point, as one number
    b: Any = 0
    size = 1
    for x, y in zip(first.rows, second.rows, strict=True):
        low = min(int(x.min()), int(y.min()))
        extent = max(int(x.max()), int(y.max())) - low + 1
        a, b, size = a * extent + (x - low), b * extent + (y - low), size * extent
        if size > 4 * LIMIT:  # too sparse for a table, and soon too large for an integer: number only the points that occur
            found, numbers = np.unique(np.concatenate([a.reshape(-1), b.reshape(-1)]), return_inverse=True)
            a, b, size = numbers[: a.size].reshape(a.shape), numbers[a.size :].reshape(b.shape), found.size
    (keys_a, threads_a), (keys_b, threads_b) = first.kept(a), second.kept(b)
    owner = np.full(size, -1, np.int64)
    owner[keys_a] = threads_a
    owner[keys_a[owner[keys_a] != threads_a]] = threads  # mark several owners, so that any thread of the second set differs
    found = owner[keys_b]
    return bool(np.any((found >= 0) & (found != threads_b)))


def overlap(a: ir.Buffer, b: ir.Buffer) -> bool:
    """Whether two buffers share bytes: both are in shared memory, have offsets, and their ranges intersect."""
    if a.memory != "shared" or b.memory != "shared" or a.offset is None or b.offset is None:
        return False
    return a.offset < b.offset + b.bytes and b.offset < a.offset + a.bytes
