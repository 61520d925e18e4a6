"""Loads of fragments by one instruction, such as `ldmatrix`: it reads a tile of shared memory and gives each lane its slots.

The load must fill the registers that the operand map of the reading instruction expects: each element in the same lane, and in
consecutive slots if the buffer has several. Both maps are enumerated and compared, once per load.
"""

from __future__ import annotations

import math

import numpy as np

from tilelang.core.expr import Expr, Unary, index
from tilelang.core.simplify import interval, simplify
from tilelang.instructions.matching import Match
from tilelang.lowering import ir
from tilelang.lowering.build.accesses import accesses_of
from tilelang.lowering.build.conditions import inside_piece
from tilelang.lowering.build.frame import Build, Frame, Target, nested
from tilelang.lowering.build.instruction.fragments import FragmentShare, open_bounds, taken
from tilelang.lowering.build.instruction.match import checked, leaf_match
from tilelang.lowering.build.movement.footprint import Region, sources
from tilelang.lowering.build.movement.storage import Box
from tilelang.lowering.build.refusals import refuse
from tilelang.lowering.guards import Effect, has_no_effect
from tilelang.schedules.steps import Do, Place


def fragment_move(build: Build, frame: Frame, step: Place, region: Region, share: FragmentShare) -> ir.Stmt:
    """One instruction per tile of the move."""
    do = step.steps[-1] if step.steps else None
    assert isinstance(do, Do)
    spec = region.spec.replace(level=share.level)
    inner = Frame(region.task, (do,), spec, Target((share,)), sources(frame, region), cuts=frame.cuts)
    inner = inner.replace(matched=leaf_match(build, region.task, spec, (do,), inner.residences, "register"))
    checked(inner, do, "register")
    found = inner.match
    tile = _moved_tile(do, found, region, share)
    _compare_slots(do, found, region, share, tile)
    source = region.source
    if not isinstance(source, Box) or not _filled_alike(build, inner, region):
        raise refuse(do, "unguardable-do", f"`{do}` cannot be guarded, and nothing fills the elements outside {share.tensor.name}",
                     f"load {share.tensor.name} in shared first, which fills the elements outside")  # fmt: skip
    walks, at, begins = [], [], []
    for dim, mine, theirs, a in zip(share.dims, tile, share.tile, region.spec.axes, strict=True):
        count = dim.size * theirs // mine
        v = build.several(f"{share.tensor.name}_r", count)
        first = simplify(v * (mine // theirs))
        at += [first] if dim.size > 1 else []
        begin = simplify((dim.unit + dim.offset(first)) * theirs)
        if (high := interval(begin)[1]) is None or high + mine > a.extent:
            raise refuse(do, "unguardable-do", f"`{do}` cannot be guarded, and some units have no tile of {share.tensor.name} along"
                         f" {a.name}", "use as many tiles as there are units", f"a tile from {begin} of {a.extent}")  # fmt: skip
        walks.append(v)
        begins.append(begin)
    body = _one_tile(do, found, region, share, source, (*at, index(0)), begins)
    return nested(walks, body, "serial", step.span)


def _filled_alike(build: Build, frame: Frame, region: Region) -> bool:
    """Whether the source already holds the fill value wherever no point exists."""
    points = {a.name: a.base + inside_piece(a.name, a.extent) for a in region.spec.axes}
    accesses = accesses_of(build, frame, region.task.values, points)
    wanted = Effect(value=region.task.values[0], identity=region.fill)
    ends = [b.holds(inside_piece(a.name, a.extent)) for a in region.spec.axes for b in open_bounds(a)]
    return all(has_no_effect([Unary("not", end)], accesses, wanted) for end in ends)


def _one_tile(do: Do, found: Match, region: Region, share: FragmentShare, source: Box, at: tuple[Expr, ...],
              begins: list[Expr]) -> ir.Stmt:  # fmt: skip
    semantics = found.instruction
    name = next(o for o, _ in found.operands if o != semantics.writes)
    held = semantics.fragment(name)
    assert held is not None
    inside = dict(zip(taken(found, name, region.spec.names)[1], held.at(share.lane, index(0)), strict=True))
    low = zip(region.low, begins, strict=True)
    element = tuple(simplify(b + begin + inside.get(p, index(0))) for p, (b, begin) in enumerate(low))
    operands = ((semantics.writes, share.buffer, at), (name, source.buffer, source.at(element)))
    return ir.Instruction(semantics, operands, semantics.width, do.span)


def _moved_tile(do: Do, found: Match, region: Region, share: FragmentShare) -> tuple[int, ...]:
    """How many elements the instruction loads along each dimension; a multiple of the reader's tile."""
    tile, _ = taken(found, found.instruction.writes, region.spec.names)
    for p, (mine, theirs, dim) in enumerate(zip(tile, share.tile, share.dims, strict=True)):
        several = mine > theirs and dim.strides is not None
        if mine % theirs or dim.size * theirs % mine or several:
            name = region.spec.axes[p].name
            raise refuse(do, "instruction-mismatch", f"`{do}` does not load whole tiles of operand {share.operand}",
                         "use another instruction for the load, or remove the braces",
                         f"along {name} it loads {mine} at a time, but a lane holds {dim.size} tiles of {theirs}")  # fmt: skip
    return tile


def _compare_slots(do: Do, found: Match, region: Region, share: FragmentShare, tile: tuple[int, ...]) -> None:
    """Refuses a load that puts an element in another lane or slot than the reader's map expects."""
    semantics = found.instruction
    held = semantics.fragment(semantics.writes)
    assert held is not None and share.map is not None
    counts = [mine // theirs for mine, theirs in zip(tile, share.tile, strict=True)]
    brought = held.along(taken(found, semantics.writes, region.spec.names)[1], len(tile)).table()
    wanted = share.map.along(share.along, len(tile)).tiled(share.tile, counts).table()
    assert brought is not None and wanted is not None, "maps are small"
    rows, slots = wanted.find(brought), brought.parts[1]
    _, number, *tiles = (part[rows] for part in wanted.parts)
    place = sum(t * math.prod(d.size for d in share.dims[k + 1 :]) for k, t in enumerate(tiles))
    right = place * share.map.slots + number
    wrong = np.flatnonzero((rows < 0) | (right != slots))
    first = brought.only(wrong).first()
    if first is None:
        return
    lane, element = first
    where, others = f"({', '.join(a.name for a in region.spec.axes)}) = {element} of a tile", rows[wrong[0]] < 0
    raise refuse(do, "reader-is-not-owner", f"`{do}` leaves elements of {share.tensor.name} in other {'lanes' if others else 'slots'}"
                 f" than operand {share.operand} needs", "use a load with the operand's fragment layout, or remove the braces",
                 f"{where} ends up in lane {lane}, but lane {wanted.holders(element)[0]} needs it" if others else
                 f"in lane {lane}, {where} ends up in slot {slots[wrong[0]]}, but is needed in slot {right[wrong[0]]}")  # fmt: skip
