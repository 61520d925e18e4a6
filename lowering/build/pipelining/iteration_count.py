"""Numbers the iterations of nested loops consecutively, so that a pipeline continues when its inner loop ends.

A multistage buffer counts the iterations of its own loop and of the enclosing loops together, outermost first; prefetching n
ahead means n further in this count. Every loop but the outermost counts its greatest number of iterations, except at the very
end.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from typing import Any

from tilelang.core.expr import Expr, Var, index, substitute
from tilelang.core.simplify import conjunction, simplify
from tilelang.instructions.instruction import IN_ORDER_GROUP, use
from tilelang.lowering import ir
from tilelang.lowering.build.frame import Build, EnclosingLoop, Frame, Ring
from tilelang.lowering.build.movement.storage import Box, Residence
from tilelang.schedules.spec import Bound
from tilelang.schedules.steps import Do, Place


@dataclasses.dataclass(frozen=True)
class Iterations:
    """The iterations over which a multistage buffer continues: of its own loop, the last of `walks`, and of enclosing loops."""

    walks: tuple[EnclosingLoop, ...]

    @property
    def most(self) -> int:
        """The greatest number of iterations."""
        return math.prod(w.rounds for w in self.walks)

    @property
    def number(self) -> Expr:
        """The number of the current iteration."""
        total: Expr = index(0)
        for w in self.walks:
            total = total * w.rounds + w.var
        return simplify(total)

    @property
    def first(self) -> Expr:
        """The number of the first iteration."""
        return simplify(self.walks[0].first * math.prod(w.rounds for w in self.walks[1:]))

    def at(self, number: Expr) -> dict[Var, Expr]:
        """The values of the loop variables in an iteration."""
        digits, rest = list[Expr](), number
        for w in reversed(self.walks[1:]):
            digits.append(simplify(rest % w.rounds))
            rest = simplify(rest // w.rounds)
        return dict(zip((w.var for w in self.walks), (rest, *reversed(digits)), strict=True))

    def exists(self, number: Expr) -> Expr | None:
        """The condition under which an iteration with this number exists; None if it always does."""
        if all(w.whole for w in self.walks):
            return conjunction([number < self.most])
        return self.exists_at(self.at(number))

    def exists_at(self, at: Mapping[Var, Expr]) -> Expr | None:
        """The same, given the values of the loop variables."""
        outermost, inner = self.walks[0], self.walks[1:]
        conditions = [at[w.var] < simplify(substitute(w.end, at)) for w in (outermost, *(w for w in inner if not w.whole))]
        return conjunction([simplify(c) for c in conditions])


@dataclasses.dataclass(frozen=True)
class Arrival:
    """When the data of a multistage buffer in shared memory is available to a load that reads it one iteration early.

    early: while an iteration runs, the next one's data is there or being copied. pending: how many groups of copies may still be
    unfinished when the data is there (None: not copied asynchronously). awaited: the statements that wait for it themselves.
    """

    rounds: Iterations
    early: bool
    pending: int | None
    awaited: list[ir.Stmt] = dataclasses.field(default_factory=list, compare=False)


def completes_later(ring: Ring, step: Place) -> bool:
    """Whether a load is asynchronous: copied by the device, or loaded by an instruction that completes in an in-order group."""
    last = step.steps[-1] if step.steps and step.verb == "load" else None
    return ring.copied or isinstance(last, Do) and use(last.instruction).completes == IN_ORDER_GROUP


def awaits_itself(build: Build, rings: list[Ring], body: ir.Stmt) -> bool:
    """Whether all statements that read these buffers have already waited for the data in the iteration before."""
    names = {b.name for ring in rings for buffers in ring.buffers.values() for b in buffers}
    waiting = [s for name in names for s in build.arrivals[name].awaited]
    return bool(waiting) and all(any(s is w for w in waiting) for s in ir.statements(body) if _reads(s, names))


def _reads(stmt: ir.Stmt, names: set[str]) -> bool:
    """Whether the statement itself, without its children, reads a buffer with one of these names."""
    return any(not writes and b.name in names for b, writes in ir.touched(stmt))


def in_iteration(frame: Frame, at: Mapping[Var, Expr]) -> Frame:
    """The frame as it is in another iteration of the enclosing loops. Only tensors resident outside these loops are valid in it."""

    def go(e: Any) -> Any:
        return simplify(substitute(e, at))

    def begun(bounds: tuple[Bound, ...]) -> tuple[Bound, ...]:
        return tuple(b.replace(offset=go(b.offset)) for b in bounds)

    axes = tuple(a.replace(base=go(a.base), bounds=begun(a.bounds)) for a in frame.spec.axes)
    coordinates = tuple((n, go(e)) for n, e in frame.spec.coordinates)

    def moved(r: Residence) -> Residence:
        if not isinstance(r, Box):
            return r
        slot = None if r.slot is None else go(r.slot)
        return dataclasses.replace(
            r, low=tuple(map(go, r.low)), slot=slot, ends=tuple(map(begun, r.ends)), moved=tuple(map(begun, r.moved))
        )

    around = tuple((e, go(value)) for e, value in frame.around)
    spec = frame.spec.replace(axes=axes, coordinates=coordinates)
    within = tuple(map(go, frame.within))
    return frame.replace(spec=spec, within=within, residences=tuple(map(moved, frame.residences)), around=around)
