"""Turns vector loops into accesses and operations of several lanes.

Needs: `For(kind="vector")` of constant extent around innermost statements. Guarantees: no vector loop is left; loads and stores of
consecutive elements are one access, within a row or, for fused axes, continuing in the next one. Accesses that are not contiguous are
made element by element; the vector that they store is computed once, before them. A condition on the lane becomes a count of leading
lanes if it has that form, else one statement per lane. If a loop is several vectors long, all values are computed before the first
store.

    vector v in 0..4: if i*4 + v < n: C[i*4 + v] = A[i*4 + v]    ->
    if i*4 + 3 < n: C[i*4:4] = A[i*4:4]  else: C[i*4:4] first n - i*4 = A[i*4:4] first n - i*4
"""

from __future__ import annotations

import itertools
from math import gcd

from tilelang.core.dtype import DType
from tilelang.core.expr import COMPARISONS, INDEX, Binary, Cast, Const, Expr, Select, Var, const, index, substitute
from tilelang.core.simplify import FALSE, conjunction, conjuncts, difference, exact, interval, linear, simplify, weighted_sum
from tilelang.lowering import ir

IN_A_ROW, ACROSS = "in a row", "across rows"  # how lanes can be consecutive

MOST_HELD = 8  # the most vectors of one loop whose values are in registers before the first store


def vectorize(kernel: ir.Kernel, most_lanes: int = 16) -> ir.Kernel:
    """The kernel without vector loops. most_lanes: the widest vector; longer loops become several vectors."""
    held = _Held({b.name for b in kernel.buffers})
    body = _statement(kernel.body, most_lanes, held)
    return kernel.replace(body=body, buffers=(*kernel.buffers, *held.buffers))


class _Held:
    """The registers that the pass adds: vectors that are computed once and used lane by lane."""

    def __init__(self, names: set[str]) -> None:
        self.names, self.buffers = names, list[ir.Buffer]()

    def buffer(self, stem: str, type: DType, lanes: int) -> ir.Buffer:
        name = next(n for n in itertools.chain([stem], (f"{stem}_{k}" for k in itertools.count(1))) if n not in self.names)
        self.names.add(name)
        self.buffers.append(ir.Buffer(name, type, (lanes,), "register", "temporary"))
        return self.buffers[-1]


def _statement(stmt: ir.Stmt, most: int, held: _Held) -> ir.Stmt:
    if isinstance(stmt, ir.For) and stmt.kind == "vector":
        assert isinstance(stmt.extent, Const)
        width = int(stmt.extent.value)
        body = _statement(stmt.body, most, held)
        if most == 1:
            return ir.seq(*[_at(body, {stmt.var: index(j)}) for j in range(width)])
        if width <= most:
            return _widened(body, stmt.var, width, held)
        pieces, first = list[ir.Stmt](), 0
        while first < width:
            lanes = most if width - first >= most else 1 << (width - first).bit_length() - 1
            lane = Var(stmt.var.name, stmt.var.type, 0, lanes - 1)
            piece = _at(body, {stmt.var: simplify(lane + first)})
            pieces.append(_widened(piece, lane, lanes, held))
            first += lanes
        return _loads_first(pieces, held) or ir.seq(*pieces)
    return stmt.map_children(lambda c: _statement(c, most, held) if isinstance(c, ir.Stmt) else c)


def _widened(body: ir.Stmt, lane: Var, width: int, held: _Held) -> ir.Stmt:
    """A body for all values of `lane`; a vector of one lane is a scalar."""
    return _Widening(held, lane, width).statement(body) if width > 1 else _at(body, {lane: index(0)})


