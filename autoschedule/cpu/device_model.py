"""The device model of CPUs."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

from tilelang.autoschedule.common.axes import Fusions
from tilelang.autoschedule.common.continuations import has_blocks
from tilelang.autoschedule.common.cost import Estimate
from tilelang.autoschedule.common.device_model import Likely, Steps, TaskCandidate
from tilelang.autoschedule.common.kernel_part import Part
from tilelang.autoschedule.common.loop_summary import Loops
from tilelang.autoschedule.common.row_fusion import Rows
from tilelang.autoschedule.common.task_accesses import Nest
from tilelang.autoschedule.cpu.construct import cpu_candidates
from tilelang.autoschedule.cpu.device import CpuDevice
from tilelang.autoschedule.cpu.growth import seeds
from tilelang.autoschedule.cpu.model import estimate, least_seconds
from tilelang.autoschedule.cpu.row_blocks import by_row_blocks
from tilelang.autoschedule.cpu.row_fusion import by_rows
from tilelang.autoschedule.cpu.shared_loops import by_shared_loops
from tilelang.autoschedule.cpu.tile import CpuTile, steps
from tilelang.autoschedule.cpu.tile_fusion import by_tiles


@dataclasses.dataclass(frozen=True)
class CpuModel:
    """The DeviceModel of CPUs: cores with vectors and caches."""

    device: CpuDevice

    def estimate(self, kernels: tuple[Loops, ...]) -> Estimate:
        return estimate(kernels, self.device)

    def construct(self, nest: Nest, likely: Likely | None = None) -> Iterator[TaskCandidate]:
        return cpu_candidates(nest, self.device, likely)

    def continue_from(self, nest: Nest, fusions: Fusions, loops: Loops) -> Iterator[Steps]:
        for tile in seeds(nest, fusions, self.device):
            yield steps(nest, _within(tile, loops, nest))

    def fuse_rows(self, part: Part) -> Iterator[tuple[Rows, Steps]]:
        yield from by_rows(part, self.device)
        yield from by_shared_loops(part, self.device)
        yield from by_row_blocks(part, self.device)
        yield from by_tiles(part, self.device)

    def least(self, nest: Nest) -> float:
        return least_seconds(nest, self.device)

    def memory_bound_levels(self, nest: Nest) -> list[str]:
        return []


def _within(tile: CpuTile, loops: Loops, nest: Nest) -> CpuTile:
    """The tile without the levels that the loops have already: one block below a block; one register tile below accumulators in
    registers."""
    spatial, reduced = ({a.name: a.extent for a in axes} for axes in (nest.spatial, nest.reduced))
    states = {p.memory for p in loops.places if p.verb == "accumulate"}
    if has_blocks(loops):
        tile = dataclasses.replace(tile, block=spatial | reduced, chunk={a: min(n, reduced[a]) for a, n in tile.chunk.items()})
    if "register" in states:
        tile = dataclasses.replace(tile, piece=spatial)
    return tile
