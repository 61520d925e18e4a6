"""Mutants of a kernel: one barrier, guard, fill, wait or fence is removed at a time.

The removed part of a barrier is all of it, or one of the memories that it orders; of a guard, one of the conditions that an `If` or a
select by position combines, one of the bounds that shorten a loop, or the count of an access; of a fill, the identity in an accumulator
or the value of a point that does not exist; of a wait, all of it, one group of it, or the end of a group; of a fence, one that
publishes writes to shared memory.

`misplaced` makes mutants that access the wrong place: one access, or a whole kernel, by another thread or block, at swapped or shifted
indices, or in another slot of a circular buffer; a guard that admits one more element; one store fewer; two roles with exchanged
threads.

A mutant may come with a second program, in which everything that the mutant additionally stores or returns is garbage. If not even that
is detected, nothing reads the elements that the removed part protected.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Iterator
from typing import Any

from tilelang.core.dtype import DType
from tilelang.core.expr import Binary, Const, Expr, Read, Select, Var, const, index, substitute
from tilelang.core.simplify import conjuncts, from_linear, simplify, weighted_sum
from tilelang.lowering import ir, printer

KINDS = ("barrier", "guard", "fill", "wait", "fence")
PLACES = ("thread", "block", "swapped", "shifted", "widened", "store", "slot", "role")


@dataclasses.dataclass(frozen=True)
class Mutant:
    """A program with one fault. kind: one of KINDS or PLACES; text: the changed statement, and how it was changed; place: a key of the
    statement's position and of the kind of change, without the statement's text; garbage: see above."""

    kind: str
    text: str
    place: tuple[int | str, ...]
    program: ir.Program
    garbage: ir.Program | None

    def __str__(self) -> str:
        return f"{self.kind}: {self.text}"


@dataclasses.dataclass(frozen=True)
class _Change:
    """One statement with a fault, or the enclosing body."""

    kind: str
    text: str
    stmt: ir.Stmt
    garbage: ir.Stmt | None = None
    place: tuple[int | str, ...] = ()

    def within(self, number: int, around: Callable[[ir.Stmt], ir.Stmt]) -> _Change:
        """The change inside this part of a statement that `around` makes."""
        garbage = None if self.garbage is None else around(self.garbage)
        return dataclasses.replace(self, stmt=around(self.stmt), garbage=garbage, place=(number, *self.place))


def mutants(program: ir.Program) -> Iterator[Mutant]:
    """Every program with one barrier, guard, fill, wait or fence removed."""
    for number, kernel in enumerate(program.kernels):

        def whole(body: ir.Stmt, number: int = number, kernel: ir.Kernel = kernel) -> ir.Program:
            kernels = list(program.kernels)
            kernels[number] = kernel.replace(body=body)
            return program.replace(kernels=tuple(kernels))

        for c in _changes(kernel.body):
            garbage = None if c.garbage is None else whole(c.garbage)
            yield Mutant(c.kind, f"{kernel.name}: {c.text}", (number, *c.place), whole(c.stmt), garbage)


def _changes(stmt: ir.Stmt) -> Iterator[_Change]:
    """All changes of a statement and the statements inside it."""
    headline = printer.headline(stmt)
    yield from (dataclasses.replace(c, place=(c.kind, c.text.removesuffix(headline))) for c in _here(stmt))
    for number, part in enumerate(ir.parts(stmt)):
        for change in _changes(part):
            yield change.within(number, functools.partial(_with_part, stmt, number))


def _with_part(stmt: ir.Stmt, number: int, new: ir.Stmt) -> ir.Stmt:
    match stmt:
        case ir.Seq(body) | ir.Roles(body):
            return stmt.replace(body=(*body[:number], new, *body[number + 1 :]))
        case ir.For() | ir.Role():
            return stmt.replace(body=new)
        case ir.If():
            return stmt.replace(then=new) if number == 0 else stmt.replace(otherwise=new)
        case _:
            raise AssertionError(f"{type(stmt).__name__} has no parts")


def _here(stmt: ir.Stmt) -> Iterator[_Change]:
    """The changes of a statement itself."""
    text = printer.headline(stmt)
    match stmt:
        case ir.Barrier(memory):
            yield _Change("barrier", f"no {text}", ir.Seq(()))
            for one in memory if len(memory) > 1 else ():
                yield _Change("barrier", f"not for {one}: {text}", stmt.replace(memory=tuple(m for m in memory if m != one)))
        case ir.Wait(pending):
            yield _Change("wait", f"no {text}", ir.Seq(()))
            yield _Change("wait", f"one group less: {text}", stmt.replace(pending=pending + 1))
        case ir.Commit():
            yield _Change("wait", f"no {text}", ir.Seq(()))
        case ir.Fence(memory="shared"):
            yield _Change("fence", f"no {text}", ir.Seq(()))
        case ir.If():
            yield from _conditions(stmt, text)
        case ir.For():
            yield from _rounds(stmt, text)
        case ir.Store(kept_from=count) | ir.Copy(count=count) if count is not None:
            for how, other in _more(count):
                yield _Change("guard", f"{how}: {text}", stmt.replace(count=other), _beyond_count(stmt, other))
        case ir.Store(buffer, value=value) if buffer.memory != "global" and _is_constant(value):
            yield _Change("fill", f"not set: {text}", ir.Seq(()), stmt.replace(value=_garbage_like(value)))
        case ir.Store(buffer, value=Select(condition, then, otherwise)) if buffer.memory != "global" and _fills(stmt.value):
            # A move's fill may be read for points that are not stored. Its value is then irrelevant, but it must be defined.
            ruined = stmt.replace(value=Select(condition, then, _garbage_like(otherwise)))
            yield _Change("fill", f"left as it was: {text}", ir.If(condition, stmt.replace(value=then)), ruined)
        case _:
            pass
    for expr in dict.fromkeys(ir.expressions(stmt)):
        whole = isinstance(stmt, ir.Store) and expr is stmt.value and stmt.buffer.memory != "global"
        for node in expr.walk():
            for kind, how, other, worse in _other(node, fills=not (whole and node is expr)):
                yield _Change(kind, f"{how}: {text}", _put(stmt, node, other), _put(stmt, node, worse))


def _put(stmt: Any, node: Expr, other: Expr) -> ir.Stmt:
    """A statement with one expression replaced. The statements inside it are unchanged."""
    changed: ir.Stmt = stmt.map_children(lambda c: substitute(c, {node: other}) if isinstance(c, Expr) else c)
    return changed


def _conditions(stmt: ir.If, text: str) -> Iterator[_Change]:
    for how, part, rest in _joined(stmt.condition):
        garbage = _ruined(stmt.then) if stmt.otherwise is None else None
        if rest is None:
            yield _Change("guard", f"{how}: {text}", stmt.then, garbage and ir.If(part, stmt.then, garbage))
        else:
            inner = garbage and ir.If(part, stmt.then, garbage)
            yield _Change("guard", f"{how}: {text}", stmt.replace(condition=rest), inner and ir.If(rest, inner))


def _rounds(stmt: ir.For, text: str) -> Iterator[_Change]:
    """A loop that is not trimmed, or one that does not run at least once."""
    garbage = _ruined(stmt.body)
    for how, extent in _longer(stmt.extent, stmt.var.upper):
        inside = garbage and ir.If(Binary("<", stmt.var, stmt.extent), stmt.body, garbage)
        yield _Change("guard", f"{how}: {text}", stmt.replace(extent=extent), inside and stmt.replace(extent=extent, body=inside))


def _longer(extent: Expr, last: int | None) -> Iterator[tuple[str, Expr]]:
    match extent:
        case Const():
            return
        case Binary("max", inner, least):
            yield "without the least of rounds", inner
            for how, longer in _longer(inner, last):
                yield how, Binary("max", longer, least)
        case Binary("min"):
            operands = _flat("min", extent)
            for k, one in enumerate(operands):
                if not isinstance(one, Const):
                    others = operands[:k] + operands[k + 1 :]
                    yield f"rounds beyond {one}", _chain("min", others)
        case _ if last is not None:
            yield "all rounds", index(last + 1)
        case _:
            return


def _more(count: Expr) -> Iterator[tuple[str, Expr | None]]:
    """A count of lanes without one of its bounds."""
    match count:
        case Select(condition, then, otherwise):
            for how, _, rest in _joined(condition):
                yield how, then if rest is None else Select(rest, then, otherwise)
            for how, more in _more(then):
                yield how, more if more is None else Select(condition, more, otherwise)
        case Binary("max", inner, least):
            for how, more in _more(inner):
                yield how, more if more is None else Binary("max", more, least)
            yield f"fewer than {least}", inner
        case Binary("min"):
            operands = _flat("min", count)
            for k, one in enumerate(operands):
                yield f"lanes beyond {one}", _chain("min", operands[:k] + operands[k + 1 :])
        case _:
            yield "all lanes", None


def _beyond_count(stmt: ir.Store | ir.Copy, other: Expr | None) -> ir.Stmt | None:
    """A store that writes garbage to a lane that its count excluded."""
    if isinstance(stmt, ir.Copy):
        return None
    assert stmt.count is not None
    exists = Binary("<", ir.Ramp(index(0), ir.lanes(stmt.value)), stmt.count)
    return stmt.replace(count=other, value=Select(exists, stmt.value, _garbage_like(stmt.value)))


def _other(node: Any, fills: bool) -> Iterator[tuple[str, str, Expr, Expr]]:
    """(kind, how, the change, the change with garbage) of an expression: choices by position, and loads of partial vectors.

    fills: whether to replace the values of points that do not exist.
    """
    match node:
        case ir.Load(count=count, fill=fill) if count is not None and fill is not None:
            ruined = node.replace(fill=garbage(fill))
            for how, more in _more(count):
                changed = node.replace(count=more) if more is not None else node.replace(count=None, fill=None)
                yield "guard", f"{how} of {node}", changed, ruined
            yield "fill", f"another fill of {node}", ruined, ruined
        case Select(condition, then, otherwise) if _is_position(condition):
            other_fill = node.replace(otherwise=_garbage_like(otherwise))
            for how, part, rest in _joined(condition):
                if rest is None:
                    yield "guard", f"{how} {then}", then, other_fill
                else:
                    inner = Select(part, then, _garbage_like(otherwise))
                    yield "guard", f"{how} {then}", Select(rest, then, otherwise), Select(rest, inner, otherwise)
            if fills and _fills(node):
                yield "fill", f"another fill of {node}", other_fill, other_fill
        case _:
            return


# ---------------------------------------------------------------- conditions and constants


def _joined(condition: Expr) -> Iterator[tuple[str, Expr, Expr | None]]:
    """(how, the omitted part, the others) for each part of a conjunction."""
    parts = conjuncts(condition)
    for k, part in enumerate(parts):
        rest = parts[:k] + parts[k + 1 :]
        yield (f"without `{part}`", part, _chain("and", rest)) if rest else ("always", part, None)


def _flat(op: str, e: Expr) -> list[Expr]:
    return [*_flat(op, e.left), *_flat(op, e.right)] if isinstance(e, Binary) and e.op == op else [e]


def _chain(op: str, operands: list[Expr]) -> Expr:
    result, *others = operands
    for e in others:
        result = Binary(op, result, e)
    return result


def _is_position(condition: Expr) -> bool:
    """Whether a condition depends on a point's position, not on data."""
    nodes = list(condition.walk())
    return any(isinstance(n, Binary) for n in nodes) and not any(isinstance(n, (ir.Load, Read)) for n in nodes)


