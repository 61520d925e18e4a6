"""Emits innermost statements that are a single instruction: an update of an accumulator, a load, a store, or the store of its
result.
"""

from __future__ import annotations

from tilelang.instructions.instruction import AT_ONCE, IN_ORDER_GROUP, Instruction
from tilelang.lowering import ir
from tilelang.lowering.build.frame import Build, Frame
from tilelang.lowering.build.innermost_body import guarded
from tilelang.lowering.build.instruction.fragment_results import store_fragments
from tilelang.lowering.build.instruction.match import checked
from tilelang.lowering.build.instruction.moves import move_instruction
from tilelang.lowering.build.instruction.operands import instruction_guards, operand_at
from tilelang.lowering.build.instruction.pointwise import stored_instruction, too_late
from tilelang.lowering.build.instruction.tensor_boxes import box_moved, region_at, state_updated
from tilelang.lowering.build.refusals import refuse
from tilelang.schedules.steps import Do


def instruction(build: Build, frame: Frame, step: Do) -> ir.Stmt:
    """The innermost statement as one instruction; when finishing, the stores of the results that it left in registers."""
    semantics = frame.match.instruction
    _check_whole_units(build, step, semantics)
    if not frame.task.states and semantics.host is not None:
        return box_moved(build, frame, step, semantics)
    if not frame.task.states:
        return (stored_instruction if frame.fill is None else move_instruction)(build, frame, step)
    if frame.finishing:
        return store_fragments(build, frame, step)
    assert frame.state is not None
    read = checked(frame, step, "")
    if any(a.empty for a in frame.spec.axes):
        return ir.seq()
    guards = instruction_guards(build, frame, step, semantics.width)
    awaited = semantics.completes == IN_ORDER_GROUP and semantics.family and frame.state.memory == "register"
    if semantics.completes != AT_ONCE and not awaited:
        raise too_late(step, semantics, f" updates an accumulator in {frame.state.memory} and")
    at, region = state_updated(build, frame, step, frame.state)
    operands = [(semantics.writes, frame.state.buffers[0][0], at)]
    regions = [] if region is None else [region]
    for name, whole in read:
        if semantics.fragment(name) is not None:
            operands.append((name, *operand_at(build, frame, step, name, whole)))
            continue
        buffer, at, region = region_at(build, frame, step, name, whole)
        operands.append((name, buffer, at))
        regions.append(region)
    made = ir.Instruction(semantics, tuple(operands), semantics.width, step.span, tuple(regions))
    return guarded(made, guards, step.span)


def _check_whole_units(build: Build, step: Do, semantics: Instruction) -> None:
    """Refuses a block that is not a multiple of the threads that issue the instruction together."""
    over = build.threads % semantics.width
    if over:
        raise refuse(step, "not-whole-units", f"`{step}` is issued by {semantics.width} threads together, but a block of"
                     f" {build.threads} is not made of whole {semantics.level}s",
                     f"units block = {-(-build.threads // semantics.width)} {semantics.level}",
                     f"the last {semantics.level} would have {over} of {semantics.width} threads")  # fmt: skip
