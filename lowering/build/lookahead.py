"""Looks ahead at the steps below a point without writing statements: the mapping of tiles, the shapes of register
accumulators, the innermost spec.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tilelang.core.expr import INDEX, Expr, Var, index
from tilelang.core.simplify import simplify
from tilelang.lowering.build.distribution.parallel_mapping import UnitMapping, map_tiles
from tilelang.lowering.build.frame import Build, Frame, is_move
from tilelang.lowering.build.movement.storage import Owners
from tilelang.profiles.profile import Profile
from tilelang.schedules.spec import Spec
from tilelang.schedules.steps import Do, Fuse, Place, Split, Step, Tile, Unfuse, Vectorize
from tilelang.schedules.walk import VisitedStep, refine, walk_steps


def reduced_below(frame: Frame, i: int) -> frozenset[str]:
    """The names of the reduction axes at step i, and of the axes that `fuse` and `unfuse` make from them below it."""
    return frozenset().union(frame.spec.extents.reduced, *(w.after.reduced for w in steps_below(frame, i)))


def steps_below(frame: Frame, i: int) -> Iterator[VisitedStep]:
    """The steps from step i on, with the extents before and after each one."""
    return walk_steps(frame.spec.extents, frame.steps[i:], i)


def unit_mappings_below(frame: Frame, i: int, profile: Profile) -> dict[int, tuple[Expr, int, UnitMapping]]:
    """(lane, units, mapping) of every tile below the block, by the number of its step; lane and units are those before the step."""
    units, lane = frame.spec.units or 1, frame.spec.lane
    found = {}
    for w in steps_below(frame, i):
        if isinstance(w.step, Tile) and w.step.level != "block":
            plan = map_tiles(profile, w.step, w.before, units, is_move(frame))
            found[w.number] = lane, units, plan
            units, lane = plan.per, simplify(lane % plan.per)
    return found


def slots_below(frame: Frame, i: int, profile: Profile) -> tuple[tuple[int, ...], str | None, int]:
    """The dimensions of a register accumulator: one per loop over an output axis below step i; and the vectorized axis with
    its lanes."""
    plans = unit_mappings_below(frame, i, profile)
    shape: list[int] = []
    for w in steps_below(frame, i):
        if isinstance(w.step, Vectorize) and (lanes := w.before.sizes[w.step.axis]) > 1:
            return tuple(shape), w.step.axis, lanes
        loops = w.loops.items() if isinstance(w.step, Split) else plans[w.number][2].walks if w.number in plans else ()
        shape += [n for a, n in loops if a not in w.before.reduced]
    return tuple(shape), None, 1


def is_lookahead_variable(v: Var) -> bool:
    """Whether a variable is a loop variable of the look-ahead, made by `leaf_spec`."""
    return v.name.startswith("?")


def leaf_spec(frame: Frame, i: int, profile: Profile) -> Spec:
    """The spec of the innermost statement, with a fresh variable for every loop and for the vector's lane."""
    spec = frame.spec
    plans = unit_mappings_below(frame, i, profile)
    fresh = iter(range(1 << 30))

    def variable(name: str, count: int) -> Expr:
        return Var(f"?{name}{next(fresh)}", INDEX, 0, count - 1) if count > 1 else index(0)

    for w in steps_below(frame, i):
        step = w.step
        if isinstance(step, Split):
            spec = spec.cut(w.piece, {a: variable(a, n) for a, n in w.rounds.items()})
        elif isinstance(step, Tile) and w.number in plans:
            lane, _, plan = plans[w.number]
            again = {a: variable("round", n) for a, n in plan.walks}
            spec = spec.cut(dict(plan.sizes), plan.indices(lane, again))
            spec = spec.replace(units=plan.per, lane=simplify(lane % plan.per), level=step.level)
        elif isinstance(step, Vectorize) and spec.axis(step.axis).extent > 1:
            spec = spec.cut({step.axis: 1}, {step.axis: variable("lane", spec.axis(step.axis).extent)})
        elif isinstance(step, (Fuse, Unfuse)):
            spec = refine(spec, step)
    return spec


def leaf_points(frame: Frame, profile: Profile) -> Spec:
    """The spec of one point of the innermost statement: with a fresh variable also for each axis inside an instruction's tile."""
    spec = leaf_spec(frame, 0, profile)
    inside = {a.name: Var(f"?{a.name} inside", INDEX, 0, a.extent - 1) for a in spec.axes if a.extent > 1}
    return spec.cut(dict.fromkeys(inside, 1), inside)


def ahead_in(steps: tuple[Step, ...], i: int) -> list[Place]:
    """The loads and stages directly in a loop's body that run ahead. Of two equal steps only the first does; the second finds
    its data there."""
    found: list[Place] = []
    for step in steps[i:]:
        if not isinstance(step, Place) or step.verb == "accumulate":
            break
        if step.ahead and step not in found:
            found.append(step)
    return found


def owners_of(build: Build, frame: Frame, leaf: Spec, names: Sequence[str]) -> Owners:
    """Which thread makes which element, by the steps of a frame. leaf: its innermost spec; names: the axes of the tensor's
    dimensions."""
    spec = frame.spec
    present, alone = list(spec.present), list[Expr]()
    reduced = frozenset(a.name for a in spec.axes if a.reduction)
    for lane, units, plan in unit_mappings_below(frame, 0, build.profile).values():
        present += plan.present(lane, units)
        alone += [simplify(index(0) >= digit) for digit, *_ in plan.reduced_digits(reduced, lane, units)]
    if not isinstance(frame.steps[-1] if frame.steps else None, Do) and (leaf.units or 1) > 1:
        alone.append(simplify(index(0) >= leaf.lane))
    return Owners(tuple(leaf.axis(n) for n in names), spec.units or build.threads, tuple(present), tuple(alone))
