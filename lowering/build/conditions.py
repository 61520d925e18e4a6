"""Conditions of reductions: which iterations of a loop can satisfy them, and whether they hold everywhere in a tile.

A condition is a conjunction of comparisons. A comparison between sums of axes and of elements of integer inputs (a length, a row
number) is written as `d <= 0` and solved for the axis of the loop. With the smallest value of everything that varies between the
points and threads of a tile, it bounds the iterations that any of them needs; with the largest value, it shows where the
comparison holds for all. Both results are uniform across threads, so the loop may contain barriers. For an element that varies
within the tile, the range of its tensor is used.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable

from tilelang.core import dtype as dt
from tilelang.core.expr import (
    COMPARISONS,
    INDEX,
    Binary,
    Cast,
    Const,
    Expr,
    Pad,
    Read,
    Var,
    binary,
    const,
    free,
    index,
    substitute,
)
from tilelang.core.simplify import conjunction, conjuncts, difference, interval, linear, simplify
from tilelang.lowering import ir
from tilelang.lowering.build.frame import Frame
from tilelang.lowering.build.movement.storage import Whole, within
from tilelang.lowering.guards import fold
from tilelang.lowering.sets import implied
from tilelang.schedules.task import State, reads, update_conditions


@dataclasses.dataclass(frozen=True)
class Limit:
    """A condition implies q <= bound, or q >= bound. exact: whether the bound also implies the condition."""

    upper: bool
    bound: Expr
    exact: bool


def stated(frame: Frame) -> dict[Expr, None]:
    """The conditions of a task's reductions that are not known to hold in the whole tile."""
    return dict.fromkeys(c for s in frame.task.states for c in update_conditions(s) if c not in frame.known)


def needed(frame: Frame, padded: bool) -> list[Expr]:
    """The conditions without which no accumulator of the task changes. padded: include the conditions that padded reads are
    inside their tensors."""
    first, *others = [needed_by(s, padded) for s in frame.task.states] or [{}]
    return [c for c in first if all(c in other for other in others) and c not in frame.known]


def needed_by(state: State, padded: bool) -> dict[Expr, None]:
    """The conditions without which an accumulator does not change.

    These are the conditions of its reduction and, if `padded`, those that keep a padded read inside its tensor, provided that the
    padding turns the term into the identity.
    """
    found, values = update_conditions(state), state.reduce.values
    if len(values) == 1:
        identity = state.reduce.combiner.identity[0].value
        for pad in (w for w in reads(values[0]) if padded and isinstance(w, Pad)):
            folded = fold(substitute(values[0], {pad: const(pad.value.value, pad.dtype)}))
            if isinstance(folded, Const) and folded.value == identity:
                found += _inside(pad)
    return dict.fromkeys(found)


def _inside(pad: Pad) -> list[Expr]:
    ends = [c for i, n in zip(pad.read.indices, pad.read.tensor.shape, strict=True) for c in (index(0) <= i, i < n)]
    both = conjunction(ends)
    return [] if both is None else conjuncts(both)


# ---------------------------------------------------------------- over the points of a tile


def _excesses(frame: Frame, condition: Expr) -> list[Expr]:
    """The d of every `d <= 0` in a condition, over the points of the frame.

    Empty if the condition does not compare sums, or if moving a term to the other side might overflow.
    """
    if not isinstance(condition, Binary) or condition.op not in COMPARISONS:
        return []
    left, right = _as_index(frame, condition.left), _as_index(frame, condition.right)
    if left is None or right is None:
        return []
    points = {a.name: a.base + inside_piece(a.name, a.extent) for a in frame.spec.axes}
    there = frame.coordinates(points)
    left, right = substitute(left, there), substitute(right, there)
    if difference(left, right) is None:
        return []
    d = simplify(left - right)
    return {"<": [simplify(d + 1)], "<=": [d], "==": [d, simplify(index(0) - d)]}.get(condition.op, [])


def _as_index(frame: Frame, e: Expr) -> Expr | None:
    """A side of a comparison as an index expression with the same value; None if there is none, or its sums could overflow."""
    if e.dtype is INDEX and not reads(e):
        return e
    match e:
        case Const(value=value) if e.dtype.is_integer and isinstance(value, int):
            return index(value)
        case Read() if e.dtype.is_integer and _input(frame, e) is not None:
            return Cast(e, INDEX)
        case Cast(operand, to) if (to is INDEX or to == dt.int64) and (operand.dtype is INDEX or operand.dtype.is_integer):
            return None if operand.dtype == dt.uint64 else _as_index(frame, operand)
        case Binary("+" | "-" | "*" | "//" | "min" | "max" as op, left, right) if e.dtype is INDEX or e.dtype.is_integer:
            if op == "//" and not isinstance(right, Const):
                return None
            a, b = _as_index(frame, left), _as_index(frame, right)
            both = None if a is None or b is None else Binary(op, a, b)
            return both if both is None or e.dtype is INDEX or _holds(e.dtype, interval(both)) else None
        case _:
            return None


def _holds(type: dt.DType, ends: tuple[int | None, int | None]) -> bool:
    """Whether an integer type can represent all values of an interval."""
    low, high = ends
    return low is not None and high is not None and type.holds(low) and type.holds(high)


def _input(frame: Frame, read: Read) -> Whole | None:
    """The array of an input in global memory, which the kernel does not change; None if the read is not one of an input."""
    found = next((r for r in frame.residences if r.serves(read, read)), None)
    return found if isinstance(found, Whole) and found.buffer.role == "input" and not any(map(reads, read.indices)) else None


