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
from tilelang.schedules.spec import AxisState, Bound, Spec, point
from tilelang.schedules.steps import Place, Step, Tile
from tilelang.schedules.task import Task


def stage_frame(build: Build, frame: Frame, i: int, k: int, step: Place) -> Frame:
    """The spec of the stage of step k as it will stand, seen from the frame before step i."""
    task = build.task_of(step.tensor_name)
    uses = [u for u in uses_below(build, frame, k + 1) if u.read.tensor in task.outputs]
    if not uses:
        raise refuse(step, "stage-unread", f"`{step}`: no step below reads {step.tensor_name}", "remove the `compute`")
    ranges: list[Range] = hull(uses, step)
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
    if member is not None:  # the chunk of a round
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
    """A stage's steps; silent ones follow the owners of an operand in registers."""
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
