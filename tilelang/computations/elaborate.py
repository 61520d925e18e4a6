"""Transforms an expression as the user wrote it into the definitions to compute.

`working` makes compute types explicit. Operators compute 8- and 16-bit floats in float32 and small integers in 32 bits, and values are
rounded (or wrapped) only where a definition stores them; therefore a cast *to* a 16-bit float inside an expression changes the nominal
type but rounds nothing. Values that are only moved (a read, `pad`, `where`) keep their type. After `working`, a Cast means what it
says, and later stages do not need this rule.

`Hoister` extracts reductions from expressions: what remains is pointwise, or a single reduction. Of a sum of products it also extracts
the factors that are computed, not read, and have fewer axes than the product, so that a schedule can place them. `with_named_parts`
extracts common subexpressions of a long expression.
"""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from tilelang.computations.bounds_check import inside_everywhere
from tilelang.computations.combiners import SHIPPED, restrict, state_type
from tilelang.core import dtype as dt
from tilelang.core.dtype import DType
from tilelang.core.expr import (
    Axis,
    Binary,
    Call,
    Cast,
    Combiner,
    Const,
    Expr,
    Pad,
    Read,
    Reduce,
    Select,
    Unary,
    cast,
    const,
    rewrite,
    substitute,
)

MOST_SHARED = 1 << 10  # maximum size, written out, of an expression that define leaves unchanged
LEAST_PART = 4  # minimum operations of a part that becomes a definition
DEEPEST = 256  # maximum nesting that define leaves unchanged; Python allows 1,000 calls

# ---------------------------------------------------------------- the types of the work


def work_type(t: DType) -> DType:
    """The type in which operators on values of nominal type t compute: float32 for smaller floats, 32 bits for smaller integers."""
    return state_type(t) if t.is_integer else dt.compute_type(t)


def widen(e: Expr) -> Expr:
    """A value in its compute type; a literal is not rounded to its small type in between."""
    wide = work_type(e.dtype)
    return const(e.value, wide) if isinstance(e, Const) else cast(e, wide)


def working(expr: Expr) -> Expr:
    """The expression with every operator in its compute type and all conversions explicit."""
    memo: dict[Expr, Expr] = {}

    def go(e: Expr) -> Expr:
        found = memo.get(e)
        if found is None:
            found = memo[e] = step(e)
        return found

    def step(e: Expr) -> Expr:
        match e:
            case Binary(op, left, right):
                return Binary(op, widen(go(left)), widen(go(right)))
            case Unary("-" | "~" as op, operand):
                return Unary(op, widen(go(operand)))
            case Call(name, args):
                return Call(name, tuple(widen(go(a)) for a in args))
            case Select(condition, then, otherwise):
                a, b = go(then), go(otherwise)
                return Select(go(condition), *((a, b) if a.dtype == b.dtype else (widen(a), widen(b))))
            case Cast(operand, target):
                value = go(operand)
                moved = value.dtype == target or not (target.is_float and target.bits < 32)
                return cast(value, target if moved else dt.compute_type(target))
            case Reduce(combiner, values, axes, condition, member):
                states = tuple(cast(widen(go(v)), x.dtype) for v, x in zip(values, combiner.left, strict=True))
                return Reduce(combiner, states, axes, None if condition is None else go(condition), member)
            case _:
                return e.map_children(lambda child: go(child) if isinstance(child, Expr) else child)

    return go(expr)


# ---------------------------------------------------------------- reductions by themselves

_free: dict[Expr, frozenset[Axis]] = {}


def free_axes(e: Any) -> frozenset[Axis]:
    """The axes that an expression depends on, without those that its reductions run over."""
    found = _free.get(e)
    if found is None:
        parts = [free_axes(c) for c in e.children() if isinstance(c, Expr)]
        found = frozenset((e,)) if isinstance(e, Axis) else frozenset().union(*parts)
        if isinstance(e, Reduce):
            found -= frozenset(e.axes)
        _free[e] = found
    return found


FACTOR = re.compile(r".*_factor(_\d+)?")  # the names of hidden definitions of factors

# Makes the hidden definition of a reduction: (name, combiner, values, axes of the result, reduced axes, condition) -> its tensors.
Make = Callable[[str, Combiner, tuple[Expr, ...], tuple[Axis, ...], tuple[Axis, ...], Expr | None], Sequence[Any]]


