"""Transposes square tiles in registers.

Needs: `For(kind="vector")` inside `For(kind="unroll")`, both with the same power of two as extent (one that a vector supports),
around one store. If consecutive elements of the store are along the outer loop and those of the reads along the inner one, or
vice versa, each row is read as one vector, log2 steps of shuffles transpose the lanes, and each column is stored as one vector.
Guarantees: the same stores; no vector access is split into elements. Under a condition, tiles that exist as a whole have no
tests; other tiles, if they only move elements, read and store existing elements by masks, and all other tiles stay as they were.

If the outer loop is shorter, and its stores fill the gaps between those of the inner one, rows are interleaved in pairs.

    unroll i in 0..4: vector j in 0..4: S[j, i] = X[i, j]    ->
    unroll i in 0..4: vector j in 0..4: rows[i, j] = X[i, j]
    step_1[0, 0:4] = shuffle(rows[0, 0:4], rows[1, 0:4], 0 4 2 6) ... step_2[3, 0:4] = shuffle(...)
    unroll j in 0..4: vector i in 0..4: S[j, i] = step_2[j, i]
"""

from __future__ import annotations

import itertools

from tilelang.core.expr import Binary, Const, Expr, Select, Var, const, index, substitute
from tilelang.core.simplify import conjunction, conjuncts, exact, linear, simplify, weighted_sum
from tilelang.lowering import ir

LEAST_LANES = 4  # with fewer lanes, element accesses are as fast


def transpose_in_registers(kernel: ir.Kernel, most_lanes: int) -> ir.Kernel:
    """The kernel with such tiles transposed in registers. most_lanes: of one vector."""
    turning = _Turning({b.name for b in kernel.buffers}, most_lanes)
    body = turning.statement(kernel.body)
    return kernel.replace(body=body, buffers=(*kernel.buffers, *turning.buffers))


