"""Cache misses: the lines that each tensor of a schedule fetches from beyond a cache, loop by loop from the innermost out.

A loop over an axis of the tensor brings new lines, except those that overlapping windows share. A loop over another axis hits if
everything that one iteration accesses fits the cache, including its sets; otherwise it brings the lines again. A TLB is a cache whose
lines are pages.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
import math
from collections.abc import Iterator
from typing import NamedTuple

from tilelang.autoschedule.common.accesses import Access, Tile
from tilelang.autoschedule.common.loop_summary import PREFETCHED, Loops, Placed
from tilelang.autoschedule.cpu.constants import CPU
from tilelang.core.lazy import cached_property
from tilelang.core.node import record


@dataclasses.dataclass(frozen=True)
class Cache:
    """One cache of a core: its size, its associativity (None: fully associative), and the bytes per cycle from the next level (None:
    infinitely many). page_bytes: the page size (0: unknown)."""

    name: str
    bytes: int
    ways: int | None
    line_bytes: int
    beyond: float | None = None
    page_bytes: int = 0

    def evicted_share(self, working_set: float) -> float:
        """The share of reused lines that were evicted by a working set of this size: none up to half of the cache, because pages
        compete for the same sets.

        >>> [round(Cache("l2", 1 << 20, 16, 64).evicted_share(n << 19), 2) for n in (1, 2, 4)]
        [0.0, 0.29, 1.0]
        """
        filled = working_set / max(1, self.bytes)
        (least, none), (most, every) = CPU.evicted_share[0], CPU.evicted_share[-1]
        if filled <= least:
            return none
        if filled >= most:
            return every
        (x0, y0), (x1, y1) = next(ends for ends in itertools.pairwise(CPU.evicted_share) if filled < ends[1][0])
        return y0 + (y1 - y0) * max(0.0, filled - x0) / (x1 - x0)

    def holds(self, access: Access, box: tuple[int, ...]) -> bool:
        """Whether the rows of a box fit in their sets: rows at distances of a power of two compete for the same few sets."""
        return self._places is None or _places(access, box, *self._places)

    @cached_property
    def _places(self) -> tuple[int, int, int] | None:
        """Its usable ways, its sets, and the bytes of a line; None if it is fully associative. If a way is larger than a page, the
        placement of pages leaves some sets overused and others empty, so only half of the ways count."""
        if self.ways is None:
            return None
        ways = self.ways // 2 if 0 < self.page_bytes < self.bytes // self.ways else self.ways
        return ways, max(1, self.bytes // (self.ways * self.line_bytes)), self.line_bytes


@functools.lru_cache(maxsize=1 << 12)
def _places(access: Access, box: tuple[int, ...], ways: int, sets: int, line_bytes: int) -> bool:
    """Whether the rows of a box all fit in a cache of `sets` sets of `ways` lines each, without evicting each other."""
    row = box[-1] * access.element_bytes if box else access.element_bytes
    lines = -(-row // line_bytes)
    for extent, stride in zip(box[:-1], access.strides[:-1], strict=True):
        apart = stride * access.element_bytes
        reached = sets if apart % line_bytes else sets // math.gcd(apart // line_bytes, sets)
        if extent * lines > ways * min(sets, lines * reached):
            return False
    return True


@functools.lru_cache(maxsize=1 << 12)
def lines_bytes(access: Access, box: tuple[int, ...], line_bytes: int) -> int:
    """The bytes that a box touches in whole cache lines: separate rows begin and end on their own lines."""
    rows, run = rows_of(access, box, line_bytes)
    within = any(s * access.element_bytes % line_bytes for s in access.strides[:-1])
    return rows * (run - min(run, access.element_bytes if within else line_bytes) + line_bytes)


@functools.lru_cache(maxsize=1 << 12)
def rows_of(access: Access, box: tuple[int, ...], near_bytes: int) -> tuple[int, int]:
    """The number of separate rows of a box, and the bytes that each spans. Rows that begin within `near_bytes` of each other are
    merged."""
    rows, run = 1, access.element_bytes
    for extent, stride in zip(reversed(box), reversed(access.strides), strict=True):
        apart = stride * access.element_bytes
        if rows == 1 and apart <= max(run, near_bytes):
            run += (extent - 1) * apart
        else:
            rows *= extent
    return rows, run


class AxisLoop(NamedTuple):
    """The iterations of a loop along one axis. inside, outside: the numbers of the tiles of one iteration and of all; depth: of its
    loop."""

    axis: str
    rounds: int
    inside: int
    outside: int
    depth: int


@record
class Stream:
    """The traffic of one tensor, or of its packed copy."""

    access: Access
    packed: bool = False  # a copy in the block's memory, in the order in which it is read
    points: bool = False  # with one element for each point of its axes
    outer: int | None = None  # only loops above this depth count; below, a copy is read instead
    inner: int = 0  # only loops from this depth on count
    weight: float = 1.0  # the cost of one of its bytes between caches; 2: read and written
    past: bool = False  # it bypasses the caches
    border: float = 1.0  # the size of a copy with its padding, relative to that without
    fetched: float = 0.0  # the share of its lines that are prefetched during computation


@dataclasses.dataclass(frozen=True)
class HardwarePrefetcher:
    """The hardware prefetcher of a core: the number of rows that it follows at once, and the number of lines of a row that must miss
    before it does. Rows that begin within `near_bytes` of each other count as one."""

    rows: int
    lines: float
    near_bytes: int


class Traffic:
    """The loops and the streams of a kernel, as every cache sees them.

    If data selects one iteration of a loop, each surrounding iteration touches one part of the box, and it may be any part.

    depth: the number of loops that count, unrolled ones included; pieces: the number of loops around the register tile.
    """

    def __init__(self, loops: Loops, depth: int, pieces: int) -> None:
        self.pieces = pieces
        self.streams = list(streams(loops))
        self.tiles: list[Tile] = [{**_of_stages(loops), **loops.tiles[0]}]
        self.axis_loops: list[AxisLoop] = []  # innermost first; each has as many iterations as its axis needs
        self._boxes: dict[Access, list[tuple[int, ...]]] = {}
        self._sizes: dict[tuple[Stream, int], list[int]] = {}
        self._found: dict[str, list[tuple[Stream, float]]] = {}
        self._sets: dict[int, list[int]] = {}  # by the line size
        self._chosen: dict[Stream, list[tuple[int, AxisLoop, bool]]] = {}
        self._parts: dict[str, int] = {}  # the axes along which data selects one iteration: how many there are
        tile = self.tiles[0]
        for d in range(depth):
            for axis, _ in loops.loops[d].rounds:
                size = loops.tiles[d + 1][axis]
                rounds = -(-tile[axis] // size)
                if axis in loops.loops[d].selected:
                    self._parts[axis] = rounds
                elif rounds > 1:
                    tile, number = {**tile, axis: size}, len(self.tiles)
                    self.axis_loops.append(AxisLoop(axis, rounds, number, number - 1, d))
                    self.tiles.append(tile)
        self._cut = [
            w.axis for w in self.axis_loops
        ]  # the axis along which each tile but the first differs from the one around it
        self.axis_loops.reverse()
        self._body = sum(w.depth < loops.body_depth for w in self.axis_loops)  # the tile of the unrolled body
        outside = {s: [w for w in self.axis_loops if w.depth < s.inner] for s in self.streams if s.packed}
        self._copies = {s: w[0].inside if w else 0 for s, w in outside.items()}  # the tiles of copies, whose buffers are reused

    def boxes(self, access: Access) -> list[tuple[int, ...]]:
        """The boxes of all tiles, by number."""
        found = self._boxes.get(access)
        if found is None:
            axes, box = access.axes, access.box(self.tiles[0])
            found = self._boxes[access] = [box]
            for axis, tile in zip(self._cut, self.tiles[1:], strict=True):
                if axis in axes:
                    box = access.box(tile)
                found.append(box)
        return found

    def rows(self, s: Stream) -> int:
        """The number of separate rows that the unrolled body reads."""
        return rows_of(s.access, self.boxes(s.access)[self._body], s.access.element_bytes)[0]

    def missed(self, cache: Cache) -> list[tuple[Stream, float]]:
        """For every stream, the bytes of the lines that come from beyond a cache, for the whole kernel."""
        if cache.name not in self._found:
            lost = self._evicted_shares(cache)
            self._found[cache.name] = [(s, self._missed(s, cache, lost)) for s in self.streams]
        return self._found[cache.name]

    def _evicted_shares(self, cache: Cache) -> list[float]:
        """For each loop, the share of lines that the cache has evicted by the next iteration."""
        sets = self._sets.get(cache.line_bytes)
        if sets is None:
            sets = self._sets[cache.line_bytes] = self._working_sets(cache)
        least = CPU.evicted_share[0][0] * cache.bytes
        return [cache.evicted_share(n) if n > least else CPU.evicted_share[0][1] for n in sets]

    def row_starts(self, cache: Cache, follow: HardwarePrefetcher) -> list[tuple[float, float]]:
        """Misses that the hardware prefetcher does not cover, which are the first lines of each row: their number, and the bytes that
        the core has touched since it last read them (infinite if never). Lines that are written whole, past the caches, are not read.
        """
        lost, found = self._evicted_shares(cache), list[tuple[float, float]]()
        for s, moved in self.missed(cache):
            if not (s.packed or s.past or s.fetched):
                rows = self._row_starts(s, cache, lost, follow)
                lines = min(moved / cache.line_bytes, s.weight * follow.lines * sum(rows.values()))
                found += [(lines * n / sum(rows.values()), since) for since, n in rows.items()]
        return found

    def streamed_row_starts(self, cache: Cache) -> float:
        """The number of rows that are written past the caches. Each counts, because nothing prefetches them."""
        lost, alone = self._evicted_shares(cache), HardwarePrefetcher(1, 1.0, 0)
        return sum(sum(self._row_starts(s, cache, lost, alone).values()) for s in self.streams if s.past)

    def _loops_of_stream(self, s: Stream) -> list[tuple[int, AxisLoop, bool]]:
        """The loops that count for a stream, by number, each with whether it runs along one of the stream's axes."""
        found = self._chosen.get(s)
        if found is None:
            last, axes = self._last(s), s.access.axes
            found = self._chosen[s] = [(n, w, w.axis in axes) for n, w in enumerate(self.axis_loops) if w.depth < last]
        return found

    def _last(self, s: Stream) -> float:
        """The depth from which on the loops do not move this stream."""
        return s.outer if s.outer is not None else self.pieces if s.access.store else math.inf

    def _row_starts(self, s: Stream, cache: Cache, lost: list[float], follow: HardwarePrefetcher) -> dict[float, float]:
        """The number of rows of a stream that begin beyond a cache, by the bytes touched since they last began."""
        boxes, sizes, sets = self.boxes(s.access), self._sized(s, cache), self._sets[cache.line_bytes]
        chosen = self._loops_of_stream(s)
        rows = alive = rows_of(s.access, boxes[chosen[0][1].inside], follow.near_bytes)[0] if chosen else 1
        found, most = {math.inf: float(rows)}, alive
        for number, (_, rounds, inside, outside, _), along in chosen:
            missing, touched, first = lost[number], sets[number], 1.0
            if along:
                wider = rows_of(s.access, boxes[outside], follow.near_bytes)[0]
                begins = wider > rows or most > follow.rows
                alive, rows = alive * wider // rows, wider
                most = max(most, alive)
                if not begins:
                    continue
                first = min(rounds, sizes[outside] / sizes[inside])
            again, once = (rounds - first) * missing, found[math.inf]
            found = {apart: n * (first + (again if apart < math.inf else 0.0)) for apart, n in found.items()}
            if again > 0:
                found[float(touched)] = found.get(float(touched), 0.0) + once * again
        return found

    def _sized(self, s: Stream, cache: Cache) -> list[int]:
        """The bytes of a stream that each tile touches, by number; in whole lines unless it is packed."""
        key = (s, 0 if s.packed else cache.line_bytes)
        found = self._sizes.get(key)
        if found is None:
            access, element_bytes, line_bytes = s.access, s.access.element_bytes, cache.line_bytes
            boxes = [tuple([t[a] for a in access.axes]) for t in self.tiles] if s.points else self.boxes(access)
            found, last, size = self._sizes.setdefault(key, []), None, 0
            for box in boxes:
                if box is not last:
                    size = int(math.prod(box) * element_bytes * s.border) if s.packed else lines_bytes(access, box, line_bytes)
                    last = box
                found.append(size)
        return found

    def _working_sets(self, cache: Cache) -> list[int]:
        """The working set of one iteration of each loop. Copies count before or after the copy is made; results count where they are
        not being accumulated."""
        found = [0] * len(self.axis_loops)
        for s in self.streams:
            sizes = self._sized(s, cache)
            if s.packed:
                copied, inner = sizes[self._copies[s]], s.inner
                for number, loop in enumerate(self.axis_loops):
                    found[number] += copied if loop.depth < inner else sizes[loop.inside]
            else:
                for number, loop, _ in self._loops_of_stream(s):
                    found[number] += sizes[loop.inside]
        return found

    def _missed(self, s: Stream, cache: Cache, lost: list[float]) -> float:
        chosen, sizes, boxes = self._loops_of_stream(s), self._sized(s, cache), self.boxes(s.access)
        found = start = float(sizes[chosen[0][1].inside if chosen else 0])
        again, moved, held = float(sizes[self._copies[s]]) if s.packed else 0.0, True, True  # moved: the box has changed
        access, packed, inner = s.access, s.packed, s.inner
        part = 1.0 / math.prod([n for a, n in self._parts.items() if a in access.axes]) if self._parts else 1.0
        for number, (_, rounds, inside, outside, depth), along in chosen:
            missing = lost[number]
            if packed:
                if depth < inner:  # the copy is repeated in the same place, which may have been evicted
                    found = found * (1 + (rounds - 1) * missing) + again * missing * rounds
                    again = 0.0
                    continue
            elif missing < 1.0:
                if moved:
                    held, moved = cache.holds(access, boxes[inside]), False
                if not held:
                    missing = 1.0
            if along:
                moved, whole = True, float(sizes[outside])
                least, start = min(float(rounds), whole / start), whole
                found *= least + (rounds - least) * missing
            elif missing:
                found *= 1.0 + (rounds - 1.0) * missing * part
        return found * s.weight


