"""Tiles whose innermost level is a matrix instruction of a warp.

Only the definition of an instruction is known. Its meaning tells which axes it multiplies and adds. Its lane maps tell how to
load operands into its lanes: by another instruction with the same map, or by vectors of consecutive slots. The layouts in shared
memory are, within a family of swizzles, those with the fewest bank conflicts for reading and writing.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
import math
from collections.abc import Iterator

from tilelang.autoschedule.common.accesses import Access, axis_of
from tilelang.autoschedule.common.axes import Fusions
from tilelang.autoschedule.common.matrix_units import usable
from tilelang.autoschedule.common.task_accesses import Nest
from tilelang.autoschedule.gpu.bank_conflicts import coordinates, phases, places_at
from tilelang.autoschedule.gpu.constants import GPU
from tilelang.autoschedule.gpu.device import GpuDevice
from tilelang.autoschedule.gpu.staging import vector_lanes
from tilelang.autoschedule.gpu.tile import GpuTile, Staged, buffer_dimensions
from tilelang.core.dtype import DType
from tilelang.core.expr import INDEX, Axis, Expr, Read, Var
from tilelang.core.layout import Layout
from tilelang.instructions.fragment import Fragment
from tilelang.instructions.instruction import Instruction, known
from tilelang.instructions.operand import Operand
from tilelang.schedules.steps import Place, Step, Tile, Vectorize


@dataclasses.dataclass(frozen=True, eq=False)
class Fit:
    """An instruction for a nest. binding: its axes (rows, columns, reduction), each with the nest's axis; left, right: the
    operands' reads."""

    made: Instruction
    binding: tuple[tuple[str, str], tuple[str, str], tuple[str, str]]
    left: tuple[Operand, Access]
    right: tuple[Operand, Access]

    @property
    def axes(self) -> tuple[str, str, str]:
        (_, m), (_, n), (_, k) = self.binding
        return m, n, k


def tiles(nest: Nest, fusions: Fusions, device: GpuDevice) -> Iterator[GpuTile]:
    """Every tile of this family."""
    for fit in fits(nest, device, "register"):
        for warp, grid, row_bytes in itertools.product(warp_tiles(fit, device), grids(device), GPU.round_bytes):
            tile = _tile(nest, fusions, device, fit, warp, grid, row_bytes)
            if tile is not None:
                yield tile
                yield from in_parts(nest, device, fit.axes[2], tile)


