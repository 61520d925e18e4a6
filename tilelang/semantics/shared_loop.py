"""The error bound of reductions that share a loop with repairs.

The value is that of the definitions. The error is that of the loop, computed chunk by chunk in the wide type, with every rounding of
the repairs (repair.py) and the errors of the running values. If blocks share the loop, each begins with the values of no points, and
those that it has at its end are repaired once more before they are combined. For sums, the total magnitude of the terms is tracked, so
that the bound holds for partial accumulators of any number of units and lanes, in any order within a chunk.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from tilelang.computations.computation import Tensor
from tilelang.core import numeric
from tilelang.core.expr import Axis, Read
from tilelang.semantics.error_bound import Approx, Arithmetic, certain, err, growth, unknown_if_nan
from tilelang.semantics.loop_members import Member, SharedLoop
from tilelang.semantics.repair import before, now

if TYPE_CHECKING:
    from tilelang.semantics.evaluator import Evaluator


@dataclasses.dataclass
class _Running:
    """The running value of a reduction, the sum of the absolute values of its terms (0 for a maximum or minimum), its error, and the
    number of its terms."""

    value: Any
    magnitude: Any
    error: Any
    count: Any = 0


def with_errors(evaluator: Evaluator, loop: SharedLoop) -> dict[Tensor, Approx]:
    """The evaluator's values of the reductions of a loop, with the error bounds of the loop."""
    plain = {t: evaluator.values[t] for t in loop.tensors}
    simple = [m for m in loop.members if m.reduce.combiner.name in ("sum", "max", "min")]
    (extent,) = {a.extent for m in loop.members for a in m.reduce.axes if a.name == loop.axis}
    part = loop.part or max(1, extent)
    parts = [_of_part(evaluator, loop, simple, (b, min(b + part, extent))) for b in range(0, max(1, extent), part)]
    evaluator.values.update(plain)
    running = parts[0] if loop.part is None else _combined(evaluator, simple, parts)
    found = dict(plain)
    for member in loop.members:
        if member.repair is None:
            continue
        for tensor in member.definition.tensors:
            exact = plain[tensor].value
            error = np.full(exact.shape, np.inf)  # no bound for combiners that are not covered here
            if tensor in running:
                error = _final(running[tensor], exact)
            found[tensor] = evaluator.stored(Approx(exact, error), tensor)
    return found


def _of_part(evaluator: Evaluator, loop: SharedLoop, simple: list[Member], points: tuple[int, int]) -> dict[Tensor, _Running]:
    """The values of the reductions after a part of the loop's points, from those of no points on."""
    running = {m.definition.tensors[0]: _start(evaluator, m) for m in simple}
    for begin in range(*points, loop.piece):
        old = _approximate(running)
        for member in simple:
            held = running[member.definition.tensors[0]]
            if member.repair is not None:
                _repair(evaluator, member, held, old, _approximate(running))
            evaluator.values.update(_approximate(running))
            _take(evaluator, member, held, (begin, min(begin + loop.piece, points[1])), loop.axis)
    return running


def _approximate(running: Mapping[Tensor, _Running]) -> dict[Tensor, Approx]:
    return {t: Approx(r.value, r.error) for t, r in running.items()}


def _combined(evaluator: Evaluator, simple: list[Member], parts: list[dict[Tensor, _Running]]) -> dict[Tensor, _Running]:
    """The values of all parts together: those of each part are repaired, from its own values of other reductions to the final ones."""
    found: dict[Tensor, _Running] = {}
    for member in simple:
        tensor, whole = member.definition.tensors[0], _start(evaluator, member)
        now = _approximate(found)
        for part in parts:
            held = dataclasses.replace(part[tensor])
            if member.repair is not None:
                _repair(evaluator, member, held, _approximate(part), now)
            _add_part(whole, held, member.reduce.combiner.name)
        if member.reduce.combiner.name == "sum":
            from tilelang.semantics.evaluator import state_rounding  # late: it imports NumPy

            r = state_rounding(member.definition, member.reduce, evaluator.slack)
            total = whole.error + growth(r.unit, len(parts)) * (whole.magnitude + whole.error)
            total = np.where(whole.magnitude + total > r.largest, np.inf, total)
            whole.error = certain(whole.value, total, np.isfinite(whole.error))
        found[tensor] = whole
    return found


def _add_part(whole: _Running, part: _Running, combiner: str) -> None:
    """Combines a part's value into that of the parts before it; the roundings of a sum are counted when it is complete."""
    if combiner == "sum":
        whole.value, whole.error = whole.value + part.value, whole.error + part.error
        whole.magnitude, whole.count = whole.magnitude + part.magnitude, whole.count + part.count
    else:
        pick = np.maximum if combiner == "max" else np.minimum
        whole.value = pick(whole.value, part.value)
        error = np.maximum(whole.error, part.error)
        whole.error = certain(whole.value, error, np.isfinite(error))


def _start(evaluator: Evaluator, member: Member) -> _Running:
    shape = tuple(a.extent for a in member.definition.axes)
    identity = member.reduce.combiner.identity[0]
    value = np.broadcast_to(numeric.constant(identity.value, identity.type, evaluator.wide), shape)
    return _Running(value, np.zeros(shape), np.zeros(shape))


def _final(held: _Running, exact: Any) -> Any:
    """The error against the definition's value, including the difference between both when the reference computes them."""
    same = (held.value == exact) | (np.isnan(held.value) & np.isnan(exact))
    apart = np.where(same, 0.0, unknown_if_nan(np.abs(np.asarray(held.value - exact, np.float64))))
    return unknown_if_nan(held.error + apart)


