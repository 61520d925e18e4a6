"""Publishes what threads wrote to shared memory, where an instruction reads it there by itself.

Needs: `barriers`. Guarantees: between a thread's store to a buffer that an instruction reads by a descriptor, and the barrier or the
arrival behind which it does, stands a fence. One line before and after:

    S[thread] = x; barrier shared; do tma_store_2d(D=Y[r, c], S=S[r, c])
    S[thread] = x; fence shared for tensor_store; barrier shared; do tma_store_2d(D=Y[r, c], S=S[r, c])
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tilelang.lowering import ir

STORES = (ir.Store, ir.Copy)


def publish_shared(kernel: ir.Kernel) -> ir.Kernel:
    """The kernel with fences before the barriers and arrivals that need them."""
    if not kernel.roles:
        alone = _readers(kernel.body)
        return kernel.replace(body=_fenced(kernel.body, _written(kernel.body, alone), ())) if alone else kernel
    readers = [_readers(role.body) for role in kernel.roles]
    if not any(readers):
        return kernel
    bodies = []
    for role, mine in zip(kernel.roles, readers, strict=True):
        elsewhere = {name: queue for other in readers if other is not mine for name, queue in other.items()}
        bodies.append(_fenced(role.body, _written(role.body, mine), _written(role.body, elsewhere)))
    return kernel.with_roles(bodies)


def _readers(body: ir.Stmt) -> dict[str, str]:
    """The shared buffers that instructions read by descriptors, with the queues of these."""
    return {
        buffer.name: str(s.semantics.family)
        for s in ir.statements(body)
        if isinstance(s, ir.Instruction)
        for name, buffer, _ in s.operands
        if buffer.memory == "shared" and s.region(name) is not None and name in s.semantics.reads
    }


def _written(body: ir.Stmt, readers: Mapping[str, str]) -> tuple[str, ...]:
    """The queues whose instructions read what these statements store."""
    names = [s.buffer.name if isinstance(s, ir.Store) else s.target.name for s in ir.statements(body) if isinstance(s, STORES)]
    return tuple(dict.fromkeys(readers[name] for name in names if readers.get(name)))


def _fenced(stmt: Any, here: tuple[str, ...], elsewhere: tuple[str, ...]) -> Any:
    """here, elsewhere: the queues of instructions behind a barrier of these threads, and behind their arrivals."""
    match stmt:
        case ir.Barrier(memory) if "shared" in memory:
            return ir.seq(*(ir.Fence(queue, "shared", stmt.span) for queue in here), stmt)
        case ir.Arrive(bytes=0):
            return ir.seq(*(ir.Fence(queue, "shared", stmt.span) for queue in elsewhere), stmt)
        case ir.Stmt():
            return stmt.map_children(lambda child: _fenced(child, here, elsewhere)) if here or elsewhere else stmt
        case _:
            return stmt
