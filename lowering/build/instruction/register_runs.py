"""Operands in registers: checks that an instruction that takes consecutive registers gets consecutive ones.

The check is made twice: when the instruction is written, and again when the kernel is complete, because readers that reach beyond
a thread's tile may lengthen the rows of its buffer.
"""

from __future__ import annotations

import dataclasses

from tilelang.core.expr import Expr, index
from tilelang.core.simplify import simplify
from tilelang.lowering import ir
from tilelang.lowering.build.refusals import refuse
from tilelang.schedules.steps import Do


@dataclasses.dataclass(frozen=True)
class Run:
    """Registers that an instruction assumes to be consecutive. places: where each element of the operand is."""

    step: Do
    operand: str
    tensor: str
    buffer: ir.Buffer
    places: tuple[tuple[Expr, ...], ...]

    def check(self, buffer: ir.Buffer) -> None:
        """Raises Refusal if the registers are not consecutive in `buffer`, whose rows may have become longer for its readers."""
        first = self.places[0]
        for n, place in enumerate(self.places):
            apart = sum((s * (there - here) for s, there, here in zip(buffer.strides, place, first, strict=True)), index(0))
            if simplify(apart) is not index(n):
                why, help = (
                    "are not consecutive",
                    "make the instruction's dimension the innermost one, or keep the tensor in shared",
                )
                if buffer.strides != self.buffer.strides:
                    why = f"are in rows of {buffer.shape[-1]}, because a vector or a loop reads beyond the tile"
                    help = f"read {self.tensor} in vectors and loops that divide its tile, or keep it in shared"
                raise refuse(
                    self.step, "instruction-mismatch", f"`{self.step}`: operand {self.operand} needs {len(self.places)} consecutive"
                    f" registers, but those of {self.tensor} {why}", help, f"element {n} of the operand is in"
                    f" {buffer.name}[{', '.join(map(str, place))}], element 0 in [{', '.join(map(str, first))}]",
                )  # fmt: skip