def factors_written_out(e: Expr) -> Expr:
    """An expression with the factors of its products as they were written, instead of reads of their hidden definitions."""

    def rule(x: Any) -> Any:
        if not isinstance(x, Read) or not x.tensor.hidden or FACTOR.fullmatch(x.tensor.name) is None:
            return x
        definition = x.tensor.definition
        return substitute(definition.values[x.tensor.member], dict(zip(definition.axes, x.indices, strict=True)))

    written: Expr = rewrite(e, rule)
    return written


class Hoister:
    """Replaces reductions inside expressions by reads of hidden definitions; equal reductions share one.

    name: the tensor being defined. Hidden ones are called NAME_sum, NAME_max, NAME_sum_2, ..., or NAME_reduce by a combiner of the
    user's, with _0, _1, ... for the members of a tuple, and NAME_factor, NAME_factor_2, ... for factors. define: makes the hidden
    definition of a pointwise value over axes.
    """

    def __init__(self, name: str, make: Make, define: Callable[[str, Expr, tuple[Axis, ...]], Any]) -> None:
        self.name, self.make, self.define = name, make, define
        self.made: dict[tuple[Any, ...], Sequence[Any]] = {}
        self.known: dict[tuple[Any, ...], Any] = {}
        self.count: dict[str, int] = {}

    def pointwise(self, e: Any, scope: tuple[Axis, ...], guards: tuple[Expr, ...] = ()) -> Any:
        """The expression without reductions. scope: the enclosing axes, output axes first. guards: the conditions of its use."""
        if guards and inside_everywhere(e):
            guards = ()
        key = (e, scope, guards)
        if key not in self.known:
            self.known[key] = self._pointwise(e, scope, guards)
        return self.known[key]

    def _pointwise(self, e: Any, scope: tuple[Axis, ...], guards: tuple[Expr, ...]) -> Any:
        match e:
            case Reduce():
                inner = self.inside(e, scope, guards)
                return self.hoisted(inner, scope, guards)
            case Select(condition, then, otherwise):
                chosen = self.pointwise(condition, scope, guards)
                a = self.pointwise(then, scope, (*guards, chosen))
                b = self.pointwise(otherwise, scope, (*guards, Unary("not", chosen)))
                return e if (chosen, a, b) == (condition, then, otherwise) else Select(chosen, a, b)
            case Expr():
                return e.map_children(lambda child: self.pointwise(child, scope, guards) if isinstance(child, Expr) else child)
            case _:
                return e

    def inside(self, e: Reduce, scope: tuple[Axis, ...], guards: tuple[Expr, ...]) -> Reduce:
        """The reduction with pointwise values and condition."""
        own = (*(a for a in scope if a not in e.axes), *e.axes)
        condition = None if e.condition is None else self.pointwise(e.condition, own, guards)
        within = guards if condition is None else (*guards, condition)
        values = tuple(self.pointwise(v, own, within) for v in e.values)
        if e.combiner.name == "sum" and len(values) == 1:
            values = (self.with_factors(values[0], own),)
        return Reduce(e.combiner, values, e.axes, condition, e.member)

    def with_factors(self, e: Expr, axes: tuple[Axis, ...]) -> Expr:
        """A product in which factors that are computed at fewer points than the product become reads of definitions of their own; other
        expressions unchanged."""
        match e:
            case Cast(operand, target):
                return cast(self.with_factors(operand, axes), target)
            case Binary("*", left, right) if e.dtype.is_float:
                whole = free_axes(e)
                a, b = (f if free_axes(f) == whole or not _is_computed(f) else self.factor(f, axes) for f in (left, right))
                return e if (a, b) == (left, right) else Binary("*", a, b)
        return e

    def factor(self, e: Expr, axes: tuple[Axis, ...]) -> Expr:
        """A read of the definition that is made for a factor. It has the factor's compute type, so that nothing is rounded."""
        own = tuple(a for a in axes if a in free_axes(e))
        key = (e, own)
        if key not in self.known:
            self.known[key] = Read(self.define(self.fresh("factor"), e, own), own)
        return cast(self.known[key], e.dtype)

    def hoisted(self, e: Reduce, scope: tuple[Axis, ...], guards: tuple[Expr, ...]) -> Read:
        values, condition = e.values, e.condition
        # Extracted, the reduction is no longer guarded, so it takes along the guards that its reads need.
        if guards and not inside_everywhere(e):
            for guard in guards:
                values, kept = restrict(values, guard, e.combiner)
                condition = kept if condition is None else condition if kept is None else Binary("and", kept, condition)
            values = tuple(cast(v, x.dtype) for v, x in zip(values, e.combiner.left, strict=True))
        alone = Reduce(e.combiner, values, e.axes, condition, 0)
        depends = free_axes(alone)
        axes = tuple(a for a in scope if a in depends)
        key = (alone, axes)
        if key not in self.made:
            kind = e.combiner.name if e.combiner.name in SHIPPED else "reduce"  # the text may call the user's own otherwise
            self.made[key] = self.make(self.fresh(kind), e.combiner, values, axes, e.axes, condition)
        return Read(self.made[key][e.member], axes)

    def fresh(self, kind: str) -> str:
        number = self.count[kind] = self.count.get(kind, 0) + 1
        return f"{self.name}_{kind}" + (f"_{number}" if number > 1 else "")


