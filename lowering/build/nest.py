"""Walking over the steps: spreads over units, walks, and what runs ahead in them.

Each step turns a frame into statements around the statements of the rest. Invariant: a walk whose rounds address registers keeps its
full, constant extent; every other walk is trimmed to the bounds, and to what the reduction's conditions leave, where they are the
same for all threads.
"""

from __future__ import annotations

import dataclasses
import itertools
import math

from tilelang.check import advance, later
from tilelang.expr import INDEX, Const, Expr, Var, binary, index, substitute
from tilelang.lowering import ir
from tilelang.lowering.build.accesses import depends
from tilelang.lowering.build.base import refuse
from tilelang.lowering.build.clusters import rank_of
from tilelang.lowering.build.conditions import holding, needed, rounds, stated
from tilelang.lowering.build.frame import Frame, Trim, Walk, is_move, is_thread_part
from tilelang.lowering.build.leaf import written_at
from tilelang.lowering.build.lookahead import ahead_in
from tilelang.lowering.build.rings import Rings
from tilelang.lowering.build.spreads import numbers, plan_spread, tile_numbered, units_numbered, whole_number
from tilelang.lowering.passes.unroll import MOST_STATEMENTS
from tilelang.simplify import conjunction, interval, simplify
from tilelang.spec import Bound
from tilelang.steps import Do, Fuse, Inline, Place, Split, Step, Tile, Unfuse, Units, Vectorize
from tilelang.task import reads

FOLDED_ROUNDS = 32  # a short reduction walk whose fills fold keeps its constant extent: the compiler can unroll it
WORTH_A_VERSION = 8  # points a thread has in a piece, from which on there is a version of it without the test of each


