"""Commits the groups of instructions that complete in order, and waits for them.

Needs: no barriers yet. Guarantees: instructions that update registers and complete in a group of their queue are in a group, which is
awaited before any other statement: nothing reads a result, or overwrites an operand, too early. One line before and after:

    for k in 0..4: { do wgmma(...) }; arrive empty[slot]
    fence register for wgmma; for k in 0..4: { do wgmma(...) }; commit wgmma; wait 0 wgmma; arrive empty[slot]

A group is the largest statement that contains nothing else.
"""

from __future__ import annotations

from typing import Any

from tilelang.instructions.instruction import IN_ORDER_GROUP
from tilelang.lowering import ir


def commit_groups(kernel: ir.Kernel) -> ir.Kernel:
    """The kernel with its asynchronous updates in committed groups."""
    if not any(_family(s) for s in ir.statements(kernel.body)):
        return kernel
    return kernel.replace(body=_closed(kernel.body))


def _family(stmt: ir.Stmt) -> str:
    """The queue in which an update completes; empty for anything else."""
    match stmt:
        case ir.Instruction(semantics) if semantics.kind == "update" and semantics.completes == IN_ORDER_GROUP:
            return str(semantics.family)
        case _:
            return ""


def _closed(stmt: Any) -> Any:
    if not isinstance(stmt, ir.Stmt):
        return stmt
    leaves = [s for s in ir.statements(stmt) if not ir.parts(s) and not isinstance(s, (ir.Let, ir.Seq))]
    families = {_family(s) for s in leaves}
    if len(families) != 1 or families == {""}:
        return ir.seq(*map(_closed, stmt.body)) if isinstance(stmt, ir.Seq) else stmt.map_children(_closed)
    (family,) = families
    span = leaves[0].span  # type: ignore[attr-defined]
    return ir.seq(ir.Fence(family, "register", span), stmt, ir.Commit(span, family), ir.Wait(0, span, family))
