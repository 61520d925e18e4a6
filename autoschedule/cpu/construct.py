"""Generates schedules for CPUs: blocks run on cores with vectors.

Tiles grow from the innermost level outward (growth.py). From the best of them, a search goes to better neighbours, one level and one
axis at a time, by the model's estimate. No candidate is estimated twice, and the number of estimates is limited.
"""

from __future__ import annotations

import dataclasses
import heapq
import itertools
import math
from collections.abc import Iterable, Iterator
from typing import TypeVar

from tilelang.autoschedule.common.axes import fused, in_parts
from tilelang.autoschedule.common.device_model import Likely, Made
from tilelang.autoschedule.common.loop_summary import read_steps
from tilelang.autoschedule.common.task_accesses import Nest
from tilelang.autoschedule.cpu.constants import CPU
from tilelang.autoschedule.cpu.device import Cores
from tilelang.autoschedule.cpu.dot_product_words import Words, spelled, words
from tilelang.autoschedule.cpu.growth import form, nearest_bytes, needed, passes, reused, rounds_of, seeds
from tilelang.autoschedule.cpu.model import Counted, estimate
from tilelang.autoschedule.cpu.scatter import scatters
from tilelang.autoschedule.cpu.tile import RTile, blocks_of, fetchable, scattered, shared_bytes, stays, steps
from tilelang.schedules.steps import Step

T = TypeVar("T")


