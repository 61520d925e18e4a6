"""Stores results: directly from their owners, or through a staging buffer in shared memory and a move of its own."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence

from tilelang.computations.computation import Tensor
from tilelang.core.dtype import DType
from tilelang.core.expr import Axis, Binary, Expr, Read, index
from tilelang.core.simplify import conjunction
from tilelang.lowering import ir
from tilelang.lowering.build.frame import Build, Frame, Target
from tilelang.lowering.build.instruction.match import written_out
from tilelang.lowering.build.movement.shared_loads import move_steps
from tilelang.lowering.build.movement.storage import Box, Residence
from tilelang.lowering.build.refusals import check_chain, laid_out, refuse
from tilelang.schedules.spec import point
from tilelang.schedules.steps import Fuse, Place, Step, Unfuse
from tilelang.schedules.task import Task


def by_iteration(frame: Frame, target: Target, step: Place, back: Callable[[Target], ir.Stmt]) -> ir.Stmt:
    """Rule 2: stores results in the first iteration of the enclosing reduction loops, and combines with the stored ones in
    later iterations."""
    first = conjunction([Binary("==", w, index(0)) for w in frame.walks])
    again = dataclasses.replace(target, again=frame.task.states)
    return back(target) if first is None else ir.If(first, back(target), back(again), step.span)


def check_stop(frame: Frame, target: Target, stop: Place) -> None:
    """Refuses a staging buffer for a stage in registers: each thread holds what its own steps compute, so nothing is passed on."""
    if target.in_registers and (frame.spec.units or 1) > 1 and stop.memory == "shared":
        name = frame.task.name
        raise refuse(stop, "not-lowered-yet", f"`{stop}` on the way to {name} in registers is valid, but not supported yet",
                     f"remove it, or compute {name} in shared and load it in register")  # fmt: skip


def boxes_for(build: Build, frame: Frame, stop: Place) -> tuple[Box, ...]:
    """Staging buffers in shared memory for this spec's part of each output."""
    return tuple(result_box(build, frame, t.name, t.dtype, stop, t, t.dims) for t in frame.task.outputs)


def stored_by_iteration(
    build: Build, frame: Frame, target: Target, step: Place, boxes: tuple[Residence, ...], rest: tuple[Step, ...]
) -> ir.Stmt:
    """Moves finished values from the staging buffers to the target."""
    return by_iteration(frame, target, step, lambda t: store_results(build, frame, t, boxes, rest))


def via(build: Build, frame: Frame, i: int, step: Place) -> ir.Stmt:
    """The staging of pointwise results: in registers (which changes only how they are stored), or in shared memory before a
    move of its own."""
    if frame.task.states:
        raise refuse(step, "via-of-state", f"`{step}`: {frame.task.name} has reductions, whose results are stored by the steps of"
                     " `accumulate`",
                     "write it there: accumulate in register { via shared; ... }")  # fmt: skip
    if step.memory == "register":
        if step.layout is not None or step.steps:
            raise refuse(step, "via-steps", f"`{step}`: each thread stores the results that it holds in registers, so `via"
                         " register` has no layout or steps of its own", str(step.replace(layout=None, steps=None)))  # fmt: skip
        return build.chain(frame.replace(target=frame.target.stored_as(step)), i + 1)
    if step.memory != "shared":
        raise refuse(step, "via-memory", f"`{step}`: results can only be staged in register or shared", "via shared")
    check_stop(frame, frame.target, step)
    boxes = boxes_for(build, frame, step)
    put = build.chain(frame.replace(target=Target(boxes)), i + 1)
    return ir.seq(put, store_results(build, frame, frame.target.stored_as(step), boxes, step.steps or ()))


def result_box(build: Build, frame: Frame, name: str, type: DType, step: Place, tensor: Tensor, over: Sequence[Axis]) -> Box:
    """A shared buffer for this spec's part of a tensor, with dimensions in the order of the axes `over`, or of fused axes in
    their place."""
    dims = _box_axes(frame, step, over)
    placement = laid_out(step, {d: frame.spec.axis(d).extent for d in dims}, type.bytes)
    count, unit = frame.own_copy(build.threads)
    buffer = build.buffer(f"{name}_{step.memory}", type, (*count, *placement.shape), "shared")
    low = tuple(frame.spec.axis(d).base for d in dims)
    points = () if dims == tuple(a.name for a in over) else tuple(map(point, dims))
    return Box(tensor, None, buffer, low=low, placement=placement, unit=unit, points=points)


def _box_axes(frame: Frame, step: Place, over: Sequence[Axis]) -> tuple[str, ...]:
    """The axes of such a buffer: those requested or, if some are fused or divided, those of the spec, which no later step may
    change."""
    own, axes = tuple(a.name for a in over), tuple(a.name for a in frame.spec.axes if not a.reduction)
    if set(axes) <= set(own):
        return own
    for s in frame.steps:
        if isinstance(s, (Fuse, Unfuse)) and set(axes) & set(s.axes if isinstance(s, Fuse) else (s.axis,)):
            raise refuse(step, "not-lowered-yet", f"`{step}` above `{s}` is valid, but not supported yet",
                         f"write `{s}` above it")  # fmt: skip
    return axes


def store_results(build: Build, frame: Frame, target: Target, boxes: tuple[Residence, ...], steps: tuple[Step, ...]) -> ir.Stmt:
    """Moves finished values from `boxes` to the target."""
    values = tuple(Read(t, by_dims(t, frame.task)) for t in frame.task.outputs)
    task = Task(frame.task.name, frame.task.outputs, frame.task.axes, values)
    return stored_pointwise(build, frame, task, target, boxes, steps)


def stored_pointwise(
    build: Build, frame: Frame, task: Task, target: Target, boxes: tuple[Residence, ...], steps: tuple[Step, ...] | None
) -> ir.Stmt:
    inner = results_frame(frame, task, target, boxes)
    return in_steps(build, inner, move_steps(build, inner, steps))


def results_frame(frame: Frame, task: Task, target: Target, boxes: tuple[Residence, ...]) -> Frame:
    """The frame of a task over this spec's results, before its steps."""
    axes = tuple(a for a in frame.spec.axes if not a.reduction)
    coordinates = tuple((n, e) for n, e in frame.spec.coordinates if n in {a.name for a in task.axes})
    spec = frame.spec.replace(title=task.name, axes=axes, coordinates=coordinates)
    around = tuple((point(a.name), a.base) for a in frame.spec.axes if a.reduction)
    return Frame(task, (), spec, target, (*frame.residences, *boxes), around=(*frame.around, *around),
                 origin=frame.origin, cuts=frame.cuts)  # fmt: skip


def in_steps(build: Build, inner: Frame, chosen: tuple[Step, ...]) -> ir.Stmt:
    check_chain(build, inner.spec, chosen, inner.task, None)
    return build.chain(written_out(build, inner, chosen, inner.target.places[0].buffer.memory), 0)


def by_dims(tensor: Tensor, task: Task) -> tuple[Expr, ...]:
    """The task's axes in the order of a tensor's own dimensions."""
    named = {a.name: a for a in task.axes}
    return tuple(named[d.name] for d in tensor.dims)
