"""Functions for use in definitions: reductions, pointwise functions, `where`, `cast`, `pad`.

Each builds an expression and computes nothing. Several share a name with a Python built-in (`sum`, `max`, `abs`, ...); they are meant
to be called as `tl.sum(...)`. Their types are *nominal*: `elaborate.working` derives the compute types.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterable
from typing import Any

from tilelang.computations.combiners import SHIPPED, argument, check_combiner, restrict, shipped, state_type
from tilelang.core import dtype as dt
from tilelang.core import expr
from tilelang.core.dtype import DType
from tilelang.core.expr import (
    Axis,
    Binary,
    Call,
    Cast,
    Combiner,
    Const,
    Expr,
    Pad,
    Read,
    Reduce,
    Select,
    Unary,
    Var,
    as_expr,
    several_of,
)
from tilelang.core.expr import binary as _binary
from tilelang.core.expr import cast as _cast
from tilelang.errors import ComputationError, brief, counted

__all__ = [
    "abs", "all", "any", "argmax", "argmin", "cast", "ceil", "cos", "equal", "erf", "exp", "exp2", "expm1", "floor", "gelu",
    "gelu_tanh", "isnan", "log", "log1p", "log2", "max", "maximum", "min", "minimum", "not_equal", "pad", "prod", "reduce", "relu",
    "round", "rsqrt", "sigmoid", "sin", "sqrt", "sum", "tanh", "where",
]  # fmt: skip


# ---------------------------------------------------------------- reductions


def sum(value: Any, over: Axis | Iterable[Axis], where: Any = None) -> Expr:
    """The sum of `value` over the axes `over`, at the points where `where` holds; 0 if there are none.

    8- and 16-bit floats are summed in float32 and the result has their type; small integers and conditions are summed in int32
    (uint32), which is the type of the result.

    >>> from tilelang.computations.computation import axes, input
    >>> m, k = axes(m=4, k=3)
    >>> print(sum(input("A", dt.float32, m, k)[m, k], over=k))
    sum[k](A[m, k])
    """
    return _simple("sum", value, over, where)


def prod(value: Any, over: Axis | Iterable[Axis], where: Any = None) -> Expr:
    """The product of `value` over axes; 1 if there are no points. Types as for `sum`."""
    return _simple("prod", value, over, where)


def max(value: Any, over: Axis | Iterable[Axis], where: Any = None) -> Expr:
    """The maximum over axes, NaN if any value is NaN; -inf or the smallest integer of the type if there are no points."""
    return _simple("max", value, over, where)


def min(value: Any, over: Axis | Iterable[Axis], where: Any = None) -> Expr:
    """The minimum over axes, NaN if any value is NaN; inf or the largest integer of the type if there are no points."""
    return _simple("min", value, over, where)


def any(condition: Any, over: Axis | Iterable[Axis], where: Any = None) -> Expr:
    """Whether a condition holds at some point; False if there are none."""
    return _binary("<", 0, _simple("max", _cast(_condition(condition), dt.int32), over, where))


def all(condition: Any, over: Axis | Iterable[Axis], where: Any = None) -> Expr:
    """Whether a condition holds at every point; True if there are none."""
    return _binary("<", 0, _simple("min", _cast(_condition(condition), dt.int32), over, where))


def argmax(value: Any, over: Axis | Iterable[Axis], where: Any = None) -> Expr:
    """The index of the maximum: the smallest such index, or of the first NaN if there is one, as in NumPy.

    Over several axes the index is row-major in the order of `over`. Its type is int32, or int64 if the axes have more than 2**31 - 1
    points. If there are no points, it is the largest value of that type.
    """
    return _argument("argmax", value, over, where)


def argmin(value: Any, over: Axis | Iterable[Axis], where: Any = None) -> Expr:
    """The index of the minimum; ties, NaN and types as for `argmax`."""
    return _argument("argmin", value, over, where)


def reduce(
    combiner: Callable[[Any, Any], Any],
    identity: Any,
    values: Any,
    over: Axis | Iterable[Axis],
    where: Any = None,
    name: str | None = None,
) -> Any:
    """A reduction with your own combiner, over one value or a tuple of them; returns one expression, or a tuple.

    combiner: called once with two accumulators, each a tuple of expressions (an expression, for one value); returns the combined one.
    It must be associative and commutative with `identity` as its identity: this is tested on random accumulators, and refused with a
    counterexample if a test fails. If a combiner divides by a count, it should return something finite for 0.
    """
    single = not isinstance(values, tuple)
    items = tuple(as_expr(v) for v in ((values,) if single else values))
    neutral = (identity,) if single else tuple(identity)
    if len(neutral) != len(items):
        message = f"the identity has {counted(len(neutral), 'member')}, but the values have {len(items)}"
        raise ComputationError("reduce-members", message, help="give one identity per value")
    types = [state_type(v.dtype) for v in items]
    left = tuple(Var(f"left{i}" if len(items) > 1 else "left", t) for i, t in enumerate(types))
    right = tuple(Var(f"right{i}" if len(items) > 1 else "right", t) for i, t in enumerate(types))
    found = _call_combiner(combiner, *((left[0], right[0]) if single else (left, right)))
    results = (found,) if single else tuple(found)
    if len(results) != len(items):
        message = f"the combiner returns {counted(len(results), 'member')}, but the state has {len(items)}"
        raise ComputationError("reduce-members", message, help="give one expression per member of the state")
    results = tuple(_cast(as_expr(r, t), t) for r, t in zip(results, types, strict=True))
    constants = tuple(_constant(v, t, "the identity of a reduction") for v, t in zip(neutral, types, strict=True))
    called = name or getattr(combiner, "__name__", "reduce").strip("<>")
    called += "_" * (called in SHIPPED)  # names of the shipped combiners are reserved
    made = Combiner(called, left, right, results, constants)
    check_combiner(made, items)
    axes = _over(over)
    items, condition = restrict(items, _optional_condition(where), made)
    outcome = tuple(_cast(Reduce(made, items, axes, condition, i), _nominal(v.dtype)) for i, v in enumerate(items))
    return outcome[0] if single else outcome


def _call_combiner(combiner: Callable[[Any, Any], Any], left: Any, right: Any) -> Any:
    """The result of a user's combiner for two accumulators. Raises ComputationError if it cannot be called with two."""
    help = "pass a function of two states, as in tl.reduce(lambda a, b: a + b, 0.0, values, over=k)"
    if not callable(combiner):
        named = f"write tl.{combiner}(values, over=k), or " if isinstance(combiner, str) and combiner in SHIPPED else ""
        raise ComputationError("reduce-combiner", f"the combiner {brief(combiner)} is not a function", help=named + help)
    try:
        inspect.signature(combiner).bind(left, right)
    except TypeError:
        name = getattr(combiner, "__name__", "combiner")
        raise ComputationError("reduce-combiner", f"the combiner {name} does not take two arguments", help=help) from None
    except ValueError:  # a built-in function without an inspectable signature
        pass
    return combiner(left, right)


