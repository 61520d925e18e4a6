"""Questions about sets of integer points, such as: can these conditions all hold at once?

A set is given by conditions on variables that carry their own ranges. Sums, products with constants, quotients and remainders by
constants, minima and maxima are modelled exactly; for anything else (a value read from memory, a product of two variables) only
the range is known. Every answer is safe: `impossible` returns True only with a proof.

Interval arithmetic detects two conditions that contradict each other. All other questions go to isl, an integer set library
(`islpy`), which is imported on first use because its import takes 30 ms; for the same reason, points are first searched for
without it (`holds_somewhere`). Without isl, or if a question takes more than MOST_OPERATIONS, the answer is "not proven". No
other module imports islpy.
"""

from __future__ import annotations

import functools
import itertools
import math
import operator
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from tilelang.core.expr import INDEX, Binary, Const, Expr, Unary, Var, free, index
from tilelang.core.simplify import Linear, conjuncts, exact, interval, interval_of, linear, simplify, weighted_sum

MOST_OPERATIONS = 200_000  # isl's limit for one question: tens of milliseconds
MOST_CASES = 32  # combinations of alternatives (`or`, `!=`, minima) that one question may expand to

FAR = 1 << 20  # used as the greatest value of an unbounded variable
OPERATIONS: Mapping[str, Callable[[int, int], int]] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "//": operator.floordiv, "%": operator.mod, "min": min, "max": max,
}  # fmt: skip

Case = tuple[Linear, ...]  # linear forms, all >= 0


def implied(condition: Expr, by: Iterable[Expr]) -> bool:
    """Whether a condition holds wherever the others do. False: it does not, or no proof was found.

    >>> x = Var("x", INDEX, 0, 9)
    >>> implied(x * 4 + 3 < 40, [])
    True
    """
    simplified = simplify(condition)
    if isinstance(simplified, Const):
        return bool(simplified.value)
    return impossible((*by, Unary("not", simplified)))


def impossible(conditions: Iterable[Expr]) -> bool:
    """Whether no values of the variables satisfy all conditions. False: some do, or no proof was found.

    >>> x, y = Var("x", INDEX, 0, 9), Var("y", INDEX, 0, 9)
    >>> impossible([x * 2 <= y, index(5) <= x])
    True
    """
    return _impossible(_parts(conditions))


def _parts(conditions: Iterable[Expr]) -> tuple[Expr, ...]:
    """The simplified conjuncts, without duplicates and in order, so that a question has the same answer in every process."""
    return tuple(dict.fromkeys(p for c in conditions for p in conjuncts(simplify(c))))


@functools.lru_cache(1 << 14)
def _impossible(conditions: tuple[Expr, ...]) -> bool:
    certain, open = _forms(conditions)
    if certain is None or _contradict(certain):
        return True
    return all(_contradict(case) or not holds_somewhere(case) and _empty(case) for case in _combined(certain, open))


def example(conditions: Iterable[Expr]) -> dict[str, int] | None:
    """Values of the variables that satisfy all conditions that can be modelled; None if none were found.

    >>> x = Var("x", INDEX, 0, 9)
    >>> example([x % 4 == 3, index(4) <= x])
    {'x': 7}
    """
    certain, open = _forms(_parts(conditions))
    if certain is None or not available():
        return None
    return next((found for case in _combined(certain, open) if (found := _solved(case)) is not None), None)


def extremes(e: Expr, conditions: Iterable[Expr]) -> tuple[int | None, int | None]:
    """The least and greatest value of an index expression over all values of the variables that satisfy the conditions.

    They are exact if isl answers and such values exist, otherwise from the variables' ranges. None: no bound is known.

    >>> x, y = Var("x", INDEX, 0, 9), Var("y", INDEX, 0, 9)
    >>> extremes((x + y) // 4 - x // 4, [y < 3])
    (0, 1)
    """
    return _extremes(simplify(e), _parts(conditions))


@functools.lru_cache(1 << 12)
def _extremes(e: Expr, conditions: tuple[Expr, ...]) -> tuple[int | None, int | None]:
    low, high = interval(e)
    if isinstance(e, Const | Var) and not conditions or not available():
        return low, high
    certain, open = _forms(conditions)
    if certain is None:
        return low, high
    known = list[tuple[int, int]]()
    for case in _combined(certain, open):
        for least, greatest in _ends(linear(e), case):
            if least is None or greatest is None:
                return low, high
            known.append((least, greatest))
    return (min(a for a, _ in known), max(b for _, b in known)) if known else (low, high)


