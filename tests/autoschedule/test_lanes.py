"""Constructed schedules for devices whose warps run in lockstep: accepted, within the device, right."""

import pytest
from hypothesis import given

import tilelang as tl
from tests.autoschedule.test_construct import COMPUTATIONS
from tilelang.autoschedule.cost import estimate_schedule
from tilelang.autoschedule.lanes import construct
from tilelang.testing import Recipe, arrays, check_schedule, lowered, recipes

SIMULATED = tl.load_profile("simulated")
DEVICES = [n for n in tl.machine.shipped_profiles() if any(f.lockstep for f in tl.load_profile(n).levels)]


@pytest.mark.parametrize("name", COMPUTATIONS)
def test_the_first_candidates_are_right(name: str) -> None:
    computation = tl.parse(COMPUTATIONS[name]).computation()
    candidates = construct(computation, SIMULATED)
    times = [c.estimate.seconds for c in candidates]
    assert candidates and times == sorted(times)
    for candidate in candidates[:3]:
        faults = check_schedule(candidate.schedule, arrays(computation), profile=SIMULATED)
        assert not faults, f"{candidate.schedule}\n" + "\n".join(faults)


@pytest.mark.parametrize("name", COMPUTATIONS)
def test_every_candidate_is_accepted_and_fits(name: str) -> None:
    computation = tl.parse(COMPUTATIONS[name]).computation()
    for number, device in enumerate(DEVICES):
        profile = tl.load_profile(device)
        for candidate in construct(computation, profile)[number :: len(DEVICES)]:
            program = lowered(candidate.schedule, profile)
            assert program.kernels[-1].shared_bytes <= (profile.memory("shared").capacity_bytes or 0)


@given(recipes())
def test_any_computation_gets_schedules_that_are_accepted_and_right(recipe: Recipe) -> None:
    computation = recipe.build()
    candidates = construct(computation, SIMULATED)
    for candidate in candidates[:1] + candidates[-1:]:
        faults = check_schedule(candidate.schedule, arrays(computation), profile=SIMULATED)
        assert not faults, f"{candidate.schedule}\n" + "\n".join(faults)


def test_estimates_add_up_and_are_those_of_the_schedule() -> None:
    for text in COMPUTATIONS.values():
        for candidate in construct(tl.parse(text).computation(), SIMULATED)[:4]:
            found = candidate.estimate
            assert found.seconds == pytest.approx(sum(s for _, s in found.parts)) and found.seconds >= found.bound > 0
            assert estimate_schedule(candidate.schedule, SIMULATED).seconds == pytest.approx(found.seconds)
