"""Decides which loops a compiler may unroll, by the pragma before a loop.

A schedule unrolls what should be unrolled. A compiler that unrolls more, especially a long body, runs out of registers and spends
time on its analysis. Short bodies, and short innermost loops, are left to the compiler.
"""

from __future__ import annotations

from tilelang.core.expr import Const
from tilelang.lowering import ir
from tilelang.lowering.ir import Barrier, For, If, Seq
from tilelang.lowering.targets.c.dialect import Dialect

# statements: unrolling the body of a window operator by two gained 4 % with 18 statements and lost 40 % with 24
LONG_BODY = 20
SHORT_LOOP = 4  # iterations
FOLDED_LOOP = 64  # iterations to leave to constant folding: NVRTC took 135 s for nine loops of 1,024 over constants alone


def pragma(loop: For, dialect: Dialect) -> str:
    """The line before a loop; empty if the compiler decides."""
    if loop.kind == "unroll":
        return "#pragma unroll"
    if dialect.around_barriers and any(isinstance(s, Barrier) for s in ir.statements(loop.body)):
        return dialect.around_barriers
    if dialect.around_constants and _constant(loop):
        return dialect.around_constants
    return dialect.around_long_bodies if dialect.around_long_bodies and _long(loop) else ""


def _constant(loop: For) -> bool:
    """Whether a loop has many iterations whose stores depend on the loop variable alone."""
    if not isinstance(loop.extent, Const) or loop.extent.value <= FOLDED_LOOP:
        return False
    for stmt in ir.statements(loop.body):
        if not isinstance(stmt, (For, If, Seq, ir.Store)) or any(ir.loads(e) for e in ir.expressions(stmt)):
            return False
    return True


def _long(loop: For) -> bool:
    """Whether a body has many statements, except in an innermost loop with few iterations."""
    count, innermost = 0, True
    short = isinstance(loop.extent, Const) and loop.extent.value <= SHORT_LOOP
    for stmt in ir.statements(loop.body):
        innermost = innermost and not isinstance(stmt, For)
        count += not isinstance(stmt, (For, If, Seq))
        if count > LONG_BODY and not (short and innermost):
            return True
    return False
