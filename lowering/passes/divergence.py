"""Splits control that depends on the thread where a barrier is needed inside it, so that all threads reach the barrier.

Needs nothing. Guarantees: no statement under thread-dependent control needs a barrier inside (as `needs` says). Idle threads and
tails then run the barrier and skip the access. One line before and after:

    if thread < n { S[thread] = x; y = S[0] }
    if thread < n { S[thread] = x }; if thread < n { y = S[0] }
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from tilelang.errors import Refusal
from tilelang.expr import INDEX, Expr, Var, binary, free, index, substitute
from tilelang.lowering import ir
from tilelang.lowering.passes.conflicts import is_thread
from tilelang.simplify import interval

Names = Mapping[Var, Expr]
Needs = Callable[[ir.Stmt, Names], bool]


def diverges(e: Expr) -> bool:
    """Whether threads of one block may see different values: the thread's number, or anything read from its registers."""
    return any(map(is_thread, free(e))) or any(load.buffer.memory == "register" for load in ir.loads(e))


def split_divergent(stmt: ir.Stmt, needs: Needs, names: Names | None = None) -> ir.Stmt:
    """The statement with divergent control split where `needs(inner, names)` says that a barrier is missing inside.

    names: what the variables of enclosing loops and Lets stand for. Raises Refusal `barrier-in-divergent-control`.
    """
    names = names or {}
    match stmt:
        case ir.Seq(body=body):
            parts: list[ir.Stmt] = []
            for child in body:
                parts.append(split_divergent(child, needs, names))
                if isinstance(child, ir.Let):
                    names = {**names, child.var: substitute(child.value, names)}
            return stmt if all(a is b for a, b in zip(parts, body, strict=True)) else ir.Seq(tuple(_flat(parts)), stmt.span)
        case ir.For(kind="vector"):
            if needs(stmt, names):
                raise _refusal(stmt, "a vector loop")
            return stmt
        case ir.For(var=var, extent=extent, body=body):
            _, high = interval(substitute(extent, names))
            inner = {**names, var: Var(var.name, INDEX, 0, None if high is None else high - 1)}
            if not diverges(substitute(extent, names)):
                return stmt.replace(body=split_divergent(body, needs, inner))
            return split_divergent(_to_uniform(stmt, high), needs, names) if needs(stmt, names) else stmt
        case ir.If(condition=condition, then=then, otherwise=otherwise):
            if diverges(substitute(condition, names)):
                return split_divergent(ir.Seq(tuple(_distributed(stmt))), needs, names) if needs(stmt, names) else stmt
            other = None if otherwise is None else split_divergent(otherwise, needs, names)
            return stmt.replace(then=split_divergent(then, needs, names), otherwise=other)
        case _:
            return stmt


def _flat(parts: list[ir.Stmt]) -> list[ir.Stmt]:
    return [s for p in parts for s in (p.body if isinstance(p, ir.Seq) else (p,))]


def _to_uniform(loop: ir.For, high: int | None) -> ir.For:
    """A loop whose rounds depend on the thread, as one over the most rounds that any thread makes, guarded."""
    if high is None:
        raise _refusal(loop, "a loop whose number of iterations depends on the thread and has no bound")
    return loop.replace(extent=index(max(high, 0)), body=ir.If(binary("<", loop.var, loop.extent), loop.body, span=loop.span))


def _distributed(stmt: ir.If) -> list[ir.Stmt]:
    """`if c { a; b } else { d }` as `if c { a }; if c { b }; if not c { d }`, one level deeper than it was."""
    condition, before = stmt.condition, []
    if ir.loads(condition):  # what it reads may change between the pieces
        flag = Var(f"taken_{stmt.span.line if stmt.span else 0}", condition.dtype)
        before.append(ir.Let(flag, condition, stmt.span))
        condition = flag
    out: list[ir.Stmt] = [*before, *_under(condition, stmt.then, stmt)]
    return out + (_under(~condition, stmt.otherwise, stmt) if stmt.otherwise is not None else [])


def _under(condition: Expr, stmt: ir.Stmt, origin: ir.If) -> list[ir.Stmt]:
    """The parts of a statement, each under a condition of its own."""
    match stmt:
        case ir.Seq(body=body):
            out: list[ir.Stmt] = []
            for child in body:
                if isinstance(child, ir.Let):
                    if ir.loads(child.value):
                        raise _refusal(origin, f"a branch that keeps `{child.var.name}` across it")
                    out.append(child)
                else:
                    out.append(ir.If(condition, child, span=origin.span))
            return out
        case ir.For(body=body) if stmt.kind != "vector":
            return [stmt.replace(body=ir.If(condition, body, span=origin.span))]
        case ir.If(condition=inner, then=then, otherwise=otherwise):
            first: list[ir.Stmt] = [ir.If(binary("and", condition, inner), then, span=stmt.span)]
            return first + ([ir.If(binary("and", condition, ~inner), otherwise, span=stmt.span)] if otherwise is not None else [])
        case _ if origin.otherwise is not None:  # the branches part, each stays whole
            return [ir.If(condition, stmt, span=origin.span)]
        case _:
            raise _refusal(stmt, "a vector loop" if isinstance(stmt, ir.For) else "one statement")


def _refusal(stmt: ir.Stmt, where: str) -> Refusal:
    return Refusal(
        "barrier-in-divergent-control",
        f"threads would have to synchronize inside {where}, which not all of them reach together",
        span=getattr(stmt, "span", None),
        mend="move the steps that write and read shared memory above the step that depends on the thread",
    )
