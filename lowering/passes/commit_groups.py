"""Closes the groups of instructions that complete in order, and awaits them.

Needs: no barriers yet. Guarantees: what updates registers and completes in a group of its queue stands in one, which is awaited before
anything else is done: nobody reads its result, or overwrites what it reads, too early. One line before and after:

    for k in 0..4: { do wgmma(...) }; arrive empty[slot]
    fence register for wgmma; for k in 0..4: { do wgmma(...) }; commit wgmma; wait 0 wgmma; arrive empty[slot]

A group is as large as a statement can be in which nothing else is done.
"""

from __future__ import annotations

from typing import Any

from tilelang.instructions.instruction import IN_ORDER_GROUP
from tilelang.lowering import ir


def commit_groups(kernel: ir.Kernel) -> ir.Kernel:
    """The kernel with its updates in closed groups."""
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