def _loads_first(pieces: list[ir.Stmt], held: _Held) -> ir.Stmt | None:
    """The stores of one loop, reordered so that all values are computed before the first of them is stored, if all lanes exist.

    CPUs delay a load whose offset within its page is that of a store in flight (4K aliasing). None if the loop has other statements, or
    too many vectors for the registers.
    """
    if len(pieces) > MOST_HELD:
        return None
    stores, conditions = list[ir.Store](), list[Expr]()
    for piece in pieces:
        if isinstance(piece, ir.If):
            conditions.append(piece.condition)
            piece = piece.then
        if not isinstance(piece, ir.Store) or piece.buffer.memory == "register" or piece.count is not None:
            return None
        stores.append(piece)
    read = {load.buffer for s in stores for load in ir.loads(s.value) if load.buffer.memory != "register"}
    if not read or read & {s.buffer for s in stores}:
        return None
    values = [held.buffer(f"{s.buffer.name}_value", s.buffer.dtype, ir.lanes(s.value)) for s in stores]
    whole = ir.seq(
        *[ir.Store(v, (index(0),), s.value, None, False, s.span) for s, v in zip(stores, values, strict=True)],
        *[s.replace(value=ir.Load(v, (index(0),), ir.lanes(s.value))) for s, v in zip(stores, values, strict=True)],
    )
    condition = conjunction([*dict.fromkeys(conditions)])
    return whole if condition is None else ir.If(condition, whole, ir.seq(*pieces))


class _Mixed(Exception):
    """A statement cannot be restricted to the leading lanes."""


