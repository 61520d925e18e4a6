"""Random computations and valid schedules for tests, and checks of them: for this package's own tests and for users' alike.

    from hypothesis import given
    from tilelang import testing

    @given(testing.cases())
    def test_everything_accepted_is_right(case):
        assert not testing.check_case(case)

`cases`, `recipes`, `device_recipes` and `schedules` are Hypothesis strategies; importing this package does not import Hypothesis.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

from tilelang.computation import Computation
from tilelang.errors import Refusal
from tilelang.machine import Profile
from tilelang.schedule import Schedule
from tilelang.testing import families
from tilelang.testing.case import Case, arrays, draw_case
from tilelang.testing.checking import (
    Expected,
    check_determinism,
    check_device,
    check_prefixes,
    check_schedule,
    check_simulated,
    lowered,
    lowered_here,
    run_on_device,
)
from tilelang.testing.choice import Drawn, Seeded, Source
from tilelang.testing.devices import DeviceRecipe, draw_device
from tilelang.testing.family import Recipe, draw_recipe
from tilelang.testing.planner import draw_schedule, tiny_profile
from tilelang.testing.roles import draw_boxes, draw_roles, roles_profile
from tilelang.testing.script import read_named, schedule_text

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

__all__ = [
    "Case", "DeviceRecipe", "Drawn", "Expected", "Recipe", "Seeded", "Source", "arrays", "cases", "check_case", "check_determinism",
    "check_device", "check_prefixes", "check_schedule", "check_simulated", "device_recipes", "draw_boxes", "draw_case", "draw_device",
    "draw_recipe", "draw_roles", "draw_schedule", "families", "lowered", "lowered_here", "read_named", "recipes", "role_cases",
    "roles_profile", "run_on_device", "schedule_text", "schedules", "tiny_profile",
]  # fmt: skip


def recipes(*families: str) -> SearchStrategy[Recipe]:
    """Computations, as recipes: `recipe.build()`. families: names of `testing.families`, none for all."""
    found: SearchStrategy[Recipe] = _composite(lambda source: draw_recipe(source, families))
    return found


def device_recipes(*names: str) -> SearchStrategy[DeviceRecipe]:
    """Devices, as recipes: `recipe.build()`, a profile. names: of the shipped profiles they are made from, none for all."""
    found: SearchStrategy[DeviceRecipe] = _composite(lambda source: draw_device(source, names))
    return found


def schedules(computation: Computation, profile: Profile | None = None) -> SearchStrategy[Schedule]:
    """Schedules for a computation, most of which are accepted; profile: the device they are made for."""
    found: SearchStrategy[Schedule] = _composite(lambda source: draw_schedule(source, computation, profile))
    return found


def cases(*families: str, profile: Profile | None = None) -> SearchStrategy[Case]:
    """A computation, a schedule and data."""
    found: SearchStrategy[Case] = _composite(lambda source: draw_case(source, families, profile))
    return found


def role_cases(*families: str) -> SearchStrategy[Case]:
    """Cases with loads on a role where the schedule has a place for one, for the profile `roles_profile()`."""

    def draw(source: Source) -> Case:
        case = draw_case(source, families, roles_profile())
        return dataclasses.replace(case, schedule=draw_roles(source, case.schedule))

    found: SearchStrategy[Case] = _composite(draw)
    return found


def check_case(case: Case, *, opencl: bool = False) -> list[str]:
    """All that is wrong with a case (see `check_schedule`). Raises Refusal where its schedule is not accepted."""
    return check_schedule(case.schedule, case.arrays(), opencl=opencl, exactly=case.exact)


def _composite(make: Any) -> Any:
    from hypothesis import reject, strategies

    def made(draw: Any) -> Any:
        try:
            return make(Drawn(draw))
        except Refusal:  # a step that contradicts its spec is refused as it is written
            reject()

    return strategies.composite(made)()
