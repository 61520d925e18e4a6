"""What misses a cache: for every tensor that a schedule touches, the lines that come from beyond, walk by walk from the innermost out.

A walk over an axis that a tensor has brings new lines, save those that windows share. A walk over another axis finds its lines again
where all that one round of it touches fits the cache and the tensor's rows find places there; else it brings them anew. A table of
pages is a cache whose lines are pages.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator

from tilelang.autoschedule.loops import Loops, Placed
from tilelang.autoschedule.nest import Access, Tile


@dataclasses.dataclass(frozen=True)
class Cache:
    """One cache of a core: its size, the places that a line may take (None: any), and the bytes that come from beyond it in a cycle
    (None: it takes no time)."""

    name: str
    bytes: int
    ways: int | None
    line_bytes: int
    beyond: float | None = None

    def footprint(self, access: Access, box: tuple[int, ...]) -> int:
        """Bytes of the lines that a box touches: rows that lie apart begin and end in lines of their own."""
        run = element = access.element_bytes
        rows, strides = 1, access.strides
        for d in range(len(box) - 1, -1, -1):
            if rows == 1 and run == element * strides[d]:
                run *= box[d]  # all of what follows is touched: the rows of this dimension join
            else:
                rows *= box[d]
        return rows * (-(-run // self.line_bytes)) * self.line_bytes if rows > 1 else max(run, self.line_bytes)

    def holds(self, access: Access, box: tuple[int, ...]) -> bool:
        """Whether the rows of a box find places: rows that lie a power of two apart share the same few."""
        if self.ways is None:
            return True
        row = box[-1] * access.element_bytes if box else access.element_bytes
        lines = -(-row // self.line_bytes)
        sets = max(1, self.bytes // (self.ways * self.line_bytes))
        for extent, stride in zip(box[:-1], access.strides[:-1], strict=True):
            apart = stride * access.element_bytes
            reached = sets if apart % self.line_bytes else sets // math.gcd(apart // self.line_bytes, sets)
            if extent * lines > self.ways * min(sets, lines * reached):
                return False
        return True


@dataclasses.dataclass(frozen=True, eq=False)
class Walk:
    """Rounds along one axis, one after another. inside, outside: the tiles of one round and of all, by number; depth: of its loop."""

    axis: str
    rounds: int
    inside: int
    outside: int
    depth: int


@dataclasses.dataclass(frozen=True, eq=False)
class Stream:
    """One tensor's way through the caches. packed: it lies as it is read, in memory of the block. outer: only walks of loops before
    this depth count, where a copy takes over; inner: only walks from this depth on. weight: what one byte of it is worth."""

    access: Access
    packed: bool = False
    outer: int | None = None
    inner: int = 0
    weight: float = 1.0


class Traffic:
    """The walks and the streams of a kernel: what every cache is asked about.

    depth: loops inside which a body stands; pieces: loops inside which results stay in registers.
    """

    def __init__(self, loops: Loops, depth: int, pieces: int) -> None:
        self.pieces = pieces
        self.streams = list(streams(loops))
        self.tiles: list[Tile] = [loops.tiles[0]]
        self.walks: list[Walk] = []  # the innermost first; each has as many rounds as its axis needs, not as its cuts do
        self._boxes: dict[tuple[Access, int], tuple[int, ...]] = {}
        for d in range(depth):
            for axis, _ in loops.loops[d].rounds:
                tile, size = self.tiles[-1], loops.tiles[d + 1][axis]
                rounds = -(-tile[axis] // size)
                if rounds > 1:
                    self.walks.append(Walk(axis, rounds, len(self.tiles), len(self.tiles) - 1, d))
                    self.tiles.append({**tile, axis: size})
        self.walks.reverse()

    def box(self, access: Access, tile: int) -> tuple[int, ...]:
        """The box of a tile by its number."""
        found = self._boxes.get((access, tile))
        if found is None:
            found = self._boxes[access, tile] = access.box(self.tiles[tile])
        return found

    def missed(self, cache: Cache) -> list[tuple[Stream, float]]:
        """For every stream the bytes of the lines that come from beyond a cache, in the whole kernel."""
        fits = [self._working_set(cache, w) <= cache.bytes for w in self.walks]
        return [(s, self._missed(s, cache, fits)) for s in self.streams]

    def _size(self, s: Stream, cache: Cache, tile: int) -> int:
        box = self.box(s.access, tile)
        return math.prod(box) * s.access.element_bytes if s.packed else cache.footprint(s.access, box)

    def _working_set(self, cache: Cache, walk: Walk) -> int:
        """Bytes that one round of a walk touches."""
        there = [s for s in self.streams if (walk.depth >= s.inner if s.packed else s.outer is None or walk.depth < s.outer)]
        return sum(self._size(s, cache, walk.inside) for s in there)

    def _missed(self, s: Stream, cache: Cache, fits: list[bool]) -> float:
        last = self.pieces if s.access.store else s.outer
        chosen = [(w, f) for w, f in zip(self.walks, fits, strict=True) if last is None or w.depth < last]
        found = start = float(self._size(s, cache, chosen[0][0].inside if chosen else 0))
        for walk, fit in chosen:
            if s.packed and walk.depth < s.inner:
                found *= walk.rounds  # the copy is made anew, and read
                continue
            fit = fit and (s.packed or cache.holds(s.access, self.box(s.access, walk.inside)))
            if walk.axis in s.access.axes:
                whole = float(self._size(s, cache, walk.outside))
                found *= min(float(walk.rounds), whole / start) if fit else walk.rounds
                start = whole
            elif not fit:
                found *= walk.rounds
        return found * s.weight


def streams(loops: Loops) -> Iterator[Stream]:
    """Every tensor that a kernel reads or writes: as it lies, and where it is staged as it is packed, too."""
    staged = staged_places(loops)
    stream = any(p.stream for p in loops.places)
    for access in loops.nest.accesses:
        place = staged.get(access.name) if not access.store else None
        if place is None:
            yield Stream(
                access, weight=2.0 if access.store and not stream else 1.0
            )  # a line is read before a part of it is written
        elif place.verb == "compute":
            yield Stream(access, packed=True, inner=place.depth)
        else:
            yield Stream(access, outer=place.depth)
            yield Stream(access, packed=True, inner=place.depth)


def staged_places(loops: Loops) -> dict[str, Placed]:
    """Where tensors lie in memory of the block, by name."""
    return {
        p.access.name: p for p in loops.places if p.access is not None and p.verb in ("load", "compute") and p.memory == "shared"
    }


def touched_bytes(loops: Loops) -> int:
    """Bytes of all tensors that a kernel touches in memory, those of its stages too, but for what it keeps on chip."""
    inside = [(p.access, p.stage) for p in loops.places if p.stage is not None and p.memory != "global"]
    made = {access.name for access, _ in inside if access is not None}
    whole: dict[str, int] = {}
    for nest in (loops.nest, *(stage.nest for _, stage in inside)):
        for a in nest.accesses:
            if a.name not in made:
                whole[a.name] = max(whole.get(a.name, 0), a.footprint_bytes(nest.extents))
    return sum(whole.values())
