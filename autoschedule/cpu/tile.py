"""The tile sizes of each level of a CPU, and the schedule that they describe.

A `CpuTile` holds all decisions; `steps` writes them as a schedule. From the outside in: fused axes; the block; chunks of the reduction,
with operands packed in shared memory; register tiles; vectors.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator, Mapping
from typing import TypeAlias

from tilelang.autoschedule.common.accesses import Access, Operand, axis_of, steps_of
from tilelang.autoschedule.common.axes import Fusions
from tilelang.autoschedule.common.task_accesses import Nest
from tilelang.autoschedule.cpu.constants import CPU
from tilelang.core.expr import INDEX, Axis, Expr, Var
from tilelang.core.layout import Layout
from tilelang.core.lazy import Caching, cached_property
from tilelang.core.node import record
from tilelang.core.simplify import linear
from tilelang.schedules.steps import Fuse, Place, Split, Step, Tile, Vectorize

PANELS, BOX = "panels", "box"
Staged: TypeAlias = Mapping[Operand, str]


@record
class CpuTile(Caching):
    """Extents for each level. An axis that a level leaves out has the extent of the level above."""

    fusions: Fusions  # the fused axes
    block: Mapping[str, int]  # spatial axes, and a reduction that several blocks share
    chunk: Mapping[str, int]  # reductions: one iteration of the loop with packed operands
    piece: Mapping[str, int]  # spatial axes: the register tile
    vector: tuple[str, int] | None  # its axis and lanes
    staged: Staged  # operands copied to shared memory: packed for register tiles (`PANELS`), or as a region (`BOX`)
    panels_first: bool = True  # a panel of the vectors' axis stays in the cache while register tiles traverse the other axes
    stream: bool = False  # results are stored past the caches
    ahead: int = 0  # iterations of prefetching: of the vectors' operands, or of the chunks that are copied
    gathers: bool = True  # sums are kept in shared memory between chunks; else in the output
    square: int = 1  # lanes of the squares in which copies transpose in registers; 1: element by element

    @cached_property
    def key(self) -> tuple[object, ...]:
        """A key that is equal for equal tiles."""
        levels = [tuple(sorted(m.items())) for m in (self.block, self.chunk, self.piece)]
        staged = frozenset(self.staged.items())
        return (self.fusions, *levels, staged, self.vector, self.panels_first, self.stream, self.ahead, self.gathers, self.square)

    @cached_property
    def axis(self) -> str:
        return self.vector[0] if self.vector is not None else ""

    @cached_property
    def lanes(self) -> int:
        return self.vector[1] if self.vector is not None else 1


def steps(nest: Nest, tile: CpuTile) -> tuple[Step, ...]:
    """The schedule that a tile describes. The nest's axes are already fused as the tile says."""
    return tuple(_steps(nest, tile))


def _steps(nest: Nest, tile: CpuTile) -> Iterator[Step]:
    for name, parts in tile.fusions:
        yield _fuse(name, parts)
    spatial, reduced, staged = nest.wide_names, nest.reduced_extents, _staged(nest, tile)
    left = dict(nest.extents)
    if blocks := blocks_of(nest, tile):
        yield _spread(blocks)
        left.update(blocks)
    chunks = tuple([(a, tile.chunk[a]) for a in reduced if tile.chunk.get(a, left[a]) < left[a]])
    pieces = [(a, tile.piece[a]) for a in spatial if tile.piece[a] < left[a]]
    if tile.panels_first:
        pieces.sort(key=lambda p: p[0] != tile.axis)
    if tile.stream:
        yield Place("via", None, "register", stream=True)
    if chunks:
        if not pieces or tile.gathers:
            yield _sums(nest, tile) if pieces else _sum("register", None, None)
        yield _cut(chunks)
        left.update(chunks)
    if chunks and tile.ahead:
        for access in staged:
            if fetchable(access, tile):
                yield Place("load", access.operand, "l2", ahead=tile.ahead)
    for access in staged:
        layout = staged_layout(nest, access, tile, left)
        yield _load(access.operand, "shared", layout, _move_steps(access, layout, tile, left))
    if pieces:
        tails = any(nest.extents[a] % n for a, n in pieces if a != tile.axis)
        yield _cut(tuple(pieces), False, tails)
        left.update(pieces)
    if reduced and (pieces or not chunks):
        turned = not chunks and scattered(nest, tile)
        yield _sum("register", None, (_transposing_store(nest, tile),) if turned else None)
    yield from _inner_loops(nest, tile, left)
    if tile.vector is not None:
        yield _vector(*tile.vector)


