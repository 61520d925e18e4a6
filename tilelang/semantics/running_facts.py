"""Facts about the terms so far that follow from an extreme running value: a maximum of -infinity, or a sum of absolute values of 0."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator

from tilelang.core.expr import Binary, Call, Cast, Const, Expr, Select, Unary
from tilelang.semantics.separation import Separation, is_zero_literal


@dataclasses.dataclass(frozen=True)
class Facts:
    """Expressions with a known value at every point so far: -infinity (`low`), infinity (`high`) or 0 (`zero`). All others are taken
    as finite."""

    low: frozenset[Expr] = frozenset()
    high: frozenset[Expr] = frozenset()
    zero: frozenset[Expr] = frozenset()

    def under(self, condition: Expr, holds: bool) -> Facts:
        """The facts where a condition holds, or where it does not: a fact about a choice is one about the chosen branch."""

        def chosen(es: frozenset[Expr]) -> frozenset[Expr]:
            return frozenset(
                (e.then if holds else e.otherwise) if isinstance(e, Select) and e.condition is condition else e for e in es
            )

        return Facts(chosen(self.low), chosen(self.high), chosen(self.zero)).closed()

    def closed(self) -> Facts:
        """The facts with all that follow from them. Facts about constants are dropped."""
        low, high, zero = (set[Expr](), set[Expr](), set[Expr]())
        waiting = [(e, low) for e in self.low] + [(e, high) for e in self.high] + [(e, zero) for e in self.zero]
        while waiting:
            e, kind = waiting.pop()
            if isinstance(e, Const) or e in kind:
                continue
            kind.add(e)
            match e:
                case Unary("-", operand):
                    waiting.append((operand, zero if kind is zero else high if kind is low else low))
                case Cast(operand, _) if operand.dtype.is_float:
                    waiting.append((operand, kind))
                case Binary("*", left, right) if kind is zero and left is right:
                    waiting.append((left, zero))
                case Binary("*", Const(value=c), other) | Binary("*" | "/", other, Const(value=c)) if c:
                    waiting.append((other, kind if c > 0 or kind is zero else high if kind is low else low))
                case Call("abs", (argument,)) | Binary("pow", argument, Const()) if kind is zero:
                    waiting.append((argument, zero))
                case Call("exp" | "exp2", (argument,)) if kind is zero:
                    waiting.append((argument, low))
                case Binary("+" | "max", left, right) if kind is zero and never_negative(left) and never_negative(right):
                    waiting += [(left, zero), (right, zero)]
        return Facts(frozenset(low), frozenset(high), frozenset(zero))

    def is_zero(self, e: Expr) -> bool:
        if is_zero_literal(e) or e in self.zero:
            return True
        match e:
            case Binary("*", left, right):
                return self.is_zero(left) or self.is_zero(right)
            case Binary("/", left, _):
                return self.is_zero(left)
            case Binary("+" | "-" | "max" | "min", left, right):
                return self.is_zero(left) and self.is_zero(right)
            case Binary("pow", base, Const(value=n)):
                return n > 0 and self.is_zero(base)
            case Unary("-", operand) | Cast(operand, _):
                return self.is_zero(operand)
            case Call("abs" | "sqrt", (argument,)):
                return self.is_zero(argument)
            case Call("exp" | "exp2", (argument,)):
                return self.is_infinite(argument, -1)
            case Select(c, then, otherwise):
                return self.under(c, True).is_zero(then) and self.under(c, False).is_zero(otherwise)
        return False

    def is_infinite(self, e: Expr, sign: int) -> bool:
        """Whether the facts imply that an expression is infinite, with this sign."""
        if isinstance(e, Const):
            return bool(e.value == sign * math.inf)
        if e in (self.low if sign < 0 else self.high) or self._has_infinite_terms(e, sign):
            return True
        match e:
            case Unary("-", operand):
                return self.is_infinite(operand, -sign)
            case Cast(operand, t) if t.is_float:
                return self.is_infinite(operand, sign)
            case Binary("*", Const(value=c), other) | Binary("*" | "/", other, Const(value=c)):
                return bool(c) and self.is_infinite(other, sign if c > 0 else -sign)
            case Binary("max" | "min" as op, left, right):
                each = (self.is_infinite(left, sign), self.is_infinite(right, sign))
                return any(each) if (op == "max") == (sign > 0) else all(each)
            case Select(c, then, otherwise):
                return self.under(c, True).is_infinite(then, sign) and self.under(c, False).is_infinite(otherwise, sign)
        return False

    def _has_infinite_terms(self, e: Expr, sign: int) -> bool:
        """Whether a sum contains all terms of a sum that is known to be infinite; its other terms count as finite."""
        if not (isinstance(e, Binary) and e.op in ("+", "-")):
            return False
        terms = list(_terms(e, 1))
        for known, own in ((self.low, -1), (self.high, 1)):
            for fact in known:
                for factor in (1, -1):
                    wanted = list(_terms(fact, factor))
                    if own * factor == sign and all(wanted.count(t) <= terms.count(t) for t in wanted):
                        return True
        return any(self.is_infinite(t, sign * s) for t, s in terms if not (isinstance(t, Binary) and t.op in ("+", "-")))


def _terms(e: Expr, sign: int) -> Iterator[tuple[Expr, int]]:
    """The terms of a sum, each with its sign."""
    match e:
        case Binary("+", left, right):
            yield from _terms(left, sign)
            yield from _terms(right, sign)
        case Binary("-", left, right):
            yield from _terms(left, sign)
            yield from _terms(right, -sign)
        case Unary("-", operand):
            yield from _terms(operand, -sign)
        case _:
            yield e, sign


def never_negative(e: Expr) -> bool:
    return Separation(()).is_at_least_0(e)
