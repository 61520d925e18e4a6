"""Vectorizes moves between global and shared memory by one thread, which are built element by element.

Needs: serial loops around one store of an element from global to shared memory, or the other way round; the store, or the read, may be
under conditions, and elements that do not exist are stored as a constant. Indices are affine in the loops, or divide one of them by a
small number. Guarantees: the same elements are stored, some of them twice; no other iterations store to the same places, so the order
is free. The iterations before, within and after the elements that exist become separate loops without tests. If consecutive elements of
the source are consecutive in the target, rows move as vectors. If they are consecutive along different loops, square tiles move, which
the pass `transpose_in_registers` transposes. Any other loop stays as it is.

    for w in 0..9 { for c in 0..8: S[w, c] = X[c, w - 1] if 1 <= w and w < 8 else 0 }    ->
    vector c in 0..8: S[0, c] = 0
    unroll w in 0..8 { vector c in 0..8: if w < 7: S[w + 1, c] = X[c, w] }
    vector c in 0..8: S[8, c] = 0
"""

from __future__ import annotations

import dataclasses
import itertools
import re
from collections.abc import Sequence

from tilelang.core.expr import INDEX, Binary, Const, Expr, Select, Var, binary, free, index, substitute
from tilelang.core.simplify import conjunction, conjuncts, interval, simplify, weighted_sum
from tilelang.lowering import ir
from tilelang.lowering.passes.loop_ranges import Range, at_worst, clamped, ranges_of
from tilelang.lowering.passes.transpose_in_registers import LEAST_LANES

MOST_DIGITS = 4  # the most loops that a loop with a divided index is split into


def vectorize_moves(kernel: ir.Kernel, most_lanes: int, vector_bytes: int | None = None) -> ir.Kernel:
    """The kernel with such loops vectorized, if its blocks have one thread. most_lanes: of one vector. vector_bytes: of a register;
    square tiles are no wider, because all their rows are in registers at once. None: they are as wide as any vector."""
    if most_lanes < LEAST_LANES or kernel.threads > 1:
        return kernel
    names = {v.name for s in ir.statements(kernel.body) for e in ir.expressions(s) for v in free(e) if isinstance(v, Var)}
    names |= {s.var.name for s in ir.statements(kernel.body) if isinstance(s, (ir.For, ir.Let))}
    return kernel.replace(body=_Moving(names, most_lanes, vector_bytes).statement(kernel.body))


@dataclasses.dataclass(frozen=True, eq=False)
class _Loop:
    """A loop of a move.

    most: the greatest number of iterations. source, target: the stride of its variable in the source and in the target. stored:
    the iterations that store anything. read: those that read, if fewer: the others store the constant. digits: if not 0, the loop
    runs over the remainders of a division by it, and `inner` over the quotients.
    """

    var: Var
    most: int
    source: int
    target: int
    stored: Range
    read: Range | None = None
    digits: int = 0
    inner: _Loop | None = None

    def at(self, known: dict[Expr, Expr]) -> _Loop:
        """The loop with values substituted for the variables of outer loops."""
        read = None if self.read is None else self.read.at(known)
        inner = None if self.inner is None else self.inner.at(known)
        return dataclasses.replace(self, stored=self.stored.at(known), read=read, inner=inner)

    def depends(self) -> frozenset[Expr]:
        """The variables in the bounds of its ranges."""
        ranges = [r for x in (self, self.inner) if x is not None for r in (x.stored, x.read) if r is not None]
        return frozenset().union(*(free(end) for r in ranges for end in (r.low, r.high)))


@dataclasses.dataclass(frozen=True, eq=False)
class _Part:
    """A range of a loop's iterations. reading: whether they read; limit: the first iteration that does not read, if it is
    inside the range."""

    low: Expr
    count: Expr
    reading: bool
    limit: Expr | None = None


@dataclasses.dataclass(frozen=True, eq=False)
class _Move:
    """The innermost statement of a move: stores an element, or the constant if the element is not read."""

    store: ir.Store
    load: ir.Load
    fill: Const | None

    def at(self, var: Var, point: Expr) -> _Move:
        known = {var: point}

        def placed(e: Expr) -> Expr:
            return simplify(substitute(e, known))

        store = self.store.replace(indices=tuple(placed(i) for i in self.store.indices))
        return dataclasses.replace(self, store=store, load=self.load.replace(indices=tuple(placed(i) for i in self.load.indices)))

    def stored(self, reading: bool, conditions: list[Expr]) -> ir.Store:
        """The store. conditions: under which the element is read."""
        value: Expr | None = self.load if reading else self.fill
        test = conjunction(conditions)
        if reading and test is not None and self.fill is not None:
            value = Select(test, self.load, self.fill)
        assert value is not None
        return self.store.replace(value=value)


