"""Loads by another role than the one that computes (warp specialization), ordered by barriers with phases.

The kernel is built once for each role. In the main role, the steps below such a load read its circular buffer between an Await of
the slot's `full` barrier and an arrival at its `empty` barrier. In the role that loads, there is only the move, between an Await
of `empty` and an arrival at `full`. Both count the iterations of all loops around the load, including a block's loop over its
tiles: iteration r uses slot r % n, and each use of a slot is one phase of its barriers. So the buffer never drains, and is filled
and emptied in the same order. tests/lowering/ring_model.py checks every interleaving of this protocol.
"""

from __future__ import annotations

import math

from tilelang.core import dtype as dt
from tilelang.core.expr import INDEX, Const, Expr, Var, index
from tilelang.core.simplify import simplify
from tilelang.instructions.instruction import BARRIER_BY_BYTES, use
from tilelang.lowering import ir
from tilelang.lowering.build.clusters import divided, is_multicast, shares
from tilelang.lowering.build.frame import Build, Frame, Move, StatePlace, Target
from tilelang.lowering.build.movement.footprint import is_unread, region_of
from tilelang.lowering.build.movement.materialize import load
from tilelang.lowering.build.movement.shared_loads import box_for, move_region
from tilelang.lowering.build.movement.storage import Residence
from tilelang.lowering.build.pipelining.iteration_count import completes_later
from tilelang.lowering.build.pipelining.warp_specialization import Plan, Role, Roles, Signals, by_role
from tilelang.lowering.build.reductions.accumulators import accumulate
from tilelang.lowering.build.refusals import refuse
from tilelang.schedules.steps import Do, Place


def all_roles(build: Build, plan: Plan, frame: Frame) -> ir.Stmt:
    """The body of a kernel: initializes the barriers, then branches into the roles."""
    roles = build.roles = Roles(plan, frame.task, plan.main)
    made, grid = [], list[int]()
    for role in (plan.main, *plan.others):
        roles.role = role
        _count_threads(build, role)
        build.grid = []
        spec = frame.spec if frame.spec.units is None else frame.spec.replace(units=role.threads, lane=build.thread)
        body = build.chain(frame.replace(spec=spec), 0)
        if any(s.in_cluster for s in roles.signals.values()):  # others may still fill this block's slots, or release theirs
            body = ir.seq(body, ir.ClusterBarrier(plan.step.span))
        grid = grid or build.grid
        assert build.grid in ([], grid), "roles that have different grids"  # a role with nothing to do has none
        made.append(ir.Role(role.name, role.first, role.threads, body, role.registers, plan.step.span))
    build.roles, build.grid = None, grid
    init = [
        ir.InitPhases(buffer, arrivals, plan.step.span)
        for s in roles.signals.values()
        for buffer, arrivals in ((s.full, s.full_arrivals), (s.empty, s.empty_arrivals))
    ]
    one = ir.If(Var("thread", INDEX, 0, plan.threads - 1) < 1, ir.seq(*init), None, plan.step.span)
    reason = "the barriers of rings have their first phase before any role awaits it"
    meet: ir.Stmt = ir.Barrier(("shared",), (reason,), plan.step.span)
    if any(s.in_cluster for s in roles.signals.values()):
        meet = ir.ClusterBarrier(plan.step.span)
    order = sorted(made, key=lambda role: role.first)
    return ir.seq(*((one, meet) if init else ()), ir.Roles(tuple(order), plan.step.span))


def _count_threads(build: Build, role: Role) -> None:
    """Counts threads within the role."""
    build.threads = role.threads
    build.thread = Build.thread_of(role.threads)


# ------------------------------------------------------------ steps in a role


def role_accumulate(build: Build, frame: Frame, i: int, step: Place) -> ir.Stmt:
    """The scope of an accumulator; a role that only loads just continues with the steps inside."""
    roles = build.roles
    if roles is None or not roles.only_loads or frame.task is not roles.task:
        return accumulate(build, frame, i, step)
    walked = frame.replace(state=StatePlace(((),), step.memory), outer=frame.state, slots=(), walks=(), idle=())
    return build.chain(walked, i + 1)


def role_load(build: Build, frame: Frame, i: int, step: Place) -> ir.Stmt:
    """A load; the main role waits for one that another role executes."""
    roles = build.roles
    if roles is None or not by_role(build, step):
        return load(build, frame, i, step)
    if roles.only_loads and not roles.is_mine(step):
        return build.chain(frame, i + 1)
    beside = [step]  # adjacent loads share the barriers of their slots
    for other in frame.steps[i + 1 :]:
        if not (isinstance(other, Place) and other.verb == "load" and (other.on, other.ahead) == (step.on, step.ahead)):
            break
        beside.append(other)
    return (_filled_ring if roles.only_loads else _emptied_ring)(build, frame, i, beside, roles)


# ------------------------------------------------------------ consumer and producer


def _emptied_ring(build: Build, frame: Frame, i: int, loads: list[Place], roles: Roles) -> ir.Stmt:
    """The main role: waits until a slot is full, executes the steps below the loads, and releases the slot."""
    signals, together = _signals_of(build, frame, i, loads, roles), _together(build, roles.plan.main)
    slot, use = _place(frame, signals)
    boxes = tuple(_slot_of(build, frame, k, step, slot)[0] for k, step in enumerate(loads, i))
    body = build.chain(frame.replace(residences=(*frame.residences, *boxes)), i + len(loads))
    span = loads[0].span
    left = ir.Arrive(signals.empty, slot, together, 0, span, signals.in_cluster)
    return ir.seq(ir.Await(signals.full, slot, use, span), body, left)


