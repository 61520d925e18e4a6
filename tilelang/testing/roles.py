"""Random roles for random schedules: loads of shared memory that stand above what is given to units go to a role of their own."""

from __future__ import annotations

import dataclasses
from typing import Any

from tilelang.lowering.pipeline import lower
from tilelang.machine import Profile
from tilelang.schedule import Schedule, threads, warps
from tilelang.steps import Place, Step, Tile, Units
from tilelang.testing.choice import Source
from tilelang.testing.planner import WARP, tiny_profile


def roles_profile() -> Profile:
    """The tiny profile, of a device whose barriers have phases."""
    return dataclasses.replace(tiny_profile(), capabilities=("phased_barriers",))


def draw_roles(source: Source, made: Schedule) -> Schedule:
    """The schedule with some of its loads on a role; as it is where none can be, or it is refused anyway.

    Raises Refusal.
    """
    movable = [k for k, step in enumerate(made.steps) if _is_movable(made.steps, k, step)]
    if not movable:
        return made
    chosen = [k for k in movable if source.chance(70)] or movable[:1]
    count = lower(made.computation, made.steps, roles_profile()).kernels[-1].threads
    main = _team(count).as_role("consumer")
    loaders = [_team(source.pick((WARP, 1, 3, 2 * WARP))).as_role(f"producer_{n}") for n in range(source.pick((1, 1, 2)))]
    on = {k: source.pick(tuple(team.role for team in loaders)) for k in chosen}
    steps = tuple(s.replace(on=on[k]) if isinstance(s, Place) and k in on else s for k, s in enumerate(made.steps))
    teams = (*loaders, main) if source.chance(50) else (main, *loaders)
    kept = tuple(s for s in steps if not isinstance(s, Units))
    return Schedule(made.computation, (Units("block", teams), *kept))


def _team(count: int) -> Any:
    return warps(count // WARP) if count % WARP == 0 else threads(count)


def _is_movable(steps: tuple[Step, ...], k: int, step: Step) -> bool:
    """Whether a load in shared memory stands between the blocks and what is given to their units, without a stop on its way."""
    if not isinstance(step, Place) or (step.verb, step.memory) != ("load", "shared") or step.stream:
        return False
    above = [s.level for s in steps[:k] if isinstance(s, Tile)]
    return above == ["block"] and not any(isinstance(s, Place) for s in step.steps or ())
