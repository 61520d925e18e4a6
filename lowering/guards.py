"""Decides which conditions guard a statement, and why the others do not: rules 8 and 9 of the language in one function.

A point exists if all its conditions hold. A statement may also run at a point that does not exist if that has no effect: every
element it reads is inside its buffer, and either its result is never read or the operands hold fill values that leave the result
unchanged. `settle` drops a condition only with such a proof, over all points that become reachable, including those of the
conditions dropped before it.

These are pure functions of expressions, independent of the builder. All proofs come from `sets`.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence

from tilelang.core.expr import Binary, Call, Cast, Const, Expr, Select, Unary, const, free, substitute
from tilelang.core.simplify import TRUE, simplify
from tilelang.errors import Span
from tilelang.lowering.sets import example, implied, impossible


@dataclasses.dataclass(frozen=True)
class Access:
    """An element that a statement reads at a point."""

    what: Expr  # the element as an operand of the statement's value
    there: tuple[Expr, ...] = ()  # the conditions under which it is inside its buffer and was written
    under: tuple[Expr, ...] = ()  # the conditions inside the value under which it is read at all
    fill: Const | None = None  # what the buffer holds where a condition of `real` fails; None: unknown
    real: tuple[Expr, ...] = ()
    own: tuple[Expr, ...] = ()  # the conditions under which the buffer holds this element and not another in its place


@dataclasses.dataclass(frozen=True)
class Effect:
    """The effect of a statement: when its result is read, and how its value changes an accumulator."""

    stored: tuple[Expr, ...] = ()  # the conditions under which its result is read
    value: Expr | None = None  # for an accumulator update: the value that is combined into it
    identity: Const | None = None  # the value that leaves the accumulator unchanged; None if every value changes it


@dataclasses.dataclass(frozen=True)
class Settled:
    """The conditions that guard a statement, and those that need not, each with the reason."""

    kept: tuple[tuple[Expr, str], ...]
    dropped: tuple[tuple[Expr, str], ...]

    @property
    def conditions(self) -> list[Expr]:
        """The conditions that guard it."""
        return [c for c, _ in self.kept]


IMPLIED = "it holds at every point of the loops"
UNREAD = "where it fails, no one reads the result, and all operands can be read"
FOLDED = "where it fails, the fill values of the operands leave the result unchanged"


def settle(conditions: Sequence[Expr], context: Sequence[Expr], accesses: Sequence[Access], effect: Effect,
           stay: Mapping[Expr, str] | None = None) -> Settled:  # fmt: skip
    """Decides which conditions of a statement guard it. context: what holds at all its points, whether they exist or not.

    stay: conditions worth testing, each with the reason. They are dropped only if they always hold.

    >>> from tilelang.core.expr import INDEX, Var
    >>> i = Var("i", INDEX, 0, 15)
    >>> settle([i < 10], [], [Access(i, there=(i < 16,))], Effect(stored=(i < 10,))).dropped[0][1]
    'where it fails, no one reads the result, and all operands can be read'
    """
    kept = [c for c in dict.fromkeys(conditions) if simplify(c) is not TRUE]
    gone: list[Expr] = []
    why: dict[Expr, str] = {}
    for condition in list(kept):
        others = [c for c in kept if c is not condition]
        beyond = [[*context, *others, Unary("not", c)] for c in (condition, *gone)]
        dropped, why[condition] = _why_harmless(beyond, accesses, effect)
        if dropped and stay and condition in stay and why[condition] is not IMPLIED:
            why[condition] = stay[condition]
        elif dropped:
            kept = others
            gone.append(condition)
    return Settled(tuple((c, why[c]) for c in kept), tuple((c, why[c]) for c in gone))


def _why_harmless(beyond: Sequence[list[Expr]], accesses: Sequence[Access], effect: Effect) -> tuple[bool, str]:
    """Whether a statement may also run at points that do not exist, and why. beyond: sets of points that together cover these,
    beginning with those where the condition in question fails."""
    reason = IMPLIED
    for n, points in enumerate(beyond):
        if impossible(points):
            continue
        counted = [*points, *effect.stored]
        unread = impossible(counted)
        if not unread and not (_could_fold(accesses, effect) and has_no_effect(counted, accesses, effect)):
            return False, "where it fails, the result is read, and no fill value makes it right"
        for access in accesses:
            if not all(implied(c, [*points, *access.under]) for c in access.there):
                return False, f"where it fails, {access.what} is out of bounds or was never written"
        if n == 0:
            reason = UNREAD if unread else FOLDED
    return True, reason


def _could_fold(accesses: Sequence[Access], effect: Effect) -> bool:
    """Whether a statement changes nothing if every operand that can be filled holds its fill value."""
    return _folds({a.what: const(a.fill.value, a.what.dtype) for a in accesses if a.fill is not None}, effect)


def _folds(filled: dict[Expr, Expr], effect: Effect) -> bool:
    if effect.value is None or effect.identity is None:
        return False
    left = fold(substitute(effect.value, filled))
    return isinstance(left, Const) and left.value == effect.identity.value


def has_no_effect(points: Sequence[Expr], accesses: Sequence[Access], effect: Effect) -> bool:
    """Whether the fill values of its operands make a statement change nothing at some points."""
    return _folds(fills(accesses, points), effect)


def fills(accesses: Sequence[Access], points: Sequence[Expr]) -> dict[Expr, Expr]:
    """The accesses that read their fill value at all of some points."""
    found: dict[Expr, Expr] = {}
    real: set[Expr] = set()
    for access in accesses:
        known = [*points, *access.under]
        if access.fill is not None and impossible([*known, *access.real]) and all(implied(c, known) for c in access.own):
            found[access.what] = const(access.fill.value, access.what.dtype)
        elif not impossible(known):
            real.add(access.what)
    return {what: fill for what, fill in found.items() if what not in real}


def counterexample(condition: Expr, settled: Settled, context: Sequence[Expr]) -> dict[str, int] | None:
    """A point, as values of the variables, at which only this condition keeps a statement from running."""
    others = [c for c in settled.conditions if c is not condition]
    return example([*context, *others, Unary("not", condition)])


def explained(settled: Settled, context: Sequence[Expr], name: str, span: Span | None) -> str:
    """The decisions about the guards of a statement, one line per condition, with a point that needs each guard kept."""
    lines = [name if span is None else f"{name} at {span}"]
    for condition, why in settled.kept:
        point = counterexample(condition, settled, context) or {}
        at = ", ".join(f"{v.name} = {point[v.name]}" for v in sorted(free(condition), key=str) if v.name in point)
        lines.append(f"  kept:    {simplify(condition)}: {why}" + f" (such as {at})" * bool(at))
    lines += [f"  dropped: {simplify(condition)}: {why}" for condition, why in settled.dropped]
    return "\n".join(lines)


def fold(e: Expr) -> Expr:
    """Constant folding; a product with an exact zero is folded only if both sides are literals."""
    x = e.map_children(lambda c: fold(c) if isinstance(c, Expr) else c)
    match x:
        case Binary("+", Const(a, t), Const(b)):
            return Const(a + b, t)
        case Binary("-", Const(a, t), Const(b)):
            return Const(a - b, t)
        case Binary("*", Const(a, t), Const(b)) if not (t.is_float and math.isinf(float(a) * float(b))):
            return Const(a * b, t)
        case Binary("min", Const(a, t), Const(b)):
            return Const(min(a, b), t)
        case Binary("max", Const(a, t), Const(b)):
            return Const(max(a, b), t)
        case Unary("-", Const(a, t)) if t.is_float:
            return Const(-float(a), t)
        case Cast(Const(a), t) if not t.is_integer or t.holds(a):
            return const(a, t)
        case Call("abs", (Const(a, t),)):
            return Const(abs(a), t)
        case Select(Const(a), then, otherwise):
            return then if a else otherwise
        case _:
            return x
