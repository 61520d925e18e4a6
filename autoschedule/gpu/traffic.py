"""The memory accesses of a block: instructions of its threads, bank conflicts, cache lines and memory transactions."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping

from tilelang.autoschedule.common.accesses import Access, Tile, _value
from tilelang.autoschedule.common.loop_summary import Loops, Placed
from tilelang.autoschedule.common.threads import Threads, described
from tilelang.autoschedule.gpu import bank_conflicts
from tilelang.autoschedule.gpu.constants import GPU
from tilelang.autoschedule.gpu.device import GpuDevice
from tilelang.instructions.instruction import ONE_LANE, Instruction, use


def staged(loops: Loops, access: Access) -> Placed | None:
    """The place in shared memory from which a read is served; the innermost if there are several."""
    found = [
        p for p in loops.places
        if p.memory == "shared" and p.verb == "load" and p.serves(access)
    ]  # fmt: skip
    return found[-1] if found else None


def fragment(access: Access, place: Placed | None, threads: Threads, device: GpuDevice) -> tuple[float, float]:
    """Instructions of all threads of a block for reading an operand, and the bytes of banks or cache lines that this occupies."""
    loops = threads.loops
    held = [
        p for p in loops.places
        if p.memory == "register" and p.verb == "load" and p.serves(access)
    ]  # fmt: skip
    depth = held[-1].depth if held else threads.reading_depth
    share = threads.share(depth)
    elements = math.prod(share[a] for a in access.axes) if access.axes else 1
    elements = min(elements, math.prod(access.box(share)))
    vector = 1
    if held and held[-1].vector is not None:
        vector = held[-1].vector[1]
    elif (
        loops.vector is not None and loops.vector[0] in access.axes and (place is not None or access.stride(loops.vector[0]) == 1)
    ):
        vector = loops.vector[1]
    times = threads.executions(depth)
    if (made := described(loops)) is not None:
        return 0.0, _by_descriptors(made, threads) / len(loops.nest.factors)
    if loops.instruction is not None:
        bytes_read = elements * access.element_bytes * times * threads.units
        return bytes_read / _bytes_of_a_move(access, held[-1] if held else None, vector), float(bytes_read)
    loads = math.ceil(elements / vector) * times
    cast = elements * times * loops.nest.inner.get("cast", 0) / len(loops.nest.factors)
    extra = GPU.address[access.padded] if place is None else 0.0
    per_load = _phase_bytes(access, place, threads, vector, device)
    warps = -(-threads.count // device.warp)
    return (loads * (1.0 + extra) + cast) * threads.units, loads * per_load * warps * (threads.units / threads.count)


def _bytes_of_a_move(access: Access, place: Placed | None, vector: int) -> float:
    """The bytes that one lane loads at once: its part of an instruction's load, or a vector."""
    made = use(place.instruction) if place is not None and place.instruction is not None else None
    if made is None:
        return vector * access.element_bytes
    return math.prod(made.operand(made.reads[0]).shape) * access.element_bytes / made.lanes


def _by_descriptors(made: Instruction, threads: Threads) -> float:
    """Bytes that instructions read themselves, of all operands."""
    issued = threads.points * threads.units / math.prod(made.shape.values())
    read = (made.operand(n) for n in made.reads if n != made.writes)
    return issued * sum(math.prod(o.shape) * o.dtype.bytes for o in read)