def _filled_ring(build: Build, frame: Frame, i: int, loads: list[Place], roles: Roles) -> ir.Stmt:
    """A role that only loads: waits until a slot is empty, and fills it."""
    signals, span = _signals_of(build, frame, i, loads, roles), loads[0].span
    slot, use = _place(frame, signals)
    moves, bytes, boxes = list[ir.Stmt](), 0, list[Residence]()
    for k, step in enumerate(loads, i):
        box, move, elements = _slot_of(build, frame, k, step, slot, signals)
        boxes.append(box)
        if _by_bytes(step):
            bytes += elements * box.buffer.dtype.bytes
        moves.append(
            ir.seq(move, ir.Commit(step.span), ir.Wait(0, step.span)) if completes_later(build.ring(frame.key(k)), step) else move
        )
    rest = build.chain(frame.replace(residences=(*frame.residences, *boxes)), i + len(loads))
    emptied = ir.Await(signals.empty, slot, simplify(1 - use), span)
    announced = ir.Arrive(signals.full, slot, 1, bytes, span) if bytes else None
    one = build.thread < 1
    if all(map(_by_bytes, loads)):
        return ir.joined(ir.If(one, ir.seq(emptied, announced), None, span), *moves, rest)
    by_hand = ir.Arrive(signals.full, slot, _together(build, roles.role), 0, span)
    return ir.seq(emptied, announced and ir.If(one, announced, None, span), *moves, by_hand, rest)


def _slot_of(build: Build, frame: Frame, k: int, step: Place, slot: Expr, signals: Signals | None = None
             ) -> tuple[Residence, ir.Stmt, int]:  # fmt: skip
    """Where the readers of a load find its data, the move that fills it, and how many elements that moves.

    signals: the barriers of the buffer that it fills; None if another role fills it.
    """
    region, uses = region_of(build, frame, k, step)
    ring = build.ring(frame.key(k))
    box = box_for(build, frame, step, region, ring, slot)
    mine, move = divided(build, step, region.spec), ir.seq()
    if signals is not None and not is_unread(frame, uses):
        of = Move(ring, (signals.full, slot), shares(mine) is not None)
        move = move_region(build, frame, mine, region, Target((box,), step.stream), of)
    return box, move, math.prod(a.extent for a in region.spec.axes)


def _signals_of(build: Build, frame: Frame, i: int, loads: list[Place], roles: Roles) -> Signals:
    """The barriers of the buffer that some loads share: created for the main role, and found again by the role that loads."""
    counted = _counted(frame, loads[0])
    known = roles.signals.get(frame.key(i))
    if known is not None:
        if known.counted != counted:
            raise refuse(loads[0], "not-lowered-yet", f"`{loads[0]}`: loops in which one role has fewer iterations are valid, but"
                         " not supported yet for this target", "remove the role from the load")  # fmt: skip
        return known
    slots, stem = loads[0].ahead + 1, "_".join(dict.fromkeys(s.tensor_name for s in loads))
    full, empty = (build.buffer(f"{stem}_{what}", dt.uint64, (slots,), "shared", "phases") for what in ("full", "empty"))
    theirs = next(r for r in roles.plan.others if r.name == loads[0].on)
    by_bytes, by_hand = any(map(_by_bytes, loads)), not all(map(_by_bytes, loads))
    arrivals = int(by_bytes) + by_hand * theirs.threads // _together(build, theirs)
    main = roles.plan.main.threads // _together(build, roles.plan.main)
    in_cluster = any(map(is_multicast, loads))
    if in_cluster:
        _check_alike(frame, loads[0])
        main *= build.cluster
    roles.signals[frame.key(i)] = found = Signals(full, empty, slots, arrivals, main, in_cluster, counted)
    return found


def _together(build: Build, role: Role) -> int:
    """How many threads of a role arrive at a barrier as one: those that run in lockstep."""
    profile = build.profile
    sizes = [f.threads for f in profile.levels if f.lockstep and f.threads and role.threads % f.threads == 0]
    return max(sizes, default=1)


def _by_bytes(step: Place) -> bool:
    last = step.steps[-1] if step.steps else None
    return isinstance(last, Do) and use(last.instruction).completes == BARRIER_BY_BYTES


def _counted(frame: Frame, step: Place) -> tuple[tuple[int, Expr], ...]:
    """The loops around a load: their numbers of iterations, and the end of the outermost one. Refuses inner loops that may end
    early."""
    for depth, walk in enumerate(frame.rounds):
        if not (walk.whole if depth else isinstance(walk.first, Const) and walk.first.value == 0):
            raise refuse(step, "not-lowered-yet", f"`{step}`: its loop over {walk.axis} has fewer iterations in some iterations of an"
                         " enclosing loop, which is valid for a load on a role, but not supported yet for this target",
                         "use tile sizes that divide the extent, or remove the role from the load")  # fmt: skip
    return tuple((walk.rounds, walk.end if depth == 0 else index(walk.rounds)) for depth, walk in enumerate(frame.rounds))


def _check_alike(frame: Frame, step: Place) -> None:
    """Refuses loops that may end early in some blocks of a cluster: all blocks fill the shared slots together in every iteration."""
    for walk in frame.rounds:
        if not (walk.whole or walk.axis == "block"):
            raise refuse(step, "not-lowered-yet", f"`{step}`: a loop over {walk.axis} that may end sooner in some blocks of a cluster"
                         " is valid for data that they load together, but not supported yet for this target",
                         "use tile sizes that divide the extent, or a separate load for each block")  # fmt: skip


def _place(frame: Frame, signals: Signals) -> tuple[Expr, Expr]:
    """The slot of the current iteration, and the parity of the current phase of its barriers."""
    number: Expr = index(0)
    for walk in frame.rounds:
        number = number * walk.rounds + walk.var
    number = simplify(number)
    return simplify(number % signals.slots), simplify(number // signals.slots % 2)
