"""GPUs as the autoscheduler sees them."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator

from tilelang.autoschedule.common.axes import Fusions
from tilelang.autoschedule.common.continuations import has_blocks
from tilelang.autoschedule.common.cost import Estimate
from tilelang.autoschedule.common.device_model import Likely, Steps, TaskCandidate
from tilelang.autoschedule.common.kernel_part import Part
from tilelang.autoschedule.common.loop_summary import Loops
from tilelang.autoschedule.common.lower_bound import peak
from tilelang.autoschedule.common.row_fusion import Rows
from tilelang.autoschedule.common.task_accesses import Nest
from tilelang.autoschedule.gpu import streams
from tilelang.autoschedule.gpu.constants import GPU
from tilelang.autoschedule.gpu.construct import block_front, gpu_candidates, register_tiles, shared_tiles, tiled_axes
from tilelang.autoschedule.gpu.device import GpuDevice
from tilelang.autoschedule.gpu.growth import Growth
from tilelang.autoschedule.gpu.matrix_tiles import fits
from tilelang.autoschedule.gpu.model import estimate
from tilelang.autoschedule.gpu.row_fusion import rows_by_lanes
from tilelang.autoschedule.gpu.shared_loops import by_shared_loops
from tilelang.autoschedule.gpu.tile import GpuTile, steps
from tilelang.schedules.steps import Split, Step, Tile

MOST_WALKED = 8  # tiles that a given block loops over: the largest ones
MOST_PADDED = 2  # a tile may exceed a given block's extents by this factor


@dataclasses.dataclass(frozen=True)
class GpuModel:
    """The DeviceModel of warps that run in lockstep."""

    device: GpuDevice

    def estimate(self, kernels: tuple[Loops, ...]) -> Estimate:
        return estimate(kernels, self.device)

    def construct(self, nest: Nest, likely: Likely | None = None) -> Iterator[TaskCandidate]:
        return iter(gpu_candidates(nest, self.device))

    def continue_from(self, nest: Nest, fusions: Fusions, loops: Loops) -> Iterator[Steps]:
        """Continues a prefix of a schedule: if it has blocks already, only with tiles that cover the rest of the nest, or that
        a block loops over."""
        tiles = [*shared_tiles(nest, fusions, self.device), *streams.tiles(nest, fusions, self.device)]
        if not has_blocks(loops):
            yield from map(steps, tiles)
            return
        whole = [t for t in tiles if all(n >= nest.extents[a] for a, n in t.block)]
        spatial = nest.spatial_extents  # a split reduction cannot become a loop inside a block
        inside = sorted((t for t in tiles if all(n <= spatial.get(a, 0) for a, n in t.block)), key=_size, reverse=True)
        padded = math.prod(spatial.values()) * MOST_PADDED
        yield from map(steps, [t for t in whole if _size(t) <= padded] or ([] if inside else whole))
        yield from (tuple(map(_without_blocks, steps(t))) for t in inside[:MOST_WALKED])

    def fuse_rows(self, part: Part) -> Iterator[tuple[Rows, Steps]]:
        yield from rows_by_lanes(part, self.device)
        yield from by_shared_loops(part, self.device)

    def least(self, nest: Nest) -> float:
        flops = sum(nest.inner.values()) * nest.points + sum(nest.outer.values()) * (nest.outputs if nest.reduced else 0)
        rate = peak(self.device.profile, nest.computed, nest.multiplied)
        return flops / rate * 1e-9 if rate else 0.0

    def memory_bound_levels(self, nest: Nest) -> list[str]:
        """Messages about levels at which no tile reached the balance: block tiles for matrix instructions, or register tiles."""
        device = self.device
        units = [fit for memory in ("shared", "register") for fit in fits(nest, device, memory)]
        if units:
            least = min(units, key=lambda fit: [fit.made.shape[a] for a, _ in fit.binding])
            rows, columns = (least.made.shape[a] for a, _ in least.binding[:2])
            length = GPU.round_bytes[-1] // min(r.element_bytes for r in nest.factors)
            grown = block_front(nest, device, {least.axes[0]: rows, least.axes[1]: columns}, length)
            return _memory_bound_note(nest, "blocks", "memory takes less time than matrix instructions", least.axes[:2], grown)
        axes = tiled_axes(nest)
        if len(axes) < 2:
            return []
        return _memory_bound_note(
            nest, "register tiles", "shared memory takes less time than arithmetic", axes, register_tiles(nest, device)
        )


def _size(tile: GpuTile) -> int:
    """The number of results per block."""
    return math.prod(n for _, n in tile.block)


def _without_blocks(step: Step) -> Step:
    """The step, with a loop in place of a tile mapped to blocks."""
    return Split(step.sizes) if isinstance(step, Tile) and step.level == "block" else step


def _memory_bound_note(nest: Nest, level: str, until: str, axes: tuple[str, ...], grown: Growth) -> list[str]:
    if grown.reached or not grown.tiles:
        return []
    tiles = ", ".join(" ".join(f"{a}={t[a]}" for a in axes) for t in grown.tiles)
    return [f"{nest.writes[0].name}: no {level} that fit are so large that {until}; kept are {tiles}"]