def _is_computed(e: Expr) -> bool:
    """Whether a value applies operations to the elements that it reads, and its reads are in bounds everywhere."""
    value = e
    while isinstance(value, Cast):
        value = value.operand
    return not isinstance(value, (Read, Pad)) and any(isinstance(x, Read) for x in value.walk()) and inside_everywhere(e)


def with_named_parts(name: str, expression: Expr, axes: tuple[Axis, ...], define: Callable[..., Any]) -> Expr:
    """Extracts parts of an expression that is too long or too deep into definitions of their own.

    If it exceeds MOST_SHARED operations when written out, the parts that occur several times are extracted; if it is nested deeper than
    DEEPEST, the parts of half that depth. They are called NAME_part_0, NAME_part_1, ... and have their compute type, so that nothing is
    rounded. Conditions, small integers, and parts that only a condition keeps in bounds are never extracted. The remaining expression
    needs no further extraction, so parsing the text of the definition gives the same definition.
    """
    taken = {e.tensor.name for e in expression.walk() if isinstance(e, Read)}
    names = (n for n in (f"{name}_part_{number}" for number in itertools.count()) if n not in taken)
    while (shorter := _with_named_parts(names, expression, axes, define)) is not expression:
        expression = shorter
    return expression


def _with_named_parts(names: Iterator[str], expression: Expr, axes: tuple[Axis, ...], define: Callable[..., Any]) -> Expr:
    """One step of `with_named_parts`: what is left may have parts that have become equal, or that no longer contain a reduction."""
    parts = [e for e in expression.upwards(leaves=(Read, Pad)) if isinstance(e, Expr)]  # children before parents
    long = max(map(size, parts)) > MOST_SHARED
    deep = max(map(depth, parts)) > DEEPEST
    if not long and not deep:
        return expression
    reduced = (
        a for e in parts if deep and isinstance(e, Reduce) for a in e.axes
    )  # what nests deeply may do so inside a reduction
    scope = tuple(dict.fromkeys((*axes, *reduced)))
    uses = Counter(c for e in parts for c in e.children() if isinstance(c, Expr))
    known: dict[Expr, Expr] = {}

    def may_be_named(e: Expr) -> bool:
        kinds = {type(c) for v in (e.values if isinstance(e, Reduce) else (e,)) for c in v.walk()}
        exact = e.dtype.is_float or (e.dtype.is_integer and e.dtype.bits >= 32)
        return exact and Read in kinds and Reduce not in kinds and free_axes(e) <= set(scope) and inside_everywhere(e)

    def wanted(e: Expr, made: Expr) -> bool:
        if isinstance(made, Reduce):
            return len(made.values) == 1
        if isinstance(made, Read) and all(isinstance(i, Axis) for i in made.indices):
            return False  # it would be a copy
        return (long and uses[e] > 1 and size(made) > LEAST_PART) or (deep and depth(made) > DEEPEST // 2)

    def named(e: Expr) -> Expr:
        own = tuple(a for a in scope if a in free_axes(e))
        return cast(Read(define(next(names), cast(e, work_type(e.dtype)), *own), own), e.dtype)

    for e in parts:
        made = e
        if not isinstance(e, (Read, Pad)):  # indices stay, because their values keep reads in bounds
            made = e.map_children(lambda c: known[c] if isinstance(c, Expr) else c)
        known[e] = named(made) if e is not expression and wanted(e, made) and may_be_named(made) else made
    return known[expression]


_SIZES: dict[Expr, int] = {}


def size(expr: Expr) -> int:
    """The operations of an expression, written out: a shared part counts at each occurrence."""
    found = _SIZES.get(expr)
    if found is None:
        found = _SIZES[expr] = 1 + sum(size(c) for c in expr.children() if isinstance(c, Expr))
    return found


_DEPTHS: dict[Expr, int] = {}


def depth(expr: Expr) -> int:
    """The nesting depth of an expression."""
    found = _DEPTHS.get(expr)
    if found is None:
        found = _DEPTHS[expr] = 1 + max((depth(c) for c in expr.children() if isinstance(c, Expr)), default=0)
    return found