def of_cores(root: Nest, device: Cores, likely: Likely | None = None) -> Iterator[Made]:
    """Steps for a task on cores with vectors, the best first, searched from where growth ends: all that were visited.

    likely: called with the best steps after the climb from the best seed, if other climbs follow; those rarely find better ones.
    """
    found: dict[tuple[Step, ...], Counted] = {}
    begun: list[tuple[_Search, list[tuple[Counted, RTile]]]] = []
    every = list(fused(root))
    by_words = [(fusions, nest, made) for fusions, nest in every for made in words(nest, device)]
    by_words = by_words or [((), root, made) for made in words(root, device)]  # a fused axis is in several indices
    nests = [*((fusions, nest, None) for fusions, nest in every), *by_words]
    for fusions, nest, made in nests:
        search = _Search(nest, device, CPU.visits // len(nests), found, made)
        grown = {t.key: t for t in seeds(search.nest, fusions, device)}
        begun.append((search, _starts([(c, t) for t in grown.values() if (c := search.visit(t)) is not None])))
    found |= {written: Counted((read_steps(root, written),), device) for written in scatters(root, device)}
    least = min((counted.estimate.seconds for _, starts in begun for counted, _ in starts[:1]), default=0.0)
    climbs = [
        (search, counted, tile) for search, starts in begun for counted, tile in starts
        if counted.work_seconds <= CPU.hopeless * least  # climbing reduces waits, hardly ever work
    ]  # fmt: skip
    for left, (search, counted, tile) in zip(range(len(climbs))[::-1], climbs, strict=True):
        search.climb(tile)
        if likely is not None and left and counted.estimate.seconds == least:
            likely(next(best_first((c, written) for written, c in found.items()))[1])
            likely = None
    if not found:  # no tile fits
        yield Made((), estimate((read_steps(root, ()),), device))
    for counted, written in best_first((c, written) for written, c in found.items()):
        yield Made(written, counted.estimate)


def best_first(counted: Iterable[tuple[Counted, T]], below: float = math.inf) -> Iterator[tuple[Counted, T]]:
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


def _starts(visited: list[tuple[Counted, RTile]]) -> list[tuple[Counted, RTile]]:
    """Where the search starts: the best seeds, and the best with other registers or other operands staged than those."""
    every = best_first(visited)
    found = list(itertools.islice(every, CPU.beam - CPU.others))
    kinds, left = {_kind(t) for _, t in found}, {_kind(t) for _, t in visited}
    while len(found) < CPU.beam and kinds < left:
        counted, tile = next(every)
        if _kind(tile) not in kinds:
            kinds.add(_kind(tile))
            found.append((counted, tile))
    return found


def _kind(tile: RTile) -> tuple[object, ...]:
    """What seeds have in common that differ in the extents of their blocks and chunks alone."""
    return (tuple(tile.piece.items()), *tile.staged)


class _Search:
    """Estimates tiles of one nest, at most `visits` of them. Each tile is estimated once, and tiles that give the same steps share one
    estimate. made: the nest counted in words, if dot products compute it; the tiles are then of that nest."""

    def __init__(
        self, nest: Nest, device: Cores, visits: int, found: dict[tuple[Step, ...], Counted], made: Words | None = None
    ) -> None:
        self.nest, self.device, self.left, self.found, self.words = made.counted if made else nest, device, visits, found, made
        self.passes = passes(self.nest, device)
        self.known: dict[tuple[object, ...], Counted | None] = {}  # None: it does not fit
        self.climbed: set[tuple[object, ...]] = set()

    def visit(self, tile: RTile) -> Counted | None:
        """The work of a tile; None where it does not fit, or nothing may be visited any more."""
        if tile.key in self.known or self.left <= 0:
            return self.known.get(tile.key)
        found = None if self._drops(tile) else self._counted(steps(self.nest, tile), len(tile.fusions))
        self.known[tile.key] = found
        return found

    def _counted(self, written: tuple[Step, ...], fusions: int) -> Counted:
        """The work of steps; the first `fusions` of them fuse axes that are fused in the nest already."""
        named = spelled(written, self.words) if self.words else written
        counted = self.found.get(named)
        if counted is None:
            self.left -= 1
            self.device.pruning.keeps()
            counted = self.found[named] = Counted((read_steps(self.nest, written[fusions:]),), self.device)
        return counted

    def _drops(self, tile: RTile) -> bool:
        if self.words is not None and not (self.words.takes(tile.vector) and self.words.staged <= tile.staged.keys()):
            return True
        near = self.passes and not alone(self.nest, tile) and tile.square == 1  # vectors wait less than elements do
        room = min(nearest_bytes(self.device), self.device.shared_bytes) if near else self.device.room_bytes
        drops = self.device.pruning.drops
        return drops("tails", not sound(self.nest, tile)) or drops("shared", shared_bytes(self.nest, tile) > room)

    def climb(self, tile: RTile) -> None:
        """From a tile to the best of its neighbours, until none is better, or an earlier climb went on from there."""
        start = self.visit(tile)
        while start is not None and tile.key not in self.climbed:
            self.climbed.add(tile.key)
            near = [(c, t) for t in neighbours(self.nest, tile, self.device) if (c := self.visit(t)) is not None]
            best = next(best_first(near, below=start.estimate.seconds * CPU.better), None)
            if best is None:
                return
            start, tile = best


def neighbours(nest: Nest, tile: RTile, device: Cores) -> Iterator[RTile]:
    """The tile with one extent of its block, or of its chunk, one step smaller or larger; with one operand staged or not; with the
    next chunk prefetched or not."""
    for a in nest.spatial:
        p, now = tile.piece[a.name], tile.block[a.name]
        parts = -(-a.extent // now)
        for other in sorted({parts * 2, -(-parts * 3 // 2), parts - 1, parts // 2}):
            size = in_parts(a.extent, other, p) if other >= 1 else now
            if size != now:
                yield dataclasses.replace(tile, block={**tile.block, a.name: size})
    for a in nest.reduced:
        sizes, now = rounds_of(a.extent), tile.chunk[a.name]
        for size in {max((n for n in sizes if n <= now // 2), default=now), *_beside(sizes, now)} if a.name != tile.axis else ():
            if size != now:
                yield dataclasses.replace(tile, chunk={**tile.chunk, a.name: size})
    if nest.reduced and tile.axis not in nest.reduced_extents:
        yield dataclasses.replace(tile, panels_first=not tile.panels_first)
        if any(tile.chunk[a.name] < a.extent for a in nest.reduced) and stays(nest) and not scattered(nest, tile):
            yield dataclasses.replace(tile, gathers=not tile.gathers)
        if device.fetches and any(r.name in tile.staged and fetchable(r, tile) for r in nest.reads):
            yield dataclasses.replace(tile, ahead=1 - tile.ahead)
        for access in {r.name: r for r in nest.reads}.values():
            kind = form(nest, access)
            if access.name in tile.staged and not needed(nest, access, tile.axis):
                yield dataclasses.replace(tile, staged={n: f for n, f in tile.staged.items() if n != access.name})
            elif access.name not in tile.staged and kind is not None and reused(nest, access):
                yield dataclasses.replace(tile, staged={**tile.staged, access.name: kind})


def _beside(sizes: tuple[int, ...], now: int) -> set[int]:
    """The next smaller and the next larger of some sizes."""
    return {max((n for n in sizes if n < now), default=now), min((n for n in sizes if n > now), default=now)}


def alone(nest: Nest, tile: RTile) -> bool:
    """Whether a block is one piece."""
    return all(tile.block[a] <= tile.piece[a] for a in nest.spatial_extents)


def sound(nest: Nest, tile: RTile) -> bool:
    """Whether there are blocks for what is staged in their memory, and all is staged whose reads would compute too much at every point:
    through an axis of several that a walk cuts."""
    if tile.staged and not blocks_of(nest, tile):
        return False
    fusions = {name for name, _ in tile.fusions}
    cut = {a.name for a in nest.reduced if tile.chunk[a.name] < a.extent and a.name in fusions and a.name != tile.axis}
    return not cut or all(r.name in tile.staged or form(nest, r) is None for r in nest.reads if cut & r.axes)
