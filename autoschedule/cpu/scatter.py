"""Schedules of sums whose points data sends to a place, as in `sum[t: ids[t] == v] X[t, e]`: a scatter.

The loops over the points are outside, the loop over the places inside, where the condition leaves one iteration (`Nest.decided`).
The accumulators are in shared memory, so that data can address them. Blocks divide the other output axes or the places, of which each
block has a part; it goes over all points.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

from tilelang.autoschedule.common.task_accesses import Nest, NestAxis
from tilelang.autoschedule.cpu.device import Cores
from tilelang.schedules.steps import Place, Split, Step, Tile, Vectorize


def scatters(nest: Nest, device: Cores) -> Iterator[tuple[Step, ...]]:
    """Steps for a nest of which data selects points of an output axis; none for others."""
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


def _divided(nest: Nest, device: Cores, whole: Mapping[str, int], axis: NestAxis, unit: int) -> Iterator[dict[str, int]]:
    """Blocks that divide an axis: one for each core or more; the fewest whose accumulators fit into memory, and twice as many."""
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
