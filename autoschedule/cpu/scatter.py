"""Schedules for scatters: sums in which data determines the element that a point updates, as in `sum[t: ids[t] == v] X[t, e]`.

The loops over the points are outside. The loop over the selected output elements is inside, where the condition leaves one iteration
(`Nest.decided`). The accumulators are in shared memory, so that they can be indexed by data. Blocks divide the other output axes, or
the output elements; each block visits all points.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

from tilelang.autoschedule.common.task_accesses import Nest, NestAxis
from tilelang.autoschedule.cpu.device import CpuDevice
from tilelang.schedules.steps import Place, Split, Step, Tile, Vectorize


def scatters(nest: Nest, device: CpuDevice) -> Iterator[tuple[Step, ...]]:
    """Steps for a nest in which data selects points of an output axis; nothing for other nests."""
    placed = [a for a in nest.wide if a.name in nest.decided]
    if not placed or not nest.points:
        return
    others = [a for a in nest.wide if a.name not in nest.decided]
    vector = others[-1] if others else None
    lanes = 1 << min(device.lanes, vector.extent).bit_length() - 1 if vector is not None else 1
    for narrow in (False, True) if others else (False,):
        whole = {**nest.spatial_extents, **({a.name: lanes if a is vector else 1 for a in others} if narrow else {})}
        for axis in placed if narrow else [*others, *placed]:
            for tile in _divided(nest, device, whole, axis, lanes if axis is vector else 1):
                yield _steps(nest, tile, placed, others, lanes)


def _divided(nest: Nest, device: CpuDevice, whole: Mapping[str, int], axis: NestAxis, unit: int) -> Iterator[dict[str, int]]:
    """Tiles that divide an axis among blocks: at least one block per core; the fewest whose accumulators fit in memory, and twice as
    many."""
    blocks, found = device.cores, 0
    while found < 2 and blocks < 2 * axis.extent:
        tile = {**whole, axis.name: min(axis.extent, -(-axis.extent // blocks // unit) * unit)}
        if math.prod(tile.values()) * nest.state_bytes <= device.shared_bytes:
            yield tile
            found += 1
        blocks *= 2


def _steps(nest: Nest, tile: Mapping[str, int], placed: list[NestAxis], others: list[NestAxis], lanes: int) -> tuple[Step, ...]:
    blocks = tuple((a, n) for a, n in tile.items() if n < nest.extents[a])
    made: list[Step] = [Tile(blocks, "block")] if blocks else []
    made += [Place("accumulate", None, "shared"), Split(tuple((a.name, 1) for a in nest.reduced))]
    made.append(Split(tuple((a.name, 1) for a in placed)))
    if lanes > 1:
        made.append(Vectorize(others[-1].name, lanes))
    return tuple(made)
