"""Estimates the time of a schedule on a CPU. Nothing is run.

Every term is a count that `Loops` gives (instructions of the innermost body, elements moved, lines that miss a cache) times a rate of
the profile. Work of one core is summed. Waits for a cache or for memory overlap with it, so the longer of the two counts, and a share
of the other. A rate that the profile lacks counts as no time.
"""

from __future__ import annotations

import functools
import heapq
import itertools
import math
from collections.abc import Iterator, Mapping
from typing import TypeAlias

from tilelang.autoschedule.common.accesses import Access, Tile, steps_of
from tilelang.autoschedule.common.conditions import divided_share
from tilelang.autoschedule.common.cost import Estimate, summed
from tilelang.autoschedule.common.loop_summary import Loops, Placed
from tilelang.autoschedule.common.task_accesses import Nest
from tilelang.autoschedule.cpu.bodies import (
    Body,
    body_of,
    piece_count,
    stage_share,
    stages_inside,
)
from tilelang.autoschedule.cpu.cache_traffic import Traffic, fetched_share
from tilelang.autoschedule.cpu.constants import CPU
from tilelang.autoschedule.cpu.device import CpuDevice, divided
from tilelang.autoschedule.cpu.dot_product_words import in_words
from tilelang.autoschedule.cpu.memory_stalls import stall_cycles, wait_cycles
from tilelang.autoschedule.cpu.move_cost import axis_names, move_cycles, row_extent, turned_vector_cycles
from tilelang.core.expr import Binary, Const

STEPS = 3  # in which a kernel's time is computed, from cheap to expensive

OPERATIONS = {"+": "add", "-": "add", "*": "multiply", "/": "divide", "%": "remainder", "//": "divide"}


Parts: TypeAlias = list[tuple[str, float]]


def estimate(kernels: tuple[Loops, ...], device: CpuDevice) -> Estimate:
    """The time of a program's kernels, one after another."""
    return IncrementalEstimate(kernels, device).estimate


class IncrementalEstimate:
    """An estimate in three steps, from cheap to expensive: the work of a program's kernels; waits that overlap with work; and stalls
    that do not.

    least_seconds: a lower bound of the estimate, from the steps counted so far. whole: whether these are all. work_seconds: the work
    alone, divided evenly among all cores.
    """

    def __init__(self, kernels: tuple[Loops, ...], device: CpuDevice) -> None:
        every = [in_words(kernel, device) for loops in kernels for kernel in loops.kernels()]
        self._device = device
        launches = device.scale("launch") * device.rate("launch_us") + (len(every) - 1) * device.rate("next_launch_us")
        self._launch = ("launch", launches * 1e-6)
        self._kernels: list[tuple[Loops, float, Parts]] = [
            (loops, last_block_end(loops, device) if loops.nest.points else 1.0, []) for loops in every
        ]
        self._steps = zip(*(_in_steps(loops, even, device) for loops, even, _ in self._kernels), strict=True)
        self._number, self.whole = 0, False
        self.count()
        self.work_seconds = sum(seconds for _, _, parts in self._kernels for _, seconds in parts) / device.cores

    def count(self) -> None:
        """Counts the next step of every kernel, if there is one."""
        if self.whole:
            return
        for (_, _, parts), found in zip(self._kernels, next(self._steps), strict=True):
            parts += found
        self._number += 1
        self.whole = self._number == STEPS
        self.least_seconds = sum(self._parts().values())

    def _parts(self) -> dict[str, float]:
        """The seconds of each part, summed over all kernels."""
        kernels = [_whole(loops, parts, even, self._device) for loops, even, parts in self._kernels]
        return summed(itertools.chain(*kernels, (self._launch,)))

    @property
    def estimate(self) -> Estimate:
        while not self.whole:
            self.count()
        return Estimate(self.least_seconds, tuple(self._parts().items()))


