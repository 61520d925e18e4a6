"""Lifetimes of shared and register buffers: their contents last until the next iteration of the loop that recomputes them.

Kernel IR declares buffers for a whole kernel. A buffer whose accesses are all inside one loop is local to an iteration: each
iteration must write what it reads. Contents survive an iteration in these cases:

- An accumulator initialised before its loop, or a circular buffer filled there: a loop further out encloses all accesses.
- An accumulator that one iteration initialises and the others update: both branches of an `if` on the loop variable access it.
- A buffer whose store is delayed to the next iteration: it is read under the condition that the iteration is not the first.
- A buffer written at indices that depend on the loop variable: each iteration writes other elements, which a later one may read.

A slot of a circular buffer of n slots is refilled n iterations later. Readers advance by at most one slot per iteration of the
loops whose variables choose the slot, and a slot is refilled only after the readers have left its previous contents. So a value
read was written at most n iterations ago, and anything older is undefined.

refills.py handles buffers that are filled several times, including circular buffers in registers.

The rules need no statement in the IR, so they hold after every pass. `unroll` only weakens them: the copies of a body have a
common parent, and a constant slot does not identify the loop.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Mapping

import numpy as np

from tilelang.core.expr import Binary, Expr, Var, free, index, substitute
from tilelang.core.simplify import conjuncts
from tilelang.lowering import ir
from tilelang.lowering.simulator.batch import Mask
from tilelang.lowering.simulator.memory_model import Memory
from tilelang.lowering.simulator.refills import Refills, refills
from tilelang.lowering.simulator.shadow_memory import Array

Loops = tuple[tuple[int, ir.For], ...]  # outermost first, each with a serial number of its entry


@dataclasses.dataclass(frozen=True)
class Lifetimes:
    """What loop iterations do to buffers, by the id of the loop.

    local: buffers that are local to an iteration. rings: circular buffers that an iteration advances. refills: see refills.py.
    """

    local: Mapping[int, tuple[str, ...]] = dataclasses.field(default_factory=dict)
    rings: Mapping[int, tuple[str, ...]] = dataclasses.field(default_factory=dict)
    refills: Refills = dataclasses.field(default_factory=dict)

    def begin(self, loop: ir.For, memory: Memory, mask: Mask) -> None:
        """The active threads begin an iteration of a loop."""
        for name in self.local.get(id(loop), ()):
            _forget(memory, name, mask)
        for name in self.rings.get(id(loop), ()):
            blocks = mask.flags.reshape(memory.batch.blocks, -1).any(axis=1)
            memory.storage[name].turn(np.repeat(blocks, memory.batch.kernel.threads))

    def refill(self, parent: ir.Stmt, number: int, memory: Memory, mask: Mask) -> None:
        """The active threads start a child of a Seq or If."""
        for name in self.refills.get(id(parent), {}).get(number, ()):
            _forget_filling(memory, name, mask)


def lifetimes(kernel: ir.Kernel) -> Lifetimes:
    """The lifetimes of the buffers of a kernel."""
    return Lifetimes(local_buffers(kernel.body), turned_rings(kernel.body), refills(kernel))


def local_buffers(body: ir.Stmt) -> dict[int, tuple[str, ...]]:
    """The buffers that are local to an iteration of each loop, by id of the loop."""
    around: dict[str, Loops] = {}  # the loops that enclose every access
    values: dict[Var, Expr] = {}
    entered = 0

    def visit(stmt: ir.Stmt, loops: Loops) -> None:
        nonlocal entered
        if isinstance(stmt, ir.Let):
            values[stmt.var] = substitute(stmt.value, values)
        for buffer, _ in ir.touched(stmt):
            if buffer.memory != "global" and buffer.role != "phases":
                known = around.get(buffer.name, loops)
                # A statement object may occur several times; the entry number distinguishes the occurrences.
                common = sum(1 for a, b in zip(known, loops, strict=False) if a[0] == b[0])
                around[buffer.name] = known[: min(common, _remade(stmt, buffer, loops, values))]
        if isinstance(stmt, ir.If):
            for name, depth in _carried(stmt, loops):
                around[name] = around.get(name, loops)[:depth]
        if isinstance(stmt, ir.For):
            entered += 1
            loops = (*loops, (entered, stmt))
        for part in ir.parts(stmt):
            visit(part, loops)

    visit(body, ())
    return _by_loop((name, loops[-1][1]) for name, loops in around.items() if loops)


def _remade(stmt: ir.Stmt, buffer: ir.Buffer, loops: Loops, values: Mapping[Var, Expr]) -> int:
    """How many of the enclosing loops, from the outermost, write the same elements of the buffer in each iteration."""
    chosen = {v for b, indices in _written(stmt) if b is buffer for i in indices for v in free(substitute(i, values))}
    return next((depth for depth, (_, loop) in enumerate(loops) if loop.var in chosen), len(loops))


def _written(stmt: ir.Stmt) -> Iterator[tuple[ir.Buffer, tuple[Expr, ...]]]:
    """The buffers that a statement writes, each with the first indices."""
    match stmt:
        case ir.Store(buffer=buffer, indices=indices) | ir.Copy(target=buffer, target_indices=indices):
            yield buffer, indices
        case ir.Instruction(semantics, operands):
            yield from ((buffer, indices) for name, buffer, indices in operands if name == semantics.writes)


def _carried(branch: ir.If, loops: Loops) -> Iterator[tuple[str, int]]:
    """Buffers that carry values between iterations, judged by a condition on a loop variable, with the depth of the loop."""
    deciding = [depth for depth, (_, loop) in enumerate(loops) if loop.var in free(branch.condition)]
    if deciding and branch.otherwise is not None:
        yield from ((name, deciding[0]) for name in _touched(branch.then) & _touched(branch.otherwise))
    conditions = frozenset(conjuncts(branch.condition))
    later = [depth for depth in deciding if (index(0) < loops[depth][1].var) in conditions]
    if later:
        yield from ((name, later[0]) for name in _touched(branch.then))


def turned_rings(body: ir.Stmt) -> dict[int, tuple[str, ...]]:
    """The circular buffers in shared memory that an iteration of each loop advances for its readers, by id of the loop.

    Excluded are those that several roles read, and those whose slot is not chosen by a loop outside the threads.
    """
    turning: dict[str, set[Loops]] = {}  # the loops down to the one that advances the buffer
    readers: dict[str, set[str]] = {}
    values: dict[Var, Expr] = {}
    entered = 0

    def visit(stmt: ir.Stmt, loops: Loops, role: str) -> None:
        nonlocal entered
        for buffer, slot in _slots_read(stmt):
            readers.setdefault(buffer.name, set()).add(role)
            variables = _steps(substitute(slot, values))
            depth = max((d for d, (_, loop) in enumerate(loops) if loop.var in variables), default=-1)
            if depth >= 0 and not any(loop.kind == "threads" for _, loop in loops[: depth + 1]):
                turning.setdefault(buffer.name, set()).add(loops[: depth + 1])
        match stmt:
            case ir.Let(var, value):
                values[var] = substitute(value, values)
            case ir.For():
                entered += 1
                loops = (*loops, (entered, stmt))
            case ir.Role(name=name):
                role = name
            case _:
                pass
        for part in ir.parts(stmt):
            visit(part, loops, role)

    visit(body, (), "")
    return _by_loop(
        (name, path[-1][1])
        for name, paths in turning.items()
        if len(readers[name]) == 1
        for path in paths
        if not any(path[:depth] in paths for depth in range(len(path)))  # the outermost of nested ones
    )


def _slots_read(stmt: ir.Stmt) -> Iterator[tuple[ir.Buffer, Expr]]:
    """The circular buffers in shared memory that a statement reads, each with the slot."""
    found = [(load.buffer, load.indices) for e in ir.expressions(stmt) for load in ir.loads(e)]
    match stmt:
        case ir.Copy(source=source, source_indices=indices):
            found.append((source, indices))
        case ir.Instruction(semantics, operands):
            found += [(buffer, indices) for name, buffer, indices in operands if name in semantics.reads]
    yield from ((buffer, indices[0]) for buffer, indices in found if buffer.ring > 1 and buffer.memory == "shared")


def _steps(slot: Expr) -> frozenset[Var]:
    """Variables that may select another slot with every change; a variable that is divided first does not."""
    if isinstance(slot, Var):
        return frozenset((slot,))
    if isinstance(slot, Binary) and slot.op == "//":
        return frozenset()
    return frozenset().union(*(_steps(c) for c in slot.children() if isinstance(c, Expr)))


def _by_loop(pairs: Iterable[tuple[str, ir.For]]) -> dict[int, tuple[str, ...]]:
    found: dict[int, dict[str, None]] = {}
    for name, loop in pairs:
        found.setdefault(id(loop), {})[name] = None
    return {loop: tuple(names) for loop, names in found.items()}


def _touched(stmt: ir.Stmt) -> set[str]:
    return {buffer.name for s in ir.statements(stmt) for buffer, _ in ir.touched(s) if buffer.memory != "global"}


def _forget(memory: Memory, name: str, mask: Mask) -> None:
    """A new iteration begins: what the previous one left in a local buffer for the active threads becomes undefined."""
    storage = memory.storage[name]
    if memory.batch.clocks is None:
        storage.forget()  # inactive threads are not in the loop, so they hold nothing either
    else:
        _clear(memory, name, mask.threads)


def _forget_filling(memory: Memory, name: str, mask: Mask) -> None:
    """The active threads refill a buffer. The contents of other threads, or of partly active blocks, remain."""
    storage, batch = memory.storage[name], memory.batch
    if mask.full:
        storage.forget()
    elif memory.buffers[name].memory == "register":
        _clear(memory, name, mask.threads)
    elif batch.clocks is None:
        _clear(memory, name, np.flatnonzero(np.repeat(mask.flags.reshape(batch.blocks, -1).all(axis=1), batch.kernel.threads)))


def _clear(memory: Memory, name: str, threads: Array) -> None:
    storage = memory.storage[name]
    addresses = np.unique(storage.base[threads])[:, None] + np.arange(memory.buffers[name].elements) * storage.step
    storage.lose(addresses.reshape(-1))
