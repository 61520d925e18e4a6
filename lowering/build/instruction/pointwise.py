"""Instructions that store the result of a schedule without a reduction, and operands in the registers of one thread.

The result goes where the steps store it: to a tensor, to shared memory, or to the registers of a stage. The instruction cannot be
guarded, so a tile must exist as a whole or not at all.
"""

from __future__ import annotations

from tilelang.core.expr import Pad
from tilelang.errors import Refusal
from tilelang.instructions.instruction import AT_ONCE, Instruction
from tilelang.lowering import ir
from tilelang.lowering.build.frame import Build, Frame
from tilelang.lowering.build.innermost_body import guarded
from tilelang.lowering.build.instruction.leaf_description import resident
from tilelang.lowering.build.instruction.match import checked
from tilelang.lowering.build.instruction.operands import first_written, instruction_guards, operand_at
from tilelang.lowering.build.reads import residence_of
from tilelang.lowering.build.refusals import refuse
from tilelang.schedules.steps import Do


def too_late(step: Do, semantics: Instruction, where: str) -> Refusal:
    """The refusal of an instruction that completes asynchronously if no step waits for it. where: what it writes, and to which
    memory."""
    return refuse(step, "not-lowered-yet", f"`{step}`{where} completes asynchronously ({semantics.completes}), which is"
                  " valid, but not supported yet for this target", "remove the `do` to use plain loops")  # fmt: skip


def stored_instruction(build: Build, frame: Frame, step: Do) -> ir.Stmt:
    """The innermost statement of a task without reductions as one instruction; also of a move that stores the schedule's results."""
    semantics, place = frame.match.instruction, frame.target.places[0]
    read = checked(frame, step, place.buffer.memory)
    if semantics.completes != AT_ONCE:
        raise too_late(step, semantics, "")
    if frame.target.stream or frame.target.behind:
        said = "stream" if frame.target.stream else f"behind {frame.target.behind}"
        raise refuse(step, "instruction-stores", f"`{step}` performs the store itself, so `{said}` would have no effect",
                     f"remove `{said}`, or the `do`")  # fmt: skip
    for _, whole in read:
        if isinstance(whole, Pad) and not resident(whole, residence_of(frame, whole)).fills:
            name = whole.read.tensor.name
            raise refuse(step, "unguardable-do", f"`{step}` cannot be guarded, and nothing fills the elements outside {name}",
                         f"load {name}, so that its padding is filled, or remove the `do` to use plain loops",
                         f"it reads {whole}")  # fmt: skip
    guards = instruction_guards(build, frame, step, semantics.width)
    written = (semantics.writes, place.buffer, first_written(build, frame, step, place))
    operands = (written, *((name, *operand_at(build, frame, step, name, whole)) for name, whole in read))
    return guarded(ir.Instruction(semantics, operands, semantics.width, step.span), guards, step.span)
