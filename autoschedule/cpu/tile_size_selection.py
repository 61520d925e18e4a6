"""Closed-form tile sizes: reuse fixes the aspect ratio, the capacity fixes the volume.

After the tile size selection of PTSS (Narasimhan, Acharya, Baid, Bondhugula, ICS 2021): one number sizes all axes, and the footprint of
the tile, which grows with this number, is set equal to the capacity. New: one operand may be resident while the others stream past.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping

from tilelang.autoschedule.common.accesses import Access
from tilelang.autoschedule.common.task_accesses import Nest, NestAxis
from tilelang.autoschedule.cpu.constants import CPU


@functools.lru_cache(maxsize=1 << 8)
def reused_along(nest: Nest) -> list[tuple[int, list[NestAxis]]]:
    """Groups of axes along which the same operands are reused, innermost first, each with the number of these operands."""
    groups: dict[tuple[bool, ...], list[NestAxis]] = {}
    for axis in reversed(nest.axes):
        groups.setdefault((axis.reduction, *(axis.name not in a.axes for a in nest.accesses)), []).append(axis)
    return [(sum(same[1:]), axes) for same, axes in groups.items()]


def largest_tile(nest: Nest, piece: Mapping[str, int], room_bytes: float, resident: Access | None = None) -> Mapping[str, int]:
    """The extents of the largest tile whose operands, or whose resident operand alone, fit in `room_bytes`; at least a register tile.

    Axes that a resident operand does not have are not cut, because the other operands stream past it.
    """
    free = nest.extents if resident is None else resident.axes
    least = tuple([min(a.extent, piece.get(a.name, 1)) if a.name in free else a.extent for a in nest.axes])
    return _largest_tile(nest, least, room_bytes, resident)


@functools.lru_cache(maxsize=1 << 8)
def _largest_tile(nest: Nest, least: tuple[int, ...], room_bytes: float, resident: Access | None) -> Mapping[str, int]:
    """`largest_tile` by the least extent of each axis, so that register tiles that differ only along the other axes share a result."""
    held = nest.accesses if resident is None else [resident]
    smallest = dict(zip(nest.extents, least, strict=True))
    groups = [(reused, [(a.name, a.extent, smallest[a.name]) for a in axes]) for reused, axes in reused_along(nest)]

    def of_size(size: float) -> dict[str, int]:
        tile = {}
        for reused, axes in groups:
            left = max(1.0, size * reused)
            for axis, extent, start in axes:
                found = int(left) if left < extent else extent
                if found < start:
                    found = start
                tile[axis] = found
                left = left / found if left > found else 1.0
        return tile

    low, high, exceeds = 1.0, float(math.prod(a.extent for a in nest.axes)), False
    least_tile, most_tile = of_size(low), of_size(high)
    for _ in range(CPU.halvings):
        if least_tile == most_tile:  # and so is everything between
            break
        middle = math.sqrt(low * high)
        tile = of_size(middle)
        if tile == least_tile:  # it fits, or nothing does
            low = middle
        elif not (exceeds and tile == most_tile) and sum([a.footprint_bytes(tile) for a in held]) <= room_bytes:
            low, least_tile = middle, tile
        else:
            high, most_tile, exceeds = middle, tile, True
    return least_tile
