"""Statements that combine two accumulators: all members of the result together, without computing a value twice.

The members of a tuple often share a subexpression (argmax: is the new value better?), and an operand may be used several times.
Both are kept in registers. If a result replaces a member that a later result still reads, it waits in a register, too.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from tilelang.core.dtype import DType
from tilelang.core.expr import INDEX, Axis, Call, Cast, Combiner, Const, Expr, Var, substitute
from tilelang.errors import Span
from tilelang.lowering import ir
from tilelang.lowering.build.frame import Build


def as_logical(storage: DType, logical: DType, e: Expr) -> Expr:
    """A stored element converted to the type that it represents."""
    return e if storage == logical else Cast(e, logical)


def stored(e: Expr, buffer: ir.Buffer) -> Expr:
    """A value converted to the type of the buffer that it is stored to."""
    return e if e.dtype == buffer.dtype else Cast(e, buffer.dtype)


def elements(variables: Sequence[Expr], buffers: Sequence[ir.Buffer], at: tuple[Expr, ...]) -> list[Expr]:
    """The members of an accumulator in buffers, with the types of a combiner's variables."""
    return [as_logical(b.dtype, v.dtype, ir.Load(b, at)) for v, b in zip(variables, buffers, strict=True)]


@dataclasses.dataclass(frozen=True)
class Combining:
    """into[at] = combiner(left, right). In a vector loop, `slot` selects this point's own element of a temporary with `slots`
    elements."""

    build: Build
    combiner: Combiner
    into: tuple[ir.Buffer, ...]
    at: tuple[Expr, ...]
    slot: Expr
    slots: int
    span: Span | None

    def statement(self, left: Sequence[Expr], right: Sequence[Expr]) -> ir.Stmt:
        """The stores, after the temporaries that they need."""
        before: list[ir.Stmt] = []
        mapping: dict[Expr, Expr] = {}
        for variable, value in zip((*self.combiner.left, *self.combiner.right), (*left, *right), strict=True):
            value = value if value.dtype == variable.dtype else Cast(value, variable.dtype)
            dear = any(isinstance(x, Call) or isinstance(x, ir.Load) and x.buffer.memory != "register" for x in value.walk())
            if dear and _uses(self.combiner.result, variable) > 1:
                value = self._hold("value", value, before)
            mapping[variable] = value
        results = [substitute(r, mapping) for r in self.combiner.result]
        held: dict[Expr, Expr] = {}
        for e in _common(results):
            held[e] = self._hold("common", substitute(e, held), before)
        return ir.seq(*before, *self._stores([substitute(r, held) for r in results]))

    def _stores(self, results: list[Expr]) -> list[ir.Stmt]:
        out: list[ir.Stmt] = []
        last: list[ir.Stmt] = []
        for k, (buffer, result) in enumerate(zip(self.into, results, strict=True)):
            waits = any(load.buffer is buffer for later in results[k + 1 :] for load in ir.loads(later))
            value = self._hold("next", stored(result, buffer), out, buffer.name) if waits else stored(result, buffer)
            (last if waits else out).append(ir.Store(buffer, self.at, value, None, False, self.span))
        return [*out, *last]

    def _hold(self, what: str, value: Expr, before: list[ir.Stmt], stem: str = "") -> Expr:
        """A value in a temporary register."""
        name = f"{stem or self.into[0].name}_{what}"
        held = self.build.buffer(name, value.dtype, (self.slots,), "register", "temporary")
        before.append(ir.Store(held, (self.slot,), stored(value, held), None, False, self.span))
        return as_logical(held.dtype, value.dtype, ir.Load(held, (self.slot,)))


def _uses(results: Sequence[Expr], variable: Expr) -> int:
    """How often a variable occurs in expressions, counting equal subexpressions once."""
    nodes = {e for r in results for e in r.walk()}
    return sum(r is variable for r in results) + sum(child is variable for e in nodes for child in e.children())


def _common(results: Sequence[Expr]) -> list[Expr]:
    """The largest subexpressions that several results share, none inside another."""
    seen: list[set[Expr]] = [set(r.walk()) for r in results]
    found: dict[Expr, None] = {}

    def visit(e: Expr) -> None:
        plain = isinstance(e, (Const, Var, Axis, ir.Load)) or e.dtype is INDEX or isinstance(e, Cast) and e.operand.dtype is INDEX
        if not plain and sum(e in one for one in seen) > 1:
            found[e] = None
        elif not isinstance(e, ir.Load):
            for child in e.children():
                assert isinstance(child, Expr)  # only loads have other parts
                visit(child)

    for r in results:
        visit(r)
    return list(found)
