"""Loop fission: the threads of a block become loops, for targets where one core runs a whole block.

Needs: `barriers`, and barriers only in control flow that is uniform across the block. Guarantees: one thread per block and no barrier;
each longest sequence of statements without a barrier is a loop of kind `threads` over the former threads, in the same order; loops and
conditions around barriers are outside these loops. A value that a thread keeps in registers across a barrier is an array over the
threads in shared memory (see `values_across_barriers`). One line before and after, with 64 threads:

    for k { x[0] = x[0] + S[thread]; barrier; S[thread] = x[0]; barrier }
    for k { threads tid in 0..64 { X[tid] = X[tid] + S[tid] }; threads tid in 0..64 { S[tid] = X[tid] } }

Between two barriers no thread accesses an element that another one writes, so threads may run one after the other. For the same reason,
a value that is uniform across threads may be computed once, before the loop. A name is computed again in each loop that uses it: no
name, and no number of iterations, depends on what the kernel writes. A loop covers only the threads that have an effect.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from tilelang.core.expr import INDEX, Const, Expr, Var, free, index, substitute
from tilelang.core.simplify import FALSE, TRUE, conjuncts, simplify
from tilelang.errors import Refusal
from tilelang.instructions.instruction import AT_ONCE
from tilelang.lowering import ir
from tilelang.lowering.limits import MOST_SCRATCH_BYTES
from tilelang.lowering.passes.allocate_shared import ALIGNMENT, over_capacity, with_buffers
from tilelang.lowering.passes.collapse_loops import collapsed
from tilelang.lowering.passes.dependence_test import Opaque, evaluate, is_thread
from tilelang.lowering.passes.values_across_barriers import (
    Buffers,
    Crossing,
    Region,
    crossing,
    fills,
    fresh,
    redirected,
    stores,
    thread_of,
    vector_widths,
    zeros,
)
from tilelang.lowering.verify import InternalError

Lets = tuple[ir.Let, ...]
Range = tuple[int, int]  # a range of threads: the first, and one past the last
NOBODY: Range = (0, 0)
SCRATCH_BYTES = 16 << 20  # the most shared memory of a block: ordinary memory, so the caches do not limit it


def run_threads_in_loops(kernel: ir.Kernel) -> ir.Kernel:
    """The kernel with one thread per block, which does the work of all former threads.

    Raises Refusal `roles-on-cpu`, `clusters-on-cpu` or `instruction-on-cpu` for work that needs concurrent threads, and
    `memory-over-capacity` if the values live across barriers do not fit in a block.
    """
    if kernel.threads == 1:
        return kernel  # one thread needs no barriers
    kernel = kernel.replace(body=_without_flight(kernel.body))
    _refuse(kernel)
    kernel = _all_placed(kernel)
    splitting = _Splitting(kernel)
    tree = splitting.block(kernel.body, ())
    found = crossing(tree, splitting.regions, kernel.threads, splitting.taken, kernel.shared_bytes)
    names = fresh("tid", splitting.taken), fresh("element", splitting.taken)
    body = _Loops(kernel.threads, found, vector_widths(kernel.body), *names).kernel(tree)
    used = {b.name for s in ir.statements(body) for b, _ in ir.touched(s)}
    buffers = (*(b for b in kernel.buffers if b.name in used), *found.arrays.values())
    made = kernel.replace(threads=1, body=body, buffers=buffers)
    if made.shared_bytes > MOST_SCRATCH_BYTES:
        raise over_capacity(made, {b.name: b.offset or 0 for b in made.shared}, made.shared_bytes, MOST_SCRATCH_BYTES)
    return made


def _without_flight(stmt: ir.Stmt) -> ir.Stmt:
    """A statement with its asynchronous copies executed at once, so that nothing has to be awaited."""
    match stmt:
        case ir.Copy():
            return ir.at_once(stmt)
        case ir.Commit() | ir.Wait():
            return ir.Seq(())
        case _:
            made: ir.Stmt = stmt.map_children(lambda child: _without_flight(child) if isinstance(child, ir.Stmt) else child)
            return made


def _has_barrier(stmt: ir.Stmt) -> bool:
    return any(isinstance(s, ir.Barrier) for s in ir.statements(stmt))


def _refuse(kernel: ir.Kernel) -> None:
    """Raises a Refusal for work that threads cannot do one after another."""
    whole = "threads that run at the same time, but on a CPU one core runs all threads of a block one after another"
    if kernel.roles:
        help = "write a schedule in which all threads do the same"
        raise Refusal("roles-on-cpu", f"roles need {whole}", span=kernel.roles[0].span, help=help)
    if kernel.cluster > 1:
        help = "remove the level `cluster` from the schedule"
        raise Refusal("clusters-on-cpu", f"the blocks of a cluster need {whole}", help=help)
    for s in ir.statements(kernel.body):
        if isinstance(s, ir.Instruction) and (s.width > 1 or s.semantics.completes != AT_ONCE):
            name, help = getattr(s.semantics, "name", s.semantics), "use an instruction that each thread issues by itself"
            raise Refusal("instruction-on-cpu", f"`{name}` is issued by {s.width} {whole}", span=s.span, help=help)


def _all_placed(kernel: ir.Kernel) -> ir.Kernel:
    """The kernel with an offset for every shared buffer; those without one are placed after the others."""
    end = max((b.offset + b.bytes for b in kernel.shared if b.offset is not None), default=0)
    placed = dict[str, ir.Buffer]()
    for b in kernel.shared:
        if b.offset is None:
            placed[b.name] = b.replace(offset=-(-end // ALIGNMENT) * ALIGNMENT)
            end = -(-end // ALIGNMENT) * ALIGNMENT + b.bytes
    return with_buffers(kernel, placed) if placed else kernel


# ---------------------------------------------------------------- splitting


class _Splitting:
    """Splits a kernel at its barriers. regions: in program order."""

    def __init__(self, kernel: ir.Kernel) -> None:
        self.written = {b for s in ir.statements(kernel.body) for b, writes in ir.touched(s) if writes}
        self.taken = {b.name for b in kernel.buffers} | set(_bound(kernel.body)) | {v.name for v in (*ir.BLOCK, ir.THREAD)}
        self.regions: list[Region] = []

    def block(self, stmt: ir.Stmt, lets: Lets) -> ir.Stmt:
        """A statement that all threads reach, split into regions. lets: the names in scope, which are recomputed in each
        region that uses them."""
        if not _has_barrier(stmt):
            return self.region([stmt], lets)
        match stmt:
            case ir.Seq(body):
                return self.sequence(body, lets)
            case ir.For(extent=extent, body=body):
                return stmt.replace(extent=_expanded(self.lasting(extent), lets), body=self.block(body, lets))
            case ir.If(condition, then, otherwise):
                other = None if otherwise is None else self.block(otherwise, lets)
                return stmt.replace(condition=_expanded(condition, lets), then=self.block(then, lets), otherwise=other)
            case _:
                return ir.Seq(())

    def region(self, stmts: Sequence[ir.Stmt], lets: Lets) -> Region:
        """Statements without a barrier between them, preceded by the Lets that they need."""
        wanted, needed = _mentioned(stmts), list[ir.Let]()
        for let in reversed(lets):
            if let.var in wanted:
                wanted |= free(let.value)
                needed.insert(0, let)
        self.regions.append(Region(ir.Seq((*needed, *stmts)), len(self.regions)))
        return self.regions[-1]

    def sequence(self, stmts: Iterable[ir.Stmt], lets: Lets) -> ir.Stmt:
        """Statements in order; those between two barriers form one region."""
        out, run = list[ir.Stmt](), list[ir.Stmt]()
        for stmt in stmts:
            if isinstance(stmt, ir.Let):
                lets = (*lets, stmt.replace(value=self.lasting(stmt.value)))
            elif _has_barrier(stmt):
                out += [self.region(run, lets)] if run else []
                out.append(self.block(stmt, lets))
                run = []
            else:
                run.append(stmt)
        out += [self.region(run, lets)] if run else []
        return ir.Seq(tuple(s for s in out if s != ir.Seq(())))

    def lasting(self, value: Expr) -> Expr:
        """A value that is the same at any later point. Raises InternalError if the kernel may change it."""
        if any(load.buffer in self.written or load.buffer.memory == "register" for load in ir.loads(value)):
            raise InternalError(f"{value} may change before it is used")
        return value


def _bound(stmt: ir.Stmt) -> Iterator[str]:
    """The names that a statement binds, itself or inside."""
    return (s.var.name for s in ir.statements(stmt) if isinstance(s, (ir.For, ir.Let)))


def _mentioned(stmts: Iterable[ir.Stmt]) -> frozenset[Var]:
    """The names that statements use."""
    return frozenset(v for stmt in stmts for s in ir.statements(stmt) for e in ir.expressions(s) for v in free(e))


def _expanded(e: Expr, lets: Lets) -> Expr:
    """An expression with names replaced by their values."""
    for let in reversed(lets):
        e = substitute(e, {let.var: let.value})
    return e


def _substituted(stmt: ir.Stmt, mapping: dict[Var, Expr]) -> ir.Stmt:
    made: ir.Stmt = ir.map_expressions(stmt, lambda e: substitute(e, mapping))
    return made


# ---------------------------------------------------------------- loops over threads


@dataclasses.dataclass(frozen=True)
class _Loops:
    """Wraps each region in a loop over the threads that have an effect in it. name: of the loop variable; element: of the
    variable if the loop is over the stored elements."""

    threads: int
    crossing: Crossing
    widths: dict[ir.Buffer, int]
    name: str
    element: str

    def kernel(self, tree: ir.Stmt) -> ir.Stmt:
        """The whole body, after stores of zeros to the arrays that need a value at the start."""
        start = tuple(zeros(self.crossing.zeroed, self.crossing.arrays, thread_of(self.threads)))
        first = self.looped(ir.Seq(start), (0, self.threads)) if start else None
        return ir.seq(first, self.statement(tree))

    def statement(self, stmt: ir.Stmt) -> ir.Stmt:
        match stmt:
            case Region():
                return self.region(stmt)
            case ir.Seq(body):
                return ir.seq(*map(self.statement, body))
            case ir.For(body=body):
                return stmt.replace(body=self.statement(body))
            case _:
                assert isinstance(stmt, ir.If)
                other = None if stmt.otherwise is None else self.statement(stmt.otherwise)
                return stmt.replace(then=self.statement(stmt.then), otherwise=other)

    def region(self, region: Region) -> ir.Stmt:
        """A region in its loop: fills its private copies, does its work, and stores the values that live on."""
        places, arrays, thread = self.crossing.places[region.number], self.crossing.arrays, thread_of(self.threads)
        active = _active(region.body, (0, self.threads), places.kept)
        if active[0] >= active[1]:
            return ir.Seq(())
        work = redirected(region.body, {b: arrays[b] for b in places.direct}, thread)
        before = fills(places.filled, arrays, self.widths, thread)
        behind = stores(places.stored, arrays, self.widths, thread)
        return self.looped(ir.Seq((*before, *ir.parts(work), *behind)), active)

    def looped(self, body: ir.Stmt, active: Range) -> ir.Stmt:
        """The statements, executed for one thread after another."""
        first, count = active[0], active[1] - active[0]
        var = Var(self.name, INDEX, 0, count - 1)
        number: Expr = index(first) if count == 1 else simplify(var + first)
        mapping = {v: number for v in _mentioned([body]) if is_thread(v)}
        if count == self.threads:
            return self.over(var, _substituted(body, mapping))
        body = _decided(ir.map_expressions(body, lambda e: simplify(substitute(e, mapping))))
        return body if count == 1 else self.over(var, body)

    def over(self, var: Var, body: ir.Stmt) -> ir.Stmt:
        """A loop over threads, or over the elements that they store."""
        return collapsed(ir.For(var, index(1 + (var.upper or 0)), body, "threads"), self.element)


def _decided(stmt: ir.Stmt) -> ir.Stmt:
    """A statement with the conditions that are constant resolved."""
    match stmt:
        case ir.If(condition, then, otherwise) if condition is TRUE or condition is FALSE:
            chosen = then if condition is TRUE else otherwise
            return ir.Seq(()) if chosen is None else _decided(chosen)
        case _:
            return stmt.map_children(lambda c: _decided(c) if isinstance(c, ir.Stmt) else c)


def _active(stmt: ir.Stmt, among: Range, kept: Buffers) -> Range:
    """The range of threads for which a statement has an effect. kept: the registers that outlive it."""
    match stmt:
        case ir.Let() | ir.Store(buffer=ir.Buffer(memory="register")) if (
            not isinstance(stmt, ir.Store) or stmt.buffer not in kept
        ):
            return NOBODY
        case ir.Seq(body):
            return _hull(_active(s, among, kept) for s in body)
        case ir.For(extent=extent, body=body):
            return NOBODY if isinstance(extent, Const) and extent.value <= 0 else _active(body, among, kept)
        case ir.If(condition, then, otherwise):
            others = NOBODY if otherwise is None else _active(otherwise, among, kept)
            return _hull((_active(then, _where(condition, among), kept), others))
        case _:
            return among


def _where(condition: Expr, among: Range) -> Range:
    """The range of the threads for which a condition may hold."""
    for part in conjuncts(condition):
        names = free(part)
        if names and all(map(is_thread, names)) and among[0] < among[1]:
            numbers = np.arange(*among)
            try:
                holds = np.flatnonzero(evaluate(part, dict.fromkeys(names, numbers)))
            except Opaque:
                continue
            among = (among[0] + int(holds[0]), among[0] + int(holds[-1]) + 1) if holds.size else NOBODY
    return among


def _hull(ranges: Iterable[Range]) -> Range:
    some = [r for r in ranges if r[0] < r[1]]
    return (min(r[0] for r in some), max(r[1] for r in some)) if some else NOBODY
