"""Which values of a thread are live across a barrier, and where they are kept: the second half of the pass `fission`.

A kernel split at its barriers is a tree of loops and conditions that are uniform across threads, with a `Region` at each leaf:
statements that each thread runs by itself. A register buffer is live across a barrier if one region writes it and another, or the same
one an iteration later, may read the value. It becomes an array over the threads, `x_by_thread[thread, ...]`, in the block's shared
memory. A region that accesses it often works on a private copy in registers, which it loads at its start and stores at its end; other
regions access the array itself. Arrays whose values are never live together share bytes.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from math import gcd

from tilelang.core.expr import INDEX, Const, Expr, Var, const, free, index, rewrite
from tilelang.core.node import node
from tilelang.core.simplify import interval, simplify
from tilelang.lowering import ir
from tilelang.lowering.passes.allocate_shared import ALIGNMENT
from tilelang.lowering.passes.register_use import Use, register_uses

Buffers = frozenset[ir.Buffer]
Indices = tuple[Expr, ...]
NONE: Buffers = frozenset()


@node
class Region(ir.Stmt):
    """Statements without a barrier, which each thread runs on its own. number: of the region, in program order."""

    body: ir.Stmt
    number: int


@dataclasses.dataclass(frozen=True)
class Places:
    """Where a region finds the buffers that are live across barriers: `direct` ones in their arrays, the others in private
    copies.

    filled: copies that it loads from their arrays at its start. stored: copies that it stores to their arrays at its end.
    """

    direct: Buffers
    filled: Buffers
    stored: Buffers

    @property
    def kept(self) -> Buffers:
        """The buffers whose values, written in this region, may be read later."""
        return self.direct | self.stored


@dataclasses.dataclass(frozen=True)
class Crossing:
    """arrays: the array over the threads of each buffer that is live across a barrier. places: for each region.

    zeroed: the buffers whose arrays need an initial value, because a region copies elements that some threads have not written.
    """

    arrays: Mapping[ir.Buffer, ir.Buffer]
    places: Sequence[Places]
    zeroed: Buffers


def crossing(tree: ir.Stmt, regions: Sequence[Region], threads: int, taken: Iterable[str], base_bytes: int) -> Crossing:
    """The values that are live across barriers, in arrays placed from `base_bytes` of the block's shared memory on."""
    flow = _Flow([register_uses(r.body) for r in regions])
    flow.backward(tree, NONE)
    flow.forward(tree, NONE)
    crosses = {
        b for used, after in zip(flow.uses, flow.live_out, strict=True) for b, use in used.items() if use.written and b in after
    }
    places = [flow.places(n, frozenset(crosses)) for n in range(len(regions))]
    zeroed = frozenset(b for n, p in enumerate(places) for b in p.filled if b not in flow.written[n])
    alive = [(flow.live_in[n] | flow.live_out[n] | p.direct) & crosses for n, p in enumerate(places)]
    alive += [frozenset(crosses)] if zeroed else []
    order = [b for b in dict.fromkeys(b for used in flow.uses for b in used) if b in crosses]
    return Crossing(_arrays(order, alive, threads, taken, base_bytes), places, zeroed)


