"""Accumulators: where the values of reductions are kept, how partial values are combined, how results are stored.

In registers, an accumulator has one dimension per loop below it, and the lanes of the vector. If a reduced axis is mapped to
units or lanes, each keeps a partial value. They are combined once, when the scope of the accumulator ends: lanes by halving,
threads by warp shuffles or through shared memory. Each result is then stored by its owner, with the same tiles.
"""

from __future__ import annotations

import math

from tilelang.computations.computation import Tensor
from tilelang.core.expr import Binary, Cast, Const, Expr, Read, index
from tilelang.core.simplify import conjunction, interval, simplify
from tilelang.errors import Refusal, counted
from tilelang.lowering import ir
from tilelang.lowering.build.accesses import leaves_memory
from tilelang.lowering.build.conditions import wanted
from tilelang.lowering.build.distribution.owners import stored_by_another
from tilelang.lowering.build.frame import Build, Frame, StatePlace, Target, nested
from tilelang.lowering.build.instruction.fragments import SLOTS
from tilelang.lowering.build.instruction.match import held_as
from tilelang.lowering.build.lookahead import leaf_spec, reduced_below, slots_below
from tilelang.lowering.build.movement.epilogue_chunks import in_pieces
from tilelang.lowering.build.movement.shared_loads import whole_version
from tilelang.lowering.build.movement.staging import at_stop
from tilelang.lowering.build.movement.storage import Partial, Whole
from tilelang.lowering.build.pipelining.warp_specialization import on_roles
from tilelang.lowering.build.reads import residence_here
from tilelang.lowering.build.reductions.combine import Combining, elements, stored
from tilelang.lowering.build.reductions.cross_thread import Each, combine_threads, each
from tilelang.lowering.build.reductions.results import boxes_for, by_iteration, check_stop, stored_by_iteration
from tilelang.lowering.build.reductions.shared_accumulators import shared_accumulator
from tilelang.lowering.build.reductions.shared_loop import repairs_of
from tilelang.lowering.build.refusals import check_chain, refuse
from tilelang.schedules.spec import Bound, Spec, complete, point, root_spec
from tilelang.schedules.steps import Do, Fuse, Place, Split, Tile, Unfuse, Vectorize
from tilelang.schedules.task import State, is_stored, reads

WORTH_A_VERSION = 64  # points of a reduction: from here on, guards of reads in nearer memory cost more than a second version


def accumulate(build: Build, frame: Frame, i: int, step: Place) -> ir.Stmt:
    """The scope of an accumulator: its initialization, the steps below, and the stores of its results."""
    step = step.replace(span=step.span or frame.origin)  # an implied accumulator gets the source position of its stage
    if step.ahead:
        raise refuse(step, "accumulate-form", f"`{step}`: an accumulator is not loaded, so `ahead` cannot prefetch it",
                     "remove `ahead`, or write it at a load")  # fmt: skip
    if step.layout is not None and step.memory == "register":
        raise refuse(
            step, "accumulate-form", f"`{step}`: registers have no addresses, so they have no layout", "remove the layout"
        )
    _check_partial_rounds(frame, step)
    if step.memory == "register":
        return _register_accumulator(build, frame, i, step)
    if step.memory == "shared":
        return shared_accumulator(build, frame, i, step)
    raise refuse(step, "accumulate-memory", f"`{step}`: an accumulator must be in register or shared", "accumulate in register")


def _check_partial_rounds(frame: Frame, step: Place) -> None:
    """Rule 2: inside a loop over the reduction, partial results go to the output; refuses an output that cannot hold them."""
    if not frame.walks or frame.outer is not None or frame.state is not None or isinstance(frame.target.places[0], Partial):
        return
    if any(a.empty and not a.reduction for a in frame.spec.axes):
        return  # nothing is stored
    for value, place, output in zip(frame.task.values, frame.target.places, frame.task.outputs, strict=True):
        members = [
            (s, m)
            for s, st in enumerate(frame.task.states)
            for m, t in enumerate(st.tensors)
            if value is accumulator_read(frame, t)
        ]
        state_type = frame.task.states[members[0][0]].reduce.combiner.left[members[0][1]].dtype if members else None
        if state_type == place.buffer.dtype:
            continue
        held = [accumulator_read(frame, t) for s in frame.task.states for t in s.tensors]
        rounded = bool(members) or isinstance(value, Cast) and value.operand in held
        why = f"is {output.dtype}, narrower than the accumulator" if rounded else "is computed from the accumulator"
        stores = f"the accumulator{{}} rounded to {output.dtype}" if rounded else "the finished value of the accumulator{}"
        raise _not_held(frame, step, output, f"{output.name} {why}", stores)
    for state in frame.task.states:
        stored = [t for t in state.tensors if accumulator_read(frame, t) in frame.task.values]
        if len(stored) < len(state.tensors):
            missing = ", ".join(t.name for t in state.tensors if t not in stored)
            why = f"the accumulator has {counted(len(state.tensors), 'member')}, and {missing} is not an output"
            raise _not_held(frame, step, stored[0], why, f"one of {len(state.tensors)} members of the accumulator{{}}")


