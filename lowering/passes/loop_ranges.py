"""The iterations of a loop that conditions on its variable leave, as a range, for passes that split the loop there."""

from __future__ import annotations

import dataclasses

from tilelang.core.expr import INDEX, Binary, Expr, Var, binary, free, index, substitute
from tilelang.core.simplify import Linear, conjunction, conjuncts, difference, simplify


@dataclasses.dataclass(frozen=True, eq=False)
class Range:
    """low <= variable < high, within what a loop runs over."""

    low: Expr
    high: Expr

    def times(self, n: int) -> Range:
        """The range of n * q + r where q has this one, and r is one of n."""
        return Range(simplify(self.low * n), simplify(self.high * n))

    def shifted(self, digit: int, of: int) -> Range:
        """The range of q where of * q + digit has this one."""
        return Range(*(simplify((end + (of - 1 - digit)) // of) for end in (self.low, self.high)))

    def at(self, known: dict[Expr, Expr]) -> Range:
        """The range where outer loops are at certain points."""
        return Range(*(simplify(substitute(end, known)) for end in (self.low, self.high)))


def _below_zero(condition: Expr) -> Linear | None:
    """What is less than 0 where a comparison of indices holds; None for another condition, or where that might wrap."""
    if not isinstance(condition, Binary) or condition.op not in ("<", "<=") or condition.left.dtype is not INDEX:
        return None
    form = difference(condition.left, condition.right)
    return None if form is None else (form[0], form[1] - (condition.op == "<="))


def at_worst(condition: Expr, variables: list[Var]) -> Expr:
    """A comparison in the round in which it holds last; itself where it is something else."""
    form = _below_zero(condition)
    if form is None:
        return condition
    steps = dict(form[0])
    last = {v: index(v.upper if steps.get(v, 0) > 0 else 0) for v in variables if v.upper is not None}
    return simplify(substitute(condition, last))


def ranges_of(conditions: list[Expr], variables: list[Var]) -> tuple[dict[Var, list[tuple[Expr, bool]]] | None, Expr | None]:
    """The ends of each variable by the conditions, those of outer ones in them, and the conditions on none; no dict where one is of
    another form. An end is a variable's first number (or, where the second is False, the number after its last)."""
    ends, rest = dict[Var, list[tuple[Expr, bool]]](), list[Expr]()
    for part in dict.fromkeys(part for c in conditions for part in conjuncts(simplify(c))):
        mine = [v for v in variables if v in free(part)]
        if not mine:
            rest.append(part)
            continue
        form = _below_zero(part)
        if form is None:
            return None, None
        v, (terms, constant) = mine[-1], form
        step = dict(terms).get(v, 0)
        others: Expr = index(constant)  # step * v + others < 0
        for atom, c in terms:
            if atom is not v:
                others = others + atom * c
        if abs(step) != 1 or v in free(others):
            return None, None
        ends.setdefault(v, []).append((simplify(others + 1), True) if step < 0 else (simplify(-others), False))
    return ends, conjunction(rest)


def clamped(ends: list[tuple[Expr, bool]], whole: Range) -> Range:
    """What the ends leave of a range; its low end is never above its high one."""
    low, high = whole.low, whole.high
    for end, first in ends:
        if first:
            low = simplify(binary("max", low, end))
        else:
            high = simplify(binary("min", high, end))
    low = simplify(binary("min", low, whole.high))
    return Range(low, simplify(binary("max", high, low)))