def warp_tiles(fit: Fit, device: GpuDevice) -> list[tuple[int, int]]:
    """The tiles that a warp may compute: the instruction's rows and columns, doubled until the results fill half of the registers."""
    rows, columns = (fit.made.shape[a] for a, _ in fit.binding[:2])
    room = 1 << (device.profile.registers_per_thread - 1).bit_length()
    every = itertools.product(_doubled(rows, room), _doubled(columns, room))
    fitting = (t for t in every if room // GPU.least_sums <= math.prod(t) // device.warp <= room // GPU.most_sums)
    return [(m, n) for m, n in fitting if max(m, n) <= GPU.longest * min(m, n)]


def grids(device: GpuDevice) -> list[tuple[int, int]]:
    """The arrangements of a block's warps: at most as many as keep the core's schedulers busy."""
    busy = int(GPU.scheduler_warps * device.rates.get("core_schedulers", 1))
    most = max(1, min(busy, device.profile.max_block_threads // device.warp))
    every = itertools.product(_doubled(1, most), repeat=2)
    return [(a, b) for a, b in every if a * b <= most and max(a, b) <= GPU.longest * min(a, b)]


def _doubled(least: int, most: int) -> list[int]:
    """least, 2 * least, 4 * least, ... up to most."""
    return [least << n for n in range((most // least).bit_length())]


def in_parts(nest: Nest, device: GpuDevice, k: str, tile: GpuTile) -> Iterator[GpuTile]:
    """The tile with its reduction split over several blocks (split-K), if there are few blocks."""
    blocks = math.prod(-(-nest.extents[a] // size) for a, size in tile.block)
    length, extent = dict(tile.chunk)[k], nest.extents[k]
    for parts in GPU.parts:
        if blocks * parts > GPU.shared_blocks * device.cores or extent // parts < GPU.part_rounds * length:
            return
        share = -(-extent // parts // length) * length
        yield dataclasses.replace(tile, block=(*tile.block, (k, share)), accumulate=())


def fits(nest: Nest, device: GpuDevice, memory: str, turned: bool = False) -> Iterator[Fit]:
    """The instructions that can compute a nest from operands in a memory: the nest must be a sum of products of types that
    they support. turned: whether the results are contiguous along the instructions' rows instead of their columns."""
    units = (*device.profile.capabilities, *device.profile.instructions)
    if len(nest.factors) != 2 or nest.inner.get("*") != 1 or nest.inner.get("+") != 1 or len(nest.task.states) != 1 or not units:
        return
    if set(nest.inner) - {"*", "+", "cast"}:
        return
    definition = nest.task.states[0].tensors[0].definition
    given = definition.allow if definition is not None else ()
    widest: dict[tuple[int, ...], Fit] = {}
    for made in usable(device.profile, given):
        if made.lanes == _unit_threads(device, made.level):
            for fit in _bound(nest, made, memory, turned):
                rows, columns, steps = (made.shape[a] for a, _ in fit.binding)
                kept = widest.get((rows, columns))
                if kept is None or kept.made.shape[kept.binding[2][0]] < steps:
                    widest[rows, columns] = fit
    yield from widest.values()


def _unit_threads(device: GpuDevice, level: str) -> int | None:
    """The threads of a unit at a level wider than a thread; None if the device has no such level."""
    return device.profile.level(level).threads if level != "thread" and device.profile.has_level(level) else None


def _bound(nest: Nest, made: Instruction, memory: str, turned: bool) -> Iterator[Fit]:
    reads = [r for r in made.means.value.walk() if isinstance(r, Read)]
    target = made.means.target_axes
    if len(reads) != 2 or len(target) != 2 or len(made.means.reduced) != 1:
        return
    rows, columns = target
    k = made.means.reduced[0]
    by_axes = {frozenset(i.name for i in r.indices if isinstance(i, Axis)): r.tensor.name for r in reads}
    names = by_axes.get(frozenset((rows.name, k.name))), by_axes.get(frozenset((columns.name, k.name)))
    if names[0] is None or names[1] is None:
        return
    left, right = made.operand(names[0]), made.operand(names[1])
    if left.memory != memory or right.memory != memory:
        return
    for first, second in (nest.factors, tuple(reversed(nest.factors))):
        mine = [a for a in nest.spatial if a.name in first.axes and a.name not in second.axes and a.extent > 1]
        other = [a for a in nest.spatial if a.name in second.axes and a.name not in first.axes and a.extent > 1]
        both = [a for a in nest.reduced if a.name in first.axes and a.name in second.axes and a.extent > 1]
        typed = first.tensor.dtype in left.dtypes and second.tensor.dtype in right.dtypes
        if not (mine and other and both and typed):
            continue
        along, across = (mine, other) if turned else (other, mine)
        near = next((a for a in along if nest.writes[0].stride(a.name) == 1), None)
        summed = next((a for a in both if first.stride(a.name) == 1 or second.stride(a.name) == 1), both[-1])
        if near is not None:
            far = max(across, key=lambda a: a.extent)
            m, n = (near, far) if turned else (far, near)
            binding = ((rows.name, m.name), (columns.name, n.name), (k.name, summed.name))
            yield Fit(made, binding, (left, first), (right, second))


def _tile(
    nest: Nest, fusions: Fusions, device: GpuDevice, fit: Fit, warp: tuple[int, int], grid: tuple[int, int], row_bytes: int
) -> GpuTile | None:
    m, n, k = fit.axes
    shape = dict(zip(fit.axes, (fit.made.shape[a] for a, _ in fit.binding), strict=True))
    length = row_bytes // min(r.element_bytes for r in nest.factors)
    block = {m: warp[0] * grid[0], n: warp[1] * grid[1]}
    sizes = {**block, k: length}
    warps = grid[0] * grid[1]
    if device.pruning.drops("threads", warps * device.warp > device.profile.max_block_threads):
        return None
    if any(size % shape[a] for a, size in ((m, warp[0]), (n, warp[1]), (k, length))):
        return None
    if any(nest.extents[a] <= size // 2 for a, size in sizes.items()):
        return None
    tile = {a.name: sizes.get(a.name, 1) for a in nest.axes}
    staged = []
    for operand, access in (fit.left, fit.right):
        part = {m: warp[0], n: warp[1], k: shape[k]}
        found = stage_operand(nest, device, fit, operand, access, tile, part, warps * device.warp)
        if found is None:
            return None
        staged.append(found)
    wide = tuple((a.name, tile[a.name]) for a in nest.wide)
    return GpuTile(
        fusions,
        wide,
        (),
        chunk=tuple((a.name, tile[a.name]) for a in nest.reduced),
        staged=tuple(staged),
        warp=((m, warp[0]), (n, warp[1])),
        walk=tuple((a.name, shape[k] if a.name == k else 1) for a in nest.reduced),
        accumulate=through_shared(nest, device, fit, block) or direct_stores(nest, device, fit),
        instruction=(fit.made.name, fit.binding),
    )


def direct_stores(nest: Nest, device: GpuDevice, fit: Fit) -> tuple[Step, ...]:
    """Stores as vectors of the neighbouring results that a lane holds."""
    held, n = fit.made.fragment(fit.made.writes), fit.axes[1]
    lanes = contiguous_slots(held, 1) if held is not None else 1
    lanes = min(lanes, vector_lanes(nest.writes[0], n, device))
    return (Vectorize(n, lanes),) if lanes > 1 else ()


def through_shared(nest: Nest, device: GpuDevice, fit: Fit, block: dict[str, int]) -> tuple[Step, ...]:
    """Stores through shared memory, row by row in wide vectors; no steps if lanes hold such vectors already, or if rows do not
    allow them."""
    held, (m, n, _) = fit.made.fragment(fit.made.writes), fit.axes
    (write,) = nest.writes[:1]
    dims = [axis_of(i) for i in write.indices]
    wide = vector_lanes(write, n, device)
    if held is None or len(nest.writes) > 1 or dims[-2:] != [m, n] or block[n] % wide:
        return ()
    own = min(contiguous_slots(held, 1), wide)
    if own == wide or math.prod(block.values()) * write.element_bytes > device.shared_bytes:
        return ()
    lanes = tuple((int(r), int(c)) for r, c in held.table[:, 0, :])
    move = tuple((d, wide if d == n else 1) for d in dims if d in block)
    reading = tuple((d, max(1, block[d] // size), size) for d, size in move)
    layout = swizzle((m, n), (block[m], block[n]), wide, (lanes, own), reading, (*device.banks, write.element_bytes))
    return Place("via", None, "shared", layout), Tile(move, "thread"), Vectorize(n, wide)


def contiguous_slots(held: Fragment, dimension: int) -> int:
    """The number of a lane's first slots that are neighbours along a dimension of the operand.

    >>> from tilelang.instructions.fragment import fragment
    >>> contiguous_slots(fragment(32, 4, lambda lane, slot: (lane // 4 + 8 * (slot // 2), 2 * (lane % 4) + slot % 2)), 1)
    2
    """
    table = held.table
    found = 1
    while found < table.shape[1] and all(
        (table[:, found, d] - table[:, 0, d] == (found if d == dimension else 0)).all() for d in range(table.shape[2])
    ):
        found += 1
    return 1 << (found.bit_length() - 1)


def stage_operand(
    nest: Nest, device: GpuDevice, fit: Fit, operand: Operand, access: Access, tile: dict[str, int], part: dict[str, int], threads: int
) -> Staged | None:  # fmt: skip
    """An operand in shared memory, with the order and swizzle that serve its lanes best."""
    bound, held = dict(fit.binding), operand.fragment
    dims = buffer_dimensions(nest, access, tile)
    mine = [bound[d.name] for d in operand.dims]
    if dims is None or held is None or not set(mine) <= set(dims) or any(dims[d] > 1 for d in dims if d not in mine):
        return None
    near = next((a for a in mine if access.stride(a) == 1), None)
    if near is None:
        return None
    ahead = 3 if device.profile.async_copy else 1
    far = next(a for a in mine if a != near)
    mover = _mover(device, operand, mine, (far, near), access, part)
    if mover is not None:
        row, column, piece = far, near, 16 // access.element_bytes
        source = mover.operand(mover.reads[0]).fragment
        assert source is not None
        reading = [(int(r), int(c)) for r, c in source.table[:, 0, :]]
        kept_by, kept = mover.name, None
    else:
        column = max(mine, key=lambda a: (contiguous_slots(held, mine.index(a)), a == near))
        row = next(a for a in mine if a != column)
        piece = min(contiguous_slots(held, mine.index(column)), 16 // access.element_bytes)
        table = held.table[:, 0, :]
        reading = [(int(t[mine.index(row)]), int(t[mine.index(column)])) for t in table]
        kept_by, kept = None, (column, piece) if piece > 1 else None
    lanes = math.gcd(vector_lanes(access, near, device), tile[near])
    if near == column:
        move = {row: 1, column: lanes}
    else:  # transposed during the copy: each thread copies a square
        move = {column: piece, row: max(1, min(lanes, piece, tile[row] * tile[column] // piece // threads))}
    order = tuple((d, move.get(d, 1)) for d in dims)
    writing = tuple((d, max(1, tile.get(d, 1) // move.get(d, 1)), move.get(d, 1)) for d in dims)
    banks = (*device.banks, access.element_bytes)
    run = piece if piece > 1 else move[column]
    layout = swizzle((row, column), (tile[row], tile[column]), run, (tuple(reading), piece), writing, banks)
    wide = move[column] if len(layout.terms) < 3 else min(run, move[column])
    vector = (column, wide) if wide > 1 else None
    return Staged(access, layout, order, vector, kept, kept_by, None, ahead)


def _mover(
    device: GpuDevice, operand: Operand, mine: list[str], order: tuple[str, str], access: Access, part: dict[str, int]
) -> Instruction | None:
    """The widest instruction that loads an operand from shared memory into the lanes that need it."""
    assert operand.fragment is not None
    profile = device.profile
    turned = tuple(mine.index(a) for a in order)
    fitting = _movers(operand.fragment, turned, access.tensor.dtype, device.warp, (*profile.capabilities, *profile.instructions))
    for made in fitting:
        rows, columns = (made.shape[d.name] for d in made.operand(made.reads[0]).dims)
        if part[order[0]] % rows == 0 and part[order[1]] % columns == 0:
            return made
    return None


@functools.lru_cache(maxsize=256)
def _movers(
    wanted: Fragment, turned: tuple[int, ...], type: DType, lanes: int, units: tuple[str, ...]
) -> tuple[Instruction, ...]:
    """The warp-wide loads from shared memory after which every lane has what a map requires, widest first.

    turned: the map's dimensions in the order of memory.
    """
    import numpy as np  # late: NumPy takes long to import

    found = []
    for made in known():
        if made.kind != "move" or made.level != "warp" or made.lanes != lanes or len(made.means.axes) != 2 or not made.needs:
            continue
        if not set(made.needs) <= set(units) or made.operand(made.writes).memory != "register":
            continue
        source, held = made.operand(made.reads[0]), made.fragment(made.writes)
        if source.memory != "shared" or type not in source.dtypes or held is None or source.fragment is None:
            continue
        if held.slots >= wanted.slots and np.array_equal(held.table[:, : wanted.slots], wanted.table[:, :, list(turned)]):
            found.append(made)
    return tuple(sorted(found, key=lambda made: (-(made.fragment(made.writes) or wanted).slots, made.name)))


@functools.lru_cache(maxsize=1024)
def swizzle(
    names: tuple[str, str], shape: tuple[int, int], piece: int, lanes: tuple[tuple[tuple[int, int], ...], int],
    moving: tuple[tuple[str, int, int], ...], banks: tuple[int, int, int],
) -> Layout:  # fmt: skip
    """The layout with the fewest phases for the accesses of a tile; of equal ones, the simplest.

    names, shape: of rows and columns. piece: the elements that stay together. lanes: the (row, column) at which each computing
    lane's access begins, and its number of elements. moving: how the lanes that copy elements in or out are arranged. banks:
    their number, bytes of a bank, bytes of an element.
    """
    (row, column), (begins, own), (count, width, element_bytes) = names, lanes, banks
    extents = dict(zip(names, shape, strict=True))
    moved = coordinates(moving, len(begins))
    wide = max(apart for _, _, apart in moving)
    found: list[tuple[int, int, Layout]] = []
    for number, layout in enumerate(layouts(row, column, shape[1], piece)):
        own_at = places_at(layout, extents, {row: [r for r, _ in begins], column: [c for _, c in begins]})
        moved_at = places_at(layout, extents, {d: moved[d] for d in names})
        total = 2 * phases([p * element_bytes for p in own_at], own * element_bytes, count, width)
        total += phases([p * element_bytes for p in moved_at], wide * element_bytes, count, width)
        found.append((total, number, layout))
    return min(found, key=lambda f: f[:2])[2]


def layouts(row: str, column: str, width: int, piece: int) -> Iterator[Layout]:
    """Candidate layouts of rows made of pieces: plain; with pieces, or pairs of them, permuted by the row number (XOR); with
    padded rows; and with pairs of rows interleaved and permuted."""
    r, c = Var(row, INDEX), Var(column, INDEX)
    yield Layout((r, c))
    count = width // piece
    if count < 2 or width % piece or count & (count - 1):
        return
    inside: tuple[Expr, ...] = (c % piece,) if piece > 1 else ()
    among = min(8, count)
    for below in (1, 2, 4):
        number = r % among if below == 1 else r // below % among
        yield Layout((r, (c // piece) ^ number, *inside))
    for below in (1, 2, 4) if among > 2 else ():
        number = (r if below == 1 else r // below) % (among // 2) * 2
        yield Layout((r, (c // piece) ^ number, *inside))
    for more in (piece, 2 * piece, 4 * piece):
        yield Layout((r, c), more)
    for period in (8, 16):
        number = (r // 2 + r // (2 * period)) % among
        yield Layout((r // 2, (r + r // period) % 2, (c // piece) ^ number, *inside))
