"""Finds maxima that only shift a computation: softmax subtracts the peak of a row, and does not depend on it.

The derivative with respect to such a maximum is 0, although the contributions of its readers are not. To detect this, the maximum p is
replaced by p + d for any d, and the effect on each value is followed: exp(x - p) is scaled by exp(-d), so is its sum, and the quotient
of the two is unchanged.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from tilelang.computations.computation import Computation, Definition, Tensor
from tilelang.core.expr import Binary, Call, Cast, Const, Expr, Pad, Read, Reduce, Select, Unary, free, substitute
from tilelang.core.node import Node, node
from tilelang.core.simplify import simplify


@node
class Effect(Node):
    """The effect of p + d on a value: it becomes value * exp(scale d) + shift d, where d is that of the element of p at `place`.

    At most one of scale and shift is not 0; if both are 0, `place` is None. zero: the value is 0, which no scale changes.
    """

    scale: float = 0.0
    shift: float = 0.0
    place: tuple[Expr, ...] | None = None
    zero: bool = False


NONE = Effect()


class _Unknown(Exception):
    """The effect is neither a scale nor a shift."""


def only_shifts(whole: Computation, extreme: Tensor, fixed: tuple[Tensor, ...] = ()) -> bool:
    """Whether no output depends on a maximum or minimum. fixed: tensors treated as constants, which must not depend on it, either.

    >>> from tilelang.computations import composed
    >>> from tilelang.computations.computation import axes, computation, input
    >>> from tilelang.computations.define import define
    >>> i, j = axes(i=4, j=5)
    >>> X = input("X", "float32", i, j)
    >>> whole = computation("c", define("y", composed.softmax(X[i, j], over=j), i, j))
    >>> [only_shifts(whole, t) for d in whole.definitions for t in d.tensors if t.name == "y_max"]
    [True]
    """
    effects = {extreme: Effect(shift=1.0, place=extreme.dims)}
    try:
        for definition in whole.definitions:
            if extreme not in definition.tensors:
                _follow(definition, effects)
    except _Unknown:
        return False
    return all(t not in effects for t in (*whole.outputs, *fixed))


def _follow(definition: Definition, effects: dict[Tensor, Effect]) -> None:
    """Adds the effects on a definition's tensors, if there are any."""
    if not any(t in effects for t in definition.reads):
        return
    for t, value in zip(definition.tensors, definition.values, strict=True):
        found = _reduced(value, effects) if isinstance(value, Reduce) else _effect(value, effects)
        if found.place is not None:
            effects[t] = found


def _reduced(e: Reduce, effects: dict[Tensor, Effect]) -> Effect:
    if e.condition is not None and _effect(e.condition, effects).place is not None:
        raise _Unknown
    found = [_effect(v, effects) for v in e.values]
    if all(f.place is None for f in found):
        return NONE
    (one,) = found if len(found) == 1 else (None,)
    if one is None or any(set(e.axes) & free(i) for i in one.place or ()):
        raise _Unknown
    if e.combiner.name == "sum" and not one.shift or e.combiner.name in ("max", "min") and not one.scale:
        return one
    raise _Unknown


def _effect(value: Expr, effects: dict[Tensor, Effect]) -> Effect:
    known: dict[Expr, Effect] = {}
    for e in value.upwards(leaves=(Read, Pad)):
        if isinstance(e, Expr):
            known[e] = _of(e, known, effects)
    return known[value]


def _of(e: Expr, known: dict[Expr, Effect], effects: dict[Tensor, Effect]) -> Effect:
    match e:
        case Const(value=number):
            return Effect(zero=number == 0)
        case Read(tensor, indices):
            if any(isinstance(part, Read) and part.tensor in effects for i in indices for part in i.walk()):
                raise _Unknown
            found = effects.get(tensor, NONE)
            if found.place is None:
                return NONE
            at = dict(zip(tensor.dims, indices, strict=True))
            return found.replace(place=tuple(simplify(substitute(p, at)) for p in found.place))
        case Pad(read):
            if _of(read, known, effects).place is not None:
                raise _Unknown
            return NONE
    parts = [known[c] for c in e.children() if isinstance(c, Expr)]
    if all(p.place is None for p in parts):
        return Effect(zero=isinstance(e, Cast) and parts[0].zero)
    match e:
        case Binary("+" | "-" as op, left, right):
            a, b = known[left], known[right]
            sign = 1 if op == "+" else -1
            if a.scale or b.scale:
                return _either(a, b)
            return _made(0.0, a.shift + sign * b.shift, (a, b))
        case Binary("*" | "/" as op, left, right):
            a, b = known[left], known[right]
            if a.shift and isinstance(right, Const):
                return a.replace(shift=a.shift * right.value if op == "*" else a.shift / right.value)
            if b.shift and isinstance(left, Const) and op == "*":
                return b.replace(shift=b.shift * left.value)
            if not a.shift and not b.shift:
                return _made(a.scale + (b.scale if op == "*" else -b.scale), 0.0, (a, b))
        case Unary("-", operand):
            a = known[operand]
            return a.replace(shift=-a.shift)
        case Cast(operand, target) if target.is_float:
            return known[operand]
        case Select(condition, then, otherwise) if known[condition].place is None:
            return _either(known[then], known[otherwise])
        case Call("exp" | "exp2" as name, (x,)) if not known[x].scale:
            return _made(known[x].shift * (1.0 if name == "exp" else math.log(2)), 0.0, (known[x],))
        case Call("log", (x,)) if not known[x].shift:
            return _made(0.0, known[x].scale, (known[x],))
    raise _Unknown


def _either(a: Effect, b: Effect) -> Effect:
    """The effect on a value that is one of two, or on their sum."""
    if a.zero and not b.shift or b.zero and not a.shift:
        return b if a.zero else a
    if (a.scale, a.shift) != (b.scale, b.shift):
        raise _Unknown
    return _made(a.scale, a.shift, (a, b))


def _made(scale: float, shift: float, of: Iterable[Effect]) -> Effect:
    places = {e.place for e in of if e.place is not None}
    if len(places) > 1:
        raise _Unknown
    return Effect(scale, shift, places.pop()) if scale or shift else NONE


__all__ = ["Effect", "only_shifts"]
