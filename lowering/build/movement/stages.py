"""The spec and the steps of a stage: the elements that its readers need, and how they are computed."""

from __future__ import annotations

from tilelang.core.expr import index
from tilelang.lowering.build.frame import Build, Frame, Target
from tilelang.lowering.build.instruction.match import written_out
from tilelang.lowering.build.movement.access_regions import hull, uses_below
from tilelang.lowering.build.movement.shared_loads import move_steps
from tilelang.lowering.build.reductions.shared_loop import chunk_task
from tilelang.lowering.build.refusals import check_chain, refuse
from tilelang.lowering.needs import Range, conditions
from tilelang.schedules.shared_loops import reads_any
from tilelang.schedules.spec import AxisState, Bound, Spec, point
from tilelang.schedules.steps import Place, Step, Tile
from tilelang.schedules.task import Task, is_stored


def stage_frame(build: Build, frame: Frame, i: int, k: int, step: Place) -> Frame:
    """The frame of the stage that step k computes, seen from the frame before step i."""
    task = build.task_of(step.tensor_name)
    uses = [u for u in uses_below(build, frame, k + 1) if u.read.tensor in task.outputs]
    if not uses:
        raise refuse(step, "stage-unread", f"`{step}`: no step below reads {step.tensor_name}", "remove the `compute`")
    ranges: list[Range] = hull(uses, step)
    if is_stored(step) and ranges != hull([u for u in uses if u.stored], step):
        name = step.tensor_name
        raise refuse(step, "stored-again", f"`{step}`: the steps below read elements of {name} outside the part that is stored here,"
                     " so several blocks would store the same elements",
                     f"compute {name} in global at the head of the schedule")  # fmt: skip
    tested = {(b.offset, b.limit, b.lower, x.extent) for x in frame.spec.axes for b in x.bounds if b.known}
    axes = []
    for a, (low, extent), wanted in zip(task.axes, ranges, conditions(uses, ranges), strict=True):
        bounds = [Bound(f"{task.name}.{a.name}<", low, a.extent), Bound(f"{task.name}.{a.name}>", low, 0, True)]
        bounds = [b.replace(known=(b.offset, b.limit, b.lower, extent) in tested) for b in bounds if not b.is_certain(extent)]
        for b in wanted:
            if not b.is_certain(extent) and not any(b.follows_from(other) for other in bounds if not other.known):
                bounds.append(b.replace(key=f"{task.name}.{a.name}:{len(bounds)}"))
        axes.append(AxisState(a.name, low, extent, tuple(bounds)))
    member = frame.shared.member(step.tensor_name) if frame.shared is not None else None
    if member is not None:  # the chunk of an iteration
        axes += [frame.spec.axis(a.name) for a in task.reduction_axes]
    else:
        axes += [AxisState(a.name, index(0), a.extent, (), True) for a in task.reduction_axes]
    names = [*task.axes, *task.reduction_axes]
    if member is not None and frame.shared is not None:
        task = chunk_task(task, member, frame.shared)
    spec = Spec(task.name, tuple(axes), tuple((a.name, point(a.name)) for a in names), frame.spec.level, frame.spec.units,
                frame.spec.lane, frame.spec.present)  # fmt: skip
    between = tuple(s for s in frame.steps[i:k] if isinstance(s, Place))
    given = stage_steps(build, frame, spec, task, step)
    check_chain(build, spec, given, task, step)
    stage = Frame(task, (), spec, Target(()), frame.residences, origin=step.span, cuts=frame.cuts, of=frame.key(k),
                  shared=frame.shared if member is not None else None)  # fmt: skip
    return written_out(build, stage, given, "" if task.states else step.memory, between=between)


def stage_steps(build: Build, frame: Frame, spec: Spec, task: Task, step: Place) -> tuple[Step, ...]:
    """The steps of a stage; if they map no tiles, it follows the owners of an operand in registers."""
    given = step.steps or ()
    if not any(isinstance(s, Tile) for s in given):
        for residence in reversed(frame.residences):
            names = {n for s in residence.steps if isinstance(s, Tile) for n, _ in s.sizes}
            if residence.steps and names <= set(spec.names) and any(residence.tensor is r.tensor for r in task.reads()):
                given = (*residence.steps, *given)
                break
        else:
            if step.memory != "register" and not task.states:
                given = move_steps(build, Frame(task, (), spec, Target(()), ()), given)
    return given


def check_stored(build: Build, frame: Frame, step: Place, task: Task) -> None:
    """Refuses a stage that stores outputs where blocks, or iterations, would not store each of their elements once."""
    name, own = step.tensor_name, {a.name: a.extent for a in task.axes}
    missing = next((t for t in task.outputs if t not in build.outputs), None)
    if missing is not None:
        raise refuse(
            step,
            "stage-memory",
            f"`{step}` is inside a block, where only outputs are computed in global, and {missing.name} is not an output",
            f"compute {name} in shared or register, or in global at the head of the schedule",
        )
    if name in {t.name for t in frame.task.outputs}:
        raise refuse(step, "stage-memory", f"`{step}`: the kernel stores {name} already", "remove the `compute`")
    for a in frame.spec.axes:
        if a.base is not index(0) and a.name not in own:
            raise refuse(step, "stored-again", f"`{step}` is below a step that divides {a.name}, which is not an axis of {name}: each"
                         " piece would store the same elements", f"write it above the steps that divide {a.name}; or compute {name} in"
                         " global at the head of the schedule", f"{name} is stored for each piece of {a.name}")  # fmt: skip
        if a.name in own and own[a.name] != _whole(frame, a.name):
            message = f"`{step}`: `{a.name}` is an axis of {name}, but at this step it is the name of a fused axis"
            raise refuse(step, "stored-in-part", message, "give the fused axis another name")
    several = frame.spec.level != "block" or build.roles is not None or build.cluster > 1
    empty = any(a.extent == 0 for a in (*frame.task.axes, *frame.task.reduction_axes))
    for unsupported, what in (
        (several, "an output stored below tiles of threads, by roles, or in clusters"),
        (empty, f"an output stored in a kernel of {frame.task.name}, which has no points"),
        (
            frame.shared is not None and reads_any([task.outputs[0]], {*frame.shared.loop.tensors}),
            "an output that is stored in a shared loop and reads its running values",
        ),
        (bool(step.ahead), "an output stored ahead of its readers"),
        (step.layout is not None, "a layout for an output"),
    ):
        if unsupported:
            raise refuse(step, "not-lowered-yet", f"`{step}`: {what} is valid, but not supported yet for this target",
                         f"compute {name} in global at the head of the schedule")  # fmt: skip


def _whole(frame: Frame, axis: str) -> int:
    """The extent of an axis of a task before it was cut; of a fused one, 0."""
    return next((a.extent for a in (*frame.task.axes, *frame.task.reduction_axes) if a.name == axis), 0)