def _placed(frame: Frame, e: Expr | None) -> Expr | None:
    """An expression with each read replaced by a load; None if a read might be outside its tensor."""
    if e is None:
        return None
    loads: dict[Expr, Expr] = {}
    for read in reads(e):
        assert isinstance(read, Read), "`_as_index` takes no padded reads"
        source = _input(frame, read)
        if source is None or not all(implied(c, frame.within) for c in within(read.indices, read.tensor.shape)):
            return None
        loads[read] = ir.Load(source.buffer, source.at(read.indices))
    placed: Expr = substitute(e, loads)
    return placed


def inside_piece(axis: str, extent: int) -> Expr:
    """The variable for a point of an axis, counted from the beginning of the tile."""
    return Var(f"?{axis}", INDEX, 0, extent - 1) if extent > 1 else index(0)


def _differs(e: Expr) -> bool:
    """Whether a value differs between the points or threads of a tile."""
    return any(v.name == "thread" or v.name.startswith("?") for v in free(e))


def extreme(e: Expr, greatest: bool) -> Expr | None:
    """A uniform bound on an index expression: everything that varies over points and threads is set to its extreme. None if
    unbounded.

    >>> t = Var("thread", INDEX, 0, 31)
    >>> print(extreme(Var("block_x", INDEX, 0, 7) * 8 + t // 4, True))
    block_x * 8 + 7
    """
    terms, constant = linear(e)
    total: Expr = index(constant)
    for atom, c in terms:
        worst = _extreme_atom(atom, greatest == (c > 0)) if _differs(atom) else atom
        if worst is None:
            return None
        total = total + worst * c
    return simplify(total)


def _extreme_atom(atom: Expr, greatest: bool) -> Expr | None:
    match atom:
        case Binary("//", inner, Const(value=c)) if c > 0:
            worst = extreme(inner, greatest)
            return None if worst is None else worst // int(c)
        case Binary("min" | "max" as op, left, right):
            a, b = extreme(left, greatest), extreme(right, greatest)
            return None if a is None or b is None else simplify(Binary(op, a, b))
        case _:
            end = interval(atom)[greatest]
            return None if end is None else index(end)


def holding(frame: Frame) -> tuple[frozenset[Expr], Expr | None]:
    """Conditions that hold at all points of a tile if a uniform test succeeds, and that test; the test is None if none is needed."""
    excesses = {c: [_placed(frame, extreme(d, True)) for d in _excesses(frame, c)] for c in stated(frame)}
    told = {
        c: [w for w in worst if w is not None] for c, worst in excesses.items() if worst and all(w is not None for w in worst)
    }
    certain = frozenset(c for c, worst in told.items() if conjunction([w <= index(0) for w in worst]) is None)
    tests = [w for worst in told.values() for w in worst]
    if any((interval(simplify(a + b))[0] or 0) > 0 for a in tests for b in tests):  # these tests never succeed together
        return certain, None
    return frozenset(told), conjunction([w <= index(0) for w in tests])


def wanted(frame: Frame) -> Expr | None:
    """A uniform test: if it fails, no point of the tile changes an accumulator. None if there is no such test."""
    least = [_placed(frame, extreme(d, False)) for c in needed(frame, True) for d in _excesses(frame, c)]
    return conjunction([w <= index(0) for w in least if w is not None])


def limits(frame: Frame, axis: str, condition: Expr) -> list[Limit]:
    """The bounds that a condition implies for a point q of an axis, counted from the beginning of the tile; empty if unknown."""
    q = inside_piece(axis, frame.spec.axis(axis).extent)
    solved = [_solved(d, q) for d in _excesses(frame, condition)]
    told = [(x, end) for x in solved if x is not None and (end := _placed(frame, x.bound)) is not None]
    whole = len(told) == len(solved)
    return [dataclasses.replace(x, bound=end, exact=x.exact and whole) for x, end in told]


def _solved(d: Expr, q: Expr, exact: bool = True) -> Limit | None:
    """d <= 0, solved for q."""
    terms, _ = linear(d)
    mine = [(atom, c) for atom, c in terms if q in free(atom)]
    if len(mine) != 1:
        return None
    atom, c = mine[0]
    rest = simplify(d - atom * c)
    least = extreme(rest, False)
    if least is None:
        return None
    exact = exact and least is rest
    end = simplify((index(0) - least) // c if c > 0 else (least + (-c - 1)) // -c)
    if atom is q:
        return Limit(c > 0, end, exact)
    if not isinstance(atom, Binary) or atom.op != "//" or not isinstance(atom.right, Const) or atom.right.value <= 0:
        return None
    inner, divisor = atom.left, int(atom.right.value)
    beyond = inner - end * divisor - (divisor - 1) if c > 0 else end * divisor - inner
    return _solved(simplify(beyond), q, exact)


def loop_limits(frame: Frame, axis: str, size: int, conditions: Iterable[Expr]) -> tuple[list[Expr], list[Expr], list[Expr]]:
    """(begins, ends, exact) for a loop in steps of `size`: it starts at the largest of begins and stops before the smallest of
    ends.

    exact: the conditions that then hold at all points of all iterations.
    """
    begins, ends, exact = list[Expr](), list[Expr](), list[Expr]()
    for condition in conditions:
        found = limits(frame, axis, condition)
        begins += [_quotient(x.bound, size) for x in found if not x.upper]
        ends += [_quotient(x.bound + size, size) for x in found if x.upper]
        if found and all(x.exact and simplify((x.bound + int(x.upper)) % size) is index(0) for x in found):
            exact.append(condition)
    return begins, ends, exact


def _quotient(e: Expr, size: int) -> Expr:
    """A number of iterations. A negative numerator becomes 0 before it is divided."""
    return simplify(e if size == 1 else binary("max", e, index(0)) // size)