def blocks_of(nest: Nest, tile: CpuTile) -> tuple[tuple[str, int], ...]:
    """The extents of a block: along the results, and along reductions that several blocks share. Empty for a single result that one
    block computes."""
    shared = [(a, tile.block[a]) for a, n in nest.reduced_extents.items() if tile.block.get(a, n) < n]
    return (*((a, tile.block[a]) for a in nest.wide_names), *shared)


# Candidates share most of their steps, and looking up a step is faster than constructing it.
_fuse = functools.lru_cache(maxsize=1 << 8)(Fuse)
_spread = functools.lru_cache(maxsize=1 << 12)(lambda sizes: Tile(sizes, "block"))
_cut = functools.lru_cache(maxsize=1 << 12)(Split)
_vector = functools.lru_cache(maxsize=1 << 8)(Vectorize)


@functools.lru_cache(maxsize=1 << 12)
def _load(operand: Operand, memory: str, layout: Layout | None, moved: tuple[Step, ...] | None) -> Place:
    return Place("load", operand, memory, layout, steps=moved)


@functools.lru_cache(maxsize=1 << 8)
def _sum(memory: str, layout: Layout | None, handed_on: tuple[Step, ...] | None) -> Place:
    return Place("accumulate", None, memory, layout, steps=handed_on)


def _inner_loops(nest: Nest, tile: CpuTile, left: dict[str, int]) -> Iterator[Step]:
    """The loops inside a register tile: over its reduction, partly unrolled, then over its results."""
    axis, lanes = tile.axis, tile.lanes
    reduced = [a for a in reduction_order(nest) if left[a] > 1 and a != axis]
    inside = [a for a in nest.spatial_extents if left[a] > 1 and a != axis]
    if axis in nest.reduced_extents:
        for a in reduced:
            yield _cut(((a, 1),))
        yield _cut(((axis, lanes),))
        yield from _fetches(nest, tile)
    else:
        for number, a in enumerate(reduced):
            last = number == len(reduced) - 1
            if last and left[a] > CPU.unrolled:
                size = unroll_factor(left[a])
                yield _cut(((a, size),), False, nest.extents[a] % left[a] > 0 or left[a] % size > 0)
            yield _cut(((a, 1),), last and not _windows(nest, a, tile, inside))
        if reduced and axis and left[axis] >= lanes and inside:
            for access in nest.reads:  # operands shared by all results along the other axes are loaded once
                if access.named and axis in access.axes and not access.axes.issuperset(inside):
                    if access.operand in tile.staged or access.stride(axis) == 1:
                        yield _load(access.operand, "register", None, _moved(_along(access, tile), lanes))
        if not reduced:
            yield from _fetches(nest, tile)
    if inside:  # broadcasts one value at a time, because the vectors are fewer and stay in registers
        shared = _only_with(nest, axis)
        yield _cut(tuple([(a, 1) for a in (*(a for a in inside if a not in shared), *(a for a in inside if a in shared))]), True)


@functools.lru_cache(maxsize=1 << 8)
def _only_with(nest: Nest, axis: str) -> frozenset[str]:
    """The axes that occur only in reads that also depend on `axis`."""
    return frozenset(a.name for a in nest.axes if all(a.name not in r.axes or axis in r.axes for r in nest.reads))


def _along(access: Access, tile: CpuTile) -> str:
    """The name along which a move is vectorized: the tensor's dimension, or the axis if the buffer has one element per point of the
    axes."""
    by_point = tile.staged.get(access.operand) == PANELS and plain_dims(access) is None
    return tile.axis if by_point else _dim_along(access, tile.axis)


@functools.lru_cache(maxsize=1 << 10)
def _dim_along(access: Access, axis: str) -> str:
    """The dimension of a tensor along which an axis runs; the axis itself if an index is more than a sum of axes."""
    if any(not isinstance(atom, (Var, Axis)) for i in access.indices for atom, _ in linear(i)[0]):
        return axis
    return next(d.name for i, d in zip(access.indices, access.tensor.dims, strict=True) if axis in steps_of(i))


