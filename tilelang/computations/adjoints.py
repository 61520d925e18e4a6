"""Reverse-mode differentiation of one pointwise value: from the adjoint of the value to that of each element that it reads.

The adjoint of an expression is the derivative of the output with respect to it. Expressions are visited once, parents first, and each
adjoint is the sum of the contributions of the parents. Inside a `where` or a `max`, an adjoint carries the conditions of its branch.
They are applied only outside the branch, so that reads in the branch stay inside their tensors, and the infinite slope of a branch that
is not taken cannot become NaN.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from tilelang.core.expr import Axis, Binary, Call, Cast, Const, Expr, Pad, Read, Select, Unary, Var, cast, const
from tilelang.core.node import Node, node
from tilelang.core.slopes import slope

Guards = tuple[Expr, ...]  # conditions, outermost first


@node
class Adjoint(Node):
    """The adjoint of an expression: `value` where all guards hold, else 0. Reads in `value` may need the guards to be in bounds."""

    guards: Guards
    value: Expr


def read_adjoints(value: Expr, adjoint: Adjoint, carries: Callable[[Expr], bool]) -> list[tuple[Read | Pad, Adjoint]]:
    """The adjoint of each read in a value that carries a gradient.

    adjoint: the adjoint of the value, of the same type. carries: whether an expression depends on a tensor that is differentiated by.
    """
    if not carries(value):
        return []
    received = {value: [adjoint]}
    found = []
    for e in reversed([e for e in value.upwards(leaves=(Read, Pad)) if isinstance(e, Expr)]):
        if e not in received:
            continue
        adjoint = _total(received.pop(e))
        if isinstance(e, (Read, Pad)):
            found.append((e, adjoint))
        for child, extra, part in () if isinstance(e, (Read, Pad)) else _parts(e, adjoint.value, carries):
            received.setdefault(child, []).append(Adjoint((*adjoint.guards, *extra), part))
    return found


def _total(adjoints: list[Adjoint]) -> Adjoint:
    """The sum of adjoints, under the guards that all of them share."""
    shared = adjoints[0].guards
    for a in adjoints[1:]:
        same = [p is q for p, q in zip(shared, a.guards, strict=False)]
        shared = shared[: same.index(False) if False in same else len(same)]
    total = None
    for a in adjoints:
        part = guarded(a.value, a.guards[len(shared) :])
        total = part if total is None else Binary("+", total, part)
    assert total is not None
    return Adjoint(shared, total)


def guarded(value: Expr, guards: Guards) -> Expr:
    """A value where all conditions hold, else 0."""
    for condition in reversed(guards):
        value = Select(condition, value, const(0, value.dtype))
    return value


def times(a: Expr, b: Expr) -> Expr:
    """a b, or one of them if the other is 1."""
    one = const(1, b.dtype)
    return b if a is one else a if b is one else Binary("*", a, b)


Part = tuple[Expr, Guards, Expr]  # an operand, the conditions of its branch, and its contribution under them


def _parts(e: Expr, g: Expr, carries: Callable[[Expr], bool]) -> Iterator[Part]:
    """What the operands of an expression with adjoint g receive: those that carry a gradient."""
    match e:
        case Binary(op, left, right):
            yield from (part for part in _of_binary(e, op, left, right, g, carries) if carries(part[0]))
        case Unary("-", operand):
            yield operand, (), Unary("-", g)
        case Call(name, (x,)):
            sloping = _sign(x) if name == "abs" else slope(name, x, e)
            if sloping is not None:  # steps (floor, ceil, round) are flat almost everywhere
                yield x, (), times(g, sloping)
        case Select(condition, then, otherwise):
            if carries(then):
                yield then, (condition,), g
            if carries(otherwise):
                yield otherwise, (Unary("not", condition),), g
        case Cast(operand):
            if carries(operand):
                yield operand, (), cast(g, operand.dtype)
        case Const() | Var() | Axis():
            return
        case _:
            raise AssertionError(f"{type(e).__name__} is not pointwise")


def _of_binary(e: Expr, op: str, left: Expr, right: Expr, g: Expr, carries: Callable[[Expr], bool]) -> Iterator[Part]:
    match op:
        case "+":
            yield left, (), g
            yield right, (), g
        case "-":
            yield left, (), g
            yield right, (), Unary("-", g)
        case "*":
            yield left, (), times(g, right)
            yield right, (), times(g, left)
        case "/":
            share = Binary("/", g, right)
            yield left, (), share
            if carries(right):
                yield right, (), Unary("-", times(share, e))
        case "%":  # left - right * (left // right)
            yield left, (), g
            if carries(right):
                yield right, (), Unary("-", times(g, Binary("//", left, right)))
        case "min" | "max":
            yield from _of_extreme(op, left, right, g, carries)
        case "pow":
            yield from _of_power(e, left, right, g, carries)
        case "//":
            return
        case _:
            raise AssertionError(f"`{op}` of floats")


def _of_extreme(op: str, left: Expr, right: Expr, g: Expr, carries: Callable[[Expr], bool]) -> Iterator[Part]:
    """The greater (lesser) operand receives the whole adjoint. Equal operands receive half each; if one is constant, the other receives
    nothing."""
    tie = Binary("==", left, right)
    half = Select(tie, times(g, const(0.5, g.dtype)), g)
    for mine, other in ((left, right), (right, left)):
        lesser, greater = (other, mine) if op == "max" else (mine, other)
        if carries(other):
            yield mine, (Binary("<=", lesser, greater),), half
        else:
            yield mine, (Binary("<", lesser, greater),), g


def _of_power(e: Expr, base: Expr, power: Expr, g: Expr, carries: Callable[[Expr], bool]) -> Iterator[Part]:
    """base**power, with a power of any type: p b**(p - 1), and b**p log(b), which is 0 at a base of 0."""
    if carries(base):
        if isinstance(power, Const):
            less = const(power.value - 1, power.dtype)
            if power.value != 0:
                raised = const(1, base.dtype) if less.value == 0 else base if less.value == 1 else Binary("pow", base, less)
                yield base, (), times(g, times(raised, const(power.value, base.dtype)))
        else:
            raised = Binary("pow", base, Binary("-", power, const(1, power.dtype)))
            yield base, (Binary("!=", power, const(0, power.dtype)),), times(g, times(cast(power, base.dtype), raised))
    if carries(power):
        yield power, (Binary("!=", base, const(0, base.dtype)),), cast(times(g, times(e, Call("log", (base,)))), power.dtype)


def _sign(x: Expr) -> Expr:
    """-1, 0 or 1."""
    zero = const(0, x.dtype)
    return Select(Binary("<", x, zero), const(-1, x.dtype), Select(Binary("<", zero, x), const(1, x.dtype), zero))
