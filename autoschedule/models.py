"""Which model a device has, by its profile: this is the only place that knows the families of devices."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tilelang.autoschedule.common.cost import Estimate
from tilelang.autoschedule.common.loop_summary import Loops, loops_of
from tilelang.autoschedule.common.lower_bound import bound
from tilelang.autoschedule.common.prune import Pruning

if TYPE_CHECKING:
    from tilelang.autoschedule.common.device_model import DeviceModel
    from tilelang.profiles.profile import Profile
    from tilelang.schedules.schedule import Schedule


def model_of(profile: Profile, pruning: Pruning | None = None) -> DeviceModel:
    """The model of a profile's device. pruning: what drops candidates."""
    # Either family takes tens of milliseconds to import, and a process mostly needs one of them.
    if profile.lockstep:
        from tilelang.autoschedule.gpu.device import GpuDevice  # late: compiling a given schedule does not need it
        from tilelang.autoschedule.gpu.device_model import GpuModel  # late: compiling a given schedule does not need it

        return GpuModel(GpuDevice(profile, pruning or Pruning()))
    from tilelang.autoschedule.cpu.device import cpu_device  # late: compiling a given schedule does not need it
    from tilelang.autoschedule.cpu.device_model import CpuModel  # late: compiling a given schedule does not need it

    return CpuModel(cpu_device(profile, pruning))


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
    return model_of(profile).estimate(kernels)
