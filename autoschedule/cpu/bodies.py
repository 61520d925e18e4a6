"""Straight-line bodies and how often they run: innermost bodies, register tiles, stages."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

from tilelang.autoschedule.common.accesses import Access, Tile, axis_of
from tilelang.autoschedule.common.loop_summary import Loops, Placed
from tilelang.autoschedule.common.task_accesses import Nest
from tilelang.autoschedule.cpu.constants import CPU
from tilelang.autoschedule.cpu.device import CpuDevice
from tilelang.core.node import record
from tilelang.core.simplify import linear


@record
class Body:
    """Straight-line code. depth: the number of loops around it; rounds: how often it runs in total; tile: the extents that are unrolled
    in it; axis, lanes: of its vectors; counts: the number of vectors along each axis."""

    depth: int
    rounds: int
    tile: Tile
    axis: str
    lanes: int
    counts: Mapping[str, int]

    def vectors(self, axes: Iterable[str]) -> int:
        """The number of vectors of the points along some axes."""
        return math.prod(map(self.counts.__getitem__, axes))


def _body(depth: int, rounds: int, tile: Tile, axis: str, lanes: int) -> Body:
    return Body(depth, rounds, tile, axis, lanes, {**tile, axis: -(-tile[axis] // lanes)} if axis in tile else tile)


def piece_count(loops: Loops) -> int:
    """How often accumulators start; without an accumulator, the number of vectors or elements of the result."""
    depth = loops.piece_depth
    if loops.register_depth is not None:
        return loops.passes(depth)
    axis, lanes = loops.vector if loops.vector is not None else ("", 1)
    tile = loops.tiles[depth]
    return loops.passes(depth) * math.prod(-(-tile[a.name] // (lanes if a.name == axis else 1)) for a in loops.nest.spatial)


def body_of(loops: Loops, device: CpuDevice) -> Body:
    """The innermost body: unrolled iterations and vectors. The extents that the steps leave are loops."""
    depth = loops.body_depth
    tile, rounds = dict(loops.tiles[depth]), loops.passes(depth)
    axis, lanes = loops.vector if loops.vector is not None else ("", 1)
    for a, n in loops.tiles[-1].items():
        if a == axis:
            reduced = loops.nest.axis(a).reduction
            step = lanes if reduced or n > CPU.unrolled_vectors * lanes else n
            rounds *= -(-n // step)
            tile[a] = step * -(-tile[a] // n)
        elif n > 1:
            rounds *= n
            tile[a] = -(-tile[a] // n)
    if loops.vector is None and not loops.nest.reduced:
        return _by_compiler(loops, _body(depth, rounds, tile, "", 1), int(device.rates.get("compiler_lanes", 1)))
    return _body(depth, rounds, tile, axis, min(lanes, device.lanes))


def _by_compiler(loops: Loops, body: Body, lanes: int) -> Body:
    """A body without vectors as the compiler vectorizes it: along the innermost loop, if its iterations are independent."""
    left = [(a, n) for a, n in loops.tiles[-1].items() if n > 1]
    if body.depth and not left:
        left = [r for r in loops.loops[body.depth - 1].rounds if r[1] > 1]
    if not left or left[-1][1] < lanes or body.tile[left[-1][0]] > 1:
        return body
    axis = left[-1][0]
    return _body(body.depth, -(-body.rounds // lanes), {**body.tile, axis: lanes}, axis, lanes)


def stages_inside(loops: Loops) -> list[tuple[Placed, Loops]]:
    """The non-empty stages that are computed inside a kernel."""
    return [(p, p.stage) for p in loops.places if p.stage is not None and not p.apart and p.stage.nest.points]


def stage_share(place: Placed, loops: Loops) -> float:
    """How often all loops of a stage run in total: they are restricted to the elements that are read below, each time that its place is
    reached."""
    assert place.stage is not None
    nest = place.stage.nest
    region = _regions(loops).get(id(place), place.tile)
    part = [min(a.extent, region.get(a.name, a.extent)) / a.extent for a in nest.spatial]
    return loops.passes(place.depth) * place.part * math.prod(part)


def _regions(loops: Loops) -> Mapping[int, Tile]:
    """The extents of what each stage of a kernel computes at a time, by the identity of its place: all that the later stages and the
    kernel's own results read."""
    found: dict[int, Tile] | None = loops.__dict__.get("regions")
    if found is None:
        found = loops.__dict__["regions"] = {}
        readers: list[tuple[Nest, Tile | None]] = [(loops.nest, None)]
        for place in reversed(loops.places):
            if place.stage is None or place.apart:
                continue
            made = {w.name for w in place.stage.nest.writes}
            reads = [(a, tile) for nest, tile in readers for a in nest.reads if a.name in made]
            if reads and not loops.shares:
                found[id(place)] = _read_extents(reads, place)
            readers.append((place.stage.nest, found.get(id(place), place.tile)))
    return found


def _read_extents(reads: list[tuple[Access, Tile | None]], place: Placed) -> Tile:
    """The extents of all that some reads of a tensor touch, by the axes of the stage that computes it. Reads that differ by constants
    share a region, which begins at the first and ends behind the last. Their tiles are the place's, or as given."""
    assert place.stage is not None
    write, extents = place.stage.nest.writes[0], dict[str, int]()
    for dim, index in enumerate(write.indices):
        spans = [access.spans(place.tile if tile is None else tile)[dim] for access, tile in reads]
        forms = [linear(access.indices[dim]) for access, _ in reads]
        same = all(frozenset(terms) == frozenset(forms[0][0]) for terms, _ in forms)
        apart = max(c for _, c in forms) - min(c for _, c in forms) if same else 0
        extents[axis_of(index)] = min(write.tensor.shape[dim], max(spans) + apart)
    return extents
