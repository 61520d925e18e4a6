"""Loads by an instruction: asynchronous copies issued by a thread, and loads of fragments into registers.

A load that completes in an in-order group becomes a Copy. Its group is committed and awaited here: right after the load or, if
the load is prefetched, at the start of the iteration that reads it. For elements that do not exist, the instruction supplies its
outside value.
"""

from __future__ import annotations

from tilelang.core.expr import Expr, Pad, Read
from tilelang.instructions.fragment import row_major
from tilelang.instructions.instruction import AT_ONCE, IN_ORDER_GROUP
from tilelang.lowering import ir
from tilelang.lowering.build.frame import Build, Frame
from tilelang.lowering.build.innermost_body import guarded
from tilelang.lowering.build.instruction.consecutive_threads import check_neighbours
from tilelang.lowering.build.instruction.fragments import open_bounds, unguardable
from tilelang.lowering.build.instruction.match import checked
from tilelang.lowering.build.instruction.operands import first_written, instruction_guards, operand_at
from tilelang.lowering.build.instruction.pointwise import too_late
from tilelang.lowering.build.movement.asynchronous_copies import NotCopied, existing
from tilelang.lowering.build.refusals import refuse
from tilelang.schedules.steps import Do


def move_instruction(build: Build, frame: Frame, step: Do) -> ir.Stmt:
    """The innermost statement of a load as one instruction of a thread."""
    found = frame.match
    semantics = found.instruction
    checked(frame, step, frame.target.places[0].buffer.memory)
    source = next(name for name, _ in found.operands if name != semantics.writes)
    whole = frame.task.values[0]
    assert isinstance(whole, (Read, Pad))
    from_buffer, from_at = operand_at(build, frame, step, source, whole)
    place = frame.target.places[0]
    at = first_written(build, frame, step, place)
    held = semantics.fragment(semantics.writes)
    assert held is not None
    if semantics.completes == IN_ORDER_GROUP and held == row_major((held.slots,)) == semantics.fragment(source):
        guards = instruction_guards(build, frame, step, semantics.width)
        count = _count_existing(frame, step, held.slots)
        written = semantics.operand(semantics.writes)
        if written.neighbours:
            check_neighbours(step, written, place.buffer, at, held.slots, guards, build.threads)
        copy = ir.Copy(place.buffer, at, from_buffer, from_at, held.slots, count, step.span, semantics, across=held.slots > 1)
        return guarded(copy, guards, step.span)
    if semantics.completes != AT_ONCE:
        raise too_late(step, semantics, "")
    filled = ((a, b) for a in frame.spec.axes for b in open_bounds(a) if b.key in frame.fill_keys)
    for axis, bound in filled:
        raise unguardable(step, f"`{step}` cannot be guarded, but the elements outside must be filled",
                          "remove the `do` to use plain loops", axis, bound)  # fmt: skip
    operands = ((semantics.writes, place.buffer, at), (source, from_buffer, from_at))
    shared = instruction_guards(build, frame, step, semantics.width)
    return guarded(ir.Instruction(semantics, operands, semantics.width, step.span), shared, step.span)


def _count_existing(frame: Frame, step: Do, lanes: int) -> Expr | None:
    """How many leading elements exist in the source; None if all of them do."""
    found = frame.match
    (moving,) = (theirs for _, theirs in found.binding)
    try:
        count = existing(frame, moving, lanes, [])
    except NotCopied as reason:
        raise refuse(
            step, "unguardable-do", f"`{step}` cannot be guarded: {reason}", "remove the `do` to use plain loops"
        ) from None
    if count is None:
        return None
    outside = found.instruction.outside
    if frame.fill is None or outside is None or frame.fill.value != outside:
        gives, needs = (
            v if v is not None else "nothing" for v in (outside, frame.fill.value if frame.fill is not None else None)
        )
        raise refuse(step, "unguardable-do", f"`{step}` gives {gives} outside the tensor, but the reader needs {needs}",
                     "remove the `do` to use plain loops")  # fmt: skip
    return count
