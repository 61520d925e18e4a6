"""Semantics of the scalar operators of kernel expressions, in NumPy with a device's types.

The simulator's arithmetic is deliberately separate from the reference's (numeric.py), so that each table reveals a mistake in the
other. Values are NumPy arrays or scalars of the type that pointwise operations compute in (`compute_numpy`): floats of 8 and 16
bits are computed in float32 and rounded when stored or cast. Integers wrap, `//` and `%` round towards minus infinity, `min` and
`max` propagate NaN. Callers silence NumPy's floating-point warnings, because idle threads compute garbage.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from tilelang.core import dtype as dt
from tilelang.core.dtype import DType
from tilelang.core.expr import Const

Value = Any  # a NumPy scalar, or an array over threads or over (threads, lanes)


def compute_numpy(t: DType) -> np.dtype[Any]:
    """The NumPy type that holds values of the nominal type t."""
    return dt.compute_type(t).numpy


def constant(expr: Const) -> Value:
    """A literal as a NumPy scalar, rounded to its type; integers out of range wrap."""
    target = compute_numpy(expr.type)
    if expr.type.is_integer:
        return np.array(int(expr.value) & (2**64 - 1), dtype=np.uint64).astype(target)[()]
    return np.array(expr.value).astype(expr.type.numpy).astype(target)[()]


def zero(t: DType) -> Value:
    """The placeholder for a value that no thread needs."""
    return np.zeros((), compute_numpy(t))[()]


def cast(values: Value, source: DType, target: DType) -> Value:
    """Conversion between nominal types. Floats to integers truncate and saturate (NaN gives 0), to bool is `!= 0`, and floats of
    8 and 16 bits round."""
    if target.kind == "bool":
        return values != 0
    if source.is_float and target.is_integer:
        limits = np.iinfo(target.numpy)
        exact = np.nan_to_num(np.trunc(np.asarray(values, np.float64)), nan=0.0, posinf=np.inf, neginf=-np.inf)
        # the greatest float64 below the first one out of range
        high = np.nextafter(2.0 ** (target.bits - (target.kind == "int")), 0.0)
        inside = np.clip(exact, float(limits.min), high).astype(target.numpy)
        return np.where(exact > high, limits.max, inside).astype(target.numpy)[()]
    return np.asarray(values).astype(target.numpy).astype(compute_numpy(target))[()]


def _integer_power(base: Value, exponent: Value) -> Value:
    """Wrapping integer power; a negative exponent gives the truncated quotient 1 / base**-exponent (0 for a base of 0)."""
    positive = np.power(base, np.maximum(exponent, 0))
    odd = (exponent & 1).astype(bool)
    inverse = np.where(base == 1, 1, np.where(base == -1, np.where(odd, -1, 1), 0)).astype(positive.dtype)
    return np.where(exponent < 0, inverse, positive)


def _power(a: Value, b: Value) -> Value:
    """As C's `pow`. NumPy may use a square root for 0.5, which gives NaN for -infinity and keeps the sign of zero."""
    if a.dtype.kind in "iu":
        return _integer_power(a, b)
    return np.where(np.equal(b, 0.5) & ((a == 0) | np.isinf(a)), np.abs(a), np.power(a, b))


BINARY: dict[str, Callable[[Value, Value], Value]] = {
    "+": np.add, "-": np.subtract, "*": np.multiply, "/": np.divide, "//": np.floor_divide, "%": np.mod,
    "min": np.minimum, "max": np.maximum, "pow": _power,
    "&": np.bitwise_and, "|": np.bitwise_or, "^": np.bitwise_xor, "<<": np.left_shift, ">>": np.right_shift,
    "==": np.equal, "!=": np.not_equal, "<": np.less, "<=": np.less_equal,
    "and": np.logical_and, "or": np.logical_or,
}  # fmt: skip

_UNARY: dict[str, Callable[[Value], Value]] = {"-": np.negative, "not": np.logical_not, "~": np.invert}

_ERF = np.frompyfunc(math.erf, 1, 1)


def _erf(x: Value) -> Value:
    return np.asarray(_ERF(np.asarray(x, dtype=np.float64))).astype(np.float64)


def _reciprocal_root(x: Value) -> Value:
    return np.ones((), x.dtype) / np.sqrt(x)


def _sigmoid(x: Value) -> Value:
    one = np.ones((), x.dtype)
    return one / (one + np.exp(-x))


_FUNCTIONS: dict[str, Callable[[Value], Value]] = {
    "exp": np.exp, "exp2": np.exp2, "log": np.log, "log2": np.log2, "log1p": np.log1p, "expm1": np.expm1, "sqrt": np.sqrt,
    "rsqrt": _reciprocal_root, "sin": np.sin, "cos": np.cos, "tanh": np.tanh, "erf": _erf, "sigmoid": _sigmoid,
    "floor": np.floor, "ceil": np.ceil, "round": np.rint, "abs": np.abs, "isnan": np.isnan,
}  # fmt: skip


def align(*values: Value) -> tuple[Value, ...]:
    """Gives values over threads a lane dimension of one where others are over (threads, lanes), so that all broadcast."""
    ranks = {v.ndim for v in values}
    if 1 in ranks and 2 in ranks:
        return tuple(v[:, None] if v.ndim == 1 else v for v in values)
    return values


def binary(op: str, left: Value, right: Value) -> Value:
    """`left op right`, elementwise."""
    left, right = align(left, right)
    return BINARY[op](left, right)


def unary(op: str, operand: Value) -> Value:
    """`-x`, `not x` or `~x`, elementwise."""
    return _UNARY[op](operand)


def call(name: str, argument: Value) -> Value:
    """A function of expr.FLOAT_FUNCTIONS, ANY_FUNCTIONS or PREDICATES, in the argument's type."""
    result = _FUNCTIONS[name](argument)
    return result if result.dtype.kind == "b" else result.astype(argument.dtype)


def select(condition: Value, then: Value, otherwise: Value) -> Value:
    """`then` where the condition holds, else `otherwise`."""
    return np.where(*align(condition, then, otherwise))


def widen(values: npt.NDArray[Any], t: DType) -> npt.NDArray[Any]:
    """Stored elements of type t, converted to the type to compute in."""
    return values.astype(compute_numpy(t)) if compute_numpy(t) != values.dtype else values


def all_inside(indices: Sequence[Value], shape: tuple[int, ...], lanes: int) -> bool:
    """Whether all lanes of an access are inside the buffer."""
    for dimension, (value, extent) in enumerate(zip(indices, shape, strict=True)):
        highest = extent - lanes if dimension == len(shape) - 1 else extent - 1
        if value.ndim == 0:
            if value < 0 or value > highest:
                return False
        elif (
            np.maximum.reduce(value.view(_UNSIGNED[value.dtype.itemsize]), axis=None) > highest
        ):  # negative ones are the greatest
            return False
    return True


_UNSIGNED = {4: np.uint32, 8: np.uint64}
