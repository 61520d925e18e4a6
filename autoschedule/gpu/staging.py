"""How an operand is copied to shared memory and from there to registers: order, vectors, and padding against bank conflicts."""

from __future__ import annotations

import math
from collections.abc import Mapping

from tilelang.autoschedule.common.accesses import Access
from tilelang.autoschedule.common.task_accesses import Nest
from tilelang.autoschedule.gpu.bank_conflicts import Spread, layout_phases
from tilelang.autoschedule.gpu.device import GpuDevice
from tilelang.autoschedule.gpu.tile import Staged, WarpShape, buffer_dimensions, layout_over


def vector_lanes(access: Access, axis: str, device: GpuDevice) -> int:
    """The widest vector along an axis for one access of at most 16 bytes: contiguous, and aligned wherever it begins."""
    if access.stride(axis) != 1:
        return 1
    extent = access.tensor.shape[-1]
    offset = access._offset({}) or 0
    others = [access.stride(a) for a in access.axes if a != axis]
    found = 1
    for lanes in device.profile.vector_lanes(access.tensor.dtype):
        aligned = offset % lanes == 0 and extent % lanes == 0 and all(s is not None and s % lanes == 0 for s in others)
        if aligned and lanes * access.element_bytes <= 16:
            found = lanes
    return found


def stage(
    nest: Nest, access: Access, tile: Mapping[str, int], axes: tuple[str, ...], shape: WarpShape, device: GpuDevice
) -> Staged | None:
    """An operand of one chunk of a block in shared memory: reduction outermost, the axis along the threads innermost, with padding."""
    dims = buffer_dimensions(nest, access, tile)
    if dims is None:
        return _as_it_is(access, tile, device)
    mine = [a for a in axes if a in access.axes]
    order = [d for d in dims if d not in mine and dims[d] > 1] + [a for a in mine if a in dims]
    if not order:
        return None
    beside = next((a for a in dims if access.stride(a) == 1), None)
    lanes = math.gcd(vector_lanes(access, beside, device), dims[beside]) if beside is not None else 1
    vector = (beside, lanes) if beside is not None and lanes > 1 else None
    move = tuple((d, lanes if d == beside else 1) for d in dims)
    side = shape.side[axes.index(mine[-1])] if mine else 1
    kept = (mine[-1], side) if side > 1 else None
    padding = _padding(access, dims, order, move, (axes, shape, side), device)
    return Staged(access, layout_over(order, padding), move, vector, kept, ahead=1)


def _as_it_is(access: Access, tile: Mapping[str, int], device: GpuDevice) -> Staged | None:
    """An operand with overlapping windows, in the tensor's own layout; None if data decides which elements are read (a gather), or no
    step can name it."""
    if access.gathered or not access.named:
        return None
    beside = next((a for a in access.axes if access.stride(a) == 1), None)
    lanes = vector_lanes(access, beside, device) if beside is not None else 1
    lanes, last = math.gcd(lanes, access.box(tile)[-1]), access.tensor.dims[-1].name
    move = tuple((d.name, lanes if d.name == last else 1) for d in access.tensor.dims)
    return Staged(access, None, move, (last, lanes) if lanes > 1 else None, ahead=1)


def _padding(
    access: Access, dims: Mapping[str, int], order: list[str], move: tuple[tuple[str, int], ...],
    reading: tuple[tuple[str, ...], WarpShape, int], device: GpuDevice,
) -> int:  # fmt: skip
    """The smallest padding after each row with which writing and reading take the fewest phases.

    reading: the tiled axes, the lanes along them, and the elements that a lane reads at once.
    """
    axes, shape, lanes = reading
    banks, bank_bytes = device.banks
    eb = access.element_bytes
    writes: Spread = tuple((d, -(-dims[d] // n), n) for d, n in move)
    reads: Spread = tuple((a, shape.lanes[i], shape.side[i]) for i, a in enumerate(axes))
    extents = tuple(sorted(dims.items()))
    step = max(lanes, bank_bytes // eb if eb < bank_bytes else 1)
    best: tuple[int, int] | None = None
    for padding in (0, step, 2 * step, 4 * step, 8 * step):
        layout = layout_over(order, padding)
        wide = next((n for d, n in move if n > 1 and d == order[-1]), 1)
        total = layout_phases(layout, extents, writes, device.warp, (eb, wide, banks, bank_bytes))
        total += layout_phases(layout, extents, reads, device.warp, (eb, lanes, banks, bank_bytes)) * 4
        if best is None or total < best[0]:
            best = (total, padding)
        if len(order) < 2:
            break
    assert best is not None
    return best[1]
