"""Leaves that are one instruction."""

from __future__ import annotations

from tilelang.lowering import ir
from tilelang.lowering.build.base import Part, refuse
from tilelang.lowering.build.frame import Frame
from tilelang.schedule import Do, Step
from tilelang.task import Task


class Instructions(Part):
    """do."""

    def leaf_shape(self, steps: tuple[Step, ...]) -> dict[str, int]:
        """How much of each axis the leaf's instruction takes."""
        return {}

    def with_leaf_shapes(self, steps: tuple[Step, ...], task: Task) -> tuple[Step, ...]:
        return steps

    def instruction(self, frame: Frame, step: Do) -> ir.Stmt:
        """The leaf as one instruction."""
        raise refuse(step, "instruction-not-here", f"`{step}`: the profile `{self.build.profile.name}` has no instruction"
                     f" `{step.instruction}`", "leave it out, or choose a profile that has it")  # fmt: skip
