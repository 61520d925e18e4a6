"""Describes the reads of innermost statements to `guards.settle`: which element each one reads, and what it may find in its place."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from tilelang.core.expr import Binary, Expr, Pad, Read, Select, Unary, const, free, index, substitute
from tilelang.core.simplify import conjunction, conjuncts, simplify
from tilelang.lowering.build.conditions import inside_piece
from tilelang.lowering.build.frame import Build, Frame
from tilelang.lowering.build.movement.access_regions import mentions
from tilelang.lowering.build.movement.storage import Box, NotOwner, Residence, Share, Whole, within
from tilelang.lowering.build.reads import residence_here, residence_of, value_at
from tilelang.lowering.guards import Access, Effect, Settled, explained, has_no_effect, settle
from tilelang.lowering.sets import implied
from tilelang.schedules.spec import AxisState, Bound


def facts(build: Build, frame: Frame, points: dict[str, Expr]) -> list[Expr]:
    """Conditions that hold at every point that the loops of a frame reach, also at points outside the tensors."""
    tested = [c for a in frame.spec.axes for c in _tested(a)]
    known = list[Expr]()
    for c in frame.known:
        known += _within_cuts([a for a in frame.spec.axes if _on(frame, c, a)], [value_at(build, frame, c, points)])
    return [*frame.within, *frame.spec.present, *tested, *known]


def settled(build: Build, frame: Frame, conditions: Mapping[Expr, AxisState | None], always: Sequence[Expr], points: dict[str, Expr],
            values: Sequence[Expr], effect: Effect, written: Sequence[Access] = ()) -> frozenset[Expr]:  # fmt: skip
    """The conditions that must guard an innermost statement.

    conditions: those that may be dropped if that is safe, each with the axis that it bounds. always: conditions that must stay.
    values: the expressions that the statement reads; written: its stores to registers, which may be out of range.
    """
    if not conditions:
        return frozenset()
    accesses = [*accesses_of(build, frame, values, points), *written]
    far = [w for a in accesses if isinstance(w := a.what, Read) and isinstance(residence_of(frame, w), Whole)]
    stay = {c: why for c, a in conditions.items() if (why := _worth_its_test(frame, c, a, far)) is not None}
    context = [*facts(build, frame, points), *always]
    found = settle(list(conditions), context, accesses, effect, stay)
    _tell(build, frame, found, context)
    return frozenset(found.conditions)


def stored_where(build: Build, frame: Frame, conditions: Sequence[Expr]) -> None:
    """Records for `TILELANG_DEBUG` that these conditions guard a store, whatever the store reads."""
    _tell(build, frame, Settled(tuple((c, "only elements that exist are stored") for c in conditions), ()), frame.within)


def _tell(build: Build, frame: Frame, found: Settled, context: Sequence[Expr]) -> None:
    if build.told is not None and (found.kept or found.dropped):
        build.told[explained(found, context, frame.task.name, frame.cuts[-1] if frame.cuts else frame.origin)] = None


def accesses_of(build: Build, frame: Frame, values: Sequence[Expr], points: dict[str, Expr], here: bool = False) -> list[Access]:
    """Every read in some expressions whose tensor is resident, with the conditions under which it is executed.

    here: the steps below may still stage tensors or assign elements to other threads. Reads that depend on that are returned
    without any conditions.
    """
    found = []
    for value in values:
        own = frame.task.state_member if value in frame.task.values else lambda t: None
        for whole, under in _conditioned_reads(frame, value, ()):
            if own((whole.read if isinstance(whole, Pad) else whole).tensor) is None:
                found.append(
                    _access_here(build, frame, whole, under, points) if here else _access(build, frame, whole, under, points)
                )
    return found


def _access_here(build: Build, frame: Frame, whole: Read | Pad, under: tuple[Expr, ...], points: dict[str, Expr]) -> Access:
    """A read with its conditions if everything it needs (its indices and conditions included) is resident; otherwise the bare read."""
    every = [w for e in (whole, *under) for w, _ in _conditioned_reads(frame, e, ())]
    if any(residence_here(frame, w) is None for w in every):
        return Access(whole)
    try:
        return _access(build, frame, whole, under, points, here=True)
    except NotOwner:  # steps below may assign other elements to the threads
        return Access(whole)


def _conditioned_reads(frame: Frame, e: Expr, under: tuple[Expr, ...]) -> Iterator[tuple[Read | Pad, tuple[Expr, ...]]]:
    """The reads that an expression executes, each with the conditions of the branches that enclose it.

    Reads inside indices count too, unless the tensor was staged point by point.
    """
    match e:
        case Select(condition, then, otherwise):
            yield from _conditioned_reads(frame, condition, under)
            yield from _conditioned_reads(frame, then, (*under, condition))
            yield from _conditioned_reads(frame, otherwise, (*under, Unary("not", condition)))
        case Read() | Pad():
            yield e, under
            source = residence_here(frame, e)
            for i in () if source is not None and source.points else (e.read if isinstance(e, Pad) else e).indices:
                yield from _conditioned_reads(frame, i, under)
        case _:
            for child in e.children():
                assert isinstance(child, Expr)  # only reads have other parts
                yield from _conditioned_reads(frame, child, under)


def _access(
    build: Build, frame: Frame, whole: Read | Pad, under: tuple[Expr, ...], points: dict[str, Expr], here: bool = False
) -> Access:
    under = tuple(value_at(build, frame, c, points) for c in under)
    axes, source = frame.coordinates(points), residence_of(frame, whole)
    read = whole.read if isinstance(whole, Pad) else whole
    element = source.element(tuple(simplify(value_at(build, frame, i, points)) for i in read.indices), axes)
    there = () if here else tuple(source.there(element))
    inside = tuple(within(element, read.tensor.shape)) if isinstance(whole, Pad) and not source.points else ()
    real = [b.holds(simplify(i - low)) for i, low, ends in _dimensions(source, element) for b in ends]
    fill = source.fill
    if isinstance(whole, Pad) and not source.points:
        padded = const(whole.value.value, whole.dtype)
        if source.outside and fill is not None and fill.value == padded.value:
            real += inside
        else:  # both values are read, and one is selected
            under, fill, real = (*under, *inside), padded, list(inside)
    own = () if here else source.own(element)
    return Access(whole, there, under, fill, tuple(real), own)


def _tested(a: AxisState) -> list[Expr]:
    """The bounds of an axis that an enclosing condition has already tested."""
    return _within_cuts([a], [b.replace(known=False).holds(index(0)) for b in a.bounds if b.known])


def _within_cuts(axes: Sequence[AxisState], held: list[Expr]) -> list[Expr]:
    """Conditions that hold at all points of a tile, weakened to "or the point is outside the tile's bounds".

    Later cuts may produce points beyond these bounds, for which the conditions were never shown.
    """
    cuts = conjunction([b.holds(index(0)) for a in axes for b in a.bounds if not b.known])
    return held if cuts is None else [Binary("or", Unary("not", cuts), c) for c in held]


def _worth_its_test(frame: Frame, condition: Expr, axis: AxisState | None, far: Sequence[Read]) -> str | None:
    """Why it pays to keep a guard that could be dropped; None if it does not. far: the statement's reads of global memory."""
    if axis is None:
        return "it is a condition of the reduction"
    if free(condition) <= frame.unrolled:
        return "it costs nothing, for unrolling decides it"
    read = next((w for w in far if depends(frame, w, axis)), None)
    return None if read is None else f"it spares reads of {read.tensor.name} in global memory"


