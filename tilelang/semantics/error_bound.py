"""Forward error analysis, node by node: the maximum difference between a correct kernel's value and the reference's.

A value is carried as (value, error): `value` is the reference's, in the wide type; |kernel's value - value| <= error holds for every
kernel that performs each operation of the definition once, in its compute type, in any order of summation, with or without fused
multiply-add. error None means exact. An infinite error means that nothing is claimed (an overflow on the way, a division by a value
that may be 0, a branch on an uncertain condition with unknown branches). For conditions the error is 0 or 1: 1 is "uncertain".

Rounding is counted per operation as `unit * |result|`, plus the least subnormal number for underflow. Functions get the ulps of the
table below (1 ulp = 2 units), which OpenCL C guarantees for full-profile single and double precision, and `sigmoid` those of 1/(1 +
exp(-x)); shipped polynomials must not exceed them. Functions may flush results below the normal range to zero.
Source: N. J. Higham, Accuracy and Stability of Numerical Algorithms, 2nd ed., chapters 3 and 4.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from tilelang.core import numeric
from tilelang.core.dtype import DType
from tilelang.core.expr import COMPARISONS, Binary, Call, Cast, Const, Expr, Select, Unary

# The maximum over the targets' documentation: OpenCL C for all but rsqrt, which is CUDA's.
ULPS: dict[str, float] = {
    "/": 2.5, "pow": 16, "exp": 3, "exp2": 3, "expm1": 3, "log": 3, "log2": 3, "log1p": 2, "sqrt": 3, "rsqrt": 2.5, "sin": 4, "cos": 4,
    "tanh": 5, "erf": 16, "sigmoid": 8, "floor": 0, "ceil": 0, "round": 0, "abs": 0,
}  # fmt: skip

# Functions that may overflow this many ulps of their argument too early: PoCL's exp is infinite for the two doubles below log(max).
EARLY = ("exp", "exp2", "expm1")
EARLY_ULPS = 2

TF32_UNIT = 2.0**-10  # relative error of a product's operand under the licence tf32: devices truncate it instead of rounding


class Approx(NamedTuple):
    """A reference value and the maximum difference of a correct kernel's value (None: exact)."""

    value: Any
    error: Any = None


@dataclasses.dataclass(frozen=True, slots=True)
class Rounding:
    """A float type's unit roundoff, least subnormal, least normal and greatest number."""

    unit: float
    tiny: float
    normal: float
    largest: float


@functools.cache
def rounding(t: DType, slack: float = 1) -> Rounding:
    """The rounding properties of a float type. slack: factor by which an operation may be less accurate than its type.

    >>> from tilelang.core import dtype as dt
    >>> rounding(dt.float32).unit == 2.0**-24
    True
    """
    if slack != 1:
        exact = rounding(t)
        return dataclasses.replace(exact, unit=exact.unit * slack)
    if t.name == "float64":
        info = np.finfo(np.float64)
        return Rounding(2.0**-53, float(info.smallest_subnormal), float(info.tiny), float(info.max))
    exponent = {"float16": -14, "bfloat16": -126, "float32": -126, "float8_e4m3": -6, "float8_e5m2": -14}[t.name]
    largest = {"float16": 65504.0, "float8_e4m3": 448.0, "float8_e5m2": 57344.0}.get(
        t.name, (2 - 2.0 ** (1 - t.mantissa_bits)) * 2.0**127
    )
    return Rounding(2.0**-t.mantissa_bits, 2.0 ** (exponent + 1 - t.mantissa_bits), 2.0**exponent, largest)


def err(a: Approx) -> Any:
    """The error as a number or an array."""
    return 0.0 if a.error is None else a.error


def unknown_if_nan(error: Any) -> Any:
    """Turns an error that could not be computed into infinity."""
    return np.where(np.isnan(error), np.inf, error)


def rounded(value: Any, error: Any, r: Rounding) -> Any:
    """The error after one rounding of a result that may overflow. The caller handles values that are not finite."""
    total = error + r.unit * (np.abs(value) + error) + r.tiny
    return np.where(np.abs(value) + total > r.largest, np.inf, total)


def certain(value: Any, error: Any, sure: Any) -> Any:
    """The error of an infinite or NaN result: 0 if it is certain, else infinite."""
    return np.where(np.isfinite(value), unknown_if_nan(error), np.where(sure, 0.0, np.inf))