def streams(loops: Loops) -> Iterator[Stream]:
    """Every tensor that a kernel reads or writes, as it is in memory; a staged one also as its packed copy."""
    stream = any(p.stream for p in loops.places)
    waiting = next((p for p in loops.places if p.verb == "accumulate" and p.memory == "shared"), None)
    touched = (access for access in loops.nest.accesses if 0 not in access.tensor.shape)  # empty tensors are never accessed
    for access in (access.flat for access in touched):
        place = loops.staged(access) if not access.store else None
        if access.store and waiting is not None:
            yield Stream(access, outer=waiting.depth, weight=1.0 if stream else 2.0, past=stream)
            yield Stream(access, packed=True, inner=waiting.depth, weight=2.0)  # accumulators are read and written
        elif place is None:
            written = access.store and not stream  # a partial write reads the line first
            yield Stream(access, weight=2.0 if written else 1.0, past=access.store and stream)
        elif place.verb == "compute":
            yield Stream(access, packed=True, points=place.by_points, inner=place.depth)
        else:
            border = 1.0 if place.by_points else math.prod(place.spans) * access.element_bytes / place.box_bytes
            yield Stream(access, outer=place.depth, fetched=fetched_share(loops, place))
            yield Stream(access, packed=True, points=place.by_points, inner=place.depth, border=border)

    if loops.shares:
        yield from _stage_streams(loops)


