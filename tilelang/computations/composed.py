"""Functions composed of the language's own: means, softmax, normalizations and common activations.

Each returns an ordinary expression, so that definitions print, schedule and compile as if it had been written out. A function that
reduces takes a value at one point and the axes `over` which it reduces, like `sum`. If its result varies along these axes, as that of
`softmax` does, they are bound inside its reductions and stay free outside.
"""

from __future__ import annotations

import builtins
import math
from collections.abc import Iterable
from typing import Any

from tilelang.computations.functions import cast, exp, log, log1p, max, maximum, minimum, rsqrt, sigmoid, sum, where
from tilelang.core.expr import Axis, Expr, as_expr, several_of
from tilelang.errors import ComputationError, brief

__all__ = ["clamp", "layer_norm", "log_softmax", "mean", "rms_norm", "silu", "softmax", "softplus", "var"]

Over = Axis | Iterable[Axis]


# ---------------------------------------------------------------- reductions


def mean(value: Any, over: Over, where: Any = None) -> Expr:
    """The arithmetic mean of `value` over the axes `over`, at the points where `where` holds: their sum over their number.

    value: floats; integers are refused, as by `/`: cast them. The result has their type; 8- and 16-bit floats are summed and divided in
    float32. NaN if there are no points, as in NumPy.

    >>> from tilelang.computations.computation import axes, input
    >>> m, k = axes(m=4, k=3)
    >>> print(mean(input("A", "float32", m, k)[m, k], over=k))
    sum[k](A[m, k]) / 3.0
    """
    x, axes = _floats("mean", value), several_of(over)
    found: Expr = sum(x, axes, where) / _number(x, axes, where)
    return found


def var(value: Any, over: Over, where: Any = None, ddof: int = 0) -> Expr:
    """The variance of `value` over axes: the mean squared distance from the mean, in two passes (the mean, then the squares).

    ddof: subtracted from the number of points by which the sum of squares is divided, as in NumPy; 1 estimates the variance of a
    population from a sample. Types as for `mean`. NaN if there are no points; if there are not more than `ddof`, the division is by 0.
    """
    if isinstance(ddof, bool) or not isinstance(ddof, int) or ddof < 0:
        raise ComputationError("ddof", f"ddof={brief(ddof)} is not a valid number of degrees of freedom", help="use 0 or 1")
    x, axes = _floats("var", value), several_of(over)
    centred = x - mean(x, axes, where)
    number = _number(x, axes, where)
    divisor = number if ddof == 0 else maximum(number - ddof, 0) if isinstance(number, Expr) else builtins.max(number - ddof, 0.0)
    return sum(centred * centred, axes, where) / divisor


def softmax(value: Any, over: Over, where: Any = None) -> Expr:
    """exp(value) over its sum along `over`, at each point of `over`; computed as exp(value - peak), where peak is the maximum.

    where: a condition; elsewhere the result is 0, and sum and maximum leave the point out. A row in which it holds nowhere is 0.
    A row whose values are all -inf is NaN. Types as for `mean`.

    Source: Milakov and Gimelshein, Online normalizer calculation for softmax (2018), for the three-pass form that is written here.

    >>> from tilelang.computations.computation import axes, input
    >>> i, j = axes(i=4, j=3)
    >>> print(softmax(input("S", "float32", i, j)[i, j], over=j))
    exp(S[i, j] - max[j](S[i, j])) / sum[j](exp(S[i, j] - max[j](S[i, j])))
    """
    x, axes = _floats("softmax", value), several_of(over)
    shifted = exp(x - max(x, axes, where))
    return _kept(shifted / sum(shifted, axes, where), where, 0.0)


def log_softmax(value: Any, over: Over, where: Any = None) -> Expr:
    """The logarithm of `softmax`, without the loss of a logarithm near 0: value - peak - log(sum of exp(value - peak)).

    where: as for `softmax`; elsewhere the result is -inf.
    """
    x, axes = _floats("log_softmax", value), several_of(over)
    shifted = x - max(x, axes, where)
    return _kept(shifted - log(sum(exp(shifted), axes, where)), where, -math.inf)


def layer_norm(value: Any, over: Over, epsilon: float = 1e-5) -> Expr:
    """(value - mean) / sqrt(variance + epsilon), with mean and variance (ddof 0) along `over`. Scale and shift it outside.

    Types as for `mean`. Source: Ba, Kiros and Hinton, Layer Normalization (2016).

    >>> from tilelang.computations.computation import axes, input
    >>> i, j = axes(i=4, j=3)
    >>> X, scale = input("X", "float32", i, j), input("scale", "float32", j)
    >>> normalized = layer_norm(X[i, j], over=j) * scale[j]
    """
    x, axes = _floats("layer_norm", value), several_of(over)
    return (x - mean(x, axes)) * rsqrt(var(x, axes) + epsilon)


def rms_norm(value: Any, over: Over, epsilon: float = 1e-5) -> Expr:
    """value / sqrt(mean of its squares + epsilon), with the mean along `over`. Scale it outside.

    Types as for `mean`. Source: Zhang and Sennrich, Root Mean Square Layer Normalization (2019).
    """
    x = _floats("rms_norm", value)
    return x * rsqrt(mean(x * x, over) + epsilon)


def _floats(name: str, value: Any) -> Expr:
    x = as_expr(value)
    if not x.dtype.is_float:
        message = f"tl.{name} does not apply to `{x}`, which is {x.dtype}"
        raise ComputationError(
            "operand-type", message, help=f"cast it first, as in tl.{name}(tl.cast(..., tl.float32), over=...)"
        )
    return x


def _number(x: Expr, over: tuple[Axis, ...], condition: Any) -> Any:
    """The number of points: a Python number, or an expression of the type of x if a condition chooses them."""
    if condition is None:
        return float(math.prod(a.extent for a in over))
    return cast(sum(condition, over), x.dtype)


def _kept(x: Expr, condition: Any, otherwise: float) -> Expr:
    return x if condition is None else where(condition, x, otherwise)


# ---------------------------------------------------------------- pointwise


def clamp(x: Any, low: Any = None, high: Any = None) -> Expr:
    """x between `low` and `high`: min(max(x, low), high), so `high` where they are the wrong way round; NaN stays NaN.

    low, high: numbers or expressions; None leaves that side open. Integers stay integers.
    """
    value = as_expr(x)
    value = value if low is None else maximum(value, low)
    return value if high is None else minimum(value, high)


def silu(x: Any) -> Expr:
    """x sigmoid(x), also called swish; of floats. Source: Elfwing, Uchibe and Doya, Sigmoid-Weighted Linear Units (2017)."""
    value = as_expr(x)
    return value * sigmoid(value)


def softplus(x: Any) -> Expr:
    """log(1 + exp(x)), of floats, without overflow: log1p(exp(-abs(x))), plus x if that is positive."""
    value = _floats("softplus", x)
    positive = value > 0
    rest = log1p(exp(where(positive, -value, value)))
    return where(positive, value + rest, rest)
