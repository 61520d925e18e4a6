"""Tiles whose threads read directly from global memory: coalesced, with vectors if rows allow them.

A reduction is a loop of the thread that computes the result, or it is shared by lanes, by the threads of a block, or by several
blocks, whose partial results a second kernel adds. Data that is transposed between reading and writing goes through shared
memory.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from tilelang.autoschedule.common.axes import Fusions
from tilelang.autoschedule.common.task_accesses import Nest
from tilelang.autoschedule.gpu.constants import GPU
from tilelang.autoschedule.gpu.device import GpuDevice
from tilelang.autoschedule.gpu.staging import vector_lanes
from tilelang.autoschedule.gpu.tile import GpuTile, Staged, layout_over


def tiles(nest: Nest, fusions: Fusions, device: GpuDevice) -> Iterator[GpuTile]:
    """Every tile of this family."""
    yield from one_thread_per_result(nest, fusions, device)
    if nest.reduced:
        yield from shared_reductions(nest, fusions, device)
    else:
        yield from transposed_operands(nest, fusions, device)


def contiguous_axis(nest: Nest) -> str | None:
    """The spatial axis along which results, or else operands, are contiguous."""
    wide = nest.wide
    found = [a.name for a in wide if nest.writes[0].stride(a.name) == 1]
    found += [a.name for a in wide if any(r.stride(a.name) == 1 for r in nest.reads)]
    return found[0] if found else wide[-1].name if wide else None


def widest(nest: Nest, axis: str, device: GpuDevice) -> int:
    """The widest vectors along an axis that the result and all operands with this axis allow."""
    accesses = [a for a in nest.accesses if axis in a.axes]
    return min((vector_lanes(a, axis, device) for a in accesses), default=1)


def one_thread_per_result(nest: Nest, fusions: Fusions, device: GpuDevice) -> Iterator[GpuTile]:
    """Each thread computes some results, with the whole reduction of each."""
    x = contiguous_axis(nest)
    if x is None:
        return
    vectors = [(x, n) for n in sorted({1, min(4, widest(nest, x, device)), widest(nest, x, device)})]
    if nest.reduced:
        r = nest.reduced[-1].name
        lanes = widest_of_reads(nest, r, device)
        vectors += [(r, lanes)] if 1 < lanes <= nest.extents[r] else []
    for vector in vectors:
        for second in second_axes(nest, x, device):
            for threads in GPU.block_threads:
                for row in (threads, GPU.square) if is_shared_memory_slow(device) and second[0] else (threads,):
                    if threads <= device.profile.max_block_threads:
                        yield _alone(nest, fusions, x, vector, second, (threads, row))


def is_shared_memory_slow(device: GpuDevice) -> bool:
    """Whether shared memory is no faster than global memory."""
    return device.shared_rate <= device.global_rate


def second_axes(nest: Nest, x: str, device: GpuDevice) -> list[tuple[str, int]]:
    """The other axes along which a thread may compute several results, and how many: for overlapping windows or shared
    operands; else one."""
    found = [("", 1)]
    if nest.reduced:
        for a in nest.spatial:
            shared = any(a.name not in r.axes or r.stride(a.name) != 1 for r in nest.factors)
            if a.name != x and a.extent > 1 and shared:
                found += [(a.name, n) for n in ((2, 4, 8) if is_shared_memory_slow(device) else (2, 4)) if n <= a.extent]
    return found


def _alone(
    nest: Nest, fusions: Fusions, x: str, vector: tuple[str, int], second: tuple[str, int], threads: tuple[int, int]
) -> GpuTile:  # fmt: skip
    """threads: of a block, and the most of them along a row."""
    own = dict((second, vector))
    piece = {a.name: own.get(a.name, 1) for a in nest.wide}
    block, left = {}, threads[0]
    for a in sorted(nest.wide, key=lambda a: (a.name != x, -nest.spatial.index(a))):
        most = min(left, threads[1]) if a.name == x else left
        units = min(most, 1 << (max(1, a.extent // piece[a.name])).bit_length() - 1)
        if a.name == x and a.extent // piece[x] < most:  # a whole row need not be a power of two
            units = min(most, -(-a.extent // piece[x]))
        block[a.name] = units * piece[a.name]
        left //= units
    ordered = tuple((a.name, block[a.name]) for a in nest.wide)
    return GpuTile(
        fusions,
        ordered,
        tuple((a, piece[a]) for a, _ in ordered),
        inner=tuple(reduction_loops(nest, *vector)),
        vector=vector if vector[1] > 1 else None,
    )


def reduction_loops(nest: Nest, axis: str, lanes: int) -> Iterator[tuple[tuple[tuple[str, int], ...], bool]]:
    """The loops over a whole reduction: the innermost ones unrolled if they are short; with a vector's step along the
    vectorized axis."""
    reduced = [a for a in nest.reduced if a.extent > 1]
    if not reduced and nest.reduced:
        reduced = [nest.reduced[-1]]
    step = {a.name: lanes if a.name == axis else 1 for a in reduced}
    short, count = 0, 1
    for a in reversed(reduced):
        if count * a.extent > GPU.unrolled * step[a.name]:
            break
        count *= -(-a.extent // step[a.name])
        short += 1
    long, written = reduced[: len(reduced) - short], reduced[len(reduced) - short :]
    if long:
        last = long[-1]
        if not written and last.extent > 8 * step[last.name]:
            yield tuple((a.name, 1 if a is not last else 8 * step[a.name]) for a in long), False
            yield ((last.name, step[last.name]),), True
            return
        yield tuple((a.name, step[a.name]) for a in long), False
    if written:
        yield tuple((a.name, step[a.name]) for a in written), True


def shared_reductions(nest: Nest, fusions: Fusions, device: GpuDevice) -> Iterator[GpuTile]:
    """Lanes, threads and blocks that share the reduction of a result."""
    longest = max(nest.reduced, key=lambda a: (any(r.stride(a.name) == 1 for r in nest.factors), a.extent))
    r = longest.name
    if longest.extent < 8:
        return
    wide = nest.wide
    rows = math.prod(a.extent for a in wide)
    for lanes in sorted({1, min(widest_of_reads(nest, r, device), 4)}):
        for parts in sorted({1, *(-(-device.cores * each // rows) for each in GPU.sharing_blocks)}):
            if parts > 1 and longest.extent // parts < 1024:
                continue
            shared = () if parts == 1 else ((r, -(-longest.extent // parts // (lanes * 256)) * lanes * 256),)
            for threads in (device.warp, 2 * device.warp, *GPU.block_threads):
                if threads > device.profile.max_block_threads or threads * lanes > 2 * longest.extent:
                    continue
                block = tuple((a.name, 1) for a in wide) + shared
                if not block:
                    block = ((r, longest.extent),)
                yield GpuTile(
                    fusions, block, ((r, lanes),), count=threads, vector=(r, lanes) if lanes > 1 else None
                )  # fmt: skip
                if threads == device.warp and wide and parts == 1:
                    several = tuple((a.name, 4 if a is wide[-1] else 1) for a in wide)
                    if wide[-1].extent >= 4:
                        yield GpuTile(fusions, several, ((r, lanes),), warp=tuple((a.name, 1) for a in wide), count=threads,
                                       vector=(r, lanes) if lanes > 1 else None)  # fmt: skip
        yield from _short_rows(nest, fusions, device, (r, lanes))


def _short_rows(nest: Nest, fusions: Fusions, device: GpuDevice, vector: tuple[str, int]) -> Iterator[GpuTile]:
    """Rows so short that a warp has several of them, with one vector of a row per lane."""
    r, lanes = vector
    across = nest.extents[r] // lanes
    wide = nest.wide
    if not wide or nest.extents[r] % lanes or across & (across - 1) or not 2 <= across < device.warp:
        return
    if any(a.extent > 1 and a.name != r for a in nest.reduced):
        return
    for threads in (128, 256):
        rows = threads // across
        if threads <= device.profile.max_block_threads and rows <= wide[-1].extent:
            block = tuple((a.name, rows if a is wide[-1] else 1) for a in wide)
            yield GpuTile(fusions, block, (*((a.name, 1) for a in wide), (r, lanes)), vector=vector if lanes > 1 else None)


def widest_of_reads(nest: Nest, axis: str, device: GpuDevice) -> int:
    """The widest vectors along a reduction axis that all operands with this axis allow."""
    return min((vector_lanes(a, axis, device) for a in nest.factors if axis in a.axes), default=1)


def transposed_operands(nest: Nest, fusions: Fusions, device: GpuDevice) -> Iterator[GpuTile]:
    """Operands contiguous along another axis than the result: square tiles go through shared memory, in rows padded by one element."""
    x = contiguous_axis(nest)
    for access in nest.reads:
        y = next((a.name for a in nest.spatial if access.stride(a.name) == 1), None)
        if x is None or y is None or y == x or access.stride(x) in (0, 1, None) or access.padded or not access.named:
            continue
        dims = dict(zip(access.written, access.tensor.dims, strict=True))
        names = {getattr(a, "name", ""): d.name for a, d in dims.items()}
        if x not in names or y not in names or any(names.get(a) != a for a in (x, y)):
            continue
        for side in (32, 64):
            for rows in (4, 8):
                if min(nest.extents[x], nest.extents[y]) < 32 or side * side // rows > device.profile.max_block_threads:
                    continue
                block = tuple((a.name, side if a.name in (x, y) else 1) for a in nest.wide)
                move = tuple((d.name, rows if d.name == x else 1) for d in access.tensor.dims)
                layout = layout_over([d.name for d in access.tensor.dims if d.name in (x, y)], 1)
                piece = tuple((a, rows if a == y else 1) for a, _ in block)
                yield GpuTile(fusions, block, piece, staged=(Staged(access, layout, move),))
