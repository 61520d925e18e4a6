"""Unrolls loops that are marked for it, and loops whose variable indexes registers.

Needs: no vector loops. Guarantees: no `For(kind="unroll")`; loops that index registers are unrolled as well, so that the
registers have constant indices. If such a loop is not in the schedule and is too long, by itself or together with the loops
around or inside it that index the same registers, it stays a loop and its registers become a private array; if it is in the
schedule, it is refused. A loop of the schedule is also refused if its copies are more statements than a compiler handles in
seconds.

    unroll i in 0..2: acc[i] = 0.0    ->    acc[0] = 0.0; acc[1] = 0.0
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from tilelang.core.expr import INDEX, Binary, Call, Cast, Const, Expr, Var, free, index, substitute
from tilelang.core.simplify import FALSE, TRUE, simplify
from tilelang.errors import Refusal
from tilelang.lowering import ir
from tilelang.lowering.limits import MOST_OPERATIONS, operations


def unroll(kernel: ir.Kernel, limit: int) -> ir.Kernel:
    """The kernel with its loops over registers unrolled, up to `limit` elements.

    Raises Refusal `registers-too-many` for a loop of the schedule that indexes more.
    """
    return kernel.replace(body=_Unrolling(limit).statement(kernel.body, 1, {}))


MOST_STATEMENTS = 1 << 11  # from one loop of the schedule; examples and benchmarks have up to 900, clang takes minutes for 4,000
MOST_IN_KERNEL = 1 << 13  # from all unrolled loops of a kernel, including those that index registers


class _Unrolling:
    """A traversal of a kernel. `memo` caches each expression under the values of only those variables that it mentions, so
    that copies of a body share common parts."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.memo: dict[tuple[Expr | None, ...], Expr] = {}
        self.mentioned: dict[Expr, tuple[Var, ...]] = {}
        self.addressing: dict[int, frozenset[Var]] = {}
        self.inside: dict[tuple[int, tuple[Var, ...]], int] = {}
        self.kept: dict[Var, int] = {}  # enclosing loops over registers that are not unrolled, with their extents
        self.sizes: dict[Expr, int] = {}
        # The outermost enclosing loop of the schedule, and the number of statements before it.
        self.written: tuple[ir.For, int] | None = None
        self.made = 0  # statements in unrolled loops
        self.in_all = 0  # operations in unrolled loops
        self.around: ir.For | None = None  # the innermost enclosing loop that is unrolled

    def statement(self, stmt: ir.Stmt, factor: int, values: dict[Var, Expr]) -> ir.Stmt:
        self.made += self.around is not None and not isinstance(stmt, ir.Seq)
        if self.written is not None and self.made - self.written[1] > MOST_STATEMENTS:
            raise _too_long(self.written[0])
        if self.made > MOST_IN_KERNEL and self.around is not None:
            raise _too_long_in_all(self.around, f"{MOST_IN_KERNEL:,} statements")
        match stmt:
            case ir.For(var, extent, body, kind, span):
                end = self.value(extent, values)
                if isinstance(end, Const):
                    n = int(end.value)
                    if n <= 1 and kind != "vector":
                        return self.statement(body, factor, {**values, var: index(0)}) if n == 1 else ir.Seq(())
                    if kind == "unroll" or (kind != "threads" and var in self.register_variables(body)):
                        useful = span is not None or factor * n * self.rounds_beside(stmt) <= self.limit
                        if factor * n <= self.limit and useful:
                            return self.copies(stmt, n, factor, values)
                        if span is not None and kind == "serial":
                            raise _too_many(stmt, factor * n, self.limit)
                        return self.whole(ir.For(var, end, body, "serial", span), n, factor, values)
                return ir.For(var, end, self.statement(body, factor, values), kind, span)
            case ir.If(condition, then, otherwise, span):
                c = self.value(condition, values)
                if c is TRUE:
                    return self.statement(then, factor, values)
                if c is FALSE:
                    return ir.Seq(()) if otherwise is None else self.statement(otherwise, factor, values)
                rest = None if otherwise is None else self.statement(otherwise, factor, values)
                return ir.If(c, self.statement(then, factor, values), rest, span)
            case ir.Roles() | ir.Role():
                return stmt.map_children(lambda c: self.statement(c, factor, values) if isinstance(c, ir.Stmt) else c)
            case ir.Seq(body):
                return ir.joined(*[self.statement(s, factor, values) for s in body])
            case _:
                made: ir.Stmt = ir.map_expressions(stmt, lambda e: self.value(e, values))
                if self.around is not None:
                    self.in_all += sum(operations(e, self.sizes) for e in ir.expressions(made))
                    if self.in_all > MOST_OPERATIONS:
                        raise _too_long_in_all(self.around, f"{MOST_OPERATIONS:,} operations")
                return made

    def copies(self, loop: ir.For, n: int, factor: int, values: dict[Var, Expr]) -> ir.Stmt:
        """The body of a loop, once for each of its n iterations."""
        outermost, around = self.written, self.around
        if outermost is None and loop.span is not None:
            self.written = loop, self.made
        self.around = loop
        found = ir.joined(*[self.statement(loop.body, factor * n, {**values, loop.var: index(j)}) for j in range(n)])
        self.written, self.around = outermost, around
        return found

    def whole(self, loop: ir.For, n: int, factor: int, values: dict[Var, Expr]) -> ir.Stmt:
        """A loop of n iterations over registers that is not unrolled."""
        self.kept[loop.var] = n
        body = self.statement(loop.body, factor, values)
        del self.kept[loop.var]
        return loop.replace(body=body)

    def rounds_beside(self, loop: ir.For) -> int:
        """The number of iterations of the other loops that index the same registers together with this one; the smallest over all
        accesses.

        If these loops stay, the registers are an array whether this loop is unrolled or not.
        """
        key = (id(loop), tuple(self.kept))
        found = self.inside.get(key)
        if found is None:
            found = self.inside[key] = min(_rounds(loop.body, loop.var, self.kept), default=1)
        return found

    def register_variables(self, stmt: ir.Stmt) -> frozenset[Var]:
        """The variables in the indices of register buffers. Cached by identity, since the kernel outlives this traversal."""
        found = self.addressing.get(id(stmt))
        if found is None:
            found = frozenset().union(*map(self.register_variables, ir.parts(stmt)))
            found = self.addressing[id(stmt)] = found.union(*_addresses(stmt))
        return found

    def value(self, e: Expr, values: dict[Var, Expr]) -> Expr:
        """An expression with loop variables replaced, simplified."""
        if not values or type(e) is Const:
            return e
        names = self.mentioned.get(e)
        if names is None:
            names = self.mentioned[e] = tuple(free(e))
        key = (e, *map(values.get, names))
        found = self.memo.get(key)
        if found is None:
            found = self.memo[key] = self._value(e, values)
        return found

    def _value(self, e: Expr, values: dict[Var, Expr]) -> Expr:
        match e:
            case ir.Load() | ir.Pack() | ir.Shuffle() | Call() | Cast() | Binary(op="+" | "-" | "*" | "/") if (
                e.dtype is not INDEX
            ):
                return e.map_children(lambda child: self.value(child, values) if isinstance(child, Expr) else child)
            case _:
                return simplify(substitute(e, values))


