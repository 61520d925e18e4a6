"""Generates schedules for GPUs: tiles grow from the registers of a thread outward.

No operator is known here. Two families are always tried, and the model ranks their candidates. *Shared* tiles: a chunk of the
operands is copied to shared memory, from which threads with register tiles of the result read it several times. *Streams*:
threads read consecutive elements directly from global memory, alone or, for a reduction, together with the lanes, warps and
blocks that share a result. A transposition is a stream through shared memory.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator

from tilelang.autoschedule.common.axes import Fusions, fused
from tilelang.autoschedule.common.device_model import TaskCandidate
from tilelang.autoschedule.common.limits import shared_bytes, takes_blocks
from tilelang.autoschedule.common.loop_summary import read_steps
from tilelang.autoschedule.common.task_accesses import Nest
from tilelang.autoschedule.common.threads import threads_of
from tilelang.autoschedule.gpu import matrix_tiles, streams, warp_specialized
from tilelang.autoschedule.gpu.constants import GPU
from tilelang.autoschedule.gpu.device import GpuDevice
from tilelang.autoschedule.gpu.growth import Growth, grow
from tilelang.autoschedule.gpu.model import estimate, full_grid, resident_blocks
from tilelang.autoschedule.gpu.staging import stage, vector_lanes
from tilelang.autoschedule.gpu.tile import GpuTile, WarpShape, panels, steps
from tilelang.schedules.steps import Fuse, Step, Vectorize


def gpu_candidates(root: Nest, device: GpuDevice) -> list[TaskCandidate]:
    """Schedules for a task on a GPU, the best first."""
    found: dict[GpuTile, tuple[Nest, GpuTile, TaskCandidate]] = {}
    for fusions, nest in fused(root):
        families = (shared_tiles, streams.tiles, matrix_tiles.tiles, warp_specialized.tiles)
        for tile in (t for family in families for t in family(nest, fusions, device)):
            made, kind = candidate_of(nest, tile, device), without_chunk_length(nest, tile)
            if made is not None and (kind not in found or made.estimate.seconds < found[kind][2].estimate.seconds):
                found[kind] = nest, tile, made
    if not found:  # too small to be divided among threads
        return [TaskCandidate((), estimate((read_steps(root, ()),), device))]
    first = sorted(found.values(), key=lambda f: f[2].estimate.seconds)[: GPU.kept]
    ordered = [in_panels(*f, device) for f in first[: GPU.in_panels]] + [made for _, _, made in first[GPU.in_panels :]]
    return sorted(ordered, key=lambda m: m.estimate.seconds)


def in_panels(nest: Nest, tile: GpuTile, made: TaskCandidate, device: GpuDevice) -> TaskCandidate:
    """The schedule with its blocks numbered in panels, if that lowers the estimate: concurrent blocks then read fewer
    different bytes."""
    shared = any(nest.axis(a).reduction for a, _ in tile.block)
    if len(tile.block) < 2 or not tile.staged or shared:
        return made
    (_, rows), (n, columns) = tile.block[-2:]
    width = 1 << round(math.log2(max(1.0, math.sqrt(device.cores * rows / columns))))
    blocks = math.prod(-(-nest.extents[a] // size) for a, size in tile.block)
    if blocks <= device.cores or not 1 < width < -(-nest.extents[n] // columns):
        return made
    other = candidate_of(nest, dataclasses.replace(tile, order=panels(tuple(a for a, _ in tile.block), width)), device)
    return other if other is not None and other.estimate.seconds < made.estimate.seconds else made


def without_chunk_length(nest: Nest, tile: GpuTile) -> GpuTile:
    """The tile without the length of its reduction chunks. Among tiles that differ in this length alone, only the best is kept."""
    parts = {a: -(-nest.extents[a] // n) for a, n in tile.block if nest.axis(a).reduction}
    block = tuple((a, parts.get(a, n)) for a, n in tile.block)
    return dataclasses.replace(tile, block=block, chunk=(), staged=())


def candidate_of(nest: Nest, tile: GpuTile, device: GpuDevice) -> TaskCandidate | None:
    """A tile's schedule with its estimate; None if a pruning rule drops it."""
    drops = device.pruning.drops
    slow = device.shared_rate <= device.global_rate < math.inf
    if drops("slow-shared", bool(tile.staged) and slow) or drops("shared", staged_bytes(nest, tile) > device.shared_bytes):
        return None
    made = steps(tile)
    loops = read_steps(nest, tuple(s for s in made if not isinstance(s, Fuse)))
    threads = threads_of(loops, device.profile)
    most = min(device.profile.max_block_threads, device.room("core_threads"))
    shared = shared_bytes(threads)
    if drops("shared", shared > device.shared_bytes) or drops("threads", threads.count > most):
        return None
    if drops("registers", resident_blocks(threads, device) < 1):
        return None
    if drops("grid", not takes_blocks(threads)):
        blocks = full_grid(threads, device)
        return candidate_of(nest, dataclasses.replace(tile, blocks=blocks), device) if blocks else None
    device.pruning.keeps()
    return TaskCandidate(made, estimate((loops,), device))


