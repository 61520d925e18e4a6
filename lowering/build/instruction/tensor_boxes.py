"""Operands that a descriptor describes: regions of shared memory, and TMA tiles of tensors.

A descriptor encodes the start of a region and the layout of its rows, so the width of a row is limited. A tensor map encodes the
whole tensor, so the device knows the tensor's bounds but no others: beyond them it reads 0 and writes nothing.
"""

from __future__ import annotations

from tilelang.core.expr import Const, Expr, Pad, Read, Var, index
from tilelang.core.layout import Layout
from tilelang.core.simplify import interval, simplify
from tilelang.instructions.instruction import BARRIER_BY_BYTES, IN_ORDER_GROUP, ONE_LANE, Instruction
from tilelang.lowering import ir
from tilelang.lowering.build.frame import Build, Frame, StatePlace
from tilelang.lowering.build.innermost_body import guarded
from tilelang.lowering.build.instruction.fragments import open_bounds, unguardable
from tilelang.lowering.build.instruction.match import checked
from tilelang.lowering.build.instruction.operands import first_points, index_value, points_at
from tilelang.lowering.build.movement.storage import TENSOR_END, Box, Residence
from tilelang.lowering.build.reads import residence_of, state_at, stored_at
from tilelang.lowering.build.refusals import refuse
from tilelang.schedules.spec import AxisState, Bound
from tilelang.schedules.steps import Do


def region_at(
    build: Build, frame: Frame, step: Do, name: str, whole: Read | Pad
) -> tuple[ir.Buffer, tuple[Expr, ...], ir.Region]:
    """The elements of an operand that is read, as indices over the region's variables."""
    read = whole.read if isinstance(whole, Pad) else whole
    variables, points = _region_points(build, frame, step, name)
    indices = tuple(index_value(build, frame, i, points) for i in read.indices)
    residence = residence_of(frame, whole)
    at = residence.at(residence.element(indices, frame.coordinates(points)))
    return residence.buffer, at, _region(frame, step, name, variables, residence)


def region_written(build: Build, frame: Frame, step: Do, place: Residence) -> tuple[ir.Buffer, tuple[Expr, ...], ir.Region]:
    """The elements of the operand that is written, as indices over the region's variables."""
    name = frame.match.instruction.writes
    variables, points = _region_points(build, frame, step, name)
    return place.buffer, stored_at(frame, 0, place, points), _region(frame, step, name, variables, place)


def state_updated(build: Build, frame: Frame, step: Do, place: StatePlace) -> tuple[tuple[Expr, ...], ir.Region | None]:
    """The start of the accumulator that an instruction updates, from the thread's view; or its whole region if a descriptor
    describes it."""
    semantics = frame.match.instruction
    if place.box is None:
        return (*frame.slots, index(0)), None
    if semantics.fragment(semantics.writes) is not None:
        return state_at(frame, place, first_points(frame, step, semantics.writes)), None
    variables, points = _region_points(build, frame, step, semantics.writes)
    return state_at(frame, place, points), _region(frame, step, semantics.writes, variables, place.box)


def _region_points(build: Build, frame: Frame, step: Do, name: str) -> tuple[tuple[Var, ...], dict[str, Expr]]:
    dims = frame.match.instruction.operand(name).dims
    variables = tuple(build.variable(f"{name}_{d.name}", d.extent) for d in dims)
    return variables, points_at(frame, name, variables)


def _region(frame: Frame, step: Do, name: str, variables: tuple[Var, ...], residence: Residence) -> ir.Region:
    """The region of an operand, with the swizzle of its rows."""
    operand = frame.match.instruction.operand(name)
    if operand.memory != "shared":
        pitch = residence.buffer.shape[-1] * residence.buffer.dtype.bytes
        if len(residence.buffer.shape) != len(operand.dims) or pitch % max(1, operand.alignment_bytes):
            raise refuse(step, "instruction-mismatch", f"`{step}`: operand {operand.name} needs a tensor map with"
                         f" {len(operand.dims)} dimensions, whose rows begin at multiples of {operand.alignment_bytes} bytes",
                         "use a tensor of that form, or remove the `do` to use plain loops",
                         f"{residence.tensor.name} has shape {list(residence.buffer.shape)}, rows of {pitch} bytes")  # fmt: skip
        width = ((interval(variables[-1])[1] or 0) + 1) * residence.buffer.dtype.bytes
        if width % max(1, operand.alignment_bytes):
            raise refuse(step, "instruction-mismatch", f"`{step}`: operand {operand.name} needs rows of a multiple of"
                         f" {operand.alignment_bytes} bytes", "move tiles with wider rows, or remove the `do` to use plain loops",
                         f"the rows of the tile are {width} bytes")  # fmt: skip
        return ir.Region(name, variables)
    assert isinstance(residence, Box) and residence.placement is not None
    dims = {d: (interval(v)[1] or 0) + 1 for d, v in zip(residence.placement.dims, residence.placement.variables, strict=True)}
    width = list(dims.values())[-1] * residence.buffer.dtype.bytes
    bytes = residence.buffer.dtype.bytes
    for layout in operand.layouts or (Layout(),):
        rows_fit = layout.swizzle_bytes == width or not layout.swizzle_bytes and variables[-1].upper == width // bytes - 1
        if rows_fit and layout.place(dims, bytes).shape == residence.placement.shape:
            return ir.Region(name, variables, layout.swizzle_bytes)
    raise refuse(step, "instruction-mismatch", f"`{step}`: the rows of {residence.tensor.name} in shared are {width} bytes wide,"
                 f" but operand {name} needs whole rows, as wide as their swizzle", "split the rows into narrower tiles, or use"
                     " another swizzle",
                 f"it takes {' or '.join(str(x) or 'row-major' for x in operand.layouts or (Layout(),))}")  # fmt: skip


