"""Reductions over one axis that can share a loop: which definitions of a kernel are computed inside it, and which before it.

They follow from the definitions: every reduction over the axis is a member if its repair is proven (`tilelang/semantics/repair.py`).
How rows and chunks are mapped to the units of a device, and where their values are kept, is in the device's own module.
"""

from __future__ import annotations

import dataclasses

from tilelang.autoschedule.common.kernel_part import Part
from tilelang.autoschedule.common.row_fusion import Rows, rows_of
from tilelang.autoschedule.common.task_accesses import Nest
from tilelang.computations.computation import Tensor
from tilelang.core.expr import Binary, Call, Cast, Const, Expr, Read
from tilelang.errors import Refusal
from tilelang.schedules.shared_loops import loop_of, reads_any, running_of
from tilelang.schedules.steps import Split
from tilelang.semantics.repair import Running


@dataclasses.dataclass(frozen=True, eq=False)
class Sharing:
    """The tasks of a part in one kernel, in which a loop over chunks of `axis` computes the rows. members: the reductions that share
    the loop; before: the stages that are computed before it; inside: those that are computed for each chunk."""

    rows: Rows
    axis: str
    members: tuple[str, ...]
    before: tuple[tuple[Tensor, Nest], ...]
    inside: tuple[tuple[Tensor, Nest], ...]


def sharing_of(part: Part) -> Sharing | None:
    """The loop that a part's reductions can share with the last task's; None if there is none, or a repair is not proven."""
    rows = rows_of(part, keeps_few=False)
    if part.stored or rows is None or len(rows.last.reduced) != 1:
        return None
    axis = rows.last.reduced[0].name
    stages = list(zip(rows.first, rows.stages, strict=True))
    over = {t for t, nest in stages if any(a.name == axis for a in nest.reduced)}
    own = {t for s in rows.last.task.states for t in s.tensors} | {t for n in rows.placed for t in _together(n) if n in over}
    if not over or any(len(nest.reduced) > 1 for t, nest in stages if t in over):
        return None
    members = tuple(t.name for d in part.definitions for t in d.tensors if t in own)
    if not _repaired(part, axis, members):
        return None
    inside = [(t, nest) for t, nest in stages if axis in nest.extents]
    before = [(t, nest) for t, nest in stages if axis not in nest.extents]
    if any(reads_any([t], own) for t, _ in before):  # it needs a final value
        return None
    return Sharing(rows, axis, members, tuple(before), tuple(inside))


def _together(tensor: Tensor) -> tuple[Tensor, ...]:
    assert tensor.definition is not None
    return tensor.definition.tensors


def _repaired(part: Part, axis: str, members: tuple[str, ...]) -> bool:
    """Whether every member's repair is proven, can be lowered, and does not change the rounding of terms."""
    try:
        loop = loop_of(part.computation, Split(((axis, 1),), of=members))
    except Refusal:
        return False
    return not any(
        m.repair.how == "power" or len(m.definition.tensors) > 1 or any(_rounded(v, running_of(loop, m)) for v in m.reduce.values)
        for m in loop.members if m.repair is not None
    )  # fmt: skip


def _rounded(term: Expr, running: tuple[Running, ...]) -> bool:
    """Whether a term rounds a value that a repair changes to a narrower type. With another running value the rounding differs, so that
    results would differ from those of separate loops within that type's precision.

    Weights exp(x - m) with a running maximum m of x are an exception: they are at most 1 for every m so far. So they do not overflow,
    and after the repair their rounding error is at most as great as that in separate loops.
    """
    own = {r.read for r in running}
    casts = (e for e in term.walk() if isinstance(e, Cast) and not isinstance(e.operand, Read))
    floats = (e for e in casts if e.operand.dtype.is_float and e.type.is_float)
    narrow = (e.operand for e in floats if e.type.mantissa_bits < e.operand.dtype.mantissa_bits)
    return any(not own.isdisjoint(e.walk()) and not any(_at_most_1(e, r) for r in running) for e in narrow)


def _at_most_1(e: Expr, running: Running) -> bool:
    """Whether an expression is exp((x - m) c) with c > 0, where m is the maximum so far of values among which x is."""
    if not isinstance(e, Call) or e.name not in ("exp", "exp2") or running.combiner != "max":
        return False
    below = e.args[0]
    match below:
        case Binary("*", Const(value=c), other) | Binary("*" | "/", other, Const(value=c)) if c > 0:
            below = other
    return isinstance(below, Binary) and below.op == "-" and below.left is running.term and below.right is running.read
