"""Generates schedules for CPUs: blocks run on cores with vectors.

Tiles grow from the innermost level outward (growth.py). From the best of them, a search goes to better neighbours, one level and one
axis at a time, by the model's estimate. In reductions, good blocks and chunks of one register tile are tried with the others unless
memory bounds the nest, and after the first search, another begins only at a tile that is nearly as fast as the best. No candidate is
estimated twice, and the number of estimates is limited.
"""

from __future__ import annotations

import dataclasses
import heapq
import itertools
import math
from collections.abc import Iterable, Iterator
from typing import TypeVar

from tilelang.autoschedule.common.axes import fused, in_parts
from tilelang.autoschedule.common.device_model import Likely, TaskCandidate
from tilelang.autoschedule.common.loop_summary import read_steps
from tilelang.autoschedule.common.task_accesses import Nest
from tilelang.autoschedule.cpu.constants import CPU
from tilelang.autoschedule.cpu.device import CpuDevice
from tilelang.autoschedule.cpu.dot_product_words import Words, in_elements, words
from tilelang.autoschedule.cpu.growth import (
    chunk_sizes,
    is_memory_bound,
    must_be_staged,
    nearest_bytes,
    seeds,
    staging_form,
)
from tilelang.autoschedule.cpu.model import IncrementalEstimate, estimate
from tilelang.autoschedule.cpu.scatter import scatters
from tilelang.autoschedule.cpu.tile import (
    CpuTile,
    blocks_of,
    fetchable,
    output_holds_sums,
    reused,
    scattered,
    shared_bytes,
    steps,
)
from tilelang.schedules.steps import Step

T = TypeVar("T")