class _Widening:
    """The body of one vector loop over `lane`. count: if set, only that many leading lanes exist."""

    def __init__(self, held: _Held, lane: Var, width: int, count: Expr | None = None) -> None:
        self.held, self.lane, self.width, self.count = held, lane, width, count
        self.memo: dict[Expr, Expr] = {}

    def statement(self, stmt: ir.Stmt) -> ir.Stmt:
        match stmt:
            case ir.Seq(body) if any(self.meet(s) for s in ir.statements(stmt)):
                return self.by_lane(stmt)
            case ir.Seq(body):
                return ir.seq(*[self.statement(s) for s in body])
            case ir.Store():
                return self.store(stmt)
            case ir.If():
                return self.conditional(stmt)
            case _:  # a loop inside the vector loop
                return self.by_lane(stmt)

    def meet(self, stmt: ir.Stmt) -> bool:
        """Whether all lanes store to the same element, so that each lane must see what earlier lanes stored."""
        return isinstance(stmt, ir.Store) and not any(self.depends(i) for i in stmt.indices)

    def depends(self, e: Expr) -> bool:
        return any(x is self.lane for x in e.walk())

    def depends_in(self, stmt: ir.Stmt) -> bool:
        return any(self.depends(e) for s in ir.statements(stmt) for e in ir.expressions(s))

    def by_lane(self, stmt: ir.Stmt) -> ir.Stmt:
        """One copy of a statement per lane. Raises _Mixed if only some lanes exist, since the caller then guards each lane."""
        if self.count is not None:
            raise _Mixed
        return ir.seq(*[_at(stmt, {self.lane: index(j)}) for j in range(self.width)])

    # ------------------------------------------------------------ conditions

    def conditional(self, stmt: ir.If) -> ir.Stmt:
        if not self.depends(stmt.condition):
            otherwise = None if stmt.otherwise is None else self.statement(stmt.otherwise)
            return ir.If(stmt.condition, self.statement(stmt.then), otherwise, stmt.span)
        if stmt.otherwise is not None or self.count is not None:
            return self.by_lane(stmt)
        uniform, counts, rest = self.classify(stmt.condition)
        if rest:
            ends = [simplify(substitute(c, {self.lane: index(j)})) for c in (*counts, *rest) for j in (0, self.width - 1)]
            whole = conjunction([*uniform, *ends]) if self.is_interval((*counts, *rest)) else None
            scalar = self.by_lane(stmt)
            return scalar if whole is None else ir.If(whole, self.statement(stmt.then), scalar, stmt.span)
        last = conjunction([simplify(substitute(c, {self.lane: index(self.width - 1)})) for c in counts])
        full = self.statement(stmt.then)
        if all(self.all_or_none(c) for c in counts):
            uniform += [substitute(c, {self.lane: index(0)}) for c in counts]
            last = None
        if last is None:
            body = full
        else:
            try:
                partial: ir.Stmt = _Widening(self.held, self.lane, self.width, self.least(counts)).statement(stmt.then)
                some = conjunction([simplify(substitute(c, {self.lane: index(0)})) for c in counts])
                partial = partial if some is None else ir.If(some, partial, None, stmt.span)
            except _Mixed:
                lanes = conjunction(counts)
                assert lanes is not None
                partial = self.by_lane(ir.If(lanes, stmt.then, None, stmt.span))
            body = partial if last is FALSE else ir.If(last, full, partial, stmt.span)
        outer = conjunction(uniform)
        return body if outer is None else ir.If(outer, body, None, stmt.span)

    def classify(self, condition: Expr) -> tuple[list[Expr], list[Expr], list[Expr]]:
        """The parts of a conjunction: those that are uniform across lanes; those of the form `e + lane < limit`; the others."""
        uniform: list[Expr] = []
        counts: list[Expr] = []
        rest: list[Expr] = []
        for part in conjuncts(condition):
            if not self.depends(part):
                uniform.append(part)
            elif (
                isinstance(part, Binary)
                and part.op in ("<", "<=")
                and self.slope(part) == 1
                and difference(part.left, part.right)
            ):
                counts.append(part)
            else:
                rest.append(part)
        return uniform, counts, rest

    def slope(self, comparison: Binary) -> int | None:
        """By how much left - right grows from lane to lane; None if not by a constant."""
        if comparison.left.dtype is not index(0).dtype or not exact(comparison.left, comparison.right):
            return None
        terms, _ = linear(comparison.left - comparison.right)
        own = 0
        for atom, c in terms:
            if atom is self.lane:
                own = c
            elif self.depends(atom):
                return None
        return own

    def all_or_none(self, comparison: Expr) -> bool:
        """Whether a comparison that holds for the first lane holds for all, because its other terms are multiples of the width."""
        assert isinstance(comparison, Binary)
        terms, constant = linear(comparison.left - comparison.right)
        constant -= comparison.op == "<="
        step = gcd(*(c for atom, c in terms if atom is not self.lane))
        return step > 0 and constant // step == (constant + self.width - 1) // step

    def is_interval(self, parts: tuple[Expr, ...]) -> bool:
        """Whether the lanes that satisfy all parts are consecutive, so that it is enough to test the first and the last lane."""
        return all(isinstance(p, Binary) and p.op in ("<", "<=") and self.slope(p) is not None for p in parts)

    def least(self, counts: list[Expr]) -> Expr:
        """How many leading lanes satisfy every `e + lane < limit`."""
        total: Expr | None = None
        for part in counts:
            assert isinstance(part, Binary)
            room = simplify(substitute(part.right - part.left, {self.lane: index(0)}) + (1 if part.op == "<=" else 0))
            total = room if total is None else simplify(Binary("min", total, room))
        assert total is not None
        return total

    # ------------------------------------------------------------ stores

    def store(self, stmt: ir.Store) -> ir.Stmt:
        if self.meet(stmt) or (ir.lanes(stmt.value) > 1 and self.depends_in(stmt)):  # or the value is an inner loop's vector
            return self.by_lane(stmt)
        value = self.widen(stmt.value)
        if ir.lanes(value) == 1:
            value = ir.Pack((value,) * self.width)
        found = self.run(stmt.buffer, stmt.indices)
        if found is not None:
            at = self.first(stmt.indices)
            stmt = stmt.replace(across=found is ACROSS)
            if self.count is None:
                return stmt.replace(indices=at, value=value)
            if stmt.buffer.memory == "register" and stmt.buffer.role != "temporary":
                exists = Binary("<", ir.Ramp(index(0), self.width), self.count)
                return stmt.replace(indices=at, value=Select(exists, value, ir.Load(stmt.buffer, at, self.width)))
            return stmt.replace(indices=at, value=value, count=self.count)
        if self.count is not None:
            raise _Mixed
        return self.scattered(stmt, value)

    def scattered(self, stmt: ir.Store, value: Expr) -> ir.Stmt:
        """A vector that is stored lane by lane."""
        first: ir.Stmt | None = None
        match value:
            case ir.Pack(items):
                pass
            case ir.Load(buffer, (*outer, last)) if buffer.memory == "register":
                items = tuple(ir.Load(buffer, (*outer, simplify(last + j))) for j in range(self.width))
            case _:
                held = self.held.buffer(f"{stmt.buffer.name}_lanes", stmt.buffer.dtype, self.width)
                first = ir.Store(held, (index(0),), value, None, False, stmt.span)
                items = tuple(ir.Load(held, (index(j),)) for j in range(self.width))
        return ir.seq(first, *[
            stmt.replace(indices=tuple(simplify(substitute(i, {self.lane: index(j)})) for i in stmt.indices), value=item)
            for j, item in enumerate(items)
        ])  # fmt: skip

    def first(self, indices: tuple[Expr, ...]) -> tuple[Expr, ...]:
        return tuple(simplify(substitute(i, {self.lane: index(0)})) for i in indices)

    def run(self, buffer: ir.Buffer, indices: tuple[Expr, ...]) -> str | None:
        """How the lanes are consecutive in a buffer: in one row, across rows that are contiguous in memory, or not (None)."""
        if self.contiguous(indices):
            return IN_A_ROW
        if buffer.memory == "register":
            return None
        terms, _ = weighted_sum(indices, buffer.strides)
        own = [c for atom, c in terms if self.depends(atom)]
        return ACROSS if own == [1] and any(atom is self.lane for atom, _ in terms) else None

    def contiguous(self, indices: tuple[Expr, ...]) -> bool:
        """Whether the lanes are consecutive along the last dimension."""
        if any(self.depends(i) for i in indices[:-1]):
            return False
        terms, _ = linear(indices[-1])
        own = [c for atom, c in terms if atom is self.lane]
        if own == [1] and not any(self.depends(atom) for atom, _ in terms if atom is not self.lane):
            return True
        start = simplify(substitute(indices[-1], {self.lane: index(0)}))
        return all(simplify(substitute(indices[-1], {self.lane: index(j)}) - start) is index(j) for j in range(1, self.width))

    # ------------------------------------------------------------ values

    def widen(self, e: Expr) -> Expr:
        found = self.memo.get(e)
        if found is None:
            found = self.memo[e] = self._widen(e)
        return found

    def _widen(self, e: Expr) -> Expr:
        if e is self.lane:
            return ir.Ramp(index(0), self.width)
        if not self.depends(e):
            return e
        match e:
            case ir.Load(buffer, indices):
                return self.load(buffer, indices)
            case Select(condition, then, otherwise) if self.depends(condition):
                return self.select(e, condition, then, otherwise)
            case Select(condition, then, otherwise):
                a, b = self.widen(then), self.widen(otherwise)
                return Select(condition, self.broadcast(a), self.broadcast(b))
            case Binary("and" | "or", _, right) if _touches(right):
                return self.pack(e)
            case _ if e.dtype is index(0).dtype and self.linear_slope(e) == 1:
                return ir.Ramp(simplify(substitute(e, {self.lane: index(0)})), self.width)
            case _:
                return e.map_children(lambda c: self.widen(c) if isinstance(c, Expr) else c)

    def linear_slope(self, e: Expr) -> int | None:
        terms, _ = linear(e)
        if any(self.depends(atom) for atom, _ in terms if atom is not self.lane):
            return None
        return next((c for atom, c in terms if atom is self.lane), 0)

    def broadcast(self, e: Expr) -> Expr:
        return e if ir.lanes(e) > 1 else ir.Pack((e,) * self.width)

    def load(self, buffer: ir.Buffer, indices: tuple[Expr, ...], count: Expr | None = None, fill: Const | None = None) -> Expr:
        found = self.run(buffer, indices)
        if found is not None:
            limit = count
            if limit is None and self.count is not None and buffer.memory != "register":
                limit, fill = self.count, const(0, buffer.dtype)
            return ir.Load(buffer, self.first(indices), self.width, limit, fill, found is ACROSS)
        if self.count is not None or count is not None:
            raise _Mixed
        return self.pack(ir.Load(buffer, indices))

    def pack(self, e: Expr) -> Expr:
        """A vector that is computed lane by lane."""
        if self.count is not None:
            raise _Mixed
        return ir.Pack(tuple(simplify(substitute(e, {self.lane: index(j)})) for j in range(self.width)))

    def condition(self, e: Expr) -> Expr:
        """A condition as a vector; every lane may evaluate every part of it."""
        match e:
            case Binary("and" | "or" as op, left, right):
                return Binary(op, self.condition(left), self.condition(right))
            case Binary(op) if op in COMPARISONS:
                e = _narrowed(e)
        return self.broadcast(self.widen(e))

    def select(self, e: Expr, condition: Expr, then: Expr, otherwise: Expr) -> Expr:
        """A select whose condition differs between lanes; the value that a lane does not take must not be read."""
        if not _touches(then) and not _touches(otherwise) and not _touches(condition):
            return Select(self.widen(condition), self.broadcast(self.widen(then)), self.broadcast(self.widen(otherwise)))
        if self.count is not None:
            raise _Mixed
        uniform, counts, rest = self.classify(condition)
        outer = conjunction(uniform)
        if (
            isinstance(then, ir.Load)
            and isinstance(otherwise, Const)
            and counts
            and not rest
            and then.buffer.memory != "register"
        ):
            if self.run(then.buffer, then.indices):
                loaded = self.load(then.buffer, then.indices, self.least(counts), const(otherwise.value, then.dtype))
                return loaded if outer is None else Select(outer, loaded, ir.Pack((otherwise,) * self.width))
        if self.is_interval((*counts, *rest)) and not _touches(otherwise):
            ends = [substitute(c, {self.lane: index(j)}) for c in (*counts, *rest) for j in (0, self.width - 1)]
            whole, all_lanes = conjunction([*uniform, *ends]), self.broadcast(self.widen(then))
            return all_lanes if whole is None else Select(whole, all_lanes, self.pack(e))
        if all(map(_readable, (condition, then, otherwise))):
            return Select(self.condition(condition), self.broadcast(self.widen(then)), self.broadcast(self.widen(otherwise)))
        return self.pack(e)


