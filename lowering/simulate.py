"""Runs kernel IR for every thread of every block in NumPy, with a device's types, and reports what a device would not.

It needs no device and no particular pass: a vector or unroll loop runs as a loop, lanes run as lanes. Threads of the blocks of a
batch run in lockstep; a value is a scalar (equal in all threads), an array over threads, or one over (threads, lanes). Control flow
is masks, per lane where a condition has lanes: nobody touches memory in a branch that is not taken, except that a load of several
lanes, of which one is taken, must have all of them in bounds.

What it reports: findings.KINDS. The report of a correct program is empty, whatever the order of asynchronous copies.
"""

from __future__ import annotations

import dataclasses
import math
import random
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from tilelang.errors import ComputationError
from tilelang.expr import Binary, Call, Cast, Const, Expr, Select, Unary, Var, unique
from tilelang.lowering import instruction_groups, ir, printer
from tilelang.lowering import scalar_semantics as scalar
from tilelang.lowering.copy_queue import CopyQueue, Part
from tilelang.lowering.findings import AccessCount, Finding, Recorder, Site, summary
from tilelang.lowering.memory_model import Batch, Device, Mask, Memory, Watched, blocks_together
from tilelang.lowering.scalar_semantics import Value
from tilelang.lowering.shadow_memory import Shadow, poison
from tilelang.machine import Profile
from tilelang.simplify import interval

Array = npt.NDArray[Any]
MOST_EXECUTIONS = 2_000_000  # statements, each for one batch of blocks, that are run where nothing else is said


@dataclasses.dataclass(frozen=True)
class Report:
    """What a run gave. `counts` has all findings by kind, `findings` the first few of them.

    transactions: per global access, the warps that issued it and the transactions they caused. conflicts: per shared access, the
    warps that issued it and the extra phases by bank conflicts.
    """

    outputs: dict[str, Array]
    findings: tuple[Finding, ...]
    counts: dict[str, int]
    transactions: tuple[AccessCount, ...]
    conflicts: tuple[AccessCount, ...]

    def __str__(self) -> str:
        return summary(self.counts, self.findings)


def run(
    program: ir.Program,
    arrays: Mapping[str, Array],
    *,
    warp: int = 32,
    banks: int = 32,
    bank_bytes: int = 4,
    transaction_bytes: int = 128,
    order: str | int = "early",
    watch: Callable[[Watched], None] | None = None,
) -> Report:
    """Runs the kernels of a program in order over the input arrays (by buffer name).

    order: when asynchronous copies land: all "early" (at their issue), all "late" (at their wait), or each by a coin of this seed.
    watch: is given each access to global and shared memory, one statement and one batch of blocks at a time; it may end the run by
    an exception of its own.
    Raises ComputationError where an input is missing or has another shape than its buffer.
    """
    if order not in ("early", "late") and not isinstance(order, int):
        raise ComputationError("order", f"order={order!r} says not when copies land", mend='order="early", "late", or a seed')
    device = Device(warp, banks, bank_bytes, transaction_bytes)
    recorder = Recorder(watch)
    memory = {b.name: _global_data(b, arrays) for b in program.buffers}
    owners = {b.name: np.full(b.elements, int(b.role == "input"), np.int16) for b in program.buffers}
    with np.errstate(all="ignore"):
        for kernel in program.kernels:
            _launch(kernel, memory, owners, device, recorder, order)
    outputs = [b for b in program.buffers if b.role == "output"]
    for b in outputs:
        _report_unwritten(b, owners[b.name], recorder)
    return Report(
        {b.name: memory[b.name].reshape(b.shape) for b in outputs},
        tuple(recorder.findings.kept),
        dict(recorder.findings.counts),
        recorder.transactions.result(),
        recorder.conflicts.result(),
    )


def device_numbers(profile: Profile) -> dict[str, Any]:
    """What `run` takes from a device's profile, by argument."""
    shared, memory = profile.memory("shared"), profile.memory("global")
    return {
        "warp": max(1, profile.warp_size),
        "banks": shared.banks or 32,
        "bank_bytes": shared.bank_bytes,
        "transaction_bytes": memory.transaction_bytes or 128,
    }


