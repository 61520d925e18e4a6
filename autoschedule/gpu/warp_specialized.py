"""Tiles whose innermost level is an instruction that reads its operands from shared memory, in warp-specialized blocks.

One role copies TMA tiles of the operands into a circular buffer, the others compute; blocks are persistent and process one tile
after another. The copy, the swizzle that both sides use, and the registers of each role follow from the definitions of the
instructions and from the profile.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator

from tilelang.autoschedule.common.accesses import Access, axis_of
from tilelang.autoschedule.common.axes import Fusions
from tilelang.autoschedule.common.task_accesses import Nest
from tilelang.autoschedule.gpu.constants import GPU
from tilelang.autoschedule.gpu.device import GpuDevice
from tilelang.autoschedule.gpu.matrix_tiles import Fit, direct_stores, fits
from tilelang.autoschedule.gpu.tile import GpuTile, Staged
from tilelang.core.layout import Layout
from tilelang.instructions.instruction import ONE_LANE, Instruction, known
from tilelang.schedules.steps import Do, Place, Split, Step, Team

PRODUCER, CONSUMER = "producer", "consumer"


def tiles(nest: Nest, fusions: Fusions, device: GpuDevice) -> Iterator[GpuTile]:
    """Every tile of this family."""
    found = _least_empty(nest, list(fits(nest, device, "shared")))
    for fit, consumers, rounds, parts in itertools.product(found, GPU.consumers, GPU.team_rounds, GPU.team_parts):
        tile = _tile(nest, fusions, device, fit, consumers, rounds, parts)
        if tile is not None:
            yield tile


def _least_empty(nest: Nest, found: list[Fit]) -> list[Fit]:
    """The instructions whose width is a multiple of a swizzled row of the result, and a few more that leave the fewest columns
    unused."""

    def columns(fit: Fit) -> int:
        return fit.made.shape[fit.binding[1][0]]

    def empty(fit: Fit) -> tuple[float, int]:
        whole = nest.extents[fit.axes[1]]
        return round(-(-whole // columns(fit)) * columns(fit) / whole, 1), -columns(fit)

    whole = [f for f in found if columns(f) * nest.writes[0].element_bytes % GPU.widest_swizzle == 0]
    most = len(whole) + GPU.other_columns
    return [*whole, *(f for f in sorted(found, key=empty)[:most] if f not in whole)][:most]


def _tile(
    nest: Nest, fusions: Fusions, device: GpuDevice, fit: Fit, consumers: int, rounds: int, parts: int
) -> GpuTile | None:  # fmt: skip
    m, n, k = fit.axes
    rows, columns, depth = (fit.made.shape[a] for a, _ in fit.binding)
    block = {m: rows * rounds * consumers, n: columns}
    teams = block_roles(device, fit.made, consumers, block[m] * columns // (consumers * fit.made.lanes))
    if (
        device.pruning.drops("registers", teams is None)
        or teams is None
        or nest.extents[m] <= block[m] // 2
        or any(a.extent > 1 and a.name not in (m, n, k) for a in nest.axes)
    ):
        return None
    swizzle = _swizzle(fit, nest.extents[k], depth)
    if swizzle is None:
        return None
    length = swizzle.swizzle_bytes // fit.left[1].element_bytes
    count = math.prod(-(-nest.extents[a] // size) for a, size in block.items())
    if parts > 1 and (count * parts > 2 * device.cores or nest.extents[k] // parts < 4 * length):
        return None
    stop = _stop(nest, device, block, n) if parts == 1 else None
    held = sum(block.get(a, 1) * r.element_bytes * length for _, r in (fit.left, fit.right) for a in r.axes if a != k)
    stages = min(GPU.most_stages, (device.shared_bytes - GPU.barrier_bytes - (stop[1] if stop is not None else 0)) // held)
    loads = [_load(device, access, swizzle, (m if m in access.axes else n, k), stages - 1) for _, access in (fit.left, fit.right)]
    if stages < 2 or loads[0] is None or loads[1] is None:
        return None
    if parts > 1:
        block[k] = -(-nest.extents[k] // parts // length) * length
    return GpuTile(
        fusions,
        tuple(block.items()),
        (),
        chunk=((k, length),),
        staged=(loads[0], loads[1]),
        warp=((m, rows * rounds),),
        accumulate=stop[0] if stop is not None else direct_stores(nest, device, fit) if parts == 1 else (),
        instruction=(fit.made.name, fit.binding),
        teams=teams,
        blocks=device.cores if parts == 1 and count > device.cores else None,
    )


def block_roles(device: GpuDevice, made: Instruction, consumers: int, sums: int) -> tuple[Team, ...] | None:
    """The roles of a block, with register budgets if an even share is too small for the sums; None if no distribution suffices."""
    profile, wanted = device.profile, sums + GPU.overhead_registers
    threads = (consumers + 1) * made.lanes
    if threads > profile.max_block_threads:
        return None
    even = min(profile.registers_per_thread, (profile.block_registers or threads * profile.registers_per_thread) // threads)
    if wanted <= even:
        return Team(1, made.level, PRODUCER), Team(consumers, made.level, CONSUMER)
    if not profile.role_registers:
        return None
    least, most, step = profile.role_registers
    even = even // step * step
    loading = max(least, GPU.loading_registers // step * step)
    each = min(most, profile.registers_per_thread // step * step, (even + (even - loading) // consumers) // step * step)
    if wanted > each:
        return None
    return Team(1, made.level, PRODUCER, loading), Team(consumers, made.level, CONSUMER, each)


def _swizzle(fit: Fit, extent: int, depth: int) -> Layout | None:
    """The widest swizzle that both operands allow, with rows of whole instructions that are shorter than twice the reduction."""
    (left, first), (right, second) = fit.left, fit.right
    common = [x for x in left.layouts if x in right.layouts and x.swizzle_bytes and not x.terms]
    if first.element_bytes != second.element_bytes:
        return None
    lengths = {x.swizzle_bytes // first.element_bytes: x for x in common}
    fitting = [n for n in lengths if n % depth == 0 and (n < 2 * extent or n == depth)]
    return lengths[max(fitting)] if fitting else None


def _load(device: GpuDevice, access: Access, layout: Layout, order: tuple[str, str], ahead: int) -> Staged | None:
    """An operand in the multistage buffer; None if no TMA tile of its tensor has this form."""
    if not _plain(access, order):
        return None
    mover = box_move(device, access, layout, ("global", "shared"))
    return Staged(access, layout, (), instruction=mover.name, ahead=ahead, on=PRODUCER, in_place=True) if mover else None


def _plain(access: Access, order: tuple[str, ...]) -> bool:
    """Whether these axes are exactly the dimensions of a tensor."""
    return [axis_of(i) for i in access.indices] == list(order)


def box_move(device: GpuDevice, access: Access, layout: Layout, way: tuple[str, str]) -> Instruction | None:
    """The instruction by which one lane copies TMA tiles of a tensor between two memories, with a given layout in shared memory."""
    for made in known():
        if made.kind != "move" or made.issue != ONE_LANE or made.multicast or made.unavailable(device.profile) is not None:
            continue
        source, target = made.operand(made.reads[0]), made.operand(made.writes)
        far = source if source.memory == "global" else target
        near = target if far is source else source
        if (source.memory, target.memory) != way or access.tensor.dtype not in source.dtypes or layout not in near.layouts:
            continue
        pitch = access.tensor.shape[-1] * access.element_bytes
        if len(far.dims) == len(access.tensor.shape) and pitch % max(1, far.alignment_bytes) == 0:
            return made
    return None


def _stop(nest: Nest, device: GpuDevice, block: dict[str, int], n: str) -> tuple[tuple[Step, ...], int] | None:
    """The steps that store results as TMA tiles, as wide as the widest swizzle that divides their rows, and the shared memory
    they need."""
    (write,) = nest.writes[:1]
    if len(nest.writes) > 1 or not _plain(write, tuple(block)):
        return None
    for swizzle_bytes in (GPU.widest_swizzle, 64, 32):
        width, layout = swizzle_bytes // write.element_bytes, Layout(swizzle_bytes=swizzle_bytes)
        mover = box_move(device, write, layout, ("shared", "global"))
        if block[n] % width == 0 and mover is not None:
            held = math.prod(block.values()) // block[n] * swizzle_bytes
            pieces: tuple[Step, ...] = (Split(((n, width),)),) if block[n] > width else ()
            return (*pieces, Place("via", None, "shared", layout), Do(mover.name)), held
    return None
