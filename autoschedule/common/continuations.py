"""Steps for the open part of a schedule, generated for the extents that the steps above leave.

If a generated schedule begins with the given steps, its remaining steps are used. In addition, the remaining extents are treated as a
separate task, for which tiles are grown as usual. Steps that the schedule already has are dropped: the blocks, an accumulator, loads.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterator, Sequence

from tilelang.autoschedule.common.axes import fused
from tilelang.autoschedule.common.device_model import DeviceModel
from tilelang.autoschedule.common.loop_summary import Loops, loops_of
from tilelang.autoschedule.common.task_accesses import Nest, NestAxis
from tilelang.profiles.profile import Profile
from tilelang.schedules.schedule import Schedule
from tilelang.schedules.steps import Do, Fuse, Inline, Place, Split, Step, Tile, Unfuse, Units, Vectorize

MOST_BEGUN = 16  # generated schedules with the given prefix that are used


def continuations(
    above: Schedule, after: tuple[Step, ...], profile: Profile, model: DeviceModel, constructed: Sequence[tuple[Step, ...]]
) -> list[tuple[Step, ...]]:
    """Possible continuations of a schedule, without duplicates; the empty one comes first. after: the given steps below the
    continuation; model: of the profile's device; constructed: generated schedules of the whole computation, the best first."""
    found: dict[tuple[Step, ...], None] = {(): None}
    length = len(above.steps)
    begun = (whole[length:] for whole in constructed if whole[:length] == above.steps)
    for made in (*itertools.islice(begun, MOST_BEGUN), *_complete_continuations(above, profile, model)):
        for end in range(len(made)) if after else [len(made)]:
            found[tuple(s for s in made[:end] if not any(_has_same_effect(s, given) for given in after))] = None
    return list(found)


def _has_same_effect(step: Step, given: Step) -> bool:
    """Whether a given step has the same effect as a generated one: it cuts the same axes, or places the same tensor."""
    match step, given:
        case Tile(), Tile():
            return step.level == given.level
        case Split(sizes=sizes), Split(sizes=others):
            return dict(sizes).keys() == dict(others).keys()
        case Place(), Place():
            return (step.verb, step.what, step.memory) == (given.verb, given.what, given.memory)
        case Vectorize(axis), Vectorize(other):
            return axis == other
        case Vectorize(), Do():
            return True
        case _:
            return False


def _complete_continuations(above: Schedule, profile: Profile, model: DeviceModel) -> Iterator[tuple[Step, ...]]:
    """Complete continuations, from tiles for the extents that the schedule leaves."""
    if not above.steps:
        return
    loops = loops_of(above, profile)[-1]
    if loops.nest.points == 0 or any(isinstance(s, (Vectorize, Do)) for s in above.steps):
        return
    uncut = all(isinstance(s, (Units, Inline, Fuse, Unfuse)) for s in above.steps)
    for fusions, nest in fused(loops.nest) if uncut else [((), remaining_nest(loops))]:
        for made in model.continue_from(nest, fusions, loops):
            yield _without(made, loops, above)


def has_blocks(loops: Loops) -> bool:
    """Whether one of the loops is already mapped to blocks."""
    return any(loop.level == "block" for loop in loops.loops)


def remaining_nest(loops: Loops) -> Nest:
    """The part of a nest that remains inside all loops."""
    axes = tuple(NestAxis(a.name, min(a.extent, loops.tiles[-1][a.name]), a.reduction) for a in loops.nest.axes)
    return dataclasses.replace(loops.nest, axes=axes)


def _without(made: tuple[Step, ...], loops: Loops, above: Schedule) -> tuple[Step, ...]:
    """The steps without those that the schedule above already has."""
    placed = {(p.operand, p.memory) for p in loops.places}
    states = {p.memory for p in loops.places if p.verb == "accumulate"}
    vias = any(isinstance(s, Place) and s.verb == "via" for s in above.steps)

    def is_there(step: Step) -> bool:
        match step:
            case Tile(level="block"):
                return has_blocks(loops)
            case Place(verb="accumulate", memory=memory):
                return memory in states or "register" in states
            case Place(verb="via"):
                return vias
            case Place(verb="load", memory=memory):
                return not placed.isdisjoint({(step.what, memory), (step.what, "register")})
            case _:
                return False

    return tuple(s for s in made if not is_there(s))