# ------------------------------------------------------------ TMA tiles of a tensor


def box_moved(build: Build, frame: Frame, step: Do, semantics: Instruction) -> ir.Stmt:
    """Copies a TMA tile of a tensor to shared memory or back, issued by one lane.

    Elements outside the tensor get the value that the instruction supplies. A copy from shared memory waits until the data has
    been read.
    """
    ((source, whole),) = checked(frame, step, frame.target.places[0].buffer.memory)
    _check_outside(frame, step, frame.fill is None or frame.fill.value == semantics.outside)
    written = region_written(build, frame, step, frame.target.places[0])
    return _by_one_lane(frame, step, (written, region_at(build, frame, step, source, whole)), semantics)


def _by_one_lane(frame: Frame, step: Do, operands: tuple[tuple[ir.Buffer, tuple[Expr, ...], ir.Region], ...],
                 semantics: Instruction) -> ir.Stmt:  # fmt: skip
    named = tuple((region.operand, buffer, at) for buffer, at, region in operands)
    regions = tuple(region for _, _, region in operands)
    signal = frame.move.signal if frame.move is not None and semantics.completes == BARRIER_BY_BYTES else None
    if semantics.completes == BARRIER_BY_BYTES and signal is None:
        raise refuse(step, "not-lowered-yet", f"`{step}` completes asynchronously ({semantics.completes}), which is valid, but not"
                     " supported yet unless one role issues it and another role waits for it", "load on a separate role, as in `on"
                     " producer`")  # fmt: skip
    made: ir.Stmt = ir.Instruction(semantics, named, 1, step.span, regions, signal, semantics.multicast)
    if semantics.completes == IN_ORDER_GROUP:
        made = ir.seq(made, ir.Commit(step.span, semantics.family), ir.Wait(0, step.span, semantics.family))
    one = [frame.spec.lane < 1] if semantics.issue == ONE_LANE and (frame.spec.units or 1) > 1 else []
    return guarded(made, [*frame.spec.present, *one], step.span)


def _check_outside(frame: Frame, step: Do, fills: bool) -> None:
    """Refuses a tile with points that do not exist although they are inside the tensor: the device knows no other bound than
    the tensor's."""
    extents = {d.name: d.extent for d in tensor_of(frame).tensor.dims}
    for a in frame.spec.axes:
        for b in open_bounds(a):
            if not (fills and _is_end(a, b, extents[a.name])):
                gives = "the values outside are not known" if fills else f"its readers need {frame.fill} there"
                raise unguardable(step, f"`{step}` cannot be guarded, and the last tile along {a.name} ends before the tensor does:"
                                  f" {gives}", "use tile sizes that divide the extent, or remove the `do` to use plain loops",
                                  a, b)  # fmt: skip


def tensor_of(frame: Frame) -> Residence:
    """The side of a copy that is in global memory."""
    target = frame.target.places[0]
    if target.buffer.memory == "global":
        return target
    whole = frame.task.values[0]
    assert isinstance(whole, (Read, Pad))
    return residence_of(frame, whole)


def _is_end(a: AxisState, b: Bound, extent: int) -> bool:
    """Whether a bound is the end of a tensor of this extent along the axis."""
    gap = simplify(a.base - b.offset)
    if b.key.startswith(TENSOR_END):
        return True
    return isinstance(gap, Const) and (b.limit + int(gap.value) == extent if not b.lower else b.limit + int(gap.value) == 0)
