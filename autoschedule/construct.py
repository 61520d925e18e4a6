"""Schedules by construction: tiles grown from the innermost level outward, for devices whose blocks are tasks of cores with vectors.

No operator is known here. What to fuse, which axis is the vectors', what is packed and how large each tile is follow from the boxes
and strides of a nest's accesses and the numbers of the device; the model says which of the tiles that remain come first.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator
from typing import Any

from tilelang.autoschedule.cost import Estimate
from tilelang.autoschedule.cost_cores import Cores, estimate, leaf_cycles
from tilelang.autoschedule.loops import Loops, loops_of, read_steps
from tilelang.autoschedule.nest import Nest, nest_of
from tilelang.autoschedule.rtile import RTile, steps
from tilelang.computation import Computation
from tilelang.schedule import Schedule
from tilelang.task import plan

Fusions = tuple[tuple[str, tuple[str, ...]], ...]


@dataclasses.dataclass(frozen=True, eq=False)
class Candidate:
    schedule: Schedule
    estimate: Estimate
    tile: RTile


def construct(computation: Computation, device: Cores) -> list[Candidate]:
    """Candidates for a computation, the best first."""
    task = plan(computation, set())[-1]
    found: dict[tuple[Any, ...], Candidate] = {}
    for fusions, nest in fused(nest_of(task)):
        for seed in tiles(nest, fusions, device):
            _climb(_Search(computation, nest, device, found), seed)
    return sorted(found.values(), key=lambda c: c.estimate.seconds)


class _Search:
    """Estimates tiles of one nest, each once."""

    def __init__(self, computation: Computation, nest: Nest, device: Cores, found: dict[tuple[Any, ...], Candidate]) -> None:
        self.computation, self.nest, self.device, self.found = computation, nest, device, found

    def estimate(self, tile: RTile) -> Candidate | None:
        made = steps(self.nest, tile)
        candidate = self.found.get(made)
        if candidate is None:
            schedule = Schedule(self.computation, made)
            loops = loops_of(schedule)
            if shared_bytes(loops[-1]) > self.device.cache_bytes:
                return None
            candidate = self.found[made] = Candidate(schedule, estimate(loops, self.device), tile)
        return candidate


def shared_bytes(loops: Loops) -> int:
    """What a block keeps in shared memory."""
    total = sum(p.box_bytes for p in loops.places if p.memory == "shared" and p.access is not None)
    states = [p.tile for p in loops.places if p.memory == "shared" and p.access is None]
    return total + sum(4 * math.prod(tile[a.name] for a in loops.nest.spatial) for tile in states)


def _climb(search: _Search, seed: RTile) -> None:
    """From a seed to the next better of its neighbours, one level and axis at a time, until none is better."""
    best = search.estimate(seed)
    while True:
        near = [c for t in neighbours(search.nest, seed) if (c := search.estimate(t)) is not None]
        better = min(near, key=lambda c: c.estimate.seconds, default=None)
        if better is None or (best is not None and better.estimate.seconds >= best.estimate.seconds * 0.999):
            return
        best, seed = better, better.tile


def in_parts(extent: int, parts: int, piece: int) -> int:
    """The extent of one of so many equal parts, in whole pieces.

    >>> in_parts(1000, 3, 48)
    336
    """
    return math.ceil(math.ceil(extent / parts) / piece) * piece


def neighbours(nest: Nest, tile: RTile) -> Iterator[RTile]:
    """The tile with one extent of its block, or of its chunk, one step smaller or larger."""
    for a in nest.spatial:
        p, now = tile.piece[a.name], tile.block[a.name]
        parts = -(-a.extent // now)
        for other in {parts * 2, -(-parts * 3 // 2), parts - 1, parts // 2}:
            if other >= 1:
                size = in_parts(a.extent, other, p)
                if size != now:
                    yield dataclasses.replace(tile, block={**tile.block, a.name: size})
    for a in nest.reduced:
        now = tile.chunk[a.name]
        parts = -(-a.extent // now)
        for other in {parts * 2, parts - 1, parts // 2}:
            size = -(-a.extent // other) if other >= 1 else 0
            if size not in (0, now) and size >= min(16, a.extent):
                yield dataclasses.replace(tile, chunk={**tile.chunk, a.name: size})


# ---------------------------------------------------------------- fused axes


def fused(nest: Nest) -> Iterator[tuple[Fusions, Nest]]:
    """The nest with every fusion that costs nothing; and, where windows are left, with all neighbours of one kind fused."""
    free, made = _fuse_all(nest, free_only=True)
    yield free, made
    every, whole = _fuse_all(nest, free_only=False)
    if len(whole.axes) < len(made.axes):
        yield every, whole


def _fuse_all(nest: Nest, free_only: bool) -> tuple[Fusions, Nest]:
    fusions: list[tuple[str, tuple[str, ...]]] = []
    for kind in (False, True):
        group: list[str] = []
        for axis in [*(a for a in nest.axes if a.reduction == kind), None]:
            together = axis is not None and group and _may_fuse(nest, group[-1], axis.name, free_only)
            if axis is not None and (not group or together):
                group.append(axis.name)
                continue
            if len(group) > 1:
                fusions.append(("_".join(group), tuple(group)))
            group = [axis.name] if axis is not None else []
    for name, parts in fusions:
        nest = nest.fuse(name, parts)
    return tuple(fusions), nest


def _may_fuse(nest: Nest, outer: str, inner: str, free_only: bool) -> bool:
    """Whether two neighbours can be one axis; free: in every access its steps go on where the inner one ends."""
    extent = nest.axis(inner).extent
    if any((outer in r.axes) != (inner in r.axes) for r in nest.reads):
        return False
    accesses = nest.accesses if free_only else nest.writes if not nest.axis(inner).reduction else ()
    for a in accesses:
        first, second = a.stride(outer), a.stride(inner)
        if (
            first is None
            or second is None
            or first != second * extent
            or a.regular(inner, extent) < extent
            or (a.padded and second)
        ):
            return False
    return True


# ---------------------------------------------------------------- tiles


def tiles(nest: Nest, fusions: Fusions, device: Cores) -> Iterator[RTile]:
    """Every tile that growth keeps."""
    for axis in vector_axes(nest):
        for lanes in {min(device.lanes, 1 << max(0, nest.extents[axis].bit_length() - 1))}:
            yield from _of_vector(nest, fusions, device, axis, lanes)


def vector_axes(nest: Nest) -> list[str]:
    """Axes along which some access goes from one element to the next; the result's own first."""
    found = {a.name: None for w in nest.writes for a in nest.spatial if w.stride(a.name) == 1 and a.extent > 1}
    if not any(r.stride(a) == 1 for a in found for r in nest.reads):
        found |= {a.name: None for r in nest.reads for a in nest.axes if r.stride(a.name) == 1 and a.extent > 1}
    return list(found)


