"""Makes tensors resident: loads by region and by access, into shared memory and into registers, and computed stages."""

from __future__ import annotations

import dataclasses
import math

from tilelang.computations.computation import Tensor
from tilelang.core.expr import Expr, index
from tilelang.lowering import ir
from tilelang.lowering.build.distribution.layout_conversion import redistributed
from tilelang.lowering.build.frame import Build, Frame, Move, Target
from tilelang.lowering.build.instruction.fragment_loads import share_of
from tilelang.lowering.build.instruction.fragment_results import stage_share
from tilelang.lowering.build.lookahead import ahead_in, slots_below
from tilelang.lowering.build.movement.cache_prefetch import prefetch
from tilelang.lowering.build.movement.footprint import is_unread, region_of
from tilelang.lowering.build.movement.shared_loads import box_for, move_frame, move_region, shared_buffer, through_registers
from tilelang.lowering.build.movement.stages import check_stored, stage_frame
from tilelang.lowering.build.movement.staging import by_registers
from tilelang.lowering.build.movement.storage import Box, Residence
from tilelang.lowering.build.pipelining.iteration_count import awaits_itself, completes_later
from tilelang.lowering.build.reductions.shared_loop import states_repaired
from tilelang.lowering.build.refusals import laid_out, refuse
from tilelang.schedules.steps import Place
from tilelang.schedules.task import Task, is_stored

STAGED_ELEMENTS = 64  # a prefetched load waits in registers if a thread holds at most this many elements


# ------------------------------------------------------------ loads


def load(build: Build, frame: Frame, i: int, step: Place) -> ir.Stmt:
    """The move of a load, then the remaining steps with the tensor resident."""
    if step.memory not in ("shared", "register"):
        return prefetch(build, frame, i, step)
    move, residence = make_resident(build, frame, i, step, None)
    return ir.seq(move, build.chain(frame.replace(residences=(*frame.residences, residence)), i + 1))


def make_resident(build: Build, frame: Frame, i: int, step: Place, slot: Expr | None) -> tuple[ir.Stmt, Residence]:
    """The move of a load, and where its readers find the tensor.

    slot: which buffer of a multistage buffer it fills; without one, an asynchronous move is awaited at once.
    """
    region, uses = region_of(build, frame, i, step)
    points = [p.name[1:] for p in region.source.points]
    if points and not region.points:
        raise refuse(step, "layout-dimension", f"`{step}` loads a region of {step.tensor_name}, which is staged as one element per"
                     f" point of {', '.join(points)}", "use these axes in the layout, or remove the layout",
                     f"{uses[0].read} is one of those elements; its neighbours in the tensor are not staged")  # fmt: skip
    unread, ring = is_unread(frame, uses), build.ring(frame.key(i))
    residence: Residence
    move = ir.seq()
    if step.memory == "register":
        residence = share_of(build, frame, i, step, region, uses)
        fetch = redistributed(build, frame, step, region, residence)
        move = move if unread else fetch
    else:
        residence = box_for(build, frame, step, region, ring, slot)
        if not unread:
            move = move_region(build, frame, step, region, Target((residence,), step.stream), Move(ring))
    if slot is None and completes_later(ring, step):
        move = ir.seq(move, ir.Commit(step.span), ir.Wait(0, step.span))
    return move, residence


# ------------------------------------------------------------ multistage buffers


def staged_move(build: Build, frame: Frame, i: int, step: Place, slot: Expr) -> tuple[ir.Stmt, ir.Stmt | None]:
    """A prefetching load in two parts: the fetch, and the store at the end of the iteration, until which the data waits in
    registers.

    There is no second part if the device copies asynchronously, or if the elements are stored at once.
    """
    ring = build.ring(frame.key(i))
    if completes_later(ring, step):
        return make_resident(build, frame, i, step, slot)[0], None
    region, uses = region_of(build, frame, i, step)
    box = box_for(build, frame, step, region, ring, slot)
    if is_unread(frame, uses):
        return ir.seq(), None
    whole = move_frame(build, frame, step, region, Target((box,)))
    shape, _, lanes = slots_below(whole, 0, build.profile)
    held = math.prod(shape) * lanes
    insists = by_registers(step)
    alone, many = (frame.spec.units or 1) == 1 and not insists, held > STAGED_ELEMENTS and not insists
    how = "stored at once by a single thread" if alone else "prefetched through registers"
    if many and not alone:
        how = f"stored at once, because a thread's share of {held} elements is more than {STAGED_ELEMENTS}"
    build.note(f"`{step}`: {how}" + (f"; no asynchronous copies, because {ring.refused}" if ring.refused else ""))
    if alone or many:
        return move_region(build, frame, step, region, Target((box,)), Move(ring)), None
    return through_registers(build, whole)


def ring_body(build: Build, frame: Frame, i: int, slots: dict[Place, Expr], moves: dict[Place, ir.Stmt]) -> ir.Stmt:
    """The body of a loop with prefetched loads, whose readers use `slots`.

    Asynchronous moves of earlier iterations are awaited as far as this iteration needs them; its own moves form one group.
    """
    rings = {step: build.ring(frame.key(frame.steps.index(step, i))) for step in moves}
    mine = [step for step, ring in rings.items() if completes_later(ring, step)]
    if not mine:
        return _iteration_body(build, frame, i, slots, moves)
    last = mine[-1]
    closed = {**moves, last: ir.seq(moves[last], ir.Commit(last.span))}
    pending = min(step.ahead for step in mine) - 1
    body = _iteration_body(build, frame, i, slots, closed)
    awaited = awaits_itself(build, [rings[step] for step in mine], body)
    return body if awaited else ir.seq(ir.Wait(pending, last.span), body)


