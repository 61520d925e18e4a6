"""Loops that must be written out are written out.

Needs: no vector loops. Guarantees: no `For(kind="unroll")`; a loop whose variable addresses registers is unrolled too, so that its
registers have constant places. Such a loop stays a loop, and its registers a private array, where nobody wrote it and it is too long;
where somebody wrote it, it is refused.

    unroll i in 0..2: acc[i] = 0.0    ->    acc[0] = 0.0; acc[1] = 0.0
"""

from __future__ import annotations

from tilelang.errors import Refusal
from tilelang.expr import Const, Expr, Var, index, substitute
from tilelang.lowering import ir
from tilelang.simplify import FALSE, TRUE, simplify


def unroll(kernel: ir.Kernel, limit: int) -> ir.Kernel:
    """The kernel with its loops over registers written out; `limit` elements at most.

    Raises Refusal `registers-too-many` for a written walk that addresses more.
    """
    return kernel.replace(body=_Unrolling(limit).statement(kernel.body, 1, {}))


class _Unrolling:
    def __init__(self, limit: int) -> None:
        self.limit = limit

    def statement(self, stmt: ir.Stmt, factor: int, values: dict[Expr, Expr]) -> ir.Stmt:
        match stmt:
            case ir.For(var, extent, body, kind, span):
                end = self.value(extent, values)
                if isinstance(end, Const):
                    n = int(end.value)
                    if n <= 1 and kind != "vector":
                        return self.statement(body, factor, {**values, var: index(0)}) if n == 1 else ir.Seq(())
                    if kind == "unroll" or addresses_registers(body, var):
                        if factor * n <= self.limit:
                            return ir.seq(*[self.statement(body, factor * n, {**values, var: index(j)}) for j in range(n)])
                        if span is not None and kind == "serial":
                            raise _too_many(stmt, factor * n, self.limit)
                        kind = "serial"
                return ir.For(var, end, self.statement(body, factor, values), kind, span)
            case ir.If(condition, then, otherwise, span):
                c = self.value(condition, values)
                if c is TRUE:
                    return self.statement(then, factor, values)
                if c is FALSE:
                    return ir.Seq(()) if otherwise is None else self.statement(otherwise, factor, values)
                rest = None if otherwise is None else self.statement(otherwise, factor, values)
                return ir.If(c, self.statement(then, factor, values), rest, span)
            case ir.Seq(body):
                return ir.seq(*[self.statement(s, factor, values) for s in body])
            case _:
                made: ir.Stmt = ir.map_expressions(stmt, lambda e: self.value(e, values))
                return made

    @staticmethod
    def value(e: Expr, values: dict[Expr, Expr]) -> Expr:
        return simplify(substitute(e, values)) if values else e


def addresses_registers(stmt: ir.Stmt, var: Var) -> bool:
    """Whether a variable occurs in the index of a register buffer."""
    for s in ir.statements(stmt):
        if isinstance(s, ir.Store) and s.buffer.memory == "register" and any(var in _nodes(i) for i in s.indices):
            return True
        for e in ir.expressions(s):
            for x in e.walk():
                if isinstance(x, ir.Load) and x.buffer.memory == "register" and any(var in _nodes(i) for i in x.indices):
                    return True
    return False


def _nodes(e: Expr) -> set[object]:
    return set(e.walk())


def _too_many(stmt: ir.For, elements: int, limit: int) -> Refusal:
    return Refusal(
        "registers-too-many",
        f"the walk over {stmt.var.name} addresses registers, so it is written out: {elements} elements, the limit is {limit}",
        span=stmt.span,
        counterexample=f"{elements} register elements of one thread",
        mend="give more of the tile to units, or keep the tensor in shared",
    )