def _of_vector(nest: Nest, fusions: Fusions, device: Cores, axis: str, lanes: int) -> Iterator[RTile]:
    reduced = {a.name: a.extent for a in nest.reduced}
    if axis in reduced or not reduced:
        yield from _streaming(nest, fusions, device, axis, lanes)
        return
    for piece in best_pieces(nest, device, axis, lanes):
        for staged in stagings(nest, axis, piece):
            block = {a.name: piece[a.name] for a in nest.spatial}
            for a in reversed(nest.spatial):  # from the innermost axis outward, while its operands fit
                grown = block | {a.name: -(-a.extent // piece[a.name]) * piece[a.name]}
                if (
                    sum(r.footprint_bytes(grown | reduced) for r in nest.reads) * 2 < device.cache_bytes
                    and piece[a.name] < a.extent
                ):
                    block = grown
            yield RTile(fusions, block, reduced, piece, (axis, lanes), staged, 4 if math.prod(reduced.values()) >= 16 else 1)


def best_pieces(nest: Nest, device: Cores, axis: str, lanes: int) -> list[dict[str, int]]:
    """The register tiles that take the fewest cycles for a point, and keep the room for a few others."""
    found = []
    for piece in pieces(nest, device, axis, lanes):
        made = steps(
            nest,
            RTile(
                (),
                piece,
                {a.name: a.extent for a in nest.reduced},
                piece,
                (axis, lanes),
                frozenset(r.name for r in nest.reads),
                4,
            ),
        )
        loops = read_steps(nest, made)
        points = math.prod(min(loops.tiles[1][a.name], a.extent) if loops.loops else 1 for a in nest.spatial)
        found.append((leaf_cycles(loops, device) / loops.nest.points, points, piece))
    found.sort(key=lambda f: f[0])
    return [p for _, _, p in found[:4]]


def _streaming(nest: Nest, fusions: Fusions, device: Cores, axis: str, lanes: int) -> Iterator[RTile]:
    reduced = {a.name: a.extent for a in nest.reduced}
    wide = lanes * 4 if nest.extents[axis] >= lanes * 4 else lanes
    for width in {wide, lanes}:
        if axis in reduced:
            piece = {a.name: 1 for a in nest.spatial}
        else:
            piece = {a.name: width if a.name == axis else 1 for a in nest.spatial}
        for share in (4, 16, 64):
            block = _shared_out(nest, device, piece, share)
            yield RTile(
                fusions,
                block,
                reduced,
                piece,
                (axis, width),
                frozenset(),
                1,
                stream=not reduced and nest.outputs * 4 > device.cache_bytes,
            )


def _shared_out(nest: Nest, device: Cores, piece: dict[str, int], share: int) -> dict[str, int]:
    """Blocks of whole pieces, so many for each core, cut along the outermost axes first."""
    wanted, block = device.cores * share, {a.name: a.extent for a in nest.spatial}
    made = 1
    for a in nest.spatial:
        if made >= wanted:
            break
        parts = min(-(-a.extent // piece[a.name]), -(-wanted // made))
        size = in_parts(a.extent, parts, piece[a.name])
        block[a.name] = size
        made *= -(-a.extent // size)
    return block


def pieces(nest: Nest, device: Cores, axis: str, lanes: int) -> Iterator[dict[str, int]]:
    """Register tiles: vectors along one axis, and rounds of the axis that saves most loads."""
    room = device.registers - 4
    others = [a for a in nest.spatial if a.name != axis and a.extent > 1]
    reuse = {a.name: sum(a.name not in r.axes for r in nest.reads) for a in others}
    others.sort(key=lambda a: (-reuse[a.name], nest.writes[0].stride(a.name) or 0))
    second = others[0] if others else None
    seen = set()
    for columns in (1, 2, 3, 4):
        width = columns * lanes
        if columns > 1 and width > nest.extents[axis] + lanes - 1:
            continue
        for rows in (1, 2, 3, 4, 6, 7, 8, 12, 16) if second is not None else (1,):
            rows = min(rows, second.extent) if second is not None else 1
            if rows * columns > room or (rows, columns) in seen or rows * columns < min(4, room):
                continue
            seen.add((rows, columns))
            yield {
                a.name: width if a.name == axis else rows if second is not None and a.name == second.name else 1
                for a in nest.spatial
            }


def stagings(nest: Nest, axis: str, piece: dict[str, int]) -> Iterator[frozenset[str]]:
    """Which operands are packed: all; and those that must be, because their reads are padded or not side by side."""
    every = frozenset(r.name for r in nest.reads)
    needed = frozenset(r.name for r in nest.reads if r.padded or (axis in r.axes and r.stride(axis) != 1))
    yield every
    if needed != every:
        yield needed