def _addresses(stmt: ir.Stmt) -> list[frozenset[Var]]:
    """The variables in the indices of each register access of a statement, without its children."""
    indices = [load.indices for e in ir.expressions(stmt) for load in ir.loads(e) if load.buffer.memory == "register"]
    if isinstance(stmt, ir.Store) and stmt.buffer.memory == "register":
        indices.append(stmt.indices)
    if isinstance(stmt, ir.Instruction):
        indices += [at for _, buffer, at in stmt.operands if buffer.memory == "register"]
    return [frozenset().union(*map(free, at)) for at in indices]


def _rounds(stmt: ir.Stmt, var: Var, loops: dict[Var, int]) -> Iterator[int]:
    """For each access whose indices contain `var`, the product of the extents of the loops whose variables they contain too."""
    if isinstance(stmt, ir.For) and isinstance(stmt.extent, Const):
        loops = {**loops, stmt.var: int(stmt.extent.value)}
    for variables in _addresses(stmt):
        if var in variables:
            yield math.prod(n for v, n in loops.items() if v in variables)
    for child in stmt.children():
        if isinstance(child, ir.Stmt):
            yield from _rounds(child, var, loops)


def _too_long(loop: ir.For) -> Refusal:
    copies = loop.extent.value if isinstance(loop.extent, Const) else "several"
    asked = loop.kind == "unroll"
    why = "" if asked else " indexes registers and"
    fewer = "remove `unroll`, or the `peel` of the loops inside" if asked else "keep fewer values in registers"
    return Refusal(
        "unrolled-too-long",
        f"the loop over {loop.var.name}{why} is unrolled {copies} times, with the loops inside it that are unrolled, too: more than"
        f" {MOST_STATEMENTS:,} statements",
        span=loop.span,
        help=f"{fewer}; or use smaller tiles, so that fewer iterations are unrolled",
    )


def _too_long_in_all(loop: ir.For, limit: str) -> Refusal:
    return Refusal(
        "unrolled-too-long",
        f"unrolling makes this kernel longer than {limit}; the limit was reached in the loop over {loop.var.name}",
        span=loop.span,
        help="keep fewer values in registers (loops that index registers are always unrolled), or remove `unroll` or `peel`",
    )


def _too_many(stmt: ir.For, elements: int, limit: int) -> Refusal:
    touched = {b for s in ir.statements(stmt) for b, _ in ir.touched(s) if b.memory == "register"}
    held = sorted(touched, key=lambda b: (-b.elements, b.name))
    return Refusal(
        "registers-too-many",
        f"the loop over {stmt.var.name} indexes registers, so it must be unrolled: {elements} times, but the limit is {limit}",
        span=stmt.span,
        counterexample="each thread holds " + " and ".join(f"{b.name}: {' x '.join(map(str, b.shape))} elements" for b in held),
        help="map more of the tile to units, or keep the tensor in shared",
    )
