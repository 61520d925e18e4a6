"""Overlapping tails: the last vector of a loop moves back to where all its lanes exist, instead of being cut to the lanes left.

Needs: vector loops. Applies to kernels of one thread per block, and to loops that store into shared memory, whose length is known. The
elements that two vectors share are computed twice, with the same result: nothing in the loop reads what it stores. Then the vectors
need no test of their lanes. One line before and after:

    for j in 0..5 { vector lane in 0..8 { if j*8 + lane < 34 { S[j*8 + lane] = X[j*8 + lane] } } }
    for j in 0..5 { let first = min(j*8, 26); vector lane in 0..8 { S[first + lane] = X[first + lane] } }
"""

from __future__ import annotations

import itertools
from typing import Any

from tilelang.core.expr import INDEX, Const, Expr, Var, binary, free, index, substitute
from tilelang.core.simplify import conjunction, conjuncts, simplify
from tilelang.lowering import ir
from tilelang.lowering.passes.loop_ranges import below_zero


def overlap_tails(kernel: ir.Kernel) -> ir.Kernel:
    """The kernel with the last vectors of such loops moved back."""
    if kernel.threads > 1:
        return kernel
    names = {s.var.name for s in ir.statements(kernel.body) if isinstance(s, (ir.For, ir.Let))}
    return kernel.replace(body=_overlapped(kernel.body, names))


def _overlapped(stmt: Any, names: set[str]) -> Any:
    if not isinstance(stmt, ir.Stmt):
        return stmt
    match stmt:
        case ir.For(
            var, Const(), ir.For(lane, Const(value=width), ir.If(condition, then, None) as guard, "vector") as vector, "serial"
        ):
            for part in conjuncts(condition):
                end = _end(part, var, lane, int(width))
                if end is not None and end >= int(width) and _repeatable(guard):
                    rest = conjunction([c for c in conjuncts(condition) if c is not part])
                    body = then if rest is None else guard.replace(condition=rest)
                    return _moved_back(stmt, vector.replace(body=body), end, names) or stmt
    return stmt.map_children(lambda child: _overlapped(child, names))


def _end(part: Expr, var: Var, lane: Var, width: int) -> int | None:
    """The number of elements, if a condition is `var * width + lane < number`."""
    form = below_zero(part)
    return -form[1] if form is not None and dict(form[0]) == {var: width, lane: 1} else None


def _repeatable(stmt: ir.Stmt) -> bool:
    """Whether a statement may run twice: it stores to shared memory, and reads nothing that it stores."""
    every = list(ir.statements(stmt))
    stores = [s for s in every if isinstance(s, ir.Store)]
    plain = all(s.buffer.memory == "shared" and not s.streaming and not s.behind and s.count is None for s in stores)
    stored = {s.buffer for s in stores}
    reads = {load.buffer for s in every for e in ir.expressions(s) for load in ir.loads(e)}
    return bool(stores) and plain and all(isinstance(s, (ir.Store, ir.Seq, ir.If)) for s in every) and not stored & reads


def _moved_back(loop: ir.For, vector: ir.For, end: int, names: set[str]) -> ir.Stmt | None:
    """The loop with vectors that begin at most where the last one fits; None if its variable is used in another way."""
    width = int(vector.extent.value)  # type: ignore[attr-defined]
    first = Var(next(n for n in (f"first_{k}" for k in itertools.count(1)) if n not in names), INDEX, 0, end - width)
    moved: dict[Expr, Expr] = {vector.var: vector.var + first - loop.var * width}
    body = ir.map_expressions(vector.body, lambda e: simplify(substitute(e, moved)))
    if any(loop.var in free(e) for s in ir.statements(body) for e in ir.expressions(s)):
        return None
    names.add(first.name)
    begin = simplify(binary("min", loop.var * width, index(end - width)))
    return loop.replace(body=ir.seq(ir.Let(first, begin, loop.span), vector.replace(body=body)))
