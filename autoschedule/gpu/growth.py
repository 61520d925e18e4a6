"""Grows a tile at one level: from the smallest outward, along the axis that saves the most traffic per byte of capacity.

A level is complete when the time of its memory falls below that of its arithmetic. If no tile that fits gets there, the largest
tiles that fit are kept, except those that another one beats in everything: bytes per operation, footprint, and the fill of the
last wave.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping

from tilelang.autoschedule.common.task_accesses import Nest
from tilelang.autoschedule.gpu.constants import GPU


@dataclasses.dataclass(frozen=True)
class Growth:
    """tiles: in the order in which they were found. reached: whether they pass the stop test. path: every visited tile that fits."""

    tiles: tuple[dict[str, int], ...]
    reached: bool
    path: tuple[dict[str, int], ...]


def operand_bytes(nest: Nest, tile: Mapping[str, int], reduced: Mapping[str, int]) -> int:
    """Bytes of all operands that a tile reads for these extents of the reduction."""
    return sum(r.footprint_bytes({**tile, **reduced}) for r in nest.factors)


def traffic(nest: Nest, tile: Mapping[str, int], reduced: Mapping[str, int]) -> float:
    """Bytes of all operands that all tiles read."""
    tiles = math.prod(-(-a.extent // tile[a.name]) for a in nest.spatial)
    return float(tiles * operand_bytes(nest, tile, reduced))


def intensity(nest: Nest, tile: Mapping[str, int], reduced: Mapping[str, int]) -> float:
    """Operations of a tile per byte that it reads; a multiply-add counts as two."""
    points = math.prod(tile[a.name] for a in nest.spatial) * math.prod(reduced.values())
    return sum(nest.inner.values()) * points / max(1, operand_bytes(nest, tile, reduced))


def reuse(nest: Nest, tile: Mapping[str, int], larger: Mapping[str, int], reduced: Mapping[str, int]) -> float:
    """The score of an enlargement: bytes of traffic saved per byte of footprint added."""
    saved = traffic(nest, tile, reduced) - traffic(nest, larger, reduced)
    taken = operand_bytes(nest, larger, reduced) - operand_bytes(nest, tile, reduced)
    return saved / taken if taken > 0 else saved


def grow(
    nest: Nest,
    start: Mapping[str, int],
    reduced: Mapping[str, int],
    fits: Callable[[dict[str, int]], bool],
    balance: float,
    limit: int,
    units: int = 1,
) -> Growth:
    """Grows tiles from `start` by doubling one axis at a time.

    balance: operations per byte from which on the level's memory is no longer the bottleneck. limit: the number of tiles above it
    after which growth stops. units: the units that the tiles are mapped to.
    """
    found: list[dict[str, int]] = []
    path: list[dict[str, int]] = []
    border: list[dict[str, int]] = []
    seen: set[tuple[int, ...]] = set()
    stack = [dict(start)]
    fitting: dict[tuple[int, ...], bool] = {}

    def is_fitting(tile: dict[str, int]) -> bool:
        key = tuple(tile.values())
        if key not in fitting:
            fitting[key] = fits(tile)
        return fitting[key]

    while stack and len(seen) < GPU.visited and len(found) < limit:
        tile = stack.pop()
        key = tuple(tile.values())
        if key in seen or not is_fitting(tile):
            continue
        seen.add(key)
        path.append(tile)
        if intensity(nest, tile, reduced) > balance:
            found.append(tile)
        larger = [
            {**tile, a.name: tile[a.name] * 2} for a in nest.spatial if a.name in start and tile[a.name] < a.extent
        ]  # fmt: skip
        inside = [t for t in larger if is_fitting(t)]
        if len(inside) < len(larger) or not larger:
            border.append(tile)
        stack += sorted(inside, key=lambda t: reuse(nest, tile, t, reduced))
    if found:
        return Growth(tuple(found), True, tuple(path))
    return Growth(tuple(pareto_front(nest, border, reduced, units)), False, tuple(path))


def pareto_front(nest: Nest, tiles: list[dict[str, int]], reduced: Mapping[str, int], units: int) -> list[dict[str, int]]:
    """The Pareto front of some tiles, those with the fewest bytes per operation first."""
    measured = [(_measures(nest, t, reduced, units), t) for t in tiles]
    kept = [
        (m, t) for m, t in measured
        if not any(all(x <= y for x, y in zip(n, m, strict=True)) and n != m for n, _ in measured)
    ]  # fmt: skip
    return [t for _, t in sorted(kept, key=lambda k: k[0])]


def _measures(nest: Nest, tile: Mapping[str, int], reduced: Mapping[str, int], units: int) -> tuple[float, float, float]:
    tiles = math.prod(-(-a.extent // tile[a.name]) for a in nest.spatial)
    idle = math.ceil(tiles / units) * units / tiles
    return 1 / intensity(nest, tile, reduced), float(operand_bytes(nest, tile, reduced)), idle
