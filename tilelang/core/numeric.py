"""The semantics of scalar operators in NumPy: the arithmetic of the reference. It is deliberately separate from the simulator's
(lowering/simulator/scalar_semantics.py), so that each table reveals a mistake in the other.

Floats of every type are held in one wide type (float64, or longdouble to check float64), so an operation is exact with respect to its
own type; only a Cast, a literal and a definition's store round to the type they name. Integers are held in their own type and wrap.
Callers silence NumPy's floating-point warnings (`quiet`), because lanes that do not exist compute garbage.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from tilelang.core.dtype import DType
from tilelang.core.expr import Binary, Call, Cast, Const, Expr, Select, Unary

Array = Any  # an ndarray of the wide type, of an integer type, or of bools


def quiet() -> Any:
    """A context that silences floating-point warnings."""
    return np.errstate(all="ignore")


def constant(value: bool | int | float, t: DType, wide: Any) -> Array:
    """A literal, rounded to its type."""
    return np.asarray(np.asarray(value, wide).astype(t.numpy), wide) if t.is_float else np.asarray(value, t.numpy)


def cast(x: Array, source: DType, target: DType, wide: Any) -> Array:
    """NumPy's astype on the representation of this module; floats to integers saturate, and NaN gives 0."""
    if target.kind == "bool":
        return x != 0
    if target.is_integer:
        return saturated(x, target) if source.is_float else x.astype(target.numpy)
    value = x.astype(wide)
    lossless = source.is_float and source.mantissa_bits <= target.mantissa_bits and source.bits <= target.bits
    return value if lossless else store(value, target, wide)


def saturated(x: Array, target: DType) -> Array:
    """Floats truncated to an integer type: saturated if out of range, 0 for NaN."""
    above, below = x >= float(target.highest + 1), x < target.lowest
    whole = np.where(above | below | np.isnan(x), 0, x).astype(target.numpy)
    ends = np.where(above, np.asarray(target.highest, target.numpy), np.asarray(target.lowest, target.numpy))
    return np.where(above | below, ends, whole)


def store(x: Array, t: DType, wide: Any) -> Array:
    """A value rounded to its type, in the wide representation."""
    return x.astype(t.numpy).astype(wide) if t.is_float else x.astype(t.numpy)


_BINARY: dict[str, Callable[[Array, Array], Array]] = {
    "+": np.add, "-": np.subtract, "*": np.multiply, "/": np.divide, "//": np.floor_divide, "%": np.mod,
    "min": np.minimum, "max": np.maximum, "&": np.bitwise_and, "|": np.bitwise_or, "^": np.bitwise_xor,
    "<<": np.left_shift, ">>": np.right_shift, "==": np.equal, "!=": np.not_equal, "<": np.less, "<=": np.less_equal,
    "and": np.logical_and, "or": np.logical_or,
}  # fmt: skip


def binary(op: str, a: Array, b: Array) -> Array:
    """`a op b` elementwise."""
    if op == "pow":
        return _float_power(a, b) if a.dtype.kind == "f" else _integer_power(a, b)
    return _BINARY[op](a, b)


def _float_power(a: Array, b: Array) -> Array:
    """As C's `pow`, with its special cases for zeros and infinities.

    NumPy may use a square root for an exponent of 0.5, which keeps the sign of zero and fails for -infinity; some C libraries' `powl`
    gives infinity for -infinity to the power of -2**63.
    """
    edge = np.isinf(a) | (a == 0)
    power = np.power(np.where(edge, np.abs(a), a), b)
    return np.where(edge & (np.abs(np.fmod(b, 2)) == 1), np.copysign(power, a), power)


def _integer_power(a: Array, b: Array) -> Array:
    """Wrapping integer power; a negative exponent gives the truncated quotient of 1 (0 for a base of 0)."""
    if b.dtype.kind == "u":
        return np.power(a, b)
    inverse = np.where(a == 1, 1, np.where(a == -1, np.where(b % 2 == 0, 1, -1), 0)).astype(a.dtype)
    return np.where(b < 0, inverse, np.power(a, np.maximum(b, 0)))


def unary(op: str, a: Array) -> Array:
    """`-a`, `not a`, `~a` elementwise."""
    return np.negative(a) if op == "-" else np.logical_not(a) if op == "not" else np.invert(a)


def _rsqrt(x: Array) -> Array:
    return 1 / np.sqrt(x)


def _sigmoid(x: Array) -> Array:
    return 1 / (1 + np.exp(-x))


_ERF = np.frompyfunc(math.erf, 1, 1)


def _erf(x: Array) -> Array:
    # NumPy has no erf; the C library's is correct to an ulp of float64, far inside the 16 ulps that the error bound allows.
    return np.asarray(_ERF(np.asarray(x, np.float64)), x.dtype) if x.size else x


FUNCTIONS: dict[str, Callable[[Array], Array]] = {
    "exp": np.exp, "exp2": np.exp2, "log": np.log, "log2": np.log2, "log1p": np.log1p, "expm1": np.expm1, "sqrt": np.sqrt,
    "rsqrt": _rsqrt, "sin": np.sin, "cos": np.cos, "tanh": np.tanh, "erf": _erf, "sigmoid": _sigmoid, "floor": np.floor,
    "ceil": np.ceil, "round": np.rint, "abs": np.abs,
}  # fmt: skip


def call(name: str, x: Array) -> Array:
    """A function of the language, elementwise."""
    if name == "isnan":
        return np.isnan(x) if x.dtype.kind == "f" else np.zeros(x.shape, bool)
    return FUNCTIONS[name](x)


def evaluate(expr: Expr, values: Mapping[Expr, Array], wide: Any = np.float64) -> Array:
    """Evaluates an expression for given values of its variables, axes and reads; arrays are broadcast."""
    known = dict(values)

    def go(e: Any) -> Array:
        found = known.get(e)
        if found is None:
            found = known[e] = compute(e)
        return found

    def compute(e: Any) -> Array:
        match e:
            case Const(value, t):
                return constant(value, t, wide)
            case Binary(op, left, right):
                return binary(op, go(left), go(right))
            case Unary(op, operand):
                return unary(op, go(operand))
            case Call(name, (argument,)):
                return call(name, go(argument))
            case Select(condition, then, otherwise):
                return np.where(go(condition), go(then), go(otherwise))
            case Cast(operand, t):
                return cast(go(operand), operand.dtype, t, wide)
            case _:
                raise KeyError(f"no value for {e}")

    with quiet():
        return go(expr)
