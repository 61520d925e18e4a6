"""The operations of an expression, and the types in which it computes."""

from __future__ import annotations

from collections import Counter

from tilelang.core.dtype import DType
from tilelang.core.expr import Binary, Call, Cast, Expr, Pad, Read, Reduce, Select, Unary


def multiplied_type(reduce: Reduce) -> DType | None:
    """Of a sum of products the type of what is multiplied, before casts widen it; None for other reductions.

    >>> import tilelang as tl
    >>> m, k = tl.axes(m=4, k=4)
    >>> A, x, y = tl.input("A", tl.float32, m, k), tl.input("x", tl.float32, k), tl.input("y", tl.float64, k)
    >>> products = [tl.define("Y", tl.sum(A[m, k] * v[k], over=k), m).definition for v in (x, y)]
    >>> [multiplied_type(of.reduction).name for of in products]
    ['float32', 'float64']
    """
    value = reduce.values[0]
    if reduce.combiner.name != "sum" or not isinstance(value, Binary) or value.op != "*":
        return None
    left, right = _narrow(value.left), _narrow(value.right)
    return max(left, right, key=lambda t: t.bytes) if left.kind == right.kind else value.dtype


def _narrow(e: Expr) -> DType:
    """The type that a value has before it is widened."""
    while isinstance(e, Cast) and e.operand.dtype.kind == e.type.kind and e.operand.dtype.bytes <= e.type.bytes:
        e = e.operand
    return e.dtype


def operations(expr: Expr) -> Counter[str]:
    """How often each operation on values stands in an expression, each shared part once; indices are not counted.

    >>> from tilelang import axes, exp, float32, input
    >>> i = axes(i=4)
    >>> X = input("X", float32, i)
    >>> sorted(operations(exp(X[i]) * X[i] + 1).items())
    [('*', 1), ('+', 1), ('exp', 1)]
    """
    found, seen, stack = Counter[str](), set[Expr](), [expr]
    while stack:
        e = stack.pop()
        if e in seen:
            continue
        seen.add(e)
        match e:
            case Read() | Pad():
                continue
            case Binary(op=op) | Unary(op=op):
                found[op] += 1
            case Call(name=name):
                found[name] += 1
            case Select() | Cast():
                found[type(e).__name__.lower()] += 1
            case _:
                pass
        stack += [c for c in e.children() if isinstance(c, Expr)]
    return found
