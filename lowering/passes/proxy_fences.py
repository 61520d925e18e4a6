"""Inserts fences before instructions that read shared memory through a proxy (NVIDIA's async proxy), after stores by threads.

Needs: `barriers`. Guarantees: between a thread's store to a buffer that an instruction reads through a proxy, and the first barrier or
arrival after which it may do so, there is a fence; there is none if nothing was stored since the last. One line before and after:

    S[thread] = x; barrier shared; do tma_store_2d(D=Y[r, c], S=S[r, c])
    S[thread] = x; fence shared for tensor_store; barrier shared; do tma_store_2d(D=Y[r, c], S=S[r, c])
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping

from tilelang.instructions.instruction import AT_ONCE
from tilelang.lowering import ir

Stored = tuple[str, ...]  # names of the buffers stored to since the last fence


def insert_proxy_fences(kernel: ir.Kernel) -> ir.Kernel:
    """The kernel with fences before the barriers and arrivals that need them."""
    if not kernel.roles:
        alone = _readers(kernel.body)
        return kernel.replace(body=_Fences(alone, {}).statement(kernel.body, ())[0]) if alone else kernel
    readers = [_readers(role.body) for role in kernel.roles]
    if not any(readers):
        return kernel
    bodies = []
    for role, mine in zip(kernel.roles, readers, strict=True):
        elsewhere = {name: queue for other in readers if other is not mine for name, queue in other.items()}
        bodies.append(_Fences(mine, elsewhere).statement(role.body, ())[0])
    return kernel.with_roles(bodies)


def _readers(body: ir.Stmt) -> dict[str, str]:
    """The shared buffers that instructions read through a proxy, with the queues of the instructions."""
    return {
        buffer.name: s.semantics.family
        for s in ir.statements(body)
        if isinstance(s, ir.Instruction) and s.semantics.proxy
        for name, buffer, _ in s.operands
        if buffer.memory == "shared" and name in s.semantics.reads
    }


@dataclasses.dataclass(frozen=True)
class _Fences:
    """here, elsewhere: the queue that reads each buffer after a barrier of these threads, and after their arrivals."""

    here: Mapping[str, str]
    elsewhere: Mapping[str, str]

    def statement(self, stmt: ir.Stmt, before: Stored) -> tuple[ir.Stmt, Stored]:
        """The statement with its fences, and the buffers stored to but not yet fenced after it. before: those before it."""
        match stmt:
            case ir.Seq(body):
                out = []
                for child in body:
                    child, before = self.statement(child, before)
                    out.append(child)
                return stmt.replace(body=tuple(out)), before
            case ir.For(body=body):
                _, left = self.statement(body, before)
                inner, left = self.statement(body, _both(before, left))
                return stmt.replace(body=inner), _both(before, left)
            case ir.If(then=then, otherwise=otherwise):
                then, left = self.statement(then, before)
                otherwise, other = (None, before) if otherwise is None else self.statement(otherwise, before)
                return stmt.replace(then=then, otherwise=otherwise), _both(left, other)
            case ir.Barrier(memory) if "shared" in memory:
                return _fenced(stmt, before, self.here)
            case ir.Arrive(bytes=0):
                return _fenced(stmt, before, self.elsewhere)
            case ir.Store(buffer=buffer) | ir.Copy(target=buffer):
                return stmt, self._stored(before, buffer.name)
            case ir.Instruction(semantics, operands) if semantics.completes == AT_ONCE:
                return stmt, self._stored(before, next(buffer.name for name, buffer, _ in operands if name == semantics.writes))
            case _:
                return stmt, before

    def _stored(self, before: Stored, name: str) -> Stored:
        return _both(before, (name,)) if name in self.here or name in self.elsewhere else before


def _fenced(stmt: ir.Barrier | ir.Arrive, stored: Stored, readers: Mapping[str, str]) -> tuple[ir.Stmt, Stored]:
    queues = dict.fromkeys(readers[name] for name in stored if name in readers)
    fences = [ir.Fence(queue, "shared", stmt.span) for queue in queues]
    return ir.seq(*fences, stmt), tuple(name for name in stored if name not in readers)


def _both(one: Iterable[str], other: Iterable[str]) -> Stored:
    return tuple(dict.fromkeys((*one, *other)))