def _phase_bytes(access: Access, place: Placed | None, threads: Threads, vector: int, device: GpuDevice) -> int:
    """Bytes of banks, or of lines of the first-level cache, that one load of a warp occupies."""
    banks, bank_bytes = device.banks
    eb = access.element_bytes
    if place is not None and place.layout is not None:
        extents = tuple(sorted((a, place.tile.get(a, 1)) for a in place.layout.dims))
        shape = (eb, vector, banks, bank_bytes)
        return bank_conflicts.layout_phases(place.layout, extents, threads.spread, device.warp, shape) * banks * bank_bytes
    strides = _box_strides(access, place.tile) if place is not None else access.strides
    found = _steps_of(access, strides, tuple(a for a, _, _ in threads.spread))
    at = bank_conflicts.coordinates(threads.spread, device.warp)
    addresses = [sum(at[a][lane] * s for a, s in found.items()) * eb for lane in range(device.warp)]
    if place is not None:
        return bank_conflicts.phases(addresses, eb * vector, banks, bank_bytes) * banks * bank_bytes
    sector, line = device.transaction_bytes, device.line_bytes
    sectors = {(b + o) // sector for b in addresses for o in range(0, eb * vector, min(sector, eb * vector))}
    return -(-len(sectors) * sector // line) * line


def _box_strides(access: Access, tile: Tile) -> tuple[int, ...]:
    box = access.region(tile)
    return tuple(math.prod(box[d + 1 :]) for d in range(len(box)))


def _steps_of(access: Access, strides: tuple[int, ...], axes: tuple[str, ...]) -> dict[str, int]:
    """The distance in elements between neighbouring points along each axis, for dimensions with these strides; 0 if it depends
    on data."""
    found = {}
    for a in axes:
        total = 0
        for i, s in zip(access.indices, strides, strict=True):
            first, second = _value(i, {}), _value(i, {a: 1})
            total += (second - first) * s if first is not None and second is not None else 0
        found[a] = total
    return found


def staging(place: Placed, threads: Threads, device: GpuDevice) -> tuple[float, float]:
    """Instructions of all threads for copying to shared memory, and the bytes of banks that writing occupies."""
    assert place.access is not None
    times = threads.executions(place.depth)
    elements = place.box_bytes // place.access.element_bytes
    vector = place.vector[1] if place.vector is not None else 1
    if place.instruction is not None and use(place.instruction).issue == ONE_LANE:
        return 0.0, float(place.box_bytes * times)
    if place.instruction is not None:
        return place.box_bytes / _bytes_of_a_move(place.access, place, vector) * times, float(place.box_bytes * times)
    address = GPU.copy_address[place.access.padded or any(any(True for _ in i.children()) for i in place.access.indices)]
    return (GPU.copied + address) * elements / vector * times, float(place.box_bytes * times)


def global_bytes(access: Access, place: Placed | None, threads: Threads, device: GpuDevice) -> float:
    """Bytes of an operand that a block requests from beyond its core, in whole transactions."""
    loops = threads.loops
    if place is not None:
        if threads.whole_block(place.depth):
            return threads.executions(place.depth) * rounded(access, place.tile, device)
        return threads.executions(place.depth) * rounded(access, threads.union(place.depth), device)
    room = device.rates.get("l1_bytes", 0.0) / 2
    for depth in range(threads.block_depth, len(loops.loops) + 1):
        tile = threads.union(depth)
        if depth == len(loops.loops) or sum(r.footprint_bytes(tile) for r in loops.nest.reads) <= room:
            return threads.executions(depth) * rounded(access, tile, device)
    raise AssertionError("the innermost depth ends the search")


def rounded(access: Access, tile: Tile, device: GpuDevice) -> float:
    """Bytes of a tile, with every contiguous run rounded up to whole transactions."""
    box, run = access.box(tile), 1
    for n, whole in zip(reversed(box), reversed(access.tensor.shape), strict=True):
        run *= n
        if n < whole:
            break
    run_bytes = run * access.element_bytes
    rounded = -(-run_bytes // device.transaction_bytes) * device.transaction_bytes
    return math.prod(box) * access.element_bytes * rounded / max(1, run_bytes)


def storing(threads: Threads, device: GpuDevice) -> tuple[float, float, float]:
    """Instructions of all threads for storing a block's results, bytes of shared memory traffic if they are staged there, and
    bytes of transactions."""
    loops = threads.loops
    passes = threads.passes
    moved = sum(rounded(w, threads.block_tile, device) for w in loops.nest.writes) * passes
    place = next((p for p in loops.places if p.verb == "accumulate" and p.memory == "register"), None)
    if place is None:
        return 0.0, 0.0, moved
    results = math.prod(threads.share(0)[a.name] for a in loops.nest.spatial) * threads.units * passes
    vector = place.vector[1] if place.vector is not None else 1
    if place.stop_bytes:
        by_lane = place.instruction is not None and use(place.instruction).issue == ONE_LANE
        return results / 2 + (0.0 if by_lane else 2 * results / vector), 2 * moved, moved
    return results / vector, 0.0, moved * max(1.0, _transaction_overhead(threads, vector, device))


@dataclasses.dataclass(frozen=True)
class StageWork:
    """The work of a block's stages that stay on chip.

    made: the tensors that they compute. operations: operation counts, each with how often it is executed. products: the loops of those
    computed by instructions, each with the part of them that the block executes. read_bytes: of tensors that nothing else reads.
    reductions: the number of reductions across threads.
    """

    made: frozenset[str]
    operations: tuple[tuple[Mapping[str, int], float], ...]
    products: tuple[tuple[Loops, float], ...]
    read_bytes: float
    reductions: int


def stage_work(threads: Threads, device: GpuDevice) -> StageWork:
    """The work of the stages of one block, over all its passes."""
    loops = threads.loops
    stages = [p.stage for p in loops.places if p.stage is not None and not p.apart]
    made = frozenset(w.name for stage in stages for w in stage.nest.writes)
    known, operations, read_bytes = {*made, *(a.name for a in loops.nest.reads)}, list[tuple[Mapping[str, int], float]](), 0.0
    block, passes, products = threads.block_tile, threads.passes, list[tuple[Loops, float]]()
    for stage_loops in stages:
        stage = stage_loops.nest
        tile = {**stage.extents, **{a.name: min(block[a.name], a.extent) for a in stage.spatial if a.name in block}}
        results = math.prod(tile[a.name] for a in stage.spatial) * passes
        points = float(math.prod(tile.values()) * passes)
        if stage_loops.instruction is not None:
            products.append((stage_loops, points / stage.points))
        else:
            operations.append((stage.inner, points))
        operations.append((stage.outer, float(results)))
        for access in stage.reads:
            if access.name not in known:
                known.add(access.name)
                read_bytes += rounded(access, tile, device) * passes
    reductions = sum(bool(s.nest.reduced) and s.instruction is None for s in stages)
    return StageWork(made, tuple(operations), tuple(products), read_bytes, reductions)


def staging_barriers(threads: Threads) -> int:
    """How often a block synchronizes while its results go through shared memory."""
    loops = threads.loops
    passing = sum(p.stop_bytes for p in loops.places)
    whole = sum(w.footprint_bytes(threads.block_tile) for w in loops.nest.writes)
    return -(-whole // passing) * threads.passes if passing else 0


def _transaction_overhead(threads: Threads, vector: int, device: GpuDevice) -> float:
    """The ratio of transaction bytes to stored bytes for one store of a warp; above 1 if lanes are not contiguous."""
    loops = threads.loops
    write = loops.nest.writes[0]
    eb, sector = write.element_bytes, device.transaction_bytes
    held = use(loops.instruction) if loops.instruction is not None else None
    lanes = held.fragment(held.writes) if held is not None else None
    dims = lanes.table.shape[2] if lanes is not None else 0  # a dot product has a single result, placed by its thread's tiles
    if lanes is not None and dims and len(write.strides) > 1:
        strides = write.strides[-dims:]
        begins = [sum(int(n) * s for n, s in zip(at, strides, strict=True)) for at in lanes.table[: device.warp, 0, :]]
    else:
        found = _steps_of(write, write.strides, tuple(a for a, _, _ in threads.spread))
        at = bank_conflicts.coordinates(threads.spread, device.warp)
        begins = [sum(at[a][lane] * s for a, s in found.items()) for lane in range(device.warp)]
    touched = {(b * eb + o) // sector for b in set(begins) for o in range(0, eb * vector, min(sector, eb * vector))}
    return len(touched) * sector / (len(set(begins)) * eb * vector)
