"""The conditions under which the points of a task update its results, as in `sum(X[i + r - 1] * w[r], over=r, where=...)`.

A condition is tested once for a whole vector if it does not vary along the vector's axis. If it does, some vectors are divided: a part
of their lanes is updated. The lowering updates the lanes of these vectors one by one.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence

from tilelang.autoschedule.common.accesses import axes_of
from tilelang.autoschedule.common.task_accesses import Nest
from tilelang.core.expr import Axis, Binary, Expr, Var, substitute
from tilelang.core.simplify import linear
from tilelang.schedules.task import update_conditions


def divided_share(nest: Nest, axis: str, lanes: int) -> float:
    """The share of the vectors along an axis whose lanes are updated one by one.

    >>> import tilelang as tl
    >>> from tilelang.autoschedule.common.task_accesses import nest_of
    >>> from tilelang.schedules.task import make_task
    >>> i, r = tl.axes(i=64, r=3)
    >>> X = tl.input("X", tl.float32, i)
    >>> inside = (i + r >= 1) & (i + r < 65)
    >>> nest = nest_of(make_task((tl.define("Y", tl.sum(X[i + r - 1], over=r, where=inside), i),), lambda t: False))
    >>> divided_share(nest, "i", 8)  # the first and the last of eight
    0.25
    """
    if axis in nest.decided:
        return 0.0
    return min(1.0, sum(_divided(c, axis) for c in conditions(nest)) / max(1, nest.extents[axis] // lanes))


@functools.lru_cache(maxsize=1 << 8)
def conditions(nest: Nest) -> Sequence[Expr]:
    """The conditions under which a point updates a result, over the axes of the nest."""
    axes = {a.name: a for a in (*nest.task.axes, *nest.task.reduction_axes)}
    values = {axes[name]: value for name, value in nest.spec.coordinates}
    return tuple(dict.fromkeys(substitute(c, values) for s in nest.task.states for c in update_conditions(s)))


def _divided(condition: Expr, axis: str) -> float:
    """How many vectors along an axis a condition divides: at most one if it compares sums of axes; else perhaps all."""
    if axis not in axes_of(condition):
        return 0
    if not isinstance(condition, Binary) or condition.op not in ("<", "<=", ">", ">=", "==", "!="):
        return math.inf
    atoms = [atom for side in (condition.left, condition.right) for atom, _ in linear(side)[0]]
    return math.inf if any(axis in axes_of(atom) for atom in atoms if not isinstance(atom, Axis | Var)) else 1