class Arithmetic:
    """The scalar operators on Approx values.

    errors: whether to carry errors at all. rounds: whether operations add rounding errors. slack: factor by which these may exceed
    those of the type. ulps: the maximum error of each function in ulps of the result; by default the maximum over all targets.
    """

    def __init__(
        self,
        wide: Any,
        errors: bool,
        allow: tuple[str, ...] = (),
        rounds: bool = True,
        slack: float = 1,
        ulps: Mapping[str, float] = ULPS,
    ) -> None:
        self.wide, self.errors, self.allow, self.rounds, self.slack, self.ulps = wide, errors, allow, rounds, slack, ulps

    def constant(self, e: Const) -> Approx:
        return Approx(numeric.constant(e.value, e.type, self.wide))

    def binary(self, op: str, a: Approx, b: Approx, t: DType) -> Approx:
        """`a op b`; t is the type of the operands."""
        value = numeric.binary(op, a.value, b.value)
        if not self.errors or (
            a.error is None and b.error is None and not (t.is_float and op not in (*COMPARISONS, "min", "max"))
        ):
            return Approx(value)
        ea, eb = err(a), err(b)
        if op in COMPARISONS:
            # NaN compares the same whatever the other operand; so do equal infinities.
            return Approx(value, np.where(self._apart(a, b, ea + eb), 0.0, 1.0))
        if op in ("and", "or"):
            settled = ~a.value & (ea == 0) | ~b.value & (eb == 0) if op == "and" else a.value & (ea == 0) | b.value & (eb == 0)
            return Approx(value, np.where(settled, 0.0, np.maximum(ea, eb)))
        if op in ("min", "max"):
            sure = (np.isfinite(ea) & np.isfinite(eb)) | (np.isnan(a.value) & (ea == 0)) | (np.isnan(b.value) & (eb == 0))
            return Approx(value, certain(value, np.maximum(ea, eb), sure))
        if not t.is_float:
            return Approx(value, self._integer_error(op, a, b, ea, eb))
        return Approx(value, self._float_error(op, a, b, value, t))

    @staticmethod
    def _apart(a: Approx, b: Approx, room: Any) -> Any:
        x, y = np.asarray(a.value, np.float64), np.asarray(b.value, np.float64)
        near = np.abs(x - y) <= room
        return np.where(room == 0, True, np.where(np.isnan(x) | np.isnan(y), np.isfinite(room), ~near & np.isfinite(room)))

    @staticmethod
    def _integer_error(op: str, a: Approx, b: Approx, ea: Any, eb: Any) -> Any:
        x, y = np.abs(np.asarray(a.value, np.float64)), np.abs(np.asarray(b.value, np.float64))
        if op in ("+", "-"):
            return ea + eb
        if op == "*":
            return unknown_if_nan(x * eb + y * ea + ea * eb)
        return np.where((ea == 0) & (eb == 0), 0.0, np.inf)

    def _float_error(self, op: str, a: Approx, b: Approx, value: Any, t: DType) -> Any:
        x, y, ea, eb = np.abs(a.value), np.abs(b.value), err(a), err(b)
        r = rounding(t, self.slack)
        sure = ((ea == 0) & (eb == 0)) | (np.isnan(a.value) & (ea == 0)) | (np.isnan(b.value) & (eb == 0))
        match op:
            case "+" | "-":
                moved = ea + eb
                # An infinity is unchanged by any finite error.
                sure = sure | (np.isfinite(ea) & np.isfinite(eb) & ~(np.isfinite(a.value) & np.isfinite(b.value)))
            case "*":
                moved = x * eb + y * ea + ea * eb
            case "/":
                moved = np.where(y > eb, (ea + np.abs(value) * eb) / (y - eb), np.where((ea == 0) & (eb == 0), 0.0, np.inf))
            case "//" | "%":
                return self._floor_error(op, a, b, value, r)
            case _:
                # pow: only exact operands, or a positive base, with the derivative's bound from the corners.
                moved = self._power_error(a, b, value)
        if not self.rounds:
            return certain(value, moved, sure)
        extra = self.ulps.get(op, 0.5) * 2 - 1  # roundings in addition to the one that `rounded` counts
        total = rounded(value, moved + max(0.0, extra) * r.unit * (np.abs(value) + moved), r)
        return certain(value, np.where(self._keeps(op, a, b), moved, total), sure)

    @staticmethod
    def _keeps(op: str, a: Approx, b: Approx) -> Any:
        """Whether an exact operand 0 or 1 makes the operation return its other operand, or 0, without rounding."""

        def exactly(x: Approx, size: int) -> Any:
            return (np.abs(x.value) == size) & (err(x) == 0)

        match op:
            case "+" | "-":
                return exactly(a, 0) | exactly(b, 0)
            case "*":
                return exactly(a, 0) | exactly(b, 0) | exactly(a, 1) | exactly(b, 1)
            case "/":
                return exactly(a, 0) | exactly(b, 1)
            case _:
                return False

    @staticmethod
    def _power_error(a: Approx, b: Approx, value: Any) -> Any:
        ea, eb = err(a), err(b)
        low, high = a.value - ea, a.value + ea
        corners = [np.power(p, q) for p in (low, high) for q in (b.value - eb, b.value + eb)]
        moved = functools.reduce(np.maximum, [np.abs(c - value) for c in corners])
        return np.where((ea == 0) & (eb == 0), 0.0, np.where(low > 0, moved, np.inf))

    @staticmethod
    def _floor_error(op: str, a: Approx, b: Approx, value: Any, r: Rounding) -> Any:
        """The error of `//` and `%` on floats, whose quotient must not cross an integer."""
        ea, eb = err(a), err(b)
        quotient = a.value / b.value
        exact = (ea == 0) & (eb == 0)
        slack = np.where(np.abs(b.value) > eb, (ea + np.abs(quotient) * eb) / (np.abs(b.value) - eb), np.inf)
        slack = np.where(exact, 0.0, slack) + 5 * r.unit * np.abs(quotient)
        jump = np.floor(quotient + slack) - np.floor(quotient - slack)
        if op == "//":
            return certain(value, jump, exact)
        moved = ea + np.abs(np.floor(quotient)) * eb + np.where(jump > 0, np.abs(b.value) + eb, 0.0)
        moved = np.where((np.abs(b.value) <= eb) & (eb > 0), np.inf, moved)
        return certain(value, moved + 4 * r.unit * (np.abs(value) + np.abs(b.value)) + r.tiny, exact)

    def unary(self, op: str, a: Approx) -> Approx:
        return Approx(numeric.unary(op, a.value), a.error)

    def call(self, name: str, a: Approx, t: DType) -> Approx:
        value = numeric.call(name, a.value)
        if not self.errors or name == "isnan":
            uncertain = None if a.error is None or not self.errors else np.where(np.isfinite(a.error), 0.0, 1.0)
            return Approx(value, uncertain)
        if a.error is None and (name == "abs" or not t.is_float):
            return Approx(value)
        moved = 0.0 if a.error is None else self._moved(name, a, value)
        sure = (err(a) == 0) | (np.isnan(a.value) & np.isfinite(err(a)))
        if self.ulps[name] == 0 or not self.rounds:
            return Approx(value, certain(value, moved, sure))
        r = rounding(t, self.slack)
        units = 2 * self.ulps[name]
        if "fast_exp" in self.allow and name in ("exp", "exp2"):
            units = units + 8 + 4 * np.abs(a.value)
        total = moved + units * r.unit * (np.abs(value) + moved) + r.normal
        early = 2 * EARLY_ULPS * r.unit * np.abs(a.value) * np.abs(value) if name in EARLY else 0.0
        total = np.where(np.abs(value) + total + early > r.largest, np.inf, total)
        return Approx(value, certain(value, total, sure))

    @staticmethod
    def _moved(name: str, a: Approx, value: Any) -> Any:
        """The change of a function when its argument changes by its error: all are monotone except sin, cos and abs."""
        if name == "abs":
            return a.error
        if name in ("sin", "cos"):
            return np.where(np.isfinite(a.error), np.minimum(a.error, 2.0), np.inf)
        low, high = numeric.call(name, a.value - a.error), numeric.call(name, a.value + a.error)
        # the error of the reference's own function values, whose difference is used
        noise = 8 * np.finfo(np.float64).eps * np.abs(value)
        moved = np.maximum(np.abs(high - value), np.abs(value - low)) + noise
        # If nothing is known of the argument, which may be NaN, even a bounded function has an unknown result.
        return np.where(a.error == 0, 0.0, np.where(np.isinf(a.error), np.inf, unknown_if_nan(moved)))

    def select(self, condition: Approx, then: Approx, otherwise: Approx) -> Approx:
        value = np.where(condition.value, then.value, otherwise.value)
        if not self.errors or (condition.error is None and then.error is None and otherwise.error is None):
            return Approx(value)
        error = np.where(condition.value, err(then), err(otherwise))
        if condition.error is not None:
            p, q = np.asarray(then.value, np.float64), np.asarray(otherwise.value, np.float64)
            same = (p == q) | (np.isnan(p) & np.isnan(q))
            gap = np.where(same, 0.0, unknown_if_nan(np.abs(p - q)))
            either = gap + np.maximum(err(then), err(otherwise))
            error = np.where(condition.error != 0, either, error)
        return Approx(value, error)

    def cast(self, a: Approx, source: DType, target: DType) -> Approx:
        value = numeric.cast(a.value, source, target, self.wide)
        if not self.errors or a.error is None:
            return Approx(value)
        if target.kind == "bool":
            return Approx(value, np.where((a.error == 0) | (np.abs(np.asarray(a.value, np.float64)) > a.error), 0.0, 1.0))
        if target.is_integer:
            if not source.is_float:
                return Approx(value, a.error)
            ends = [numeric.saturated(a.value + e, target).astype(np.float64) for e in (a.error, -a.error)]
            apart = np.where(np.isnan(a.value), np.inf, ends[0] - ends[1])
            return Approx(value, np.where(a.error == 0, 0.0, unknown_if_nan(apart)))
        narrower = (
            not source.is_float
            or source.mantissa_bits > target.mantissa_bits
            or rounding(source).largest > rounding(target).largest
        )
        if not narrower:
            return Approx(value, a.error)
        return Approx(value, self.stored(a, target))

    @staticmethod
    def stored(a: Approx, t: DType) -> Any:
        """The error after the kernel and the reference have both rounded to type t."""
        r = rounding(t)
        size, e = np.abs(np.asarray(a.value, np.float64)), err(a)
        total = e + r.unit * (2 * size + e) + r.tiny
        beyond = size - e > r.largest * (1 + r.unit)
        error = np.where(size + total > r.largest, np.where(beyond, 0.0, np.inf), total)
        # Exact values round identically on both sides.
        return np.where(e == 0, 0.0, np.where(np.isfinite(a.value), error, np.where(np.isfinite(e), 0.0, np.inf)))

    def evaluate(self, expr: Expr, known: dict[Expr, Approx]) -> Approx:
        """An expression, such as a combiner's result, for given values of its variables."""
        found = known.get(expr)
        if found is None:
            found = known[expr] = self._compute(expr, known)
        return found

    def _compute(self, e: Any, known: dict[Expr, Approx]) -> Approx:
        match e:
            case Const():
                return self.constant(e)
            case Binary(op, left, right):
                return self.binary(op, self.evaluate(left, known), self.evaluate(right, known), left.dtype)
            case Unary(op, operand):
                return self.unary(op, self.evaluate(operand, known))
            case Call(name, (argument,)):
                return self.call(name, self.evaluate(argument, known), argument.dtype)
            case Select(c, then, otherwise):
                return self.select(self.evaluate(c, known), self.evaluate(then, known), self.evaluate(otherwise, known))
            case Cast(operand, target):
                return self.cast(self.evaluate(operand, known), operand.dtype, target)
            case _:
                raise KeyError(f"no value for {e}")


