"""The operations of an expression, and the types in which it computes."""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Mapping

from tilelang.core.dtype import DType
from tilelang.core.expr import Axis, Binary, Call, Cast, Expr, Pad, Read, Reduce, Select, Unary, Var
from tilelang.schedules.spec import Spec
from tilelang.schedules.task import Task


def multiplied_type(reduce: Reduce) -> DType | None:
    """The type of the factors of a sum of products, before casts widen them; None for other reductions.

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
    """The type of a value before it is widened."""
    while isinstance(e, Cast) and e.operand.dtype.kind == e.type.kind and e.operand.dtype.bytes <= e.type.bytes:
        e = e.operand
    return e.dtype


@functools.lru_cache(maxsize=1024)
def operations_of(expr: Expr) -> Mapping[frozenset[Axis], Counter[str]]:
    """How often each operation on values occurs in an expression, by the axes that its result varies along. A shared subexpression
    counts once, and indices do not count. An operation that does not vary along the axis of a loop is hoisted out of the loop.

    >>> from tilelang import axes, exp, float32, input
    >>> i, j = axes(i=4, j=8)
    >>> X, x = input("X", float32, i, j), input("x", float32, i)
    >>> for along, found in operations_of(X[i, j] * exp(x[i]) + 1).items():
    ...     print(*sorted(a.name for a in along), dict(found))
    i {'exp': 1}
    i j {'*': 1, '+': 1}
    """
    found, along = dict[frozenset[Axis], Counter[str]](), dict[Expr, frozenset[Axis]]()
    for e in expr.upwards((Read, Pad)):
        below = e.walk() if isinstance(e, Read | Pad) else ()
        own = frozenset(a for a in (e, *below) if isinstance(a, Axis))
        inside = () if below else (along[c] for c in e.children() if isinstance(c, Expr))
        along[e] = own.union(*inside)
        match e:
            case Binary(op=name) | Unary(op=name) | Call(name=name):
                found.setdefault(along[e], Counter())[name] += 1
            case Select() | Cast():
                found.setdefault(along[e], Counter())[type(e).__name__.lower()] += 1
            case _:
                pass
    return found


def operations_of_task(task: Task, spec: Spec) -> tuple[dict[frozenset[str], Counter[str]], Counter[str]]:
    """The operations of one point, including those that combine it into a reduction, by the axes of a spec that they vary along; and
    those of one element of the output, after its reduction. Everything varies along an axis of one point: there are fewer groups."""
    task_axes = {a.name: a for a in (*task.axes, *task.reduction_axes)}
    names = {
        task_axes[n]: {v.name.removeprefix("@") for v in value.walk() if isinstance(v, Var | Axis)}
        for n, value in spec.coordinates
    }
    every = frozenset(a.name for a in spec.axes)
    single = frozenset(a.name for a in spec.axes if a.extent == 1)
    inner, outer = dict[frozenset[str], Counter[str]](), Counter[str]()
    for value in (v for s in task.states for v in s.reduce.values) if task.states else task.values:
        for along, found in operations_of(value).items():
            inner.setdefault(single.union(*(names.get(a, ()) for a in along)), Counter()).update(found)
    for value in (v for s in task.states for v in s.reduce.combiner.result):
        for found in operations_of(value).values():
            inner.setdefault(every, Counter()).update(found)
    for value in task.values if task.states else ():
        for found in operations_of(value).values():
            outer.update(found)
    return inner, outer