def executions(program: ir.Program, watched: int | None = None) -> int:
    """At most how many statements `run` executes, each for one batch of blocks, as far as the ends of loops are known.

    watched: loops that touch global or shared memory count this many rounds at most, for a watcher that ends the run.
    """
    return sum(_executed(k.body, watched) * -(-math.prod(k.grid) // blocks_together(k)) for k in program.kernels)


def _executed(stmt: ir.Stmt, watched: int | None) -> int:
    rounds = (interval(stmt.extent)[1] or 1) if isinstance(stmt, ir.For) else 1
    if watched is not None and rounds > watched:
        seen = any(b.memory in ("global", "shared") for s in ir.statements(stmt) for b, _ in ir.touched(s))
        rounds = watched if seen else rounds
    return 1 + int(rounds) * sum(_executed(part, watched) for part in ir.parts(stmt))


def check_work(
    program: ir.Program, limit: float | None = None, watched: int | None = None, mend: str = "smaller sizes: --size NAME=VALUE"
) -> None:
    """Refuses programs for which `run` executes more statements than the limit, before anything runs. watched: as for `executions`."""
    count, most = executions(program, watched), MOST_EXECUTIONS if limit is None else limit
    if count > most:
        message = f"{count:,} statements would be simulated, each for some thousand threads; at most {most:,} are"
        raise ComputationError("too-much-to-simulate", message, mend=mend)


def _global_data(buffer: ir.Buffer, arrays: Mapping[str, Array]) -> Array:
    if buffer.role != "input":
        return poison(buffer.elements, buffer.dtype.numpy)
    if buffer.name not in arrays:
        raise ComputationError("arguments", f"there is no array for {buffer.name}", mend=f"pass {buffer.name}=")
    array = np.asarray(arrays[buffer.name])
    if array.shape != buffer.shape:
        raise ComputationError(
            "argument", f"{buffer.name} has shape {array.shape}", mend=f"pass an array of shape {buffer.shape}"
        )
    return array.astype(buffer.dtype.numpy).reshape(-1)  # a copy: a faulty kernel may write to its inputs


def _report_unwritten(buffer: ir.Buffer, owner: Array, recorder: Recorder) -> None:
    missing = np.flatnonzero(owner == 0)
    if not missing.size:
        return
    site = recorder.site("", buffer.name, "store", buffer.name, None)
    for flat in missing[: recorder.findings.room("unwritten-output", site.number, missing.size)]:
        element = tuple(int(i) for i in np.unravel_index(int(flat), buffer.shape)) if buffer.shape else ()
        message = f"no thread wrote {buffer.name}{list(element)}"
        recorder.findings.add(Finding("unwritten-output", buffer.name, element, (), (0, 0, 0), None, message))


def _launch(
    kernel: ir.Kernel, memory: dict[str, Array], owners: dict[str, Array], device: Device, recorder: Recorder, order: str | int
) -> None:
    """One kernel, batch by batch."""
    written = _written(kernel)
    shadows: dict[str, Shadow] = {}
    for b in kernel.arguments:
        # A buffer that this kernel only reads cannot race.
        races = b.name in written and kernel.threads * math.prod(kernel.grid) > 1
        shadows[b.name] = Shadow(b.elements, kernel.threads, tracks_races=races)
        shadows[b.name].owner = owners[b.name]
    blocks, together = math.prod(kernel.grid), blocks_together(kernel)
    sites: dict[tuple[int, Any], Site] = {}
    recorder.patterns.clear()
    coin = random.Random(order) if isinstance(order, int) else None

    def early() -> bool:
        return order == "early" if coin is None else coin.random() < 0.5

    for first in range(0, blocks, together):
        batch = Batch(kernel, first, min(together, blocks - first), device.warp)
        threads = _Threads(Memory(batch, memory, shadows, device, recorder), sites, early)
        threads.execute(kernel.body, batch.all)
        threads.copies.finish()


def _written(kernel: ir.Kernel) -> set[str]:
    names = set()
    for stmt in ir.statements(kernel.body):
        match stmt:
            case ir.Store(buffer=buffer) | ir.Copy(target=buffer):
                names.add(buffer.name)
            case ir.Instruction(operands=operands):
                names.update(buffer.name for _, buffer, _ in operands)
    return names


_GEOMETRY = frozenset(("thread", *(v.name for v in ir.BLOCK)))


class _Threads:
    """The threads of one batch, executing statements under masks."""

    def __init__(self, memory: Memory, sites: dict[tuple[int, Any], Site], early: Callable[[], bool]) -> None:
        self.memory, self.batch, self.recorder = memory, memory.batch, memory.recorder
        self.copies = CopyQueue(memory, early)
        self._sites = sites
        self._statement: ir.Stmt = memory.batch.kernel.body
        self._vars: dict[str, Value] = {"thread": self.batch.thread}
        for var, number in zip(ir.BLOCK, self.batch.block_index(self.batch.block), strict=True):
            self._vars[var.name] = number
        self._fixed: dict[Expr, Value] = {}  # values that the numbers of thread and block fix

    # ------------------------------------------------------------ expressions

    def evaluate(self, expr: Expr, mask: Mask) -> Value:
        """The value of an expression in the active threads; in the others it is anything."""
        value = self._fixed.get(expr)
        if value is not None:
            return value
        if not _depends_on_geometry_alone(expr):
            return _EVALUATE[type(expr)](self, expr, mask)
        value = self._fixed[expr] = _EVALUATE[type(expr)](self, expr, self.batch.all)
        return value

    def _const(self, expr: Const, mask: Mask) -> Value:
        return scalar.constant(expr)

    def _var(self, expr: Var, mask: Mask) -> Value:
        return self._vars[expr.name]

    def _binary(self, expr: Binary, mask: Mask) -> Value:
        left = self.evaluate(expr.left, mask)
        if expr.op in ("and", "or"):
            return self._logical(expr, left, mask)
        right = self.evaluate(expr.right, mask)
        if expr.op in ("//", "%") and expr.dtype.is_integer and not isinstance(expr.right, Const):
            self._check_divisor(expr, right, mask)
        return scalar.binary(expr.op, left, right)

    def _logical(self, expr: Binary, left: Value, mask: Mask) -> Value:
        needed = mask.narrow(left if expr.op == "and" else np.logical_not(left))
        if not needed.threads.size:
            return left
        return scalar.binary(expr.op, left, self.evaluate(expr.right, needed))

    def _check_divisor(self, expr: Binary, right: Value, mask: Mask) -> None:
        guilty = mask.narrow(right == 0)
        if guilty.threads.size:
            site = self._site(expr, "", "compute")
            self.memory.report_threads("division-by-zero", guilty.threads, site, f"`{expr.right}` is 0")

    def _unary(self, expr: Unary, mask: Mask) -> Value:
        return scalar.unary(expr.op, self.evaluate(expr.operand, mask))

    def _call(self, expr: Call, mask: Mask) -> Value:
        return scalar.call(expr.name, self.evaluate(expr.args[0], mask))

    def _cast(self, expr: Cast, mask: Mask) -> Value:
        return scalar.cast(self.evaluate(expr.operand, mask), expr.operand.dtype, expr.type)

    def _select(self, expr: Select, mask: Mask) -> Value:
        condition = self.evaluate(expr.condition, mask)
        yes, no = mask.narrow(condition), mask.narrow(np.logical_not(condition))
        if not no.threads.size:
            return self.evaluate(expr.then, yes)
        if not yes.threads.size:
            return self.evaluate(expr.otherwise, no)
        return scalar.select(condition, self.evaluate(expr.then, yes), self.evaluate(expr.otherwise, no))

    def _load(self, expr: ir.Load, mask: Mask) -> Value:
        if not mask.threads.size:
            return scalar.zero(expr.dtype)
        by_thread = mask.by_thread
        indices = [self.evaluate(i, by_thread) for i in expr.indices]
        count = None if expr.count is None else self.evaluate(expr.count, by_thread)
        site = self._site(expr, expr.buffer.name, "load")
        if mask.lanes is not None and expr.lanes > 1:
            # One access of the device: a lane whose value nobody takes is brought with the others, and must exist.
            self.memory.locate(expr.buffer, indices, expr.lanes, count, by_thread.narrow(~mask.lanes), site)
        return self.memory.load(expr, indices, count, mask, site)

    def _ramp(self, expr: ir.Ramp, mask: Mask) -> Value:
        base = self.evaluate(expr.base, mask.by_thread)
        return base.reshape(-1, 1) + np.arange(expr.lanes, dtype=base.dtype)

    def _pack(self, expr: ir.Pack, mask: Mask) -> Value:
        items = (self.evaluate(item, mask.lane(number)) for number, item in enumerate(expr.items))
        return np.stack(np.broadcast_arrays(*map(np.atleast_1d, items)), axis=1)

    def _site(self, key: Any, buffer: str, access: str) -> Site:
        """The access that `key` (an expression, or a role) makes in the statement being executed."""
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
            _EXECUTE[type(stmt)](self, stmt, mask)

    def _seq(self, stmt: ir.Seq, mask: Mask) -> None:
        for child in stmt.body:
            self.execute(child, mask)

    def _for(self, stmt: ir.For, mask: Mask) -> None:
        extent = self.evaluate(stmt.extent, mask)
        rounds = int(extent[mask.threads].max() if extent.ndim else extent)
        uniform = not extent.ndim or bool((extent[mask.threads] == rounds).all())
        index_type = scalar.compute_numpy(stmt.var.type)
        for number in range(rounds):
            self._vars[stmt.var.name] = index_type.type(number)
            self.execute(stmt.body, mask if uniform else mask.narrow(extent > number))

    def _if(self, stmt: ir.If, mask: Mask) -> None:
        condition = self.evaluate(stmt.condition, mask)
        self.execute(stmt.then, mask.narrow(condition))
        if stmt.otherwise is not None:
            self.execute(stmt.otherwise, mask.narrow(np.logical_not(condition)))

    def _let(self, stmt: ir.Let, mask: Mask) -> None:
        self._vars[stmt.var.name] = self.evaluate(stmt.value, mask)

    def _store(self, stmt: ir.Store, mask: Mask) -> None:
        match stmt.value:
            case Select(condition, then, ir.Load(stmt.buffer, stmt.indices, count=None)) if _is_merge(stmt, then):
                # Some lanes of a vector register are kept: written by a store under a mask, they are not read.
                mask = mask.narrow(self.evaluate(condition, mask))
                stmt = stmt.replace(value=then)
                if not mask.threads.size:
                    return
            case _:
                pass
        indices = [self.evaluate(i, mask) for i in stmt.indices]
        count = None if stmt.count is None else self.evaluate(stmt.count, mask)
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
        target = [self.evaluate(i, mask) for i in stmt.target_indices]
        source = [self.evaluate(i, mask) for i in stmt.source_indices]
        count = None if stmt.count is None else self.evaluate(stmt.count, mask)
        if count is not None and (beyond := mask.narrow((count < 0) | (count > stmt.lanes))).threads.size:
            text = f"the count of elements is outside 0..{stmt.lanes}"
            self.memory.report_threads("instruction-operand", beyond.threads, from_site, text)
        written = self.memory.locate(stmt.target, target, stmt.lanes, None, mask, site)
        read = self.memory.locate(stmt.source, source, stmt.lanes, count, mask, from_site)
        self.copies.copy(Part(stmt.target, written, site), Part(stmt.source, read, from_site), stmt.lanes)

    def _commit(self, stmt: ir.Commit, mask: Mask) -> None:
        self.copies.commit(mask)

    def _wait(self, stmt: ir.Wait, mask: Mask) -> None:
        self.copies.wait(stmt.pending, mask)

    def _instruction(self, stmt: ir.Instruction, mask: Mask) -> None:
        first = {name: [self.evaluate(i, mask) for i in indices] for name, _, indices in stmt.operands}
        instruction_groups.execute(stmt, first, mask, self.memory, self.copies, self._site)


def _is_merge(stmt: ir.Store, then: Expr) -> bool:
    """Whether a store into registers keeps what stands in the lanes where its condition does not hold."""
    return stmt.buffer.memory == "register" and ir.lanes(then) == ir.lanes(stmt.value)


def _leading(mask: Mask, count: Value, lanes: int) -> Mask:
    """The mask without the lanes from `count` on, whose values nobody stores."""
    exists: Value = np.arange(lanes) < count.reshape(-1, 1)
    return mask.narrow(np.broadcast_to(exists, (mask.flags.size, lanes)))


_GEOMETRY_ALONE: dict[Expr, bool] = {}


def _depends_on_geometry_alone(expr: Expr) -> bool:
    """Whether a value is fixed by the numbers of thread and block, and evaluating it cannot go wrong."""
    found = _GEOMETRY_ALONE.get(expr)
    if found is None:
        found = _GEOMETRY_ALONE[expr] = all(_is_geometry(e) for e in unique(expr))
    return found


def _is_geometry(expr: Any) -> bool:
    match expr:
        case Var(name=name):
            return name in _GEOMETRY
        case Binary(op, _, right) if op in ("//", "%"):
            return isinstance(right, Const)
        case _:
            return not isinstance(expr, ir.Load)


_EVALUATE: dict[type, Callable[[_Threads, Any, Mask], Value]] = {
    Const: _Threads._const, Var: _Threads._var, Binary: _Threads._binary, Unary: _Threads._unary, Call: _Threads._call,
    Cast: _Threads._cast, Select: _Threads._select, ir.Load: _Threads._load, ir.Ramp: _Threads._ramp, ir.Pack: _Threads._pack,
}  # fmt: skip

_EXECUTE: dict[type, Callable[[_Threads, Any, Mask], None]] = {
    ir.Seq: _Threads._seq, ir.For: _Threads._for, ir.If: _Threads._if, ir.Let: _Threads._let, ir.Store: _Threads._store,
    ir.Barrier: _Threads._barrier, ir.Prefetch: _Threads._prefetch, ir.Copy: _Threads._copy, ir.Commit: _Threads._commit,
    ir.Wait: _Threads._wait, ir.Instruction: _Threads._instruction,
}  # fmt: skip