def available() -> bool:
    """Whether isl is installed."""
    return _library() is not None


# ---------------------------------------------------------------- conditions as linear forms


def _forms(conditions: Iterable[Expr]) -> tuple[list[Linear] | None, list[tuple[Case, ...]]]:
    """The forms that are always >= 0 (None: a condition never holds), and the alternatives of the other conditions."""
    certain, open = list[Linear](), list[tuple[Case, ...]]()
    for condition in conditions:
        cases = _cases(condition, True)
        if cases is None:
            continue
        if not cases:
            return None, []
        if len(cases) == 1:
            certain += cases[0]
        else:
            open.append(cases)
    return certain, open


@functools.lru_cache(1 << 14)
def _cases(condition: Expr, holds: bool) -> tuple[Case, ...] | None:
    """The alternatives under which a condition holds, or does not; None: unknown."""
    match condition:
        case Const(value=value):
            return ((),) if bool(value) == holds else ()
        case Unary("not", operand):
            return _cases(operand, not holds)
        case Binary("and" | "or" as op, left, right):
            a, b = _cases(left, holds), _cases(right, holds)
            if (op == "and") == holds:
                if a is None or b is None:
                    return b if a is None else a
                return tuple((*x, *y) for x in a for y in b)
            return None if a is None or b is None else (*a, *b)
        case Binary("<" | "<=" | "==" | "!=" as op, left, right) if left.dtype is INDEX and right.dtype is INDEX:
            return _compared(op, left, right, holds)
    return None


def _compared(op: str, left: Expr, right: Expr, holds: bool) -> tuple[Case, ...] | None:
    if not exact(left, right):
        return None
    up, down = linear(right - left), linear(left - right)
    match op:
        case "<":
            return ((_less(up, 1),),) if holds else ((down,),)
        case "<=":
            return ((up,),) if holds else ((_less(down, 1),),)
    if (op == "==") == holds:
        return ((up, down),)
    return (_less(up, 1),), (_less(down, 1),)


def _less(form: Linear, by: int) -> Linear:
    return form[0], form[1] - by


def _contradict(forms: Sequence[Linear]) -> bool:
    """Whether interval arithmetic proves that two of the forms are never both >= 0."""
    forms = [_rounded(f) for f in forms]
    if any(_negative(f) for f in forms):
        return True
    by_sign: dict[tuple[Expr, bool], list[int]] = {}
    pairs: set[tuple[int, int]] = set()
    for k, (terms, _) in enumerate(forms):
        for atom, c in terms:
            pairs.update((other, k) for other in by_sign.get((atom, c < 0), ()))
            by_sign.setdefault((atom, c > 0), []).append(k)
    return any(_negative(_sum(forms[a], forms[b])) for a, b in pairs)


