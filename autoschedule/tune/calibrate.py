"""Fits a model to a device: a few scale factors, by least squares on the logarithms of a dozen measured times.

The rates of a profile are measured one at a time, while nothing else runs; together they take somewhat more or less time. The
factors correct for that, one each for all operations, all moves, waiting, and launches. They are stored in the profile with the
rates.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from tilelang.autoschedule.common.cost import SCALES
from tilelang.autoschedule.common.loop_summary import Loops, loops_of
from tilelang.autoschedule.models import estimate_loops

if TYPE_CHECKING:
    import numpy as np

    from tilelang.profiles.profile import Profile
    from tilelang.schedules.schedule import Schedule

Floats: TypeAlias = "np.ndarray[Any, Any]"
TRUST = 0.3  # weight of the prior that each scale is 1: a factor of e counts like one run whose time is off by this share
STEPS = 20
STEP = 1e-3


def calibrate(profile: Profile, samples: Sequence[tuple[Schedule, float]]) -> Profile:
    """The profile with the scale factors under which its model best matches the measured seconds of some schedules."""
    import numpy as np  # late: NumPy takes long to import

    runs = [(loops_of(schedule, profile), math.log(seconds)) for schedule, seconds in samples]
    logs = np.zeros(len(SCALES))
    for _ in range(STEPS):
        off = _residuals(profile, runs, logs)
        slopes = np.array([(_residuals(profile, runs, logs + STEP * unit) - off) / STEP for unit in np.eye(len(SCALES))]).T
        change = np.linalg.lstsq(slopes, -off, rcond=None)[0]
        logs = logs + np.clip(change, -0.5, 0.5)
        if np.abs(change).max() < STEP:
            break
    return with_scales(profile, [math.exp(x) for x in logs])


def with_scales(profile: Profile, scales: Sequence[float]) -> Profile:
    """The profile with its scale factors replaced."""
    rates = {**dict(profile.rates), **dict(zip(SCALES, scales, strict=True))}
    return dataclasses.replace(profile, rates=tuple(sorted(rates.items())))


def _residuals(profile: Profile, runs: Sequence[tuple[tuple[Loops, ...], float]], logs: Floats) -> Floats:
    """log(estimate / time) of each run, then the weighted deviation of each scale factor from 1."""
    import numpy as np  # late: NumPy takes long to import

    scaled = with_scales(profile, [math.exp(x) for x in logs])
    return np.array([math.log(estimate_loops(r, scaled).seconds) - t for r, t in runs] + [TRUST * x for x in logs])
