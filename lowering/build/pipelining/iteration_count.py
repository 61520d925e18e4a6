"""Counts the iterations of nested loops as one, so that a pipeline continues when its inner loop ends.

A multistage buffer counts the iterations of its own loop and of the loops around it, outermost first; the iteration n ahead is the n-th
successor in this count. Every loop inside the outermost counts its greatest number of iterations, except at the very end.
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
from tilelang.lowering.build.frame import Build, Frame, Ring, Walk
from tilelang.lowering.build.movement.storage import Box, Residence
from tilelang.schedules.spec import Bound
from tilelang.schedules.steps import Do, Place


@dataclasses.dataclass(frozen=True)
class Rounds:
    """The rounds over which a ring goes on: of its own walk, the last of `walks`, and of those around it."""

    walks: tuple[Walk, ...]

    @property
    def most(self) -> int:
        """How many there can be."""
        return math.prod(w.rounds for w in self.walks)

    @property
    def number(self) -> Expr:
        """The current round."""
        total: Expr = index(0)
        for w in self.walks:
            total = total * w.rounds + w.var
        return simplify(total)

    @property
    def first(self) -> Expr:
        """The first round."""
        return simplify(self.walks[0].first * math.prod(w.rounds for w in self.walks[1:]))

    def at(self, number: Expr) -> dict[Var, Expr]:
        """The variables of the walks in a round."""
        digits, rest = list[Expr](), number
        for w in reversed(self.walks[1:]):
            digits.append(simplify(rest % w.rounds))
            rest = simplify(rest // w.rounds)
        return dict(zip((w.var for w in self.walks), (rest, *reversed(digits)), strict=True))

    def exists(self, number: Expr) -> Expr | None:
        """The condition under which there is a round of that number; None: there is."""
        if all(w.whole for w in self.walks):
            return conjunction([number < self.most])
        return self.exists_at(self.at(number))

    def exists_at(self, at: Mapping[Var, Expr]) -> Expr | None:
        """The same, by the variables of the walks."""
        outermost, inner = self.walks[0], self.walks[1:]
        conditions = [at[w.var] < simplify(substitute(w.end, at)) for w in (outermost, *(w for w in inner if not w.whole))]
        return conjunction([simplify(c) for c in conditions])


@dataclasses.dataclass(frozen=True)
class Arrival:
    """When the regions of a ring in shared memory are there, for what reads them a round before their own.

    early: the next round's is there, or on its way, while a round runs. pending: how many groups of copies may be unfinished once it is
    (None: it is not copied asynchronously). awaited: the statements that see to that themselves.
    """

    rounds: Rounds
    early: bool
    pending: int | None
    awaited: list[ir.Stmt] = dataclasses.field(default_factory=list, compare=False)


def completes_later(ring: Ring, step: Place) -> bool:
    """Whether a load is copied asynchronously: as the device can, or by an instruction that completes with an in-order group."""
    last = step.steps[-1] if step.steps and step.verb == "load" else None
    return ring.copied or isinstance(last, Do) and use(last.instruction).completes == IN_ORDER_GROUP


def awaits_itself(build: Build, rings: list[Ring], body: ir.Stmt) -> bool:
    """Whether whatever reads the rings of these loads in a round has waited for them in the round before."""
    names = {b.name for ring in rings for buffers in ring.buffers.values() for b in buffers}
    waiting = [s for name in names for s in build.arrivals[name].awaited]
    return bool(waiting) and all(any(s is w for w in waiting) for s in ir.statements(body) if _reads(s, names))


def _reads(stmt: ir.Stmt, names: set[str]) -> bool:
    """Whether one statement itself reads one of the buffers of these names."""
    return any(not writes and b.name in names for b, writes in ir.touched(stmt))


def elsewhere(frame: Frame, at: Mapping[Var, Expr]) -> Frame:
    """A frame as it is in another round of the walks around it. Of what is resident, only what is outside them can be relied on."""

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
    return frame.but(spec=spec, within=within, residences=tuple(map(moved, frame.residences)), around=around)