def _iteration_body(build: Build, frame: Frame, i: int, slots: dict[Place, Expr], moves: dict[Place, ir.Stmt]) -> ir.Stmt:
    """The moves for later iterations, then the rest of the loop's body with the prefetched tensors resident."""
    out: list[ir.Stmt] = []
    here = ahead_in(frame.steps, i)
    mine = [(k, s) for k, s in enumerate(frame.steps) if isinstance(s, Place) and any(s is p for p in here) and s in slots]
    for k, step in mine:
        out.append(moves[step])
        if step.verb == "compute":
            frame = frame.replace(residences=(*frame.residences, *_stage_places(build, frame, k, step, slots[step])))
            continue
        region, uses = region_of(build, frame, k, step)
        ring = build.ring(frame.key(k))
        if step.memory == "register":
            share = share_of(build, frame, k, step, region, uses)
            residence: Residence = dataclasses.replace(share, buffer=ring.buffers[step.tensor_name][0])
        else:
            residence = box_for(build, frame, step, region, ring, slots[step])
        frame = frame.replace(residences=(*frame.residences, residence))
    done = {k for k, _ in mine}  # other loads may stand between those that run ahead
    rest = tuple(s for k, s in enumerate(frame.steps) if k not in done)
    return ir.seq(ir.joined(*out), build.chain(frame.replace(steps=rest), i))


def compute(build: Build, frame: Frame, i: int, step: Place) -> ir.Stmt:
    """A stage: computes a tensor here, for this spec and for later stages."""
    shared = frame.shared
    if shared is not None and shared.member(step.tensor_name) is not None:
        made, frame = make_stage(build, frame, i, step, None)[0], frame.replace(shared=shared.after(step))
        complete = shared.after(step).complete
        return ir.seq(made, states_repaired(build, frame, i + 1) if complete else ir.seq(), build.chain(frame, i + 1))
    made, residences = make_stage(build, frame, i, step, None)
    return ir.seq(made, build.chain(frame.replace(residences=(*frame.residences, *residences)), i + 1))


def make_stage(build: Build, frame: Frame, i: int, step: Place, slot: Expr | None) -> tuple[ir.Stmt, tuple[Residence, ...]]:
    """The statements of a stage, and where its readers find its tensors. slot: which buffer of a multistage buffer it fills."""
    task = build.task_of(step.tensor_name)
    _check_memory(build, frame, step, task)
    for read in task.reads():
        own = task.state_member(read.tensor) is not None
        pending = frame.shared is not None and frame.shared.is_pending(read.tensor)
        if not own and (pending or not any(r.tensor is read.tensor for r in frame.residences)):
            raise refuse(step, "stage-order", f"`{step}`: it reads {read.tensor.name}, which a later step computes",
                         f"compute {read.tensor.name} first", f"{read} has no value yet")  # fmt: skip
    stage = stage_frame(build, frame, i, i, step)
    if stage.shared is not None:  # the shared loop has its buffers
        build.stages[stage.of] = stage
        places = {r.tensor: r for r in frame.residences}
        residences = tuple(places[t] for t in stage.task.outputs)
        stage = stage.replace(shared=None)
    else:
        residences = tuple(_stage_place(build, frame, stage, step, t, slot) for t in stage.task.outputs)
    empty = any(a.extent == 0 and not a.reduction for a in stage.spec.axes)
    return ir.seq() if empty else build.chain(stage.replace(target=Target(residences, step.stream)), 0), residences


def _check_memory(build: Build, frame: Frame, step: Place, task: Task) -> None:
    """Refuses a stage whose memory cannot hold it."""
    if is_stored(step) and frame.shared is not None and frame.shared.member(step.tensor_name) is not None:
        return  # checked before the loop
    if is_stored(step):
        check_stored(build, frame, step, task)
    elif step.memory not in ("shared", "register"):
        raise refuse(
            step,
            "stage-memory",
            f"`{step}` is inside a block, where tensors are computed in shared, register or, if they are outputs, global",
            "compute it in shared or register, or in global at the head of the schedule",
        )


def stage_places(build: Build, frame: Frame, i: int, step: Place) -> tuple[Residence, ...]:
    """Buffers for the tensors of a stage that outlive its loop. Raises Refusal if its memory cannot hold them."""
    task = build.task_of(step.tensor_name)
    _check_memory(build, frame, step, task)
    stage = stage_frame(build, frame, i, i, step)
    return tuple(_stage_place(build, frame, stage, step, t, None) for t in task.outputs)


def _stage_places(build: Build, frame: Frame, i: int, step: Place, slot: Expr) -> tuple[Residence, ...]:
    """Where the readers of a stage that runs ahead find its tensors; in registers, always in the first buffers of the ring."""
    stage, slot = stage_frame(build, frame, i, i, step), index(0) if step.memory == "register" else slot
    return tuple(_stage_place(build, frame, stage, step, t, slot) for t in stage.task.outputs)


def _stage_place(build: Build, frame: Frame, stage: Frame, step: Place, tensor: Tensor, slot: Expr | None) -> Residence:
    if is_stored(step):
        return build.outputs[tensor]
    spatial = [a for a in stage.spec.axes if not a.reduction]
    low, ends = tuple(a.base for a in spatial), tuple(a.bounds for a in spatial)
    if step.memory == "register":
        return stage_share(build, stage, step, tensor, slot)
    placement = laid_out(step, {a.name: a.extent for a in spatial}, tensor.dtype.bytes)
    count, unit = frame.own_copy(build.threads)
    ring = step.ahead + 1 if slot is not None else 0
    shape = (*((ring,) if ring else ()), *count, *placement.shape)
    buffer = shared_buffer(build, build.ring(stage.of), tensor, shape, step, ring)
    return Box(tensor, None, buffer, ends=ends, low=low, placement=placement, slot=slot, unit=unit)
