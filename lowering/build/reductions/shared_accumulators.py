"""Accumulators in shared memory, addressed by coordinates: updated by the innermost statement or by inner accumulators."""

from __future__ import annotations

import math

from tilelang.core.expr import index
from tilelang.core.simplify import conjunction, simplify
from tilelang.lowering import ir
from tilelang.lowering.build.distribution.parallel_mapping import digits
from tilelang.lowering.build.frame import Build, Frame, StatePlace, Target
from tilelang.lowering.build.movement.staging import at_stop
from tilelang.lowering.build.movement.storage import Residence
from tilelang.lowering.build.reads import residence_of
from tilelang.lowering.build.reductions.combine import stored
from tilelang.lowering.build.reductions.results import (
    boxes_for,
    by_iteration,
    in_steps,
    result_box,
    results_frame,
    store_results,
    stored_pointwise,
)
from tilelang.lowering.build.reductions.shared_loop import finished
from tilelang.lowering.build.refusals import refuse
from tilelang.schedules.steps import Place, Split, Step, Tile, Vectorize
from tilelang.schedules.task import State, Task, reads


def shared_accumulator(build: Build, frame: Frame, i: int, step: Place) -> ir.Stmt:
    """An accumulator in shared memory, indexed by coordinates; an inner accumulator combines into it, or the innermost
    statement updates it."""
    if frame.state is not None and frame.state.memory == "shared":
        raise refuse(step, "accumulate-order", f"`{step}`: there is already an accumulator in shared", f"remove this `{step}`")
    if frame.state is not None:
        raise refuse(
            step,
            "accumulate-order",
            f"`{step}` is inside an accumulator in {frame.state.memory}",
            "write `accumulate in shared` above `accumulate in register`",
        )
    buffers, boxes = [], []
    for state in frame.task.states:
        members = []
        for tensor, variable in zip(state.tensors, state.reduce.combiner.left, strict=True):
            box = result_box(build, frame, f"{tensor.name}_state", variable.dtype, step, tensor, frame.task.axes)
            boxes.append(box)
            members.append(box.buffer)
        buffers.append(tuple(members))
    outer = frozenset(b.key for a in frame.spec.axes for b in a.bounds)
    place = StatePlace(tuple(buffers), "shared", box=boxes[0], outer=outer)
    inner = any(isinstance(s, Place) and s.verb == "accumulate" for s in frame.steps[i + 1 :])
    start = (
        []
        if inner
        else [_clear(build, frame, state, members, step) for state, members in zip(frame.task.states, buffers, strict=True)]
    )
    below = frame.replace(state=place, slots=(), walks=())
    body = build.chain(below, i + 1)
    task = Task(frame.task.name, frame.task.outputs, frame.task.axes, frame.task.values)
    for k, s in enumerate(frame.steps[i + 1 :], i + 1):
        if isinstance(s, Split) and s.of:
            frame = finished(build, frame, k)
    there = frame.replace(residences=(*frame.residences, *boxes), finishing=True)
    for whole in dict.fromkeys(whole for value in task.values for whole in reads(value)):
        residence_of(there, whole)  # refuses a stage that is computed below

    def back(target: Target) -> ir.Stmt:
        if target.in_registers:
            return _load_for_owners(build, frame, i, task, target, tuple(boxes), step)
        return _store_from_shared(build, frame, task, target, tuple(boxes), step)

    return ir.seq(*start, body, by_iteration(frame, frame.target.stored_as(step), step, back))


def _load_for_owners(
    build: Build, frame: Frame, i: int, task: Task, target: Target, boxes: tuple[Residence, ...], step: Place
) -> ir.Stmt:
    """Loads the finished values from shared memory into registers: each thread gets the elements that the steps below map to it."""
    name = frame.task.name
    if step.steps:
        raise refuse(step, "owners-store", f"`{step}`: the results go to the registers that hold {name}, and the tiles of these are"
                     " those of the steps below", f"remove these braces, or compute {name} in shared")  # fmt: skip
    spatial = {a.name for a in frame.spec.axes if not a.reduction}
    own = list[Step]()
    tiled = {n for s in frame.steps[i + 1 :] if isinstance(s, Tile) for n, _ in s.sizes}
    if tiled & spatial and tiled - spatial:
        raise refuse(step, "not-lowered-yet", f"`{step}`, for results in registers, above tiles of both results and reductions is"
                     " valid, but not supported yet", f"tile only one of them, or compute {name} in shared")  # fmt: skip
    for s in frame.steps[i + 1 :]:
        if isinstance(s, (Tile, Split)) and (sizes := tuple((n, size) for n, size in s.sizes if n in spatial)):
            own.append(s.replace(sizes=sizes))
        elif isinstance(s, Vectorize) and s.axis in spatial:
            own.append(s)
    return in_steps(build, results_frame(frame, task, target, boxes), tuple(own))


def _store_from_shared(
    build: Build, frame: Frame, task: Task, target: Target, boxes: tuple[Residence, ...], step: Place
) -> ir.Stmt:
    """Stores the finished values from shared memory to the target, or to a staging buffer and on from there, each by its own steps."""
    parted = at_stop(step.steps)
    if parted is None or parted[1].memory != "shared":
        return stored_pointwise(build, frame, task, target, boxes, step.steps)
    before, stop, after = parted
    if stop.steps and before:
        raise refuse(stop, "via-steps", f"`{step}` has two sets of steps for the copy to its staging buffer: before `{stop}` and in"
                     " its braces", "keep one set")  # fmt: skip
    there = boxes_for(build, frame, stop)
    put = stored_pointwise(build, frame, task, Target(there), boxes, before or stop.steps)
    return ir.seq(put, store_results(build, frame, target, there, after))


def _clear(build: Build, frame: Frame, state: State, members: tuple[ir.Buffer, ...], step: Place) -> ir.Stmt:
    """Sets a shared accumulator to the identity, with all units."""
    out = []
    _, unit = frame.own_copy(build.threads)
    units = frame.spec.units or 1
    for b, identity in zip(members, state.reduce.combiner.identity, strict=True):
        shape = b.shape[len(unit) :]
        elements = math.prod(shape)
        each = build.variable("clear", -(-elements // units))
        number = simplify(each * units + frame.spec.lane)
        found = digits(number, {str(d): n for d, n in enumerate(shape)})
        store: ir.Stmt = ir.Store(b, (*unit, *found.values()), stored(identity, b), None, False, step.span)
        within = [number < elements] if elements % units else []
        some = conjunction([*frame.spec.present, *within])
        store = store if some is None else ir.If(some, store, None, step.span)
        out.append(ir.For(each, index(-(-elements // units)), store, "serial", step.span))
    return ir.seq(*out)
