"""Whether the reads of a definition stay inside their tensors.

An index is first bounded by intervals; values of any kind have the ends of their type, of a clamp, of a remainder. Where that does
not settle it, its points are enumerated (with the conditions around the read, where those are on axes alone), so that a refusal shows
the smallest point that lies outside, and a wrong interval refuses nothing. Only where there are too many points does the answer remain
"not proven". A read under a condition on data is checked when the reference runs. Reads through `tl.pad` may lie anywhere.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from typing import Any

from tilelang.errors import ComputationError, Span
from tilelang.expr import Axis, Expr, Pad, Read, Reduce, Select, Unary, Var, substitute
from tilelang.simplify import interval

_ENUMERATED = 1 << 18  # points


def inside_everywhere(expr: Expr) -> bool:
    """Whether intervals alone show every read in an expression, guarded or not, to lie inside its tensor."""
    padded = {e.read for e in expr.walk() if isinstance(e, Pad)}
    reads = [e for e in expr.walk() if isinstance(e, Read) and e not in padded]
    return all(_within(index, dim.extent) for read in reads for index, dim in zip(read.indices, read.tensor.dims, strict=True))


def check_reads(owner: str, values: tuple[Expr, ...], axes: tuple[Axis, ...], span: Span | None) -> None:
    """Refuse a read outside its tensor. owner: the definition, for the message; axes: those its values range over.

    Raises ComputationError with the smallest point at which a read lies outside.
    """

    seen: set[tuple[Any, ...]] = set()

    def visit(e: Any, scope: tuple[Axis, ...], guards: tuple[Expr, ...]) -> None:
        if (e, scope, guards) in seen:
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
    tensor = read.tensor
    for index, dim in zip(read.indices, tensor.dims, strict=True):
        if any(a.extent == 0 for a in scope) or _within(index, dim.extent):
            continue
        for found in _outermost(index):
            inner = found.read if isinstance(found, Pad) else found
            if inner.tensor.range is None:
                message = f"`{read}` in {owner} is indexed by `{inner.tensor.name}`, whose values could be anything"
                mend = f"clamp it, as in tl.minimum(tl.maximum({inner}, 0), {dim.extent - 1})"
                if inner.tensor.definition is None:
                    mend = f'state their range: tl.input("{inner.tensor.name}", ..., range=(0, {dim.extent})); or {mend}'
                raise ComputationError("index-range-unknown", message, span=span, mend=mend)
        if any(isinstance(e, (Read, Reduce)) for g in guards for e in g.walk()):
            continue
        proven, point = _point_outside(index, dim.extent, guards)
        if proven and point is None:
            continue
        message = f"`{read}` in {owner} reads outside {tensor!r}"
        mend = "tl.pad(..., value) gives the value outside; or put it under tl.where, or choose other extents"
        if proven:
            where = f"at {point}, " if point else ""
            example = f"{where}`{index}` must lie in 0 .. {dim.extent - 1} for dimension `{dim.name}`"
        else:
            example = f"`{index}` stays within 0 .. {dim.extent - 1} of dimension `{dim.name}`"
        raise ComputationError("read-outside", message, span=span, counterexample=example, mend=mend, proven=proven)


def _outermost(e: Expr) -> Iterator[Read | Pad]:
    """The reads in an index, but not those in their own indices."""
    if isinstance(e, Read | Pad):
        yield e
    else:
        for child in e.children():
            if isinstance(child, Expr):
                yield from _outermost(child)


def _within(index: Expr, extent: int) -> bool:
    low, high = interval(index)
    return low is not None and high is not None and 0 <= low and high < extent


def _point_outside(index: Expr, extent: int, guards: tuple[Expr, ...]) -> tuple[bool, str | None]:
    """(certain, the smallest point that reads outside): every point tried, or corners where there are too many."""
    import numpy as np

    from tilelang.numeric import evaluate

    stand_ins: dict[Expr, Expr] = {}
    padding: dict[Expr, int] = {}
    for e in _outermost(index):
        low, high = (e.read if isinstance(e, Pad) else e).tensor.range
        stand_ins[e] = Var(str(e), e.dtype, low, high - 1)
        if isinstance(e, Pad):
            padding[stand_ins[e]] = int(e.value.value)
    index = substitute(index, stand_ins)
    names = sorted({e for part in (index, *guards) for e in part.walk() if isinstance(e, (Axis, Var))}, key=lambda e: e.name)
    spans = [(0, e.extent - 1) if isinstance(e, Axis) else (e.lower or 0, e.upper or 0) for e in names]
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
    # The smallest point: the least total of its coordinates among the first found.
    found = np.flatnonzero(outside)
    at = int(found[np.argmin(points[:, found].sum(axis=0))]) if names else 0
    shown = ", ".join(f"{e.name} = {points[i, at]}" for i, e in enumerate(names))
    text = str(index)
    return True, f"{shown}: {text} = {value[at]}" if shown else f"{text} = {value[at]}"
