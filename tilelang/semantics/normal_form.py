"""A normal form of expressions of real numbers: two with the same form are equal wherever both are defined.

An expression is a constant times powers of factors times an exponential; the exponent is a sum of such products. Each factor has a
sign and a magnitude, because only its magnitude has roots: sqrt(x * x) is the magnitude of x, not x. Exponentials and logarithms to the
base 2 are written with log(2), which stays a symbol: no decimal number is taken for it. Conversions between floats count as rounding
only, and constants are compared to `DIGITS` digits. Sums of constants of very different sizes have no normal form.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from fractions import Fraction
from typing import Any

from tilelang.core.expr import Binary, Call, Cast, Const, Expr, Unary

DIGITS = 12  # to which constants are compared
LEAST = 1e-300  # the least magnitude of a constant; the greatest is its inverse
LOST = 1e-6  # the part of a constant below which another is lost beside it
TERMS = 64  # the most terms of a product of sums that is multiplied out

Factors = Mapping[Any, tuple[bool, Fraction]]  # whether the factor's sign counts, and the power of its magnitude
Product = tuple[float, tuple[Any, ...], tuple[Any, ...]]  # constant, factors, terms of the exponent
Terms = tuple[Any, ...]  # ((factors, exponent), constant) of each term of a sum
ODD, EVEN, POSITIVE = ("tanh", "sin", "erf"), ("cos",), ("sigmoid",)


def equal_forms(a: Expr, b: Expr, at_least_0: Iterable[Expr] = ()) -> bool:
    """Whether two expressions have the same normal form. at_least_0: variables that are never negative.

    >>> from tilelang.core.expr import Var
    >>> from tilelang import exp, exp2, float32, log, sqrt
    >>> x, y = Var("x", float32), Var("y", float32)
    >>> equal_forms(exp(x - y), exp(x) / exp(y)), equal_forms(exp(x - y), 1 / exp(y - x)), equal_forms(x / y, y / x)
    (True, True, False)
    >>> equal_forms(exp2(x - y), exp2(x) / exp2(y)), equal_forms(exp2(x), exp(x * log(2.0))), equal_forms(exp2(x), exp(x))
    (True, True, False)
    >>> equal_forms(sqrt(x * x), x), equal_forms(sqrt(x * x), abs(x)), equal_forms(sqrt(x * x), x, [x])
    (False, True, True)
    """
    form = _Form(frozenset(at_least_0))
    try:
        return form.product(a) == form.product(b) or form.terms(a) == form.terms(b)
    except ArithmeticError:  # a constant is infinite or too small, or a division by 0
        return a is b


class _Form:
    """The normal forms of expressions. Some of their variables are known not to be negative."""

    def __init__(self, at_least_0: frozenset[Expr]) -> None:
        self.at_least_0 = at_least_0
        self._products: dict[Expr, Product] = {}
        self._terms: dict[Expr, Terms] = {}

    def product(self, e: Expr) -> Product:
        """An expression as a product."""
        if e not in self._products:
            self._products[e] = self._product(e)
        return self._products[e]

    def terms(self, e: Expr) -> Terms:
        """An expression as a sum, multiplied out."""
        if e not in self._terms:
            self._terms[e] = self._sum(e)
        return self._terms[e]

    def _product(self, e: Expr) -> Product:
        match e:
            case Const(value=c):
                return (_rounded(float(c)), (), ())
            case Cast(operand, t) if t.is_float and operand.dtype.is_float:
                return self.product(operand)
            case Unary("-", operand):
                return _times(self.product(operand), (-1.0, (), ()))
            case Binary("*", left, right):
                return _times(self.product(left), self.product(right))
            case Binary("/", left, right):
                return _times(self.product(left), _power(self.product(right), Fraction(-1)))
            case Binary("pow", base, Const(value=n)) if not isinstance(n, bool) and math.isfinite(n):
                return _power(self.product(base), Fraction(n))
            case Call("sqrt" | "rsqrt" as f, (argument,)):
                return _power(self.product(argument), Fraction(1 if f == "sqrt" else -1, 2))
            case Call("abs", (argument,)):
                return _magnitude(self.product(argument))
            case Call("exp" | "exp2" as f, (argument,)):
                return _exponential(_multiplied(self.terms(argument), _LOG_2 if f == "exp2" else _ONE))
            case Binary("+" | "-") | Call("log" | "log2"):
                return _of_terms(self.terms(e))
            case Call(name, (argument,)) if name in ODD or name in EVEN:
                terms = self.terms(argument)
                turned = bool(terms) and terms[0][1] < 0
                factor = _factor((name, _scaled(terms, -1.0) if turned else terms), True)
                return (-1.0 if turned and name in ODD else 1.0, factor, ())
            case Call(name, arguments):
                return (1.0, _factor((name, *map(self.terms, arguments)), name not in POSITIVE), ())
        return (1.0, _factor(e, e not in self.at_least_0), ())

    def _sum(self, e: Expr) -> Terms:
        match e:
            case Binary("+" | "-" as op, left, right):
                return _added(self.terms(left), self.terms(right), 1.0 if op == "+" else -1.0)
            case Unary("-", operand):
                return _scaled(self.terms(operand), -1.0)
            case Cast(operand, t) if t.is_float and operand.dtype.is_float:
                return self.terms(operand)
            case Binary("*", left, right) if len(self.terms(left)) * len(self.terms(right)) <= TERMS:
                return _multiplied(self.terms(left), self.terms(right))
            case Binary("/", left, right) if len(self.terms(right)) == 1:
                return _multiplied(self.terms(left), _as_terms(_power(_of_terms(self.terms(right)), Fraction(-1))))
            case Call("log", (argument,)):
                return _logarithm(self.product(argument))
            case Call("log2", (argument,)):
                return _multiplied(_logarithm(self.product(argument)), _as_terms(_power(_of_terms(_LOG_2), Fraction(-1))))
        return _as_terms(self.product(e))


# ---------------------------------------------------------------- products


def _factor(base: Any, signed: bool) -> tuple[Any, ...]:
    return ((base, (signed, Fraction(1))),)


def _times(a: Product, b: Product) -> Product:
    if not a[0] or not b[0]:
        return (0.0, (), ())
    factors, exponent = dict(a[1]), dict(a[2])
    for f, (signed, n) in b[1]:
        sign, power = factors.get(f, (False, Fraction(0)))
        factors[f] = (sign != signed, power + n)
    for t, c in b[2]:
        exponent[t] = exponent.get(t, 0.0) + c
    return (_not_0(a[0] * b[0]), _some(factors), _kept(exponent))


def _power(a: Product, n: Fraction) -> Product:
    """A product to a power; to one that is not whole, it is not negative, and equal to its magnitude."""
    if n.denominator > 1:
        a = _magnitude(a)
    if not a[0] and n > 0:
        return a
    constant = _not_0(a[0] ** (int(n) if n.denominator == 1 else float(n)))
    factors = {f: (signed and n.numerator % 2 == 1, power * n) for f, (signed, power) in a[1]}
    return (constant, _some(factors), _scaled(a[2], float(n)))


def _magnitude(a: Product) -> Product:
    return (abs(a[0]), _some({f: (False, power) for f, (_, power) in a[1]}), a[2])


def _exponential(terms: Terms) -> Product:
    """e to the power of a sum. A term that is a logarithm becomes a factor: exp(log(x) + y) is |x| exp(y)."""
    factors, exponent = dict[Any, tuple[bool, Fraction]](), dict[Any, float]()
    for (found, inner), c in terms:
        match found:
            case ((("log", of), (True, 1)),) if not inner and found != _LOG_2[0][0][0]:
                factors[of] = (False, Fraction(c))
            case _:
                exponent[found, inner] = c
    return (1.0, _some(factors), _kept(exponent))


def _some(factors: Factors) -> tuple[Any, ...]:
    """The factors that are not 1, in a fixed order."""
    return tuple(sorted(((f, n) for f, n in factors.items() if n[0] or n[1]), key=repr))


# ---------------------------------------------------------------- sums


def _as_terms(a: Product) -> Terms:
    return _kept({(a[1], a[2]): a[0]})


def _of_terms(terms: Terms) -> Product:
    """A sum as a product: of one term, or of its first constant and the sum divided by that."""
    if not terms:
        return (0.0, (), ())
    ((factors, exponent), first) = terms[0]
    if len(terms) == 1:
        return (first, factors, exponent)
    return (first, _factor(("sum", _scaled(terms, 1 / first)), True), ())


def _added(a: Terms, b: Terms, by: float) -> Terms:
    """a + by * b. Raises ArithmeticError if a constant is so small beside another, or beside their sum, that rounding could lose it."""
    found = dict(a)
    for t, c in b:
        sizes = sorted(abs(x) for x in (found.get(t, 0.0), c * by, found.get(t, 0.0) + c * by) if x)
        if sizes and sizes[0] < LOST * sizes[-1]:
            raise ArithmeticError(sizes[0])
        found[t] = found.get(t, 0.0) + c * by
    return _kept(found)


def _scaled(terms: Terms, by: float) -> Terms:
    return _kept({t: _not_0(c * by) for t, c in terms})


def _multiplied(a: Terms, b: Terms) -> Terms:
    found: Terms = ()
    for t, c in a:
        found = _added(found, tuple(_as_terms(_times((c, *t), (d, *u)))[0] for u, d in b), 1.0)
    return found


def _logarithm(a: Product) -> Terms:
    """The logarithm of a product, which is positive where it is defined, and so is its magnitude."""
    found = {(_factor(("log", f), True), ()): float(power) for f, (_, power) in a[1] if power}
    if a[0] != 1:
        found[(_factor(("log", ("number", abs(a[0]))), True), ())] = 1.0
    return _added(_kept(found), a[2], 1.0)


def _kept(found: Mapping[Any, float]) -> Terms:
    """The terms whose constant is not 0, in a fixed order."""
    return tuple(sorted(((k, _rounded(c)) for k, c in found.items() if _rounded(c) != 0), key=repr))


def _not_0(c: float) -> float:
    """The product of constants that are not 0. Raises ArithmeticError if it is too small."""
    if not c:
        raise ArithmeticError(c)
    return _rounded(c)


def _rounded(c: float) -> float:
    """A constant, rounded to `DIGITS` digits. Raises ArithmeticError if it overflows or underflows."""
    if c != 0 and not LEAST < abs(c) < 1 / LEAST:
        raise ArithmeticError(c)
    return float(f"{c:.{DIGITS}g}")


_ONE: Terms = ((((), ()), 1.0),)
_LOG_2: Terms = (((_factor(("log", ("number", 2.0)), True), ()), 1.0),)
