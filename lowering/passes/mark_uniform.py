"""Names the values that are uniform across lockstep threads and part of an instruction's descriptor.

Needs: `unroll`. Guarantees: in operands that a descriptor names, the number of the lockstep unit is a variable that is bound once, at
the top of the kernel, and marked as uniform. One line before and after:

    do wgmma(A=S[slot, thread // 128 * 64 + m, k])
    let alike unit = thread // 128; do wgmma(A=S[slot, unit * 64 + m, k])

All threads of an instruction share one descriptor, and devices keep it in registers of the whole warp. Thanks to the name, the compiler
knows that it need not compute the value in every thread and read it back from one.
"""

from __future__ import annotations

from typing import Any

from tilelang.core.expr import INDEX, Binary, Const, Expr, Var
from tilelang.core.simplify import interval
from tilelang.lowering import ir
from tilelang.lowering.passes.dependence_test import is_thread


def mark_uniform(kernel: ir.Kernel, lockstep: int) -> ir.Kernel:
    """The kernel with names for the values in descriptors that `lockstep` neighbouring threads share."""
    if kernel.roles:
        return kernel.with_roles([_named(role.body, lockstep) for role in kernel.roles])
    return kernel.replace(body=_named(kernel.body, lockstep))


def _named(body: ir.Stmt, lockstep: int) -> ir.Stmt:
    found: dict[Expr, Var] = {}
    for s in ir.statements(body):
        if isinstance(s, ir.Instruction):
            indices = [i for name, _, at in s.operands if s.region(name) is not None for i in at]
            for e in (e for i in indices for e in i.walk() if _is_alike(e, lockstep)):
                found.setdefault(e, Var(f"unit_{len(found)}" if found else "unit", INDEX, 0, interval(e)[1]))
    if not found:
        return body
    lets = (ir.Let(var, value, None, alike=True) for value, var in found.items())
    return ir.seq(*lets, _renamed(body, found))


def _is_alike(e: Expr, lockstep: int) -> bool:
    """Whether an expression is the number of a group of one or more lockstep units."""
    match e:
        case Binary("//", Var() as thread, Const(value=count)):
            return is_thread(thread) and int(count) % lockstep == 0
        case _:
            return False


def _renamed(stmt: ir.Stmt, names: dict[Expr, Var]) -> ir.Stmt:
    """A statement with these names in the operands that descriptors describe."""

    def exchanged(e: Expr) -> Expr:
        return names[e] if e in names else e.map_children(lambda c: exchanged(c) if isinstance(c, Expr) else c)

    def go(s: Any) -> Any:
        if isinstance(s, ir.Instruction):
            return s.replace(operands=tuple(
                (name, buffer, tuple(map(exchanged, at)) if s.region(name) is not None else at) for name, buffer, at in s.operands
            ))  # fmt: skip
        return s.map_children(go) if isinstance(s, ir.Stmt) else s

    made: ir.Stmt = go(stmt)
    return made
