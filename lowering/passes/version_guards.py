"""Loop versioning: a second version of an innermost body for iterations at which none of its guards matters.

Needs: `vectorize` and `unroll`. Applies to kernels of one thread per block. Guarantees: the same values. Guards are comparisons of
indices: those of padded reads, and those of elements that do not exist. A stencil's body has several for each vector, and they hold
everywhere but at a border. They are tested at once, the tightest of those that differ by constants. One line before and after:

    for j { Y[j*8:8] = (pack(...) if j*8 < 1 else X[j*8-1:8]) + (X[j*8+1:8] if j*8 < 55 else pack(...)) }
    for j { if 1 <= j*8 and j*8 < 55: Y[j*8:8] = X[j*8-1:8] + X[j*8+1:8]  else: (as before) }
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

from tilelang.core.expr import Binary, Expr, Select, index
from tilelang.core.simplify import conjunction, conjuncts, simplify
from tilelang.lowering import ir
from tilelang.lowering.limits import operations
from tilelang.lowering.passes.loop_ranges import below_zero
from tilelang.lowering.sets import impossible

FEWEST = 2  # guarded reads of a body; a body with only one already consists of two versions
LONGEST = 1 << 12  # operations in a body


def version_guards(kernel: ir.Kernel) -> ir.Kernel:
    """The kernel with two versions of the innermost bodies that have several guards."""
    return kernel if kernel.threads > 1 else kernel.replace(body=_versioned(kernel.body))


def _versioned(stmt: Any) -> Any:
    if not isinstance(stmt, ir.Stmt):
        return stmt
    if not isinstance(stmt, ir.For) or stmt.kind != "serial" or any(isinstance(s, ir.For) for s in ir.statements(stmt.body)):
        return stmt.map_children(_versioned)
    body = stmt.body.body if isinstance(stmt.body, ir.Seq) else (stmt.body,)
    lets = tuple(itertools.takewhile(lambda s: isinstance(s, ir.Let), body))
    inner = ir.seq(*body[len(lets) :])
    guarded = list(_guards(inner, set()))
    every, reads = [g for _, own, _ in guarded for g in own], sum(isinstance(e, Expr) and not nested for e, _, nested in guarded)
    test = _all(every)
    named = any(isinstance(s, ir.Let) for s in ir.statements(inner))  # its value may be part of a guard
    if reads < FEWEST or test is None or named or _operations(inner) > LONGEST or impossible(every):
        return stmt
    return stmt.replace(body=ir.seq(*lets, ir.If(test, _without(inner, frozenset(every), {}), inner, stmt.span)))


def _operations(stmt: ir.Stmt) -> int:
    known: dict[Expr, int] = {}
    return sum(operations(e, known) for s in ir.statements(stmt) for e in ir.expressions(s))


def _all(guards: list[Expr]) -> Expr | None:
    """The condition that all guards hold. Of comparisons that differ by a constant only, the strictest stands for all."""
    strictest: dict[frozenset[tuple[Expr, int]], tuple[int, Expr]] = {}
    for guard in guards:
        form = below_zero(guard)
        assert form is not None
        terms, constant = frozenset(form[0]), form[1]
        if terms not in strictest or constant > strictest[terms][0]:
            strictest[terms] = constant, guard
    return conjunction([guard for _, guard in strictest.values()])


def _own(node: Any) -> list[Expr]:
    """The guards of a statement or of a value itself, which are comparisons of indices; none unless these are all its conditions."""
    match node:
        case ir.If(condition=condition) | Select(condition=condition) if ir.lanes(condition) == 1:
            found = conjuncts(condition)
        case ir.Load(lanes=lanes, count=count) if count is not None and lanes > 1:
            found = [simplify(Binary("<=", index(lanes), count))]
        case _:
            return []
    return found if all(below_zero(c) is not None and not ir.loads(c) for c in found) else []


def _guards(node: Any, seen: set[Any], nested: bool = False) -> Iterator[tuple[Any, list[Expr], bool]]:
    """All guarded statements and values inside one, each once: with their guards, and whether they are part of a guarded value.
    Excludes those that are evaluated only if a guard fails, and those inside vectors that are assembled lane by lane."""
    if node in seen or isinstance(node, ir.Pack):
        return
    seen.add(node)
    own = _own(node)
    if own:
        yield node, own, nested
    inside = (node.then,) if own and isinstance(node, (ir.If, Select)) else node.children()
    for child in inside:
        if isinstance(child, (ir.Stmt, Expr)):
            yield from _guards(child, seen, nested or bool(own) and isinstance(node, Expr))


def _without(node: Any, guards: frozenset[Expr], memo: dict[Any, Any]) -> Any:
    """A statement or a value if these guards hold."""
    if not isinstance(node, (ir.Stmt, Expr)) or isinstance(node, ir.Pack):
        return node
    if node not in memo:
        own = _own(node)
        if own and guards.issuperset(own) and isinstance(node, (ir.If, Select)):
            made = _without(node.then, guards, memo)
        elif own and guards.issuperset(own):
            made = _without(node.replace(count=None, fill=None), guards, memo)
        else:
            made = node.map_children(lambda child: _without(child, guards, memo))
        memo[node] = made
    return memo[node]
