"""How long a schedule takes, by a model of the device: counted, not tried.

Which model a device has `device_of` alone says, by its profile. Every model counts what `loops_of` reads off a schedule,
hand-written ones and constructed ones alike, and takes its rates from the profile; a rate that a profile does not have takes no time.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from typing import TYPE_CHECKING, Self

from tilelang.autoschedule.common.loop_summary import Loops, loops_of
from tilelang.autoschedule.common.lower_bound import bound
from tilelang.autoschedule.tune.prune import Pruning

if TYPE_CHECKING:
    from tilelang.autoschedule.cpu.device import Cores
    from tilelang.autoschedule.gpu.model import Lanes
    from tilelang.profiles.profile import Profile
    from tilelang.schedules.schedule import Schedule

# Rates that a calibration adds to a profile: by how much what a model counts takes longer than the other rates say.
SCALES = ("operations_scale", "moves_scale", "waiting_scale", "launch_scale")


@dataclasses.dataclass(frozen=True)
class Estimate:
    """A predicted time. parts: (what, seconds) that add up to `seconds`; bound: what no schedule of the computation can go below
    (roofline.py), 0 where that is not known."""

    seconds: float
    parts: tuple[tuple[str, float], ...]
    bound: float = 0.0

    @classmethod
    def of(cls, parts: Iterable[tuple[str, float]]) -> Self:
        """The estimate of what takes so long together; parts of one name are one."""
        found: dict[str, float] = {}
        for what, seconds in parts:
            found[what] = found.get(what, 0.0) + seconds
        return cls(sum(found.values()), tuple(found.items()))

    def above(self, bound: float) -> Self:
        """The same beside the bound of its computation."""
        return dataclasses.replace(self, bound=bound)

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
    >>> found = estimate_schedule(tl.schedule(Y).tile(i=4096).to(tl.block).vectorize(i=16), tl.load_profile("sapphire_rapids"))
    >>> found.seconds >= found.bound > 0
    True
    """
    return estimate_loops(loops_of(schedule, profile), profile).above(bound(schedule.computation, profile))


def estimate_loops(kernels: tuple[Loops, ...], profile: Profile) -> Estimate:
    """The predicted time of a program's kernels, one after another; their bound is not known."""
    from tilelang.autoschedule.cpu import device as cpu_device
    from tilelang.autoschedule.cpu import model as cpu_model
    from tilelang.autoschedule.gpu import model as gpu_model

    match device_of(profile):
        case cpu_device.Cores() as device:
            return cpu_model.estimate(kernels, device)
        case device:
            return gpu_model.estimate(kernels, device)


def device_of(profile: Profile, pruning: Pruning | None = None) -> Cores | Lanes:
    """The device of a profile, as one of the families that there are models, and constructions, for. pruning: what drops candidates."""
    from tilelang.autoschedule.cpu import device as cpu_device
    from tilelang.autoschedule.gpu import model as gpu_model

    if profile.lockstep:
        return gpu_model.Lanes(profile, pruning or Pruning())
    return cpu_device.cores_of(profile, pruning)
