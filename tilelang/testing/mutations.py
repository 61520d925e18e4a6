"""Planted faults: a kernel without one of the barriers, guards, fills or waits that the compiler put there.

A mutant that no check finds is either a gap in the checks or something the compiler need not have put there. Mutants are made of kernel
IR as it is after `barriers`: everything is decided there, and stands there once, while `vectorize` then protects the lanes of a tail
twice, by a count and by a mask, each of which could go. `mutants` makes a change at a time; `found` says what notices one.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from tilelang.computation import Computation
from tilelang.expr import Binary, Const, Expr, Read, Select, const, substitute, unique
from tilelang.lowering import ir, printer, simulate
from tilelang.lowering.build.program import build_program
from tilelang.lowering.pipeline import passes
from tilelang.machine import Profile
from tilelang.schedule import Schedule
from tilelang.testing.case import arrays
from tilelang.testing.checking import Expected, stored
from tilelang.testing.planner import tiny_profile

KINDS = ("barrier", "guard", "fill", "wait")


@dataclasses.dataclass(frozen=True)
class Mutant:
    """A program with one fault. kind: one of KINDS; text: the statement that was changed, and how."""

    kind: str
    text: str
    program: ir.Program

    def __str__(self) -> str:
        return f"{self.kind}: {self.text}"


def decided(schedule: Schedule, profile: Profile | None = None) -> ir.Program:
    """The kernel IR of a schedule with barriers, guards, fills and waits, before vectors and unrolling. Raises Refusal."""
    chosen = profile or tiny_profile()
    program = build_program(schedule.computation, schedule.steps, chosen)
    for name, run in passes(chosen):
        program = program.replace(kernels=tuple(run(k) for k in program.kernels))
        if name == "barriers":
            break
    return program


def mutants(program: ir.Program) -> Iterator[Mutant]:
    """Every program with one barrier, guard, fill or wait less."""
    for number, kernel in enumerate(program.kernels):
        for kind, text, body in _changed(kernel.body):
            kernels = list(program.kernels)
            kernels[number] = kernel.replace(body=body)
            yield Mutant(kind, f"{kernel.name}: {text}", program.replace(kernels=tuple(kernels)))


def found(mutant: Mutant, expected: Expected) -> str | None:
    """What notices a mutant: the first kind of finding, or "result"; None where nothing does."""
    for order, report in _runs(mutant.program, expected.arrays):
        if report.counts:
            return next(iter(report.counts))
        if expected.faults(report.outputs, str(order)):
            return "result"
    return None


def redundant(mutant: Mutant, program: ir.Program, data: Sequence[Mapping[str, Any]]) -> bool:
    """Whether what a mutant lacks is not needed: on all data it gives the very bits of the program it was made of, in silence.

    A guard that saves work is such a case, or one around points whose operands are padding; so is a fill that only points which are
    not stored read, or nobody.
    """
    for inputs in data:
        for (_, mine), (_, original) in zip(_runs(mutant.program, inputs), _runs(program, inputs), strict=True):
            if mine.counts or any(mine.outputs[n].tobytes() != a.tobytes() for n, a in original.outputs.items()):
                return False
    return True


def _runs(program: ir.Program, arrays: Mapping[str, Any]) -> Iterator[tuple[str, simulate.Report]]:
    """The program simulated with copies landing early and, where it has any, late."""
    inputs = {b.name: stored(arrays[b.name], b) for b in program.buffers if b.role == "input"}
    waits = any(isinstance(s, (ir.Copy, ir.Instruction)) for k in program.kernels for s in ir.statements(k.body))
    for order in ("early", "late") if waits else ("early",):
        yield order, simulate.run(program, inputs, order=order)


@dataclasses.dataclass
class Tally:
    """How many mutants of each kind there were, those not needed, and those that were missed though something was."""

    total: Counter[str] = dataclasses.field(default_factory=Counter)
    noticed: Counter[str] = dataclasses.field(default_factory=Counter)
    redundant: list[Mutant] = dataclasses.field(default_factory=list)
    missed: list[Mutant] = dataclasses.field(default_factory=list)

    def run(self, program: ir.Program, computation: Computation) -> None:
        """Tries every mutant of a program on random inputs, and the survivors on all kinds of them."""
        expected = Expected(computation, arrays(computation, "random", 1))
        more = [arrays(computation, kind, seed) for seed, kind in enumerate(("random", "special", "infinite", "integers"))]
        for mutant in mutants(program):
            self.total[mutant.kind] += 1
            if found(mutant, expected) is not None:
                self.noticed[mutant.kind] += 1
            else:
                (self.redundant if redundant(mutant, program, more) else self.missed).append(mutant)

    @property
    def share(self) -> float:
        """How many of all mutants were noticed."""
        number = self.total.total()
        return self.noticed.total() / number if number else 1.0

    def __str__(self) -> str:
        rows = [f"{kind:8} {self.noticed[kind]:5} of {self.total[kind]:5} found" for kind in KINDS]
        rows += [f"{'all':8} {self.share:.1%}, {len(self.redundant)} not needed, {len(self.missed)} missed"]
        rows += [f"  not needed: {m}" for m in self.redundant] + [f"  missed: {m}" for m in self.missed]
        return "\n".join(rows)


# ---------------------------------------------------------------- the changes


def _changed(body: ir.Stmt) -> Iterator[tuple[str, str, ir.Stmt]]:
    """(kind, text, the whole body with one change) for every change."""

    def visit(stmt: ir.Stmt, around: Callable[[ir.Stmt], ir.Stmt]) -> Iterator[tuple[str, str, ir.Stmt]]:
        for kind, text, changed in _here(stmt):
            yield kind, text, around(changed)
        match stmt:
            case ir.Seq(inner):
                for i, child in enumerate(inner):
                    put = lambda new, i=i: around(stmt.replace(body=(*inner[:i], new, *inner[i + 1 :])))  # noqa: E731
                    yield from visit(child, put)
            case ir.For(body=child):
                yield from visit(child, lambda new: around(stmt.replace(body=new)))
            case ir.If(then=then, otherwise=otherwise):
                yield from visit(then, lambda new: around(stmt.replace(then=new)))
                if otherwise is not None:
                    yield from visit(otherwise, lambda new: around(stmt.replace(otherwise=new)))
            case _:
                return

    yield from visit(body, lambda new: new)


def _here(stmt: ir.Stmt) -> Iterator[tuple[str, str, ir.Stmt]]:
    """The changes of one statement itself."""
    text = printer.headline(stmt)
    match stmt:
        case ir.Barrier():
            yield "barrier", f"no {text}", ir.Seq(())
        case ir.Wait():
            yield "wait", f"no {text}", ir.Seq(())
        case ir.If(then=then):
            yield "guard", f"always: {text}", then
        case ir.Store(count=count) | ir.Copy(count=count) if count is not None:
            yield "guard", f"all lanes: {text}", stmt.replace(count=None)
        case ir.Store(value=Select(condition, then, Const())) if _is_position(condition) and stmt.buffer.memory != "global":
            yield "guard", f"always {then}: {text}", stmt.replace(value=then)
            yield "fill", f"left as it was: {text}", ir.If(condition, stmt.replace(value=then))
            return
        case _:
            pass
    if isinstance(stmt, (ir.Store, ir.Let)):
        for node in unique(stmt.value):
            for kind, how, other in _other(node):
                yield kind, f"{how}: {text}", stmt.replace(value=substitute(stmt.value, {node: other}))


def _other(node: Any) -> Iterator[tuple[str, str, Expr]]:
    """The changes of an expression: choices by position always taken, what is given outside replaced.

    What a move fills a buffer with is left out instead (`_here`): where it is read for the sake of a point that is not stored, any
    value is right, but there must be one.
    """
    match node:
        case ir.Load(count=count, fill=fill) if count is not None and fill is not None:
            yield "guard", f"all lanes of {node}", node.replace(count=None, fill=None)
            yield "fill", f"another fill of {node}", node.replace(fill=garbage(fill))
        case Select(condition, then, otherwise) if _is_position(condition):
            yield "guard", f"always {then}", then
            if isinstance(otherwise, Const):
                yield "fill", f"another fill of {node}", node.replace(otherwise=garbage(otherwise))
            elif isinstance(otherwise, ir.Pack) and all(isinstance(i, Const) for i in otherwise.items):
                items = tuple(garbage(i) for i in otherwise.items if isinstance(i, Const))
                yield "fill", f"another fill of {node}", node.replace(otherwise=otherwise.replace(items=items))
        case _:
            return


def _is_position(condition: Expr) -> bool:
    """Whether a condition asks where a point lies, not what the data are."""
    nodes = list(unique(condition))
    return any(isinstance(n, Binary) for n in nodes) and not any(isinstance(n, (ir.Load, Read)) for n in nodes)


def garbage(value: Const) -> Const:
    """A constant that nobody expects, of the same type: NaN, or a number that is not the one given."""
    if value.type.is_float:
        return const(float("nan"), value.type)
    if value.type.kind == "bool":
        return const(not value.value, value.type)
    return const(int(value.value) ^ 0x55, value.type)
