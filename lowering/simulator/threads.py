"""Executes kernel IR for the threads of a batch of blocks, in lockstep under masks, with a device's types."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from tilelang.core.expr import Binary, Call, Cast, Const, Expr, Select, Unary, Var, free, index
from tilelang.core.layout import evaluate as evaluate_index
from tilelang.lowering import ir, printer
from tilelang.lowering.simulator import definedness, instruction_groups
from tilelang.lowering.simulator import scalar_semantics as scalar
from tilelang.lowering.simulator.batch import Mask, Touch
from tilelang.lowering.simulator.copy_queue import CopyQueue, Part
from tilelang.lowering.simulator.definedness import Known, Partly
from tilelang.lowering.simulator.findings import Site
from tilelang.lowering.simulator.lifetimes import Lifetimes
from tilelang.lowering.simulator.memory_model import Memory
from tilelang.lowering.simulator.scalar_semantics import Value

Array = npt.NDArray[Any]

_GEOMETRY = frozenset(("thread", *(v.name for v in ir.BLOCK)))


class Threads:
    """The threads of one batch, executing statements under masks."""

    statements: ClassVar[dict[type, Callable[[Any, Any, Mask], None]]] = {}

    def __init__(self, memory: Memory, sites: dict[tuple[int, Any], Site], early: Callable[[], bool]) -> None:
        self.memory, self.batch, self.recorder = memory, memory.batch, memory.recorder
        self._early = early
        self.lifetimes = Lifetimes()
        self.queues: dict[str, CopyQueue] = {}
        self._mine = self.batch.all  # the threads that synchronize at a barrier
        self._sites = sites
        self._statement: ir.Stmt = memory.batch.kernel.body
        self._vars: dict[str, Known] = {"thread": self.batch.thread}
        for var, number in zip(ir.BLOCK, self.batch.block_index(self.batch.block), strict=True):
            self._vars[var.name] = number
        self._fixed: dict[Expr, Value] = {}  # values that depend only on the thread and block indices

    # ------------------------------------------------------------ expressions

    def evaluate(self, expr: Expr, mask: Mask) -> Known:
        """The value of an expression in the active threads; unspecified in the others."""
        value = self._fixed.get(expr)
        if value is not None:
            return value
        if not _depends_on_geometry_alone(expr):
            return EVALUATE[type(expr)](self, expr, mask)
        value = self._fixed[expr] = EVALUATE[type(expr)](self, expr, self.batch.all)
        return value

    def defined(self, expr: Expr, mask: Mask, use: str = "an index") -> Value:
        """An expression that must be defined (a condition, index or count); reports undefined elements, which become 0."""
        value = self.evaluate(expr, mask)
        if type(value) is not Partly:
            return value
        flags = mask.flags if value.value.ndim == 1 else mask.flags[:, None] if mask.lanes is None else mask.lanes
        marks = np.broadcast_to(np.where(flags, value.marks, 0), np.broadcast_shapes(value.value.shape, flags.shape))
        where = np.nonzero(marks)
        site = self._site("use", "", "use")
        self.memory.report_undefined(marks[where], where[0], f"is part of {use} in {site}")
        return np.where(value.marks, np.zeros((), value.value.dtype), value.value)

    def _const(self, expr: Const, mask: Mask) -> Value:
        return scalar.constant(expr)

    def _var(self, expr: Var, mask: Mask) -> Known:
        return self._vars[expr.name]

    def _binary(self, expr: Binary, mask: Mask) -> Known:
        left = self.evaluate(expr.left, mask)
        if expr.op in ("and", "or"):
            return self._logical(expr, left, mask)
        right = self.evaluate(expr.right, mask)
        return definedness.binary(expr.op, left, right)

    def _logical(self, expr: Binary, left: Known, mask: Mask) -> Known:
        decided = definedness.plain(left)
        open_ = decided if expr.op == "and" else np.logical_not(decided)
        needed = mask.narrow(open_)
        if not needed.threads.size:
            return left
        both = definedness.binary(expr.op, left, self.evaluate(expr.right, needed))
        return both if type(both) is not Partly else definedness.select(open_, both, left)

    def _unary(self, expr: Unary, mask: Mask) -> Known:
        return definedness.unary(expr.op, self.evaluate(expr.operand, mask))

    def _call(self, expr: Call, mask: Mask) -> Known:
        return definedness.call(expr.name, self.evaluate(expr.args[0], mask))

    def _cast(self, expr: Cast, mask: Mask) -> Known:
        return definedness.cast(self.evaluate(expr.operand, mask), expr.operand.dtype, expr.type)

    def _select(self, expr: Select, mask: Mask) -> Known:
        condition = self.evaluate(expr.condition, mask)
        decided = definedness.plain(condition)
        yes, no = mask.narrow(decided), mask.narrow(np.logical_not(decided))
        if type(condition) is not Partly:
            if not no.threads.size:
                return self.evaluate(expr.then, yes)
            if not yes.threads.size:
                return self.evaluate(expr.otherwise, no)
        return definedness.select(condition, self.evaluate(expr.then, yes), self.evaluate(expr.otherwise, no))

    def _load(self, expr: ir.Load, mask: Mask) -> Known:
        if not mask.threads.size:
            return scalar.zero(expr.dtype)
        by_thread = mask.by_thread
        indices = [self.defined(i, by_thread) for i in expr.indices]
        count = None if expr.count is None else self.defined(expr.count, by_thread, "a count")
        site = self._site(expr, expr.buffer.name, "load")
        if mask.lanes is not None and expr.lanes > 1:
            # The device makes one access: lanes whose value is not used are loaded too, and must exist.
            unused = by_thread.narrow(~mask.lanes)
            self.memory.locate(expr.buffer, indices, expr.lanes, count, unused, site, expr.across)
        return self.memory.load(expr, indices, count, mask, site)

    def _ramp(self, expr: ir.Ramp, mask: Mask) -> Known:
        base = self.evaluate(expr.base, mask.by_thread)
        numbers = definedness.plain(base).reshape(-1, 1)
        ramp = numbers + np.arange(expr.lanes, dtype=numbers.dtype)
        return Partly(ramp, base.marks.reshape(-1, 1)) if type(base) is Partly else ramp

    def _before_line(self, expr: ir.BeforeLine, mask: Mask) -> Value:
        """Assumes that every array starts 16 bytes past a cache line, as NumPy's large ones do."""
        return scalar.constant(index(max(0, expr.line_bytes - 16) // expr.buffer.dtype.bytes))

    def _pack(self, expr: ir.Pack, mask: Mask) -> Known:
        items = [self.evaluate(item, mask.lane(number)) for number, item in enumerate(expr.items)]
        return definedness.rearranged(items, lambda each: np.stack(np.broadcast_arrays(*map(np.atleast_1d, each)), axis=1))

    def _shuffle(self, expr: ir.Shuffle, mask: Mask) -> Known:
        pair = [self.evaluate(e, mask.by_thread) for e in (expr.first, expr.second)]

        def chosen(each: Sequence[Any]) -> Any:
            both = np.broadcast_arrays(*map(np.atleast_2d, each))
            return np.concatenate(both, axis=1)[:, list(expr.numbers)]

        return definedness.rearranged(pair, chosen)

    def _site(self, key: Any, buffer: str, access: str) -> Site:
        """The access that `key` (an expression or a role) makes in the current statement."""
        stmt = self._statement
        site = self._sites.get((id(stmt), key))
        if site is None:
            text = str(key) if isinstance(key, Expr) else printer.headline(stmt)
            span = getattr(stmt, "span", None)
            site = self._sites[id(stmt), key] = self.recorder.site(self.batch.kernel.name, buffer, access, text, span, stmt)
        return site

    # ------------------------------------------------------------ statements

    def execute(self, stmt: ir.Stmt, mask: Mask) -> None:
        """Runs a statement in the active threads."""
        if mask.threads.size:
            self._statement = stmt
            self.statements[type(stmt)](self, stmt, mask)

    def _seq(self, stmt: ir.Seq, mask: Mask) -> None:
        if id(stmt) in self.lifetimes.refills:
            for number, child in enumerate(stmt.body):
                self.lifetimes.refill(stmt, number, self.memory, mask)
                self.execute(child, mask)
            return
        for child in stmt.body:
            self.execute(child, mask)

    def _rounds(self, stmt: ir.For, mask: Mask) -> Iterator[tuple[ir.Stmt, Mask]]:
        """The loop body once per iteration, with the threads that run it."""
        extent = self.defined(stmt.extent, mask, "the extent of a loop")
        rounds = int(extent[mask.threads].max() if extent.ndim else extent)
        uniform = not extent.ndim or bool((extent[mask.threads] == rounds).all())
        index_type = scalar.compute_numpy(stmt.var.type)
        tick = self.recorder.tick
        for number in range(rounds):
            if tick is not None:
                tick()
            self._vars[stmt.var.name] = index_type.type(number)
            inside = mask if uniform else mask.narrow(extent > number)
            self.lifetimes.begin(stmt, self.memory, inside)
            yield stmt.body, inside

    def _branches(self, stmt: ir.If, mask: Mask) -> Iterator[tuple[ir.Stmt, Mask]]:
        """The branches of an `if`, each with the threads that take it."""
        condition = self.defined(stmt.condition, mask, "a condition")
        then = mask.narrow(condition)
        if id(stmt) in self.lifetimes.refills and then.threads.size:
            self.lifetimes.refill(stmt, 0, self.memory, then)
        yield stmt.then, then
        if stmt.otherwise is not None:
            yield stmt.otherwise, mask.narrow(np.logical_not(condition))

    def _for(self, stmt: ir.For, mask: Mask) -> None:
        for body, inside in self._rounds(stmt, mask):
            self.execute(body, inside)

    def _if(self, stmt: ir.If, mask: Mask) -> None:
        for branch, inside in self._branches(stmt, mask):
            self.execute(branch, inside)

    def _let(self, stmt: ir.Let, mask: Mask) -> None:
        self._vars[stmt.var.name] = self.evaluate(stmt.value, mask)

    def _store(self, stmt: ir.Store, mask: Mask) -> None:
        match stmt.value:
            case Select(condition, then, ir.Load(stmt.buffer, stmt.indices, count=None)) if _is_merge(stmt, then):
                # A masked store keeps some lanes of a vector register; those are not read.
                mask = mask.narrow(self.defined(condition, mask, "a condition"))
                stmt = stmt.replace(value=then)
                if not mask.threads.size:
                    return
            case _:
                pass
        indices = [self.defined(i, mask) for i in stmt.indices]
        count = None if stmt.count is None else self.defined(stmt.count, mask, "a count")
        value = self.evaluate(stmt.value, mask if count is None else _leading(mask, count, ir.lanes(stmt.value)))
        self.memory.store(stmt, indices, value, count, mask, self._site("store", stmt.buffer.name, "store"))

    def _barrier(self, stmt: ir.Barrier, mask: Mask) -> None:
        arrived = mask.flags.reshape(self.batch.blocks, -1)
        some, every = arrived.any(axis=1), arrived.all(axis=1)
        for memory in stmt.memory:
            self.batch.epochs[memory][some] += 1
        for block in np.flatnonzero(some & ~every):
            site = self._site("barrier", "", "barrier")
            missing = np.flatnonzero(~arrived[block])[:1] + block * self.batch.kernel.threads
            there = int(np.flatnonzero(arrived[block])[0])
            text = f"does not reach this barrier, which thread {there} does"
            self.memory.report_threads("divergent-barrier", missing, site, text)

    def _prefetch(self, stmt: ir.Prefetch, mask: Mask) -> None:
        pass

    def _copy(self, stmt: ir.Copy, mask: Mask) -> None:
        site, from_site = self._site("to", stmt.target.name, "copy to"), self._site("from", stmt.source.name, "copy from")
        target = [self.defined(i, mask) for i in stmt.target_indices]
        source = [self.defined(i, mask) for i in stmt.source_indices]
        count = None if stmt.count is None else self.defined(stmt.count, mask, "a count")
        if count is not None and (beyond := mask.narrow((count < 0) | (count > stmt.lanes))).threads.size:
            text = f"the count of elements is outside 0..{stmt.lanes}"
            self.memory.report_threads("instruction-operand", beyond.threads, from_site, text)
        written = self.memory.locate(stmt.target, target, stmt.lanes, None, mask, site, stmt.across)
        read = self.memory.locate(stmt.source, source, stmt.lanes, count, mask, from_site, stmt.across)
        if stmt.by is not None and (together := stmt.by.operand(stmt.by.writes).neighbours):
            self._check_neighbours(written, stmt.lanes, together, site)
        self.queue("").copy(Part(stmt.target, written, site), Part(stmt.source, read, from_site), stmt.lanes)

    def _check_neighbours(self, written: Touch, lanes: int, together: int, site: Site) -> None:
        """Reports threads whose writes do not directly follow those of the threads with which they issue a copy, as it requires."""
        batch, first = self.memory.batch, written.lane == 0
        thread = written.thread[first]
        begin = written.element[first] - batch.thread[thread] % together * lanes
        _, wave = np.unique(np.stack([batch.block[thread], batch.thread[thread] // together]), axis=1, return_inverse=True)
        highest = np.full(thread.size, np.iinfo(np.int64).min)
        np.maximum.at(highest, wave, begin)
        wrong = thread[begin != highest[wave]]
        if wrong.size:
            self.memory.report_threads("instruction-operand", wrong, site, "does not write behind its neighbours")

    def queue(self, name: str) -> CopyQueue:
        """The copies of these threads, or their instructions of one family, in commit groups."""
        return self.queues.setdefault(name, CopyQueue(self.memory, self._early))

    def finish(self) -> None:
        """The threads have ended: reports copies that were never waited for."""
        for queue in self.queues.values():
            queue.finish()

    def _commit(self, stmt: ir.Commit, mask: Mask) -> None:
        self.queue(stmt.queue).commit(mask)

    def _fence(self, stmt: ir.Fence, mask: Mask) -> None:
        if stmt.memory == "shared":
            self.memory.publish(mask)

    def _wait(self, stmt: ir.Wait, mask: Mask) -> None:
        self.queue(stmt.queue).wait(stmt.pending, mask)

    def _instruction(self, stmt: ir.Instruction, mask: Mask) -> None:
        first = {
            name: self._region(indices, region.variables, stmt, name, mask)
            if (region := stmt.region(name)) is not None
            else [self.defined(i, mask) for i in indices]
            for name, _, indices in stmt.operands
        }
        queue = self.queue(getattr(stmt.semantics, "family", ""))
        instruction_groups.execute(stmt, first, mask, self.memory, queue, self._site, self.signalling(stmt, mask))

    def signalling(self, stmt: ir.Instruction, mask: Mask) -> instruction_groups.Send | None:
        """A function that starts the copy of an instruction that signals a barrier."""
        return None

    def _region(self, indices: Sequence[Expr], over: Sequence[Var], stmt: ir.Instruction, name: str, mask: Mask) -> list[Array]:
        """The indices of all elements of a region, (threads or 1, elements)."""
        values: dict[Expr, Any] = dict(zip(over, _grids(stmt.semantics.operand(name).shape), strict=True))
        for v in (v for i in indices for v in free(i) if v not in values):
            values[v] = np.reshape(self.defined(v, mask), (-1, 1))
        return [np.atleast_2d(evaluate_index(i, values)) for i in indices]


@functools.lru_cache(maxsize=64)
def _grids(shape: tuple[int, ...]) -> Array:
    """The coordinates of all elements of a shape, (rank, 1, elements)."""
    return np.indices(shape).reshape(len(shape), 1, -1)


def _is_merge(stmt: ir.Store, then: Expr) -> bool:
    """Whether a store to registers keeps the old value in lanes where its condition does not hold."""
    return stmt.buffer.memory == "register" and ir.lanes(then) == ir.lanes(stmt.value)


def _leading(mask: Mask, count: Value, lanes: int) -> Mask:
    """The mask without lanes `count` and above, whose values are not stored."""
    exists: Value = np.arange(lanes) < count.reshape(-1, 1)
    return mask.narrow(np.broadcast_to(exists, (mask.flags.size, lanes)))


_GEOMETRY_ALONE: dict[Expr, bool] = {}


def _depends_on_geometry_alone(expr: Expr) -> bool:
    """Whether a value depends only on the thread and block indices."""
    found = _GEOMETRY_ALONE.get(expr)
    if found is None:
        found = _GEOMETRY_ALONE[expr] = all(_is_geometry(e) for e in expr.walk())
    return found


def _is_geometry(expr: Any) -> bool:
    return expr.name in _GEOMETRY if isinstance(expr, Var) else not isinstance(expr, ir.Load)


EVALUATE: dict[type, Callable[[Threads, Any, Mask], Known]] = {
    Const: Threads._const, Var: Threads._var, Binary: Threads._binary, Unary: Threads._unary, Call: Threads._call,
    Cast: Threads._cast, Select: Threads._select, ir.Load: Threads._load, ir.Ramp: Threads._ramp, ir.Pack: Threads._pack,
    ir.Shuffle: Threads._shuffle,
    ir.BeforeLine: Threads._before_line,
}  # fmt: skip


Threads.statements = {
    ir.Seq: Threads._seq, ir.For: Threads._for, ir.If: Threads._if, ir.Let: Threads._let, ir.Store: Threads._store,
    ir.Barrier: Threads._barrier, ir.Prefetch: Threads._prefetch, ir.Copy: Threads._copy, ir.Commit: Threads._commit,
    ir.Wait: Threads._wait, ir.Fence: Threads._fence, ir.Instruction: Threads._instruction,
}  # fmt: skip
