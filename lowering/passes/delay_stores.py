"""Overlaps stores marked `behind` with a loop of the next iteration.

Needs: no barriers yet; `fuse_loops` runs before, so that there are few loops. Guarantees: the same values. A store that was
overlapped is no longer marked `behind`; one that is still marked has not moved. One line before and after:

    for i { for j { S[j] = f(i, j) }; for j { behind Y[i, j] = S[j] } }
    for i { for j { if i > 0 { Y[i - 1, j] = S[j] }; S[j] = f(i, j) } }; if rounds > 0 { for j { Y[rounds - 1, j] = S[j] } }

The last statement of a loop's body contains the marked stores. It moves past the end of its iteration and past statements that it
commutes with, into the last loop for which `merged` proves that no element is accessed out of order; so it needs no second
buffer.
"""

from __future__ import annotations

from typing import Any

from tilelang.core.expr import Expr, Var, index, substitute
from tilelang.core.simplify import conjunction, simplify
from tilelang.lowering import ir
from tilelang.lowering.passes.fuse_loops import commute, merged, renamed


def delay_stores(kernel: ir.Kernel) -> ir.Kernel:
    """The kernel with its marked stores delayed by one iteration, if a loop can absorb them."""
    marked = any(isinstance(s, ir.Store) and s.behind for s in ir.statements(kernel.body))
    return kernel.replace(body=_overlapped(kernel.body)) if marked else kernel


def _overlapped(stmt: Any) -> Any:
    if not isinstance(stmt, ir.Stmt):
        return stmt
    changed = stmt.map_children(_overlapped)
    if not (isinstance(changed, ir.For) and changed.kind == "serial" and isinstance(changed.body, ir.Seq)):
        return changed
    return _delayed_by_one_iteration(changed, ir.flattened(*changed.body.body)) or changed


def _delayed_by_one_iteration(walk: ir.For, body: tuple[ir.Stmt, ...]) -> ir.Stmt | None:
    """The loop with its last statement, if marked, moved into a loop of the next iteration; None if no loop can absorb it."""
    *before, store = body or (ir.seq(),)  # an empty loop
    if not any(isinstance(s, ir.Store) and s.behind for s in ir.statements(store)):
        return None
    store = _inlined(before, _unmarked(store))
    late = renamed(store, {walk.var: walk.var - 1})
    place: tuple[int, ir.Stmt] | None = None
    for k, loop in enumerate(before):
        together = _beside(late, loop, index(0) < walk.var)
        if together is not None:
            place = k, together
        if not commute(late, loop):
            break
    if place is None:
        return None
    k, together = place
    again = walk.replace(body=ir.seq(*before[:k], together, *before[k + 1 :]))
    last = renamed(store, {walk.var: simplify(walk.extent - 1)})
    some = conjunction([index(0) < walk.extent])
    return ir.seq(again, last if some is None else ir.If(some, last, None, store.span))  # type: ignore[attr-defined]


def _beside(late: ir.Stmt, loop: ir.Stmt, condition: Expr) -> ir.Stmt | None:
    """The loop with an iteration of the delayed one at the start of each of its own, under a condition."""
    match late:
        case ir.For(var, extent, body, kind, span):
            return merged(ir.For(var, extent, ir.If(condition, body, None, span), kind, span), loop)
        case _:
            return None


def _inlined(before: list[ir.Stmt], store: ir.Stmt) -> ir.Stmt:
    """A statement with the names of earlier Lets replaced by their values, since the names may have other values when it runs."""
    names: dict[Var, Expr] = {}
    for s in before:
        if isinstance(s, ir.Let):
            names[s.var] = substitute(s.value, names)
    return renamed(store, names)


def _unmarked(stmt: Any) -> Any:
    if isinstance(stmt, ir.Store):
        return stmt.replace(behind=0)
    return stmt.map_children(_unmarked) if isinstance(stmt, ir.Stmt) else stmt