def fetchable(access: Access, tile: CpuTile) -> bool:
    """Whether the next chunk of an operand can be prefetched: it is copied as a region of its tensor, not point by point."""
    by_region = tile.staged.get(access.operand) == BOX or plain_dims(access) is not None
    return by_region and any(a in access.axes for a, n in tile.chunk.items())


def _sums(nest: Nest, tile: CpuTile) -> Place:
    """The accumulators that hold results from one chunk to the next, laid out so that each vector of them is contiguous."""
    if tile.axis not in nest.spatial_extents:
        return _sum("shared", None, None)
    names = sorted((a.name for a in nest.spatial), key=lambda a: a == tile.axis)
    beside = all(w.stride(tile.axis) == 1 for w in nest.writes)
    layout = None if beside else Layout(tuple(Var(a, INDEX) for a in names))
    return _sum("shared", layout, _moved(tile.axis, tile.lanes))


def scattered(nest: Nest, tile: CpuTile) -> bool:
    """Whether a register tile has many results, and the lanes of its vectors are not contiguous in memory."""
    if tile.axis not in nest.spatial_extents or math.prod(tile.piece.values()) // tile.lanes <= CPU.few_results:
        return False
    return any(w.stride(tile.axis) != 1 for w in nest.writes)


def _transposing_store(nest: Nest, tile: CpuTile) -> Place:
    """A store through shared memory, which transposes results into whole vectors. Lanes that are stored one by one are unrolled, which
    costs milliseconds of compile time each."""
    names = sorted((a.name for a in nest.spatial), key=lambda a: a == tile.axis)
    return Place("via", None, "shared", Layout(tuple(Var(a, INDEX) for a in names)))


@functools.lru_cache(maxsize=1 << 8)
def output_holds_sums(nest: Nest) -> bool:
    """Whether results are plain sums without an epilogue, so that the output itself can hold the sums between chunks."""
    states = [t.dtype for s in nest.task.states for t in s.tensors]
    return not nest.outer and states == [w.tensor.dtype for w in nest.writes]


def _windows(nest: Nest, reduced: str, tile: CpuTile, inside: list[str]) -> bool:
    """Whether unrolling a loop of a large register tile would keep the overlapping reads of neighbouring results in registers that the
    results need."""
    if math.prod(tile.piece.values()) // tile.lanes <= CPU.few_results:
        return False
    return not _beside(nest, reduced).isdisjoint(inside)


@functools.lru_cache(maxsize=1 << 8)
def _beside(nest: Nest, axis: str) -> frozenset[str]:
    """The axes that occur together with an axis in one index of a read."""
    found = (steps_of(i) for a in nest.reads for i in a.indices)
    return frozenset(name for steps in found if axis in steps for name in steps)


@functools.lru_cache(maxsize=1 << 8)
def reduction_order(nest: Nest) -> tuple[str, ...]:
    """The reduction's axes in loop order: the longest is the innermost, and is unrolled."""
    return tuple(a.name for a in sorted(nest.reduced, key=lambda a: a.extent))


def _fetches(nest: Nest, tile: CpuTile) -> Iterator[Step]:
    """Prefetches of the operands that are not staged."""
    if tile.ahead:
        for operand, reads in nest.operands.items():
            once = not any(
                a.gathered or not a.named or reused(nest, a) for a in reads
            )  # elements that are read again are in a cache already
            if once and operand not in tile.staged and any(tile.axis in a.axes for a in reads):
                yield Place("load", operand, "l1", ahead=tile.ahead)


def unroll_factor(extent: int) -> int:
    """The unroll factor of a reduction's innermost loop: a number near four that divides the extent, if there is one.

    >>> unroll_factor(256), unroll_factor(27), unroll_factor(31)
    (4, 3, 4)
    """
    return next((n for n in (4, 5, 3, 6, 7, 8, 2) if extent % n == 0), 4)


@functools.lru_cache(maxsize=1 << 8)
def _moved(axis: str, lanes: int) -> tuple[Step, ...] | None:
    return (_vector(axis, lanes),) if lanes > 1 else None


def _staged(nest: Nest, tile: CpuTile) -> list[Access]:
    """The first read of each operand that is staged."""
    return [reads[0] for operand, reads in nest.operands.items() if operand in tile.staged]


# ---------------------------------------------------------------- layouts of operands in shared memory


