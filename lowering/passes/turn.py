"""Squares of elements change rows and columns in registers.

Needs: `For(kind="vector")` inside `For(kind="unroll")`, both of one power of two that a vector has lanes for, around one store.
Where the store's neighbours lie along the outer loop and those of what it reads along the inner one, or the other way round, each
row is read as one vector, the vectors change places lane by lane in log2 steps, and each column is stored as one. Guarantees: the
same stores; no access that was of vectors becomes one of elements. Under a condition squares that exist as a whole have none; of others
that only move elements, those that exist are read and stored by masks, and the rest stays as it was.

    unroll i in 0..4: vector j in 0..4: S[j, i] = X[i, j]    ->
    unroll i in 0..4: vector j in 0..4: rows[i, j] = X[i, j]
    step_1[0, 0:4] = {rows[0, 0], rows[1, 0], rows[0, 2], rows[1, 2]} ... step_2[3, 0:4] = {...}
    unroll j in 0..4: vector i in 0..4: S[j, i] = step_2[j, i]
"""

from __future__ import annotations

import itertools

from tilelang.expr import Binary, Const, Expr, Select, Var, const, index, substitute
from tilelang.lowering import ir
from tilelang.simplify import conjunction, conjuncts, linear, simplify, weighted_sum

LEAST_LANES = 4  # below them elements are as good


def turn(kernel: ir.Kernel, most_lanes: int) -> ir.Kernel:
    """The kernel with such squares turned in registers. most_lanes: of one vector."""
    turning = _Turning({b.name for b in kernel.buffers}, most_lanes)
    body = turning.statement(kernel.body)
    return kernel.replace(body=body, buffers=(*kernel.buffers, *turning.buffers))


class _Turning:
    """One walk over a kernel. buffers: the registers that the pass adds."""

    def __init__(self, names: set[str], most_lanes: int) -> None:
        self.names, self.most_lanes, self.buffers = names, most_lanes, list[ir.Buffer]()

    def statement(self, stmt: ir.Stmt) -> ir.Stmt:
        made = self._turned(stmt) if isinstance(stmt, ir.For) and stmt.kind == "unroll" else None
        if made is not None:
            return made
        return stmt.map_children(lambda child: self.statement(child) if isinstance(child, ir.Stmt) else child)

    def _turned(self, stmt: ir.For) -> ir.Stmt | None:
        """A square of stores turned; None where it is none."""
        inner = stmt.body
        if not isinstance(inner, ir.For) or inner.kind != "vector" or not self._square(stmt.extent, inner.extent):
            return None
        body, condition = inner.body, None
        if isinstance(body, ir.If) and body.otherwise is None:
            condition, body = body.condition, body.then
        if not isinstance(body, ir.Store) or body.buffer.memory == "register" or body.count is not None:
            return None
        if any(load.buffer is body.buffer for load in ir.loads(body.value)):
            return None
        u, v, n = stmt.var, inner.var, int(stmt.extent.value) if isinstance(stmt.extent, Const) else 0
        whole = None if condition is None else _whole(condition, u, v, n)
        if condition is not None and whole is None:
            return None
        of = self._stores if _beside(body.buffer, body.indices, u, v) else self._loads
        made = of(body, u, v, n, None)
        if made is None or whole is None:
            return made
        part = of(body, u, v, n, condition) if _moved(body.value) is not None else stmt
        return ir.If(whole, made, part, stmt.span)

    def _square(self, rows: Expr, columns: Expr) -> bool:
        sizes = [int(e.value) for e in (rows, columns) if isinstance(e, Const)]
        n = sizes[0] if len(sizes) == 2 and sizes[0] == sizes[1] else 0
        return LEAST_LANES <= n <= self.most_lanes and not n & (n - 1)

    def _stores(self, store: ir.Store, u: Var, v: Var, n: int, condition: Expr | None) -> ir.Stmt | None:
        """The store's neighbours lie along u: values are computed along v, as they are read, and turned. condition: of elements that
        exist."""
        if not any(_beside(load.buffer, load.indices, v, u) for load in ir.loads(store.value)):
            return None
        rows = self._buffer("rows", store.buffer, n)
        first = _square(u, v, n, ir.Store(rows, (u, v), _existing(store.value, condition), None, False, store.span))
        steps, turned = self._steps(rows, n)
        last = _square(v, u, n, _where(condition, store.replace(value=ir.Load(turned, (v, u)))))
        return ir.seq(first, *steps, last)

    def _loads(self, store: ir.Store, u: Var, v: Var, n: int, condition: Expr | None) -> ir.Stmt | None:
        """The store's neighbours lie along v: what is read along u is turned before. condition: of elements that exist."""
        if not _beside(store.buffer, store.indices, v, u):
            return None
        found: list[Expr]
        if (load := _moved(store.value)) is not None and load is not store.value:  # what is not there is not read
            found = [store.value] if _beside(load.buffer, load.indices, u, v) else []
        elif any(isinstance(x, Select) and list(ir.loads(x)) for x in store.value.walk()):
            found = []
        else:
            found = [x for x in dict.fromkeys(ir.loads(store.value)) if _beside(x.buffer, x.indices, u, v) and x.count is None]
        if not found:
            return None
        before, known = list[ir.Stmt](), dict[Expr, Expr]()
        for value in found:
            (load, *_) = ir.loads(value)
            rows = self._buffer("rows", load.buffer, n)
            before.append(_square(v, u, n, ir.Store(rows, (v, u), _existing(value, condition), None, False, store.span)))
            steps, turned = self._steps(rows, n)
            before += steps
            known[value] = ir.Load(turned, (u, v))
        return ir.seq(*before, _square(u, v, n, _where(condition, store.replace(value=substitute(store.value, known)))))

    def _steps(self, rows: ir.Buffer, n: int) -> tuple[list[ir.Stmt], ir.Buffer]:
        """The exchanges between vectors that lie 1, 2, 4, ... apart, of lanes as far apart; and the buffer of the columns."""
        made, distance = list[ir.Stmt](), 1
        while distance < n:
            after = self._buffer("turned" if 2 * distance == n else "step", rows, n)
            for k in range(n):
                low, high = k & ~distance, k | distance
                side = distance if k & distance else 0
                items = [
                    (low, (lane & ~distance) + side) if not lane & distance else (high, lane - distance + side)
                    for lane in range(n)
                ]
                value = ir.Pack(tuple(ir.Load(rows, (index(row), index(lane))) for row, lane in items))
                made.append(ir.Store(after, (index(k), index(0)), value))
            rows, distance = after, 2 * distance
        return made, rows

    def _buffer(self, what: str, like: ir.Buffer, n: int) -> ir.Buffer:
        stem = f"{like.name.removesuffix('_rows').partition('_step')[0]}_{what}"
        name = next(x for x in (stem if k == 0 else f"{stem}_{k}" for k in itertools.count()) if x not in self.names)
        self.names.add(name)
        self.buffers.append(ir.Buffer(name, like.dtype, (n, n), "register", "temporary"))
        return self.buffers[-1]


