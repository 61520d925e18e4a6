"""Keeps one group of matrix products in flight at the end of an iteration, so that the next products start before it has completed.

Needs: `commit_groups`. Guarantees: the same values; in a loop that only awaits slots, starts products and releases slots, an iteration
releases the slots of the iteration before, whose products are complete by then. One line before and after:

    for k { await full[k % 4]; ...; commit wgmma; wait 0 wgmma; arrive empty[k % 4] }
    for k { await full[k % 4]; ...; commit wgmma; wait 1 wgmma; if k > 0: { arrive empty[(k - 1) % 4] } }; wait 0 wgmma; arrive ...

A slot is thus released one iteration later, so its circular buffer must have two slots or more.
tests/lowering/ring_model.py checks every interleaving.
"""

from __future__ import annotations

from typing import Any

from tilelang.core.expr import Const, Expr, index, substitute
from tilelang.core.simplify import conjunction, simplify
from tilelang.lowering import ir


def pipeline_products(kernel: ir.Kernel) -> ir.Kernel:
    """The kernel with its waits for matrix products delayed by one iteration."""
    return kernel.replace(body=_later(kernel.body)) if kernel.roles else kernel


def _later(stmt: Any) -> Any:
    if not isinstance(stmt, ir.Stmt):
        return stmt
    changed = stmt.map_children(_later)
    if not (isinstance(changed, ir.For) and changed.kind == "serial" and isinstance(changed.body, ir.Seq)):
        return changed
    return _delayed_by_one_iteration(changed, ir.flattened(changed.body)) or changed


def _delayed_by_one_iteration(walk: ir.For, body: tuple[ir.Stmt, ...]) -> ir.Stmt | None:
    """The loop with the statements after its wait delayed by one iteration; None if that is not possible."""
    waits = [k for k, s in enumerate(body) if isinstance(s, ir.Wait)]
    if len(waits) != 1 or walk.extent is index(1):
        return None
    (k,) = waits
    before, wait, after = body[:k], body[k], body[k + 1 :]
    assert isinstance(wait, ir.Wait)
    if wait.pending or not wait.queue or not after or not all(map(_gives_back, after)):
        return None
    if sum(isinstance(s, ir.Commit) for s in before) != 1 or not all(_begins(s, wait.queue) for s in before):
        return None
    late = _in_round(after, walk, walk.var - 1)
    again = walk.replace(body=ir.seq(*before, wait.replace(pending=1), ir.If(index(0) < walk.var, late, None, wait.span)))
    last = ir.seq(wait, _in_round(after, walk, walk.extent - 1))
    some = None if isinstance(walk.extent, Const) else conjunction([index(0) < walk.extent])
    return ir.seq(again, last if some is None else ir.If(some, last, None, wait.span))


def _in_round(body: tuple[ir.Stmt, ...], walk: ir.For, round: Expr) -> ir.Stmt:
    """Statements of a loop at a given iteration."""
    made: ir.Stmt = ir.map_expressions(ir.seq(*body), lambda e: simplify(substitute(e, {walk.var: round})))
    return made


def _gives_back(stmt: ir.Stmt) -> bool:
    """Whether a statement releases a slot of a circular buffer with several slots."""
    return isinstance(stmt, ir.Arrive) and not stmt.bytes and stmt.phases.elements > 1


def _begins(stmt: ir.Stmt, queue: str) -> bool:
    """Whether a statement only waits for a slot, or only starts products of a queue."""
    match stmt:
        case ir.Await():
            return True
        case ir.Fence(queue=mine) | ir.Commit(queue=mine):
            return mine == queue
        case ir.Instruction(semantics):
            return bool(semantics.kind == "update" and semantics.family == queue)
        case ir.For(body=body):
            return _begins(body, queue)
        case _:
            return False
