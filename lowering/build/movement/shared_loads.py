"""Loads into shared memory: their buffers, steps and statements.

A load is a task with one pointwise output, so its steps are lowered like all others. Elements outside the bounds are filled with one
constant per buffer; the residence records which bounds this covers.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection

from tilelang.computations.computation import Tensor
from tilelang.core.expr import INDEX, Const, Expr, Var, index
from tilelang.core.layout import walk_order
from tilelang.core.simplify import conjunction
from tilelang.instructions.instruction import ONE_LANE, use
from tilelang.lowering import ir
from tilelang.lowering.build.frame import Build, Frame, Move, Ring, Target
from tilelang.lowering.build.instruction.match import leaf_match, written_out
from tilelang.lowering.build.lookahead import slots_below
from tilelang.lowering.build.movement.footprint import Region, sources
from tilelang.lowering.build.movement.staging import by_registers, without_stops
from tilelang.lowering.build.movement.storage import Box, Staging
from tilelang.lowering.build.refusals import check_chain, laid_out
from tilelang.schedules.check import renamed
from tilelang.schedules.spec import Spec
from tilelang.schedules.steps import Do, Place, Step, Tile, Vectorize


def box_for(build: Build, frame: Frame, step: Place, region: Region, known: Ring, slot: Expr | None) -> Box:
    """Where a load's region is in shared memory. slot: which buffer of a multistage buffer it is."""
    tensor = region.task.outputs[0]
    dims = {a.name: a.extent for a in region.spec.axes}
    named = set(step.layout.dims) if region.points and step.layout is not None and step.layout.terms else set(dims)
    placement = laid_out(step, {d: n for d, n in dims.items() if d in named}, tensor.dtype.bytes)
    parts = dict(zip(placement.dims, placement.variables, strict=True))  # a dimension that the layout omits has one point
    placement = placement.replace(dims=tuple(dims), variables=tuple(parts.get(d, Var(d, INDEX, 0, 0)) for d in dims))
    ring = step.ahead + 1 if slot is not None else 0  # without an enclosing loop there is nothing to prefetch
    count, unit = frame.own_copy(build.threads)
    shape = (*((ring,) if ring else ()), *count, *placement.shape)
    buffer = shared_buffer(build, known, tensor, shape, step, ring)
    return Box(tensor, region.read, buffer, region.fill, region.outside, points=region.points, moved=region.ends,
               low=region.low, placement=placement, slot=slot, unit=unit)  # fmt: skip


def shared_buffer(build: Build, known: Ring, tensor: Tensor, shape: tuple[int, ...], step: Place, ring: int) -> ir.Buffer:
    """The buffer of a load or stage; for a multistage buffer of `ring` buffers, the one that its earlier moves already fill."""
    found = known.buffers.get(tensor.name) if ring and (step.ahead or step.on) else None
    if found is None:
        made = build.buffer(f"{tensor.name}_{step.memory}", tensor.dtype, shape, "shared", ring=ring)
        found = known.buffers[tensor.name] = [made]
    return found[0]


def move_region(build: Build, frame: Frame, step: Place, region: Region, target: Target, of: Move) -> ir.Stmt:
    """The move of a region. With one thread per block it is written twice, so that whole regions move without conditions in
    their loops."""
    guard, whole = whole_version(build, region.spec)
    guarded = _move_version(build, frame, step, region, target, of)
    if guard is None:
        return guarded
    plain = _move_version(build, frame, step, dataclasses.replace(region, spec=whole), target, of)
    return ir.If(guard, plain, guarded, step.span)


def _move_version(build: Build, frame: Frame, step: Place, region: Region, target: Target, of: Move) -> ir.Stmt:
    inner = move_frame(build, frame, step, region, target).replace(move=of)
    return ir.seq(*through_registers(build, inner)) if by_registers(step) else build.chain(inner, 0)


def through_registers(build: Build, move: Frame) -> tuple[ir.Stmt, ir.Stmt]:
    """The fetch of a thread's part of a move into registers, and the store of it."""
    shape, axis, lanes = slots_below(move, 0, build.profile)
    (tensor,) = move.task.outputs
    held = (*shape, lanes) if axis else (shape or (1,))
    buffer = build.buffer(f"{tensor.name}_staged", tensor.dtype, held, "register")
    fetch = build.chain(move.replace(target=Target((Staging(tensor, None, buffer),)), staged=buffer), 0)
    return fetch, build.chain(move.replace(staged=buffer), 0)


def whole_version(build: Build, spec: Spec, axes: Collection[str] | None = None) -> tuple[Expr | None, Spec]:
    """The condition under which all points of a spec exist (along the named axes), and the spec with those bounds marked as
    known.

    None if a second version gains nothing: there are no bounds, they cannot all hold, or there are several threads, and each
    must test for itself anyway.
    """
    if build.threads > 1:
        return None, spec
    chosen = {a.name for a in spec.axes if not a.reduction and (axes is None or a.name in axes)}
    ends = [b.holds(index(0 if b.lower else a.extent - 1)) for a in spec.axes if a.name in chosen for b in a.bounds]
    known = (a.replace(bounds=tuple(b.replace(known=True) for b in a.bounds)) if a.name in chosen else a for a in spec.axes)
    guard = conjunction(ends)
    return None if isinstance(guard, Const) else guard, spec.replace(axes=tuple(known))


def move_frame(build: Build, frame: Frame, step: Place, region: Region, target: Target) -> Frame:
    """The frame of a load's move."""
    keys = frozenset(b.key for a in region.spec.axes for b in a.bounds)
    inner = Frame(region.task, (), region.spec, target, sources(frame, region), fill=region.fill, fill_keys=keys,
                  origin=step.span, cuts=frame.cuts)  # fmt: skip
    dims = tuple(a.name for a in region.spec.axes)
    steps = move_steps(build, inner, without_stops(step.steps))
    check_chain(build, region.spec, steps, region.task, step)
    return written_out(build, inner, steps, step.memory, walk_order(step.layout, dims))


def move_steps(build: Build, frame: Frame, steps: tuple[Step, ...] | None) -> tuple[Step, ...]:
    """The steps of a move as written; if they map no tiles, its elements are mapped to the threads of the frame.

    With `vectorize` or `do`, each thread gets whole vectors or whole tiles of the instruction. An instruction that one lane
    issues, or a tensor without dimensions, needs no mapping.
    """
    given = steps or ()
    if (frame.spec.units or 1) == 1 or any(isinstance(s, Tile) for s in given):
        return given
    last = given[-1] if given and isinstance(given[-1], (Do, Vectorize)) else None
    before, sizes = given if last is None else given[:-1], dict.fromkeys(renamed(frame.spec, given).names, 1)
    if isinstance(last, Do):
        if use(last.instruction).issue == ONE_LANE:
            return given
        matched = leaf_match(build, frame.task, frame.spec, (*before, Tile((), "thread"), last), frame.residences, "shared")
        assert matched is not None
        sizes.update((a, n) for a, n in matched.taken.items() if a in sizes)
    elif not frame.spec.axes:
        return given
    elif last is not None and isinstance(last.lanes, int):
        sizes[last.axis] = last.lanes
    return (*before, Tile(tuple(sizes.items()), "thread"), *(() if last is None else (last,)))