def _square(outer: Var, inner: Var, n: int, body: ir.Stmt) -> ir.Stmt:
    return ir.For(outer, index(n), ir.For(inner, index(n), body, "vector"), "unroll")


def _moved(value: Expr) -> ir.Load | None:
    """The element that is all of a value, or stands in it where it exists and a constant otherwise; None where it is computed."""
    if isinstance(value, Select) and isinstance(value.otherwise, Const) and not ir.loads(value.condition):
        value = value.then
    return value if isinstance(value, ir.Load) else None


def _existing(value: Expr, condition: Expr | None) -> Expr:
    if condition is None:
        return value
    if isinstance(value, Select):
        return value.replace(condition=Binary("and", condition, value.condition))
    return Select(condition, value, const(0, value.dtype))


def _where(condition: Expr | None, store: ir.Store) -> ir.Stmt:
    return store if condition is None else ir.If(condition, store, None, store.span)


def _beside(buffer: ir.Buffer, indices: tuple[Expr, ...], along: Var, across: Var) -> bool:
    """Whether points along one variable lie side by side in memory, and those along the other do not."""
    if buffer.memory == "register":
        return False
    terms, _ = weighted_sum(indices, buffer.strides)
    steps = dict(terms)
    alone = all(atom in (along, across) or not {along, across} & set(atom.walk()) for atom in steps)
    return alone and steps.get(along) == 1 and steps.get(across, 1) != 1


def _whole(condition: Expr, u: Var, v: Var, n: int) -> Expr | None:
    """Whether a square exists as a whole, by its last point; None where a part of the condition does not say so."""
    for part in conjuncts(condition):
        if not isinstance(part, Binary) or part.op not in ("<", "<="):
            return None
        terms, _ = linear(part.left - part.right)
        if any(step < 0 if atom in (u, v) else bool({u, v} & set(atom.walk())) for atom, step in terms):
            return None
    ends = {u: index(n - 1), v: index(n - 1)}
    return conjunction([simplify(substitute(part, ends)) for part in conjuncts(condition)])
