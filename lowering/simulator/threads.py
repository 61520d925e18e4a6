"""Executes kernel IR for the threads of a batch of blocks, in lockstep under masks, with a device's types."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from tilelang.core.expr import Expr, Select, Var, free
from tilelang.core.layout import evaluate as evaluate_index
from tilelang.lowering import ir
from tilelang.lowering.simulator import instruction_groups
from tilelang.lowering.simulator import scalar_semantics as scalar
from tilelang.lowering.simulator.batch import Mask, Touch
from tilelang.lowering.simulator.copy_queue import CopyQueue, Part
from tilelang.lowering.simulator.definedness import Partly
from tilelang.lowering.simulator.findings import Site
from tilelang.lowering.simulator.lifetimes import Lifetimes
from tilelang.lowering.simulator.memory_model import Memory
from tilelang.lowering.simulator.scalar_semantics import Value
from tilelang.lowering.simulator.shadow_memory import Rows
from tilelang.lowering.simulator.values import Access, Sides, Values

Array = npt.NDArray[Any]


class Threads(Values):
    """The threads of one batch, executing statements under masks."""

    statements: ClassVar[dict[type, Callable[[Any, Any, Mask], None]]] = {}

    def __init__(self, memory: Memory, sites: dict[tuple[int, Any], Site], early: Callable[[], bool]) -> None:
        super().__init__(memory, sites)
        self._early = early
        self.lifetimes = Lifetimes()
        self.queues: dict[str, CopyQueue] = {}
        self._mine = self.batch.all  # the threads that synchronize at a barrier
        self._sides: dict[int, Sides] = {}  # by the id of an `if`
        self._stores: dict[int, _Store] = {}  # by the id of a store
        # The indices of regions, by their expressions and the ids of the values of their variables. The values are kept with them, so
        # that no other array gets the same id.
        self._regions: dict[tuple[Any, ...], tuple[list[Value], list[Array]]] = {}

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
        index_type, name = scalar.compute_numpy(stmt.var.type), stmt.var.name
        tick = self.recorder.tick
        for number in range(rounds):
            if tick is not None:
                tick()
            self._vars[name], self._numbers[name] = index_type.type(number), number
            inside = mask if uniform else mask.narrow(extent > number)
            self.lifetimes.begin(stmt, self.memory, inside)
            yield stmt.body, inside

    def _branches(self, stmt: ir.If, mask: Mask) -> Iterator[tuple[ir.Stmt, Mask]]:
        """The branches of an `if`, each with the threads that take it."""
        sides = self._sides.get(id(stmt))
        if sides is None:
            sides = self._sides[id(stmt)] = Sides(self, stmt.condition)
        condition, then, otherwise = sides.of(mask)
        if type(condition) is Partly:
            condition = self._reported(condition, mask, "a condition")
            then, otherwise = mask.narrow(condition), mask.narrow(np.logical_not(condition))
        if id(stmt) in self.lifetimes.refills and then.threads.size:
            self.lifetimes.refill(stmt, 0, self.memory, then)
        yield stmt.then, then
        if stmt.otherwise is not None:
            yield stmt.otherwise, otherwise

    def _for(self, stmt: ir.For, mask: Mask) -> None:
        for body, inside in self._rounds(stmt, mask):
            self.execute(body, inside)

    def _if(self, stmt: ir.If, mask: Mask) -> None:
        for branch, inside in self._branches(stmt, mask):
            self.execute(branch, inside)

    def _let(self, stmt: ir.Let, mask: Mask) -> None:
        self.bind(stmt.var.name, self.evaluate(stmt.value, mask))

    def _store(self, stmt: ir.Store, mask: Mask) -> None:
        plan = self._stores.get(id(stmt))
        if plan is None:
            plan = self._stores[id(stmt)] = _Store(self, stmt)
        if plan.merged is not None:
            mask = mask.narrow(self.defined(plan.merged, mask, "a condition"))
            if not mask.threads.size:
                return
        stmt, memory = plan.stmt, self.memory
        if stmt.count is None:
            place, at = plan.access.find(mask)
            value = plan.value(mask)
        else:
            place, at = None, plan.access.at(mask)
            count = self.defined(stmt.count, mask, "a count")
            value = plan.value(_leading(mask, count, plan.lanes))
        site = plan.access.site("store", "store")
        if type(place) is Rows and type(value) is not Partly and place.are_plain(plan.storage):
            place.set(plan.storage, value)
            return
        if type(place) is not Touch:
            at = plan.access.at(mask) if at is None else at
            number = None if stmt.count is None else count
            place = memory.locate(stmt.buffer, at, plan.lanes, number, mask, site, stmt.across)
        memory.store(stmt, place, value, plan.lanes, site)

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
        for known in (self._code, self._sides, self._stores, self._regions):  # which refer to these threads
            known.clear()

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

    def _region(
        self, indices: tuple[Expr, ...], over: tuple[Var, ...], stmt: ir.Instruction, name: str, mask: Mask
    ) -> list[Array]:
        """The indices of all elements of a region, (threads or 1, elements)."""
        shape, inside = stmt.semantics.operand(name).shape, set(over)
        given = {v: self.defined(v, mask) for i in indices for v in free(i) if v not in inside}
        key = (indices, over, shape, *[value.item() if not value.ndim else id(value) for value in given.values()])
        kept = self._regions.get(key)
        if kept is None:
            values: dict[Expr, Any] = dict(zip(over, _grids(shape), strict=True))
            values |= {v: np.reshape(value, (-1, 1)) for v, value in given.items()}
            kept = list(given.values()), [np.atleast_2d(evaluate_index(i, values)) for i in indices]
            self._room -= sum(found.size for found in kept[1])
            if self._room >= 0:
                self._regions[key] = kept
        return kept[1]


@functools.lru_cache(maxsize=64)
def _grids(shape: tuple[int, ...]) -> Array:
    """The coordinates of all elements of a shape, (rank, 1, elements)."""
    return np.indices(shape).reshape(len(shape), 1, -1)


class _Store:
    """How a store is executed. merged: the condition under which lanes of a vector register change; the others are not read."""

    def __init__(self, threads: Threads, stmt: ir.Store) -> None:
        self.merged: Expr | None = None
        match stmt.value:
            case Select(condition, then, ir.Load(stmt.buffer, stmt.indices, count=None)) if _is_merge(stmt, then):
                self.merged, stmt = condition, stmt.replace(value=then)
            case _:
                pass
        self.stmt, self.lanes, self.value = stmt, ir.lanes(stmt.value), threads.code(stmt.value)
        self.storage = threads.memory.storage[stmt.buffer.name]
        self.access = Access(threads, stmt.buffer, stmt.indices, self.lanes, stmt.across)


def _is_merge(stmt: ir.Store, then: Expr) -> bool:
    """Whether a store to registers keeps the old value in lanes where its condition does not hold."""
    return stmt.buffer.memory == "register" and ir.lanes(then) == ir.lanes(stmt.value)


def _leading(mask: Mask, count: Value, lanes: int) -> Mask:
    """The mask without lanes `count` and above, whose values are not stored."""
    exists: Value = np.arange(lanes) < count.reshape(-1, 1)
    return mask.narrow(np.broadcast_to(exists, (mask.flags.size, lanes)))


Threads.statements = {
    ir.Seq: Threads._seq, ir.For: Threads._for, ir.If: Threads._if, ir.Let: Threads._let, ir.Store: Threads._store,
    ir.Barrier: Threads._barrier, ir.Prefetch: Threads._prefetch, ir.Copy: Threads._copy, ir.Commit: Threads._commit,
    ir.Wait: Threads._wait, ir.Fence: Threads._fence, ir.Instruction: Threads._instruction,
}  # fmt: skip
