"""Notes on a search: missing instructions and tiles that are too small, which make the generated schedules slower than the device."""

from __future__ import annotations

from tilelang.autoschedule.common.axes import fused
from tilelang.autoschedule.common.device_model import DeviceModel
from tilelang.autoschedule.common.matrix_units import missing
from tilelang.autoschedule.common.task_accesses import nest_of
from tilelang.computations.computation import Computation
from tilelang.computations.inlining import kept_in_memory
from tilelang.profiles.profile import Profile
from tilelang.schedules.task import plan


def notes(computation: Computation, profile: Profile, model: DeviceModel) -> tuple[str, ...]:
    """Missing instructions, and levels whose largest tile that fits is too small."""
    found = missing(computation, profile)
    for task in plan(computation, set(), kept_in_memory(computation)):
        nest = next(fused(nest_of(task)))[1]
        if nest.points and nest.reduced and len(nest.factors) > 1:
            found += model.memory_bound_levels(nest)
    return tuple(found)