class _Moving:
    """A traversal of a kernel. names: of all its variables."""

    def __init__(self, names: set[str], most_lanes: int, vector_bytes: int | None) -> None:
        self.names, self.most_lanes, self.vector_bytes = names, most_lanes, vector_bytes

    def statement(self, stmt: ir.Stmt) -> ir.Stmt:
        made = self.moved(stmt)
        if made is None and isinstance(stmt, ir.If) and stmt.otherwise is not None and _same_move(stmt, stmt.otherwise):
            made = self.moved(stmt.otherwise)
        if made is not None:
            return made
        return stmt.map_children(lambda child: self.statement(child) if isinstance(child, ir.Stmt) else child)

    def moved(self, stmt: ir.Stmt) -> ir.Stmt | None:
        """A move in vectors; None if the statement is no move or nothing is gained."""
        around, conditions, store = _nest(stmt)
        if not around or store is None or store.count is not None or store.behind:
            return None
        inside, value, fill = list[Expr](), store.value, None
        if isinstance(value, Select) and isinstance(value.otherwise, Const):
            inside, fill, value = conjuncts(value.condition), value.otherwise, value.then
        if not isinstance(value, ir.Load) or {store.buffer.memory, value.buffer.memory} != {"global", "shared"}:
            return None
        if value.lanes > 1 or any(ir.loads(e) for e in (*store.indices, *value.indices, *conditions, *inside)):
            return None
        move = _Move(store, value, fill)
        found = self.loops(around, move, conditions, inside)
        if found is None:
            return None
        loops, stored, read = found
        return self.nest(*self.joined(loops, move), stored, read)

    def loops(
        self, around: list[ir.For], move: _Move, conditions: list[Expr], inside: list[Expr]
    ) -> tuple[list[_Loop], Expr | None, Expr | None] | None:
        """The loops of a move, and the loop-invariant conditions: for storing anything, and for reading anything."""
        variables = [loop.var for loop in around]
        source, _ = weighted_sum(move.load.indices, move.load.buffer.strides)
        target, _ = weighted_sum(move.store.indices, move.store.buffer.strides)
        ranges, stored = ranges_of(conditions, variables)
        read_ranges, read = ranges_of(inside, variables)
        if ranges is None or read_ranges is None:
            return None
        loops = list[_Loop]()
        for loop in around:
            v = loop.var
            if v.upper is None or free(loop.extent) & set(variables):
                return None
            most, zero = v.upper + 1, index(0)
            whole = clamped(ranges.get(v, []), Range(zero, loop.extent))
            within = clamped(read_ranges[v], whole) if v in read_ranges else None
            made = self.loop(v, most, dict(source), dict(target), whole, within)
            if made is None:
                return None
            loops.append(made)
        return (loops, stored, read) if _apart(loops) else None

    def loop(
        self, v: Var, most: int, source: dict[Expr, int], target: dict[Expr, int], stored: Range, read: Range | None
    ) -> _Loop | None:
        """One loop; None if an index is neither affine in its variable nor divides it by a single small number."""
        mine = {atom for atom in (*source, *target) if v in free(atom)} - {v}
        if not mine:
            return _Loop(v, most, source.get(v, 0), target.get(v, 0), stored, read)
        by = {int(a.right.value) for a in mine if isinstance(a, Binary) and isinstance(a.right, Const) and a.op in ("//", "%")}
        if len(by) != 1 or not all(isinstance(a, Binary) and a.left is v for a in mine):
            return None
        n = by.pop()
        if not 1 < n <= MOST_DIGITS:
            return None
        quotient, remainder = Binary("//", v, index(n)), Binary("%", v, index(n))
        strides = [(each.get(v, 0), each.get(quotient, 0), each.get(remainder, 0)) for each in (source, target)]
        (s, d), (s1, d1) = [(n * own + q) for own, q, _ in strides], [own + r for own, _, r in strides]
        count = -(-most // n)
        inner = _Loop(self.variable(v, count), count, s, d, stored, read)
        return _Loop(v, n, s1, d1, Range(index(0), index(n)), None, n, inner)

    def variable(self, like: Var, count: int) -> Var:
        """A fresh loop variable named after another one. count: the greatest number of iterations."""
        return Var(self.name(_stem(like)), INDEX, 0, max(count - 1, 0))

    def name(self, stem: str) -> str:
        """An unused variable name."""
        found = next(n for n in (f"{stem}_{k}" for k in itertools.count(1)) if n not in self.names)
        self.names.add(found)
        return found

    # ------------------------------------------------------------ rebuilding the loops

    def joined(self, loops: list[_Loop], move: _Move) -> tuple[list[_Loop], _Move]:
        """Fuses two loops if the elements of one continue where those of the other end, in both tensors."""
        used = frozenset().union(*(x.depends() for x in loops))
        for a, b in itertools.permutations((x for x in loops if x.var not in used and not x.digits), 2):
            whole = b.read is None and b.stored.low is index(0) and b.stored.high is index(b.most)
            if whole and (a.source, a.target) == (b.source * b.most, b.target * b.most):
                v = self.variable(a.var, a.most * b.most)
                stored, read = a.stored.times(b.most), None if a.read is None else a.read.times(b.most)
                one = _Loop(v, a.most * b.most, b.source, b.target, stored, read)
                moved = move.at(a.var, v // b.most).at(b.var, v % b.most)
                return self.joined([one if x is a else x for x in loops if x is not b], moved)
        return loops, move

    def nest(self, loops: list[_Loop], move: _Move, stored: Expr | None, read: Expr | None) -> ir.Stmt | None:
        """The loops, the innermost ones vectorized or in square tiles; None if nothing is gained."""
        flat = _flat(loops)
        along = next((x for x in flat if x.target == 1 and not x.digits), None)
        across = next((x for x in flat if x.source == 1 and not x.digits), None)
        if along is None:
            return None
        if across is not along and across is not None and min(across.most, along.most) < LEAST_LANES:
            across = None
        inner = [along] if across in (None, along) else [across, along]
        outer = [x for x in loops if not any(x is y for y in inner)]
        if not any(x.read or x.digits for x in flat) and (across is None or along.most < LEAST_LANES):
            return None  # no test or division disappears, and there is no vector
        order = [*outer, *(x for x in inner if x in loops)]
        if any({y.var for y in (*order[k:], *inner)} & x.depends() for k, x in enumerate(order)):
            return None
        if any(x.digits and x.var in y.depends() for x in loops for y in loops):
            return None  # the variable is replaced, but these ranges depend on it
        made = self.outer(outer, inner, move, True)
        if read is not None:
            made = ir.If(read, made, self.outer(outer, inner, move, False), move.store.span)
        return made if stored is None else ir.If(stored, made, None, move.store.span)

    def outer(self, loops: Sequence[_Loop], inner: list[_Loop], move: _Move, reading: bool) -> ir.Stmt:
        """The loops around the innermost ones, in their original order. reading: whether elements are read; if not, all are
        constants."""
        if not loops:
            return self.inner(inner, move, reading)
        loop, *rest = loops
        if loop.inner is not None:
            return self.digits(loop, loop.inner, rest, inner, move, reading)
        v = loop.var if loop.stored.low is index(0) else self.variable(loop.var, loop.most)
        point = simplify(loop.stored.low + v)
        known: dict[Expr, Expr] = {loop.var: point}
        rest, inner, moved = [x.at(known) for x in rest], [x.at(known) for x in inner], move.at(loop.var, point)
        body = self.outer(rest, inner, moved, reading)
        if reading and loop.read is not None:
            test = conjunction([Binary("<=", loop.read.low, point), Binary("<", point, loop.read.high)])
            if test is not None:
                body = ir.If(test, body, self.outer(rest, inner, moved, False), move.store.span)
        return ir.For(v, simplify(loop.stored.high - loop.stored.low), body, span=move.store.span)

    def digits(self, loop: _Loop, quotients: _Loop, rest: list[_Loop], inner: list[_Loop], move: _Move, reading: bool) -> ir.Stmt:
        """A loop split into one loop for each remainder of its variable."""
        made = list[ir.Stmt]()
        for digit in range(loop.digits):
            stored = quotients.stored.shifted(digit, loop.digits)
            read = None if quotients.read is None else quotients.read.shifted(digit, loop.digits)
            each = dataclasses.replace(quotients, stored=stored, read=read)
            innermost = any(x.var is quotients.var for x in inner)
            mine = [each if x.var is quotients.var else x for x in inner]
            around = rest if innermost else [each, *rest]
            made.append(self.outer(around, mine, move.at(loop.var, each.var * loop.digits + digit), reading))
        return ir.seq(*made)

    def inner(self, loops: list[_Loop], move: _Move, reading: bool) -> ir.Stmt:
        """The innermost loops, split into the iterations before, within and after those that read."""
        made = list[ir.Stmt]()
        by_elements = len(loops) == 1 and loops[0].source != 1
        for parts in itertools.product(*(self.parts(loop, reading, by_elements, made) for loop in loops)):
            if not any(isinstance(p.count, Const) and p.count.value <= 0 for p in parts):
                made.append(self.piece(loops, list(parts), move, all(p.reading for p in parts)))
        return ir.seq(*made)

    def parts(self, loop: _Loop, reading: bool, by_elements: bool, before: list[ir.Stmt]) -> list[_Part]:
        """The iterations of a loop, split by whether they read. before: gets Lets for bounds that are not constant."""
        low, high = (self.named(loop, end, before) for end in (loop.stored.low, loop.stored.high))
        whole = simplify(high - low)
        if not reading or loop.read is None:
            return [_Part(low, whole, reading)]
        same = loop.read.low is loop.stored.low
        first, last = low if same else self.named(loop, loop.read.low, before), self.named(loop, loop.read.high, before)
        if same and not by_elements and not isinstance(last, Const):
            return [_Part(low, whole, True, last)]
        read = _Part(first, simplify(last - first), True)
        return [_Part(low, simplify(first - low), False), read, _Part(last, simplify(high - last), False)]

    def named(self, loop: _Loop, end: Expr, before: list[ir.Stmt]) -> Expr:
        """A bound of a range, as a named variable if it is computed."""
        if isinstance(end, (Const, Var)):
            return end
        low, high = interval(end)
        v = Var(self.name(f"{_stem(loop.var)}_end"), INDEX, low, high)
        before.append(ir.Let(v, end))
        return v

    def piece(self, loops: list[_Loop], parts: list[_Part], move: _Move, reading: bool) -> ir.Stmt:
        """The innermost loops over a part of their iterations."""
        if len(loops) == 2 and reading:
            return self.squares(loops, parts, move)
        if len(loops) == 2:
            v = self.variable(loops[0].var, loops[0].most)
            body = self.piece(loops[1:], parts[1:], move.at(loops[0].var, simplify(parts[0].low + v)), reading)
            return ir.For(v, parts[0].count, body, span=move.store.span)
        ((along, part),) = zip(loops, parts, strict=True)
        by_elements = (reading and along.source != 1) or _most(part.count, along.most) < LEAST_LANES
        return (self.elements if by_elements else self.row)(along, part, move, reading)

    def elements(self, along: _Loop, part: _Part, move: _Move, reading: bool) -> ir.Stmt:
        """Neighbours one by one: compilers vectorize strided reads well."""
        v = self.variable(along.var, along.most)
        point = simplify(part.low + v)
        return ir.For(v, part.count, move.at(along.var, point).stored(reading, _before(point, part.limit)), span=move.store.span)

    def row(self, along: _Loop, part: _Part, move: _Move, reading: bool) -> ir.Stmt:
        """A row of neighbours: full vectors, then one vector for the remainder."""
        most = _most(part.count, along.most)
        n = self.lanes(most)
        lane, made = self.variable(along.var, n), list[ir.Stmt]()
        if most >= n:
            block = self.variable(along.var, most // n)
            point = simplify(part.low + block * n + lane)
            store = move.at(along.var, point).stored(reading, _before(point, part.limit))
            vector = ir.For(lane, index(n), store, "vector", store.span)
            made.append(ir.For(block, simplify(part.count // n), vector, span=store.span))
        left = simplify(part.count % n)
        if left is not index(0):
            again = _fits(part, n)  # the last vector overlaps the one before it
            point = simplify(part.low + (part.count - n if again else part.count // n * n) + lane)
            store = move.at(along.var, point).stored(reading, _before(point, part.limit))
            body = store if again else ir.If(Binary("<", lane, left), store, None, store.span)
            made.append(ir.For(lane, index(n), body, "vector", store.span))
        return ir.seq(*made)

    def squares(self, loops: list[_Loop], parts: list[_Part], move: _Move) -> ir.Stmt:
        """Square tiles: rows are read along one loop, columns are written along the other."""
        n = self.lanes(min(_most(p.count, x.most) for p, x in zip(parts, loops, strict=True)))
        if self.vector_bytes is not None:
            n = min(n, max(LEAST_LANES, self.vector_bytes // move.store.buffer.dtype.bytes))
        blocks, lanes, stored, read = list[ir.For](), list[Var](), list[Expr](), list[Expr]()
        for loop, part in zip(loops, parts, strict=True):
            block, lane = self.variable(loop.var, -(-loop.most // n)), self.variable(loop.var, n)
            first: Expr = block * n
            if _fits(part, n):  # the last tile overlaps the one before it
                first = binary("min", first, part.count - n)
            point = simplify(part.low + first + lane)
            stored += _before(simplify(first + lane), part.count)
            read += _before(point, part.limit)
            move = move.at(loop.var, point)
            blocks.append(ir.For(block, simplify((part.count + (n - 1)) // n), ir.seq(), span=move.store.span))
            lanes.append(lane)
        made = self.square(lanes, n, move.stored(True, []), conjunction(stored))
        if read:
            ends: dict[Expr, Expr] = {lane: index(n - 1) for lane in lanes}
            whole = conjunction([simplify(substitute(e, ends)) for e in read])
            if whole is not None:
                made = ir.If(whole, made, self.square(lanes, n, move.stored(True, read), conjunction(stored)), move.store.span)
        for around in blocks:  # neighbours of the source innermost
            made = around.replace(body=made)
        return made

    @staticmethod
    def square(lanes: list[Var], n: int, store: ir.Store, test: Expr | None) -> ir.Stmt:
        """Loops in the form that the pass `transpose_in_registers` recognizes as a square tile."""
        across, along = lanes
        body = store if test is None else ir.If(test, store, None, store.span)
        return ir.For(across, index(n), ir.For(along, index(n), body, "vector", store.span), "unroll", store.span)

    def lanes(self, most: int) -> int:
        """The width, in lanes, of the vectors that move `most` neighbours."""
        n = self.most_lanes
        while n > LEAST_LANES and n // 2 >= most:
            n //= 2
        return n


def _stem(variable: Var) -> str:
    return re.sub(r"(_\d+)+$", "", variable.name)


def _nest(stmt: ir.Stmt) -> tuple[list[ir.For], list[Expr], ir.Store | None]:
    """Loops, the conditions inside them, and the store in them; the store is None if the loops contain anything else."""
    around, conditions = list[ir.For](), list[Expr]()
    while True:
        match stmt:
            case ir.If(condition, then, None):
                conditions += conjuncts(condition)
                stmt = then
            case ir.For(kind="serial") as loop:
                around.append(loop)
                stmt = loop.body
            case ir.Store():
                return around, conditions, stmt
            case _:
                return around, conditions, None


def _same_move(stmt: ir.If, otherwise: ir.Stmt) -> bool:
    """Whether both branches of a condition are the same move, with tests in one branch and without tests in the other, where
    all tests hold."""
    (a, none, x), (b, conditions, y) = _nest(stmt.then), _nest(otherwise)
    if x is None or y is None or none or len(a) != len(b) or x.buffer is not y.buffer:
        return False
    value = y.value
    if isinstance(value, Select):
        conditions, value = [*conditions, *conjuncts(value.condition)], value.then
    names: dict[Expr, Expr] = {p.var: q.var for p, q in zip(a, b, strict=True)}
    alike = [
        *zip(x.indices, y.indices, strict=True),
        (x.value, value),
        *((p.extent, q.extent) for p, q in zip(a, b, strict=True)),
    ]
    if any(simplify(substitute(p, names)) is not simplify(q) for p, q in alike):
        return False
    known = conjunction([stmt.condition, *(at_worst(c, [loop.var for loop in b]) for c in conditions)])
    return known is conjunction([stmt.condition])


def _before(point: Expr, high: Expr | None) -> list[Expr]:
    return [] if high is None else [Binary("<", point, high)]


def _fits(part: _Part, n: int) -> bool:
    """Whether a part certainly has at least n iterations."""
    return isinstance(part.count, Const) and int(part.count.value) >= n


def _most(count: Expr, most: int) -> int:
    high = interval(count)[1]
    return most if high is None else min(most, high)


def _flat(loops: list[_Loop]) -> list[_Loop]:
    """The loops, including the inner loops over quotients."""
    return [x for loop in loops for x in (loop, loop.inner) if x is not None]


def _apart(loops: list[_Loop]) -> bool:
    """Whether no two iterations store to the same place."""
    reached = 0
    for loop in sorted(_flat(loops), key=lambda x: abs(x.target)):
        if abs(loop.target) <= reached:
            return False
        reached += abs(loop.target) * (loop.most - 1)
    return True
