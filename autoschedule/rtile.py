"""The tile of each level, and the schedule that it stands for, on devices whose blocks are tasks of cores with vectors.

An `RTile` is a decision, a Schedule its text: `steps` writes one as the other and decides nothing more. From the outside in: fused
axes; the block; chunks of the reduction, whose operands lie packed in shared memory; pieces, whose results lie in registers; vectors.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator, Mapping

from tilelang.autoschedule.nest import Access, Nest
from tilelang.expr import INDEX, Expr, Var
from tilelang.steps import Fuse, Place, Split, Step, Tile, Vectorize
from tilelang.tensor import Layout


@dataclasses.dataclass(frozen=True)
class RTile:
    """Extents for one level after another; an axis that a level leaves out is as the level above has it.

    fusions: new axes and what they stand for. block: of spatial axes. chunk: of reductions, one round. piece: of spatial axes, a
    round's results in registers. vector: axis and lanes. staged: tensors packed in shared memory. inner: reduction axes from the
    outermost walk in, with the points of one unrolled round. stream: results go past the caches. ahead: tensors fetched into a cache
    so many rounds before.
    """

    fusions: tuple[tuple[str, tuple[str, ...]], ...]
    block: Mapping[str, int]
    chunk: Mapping[str, int]
    piece: Mapping[str, int]
    vector: tuple[str, int] | None
    staged: frozenset[str] = frozenset()
    unroll: int = 1
    stream: bool = False
    ahead: int = 0


def steps(nest: Nest, tile: RTile) -> tuple[Step, ...]:
    """The schedule of a tile for a nest whose axes are fused as it says."""
    return tuple(_steps(nest, tile))


def _steps(nest: Nest, tile: RTile) -> Iterator[Step]:
    for name, parts in tile.fusions:
        yield Fuse(name, parts)
    spatial = [a.name for a in nest.spatial if a.extent > 1]
    reduced = [a.name for a in nest.reduced]
    axis, lanes = tile.vector if tile.vector is not None else ("", 1)
    left = dict(nest.extents)
    if spatial:
        sizes = tuple((a, tile.block[a]) for a in spatial)
        yield Tile(sizes, "block")
        left.update(sizes)
    chunks = tuple((a, tile.chunk[a]) for a in reduced if tile.chunk.get(a, left[a]) < left[a])
    pieces = [(a, tile.piece[a]) for a in spatial if tile.piece[a] < left[a]]
    pieces.sort(key=lambda p: p[0] != axis)  # the panel of the vectors' axis stays near while the others pass
    if tile.stream:
        yield Place("via", None, "register", stream=True)
    if chunks:
        moved = _moved(axis, lanes) if axis not in reduced and pieces else None
        yield Place("accumulate", None, "shared" if pieces else "register", steps=moved)
        yield Split(chunks)
        left.update(chunks)
    for access in _staged(nest, tile):
        yield Place("load", access.name, "shared", packed(nest, access, tile, left))
    if pieces:
        yield Split(tuple(pieces))
        left.update(pieces)
    if reduced and (pieces or not chunks):
        yield Place("accumulate", None, "register")
    yield from _walks(nest, tile, left)
    if tile.vector is not None:
        yield Vectorize(axis, lanes)


def _walks(nest: Nest, tile: RTile, left: dict[str, int]) -> Iterator[Step]:
    """The walks inside a piece: over its reduction, some points of it written out, then over its results."""
    axis, lanes = tile.vector if tile.vector is not None else ("", 1)
    reduced = [a.name for a in nest.reduced if left[a.name] > 1]
    if axis in reduced:
        yield Split(tuple((a, 1) for a in reduced if a != axis)) if len(reduced) > 1 else Split(((axis, lanes),))
        if len(reduced) > 1:
            yield Split(((axis, lanes),))
        if tile.ahead:
            for access in nest.reads:
                if axis in access.axes and access.name not in tile.staged:
                    yield Place("load", access.name, "l1", ahead=tile.ahead)
        reduced = []
    for number, a in enumerate(reduced):
        last = number == len(reduced) - 1
        if last and 8 < left[a] and tile.unroll > 1:
            yield Split(((a, tile.unroll),))
        yield Split(((a, 1),), unroll=last)
    inside = [a.name for a in nest.spatial if left[a.name] > 1 and a.name != axis]
    if reduced and axis and left[axis] >= lanes and inside:
        for access in nest.reads:  # what all results of a piece along the other axes share is fetched once
            if axis in access.axes and not set(inside) & access.axes and (access.name in tile.staged or access.stride(axis) == 1):
                yield Place("load", access.name, "register", steps=_moved(axis, lanes))
    if inside:
        yield Split(tuple((a, 1) for a in inside), unroll=True)


def _moved(axis: str, lanes: int) -> tuple[Step, ...] | None:
    return (Vectorize(axis, lanes),) if lanes > 1 else None


def _staged(nest: Nest, tile: RTile) -> list[Access]:
    found: dict[str, Access] = {}
    for access in nest.reads:
        if access.name in tile.staged:
            found.setdefault(access.name, access)
    return list(found.values())


def packed(nest: Nest, access: Access, tile: RTile, left: Mapping[str, int]) -> Layout | None:
    """The layout in which a piece finds its operands one after another: panels of the piece's extent, inside them the reduction, inside
    it the piece. None where windows overlap: the box as the tensor has it."""
    if overlaps(access, left) and not access.axes & {name for name, _ in tile.fusions}:
        return None
    axis = tile.vector[0] if tile.vector is not None else ""
    spatial = [a.name for a in nest.spatial if a.name in access.axes and left[a.name] > 1]
    spatial.sort(key=lambda a: a == axis)
    outer: list[Expr] = []
    inner: list[Expr] = []
    for a in spatial:
        whole, part = left[a], min(tile.piece[a], left[a])
        variable = Var(a, INDEX)
        if part == whole:
            inner.append(variable)
        elif part == 1:
            outer.append(variable)
        else:
            outer.append(variable // part)
            inner.append(variable % part)
    middle: list[Expr] = [Var(a.name, INDEX) for a in nest.reduced if a.name in access.axes and left[a.name] > 1]
    terms = (*outer, *middle, *inner)
    return Layout(terms) if terms else None


def overlaps(access: Access, tile: Mapping[str, int]) -> bool:
    """Whether points of different axes meet in one element, as windows do: the box is smaller than its axes' points."""
    points = math.prod(tile[a] for a in access.axes)
    return (
        any(len([v for v in i.walk() if isinstance(v, Var)]) > 1 for i in access.indices) and math.prod(access.box(tile)) < points
    )
