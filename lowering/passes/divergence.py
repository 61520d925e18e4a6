"""Refuses thread-dependent control flow that would need a barrier inside: not all threads would reach the barrier.

The builder puts such control flow around single accesses only: idle threads and threads beyond the end reach every barrier and
skip the access. The ends of loops, and the conditions that choose a version of a tile, are uniform across the threads that
synchronize inside.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from tilelang.core.expr import INDEX, Expr, Var, free, substitute
from tilelang.core.simplify import interval
from tilelang.errors import Refusal
from tilelang.lowering import ir
from tilelang.lowering.passes.dependence_test import is_thread

Names = Mapping[Var, Expr]
Path = tuple[int, ...]
Needs = Callable[[ir.Stmt, Names, Path], bool]


def diverges(e: Expr) -> bool:
    """Whether threads of one block may see different values: the expression contains the thread index or reads registers."""
    return any(map(is_thread, free(e))) or any(load.buffer.memory == "register" for load in ir.loads(e))


def unique(var: Var, path: Path) -> str:
    """A unique name for the variable of the loop at a path, because two loops may use the same variable."""
    return f"{var.name}@{'.'.join(map(str, path))}"


def check_uniform(stmt: ir.Stmt, needs: Needs, names: Names, path: Path = ()) -> None:
    """Raises Refusal `barrier-in-divergent-control` if `needs(inner, names, path)` says that divergent control flow needs a
    barrier.

    names: the values of the enclosing loop variables and Lets. path: the position of the statement in the kernel.
    """
    match stmt:
        case ir.Seq(body=body):
            for i, child in enumerate(body):
                check_uniform(child, needs, names, (*path, i))
                if isinstance(child, ir.Let):
                    names = {**names, child.var: substitute(child.value, names)}
        case ir.For(kind="vector"):
            _check(stmt, needs, names, path, "a vector loop")
        case ir.For(extent=extent) if diverges(substitute(extent, names)):
            _check(stmt, needs, names, path, "a loop whose number of iterations depends on the thread")
        case ir.For(var=var, extent=extent, body=body):
            _, high = interval(substitute(extent, names))
            own = Var(unique(var, path), INDEX, 0, None if high is None else high - 1)
            check_uniform(body, needs, {**names, var: own}, (*path, 0))
        case ir.If(condition=condition) if diverges(substitute(condition, names)):
            _check(stmt, needs, names, path, "a branch")
        case ir.If(then=then, otherwise=otherwise):
            check_uniform(then, needs, names, (*path, 0))
            check_uniform(otherwise or ir.Seq(()), needs, names, (*path, 1))


def _check(stmt: ir.Stmt, needs: Needs, names: Names, path: Path, where: str) -> None:
    if needs(stmt, names, path):
        raise Refusal(
            "barrier-in-divergent-control",
            f"threads would have to synchronize inside {where}, which not all of them reach together",
            span=getattr(stmt, "span", None),
            help="move the steps that write and read shared memory above the step that depends on the thread",
        )