class _Flow:
    """Liveness across regions. live_in, live_out: the buffers whose values may be read after the start, and after the end, of
    each region.

    written: the buffers that all threads have completely written before it.
    """

    def __init__(self, uses: Sequence[Mapping[ir.Buffer, Use]]) -> None:
        self.uses = uses
        self.live_in, self.live_out, self.written = ([NONE for _ in uses] for _ in range(3))

    def places(self, number: int, crosses: Buffers) -> Places:
        """Where a region finds such buffers. A private copy pays if elements are accessed more than once; it must be a whole buffer."""
        direct, filled, stored = set[ir.Buffer](), set[ir.Buffer](), set[ir.Buffer]()
        for b, use in self.uses[number].items():
            before, after = b in self.live_in[number], use.written and b in self.live_out[number]
            if b not in crosses or not (before or after):
                continue
            whole = not before or b in self.written[number]
            if use.pinned or (whole and use.accesses > b.elements * (before + after)):
                filled |= {b} if before else set()
                stored |= {b} if after else set()
            else:
                direct.add(b)
        return Places(frozenset(direct), frozenset(filled), frozenset(stored))

    def backward(self, stmt: ir.Stmt, after: Buffers) -> Buffers:
        """The buffers live before a statement, given those live after it."""
        match stmt:
            case Region(number=n):
                used = self.uses[n]
                exposed = {b for b, use in used.items() if use.exposed}
                self.live_out[n] |= after
                self.live_in[n] |= exposed | {b for b in after if not (b in used and used[b].whole)}
                return self.live_in[n]
            case ir.Seq(body):
                for child in reversed(body):
                    after = self.backward(child, after)
                return after
            case ir.For(extent=extent, body=body):
                around = after
                while not (before := self.backward(body, around)) <= around:
                    around |= before
                return before if (interval(extent)[0] or 0) > 0 else before | after
            case _:
                assert isinstance(stmt, ir.If)
                other = after if stmt.otherwise is None else self.backward(stmt.otherwise, after)
                return self.backward(stmt.then, after) | other

    def forward(self, stmt: ir.Stmt, before: Buffers) -> Buffers:
        """The buffers completely written after a statement, given those before it."""
        match stmt:
            case Region(number=n):
                self.written[n] = before
                return before | {b for b, use in self.uses[n].items() if use.whole}
            case ir.Seq(body):
                for child in body:
                    before = self.forward(child, before)
                return before
            case ir.For(extent=extent, body=body):
                after = self.forward(body, before)
                return after if (interval(extent)[0] or 0) > 0 else before
            case _:
                assert isinstance(stmt, ir.If)
                other = before if stmt.otherwise is None else self.forward(stmt.otherwise, before)
                return self.forward(stmt.then, before) & other


