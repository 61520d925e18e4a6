"""Moves every barrier out of conditions. For PoCL 3.

Needs: `barriers`. Guarantees: no barrier is under a condition, and a loop with one inside runs at least once; if its extent is
not constant, its kind is `do`, which tests the condition after each iteration. One line before and after:

    for i in 0..n: { barrier shared; A[i] = S[i] }
    do i in 0..max(n, 1): { barrier shared; if i < n: A[i] = S[i] }

PoCL 3 turns the code between two barriers into loops over the threads of a block, and copies the code after a condition, so that
each barrier is reached from one side. A loop whose number of iterations depends on the block index is such a condition, because
it may run zero times: with another loop and values in registers inside, the kernel silently computes wrong results.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from tilelang.core.expr import Const, Expr, Select, Var, binary, const, index
from tilelang.core.simplify import interval, simplify
from tilelang.lowering import ir


def unconditional_barriers(kernel: ir.Kernel) -> ir.Kernel:
    """The kernel with no barrier under a condition."""
    if not _has_barrier(kernel.body):
        return kernel
    return kernel.replace(body=_freed(kernel.body, itertools.count()))


def _has_barrier(stmt: ir.Stmt) -> bool:
    return any(isinstance(s, ir.Barrier) for s in ir.statements(stmt))


def _freed(stmt: ir.Stmt, numbers: Iterator[int]) -> ir.Stmt:
    """A statement that is always reached, with its barriers moved out of conditions."""
    if not _has_barrier(stmt):
        return stmt
    match stmt:
        case ir.Seq(body=body):
            return stmt.replace(body=tuple(_freed(child, numbers) for child in body))
        case ir.For(extent=Const()):
            return stmt.replace(body=_freed(stmt.body, numbers))
        case ir.For(var=var, extent=extent, body=body):
            low, _ = interval(extent)
            if low is None or low < 1:
                body = _under(binary("<", var, extent), body, numbers)
                extent = simplify(binary("max", extent, index(1)))
            return stmt.replace(extent=extent, body=_freed(body, numbers), kind="do")
        case ir.If():
            return _freed(_parted(stmt, numbers), numbers)
        case _:
            return stmt


def _parted(stmt: ir.If, numbers: Iterator[int]) -> ir.Stmt:
    """A condition around barriers, split into conditions around the parts between them."""
    condition, before = stmt.condition, []
    if ir.loads(condition):  # the data it reads may change between the parts
        flag = Var(f"holds_{next(numbers)}", condition.dtype)
        before.append(ir.Let(flag, condition, stmt.span))
        condition = flag
    after = [] if stmt.otherwise is None else [_under(~condition, stmt.otherwise, numbers)]
    return ir.Seq((*before, _under(condition, stmt.then, numbers), *after), stmt.span)


def _under(condition: Expr, stmt: ir.Stmt, numbers: Iterator[int]) -> ir.Stmt:
    """A statement under a condition, with its barriers outside the condition."""
    if not _has_barrier(stmt):
        return ir.If(condition, stmt, None, getattr(stmt, "span", None))
    match stmt:
        case ir.Seq(body=body):
            parts = [_named(condition, s) if isinstance(s, ir.Let) else _under(condition, s, numbers) for s in body]
            return stmt.replace(body=tuple(parts))
        case ir.For(body=body):
            return stmt.replace(body=_under(condition, body, numbers))
        case ir.If():
            return _under(condition, _parted(stmt, numbers), numbers)
        case _:
            return stmt


def _named(condition: Expr, stmt: ir.Let) -> ir.Let:
    """A Let whose condition no longer encloses it: without the condition, the elements that its value reads may not exist."""
    if not ir.loads(stmt.value):
        return stmt
    return stmt.replace(value=Select(condition, stmt.value, const(0, stmt.value.dtype)))
