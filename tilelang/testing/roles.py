"""Random roles for random schedules.

Loads into shared memory above the mapping to units are assigned to a role of their own. Random products are also drawn in which one
role copies the operands as TMA tiles while the warpgroups of another role multiply.
"""

from __future__ import annotations

import dataclasses
from typing import Any

from tilelang.computations import functions as F
from tilelang.computations.computation import axes, input
from tilelang.computations.define import define
from tilelang.core import dtype as dt
from tilelang.core.expr import cast
from tilelang.core.layout import layout
from tilelang.lowering.pipeline import lower
from tilelang.profiles.profile import Profile
from tilelang.schedules.schedule import Schedule, move, schedule, threads, warpgroups, warps
from tilelang.schedules.steps import Place, Step, Tile, Units
from tilelang.testing.choice import Source
from tilelang.testing.planner import WARP, tiny_profile


def roles_profile() -> Profile:
    """The tiny profile with barriers that have phases."""
    return dataclasses.replace(tiny_profile(), capabilities=("phased_barriers",))


def draw_roles(source: Source, made: Schedule) -> Schedule:
    """The schedule with some of its loads on a role; unchanged if that is impossible, or if it is refused anyway.

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


def draw_boxes(source: Source) -> Schedule:
    """A product of 16-bit floats, C = A B^T, for a device with TMA copies and warpgroup products.

    Raises Refusal.
    """
    kind, columns, teams = source.pick((dt.bfloat16, dt.float16)), source.pick((64, 128)), source.pick((1, 2))
    depth = source.pick((64, 32, 16))  # of an iteration: rows as wide as the swizzle
    m, n, k = axes(m=source.pick((64, 72, 128, 8)), n=source.pick((64, 136, 128, 8)), k=source.pick((64, 16, 200, 136)))
    A, B = input("A", kind, m, k), input("B", kind, n, k)
    product = define("C", cast(F.sum(A[m, k] * B[n, k], over=k), kind), m, n)
    swizzled, ahead = layout().swizzle(2 * depth), source.integer(0, 3)
    loaders = source.pick((warps(1), warpgroups(1))).as_role("producer")
    main = warpgroups(teams).as_role("consumer")
    stop = move().via("shared", layout=layout().swizzle(128)).do("tma_store_2d")
    pieces = move().split(n=64).via("shared", layout=layout().swizzle(128)).do("tma_store_2d")
    made = schedule(product).units(block=loaders + main if source.chance(50) else main + loaders)
    made = made.tile(m=64 * teams, n=columns).to("block", source.pick((None, 1, 2, 3)))
    made = made.accumulate("register", steps=source.pick((move(), stop if columns == 64 else pieces))).split(k=depth)
    for name in "AB":
        how = move().do("tma_load_2d") if source.chance(75) else move().vectorize(k=8)
        made = made.load(name, "shared", layout=swizzled, ahead=ahead, on="producer", steps=how)
    suffix = "" if kind == dt.bfloat16 else f"_{kind.name}"
    return made.tile(m=64).to("consumer").do(f"wgmma_m64n{columns}k16{suffix}", m="m", n="n", k="k")


def _team(count: int) -> Any:
    return warps(count // WARP) if count % WARP == 0 else threads(count)


def _is_movable(steps: tuple[Step, ...], k: int, step: Step) -> bool:
    """Whether a load in shared memory is between the blocks and their units, without a stop."""
    if not isinstance(step, Place) or (step.verb, step.memory) != ("load", "shared") or step.stream:
        return False
    above = [s.level for s in steps[:k] if isinstance(s, Tile)]
    return above == ["block"] and not any(isinstance(s, Place) for s in step.steps or ())
