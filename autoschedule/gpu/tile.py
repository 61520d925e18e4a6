"""The tile of each level of a GPU, and the schedule made from it.

A `GpuTile` is a decision, and `steps` writes it as a schedule without deciding anything more. From the outside in: fused axes;
the block; chunks of the reduction, copied to shared memory; warps; the elements of a thread, in groups one warp apart, so that
consecutive threads access consecutive elements; vectors.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping

from tilelang.autoschedule.common.accesses import Access, axis_of
from tilelang.autoschedule.common.task_accesses import Nest
from tilelang.core.expr import INDEX, Binary, Var
from tilelang.core.layout import Layout
from tilelang.schedules.steps import Do, Fuse, Place, Split, Step, Team, Tile, Units, Vectorize

Sizes = tuple[tuple[str, int], ...]


@dataclasses.dataclass(frozen=True)
class Staged:
    """An operand in shared memory.

    move: the tile that each thread copies at once, along the buffer's dimensions; vector: its axis and lanes within that tile.
    kept: axis and lanes of the vectors by which threads load it into registers; kept_by: the instruction that does so.
    instruction: the name of the one that copies it; on: the role that does. in_place: the computing instruction reads it from
    shared memory.
    """

    access: Access
    layout: Layout | None
    move: Sizes
    vector: tuple[str, int] | None = None
    kept: tuple[str, int] | None = None
    kept_by: str | None = None
    instruction: str | None = None
    ahead: int = 0
    on: str | None = None
    in_place: bool = False


@dataclasses.dataclass(frozen=True)
class GpuTile:
    """Extents per level, from the outside in; an axis that a level omits has the extent of the level above.

    fusions: new axes with those they fuse. block: of spatial axes, and of a reduction that blocks share. chunk: of reductions,
    per iteration. warp: of a warp's tile (empty: threads belong to the block directly). interleave: of all lanes together in one
    iteration. piece: of one thread in one iteration; count: the number of threads, if they take several tiles each. inner: loops
    inside a thread, with whether they are unrolled. vector: axis and lanes of a thread's stores or operations. instruction: the
    instruction that computes a piece, and its axes. teams: the roles of a block; the last one computes. blocks: the number of
    persistent blocks; order: their numbering.
    """

    fusions: tuple[tuple[str, tuple[str, ...]], ...]
    block: Sizes
    piece: Sizes
    chunk: Sizes = ()
    staged: tuple[Staged, ...] = ()
    warp: Sizes = ()
    walk: Sizes = ()
    interleave: Sizes = ()
    count: int | None = None
    inner: tuple[tuple[Sizes, bool], ...] = ()
    vector: tuple[str, int] | None = None
    instruction: tuple[str, tuple[tuple[str, str], ...]] | None = None
    accumulate: tuple[Step, ...] | None = ()
    order: Layout | None = None
    teams: tuple[Team, ...] = ()
    blocks: int | None = None


@dataclasses.dataclass(frozen=True)
class WarpShape:
    """Of one warp, along the two tiled axes: contiguous elements per lane, lanes, iterations."""

    side: tuple[int, int]
    lanes: tuple[int, int]
    rounds: tuple[int, int]

    @property
    def reach(self) -> tuple[int, int]:
        """The elements of all lanes in one iteration."""
        return self.side[0] * self.lanes[0], self.side[1] * self.lanes[1]

    @property
    def tile(self) -> tuple[int, int]:
        return self.reach[0] * self.rounds[0], self.reach[1] * self.rounds[1]


def steps(tile: GpuTile) -> tuple[Step, ...]:
    """The steps of a tile's schedule."""
    return tuple(_steps(tile))