def _is_constant(value: Expr) -> bool:
    return isinstance(value, Const) or isinstance(value, ir.Pack) and all(isinstance(i, Const) for i in value.items)


def _fills(value: Expr) -> bool:
    """Whether a value chooses by position between a value and a constant."""
    return isinstance(value, Select) and _is_position(value.condition) and _is_constant(value.otherwise)


def _garbage_like(value: Expr) -> Expr:
    """Garbage in place of a value, lane by lane."""
    if isinstance(value, Const):
        return garbage(value)
    if isinstance(value, ir.Pack) and _is_constant(value):
        return ir.Pack(tuple(garbage(i) for i in value.items if isinstance(i, Const)))
    return _all_garbage(value.dtype, ir.lanes(value))


def garbage(value: Const) -> Const:
    """An unexpected constant of the same type: NaN, or a different number."""
    if value.type.is_float:
        return const(float("nan"), value.type)
    if value.type.kind == "bool":
        return const(not value.value, value.type)
    return const(int(value.value) ^ 0x55, value.type)


def _all_garbage(type: DType, lanes: int) -> Expr:
    one = garbage(const(0, type))
    return one if lanes == 1 else ir.Pack((one,) * lanes)


def _scrawl(buffer: ir.Buffer, first: tuple[Expr, ...], slot: int) -> ir.Stmt:
    """Garbage in the element `slot` positions after the first, in row-major order."""
    rest, at = from_linear(weighted_sum(first, buffer.strides)) + slot, list[Expr]()
    for stride in buffer.strides:
        at.append(simplify(rest // stride))
        rest = rest % stride
    return ir.Store(buffer, tuple(at), garbage(const(0, buffer.dtype)))


def _ruined(stmt: ir.Stmt) -> ir.Stmt | None:
    """The statement with garbage in all its stores; None if an instruction writes a region that all its lanes share."""
    match stmt:
        case ir.Instruction(semantics, operands):
            held = semantics.fragment(semantics.writes)
            buffer, at = next((b, indices) for name, b, indices in operands if name == semantics.writes)
            return None if held is None else ir.Seq(tuple(_scrawl(buffer, at, slot) for slot in range(held.slots)))
        case ir.Store():
            return stmt.replace(value=_garbage_like(stmt.value))
        case ir.Copy():
            return ir.Store(stmt.target, stmt.target_indices, _all_garbage(stmt.target.dtype, stmt.lanes), across=stmt.across)
        case _:
            ruined = stmt
            for number, part in enumerate(ir.parts(stmt)):
                other = _ruined(part)
                if other is None:
                    return None
                ruined = _with_part(ruined, number, other)
            return ruined


# ---------------------------------------------------------------- the same, elsewhere


def misplaced(program: ir.Program) -> Iterator[Mutant]:
    """Every program with one access by the wrong thread, or at the wrong place: of the kinds PLACES."""
    for number, kernel in enumerate(program.kernels):
        for kind, text, body in _misplaced(kernel):
            kernels = (*program.kernels[:number], kernel.replace(body=body), *program.kernels[number + 1 :])
            yield Mutant(kind, f"{kernel.name}: {text}", (number, kind, text), program.replace(kernels=kernels), None)


def _misplaced(kernel: ir.Kernel) -> Iterator[tuple[str, str, ir.Stmt]]:
    for v in sorted(
        {e for e in kernel.body.walk() if isinstance(e, Var) and e.upper and e.name in (*_BLOCKS, "thread")}, key=str
    ):
        for other in _others(v):
            yield (
                v.name.partition("_")[0],
                f"{other} for {v}",
                _renumbered(kernel.body, v, other),
            )
    for stmt in dict.fromkeys(ir.statements(kernel.body)):
        for kind, text, new in _elsewhere(stmt):
            yield kind, f"{text}: {printer.headline(stmt)}", _with(kernel.body, stmt, new)


_BLOCKS = ("block_x", "block_y", "block_z")


def _others(v: Var) -> tuple[Expr, ...]:
    assert v.upper is not None
    return (index(v.upper) - v, (v + 1) % (v.upper + 1))


def _elsewhere(stmt: ir.Stmt) -> Iterator[tuple[str, str, ir.Stmt]]:
    match stmt:
        case ir.Roles((first, second, *rest)):
            exchanged = (
                first.replace(first=second.first, threads=second.threads),
                second.replace(first=first.first, threads=first.threads),
            )
            yield "role", "exchanged", ir.Roles((*exchanged, *rest))
        case ir.If(condition):
            for e in condition.walk():
                if isinstance(e, Binary) and e.op in ("<", "<="):
                    yield (
                        "widened",
                        f"{e} + 1",
                        stmt.replace(condition=substitute(condition, {e: Binary(e.op, e.left, e.right + 1)})),
                    )
        case ir.Store(buffer, indices) if buffer.memory != "register":
            yield "store", "left out", ir.Seq(())
            for kind, text, other in _moved(buffer, indices):
                yield kind, text, stmt.replace(indices=other)
            for v in {e for i in indices for e in i.walk() if isinstance(e, Var) and e.upper and e.name in (*_BLOCKS, "thread")}:
                for other_var in _others(v):
                    moved = tuple(substitute(i, {v: other_var}) for i in indices)
                    yield v.name.partition("_")[0], f"{other_var} for {v} in {buffer.name}", stmt.replace(indices=moved)
        case _:
            pass
    if isinstance(stmt, (ir.Store, ir.Let)):
        for load in (e for e in stmt.value.walk() if isinstance(e, ir.Load) and e.buffer.memory != "register"):
            for kind, text, other in _moved(load.buffer, load.indices):
                yield (
                    kind,
                    f"{text} of {load.buffer.name}",
                    stmt.replace(value=substitute(stmt.value, {load: load.replace(indices=other)})),
                )


def _moved(buffer: ir.Buffer, indices: tuple[Expr, ...]) -> Iterator[tuple[str, str, tuple[Expr, ...]]]:
    """Other indices: the last two swapped, as far as they fit, one more or one less along one of them, the next slot of a multistage
    buffer."""
    ring = buffer.ring or 1
    if not all(buffer.shape):
        return
    if len(indices) > 1 and not (ring > 1 and len(indices) == 2):
        *before, a, b = indices
        yield "swapped", "indices", (*before, b % buffer.shape[-2], a % buffer.shape[-1])
    for k, i in enumerate(indices):
        if k == 0 and ring > 1:
            yield "slot", "another", ((i + 1) % buffer.shape[0], *indices[1:])
        elif buffer.shape[k] > 1:
            yield "shifted", f"{i} + 1", (*indices[:k], (i + 1) % buffer.shape[k], *indices[k + 1 :])


def _with(body: ir.Stmt, old: ir.Stmt, new: ir.Stmt) -> ir.Stmt:
    """A body with one statement replaced."""
    if body is old:
        return new
    for number, part in enumerate(ir.parts(body)):
        other = _with(part, old, new)
        if other is not part:
            return _with_part(body, number, other)
    return body


def _renumbered(stmt: ir.Stmt, v: Var, other: Expr) -> ir.Stmt:
    """A statement with another number in place of a variable."""
    changed: ir.Stmt = stmt.map_children(
        lambda c: _renumbered(c, v, other) if isinstance(c, ir.Stmt) else substitute(c, {v: other}) if isinstance(c, Expr) else c
    )
    return changed