def depends(frame: Frame, whole: Read | Pad, a: AxisState) -> bool:
    """Whether a read depends on an axis of the spec."""
    return any(_on(frame, i, a) for i in (whole.read if isinstance(whole, Pad) else whole).indices)


def _on(frame: Frame, e: Expr, a: AxisState) -> bool:
    """Whether an expression over the task's axes depends on an axis of the spec."""
    named = dict(frame.spec.coordinates)
    axes = {x: named[x.name] for x in (*frame.task.axes, *frame.task.reduction_axes)}
    return mentions(substitute(e, axes), a.name)


def leaves_memory(build: Build, frame: Frame, whole: Read | Pad, a: AxisState) -> bool:
    """Whether points of a tile beyond an axis' bounds may read elements that the memory of an operand does not hold.

    Global memory counts as soon as the read depends on the axis. False if the operand is staged or assigned to threads below.
    """
    source = residence_here(frame, whole)
    if source is None or not depends(frame, whole, a):
        return False
    if isinstance(source, Whole):
        return True
    points, beyond = _beyond(build, frame, a)
    try:
        there = _access(build, frame, whole, (), points).there
    except NotOwner:
        return False
    return not all(implied(c, known) for known in beyond for c in there)


def _beyond(build: Build, frame: Frame, a: AxisState) -> tuple[dict[str, Expr], list[list[Expr]]]:
    """The points of a tile, and for each bound of an axis what holds at those beyond it."""
    points = {x.name: x.base + inside_piece(x.name, x.extent) for x in frame.spec.axes}
    ends = [b.replace(offset=b.offset + inside_piece(a.name, a.extent)) for b in a.bounds if not b.known]
    return points, [[*facts(build, frame, points), Unary("not", b.holds(index(0)))] for b in ends]


def _dimensions(source: Residence, element: Sequence[Expr]) -> Iterator[tuple[Expr, Expr, tuple[Bound, ...]]]:
    """(coordinate, begin of the region, bounds of the elements that were copied) for each dimension of a buffer that a move filled."""
    if isinstance(source, Box | Share) and source.moved:
        yield from zip(element, source.low, source.moved, strict=True)


def effect_of(frame: Frame, s: int) -> Effect:
    """What an update of accumulator s does: whether its element exists, and which value leaves it unchanged."""
    exists = tuple(b.replace(known=False).holds(index(0)) for a in frame.spec.axes if not a.reduction for b in a.bounds)
    reduce = frame.task.states[s].reduce
    if len(reduce.values) > 1:
        return Effect(exists)
    return Effect(exists, reduce.values[0], reduce.combiner.identity[0])


def folds(build: Build, frame: Frame, axis: str) -> bool:
    """Whether points beyond the bounds of a reduction axis leave every accumulator unchanged, because of the fill values of
    the operands."""
    pieces, beyond = _beyond(build, frame, frame.spec.axis(axis))
    for s, state in enumerate(frame.task.states):
        if state.reduce.condition is not None and not frame.known.issuperset(conjuncts(state.reduce.condition)):
            return False
        accesses = accesses_of(build, frame, state.reduce.values, pieces, here=True)
        if not all(has_no_effect(points, accesses, effect_of(frame, s)) for points in beyond):
            return False
    return True
