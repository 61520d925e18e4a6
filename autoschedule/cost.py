"""How long a schedule takes, by a model of the device: counted, not tried.

Which model a device has is chosen here alone, by its profile. Every model counts what `loops_of` reads off a schedule, hand-written
ones and constructed ones alike, and takes its rates from the profile; a rate that a profile does not have takes no time.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from tilelang.autoschedule.loops import Loops, loops_of

if TYPE_CHECKING:
    from tilelang.machine import Profile
    from tilelang.schedule import Schedule

# Rates that a calibration adds to a profile: by how much what a model counts takes longer than the other rates say.
SCALES = ("operations_scale", "moves_scale", "waiting_scale", "launch_scale")


@dataclasses.dataclass(frozen=True)
class Estimate:
    """A predicted time. parts: (what, seconds) that add up to `seconds`; bound: what no schedule can go below."""

    seconds: float
    parts: tuple[tuple[str, float], ...]
    bound: float

    @property
    def bottleneck(self) -> str:
        return max(self.parts, key=lambda p: p[1])[0]

    @property
    def breakdown(self) -> str:
        """The parts that add up to the time, the longest first, each with its share."""
        whole = self.seconds or 1.0
        lines = [f"{self.seconds * 1e6:10.1f} us, no less than {self.bound * 1e6:.1f} us"]
        for what, seconds in sorted(self.parts, key=lambda p: -p[1]):
            lines.append(f"{seconds * 1e6:10.1f} us {seconds / whole:4.0%}  {what}")
        return "\n".join(lines)

    def __str__(self) -> str:
        return self.breakdown


def estimate_schedule(schedule: Schedule, profile: Profile) -> Estimate:
    """The predicted time of a schedule on a device.

    >>> import tilelang as tl
    >>> i = tl.axes(i=1 << 20)
    >>> Y = tl.define("Y", tl.input("X", tl.float32, i)[i] * 2, i)
    >>> found = estimate_schedule(tl.schedule(Y).tile(i=4096).to(tl.block).vectorize(i=16), tl.load_profile("pocl"))
    >>> found.seconds >= found.bound > 0
    True
    """
    return estimate_loops(loops_of(schedule, profile), profile)


def estimate_loops(kernels: tuple[Loops, ...], profile: Profile) -> Estimate:
    """The same of a program's kernels, one after another."""
    from tilelang.autoschedule import cost_cores, cost_lanes

    if profile.lockstep:
        return cost_lanes.estimate(kernels, cost_lanes.Lanes(profile))
    return cost_cores.estimate(kernels, cost_cores.cores_of(profile))