@functools.lru_cache(maxsize=1 << 10)
def plain_dims(access: Access) -> Mapping[str, str] | None:
    """The dimension along which each axis runs, if every index is a single axis; else None."""
    found: dict[str, str] = {}
    for index, dim in zip(access.indices, access.tensor.dims, strict=True):
        if not axis_of(index):
            return None
        found[axis_of(index)] = dim.name
    return found if len(found) == len(access.indices) else None


def staged_layout(nest: Nest, access: Access, tile: CpuTile, left: Mapping[str, int]) -> Layout | None:
    """The layout of a staged operand; None for that of its tensor."""
    if tile.staged[access.operand] == PANELS:
        return _panels(nest, access, tile, left)
    return box_layout(access, tile.axis if tile.axis in access.axes or not nest.reduced else reduction_order(nest)[-1])


def _panels(nest: Nest, access: Access, tile: CpuTile, left: Mapping[str, int]) -> Layout | None:
    """Panels of the size of a register tile; inside a panel the reduction, then the tile, with the vectors' axis last."""
    dims = plain_dims(access)
    spatial = [a.name for a in nest.spatial if a.name in access.axes and left[a.name] > 1]
    spatial.sort(key=lambda a: a == tile.axis)
    outer: list[Expr] = []
    inner: list[Expr] = []
    for a in spatial:
        variable = _index(dims[a] if dims is not None else a)
        part = tile.piece[a]
        if part >= left[a]:
            inner.append(variable)
        elif part == 1:
            outer.append(variable)
        else:
            whole, rest = _divided(variable, part)
            outer.append(whole)
            inner.append(rest)
    middle: list[Expr] = [
        _index(dims[a.name] if dims is not None else a.name) for a in nest.reduced if a.name in access.axes and left[a.name] > 1
    ]
    if dims is not None:  # by region: every dimension is named
        outer = [_index(d) for a, d in dims.items() if left[a] <= 1] + outer
    else:  # by point: a layout that names only axes called like dimensions would be one over the dimensions
        named, own = {a for a in access.axes if left[a] > 1}, {d.name for d in access.tensor.dims}
        if named and named <= own:
            outer = [_index(min(access.axes - own)), *outer]
    terms = (*outer, *middle, *inner)
    return Layout(terms) if terms else None


@functools.lru_cache(maxsize=1 << 10)
def _index(name: str) -> Var:
    return Var(name, INDEX)


@functools.lru_cache(maxsize=1 << 10)
def _divided(variable: Var, part: int) -> tuple[Expr, Expr]:
    return variable // part, variable % part


