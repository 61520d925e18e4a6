"""How long the contents of shared and register buffers last: until the next iteration of the loop that remakes them.

Kernel IR declares buffers for a whole kernel. A buffer whose accesses all lie inside one loop is local to an iteration of it: each
iteration must write what it reads. An accumulator is initialised in front of its loop and a ring is filled there, so the innermost
loop around all of their accesses is another one, and they keep their contents. So does an accumulator that one iteration initialises
and the others update: its accesses stand in both branches of a condition on the loop's variable.

The rule needs no statement in the IR, so it holds after every pass; `unroll` only makes it weaker, because the copies of a body have
a common parent. Of a ring it does not see that a slot is reused.
"""

from __future__ import annotations

import numpy as np

from tilelang.expr import free
from tilelang.lowering import ir
from tilelang.lowering.memory_model import Mask, Memory


def local_buffers(body: ir.Stmt) -> dict[int, tuple[str, ...]]:
    """The buffers that are local to an iteration of each loop, by the id of the loop."""
    around: dict[str, tuple[tuple[int, ir.For], ...]] = {}  # the loops that contain every access, outermost first
    entered = 0

    def visit(stmt: ir.Stmt, loops: tuple[tuple[int, ir.For], ...]) -> None:
        nonlocal entered
        for buffer, _ in ir.touched(stmt):
            if buffer.memory != "global" and buffer.role != "phases":
                known = around.get(buffer.name, loops)
                # One statement may stand in several places, so an occurrence is told by when it was entered.
                common = sum(1 for a, b in zip(known, loops, strict=False) if a[0] == b[0])
                around[buffer.name] = known[:common]
        if isinstance(stmt, ir.If) and stmt.otherwise is not None:
            carrying = [depth for depth, (_, loop) in enumerate(loops) if loop.var in free(stmt.condition)]
            for name in _touched(stmt.then) & _touched(stmt.otherwise) if carrying else ():
                around[name] = around.get(name, loops)[: carrying[0]]
        if isinstance(stmt, ir.For):
            entered += 1
            loops = (*loops, (entered, stmt))
        for part in ir.parts(stmt):
            visit(part, loops)

    visit(body, ())
    found: dict[int, list[str]] = {}
    for name, loops in around.items():
        if loops:
            found.setdefault(id(loops[-1][1]), []).append(name)
    return {loop: tuple(names) for loop, names in found.items()}


def _touched(stmt: ir.Stmt) -> set[str]:
    return {buffer.name for s in ir.statements(stmt) for buffer, _ in ir.touched(s) if buffer.memory != "global"}


def forget(memory: Memory, name: str, mask: Mask) -> None:
    """An iteration begins to which a buffer is local: what an earlier one left there for the active threads is undefined."""
    storage, batch = memory.storage[name], memory.batch
    if batch.clocks is None:
        storage.forget()  # inactive threads are not inside the loop, so they hold nothing either
        return
    elements = np.arange(next(b.elements for b in batch.kernel.buffers if b.name == name))
    addresses = np.unique(storage.base[mask.threads])[:, None] + elements * storage.step
    storage.shadow.owner[storage.granules(addresses.reshape(-1))] = 0