# ---------------------------------------------------------------- reductions


def growth(unit: float, operations: Any) -> Any:
    """(1 + unit)**operations - 1: the relative error of that many successive roundings."""
    return np.expm1(np.maximum(operations, 0) * np.log1p(unit))


def sum_error(value: Any, magnitude: Any, moved: Any, terms: Any, r: Rounding) -> Any:
    """The error of a sum in any order. magnitude: the sum of |term| over finite terms. moved: the sum of the terms' errors. terms:
    their number.

    NaN stays NaN. An infinity is certain if the finite terms cannot overflow to the opposite one before they are added to it.
    """
    total = moved + growth(r.unit, terms - 1) * (magnitude + moved)
    total = np.where(magnitude + total > r.largest, np.inf, total)
    return certain(value, total, np.isfinite(moved) & (np.isnan(value) | np.isfinite(total)))


def product_error(value: Any, terms: Approx, axes: tuple[int, ...], count: Any, r: Rounding) -> Any:
    """The error of a product in any order; infinite if some order could overflow or underflow on the way."""
    size, e = np.abs(terms.value), err(terms)
    logs = np.log2(size + e)
    up = np.sum(np.where(logs > 0, logs, 0.0), axis=axes)
    low = np.log2(np.maximum(size - e, 0.0))
    down = np.sum(np.where((low < 0) & (size > 0), low, 0.0), axis=axes)
    # In logarithms: the product of (|t| + e) minus the product of |t|; direct subtraction could overflow.
    wide = np.prod(size + e, axis=axes) * (1 + growth(r.unit, count - 1))
    total = wide - np.abs(value) + r.tiny
    # A zero makes underflow harmless, but infinity times zero is NaN: some order may multiply by the zero, or an underflow, last.
    above = down > np.log2(r.normal)
    safe = (up < np.log2(r.largest)) & (above | (np.abs(value) == 0) & np.all(e == 0))
    sure = np.all(np.isfinite(e) * np.ones_like(size, bool), axis=axes) & np.all(e == 0) & (np.isnan(value) | above)
    return certain(value, np.where(safe, total, np.inf), sure)
