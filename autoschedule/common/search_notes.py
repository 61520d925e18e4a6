"""What a search has to say of a computation on a device beside its candidates: what it had to do without."""

from __future__ import annotations

from tilelang.autoschedule.common.cost import device_of
from tilelang.autoschedule.common.matrix_units import missing
from tilelang.autoschedule.common.task_accesses import Nest, nest_of
from tilelang.autoschedule.cpu.growth import fused
from tilelang.autoschedule.gpu.constants import GPU
from tilelang.autoschedule.gpu.construct import block_front, register_tiles, tiled_axes
from tilelang.autoschedule.gpu.growth import Growth
from tilelang.autoschedule.gpu.matrix_tiles import fits
from tilelang.autoschedule.gpu.model import Lanes
from tilelang.computations.computation import Computation
from tilelang.computations.inlining import kept_in_memory
from tilelang.profiles.profile import Profile
from tilelang.schedules.task import plan


def notes(computation: Computation, profile: Profile) -> tuple[str, ...]:
    """Instructions that are not known, and levels whose growth ended at what fits."""
    found, device = missing(computation, profile), device_of(profile)
    if isinstance(device, Lanes):
        for task in plan(computation, set(), kept_in_memory(computation)):
            nest = next(fused(nest_of(task)))[1]
            if nest.points and nest.reduced and len(nest.factors) > 1:
                found += _unreached(nest, device)
    return tuple(found)


def _unreached(nest: Nest, device: Lanes) -> list[str]:
    """Where no tile hides the time of its memory: blocks of matrix instructions, or register tiles of lanes."""
    units = [fit for memory in ("shared", "register") for fit in fits(nest, device, memory)]
    if units:
        least = min(units, key=lambda fit: [fit.made.shape[a] for a, _ in fit.binding])
        rows, columns = (least.made.shape[a] for a, _ in least.binding[:2])
        length = GPU.round_bytes[-1] // min(r.element_bytes for r in nest.factors)
        grown = block_front(nest, device, {least.axes[0]: rows, least.axes[1]: columns}, length)
        return _said(nest, "blocks", "memory takes less time than matrix instructions", least.axes[:2], grown)
    axes = tiled_axes(nest)
    if len(axes) < 2:
        return []
    return _said(nest, "register tiles", "shared memory takes less time than arithmetic", axes, register_tiles(nest, device))


def _said(nest: Nest, level: str, until: str, axes: tuple[str, ...], grown: Growth) -> list[str]:
    if grown.reached or not grown.tiles:
        return []
    tiles = ", ".join(" ".join(f"{a}={t[a]}" for a in axes) for t in grown.tiles)
    return [f"{nest.writes[0].name}: no {level} that fit are so large that {until}; kept are {tiles}"]