def staged_bytes(nest: Nest, tile: GpuTile) -> int:
    """The shared memory of a block's operands, counting whole tiles even if they reach beyond the axes."""
    sizes = {**nest.extents, **dict(tile.block), **dict(tile.chunk)}
    total = 0
    for staged in tile.staged:
        if staged.layout is None:
            held = math.prod(staged.access.spans(sizes)) * staged.access.element_bytes
        else:
            rows = math.prod(sizes[a] for a in staged.access.axes)
            held = rows * staged.access.element_bytes
            if staged.layout.padding:
                held += held // sizes.get(staged.layout.dims[-1], 1) * staged.layout.padding
        total += held * (staged.ahead + 1)
    return total


# ---------------------------------------------------------------- register tiles


def register_tiles(nest: Nest, device: GpuDevice) -> Growth:
    """Register tiles of one thread, grown until shared memory delivers operands faster than they are used."""
    axes = tiled_axes(nest)
    one = dict.fromkeys(nest.reduced_extents, 1)
    most = device.profile.registers_per_thread - GPU.overhead_registers

    def fits(tile: dict[str, int]) -> bool:
        results = math.prod(tile.values())
        operands = sum(math.prod(r.box({**tile, **one})) * max(1, r.element_bytes // 4) for r in nest.factors)
        return max(tile.values()) <= GPU.longest_side and not device.pruning.drops("registers", results + operands > most)

    start = dict.fromkeys(nest.spatial_extents, 1)
    kept = dataclasses.replace(nest, axes=tuple(a for a in nest.axes if a.reduction or a.name in axes))
    balance = device.balance(nest, device.shared_rate)
    found = grow(kept, dict.fromkeys(axes, 1), one, lambda t: fits({**start, **t}), balance, GPU.register_tiles)
    return dataclasses.replace(found, tiles=tuple({**start, **t} for t in found.tiles))


def tiled_axes(nest: Nest) -> tuple[str, ...]:
    """The axes along which a thread has several elements: the contiguous axis of the result, and the one with the most reuse
    beside it."""
    wide = nest.wide
    if not wide:
        return ()
    x = next((a for a in wide if nest.writes[0].stride(a.name) == 1), wide[-1])
    others = [a for a in wide if a is not x and any((a.name in r.axes) != (x.name in r.axes) for r in nest.factors)]
    if not others:
        return (x.name,)
    y = max(others, key=lambda a: (sum(a.name not in r.axes and x.name in r.axes for r in nest.factors), a.extent))
    return (y.name, x.name)


# ---------------------------------------------------------------- tiles in shared memory


def shared_tiles(nest: Nest, fusions: Fusions, device: GpuDevice) -> Iterator[GpuTile]:
    """Tiles with operands in shared memory, for nests in which some operand is reused along another operand's axis."""
    axes = tiled_axes(nest)
    if len(axes) < 2 or not nest.reduced or nest.extents[axes[0]] * nest.extents[axes[1]] < device.warp:
        return
    if len({r.name for r in nest.reads}) < len(nest.reads):
        return  # a tensor that is read at several places cannot be loaded by a single `load`
    for register in register_tiles(nest, device).tiles:
        for shape in warp_shapes(nest, axes, register, device)[:1]:
            for block in block_tiles(nest, axes, shape, device)[: GPU.blocks_of_each]:
                yield from with_chunks(nest, fusions, axes, register, shape, block, device)


def warp_shapes(nest: Nest, axes: tuple[str, ...], register: dict[str, int], device: GpuDevice) -> list[WarpShape]:
    """The arrangements of a warp's lanes: squarest tile first, of two equal ones the one that is longer along the result's rows.

    Every lane must have elements of the tensors.
    """
    found = []
    for lanes in range(device.warp.bit_length()):
        grid = (1 << lanes, device.warp >> lanes)
        side = tuple(min(4, register[a]) for a in axes)
        if all(s * g <= nest.extents[a] for s, g, a in zip(side, grid, axes, strict=True)):
            rounds = tuple(min(-(-register[a] // s), -(-nest.extents[a] // (s * g)))
                           for a, s, g in zip(axes, side, grid, strict=True))  # fmt: skip
            found.append(WarpShape((side[0], side[1]), grid, (rounds[0], rounds[1])))
    return sorted(found, key=lambda w: (sum(w.tile), -w.tile[1]))


def block_tiles(nest: Nest, axes: tuple[str, ...], shape: WarpShape, device: GpuDevice) -> list[dict[str, int]]:
    """Tiles of a block, in warps along both axes: first those that growth ends with, then the first of them transposed, then
    those that leave the cores least idle."""
    whole = nest.reduced_extents
    start = dict(zip(axes, shape.tile, strict=True))
    most = GPU.most_threads // device.warp
    kept = dataclasses.replace(nest, axes=tuple(a for a in nest.axes if a.reduction or a.name in axes))
    single = dict.fromkeys(nest.spatial_extents, 1)

    def fits(tile: dict[str, int]) -> bool:
        return math.prod(tile[a] // start[a] for a in axes) <= most

    # along axes that are not tiled, operands are read for a single point
    full = dataclasses.replace(kept, accesses=nest.accesses)
    balance = device.balance(nest, device.global_rate)
    found = grow(full, start, whole, fits, balance, GPU.blocks_of_each // 2, device.cores)
    order = sorted(found.path, key=lambda t: _idle(nest, {**single, **t}, device))
    turned = [dict(zip(axes, reversed(t.values()), strict=True)) for t in found.tiles]
    turned = [t for t in turned if t not in found.tiles and not any(t[a] % start[a] for a in axes) and fits(t)]
    every = [*found.tiles, *turned[:1], *(t for t in order if t not in found.tiles and t not in turned[:1])]
    return [{**single, **t} for t in every]


def block_front(nest: Nest, device: GpuDevice, start: dict[str, int], chunk: int) -> Growth:
    """Blocks grown from one unit's tile, as long as the sums fit in registers and two stages of operands in shared memory."""
    inner = innermost_reduction(nest)
    whole = nest.reduced_extents
    once = {a.name: min(chunk, a.extent) if a.name == inner else 1 for a in nest.reduced}
    single = dict.fromkeys(nest.spatial_extents, 1)
    sums = device.room("core_registers") * 3 / 4

    def fits(tile: dict[str, int]) -> bool:
        held = sum(r.footprint_bytes({**single, **tile, **once}) for r in nest.factors)
        return math.prod(tile.values()) <= sums and 2 * held <= device.shared_bytes

    balance = device.balance(nest, device.global_rate, matrix=True)
    return grow(nest, {**single, **start}, whole, fits, balance, GPU.blocks_of_each, device.cores)


def _idle(nest: Nest, block: dict[str, int], device: GpuDevice) -> float:
    """A measure of the core time that a tile's waves and padding waste, with a small penalty for the traffic of small tiles."""
    blocks = math.prod(-(-a.extent // block[a.name]) for a in nest.spatial)
    padded = math.prod(-(-a.extent // block[a.name]) * block[a.name] / a.extent for a in nest.spatial)
    waves = math.ceil(blocks / device.cores) * device.cores / blocks
    return waves * padded * (1 + 32 / math.sqrt(math.prod(block.values())))


def with_chunks(
    nest: Nest, fusions: Fusions, axes: tuple[str, ...], register: dict[str, int], shape: WarpShape, block: dict[str, int],
    device: GpuDevice,
) -> Iterator[GpuTile]:  # fmt: skip
    """A block's tile with reduction chunks of several lengths; if blocks are few, also with the reduction split over blocks
    (split-K)."""
    inner = innermost_reduction(nest)
    extent = nest.extents[inner]
    blocks = math.prod(-(-a.extent // block[a.name]) for a in nest.spatial)
    parts = {1}
    if blocks < 2 * device.cores:
        parts |= {p for p in (2, 4, 8, 16, 32) if extent // p >= 64 and blocks * p <= 8 * device.cores}
    for length in GPU.rounds:
        if length > max(8, extent):
            continue
        for part in sorted(parts):
            tile = _shared_tile(nest, fusions, axes, register, shape, block, (inner, length, part), device)
            if tile is not None:
                yield tile


def innermost_reduction(nest: Nest) -> str:
    """The reduction axis along which an operand is contiguous; the longest one if there is none."""
    beside = [a for a in nest.reduced if any(r.stride(a.name) == 1 for r in nest.factors)]
    return max(beside or nest.reduced, key=lambda a: a.extent).name


def _shared_tile(
    nest: Nest, fusions: Fusions, axes: tuple[str, ...], register: dict[str, int], shape: WarpShape, block: dict[str, int],
    reduction: tuple[str, int, int], device: GpuDevice,
) -> GpuTile | None:  # fmt: skip
    inner, length, parts = reduction
    block = {a: min(n, -(-nest.extents[a] // t) * t) if a in axes else n
             for a, n in block.items() for t in [dict(zip(axes, shape.tile, strict=True)).get(a, 1)]}  # fmt: skip
    wide = {a.name: block[a.name] for a in nest.wide}
    chunk = {a.name: min(length, a.extent) if a.name == inner else 1 for a in nest.reduced}
    if parts > 1:
        per_block = -(-nest.extents[inner] // parts)
        wide[inner] = -(-per_block // length) * length
    count = math.prod(-(-block[a] // t) for a, t in zip(axes, shape.tile, strict=True)) * device.warp
    if device.pruning.drops("threads", count > device.profile.max_block_threads):
        return None
    staged = []
    for access in nest.factors:
        found = stage(nest, access, {**block, **chunk}, axes, shape, device)
        if found is None:
            return None
        staged.append(found)
    y, x = axes
    return GpuTile(
        fusions,
        tuple(wide.items()),
        tuple(zip(axes, shape.side, strict=True)),
        chunk=tuple(chunk.items()),
        staged=tuple(staged),
        warp=tuple(zip(axes, shape.tile, strict=True)),
        walk=tuple((a.name, 1) for a in nest.reduced),
        interleave=tuple(zip(axes, shape.reach, strict=True)) if max(shape.rounds) > 1 else (),
        accumulate=_stores(nest, x, shape.side[1], device) if parts == 1 else (),
    )


def _stores(nest: Nest, axis: str, side: int, device: GpuDevice) -> tuple[Step, ...]:
    lanes = min(side, vector_lanes(nest.writes[0], axis, device))
    return (Vectorize(axis, lanes),) if lanes > 1 else ()
