"""Checks that the reads of a definition stay inside their tensors.

An index is first bounded by intervals; values of any kind are limited by their type, a clamp or a remainder. If that does not decide,
its points are enumerated under the conditions around the read, so that an error shows the smallest point out of bounds, and an
imprecise interval never causes an error. Only with too many points does the answer remain "not proven". An integer tensor with a
declared range is treated as a variable of that range, in an index and in a condition; any other condition on data may hold anywhere.
Reads through `tl.pad` may be out of bounds. A read that only a condition on data might keep inside its tensor becomes a read through
`tl.pad`, which gives 0 outside: no data within the declared ranges makes a kernel read memory outside the tensor.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Iterator
from typing import Any

from tilelang.core.expr import INDEX, Axis, Binary, Expr, Pad, Read, Reduce, Select, Unary, Var, free, literal, substitute
from tilelang.core.simplify import conjuncts, exact, interval, simplify
from tilelang.errors import ComputationError, Span

_ENUMERATED = 1 << 18  # points
_SCANNED = 1 << 22  # values of one variable

_INSIDE: dict[Expr, bool] = {}


def inside_everywhere(expr: Expr) -> bool:
    """Whether intervals alone prove that every read in an expression, guarded or not, is in bounds.

    Such expressions need no conditions around them. Dropping the conditions keeps the traversal of shared subexpressions, each time
    under other conditions, from growing exponentially.
    """
    found = _INSIDE.get(expr)
    if found is None:
        read = expr.read if isinstance(expr, Pad) else expr
        found = all(inside_everywhere(c) for c in read.children() if isinstance(c, Expr))
        if found and isinstance(expr, Read):
            found = all(_within(index, dim.extent) for index, dim in zip(expr.indices, expr.tensor.dims, strict=True))
        _INSIDE[expr] = found
    return found


def padded(value: Expr, axes: tuple[Axis, ...]) -> Expr:
    """A value in which reads that only conditions on data keep in bounds give 0 outside. axes: those that the value ranges over."""
    known: dict[tuple[Any, ...], Any] = {}

    def visit(e: Any, scope: tuple[Axis, ...], guards: tuple[Expr, ...]) -> Any:
        if inside_everywhere(e):
            return e
        key = (e, scope, guards)
        if key not in known:
            known[key] = changed(e, scope, guards)
        return known[key]

    def changed(e: Any, scope: tuple[Axis, ...], guards: tuple[Expr, ...]) -> Any:
        match e:
            case Select(condition, then, otherwise):
                chosen = visit(condition, scope, guards)
                parts = (
                    chosen,
                    visit(then, scope, (*guards, chosen)),
                    visit(otherwise, scope, (*guards, Unary("not", chosen))),
                )
                return e if parts == (condition, then, otherwise) else Select(*parts)
            case Reduce(combiner, inner, over, condition, member):
                own = (*scope, *over)
                kept = None if condition is None else visit(condition, own, guards)
                within = guards if kept is None else (*guards, kept)
                values = tuple(visit(v, own, within) for v in inner)
                return e if (values, kept) == (inner, condition) else Reduce(combiner, values, over, kept, member)
            case Pad(read, outside):
                inside = read.map_children(lambda c: visit(c, scope, guards) if isinstance(c, Expr) else c)
                return e if inside is read else Pad(inside, outside)
            case Expr():
                made = e.map_children(lambda c: visit(c, scope, guards) if isinstance(c, Expr) else c)
                if isinstance(made, Read) and any(map(_on_data, guards)) and _may_be_outside(made, scope, guards):
                    return Pad(made, literal(False if made.dtype.kind == "bool" else 0, made.dtype))
                return made
        return e

    found: Expr = visit(value, axes, ())
    return found


def _on_data(condition: Expr) -> bool:
    return any(isinstance(e, (Read, Reduce)) for e in condition.walk())


def _may_be_outside(read: Read, scope: tuple[Axis, ...], guards: tuple[Expr, ...]) -> bool:
    """Whether a read is not proven to be in bounds; reductions, and tensors without a declared range, could have any values."""
    unsettled = _unsettled(read, scope)
    if any(isinstance(e, Reduce) for index, _ in unsettled for e in index.walk()):
        return True
    if any(inner.tensor.range is None for index, _ in unsettled for inner in _index_tensors(index)):
        return True
    return any(_point_outside(index, dim.extent, _bounding(index, guards)) != (True, None) for index, dim in unsettled)


def _unsettled(read: Read, scope: tuple[Axis, ...]) -> list[tuple[Expr, Axis]]:
    """The indices of a read that intervals do not prove to be in bounds, each with its dimension; none if there are no points."""
    if any(a.extent == 0 for a in scope):
        return []
    return [(i, dim) for i, dim in zip(read.indices, read.tensor.dims, strict=True) if not _within(i, dim.extent)]


def check_reads(owner: str, values: tuple[Expr, ...], axes: tuple[Axis, ...], span: Span | None) -> None:
    """Checks all reads of a definition. owner: the definition, for the message. axes: those its values range over.

    Raises ComputationError with the smallest point at which a read is out of bounds.
    """

    seen: set[tuple[Any, ...]] = set()

    def visit(e: Any, scope: tuple[Axis, ...], guards: tuple[Expr, ...]) -> None:
        if (e, scope, guards) in seen or inside_everywhere(e):
            return
        seen.add((e, scope, guards))
        match e:
            case Select(condition, then, otherwise):
                visit(condition, scope, guards)
                visit(then, scope, (*guards, condition))
                visit(otherwise, scope, (*guards, Unary("not", condition)))
            case Reduce(_, inner, over, condition, _):
                own = (*scope, *over)
                if condition is not None:
                    visit(condition, own, guards)
                    guards = (*guards, condition)
                for value in inner:
                    visit(value, own, guards)
            case Pad(read):
                for index in read.indices:
                    visit(index, scope, guards)
            case Read(_, indices):
                for index in indices:
                    visit(index, scope, guards)
                _check_read(owner, e, scope, guards, span)
            case Expr():
                for child in e.children():
                    visit(child, scope, guards)

    for value in values:
        visit(value, axes, ())


def _check_read(owner: str, read: Read, scope: tuple[Axis, ...], guards: tuple[Expr, ...], span: Span | None) -> None:
    for index, dim in _unsettled(read, scope):
        for inner in _index_tensors(index):
            if inner.tensor.range is None:
                message = f"`{read}` in {owner} is indexed by `{inner.tensor.name}`, whose values are not bounded"
                help = f"clamp it, as in tl.minimum(tl.maximum({inner}, 0), {dim.extent - 1})"
                if inner.tensor.definition is None:
                    help = f'declare their range: tl.input("{inner.tensor.name}", ..., range=(0, {dim.extent})); or {help}'
                raise ComputationError("index-range-unknown", message, span=span, help=help)
        proven, point = _point_outside(index, dim.extent, _bounding(index, guards))
        if proven and point is None:
            continue
        message = f"`{read}` in {owner} reads outside {read.tensor!r}"
        help = "use tl.pad(..., value) for the value outside, or put the read under tl.where, or choose other extents"
        if proven:
            where = f"at {point}, " if point else ""
            example = f"{where}`{index}` must lie in 0 .. {dim.extent - 1} for dimension `{dim.name}`"
        else:
            example = f"`{index}` stays within 0 .. {dim.extent - 1} of dimension `{dim.name}`"
        raise ComputationError("read-outside", message, span=span, counterexample=example, help=help, proven=proven)


def _outermost(e: Expr) -> Iterator[Read | Pad]:
    """The reads in an index, without those in their own indices."""
    if isinstance(e, Read | Pad):
        yield e
    else:
        for child in e.children():
            if isinstance(child, Expr):
                yield from _outermost(child)


def _index_tensors(index: Expr) -> Iterator[Read]:
    """The tensor reads in an index, without those in their own indices."""
    for found in _outermost(index):
        yield found.read if isinstance(found, Pad) else found


def _bounding(index: Expr, guards: tuple[Expr, ...]) -> tuple[Expr, ...]:
    """The parts of the conditions around a read that may bound its index: those on axes, and those on tensors with a declared range
    that share a variable with the index or with another such part."""
    parts = [part for guard in guards for part in _parts(simplify(guard))]
    kept = [part for part in parts if not _on_data(part)]
    left = [part for part in parts if part not in kept]
    known = _variables(index).union(*map(_variables, kept))
    while joining := [part for part in left if _ranged(part) and _variables(part) & known]:
        kept += joining
        left = [part for part in left if part not in joining]
        known = known.union(*map(_variables, joining))
    return tuple(kept)


def _parts(condition: Expr) -> list[Expr]:
    """Conditions whose conjunction is the given one: the operands of `and`, and those of `or` under a `not`."""
    match condition:
        case Binary("and", left, right):
            return [*_parts(left), *_parts(right)]
        case Unary("not", Binary("or", left, right)):
            return [*_parts(simplify(Unary("not", left))), *_parts(simplify(Unary("not", right)))]
        case _:
            return [condition]


def _ranged(condition: Expr) -> bool:
    """Whether a condition reads only integer tensors with a declared range."""
    if any(isinstance(e, Reduce) for e in condition.walk()):
        return False
    return all(read.tensor.range is not None for read in _index_tensors(condition))


def _variables(e: Expr) -> frozenset[Expr]:
    """The axes and whole reads that a value depends on."""
    reads = frozenset(_outermost(e))
    return reads | {a for a in free(substitute(e, {r: Var("read", r.dtype) for r in reads})) if isinstance(a, Axis)}


def _within(index: Expr, extent: int) -> bool:
    low, high = interval(index)
    return low is not None and high is not None and 0 <= low and high < extent


def _span(e: Axis | Var, guards: list[Expr]) -> tuple[int, int] | None:
    """The least and greatest value of a variable under the conditions on it alone; None if they never hold."""
    import numpy as np  # late: NumPy takes long to import

    from tilelang.core.numeric import evaluate  # late: imports NumPy

    low, high = (0, e.extent - 1) if isinstance(e, Axis) else (e.lower or 0, e.upper or 0)
    if not guards or high - low >= _SCANNED:
        return low, high
    points = np.arange(low, high + 1).astype(e.dtype.numpy)
    holds = np.ones(points.shape, bool)
    for guard in guards:
        holds &= evaluate(guard, {e: points})
    found = np.flatnonzero(holds)
    return (low + int(found[0]), low + int(found[-1])) if found.size else None


def _stated(index: Expr, extent: int, guards: tuple[Expr, ...]) -> bool:
    """Whether one of the conditions is a lower bound of an index, and one an upper bound, as for the index h - u under 0 <= h - u < 64.

    A comparison states that a difference is at least 0; it proves the lower bound if the index is never less than that difference.
    """
    stated = []
    for part in (part for guard in guards for part in conjuncts(guard)):
        match part:
            case Binary("<" | "<=" as op, left, right) if left.dtype is INDEX and exact(left, right):
                stated.append(right - left - (1 if op == "<" else 0))

    def is_stated(room: Expr) -> bool:
        lowest = [interval(room - t)[0] for t in stated]
        return any(low is not None and low >= 0 for low in lowest)

    return exact(index) and is_stated(index) and is_stated(extent - 1 - index)


@functools.lru_cache(maxsize=1024)
def _point_outside(index: Expr, extent: int, guards: tuple[Expr, ...]) -> tuple[bool, str | None]:
    """(certain, the smallest out-of-bounds point; "" for a constant index). Every point is tried, or corners if there are too many."""
    import numpy as np  # late: NumPy takes long to import

    from tilelang.core.numeric import evaluate  # late: imports NumPy

    stand_ins: dict[Expr, Expr] = {}
    padding: dict[Expr, int] = {}
    for read in (read for part in (index, *guards) for read in _outermost(part)):
        low, high = (read.read if isinstance(read, Pad) else read).tensor.range
        stand_ins[read] = Var(str(read), read.dtype, low, high - 1)
        if isinstance(read, Pad):
            padding[stand_ins[read]] = int(read.value.value)
    index, guards = substitute(index, stand_ins), tuple(substitute(g, stand_ins) for g in guards)
    names = sorted({e for part in (index, *guards) for e in part.walk() if isinstance(e, (Axis, Var))}, key=lambda e: e.name)
    spans: list[tuple[int, int]] = []
    for e in names:
        span = _span(e, [] if e in padding else [g for g in guards if free(g) == {e}])
        if span is None:
            return True, None
        spans.append(span)
    outside_of = [padding.get(e, low) for e, (low, _) in zip(names, spans, strict=True)]
    narrow: dict[Expr, Expr] = {
        e: Var(e.name, e.dtype, min(low, outer), max(high, outer))
        for e, (low, high), outer in zip(names, spans, outside_of, strict=True)
    }
    if _within(substitute(index, narrow), extent) or _stated(index, extent, guards):
        return True, None
    every = math.prod(high - low + 1 for low, high in spans) <= _ENUMERATED
    choices = [
        range(low, high + 1) if every else sorted({low, low + 1, (low + high) // 2, high - 1, high}) for low, high in spans
    ]
    if math.prod(len(c) for c in choices) > _ENUMERATED:
        choices = [sorted({low, high}) for low, high in spans]
    choices = [sorted({*c, padding[e]}) if e in padding else c for c, e in zip(choices, names, strict=True)]
    if names:
        points = np.array(list(itertools.product(*choices)), np.int64).reshape(-1, len(names)).T
    else:
        points = np.zeros((0, 1), np.int64)
    values: dict[Expr, Any] = {
        e: p.astype(e.dtype.numpy) for e, p in zip(names, points, strict=True)
    }  # they wrap as in the kernel
    size = points.shape[1]
    value = np.broadcast_to(evaluate(index, values), (size,))
    outside = (value < 0) | (value >= extent)
    for guard in guards:
        outside = outside & np.broadcast_to(evaluate(guard, values), (size,))
    if not outside.any():
        return every, None
    # The smallest point: the least sum of coordinates among the first found.
    found = np.flatnonzero(outside)
    at = int(found[np.argmin(points[:, found].sum(axis=0))]) if names else 0
    shown = ", ".join(f"{e.name} = {points[i, at]}" for i, e in enumerate(names))
    text = str(index)
    if text == str(value[at]):  # a constant index
        return True, shown
    return True, f"{shown}: {text} = {value[at]}" if shown else f"{text} = {value[at]}"
