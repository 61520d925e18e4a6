"""A normal form of expressions of real numbers: two with the same form are equal wherever both are defined.

An expression is a constant times powers of factors times an exponential; the exponent is a sum of such terms. Conversions between
floats count as rounding only.
"""

from __future__ import annotations

import math
from typing import Any

from tilelang.core.expr import Binary, Call, Cast, Const, Expr, Unary

DIGITS = 12  # to which constants are compared

Form = tuple[Any, ...]


def equal_forms(a: Expr, b: Expr) -> bool:
    """Whether two expressions have the same normal form.

    >>> from tilelang.core.expr import Var
    >>> from tilelang import exp, float32
    >>> x, y = Var("x", float32), Var("y", float32)
    >>> equal_forms(exp(x - y), exp(x) / exp(y)), equal_forms(exp(x - y), 1 / exp(y - x)), equal_forms(x / y, y / x)
    (True, True, False)
    """
    return _product(a) == _product(b) or _sum(a) == _sum(b)


def _product(e: Expr) -> Form:
    """(constant, powers of factors, exponent) of an expression."""
    match e:
        case Const(value=c):
            return (_rounded(float(c)), (), ())
        case Cast(operand, t) if t.is_float and operand.dtype.is_float:
            return _product(operand)
        case Unary("-", operand):
            return _times(_product(operand), (-1.0, (), ()), 1)
        case Binary("*" | "/" as op, left, right):
            return _times(_product(left), _product(right), 1 if op == "*" else -1)
        case Binary("pow", base, Const(value=n)) if not isinstance(n, bool) and float(n).is_integer():
            return _times((1.0, (), ()), _product(base), int(n))
        case Call("exp", (argument,)):
            return (1.0, (), _sum(argument))
        case Binary("+" | "-", _, _):
            terms = _sum(e)
            if len(terms) == 1:  # one term after all
                ((factors, exponent), c) = terms[0]
                return (c, factors, exponent)
            return (1.0, ((("sum", terms), 1),), ())
        case Call(name, arguments):
            return (1.0, (((name, *map(_product, arguments)), 1),), ())
    return (1.0, ((e, 1),), ())


def _times(a: Form, b: Form, power: int) -> Form:
    """a * b**power."""
    try:
        constant = a[0] * b[0] ** power
    except (ZeroDivisionError, OverflowError):
        return (1.0, ((("undefined", a, b, power), 1),), ())
    factors, exponent = dict(a[1]), dict(a[2])
    for f, n in b[1]:
        factors[f] = factors.get(f, 0) + n * power
    for t, c in b[2]:
        exponent[t] = exponent.get(t, 0.0) + c * power
    return (_rounded(constant), _kept(factors), _kept(exponent))


def _sum(e: Expr) -> tuple[Any, ...]:
    """The terms of a sum with their constants."""
    match e:
        case Binary("+" | "-" as op, left, right):
            found = dict(_sum(left))
            for t, c in _sum(right):
                found[t] = found.get(t, 0.0) + (c if op == "+" else -c)
            return _kept(found)
        case Unary("-", operand):
            return _kept({t: -c for t, c in _sum(operand)})
        case Cast(operand, t) if t.is_float and operand.dtype.is_float:
            return _sum(operand)
        case Binary("*", Const(value=k), other) | Binary("*", other, Const(value=k)):
            return _kept({t: c * float(k) for t, c in _sum(other)})
        case Binary("/", other, Const(value=k)) if k:
            return _kept({t: c / float(k) for t, c in _sum(other)})
    c, factors, exponent = _product(e)
    return _kept({(factors, exponent): c})


def _kept(found: dict[Any, Any]) -> tuple[Any, ...]:
    return tuple(sorted(((k, _rounded(c)) for k, c in found.items() if _rounded(c) != 0), key=repr))


def _rounded(c: float) -> float:
    return c if c == 0 or not math.isfinite(c) else float(f"{c:.{DIGITS}g}")
