"""Finds the instruction of a `do`, its extent along each axis, and the reads of its operands.

A `do` is matched once, when its list of steps is complete: by meaning, shape, level, memory and type. Layouts are compared when
the statement is written, because the buffers do not exist earlier.
"""

from __future__ import annotations

from collections.abc import Callable

from tilelang.core.dtype import DType
from tilelang.core.expr import Axis, Pad, Read
from tilelang.errors import Refusal, at_step, counted
from tilelang.instructions import matching
from tilelang.instructions.instruction import ONE_LANE, Instruction, known, use
from tilelang.instructions.matching import Leaf as MatchedLeaf
from tilelang.instructions.semantics import POINTWISE
from tilelang.lowering.build.frame import Build, Frame
from tilelang.lowering.build.instruction.leaf_description import (
    LeafDescription,
    Matched,
    Resident,
    describe_leaf,
    described,
    global_read,
    left,
    promised,
    resident,
)
from tilelang.lowering.build.movement.storage import Box, Residence
from tilelang.lowering.build.reads import residence_of
from tilelang.lowering.build.refusals import refuse
from tilelang.schedules.spec import Spec, complete
from tilelang.schedules.steps import Do, Place, Step, Tile
from tilelang.schedules.task import Task


def written_out(build: Build, frame: Frame, steps: tuple[Step, ...], into: str, order: list[tuple[str, int]] | None = None,
                between: tuple[Step, ...] = ()) -> Frame:  # fmt: skip
    """A frame with its implied steps added, and with the match of the instruction at their end.

    into: the memory that a load writes. order: the order of its loops over the dimensions. between: places that will be made
    before the steps.
    """
    matched = leaf_match(build, frame.task, frame.spec, (*between, *steps), frame.residences, into)
    taken = {} if matched is None else matched.taken
    return frame.replace(steps=complete(frame.spec, steps, bool(frame.task.states), order, taken), matched=matched)


def held_as(step: Do, type: DType) -> DType:
    """The type of an accumulator between the updates of an instruction: the operand's type if a licence allows lower
    precision, else its own."""
    semantics = use(step.instruction)
    return semantics.operand(semantics.writes).dtype if "float16_accumulate" in semantics.licences else type


def record_of(step: Do) -> Instruction:
    """The definition of a `do`'s instruction. Raises Refusal at the step if there is none with this name."""
    try:
        return use(step.instruction)
    except Refusal as error:
        error.span = step.span or error.span
        raise


def _check_licences(step: Do, semantics: Instruction, task: Task) -> None:
    """Refuses an instruction that computes less accurately than the definition allows."""
    made = task.states[0].tensors[0] if task.states else task.outputs[0]
    given = made.definition.allow if made.definition is not None else ()
    for licence in semantics.licences:
        if licence not in given:
            message = f"`{step}` is less accurate than the definition of {made.name} requires; it needs the licence {licence}"
            raise refuse(step, "licence", message, f'write tl.define(..., allow=("{licence}",)), or use another instruction')


# ------------------------------------------------------------ matching


def leaf_match(
    build: Build, task: Task, spec: Spec, steps: tuple[Step, ...], residences: tuple[Residence, ...], into: str = ""
) -> Matched | None:
    """The match of the instruction at the end of `steps`; None if they do not end in one.

    residences: what is resident before the steps; into: the memory that a load writes. Raises Refusal if the instruction does not
    fit, as far as this is known before anything is placed.
    """
    step = steps[-1] if steps else None
    if not isinstance(step, Do):
        return None
    semantics = record_of(step)
    _check_licences(step, semantics, task)
    written = complete(spec, steps, bool(task.states))
    spec, extents, cut = left(spec, steps)
    asked = _asked(task, spec, steps, residences, into, step)
    name = asked.means.target.tensor.name
    accumulators = [s.memory for s in written if isinstance(s, Place) and s.verb == "accumulate"]
    memory = into or (accumulators[-1] if accumulators else "register")
    sizes = extents.items() if asked.means.kind != POINTWISE else ((d.name, d.extent) for d in asked.means.target.tensor.dims)
    target = matching.Residence(name, memory, asked.means.target.dtype, tuple(sizes))
    leaf = MatchedLeaf(asked.means, tuple(extents.items()), _level(build, spec, steps),
                       (*(described(r, asked.residents[r]) for r in asked.reads), target))  # fmt: skip
    binding = dict(step.binding)
    try:
        found = matching.match(semantics, leaf, binding)
    except Refusal as error:
        raise at_step(error, step) from None
    whole = set() if into else set(extents) - cut  # the tail of an uncut axis is filled; a tile of a cut axis must fit
    wrong = [
        m for m in found.mismatches if m.field not in ("layout", "alignment") and not (m.field == "shape" and m.where in whole)
    ]
    if wrong:
        near = [m for m in matching.nearest(_here(build, semantics), leaf, 2, binding) if m.instruction.name != semantics.name]
        raise matching.refuse(str(step), [found.replace(mismatches=tuple(wrong)), *near], span=step.span)
    return Matched(found, asked.reads)


