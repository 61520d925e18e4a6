"""Accumulators: where the states of reductions live, how partial states meet, how results go back.

In registers a state is addressed by pieces: one dimension per walk below the accumulator, and the vector's lanes. Units and lanes
along a reduced axis keep partial states, which meet once, when the accumulator's scope ends: lanes by halves, threads through
shared memory. Results go back along the same cuts ("finishing"), each by its owner.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence

from tilelang.computation import Tensor
from tilelang.dtype import DType
from tilelang.errors import Refusal, counted
from tilelang.expr import Axis, Binary, Cast, Const, Expr, Pad, Read, Var, index
from tilelang.lowering import ir
from tilelang.lowering.build.accesses import depends
from tilelang.lowering.build.base import laid_out, refuse
from tilelang.lowering.build.combine import Combining, elements, stored
from tilelang.lowering.build.conditions import wanted
from tilelang.lowering.build.frame import Box, Frame, Partial, Residence, StatePlace, Target, Whole
from tilelang.lowering.build.lookahead import leaf_spec, reduced_below, slots_below, spreads_below
from tilelang.lowering.build.meet import Digit, Each, Meetings
from tilelang.lowering.build.pieces import Pieces
from tilelang.lowering.build.spreads import digits
from tilelang.lowering.build.stops import at_stop
from tilelang.simplify import conjunction, interval, simplify
from tilelang.spec import Bound, Spec, complete, point
from tilelang.steps import Do, Fuse, Place, Split, Step, Tile, Unfuse, Vectorize
from tilelang.task import State, Task, reads


class States(Pieces, Meetings):
    """accumulate, in every memory."""

    def accumulate(self, frame: Frame, i: int, step: Place) -> ir.Stmt:
        """The scope of an accumulator: states, the steps below, results."""
        step = step.replace(span=step.span or frame.origin)  # one that a stage implies is written where the stage is
        if step.ahead:
            raise refuse(step, "accumulate-form", f"`{step}`: an accumulator is not loaded, so `ahead` cannot prefetch it",
                         "remove `ahead`, or write it at a load")  # fmt: skip
        if step.layout is not None and step.memory == "register":
            raise refuse(
                step, "accumulate-form", f"`{step}`: registers have no addresses, so they have no layout", "remove the layout"
            )
        self._check_partial_rounds(frame, step)
        if step.memory == "register":
            return self._register_accumulator(frame, i, step)
        if step.memory == "shared":
            return self._shared_accumulator(frame, i, step)
        raise refuse(
            step, "accumulate-memory", f"`{step}`: an accumulator must be in register or shared", "accumulate in register"
        )

    def _check_partial_rounds(self, frame: Frame, step: Place) -> None:
        """Rule 2: under a walk over a reduction, partial states go to the output, which must be able to hold them."""
        if not frame.walks or frame.outer is not None or frame.state is not None or isinstance(frame.target.places[0], Partial):
            return
        for value, place, output in zip(frame.task.values, frame.target.places, frame.task.outputs, strict=True):
            members = [
                (s, m) for s, st in enumerate(frame.task.states) for m, t in enumerate(st.tensors) if value is st_read(frame, t)
            ]
            state_type = frame.task.states[members[0][0]].reduce.combiner.left[members[0][1]].dtype if members else None
            if state_type == place.buffer.dtype:
                continue
            held = [st_read(frame, t) for s in frame.task.states for t in s.tensors]
            rounded = bool(members) or isinstance(value, Cast) and value.operand in held
            why = f"is {output.dtype}, narrower than the accumulator" if rounded else "is computed from the accumulator"
            stores = f"the accumulator{{}} rounded to {output.dtype}" if rounded else "the finished value of the accumulator{}"
            raise _not_held(frame, step, output, f"{output.name} {why}", stores)
        for state in frame.task.states:
            stored = [t for t in state.tensors if st_read(frame, t) in frame.task.values]
            if len(stored) < len(state.tensors):
                missing = ", ".join(t.name for t in state.tensors if t not in stored)
                why = f"the accumulator has {counted(len(state.tensors), 'member')}, and {missing} is not an output"
                raise _not_held(frame, step, stored[0], why, f"one of {len(state.tensors)} members of the accumulator{{}}")

    # ------------------------------------------------------------ registers

    def _register_accumulator(self, frame: Frame, i: int, step: Place) -> ir.Stmt:
        """The scope; on blocks of one thread, in later rounds of walks around it, only where a condition leaves it anything."""
        first = conjunction([Binary("==", w, index(0)) for w in frame.walks])
        skips = first is not None and self.build.threads == 1 and not self.on_roles(frame.steps[i + 1 :])
        some = wanted(frame) if skips else None
        if first is None or some is None:
            return self._register_scopes(frame, i, step)
        return ir.If(Binary("or", first, some), self._register_scopes(frame.but(nest=()), i, step), None, step.span)

    def _register_scopes(self, frame: Frame, i: int, step: Place) -> ir.Stmt:
        """In two versions where that spares most tiles the guards of what they read where it lies."""
        operands = [w for s in frame.task.states for v in s.reduce.values for w in reads(v)]
        in_place = [w for w in operands if isinstance(self.residence_here(frame, w), Whole)]
        axes = {a.name for a in frame.spec.axes if any(depends(frame, w, a) for w in in_place)}
        guard, whole = self.whole(frame.spec, axes)
        if guard is None:
            return self._register_scope(frame, i, step)
        frame = frame.but(nest=())  # two versions of what stands inside
        plain = self._register_scope(frame.but(spec=whole), i, step)
        return ir.If(guard, plain, self._register_scope(frame.but(rare=True), i, step, partial=True), step.span)

    def _register_scope(self, frame: Frame, i: int, step: Place, partial: bool = False) -> ir.Stmt:
        """partial: the tile is known not to be whole."""
        place = self._register_place(frame, i)
        below = frame.but(state=place, outer=frame.state, slots=(), walks=(), idle=())
        body = self.chain(below, i + 1)
        met, folded = self._lanes_meet(frame, place, step)
        threads = self.threads_meet(below, i + 1, folded, step)
        finishing = below.but(state=folded, finishing=True, origin=step.span)
        return ir.seq(self._identity(frame, place, step), body, *met, *threads, self._rounds(frame, finishing, i, step, partial))

    def _rounds(self, frame: Frame, finishing: Frame, i: int, step: Place, partial: bool) -> ir.Stmt:
        """The way back in every round; whole tiles without guards."""
        finishing = kept_beyond(finishing, finishing.outer)
        guard, whole = (None, finishing.spec) if partial else self.whole(finishing.spec)

        def back(f: Frame) -> ir.Stmt:
            guarded = self._go_back(frame, f, i, step)
            return (
                guarded if guard is None else ir.If(guard, self._go_back(frame, f.but(spec=whole), i, step), guarded, step.span)
            )

        if at_stop(step.steps) is not None:  # all rounds stop in the same place; what differs is how they go on from there
            return back(finishing)
        return self._by_round(frame, finishing.target, step, lambda target: back(finishing.but(target=target)))

    def _by_round(self, frame: Frame, target: Target, step: Place, back: Callable[[Target], ir.Stmt]) -> ir.Stmt:
        """Rule 2: the way back in the first round of the reduction walks outside, which stores, and in later ones, which combine."""
        first = conjunction([Binary("==", w, index(0)) for w in frame.walks])
        again = dataclasses.replace(target, again=frame.task.states)
        return back(target) if first is None else ir.If(first, back(target), back(again), step.span)

    def state_shape(self, frame: Frame, i: int) -> tuple[tuple[int, ...], str | None, int]:
        """The dimensions of a register state by the steps from i on, the vectorized axis, and its lanes."""
        return slots_below(frame, i, self.build.profile)

    def state_type(self, frame: Frame, type: DType) -> DType:
        """The type of a member of a register state."""
        return type

    def _register_place(self, frame: Frame, i: int) -> StatePlace:
        shape, axis, lanes = self.state_shape(frame, i + 1)
        buffers = []
        for state in frame.task.states:
            members = []
            for tensor, variable in zip(state.tensors, state.reduce.combiner.left, strict=True):
                full = (*shape, lanes) if axis else (shape or (1,))
                members.append(
                    self.build.buffer(f"{tensor.name}_state", self.state_type(frame, variable.dtype), full, "register")
                )
            buffers.append(tuple(members))
        reduced = axis in reduced_below(frame, i + 1)
        return StatePlace(tuple(buffers), "register", lanes if reduced else 0, axis)

    def _identity(self, frame: Frame, place: StatePlace, step: Place) -> ir.Stmt:
        """Every element of the states becomes the identity."""
        out = []
        for state, members in zip(frame.task.states, place.buffers, strict=True):
            for b, identity in zip(members, state.reduce.combiner.identity, strict=True):
                out.append(self.each(b, _setting(b, stored(identity, b), step), vector=place.vector_axis is not None))
        return ir.seq(*out)

    def _lanes_meet(self, frame: Frame, place: StatePlace, step: Place) -> tuple[list[ir.Stmt], StatePlace]:
        """Partial states of vector lanes into one, by halves."""
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
                halves = tuple(self.build.buffer(f"{t.name}_fold", b.dtype, shape, "register")
                               for t, b in zip(state.tensors, members, strict=True))  # fmt: skip
                out.append(self._halve(state, members, halves, width, step))
                following.append(halves)
            current = tuple(following)
        return out, StatePlace(current, "register")

    def _halve(
        self, state: State, members: tuple[ir.Buffer, ...], halves: tuple[ir.Buffer, ...], width: int, step: Place
    ) -> ir.Stmt:
        outer = len(members[0].shape) - 1

        def combine(at: tuple[Expr, ...]) -> ir.Stmt:
            lane = self.build.variable("lane", width) if width > 1 else index(0)
            combiner, upper = state.reduce.combiner, (*at, simplify(lane + width))
            target = (*at, lane) if width > 1 else (at or (index(0),))
            made = Combining(self, combiner, halves, target, lane, width, step.span)
            body = made.statement(elements(combiner.left, members, (*at, lane)), elements(combiner.right, members, upper))
            return ir.For(lane, index(width), body, "vector") if isinstance(lane, Var) else body

        return self.each(members[0], combine, False, outer)

    def reduced_digits(self, frame: Frame, i: int) -> list[Digit]:
        """The digit of every spread of a reduced axis below.

        Idle units beside a single tile are told the result only where it stays in registers, which they may read.
        """
        found = []
        told = frame.target.in_registers and frame.outer is None
        reduced, present = reduced_below(frame, i), frame.spec.present
        for lane, units, plan in spreads_below(frame, i, self.build.profile).values():
            active = [*present, *plan.active(lane)]
            found += [
                Digit(d, tiles, stride, tuple(active))
                for d, tiles, _, stride in plan.reduced_digits(reduced, lane, units)
                if told or tiles > 1
            ]
            present = (*present, *plan.present(lane, units))
        return found

    # ------------------------------------------------------------ results

    def _go_back(self, frame: Frame, finishing: Frame, i: int, step: Place) -> ir.Stmt:
        """The results from their owners to where the output was, as the accumulator's braces say."""
        finishing = finishing.but(target=finishing.target.stored_as(step))
        steps = step.steps or ()
        parted = at_stop(steps)
        if parted is None:
            self.check_chain(_without_reductions(frame.spec), steps, frame.task, step)
            last = steps[-1] if steps and isinstance(steps[-1], Vectorize) else None
            if steps[: -1 if last else None]:
                self._check_owners_store(frame, i, step)
            if last is not None and isinstance(last.lanes, int):
                finishing = finishing.but(store_lanes=(last.axis, last.lanes))
            return self.chain(finishing, i + 1)
        before, stop, after = parted
        self._check_stop(frame, finishing.target, stop)
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
            return self.in_pieces(frame, finishing, i, step, stop, before, after)
        boxes = self.boxes_for(frame, stop)
        put = self.chain(finishing.but(target=Target(boxes)), i + 1)
        return ir.seq(put, self.stored_by_round(frame, finishing.target, step, boxes, after))

    def _check_stop(self, frame: Frame, target: Target, stop: Place) -> None:
        """What a stage holds in registers, each thread has by the steps that compute it: it does not come from elsewhere."""
        if target.in_registers and (frame.spec.units or 1) > 1 and stop.memory == "shared":
            name = frame.task.name
            raise refuse(stop, "not-lowered-yet", f"`{stop}` on the way to {name} in registers is valid, but not supported yet",
                         f"remove it, or compute {name} in shared and load it in register")  # fmt: skip

    def boxes_for(self, frame: Frame, stop: Place) -> tuple[Box, ...]:
        """Shared memory for this spec's part of each output."""
        return tuple(self._box(frame, t.name, t.dtype, stop, t, t.dims) for t in frame.task.outputs)

    def stored_by_round(
        self, frame: Frame, target: Target, step: Place, boxes: tuple[Residence, ...], rest: tuple[Step, ...]
    ) -> ir.Stmt:
        """The move of finished values from boxes to the target."""
        return self._by_round(frame, target, step, lambda t: self._store_task(frame, t, boxes, rest))

    def _check_owners_store(self, frame: Frame, i: int, step: Place) -> None:
        """Rule 4: without a stop in shared memory results are stored by their owners, so what the braces spread must be the owners'."""
        steps = step.steps or ()
        if isinstance(frame.steps[-1], Do) or not all(isinstance(s, (Tile, Split, Vectorize)) for s in steps):
            raise refuse(step, "owners-store", f"`{step}`: the threads that own a register accumulator store it themselves; only"
                         " `vectorize` can change how",
                         "write `via shared` first; the steps after it can then use any tiles")  # fmt: skip
        from tilelang.lowering.build.owners import stored_by_another  # enumerates in NumPy

        for below in frame.steps[i + 1 :]:
            if isinstance(below, (Fuse, Unfuse)) and steps:
                raise refuse(step, "not-lowered-yet", f"`{step}` above `{below}`, with tiles of its own, is valid, but not supported"
                             " yet", f"write `{below}` above it, or remove the braces")  # fmt: skip
        spec = _without_reductions(frame.spec)
        store = Frame(frame.task.replace(states=()), complete(spec, steps, False), spec, frame.target, ())
        profile = self.build.profile
        example = stored_by_another(
            frame.task.name, spec, leaf_spec(frame, i + 1, profile), leaf_spec(store, 0, profile), self.build.threads
        )
        if example is not None:
            raise refuse(step, "reader-is-not-owner", f"`{step}`: the tiles of this store do not match the threads that hold"
                         f" {frame.task.name}", "write `via shared` before them, or store with the same tiles as the steps below"
                             " compute with",
                         example)  # fmt: skip

    def via(self, frame: Frame, i: int, step: Place) -> ir.Stmt:
        """A stop for pointwise results: in registers (how they are stored), or in shared memory before a move of their own."""
        if frame.task.states:
            raise refuse(step, "via-of-state", f"`{step}`: {frame.task.name} has reductions, whose results are stored by the steps of"
                         " `accumulate`",
                         "write it there: accumulate in register { via shared; ... }")  # fmt: skip
        if step.memory == "register":
            if step.layout is not None or step.steps:
                raise refuse(step, "via-steps", f"`{step}`: each thread stores the results that it holds in registers, so `via"
                             " register` has no layout or steps of its own", str(step.replace(layout=None, steps=None)))  # fmt: skip
            return self.chain(frame.but(target=frame.target.stored_as(step)), i + 1)
        if step.memory != "shared":
            raise refuse(step, "via-memory", f"`{step}`: results can only be staged in register or shared", "via shared")
        self._check_stop(frame, frame.target, step)
        boxes = tuple(self._box(frame, t.name, t.dtype, step, t, t.dims) for t in frame.task.outputs)
        put = self.chain(frame.but(target=Target(boxes)), i + 1)
        return ir.seq(put, self._store_task(frame, frame.target.stored_as(step), boxes, step.steps or ()))

    def _box(self, frame: Frame, name: str, type: DType, step: Place, tensor: Tensor, over: Sequence[Axis]) -> Box:
        """A shared buffer for this spec's part of a tensor, asked in the order of the axes `over`, or by points of fused ones."""
        dims = self._box_axes(frame, step, over)
        placement = laid_out(step, {d: frame.spec.axis(d).extent for d in dims}, type.bytes)
        count, unit = frame.own_copy(self.build.threads)
        buffer = self.build.buffer(f"{name}_{step.memory}", type, (*count, *placement.shape), "shared")
        low = tuple(frame.spec.axis(d).base for d in dims)
        points = () if dims == tuple(a.name for a in over) else tuple(map(point, dims))
        return Box(tensor, None, buffer, low=low, placement=placement, unit=unit, points=points)

    @staticmethod
    def _box_axes(frame: Frame, step: Place, over: Sequence[Axis]) -> tuple[str, ...]:
        """The axes of a box: those asked for, or where some are fused or divided, those of the spec, which no step below may change."""
        own, axes = tuple(a.name for a in over), tuple(a.name for a in frame.spec.axes if not a.reduction)
        if set(axes) <= set(own):
            return own
        for s in frame.steps:
            if isinstance(s, (Fuse, Unfuse)) and set(axes) & set(s.axes if isinstance(s, Fuse) else (s.axis,)):
                raise refuse(step, "not-lowered-yet", f"`{step}` above `{s}` is valid, but not supported yet",
                             f"write `{s}` above it")  # fmt: skip
        return axes

    def _store_task(self, frame: Frame, target: Target, boxes: tuple[Residence, ...], steps: tuple[Step, ...]) -> ir.Stmt:
        """A move of finished values from `boxes` to the target."""
        values = tuple(Read(t, by_dims(t, frame.task)) for t in frame.task.outputs)
        task = Task(frame.task.name, frame.task.outputs, frame.task.axes, values)
        return self._pointwise(frame, task, target, boxes, steps)

    def _pointwise(
        self, frame: Frame, task: Task, target: Target, boxes: tuple[Residence, ...], steps: tuple[Step, ...] | None
    ) -> ir.Stmt:
        inner = self._results_frame(frame, task, target, boxes)
        return self._in_steps(inner, self.default_steps(inner, steps))

    def _results_frame(self, frame: Frame, task: Task, target: Target, boxes: tuple[Residence, ...]) -> Frame:
        """The frame of a task over this spec's results, before its steps."""
        axes = tuple(a for a in frame.spec.axes if not a.reduction)
        coordinates = tuple((n, e) for n, e in frame.spec.coordinates if n in {a.name for a in task.axes})
        spec = frame.spec.replace(title=task.name, axes=axes, coordinates=coordinates)
        around = tuple((point(a.name), a.base) for a in frame.spec.axes if a.reduction)
        return Frame(task, (), spec, target, (*frame.residences, *boxes), around=(*frame.around, *around),
                     origin=frame.origin, cuts=frame.cuts)  # fmt: skip

    def _in_steps(self, inner: Frame, chosen: tuple[Step, ...]) -> ir.Stmt:
        self.check_chain(inner.spec, chosen, inner.task, None)
        return self.chain(self.written_out(inner, chosen, inner.target.places[0].buffer.memory), 0)

    # ------------------------------------------------------------ shared

    def _shared_accumulator(self, frame: Frame, i: int, step: Place) -> ir.Stmt:
        """States in shared memory, addressed by coordinates; an inner accumulator combines into them, or the leaf updates them."""
        if frame.state is not None and frame.state.memory == "shared":
            raise refuse(
                step, "accumulate-order", f"`{step}`: there is already an accumulator in shared", f"remove this `{step}`"
            )
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
                box = self._box(frame, f"{tensor.name}_state", variable.dtype, step, tensor, frame.task.axes)
                boxes.append(box)
                members.append(box.buffer)
            buffers.append(tuple(members))
        outer = frozenset(b.key for a in frame.spec.axes for b in a.bounds)
        place = StatePlace(tuple(buffers), "shared", box=boxes[0], outer=outer)
        inner = any(isinstance(s, Place) and s.verb == "accumulate" for s in frame.steps[i + 1 :])
        start = (
            []
            if inner
            else [self._clear(frame, state, members, step) for state, members in zip(frame.task.states, buffers, strict=True)]
        )
        below = frame.but(state=place, slots=(), walks=())
        body = self.chain(below, i + 1)
        task = Task(frame.task.name, frame.task.outputs, frame.task.axes, frame.task.values)
        finished = frame.but(residences=(*frame.residences, *boxes), finishing=True)
        for whole in dict.fromkeys(whole for value in task.values for whole in reads(value)):
            self.residence_of(finished, whole)  # refuses a stage that stands below

        def back(target: Target) -> ir.Stmt:
            if target.in_registers:
                return self._back_to_owners(frame, i, task, target, tuple(boxes), step)
            return self._back_from_shared(frame, task, target, tuple(boxes), step)

        return ir.seq(*start, body, self._by_round(frame, frame.target.stored_as(step), step, back))

    def _back_to_owners(
        self, frame: Frame, i: int, task: Task, target: Target, boxes: tuple[Residence, ...], step: Place
    ) -> ir.Stmt:
        """The finished values of states in shared memory to registers: each thread takes what the steps below would leave to it."""
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
        return self._in_steps(self._results_frame(frame, task, target, boxes), tuple(own))

    def _back_from_shared(self, frame: Frame, task: Task, target: Target, boxes: tuple[Residence, ...], step: Place) -> ir.Stmt:
        """The finished values of states in shared memory: to the target, or to a stop and on from there, each by its own steps."""
        parted = at_stop(step.steps)
        if parted is None or parted[1].memory != "shared":
            return self._pointwise(frame, task, target, boxes, step.steps)
        before, stop, after = parted
        if stop.steps and before:
            raise refuse(stop, "via-steps", f"`{step}` has two sets of steps for the copy to its staging buffer: before `{stop}` and in"
                         " its braces", "keep one set")  # fmt: skip
        there = self.boxes_for(frame, stop)
        put = self._pointwise(frame, task, Target(there), boxes, before or stop.steps)
        return ir.seq(put, self._store_task(frame, target, there, after))

    def _clear(self, frame: Frame, state: State, members: tuple[ir.Buffer, ...], step: Place) -> ir.Stmt:
        """The identity into a shared state, by all units."""
        out = []
        _, unit = frame.own_copy(self.build.threads)
        units = frame.spec.units or 1
        for b, identity in zip(members, state.reduce.combiner.identity, strict=True):
            shape = b.shape[len(unit) :]
            elements = math.prod(shape)
            each = self.build.variable("clear", -(-elements // units))
            number = simplify(each * units + frame.spec.lane)
            found = digits(number, {str(d): n for d, n in enumerate(shape)})
            store: ir.Stmt = ir.Store(b, (*unit, *found.values()), stored(identity, b), None, False, step.span)
            within = [number < elements] if elements % units else []
            some = conjunction([*frame.spec.present, *within])
            store = store if some is None else ir.If(some, store, None, step.span)
            out.append(ir.For(each, index(-(-elements // units)), store, "serial", step.span))
        return ir.seq(*out)


def kept_beyond(frame: Frame, place: StatePlace | None) -> Frame:
    """The frame without the bounds beyond which a state outside registers has room as well, and no tile an element: what lands there
    is never read."""
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
    return frame.but(spec=frame.spec.replace(axes=tuple(axes)))


def _without_reductions(spec: Spec) -> Spec:
    """What a store refines: the results have the output's axes alone."""
    return spec.replace(axes=tuple(a for a in spec.axes if not a.reduction))


def _not_held(frame: Frame, step: Place, output: Tensor, why: str, stores: str) -> Refusal:
    """That an output cannot keep a state from one round to the next. stores: what the first round leaves of it, {} its chunk."""
    axis = next(a for a in frame.spec.axes if a.reduction and not isinstance(a.base, Const))  # of the loop
    first, second = f" over {axis.name} = 0..{axis.extent - 1}", f"{axis.extent}..{2 * axis.extent - 1}"
    element = f"{output.name}[{', '.join('0' for _ in output.shape)}]"
    return refuse(step, "state-under-walk", f"`{step}` is inside a loop over the reduction, so partial results would be stored in"
                  f" {output.name}, which cannot hold them: {why}",
                  "write it above the loop, so that it keeps its value from one iteration to the next" if step.memory == "shared"
                  else "write `accumulate in shared` above the loop; this accumulator then combines into it",
                  f"the first iteration stores in {element} {stores.format(first)}; the second combines {second} with that instead of"
                  " with the accumulator")  # fmt: skip


def _lies_in_global(frame: Frame, whole: Read | Pad) -> bool:
    """Whether a read goes to global memory, as far as tensors are placed here: a stage below may bring it nearer."""
    read = whole.read if isinstance(whole, Pad) else whole
    return isinstance(next((r for r in reversed(frame.residences) if r.serves(read, whole)), None), Whole)


def st_read(frame: Frame, tensor: Tensor) -> Expr:
    """How a value reads a state's tensor."""
    from tilelang.expr import Read

    return Read(tensor, frame.task.axes)


def by_dims(tensor: Tensor, task: Task) -> tuple[Expr, ...]:
    """The task's axes in the order of a tensor's own dimensions."""
    named = {a.name: a for a in task.axes}
    return tuple(named[d.name] for d in tensor.dims)


def _setting(b: ir.Buffer, value: Expr, step: Place) -> Each:
    """b[at] = value"""
    return lambda at: ir.Store(b, at, value, None, False, step.span)
