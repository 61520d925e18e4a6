"""Results in registers: the slices of a stage, and the stores of the values that an instruction left in its lanes."""

from __future__ import annotations

import dataclasses

from tilelang.computations.computation import Tensor
from tilelang.core.expr import Axis, Const, Expr
from tilelang.core.simplify import simplify
from tilelang.lowering import ir
from tilelang.lowering.build.distribution.register_slices import declared_shares, dim_share
from tilelang.lowering.build.frame import Build, Frame, nested
from tilelang.lowering.build.innermost_body import at_points
from tilelang.lowering.build.instruction.fragment_loads import slot_groups
from tilelang.lowering.build.instruction.fragments import FragmentShare, runs, shifted, taken, tile_number
from tilelang.lowering.build.lookahead import leaf_points, leaf_spec, owners_of
from tilelang.lowering.build.movement.epilogue_chunks import slots_inside
from tilelang.lowering.build.movement.storage import Fixed, Residence, Share
from tilelang.lowering.build.pipelining.register_buffers import ring_register
from tilelang.lowering.build.refusals import refuse
from tilelang.schedules.steps import Do, Place, Tile


def stage_share(build: Build, stage: Frame, step: Place, tensor: Tensor, slot: Expr | None) -> Share:
    """Which elements of a stage each thread makes in registers; if an instruction makes them, its map says where they are.

    slot: which buffer of a multistage buffer the stage fills.
    """
    found = stage.match if stage.matched is not None and stage.task.states else None
    held = None if found is None else found.instruction.fragment(found.instruction.writes)
    made = None if found is None else found.instruction.operand(found.instruction.writes)
    if found is None or held is None or held.lanes == 1 or made is None or made.memory != "register":
        return plain_stage_share(build, stage, step, tensor, slot)
    names = [d.name for d in tensor.dims]
    spatial = [stage.spec.axis(n) for n in names]
    leaf = leaf_spec(stage, 0, build.profile)
    tile, along = taken(found, made.name, names)
    begins = [simplify(leaf.axis(a.name).base - a.base) for a in spatial]
    dims = tuple(dim_share([tile_number(b, n, step)], step, tensor.name) for b, n in zip(begins, tile, strict=True))
    buffer = stage_register(build, stage, tensor, (*[d.size for d in dims if d.size > 1], held.slots), slot)
    return FragmentShare(tensor, None, buffer, ends=tuple(a.bounds for a in spatial), low=tuple(a.base for a in spatial),
                         dims=dims, owners=owners_of(build, stage, leaf, names), tile=tile, along=along, map=held,
                         operand=found.instruction.writes, lane=leaf.lane, level=leaf.level)  # fmt: skip


def store_fragments(build: Build, frame: Frame, step: Do) -> ir.Stmt:
    """Each lane stores its slots of one tile at the coordinates of the map; neighbours along a dimension as a vector."""
    found = frame.match
    semantics = found.instruction
    target, held = semantics.operand(semantics.writes), semantics.fragment(semantics.writes)
    assert held is not None
    names = [dict(found.binding)[a.name] for a in target.dims]
    run, along = runs(held)
    width = _store_width(frame, step, run, names[along] if run > 1 else None)
    while width not in build.profile.vector_lanes(frame.target.places[0].buffer.dtype):
        width //= 2
    groups = slots_inside(held, names, width, frame, step)
    group, lane, slot = slot_groups(build, len(groups) * width, width, groups.start)
    axes = {a.name: a for a in frame.spec.axes}
    for name, inside in zip(names, held.at(frame.spec.lane, slot), strict=True):
        axes[name] = shifted(axes[name], inside)
    points: dict[str, Expr] = {a.name: a.base for a in axes.values()}
    spec = frame.spec.replace(axes=tuple(axes.values()), units=1)
    places = tuple(_held_in(frame, p, slot, step) for p in frame.target.places)
    body = at_points(build, frame.replace(spec=spec, target=dataclasses.replace(frame.target, places=places)), points, slot, step)
    return nested([group], nested([lane], body, "vector", step.span), "unroll", step.span)


def _held_in(frame: Frame, place: Residence, slot: Expr, step: Do) -> Residence:
    """Where a result goes: to the same slot in the target, if the target is distributed by the instruction's map too."""
    if not isinstance(place, FragmentShare):
        return place
    axes = frame.coordinates({a.name: a.base for a in frame.spec.axes})
    named = {a.name: e for a, e in axes.items() if isinstance(a, Axis)}
    tile = place.first(tuple(named[d.name] for d in place.tensor.dims), step)
    return Fixed(place.tensor, None, place.buffer, slots=(*tile[:-1], slot))


def _store_width(frame: Frame, step: Do, run: int, axis: str | None) -> int:
    if frame.store_lanes is None:
        return run
    wanted, lanes = frame.store_lanes
    if wanted != axis or run % lanes:
        raise refuse(step, "store-width", f"a lane owns {run} neighbours along {axis or 'no axis'} after `{step}`, but the store"
                     f" writes {lanes} along {wanted} at a time",
                     f"vectorize {axis}={run}" if axis else "remove the vectorize, or store `via shared`")  # fmt: skip
    return lanes


def plain_stage_share(build: Build, stage: Frame, step: Place, tensor: Tensor, slot: Expr | None) -> Share:
    """The same for a stage without an instruction: by the stage's own tiles."""
    spatial = [a for a in stage.spec.axes if not a.reduction]
    leaf = leaf_points(stage, build.profile)
    dims = declared_shares(spatial, leaf, step, stage.steps)
    buffer = stage_register(build, stage, tensor, tuple(d.size for d in dims if d.size > 1), slot)
    names = {a.name for a in spatial}
    spreads = tuple(s for s in stage.steps if isinstance(s, Tile) and names.issuperset(n for n, _ in s.sizes))
    return Share(tensor, None, buffer, steps=spreads, ends=tuple(a.bounds for a in spatial), low=tuple(a.base for a in spatial),
                 dims=dims, owners=owners_of(build, stage, leaf, [a.name for a in spatial]))  # fmt: skip


def stage_register(build: Build, stage: Frame, tensor: Tensor, shape: tuple[int, ...], slot: Expr | None) -> ir.Buffer:
    """The registers of a stage. slot: which buffer of a multistage buffer they are."""
    if slot is None:
        return build.buffer(f"{tensor.name}_register", tensor.dtype, shape, "register")
    assert isinstance(slot, Const), "the buffers of a ring in registers have numbers"
    return ring_register(build, build.ring(stage.of), tensor, shape, int(slot.value))
