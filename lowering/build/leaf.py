"""The innermost statements: updates of states, stores of results, elements of moves; reads resolved to loads, guards decided.

A guard stands where a point may not exist, unless `guards.settle` proves that the statement may run there too.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection
from typing import Any

from tilelang.errors import Span
from tilelang.expr import (
    INDEX,
    Axis,
    Binary,
    Const,
    Expr,
    Pad,
    Read,
    Reduce,
    Select,
    Unary,
    Var,
    const,
    index,
    substitute,
)
from tilelang.lowering import ir
from tilelang.lowering.build.accesses import Accesses
from tilelang.lowering.build.base import Part, refuse
from tilelang.lowering.build.combine import Combining, as_logical, elements, stored
from tilelang.lowering.build.conditions import inside_piece
from tilelang.lowering.build.frame import Fixed, Frame, NotOwner, Residence, Share, Staging, StatePlace
from tilelang.lowering.build.residences import within
from tilelang.lowering.guards import Access, Effect, leaves_as_it_was
from tilelang.simplify import FALSE, conjunction, conjuncts, interval, simplify
from tilelang.steps import Do, Place, Step, Vectorize


class Leaf(Accesses):
    """Leaves of main chains, stages and moves."""

    def leaf(self, frame: Frame, step: Vectorize | Do | None) -> ir.Stmt:
        """The statement at the end of a chain."""
        if isinstance(step, Do):
            return self.instruction(frame, step)
        points: dict[str, Expr] = {a.name: a.base for a in frame.spec.axes}
        if step is None or frame.spec.axis(step.axis).extent == 1:
            return self._at(frame, points, None, step)
        axis = frame.spec.axis(step.axis)
        if frame.finishing and axis.reduction:
            return self._at(frame, points, None, step)
        if axis.extent == 0:
            return ir.seq()
        lane = self.build.variable("lane", axis.extent)
        points[axis.name] = simplify(axis.base + lane)
        bounds = tuple(b.replace(offset=simplify(b.offset + lane)) for b in axis.bounds)
        axes = tuple(a.replace(extent=1, base=points[a.name], bounds=bounds) if a is axis else a for a in frame.spec.axes)
        inner = frame.but(spec=frame.spec.replace(axes=axes))
        body = self._at(inner, points, lane, step)
        return ir.For(lane, index(axis.extent), body, "vector", getattr(step, "span", None))

    def instruction(self, frame: Frame, step: Do) -> ir.Stmt:
        """The leaf as one instruction."""
        raise NotImplementedError

    def _at(self, frame: Frame, points: dict[str, Expr], lane: Expr | None, step: Vectorize | Do | None) -> ir.Stmt:
        try:
            if frame.task.states and not frame.finishing:
                return self._update(frame, points, lane, step)
            return self._results(frame, points, lane, step)
        except NotOwner as error:
            from tilelang.lowering.build.owners import not_owner  # enumerates in NumPy: only where there is something to show

            raise not_owner(error, step or _last_written(frame), self.build.threads) from None

    # ------------------------------------------------------------ updates

    def _update(self, frame: Frame, points: dict[str, Expr], lane: Expr | None, step: Vectorize | Do | None) -> ir.Stmt:
        """state = combine(state, value) for every state of the task."""
        assert frame.state is not None
        span = getattr(step, "span", None)
        out: list[ir.Stmt] = []
        for s, state in enumerate(frame.task.states):
            reduce = state.reduce
            values = [self.value(frame, v, points) for v in reduce.values]
            buffers = frame.state.buffers[s]
            at = self.state_indices(frame, lane, points)
            place = (lane, 1 + (interval(lane)[1] or 0)) if lane is not None else (index(0), 1)
            made = Combining(self, reduce.combiner, buffers, at, *place, span)
            conditions = self._needed(frame, s, points)
            out.append(guarded(made.statement(elements(reduce.combiner.left, buffers, at), values), conditions, span))
        return ir.seq(*out)

    def state_indices(self, frame: Frame, lane: Expr | None, points: dict[str, Expr]) -> tuple[Expr, ...]:
        """Where the element of a state that this point updates stands."""
        place = frame.state
        assert place is not None
        if place.memory == "register":
            if place.vector_axis:
                return (*frame.slots, lane if lane is not None else index(0))
            return frame.slots or (index(0),)
        return self.state_at(frame, place, points)

    def state_at(self, frame: Frame, place: StatePlace, points: dict[str, Expr]) -> tuple[Expr, ...]:
        """Indices in a state that is addressed by coordinates."""
        assert place.box is not None
        axes = frame.coordinates(points)
        return place.box.at(tuple(axes[a] for a in place.box.points or frame.task.axes))

    def _needed(self, frame: Frame, s: int, points: dict[str, Expr]) -> list[Expr]:
        """The conditions under which a point of state s takes part."""
        reduce = frame.task.states[s].reduce
        shared = frame.state is not None and frame.state.memory != "register"
        bounds = {b.holds(index(0)): a for a in frame.spec.axes for b in a.bounds}
        asked = [] if reduce.condition is None else [c for c in conjuncts(reduce.condition) if c not in frame.known]
        asked = [self.value(frame, c, points) for c in asked]
        # A state that units share has places for the elements that exist only.
        always = [c for c, a in bounds.items() if shared and not a.reduction]
        conditions = {**{c: a for c, a in bounds.items() if c not in always}, **dict.fromkeys(asked)}
        values = (*reduce.values, *_list(reduce.condition))
        kept = self.settled(frame, conditions, always, points, values, self._effect(frame, s))
        out = [*frame.spec.present, *(c for c in bounds if c in kept or c in always)]
        if frame.spec.units is not None and frame.spec.units > 1 and shared:
            out.append(Binary("==", frame.spec.lane, index(0)))
        return [*out, *(c for c in asked if c in kept)]

    @staticmethod
    def _effect(frame: Frame, s: int) -> Effect:
        """What an update of state s does: whose element it is, and what leaves it as it was."""
        exists = tuple(b.replace(known=False).holds(index(0)) for a in frame.spec.axes if not a.reduction for b in a.bounds)
        reduce = frame.task.states[s].reduce
        if len(reduce.values) > 1:
            return Effect(exists)
        return Effect(exists, reduce.values[0], reduce.combiner.identity[0])

    def folds(self, frame: Frame, axis: str) -> bool:
        """Whether points beyond the bounds of a reduction axis change no state, by what their operands were filled with."""
        pieces = {a.name: a.base + inside_piece(a.name, a.extent) for a in frame.spec.axes}
        bounds = [
            b.replace(offset=b.offset + inside_piece(a.name, a.extent))
            for a in frame.spec.axes
            if a.name == axis
            for b in a.bounds
            if not b.known
        ]
        for s, state in enumerate(frame.task.states):
            if state.reduce.condition is not None and not frame.known.issuperset(conjuncts(state.reduce.condition)):
                return False
            accesses = self.accesses(frame, state.reduce.values, pieces, here=True)
            beyond = [[*self.facts(frame, pieces), Unary("not", b.holds(index(0)))] for b in bounds]
            if not all(leaves_as_it_was(points, accesses, self._effect(frame, s)) for points in beyond):
                return False
        return True

    # ------------------------------------------------------------ results

    def _results(self, frame: Frame, points: dict[str, Expr], lane: Expr | None, step: Vectorize | Do | None) -> ir.Stmt:
        """Stores of finished values, or of states into the place outside."""
        span = getattr(step, "span", None) or frame.origin
        in_registers = frame.target.in_registers and frame.outer is None
        # a move gives a thread's own registers the fill as well: a ring goes on as a whole, and a vector may read beyond what exists
        whole = in_registers and frame.fill is not None
        fills = {b.key for a in frame.spec.axes for b in a.bounds} if whole else frame.fill_keys
        bounds = [(a, b) for a in frame.spec.axes for b in a.bounds if b.key not in fills and not a.reduction]
        exists = [b.holds(index(0)) for _, b in bounds]
        if in_registers and exists:  # what does not exist may be made in registers, where nobody reads it
            asked = {b.holds(index(0)): a for a, b in bounds}
            written = self._written(frame, points)
            kept = self.settled(frame, asked, (), points, frame.task.values, Effect(tuple(exists)), written)
            exists = [c for c in exists if c in kept]
        else:
            self.stored_where(frame, exists)
        conditions = [*frame.spec.present, *exists]
        if frame.spec.units is not None and frame.spec.units > 1 and not in_registers:
            conditions.append(Binary("==", frame.spec.lane, index(0)))
        if not in_registers:
            conditions += [Binary("==", d, index(0)) for d in frame.idle]
        if frame.finishing and frame.outer is not None:
            return guarded(self._combine_outer(frame, points, lane, span), conditions, span)
        if frame.target.again:
            return guarded(self._again(frame, points, lane, span), conditions, span)
        found = self._found(frame, fills, conditions, points)
        out = []
        for k, (value, place) in enumerate(zip(frame.task.values, frame.target.places, strict=True)):
            e = self._state_value(frame, value, points, lane)
            if frame.fill is not None and found is not None:
                e = _filled(found, e, const(frame.fill.value, e.dtype))
            at = self.stored_at(frame, k, place, points)
            if frame.staged is not None:
                held = (*frame.slots, lane) if lane is not None else frame.slots or (index(0),)
                at, e = (held, e) if isinstance(place, Staging) else (at, ir.Load(frame.staged, held))
            out.append(
                ir.Store(place.buffer, at, stored(e, place.buffer), None, frame.target.stream, span, behind=frame.target.behind)
            )
        return guarded(ir.seq(*out), conditions, span)

    def _found(self, frame: Frame, fills: Collection[str], always: list[Expr], points: dict[str, Expr]) -> Expr | None:
        """The condition under which a move takes its element from the source and not the fill; None: the source has the same fill.

        fills: keys of the bounds beyond which it fills; always: the conditions under which it writes at all.
        """
        bounds = {b.holds(index(0)): a for a in frame.spec.axes for b in a.bounds if b.key in fills}
        if frame.fill is None:
            return None
        (value,) = frame.task.values
        kept = self.settled(frame, bounds, always, points, (value,), Effect(value=value, identity=frame.fill))
        return conjunction([c for c in bounds if c in kept])

    def _written(self, frame: Frame, points: dict[str, Expr]) -> list[Access]:
        """The registers that results go to."""
        found = []
        for k, place in enumerate(frame.target.places):
            at = self.stored_at(frame, k, place, points)
            found.append(Access(Var(place.tensor.name, INDEX), tuple(within(at, place.buffer.shape or (1,)))))
        return found

    def stored_at(self, frame: Frame, k: int, place: Residence, points: dict[str, Expr]) -> tuple[Expr, ...]:
        axes = frame.coordinates(points)
        output = frame.task.outputs[k]
        named = {a.name: v for a, v in axes.items() if isinstance(a, Axis)}
        if isinstance(place, (Fixed, Staging)):
            return place.at(())
        coordinates = () if place.points else tuple(named[a.name] for a in output.dims)
        return place.at(place.element(coordinates, axes))

    def _state_value(self, frame: Frame, e: Expr, points: dict[str, Expr], lane: Expr | None) -> Expr:
        """A value of the task with its states' elements in place of the reads of them."""
        mapping: dict[Expr, Expr] = {}
        if frame.finishing and frame.state is not None:
            at = self.state_indices(frame, lane, points)
            for s, state in enumerate(frame.task.states):
                for m, tensor in enumerate(state.tensors):
                    held = ir.Load(frame.state.buffers[s][m], at)
                    logical = as_logical(held.dtype, state.reduce.combiner.left[m].dtype, held)
                    mapping[Read(tensor, frame.task.axes)] = logical
        return self.value(frame, substitute(e, mapping) if mapping else e, points)

    def _again(self, frame: Frame, points: dict[str, Expr], lane: Expr | None, span: Span | None) -> ir.Stmt:
        """A later round of a reduction walk outside: read, combine, store."""
        stored_as = {v.tensor: k for k, v in enumerate(frame.task.values) if isinstance(v, Read)}
        slot, slots = (lane, 1 + (interval(lane)[1] or 0)) if lane is not None else (index(0), 1)
        if frame.finishing and frame.state is not None:  # the points of a vector go by the state's own lanes
            slot, slots = self.state_indices(frame, lane, points)[-1], frame.state.buffers[0][0].shape[-1]
        out: list[ir.Stmt] = []
        for state in frame.target.again:
            outputs = [stored_as[t] for t in state.tensors]
            at = self.stored_at(frame, outputs[0], frame.target.places[outputs[0]], points)
            into = tuple(frame.target.places[k].buffer for k in outputs)
            right = [self._state_value(frame, frame.task.values[k], points, lane) for k in outputs]
            made = Combining(self, state.reduce.combiner, into, at, slot, slots, span)
            out.append(made.statement(elements(state.reduce.combiner.left, into, at), right))
        return ir.seq(*out)

    def _combine_outer(self, frame: Frame, points: dict[str, Expr], lane: Expr | None, span: Span | None) -> ir.Stmt:
        """The state of an inner accumulator into the outer one: stored in the first round, combined later."""
        assert frame.state is not None and frame.outer is not None
        out: list[ir.Stmt] = []
        for s, state in enumerate(frame.task.states):
            mine = self.state_indices(frame, lane, points)
            theirs = self.state_at(frame, frame.outer, points)
            stores = [
                ir.Store(o, theirs, stored(ir.Load(b, mine), o), None, False, span)
                for o, b in zip(frame.outer.buffers[s], frame.state.buffers[s], strict=True)
            ]
            again = _combined(self, state.reduce, frame.outer.buffers[s], theirs, frame.state.buffers[s], mine, span)
            out.append(again if frame.target.again else ir.seq(*stores))
        return ir.seq(*out)

    # ------------------------------------------------------------ reads

    def value(self, frame: Frame, e: Expr, points: dict[str, Expr]) -> Expr:
        """An expression of the task at a point: axes replaced, reads resolved, stored bools seen as bools."""
        axes = frame.coordinates(points)
        memo: dict[Expr, Expr] = {}

        def go(x: Expr) -> Expr:
            found = memo.get(x)
            if found is None:
                found = memo[x] = resolve(x)
            return found

        def resolve(x: Expr) -> Expr:
            if isinstance(x, Axis):
                return axes[x]
            if isinstance(x, Pad):
                return self._padded(frame, x, tuple(simplify(go(i)) for i in x.read.indices), axes)
            if isinstance(x, Read):
                return self._loaded(frame, x, x, tuple(simplify(go(i)) for i in x.indices), axes)
            if isinstance(x, Select):
                if frame.known and frame.known.issuperset(conjuncts(x.condition)):
                    return go(x.then)
                c = simplify(go(x.condition))
                if isinstance(c, Const):
                    return go(x.then if c.value else x.otherwise)
                return Select(c, go(x.then), go(x.otherwise))
            return x.map_children(lambda child: go(child) if isinstance(child, Expr) else child)

        return go(e)

    def residence_of(self, frame: Frame, whole: Read | Pad) -> Residence:
        found = self.residence_here(frame, whole)
        if found is not None:
            return found
        tensor = (whole.read if isinstance(whole, Pad) else whole).tensor
        members = (tensor,) if tensor.definition is None else tensor.definition.tensors  # which one step places together
        step = next((s for s in frame.steps if isinstance(s, Place) and s.tensor_name in {m.name for m in members}), None)
        assert frame.finishing and step is not None, f"{whole} is nowhere"
        raise refuse(step, "stage-in-walk", f"`{step}` is inside the accumulator's reduction loop, but {tensor.name} is read after that"
                     " loop by the finished results", "write it above the reduction loop, or above the accumulator")  # fmt: skip

    def residence_here(self, frame: Frame, whole: Read | Pad) -> Residence | None:
        """Where a read finds its tensor, if it is resident already: a step below may still place it."""
        read = whole.read if isinstance(whole, Pad) else whole
        return next((r for r in reversed(frame.residences) if r.serves(read, whole)), None)

    def _loaded(self, frame: Frame, read: Read, whole: Read | Pad, indices: tuple[Expr, ...], axes: dict[Expr, Expr]) -> Expr:
        source = self.residence_of(frame, whole)
        indices = source.element(indices, axes)
        at = source.at(indices)
        if isinstance(source, Share):
            self._check_slots(frame, source, indices, at)
        return as_logical(source.buffer.dtype, read.dtype, ir.Load(source.buffer, at))

    def _check_slots(self, frame: Frame, share: Share, indices: tuple[Expr, ...], at: tuple[Expr, ...]) -> None:
        """A walk may go beyond a thread's last slot where no point exists; an element that exists stands in another thread's."""
        beyond = share.beyond(indices)
        if not beyond:
            return
        from tilelang.lowering.build.owners import existing_beyond  # enumerates in NumPy: only where it is not certain

        axes = [a for a in frame.spec.axes if not (frame.finishing and a.reduction)]
        empty = [FALSE for a in axes if a.empty]
        bounds = [b.replace(known=False).holds(index(0)) for a in axes for b in a.bounds]
        dim = existing_beyond(beyond, [*empty, *bounds, *frame.within], self.build.threads)
        ends = [interval(i) for i in at]
        if dim is not None or any(first is None or first < 0 or last is None for first, last in ends):
            raise share.foreign(beyond[0][0] if dim is None else dim, indices)
        self.build.make_room(share.buffer, [(last or 0) + 1 for _, last in ends])

    def _padded(self, frame: Frame, pad: Pad, indices: tuple[Expr, ...], axes: dict[Expr, Expr]) -> Expr:
        source = self.residence_of(frame, pad)
        loaded = self._loaded(frame, pad.read, pad, indices, axes)
        if source.points or (source.outside and source.fill is not None and source.fill.value == pad.value.value):
            return loaded
        shape = pad.read.tensor.shape
        inside = conjunction([c for i, n in zip(indices, shape, strict=True) for c in (index(0) <= i, i < n)])
        return loaded if inside is None else Select(inside, loaded, const(pad.value.value, loaded.dtype))