class _Turning:
    """A traversal of a kernel. buffers: the registers that the pass adds."""

    def __init__(self, names: set[str], most_lanes: int) -> None:
        self.names, self.most_lanes, self.buffers = names, most_lanes, list[ir.Buffer]()

    def statement(self, stmt: ir.Stmt) -> ir.Stmt:
        made = self._turned(stmt) if isinstance(stmt, ir.For) and stmt.kind == "unroll" else None
        if made is not None:
            return made
        return stmt.map_children(lambda child: self.statement(child) if isinstance(child, ir.Stmt) else child)

    def _turned(self, stmt: ir.For) -> ir.Stmt | None:
        """A square tile of stores, transposed; None if the loops do not form one."""
        inner = stmt.body
        if not isinstance(inner, ir.For) or inner.kind != "vector":
            return None
        square = self._square(stmt.extent, inner.extent)
        if not square and not self._comb(stmt.extent, inner.extent):
            return None
        body, condition = inner.body, None
        if isinstance(body, ir.If) and body.otherwise is None:
            condition, body = body.condition, body.then
        if not isinstance(body, ir.Store) or body.count is not None:
            return None
        if any(load.buffer is body.buffer for load in ir.loads(body.value)):
            return None
        assert isinstance(stmt.extent, Const) and isinstance(inner.extent, Const)
        u, v, n = stmt.var, inner.var, int(stmt.extent.value)
        whole = None if condition is None else _whole(condition, {u: n, v: int(inner.extent.value)})
        if condition is not None and whole is None:
            return None
        if not square:
            made = self._interleaved(body, u, v, n, int(inner.extent.value))
            return made if made is None or whole is None else ir.If(whole, made, stmt, stmt.span)
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

    def _comb(self, rows: Expr, columns: Expr) -> bool:
        sizes = [int(e.value) for e in (rows, columns) if isinstance(e, Const)]
        few, lanes = sizes if len(sizes) == 2 else (0, 0)
        return 1 < few < lanes and LEAST_LANES <= lanes <= self.most_lanes and not (few & (few - 1) or lanes & (lanes - 1))

    def _interleaved(self, store: ir.Store, u: Var, v: Var, few: int, n: int) -> ir.Stmt | None:
        """Strided stores that fill each other's gaps: rows are read as vectors, interleaved, and stored as vectors."""
        reads = ir.loads(store.value)
        if not reads or not all(_beside(x.buffer, x.indices, v, u) for x in reads):
            return None
        if not _beside(store.buffer, store.indices, u, v) or _stride(store.buffer, store.indices, v) != few:
            return None
        rows = self._buffer("rows", store.buffer, n, few)
        first = ir.For(
            u, index(few), ir.For(v, index(n), ir.Store(rows, (u, v), store.value, span=store.span), "vector"), "unroll"
        )
        made: list[ir.Stmt] = [first]
        for _ in range(few.bit_length() - 1):  # interleave a row of each half: lower lanes, then upper ones
            after = self._buffer("step", rows, n, few)
            for k in range(few):
                numbers = tuple(k % 2 * (n // 2) + lane // 2 + lane % 2 * n for lane in range(n))
                value = _shuffled(rows, k // 2, k // 2 + few // 2, n, numbers)
                made.append(ir.Store(after, (index(k), index(0)), value))
            rows = after
        flat: dict[Expr, Expr] = {v: u * (n // few) + v // few, u: v % few}
        places = tuple(simplify(substitute(i, flat)) for i in store.indices)
        last = store.replace(indices=places, value=ir.Load(rows, (u, v)))
        return ir.seq(*made, ir.For(u, index(few), ir.For(v, index(n), last, "vector"), "unroll"))

    def _stores(self, store: ir.Store, u: Var, v: Var, n: int, condition: Expr | None) -> ir.Stmt | None:
        """Neighbours of the store are along u: computes values as vectors along v, as they are read, then transposes.

        condition: under which an element exists.
        """
        if not any(_beside(load.buffer, load.indices, v, u) for load in ir.loads(store.value)):
            return None
        rows = self._buffer("rows", store.buffer, n)
        first = _square(u, v, n, ir.Store(rows, (u, v), _existing(store.value, condition), None, False, store.span))
        steps, turned = self._steps(rows, n)
        last = _square(v, u, n, _where(condition, store.replace(value=ir.Load(turned, (v, u)))))
        return ir.seq(first, *steps, last)

    def _loads(self, store: ir.Store, u: Var, v: Var, n: int, condition: Expr | None) -> ir.Stmt | None:
        """Neighbours of the store are along v: transposes the values that are read along u. condition: under which an element
        exists."""
        if not _beside(store.buffer, store.indices, v, u):
            return None
        found: list[Expr]
        if (load := _moved(store.value)) is not None and load is not store.value:  # elements that do not exist are not read
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
        """Exchanges lanes between vectors at distance 1, 2, 4, ..., and the buffer that holds the columns afterwards."""
        made, distance = list[ir.Stmt](), 1
        while distance < n:
            after = self._buffer("turned" if 2 * distance == n else "step", rows, n)
            for k in range(n):
                low, high = k & ~distance, k | distance
                side = distance if k & distance else 0
                numbers = tuple((lane & ~distance) + side + (n if lane & distance else 0) for lane in range(n))
                made.append(ir.Store(after, (index(k), index(0)), _shuffled(rows, low, high, n, numbers)))
            rows, distance = after, 2 * distance
        return made, rows

    def _buffer(self, what: str, like: ir.Buffer, n: int, rows: int = 0) -> ir.Buffer:
        stem = f"{like.name.removesuffix('_rows').partition('_step')[0]}_{what}"
        name = next(x for x in (stem if k == 0 else f"{stem}_{k}" for k in itertools.count()) if x not in self.names)
        self.names.add(name)
        self.buffers.append(ir.Buffer(name, like.dtype, (rows or n, n), "register", "temporary"))
        return self.buffers[-1]


def _shuffled(rows: ir.Buffer, first: int, second: int, n: int, numbers: tuple[int, ...]) -> ir.Shuffle:
    """A shuffle of the lanes of two rows."""
    a, b = (ir.Load(rows, (index(row), index(0)), n) for row in (first, second))
    return ir.Shuffle(a, b, numbers)


def _square(outer: Var, inner: Var, n: int, body: ir.Stmt) -> ir.Stmt:
    return ir.For(outer, index(n), ir.For(inner, index(n), body, "vector"), "unroll")


def _moved(value: Expr) -> ir.Load | None:
    """The load that a value consists of, possibly replaced by a constant under a condition; None for computed values."""
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


def _stride(buffer: ir.Buffer, indices: tuple[Expr, ...], along: Var) -> int | None:
    """The distance in memory, in elements, between neighbours along a variable; None if it is not a constant."""
    terms, _ = weighted_sum(indices, buffer.strides)
    if buffer.memory == "register" or any(atom is not along and along in atom.walk() for atom, _ in terms):
        return None
    return dict(terms).get(along, 0)


def _beside(buffer: ir.Buffer, indices: tuple[Expr, ...], along: Var, across: Var) -> bool:
    """Whether neighbours along one variable are consecutive in memory, and neighbours along the other are not."""
    return _stride(buffer, indices, along) == 1 and _stride(buffer, indices, across) not in (None, 1)


def _whole(condition: Expr, extents: dict[Var, int]) -> Expr | None:
    """The condition under which a square tile exists as a whole, tested at its last point; None if a part of the condition
    cannot be tested so."""
    for part in conjuncts(condition):
        if not isinstance(part, Binary) or part.op not in ("<", "<=") or not exact(part.left, part.right):
            return None
        terms, _ = linear(part.left - part.right)
        if any(step < 0 if atom in extents else bool(extents.keys() & set(atom.walk())) for atom, step in terms):
            return None
    ends = {v: index(n - 1) for v, n in extents.items()}
    return conjunction([simplify(substitute(part, ends)) for part in conjuncts(condition)])