def _arrays(
    order: Sequence[ir.Buffer], alive: Sequence[Buffers], threads: int, taken: Iterable[str], base_bytes: int
) -> dict[ir.Buffer, ir.Buffer]:
    """An array for each buffer: largest first, each in the lowest gap between the arrays that are live at the same time."""
    names, found = set(taken), dict[ir.Buffer, ir.Buffer]()
    base = -(-base_bytes // ALIGNMENT) * ALIGNMENT
    for b in order:
        name = fresh(f"{b.name}_by_thread", names)
        found[b] = ir.Buffer(name, b.dtype, (threads, *b.shape), "shared")
    placed = dict[ir.Buffer, ir.Buffer]()
    for b in sorted(order, key=lambda b: -b.bytes):
        beside = {other for together in alive if b in together for other in together}
        ends = sorted((a.offset or 0, (a.offset or 0) + a.bytes) for other, a in placed.items() if other in beside)
        at = base
        for start, end in ends:
            if at + found[b].bytes <= start:
                break
            at = max(at, -(-end // ALIGNMENT) * ALIGNMENT)
        placed[b] = found[b].replace(offset=at)
    return {b: placed[b] for b in order}


def fresh(stem: str, names: set[str]) -> str:
    """A name like `stem` that is not in `names`; it is added to them."""
    name, number = stem, 0
    while name in names:
        number += 1
        name = f"{stem}_{number}"
    names.add(name)
    return name


# ---------------------------------------------------------------- statements


def thread_of(threads: int) -> Var:
    """The index of a thread in a block of `threads`."""
    return Var(ir.THREAD.name, INDEX, 0, threads - 1)


def redirected(stmt: ir.Stmt, arrays: Mapping[ir.Buffer, ir.Buffer], thread: Var) -> ir.Stmt:
    """A statement that accesses the arrays in place of some buffers."""
    if not arrays:
        return stmt

    def one(e: Expr) -> Expr:
        if isinstance(e, ir.Load) and e.buffer in arrays:
            return e.replace(buffer=arrays[e.buffer], indices=(thread, *e.indices))
        return e

    def go(s: ir.Stmt) -> ir.Stmt:
        made = s.map_children(lambda c: rewrite(c, one) if isinstance(c, Expr) else go(c) if isinstance(c, ir.Stmt) else c)
        if isinstance(made, ir.Store) and made.buffer in arrays:
            return made.replace(buffer=arrays[made.buffer], indices=(thread, *made.indices))
        return made

    return go(stmt)


def fills(buffers: Buffers, arrays: Mapping[ir.Buffer, ir.Buffer], widths: Mapping[ir.Buffer, int], thread: Var) -> list[ir.Stmt]:
    """Loops that fill the private copies of buffers from their arrays, `widths` elements at a time."""
    return [_over(b, widths.get(b, 1), partial(_filled, b, array, thread)) for b, array in arrays.items() if b in buffers]


def stores(
    buffers: Buffers, arrays: Mapping[ir.Buffer, ir.Buffer], widths: Mapping[ir.Buffer, int], thread: Var
) -> list[ir.Stmt]:
    """Loops that store the private copies of buffers in their arrays, `widths` elements at a time."""
    return [_over(b, widths.get(b, 1), partial(_stored, b, array, thread)) for b, array in arrays.items() if b in buffers]


def zeros(buffers: Buffers, arrays: Mapping[ir.Buffer, ir.Buffer], thread: Var) -> list[ir.Stmt]:
    """Loops that set the arrays of buffers to zero."""
    return [_over(b, 1, partial(_zeroed, array, thread)) for b, array in arrays.items() if b in buffers]


def _filled(buffer: ir.Buffer, array: ir.Buffer, thread: Var, at: Indices) -> ir.Stmt:
    return ir.Store(buffer, at, ir.Load(array, (thread, *at)))


def _stored(buffer: ir.Buffer, array: ir.Buffer, thread: Var, at: Indices) -> ir.Stmt:
    return ir.Store(array, (thread, *at), ir.Load(buffer, at))


def _zeroed(array: ir.Buffer, thread: Var, at: Indices) -> ir.Stmt:
    return ir.Store(array, (thread, *at), const(0, array.dtype))


def _over(buffer: ir.Buffer, width: int, body: Callable[[Indices], ir.Stmt]) -> ir.Stmt:
    """Loops over the elements of a buffer; the innermost is a vector of `width` elements."""
    loops: list[tuple[Var, int, str]] = []
    at: list[Expr] = []
    for d, n in enumerate(buffer.shape):
        lanes = width if d == len(buffer.shape) - 1 else 1
        outer = Var(f"copied_{d}", INDEX, 0, n // lanes - 1)
        loops.append((outer, n // lanes, "serial"))
        if lanes > 1:
            inner = Var("copied_lane", INDEX, 0, lanes - 1)
            loops.append((inner, lanes, "vector"))
        at.append(simplify(outer * lanes + inner) if lanes > 1 else outer)
    stmt = body(tuple(at))
    for v, n, kind in reversed(loops):
        stmt = ir.For(v, index(n), stmt, kind)
    return stmt


def vector_widths(body: ir.Stmt) -> dict[ir.Buffer, int]:
    """For each register buffer, the most neighbours accessed together, provided that this divides its rows."""
    found: dict[ir.Buffer, int] = {}

    def note(buffer: ir.Buffer, indices: tuple[Expr, ...], lanes: int, around: Mapping[Var, int]) -> None:
        if buffer.memory == "register" and buffer.shape:
            across = [n for v, n in around.items() if v in free(indices[-1])]
            found[buffer] = max(found.get(buffer, 1), lanes, *across)

    def visit(stmt: ir.Stmt, around: Mapping[Var, int]) -> None:
        for e in ir.expressions(stmt):
            for load in ir.loads(e):
                note(load.buffer, load.indices, load.lanes, around)
        if isinstance(stmt, ir.Store):
            note(stmt.buffer, stmt.indices, ir.lanes(stmt.value), around)
        if isinstance(stmt, ir.For) and stmt.kind == "vector" and isinstance(stmt.extent, Const):
            around = {**around, stmt.var: int(stmt.extent.value)}
        for part in ir.parts(stmt):
            visit(part, around)

    visit(body, {})
    return {b: gcd(n, b.shape[-1]) for b, n in found.items()}
