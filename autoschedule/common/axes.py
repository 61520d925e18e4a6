"""The axes of a task: which of them may be fused, and the sizes that divide an axis into equal parts."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import TypeAlias

from tilelang.autoschedule.common.accesses import axes_of
from tilelang.autoschedule.common.conditions import conditions
from tilelang.autoschedule.common.task_accesses import Nest, NestAxis

Fusions: TypeAlias = tuple[tuple[str, tuple[str, ...]], ...]  # new axes, and the axes that they fuse


def fused(nest: Nest) -> Iterator[tuple[Fusions, Nest]]:
    """The nest with all axes fused that can be fused for free; and, if overlapping windows prevent some of that, with all neighbours of
    a kind fused."""
    free, made = _fuse_all(nest, free_only=True)
    yield free, made
    every, whole = _fuse_all(nest, free_only=False)
    if _walks(whole) < _walks(made):
        yield every, whole


def _walks(nest: Nest) -> int:
    return sum(a.extent > 1 for a in nest.axes)


def _fuse_all(nest: Nest, free_only: bool) -> tuple[Fusions, Nest]:
    fusions: list[tuple[str, tuple[str, ...]]] = []
    taken = set(nest.extents)
    for kind in (False, True):
        group: list[str] = []
        for axis in [*(a for a in nest.axes if a.reduction == kind), None]:
            if axis is not None and (not group or _may_fuse(nest, group[-1], axis.name, free_only)):
                group.append(axis.name)
                continue
            if len(group) > 1:
                name = name_of_fused(group, taken)
                taken.add(name)
                fusions.append((name, tuple(group)))
            group = [axis.name] if axis is not None else []
    for name, parts in fusions:
        nest = nest.fuse(name, parts)
    return tuple(fusions), nest


def name_of_fused(parts: Sequence[str], taken: Collection[str]) -> str:
    """An unused name for the fusion of several axes.

    >>> name_of_fused(("i", "j"), {"i_j"})
    'i_j_'
    """
    name = "_".join(parts)
    while name in taken:
        name += "_"
    return name


def _may_fuse(nest: Nest, outer: str, inner: str, free_only: bool) -> bool:
    """Whether two neighbouring axes can be fused. free_only: only if every access is contiguous across the end of the inner one, and no
    condition on them would have to divide the fused axis."""
    extent = nest.axis(inner).extent
    if free_only and any(not names.isdisjoint((outer, inner)) for names in map(axes_of, conditions(nest))):
        return False
    if any((outer in r.axes) != (inner in r.axes) for r in nest.reads):
        return False
    accesses = nest.accesses if free_only else nest.writes if not nest.axis(inner).reduction else ()
    for a in accesses:
        first, second = a.stride(outer), a.stride(inner)
        if first is None or second is None or first != second * extent or a.regular(inner, extent) < extent:
            return False
        if a.padded and second:
            return False
    return True


def shared_out(axes: Collection[NestAxis], wanted: int, piece: Mapping[str, int]) -> dict[str, int]:
    """The extents of a block such that the axes are divided into at least `wanted` blocks of whole pieces, if possible. The
    outermost axes are cut first."""
    block, made = {a.name: a.extent for a in axes}, 1
    for a in axes:
        if made >= wanted:
            break
        least = piece.get(a.name, 1)
        block[a.name] = in_parts(a.extent, min(-(-a.extent // least), -(-wanted // made)), least)
        made *= -(-a.extent // block[a.name])
    return block


def in_parts(extent: int, parts: int, piece: int) -> int:
    """The extent of a part, if an axis is divided into this many equal parts of whole pieces.

    >>> in_parts(1000, 3, 48)
    336
    """
    return math.ceil(math.ceil(extent / parts) / piece) * piece