def _list(e: Expr | None) -> tuple[Expr, ...]:
    return () if e is None else (e,)


def _last_written(frame: Frame) -> Step | None:
    written = [s for s in frame.steps if getattr(s, "span", None) is not None]
    return written[-1] if written else None


def written_at(stmt: ir.Stmt, frame: Frame) -> ir.Stmt:
    """A leaf whose statements know the steps around them; what no step stands for comes from the innermost one."""
    innermost = frame.origin or (frame.cuts[-1] if frame.cuts else None)

    def placed(s: Any) -> Any:
        span = s.span if isinstance(s, ir.For) else s.span or innermost  # a loop without a place is one that nobody wrote
        s = s.map_children(lambda c: placed(c) if isinstance(c, ir.Stmt) else c)
        return s if span is None else s.replace(span=dataclasses.replace(span, around=frame.cuts))

    return stmt if innermost is None else placed(stmt)


def _filled(existing: Expr, e: Expr, fill: Const) -> Expr:
    """A value, or the fill where it does not exist; one choice where the value itself is padded with the fill."""
    if isinstance(e, Select) and e.otherwise is fill:
        both = conjunction([existing, e.condition])
        return e.then if both is None else Select(both, e.then, fill)
    return Select(existing, e, fill)


def guarded(body: ir.Stmt, conditions: list[Expr], span: Span | None) -> ir.Stmt:
    guard = conjunction(conditions)
    return body if guard is None else ir.If(guard, body, None, span)


def _combined(part: Part, reduce: Reduce, into: tuple[ir.Buffer, ...], at: tuple[Expr, ...], mine: tuple[ir.Buffer, ...],
              mine_at: tuple[Expr, ...], span: Span | None) -> ir.Stmt:  # fmt: skip
    """into[at] = combine(into[at], mine[mine_at])."""
    made = Combining(part, reduce.combiner, into, at, mine_at[-1], mine[0].shape[-1], span)
    return made.statement(elements(reduce.combiner.left, into, at), elements(reduce.combiner.right, mine, mine_at))
