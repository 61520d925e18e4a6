"""Fuses chains of stencils into one kernel on CPUs (overlapped tiling).

A block computes one tile of the last definition. Each earlier definition is a stage in the core's cache, computed on the tile and on
the halo that later definitions read. Neighbouring blocks recompute the halo, but no intermediate result is written to memory.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

from tilelang.autoschedule.common.accesses import axis_of
from tilelang.autoschedule.common.axes import in_parts
from tilelang.autoschedule.common.device_model import Steps
from tilelang.autoschedule.common.kernel_part import Part
from tilelang.autoschedule.common.row_fusion import Rows
from tilelang.autoschedule.common.task_accesses import Nest, NestAxis, nest_of
from tilelang.autoschedule.cpu.constants import CPU
from tilelang.autoschedule.cpu.device import CpuDevice
from tilelang.computations.computation import Tensor
from tilelang.core.simplify import linear
from tilelang.schedules.steps import Place, Step, Tile, Vectorize

Halo = dict[str, tuple[int, int]]  # a halo: along each axis, how far a stage extends before and after the tile


def by_tiles(part: Part, device: CpuDevice) -> Iterator[tuple[Rows, Steps]]:
    """Kernels with a stage for each definition that is read at several elements for each point. None if there is no such
    definition, or if some stage is not read at constant distances."""
    placed = [t for d in part.definitions for t in d.tensors if t in part.staged]
    if not part.overlapping or part.stored:
        return
    stages, last = [nest_of(part.stage(t, placed)) for t in placed], nest_of(part.task(placed))
    around = _halos(placed, stages, last)
    axes = [a for a in last.spatial if a.extent > 1]
    if around is None or not axes:
        return
    rows = Rows(part, [a.name for a in axes], placed, stages, last)
    along, lanes = axes[-1].name, min(device.lanes, 1 << (axes[-1].extent.bit_length() - 1))
    nearest = min(c.bytes for c in device.caches) if device.caches else device.cache_bytes
    for bytes_held in (nearest // 2, int(device.room_bytes) // CPU.cache_shares[0]):
        for width in CPU.tile_widths:
            size = _largest_tile(axes, min(width, axes[-1].extent), placed, around, bytes_held, device.cores)
            if size is None:
                continue
            for stream in (False, True):
                device.pruning.keeps()
                head: list[Step] = [Tile(tuple(size.items()), "block")]
                head += [Place("via", None, "register", stream=True)] if stream else []
                vectors = (Vectorize(along, lanes),)
                yield rows, rows.steps(tuple(head), [("shared", vectors)] * len(rows.first), vectors)


def _halos(placed: list[Tensor], stages: list[Nest], last: Nest) -> list[Halo] | None:
    """The halo of each stage; None if some stage is not read at constant distances along the axes of the last task."""
    names = {a.name for a in last.axes}
    found: dict[Tensor, Halo] = {t: {} for t in placed}
    nests = dict(zip(placed, stages, strict=True))
    for reader, nest in ((None, last), *reversed(nests.items())):
        own = found[reader] if reader is not None else {}
        if nest.reduced or set(nest.extents) != names:
            return None
        for access in nest.reads:
            if access.tensor not in found:
                continue
            for dim, index in zip(access.tensor.dims, access.indices, strict=True):
                (terms, constant), axis = linear(index), dim.name
                if len(terms) != 1 or terms[0][1] != 1 or axis_of(terms[0][0]) != axis:
                    return None
                before, behind = own.get(axis, (0, 0))
                low, high = found[access.tensor].get(axis, (0, 0))
                found[access.tensor][axis] = max(low, before - constant), max(high, behind + constant)
    return [found[t] for t in placed]


def _largest_tile(
    axes: list[NestAxis], width: int, placed: list[Tensor], around: list[Halo], bytes_held: int, cores: int
) -> Mapping[str, int] | None:
    """The extents of a tile of the given width along the last axis, whose stages fit in `bytes_held`. It is as long as possible
    along the second to last axis, and has one element along the others. None if it would be shorter than the widest halo."""
    size = {a.name: 1 for a in axes} | {axes[-1].name: width}

    def held() -> int:
        return sum(
            t.dtype.bytes * math.prod(n + sum(reach.get(a, (0, 0))) for a, n in size.items())
            for t, reach in zip(placed, around, strict=True)
        )

    if len(axes) > 1:
        long, one = axes[-2], held()
        size[long.name] = 2
        each = held() - one
        most = min(1 + (bytes_held - one) // each, -(-long.extent // cores))
        widest = max(sum(reach.get(long.name, (0, 0))) for reach in around)
        if most < max(1, widest):
            return None
        size[long.name] = in_parts(long.extent, -(-long.extent // most), 1)
    return size if held() <= bytes_held else None
