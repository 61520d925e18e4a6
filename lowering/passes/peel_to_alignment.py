"""Peels iterations of elementwise kernels so that vectors start at cache line boundaries, whatever the alignment of the array.

Needs: vector loops. Applies to kernels of one thread per block that compute one array, each element from the same element of others. A
host array may start anywhere (large NumPy arrays start 16 bytes after a line), and a vector that crosses a line costs two accesses. So
the first elements are computed one by one, and all vectors are shifted to the boundary:

    for i { vector lane { if i*16 + lane < 1000 { Y[i*16 + lane] = X[i*16 + lane] } } }    ->
    let before = before_line(Y, 64)
    for first in 0..before { Y[first] = X[first] }
    for i { vector lane { if i*16 + lane + before < 1000 { Y[i*16 + lane + before] = X[i*16 + lane + before] } } }
"""

from __future__ import annotations

import math

from tilelang.core.expr import INDEX, Binary, Expr, Var, free, index, substitute
from tilelang.core.simplify import conjunction, conjuncts, simplify
from tilelang.lowering import ir

_ELEMENT = Var("element", INDEX, 0, None)


def peel_to_alignment(kernel: ir.Kernel, line_bytes: int) -> ir.Kernel:
    """An elementwise kernel with its vectors aligned to lines of `line_bytes`; any other kernel unchanged."""
    store = _only_store(kernel)
    if store is None or store.buffer.memory != "global" or len(store.buffer.shape) != 1:
        return kernel
    (place,), line = store.indices, line_bytes // store.buffer.dtype.bytes
    of_element = ir.map_expressions(store, lambda e: substitute(e, {place: _ELEMENT}))
    if store.buffer.elements < line or not _by_element(of_element.value) or _stops_early(kernel, store.buffer, place):
        return kernel

    def at(e: Expr) -> ir.Stmt:
        return ir.map_expressions(of_element, lambda x: substitute(x, {_ELEMENT: e}))

    before, first = Var("before", INDEX, 0, line - 1), Var("first", INDEX, 0, line - 2)
    later = simplify(place + before)
    body = _with_store(kernel.body, ir.If(Binary("<", later, index(store.buffer.elements)), at(later)), place)
    begins = conjunction([Binary("==", block, index(0)) for block, n in zip(ir.BLOCK, kernel.grid, strict=True) if n > 1])
    alone: ir.Stmt = ir.For(first, before, at(first))
    alone = alone if begins is None else ir.If(begins, alone)
    return kernel.replace(body=ir.seq(ir.Let(before, ir.BeforeLine(store.buffer, line_bytes)), alone, body))


def _only_store(kernel: ir.Kernel) -> ir.Store | None:
    """The only store of a kernel with one thread per block and a vector loop; None if the kernel does anything else."""
    every = list(ir.statements(kernel.body))
    vectors = any(isinstance(s, ir.For) and s.kind == "vector" for s in every)
    done = [s for s in every if not isinstance(s, (ir.Seq, ir.For, ir.If))]
    choices = any(isinstance(s, ir.If) and s.otherwise is not None for s in every)
    one = kernel.threads == 1 and vectors and not choices and len(done) == 1
    return done[0] if one and isinstance(done[0], ir.Store) and done[0].count is None else None


def _by_element(value: Expr) -> bool:
    """Whether a value depends only on the element's index, that element of arrays, and elements that are the same for all."""
    places = {i for load in ir.loads(value) for i in load.indices}
    return free(value) <= {_ELEMENT} and all(i is _ELEMENT or not free(i) for i in places)


def _stops_early(kernel: ir.Kernel, buffer: ir.Buffer, place: Expr) -> bool:
    """Whether some elements of a buffer are not computed, as with padded rows: a test excludes them, or the loops end before them."""
    last = [s.var.upper for s in ir.statements(kernel.body) if isinstance(s, ir.For)]
    if None not in last and math.prod((*kernel.grid, *(n + 1 for n in last if n is not None))) < buffer.elements:
        return True
    tests = [c for s in ir.statements(kernel.body) if isinstance(s, ir.If) for c in conjuncts(s.condition)]
    tests = [simplify(substitute(c, {place: _ELEMENT})) for c in tests]
    all_pass = simplify(Binary("<", _ELEMENT, index(buffer.elements)))
    return any(free(c) == {_ELEMENT} and c is not all_pass for c in tests)


def _with_store(stmt: ir.Stmt, store: ir.Stmt, place: Expr) -> ir.Stmt:
    """The loops around another store. Tests of the element's index are dropped: the new store has its own, and the other tests
    always pass."""
    match stmt:
        case ir.Store():
            return store
        case ir.If(condition, then):
            others = [c for c in conjuncts(condition) if free(substitute(c, {place: _ELEMENT})) != {_ELEMENT}]
            rest, inner = conjunction(others), _with_store(then, store, place)
            return inner if rest is None else ir.If(rest, inner, None, stmt.span)
        case _:
            return stmt.map_children(lambda c: _with_store(c, store, place) if isinstance(c, ir.Stmt) else c)