def _steps(tile: GpuTile) -> Iterator[Step]:
    if tile.teams:
        yield Units("block", tile.teams)
    for name, parts in tile.fusions:
        yield Fuse(name, parts)
    yield Tile(tile.block, "block", tile.blocks, tile.order)
    early = bool(tile.chunk or tile.walk)
    if early:
        yield Place("accumulate", None, "register", steps=tile.accumulate or None)
    if tile.chunk:
        yield Split(tile.chunk)
    for staged in tile.staged:
        yield load(staged)
    if tile.warp:
        yield Tile(tile.warp, (tile.teams and tile.teams[-1].role) or "warp")
    if tile.walk:
        yield Split(tile.walk)
    for staged in tile.staged:
        if staged.kept is not None or staged.kept_by is not None or (tile.instruction is not None and not staged.in_place):
            yield load_fragment(staged)
    if tile.interleave:
        yield Split(tile.interleave)
    if tile.piece:
        yield Tile(tile.piece, "thread", tile.count)
    if tile.inner and not early:
        yield Place("accumulate", None, "register")
    for sizes, unroll in tile.inner:
        yield Split(sizes, unroll=unroll)
    if tile.instruction is not None:
        yield Do(*tile.instruction)
    elif tile.vector is not None and not early:
        yield Vectorize(*tile.vector)


def load_fragment(staged: Staged) -> Place:
    """The load of an operand from shared memory into the registers of the lanes that an instruction gives it to."""
    how: Step | None = Vectorize(*staged.kept) if staged.kept is not None else Do(staged.kept_by) if staged.kept_by else None
    return Place("load", staged.access.operand, "register", steps=(how,) if how is not None else None)


def load(staged: Staged) -> Place:
    """The load of an operand into shared memory."""
    move: tuple[Step, ...] = (Tile(staged.move, "thread"),) if staged.move else ()
    if staged.instruction is not None:
        move += (Do(staged.instruction),)
    elif staged.vector is not None and staged.vector[1] > 1:
        move += (Vectorize(*staged.vector),)
    return Place("load", staged.access.operand, "shared", staged.layout, ahead=staged.ahead, on=staged.on, steps=move or None)


def buffer_dimensions(nest: Nest, access: Access, tile: Mapping[str, int]) -> dict[str, int] | None:
    """The dimensions of an operand's shared buffer, with their extents, by decreasing stride in memory.

    These are the tensor's own if it is staged by region, or the axes of the read if it is staged by access; None if neither names
    every element exactly once.
    """
    if not access.named:
        return None
    box, through = access.box(tile), fused(nest, access)
    groups = [n == 1 and not through and isinstance(i, Binary) and i.op == "//" for i, n in zip(access.indices, box, strict=True)]
    named = [axis_of(i) == d.name for i, d in zip(access.indices, access.tensor.dims, strict=True)]
    if all(own or group for own, group in zip(named, groups, strict=True)):
        return dict(zip((d.name for d in access.tensor.dims), box, strict=True))
    dims = {d.name for d in access.tensor.dims}
    axes = [a for a in nest.axes if a.name in access.axes]
    if not through or {a.name for a in axes} <= dims:
        return None
    axes.sort(key=lambda a: -(access.stride(a.name) or 0))
    held = {a.name: tile[a.name] for a in axes if tile[a.name] > 1}
    return held or {axes[-1].name: 1}


def fused(nest: Nest, access: Access) -> bool:
    """Whether an operand is read through a fused axis."""
    own = {a.name for a in (*nest.task.axes, *nest.task.reduction_axes)}
    return not access.axes <= own


def panels(names: tuple[str, ...], width: int) -> Layout:
    """Units numbered in panels of `width` along the last axis; within a panel, row by row along the axis before.

    >>> print(panels(("b", "m", "n"), 8))
    layout (b, n / 8, m, n % 8)
    """
    *outer, m, n = (Var(name, INDEX) for name in names)
    return Layout((*outer, n // width, m, n % width))


def layout_over(names: list[str], padding: int) -> Layout:
    """A row-major layout with these dimensions."""
    return Layout(tuple(Var(n, INDEX) for n in names), padding)
