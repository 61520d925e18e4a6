"""Stores results in chunks: a loop around the staging buffer, so that the buffer holds one chunk at a time."""

from __future__ import annotations

import dataclasses
import itertools

from tilelang.core.expr import Const, index
from tilelang.core.simplify import simplify
from tilelang.instructions.fragment import Fragment
from tilelang.lowering import ir
from tilelang.lowering.build.distribution.parallel_mapping import numbers
from tilelang.lowering.build.frame import Build, Frame, Piece, Target
from tilelang.lowering.build.movement.storage import Box
from tilelang.lowering.build.reductions.results import boxes_for, stored_by_iteration
from tilelang.lowering.build.refusals import refuse
from tilelang.schedules.steps import Do, Place, Split, Step


def in_pieces(build: Build, frame: Frame, finishing: Frame, i: int, step: Place, stop: Place, walks: tuple[Step, ...],
              rest: tuple[Step, ...]) -> ir.Stmt:  # fmt: skip
    """For each chunk, stores from the owners to the staging buffer, and from there to the target. walks: the loops that cut
    the chunks; rest: the steps after the staging buffer."""
    sizes: dict[str, int] = {}
    for walk in walks:
        if not isinstance(walk, Split) or not isinstance(frame.steps[-1], Do):
            raise refuse(stop, "not-lowered-yet", f"`{stop}` after steps other than loops over an instruction's results is valid,"
                         " but not supported yet", "write `via` first in the braces")  # fmt: skip
        for axis, size in numbers(walk).items():
            sizes[axis] = size
    counts = [range(-(-frame.spec.axis(axis).extent // size)) for axis, size in sizes.items()]
    out, first = list[ir.Stmt](), tuple[Box, ...]()
    for numbered in itertools.product(*counts):
        spec = frame.spec.cut(sizes, {axis: index(j) for axis, j in zip(sizes, numbered, strict=True)})
        inner = frame.replace(spec=spec)
        if not first:
            first = boxes_for(build, inner, stop)
        boxes = tuple(_of_piece(box, inner) for box in first)
        pieces = tuple(Piece(axis, spec.axis(axis).base, size) for axis, size in sizes.items())
        put = build.chain(finishing.replace(target=Target(boxes), pieces=pieces), i + 1)
        out += [put, stored_by_iteration(build, inner, finishing.target, step, boxes, rest)]
    return ir.seq(*out)


def _of_piece(box: Box, frame: Frame) -> Box:
    """The same staging buffer, for another chunk."""
    names = [p.name[1:] for p in box.points] or [d.name for d in box.tensor.dims]
    return dataclasses.replace(box, low=tuple(frame.spec.axis(name).base for name in names))


def slots_inside(held: Fragment, coordinates: list[str], width: int, frame: Frame, step: Do) -> range:
    """The groups of `width` slots of a lane that lie in the frame's chunks: a contiguous range, the same for all lanes.

    coordinates: the axis that each coordinate of the map counts along.
    """
    import numpy as np  # late: NumPy takes long to import

    inside = np.ones(held.table.shape[:2], bool)
    for piece in frame.pieces:
        shift = simplify(frame.spec.axis(piece.axis).base - piece.base)
        if not isinstance(shift, Const):
            raise refuse(step, "not-lowered-yet", f"`{step}` loops over {piece.axis} inside a tile of its results, which is valid, but"
                         " not supported yet", "use tiles inside one instruction's results")  # fmt: skip
        element = held.table[..., coordinates.index(piece.axis)] + int(shift.value)
        inside &= (element >= 0) & (element < piece.size)
    groups = inside.reshape(held.lanes, -1, width)
    chosen = np.flatnonzero(groups.any(axis=(0, 2)))
    if not (groups[:, chosen].all() and np.ptp(chosen) == chosen.size - 1):
        raise refuse(step, "store-width", f"a tile of the results of `{step}` splits the consecutive elements that a lane holds",
                     "use tiles that are multiples of the instruction's own columns")  # fmt: skip
    return range(int(chosen[0]), int(chosen[-1]) + 1)