# ------------------------------------------------------------ registers


def _register_accumulator(build: Build, frame: Frame, i: int, step: Place) -> ir.Stmt:
    """The scope of a register accumulator, skipped if nothing contributes to it.

    Skipping applies to blocks of one thread, in later iterations of enclosing reduction loops, if no accumulator around it needs
    repairs.
    """
    first = conjunction([Binary("==", w, index(0)) for w in frame.walks])
    below = frame.steps[i + 1 :]
    skips = first is not None and build.threads == 1 and not on_roles(build, below) and not repairs_of(frame)
    skips = skips and not any(map(is_stored, below))
    some = wanted(frame) if skips else None
    if first is None or some is None:
        return _register_scopes(build, frame, i, step)
    return ir.If(Binary("or", first, some), _register_scopes(build, frame.replace(nest=()), i, step), None, step.span)


def _register_scopes(build: Build, frame: Frame, i: int, step: Place) -> ir.Stmt:
    """The scope in two versions, if this lets most tiles read their operands without guards."""
    operands = {w for s in frame.task.states for v in s.reduce.values for w in reads(v)}
    points = math.prod(a.extent for a in frame.spec.axes if a.reduction)
    in_place = [w for w in operands if isinstance(residence_here(frame, w), Whole)]
    read = in_place or (operands if points >= WORTH_A_VERSION else ())  # guards of nearer reads cost less, and the body is long
    axes = {a.name for a in frame.spec.axes if a.bounds and any(leaves_memory(build, frame, w, a) for w in read)}
    guard, whole = whole_version(build, frame.spec, axes)
    if guard is None:
        return _register_scope(build, frame, i, step)
    frame = frame.replace(nest=())  # the body exists in two versions
    plain = _register_scope(build, frame.replace(spec=whole), i, step)
    return ir.If(guard, plain, _register_scope(build, frame.replace(rare=True), i, step, partial=True), step.span)


def _register_scope(build: Build, frame: Frame, i: int, step: Place, partial: bool = False) -> ir.Stmt:
    """partial: the tile is known to be incomplete."""
    place = _register_place(build, frame, i)
    below = frame.replace(state=place, outer=frame.state, slots=(), walks=(), idle=())
    body = build.chain(below, i + 1)
    met, folded = _combine_lanes(build, frame, place, step)
    threads = combine_threads(build, below, i + 1, folded, step)
    finishing = below.replace(state=folded, finishing=True, origin=step.span)
    return ir.seq(_identity(build, frame, place, step), body, *met, *threads, _rounds(build, frame, finishing, i, step, partial))


def _rounds(build: Build, frame: Frame, finishing: Frame, i: int, step: Place, partial: bool) -> ir.Stmt:
    """The stores of results, for the first and for later iterations; whole tiles without guards."""
    finishing = kept_beyond(finishing, finishing.outer)
    guard, whole = (None, finishing.spec) if partial else whole_version(build, finishing.spec)

    def back(f: Frame) -> ir.Stmt:
        guarded = _store_results(build, frame, f, i, step)
        return (
            guarded
            if guard is None
            else ir.If(guard, _store_results(build, frame, f.replace(spec=whole), i, step), guarded, step.span)
        )

    if at_stop(step.steps) is not None:  # all iterations use the same staging buffer; only the move from there differs
        return back(finishing)
    return by_iteration(frame, finishing.target, step, lambda target: back(finishing.replace(target=target)))


def state_shape(build: Build, frame: Frame, i: int) -> tuple[tuple[int, ...], str | None, int]:
    """The dimensions of a register accumulator by the steps from i on, the vectorized axis, and its lanes.

    The slots of an instruction take the place of vector lanes.
    """
    shape, axis, lanes = slots_below(frame, i, build.profile)
    if frame.matched is None:
        return shape, axis, lanes
    semantics = frame.match.instruction
    held = semantics.fragment(semantics.writes)
    assert held is not None, "a state is in registers"
    return shape, SLOTS, held.slots


