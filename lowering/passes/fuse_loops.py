"""Fuses adjacent loops with the same number of iterations if the second reads what the first has just written.

Needs: no barriers yet. Guarantees: the same values; every element is written before it is read, as before. One line before and after:

    for j { S[j] = exp(X[j]) }; t = 0; for k { t = t + S[k] }    ->    t = 0; for j { S[j] = exp(X[j]); t = t + S[j] }

The values are then still in registers, which saves a pass over the memory. Loops of kernels with several threads are not fused, since
the fused loop would need a barrier in each iteration.

`merged` is the proof and the fusion, also for passes that have other reasons to fuse two loops.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any

from tilelang.core.expr import INDEX, Expr, Var, free, substitute
from tilelang.core.simplify import interval, simplify
from tilelang.lowering import ir
from tilelang.lowering.passes.dependence_test import is_thread

# Statements that nothing may be moved past.
ORDERED = (
    ir.Barrier,
    ir.Copy,
    ir.Commit,
    ir.Wait,
    ir.Fence,
    ir.Instruction,
    ir.InitPhases,
    ir.Arrive,
    ir.Await,
    ir.ClusterBarrier,
)

Indices = tuple[Expr, ...]


def fuse_loops(kernel: ir.Kernel) -> ir.Kernel:
    """The kernel with consecutive loops fused if the second reads, in each iteration, what the first has just written."""
    return kernel if kernel.threads > 1 else kernel.replace(body=_fused(kernel.body))


def _fused(stmt: Any) -> Any:
    if not isinstance(stmt, ir.Stmt):
        return stmt
    changed = stmt.map_children(_fused)
    if not isinstance(changed, ir.Seq):
        return changed
    body, out = ir.flattened(*changed.body), list[ir.Stmt]()
    for s in body:
        k = next((k for k in reversed(range(len(out))) if _is_walk(out[k])), None)
        together = None
        if k is not None and _hands_over(out[k], s) and all(commute(out[k], x) for x in out[k + 1 :]):
            together = merged(out[k], s)
        if together is None:
            out.append(s)
        else:
            assert k is not None
            out[k:] = [*out[k + 1 :], together]
    return changed if len(out) == len(body) else ir.seq(*out)


def _is_walk(stmt: ir.Stmt) -> bool:
    return isinstance(stmt, ir.For) and stmt.kind == "serial"


def _hands_over(first: ir.Stmt, second: ir.Stmt) -> bool:
    if any(isinstance(s, ir.Store) and s.behind for s in ir.statements(second)):
        return False  # it is marked to move into a loop of the next iteration
    kept = {b.name for b in effects(first).writes if b.memory != "global"}
    return any(b.name in kept for b in effects(second).reads)


# ---------------------------------------------------------------- effects of statements


@dataclasses.dataclass(frozen=True, slots=True)
class Effects:
    """The buffers that a statement reads and writes; ordered: nothing may be moved past it."""

    reads: frozenset[ir.Buffer]
    writes: frozenset[ir.Buffer]
    ordered: bool


def effects(stmt: ir.Stmt) -> Effects:
    """The effects of a statement, including all statements inside it, on memory."""
    every = list(accesses(stmt))
    return Effects(
        frozenset(b for b, _, writes in every if not writes),
        frozenset(b for b, _, writes in every if writes),
        any(isinstance(s, ORDERED) for s in ir.statements(stmt)),
    )


def accesses(stmt: ir.Stmt) -> Iterator[tuple[ir.Buffer, Indices, bool]]:
    """(buffer, indices, whether it is written) of every scalar access. Prefetches do not count, since they have no effect."""
    for s in ir.statements(stmt):
        if isinstance(s, ir.Store):
            yield s.buffer, s.indices, True
        if not isinstance(s, ir.Prefetch):
            for e in ir.expressions(s):
                yield from ((load.buffer, load.indices, False) for load in ir.loads(e))


def commute(a: ir.Stmt, b: ir.Stmt) -> bool:
    """Whether two statements may be exchanged."""
    x, y = effects(a), effects(b)
    return not (x.ordered or y.ordered or x.writes & (y.reads | y.writes) or y.writes & x.reads)


# ---------------------------------------------------------------- two loops as one


def merged(first: ir.Stmt, second: ir.Stmt) -> ir.For | None:
    """One loop in which each iteration does that of the first loop, then that of the second; None if this is not proven
    equivalent.

    Iteration j of the second loop then runs before the later iterations of the first: no element may be accessed by both if one
    of them writes it.
    """
    match first, second:
        case ir.For(var, extent, body, "serial"), ir.For(other, same, following, "serial", span) if extent is same:
            if ir.loads(extent) or effects(first).ordered or effects(second).ordered or not _apart(var, body, other, following):
                return None
            return ir.For(var, extent, ir.seq(body, renamed(following, {other: var})), "serial", span)
        case _:
            return None


def renamed(stmt: ir.Stmt, mapping: dict[Var, Expr]) -> ir.Stmt:
    """A statement with variables replaced by expressions."""
    made: ir.Stmt = ir.map_expressions(stmt, lambda e: substitute(e, mapping))
    return made


def _apart(var: Var, body: ir.Stmt, other: Var, following: ir.Stmt) -> bool:
    """Whether no iteration of `following` conflicts with a later iteration of `body`."""
    assert var.upper is not None, "a loop's variable has ends"
    before, after = list(accesses(body)), list(accesses(following))
    written = {b for b, _, writes in before if writes} | {b for b, _, writes in after if writes}
    rounds = max(var.upper - 1, 0)
    earlier, distance = Var(f"{var.name}'", INDEX, 0, rounds), Var(f"{var.name}''", INDEX, 0, rounds)
    here = {var: earlier + distance + 1, **_own(body, "'")}
    there = {other: earlier, **_own(following, "''")}
    for a, at, a_writes in before:
        for b, place, b_writes in after:
            if a is b and a in written and (a_writes or b_writes) and not _differ(at, here, place, there):
                return False
    return True


def _own(body: ir.Stmt, mark: str) -> dict[Var, Expr]:
    """Fresh names for everything that varies inside a loop's body: its loop variables, its Lets and the thread."""
    inside = [s.var for s in ir.statements(body) if isinstance(s, (ir.For, ir.Let))]
    threads = [v for _, indices, _ in accesses(body) for i in indices for v in free(i) if is_thread(v)]
    return {v: Var(v.name + mark, v.dtype, v.lower, v.upper) for v in (*inside, *threads)}


def _differ(at: Indices, here: dict[Var, Expr], place: Indices, there: dict[Var, Expr]) -> bool:
    """Whether two accesses differ in some dimension for all values of their variables."""
    for i, j in zip(at, place, strict=True):
        low, high = interval(simplify(substitute(i, here) - substitute(j, there)))
        if (low is not None and low > 0) or (high is not None and high < 0):
            return True
    return False
