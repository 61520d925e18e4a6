"""Repairs that the author of a schedule gives: expressions over the values of reductions before and after a change."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tilelang.computations.computation import Tensor
from tilelang.core.expr import Axis, Binary, Const, Expr, Pad, Read, Reduce, Unary, Var, binary, const, unary
from tilelang.core.identifiers import spelled
from tilelang.errors import Refusal, Span, brief, caller_span, meant

if TYPE_CHECKING:
    from tilelang.semantics.repair import Repair, Running

TIMES = ("before", "now")


def before(tensor: Tensor) -> Expr:
    """The value of a reduction before others in its loop change, in a repair: `.split(..., repairs={"total": tl.before(total) * ...})`.

    >>> import tilelang as tl
    >>> i, j = tl.axes(i=4, j=8)
    >>> X = tl.input("X", tl.float32, i, j)
    >>> peak = tl.define("peak", tl.max(X[i, j], over=j), i)
    >>> total = tl.define("total", tl.sum(tl.exp(X[i, j] - peak[i]), over=j), i)
    >>> given = {"total": tl.before(total) * tl.exp(tl.before(peak) - tl.now(peak))}
    >>> print(tl.schedule(total).tile(i=2).to(tl.block).split(j=4, of=("peak", "total"), repairs=given).steps[-1])
    split j=4 of peak total=before(total) * exp(before(peak) - now(peak))
    """
    return _value("before", tensor)


def now(tensor: Tensor) -> Expr:
    """The value of a reduction after it changed, in a repair of one that reads it. See `tl.before`."""
    return _value("now", tensor)


def _value(time: str, tensor: Tensor) -> Expr:
    wrong = _no_reduction(time, tensor)
    if wrong is not None:
        raise Refusal("bad-repair", f"`tl.{time}`: {wrong[0]}", span=caller_span(), help=wrong[1])
    return Var(f"{time}({spelled(tensor.name)})", tensor.dtype)


def _no_reduction(time: str, tensor: Any) -> tuple[str, str] | None:
    """Why something is not the tensor of a reduction, and the help; None if it is one."""
    if isinstance(tensor, Read):
        return f"{brief(tensor)} is an element", f"pass the tensor itself: tl.{time}({tensor.tensor.name})"
    if not isinstance(tensor, Tensor):
        return f"{brief(tensor)} is not a tensor", f"pass the tensor of a reduction, as in tl.{time}(total)"
    if tensor.definition is None:
        return f"the input `{tensor.name}` does not change in a loop", "read tl.before and tl.now of reductions only"
    if tensor.definition.reduction is None:
        return f"`{tensor.name}` is {made_of(reductions_in(tensor))}", f"read tl.{time} of the reduction itself"
    return None


def reductions_in(tensor: Tensor) -> tuple[str, ...]:
    """The names of the reductions that a pointwise definition reads element by element, such as `best_argmax` of `best`."""
    definition = tensor.definition
    assert definition is not None
    return tuple(dict.fromkeys(r.tensor.name for v in definition.values for r in v.walk() if isinstance(r, Read)
                 and r.tensor.definition is not None and r.tensor.definition.reduction is not None
                 and set(r.indices) == set(definition.axes)))  # fmt: skip


def made_of(reductions: Sequence[str]) -> str:
    """What a pointwise definition that reads some reductions is, in words.

    >>> made_of(("best_argmax",)), made_of(())
    ('not a reduction itself, but computed from `best_argmax`', 'not a reduction')
    """
    listed = " and ".join(f"`{n}`" for n in reductions)
    return f"not a reduction itself, but computed from {listed}" if listed else "not a reduction"


def checked_repairs(repairs: Mapping[str, Expr], of: Collection[str], span: Span | None) -> tuple[tuple[str, Expr], ...]:
    """The repairs of a step in the order of its members. Raises Refusal if they are not expressions for its members."""
    form = 'pass expressions over tl.before and tl.now: repairs={"total": tl.before(total) * ...}'
    if not isinstance(repairs, Mapping):
        raise Refusal("bad-repair", f"`split`: repairs={brief(repairs)} gives no expressions by name", span=span, help=form)
    for name, value in repairs.items():
        if name not in of:
            message = f"`split`: there is a repair of {brief(name)}, which is not one of the reductions of the loop"
            help = meant(str(name), of, "name the reductions that share the loop: of=(...)")
            raise Refusal("bad-repair", message, span=span, help=help)
        if not isinstance(value, Expr):
            raise Refusal("bad-repair", f"`split`: {name}={brief(value)} is not an expression", span=span, help=form)
        leaves = (e for e in value.walk() if isinstance(e, (Read, Pad, Axis, Var)))
        other = next((e for e in leaves if not (isinstance(e, Var) and e.name.startswith(TIMES))), None)
        if other is not None:
            message = (
                f"`split`: the repair of `{name}` reads `{other}`, which is not the value of a reduction before or after a change"
            )
            read = other.tensor.name if isinstance(other, Read) and other.tensor.definition is not None else None
            help = form if read is None else f"read tl.before({read}) or tl.now({read})"
            raise Refusal("bad-repair", message, span=span, help=help)
    return tuple((name, repairs[name]) for name in of if name in repairs)


def given_repair(reduce: Reduce, running: tuple[Running, ...], name: str, value: Expr) -> Repair:
    """The derived repair of a reduction, if a given one is proven to be the same. name: of the reduction's tensor. Raises
    NotDerived."""
    from tilelang.semantics.repair import NotDerived, proven  # late: only loops shared by reductions need it

    if not running:
        raise NotDerived("refused", "its terms read no value that changes")
    held = next((e for e in value.walk() if isinstance(e, Var) and e.name == f"before({spelled(name)})"), None)
    change = None if held is None else _change(value, held)
    known = {f"{time}({spelled(r.read.tensor.name)})" for r in running for time in TIMES}
    other = next((e for e in (change[1].walk() if change else ()) if isinstance(e, Var) and e.name not in known), None)
    if change is None or other is not None:
        if held is None:
            why = f"it does not read before({name}), the accumulator that changes"
        elif other is None:
            why = f"it is neither before({name}) times a factor nor before({name}) plus a summand"
        else:
            why = f"it reads {other.name}, a value that its terms do not read"
        raise NotDerived("refused", why)
    how, by = change
    return proven(reduce, running, "power" if reduce.combiner.name == "prod" and how == "times" else how, by)


def _change(e: Expr, held: Var) -> tuple[str, Expr] | None:
    """How an accumulator changes, and by what; None if it is neither multiplied nor added to."""
    found: tuple[str, Expr] | None = None
    match e:
        case Var() if e is held:
            return "times", const(1, held.dtype)
        case Unary("-", operand):
            return _both(_change(operand, held), "times", const(-1, held.dtype))
        case Binary("*" | "/" | "+" | "-" as op, left, right) if _reads(left, held) and not _reads(right, held):
            found = _change(left, held)
            by = right if op in "*+" else binary("/", const(1, right.dtype), right) if op == "/" else unary("-", right)
            return _both(found, "times" if op in "*/" else "plus", by)
        case Binary("*" | "+" as op, left, right) if _reads(right, held) and not _reads(left, held):
            return _both(_change(right, held), "times" if op == "*" else "plus", left)
    return found


def _both(found: tuple[str, Expr] | None, how: str, by: Expr) -> tuple[str, Expr] | None:
    """Two changes, one after the other, of the same kind."""
    if found is None:
        return None
    if isinstance(found[1], Const) and found[0] == "times" and found[1].value == 1:
        return how, by
    return (how, binary("*" if how == "times" else "+", found[1], by)) if found[0] == how else None


def _reads(e: Any, held: Var) -> bool:
    return any(x is held for x in e.walk())