def _register_place(build: Build, frame: Frame, i: int) -> StatePlace:
    shape, axis, lanes = state_shape(build, frame, i + 1)
    buffers, do = [], frame.steps[-1]
    for state in frame.task.states:
        members = []
        for tensor, variable in zip(state.tensors, state.reduce.combiner.left, strict=True):
            full = (*shape, lanes) if axis else (shape or (1,))
            type = held_as(do, variable.dtype) if isinstance(do, Do) else variable.dtype
            members.append(build.buffer(f"{tensor.name}_state", type, full, "register"))
        buffers.append(tuple(members))
    reduced = axis in reduced_below(frame, i + 1)
    return StatePlace(tuple(buffers), "register", lanes if reduced else 0, axis)


def _identity(build: Build, frame: Frame, place: StatePlace, step: Place) -> ir.Stmt:
    """Sets every element of the accumulators to the identity."""
    out = []
    for state, members in zip(frame.task.states, place.buffers, strict=True):
        for b, identity in zip(members, state.reduce.combiner.identity, strict=True):
            out.append(each(build, b, _setting(b, stored(identity, b), step), vector=place.vector_axis is not None))
    return ir.seq(*out)


def _combine_lanes(build: Build, frame: Frame, place: StatePlace, step: Place) -> tuple[list[ir.Stmt], StatePlace]:
    """Combines the partial values of vector lanes into one, by halving."""
    if not place.lanes:
        return [], place
    out: list[ir.Stmt] = []
    current = place.buffers
    width = place.lanes
    while width > 1:
        width //= 2
        following = []
        for state, members in zip(frame.task.states, current, strict=True):
            shape = (*members[0].shape[:-1], width) if width > 1 else members[0].shape[:-1]
            halves = tuple(build.buffer(f"{t.name}_fold", b.dtype, shape, "register")
                           for t, b in zip(state.tensors, members, strict=True))  # fmt: skip
            out.append(_halve(build, state, members, halves, width, step))
            following.append(halves)
        current = tuple(following)
    return out, StatePlace(current, "register")


def _halve(
    build: Build, state: State, members: tuple[ir.Buffer, ...], halves: tuple[ir.Buffer, ...], width: int, step: Place
) -> ir.Stmt:
    outer = len(members[0].shape) - 1

    def combine(at: tuple[Expr, ...]) -> ir.Stmt:
        lane = build.several("lane", width)
        combiner, upper = state.reduce.combiner, (*at, simplify(lane + width))
        target = (*at, lane) if width > 1 else (at or (index(0),))
        made = Combining(build, combiner, halves, target, lane, width, step.span)
        body = made.statement(elements(combiner.left, members, (*at, lane)), elements(combiner.right, members, upper))
        return nested([lane], body, "vector")

    return each(build, members[0], combine, False, outer)


# ------------------------------------------------------------ results


def _store_results(build: Build, frame: Frame, finishing: Frame, i: int, step: Place) -> ir.Stmt:
    """Stores the results, from their owners to the output, as the accumulator's braces say."""
    finishing = finishing.replace(target=finishing.target.stored_as(step))
    steps = step.steps or ()
    parted = at_stop(steps)
    if parted is None:
        check_chain(build, _without_reductions(frame.spec), steps, frame.task, step)
        last = steps[-1] if steps and isinstance(steps[-1], Vectorize) else None
        if steps[: -1 if last else None]:
            _check_owners_store(build, frame, i, step)
        if last is not None and isinstance(last.lanes, int):
            finishing = finishing.replace(store_lanes=(last.axis, last.lanes))
        return build.chain(finishing, i + 1)
    before, stop, after = parted
    check_stop(frame, finishing.target, stop)
    if stop.memory != "shared":
        raise refuse(
            stop,
            "via-memory",
            f"`{stop}`: results can only be staged in shared on the way from the threads that hold them",
            "via shared",
        )
    if stop.steps:
        raise refuse(stop, "via-steps", f"`{stop}` takes no steps here: the threads that own the register accumulator"
                     " store it to shared memory", "write the steps after `via`, where they copy the values out of shared"
                         " memory")  # fmt: skip
    if finishing.outer is not None:
        raise refuse(stop, "not-lowered-yet", f"`{stop}` between an inner and an outer accumulator is valid, but not supported"
                     " yet", "remove these braces, and schedule the store in the braces of the outer accumulator")  # fmt: skip
    if before:
        return in_pieces(build, frame, finishing, i, step, stop, before, after)
    boxes = boxes_for(build, frame, stop)
    put = build.chain(finishing.replace(target=Target(boxes)), i + 1)
    return ir.seq(put, stored_by_iteration(build, frame, finishing.target, step, boxes, after))