@functools.lru_cache(maxsize=1 << 10)
def box_layout(access: Access, axis: str) -> Layout | None:
    """The layout of a box with the dimension of an axis last, split into as many phases as the axis' stride, so that consecutive points
    along the axis are contiguous.

    >>> import tilelang as tl
    >>> c, q, s = tl.axes(c=8, q=5, s=3)
    >>> X = tl.input("X", tl.float32, c=8, w=11)
    >>> print(box_layout(Access(X, (c, q * 2 + s)), "q"), box_layout(Access(X, (c, q + s)), "c"))
    layout (c, w % 2, w / 2) layout (w, c)
    """
    factors = [steps_of(i).get(axis, 0) for i in access.indices]
    along = [d for d, f in enumerate(factors) if f]
    if not along or (along[-1] == len(factors) - 1 and factors[-1] == 1):
        return None
    names = [d.name for d in access.tensor.dims]
    last, factor = Var(names[along[-1]], INDEX), abs(factors[along[-1]])
    others: list[Expr] = [Var(n, INDEX) for d, n in enumerate(names) if d != along[-1]]
    return Layout((*others, last) if factor == 1 else (*others, last % factor, last // factor))


def by_points(nest: Nest, access: Access) -> bool:
    """Whether an operand can be staged point by point: it is read in one way, its padding included, without a gather. If its dimensions
    have the names of the axes, a layout over these names is one over its dimensions, which is equivalent only for plain indices."""
    if len(nest.operands[access.operand]) > 1 or access.gathered or access.ways > 1 or not access.named:
        return False
    return plain_dims(access) is not None or not access.axes <= access.dims


def overlaps(access: Access, tile: Mapping[str, int]) -> bool:
    """Whether several points read the same element, as overlapping windows do: the box is smaller than the number of points."""
    return math.prod(access.box(tile)) < math.prod(tile[a] for a in access.axes)


def reused(nest: Nest, access: Access) -> bool:
    """Whether elements of an operand are read at more than one point."""
    return access.padded or overlaps(access, nest.extents) or any(a.name not in access.axes for a in nest.axes if a.extent > 1)


def _move_steps(access: Access, layout: Layout | None, tile: CpuTile, left: Mapping[str, int]) -> tuple[Step, ...] | None:
    """A vectorized move, if elements that are contiguous in memory are also contiguous in the layout; a transposition of squares in
    registers, if they are contiguous along another axis there."""
    dims = plain_dims(access)
    if layout is None or dims is None or tile.axis not in dims or access.padded:
        return None
    if access.stride(tile.axis) == 1:
        return _moved(dims[tile.axis], tile.lanes)
    along, n = next((a for a in dims if access.stride(a) == 1), None), tile.square
    ends_along = bool(layout.terms) and isinstance(layout.terms[-1], Var) and layout.terms[-1].name == dims[tile.axis]
    if along is None or n < 2 or not ends_along or left[tile.axis] % n or left[along] % n:
        return None
    rows, columns = dims[tile.axis], dims[along]
    fetch = (Place("load", access.name, "l2", ahead=tile.ahead),) if tile.ahead else ()
    return Split(((rows, n),)), Split(((columns, n),)), *fetch, Split(((rows, 1),), unroll=True), Vectorize(columns, n)


def _box_bytes(nest: Nest, access: Access, tile: CpuTile, left: Mapping[str, int]) -> int:
    """The bytes of a staged box that covers all reads of an operand, including elements outside the tensor, in whole phases."""
    layout = staged_layout(nest, access, tile, left)
    spans = [n + apart for n, apart in zip(access.spans(left), _read_distances(nest, access.operand), strict=True)]
    if layout is None:
        return int(math.prod(spans)) * access.element_bytes
    return _laid_out(layout, tuple((d.name, n) for d, n in zip(access.tensor.dims, spans, strict=True)), access.element_bytes)


@functools.lru_cache(maxsize=1 << 8)
def _read_distances(nest: Nest, operand: Operand) -> tuple[int, ...]:
    """The distance between the first and the last read of an operand along each dimension."""
    begins = zip(*([linear(i)[1] for i in a.indices] for a in nest.operands[operand]), strict=True)
    return tuple(max(b) - min(b) for b in begins)


@functools.lru_cache(maxsize=1024)
def _laid_out(layout: Layout, box: tuple[tuple[str, int], ...], element_bytes: int) -> int:
    """The bytes of a box in a layout."""
    return math.prod(layout.place(dict(box), element_bytes).shape) * element_bytes


def shared_bytes(nest: Nest, tile: CpuTile) -> int:
    """The shared memory that a block needs: operands in whole panels, and the sums that are kept or transposed there, each aligned to a
    cache line."""
    whole, piece, chunk, cut = {**nest.extents, **tile.block}, tile.piece, dict[str, int](), False
    for a, extent in nest.reduced_extents.items():
        left = min(whole[a], extent)
        chunk[a] = min(tile.chunk.get(a, left), left)
        cut = cut or chunk[a] < left
    total = 0
    for access in _staged(nest, tile):
        if tile.staged[access.operand] == PANELS:
            held = access.element_bytes
            for a in access.axes:
                if a in chunk:
                    held *= chunk[a]
                else:
                    part = min(piece.get(a, 1), whole[a])
                    held *= -(-whole[a] // part) * part
        else:
            held = _box_bytes(nest, access, tile, {**whole, **chunk})
        total += -(-held // 64) * 64
    waits = tile.gathers and cut and any(piece[a] < min(whole[a], n) for a, n in nest.spatial_extents.items())
    turned = bool(chunk) and not cut and scattered(nest, tile)
    if waits or turned:
        results = math.prod((whole if waits else tile.piece)[a.name] for a in nest.spatial)
        if turned:  # the tail of an axis is separate code, with its own results
            results <<= sum(a.extent % tile.piece[a.name] > 0 or a.extent % whole[a.name] > 0 for a in nest.spatial)
        members = [v.dtype.bytes for s in nest.task.states for v in s.reduce.combiner.left]
        total += sum(-(-results * b // 64) * 64 for b in members)
    return total
