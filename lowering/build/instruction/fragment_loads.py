"""Loads into registers, distributed as their readers need: by the operand map of an instruction, or register by register."""

from __future__ import annotations

from tilelang.core.expr import INDEX, Axis, Expr, Read, Var, free, index
from tilelang.core.layout import evaluate
from tilelang.core.simplify import simplify
from tilelang.instructions.matching import Match
from tilelang.lowering import ir
from tilelang.lowering.build.distribution.register_slices import (
    declares_owners,
    dim_share,
    fetch_element,
    fetch_slots,
    plain_share,
    reader_indices,
    vector_asked,
)
from tilelang.lowering.build.frame import Build, Frame, nested
from tilelang.lowering.build.instruction.fragment_moves import fragment_move
from tilelang.lowering.build.instruction.fragments import FragmentShare, runs, tile_number
from tilelang.lowering.build.lookahead import leaf_spec
from tilelang.lowering.build.movement.access_regions import Use
from tilelang.lowering.build.movement.footprint import Region
from tilelang.lowering.build.movement.storage import Box, Share
from tilelang.lowering.build.refusals import refuse
from tilelang.schedules.spec import Bound
from tilelang.schedules.steps import Do, Place


def slot_groups(build: Build, slots: int, width: int, first: int = 0) -> tuple[Expr, Expr, Expr]:
    """(group, lane, slot): a thread's slots in groups of `width` neighbours, starting with group `first`."""
    group, lane = build.several("slots", slots // width), build.several("lane", width)
    return group, lane, simplify((group + first) * width + lane)


def share_of(build: Build, frame: Frame, i: int, step: Place, region: Region, uses: list[Use]) -> Share:
    """The distribution of a load into registers: by the operand map if an instruction reads it, otherwise by its readers."""
    own = declares_owners(frame, step)
    inner = next((s for s in step.steps or () if isinstance(s, Place)), None)
    if inner is not None and not own:  # each slot is filled separately, so there is no region to stage
        raise refuse(inner, "not-lowered-yet", f"`{inner}` in the braces of a load in registers that map no tiles to threads is"
                     " valid, but not supported yet", f"write it above the load of {step.tensor_name} in register")  # fmt: skip
    wanted = None if own else _operand_loaded(frame, uses)
    if wanted is None:
        return plain_share(build, frame, i, step, region, uses)
    return _fragments_of(build, frame, i, step, region, uses, *wanted)


def fetch_share(build: Build, frame: Frame, step: Place, region: Region, share: Share) -> ir.Stmt:
    """The statements of a load into registers."""
    if not isinstance(share, FragmentShare):
        return fetch_slots(build, frame, step, region, share)
    if step.steps and isinstance(step.steps[-1], Do):
        return fragment_move(build, frame, step, region, share)
    return _fetch_fragments(build, frame, step, region, share)


def _operand_loaded(frame: Frame, uses: list[Use]) -> tuple[str, Read] | None:
    """The operand that a load provides, and the matched read; None if no instruction reads the tensor."""
    if frame.matched is None or not all(u.main for u in uses) or len({u.whole for u in uses}) != 1:
        return None
    found = frame.matched.operand_of(uses[0].whole)
    return found if found is not None and frame.match.instruction.operand(found[0]).memory == "register" else None


def _fragments_of(build: Build, frame: Frame, i: int, step: Place, region: Region, uses: list[Use], name: str,
                  read: Read) -> FragmentShare:  # fmt: skip
    """Where an operand that a load provides is kept."""
    found = frame.match
    held = found.instruction.fragment(name)
    assert held is not None
    tensor = region.task.outputs[0]
    leaf = leaf_spec(frame, i + 1, build.profile)
    ((_, begins),) = reader_indices(build, frame, i, uses)
    if region.points:
        axes = tuple(Axis(a.name, a.extent) for a in region.spec.axes)
        read, begins = Read(read.tensor, axes), tuple(leaf.axis(a.name).base for a in axes)
    tile, along = _tile_of(found, name, read, step)
    tiles = [tile_number(simplify(e - low), n, step) for e, low, n in zip(begins, region.low, tile, strict=True)]
    dims = tuple(dim_share([t], step, tensor.name) for t in tiles)
    shape = (*[d.size for d in dims if d.size > 1], held.slots)
    buffer = build.buffer(f"{tensor.name}_register", tensor.dtype, shape, "register")
    moved = tuple((*ends, Bound("", index(0), a.extent)) for ends, a in zip(region.ends, region.spec.axes, strict=True))
    return FragmentShare(tensor, region.read, buffer, region.fill, region.outside, moved=moved, low=region.low, dims=dims,
                         tile=tile, along=along, map=held, operand=name, lane=leaf.lane, level=leaf.level,
                         points=region.points)  # fmt: skip


def _tile_of(found: Match, name: str, read: Read, step: Place) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """How many elements of each dimension of a read an operand takes, and for each dimension of the operand, the one it
    corresponds to."""
    operand, binding = found.instruction.operand(name), dict(found.binding)
    mentioned = [{a.name for a in i.walk() if isinstance(a, Axis)} for i in read.indices]
    along = tuple(next((p for p, names in enumerate(mentioned) if binding[d.name] in names), -1) for d in operand.dims)
    if -1 in along:
        axis = binding[operand.dims[along.index(-1)].name]
        raise refuse(step, "not-lowered-yet", f"`{step}`: staging one element along {axis} for an instruction that takes several is"
                     " valid, but not supported yet", f"remove the `do` where {axis} has one element")  # fmt: skip
    extents = dict(zip(along, (d.extent for d in operand.dims), strict=True))
    return tuple(extents.get(p, 1) for p in range(len(read.indices))), along


def _fetch_fragments(build: Build, frame: Frame, step: Place, region: Region, share: FragmentShare) -> ir.Stmt:
    """Loads every slot of every tile; as vectors if the load asks for them and neighbouring slots hold neighbouring elements."""
    assert share.map is not None
    width = _load_width(step, region, share)
    group, lane, slot = slot_groups(build, share.map.slots, width)
    walks = [build.several(f"{share.tensor.name}_r", dim.size) for dim in share.dims]
    at = (*(v for v, dim in zip(walks, share.dims, strict=True) if dim.size > 1), slot)
    body = nested([lane], fetch_element(build, frame, region, share, at), "vector", step.span)
    return nested([*walks, group], body, "serial", step.span)


def _load_width(step: Place, region: Region, share: FragmentShare) -> int:
    axis, lanes = vector_asked(step, region)
    if axis is None:
        return 1
    assert share.map is not None
    run, along = runs(share.map)
    own = min(run, lanes) if run > 1 and region.spec.names[share.along[along]] == axis else 1
    whole = share.map.slots % lanes == 0 and share.map.lanes == 1 and lanes in (2, 4, 8, 16)
    return lanes if whole and own < lanes and _packed(region, share, lanes) else own


def _packed(region: Region, share: FragmentShare, count: int) -> bool:
    """Whether a layout makes the contents of `count` neighbouring slots contiguous, if the tile and all loops begin at 0."""
    import numpy as np  # late: NumPy takes long to import

    source = region.source
    if not isinstance(source, Box):
        return False
    slot = Var("?slot", INDEX)
    places = source.at(tuple(simplify(low + e) for low, e in zip(region.low, share.inside_tile(slot), strict=True)))
    offset: Expr = index(0)
    for place, stride in zip(places, source.buffer.strides, strict=True):
        offset = offset + place * stride
    assert share.map is not None
    still = dict.fromkeys((v for v in free(offset) if v is not slot), np.int64(0))
    found = np.broadcast_to(evaluate(offset, {**still, slot: np.arange(share.map.slots)}), share.map.slots)
    return bool((np.diff(found.reshape(-1, count)) == 1).all())
