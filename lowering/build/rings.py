"""What runs ahead in a walk: its ring is filled before the loop, then each round moves what a later one reads.

A ring goes on where its walk ends and a walk around it begins another round, wherever the region that is read then can be told before:
it is filled once, in front of the outermost of these walks, and its slots follow the count of all their rounds. Where it cannot go on
it drains and is filled again; `explain` says why.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from tilelang.expr import INDEX, Expr, Read, Var, index
from tilelang.lowering import ir
from tilelang.lowering.build.base import Part
from tilelang.lowering.build.cover import Region
from tilelang.lowering.build.frame import Frame, Walk
from tilelang.lowering.build.regions import Use
from tilelang.lowering.build.rounds import Rounds, elsewhere
from tilelang.simplify import simplify
from tilelang.steps import Place, Split

At = Callable[[Mapping[Var, Expr]], Frame]  # the frame inside the walk in another round


class Rings(Part):
    """Walks with loads that run ahead."""

    def walked(self, frame: Frame, step: Split, sizes: dict[str, int], indices: dict[str, Expr], variables: dict[str, Var],
               trimmed: dict[str, Expr | None]) -> Frame:  # fmt: skip
        """The frame inside a walk."""
        raise NotImplementedError

    def ring(self, frame: Frame, i: int, step: Split, sizes: dict[str, int], own: Walk, extent: Expr | None,
             ahead: list[Place]) -> ir.Stmt:  # fmt: skip
        """A walk some of whose loads run ahead."""

        def at(where: Mapping[Var, Expr]) -> Frame:
            outer = {v: e for v, e in where.items() if v is not own.var}
            indices = {a: where.get(own.var, own.var) if a == own.axis else index(0) for a in sizes}
            return self.walked(elsewhere(frame, outer), step, sizes, indices, {own.axis: own.var}, {own.axis: extent})

        places = {place: frame.steps.index(place, i + 1) for place in ahead}
        rounds = {place: self._unbroken(frame, at, k, place, own) for place, k in places.items()}
        for place, k in places.items():
            self.choose_copies(at(_variables(rounds[place], place, lambda stem: f"?{stem}")), k, place, index(0))
        for place, k in places.items():
            rounds[place].walks[0].before.extend(self._filled(at, k, place, rounds[place]))
        fetches: dict[Place, ir.Stmt] = {}
        ends: list[ir.Stmt] = []  # of the round: what waited in registers is stored
        rotations: list[ir.Stmt] = []
        for place, k in places.items():
            fetches[place], end = self._following(at, k, place, rounds[place])
            ends += end
            if place.memory == "register":
                rotations.append(self.rotate_ring(place, lambda j, r=rounds[place]: r.exists(r.number + j)))  # type: ignore[misc]
        slots = {p: simplify(rounds[p].number % (p.ahead + 1)) for p in ahead}
        body = self.ring_body(at({}).but(nest=(*frame.nest, own)), i + 1, slots, fetches)
        return ir.seq(*own.before, ir.For(own.var, own.total, ir.seq(body, *ends, *rotations), "serial", step.span))

    def _filled(self, at: At, k: int, place: Place, rounds: Rounds) -> list[ir.Stmt]:
        """The moves of the first rounds, before the loops."""
        out = []
        for j in range(place.ahead):
            slot = index(j)
            where = self._no_better_known(at, k, place, rounds, rounds.at(slot))
            frame = at(where)
            if place.memory == "register":
                move = self.register_ring(frame, k, place, j)
            else:
                move, _ = self.make_resident(frame, k, place, slot)
            lets = _named(where, rounds.at(slot), place)
            move = ir.Seq((*lets, move), place.span) if lets else move
            guard = rounds.exists(slot)
            out.append(self.issued(place, move if guard is None else ir.If(guard, move, None, place.span)))
        return out

    def _following(self, at: At, k: int, place: Place, rounds: Rounds) -> tuple[ir.Stmt, list[ir.Stmt]]:
        """What a round moves for a later one; at its beginning, and what of it is left for its end."""
        n = place.ahead
        number = rounds.number + n
        following = self._no_better_known(at, k, place, rounds, _variables(rounds, place, self.build.name))
        if place.memory == "register":
            fetch, commit = self.register_ring(at(following), k, place, n), None
        else:
            fetch, commit = self.staged_move(at(following), k, place, simplify(number % (n + 1)))
        lets = _named(following, rounds.at(number), place)
        guard = rounds.exists(number)

        def guarded(s: ir.Stmt) -> ir.Stmt:
            whole = ir.Seq((*lets, s), place.span)
            return whole if guard is None else ir.If(guard, whole, None, place.span)

        return guarded(fetch), [] if commit is None else [guarded(commit)]

    def _no_better_known(self, at: At, k: int, place: Place, rounds: Rounds, where: Mapping[Var, Expr]) -> Mapping[Var, Expr]:
        """A round as it is given, or by variables that know no more than the walks' where it has another region than the readers find.

        Through quotients, a round that begins at a multiple of the divisor reads fewer elements than others.
        """
        mine, readers = (self.region(at(x), k, place)[0].spec.axes for x in (where, {}))
        if [a.extent for a in mine] == [a.extent for a in readers]:
            return where
        names = {v: e.name if isinstance(e, Var) else self.build.name(f"{v.name}_first") for v, e in where.items()}
        return {w.var: Var(names[w.var], INDEX, 0, w.rounds - 1) for w in rounds.walks}

    # ------------------------------------------------------------ how far a ring goes on

    def _unbroken(self, frame: Frame, at: At, k: int, place: Place, own: Walk) -> Rounds:
        """The rounds over which a load's ring goes on."""
        rounds = Rounds((own,))
        if not frame.nest:
            return rounds
        here = at({})
        region, uses = self.region(here, k, place)
        for walk in reversed(frame.nest):
            reason = self._breaks(here, region, uses, rounds, walk)
            if reason is not None:
                self.build.note(f"`{place}`: drains in every round of {walk.axis}, for {reason}")
                break
            rounds = Rounds((walk, *rounds.walks))
        return rounds

    def _breaks(self, here: Frame, region: Region, uses: list[Use], rounds: Rounds, walk: Walk) -> str | None:
        """Why a ring cannot go on where a walk around its own begins another round; None: it can."""
        short = next((w for w in rounds.walks if not w.whole_until_the_end_of(walk)), None)
        if short is not None:
            return f"{short.axis} has fewer rounds in some of them"
        if any(isinstance(e, Read) for u in uses for i in u.read.indices for e in i.walk()):
            return "what it reads is found through a tensor"
        source = region.source
        if not any(r is source for r in here.residences[: walk.residences]):
            return f"what it reads is in {source.buffer.memory} memory only from that round on"
        return None


def _variables(rounds: Rounds, place: Place, name: Callable[[str], str]) -> dict[Var, Var]:
    """The variables of the walks in the round that a move is for."""
    if len(rounds.walks) == 1:
        (own,) = rounds.walks
        n = place.ahead
        return {own.var: Var(name(f"{own.var.name}_next"), INDEX, n, max(n, own.rounds - 1))}
    return {w.var: Var(name(f"{w.var.name}_next"), INDEX, 0, w.rounds - 1) for w in rounds.walks}


def _named(where: Mapping[Var, Expr], values: Mapping[Var, Expr], place: Place) -> tuple[ir.Stmt, ...]:
    """The values of the variables that stand for a round."""
    return tuple(ir.Let(name, values[v], place.span) for v, name in where.items() if isinstance(name, Var))
