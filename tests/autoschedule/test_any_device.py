"""Whatever is computed, on whatever device: what construction gives is accepted, fits, and is right; every estimate adds up.

Devices are shipped ones and random ones: levels, sizes, vectors and measured numbers changed, or unknown. HYPOTHESIS_PROFILE chooses
how many are drawn.
"""

from __future__ import annotations

import math
import os
import subprocess
import sys

import hypothesis
import pytest
from hypothesis import given

from tests.autoschedule.test_fill import is_filling, punched
from tilelang import testing
from tilelang.autoschedule.models import estimate_schedule
from tilelang.computations.computation import Computation
from tilelang.errors import Refusal
from tilelang.lowering import ir
from tilelang.options import Options
from tilelang.profiles.files import load_profile, shipped_profiles
from tilelang.profiles.profile import Profile
from tilelang.runtime import schedule_selection
from tilelang.schedules.schedule import Schedule
from tilelang.testing import DeviceRecipe, Recipe
from tilelang.testing.checking import LIMITS, Expected, check_simulated

FEW = max(10, hypothesis.settings().max_examples // 5)
VERIFIED = Options(verify=True)
OF_THE_DEVICE = (*LIMITS, "too-many-threads", "too-many-blocks")


def faults_of_estimate(schedule: Schedule, profile: Profile) -> list[str]:
    """What is wrong with an estimate: parts that are not times, or no sum; a bound above it, where numbers are a shipped device's: of
    others one may contradict the next."""
    found = estimate_schedule(schedule, profile)
    sound = all(math.isfinite(s) and s >= 0 for _, s in found.parts) and 0 <= found.bound < math.inf
    sound = sound and (found.bound <= found.seconds or profile not in map(load_profile, shipped_profiles()))
    if sound and math.isclose(found.seconds, sum(s for _, s in found.parts), abs_tol=1e-15):
        return []
    return [f"{found.seconds} s, bound {found.bound} s, of {found.parts}\n{schedule}"]


def faults_of_fit(program: ir.Program, profile: Profile) -> list[str]:
    """Where a program asks for more than a device has."""
    shared = profile.memory("shared").capacity_bytes
    found = []
    for kernel in program.kernels:
        if shared is not None and kernel.shared_bytes > shared:
            found.append(f"{kernel.shared_bytes} bytes of {shared}")
        if kernel.threads > profile.max_block_threads:
            found.append(f"{kernel.threads} threads of {profile.max_block_threads}")
    return found


def faults(computation: Computation, profile: Profile) -> list[str]:
    """What is wrong with what a computation gets on a device, and with the last of its other candidates."""
    plans = list(schedule_selection.constructed(computation, profile, VERIFIED))
    found = [fault for plan in plans for fault in faults_of_estimate(plan, profile)]
    expected = Expected(computation, testing.arrays(computation))
    for some in (plans, plans[-2:]):
        taken, program = schedule_selection.accepted(iter(some), profile, VERIFIED)
        found += faults_of_fit(program, profile)
        found += [f"{taken}\n{fault}" for fault in check_simulated(program, expected)]
    return found


@pytest.mark.slow
@given(testing.recipes(), testing.device_recipes())
@hypothesis.settings(max_examples=FEW)
def test_any_computation_gets_a_schedule_on_any_device(recipe: Recipe, device: DeviceRecipe) -> None:
    found = faults(recipe.build(), device.build())
    assert not found, f"{recipe}\n{device}\n" + "\n".join(found)


@pytest.mark.slow
@given(testing.recipes(), hypothesis.strategies.sampled_from(shipped_profiles()))
def test_any_computation_gets_a_schedule_on_shipped_devices(recipe: Recipe, name: str) -> None:
    found = faults(recipe.build(), DeviceRecipe(name).build())
    assert not found, f"{recipe}\n{name}\n" + "\n".join(found)


@pytest.mark.slow
@given(testing.recipes(), testing.device_recipes())
@hypothesis.settings(max_examples=FEW)
def test_candidates_are_refused_for_want_of_room_alone(recipe: Recipe, device: DeviceRecipe) -> None:
    profile = device.build()
    for plan in schedule_selection.constructed(recipe.build(), profile, VERIFIED):
        try:
            testing.lowered(plan, profile)
        except Refusal as refusal:
            assert refusal.code in OF_THE_DEVICE, f"{recipe}\n{device}\n{plan}\n{refusal}"


@given(testing.recipes(), testing.device_recipes(), hypothesis.strategies.integers(0, 1 << 30))
@hypothesis.settings(max_examples=FEW)
def test_what_is_left_open_is_filled_on_any_device(recipe: Recipe, device: DeviceRecipe, seed: int) -> None:
    computation, profile, source = recipe.build(), device.build(), testing.Seeded(seed)
    whole = source.pick(list(schedule_selection.constructed(computation, profile, VERIFIED)))
    given = Schedule(computation, punched(source, whole.steps))
    try:
        filled, program = schedule_selection.accepted(schedule_selection.constructed(given, profile, VERIFIED), profile, VERIFIED)
    except Refusal as refusal:
        assert refusal.code in OF_THE_DEVICE, f"{recipe}\n{device}\n{given}\n{refusal}"
        return
    found = check_simulated(program, Expected(computation, testing.arrays(computation)))
    assert is_filling(filled, given) and not found, f"{recipe}\n{device}\n{given}\n{filled}\n" + "\n".join(found)


RATES = ("gb_per_s", "gflops", "_per_cycle")


@given(testing.recipes(), hypothesis.strategies.sampled_from(shipped_profiles()), hypothesis.strategies.integers(0, 99))
@hypothesis.settings(max_examples=FEW)
def test_half_of_a_rate_takes_no_less_time(recipe: Recipe, name: str, number: int) -> None:
    profile = load_profile(name)
    rates = [rate for rate, _ in profile.rates if rate.endswith(RATES)]
    hypothesis.assume(rates)
    halved = testing.DeviceRecipe(name, (("scaled", {rates[number % len(rates)]: 0.5}),))
    for plan in schedule_selection.constructed(recipe.build(), profile, VERIFIED):
        before, after = (estimate_schedule(plan, p).seconds for p in (profile, halved.build()))
        assert after >= before * (1 - 1e-9), f"{recipe}\n{halved}\n{plan}"


@pytest.mark.slow
def test_schedules_are_the_same_in_every_process() -> None:
    program = """
from tilelang import planning, testing
from tilelang.options import Options
for seed in range(8):
    source = testing.Seeded(seed)
    made, profile = testing.draw_recipe(source).build(), testing.draw_device(source).build()
    print(*(s.text for s in planning.constructed(made, profile, Options())), sep="\\n")
"""
    environments = ({**os.environ, "PYTHONHASHSEED": seed} for seed in "12")
    first, second = (subprocess.check_output([sys.executable, "-c", program], env=e, text=True) for e in environments)
    assert first == second and first.count("schedule") > 8


def recipe(family: str, **arguments: object) -> Recipe:
    return Recipe(family, tuple(arguments.items()))


def device(base: str, **arguments: object) -> DeviceRecipe:
    return DeviceRecipe(base, tuple(arguments.items()))


SOFTMAX = recipe("softmax", rows=5, columns=13, dtype="float32")
PRODUCTS = recipe("two_products", m=5, n=7, k=4, p=5, dtype="int32")
ROWS = recipe(
    "reduction", kind="sum", kept=(0, 4), over=(5,), dtype="float32", value="plain", where="", steps=(), reduced_first=False
)
PRODUCT = recipe("product", m=16, n=17, k=17, dtype="float32", form="nn", bias=False, steps=(), to="", causal=False, batch=0)
NOTHING = recipe("several_outputs", rows=4, columns=0, dtype="float32", kinds=("sum", "sum"))
STENCIL = recipe("stencil", rows=11, columns=13, dtype="float8_e5m2", steps=(), fill=0)
BAG = recipe("gather", rows=16, bag=1, width=11, table=5, dtype="uint8", kind="max")
EMPTY_BAG = recipe("gather", rows=4, bag=0, width=4, table=5, dtype="float32", kind="sum")
TWO = recipe("several_outputs", rows=7, columns=16, dtype="int32", kinds=("min", "prod"))
NO_WARPS = ("kernel", "block", "thread")


@pytest.mark.parametrize(
    ("computed", "on"),
    [
        (ROWS, device("hopper")),  # nothing to compute, on lanes
        (NOTHING, device("avx2")),  # nothing to add up, and no time of a launch
        (EMPTY_BAG, device("neon")),  # results alone, which no model prices
        (SOFTMAX, device("blackwell_rtx", levels=NO_WARPS)),  # cores of which no cache is known
        (SOFTMAX, device("sapphire_rapids", vector_bytes=(1, 2))),  # no vector of a float
        (SOFTMAX, device("sapphire_rapids", registers_per_thread=16)),  # one vector register
        (PRODUCT, device("sapphire_rapids", registers_per_thread=32)),
        (SOFTMAX, device("sapphire_rapids", unknown=("cycle_ns",))),  # bounds, but no time of work
        (PRODUCTS, device("avx512", memories={"shared": {"capacity_bytes": 100}})),
        (PRODUCTS, device("avx512", memories={"shared": {"capacity_bytes": 0}})),
        (BAG, device("blackwell_rtx", warp_threads=4, max_threads=32)),  # rows of a table are not a box
        (TWO, device("rdna3", max_threads=64)),  # warps that a short row does not fill
        (SOFTMAX, device("rdna3", max_threads=64)),  # fewer threads than a block has rows elsewhere
        (STENCIL, device("avx2", max_vector_lanes=1)),  # vectors of one element
    ],
    ids=str,
)
def test_devices_that_have_little(computed: Recipe, on: DeviceRecipe) -> None:
    assert not faults(computed.build(), on.build())
    for plan in schedule_selection.constructed(computed.build(), on.build(), VERIFIED):
        testing.lowered(plan, on.build())


def test_devices_print_as_what_makes_them_again() -> None:
    drawn = testing.draw_device(testing.Seeded(3))
    again = eval(str(drawn), {"devices": testing.devices})
    assert again == drawn.build() and len(drawn.arguments) > 1