def _in_steps(loops: Loops, even: float, device: CpuDevice) -> Iterator[Parts]:
    """The seconds of the parts of a kernel's time, step by step. If an axis is empty, only the results take time."""
    if not loops.nest.points:
        written = sum(w.footprint_bytes(loops.nest.extents) for w in loops.nest.writes)
        yield [("results", device.per(written * 1e-9, "global_gb_per_s"))]
        yield from itertools.repeat([], STEPS - 1)
        return
    cycle = device.rate("cycle_ns") * 1e-9
    worked = [(what, cycles * cycle) for what, cycles in work(loops, device)]
    yield worked
    traffic, busy = Traffic(loops, len(loops.loops), loops.piece_depth), sum(seconds for _, seconds in worked)
    slower = cycle * device.scale("waiting")
    waits = [(cache, cycles * slower) for cache, cycles in wait_cycles(loops, traffic, even, device)]
    yield [*exposed(waits, busy, device), ("waiting for stores", max(0.0, partial_store_cycles(loops, device) * cycle - busy))]
    yield [("pages and rows", stall_cycles(loops, traffic, device) * slower)]


def _whole(loops: Loops, parts: Parts, even: float, device: CpuDevice) -> Parts:
    """The parts of a kernel on all cores, with the overhead of its blocks."""
    if not loops.nest.points:
        return parts
    blocks = max(1, loops.units("block"))
    each = ("blocks", -(-blocks // device.cores) * device.rate("block_us") * 1e-6)
    return [*[(what, seconds * even) for what, seconds in parts], each]


def exposed(waits: list[tuple[str, float]], busy: float, device: CpuDevice) -> list[tuple[str, float]]:
    """The part of each wait that does not overlap with `busy` seconds of work: a share of the overlap, and the excess of the longest
    wait over the work.

    Overlap with memory degrades as work grows, because sparse accesses defeat the hardware prefetcher.
    """
    longest, parts = max(waits, key=lambda wait: wait[1], default=None), []
    for found in waits:
        cache, wait = found
        far = cache == "global" and busy > 0
        longer = max(0.0, wait - busy) if found is longest else 0.0
        apart = busy + (wait if found is longest else min(busy, wait))
        beside = device.rate("far_waiting_share") * busy / apart if far else device.rate("waiting_share")
        parts.append((f"waiting for {cache}", longer + beside * min(busy, wait)))
    return parts


def last_block_end(loops: Loops, device: CpuDevice) -> float:
    """The time at which the last block ends, as a share of all the work: each core executes its own share of the blocks in order, and
    then steals from others."""
    sizes: list[tuple[int, int]] = []  # for each axis, its extent and the block's
    for loop, outside, inside in zip(loops.loops, loops.tiles, loops.tiles[1:], strict=False):
        if loop.level == "block":
            sizes += [(outside[a], inside[a]) for a, _ in loop.rounds]
    return _last_block_end(tuple(sizes), device.cores)


@functools.lru_cache(maxsize=1 << 10)
def _last_block_end(sizes: tuple[tuple[int, int], ...], cores: int) -> float:
    blocks, points = math.prod(-(-extent // size) for extent, size in sizes), math.prod(extent for extent, _ in sizes)
    if all(extent % size == 0 for extent, size in sizes):
        return -(-blocks // cores) / blocks
    cores, levels = min(cores, blocks), _levels(sizes)
    shares = [blocks * core // cores for core in range(cores + 1)]
    if blocks > CPU.many_blocks * cores:  # the remainder is negligible
        return max(end - begin for begin, end in itertools.pairwise([_points_of_first(n, levels) for n in shares])) / points
    free, following = [(0.0, core) for core in range(cores)], shares[:-1]
    after = [*range(1, cores), 0]  # for each share, the one to steal from next when it is finished
    for _ in range(blocks):
        now, core = heapq.heappop(free)
        owner = core
        while following[owner] == shares[owner + 1]:
            further = after[owner]
            if following[further] == shares[further + 1]:  # nothing is left to steal there
                after[owner] = after[further]
            owner = further
        following[owner] += 1
        taken = _points_of_first(following[owner], levels) - _points_of_first(following[owner] - 1, levels)
        heapq.heappush(free, (now + taken / points, core))
    return max(free)[0]


def _levels(sizes: tuple[tuple[int, int], ...]) -> list[tuple[int, int, int, int]]:
    """For each axis its extent, the block's extent, and the numbers of blocks and points of all later axes."""
    found, blocks, points = list[tuple[int, int, int, int]](), 1, 1
    for extent, size in reversed(sizes):
        found.append((extent, size, blocks, points))
        blocks, points = blocks * -(-extent // size), points * extent
    return found[::-1]


def _points_of_first(blocks: int, levels: list[tuple[int, int, int, int]]) -> int:
    """The number of points in the first `blocks` blocks; the last axis varies fastest."""
    found, beside = 0, 1
    for extent, size, inner_blocks, inner_points in levels:
        whole, blocks = divmod(blocks, inner_blocks)
        begun = min(extent, whole * size)
        found += beside * begun * inner_points
        beside *= min(size, extent - begun)
    return found + beside * min(1, blocks)


# ---------------------------------------------------------------- work


def work(loops: Loops, device: CpuDevice) -> Iterator[tuple[str, float]]:
    """The work of the cores, by name, in cycles of all cores together."""
    yield "operations", body_cycles(loops, device) * device.scale("operations")
    yield "results", result_cycles(loops, device) * device.scale("operations")
    for p, stage in stages_inside(loops):
        computed = stage_share(p, loops) * sum(c for _, c in work(stage, device))
        yield f"compute {stage.nest.writes[0].name}", computed + loops.passes(p.depth) * _fold_latency_cycles(stage, device)
    for p in loops.places:
        if p.access is not None and p.verb == "load" and p.memory == "shared":
            yield f"move {p.access.name}", move_cycles(loops, p, device) * device.scale("moves")
            if fetched_share(loops, p) and device.caches:
                lines = loops.passes(p.depth) * p.box_bytes / device.caches[0].line_bytes
                asked = max(lines, body_of(loops, device).rounds)  # each iteration tests whether a prefetch is due
                yield f"prefetch {p.access.name}", asked * device.rate("round_cycles")


def body_cycles(loops: Loops, device: CpuDevice) -> float:
    """The cycles of the innermost bodies, over all iterations of all blocks."""
    nest = loops.nest
    body = body_of(loops, device)
    points = body.vectors(body.tile)
    computed = count = 0.0
    for axes, operations in _fused(nest).items():
        times = points if axes.issuperset(body.tile) else body.vectors(axes) * _recomputed(loops, body, axes)
        computed += times * _cycles_of(operations, device)
        count += times * sum(operations.values())
    tile = {**body.tile, body.axis: 1}
    loads = [_loads(a, tile, body, device) for a in nest.reads]
    loaded = sum(loads)
    stores = 0.0 if nest.reduced else float(sum([body.vectors(a.axes) for a in nest.writes]))
    count += loaded + stores
    loading = divided(loaded, device.loads)
    cycles = max(
        max(computed, loading) + device.rate("loads_share") * min(computed, loading),
        device.per(stores, "stores_per_cycle"),
        device.per(count, "operations_per_cycle"),
    )
    summed = math.prod([body.tile[a.name] for a in nest.reduced if a.name != body.axis])
    cycles += _spilled(loops, body, device) * summed * device.rate("spill_cycles")
    if body.lanes > 1:
        along = [(a, n) for a, n in zip(nest.reads, loads, strict=True) if body.axis in a.axes]
        crossing = [n * _crossing(loops, a.flat, body, device) for a, n in along]
        cycles += sum(crossing) * device.rate("crossing_cycles")
        written = [] if nest.reduced else [a for a in nest.writes if body.axis in a.axes]
        cycles += sum([_gathered(loops, a, body, device) for a in (*(a for a, _ in along), *written)])
        cycles += sum([_masked(loops, a, body) for a, _ in along]) * device.rate("masked_vector_cycles")
        cycles += divided_share(nest, body.axis, body.lanes) * points * body.lanes * CPU.lane_update_cycles
    ends = [device.rate("peeled_cycles" if peeled else "guard_cycles") for peeled in _ends(loops)]
    cycles += summed * max(ends, default=0.0)
    total = body.rounds * (cycles + device.rate("round_cycles"))
    if nest.reduced:
        total = max(total, _latency_cycles(loops, body, count, device))
    return total


def least_seconds(nest: Nest, device: CpuDevice) -> float:
    """A lower bound on the seconds that the operations of a nest take on all cores: in full vectors, with dot products for narrow
    types, and with every loop-invariant operation hoisted."""
    inner = sum(_cycles_of(found, device) * math.prod(nest.extents[a] for a in along) for along, found in _fused(nest).items())
    outer = _cycles_of(nest.outer, device)
    lanes = device.lanes * 4 / max(1, min(4, nest.computed.bytes))
    narrow = 4 if nest.multiplied is not None and nest.multiplied.bytes < 4 else 1
    vectors = (inner / narrow + (outer * nest.outputs if nest.reduced else 0.0)) / lanes
    return vectors * device.scale("operations") * device.rate("cycle_ns") * 1e-9 / device.cores


def _ends(loops: Loops) -> set[bool]:
    """For the cuts of a reduction that leave a tail, whether the tail is peeled; otherwise the end is tested at every point."""
    reduced = loops.nest.reduced_extents.keys() - ({loops.vector[0]} if loops.vector is not None else set())
    peeled, extents = {a for loop in loops.loops if loop.peel for a, _ in loop.rounds}, loops.nest.extents
    return {a in peeled for a in reduced if any(extents[a] % tile[a] for tile in loops.tiles)}


@functools.lru_cache(maxsize=1 << 8)
def _fused(nest: Nest) -> Mapping[frozenset[str], Mapping[str, int]]:
    """The instructions of one point, by the axes that they vary along: a multiply-add counts once; a cast counts by its source type."""
    every = {along: dict(operations) for along, operations in nest.varying.items()}
    widest = sorted(every, key=lambda along: -len(along))
    for along in widest:
        added = every[along].get("+", 0)
        for product in (p for p in widest if p <= along):  # the product's axes must be among those of the addition
            fused = min(added, every[product].get("*", 0))
            every[product]["*"] = every[product].get("*", 0) - fused
            added -= fused
    for found in every.values():
        if casts := found.pop("cast", 0):
            found["from_float16" if any(a.element_bytes == 2 for a in nest.accesses) else "from_int32"] = casts
    return every


def _recomputed(loops: Loops, body: Body, along: frozenset[str]) -> float:
    """The share of a body's iterations that compute an operation again. It is loop-invariant in the innermost loops whose axes it does
    not vary along, and hoisted out of them."""
    same = body.rounds / max(1, loops.passes(body.depth))  # points that a leaf computes in a loop are the innermost iterations
    if same > 1 and any(n > 1 and axis in along for axis, n in loops.tiles[-1].items()):
        return 1.0
    same = max(1.0, same)
    for axis, rounds in ((a, n) for loop in reversed(loops.loops[: body.depth]) for a, n in reversed(loop.rounds) if n > 1):
        if axis in along:
            break
        same *= rounds
    return max(1 / same, 1 / max(1, body.rounds))


def _cycles_of(operations: Mapping[str, int], device: CpuDevice) -> float:
    """Cycles of these operations on one vector each."""
    return sum([n * operation_cycles(op, device) for op, n in operations.items()])


def operation_cycles(op: str, device: CpuDevice) -> float:
    """The cycles of one operation on a vector."""
    name = f"{OPERATIONS.get(op, op)}_cycles"
    return device.rates[name] if name in device.rates else divided(1.0, device.multiply_adds)


def _loads(access: Access, tile: Tile, body: Body, device: CpuDevice) -> float:
    """The number of vectors of one operand that a body loads, each once. Windows share rows, but not vectors that begin at different
    elements. tile: that of the body, with one point along the vectors."""
    if body.axis not in access.axes:
        return min(math.prod(access.box(tile)), body.vectors(access.axes)) * 1.0
    wide = access.element_bytes * body.lanes > 4 * device.lanes
    vectors = body.counts[body.axis] * math.prod(access.box(tile))
    return min(vectors, body.vectors(access.axes)) * (2.0 if wide else 1.0)


def _crossing(loops: Loops, access: Access, body: Body, device: CpuDevice) -> float:
    """The share of an operand's vectors that cross a cache line: arrays, rows or windows may begin at any element of a line."""
    if body.axis not in access.axes or not device.caches:
        return 0.0
    line, place = device.caches[0].line_bytes, loops.staged(access)
    if place is None or place.layout is None or not place.layout.terms:
        rows = access.strides[:-1] if place is None else (row_extent(place),)
        steps, extents = steps_of(access.indices[-1]), loops.nest.extents
        besides = [steps.get(a, 0) for a in access.axes if a != body.axis and extents[a] > 1]
        apart = [n * access.element_bytes for n in (*rows, *besides)]
        apart += [int(device.rate("array_offset_bytes"))] if place is None else []
    else:
        apart = [row_extent(place) * access.element_bytes]
    if not any(n % line for n in apart):
        return 0.0
    return min(1.0, body.lanes * access.element_bytes / line)


def _masked(loops: Loops, access: Access, body: Body) -> float:
    """The vectors of an operand, read in place, that extend past its end, as the last one of a row does."""
    there = loops.nest.extents[body.axis]
    if not there % body.lanes or loops.staged(access) is not None:
        return 0.0
    return body.vectors(access.axes) / -(-there // body.lanes)


def _gathered(loops: Loops, access: Access, body: Body, device: CpuDevice) -> float:
    """The cycles to assemble vectors of an operand from elements that are not contiguous, or that may be outside the tensor."""
    place, extent = loops.staged(access), loops.nest.extents[body.axis]
    vectors, run = float(body.vectors(access.axes)), access.regular(body.axis, extent)
    if not _beside(access, place, body.axis) or run < extent and run % body.lanes and place is None:
        cycles = body.lanes * device.rate("scattered_element_cycles" if access.store else "gathered_element_cycles")
        if run < extent:
            cycles += device.rate("integer_divide_cycles")  # the position of each lane is computed by a division
            cycles += device.rate("padded_vector_move_cycles") if access.padded and place is None else 0.0
        return vectors * cycles
    if access.padded and place is None:
        rounds = -(-extent // max(1, body.tile[body.axis]))
        at_edges = min(1.0, 2 / rounds)
        return vectors * body.lanes * at_edges * device.rate("edge_element_cycles")
    return 0.0


def _beside(access: Access, place: Placed | None, axis: str) -> bool:
    """Whether the points of an axis are contiguous, in the tensor or in its staged copy."""
    if place is None or place.layout is None or not place.layout.terms:
        return access.stride(axis) == 1
    last = place.layout.terms[-1]
    names = axis_names(last)
    if axis in names:
        return True
    apart = int(last.right.value) if isinstance(last, Binary) and last.op == "//" and isinstance(last.right, Const) else 1
    steps = zip(access.tensor.dims, map(steps_of, access.indices), strict=True)
    return any(d.name in names and step.get(axis, 0) == apart for d, step in steps)


def _spilled(loops: Loops, body: Body, device: CpuDevice) -> float:
    """The number of values without a register: results, and operands that several results share."""
    if not loops.nest.reduced:
        return 0.0
    spatial = loops.nest.spatial_extents
    held = body.vectors(spatial) if body.tile.keys() == loops.tiles[loops.piece_depth].keys() else 0
    shared = [body.vectors([a for a in spatial if a in r.axes]) for r in loops.nest.reads if body.axis in r.axes]
    return max(0.0, held + min([n for n in shared if n < held], default=0) + 1 - device.registers)


def _latency_cycles(loops: Loops, body: Body, count: float, device: CpuDevice) -> float:
    """The cycles that results wait for each other: the updates of one result are sequential, and as many register tiles overlap as the
    reorder window holds."""
    pieces = piece_count(loops)
    reduced = loops.nest.reduced_extents
    steps = math.prod(map(loops.tiles[loops.piece_depth].__getitem__, reduced))
    if body.axis in reduced:
        steps = -(-steps // body.tile[body.axis])
    chain = steps * device.rate("latency_cycles")
    bodies = max(1.0, body.rounds / pieces)
    window = device.rates.get("window_operations")
    return pieces * chain / max(1.0, window / (count * bodies) if window else 1.0)


def _fold_latency_cycles(stage: Loops, device: CpuDevice) -> float:
    """The latency of a stage's horizontal sum: log2(lanes) steps, each a shuffle and a dependent addition. Everything after the stage
    waits for it."""
    if stage.vector is None or stage.vector[0] not in stage.nest.reduced_extents:
        return 0.0
    return 2 * math.log2(stage.vector[1]) * device.rate("latency_cycles")


def result_cycles(loops: Loops, device: CpuDevice) -> float:
    """The cycles to initialise and store accumulators, each time that the innermost accumulator starts."""
    nest = loops.nest
    if not nest.reduced:
        return 0.0
    depth, axis, lanes = loops.piece_depth, *_result_vector(loops, device)
    tile = loops.tiles[depth]
    if loops.register_depth is None and lanes > 1 and axis in nest.spatial_extents:  # vector by vector, in the nearest cache
        return loops.passes(depth) * _result_vectors(loops, device) * (CPU.updated_cycles + _cycles_of(nest.outer, device))
    handed = CPU.handed_on[any(tile[a.name] < a.extent for a in nest.reduced)]
    each = (handed - _partial(loops, device)) * device.per(1.0, "stores_per_cycle")
    each += _cycles_of(nest.outer, device)
    if axis in nest.reduced_extents:
        each += device.rate("fold_cycles")
    for write in nest.writes:
        if axis in write.axes and not _beside(write, loops.staged(write), axis):
            each += turned_vector_cycles(lanes, device) if _transposed(loops) else lanes * device.rate("scattered_element_cycles")
    return loops.passes(depth) * (_result_vectors(loops, device) * each + device.rate("piece_cycles"))


def _transposed(loops: Loops) -> bool:
    """Whether results are stored through shared memory, which makes them contiguous."""
    return any(p.stop_bytes for p in loops.places)


def partial_store_cycles(loops: Loops, device: CpuDevice) -> float:
    """The cycles of partial-vector stores, and of partial-line stores of transposed rows. They overlap with the computation that
    follows."""
    vectors = _result_vectors(loops, device) * _partial(loops, device)
    each = vectors * device.rate("masked_store_cycles") + _turned_rows(loops, device) * device.rate("turned_store_cycles")
    return loops.passes(loops.piece_depth) * each


def _turned_rows(loops: Loops, device: CpuDevice) -> float:
    """The number of partial-line stores of one register tile whose results are transposed in shared memory and whose rows are not whole
    vectors. Only the share of lines that misses the core's last cache counts."""
    axis, _ = _result_vector(loops, device)
    if not device.caches or not _transposed(loops):
        return 0.0
    tile, stores = loops.tiles[loops.piece_depth], 0.0
    for write in loops.nest.writes:
        row = next((a for a in write.axes if a != axis and write.stride(a) == 1), None)
        if row is not None and tile[row] % device.lanes:
            own = write.footprint_bytes(loops.nest.extents) / device.cores
            vectors = math.prod(-(-tile[a] // (device.lanes if a == row else 1)) for a in write.axes)
            stores += vectors * device.caches[-1].evicted_share(own)
    return stores


def _partial(loops: Loops, device: CpuDevice) -> float:
    """The share of the result vectors that extend past the end of their row."""
    nest = loops.nest
    axis, lanes = _result_vector(loops, device)
    if not nest.reduced or axis not in nest.extents or not nest.extents[axis] % lanes:
        return 0.0
    return any(axis in w.axes and w.stride(axis) == 1 for w in nest.writes) / -(-nest.extents[axis] // lanes)


def _result_vector(loops: Loops, device: CpuDevice) -> tuple[str, int]:
    """The axis and the lanes of the vectors in which results are stored."""
    axis, lanes = loops.vector if loops.vector is not None else ("", 1)
    return axis, min(lanes, device.lanes)


def _result_vectors(loops: Loops, device: CpuDevice) -> int:
    """The number of result vectors of an accumulator."""
    axis, lanes = _result_vector(loops, device)
    tile = loops.tiles[loops.piece_depth]
    return math.prod([-(-tile[a] // lanes) if a == axis else tile[a] for a in loops.nest.spatial_extents])
