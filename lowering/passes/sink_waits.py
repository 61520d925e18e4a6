"""Sinks the waits for tensor stores (TMA) to the latest legal point, so that a tile's stores overlap with the next tile's products.

Needs: `proxy_fences`. Guarantees: the same values; the thread that issued tensor stores waits until they have been read only where the
shared memory may be overwritten, and before it ends. One line before and after:

    for round { ...; barrier shared; S[...] = ...; barrier shared; if thread < 1: { do tma_store_2d(...); commit q; wait 0 q } }
    for round { ...; wait 0 q; barrier shared; S[...] = ...; barrier shared; if thread < 1: { do ...; commit q } }; wait 0 q

Shared memory may be overwritten from the next barrier on, or by the next write of the same threads. A wait is never moved into a loop
that would repeat it. All threads wait then; for those that stored nothing, the wait returns at once.
"""

from __future__ import annotations

from tilelang.lowering import ir

Due = dict[ir.Wait, None]  # pending waits, in order


def sink_waits(kernel: ir.Kernel) -> ir.Kernel:
    """The kernel with its waits for TMA stores delayed."""
    if not kernel.roles:
        return kernel.replace(body=_whole(kernel.body, set()))
    bodies = []
    for role in kernel.roles:
        others = {
            b.name for other in kernel.roles if other is not role for s in ir.statements(other.body) for b, _ in ir.touched(s)
        }
        bodies.append(_whole(role.body, others))
    return kernel.with_roles(bodies)


def _whole(body: ir.Stmt, others: set[str]) -> ir.Stmt:
    """The body of some threads. others: the buffers that threads of other roles use."""
    if not any(_delayed(s, others) for s in ir.statements(body)):
        return body
    made, due = _late(body, {}, others)
    return ir.seq(made, *due)


def _late(stmt: ir.Stmt, due: Due, others: set[str]) -> tuple[ir.Stmt, Due]:
    """A statement with the pending waits inserted where they are needed, and the waits still pending after it."""
    found = _delayed(stmt, others)
    if found is not None:
        begun, wait = found
        return begun, {**due, wait: None}
    match stmt:
        case ir.Seq(body):
            parts = []
            for child in body:
                made, due = _late(child, due, others)
                parts.append(made)
            return (ir.Seq(tuple(parts), stmt.span) if any(isinstance(s, ir.Let) for s in parts) else ir.seq(*parts)), due
        case ir.For(body=body) if due and any(map(_overwrites, ir.statements(body))):
            made, behind = _late(stmt, {}, others)
            return ir.seq(*due, made), behind
        case ir.For(body=body):
            made, behind = _late(body, due, others)
            made, behind = _late(body, {**due, **behind}, others)
            return stmt.replace(body=made), {**due, **behind}
        case ir.If(then=then, otherwise=otherwise):
            first, behind = _late(then, due, others)
            second, beside = (None, due) if otherwise is None else _late(otherwise, due, others)
            return stmt.replace(then=first, otherwise=second), {**behind, **beside}
        case _ if due and _overwrites(stmt):
            return ir.seq(*due, stmt), {}
        case _:
            return stmt, due


def _delayed(stmt: ir.Stmt, others: set[str]) -> tuple[ir.Stmt, ir.Wait] | None:
    """A conditional TMA store without the wait at its end, and that wait; None for any other statement."""
    match stmt:
        case ir.If(then=ir.Seq(body=(*begun, ir.Wait(0, queue=queue) as wait)), otherwise=None) if queue:
            boxes = [s for s in begun if isinstance(s, ir.Instruction)]
            stored = boxes and all(s.semantics.family == queue and s.semantics.kind == "move" for s in boxes)
            names = {buffer.name for s in boxes for _, buffer, _ in s.operands}
            if stored and not names & others and len(boxes) + 1 == len(begun):
                return stmt.replace(then=ir.seq(*begun)), wait
    return None


def _overwrites(stmt: ir.Stmt) -> bool:
    """Whether shared memory may be overwritten after this point."""
    if isinstance(stmt, ir.Barrier):
        return "shared" in stmt.memory
    return any(writes and b.memory == "shared" and b.role != "phases" for b, writes in ir.touched(stmt))