def _repair(
    evaluator: Evaluator, member: Member, held: _Running, old: Mapping[Tensor, Approx], new: Mapping[Tensor, Approx]
) -> None:
    """Repairs an accumulator after the running values changed from `old` to `new`."""
    repair, definition = member.repair, member.definition
    assert repair is not None
    arithmetic = evaluator.arithmetic(definition)
    known: dict[Any, Approx] = {}
    equal: Any = True
    for read in repair.reads:
        a, b = (_read(read, definition.axes, side[read.tensor]) for side in (old, new))
        known[before(read)], known[now(read)] = a, b
        sure = np.isinf(a.value) | ((err(a) == 0) & (err(b) == 0))
        equal = equal & (a.value == b.value) & sure & np.isfinite(err(a)) & np.isfinite(err(b))
    if repair.kept is not None:
        equal = equal | (held.value == repair.kept.value) & ((held.error == 0) | np.isinf(held.value) & np.isfinite(held.error))
    change = arithmetic.evaluate(repair.change, dict(known))
    shape = held.value.shape
    by, off = (np.broadcast_to(x, shape) for x in (change.value, np.asarray(err(change), np.float64)))
    if repair.how == "plus":
        _add(arithmetic, member, held, by, off, equal)
    else:
        _multiply(evaluator, member, held, by, off, equal)
    for reset in repair.resets:
        a = known[before(reset.read)]
        sure = (a.value == reset.at.value) & (np.isinf(a.value) | (err(a) == 0)) & np.isfinite(err(a)) & ~np.asarray(equal)
        to = float(reset.to.value)
        held.value = np.where(sure, to, held.value)
        held.magnitude = np.where(sure, 0.0, held.magnitude)
        held.error = np.where(sure, 0.0, held.error)


def _multiply(evaluator: Evaluator, member: Member, held: _Running, by: Any, off: Any, equal: Any) -> None:
    from tilelang.semantics.evaluator import state_rounding  # late: it imports NumPy

    r = state_rounding(member.definition, member.reduce, evaluator.slack)
    size = held.magnitude if member.reduce.combiner.name == "sum" else np.abs(np.where(np.isfinite(held.value), held.value, 0.0))
    most = np.abs(by) + off
    moved = held.error * most + size * off
    moved = moved + r.unit * (size + held.error) * most + r.tiny * np.maximum(1, held.count)
    value = held.value * by
    sure = np.isfinite(held.error) & np.isfinite(off)
    error = certain(value, moved, sure)
    held.magnitude = np.where(equal, held.magnitude, unknown_if_nan(held.magnitude * np.abs(by)))
    held.error = np.where(equal, held.error, unknown_if_nan(error))
    held.value = np.where(equal, held.value, value)


def _add(arithmetic: Arithmetic, member: Member, held: _Running, by: Any, off: Any, equal: Any) -> None:
    found = arithmetic.binary("+", Approx(held.value, held.error), Approx(by, off), member.reduce.dtype)
    held.error = np.where(equal, held.error, unknown_if_nan(np.asarray(err(found), np.float64)))
    held.value = np.where(equal, held.value, found.value)


def _take(evaluator: Evaluator, member: Member, held: _Running, chunk: tuple[int, int], axis: str) -> None:
    """Accumulates the terms of a chunk, with the current running values."""
    from tilelang.semantics.evaluator import BLOCK, Block, SimpleState, blocks, state_rounding  # late: it imports NumPy

    definition, reduce = member.definition, member.reduce
    inner = tuple(chunk if a.name == axis else (0, a.extent) for a in reduce.axes)
    shape, points = held.value.shape, 1
    for low, high in inner:
        points *= high - low
    value, magnitude, moved = (np.empty(shape, x.dtype) for x in (held.value, held.magnitude, held.magnitude))
    counts = np.zeros(shape)
    for ranges in blocks(shape, max(1, BLOCK // max(1, points))):
        state = SimpleState(evaluator, definition, reduce, tuple(b - a for a, b in ranges))
        state.take(Block(evaluator, definition, (*definition.axes, *reduce.axes), (*ranges, *inner)))
        where = tuple(slice(*r) for r in ranges)
        value[where], magnitude[where], moved[where], counts[where] = state.value, state.magnitude, state.moved, state.count
    if reduce.combiner.name == "sum":
        r = state_rounding(definition, reduce, evaluator.slack)
        held.value = held.value + value
        held.magnitude = held.magnitude + magnitude
        held.count = held.count + counts
        total = held.error + moved
        total = total + growth(r.unit, counts + 1) * (held.magnitude + total)
        total = np.where(held.magnitude + total > r.largest, np.inf, total)
        held.error = certain(held.value, total, np.isfinite(moved) & np.isfinite(held.error))
    else:
        pick = np.maximum if reduce.combiner.name == "max" else np.minimum
        held.value = pick(held.value, value)
        error = np.maximum(held.error, moved)
        held.error = certain(held.value, error, np.isfinite(error))


def _read(read: Read, axes: tuple[Axis, ...], of: Approx) -> Approx:
    """The values of a tensor at a read whose indices are axes, as an array with a dimension for each of `axes`."""
    places = [axes.index(i) for i in read.indices if isinstance(i, Axis)]
    assert len(places) == len(read.indices), "shared loops refuse other indices"

    def expanded(x: Any) -> Any:
        x = np.broadcast_to(np.asarray(x), of.value.shape)
        x = np.transpose(x, np.argsort(places, kind="stable")) if places else x
        return x.reshape([a.extent if d in places else 1 for d, a in enumerate(axes)])

    return Approx(expanded(of.value), expanded(err(of)))