def _simple(name: str, value: Any, over: Axis | Iterable[Axis], where: Any) -> Expr:
    item = as_expr(value)
    if name in ("max", "min"):
        item = _wrapped(item)
    combiner = shipped(name, item.dtype)
    axes = _over(over)
    items, condition = restrict((item,), _optional_condition(where), combiner)
    return _cast(Reduce(combiner, items, axes, condition, 0), _nominal(item.dtype, keep=name in ("max", "min")))


def _wrapped(e: Expr) -> Expr:
    """A value wrapped to its own type: operators compute 8- and 16-bit integers in 32 bits, and a store wraps them."""
    small = e.dtype.is_integer and e.dtype.bits < 32
    return Cast(e, e.dtype) if small and not _moved(e) else e


def _moved(e: Expr) -> bool:
    """Whether a value does not come from an operator: it was stored in its type, or cast to it."""
    if isinstance(e, Select):
        return _moved(e.then) and _moved(e.otherwise)
    return not isinstance(e, Binary | Unary | Call)


def _argument(name: str, value: Any, over: Axis | Iterable[Axis], where: Any) -> Expr:
    axes = _over(over)
    points = math.prod(a.extent for a in axes)
    index_type = dt.int32 if points <= dt.int32.highest else dt.int64
    number: Expr = axes[0]
    for axis in axes[1:]:
        number = number * axis.extent + axis
    item = _wrapped(as_expr(value))
    combiner = argument(name, state_type(item.dtype), index_type)
    items, condition = restrict((item, _cast(number, index_type)), _optional_condition(where), combiner)
    return Reduce(combiner, items, axes, condition, 1)


def _nominal(t: DType, keep: bool = False) -> DType:
    """The nominal type of a reduction over values of type t. keep: the result is one of the values."""
    return t if t.is_float or (keep and t.kind != "bool") else state_type(t)


def _over(over: Axis | Iterable[Axis]) -> tuple[Axis, ...]:
    axes = several_of(over)
    for a in axes:
        if not isinstance(a, Axis):
            raise ComputationError("not-an-axis", f"a reduction runs over axes, not over {a!r}", help="over=k, or over=(k, l)")
    if not axes or len(set(axes)) != len(axes):
        raise ComputationError(
            "reduction-axes", "a reduction needs at least one axis, and each of them once", help="over=k, or over=(k, l)"
        )
    return axes


def _condition(value: Any) -> Expr:
    found = as_expr(value)
    if found.dtype.kind != "bool":
        raise ComputationError("not-a-condition", f"`{found}` is {found.dtype}, not a condition", help="compare it, as in x > 0")
    return found


def _optional_condition(value: Any) -> Expr | None:
    return None if value is None else _condition(value)


# ---------------------------------------------------------------- choices, conversions, comparisons


