"""Separates a term into a part without running values and a part with them, and derives how the latter changes.

Each rule is an identity of real numbers, so a separation is a proof. Conversions between floats count as rounding only.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

from tilelang.core.expr import (
    Axis,
    Binary,
    Call,
    Cast,
    Const,
    Expr,
    Pad,
    Read,
    Select,
    Unary,
    Var,
    binary,
    call,
    const,
    substitute,
)
from tilelang.core.identifiers import spelled


@dataclasses.dataclass(frozen=True)
class Running:
    """A reduction whose running value a term reads. read: the read, at the term's axes; combiner: the name of its combiner; term,
    condition: what it reduces, and at which points."""

    read: Read
    combiner: str
    term: Expr
    condition: Expr | None = None


def before(read: Read) -> Var:
    """The variable that stands for a running value before a change."""
    return Var(f"before({spelled(read.tensor.name)})", read.dtype)


def now(read: Read) -> Var:
    """The variable that stands for a running value after a change."""
    return Var(f"now({spelled(read.tensor.name)})", read.dtype)


# ---------------------------------------------------------------- separation

Parts = tuple[Expr, Expr]


class Separation:
    """Splits expressions into a part without and a part with running values. Each rule is an identity of real numbers."""

    def __init__(self, running: Sequence[Running]) -> None:
        self.running = {r.read: r for r in running}
        self._reads: dict[Expr, tuple[bool, bool]] = {}

    def depends(self, e: Expr) -> tuple[bool, bool]:
        """Whether an expression reads anything but running values, and whether it reads running values."""
        found = self._reads.get(e)
        if found is None:
            if e in self.running:
                found = False, True
            elif isinstance(e, (Read, Pad, Axis, Var)):
                found = True, False
            else:
                below = [self.depends(c) for c in e.children() if isinstance(c, Expr)]
                found = any(u for u, _ in below), any(x for _, x in below)
            self._reads[e] = found
        return found

    def times(self, e: Expr) -> Parts | None:
        """The parts of e = u * x; None if no rule applies."""
        one = const(1, e.dtype)
        other, own = self.depends(e)
        if not own:
            return e, one
        if not other:
            return one, e
        match e:
            case Binary("*" | "/" as op, left, right):
                a, b = self.times(left), self.times(right)
                return None if a is None or b is None else (_made(op, a[0], b[0]), _made(op, a[1], b[1]))
            case Binary("+" | "-" as op, left, right):
                a, b = self.times(left), self.times(right)
                return None if a is None or b is None or a[1] is not b[1] else (_made(op, a[0], b[0]), a[1])
            case Binary("max" | "min" as op, left, right):
                a, b = self.times(left), self.times(right)
                same = a is not None and b is not None and a[1] is b[1] and self.is_at_least_0(a[1])
                return (binary(op, a[0], b[0]), a[1]) if same and a is not None and b is not None else None
            case Binary("pow", base, Const(value=n)) if float(n).is_integer():
                a = self.times(base)
                return None if a is None else (Binary("pow", a[0], e.right), Binary("pow", a[1], e.right))
            case Unary("-", operand):
                a = self.times(operand)
                return None if a is None else (Unary("-", a[0]), a[1])
            case Call("abs", (argument,)):
                a = self.times(argument)
                return None if a is None else (call("abs", a[0]), call("abs", a[1]))
            case Call("exp" | "exp2" as f, (argument,)):
                a = self.plus(argument)
                return None if a is None else (call(f, a[0]), call(f, a[1]))
            case Call("sqrt" | "rsqrt" as f, (argument,)):
                a = self.times(argument)
                split = a is not None and self.is_at_least_0(a[0]) and self.is_at_least_0(a[1])
                return (call(f, a[0]), call(f, a[1])) if split and a is not None else None
            case Select(condition, then, otherwise) if not self.depends(condition)[1]:
                return self._chosen(condition, self.times(then), self.times(otherwise), const(0, e.dtype))
            case Cast(operand, t) if operand.dtype.is_float and t.is_float:
                a = self.times(operand)
                return None if a is None else (Cast(a[0], t), _widened(a[1], t))
        return None

    def plus(self, e: Expr) -> Parts | None:
        """The parts of e = u + x; None if no rule applies."""
        zero = const(0, e.dtype)
        other, own = self.depends(e)
        if not own:
            return e, zero
        if not other:
            return zero, e
        match e:
            case Binary("+" | "-" as op, left, right):
                a, b = self.plus(left), self.plus(right)
                return None if a is None or b is None else (_made(op, a[0], b[0]), _made(op, a[1], b[1]))
            case Binary("*", Const() as c, right):
                a = self.plus(right)
                return None if a is None else (binary("*", c, a[0]), binary("*", c, a[1]))
            case Binary("*" | "/" as op, left, Const() as c):
                a = self.plus(left)
                return None if a is None else (binary(op, a[0], c), binary(op, a[1], c))
            case Binary("max" | "min" as op, left, right):
                a, b = self.plus(left), self.plus(right)
                same = a is not None and b is not None and a[1] is b[1]
                return (binary(op, a[0], b[0]), a[1]) if same and a is not None and b is not None else None
            case Unary("-", operand):
                a = self.plus(operand)
                return None if a is None else (_negative(a[0]), _negative(a[1]))
            case Call("log" | "log2" as f, (argument,)):
                a = self.times(argument)
                split = a is not None and self.is_positive(a[0]) and self.is_positive(a[1])
                return (call(f, a[0]), call(f, a[1])) if split and a is not None else None
            case Select(condition, then, otherwise) if not self.depends(condition)[1]:
                return self._chosen(condition, self.plus(then), self.plus(otherwise), None)
            case Cast(operand, t) if operand.dtype.is_float and t.is_float:
                a = self.plus(operand)
                return None if a is None else (Cast(a[0], t), _widened(a[1], t))
        return None

    @staticmethod
    def _chosen(condition: Expr, a: Parts | None, b: Parts | None, zero: Const | None) -> Parts | None:
        """A choice between two separated values whose parts with running values are equal, or of which one is 0."""
        if a is None or b is None:
            return None
        if a[1] is b[1]:
            return Select(condition, a[0], b[0]), a[1]
        if zero is not None and is_zero_literal(b[0]):
            return Select(condition, a[0], zero), a[1]
        if zero is not None and is_zero_literal(a[0]):
            return Select(condition, zero, b[0]), b[1]
        return None

    # ------------------------------------------------------------ signs

    def is_at_least_0(self, e: Expr) -> bool:
        """Whether an expression is proven to be at least 0, or NaN. A maximum over no points counts as at least 0."""
        match e:
            case Const(value=v):
                return v >= 0
            case Read() if e in self.running:
                return self.is_at_least_0(self.running[e].term)
            case Binary("*", left, right) if left is right:
                return True
            case Binary("+" | "*" | "/" | "min", left, right):
                return self.is_at_least_0(left) and self.is_at_least_0(right)
            case Binary("max", left, right):
                return self.is_at_least_0(left) or self.is_at_least_0(right)
            case Binary("pow", base, Const(value=n)):
                return float(n) % 2 == 0 or self.is_at_least_0(base)
            case Call("exp" | "exp2" | "abs" | "sqrt" | "rsqrt" | "sigmoid"):
                return True
            case Select(_, then, otherwise):
                return self.is_at_least_0(then) and self.is_at_least_0(otherwise)
            case Cast(operand, _):
                return operand.dtype.kind in ("uint", "bool") or self.is_at_least_0(operand)
        return e.dtype.kind in ("uint", "bool")

    def is_positive(self, e: Expr) -> bool:
        """Whether an expression is proven to be greater than 0."""
        match e:
            case Const(value=v):
                return v > 0
            case Binary("*" | "/" | "min", left, right):
                return self.is_positive(left) and self.is_positive(right)
            case Binary("+", left, right):
                pairs = ((left, right), (right, left))
                return any(self.is_positive(a) and self.is_at_least_0(b) for a, b in pairs)
            case Binary("max", left, right):
                return self.is_positive(left) or self.is_positive(right)
            case Binary("pow", base, Const()):
                return self.is_positive(base)
            case Call("exp" | "exp2" | "sigmoid"):
                return True
            case Call("sqrt" | "rsqrt", (argument,)):
                return self.is_positive(argument)
            case Select(_, then, otherwise):
                return self.is_positive(then) and self.is_positive(otherwise)
            case Cast(operand, _):
                return self.is_positive(operand)
        return False


def is_zero_literal(e: Expr) -> bool:
    return isinstance(e, Const) and e.value == 0


def _is_one(e: Expr) -> bool:
    return isinstance(e, Const) and e.value == 1


def _made(op: str, a: Expr, b: Expr) -> Expr:
    """A binary operation; if one operand is its neutral element, the other operand."""
    if op in ("*", "/") and _is_one(b) or op in ("+", "-") and is_zero_literal(b):
        return a
    if op == "*" and _is_one(a) or op == "+" and is_zero_literal(a):
        return b
    return _negative(b) if op == "-" and is_zero_literal(a) else binary(op, a, b)


def _negative(e: Expr) -> Expr:
    if isinstance(e, Const):
        return const(-e.value, e.dtype) if e.value else e
    return e.operand if isinstance(e, Unary) and e.op == "-" else Unary("-", e)


def _widened(e: Expr, t: Any) -> Expr:
    """A part with running values, converted to a wider type. It is not converted to a narrower one, where its quotient would lose
    digits."""
    return Cast(e, t) if e.dtype.mantissa_bits < t.mantissa_bits else e


# ---------------------------------------------------------------- changes


def quotient(e: Expr, depends: Callable[[Expr], bool], inverse: bool = False) -> Expr | None:
    """e(now) / e(before), or its inverse; None if it is 1. depends: whether an expression reads running values."""
    if not depends(e):
        return None
    match e:
        case Binary("*", left, right):
            return _both("*", quotient(left, depends, inverse), quotient(right, depends, inverse))
        case Binary("/", left, right):
            return _both("*", quotient(left, depends, inverse), quotient(right, depends, not inverse))
        case Binary("pow", base, n):
            found = quotient(base, depends, inverse)
            return None if found is None else Binary("pow", found, n)
        case Unary("-", operand):
            return quotient(operand, depends, inverse)
        case Call("exp" | "exp2" as f, (argument,)):
            moved = difference(argument, depends, inverse)
            return None if moved is None else call(f, moved)
        case Call("abs" | "sqrt" | "rsqrt" as f, (argument,)):
            found = quotient(argument, depends, inverse)
            return None if found is None else call(f, found)
    new, old = _at(e, now), _at(e, before)
    return binary("/", old, new) if inverse else binary("/", new, old)


def difference(e: Expr, depends: Callable[[Expr], bool], inverse: bool = False) -> Expr | None:
    """e(now) - e(before), or its negative; None if it is 0. depends: as of `quotient`."""
    if not depends(e):
        return None
    match e:
        case Binary("+", left, right):
            return _both("+", difference(left, depends, inverse), difference(right, depends, inverse))
        case Binary("-", left, right):
            return _both("+", difference(left, depends, inverse), difference(right, depends, not inverse))
        case Unary("-", operand):
            return difference(operand, depends, not inverse)
        case Binary("*", Const() as c, right):
            moved = difference(right, depends, inverse)
            return None if moved is None else binary("*", c, moved)
        case Binary("*" | "/" as op, left, Const() as c):
            moved = difference(left, depends, inverse)
            return None if moved is None else binary(op, moved, c)
    new, old = _at(e, now), _at(e, before)
    return binary("-", old, new) if inverse else binary("-", new, old)


def _both(op: str, a: Expr | None, b: Expr | None) -> Expr | None:
    return b if a is None else a if b is None else binary(op, a, b)


def _at(e: Expr, when: Callable[[Read], Var]) -> Expr:
    found: Expr = substitute(e, {r: when(r) for r in e.walk() if isinstance(r, Read)})
    return found
