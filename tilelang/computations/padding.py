"""Moves conditions into the reads of a product: a factor that is 0 outside its tensor makes the product 0.

The gradient of a convolution sums seed[h - u] * W[u] where h - u is a point of the output. Read through `tl.pad`, the seed is 0
elsewhere, and the sum has no conditions left. Its schedules are then those of a convolution, whose reads are padded, too.
"""

from __future__ import annotations

from collections.abc import Iterator

from tilelang.computations.bounds_check import inside_everywhere
from tilelang.core.expr import Binary, Cast, Const, Expr, Pad, Read, Unary, const, index, rewrite
from tilelang.core.simplify import simplify


def without_conditions(value: Expr, conditions: list[Expr]) -> tuple[Expr, list[Expr]]:
    """Replaces conditions that only keep a factor's read in bounds by padding the read with 0: the new value, and the other conditions.

    Only sums and products of finite numbers are changed, since 0 times infinity is not 0.

    >>> from tilelang.core import dtype as dt
    >>> from tilelang.core.expr import Axis
    >>> from tilelang.computations.computation import input
    >>> i, j = Axis("i", 8), Axis("j", 4)
    >>> X, W = input("X", dt.float32, x=8), input("W", dt.float32, j)
    >>> value, left = without_conditions(X[i - j] * W[j], [simplify(j <= i)])
    >>> print(value, left)
    pad(X[i - j], 0.0) * W[j] []
    """
    factors = list(_factors(value))
    if not all(map(_is_finite, factors)):
        return value, conditions
    reads = {e for e in factors if isinstance(e, Read)}
    kept = {c for read in reads for c in _bounds(read)}
    left = [c for c in conditions if c not in kept]
    if len(left) == len(conditions):
        return value, conditions
    gone = set(conditions) - set(left)
    outside = {read for read in reads if any(c in gone for c in _bounds(read))}
    inside = [e for e in value.walk() if isinstance(e, Read) and e not in outside and not inside_everywhere(e)]
    if inside:  # other reads need the conditions
        return value, conditions

    def rule(e: Expr) -> Expr:
        return Pad(e, const(0, e.dtype)) if isinstance(e, Read) and e in outside else e

    return rewrite(value, rule), left


def _factors(e: Expr) -> Iterator[Expr]:
    match e:
        case Binary("*", left, right):
            yield from _factors(left)
            yield from _factors(right)
        case Unary("-", operand) | Cast(operand) if operand.dtype.is_float and e.dtype.is_float:
            yield from _factors(operand)
        case _:
            yield e


def _bounds(read: Read) -> Iterator[Expr]:
    """The conditions that a read is inside its tensor, as `simplify` writes them."""
    for i, dim in zip(read.indices, read.tensor.dims, strict=True):
        yield simplify(Binary("<=", index(0), i))
        yield simplify(Binary("<", i, index(dim.extent)))


def _is_finite(e: Expr) -> bool:
    """Whether a value is finite if the elements of its tensors are."""
    match e:
        case Read() | Const() | Pad():
            return True
        case Binary("+" | "-" | "*", left, right):
            return _is_finite(left) and _is_finite(right)
        case Unary("-", operand) | Cast(operand):
            return _is_finite(operand)
    return False


__all__ = ["without_conditions"]
