"""Scalar replacement: register buffers with constant indices become named variables.

Needs: unrolled loops. Guarantees: a register buffer has `vector` = W > 0 if every access has constant indices and stays within one
group of W lanes of the last dimension; the others, and those whose address an instruction takes, stay private arrays (W = 0).

    acc: float32[8, 48], accessed 16 lanes at a time    ->    acc.vector = 16
"""

from __future__ import annotations

from collections.abc import Iterator

from tilelang.core.expr import Const, Expr
from tilelang.instructions.template import in_arrays
from tilelang.lowering import ir
from tilelang.lowering.passes.allocate_shared import with_buffers


def replace_by_scalars(kernel: ir.Kernel) -> ir.Kernel:
    """The kernel with `vector` set on its register buffers."""
    widths: dict[str, int] = {b.name: 1 for b in kernel.registers}
    accesses: dict[tuple[ir.Buffer, tuple[Expr, ...], int], None] = {}
    loads: dict[ir.Load, None] = {}
    for s in ir.statements(kernel.body):
        if isinstance(s, ir.Store) and s.buffer.memory == "register":
            accesses[s.buffer, s.indices, ir.lanes(s.value)] = None
        if isinstance(s, ir.Instruction):
            accesses.update(dict.fromkeys(_operands(s)))
            kept = in_arrays(s.semantics)
            widths.update({b.name: 0 for name, b, _ in s.operands if name in kept})
        for e in ir.expressions(s):
            for load in ir.loads(e):
                loads[load] = None
    accesses.update({(load.buffer, load.indices, load.lanes): None for load in loads if load.buffer.memory == "register"})
    registers = [a for a in accesses if a[0].memory == "register"]
    for b, _, lanes in registers:
        widths[b.name] = max(widths[b.name], lanes) if widths[b.name] else 0
    for b, indices, lanes in registers:
        w = widths[b.name]
        if w and not (all(isinstance(i, Const) for i in indices) and _within(indices[-1], lanes, w) and b.shape[-1] % w == 0):
            widths[b.name] = 0
    return with_buffers(kernel, {b.name: b.replace(vector=widths[b.name]) for b in kernel.registers})


def _operands(stmt: ir.Instruction) -> Iterator[tuple[ir.Buffer, tuple[Expr, ...], int]]:
    """The registers that an instruction uses of each operand: all of a lane's slots if a vector has this many lanes, else the
    first slot.

    The first slot suffices then: if it is in bounds, so are the others.
    """
    for name, buffer, indices in stmt.operands:
        if buffer.memory != "register":
            continue
        held = stmt.semantics.fragment(name)
        assert held is not None, "registers are always held by a map"
        yield buffer, indices, held.slots if held.slots in (1, 2, 4, 8, 16) else 1


def _within(last: Expr, lanes: int, width: int) -> bool:
    return isinstance(last, Const) and int(last.value) // width == (int(last.value) + lanes - 1) // width
