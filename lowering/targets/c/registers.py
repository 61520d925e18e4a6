"""Decides where the named variables of promoted register buffers are declared.

A variable is declared at its first store if that store writes all of it, is directly in the innermost block that contains every use,
and does not read it: then no value can enter that block from outside, or from the previous iteration of a loop. All others are declared
at the top of the function.

Statements are numbered in pre-order; the emitter counts in the same order.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterator

from tilelang.core.expr import Expr
from tilelang.lowering.ir import (
    Buffer,
    For,
    If,
    Instruction,
    Let,
    Role,
    Roles,
    Seq,
    Stmt,
    Store,
    expressions,
    lanes,
    loads,
)
from tilelang.lowering.targets.c.expressions import Expressions


@dataclasses.dataclass(slots=True)
class _Use:
    """The uses of one variable: its buffer, the first use, and the innermost block of all uses."""

    buffer: Buffer
    number: int
    whole: bool
    first: tuple[int, ...]
    common: tuple[int, ...]


@dataclasses.dataclass(frozen=True, slots=True)
class Places:
    """Variables to declare at the top, and those to declare at a statement, by its number."""

    top: tuple[tuple[str, Buffer], ...]
    at: dict[int, tuple[str, ...]]


def declaration_places(body: Stmt, expressions: Expressions) -> Places:
    """The places of declaration for the named variables of a kernel's promoted buffers."""
    walk = _Walk(expressions)
    walk.statement(body, ())
    top, at = [], dict[int, tuple[str, ...]]()
    for name, use in walk.uses.items():
        if use.whole and use.first == use.common:
            at[use.number] = (*at.get(use.number, ()), name)
        else:
            top.append((name, use.buffer))
    return Places(tuple(top), at)


def opens_scope(stmt: Stmt) -> bool:
    """Whether a nested sequence needs its own braces, because it binds names."""
    return isinstance(stmt, Seq) and any(isinstance(s, Let) for s in stmt.body)


class _Walk:
    def __init__(self, expressions: Expressions) -> None:
        self.expressions = expressions
        self.uses: dict[str, _Use] = {}
        self.count = 0
        self.blocks = 0

    def event(self, name: str, buffer: Buffer, whole: bool, number: int, block: tuple[int, ...]) -> None:
        use = self.uses.get(name)
        if use is None:
            self.uses[name] = _Use(buffer, number, whole, block, block)
        elif use.common != block:
            same = 0
            while same < min(len(use.common), len(block)) and use.common[same] == block[same]:
                same += 1
            use.common = block[:same]

    def reads(self, e: Expr, number: int, block: tuple[int, ...]) -> None:
        for load in loads(e):
            pieces = self.expressions.pieces(load.buffer, load.indices, load.lanes) if load.buffer.vector else ()
            for name, _, _ in pieces:
                self.event(name, load.buffer, False, number, block)

    def inner(self, block: tuple[int, ...]) -> tuple[int, ...]:
        self.blocks += 1
        return (*block, self.blocks)

    def statement(self, stmt: Stmt, block: tuple[int, ...]) -> None:
        number = self.count
        self.count += 1
        for child in expressions(stmt):
            self.reads(child, number, block)
        match stmt:
            case Seq(body):
                inner = self.inner(block) if number and opens_scope(stmt) else block
                for s in body:
                    self.statement(s, inner)
            case Roles(roles):
                for role in roles:
                    self.statement(role, block)
            case For(body=body) | Role(body=body):
                self.statement(body, self.inner(block))
            case If(then=then, otherwise=otherwise):
                self.statement(then, self.inner(block))
                if otherwise is not None:
                    self.statement(otherwise, self.inner(block))
            case Store(buffer=buffer, indices=indices, value=value) if buffer.vector:
                for name, _, n in self.expressions.pieces(buffer, indices, lanes(value)):
                    self.event(name, buffer, n == buffer.vector and stmt.kept_from is None, number, block)
            case Instruction(operands=operands):
                for _, buffer, _ in operands:
                    for name in registers(buffer, self.expressions) if buffer.vector else ():
                        self.event(name, buffer, False, number, block)


def registers(buffer: Buffer, expressions: Expressions) -> Iterator[str]:
    """All named variables of a promoted buffer."""
    for group in itertools.product(*map(range, buffer.groups)):
        yield expressions.register(buffer, group)
