"""Grows tiles from the innermost level outward: fused axes, the vectorized axis, register tiles, blocks.

No operator is known here. Fusion, vectors and staging follow from the regions and strides of the task's accesses; sizes follow from
the numbers of the device. The results are the seeds of the search.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
import math
from collections.abc import Iterator

from tilelang.autoschedule.common.accesses import Access
from tilelang.autoschedule.common.axes import Fusions, in_parts, shared_out
from tilelang.autoschedule.common.conditions import divided_share
from tilelang.autoschedule.common.loop_summary import read_steps
from tilelang.autoschedule.common.task_accesses import Nest, NestAxis
from tilelang.autoschedule.cpu.constants import CPU
from tilelang.autoschedule.cpu.device import CpuDevice
from tilelang.autoschedule.cpu.model import body_cycles, result_cycles
from tilelang.autoschedule.cpu.tile import (
    BOX,
    PANELS,
    CpuTile,
    Staged,
    by_points,
    output_holds_sums,
    overlaps,
    reduction_order,
    reused,
    scattered,
    shared_bytes,
    steps,
    unroll_factor,
)
from tilelang.autoschedule.cpu.tile_size_selection import largest_tile

# ---------------------------------------------------------------- vectors


def vectors(nest: Nest, device: CpuDevice) -> list[tuple[str, int]]:
    """Candidates for the vectorized axis, with the number of lanes: axes along which some access is contiguous, the result's first."""
    found = {a.name: None for w in nest.writes for a in nest.spatial if w.stride(a.name) == 1 and a.extent > 1}
    # A read with one value for each result does not make vectors along the results contiguous.
    operands = [r for r in nest.reads if not nest.reduced or not r.axes.isdisjoint(nest.reduced_extents)]
    direct = any(r.stride(a) == 1 for a in found for r in operands)
    if not found or (not direct and nest.reduced):
        least = 2 if not found else device.lanes
        found |= {a.name: None for r in nest.reads for a in nest.axes if r.stride(a.name) == 1 and a.extent >= least}
    copied = any(must_be_staged(nest, r, a) for a in found for r in nest.reads if a in r.axes)
    divided = any(divided_share(nest, a, device.lanes) for a in found)
    if nest.reduced and (copied or divided or not direct or all(nest.extents[a] < 2 * device.lanes for a in found)):
        found |= {a.name: None for a in nest.spatial if a.extent >= device.lanes and _has_own_dimension(nest, a.name)}
    widest = max(a.element_bytes for a in nest.accesses)
    lanes = max(1, device.lanes * 4 // max(4, widest))
    chosen = []
    for axis in found:
        most = min(lanes, 1 << (nest.extents[axis] - 1).bit_length())
        least = min(lanes, 1 << (nest.extents[axis].bit_length() - 1))
        chosen += [(axis, n) for n in dict.fromkeys((most, least))]
    return chosen


def _has_own_dimension(nest: Nest, axis: str) -> bool:
    """Whether the axis occurs alone in one dimension of every operand, so that a copy with this dimension last serves vectors."""
    return all(r.affine for r in nest.reads if axis in r.axes)


# ---------------------------------------------------------------- registers


def register_tiles(nest: Nest, device: CpuDevice, axis: str, lanes: int, whole: bool = False) -> list[dict[str, int]]:
    """The register tiles with the fewest cycles per point. whole: only those that divide the extents."""
    found: list[tuple[float, int, int, dict[str, int]]] = []
    staged = {r.operand: kind for r in nest.reads if (kind := staging_form(nest, r)) is not None}
    for piece in _register_tile_candidates(nest, device, axis, lanes):
        if whole and any(nest.extents[a] % n for a, n in piece.items()):
            continue
        loops = read_steps(nest, steps(nest, CpuTile((), piece, nest.reduced_extents, piece, (axis, lanes), staged)))
        cycles = (body_cycles(loops, device) + result_cycles(loops, device)) / nest.points
        found.append((cycles, sum(n > 1 for n in piece.values()), len(found), piece))
    found.sort(key=lambda f: (round(f[0], 3), *f[1:3]))
    return [f[-1] for f in found[: CPU.kept_pieces] if f[0] <= found[0][0] * CPU.kept_cycles]


def _register_tile_candidates(nest: Nest, device: CpuDevice, axis: str, lanes: int) -> Iterator[dict[str, int]]:
    """Candidates for register tiles: vectors along one axis, and points along the two axes that save the most loads; or along a row of
    results, which is stored by transposing squares."""
    room, rows = max(1, device.registers - CPU.reserved_registers), _rows(nest, axis)
    others = [
        a for a in nest.spatial
        if a.name != axis and a.extent > 1 and (a.name in rows or any(a.name not in r.axes for r in nest.reads))
    ]  # fmt: skip
    others.sort(key=lambda a: (-sum(a.name not in r.axes for r in nest.reads), nest.writes[0].stride(a.name) or 0))
    choices = [_tile_extents(a.extent, room if a.name in rows else most) for a, most in zip(others, CPU.rows, strict=False)]
    for columns in CPU.columns:
        if columns > 1 and columns * lanes > nest.extents[axis] + lanes - 1:
            continue
        most = (device.registers - 1 - columns) // columns  # with registers for the vectors of a point, and for one broadcast
        filled = [
            sorted({*first, most}) if a.extent >= 8 * most > 0 else first for a, first in zip(others[:1], choices, strict=False)
        ]
        for rounds in itertools.product(*filled, *choices[1:]):
            if not device.pruning.drops("registers", math.prod(rounds) * columns > room):
                sizes = {a.name: n for a, n in zip(others, rounds, strict=False)}
                yield {a.name: columns * lanes if a.name == axis else sizes.get(a.name, 1) for a in nest.spatial}


def _rows(nest: Nest, axis: str) -> list[str]:
    """The axes along which results are contiguous, if they are not contiguous along the vectors."""
    if any(w.stride(axis) == 1 for w in nest.writes):
        return []
    return [a.name for a in nest.wide if all(w.stride(a.name) == 1 for w in nest.writes)]


def _tile_extents(extent: int, most: int) -> list[int]:
    """Candidates for the extent of a register tile along an axis: divisors, because a remainder needs a smaller tile of its own; others
    if all divisors are small.

    >>> _tile_extents(42, 16), _tile_extents(34, 16), _tile_extents(83, 16)
    ([1, 2, 3, 6, 7, 14], [1, 2, 4, 6, 8], [1, 4, 8])
    """
    found = [n for n in range(1, most + 1) if extent % n == 0]
    if found[-1] >= 4 or extent < 8 or most < 8:
        return found
    return sorted({*found, 4, 6, 8}) if len(found) > 1 else [1, 4, 8]


# ---------------------------------------------------------------- staging


@functools.lru_cache(maxsize=1 << 10)
def staging_form(nest: Nest, access: Access) -> str | None:
    """How an operand is staged: as its box if windows overlap or it cannot be packed, else in panels; None if it cannot be staged."""
    extents = nest.extents
    if access.affine and (overlaps(access, extents) or not by_points(nest, access)):
        return BOX
    return PANELS if by_points(nest, access) else None


def must_be_staged(nest: Nest, access: Access, axis: str) -> bool:
    """Whether an operand must be staged: its reads are padded; or not contiguous along the vectors or, for operands that all lanes
    share, along the innermost loop; or they run across rows within one axis."""
    if not nest.reduced:
        return False
    turned = axis in access.axes and access.stride(axis) != 1
    steps = [abs(n) for a in access.axes if nest.extents[a] > 1 and (n := access.stride(a))]
    sparse = min(steps, default=1) > 1
    last = reduction_order(nest)[-1]
    scattered = axis not in access.axes and last in access.axes and abs(access.stride(last) or 0) != 1
    fused = any(access.regular(a.name, a.extent) < a.extent for a in nest.axes if a.name in access.axes)
    return access.padded or turned or sparse or scattered or fused


def stagings(nest: Nest, axis: str) -> list[Staged]:
    """The candidates for staged operands: only those that must be; and all that are reused."""
    every = {r.operand: kind for r in nest.reads if (kind := staging_form(nest, r)) is not None and reused(nest, r)}
    least = {r.operand: every[r.operand] for r in nest.reads if r.operand in every and must_be_staged(nest, r, axis)}
    return [least, every] if least != every else [every]


# ---------------------------------------------------------------- blocks


def seeds(nest: Nest, fusions: Fusions, device: CpuDevice) -> Iterator[CpuTile]:
    """The tiles from which the search starts."""
    reduced = nest.reduced_extents
    found = vectors(nest, device)
    for axis, lanes in found:
        if axis in reduced or not reduced:
            yield from _streaming_tiles(nest, fusions, device, axis, lanes)
        else:
            yield from _reduction_tiles(nest, fusions, device, axis, lanes)
    if not found:
        piece = dict.fromkeys(nest.spatial_extents, 1)
        yield CpuTile(fusions, shared_out(nest.spatial, device.cores * CPU.several_blocks, piece), reduced, piece, None, {})


def _reduction_tiles(nest: Nest, fusions: Fusions, device: CpuDevice, axis: str, lanes: int) -> Iterator[CpuTile]:
    """Tiles for reductions, with results in registers."""
    whole = nest.reduced_extents
    if is_memory_bound(nest, device):
        staged, most = stagings(nest, axis)[0], min(4 * lanes, -(-nest.extents[axis] // lanes) * lanes)
        sizes: list[tuple[int, dict[str, int]]] = [(width, {}) for width in dict.fromkeys((most, lanes))]
        sizes += [
            (lanes, {a: n})
            for a in _rows(nest, axis)
            for n in _tile_extents(nest.extents[a], max(1, device.registers - CPU.reserved_registers))[-2:]
        ]
        for width, row in sizes:
            piece = {a.name: width if a.name == axis else row.get(a.name, 1) for a in nest.spatial}
            vector = (axis, width if nest.extents[axis] % width == 0 and not width & (width - 1) else lanes)
            tile = CpuTile(fusions, piece, whole, piece, vector, staged, panels_first=False)
            for share in CPU.blocks_of_a_core:
                yield dataclasses.replace(tile, block=shared_out(nest.spatial, device.cores * share, piece))
            yield from _row_by_row(nest, device, tile)
            if staged:
                yield _in_nearest_cache(nest, device, tile)
        return
    choices = stagings(nest, axis)
    for piece in register_tiles(nest, device, axis, lanes):
        block = shared_out(nest.spatial, device.cores * CPU.several_blocks, piece)
        plain = CpuTile(fusions, block, whole, piece, (axis, lanes), {})
        if {} in choices:
            yield plain
        yield from _by_capacity(nest, device, plain, choices[0], choices[-1])
        yield from _row_by_row(nest, device, plain)


def _row_by_row(nest: Nest, device: CpuDevice, tile: CpuTile) -> Iterator[CpuTile]:
    """If an operand is used only once: tiles that process a few points of the longest reduction at a time, and so read whole rows
    of that operand."""
    if all(reused(nest, r) for r in nest.reads):
        return
    longest = reduction_order(nest)[-1]
    for rows, share in itertools.product(CPU.rows_at_once, CPU.blocks_of_a_core):
        chunk = {a: min(rows, n) if a == longest else 1 for a, n in nest.reduced_extents.items()}
        block = shared_out(nest.spatial, device.cores * share, tile.piece)
        yield dataclasses.replace(tile, block=block, chunk=chunk, panels_first=False, gathers=not output_holds_sums(nest))


def _by_capacity(nest: Nest, device: CpuDevice, plain: CpuTile, must: Staged, every: Staged) -> Iterator[CpuTile]:
    """Closed-form tiles with a given register tile: all operands of a block fit in the core's last cache, or one is resident and the
    others stream past it; with the whole reduction, or with chunks as long as the other axes. must, every: the fewest and the most
    operands to stage."""
    piece, gathers = plain.piece, not output_holds_sums(nest) or scattered(nest, plain)
    for resident in (None, *(r for r in nest.reads if r.operand in every)):
        kinds = every if resident is None else {**must, resident.operand: every[resident.operand]}
        found: dict[tuple[object, ...], CpuTile] = {}
        for share, least in itertools.product(CPU.cache_shares, ({}, plain.chunk)):
            size = largest_tile(nest, {**piece, **least}, device.cache_bytes / share, resident)
            block = {a.name: in_parts(a.extent, -(-a.extent // size[a.name]), piece[a.name]) for a in nest.spatial}
            chunk = {a.name: max((n for n in chunk_sizes(a.extent) if n <= size[a.name]), default=a.extent) for a in nest.reduced}
            tile = CpuTile(
                plain.fusions, block, chunk, piece, plain.vector, kinds, panels_first=resident is None, gathers=gathers
            )
            found[tile.key] = tile
        axes = [a for a in nest.spatial if resident is None or a.name not in resident.axes]
        yield from (_fitting(nest, device, tile, axes) for tile in found.values())


def _fitting(nest: Nest, device: CpuDevice, tile: CpuTile, axes: list[NestAxis]) -> CpuTile:
    """A tile whose block is halved along some axes, the one with the most register tiles first, until its shared memory fits."""
    while shared_bytes(nest, tile) > device.room_bytes:
        pieces, axis = max(((tile.block[a.name] // tile.piece[a.name], a) for a in axes), key=lambda x: x[0], default=(1, None))
        if axis is None or pieces < 2:
            break
        half = in_parts(tile.block[axis.name], 2, tile.piece[axis.name])
        tile = dataclasses.replace(tile, block={**tile.block, axis.name: half})
    return tile


def _in_nearest_cache(nest: Nest, device: CpuDevice, tile: CpuTile) -> CpuTile:
    """A tile with its staged operands in the first-level cache. Its block is grown from the innermost axis outward."""
    for a in reversed(nest.spatial):
        for size in sorted(
            {in_parts(a.extent, parts, tile.piece[a.name]) for parts in (1, 2, 3, 4, 8, 16, 32, 64)}, reverse=True
        ):
            wider = dataclasses.replace(tile, block={**tile.block, a.name: max(size, tile.block[a.name])})
            if shared_bytes(nest, wider) <= nearest_bytes(device):
                tile = wider
                break
    return tile


def nearest_bytes(device: CpuDevice) -> int:
    """The size of the first-level cache."""
    return device.caches[0].bytes if device.caches else device.cache_bytes


def is_memory_bound(nest: Nest, device: CpuDevice) -> bool:
    """Whether a nest is bound by memory: transferring its data once takes far longer than its arithmetic, so register tiles do not
    help."""
    work = nest.flops / 4 / device.lanes
    return nest.compulsory_bytes / ((device.caches[-1].beyond if device.caches else None) or math.inf) > 4 * work


@functools.cache
def chunk_sizes(extent: int) -> tuple[int, ...]:
    """Candidates for the size of a loop's chunks, ascending: divisors, because a tail costs a test at every point; others if there are
    few.

    >>> chunk_sizes(96), chunk_sizes(67)
    ((16, 24, 32, 48, 96), (16, 32, 64, 67))
    """
    small = [n for n in range(1, min(math.isqrt(extent), CPU.largest_divisor) + 1) if extent % n == 0]
    found = sorted({n for d in small for n in (d, extent // d) if n >= 16})
    if len(found) < 1 + extent.bit_length() // 3:
        found = sorted({*found, extent, *(n for p in range(4, 12) if (n := 1 << p) < extent)})
    return tuple(found)


def _streaming_tiles(nest: Nest, fusions: Fusions, device: CpuDevice, axis: str, lanes: int) -> Iterator[CpuTile]:
    """Tiles for data that is used once: rows of vectors, several of them in flight."""
    if axis in nest.reduced_extents:
        yield from _rows_of_a_reduction(nest, fusions, device, axis, lanes)
        return
    extent, reduced = nest.extents[axis], nest.reduced_extents
    far = nest.compulsory_bytes > CPU.kept_share * device.cores * device.cache_bytes
    # A line at the end of a row is written in two parts, one of them through the caches.
    parted = len(nest.wide) > 1 and any(
        extent * w.element_bytes % device.caches[0].line_bytes for w in nest.writes if device.caches
    )
    streams = (True, False) if far and not reduced and not parted else (False,)
    turned = _transposed_operands(nest, axis)
    for width in dict.fromkeys((lanes * 4 if extent >= lanes * 4 else lanes, lanes)):
        piece = {a.name: width if a.name == axis else 1 for a in nest.spatial}
        for stream, square in itertools.product(streams if turned else (), (lanes, 1)):
            blocks = [(_transposed_block(nest, turned, piece, width), piece)]
            if square > 1:  # stores whole rows, one after another
                large = [_large_transposed_block(nest, device, turned, piece, square, shape) for shape in CPU.large_sides]
                blocks += [(block, {**piece, axis: block[axis]}) for block in large]
            ahead = CPU.squares_ahead if square > 1 and device.fetches else 0
            for block, rows_of_block in blocks:
                yield CpuTile(fusions, block, reduced, rows_of_block, (axis, width), turned, stream=stream,
                            ahead=ahead, square=square)  # fmt: skip
        for stream, share in itertools.product(streams, CPU.blocks_of_a_core):
            block = shared_out(nest.spatial, device.cores * share, piece)
            for columns in (False, True):  # or rows from end to end
                yield CpuTile(fusions, block, reduced, piece, (axis, width), {}, panels_first=columns, stream=stream)


def _rows_of_a_reduction(nest: Nest, fusions: Fusions, device: CpuDevice, axis: str, lanes: int) -> Iterator[CpuTile]:
    """Tiles for reductions along rows: one row at a time, prefetched one page ahead, or several, which the hardware prefetches."""
    extent, reduced = nest.extents[axis], nest.reduced_extents
    last = nest.wide[-1] if nest.wide else None
    for rows in dict.fromkeys((1, unroll_factor(last.extent) if last is not None and last.extent >= CPU.rows_in_turn else 1)):
        piece = {a.name: rows if a is last else 1 for a in nest.spatial}
        most = lanes * (4 if rows == 1 else 2)
        for width in dict.fromkeys((most if extent >= most else lanes, lanes)):
            ahead = int(device.rate("page_bytes")) // (width * max(a.element_bytes for a in nest.reads or nest.writes))
            before = ahead if device.fetches and rows == 1 and extent >= ahead * width else 0
            for share in CPU.blocks_of_a_core:
                block = shared_out(nest.spatial, device.cores * share, piece)
                yield CpuTile(fusions, block, reduced, piece, (axis, width), {}, ahead=before)
            if rows == 1 and nest.outputs < device.cores * CPU.several_blocks:
                parts = -(-device.cores * CPU.several_blocks // max(1, nest.outputs))
                share_of = {axis: in_parts(extent, min(parts, -(-extent // width)), width)}
                yield CpuTile(fusions, {**piece, **share_of}, {**reduced, **share_of}, piece, (axis, width), {})


def _transposed_operands(nest: Nest, axis: str) -> Staged:
    """Operands that are contiguous along another axis than that of the vectors, so that they must be transposed."""
    return {
        r.operand: BOX for r in nest.reads
        if axis in r.axes and r.stride(axis) != 1
        and r.affine and any(r.stride(a.name) == 1 for a in nest.spatial)
    }  # fmt: skip


def _transposed_block(nest: Nest, turned: Staged, piece: dict[str, int], width: int) -> dict[str, int]:
    """A block that is as long along the contiguous axes of the transposed operands as along the vectors."""
    along = _followed(nest, turned)
    return {a.name: in_parts(a.extent, -(-a.extent // width), 1) if a.name in along else piece[a.name] for a in nest.spatial}


def _followed(nest: Nest, turned: Staged) -> set[str]:
    """The axes along which these operands are contiguous."""
    return {a.name for a in nest.spatial for r in nest.reads if r.operand in turned and r.stride(a.name) == 1}


def _large_transposed_block(
    nest: Nest, device: CpuDevice, turned: Staged, piece: dict[str, int], square: int, sides: tuple[float, float]
) -> dict[str, int]:
    """A block that extends along both of the last two axes, in whole squares. sides: its extent along the rows that are read and those
    that are written, relative to a square that fills a quarter of the last cache."""
    element_bytes = max(a.element_bytes for a in nest.accesses)
    side = 1 << int(math.log2(device.room_bytes / 4 / element_bytes)) // 2
    along, block = _followed(nest, turned), dict(piece)
    for a in nest.spatial[-2:]:
        least = max(piece[a.name], square)
        wanted = int(side * sides[a.name not in along])
        block[a.name] = in_parts(a.extent, -(-a.extent // max(wanted, least)), least)
    return block
