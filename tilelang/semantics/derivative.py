"""Symbolic partial derivatives of scalar expressions, for propagating errors through a combiner.

Only `bound` uses them: derivatives are evaluated over a box of values, never compiled. At a kink (`min`, `max`, `abs`) the derivative
takes one side; on a box that contains the kink, the evaluation's treatment of uncertain selections covers both. A selection between two
values has no derivative on a box that contains its jump: `choices` returns the conditions to check.
"""

from __future__ import annotations

import functools

from tilelang.core.expr import Binary, Call, Cast, Expr, Select, Unary, Var, const
from tilelang.core.slopes import slope


class NotDifferentiable(Exception):
    """An expression with steps: `floor`, a remainder, a conversion to an integer."""


@functools.lru_cache(maxsize=4096)
def derivative(e: Expr, by: Var) -> Expr | None:
    """The partial derivative of `e` by a variable; None if `e` does not depend on it.

    Raises NotDifferentiable if it depends on the variable through a step function.

    >>> from tilelang.core import dtype as dt
    >>> x = Var("x", dt.float32)
    >>> print(derivative(x * x, x))
    x + x
    """
    if not any(part is by for part in e.walk()):
        return None
    match e:
        case Var():
            return const(1, e.dtype)
        case Binary(op, left, right):
            return _binary(op, left, right, by)
        case Unary("-", operand):
            inner = derivative(operand, by)
            return None if inner is None else Unary("-", inner)
        case Call(name, (argument,)):
            return _chained(name, argument, e, by)
        case Select(condition, then, otherwise):
            a, b = derivative(then, by), derivative(otherwise, by)
            return None if a is None and b is None else Select(condition, _some(a, e), _some(b, e))
        case Cast(operand, target) if operand.dtype.is_float and target.is_float:
            return derivative(operand, by)  # the rounding of a cast is counted where it happens
    raise NotDifferentiable(str(e))


def choices(e: Expr) -> tuple[Expr, ...]:
    """The conditions at which an expression's value may jump."""
    return tuple(part.condition for part in e.walk() if isinstance(part, Select))


def _some(found: Expr | None, like: Expr) -> Expr:
    return const(0, like.dtype) if found is None else found


def _plus(a: Expr | None, b: Expr | None, op: str = "+") -> Expr | None:
    if a is None:
        return b if op == "+" or b is None else Unary("-", b)
    return a if b is None else Binary(op, a, b)


def _times(a: Expr | None, b: Expr) -> Expr | None:
    if a is None:
        return None
    one = const(1, b.dtype)
    return b if a is one else a if b is one else Binary("*", a, b)


def _binary(op: str, left: Expr, right: Expr, by: Var) -> Expr | None:
    a, b = derivative(left, by), derivative(right, by)
    if a is None and b is None:
        return None
    match op:
        case "+" | "-":
            return _plus(a, b, op)
        case "*":
            return _plus(_times(a, right), _times(b, left))
        case "/":
            moved = _plus(a, _times(b, Binary("/", left, right)), "-")
            return None if moved is None else Binary("/", moved, right)
        case "min" | "max":
            lesser, greater = (left, right) if op == "max" else (right, left)
            whole = Binary(op, left, right)
            return Select(Binary("<", lesser, greater), _some(b, whole), _some(a, whole))
        case "pow" if b is None:
            return _times(a, Binary("*", right, Binary("pow", left, Binary("-", right, const(1, right.dtype)))))
    raise NotDifferentiable(op)


def _chained(name: str, x: Expr, whole: Expr, by: Var) -> Expr | None:
    found = slope(name, x, whole) if x.dtype.is_float else None
    if found is None:
        raise NotDifferentiable(name)
    return _times(derivative(x, by), found)
