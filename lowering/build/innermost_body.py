"""Writes the innermost statements: updates of accumulators, stores of results, element copies of loads.

Reads become loads from buffers. A point that may not exist gets a guard, unless `guards.settle` proves that the statement is
harmless there.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection
from typing import Any

from tilelang.core.expr import INDEX, Binary, Const, Expr, Read, Select, Var, const, index, substitute
from tilelang.core.simplify import conjunction, conjuncts, interval, simplify
from tilelang.errors import Span
from tilelang.lowering import ir
from tilelang.lowering.build.accesses import effect_of, settled, stored_where
from tilelang.lowering.build.distribution.owners import readers_are_owners
from tilelang.lowering.build.frame import Build, Frame
from tilelang.lowering.build.movement.storage import Staging, within
from tilelang.lowering.build.reads import state_at, state_indices, stored_at, value_at
from tilelang.lowering.build.reductions.combine import Combining, as_logical, elements, stored
from tilelang.lowering.build.reductions.shared_loop import repaired, repairs_at, repairs_of
from tilelang.lowering.guards import Access, Effect
from tilelang.schedules.steps import Do, Step, Vectorize


def plain_leaf(build: Build, frame: Frame, step: Vectorize | None) -> ir.Stmt:
    """The innermost statement of a chain that does not end in an instruction."""
    if frame.is_empty:
        return ir.seq()
    points: dict[str, Expr] = {a.name: a.base for a in frame.spec.axes}
    if step is None or frame.spec.axis(step.axis).extent == 1:
        return at_points(build, frame, points, None, step)
    axis = frame.spec.axis(step.axis)
    if frame.finishing and axis.reduction:
        return at_points(build, frame, points, None, step)
    lane = build.variable("lane", axis.extent)
    points[axis.name] = simplify(axis.base + lane)
    bounds = tuple(b.replace(offset=simplify(b.offset + lane)) for b in axis.bounds)
    axes = tuple(a.replace(extent=1, base=points[a.name], bounds=bounds) if a is axis else a for a in frame.spec.axes)
    inner = frame.replace(spec=frame.spec.replace(axes=axes))
    body = at_points(build, inner, points, lane, step)
    return ir.For(lane, index(axis.extent), body, "vector", getattr(step, "span", None))


def at_points(build: Build, frame: Frame, points: dict[str, Expr], lane: Expr | None, step: Vectorize | Do | None) -> ir.Stmt:
    with readers_are_owners(step or _last_written(frame), build.threads):
        if frame.repairs:
            return repairs_at(build, frame, points, lane, step)
        if frame.task.states and not frame.finishing:
            return _update(build, frame, points, lane, step)
        return _results(build, frame, points, lane, step)


# ------------------------------------------------------------ updates


def _update(build: Build, frame: Frame, points: dict[str, Expr], lane: Expr | None, step: Vectorize | Do | None) -> ir.Stmt:
    """accumulator = combine(accumulator, value) for every accumulator of the task."""
    assert frame.state is not None
    span = getattr(step, "span", None)
    out: list[ir.Stmt] = []
    for s, state in enumerate(frame.task.states):
        reduce = state.reduce
        values = [value_at(build, frame, v, points) for v in reduce.values]
        buffers = frame.state.buffers[s]
        at = state_indices(frame, lane, points)
        place = (lane, 1 + (interval(lane)[1] or 0)) if lane is not None else (index(0), 1)
        made = Combining(build, reduce.combiner, buffers, at, *place, span)
        conditions = _update_guards(build, frame, s, points)
        out.append(guarded(made.statement(elements(reduce.combiner.left, buffers, at), values), conditions, span))
    return ir.seq(*out)


def _update_guards(build: Build, frame: Frame, s: int, points: dict[str, Expr]) -> list[Expr]:
    """The conditions under which a point updates accumulator s."""
    reduce = frame.task.states[s].reduce
    shared = frame.state is not None and frame.state.memory != "register"
    bounds = {b.holds(index(0)): a for a in frame.spec.axes for b in a.bounds}
    asked = [] if reduce.condition is None else [c for c in conjuncts(reduce.condition) if c not in frame.known]
    asked = [value_at(build, frame, c, points) for c in asked]
    # An accumulator shared by several units has room for existing elements only.
    always = [c for c, a in bounds.items() if shared and not a.reduction]
    conditions = {**{c: a for c, a in bounds.items() if c not in always}, **dict.fromkeys(asked)}
    values = (*reduce.values, *_list(reduce.condition))
    kept = settled(build, frame, conditions, always, points, values, effect_of(frame, s))
    out = [*frame.spec.present, *(c for c in bounds if c in kept or c in always)]
    if frame.spec.units is not None and frame.spec.units > 1 and shared:
        out.append(Binary("==", frame.spec.lane, index(0)))
    return [*out, *(c for c in asked if c in kept)]


# ------------------------------------------------------------ results


def _results(build: Build, frame: Frame, points: dict[str, Expr], lane: Expr | None, step: Vectorize | Do | None) -> ir.Stmt:
    """Stores finished values, or combines an inner accumulator into the outer one."""
    span = getattr(step, "span", None) or frame.origin
    in_registers = frame.target.in_registers and frame.outer is None
    # a load into registers writes the fill value too: a ring rotates as a whole, and a vector may read beyond existing elements
    whole = in_registers and frame.fill is not None
    fills = {b.key for a in frame.spec.axes for b in a.bounds} if whole else frame.fill_keys
    bounds = [(a, b) for a in frame.spec.axes for b in a.bounds if b.key not in fills and not a.reduction]
    exists = [b.holds(index(0)) for _, b in bounds]
    if in_registers and exists:  # in registers, elements that do not exist may be computed: nothing reads them
        asked = {b.holds(index(0)): a for a, b in bounds}
        written = _written(frame, points)
        kept = settled(build, frame, asked, (), points, frame.task.values, Effect(tuple(exists)), written)
        exists = [c for c in exists if c in kept]
    else:
        stored_where(build, frame, exists)
    conditions = [*frame.spec.present, *exists]
    if frame.spec.units is not None and frame.spec.units > 1 and not in_registers:
        conditions.append(Binary("==", frame.spec.lane, index(0)))
    if not in_registers:
        conditions += [Binary("==", d, index(0)) for d in frame.idle]
    if frame.finishing and frame.outer is not None:
        return guarded(_combine_outer(build, frame, points, lane, span), conditions, span)
    if frame.target.again:
        return guarded(_again(build, frame, points, lane, span), conditions, span)
    found = _found(build, frame, fills, conditions, points)
    out = []
    for k, (value, place) in enumerate(zip(frame.task.values, frame.target.places, strict=True)):
        e = _state_value(build, frame, value, points, lane)
        if frame.fill is not None and found is not None:
            e = _filled(found, e, const(frame.fill.value, e.dtype))
        at = stored_at(frame, k, place, points)
        if frame.staged is not None:
            held = (*frame.slots, lane) if lane is not None else frame.slots or (index(0),)
            at, e = (held, e) if isinstance(place, Staging) else (at, ir.Load(frame.staged, held))
        out.append(
            ir.Store(place.buffer, at, stored(e, place.buffer), None, frame.target.stream, span, behind=frame.target.behind)
        )
    return guarded(ir.seq(*out), conditions, span)


def _found(build: Build, frame: Frame, fills: Collection[str], always: list[Expr], points: dict[str, Expr]) -> Expr | None:
    """The condition under which a load takes an element from the source instead of the fill value; None if the source holds that
    value too.

    fills: keys of the bounds beyond which it fills; always: the conditions under which it writes at all.
    """
    bounds = {b.holds(index(0)): a for a in frame.spec.axes for b in a.bounds if b.key in fills}
    if frame.fill is None:
        return None
    (value,) = frame.task.values
    kept = settled(build, frame, bounds, always, points, (value,), Effect(value=value, identity=frame.fill))
    return conjunction([c for c in bounds if c in kept])


def _written(frame: Frame, points: dict[str, Expr]) -> list[Access]:
    """The stores to registers, with the conditions under which they are in range."""
    found = []
    for k, place in enumerate(frame.target.places):
        at = stored_at(frame, k, place, points)
        found.append(Access(Var(place.tensor.name, INDEX), tuple(within(at, place.buffer.shape or (1,)))))
    return found


def _state_value(build: Build, frame: Frame, e: Expr, points: dict[str, Expr], lane: Expr | None) -> Expr:
    """A value of the task in which loads of accumulators replace the reads of them."""
    mapping: dict[Expr, Expr] = {}
    if frame.finishing and frame.state is not None:
        at = state_indices(frame, lane, points)
        for s, state in enumerate(frame.task.states):
            for m, tensor in enumerate(state.tensors):
                held = ir.Load(frame.state.buffers[s][m], at)
                logical = as_logical(held.dtype, state.reduce.combiner.left[m].dtype, held)
                mapping[Read(tensor, frame.task.axes)] = logical
    return value_at(build, frame, substitute(e, mapping) if mapping else e, points)


def _again(build: Build, frame: Frame, points: dict[str, Expr], lane: Expr | None, span: Span | None) -> ir.Stmt:
    """In later iterations of an enclosing reduction loop: loads the stored result, combines, and stores it."""
    stored_as = {v.tensor: k for k, v in enumerate(frame.task.values) if isinstance(v, Read)}
    slot, slots = (lane, 1 + (interval(lane)[1] or 0)) if lane is not None else (index(0), 1)
    if frame.finishing and frame.state is not None:  # a vector's points follow the lanes of the accumulator
        slot, slots = state_indices(frame, lane, points)[-1], frame.state.buffers[0][0].shape[-1]
    out: list[ir.Stmt] = []
    for state in frame.target.again:
        outputs = [stored_as[t] for t in state.tensors]
        at = stored_at(frame, outputs[0], frame.target.places[outputs[0]], points)
        into = tuple(frame.target.places[k].buffer for k in outputs)
        right = [_state_value(build, frame, frame.task.values[k], points, lane) for k in outputs]
        made = Combining(build, state.reduce.combiner, into, at, slot, slots, span)
        out.append(made.statement(elements(state.reduce.combiner.left, into, at), right))
    return ir.seq(*out)


def _combine_outer(build: Build, frame: Frame, points: dict[str, Expr], lane: Expr | None, span: Span | None) -> ir.Stmt:
    """Stores the value of an inner accumulator in the outer one (first iteration) or combines it into the outer one (later
    iterations).

    In a shared loop, the outer value is repaired before it is combined.
    """
    assert frame.state is not None and frame.outer is not None
    out: list[ir.Stmt] = []
    repairs = repairs_of(frame)
    for s, state in enumerate(frame.task.states):
        mine, theirs = state_indices(frame, lane, points), state_at(frame, frame.outer, points)
        own, into, combiner = frame.state.buffers[s], frame.outer.buffers[s], state.reduce.combiner
        if frame.target.again:
            held = elements(combiner.left, into, theirs)
            if s in repairs and frame.shared is not None:
                held[0] = value_at(build, frame, repaired(repairs[s], held[0], frame.shared), points)
            made = Combining(build, combiner, into, theirs, mine[-1], own[0].shape[-1], span)
            out.append(made.statement(held, elements(combiner.right, own, mine)))
        else:
            stores = [ir.Store(o, theirs, stored(ir.Load(b, mine), o), None, False, span) for o, b in zip(into, own, strict=True)]
            out.append(ir.seq(*stores))
    return ir.seq(*out)


def _list(e: Expr | None) -> tuple[Expr, ...]:
    return () if e is None else (e,)


def _last_written(frame: Frame) -> Step | None:
    written = [s for s in frame.steps if getattr(s, "span", None) is not None]
    return written[-1] if written else None


def written_at(stmt: ir.Stmt, frame: Frame) -> ir.Stmt:
    """Adds the source positions of the enclosing steps to the innermost statements; without a position of its own, a statement
    gets the innermost one."""
    innermost = frame.origin or (frame.cuts[-1] if frame.cuts else None)

    def placed(s: Any) -> Any:
        span = s.span if isinstance(s, ir.For) else s.span or innermost  # a loop without a position has no step
        s = s.map_children(lambda c: placed(c) if isinstance(c, ir.Stmt) else c)
        return s if span is None else s.replace(span=dataclasses.replace(span, around=frame.cuts))

    return stmt if innermost is None else placed(stmt)


def _filled(existing: Expr, e: Expr, fill: Const) -> Expr:
    """A value if it exists, else the fill value. If the value is itself padded with the fill value, one select does both."""
    if isinstance(e, Select) and e.otherwise is fill:
        both = conjunction([existing, e.condition])
        return e.then if both is None else Select(both, e.then, fill)
    return Select(existing, e, fill)


def guarded(body: ir.Stmt, conditions: list[Expr], span: Span | None) -> ir.Stmt:
    guard = conjunction(conditions)
    return body if guard is None else ir.If(guard, body, None, span)
