"""Ends every loop that contains barriers with a barrier, and begins it with one before a nested loop. For PoCL 3.

Needs: `barriers`, `unroll`. Guarantees: the body of a loop with a barrier in it ends with one, and no loop precedes its first
barrier. One line before and after:

    for k in 0..2: { barrier shared; A_shared[thread] = A[k]; if thread == 0: C[0] = A_shared[0] }
    for k in 0..2: { barrier shared; A_shared[thread] = A[k]; if thread == 0: C[0] = A_shared[0]; barrier shared }

PoCL 3 turns the code between two barriers into loops over the threads of a block. If the last such part of a loop's body ends in
a condition on the thread, LLVM first joins it with the next iteration or with the code after the loop, and the part then has
several exits. With two iterations the kernel silently computes wrong results, or the compiler aborts ("Could not find a
dominating alternative variable"). A loop in the first part of an iteration may also be joined with the beginning of the
iteration; the compiler then enters it from two sides and crashes.
"""

from __future__ import annotations

from typing import Any

from tilelang.lowering import ir

REASON = "end of a loop with barriers: this compiler joins its last part with the next round otherwise"
START = "start of a loop with barriers: this compiler joins it with the loop that follows otherwise"


def barrier_at_loop_end(kernel: ir.Kernel) -> ir.Kernel:
    """The kernel with a barrier at the end of every loop that contains one, and at its start if a nested loop precedes its
    first barrier."""
    if not any(isinstance(s, ir.Barrier) for s in ir.statements(kernel.body)):
        return kernel
    return kernel.replace(body=_ended(kernel.body))


def _ended(stmt: Any) -> Any:
    if not isinstance(stmt, ir.Stmt):
        return stmt
    changed = stmt.map_children(_ended)
    if not isinstance(changed, ir.For) or not any(isinstance(s, ir.Barrier) for s in ir.statements(changed.body)):
        return changed
    start = ir.Barrier(("shared",), (START,), changed.span) if _loop_before_a_barrier(changed.body) else None
    end = None if isinstance(_last(changed.body), ir.Barrier) else ir.Barrier(("shared",), (REASON,), changed.span)
    # A Let is visible only in its own sequence, so the barriers go around that sequence.
    return changed if start is end is None else changed.replace(body=ir.seq(start, changed.body, end))


def _loop_before_a_barrier(stmt: ir.Stmt) -> bool:
    """Whether a loop comes before the first barrier."""
    for s in ir.flattened(*ir.parts(stmt)) if isinstance(stmt, ir.Seq) else (stmt,):
        if isinstance(s, ir.Barrier):
            return False
        if isinstance(s, ir.Seq) and any(isinstance(x, ir.Barrier) for x in ir.statements(s)):
            return _loop_before_a_barrier(s)
        if any(
            isinstance(x, ir.For) and x.kind == "serial" and not isinstance(_first(x.body), ir.Barrier) for x in ir.statements(s)
        ):
            return True
    return False


def _first(stmt: ir.Stmt) -> ir.Stmt:
    first = next((s for s in ir.parts(stmt) if not isinstance(s, ir.Let)), None) if isinstance(stmt, ir.Seq) else None
    return stmt if first is None else _first(first)


def _last(stmt: ir.Stmt) -> ir.Stmt:
    return _last(stmt.body[-1]) if isinstance(stmt, ir.Seq) and stmt.body else stmt
