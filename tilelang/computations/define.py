"""`define`: turns an expression into definitions.

It checks ranks, types and bounds, determines the compute type of each operator and extracts nested reductions (elaborate.py).
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Sequence
from typing import Any, overload

from tilelang.computations.bounds_check import check_reads, padded
from tilelang.computations.computation import LICENCES, Definition, Tensor, check_bytes, check_distinct, check_name, check_rank
from tilelang.computations.elaborate import Hoister, free_axes, with_named_parts, working
from tilelang.core.expr import INDEX, Axis, Combiner, Expr, Reduce, Var, as_expr, by_names, cast, several_of
from tilelang.core.node import fill
from tilelang.core.simplify import interval
from tilelang.errors import ComputationError, brief, caller_span, counted, not_too_deep


@overload
def define(name: str, expression: Any, *axes: Axis, allow: Iterable[str] = ()) -> Tensor: ...


@overload
def define(name: Sequence[str], expression: Any, *axes: Axis, allow: Iterable[str] = ()) -> tuple[Tensor, ...]: ...


@not_too_deep
def define(name: Any, expression: Any, *axes: Axis, allow: Iterable[str] = ()) -> Any:
    """A tensor whose element at each point of `axes` is `expression`; a tuple of tensors for tuples of names and expressions.

    Its type is the nominal type of the expression: operands promote by dtype.promote. A reduction of floats keeps their type, although
    8- and 16-bit floats are summed in float32 and rounded once, here; integers and conditions are summed in at least 32 bits and keep
    that type.
    allow: licences to change the answer (`LICENCES`), each of which widens the bound.

    Raises ComputationError for unknown axes, reads out of bounds, and types that do not fit.
    """
    span = caller_span()
    several = isinstance(name, (tuple, list)) and isinstance(expression, (tuple, list))
    names, given = (tuple(name), tuple(expression)) if several else ((name,), (expression,))
    for n in names:
        check_name(n)
    if not names or len(names) != len(given):
        message = f"{counted(len(names), 'name')} for {counted(len(given), 'expression')}"
        raise ComputationError("define-members", message, span=span, help="pass one name for each expression")
    for licence in several_of(allow):
        if not isinstance(licence, str) or licence not in LICENCES:
            message = f"there is no licence {brief(licence)}"
            raise ComputationError("licence", message, span=span, help="use one of " + ", ".join(LICENCES))
    licences = tuple(sorted(set(several_of(allow))))
    part = functools.partial(define, allow=licences)
    written = tuple(with_named_parts(n, as_expr(e), axes, part) for n, e in zip(names, given, strict=True))
    for n, e in zip(names, written, strict=True):
        _check_values(n, e)
        _check_apart(n, e, tuple(a for a in axes if isinstance(a, Axis)))
        _check_axes(n, e, axes)
    written, axes = tuple(map(by_names, written)), tuple(map(by_names, axes))
    tensors = _Builder(names, written, axes, licences, span).build()
    return tensors if several else tensors[0]


def _check_values(name: str, expression: Expr) -> None:
    """Refuses values that only the repair of a shared loop has."""
    for e in expression.walk():
        if isinstance(e, Var) and e.name.startswith(("before(", "now(")):
            message = f"the value of {name} reads `{e.name}`, which exists only in the repair of a loop"
            raise ComputationError(
                "bad-repair", message, span=caller_span(), help="read an element of the tensor, as in total[i]"
            )


def _check_axes(name: str, expression: Expr, axes: tuple[Axis, ...]) -> None:
    for a in axes:
        if not isinstance(a, Axis):
            raise ComputationError("not-an-axis", f"{a!r} is not an axis for {name}", span=caller_span(), help="tl.axes(m=16)")
    check_distinct(name, axes)
    for a in sorted(free_axes(expression), key=lambda a: a.name):
        if a not in axes:
            known = next((b for b in axes if b.name == a.name), None)
            detail = (
                f"of extent {a.extent}, which is not the axis `{a.name}` of extent {known.extent}"
                if known is not None
                else "which is not an axis"
            )
            message = f"the value of {name} depends on `{a.name}` {detail} of {name}"
            raise ComputationError(
                "unknown-axis", message, span=caller_span(), help=f"list {a.name} among its axes, or reduce over it"
            )


def _check_apart(name: str, expression: Expr, axes: tuple[Axis, ...]) -> None:
    """Refuses different axes of the same name that a reader would confuse: axes from two calls of `tl.axes`, and an axis that a
    reduction hides everywhere in the value."""
    seen: set[tuple[Expr, tuple[Axis, ...]]] = set()

    def visit(e: Expr, scope: dict[str, Axis]) -> None:
        if (e, key := tuple(scope.values())) in seen:
            return
        seen.add((e, key))
        if isinstance(e, Axis):
            known = scope.get(e.name, e)
            if known is not e and known.extent == e.extent:
                message = f"{name} uses two axes named `{e.name}`, from two calls of tl.axes"
                help = f"give them different names, as in tl.axes({e.name}={e.extent}, {e.name}2={e.extent}), or use one for both"
                raise ComputationError("axes-of-one-name", message, span=caller_span(), help=help)
            return
        own = e.axes if isinstance(e, Reduce) else ()
        inside = {**scope, **{a.name: a for a in own}}
        for c in e.children():
            if isinstance(c, Expr) and c not in own:
                visit(c, inside)

    visit(expression, {a.name: a for a in axes})
    _check_hidden(f"`{{}}`, which is also an axis of {name}: the value would not depend on that axis", axes, (expression,))
    for e in expression.walk():
        if isinstance(e, Reduce):
            parts = (*e.values, *(() if e.condition is None else (e.condition,)))
            _check_hidden("`{}`, like the reduction around it, whose terms would not depend on that axis", e.axes, parts)


def _check_hidden(where: str, axes: tuple[Axis, ...], parts: tuple[Expr, ...]) -> None:
    """Refuses a reduction that hides one of the surrounding axes from all parts of a value."""
    inner = [e for part in parts for e in part.walk() if isinstance(e, Reduce)]
    used = frozenset[Axis]().union(*map(free_axes, parts)) if inner else frozenset[Axis]()
    for e in inner:
        for a in axes:
            if a not in used and a.extent > 1 and a.name in {b.name for b in e.axes}:
                help = "use different axes around the reduction and inside it"
                message = f"`{e}` reduces over {where.format(a.name)}"
                raise ComputationError("axis-hidden", message, span=caller_span(), help=help)


class _Builder:
    """Builds the definitions of one call of `define`."""

    def __init__(self, names: Any, written: Any, axes: tuple[Axis, ...], allow: tuple[str, ...], span: Any) -> None:
        self.names, self.written, self.axes, self.allow, self.span = names, written, axes, allow, span
        self.hoister = Hoister(names[0], self.hidden, lambda name, value, own: self.make((name,), (value,), own, None)[0])

    def build(self) -> tuple[Tensor, ...]:
        values = tuple(padded(working(e), self.axes) for e in self.written)
        whole = self.whole_reduction(values)
        if whole is not None:
            return self.make(self.names, whole, self.axes, self.written)
        made: list[Tensor] = []
        for name, value, written in zip(self.names, values, self.written, strict=True):
            stored = cast(self.hoister.pointwise(value, self.axes), written.dtype)
            made += self.make((name,), (stored,), self.axes, (written,))
        return tuple(made)

    def whole_reduction(self, values: tuple[Expr, ...]) -> tuple[Expr, ...] | None:
        """The values as one reduction that is stored unchanged; None if anything must be computed after it."""
        first = values[0]
        if not isinstance(first, Reduce) or set(first.axes) & set(self.axes):
            return None
        members = tuple(Reduce(first.combiner, first.values, first.axes, first.condition, i) for i in range(len(first.values)))
        types = tuple(e.dtype for e in self.written)
        if values != members or types != tuple(m.dtype for m in members):
            return None
        inner = self.hoister.inside(members[0], self.axes, ())
        return tuple(inner.replace(member=i) for i in range(len(members)))

    def hidden(
        self,
        name: str,
        combiner: Combiner,
        values: tuple[Expr, ...],
        axes: tuple[Axis, ...],
        over: tuple[Axis, ...],
        where: Expr | None,
    ) -> tuple[Tensor, ...]:
        names = (name,) if len(values) == 1 else tuple(f"{name}_{i}" for i in range(len(values)))
        return self.make(names, tuple(Reduce(combiner, values, over, where, i) for i in range(len(values))), axes, None)

    def make(
        self, names: tuple[str, ...], values: tuple[Expr, ...], axes: tuple[Axis, ...], written: tuple[Expr, ...] | None
    ) -> tuple[Tensor, ...]:
        over = values[0].axes if isinstance(values[0], Reduce) else ()
        check_rank(
            (*axes, *over), f"{names[0]} ranges and reduces over {counted(len(axes) + len(over), 'axis', 'axes')}", self.span
        )
        # A reduction is checked once, not per member.
        check_reads(names[0], values[:1] if isinstance(values[0], Reduce) else values, axes, self.span)
        for n, v in zip(names, values, strict=True):
            check_bytes(n, v.dtype, axes, self.span)
        tensors = tuple(
            Tensor(n, v.dtype, axes, _range(v), member=i, hidden=written is None, span=self.span)
            for i, (n, v) in enumerate(zip(names, values, strict=True))
        )
        definition = Definition(tensors, axes, values, self.allow, written)
        for t in tensors:
            fill(t, definition=definition)
        return tensors


def _range(value: Expr) -> tuple[int, int] | None:
    """The range of an integer value if it is known, so that the tensor can be an index."""
    if not value.dtype.is_integer:
        return None
    if isinstance(value, Reduce):
        # a possibly empty reduction gives the identity
        empty = value.condition is not None or 0 in (a.extent for a in value.axes)
        if empty or value.combiner.name not in ("argmax", "argmin") or value.member != 1:
            return None
        value = value.values[1]
    low, high = interval(cast(value, INDEX))
    if low is None or high is None or low <= value.dtype.lowest and high >= value.dtype.highest:
        return None
    return low, high + 1
