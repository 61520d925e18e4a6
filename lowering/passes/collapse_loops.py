"""Collapses a loop over threads and the innermost loop inside it into one loop over consecutive elements.

Part of `fission`, which makes the loops over threads. Guarantees: each element is stored by the same statement under the same
conditions; if an index would need a quotient or a remainder, the loops stay as they were. One line before and after:

    threads t in 0..64 { for r in 0..2 { vector l in 0..4: Y[r * 256 + t * 4 + l] = f(X[r * 256 + t * 4 + l]) } }
    for r in 0..2 { threads e in 0..256: Y[r * 256 + e] = f(X[r * 256 + e]) }

Compilers vectorize such a loop with full vectors, however few lanes each thread had. The loops around the innermost one are moved
outside: no thread accesses what another one writes, so only the order within each thread matters, and that is kept.
"""

from __future__ import annotations

from tilelang.core.expr import INDEX, Binary, Const, Expr, Var, free, index, substitute
from tilelang.core.simplify import simplify
from tilelang.lowering import ir


class _Stays(Exception):
    """An index has no simple form over the elements, so the loops stay."""


def collapsed(loop: ir.For, name: str) -> ir.Stmt:
    """A loop over threads as a loop over elements, inside the loops that it contained. name: of the element's number.

    The loop is returned as it is if it does anything but store neighbouring elements.
    """
    around, inner = list[ir.For](), loop.body
    while not (isinstance(inner, ir.For) and _is_innermost(inner)):
        match inner:
            case ir.Seq((only,)):
                inner = only
            case ir.For(kind="serial" | "unroll", extent=extent, body=body) if loop.var not in free(extent) and not ir.loads(
                extent
            ):
                around.append(inner)
                inner = body
            case _:
                return loop
    if not (isinstance(inner.extent, Const) and isinstance(loop.extent, Const)) or any(map(_needs_lanes, ir.statements(inner))):
        return loop
    width = int(inner.extent.value)
    count = int(loop.extent.value) * width
    element = Var(name, INDEX, 0, count - 1)
    places: dict[Expr, Expr] = {loop.var: simplify(element // width), inner.var: simplify(element % width)}

    def placed(e: Expr) -> Expr:
        made = simplify(substitute(e, places))
        if any(isinstance(x, Binary) and x.op in ("//", "%") and element in free(x) for x in made.walk()):
            raise _Stays
        return made

    try:
        store: ir.Stmt = ir.map_expressions(inner.body, placed)
    except _Stays:
        return loop
    made = ir.For(element, index(count), store, loop.kind if inner.kind == "vector" else "serial")
    for walk in reversed(around):
        made = walk.replace(body=made)
    return made


def _is_innermost(loop: ir.For) -> bool:
    """Whether a loop contains no other loop."""
    return not any(isinstance(s, ir.For) for s in ir.statements(loop.body))


def _needs_lanes(stmt: ir.Stmt) -> bool:
    """Whether a statement uses registers, which are private to each thread, or streaming stores, which need whole vectors."""
    return any(b.memory == "register" for b, _ in ir.touched(stmt)) or (isinstance(stmt, ir.Store) and stmt.streaming)
