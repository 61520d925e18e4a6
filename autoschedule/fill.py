"""What stands in place of a schedule that is not given: constructed candidates, for any device, the best first."""

from __future__ import annotations

from tilelang.autoschedule import lanes
from tilelang.autoschedule.construct import Candidate, construct
from tilelang.autoschedule.cost_cores import cores_of
from tilelang.computation import Computation
from tilelang.machine import Profile


def candidates(computation: Computation, profile: Profile) -> list[Candidate]:
    """Schedules of a computation for a device, the best first; none where construction has none for such a device, or there is
    nothing to compute.

    >>> import tilelang as tl
    >>> i = tl.axes(i=1 << 20)
    >>> Y = tl.define("Y", tl.input("X", tl.float32, i)[i] * 2, i)
    >>> candidates(tl.schedule(Y).computation, tl.load_profile("pocl"))[0].schedule.steps[0].level
    'block'
    """
    if any(axis.extent == 0 for axis in computation.axes):
        return []
    if any(level.lockstep for level in profile.levels):
        return lanes.construct(computation, profile)
    return construct(computation, cores_of(profile))