def cpu_candidates(root: Nest, device: CpuDevice, likely: Likely | None = None) -> Iterator[TaskCandidate]:
    """Schedules of a task for CPUs, the best first: all that the search visits, starting from the seeds of `growth`.

    likely: called with the best steps after the climb from the best seed, if more climbs follow, which rarely find better ones.
    """
    found: dict[tuple[Step, ...], IncrementalEstimate] = {}
    begun: list[tuple[_Search, list[tuple[IncrementalEstimate, CpuTile]]]] = []
    every = list(fused(root))
    by_words = [(fusions, nest, made) for fusions, nest in every for made in words(nest, device)]
    by_words = by_words or [((), root, made) for made in words(root, device)]  # if fusion mixes its axis with others
    nests = [*((fusions, nest, None) for fusions, nest in every), *by_words]
    for fusions, nest, made in nests:
        search = _Search(nest, device, CPU.visits // len(nests), found, made)
        begun.append((search, _starts(_visited(search, seeds(search.nest, fusions, device)))))
    found |= {written: IncrementalEstimate((read_steps(root, written),), device) for written in scatters(root, device)}
    least = min((counted.estimate.seconds for _, starts in begun for counted, _ in starts[:1]), default=0.0)
    climbs = [
        (search, counted, tile) for search, starts in begun for counted, tile in starts
        if counted.work_seconds <= CPU.hopeless * least  # climbing reduces waiting, but hardly ever work
    ]  # fmt: skip
    best = math.inf
    for left, (search, counted, seed) in zip(range(len(climbs))[::-1], climbs, strict=True):
        start = search.start(seed, CPU.near * best)
        if start is not None:
            best = min(best, search.climb(start))
        if likely is not None and left and counted.estimate.seconds == least:
            likely(next(best_first((c, written) for written, c in found.items()))[1])
            likely = None
    if not found:  # no tile fits
        yield TaskCandidate((), estimate((read_steps(root, ()),), device))
    for counted, written in best_first((c, written) for written, c in found.items()):
        yield TaskCandidate(written, counted.estimate)


def best_first(
    counted: Iterable[tuple[IncrementalEstimate, T]], below: float = math.inf
) -> Iterator[tuple[IncrementalEstimate, T]]:
    """The candidates that take less than `below` seconds, fastest first; equally fast ones in the order given.

    Each is counted only as far as it takes to show that another remaining candidate is faster.
    """
    queue = [(c.least_seconds, c.whole, n, c, what) for n, (c, what) in enumerate(counted)]
    heapq.heapify(queue)
    while queue and queue[0][0] < below:
        _, whole, n, c, what = queue[0]
        if whole:
            heapq.heappop(queue)
            yield c, what
        else:
            c.count()
            heapq.heapreplace(queue, (c.least_seconds, c.whole, n, c, what))


def _visited(search: _Search, grown: Iterable[CpuTile]) -> list[tuple[IncrementalEstimate, CpuTile]]:
    """The seeds that fit, with their estimates. Along each vectorized axis, the first register tile, which takes the fewest cycles, has
    all of its seeds. In a reduction that memory does not bound, sizes depend little on the register tile: others get blocks and chunks
    from the best seeds so far instead, if that makes them fewer."""
    seeds_of: dict[tuple[object, ...], dict[tuple[object, ...], CpuTile]] = {}
    for tile in grown:
        seeds_of.setdefault((tile.vector, *tile.piece.items()), {})[tile.key] = tile
    found: dict[str, list[tuple[IncrementalEstimate, CpuTile]]] = {}  # by the vectorized axis
    for group in seeds_of.values():
        tiles = list(group.values())
        known = found.setdefault(tiles[0].axis, [])
        if known and len(tiles) > CPU.best_sizes and search.nest.reduced and not search.memory_bound:
            best = [t for _, t in itertools.islice(best_first(known), CPU.best_sizes)]
            first = tiles[0]
            changed = (dataclasses.replace(t, piece=first.piece, vector=first.vector, ahead=first.ahead) for t in best)
            tiles = [with_sizes(search.nest, made, t) for made, t in zip(changed, best, strict=True)]
        known += [(c, t) for t in tiles if (c := search.visit(t)) is not None]
    return list(itertools.chain(*found.values()))


def _starts(visited: list[tuple[IncrementalEstimate, CpuTile]]) -> list[tuple[IncrementalEstimate, CpuTile]]:
    """The tiles from which the search starts: the best seeds, and the best ones with other register tiles or other staged operands."""
    found = list(itertools.islice(best_first(visited), CPU.beam - CPU.others))
    while len(found) < CPU.beam:
        kinds = {_kind(t) for _, t in found}
        other = next(best_first((c, t) for c, t in visited if _kind(t) not in kinds), None)
        if other is None:
            break
        found.append(other)
    return found


def _kind(tile: CpuTile) -> tuple[object, ...]:
    """A key of seeds that differ only in the extents of their blocks and chunks."""
    return (tuple(tile.piece.items()), *tile.staged)


class _Search:
    """Estimates tiles of one nest, at most `visits` of them. Each tile is estimated once, and tiles with the same steps share an
    estimate. made: the nest in words, if dot products compute it; the tiles are then tiles of that nest."""

    def __init__(
        self,
        nest: Nest,
        device: CpuDevice,
        visits: int,
        found: dict[tuple[Step, ...], IncrementalEstimate],
        made: Words | None = None,
    ) -> None:
        self.nest = made.nest_in_words if made else nest
        self.device, self.left, self.found, self.words = device, visits, found, made
        self.memory_bound = is_memory_bound(self.nest, device)
        self.known: dict[tuple[object, ...], IncrementalEstimate | None] = {}  # None: it does not fit
        self.climbed: set[tuple[object, ...]] = set()
        self.best: CpuTile | None = None  # of those that climbs came to
        self.seconds = math.inf  # its estimate

    def visit(self, tile: CpuTile) -> IncrementalEstimate | None:
        """The estimate of a tile, not fully counted yet; None if it does not fit, or the limit of visits is reached."""
        if tile.key in self.known or self.left <= 0:
            return self.known.get(tile.key)
        found = None if self._drops(tile) else self._counted(steps(self.nest, tile), len(tile.fusions))
        self.known[tile.key] = found
        return found

    def _counted(self, written: tuple[Step, ...], fusions: int) -> IncrementalEstimate:
        """The estimate of steps. The first `fusions` of them fuse axes that are already fused in the nest."""
        named = in_elements(written, self.words) if self.words else written
        counted = self.found.get(named)
        if counted is None:
            self.left -= 1
            self.device.pruning.keeps()
            counted = self.found[named] = IncrementalEstimate((read_steps(self.nest, written[fusions:]),), self.device)
        return counted

    def _drops(self, tile: CpuTile) -> bool:
        if self.words is not None and not (self.words.takes(tile.vector) and self.words.staged <= tile.staged.keys()):
            return True
        # Vectors stall less than single elements.
        near = self.memory_bound and not is_one_register_tile(self.nest, tile) and tile.square == 1
        room = min(nearest_bytes(self.device), self.device.shared_bytes) if near else self.device.room_bytes
        drops = self.device.pruning.drops
        return drops("tails", not is_valid(self.nest, tile)) or drops("shared", shared_bytes(self.nest, tile) > room)

    def start(self, seed: CpuTile, below: float) -> CpuTile | None:
        """Where to climb from: a seed; of a reduction's later seed, its register tile with its own sizes or those where earlier climbs
        ended, whichever is faster. None if neither takes less than `below` seconds."""
        if self.best is None or not self.nest.reduced:
            return seed
        tiles = (seed, with_sizes(self.nest, seed, self.best))
        found = next(best_first([(c, t) for t in tiles if (c := self.visit(t)) is not None], below), None)
        return None if found is None else found[1]

    def climb(self, tile: CpuTile) -> float:
        """Goes from a tile to its best neighbour until none is better, or an earlier climb continued from there. Returns the seconds of
        the best tile of all climbs."""
        here = self.visit(tile)
        while here is not None and tile.key not in self.climbed:
            self.climbed.add(tile.key)
            if here.estimate.seconds < self.seconds:
                self.seconds, self.best = here.estimate.seconds, tile
            near = [(c, t) for t in neighbours(self.nest, tile, self.device) if (c := self.visit(t)) is not None]
            here, tile = next(best_first(near, below=here.estimate.seconds * CPU.better), (None, tile))
        return self.seconds


def with_sizes(nest: Nest, tile: CpuTile, other: CpuTile) -> CpuTile:
    """A tile with the blocks and chunks of another one, in whole register tiles of its own, and the other choices of
    `neighbours`."""
    parts = {a: (n, -(-n // other.block[a])) for a, n in nest.extents.items() if a in other.block}
    block = {a: in_parts(n, count, tile.piece[a]) if a in tile.piece else other.block[a] for a, (n, count) in parts.items()}
    if not nest.reduced or tile.axis in nest.reduced_extents:
        chunk = {a: tile.chunk[a] if a == tile.axis else n for a, n in other.chunk.items()}
        return dataclasses.replace(tile, block=block, chunk=chunk)
    first, gathers = other.panels_first, other.gathers or scattered(nest, tile)
    return dataclasses.replace(tile, block=block, chunk=other.chunk, panels_first=first, gathers=gathers, ahead=other.ahead)


def neighbours(nest: Nest, tile: CpuTile, device: CpuDevice) -> Iterator[CpuTile]:
    """Tiles with one change: one extent of the block or chunk a step smaller or larger, one operand staged or not, the next chunk
    prefetched or not."""
    for a in nest.spatial:
        p, now = tile.piece[a.name], tile.block[a.name]
        parts = -(-a.extent // now)
        for other in sorted({parts * 2, -(-parts * 3 // 2), parts - 1, parts // 2}):
            size = in_parts(a.extent, other, p) if other >= 1 else now
            if size != now:
                yield dataclasses.replace(tile, block={**tile.block, a.name: size})
    for a in nest.reduced:
        sizes, now = chunk_sizes(a.extent), tile.chunk[a.name]
        for size in {max((n for n in sizes if n <= now // 2), default=now), *_beside(sizes, now)} if a.name != tile.axis else ():
            if size != now:
                yield dataclasses.replace(tile, chunk={**tile.chunk, a.name: size})
    if nest.reduced and tile.axis not in nest.reduced_extents:
        yield dataclasses.replace(tile, panels_first=not tile.panels_first)
        if any(tile.chunk[a.name] < a.extent for a in nest.reduced) and output_holds_sums(nest) and not scattered(nest, tile):
            yield dataclasses.replace(tile, gathers=not tile.gathers)
        if device.fetches and any(r.operand in tile.staged and fetchable(r, tile) for r in nest.reads):
            yield dataclasses.replace(tile, ahead=1 - tile.ahead)
        for operand, reads in nest.operands.items():
            kind = staging_form(nest, reads[-1])
            if operand in tile.staged and not must_be_staged(nest, reads[-1], tile.axis):
                yield dataclasses.replace(tile, staged={n: f for n, f in tile.staged.items() if n != operand})
            elif operand not in tile.staged and kind is not None and reused(nest, reads[-1]):
                yield dataclasses.replace(tile, staged={**tile.staged, operand: kind})


def _beside(sizes: tuple[int, ...], now: int) -> set[int]:
    """The next smaller and the next larger of some sizes."""
    return {max((n for n in sizes if n < now), default=now), min((n for n in sizes if n > now), default=now)}


def is_one_register_tile(nest: Nest, tile: CpuTile) -> bool:
    """Whether a block is a single register tile."""
    return all(tile.block[a] <= tile.piece[a] for a in nest.spatial_extents)


def is_valid(nest: Nest, tile: CpuTile) -> bool:
    """Whether staged operands have blocks whose memory they are in, and all operands are staged whose index computation would be too
    expensive at every point: those indexed by a fused axis that a loop cuts."""
    if tile.staged and not blocks_of(nest, tile):
        return False
    fusions = {name for name, _ in tile.fusions}
    cut = {a.name for a in nest.reduced if tile.chunk[a.name] < a.extent and a.name in fusions and a.name != tile.axis}
    return not cut or all(r.operand in tile.staged or staging_form(nest, r) is None for r in nest.reads if cut & r.axes)
