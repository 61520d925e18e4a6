"""Makes the conditions of tails seem to depend on the thread. For PoCL 3, which otherwise copies the kernel for each of them.

Needs: `unroll`. Guarantees, for a kernel with barriers: some expressions read the block index through a name whose value seems,
to the compiler, to depend on the thread. These are conditions on the block index around (or hoistable out of) a loop without
barriers, and the extents of such loops. One line before and after, with 8 threads:

    for l in 0..3: { if block_x < 2: S[0] = S[0] + A[l] }
    let block_x_apart = block_x + thread // 8; for l in 0..3: { if block_x_apart < 2: S[0] = S[0] + A[l] }

If a kernel has barriers, PoCL 3 adds its own in innermost loops that all threads of a block enter and leave together. By then
LLVM has turned the tail of such a loop into a condition around it, and PoCL copies all code after a condition with a barrier
inside, for both outcomes: n tails make 2 to the power of n copies, and a kernel with ten never finishes compiling. If the
condition seems to differ between threads, no barrier is added, and the quotient is folded to zero once the loop over threads
exists.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tilelang.core.expr import INDEX, Const, Expr, Select, Var, binary, free, index, substitute
from tilelang.lowering import ir
from tilelang.lowering.passes.divergence import diverges

Names = Mapping[Var, Expr]


def diverge_tail_conditions(kernel: ir.Kernel) -> ir.Kernel:
    """The kernel with the conditions around its loops made to seem different for each thread."""
    if kernel.threads == 1 or not _has_barrier(kernel.body):  # barriers of a single thread are not emitted
        return kernel
    walk = _Walk({s.var.name for s in ir.statements(kernel.body) if isinstance(s, (ir.For, ir.Let))})
    body = walk.statement(kernel.body, {}, ())
    if not walk.numbers:
        return kernel
    # The quotient is zero, but must not be folded yet: so the thread's range is given too wide by one.
    none = binary("//", Var(ir.THREAD.name, INDEX, 0, kernel.threads), index(kernel.threads))
    lets = [ir.Let(other, block + none) for block, other in walk.numbers.items()]
    return kernel.replace(body=ir.Seq((*lets, body)))


def _has_barrier(stmt: ir.Stmt) -> bool:
    return any(isinstance(s, ir.Barrier) for s in ir.statements(stmt))


def _has_loop(stmt: ir.Stmt) -> bool:
    """Whether a statement contains a loop without barriers."""
    return any(isinstance(s, ir.For) and not _has_barrier(s) for s in ir.statements(stmt))


class _Walk:
    """A traversal of a kernel. taken: used names; numbers: the new name of each block index that needs one."""

    def __init__(self, taken: set[str]) -> None:
        self.taken = taken
        self.numbers: dict[Var, Var] = {}

    def statement(self, stmt: Any, names: Names, loops: tuple[Var, ...]) -> Any:
        """names: the values of Lets; loops: the variables of the enclosing loops without barriers."""
        match stmt:
            case ir.Seq(body=body):
                parts = []
                for child in body:
                    parts.append(self.statement(child, names, loops))
                    if isinstance(child, ir.Let) and not ir.loads(child.value):
                        names = {**names, child.var: substitute(child.value, names)}
                return stmt.replace(body=tuple(parts))
            case ir.For(var=var, extent=extent, body=body):
                if _has_barrier(stmt):
                    return stmt.replace(body=self.statement(body, names, loops))
                return stmt.replace(extent=self.apart(extent, names), body=self.statement(body, names, (*loops, var)))
            case ir.If(condition=condition, then=then, otherwise=otherwise):
                if not _has_barrier(stmt) and (self.stays(condition, names, loops) or _has_loop(stmt)):
                    condition = self.apart(condition, names)
                rest = None if otherwise is None else self.statement(otherwise, names, loops)
                return stmt.replace(condition=condition, then=self.statement(then, names, loops), otherwise=rest)
            case _:
                return ir.map_expressions(stmt, lambda e: self.selects(e, names, loops)) if loops else stmt

    def selects(self, e: Expr, names: Names, loops: tuple[Var, ...]) -> Expr:
        """An expression in a loop, with the conditions of its selects made to seem thread-dependent."""
        if not free(e):
            return e
        changed: Expr = e.map_children(lambda c: self.selects(c, names, loops) if isinstance(c, Expr) else c)
        if isinstance(changed, Select) and self.stays(changed.condition, names, loops):
            return changed.replace(condition=self.apart(changed.condition, names))
        return changed

    def stays(self, condition: Expr, names: Names, loops: tuple[Var, ...]) -> bool:
        """Whether a condition is invariant in the innermost loop."""
        return bool(loops) and loops[-1] not in free(substitute(condition, names))

    def apart(self, e: Expr, names: Names) -> Expr:
        """An expression that reads the block index by its new name; unchanged if it differs between threads anyway."""
        meant = substitute(e, names)
        blocks = [v for v in free(meant) if v.name in _BLOCKS]
        if isinstance(e, Const) or not blocks or diverges(meant):
            return e
        for v in blocks:
            name = f"{v.name}_apart"
            while name in self.taken:
                name += "_"
            self.numbers.setdefault(v, Var(name, v.type, 0, None if v.upper is None else v.upper + 1))
        changed: Expr = substitute(meant, self.numbers)
        return changed


_BLOCKS = frozenset(v.name for v in ir.BLOCK)
