"""Determines which blocks of a launch access which elements of global memory.

A small launch is run completely. For a larger one only the accesses to global memory are run, without intermediate statements that
decide neither their addresses nor whether they happen. For a still larger one, only the writes are run.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from tilelang.core.expr import Expr
from tilelang.lowering import ir
from tilelang.lowering.simulator.memory_model import Watched
from tilelang.lowering.simulator.simulate import Report, executions, run

Array = npt.NDArray[Any]

EXECUTIONS = 60_000  # maximum statements of a launch to run
TOUCHES = 12_000_000  # maximum elements of global memory accessed in a launch, counted per access
TABLE = 1 << 25  # maximum entries of a table of elements and blocks


def distinct(keys: Array) -> Array:
    """The distinct values of an array, ascending."""
    ordered = keys if (keys[1:] >= keys[:-1]).all() else np.sort(keys)
    fresh = np.ones(ordered.shape, bool)
    fresh[1:] = ordered[1:] != ordered[:-1]
    found: Array = ordered[fresh]
    return found


class Enough(Exception):
    """Ends a run that has seen enough."""


@dataclasses.dataclass(frozen=True)
class Division:
    """The blocks that access the elements of a global buffer: the `first` one, and their number (0: none)."""

    kernel: int
    buffer: ir.Buffer
    writes: bool
    first: Array
    blocks: Array


def divisions(
    program: ir.Program, arrays: dict[str, Array], device: dict[str, Any], touches: int, writes: int
) -> tuple[tuple[Division, ...], Report | None]:
    """The divisions of the buffers that several blocks could share, as far as the launch can be run, and the report if all of it was
    run, else None. touches: of global memory, in total. writes: how many of them write."""
    for part, expected in (
        (program, touches),
        (global_accesses(program, True), touches),
        (global_accesses(program, False), writes),
    ):
        if part is None or expected > TOUCHES or executions(part) > EXECUTIONS:
            continue
        seen = _Divisions(part)
        try:
            report = run(part, arrays, watch=seen, **device)
        except Enough:
            continue
        return seen.result(), report if part is program else None
    return (), None


def global_accesses(program: ir.Program, reads: bool) -> ir.Program | None:
    """Only the accesses to global memory, with or without reads; None if other memory determines their addresses."""
    kernels = []
    for kernel in program.kernels:
        body = _kept(kernel.body, reads) or ir.Seq(())
        if any(load.buffer.memory != "global" for s in ir.statements(body) for e in _deciding(s) for load in ir.loads(e)):
            return None
        kernels.append(kernel.replace(body=body))
    return program.replace(kernels=tuple(kernels))


def _kept(stmt: ir.Stmt, reads: bool) -> ir.Stmt | None:
    match stmt:
        case ir.Seq(body):
            kept = [k for k in (_kept(s, reads) for s in body) if k is not None]
            return stmt.replace(body=tuple(kept)) if any(not isinstance(k, ir.Let) for k in kept) else None
        case ir.For(body=body):
            inner = _kept(body, reads)
            return None if inner is None or isinstance(inner, ir.Let) else stmt.replace(body=inner)
        case ir.If(then=then, otherwise=otherwise):
            some, rest = _kept(then, reads), None if otherwise is None else _kept(otherwise, reads)
            return None if some is None and rest is None else stmt.replace(then=some or ir.Seq(()), otherwise=rest)
        case ir.Let():
            return stmt
        case _:
            touched = any(b.memory == "global" and (writes or reads) for b, writes in ir.touched(stmt))
            return stmt if touched and not isinstance(stmt, ir.Prefetch) else None


def _deciding(stmt: ir.Stmt) -> Iterator[Expr]:
    """The expressions that determine a statement's addresses and whether it accesses at all: all except the values it moves."""
    for e in ir.expressions(stmt):
        if isinstance(stmt, ir.Store) and e is stmt.value:
            yield from (i for load in ir.loads(e) for i in load.indices)
        else:
            yield e


def numbers(program: ir.Program) -> dict[int, tuple[int, int]]:
    """The kernel and the index in the order of `ir.statements` of each statement, by its id."""
    found: dict[int, tuple[int, int]] = {}
    for k, kernel in enumerate(program.kernels):
        for number, stmt in enumerate(ir.statements(kernel.body)):
            found.setdefault(id(stmt), (k, number))
    return found


class _Keys:
    """A set of numbers below an end: a table of flags, or arrays of numbers if the table would be large."""

    def __init__(self, end: int) -> None:
        self._table = np.zeros(end, bool) if end <= TABLE else None
        self._parts: list[Array] = []

    def add(self, keys: Array) -> None:
        if self._table is not None:
            self._table[keys] = True
        else:
            self._parts.append(distinct(keys))

    def distinct(self) -> Array:
        """The numbers, ascending."""
        return np.flatnonzero(self._table) if self._table is not None else distinct(np.concatenate(self._parts))


class _Divisions:
    """Collects which blocks access which elements of global memory."""

    def __init__(self, program: ir.Program) -> None:
        self._program, self._numbers = program, numbers(program)
        self._seen: dict[tuple[int, ir.Buffer, bool], _Keys] = {}
        self._touches = 0

    def __call__(self, seen: Watched) -> None:
        if seen.buffer.memory != "global":
            return
        kernel, _ = self._numbers[id(seen.site.statement)]
        batch, blocks = seen.memory.batch, math.prod(seen.memory.batch.kernel.grid)
        of = kernel, seen.buffer, seen.writes
        if of not in self._seen:
            self._seen[of] = _Keys(seen.buffer.elements * blocks)
        self._seen[of].add(seen.touch.element.astype(np.int64) * blocks + batch.block[seen.touch.thread])
        self._touches += seen.touch.element.size
        if self._touches >= TOUCHES:
            raise Enough

    def result(self) -> tuple[Division, ...]:
        """The divisions of the buffers that several blocks could share."""
        found = []
        for (kernel, buffer, writes), accesses in self._seen.items():
            blocks = math.prod(self._program.kernels[kernel].grid)
            if blocks == 1:
                continue
            keys = accesses.distinct()
            element, at, counts = np.unique(keys // blocks, return_index=True, return_counts=True)
            first, number = np.full(buffer.elements, -1, np.int64), np.zeros(buffer.elements, np.int64)
            first[element], number[element] = keys[at] % blocks, counts
            found.append(Division(kernel, buffer, writes, first, number))
        return tuple(found)
