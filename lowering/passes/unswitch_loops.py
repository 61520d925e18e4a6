"""Loop unswitching: a condition on the thread that a role's loop repeats in each iteration moves out of the loop.

Needs: `barriers`. Guarantees: if the whole body of a role's loop is under one condition on the thread number, the loop is under it, and
the other threads of the role skip the loop. One line before and after:

    for k { if thread < 1: { await empty[k]; do tma_load_2d(...) } }
    if thread < 1: { for k { await empty[k]; do tma_load_2d(...) } }
"""

from __future__ import annotations

from typing import Any

from tilelang.core.expr import Expr, free
from tilelang.lowering import ir
from tilelang.lowering.passes.dependence_test import is_thread


def unswitch_loops(kernel: ir.Kernel) -> ir.Kernel:
    """The kernel with conditions on the thread moved out of the loops of its roles."""
    return kernel.with_roles([_outwards(role.body) for role in kernel.roles]) if kernel.roles else kernel


def _outwards(stmt: Any) -> Any:
    if not isinstance(stmt, ir.Stmt):
        return stmt
    changed = stmt.map_children(_outwards)
    match changed:
        case ir.For(body=ir.If(condition, then, None, span)) if _of_threads(condition):
            return ir.If(condition, changed.replace(body=then), None, span)
        case ir.Seq(body=(*lets, ir.If(condition, then, None, span))) if lets and _of_threads(condition):
            if all(isinstance(s, ir.Let) and not ir.loads(s.value) for s in lets):
                return ir.If(condition, ir.seq(*lets, then), None, span)
    return changed


def _of_threads(condition: Expr) -> bool:
    """Whether a condition depends on the thread index only."""
    return bool(free(condition)) and all(map(is_thread, free(condition))) and not ir.loads(condition)