def _readable(e: Expr) -> bool:
    """Whether every lane may evaluate an expression: all its memory reads are of existing elements of inputs."""
    return all(
        load.buffer.memory == "register" or load.buffer.role == "input" and all(
            low is not None and high is not None and 0 <= low and high < n
            for (low, high), n in zip(map(interval, load.indices), load.buffer.shape, strict=True)
        )
        for load in ir.loads(e)
    )  # fmt: skip


def _narrowed(comparison: Binary) -> Expr:
    """A comparison of widened integers, made in their original narrow type instead: a vector has more lanes of that type."""
    for narrow, wide, other in ((comparison.left, comparison.right, 1), (comparison.right, comparison.left, 0)):
        if isinstance(narrow, Cast) and narrow.operand.dtype.is_integer and narrow.operand.dtype is not INDEX:
            value = _in_type(wide, narrow.operand.dtype)
            if value is not None and narrow.dtype.bits > narrow.operand.dtype.bits and narrow.dtype.kind == "int":
                return Binary(comparison.op, *((narrow.operand, value) if other else (value, narrow.operand)))
    return comparison


def _in_type(e: Expr, type: DType) -> Expr | None:
    """A value in a narrower type; None if the type might not represent it."""
    if isinstance(e, Cast) and (e.operand.dtype is INDEX or e.operand.dtype == type):
        e = e.operand
    if e.dtype == type:
        return e
    low, high = (int(e.value), int(e.value)) if isinstance(e, Const) and e.dtype.is_integer else interval(e)
    return Cast(e, type) if low is not None and high is not None and type.holds(low) and type.holds(high) else None


def _touches(e: Expr) -> bool:
    """Whether evaluating an expression reads memory other than registers."""
    return any(isinstance(x, ir.Load) and x.buffer.memory != "register" for x in e.walk())


def _at(stmt: ir.Stmt, mapping: dict[Expr, Expr]) -> ir.Stmt:
    made: ir.Stmt = ir.map_expressions(stmt, lambda e: simplify(substitute(e, mapping)))
    return made
