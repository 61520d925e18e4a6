"""The aspect that calibrates the model: on a device that is made up, its scalars are found again."""

import dataclasses
import math
from collections.abc import Mapping
from typing import Any

import pytest

from tests.autoschedule.profile.benches import Compiling
from tilelang.autoschedule.common.complete import candidates
from tilelang.autoschedule.common.cost import SCALES
from tilelang.autoschedule.models import estimate_schedule
from tilelang.autoschedule.profile.aspects import model
from tilelang.autoschedule.profile.findings import Findings
from tilelang.autoschedule.profile.sampling import Run
from tilelang.autoschedule.tune.calibrate import with_scales
from tilelang.profiles.files import load_profile
from tilelang.profiles.profile import Profile
from tilelang.schedules.schedule import Schedule

POCL = load_profile("sapphire_rapids")
TRUE = (1.5, 1.2, 0.8, 0.5)


class Modelled(Compiling):
    """A device whose schedules take what the model says of it, some parts of it longer than its profile knows."""

    real: Profile = POCL

    def of_schedule(self, schedule: Schedule, data: Mapping[str, Any] | None = None) -> Run:
        seconds = estimate_schedule(schedule, with_scales(self.real, TRUE)).seconds
        return lambda rounds: rounds * seconds

    def waited(self, run: Run) -> Run:
        return run


def test_scalars_of_a_device_are_found_by_a_dozen_schedules() -> None:
    found = Findings(dict(POCL.rates), repeats=2)
    model.model(Modelled(POCL, "opencl", False), found)
    assert len(found.rows) == 12 and list(found.rates) == list(SCALES)
    assert [value for value, _ in found.rates.values()] == pytest.approx(TRUE, rel=0.25)


def test_the_model_is_fitted_with_all_that_was_measured_before() -> None:
    """The device moves a third of what its shipped profile says; its curves and rates were measured."""
    curves = tuple(
        dataclasses.replace(c, points=tuple((x, y / 3) for x, y in c.points)) if c.y == "gb_per_s" else c for c in POCL.curves
    )
    rates = tuple((name, value / 3 if name.endswith("gb_per_s") else value) for name, value in POCL.rates)
    bench, found = Modelled(POCL, "opencl", False), list[Findings]()
    bench.real = dataclasses.replace(POCL, curves=curves, rates=rates)
    for known in (bench.real, None):
        found.append(Findings(dict(rates), repeats=2, so_far=known))
        model.model(bench, found[-1])
    right, wrong = ([value for value, _ in f.rates.values()] for f in found)
    assert right == pytest.approx(TRUE, rel=0.25) and wrong != pytest.approx(TRUE, rel=0.25)


@pytest.mark.parametrize("name", ["volta", "h200", "cdna3", "mali_g76"])
def test_scalars_of_a_device_whose_threads_run_together_are_found_too(name: str) -> None:
    """Those that its times lean on: with them, the model says what its schedules take, and without them it does not."""
    bench = Modelled(load_profile(name), "cuda", False)
    bench.real, found = bench.profile, Findings(dict(bench.profile.rates), repeats=2)
    model.model(bench, found)
    assert len(found.rows) >= 10 and list(found.rates) == list(SCALES)
    fitted = with_scales(bench.profile, [value for value, _ in found.rates.values()])

    def off(profile: Profile) -> list[float]:
        every = [c.schedule for made in model.computations(2) for c in candidates(made, profile)[:4]]
        truth = with_scales(bench.profile, TRUE)
        return [abs(math.log(estimate_schedule(s, profile).seconds / estimate_schedule(s, truth).seconds)) for s in every]

    assert max(off(fitted)) < 0.2 < max(off(bench.profile))