def _here(build: Build, semantics: Instruction) -> list[Instruction]:
    return [i for i in known() if i.kind == semantics.kind and i.unavailable(build.profile) is None]


def _asked(
    task: Task, spec: Spec, steps: tuple[Step, ...], residences: tuple[Residence, ...], into: str, step: Do
) -> LeafDescription:
    loads: dict[str, list[Place]] = {}
    for s in steps:
        if isinstance(s, Place) and s.verb in ("load", "compute"):
            loads.setdefault(s.tensor_name, []).append(s)

    def find(whole: Read | Pad) -> Resident:
        read = whole.read if isinstance(whole, Pad) else whole
        mine = [s for s in loads.get(read.tensor.name, ()) if not isinstance(s.what, Read) or s.what is read]
        if mine:
            return promised(whole, mine)
        for residence in reversed(residences):
            if residence.serves(read, whole):
                return resident(whole, residence)
        return global_read(whole)

    return _describe_leaf(task, spec, find, into, step)


def _describe_leaf(
    task: Task, spec: Spec, find: Callable[[Read | Pad], Resident], into: str, step: Do, box: Box | None = None
) -> LeafDescription:
    """box: where an accumulator outside registers is."""
    made, computed = task.outputs[0], not isinstance(task.values[0], (Read, Pad))
    target: tuple[str, DType] = (made.name if computed else f"{task.name} in {into}", made.dtype)
    if task.states:
        state = task.states[0]
        target = (f"the accumulator of {state.tensors[0].name}", held_as(step, state.reduce.combiner.left[0].dtype))
    dims = made.dims if not task.states and (computed or into == "global") else None
    if box is not None:
        dims = tuple(Axis(p.name[1:], spec.axis(p.name[1:]).extent) for p in box.points) or task.axes
    found = describe_leaf(task, spec, find, target, dims)
    if found is None:
        raise refuse(step, "instruction-mismatch", f"`{step}` does not match the innermost body",
                     "remove the `do`: an instruction updates one reduction of one value without a condition, copies a tensor or"
                     " computes one",
                     _not_one(task))  # fmt: skip
    return found


def _level(build: Build, spec: Spec, steps: tuple[Step, ...]) -> str:
    """The level that executes the innermost statement: that of the last tile, or the level with as many threads as a block."""
    tiles = [s for s in steps if isinstance(s, Tile) and s.level not in ("cluster", "block")]
    last = steps[-1] if steps else None
    if isinstance(last, Do) and record_of(last).issue == ONE_LANE and not tiles:
        return record_of(last).level  # issued by one lane, whatever the number of threads
    level = tiles[-1].level if tiles else spec.level
    if level not in ("kernel", "block"):
        return level
    alike = [f.name for f in build.profile.levels if f.threads == build.threads]
    return alike[0] if alike else level


def checked(frame: Frame, step: Do, into: str) -> tuple[tuple[str, Read | Pad], ...]:
    """The read of each operand, after a comparison of layouts and alignment. Raises Refusal."""
    box = frame.state.box if frame.state is not None else None
    asked = _describe_leaf(frame.task, frame.spec, lambda whole: resident(whole, residence_of(frame, whole)), into, step, box)
    found = frame.match
    place = frame.state.buffers[0][0] if frame.state is not None else frame.target.places[0].buffer
    target = matching.Residence(asked.means.target.tensor.name, place.memory, place.dtype, _target_dims(frame, into))
    residences = [described(r, asked.residents[r]) for r in asked.reads]
    if into or box is not None:
        read = Read(asked.means.target.tensor, asked.means.target.indices)
        laid = described(read, resident(read, box or frame.target.places[0]))
        target = target.replace(dims=laid.dims, layout=laid.layout)
    extents = tuple((a.name, a.extent) for a in frame.spec.axes)
    leaf = MatchedLeaf(asked.means, extents, found.instruction.level, (*residences, target))
    again = matching.match(found.instruction, leaf, dict(found.binding))
    if not again.fits:
        raise matching.refuse(str(step), [again], span=step.span)
    return tuple((name, asked.reads[r]) for name, r in again.operands if name != again.instruction.writes)


def _target_dims(frame: Frame, into: str) -> tuple[tuple[str, int], ...]:
    return tuple((a.name, a.extent) for a in frame.spec.axes if into or not a.reduction)


def _not_one(task: Task) -> str:
    if len(task.states) > 1:
        return f"{task.name} has {len(task.states)} reductions that share a loop"
    if task.states and task.states[0].reduce.condition is not None:
        return f"the reduction {task.states[0].tensors[0].name} has a condition"
    if task.states:
        return f"the reduction {task.states[0].tensors[0].name} has {counted(len(task.states[0].reduce.values), 'member')}"
    return f"{task.name} has {len(task.values)} outputs"