def _check_owners_store(build: Build, frame: Frame, i: int, step: Place) -> None:
    """Rule 4: without a staging buffer, results are stored by their owners, so the tiles in the braces must match the owners."""
    steps = step.steps or ()
    if isinstance(frame.steps[-1], Do) or not all(isinstance(s, (Tile, Split, Vectorize)) for s in steps):
        raise refuse(step, "owners-store", f"`{step}`: the threads that own a register accumulator store it themselves; only"
                     " `vectorize` can change how",
                     "write `via shared` first; the steps after it can then use any tiles")  # fmt: skip
    for below in frame.steps[i + 1 :]:
        if isinstance(below, (Fuse, Unfuse)) and steps:
            raise refuse(step, "not-lowered-yet", f"`{step}` above `{below}`, with tiles of its own, is valid, but not supported"
                         " yet", f"write `{below}` above it, or remove the braces")  # fmt: skip
    spec = _without_reductions(frame.spec)
    store = Frame(frame.task.replace(states=()), complete(spec, steps, False), spec, frame.target, ())
    profile = build.profile
    example = stored_by_another(
        frame.task.name, spec, leaf_spec(frame, i + 1, profile), leaf_spec(store, 0, profile), build.threads
    )
    if example is not None:
        raise refuse(step, "reader-is-not-owner", f"`{step}`: the tiles of this store do not match the threads that hold"
                     f" {frame.task.name}", "write `via shared` before them, or store with the same tiles as the steps below"
                         " compute with",
                     example)  # fmt: skip


def kept_beyond(frame: Frame, place: StatePlace | None) -> Frame:
    """The frame without those bounds beyond which an accumulator outside registers still has room but no tile has elements.

    Values stored there are never read, so no guard is needed.
    """
    if place is None or place.box is None or place.box.placement is None:
        return frame
    box, variables = place.box, place.box.placement.variables
    names = [p.name[1:] for p in box.points] or [a.name for a in frame.task.axes]
    room = {name: (low, (interval(v)[1] or 0) + 1) for name, low, v in zip(names, box.low, variables, strict=True)}
    axes = []
    for a in frame.spec.axes:
        if a.name in room and (box.points or dict(frame.spec.coordinates).get(a.name) is point(a.name)):
            low, extent = room[a.name]
            local = Bound("", simplify(a.base - low), extent)
            if local.is_certain(a.extent):
                a = a.replace(bounds=tuple(b.replace(known=b.known or b.key in place.outer) for b in a.bounds))
        axes.append(a)
    return frame.replace(spec=frame.spec.replace(axes=tuple(axes)))


def _without_reductions(spec: Spec) -> Spec:
    """The spec that a store refines: results have the output's axes only."""
    return spec.replace(axes=tuple(a for a in spec.axes if not a.reduction))


def _not_held(frame: Frame, step: Place, output: Tensor, why: str, stores: str) -> Refusal:
    """The refusal of an output that cannot hold a partial result between iterations. stores: what the first iteration stores,
    {} its chunk."""
    axis = next(a for a in frame.spec.axes if a.reduction and not isinstance(a.base, Const))  # of the loop
    end = next(a.extent for a in root_spec(frame.task).axes if a.name == axis.name)
    first, second = f" over {axis.name} = 0..{axis.extent - 1}", f"{axis.extent}..{min(2 * axis.extent, end) - 1}"
    element = f"{output.name}[{', '.join('0' for _ in output.shape)}]"
    return refuse(step, "state-under-walk", f"`{step}` is inside a loop over the reduction, so partial results would be stored in"
                  f" {output.name}, which cannot hold them: {why}",
                  "write it above the loop, so that it keeps its value from one iteration to the next" if step.memory == "shared"
                  else "write `accumulate in shared` above the loop; this accumulator then combines into it",
                  f"the first iteration stores in {element} {stores.format(first)}; the second combines {second} with that instead of"
                  " with the accumulator")  # fmt: skip


def accumulator_read(frame: Frame, tensor: Tensor) -> Expr:
    """The read of an accumulator's tensor as values contain it."""
    return Read(tensor, frame.task.axes)


def _setting(b: ir.Buffer, value: Expr, step: Place) -> Each:
    """b[at] = value"""
    return lambda at: ir.Store(b, at, value, None, False, step.span)
