"""Strategies and checks for property tests of kernels, for users and for this package's own tests.

    from hypothesis import given
    from tilelang import testing

    @testing.kernel_test
    @given(testing.schedules(C))
    def test_every_schedule_is_right(schedule):
        assert not testing.check_kernel(schedule, testing.arrays(schedule.computation))

`schedules`, `sizes`, `inputs` and `instructions` are Hypothesis strategies for a computation or an instruction of one's own; `cases`,
`recipes` and `device_recipes` are random computations, schedules and devices. Importing this package does not import Hypothesis.
"""

from __future__ import annotations

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
from tilelang.testing.extents import draw_sizes, resized
from tilelang.testing.family import Recipe, draw_recipe
from tilelang.testing.kernel_checks import check_kernel
from tilelang.testing.planner import draw_schedule, tiny_profile
from tilelang.testing.roles import draw_boxes, draw_roles, roles_profile
from tilelang.testing.script import read_named, schedule_text
from tilelang.testing.special import draw_inputs, special_values
from tilelang.testing.strategies import (
    cases,
    device_recipes,
    inputs,
    instructions,
    kernel_test,
    recipes,
    refusals_set_aside,
    role_cases,
    schedules,
    sizes,
)

__all__ = [
    "Case", "DeviceRecipe", "Drawn", "Expected", "Recipe", "Seeded", "Source", "arrays", "cases", "check_case", "check_determinism",
    "check_device", "check_kernel", "check_prefixes", "check_schedule", "check_simulated", "device_recipes", "draw_boxes", "draw_case",
    "draw_device", "draw_inputs", "draw_recipe", "draw_roles", "draw_schedule", "draw_sizes", "families", "inputs", "instructions",
    "kernel_test", "lowered", "lowered_here", "read_named", "recipes", "refusals_set_aside", "resized", "role_cases", "roles_profile",
    "run_on_device", "schedule_text", "schedules", "sizes", "special_values", "tiny_profile",
]  # fmt: skip


def check_case(case: Case, *, opencl: bool = False) -> list[str]:
    """All faults of a case (see `check_schedule`). Raises Refusal if its schedule is refused."""
    return check_schedule(case.schedule, case.arrays(), opencl=opencl, exactly=case.exact)
