"""Finds where a buffer is refilled: the contents of its previous filling are undefined from then on.

A stage, a slot of a circular buffer in registers, or a buffer for partial results may be filled several times in an iteration, or
at the end of one for the next. A filling is a run of consecutive statements that write a buffer and do not read it. It is
complete if it writes every element that any statement of the kernel writes, whatever guards it contains. Where a complete filling
begins, the buffer becomes undefined, so that an element which this filling omits cannot be read with its previous value.

As in lifetimes.py the rules need no statement in the IR. If a condition on an enclosing loop decides whether a filling happens,
the filling begins inside the condition. The rules do not apply to a buffer indexed by a loop around the filling, nor to circular
buffers in shared memory, whose slots lifetimes.py tracks.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from tilelang.core.expr import Expr, Var, free
from tilelang.core.layout import evaluate
from tilelang.core.simplify import conjuncts, interval
from tilelang.lowering import ir

MOST_PLACES = 1 << 18  # per statement; buffers with larger writes are not checked

Refills = Mapping[int, Mapping[int, tuple[str, ...]]]  # by id of a Seq or If and the number of a child: the buffers
Places = npt.NDArray[np.int64]
Bound = Mapping[Var, int]  # the enclosing loops, each with its maximum trip count


@dataclasses.dataclass(frozen=True, slots=True)
class _Write:
    """A statement that writes, with its enclosing loops and, as far as known, the enclosing conditions on the thread alone."""

    stmt: ir.Stmt
    loops: Bound = dataclasses.field(default_factory=dict)
    threads: tuple[Expr, ...] = ()


@dataclasses.dataclass(slots=True)
class _Filling:
    """Consecutive children of one statement, from child `first` on, that write a buffer with no read in between."""

    parent: int
    first: int
    writes: list[_Write]  # each with its loops and conditions inside the filling


def refills(kernel: ir.Kernel) -> Refills:
    """The complete fillings of a kernel."""
    found = _Fillings(kernel)
    found.visit(kernel.body, {}, frozenset())
    result: dict[int, dict[int, tuple[str, ...]]] = {}
    for name, fillings in found.all.items():
        if len(fillings) < 2:
            continue  # nothing older than the loop around it, which lifetimes.py handles
        written = found.written(name)
        if written is None:
            continue
        for filling in fillings:
            places = found.places(filling.writes)
            if places is not None and np.isin(written, places).all():
                names = result.setdefault(filling.parent, {})
                names[filling.first] = (*names.get(filling.first, ()), name)
    return result


class _Fillings:
    """The fillings of each shared or register buffer of a kernel, and all its writes."""

    def __init__(self, kernel: ir.Kernel) -> None:
        self.kernel = kernel
        self.all: dict[str, list[_Filling]] = {}
        self._writes: dict[str, list[_Write]] = {}
        self._shared = frozenset(b.name for b in kernel.shared)
        self._known: dict[int, tuple[frozenset[str], frozenset[str]]] = {}

    # ------------------------------------------------------------ fillings

    def visit(self, stmt: ir.Stmt, around: Bound, inside: frozenset[str]) -> None:
        """Finds the fillings in a statement. around: the enclosing loops. inside: buffers whose filling the statement belongs to."""
        match stmt:
            case ir.Seq(body):
                self._in_a_row(stmt, body, around, inside)
            case ir.If(then=then, otherwise=None) if not isinstance(then, ir.Seq):
                self._in_a_row(stmt, (then,), around, inside)
            case ir.For(var=var):
                self.visit(stmt.body, {**around, var: _most(stmt)}, inside)
            case _:
                for name in self._touched(stmt)[1] if not ir.parts(stmt) else ():
                    self._writes.setdefault(name, []).append(_Write(stmt, around))
                for part in ir.parts(stmt):
                    self.visit(part, around, inside)

    def _in_a_row(self, parent: ir.Stmt, body: Sequence[ir.Stmt], around: Bound, inside: frozenset[str]) -> None:
        opened: dict[str, _Filling] = {}
        for number, child in enumerate(body):
            reads, writes = self._touched(child)
            if reads or writes:
                for name in reads:
                    opened.pop(name, None)
                filled = writes - reads - inside
                if _is_conditional(child, frozenset()):
                    filled = filled & opened.keys()
                elif filled and any(w.threads for w in _writing(child, _Write(child))):
                    filled = filled & (opened.keys() | self._shared)  # each thread has its own registers
                for name in filled:
                    if name not in opened:
                        opened[name] = _Filling(id(parent), number, [])
                        self.all.setdefault(name, []).append(opened[name])
                    opened[name].writes += [w for w in _writing(child, _Write(child)) if _target(w.stmt)[0].name == name]
                self.visit(child, around, inside | filled)

    def _touched(self, stmt: ir.Stmt) -> tuple[frozenset[str], frozenset[str]]:
        """The buffers that a statement and its children read and write."""
        known = self._known.get(id(stmt))
        if known is None:
            parts = [self._touched(part) for part in ir.parts(stmt)]
            own = [(b.name, writes) for b, writes in ir.touched(stmt) if b.memory != "global" and b.role != "phases"]
            reads = frozenset(name for name, writes in own if not writes).union(*(r for r, _ in parts))
            known = reads, frozenset(name for name, writes in own if writes).union(*(w for _, w in parts))
            self._known[id(stmt)] = known
        return known

    # ------------------------------------------------------------ elements

    def written(self, name: str) -> Places | None:
        """All elements of a buffer that are ever written; None if unknown, or if it is a circular buffer whose slots are tracked."""
        buffer = next(b for b in self.kernel.buffers if b.name == name)
        return None if buffer.ring > 1 and buffer.memory == "shared" else self.places(self._writes[name])

    def places(self, writes: Sequence[_Write]) -> Places | None:
        """The elements that the statements write; None if that is unknown for one of them."""
        found = [self._elements(w) for w in writes]
        known = [f for f in found if f is not None]
        return np.unique(np.concatenate(known)) if len(known) == len(found) else None

    def _elements(self, write: _Write) -> Places | None:
        buffer, indices, lanes = _target(write.stmt)
        if lanes is None:
            return None
        values = {v: n for i in indices for v in free(i) if (n := self._extent(v, write.loops)) is not None}
        if any(v not in values for i in indices for v in free(i)) or math.prod(values.values()) * lanes > MOST_PLACES:
            return None
        extents = tuple(values.values())
        points = dict(zip(values, np.indices(extents).reshape(len(values), math.prod(extents)), strict=True))
        try:
            points = self._of_threads(points, write.threads)
            parts = [np.asarray(evaluate(i, points)) * s for i, s in zip(indices, buffer.strides, strict=True)]
        except KeyError:
            return None
        start = np.asarray(sum(parts, np.int64(0))).reshape(-1)
        elements: Places = (start[:, None] + np.arange(lanes)).reshape(-1)
        return elements[(elements >= 0) & (elements < buffer.elements)]

    def _of_threads(self, points: dict[Var, Places], conditions: Sequence[Expr]) -> dict[Var, Places]:
        """The points of the threads for which the conditions hold."""
        for condition in conditions:
            (thread,) = free(condition)
            if thread in points:
                holds = np.asarray(evaluate(condition, {thread: points[thread]}), bool)
                points = {v: p[holds] for v, p in points.items()}
        return points

    def _extent(self, var: Var, loops: Bound) -> int | None:
        return self.kernel.threads if var.name == ir.THREAD.name else loops.get(var)


_GEOMETRY = frozenset((ir.THREAD.name, *(v.name for v in ir.BLOCK)))


def _is_conditional(stmt: ir.Stmt, inside: frozenset[Var]) -> bool:
    """Whether data or an enclosing loop decides whether part of a statement executes at all. inside: the loops within the
    statement; conditions on those concern single elements."""
    if isinstance(stmt, ir.For):
        inside = inside | {stmt.var}
    if isinstance(stmt, ir.If):
        for condition in conjuncts(stmt.condition):
            variables = free(condition)
            if ir.loads(condition) or (not variables & inside and any(v.name not in _GEOMETRY for v in variables)):
                return True
    return any(_is_conditional(part, inside) for part in ir.parts(stmt))


def _most(loop: ir.For) -> int:
    return max(0, int(interval(loop.extent)[1] or 0))


def _writing(stmt: ir.Stmt, around: _Write) -> Iterator[_Write]:
    """The writing statements inside one, each with its enclosing loops and conditions."""
    match stmt:
        case ir.For(var=var):
            around = dataclasses.replace(around, loops={**around.loops, var: _most(stmt)})
        case ir.If(condition=condition, otherwise=None):
            of_threads = (c for c in conjuncts(condition) if {v.name for v in free(c)} == {ir.THREAD.name})
            around = dataclasses.replace(around, threads=(*around.threads, *of_threads))
        case ir.Store() | ir.Copy() | ir.Instruction():
            yield dataclasses.replace(around, stmt=stmt)
        case _:
            pass
    for part in ir.parts(stmt):
        yield from _writing(part, around)


def _target(stmt: ir.Stmt) -> tuple[ir.Buffer, tuple[Expr, ...], int | None]:
    """The written buffer, the first element, and the number of consecutive elements (None: not consecutive)."""
    match stmt:
        case ir.Store(buffer=buffer, indices=indices, value=value):
            return buffer, indices, ir.lanes(value)
        case ir.Copy(target=buffer, target_indices=indices, lanes=lanes):
            return buffer, indices, lanes
        case ir.Instruction(semantics, operands):
            buffer, indices = next((b, ix) for name, b, ix in operands if name == semantics.writes)
            held = semantics.fragment(semantics.writes) if buffer.memory == "register" else None
            return buffer, indices, held.slots if held is not None else None
    raise AssertionError(f"{type(stmt).__name__} writes nothing")