def _stage_streams(loops: Loops) -> Iterator[Stream]:
    """The other tensors that the stages of a shared loop read, each once."""
    known = {a.name for a in loops.nest.accesses}
    for stage in (p for p in loops.places if p.stage is not None):
        assert stage.stage is not None
        for access in stage.stage.nest.reads:
            place = loops.staged(access)
            if access.name in known or place is not None and place.verb == "compute":
                continue
            known.add(access.name)
            yield Stream(access.flat, outer=stage.depth if place is None else place.depth)
            if place is not None:
                yield Stream(access.flat, packed=True, points=place.by_points, inner=place.depth)


def _of_stages(loops: Loops) -> Tile:
    """The extents of axes that only the stages of a shared loop have."""
    stages = [p.stage for p in loops.places if p.stage is not None] if loops.shares else []
    return {a: n for stage in stages for a, n in stage.nest.extents.items()}


def fetched_share(loops: Loops, place: Placed) -> float:
    """The share of a copy's lines that were prefetched: those of every iteration but the first."""
    assert place.access is not None
    operand, depth = place.operand, place.depth
    if depth and any(p.ahead and p.depth == depth and p.memory in PREFETCHED and p.operand in (operand,) for p in loops.places):
        rounds = loops.loops[depth - 1].rounds[-1][1] if loops.loops[depth - 1].rounds else 1
        return 1.0 - 1.0 / rounds
    return 0.0


def touched_bytes(loops: Loops) -> int:
    """The bytes in memory of all tensors that a kernel and its stages touch, without those kept on chip."""
    inside = [(p, p.stage) for p in loops.places if p.stage is not None and not p.apart]
    made = {p.access.name for p, _ in inside if p.access is not None and not p.stored}
    whole: dict[str, int] = {}
    for nest in (loops.nest, *(stage.nest for _, stage in inside)):
        for name, touched in nest.touched_bytes.items():
            if name not in made:
                whole[name] = max(whole.get(name, 0), touched)
    return sum(whole.values())