class Nest(Rings):
    """Spreads and walks."""

    def chain(self, frame: Frame, i: int) -> ir.Stmt:
        """The statements of steps i, i+1, ... and of the leaf."""
        if frame.undecided and self._decides(frame, i):
            return self._versions(frame, i)
        self.build.reach(frame, i)
        if frame.fetches and not frame.finishing and i and (here := [f for f in frame.fetches if f.within is frame.steps[i - 1]]):
            rest = frame.but(fetches=tuple(f for f in frame.fetches if f not in here))
            return ir.seq(*(self.fetched(frame, f) for f in here), self.chain(rest, i))
        if i == len(frame.steps):
            return written_at(self.leaf(frame, None), frame)
        step = frame.steps[i]
        if isinstance(step, (Tile, Split, Fuse, Unfuse, Vectorize, Do)) and step.span is not None and step.span not in frame.cuts:
            frame = frame.but(cuts=(*frame.cuts, step.span))
        match step:
            case Tile(level="block") if frame.spec.level == "cluster" or frame.move is not None and frame.move.among_blocks:
                return self.spread(frame, i, step)
            case Tile(level="cluster" | "block"):
                return self.blocks(frame, i, step)
            case Tile():
                return self.spread(frame, i, step)
            case Split():
                return self.walk(frame, i, step)
            case Fuse() | Unfuse():
                task = frame.task
                return self.chain(frame.but(spec=advance(frame.spec, step, task, {})), i + 1)
            case Place(verb="load"):
                return self.chain(frame, i + 1) if frame.finishing else self.load(frame, i, step)
            case Place(verb="compute"):
                return self.chain(frame, i + 1) if frame.finishing else self.compute(frame, i, step)
            case Place(verb="accumulate"):
                return self.chain(frame, i + 1) if frame.finishing else self.accumulate(frame, i, step)
            case Place(verb="via"):
                return self.chain(frame, i + 1) if frame.finishing else self.via(frame, i, step)
            case Vectorize() | Do():
                return written_at(self.leaf(frame, step), frame)
            case _:
                assert isinstance(step, (Units, Inline)), f"`{step}`: `check_lowered` refuses holes"
                return self.chain(frame, i + 1)

    # ------------------------------------------------------------ spreads

    def blocks(self, frame: Frame, i: int, step: Tile) -> ir.Stmt:
        """Tiles to blocks, or to clusters of them: the grid. Up to three axes get a grid dimension each; an order, a count, more
        axes or more tiles than the device takes in a dimension number them in one."""
        sizes = numbers(step)
        rounds = {a: max(1, -(-frame.spec.axis(a).extent // t)) for a, t in sizes.items()}
        empty = any(frame.spec.axis(a).extent == 0 and not frame.spec.axis(a).reduction for a in sizes)
        wide = [a for a in sizes if rounds[a] > 1]
        if self.build.grid:
            raise refuse(
                step, "blocks-twice", f"`{step}`: tiles were already mapped to blocks", "map all of them to blocks in one tile"
            )
        order = None if empty else step.order  # any order is good for no tiles
        names = list(reversed(wide)) or list(sizes)[-1:]
        apart = self.build.profile.tells_apart([rounds[a] for a in wide])
        if step.count is None and order is None and apart:
            found = dict(zip(names, self._grid([rounds[a] for a in names], step, empty), strict=True))
            indices: dict[str, Expr] = {a: found.get(a, index(0)) for a in sizes}
            return self.chain(self._entered(frame, sizes, indices, step.level), i + 1)
        total = units_numbered(order, rounds)
        count = total if step.count is None else min(int(whole_number(step, step.count)), total)
        (block,) = self._grid([count], step, empty)
        whole = count if step.level == "cluster" else -(-count // self.build.cluster) * self.build.cluster
        if count == total:
            return self.chain(self._entered(frame, sizes, tile_numbered(order, rounds, block), step.level), i + 1)
        again = self.build.variable("round", -(-total // count))
        tile = Var(self.build.name("tile"), INDEX, 0, total - 1)
        # A number of rounds, not a condition in each: barriers stand in the body, and PoCL miscompiles those under a condition.
        mine = simplify((index(total + whole - 1) - block) // whole)
        walk = Walk("block", again, again, -(-total // count), Trim(index(0), mine), "", len(frame.residences))
        entered = self._entered(frame, sizes, tile_numbered(order, rounds, tile), step.level)
        inner = self.chain(entered.but(rounds=(*frame.rounds, walk)), i + 1)
        body = ir.Seq((ir.Let(tile, again * whole + block, step.span), inner), step.span)
        return ir.For(again, mine, body, "serial", step.span)

    def _grid(self, extents: list[int], step: Tile, empty: bool) -> list[Expr]:
        """The number of a block's unit along each dimension of the grid, which gets whole clusters: some blocks may have no tile.

        Raises Refusal where the device takes fewer blocks along the first one.
        """
        n, level, profile = self.build.cluster, step.level, self.build.profile
        first = extents[0] * n if level == "cluster" else -(-extents[0] // n) * n
        most = profile.most_blocks(self.build.threads)
        if first > most and not empty:
            mend = (
                f"use larger tiles, or a fixed number of units that process several tiles each: `-> {level}"
                f" {profile.compute_units or 64}`"
            )
            message = f"`{step}` needs {first} blocks, but a grid of {profile.name} has at most {most}"
            raise refuse(step, "too-many-blocks", message, mend)
        blocks = [
            Var(f"block_{'xyz'[d]}", INDEX, 0, count - 1) if count > 1 else index(0)
            for d, count in enumerate((first, *extents[1:]))
        ]
        self.build.grid = [first, *extents[1:]]
        return [simplify(blocks[0] // n) if level == "cluster" else blocks[0], *blocks[1:]]

    def spread(self, frame: Frame, i: int, step: Tile) -> ir.Stmt:
        """Tiles to units below the block, or to blocks of a cluster: one each, or in rounds where there are more tiles than units."""
        spec, among = frame.spec, step.level == "block"
        units, lane = (self.build.cluster, rank_of(self.build)) if among else (spec.units or 1, spec.lane)
        extents = {a.name: a.extent for a in spec.axes}
        reduced = frozenset(a.name for a in spec.axes if a.reduction)
        plan = plan_spread(self.build.profile, step, extents, units, is_move(frame), reduced)
        walked = [(a, n) for a, n in plan.walks if not (frame.finishing and a in reduced)]  # else its rounds are over
        again = {a: self.build.variable(f"{a}_round", n) for a, n in walked}
        current: dict[str, Expr] = {a: again.get(a, index(0)) for a, _ in plan.walks}
        inner = self._entered(frame, dict(plan.sizes), plan.indices(lane, current), step.level)
        idle = [d for d, *_ in plan.reduced_digits(reduced, lane, units)] if frame.finishing else []
        present = spec.present if frame.finishing else (*spec.present, *plan.present(lane, units))
        if not among:
            inner = inner.but(spec=inner.spec.replace(units=plan.per, lane=simplify(lane % plan.per), present=present))
        inner = inner.but(idle=(*frame.idle, *idle))
        if again:
            rounds = [Walk(a, v, v, n, None, "", len(frame.residences)) for (a, n), v in zip(walked, again.values(), strict=True)]
            inner = inner.but(rounds=(*frame.rounds, *rounds)) if among else inner
            slots, walks = ([v for a, v in again.items() if (a in reduced) is kind] for kind in (False, True))
            inner = inner.but(slots=(*frame.slots, *slots), walks=(*frame.walks, *walks), nest=())
        body = self.chain(inner, i + 1)
        for a, n in reversed(walked):
            body = ir.For(again[a], index(n), body, "serial", step.span)
        return body

    def _entered(self, frame: Frame, sizes: dict[str, int], indices: dict[str, Expr], level: str) -> Frame:
        spec = frame.spec.cut(sizes, indices)
        if level == "block" and frame.spec.units is None:
            spec = spec.replace(units=self.build.threads, lane=self.build.thread)
        return frame.but(spec=spec.replace(level=level))

    # ------------------------------------------------------------ conditions

    def _decides(self, frame: Frame, i: int) -> bool:
        """Whether pieces are told apart here: inside the last walk that has enough to do for a thread, below its moves."""
        if frame.finishing or frame.rare or not stated(frame):
            return False
        inside = frame.steps[i:]
        if any(isinstance(s, Place) and (s.verb != "load" or s.memory != "register" or s.ahead) for s in inside):
            return False
        extents, reduced = {a.name: a.extent for a in frame.spec.axes}, {a.name for a in frame.spec.axes if a.reduction}
        lanes = next((s.lanes for s in inside if isinstance(s, Vectorize)), 1)
        units = frame.spec.units or self.build.threads
        enough = WORTH_A_VERSION * (lanes if isinstance(lanes, int) else 1) * units
        if math.prod(extents.values()) < enough:
            return False
        for s in inside:
            if isinstance(s, Split):
                extents.update(numbers(s))
                larger = any(a in reduced and t > 1 for a, t in numbers(s).items())
                if larger and math.prod(extents.values()) >= enough:
                    return False
        return True

    def _versions(self, frame: Frame, i: int) -> ir.Stmt:
        """What follows, where the reduction's conditions hold at all points of the piece and where they do not."""
        known, test = holding(frame)
        frame = frame.but(undecided=False)
        whole = frame.but(known=frame.known | known)
        if test is None:
            return self.chain(whole, i)
        plain, rest = self.chain(whole.but(nest=()), i), self.chain(frame.but(nest=()), i)
        return ir.If(test, plain, rest, getattr(frame.steps[i - 1], "span", None))

    # ------------------------------------------------------------ walks

    def walk(self, frame: Frame, i: int, step: Split) -> ir.Stmt:
        """A loop per cut axis, first axis outermost; what runs ahead is moved before its round."""
        sizes = numbers(step)
        done = {a.name for a in frame.spec.axes if a.reduction} if frame.finishing else set()  # cut, but not walked again
        loops = [a for a, t in sizes.items() if frame.spec.axis(a).extent > t and a not in done]
        variables = {a: self.build.variable(a, -(-frame.spec.axis(a).extent // sizes[a])) for a in loops}
        ahead = (
            [] if frame.finishing else [p for p in ahead_in(frame.steps, i + 1) if not self.is_cache(p) and not self.by_role(p)]
        )
        for place in ahead:
            self._check_before(frame.steps[i + 1 :], place)
        if ahead and len(loops) > 1:
            return self.chain(frame.but(steps=_by_axis(frame.steps, i, step, loops)), i)
        if ahead and not loops:
            frame = frame.but(steps=tuple(s.replace(ahead=0) if any(s is p for p in ahead) else s for s in frame.steps))
            ahead = []
        if frame.finishing and frame.store_lanes and loops == [frame.store_lanes[0]] and sizes[loops[0]] == 1:
            return self._vector_walk(frame, i, step, loops[0])
        return self._loops(frame, i, step, sizes, variables, loops, ahead)

    def _check_before(self, steps: tuple[Step, ...], place: Place) -> None:
        """What runs ahead is moved before the round's stages: none of them may make its tensor, or read it elsewhere.

        A stage that runs ahead reads what is there before the walk: what the round brings before it is of the round itself.
        """
        needed = self._read_by(place) if place.verb == "compute" else set()
        for step in itertools.takewhile(lambda s: s is not place, steps):
            if isinstance(step, Place) and step.verb == "compute":
                task = self.build.task_of(step.tensor_name)
                if place.tensor_name in {t.name for t in task.outputs} | self._read_by(step):
                    later(place, f"`ahead` below `{step}`, which computes or reads {place.tensor_name},")
                brought = {t.name for t in task.outputs}
            elif isinstance(step, Place) and step.verb == "load" and not self.is_cache(step):
                brought = {step.tensor_name}
            else:
                continue
            if brought & needed:
                later(place, f"`ahead` below `{step}`, which loads its source for one iteration only,")

    def _read_by(self, stage: Place) -> set[str]:
        """The tensors that a stage reads."""
        return {r.tensor.name for r in self.build.task_of(stage.tensor_name).reads()}

    def _loops(self, frame: Frame, i: int, step: Split, sizes: dict[str, int], variables: dict[str, Var], loops: list[str],
               ahead: list[Place]) -> ir.Stmt:  # fmt: skip
        indices: dict[str, Expr] = {a: variables.get(a, index(0)) for a in sizes}
        walks: list[Walk] = []
        begins: dict[str, list[ir.Stmt]] = {}
        outside = frame
        for a in loops:  # the conditions of an inner one know the piece of the outer ones
            trim = self._trim(outside, i, step, a, sizes[a])
            begins[a], trim = self._begun(trim, a, step)
            walks.append(self._walk_of(frame, a, sizes[a], variables[a], trim))
            outside = outside.but(spec=outside.spec.cut({a: sizes[a]}, {a: variables[a]}))
        if ahead:
            return ir.seq(*begins[loops[0]], self.ring(frame, i, step, sizes, walks[0], ahead))
        if (
            step.peel
            and len(loops) == 1
            and not self.on_roles(frame.steps[i + 1 :])
            and (peeled := self._peel(frame, i, step, sizes, walks[0]))
        ):
            written = sum(not isinstance(s, ir.Seq) for s in ir.statements(peeled))
            if written > MOST_STATEMENTS:
                raise refuse(step, "unrolled-too-long", f"`{step}` generates its body twice; with the peeled loops inside it"
                             f" this makes {written:,} statements, and the limit is {MOST_STATEMENTS:,}",
                             "remove `peel` from some of these loops")  # fmt: skip
            return ir.seq(*begins[loops[0]], peeled)
        inner = self.walked(frame, sizes, indices, walks)
        body = self.chain(inner.but(nest=() if step.peel else (*inner.nest, *walks)), i + 1)
        for w in reversed(walks):
            kind = "unroll" if step.unroll and w.trim is None else "serial"
            body = ir.seq(*begins[w.axis], w.loop(body, kind, step.span))
        return body

    def _begun(self, trim: Trim | None, axis: str, step: Split) -> tuple[list[ir.Stmt], Trim | None]:
        """A name for the first round, where it is no number."""
        if trim is None or isinstance(trim.first, Const):
            return [], trim
        low, high = interval(trim.first)
        first = Var(self.build.name(f"{axis}_first"), INDEX, low, high)
        end = simplify(substitute(trim.end, {trim.first: first}))
        return [ir.Let(first, trim.first, step.span)], dataclasses.replace(trim, first=first, end=end)

    def _walk_of(self, frame: Frame, axis: str, size: int, v: Var, trim: Trim | None) -> Walk:
        a = frame.spec.axis(axis)
        rounds = -(-a.extent // size)
        if trim is None:
            return Walk(axis, v, v, rounds, None, a.cut_key, len(frame.residences))
        trip = v if trim.first is index(0) else self.build.variable(f"{axis}_trip", rounds)
        return Walk(axis, v, trip, rounds, trim, a.cut_key, len(frame.residences))

    def walked(self, frame: Frame, sizes: dict[str, int], indices: dict[str, Expr], walks: list[Walk]) -> Frame:
        """The frame inside walks. indices: the piece along each cut axis."""
        trims = [(w.axis, w.trim) for w in walks if w.trim is not None]
        kept = [(a, b) for a, trim in trims for b in self._trimming(frame, a) if not trim.forced]
        spec = frame.spec.cut(sizes, indices, [b.key for _, b in kept])
        within = [simplify(b.offset + indices[a] * sizes[a]) < b.limit for a, b in kept]
        slots, trips = list(frame.slots), list(frame.walks)
        for w in walks:
            reduced = frame.spec.axis(w.axis).reduction
            (trips if reduced else slots).append(simplify(indices[w.axis] - w.first) if w.trip is w.var else w.trip)
        last = next(((w.axis, sizes[w.axis]) for w in reversed(walks)), frame.last_walk)
        undecided = frame.undecided or any(frame.spec.axis(w.axis).reduction and sizes[w.axis] > 1 for w in walks)
        known = frame.known.union(*(trim.known for _, trim in trims))
        return frame.but(spec=spec, slots=tuple(slots), walks=tuple(trips), last_walk=last, within=(*frame.within, *within),
                         known=known, undecided=undecided, rounds=(*frame.rounds, *walks))  # fmt: skip

    def _trim(self, frame: Frame, i: int, step: Split, axis: str, size: int) -> Trim | None:
        """The rounds that exist and that anybody needs, where they are the same for all threads and no registers are addressed.

        A reduction walk around an accumulator runs at least once, so that an empty sum is stored.
        """
        a = frame.spec.axis(axis)
        count = -(-a.extent // size)
        if self._addresses_registers(frame, a.reduction):
            return None
        bounds = self._trimming(frame, axis)
        begins, ends, known = self._conditioned(frame, i, step, axis, size)
        if not bounds and not begins and not ends:
            return None
        if a.reduction and count <= FOLDED_ROUNDS and not (begins or ends) and self.folds(frame, axis):
            return None
        first: Expr = index(0)
        end: Expr = index(count)
        for e in begins:
            first = simplify(binary("max", first, e))
        for e in [_rounds_within(b, size) for b in bounds] + ends:
            end = simplify(binary("min", end, e))
        forced = False
        if a.reduction and any(isinstance(s, Place) and s.verb == "accumulate" for s in frame.steps[i + 1 :]):
            low, _ = interval(simplify(end - first))
            forced = low is None or low < 1
        if forced:
            first = simplify(binary("min", first, index(count - 1)))
            end = simplify(binary("max", end, first + 1))
        keys = frozenset(b.key for b in bounds)
        return Trim(first, end, keys, bool(begins or ends), frozenset(() if forced else known), forced)

    def _conditioned(self, frame: Frame, i: int, step: Split, axis: str, size: int) -> tuple[list[Expr], list[Expr], list[Expr]]:
        """What the conditions of the reductions leave of a walk, as `conditions.rounds` says; nothing of one that is written out."""
        if not frame.spec.axis(axis).reduction or frame.finishing or step.unroll or any(x.extent == 0 for x in frame.spec.axes):
            return [], [], []
        moves = any(isinstance(s, Place) and s.memory == "shared" for s in frame.steps[i + 1 :])
        conditions = needed(frame, moves or frame.spec.axis(axis).extent > FOLDED_ROUNDS * size)
        return rounds(frame, axis, size, conditions) if conditions and not self._reads_registers(frame, axis) else ([], [], [])

    def _reads_registers(self, frame: Frame, axis: str) -> bool:
        """Whether a walk addresses the registers that a reduction's operand is in."""
        operands = [w for s in frame.task.states for v in s.reduce.values for w in reads(v)]
        found = [r for w in operands if depends(frame, w, frame.spec.axis(axis)) and (r := self.residence_here(frame, w))]
        return any(r.buffer.memory == "register" for r in found)

    @staticmethod
    def _trimming(frame: Frame, axis: str) -> list[Bound]:
        """The bounds that a loop over an axis can keep by itself: the same for all threads, and not to be filled beyond."""
        bounds = frame.spec.axis(axis).bounds
        return [b for b in bounds if not (b.lower or b.known or is_thread_part(b.offset) or b.key in frame.fill_keys)]

    def _addresses_registers(self, frame: Frame, reduction: bool) -> bool:
        in_state = frame.state is not None and frame.state.memory == "register"
        if frame.staged is not None or frame.target.in_registers:
            return not reduction
        return in_state and not reduction

    def _vector_walk(self, frame: Frame, i: int, step: Split, axis: str) -> ir.Stmt:
        """Finishing: the last walk along the stored axis becomes a vector of elements."""
        assert frame.store_lanes is not None
        extent, lanes = frame.spec.axis(axis).extent, frame.store_lanes[1]
        if extent % lanes:
            place = next((s for s in frame.steps if isinstance(s, Place) and s.verb == "accumulate"), step)
            raise refuse(place, "store-width", f"`{place}`: a thread owns {extent} neighbours along {axis}, but the store writes"
                         f" {lanes} at a time", f"use a width that divides {extent}, or store `via shared`",
                         f"of the {lanes} elements that begin at {axis} = {extent // lanes * lanes}, the thread owns"
                         f" {extent % lanes}")  # fmt: skip
        lane = self.build.variable("lane", lanes)
        group: Expr = self.build.variable(axis, extent // lanes) if extent > lanes else index(0)
        value = simplify(group * lanes + lane)
        spec = frame.spec.cut({axis: 1}, {axis: value})
        body = self.chain(frame.but(spec=spec, slots=(*frame.slots, value)), i + 1)
        vector = ir.For(lane, index(lanes), body, "vector", step.span)
        return ir.For(group, index(extent // lanes), vector, "serial", step.span) if isinstance(group, Var) else vector

    def _peel(self, frame: Frame, i: int, step: Split, sizes: dict[str, int], walk: Walk) -> ir.Stmt | None:
        """A main loop over whole pieces without their bounds, then the last, partial one; in a move, then all that it fills."""
        axis, v, size = walk.axis, walk.var, sizes[walk.axis]
        a = frame.spec.axis(axis)
        bounds = [b for b in a.bounds if not (b.lower or b.known or is_thread_part(b.offset))]
        if a.extent % size:
            bounds.append(Bound("peel", index(0), a.extent))
        if not bounds or self._addresses_registers(frame, a.reduction):
            return None
        whole: Expr = index(a.extent // size)
        for b in bounds:
            whole = binary("min", whole, binary("max", (index(b.limit) - b.offset) // size, index(0)))
        whole = simplify(whole)
        keys = {*(b.key for b in bounds), walk.makes}
        piece = Var(v.name, INDEX, 0, max(0, a.extent // size - 1))  # whole pieces only
        indices: dict[str, Expr] = {n: piece if n == axis else index(0) for n in sizes}
        frame = frame.but(nest=())  # two versions of what stands inside
        trim = walk.trim
        needs: list[Expr] = []
        main = partial = Trim(index(0), whole, forced=True)
        if trim is not None and trim.conditioned:
            needs = [whole < trim.end, trim.first <= whole]
            main, partial = (Trim(trim.first, simplify(e), forced=True) for e in (binary("min", whole, trim.end), trim.end))
        pieces = dataclasses.replace(walk, var=piece, trip=piece if walk.trip is v else walk.trip, trim=main)
        inner = self.walked(frame, sizes, indices, [pieces])
        kept = tuple(
            x.replace(bounds=tuple(b.replace(known=True) if b.key in keys else b for b in x.bounds)) if x.name == axis else x
            for x in inner.spec.axes
        )
        within = [simplify(b.offset + piece * size + (size - 1)) < b.limit for b in bounds]
        inner = inner.but(spec=inner.spec.replace(axes=kept), within=(*frame.within, *within))
        most = pieces.loop(self.chain(inner, i + 1), "serial", step.span)
        last = Var(self.build.name(v.name), INDEX, 0, v.upper)
        remainder: Expr = index(a.extent)
        for b in bounds:
            if b.key not in frame.fill_keys:
                remainder = binary("min", remainder, index(b.limit) - b.offset)
        filled = not keys.isdisjoint(frame.fill_keys)
        trip = Var(self.build.name(v.name), INDEX, 0, v.upper) if filled else last
        if filled:
            partial = Trim(whole, simplify((remainder + (size - 1)) // size))
        end = dataclasses.replace(walk, var=last, trip=trip, trim=partial, before=[])
        rest = self.walked(frame, sizes, {n: last if n == axis else index(0) for n in sizes}, [end])
        if filled:
            return ir.seq(most, end.loop(self.chain(rest.but(rare=True), i + 1), "serial", step.span))
        guard, round = conjunction([whole * size < remainder, *needs]), whole
        if (
            guard is not None and trim is not None and trim.forced
        ):  # where no round was whole, this one is the one there always is
            guard, round = simplify(binary("or", guard, whole <= trim.first)), simplify(binary("max", whole, trim.first))
        tail = ir.Seq((ir.Let(last, round, step.span), self.chain(rest.but(rare=True), i + 1)), step.span)
        return ir.seq(most, tail if guard is None else ir.If(guard, tail, None, step.span))


def _by_axis(steps: tuple[Step, ...], i: int, step: Split, loops: list[str]) -> tuple[Step, ...]:
    """The steps with a walk over several axes as one walk each: what runs ahead does so in the innermost, on over those around it."""
    outer, sizes = loops[:-1], dict(step.sizes)
    rest = tuple((a, t) for a, t in step.sizes if a not in outer)
    nested = [step.replace(sizes=((a, sizes[a]),), peel=False) for a in outer]
    return (*steps[:i], *nested, step.replace(sizes=rest), *steps[i + 1 :])


def _rounds_within(b: Bound, size: int) -> Expr:
    return simplify((index(b.limit) - b.offset + (size - 1)) // size)