def where(condition: Any, then: Any, otherwise: Any) -> Expr:
    """`then` where the condition holds, else `otherwise`; reads in the branch not taken may be out of bounds."""
    chosen = _condition(condition)
    a, b = _pair(then, otherwise)
    return Select(chosen, a, b)


def pad(read: Any, value: Any = 0) -> Expr:
    """The element that is read, or the constant `value` if its indices are out of bounds."""
    if not isinstance(read, Read):
        raise ComputationError("pad-of-what", f"tl.pad takes one read of a tensor, not `{read}`", help="tl.pad(X[i - 1], 0)")
    return Pad(read, _constant(value, read.dtype, "the padding value"))


def _constant(value: Any, type: DType, role: str) -> Const:
    """A number as a constant of a type."""
    found = as_expr(value, type)
    if not isinstance(found, Const):
        raise ComputationError(
            "not-a-constant", f"`{found}` cannot be {role}", help="use a number, or tl.where for a value that varies"
        )
    return expr.literal(found.value, type)


def cast(value: Any, type: Any) -> Expr:
    """A value in another type. Floats are truncated to integers and saturate (NaN becomes 0); integers wrap, also in their own type if
    operators computed them in 32 bits.

    >>> from tilelang.computations.computation import axes, input
    >>> i = axes(i=4)
    >>> X = input("X", dt.uint8, i)
    >>> print(cast(X[i], dt.uint8), cast(X[i] * X[i], dt.uint8))
    X[i] cast(X[i] * X[i], uint8)
    """
    found = _cast(value, type)
    return _wrapped(found) if found is value else found


def equal(a: Any, b: Any) -> Expr:
    """The condition a == b."""
    return _binary("==", a, b)


def not_equal(a: Any, b: Any) -> Expr:
    """The condition a != b."""
    return _binary("!=", a, b)


def minimum(a: Any, b: Any) -> Expr:
    """The smaller of two values; NaN if either is NaN."""
    return _binary("min", a, b)


def maximum(a: Any, b: Any) -> Expr:
    """The larger of two values; NaN if either is NaN."""
    return _binary("max", a, b)


def _pair(a: Any, b: Any) -> tuple[Expr, Expr]:
    """Two values of one type; a number takes the type of the other."""
    if not isinstance(a, Expr):
        a = as_expr(a, b.dtype if isinstance(b, Expr) else None)
    if not isinstance(b, Expr):
        b = as_expr(b, a.dtype)
    common = dt.promote(a.dtype, b.dtype)
    return _cast(a, common), _cast(b, common)


# ---------------------------------------------------------------- functions


def _function(name: str, summary: str) -> Callable[[Any], Expr]:
    def apply(x: Any) -> Expr:
        return expr.call(name, x)

    apply.__name__ = apply.__qualname__ = name
    apply.__doc__ = summary
    return apply


exp = _function("exp", "e to the power x.")
exp2 = _function("exp2", "2 to the power x.")
expm1 = _function("expm1", "exp(x) - 1, without the loss near 0.")
log = _function("log", "The natural logarithm.")
log2 = _function("log2", "The logarithm to base 2.")
log1p = _function("log1p", "log(1 + x), without the loss near 0.")
sqrt = _function("sqrt", "The square root.")
rsqrt = _function("rsqrt", "1 / sqrt(x).")
sin = _function("sin", "The sine of x radians.")
cos = _function("cos", "The cosine of x radians.")
tanh = _function("tanh", "The hyperbolic tangent.")
erf = _function("erf", "The error function.")
sigmoid = _function("sigmoid", "1 / (1 + exp(-x)).")
floor = _function("floor", "The greatest whole number not above x; a float, of a float.")
ceil = _function("ceil", "The least whole number not below x; a float, of a float.")
round = _function("round", "The nearest whole number, halves to even; a float, of a float.")
abs = _function("abs", "The absolute value; of unsigned numbers themselves.")
isnan = _function("isnan", "Whether a value is not a number; never true of integers.")


def relu(x: Any) -> Expr:
    """The maximum of x and 0; NaN stays NaN."""
    return maximum(x, 0)


def gelu(x: Any) -> Expr:
    """x times the normal distribution function of x, by erf; written as x/2 erf(x/sqrt(2)) + x/2, so that the last multiplication and
    addition can be one fused multiply-add."""
    value = as_expr(x)
    half = value * 0.5
    return half * erf(value * math.sqrt(0.5)) + half


def gelu_tanh(x: Any) -> Expr:
    """The tanh form of GELU, x/2 (1 + tanh(u)) with u = sqrt(2/pi) (x + 0.044715 x**3), written as x sigmoid(2 u).

    The two are equal; the second is cheaper, and accurate where tanh(u) is near -1.
    """
    value, factor = as_expr(x), 2 * math.sqrt(2 / math.pi)
    return value * sigmoid(value * (value * value * (0.044715 * factor) + factor))