def _rounded(form: Linear) -> Linear:
    """The form with the smallest constant that is >= 0 for the same integers."""
    factor = math.gcd(*(c for _, c in form[0]))
    return (form[0], form[1] // factor * factor) if factor > 1 else form


def _negative(form: Linear) -> bool:
    _, high = interval_of(form)
    return high is not None and high < 0


def _sum(a: Linear, b: Linear) -> Linear:
    terms = dict(a[0])
    for atom, c in b[0]:
        terms[atom] = terms.get(atom, 0) + c
    return tuple((atom, c) for atom, c in terms.items() if c), a[1] + b[1]


def _combined(certain: Sequence[Linear], open: Sequence[tuple[Case, ...]]) -> Iterable[Case]:
    """One list of forms per combination of alternatives; alternatives that would exceed MOST_CASES are ignored."""
    chosen, count = [], 1
    for cases in sorted(open, key=len):
        if count * len(cases) <= MOST_CASES:
            chosen.append(cases)
            count *= len(cases)
    for combination in itertools.product(*chosen):
        yield (*certain, *(form for case in combination for form in case))


# ---------------------------------------------------------------- points that are easy to find


def holds_somewhere(case: Case) -> bool:
    """Whether a few heuristic attempts find values of the variables that make all forms >= 0."""
    wishes: dict[Var, int] = {}
    for terms, _ in case:
        for atom, c in terms:
            for v in sorted(free(atom), key=str):
                if isinstance(v, Var):
                    wishes[v] = wishes.get(v, 0) + (1 if c > 0 else -1)
    for leaning in (0, 1, -1):
        values = {v: _end(v, (wish or leaning) > 0 if not leaning else leaning > 0) for v, wish in wishes.items()}
        for _ in range(2 * len(case) + 2):
            violated = next((form for form in case if _value(form, values) < 0), None)
            if violated is None:
                return all(_inside(v, n) for v, n in values.items())
            if not _mended(violated, values):
                break
    return False


def _inside(v: Var, value: int) -> bool:
    return (v.lower is None or v.lower <= value) and (v.upper is None or value <= v.upper)


def _end(v: Var, greatest: bool) -> int:
    """The least or greatest value of a variable; if unbounded, a value near 0 or FAR."""
    low = v.lower if v.lower is not None else min(0, v.upper or 0)
    return low if not greatest else v.upper if v.upper is not None else max(low, FAR)


def _mended(form: Linear, values: dict[Var, int]) -> bool:
    """Changes variables, or digits of variables, until a form is >= 0: those with large factors first, and no further than necessary.

    False if that is impossible.
    """
    terms = sorted(form[0], key=lambda t: -abs(t[1]))
    for last in (False, True):  # first without overshooting, then as far as it takes
        for atom, c in terms:
            value = _value(form, values)
            if value >= 0:
                return True
            now, (low, high) = _evaluated(atom, values), interval(atom)
            end = (high if high is not None else max(now, FAR)) if c > 0 else low if low is not None else min(now, -FAR)
            steps = min(abs(end - now), -(value // abs(c)) if last else -value // abs(c))
            if steps:
                _move(atom, steps if c > 0 else -steps, values)
    return _value(form, values) >= 0


def _move(e: Expr, by: int, values: dict[Var, int]) -> None:
    """Changes variables so that an index expression changes by `by`, if that is easy."""
    match e:
        case Var():
            values[e] = values.get(e, 0) + by
        case Binary("%", left, Const()):
            _move(left, by, values)
        case Binary("//", left, Const(value=c)):
            _move(left, by * int(c), values)
        case Binary("+" | "-" | "*"):
            terms, constant = linear(e)
            rest = _evaluated(e, values) + by - constant - sum(c * _end(v, c < 0) for v, c in terms if isinstance(v, Var))
            for v, c in sorted(terms, key=lambda t: -abs(t[1])):  # like digits of a number, the most significant first
                if isinstance(v, Var):
                    steps = min(rest // abs(c), _end(v, True) - _end(v, False))
                    values[v] = _end(v, c < 0) + (steps if c > 0 else -steps)
                    rest -= steps * abs(c)


def _value(form: Linear, values: Mapping[Var, int]) -> int:
    return form[1] + sum(c * _evaluated(atom, values) for atom, c in form[0])


def _evaluated(e: Expr, values: Mapping[Var, int]) -> int:
    """The value of an index expression; for one that cannot be modelled, the value in its range nearest to 0."""
    match e:
        case Var():
            return values.get(e, 0)
        case Const(value=value):
            return int(value)
        case Binary(op, left, right) if op in OPERATIONS:
            a, b = _evaluated(left, values), _evaluated(right, values)
            if b or op not in ("//", "%"):
                return OPERATIONS[op](a, b)
    low, high = interval(e)
    return max(low, 0) if low is not None else min(high, 0) if high is not None else 0


# ---------------------------------------------------------------- asked of isl


class _System:
    """The integer unknowns of linear forms, and the constraints on each: ranges, divisions, minima."""

    def __init__(self, forms: Sequence[Linear]) -> None:
        self.unknowns: dict[Expr, int] = {}
        self.rows: list[Linear] = []
        self.alternatives: list[tuple[Case, ...]] = []
        for form in forms:
            self.add(form)

    def add(self, form: Linear) -> None:
        """Adds form >= 0."""
        self.rows.append(form)
        for atom, _ in form[0]:
            self.know(atom)

    def know(self, atom: Expr) -> None:
        if atom in self.unknowns:
            return
        self.unknowns[atom] = len(self.unknowns)
        low, high = interval(atom)
        if low is not None:
            self.rows.append((((atom, 1),), -low))
        if high is not None:
            self.rows.append((((atom, -1),), high))
        match atom:
            case Binary("//", left, Const(value=c)) if c > 0:  # c q <= x < c q + c
                self._between(_combination((left, 1), (atom, -int(c))), int(c))
            case Binary("%", left, Const(value=c)) if c > 0:
                quotient = Binary("//", left, index(int(c)))
                self.know(quotient)
                rest = _combination((left, 1), (quotient, -int(c)), (atom, -1))
                self.add(rest)
                self.add(_negated(rest))
            case Binary("min" | "max" as op, left, right):
                sign = 1 if op == "min" else -1
                beyond = [_combination((x, sign), (atom, -sign)) for x in (left, right)]
                for form in beyond:
                    self.add(form)
                self.alternatives.append(tuple((_negated(form),) for form in beyond))

    def _between(self, form: Linear, size: int) -> None:
        """Adds 0 <= form < size."""
        self.add(form)
        self.add(_less(_negated(form), 1 - size))


def _combination(*terms: tuple[Expr, int]) -> Linear:
    """A linear combination of index expressions, treating atoms as they are."""
    opaque = {e: k for e, k in terms if isinstance(e, Binary) and e.op in ("//", "%", "min", "max")}
    rest = [(e, k) for e, k in terms if e not in opaque]
    form = weighted_sum([e for e, _ in rest], [k for _, k in rest])
    return _sum(form, (tuple(opaque.items()), 0))


def _negated(form: Linear) -> Linear:
    return tuple((atom, -c) for atom, c in form[0]), -form[1]


def _empty(case: Case) -> bool:
    """Whether no integers make all forms >= 0, by isl."""
    if not available():
        return False
    system = _System(case)
    return all(bool(_ask(system, extra, lambda points: points.is_empty())) for extra in _combined((), system.alternatives))


def _solved(case: Case) -> dict[str, int] | None:
    system = _System(case)
    for extra in _combined((), system.alternatives):
        point = _ask(system, extra, lambda points: points.sample_point())
        if point is None or point.is_void():
            continue
        isl = _library()
        values = {a: point.get_coordinate_val(isl.dim_type.set, k).to_python() for a, k in system.unknowns.items()}
        return {a.name: v for a, v in sorted(values.items(), key=str) if isinstance(a, Var)}
    return None


def _ends(form: Linear, case: Case) -> Iterable[tuple[int | None, int | None]]:
    """The least and greatest value of a form where the others are >= 0, for each non-empty combination of alternatives."""
    system = _System(case)
    for atom, _ in form[0]:
        system.know(atom)
    for extra in _combined((), system.alternatives):
        found = _ask(system, extra, lambda points: () if points.is_empty() else _ends_over(points, form, system))
        if found != ():
            yield found or (None, None)


def _ends_over(points: Any, form: Linear, system: _System) -> tuple[int | None, int | None]:
    isl = _library()
    e = isl.Aff.zero_on_domain(isl.LocalSpace.from_space(points.get_space())).set_constant_val(form[1])
    for atom, c in form[0]:
        e = e.set_coefficient_val(isl.dim_type.in_, system.unknowns[atom], c)
    over = isl.Set.from_basic_set(points)
    low, high = over.min_val(e), over.max_val(e)
    return low.to_python() if low.is_int() else None, high.to_python() if high.is_int() else None


def _ask(system: _System, extra: Case, question: Callable[[Any], Any]) -> Any:
    """Asks isl about the set of a system with further forms; None if that takes too many operations."""
    isl = _library()
    context = _context()
    context.reset_operations()
    try:
        space = isl.Space.set_alloc(context, 0, len(system.unknowns))
        local = isl.LocalSpace.from_space(space)
        points = isl.BasicSet.universe(space)
        for terms, constant in (*system.rows, *extra):
            row = isl.Constraint.alloc_inequality(local).set_constant_val(constant)
            for atom, c in terms:
                row = row.set_coefficient_val(isl.dim_type.set, system.unknowns[atom], c)
            points = points.add_constraint(row)
        return question(points)
    except isl.Error:
        return None


@functools.cache
def _library() -> Any:
    try:
        import islpy  # late: an optional library
    except ImportError:
        return None
    return islpy


_of_thread = threading.local()


def _context() -> Any:
    """This thread's isl context: objects of different contexts must not mix, and threads must not share a context."""
    context = getattr(_of_thread, "context", None)
    if context is None:
        context = _of_thread.context = _library().Context()
        context.set_max_operations(MOST_OPERATIONS)
    return context
