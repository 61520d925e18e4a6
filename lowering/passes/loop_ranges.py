"""The range of a loop's iterations that satisfy conditions on its variable, for passes that split the loop there."""

from __future__ import annotations

import dataclasses

from tilelang.core.expr import INDEX, Binary, Expr, Var, binary, free, index, substitute
from tilelang.core.simplify import Linear, conjunction, conjuncts, difference, simplify


@dataclasses.dataclass(frozen=True, eq=False)
class Range:
    """low <= variable < high, within the loop's extent."""

    low: Expr
    high: Expr

    def times(self, n: int) -> Range:
        """The range of n * q + r, with q in this range and 0 <= r < n."""
        return Range(simplify(self.low * n), simplify(self.high * n))

    def shifted(self, digit: int, of: int) -> Range:
        """The range of q for which of * q + digit is in this range."""
        return Range(*(simplify((end + (of - 1 - digit)) // of) for end in (self.low, self.high)))

    def at(self, known: dict[Expr, Expr]) -> Range:
        """The range with values substituted for the variables of outer loops."""
        return Range(*(simplify(substitute(end, known)) for end in (self.low, self.high)))


def below_zero(condition: Expr) -> Linear | None:
    """A linear form that is negative exactly if a comparison of indices holds; None for other conditions, or if it might wrap."""
    if not isinstance(condition, Binary) or condition.op not in ("<", "<=") or condition.left.dtype is not INDEX:
        return None
    form = difference(condition.left, condition.right)
    return None if form is None else (form[0], form[1] - (condition.op == "<="))


def at_worst(condition: Expr, variables: list[Var]) -> Expr:
    """A comparison at its most restrictive point, the last iteration in which it can hold; any other condition unchanged."""
    form = below_zero(condition)
    if form is None:
        return condition
    steps = dict(form[0])
    last = {v: index(v.upper if steps.get(v, 0) > 0 else 0) for v in variables if v.upper is not None}
    return simplify(substitute(condition, last))


def ranges_of(conditions: list[Expr], variables: list[Var]) -> tuple[dict[Var, list[tuple[Expr, bool]]] | None, Expr | None]:
    """The ends that conditions give each variable, in terms of outer variables; and the conditions that mention no variable.

    The first result is None if a condition has another form. An end is (number, True) for a variable's first value, or (number,
    False) for the value after its last.
    """
    ends, rest = dict[Var, list[tuple[Expr, bool]]](), list[Expr]()
    for part in dict.fromkeys(part for c in conditions for part in conjuncts(simplify(c))):
        mine = [v for v in variables if v in free(part)]
        if not mine:
            rest.append(part)
            continue
        form = below_zero(part)
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
    """A range restricted by some ends; its low end never exceeds its high end."""
    low, high = whole.low, whole.high
    for end, first in ends:
        if first:
            low = simplify(binary("max", low, end))
        else:
            high = simplify(binary("min", high, end))
    low = simplify(binary("min", low, whole.high))
    return Range(low, simplify(binary("max", high, low)))
