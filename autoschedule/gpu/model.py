"""Estimates the time of a schedule on a GPU, without running it.

A kernel takes its launch, then waves of blocks. Each wave has a prologue, iterations bound by the slowest level as far as the
schedule lets levels overlap, and an epilogue. The number of blocks per core (occupancy) decides how much overlaps; it does not
multiply any bandwidth. A partial last wave counts by its size. A rate that the profile lacks counts as no time.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Mapping

from tilelang.autoschedule.common.cost import Estimate
from tilelang.autoschedule.common.limits import shared_bytes
from tilelang.autoschedule.common.loop_summary import Loops
from tilelang.autoschedule.common.threads import Threads, described, threads_of
from tilelang.autoschedule.gpu.bank_conflicts import places_at
from tilelang.autoschedule.gpu.constants import GPU
from tilelang.autoschedule.gpu.device import GpuDevice
from tilelang.autoschedule.gpu.traffic import (
    StageWork,
    fragment,
    global_bytes,
    rounded,
    stage_work,
    staged,
    staging,
    staging_barriers,
    storing,
)
from tilelang.core.layout import Layout
from tilelang.instructions.instruction import use


@dataclasses.dataclass(frozen=True)
class Work:
    """What one block requires of each level, in seconds that all cores together would take; a single core takes `cores` times as
    long.

    l2_bytes, global_bytes: per block, before and after subtracting what the blocks of a wave share. rounds: iterations of the
    loop that loads new data. epilogue: storing the results; alone: nothing else is computed meanwhile.
    """

    multiply_adds: float
    instructions: float
    shared: float
    l2_bytes: float
    global_bytes: float
    rounds: int
    ahead: int
    epilogue: float
    alone: bool


def estimate(kernels: tuple[Loops, ...], device: GpuDevice) -> Estimate:
    """The time of a program's kernels, run one after another."""
    every = [kernel for loops in kernels for kernel in loops.kernels()]
    return Estimate.of(part for kernel in every for part in kernel_parts(kernel, device))


def kernel_parts(loops: Loops, device: GpuDevice) -> list[tuple[str, float]]:
    """The parts of one kernel's time; including those of the second kernel, if blocks share a reduction."""
    parts = {"launch": device.time("launch_us") * 1e-6 * device.scale("launch")}
    if not loops.nest.points:
        return [*parts.items()]
    threads = threads_of(loops, device.profile)
    blocks = max(1, loops.units("block") * loops.units("cluster"))
    resident = resident_blocks(threads, device)
    wave = max(1, resident) * device.cores
    work = block_work(threads, min(blocks, wave), device)
    full, rest = divmod(blocks, wave)
    for count, times in ((wave, full), (rest, 1)):
        if count and times:
            for what, seconds in wave_parts(work, threads, count, device):
                parts[what] = parts.get(what, 0.0) + times * seconds
    spilled = registers(threads) / device.profile.registers_per_thread if resident else GPU.no_room
    if spilled > 1:
        parts["spills"] = sum(parts.values()) * (spilled - 1) * GPU.spilled
    return [*parts.items(), *_second_kernel(loops, device)]


def resident_blocks(threads: Threads, device: GpuDevice) -> int:
    """The number of blocks that a core holds at once, limited by threads, registers, shared memory and its own limit; 0 if one
    does not fit."""
    shared = shared_bytes(threads)
    if shared > device.shared_bytes or threads.count > device.profile.max_block_threads:
        return 0
    per_thread = min(registers(threads), device.profile.registers_per_thread)
    warps = -(-threads.count // device.warp) * device.warp
    limits = [
        device.room("core_threads") / warps,
        device.room("core_registers") / (warps * -(-per_thread // 8) * 8),
        device.core_shared_bytes / shared if shared else math.inf,
        device.room("core_blocks"),
    ]
    return int(min(limits)) if min(limits) < math.inf else 1


def registers(threads: Threads) -> int:
    """The 32-bit registers that a thread needs: for sums, operands kept beside them, loads in flight, addresses."""
    loops = threads.loops
    share = threads.share(0)
    width = threads.width
    spatial = [a.name for a in loops.nest.spatial]
    held = sum(p.verb == "accumulate" and p.memory == "register" for p in loops.places)
    results = math.prod(share[a] for a in spatial)
    if not held and not loops.nest.reduced:
        results = math.prod(loops.tiles[-1][a] for a in spatial)
    found = results * (len(loops.nest.task.states) or 1) / width
    at = dict(threads.share(threads.reading_depth))
    for access in loops.nest.reads if described(loops) is None else ():
        kept = [p for p in loops.places if p.memory == "register" and p.serves(access)]
        tile = threads.share(kept[-1].depth) if kept else at
        found += math.prod(access.box(tile)) * access.element_bytes / 4 / width
    for p in loops.places:
        if p.memory == "shared" and p.ahead and p.instruction is None:
            found += p.box_bytes / 4 / threads.count
        if p.memory == "register" and p.stage is not None and loops.shares:  # the values of a chunk
            write = p.stage.nest.writes[0]
            found += math.prod(write.box({**p.stage.nest.extents, **p.tile})) * write.element_bytes / 4 / threads.count
    return int(found) + GPU.overhead_registers


def full_grid(threads: Threads, device: GpuDevice) -> int:
    """The number of persistent blocks that fills the device or the largest grid; 0 if a grid cannot have even one."""
    return min(device.profile.most_blocks(threads.count), device.cores * max(1, resident_blocks(threads, device)))


def block_work(threads: Threads, wave: int, device: GpuDevice) -> Work:
    """The work of one block. wave: the number of blocks that run at once and share reads."""
    loops = threads.loops
    nest, matrix = loops.nest, loops.instruction is not None
    points = threads.points * threads.units
    instructions, flops = _operations(nest.inner, device)
    results = math.prod(threads.share(0)[a.name] for a in nest.spatial) * threads.units
    results *= threads.passes
    licences = use(loops.instruction).licences if loops.instruction is not None else ()
    rate = device.flops_rate(nest, matrix, licences)
    efficiency = 1.0 if matrix else _multiply_add_efficiency(threads, device)
    done_instructions, done_flops = _operations(nest.outer, device)
    compute = flops * points / (rate * efficiency) + done_flops * results / device.flops_rate(nest)
    issued, shared, stored = storing(threads, device)
    epilogue = issued / device.issue_rate + shared / device.shared_rate + done_flops * results / device.flops_rate(nest)
    epilogue += staging_barriers(threads) * 2 * device.time("barrier_ns") * 1e-9 / device.cores
    issued += (0.0 if matrix else instructions * points) + done_instructions * results
    stages = stage_work(threads, device)
    issued += sum(_operations(counts, device)[0] * times for counts, times in stages.operations)
    issued += results * sum(threads.executions(d + 1) for d, loop in enumerate(loops.loops) if loop.of)  # repairs
    product_s, loads, bytes_read, bytes_written = _stage_products(stages, threads, device)
    compute, issued, shared = compute + product_s, issued + loads, shared + bytes_written
    moved, near = stages.read_bytes, bytes_read / device.shared_rate
    for access in nest.reads:
        if access.name in stages.made:
            issued += results
            continue
        if access not in nest.factors:  # read once per finished element
            issued += results
            moved += rounded(access, threads.block_tile, device) * threads.passes
            continue
        place = staged(loops, access)
        loads, bytes_read = fragment(access, place, threads, device)
        issued += loads
        near += bytes_read / (device.shared_rate if place is not None else device.first_cache_rate)
        if place is not None:
            loads, bytes_written = staging(place, threads, device)
            issued += loads
            shared += bytes_written
        moved += global_bytes(access, place, threads, device)
    whole = sum(rounded(w, threads.block_tile, device) for w in nest.writes) * threads.passes
    shared += _partial_result_bytes(threads)
    unique = moved * _shared_by_wave(loops, wave, device)
    ring = [p for p in loops.places if p.verb == "load" and p.memory == "shared"]
    depth = min((p.depth for p in ring), default=None)
    rounds = threads.executions(depth) if depth is not None else threads.executions(len(loops.loops))
    ahead = max((p.ahead for p in ring), default=0)
    if depth is None:  # loads of unrolled iterations are in flight together
        rounds = -(-rounds // max(1, threads.unrolled))
    return Work(
        compute,
        issued / device.issue_rate,
        near + shared / device.shared_rate,
        moved + stored,
        unique + whole,
        max(1, rounds) + 2 * stages.reductions,
        ahead,
        epilogue,
        bool(loops.teams),
    )


def _product(stage: Loops, kernel: Loops, device: GpuDevice) -> tuple[float, float, float]:
    """A product that a stage of a kernel computes by instructions: the seconds that these take, and the instructions and the bytes of
    shared memory for reading its operands, of all of its points."""
    nest, threads = stage.nest, threads_of(stage, device.profile)
    licences = use(stage.instruction).licences if stage.instruction is not None else ()
    seconds = _operations(nest.inner, device)[1] * nest.points / device.flops_rate(nest, True, licences)
    read = [fragment(access, staged(kernel, access), threads, device) for access in nest.factors]
    return seconds, sum(loads for loads, _ in read), sum(count for _, count in read)


def _stage_products(stages: StageWork, threads: Threads, device: GpuDevice) -> tuple[float, float, float, float]:
    """The work of a block for products of matrix instructions in stages: seconds, instructions that move operands, and the bytes that
    these read from and write to shared memory."""
    seconds = moving = read = written = 0.0
    for stage, part in stages.products:
        product, loads, bytes_read = _product(stage, threads.loops, device)
        seconds, moving, read = seconds + product * part, moving + loads * part, read + bytes_read * part
        for place in filter(None, (staged(threads.loops, access) for access in stage.nest.factors)):
            loads, bytes_written = staging(place, threads, device)
            moving, written = moving + loads, written + bytes_written
    return seconds, moving, read, written


def _operations(counts: Mapping[str, int], device: GpuDevice) -> tuple[float, float]:
    """Instructions, and operations as rates count them: a multiplication and an addition are one instruction with two operations.

    Casts of operands are counted where these are read.
    """
    each = device.rates.get("special_instructions", 1.0)
    instructions = -float(min(counts.get("*", 0), counts.get("+", 0)))
    for op, count in counts.items():
        special, plain = GPU.written.get(op, (0, 1))
        instructions += count * (special * each + plain) if op != "cast" else 0.0
    return instructions, 2.0 * instructions


def _multiply_add_efficiency(threads: Threads, device: GpuDevice) -> float:
    """The share of the peak that a register tile reaches: from a measured curve, else from how far its independent sums hide
    latency."""
    loops = threads.loops
    share = threads.share(0)
    independent = math.prod(share[a.name] for a in loops.nest.spatial) if loops.nest.reduced else 16
    curve = device.profile.curve("register_tile")
    if curve is not None:
        return curve.at(independent) / max(y for _, y in curve.points)
    return min(1.0, independent / (independent + GPU.latency_sums))


def wave_parts(work: Work, threads: Threads, blocks: int, device: GpuDevice) -> list[tuple[str, float]]:
    """The time of a wave of `blocks` blocks, by what it waits for."""
    on_core = math.ceil(blocks / device.cores)
    per_core = on_core * device.cores
    latency = device.time("latency_ns") * 1e-9
    schedulers = device.rates.get("core_schedulers", 1.0)
    warps = on_core * -(-threads.count // device.warp)
    busy = min(1.0, warps / schedulers)  # a scheduler without a warp is idle
    operations, moves, waiting = (device.scale(what) for what in ("operations", "moves", "waiting"))
    near = max(work.l2_bytes * blocks / device.l2_rate, work.l2_bytes * per_core / device.near_rate)
    levels = [
        ("arithmetic", work.multiply_adds * per_core / busy * operations),
        ("instructions", work.instructions * per_core / busy * operations),
        ("shared memory", work.shared * per_core * moves),
        ("second-level cache", near * waiting),
        ("memory", work.global_bytes * blocks / device.global_rate * waiting),
    ]
    name, longest = max(levels, key=lambda level: level[1])
    rest = sum(seconds for _, seconds in levels) - longest
    apart = rest / (max(1.0, warps / schedulers) * (1 + 2 * min(work.ahead, GPU.deep)))
    if work.alone:  # nothing is computed while the only computing role stores
        apart += work.epilogue * per_core * moves
    step = latency / (1 + work.ahead) + (device.time("barrier_ns") * 1e-9 if threads.count > device.warp else 0.0)
    waits = max(0.0, work.rounds * step * waiting - longest - apart)
    return [(name, longest), ("what does not overlap", apart), ("latency", waits + latency * waiting)]


def _shared_by_wave(loops: Loops, wave: int, device: GpuDevice) -> float:
    """The share of a block's reads that comes from memory; the rest was loaded by another block of the wave or by an earlier one."""
    nest = loops.nest
    tile = dict(nest.extents)
    blocks = [loop for loop in loops.loops if loop.level in ("cluster", "block")]
    if not blocks:
        return 1.0
    below = next(loops.tiles[d + 1] for d in reversed(range(len(loops.loops))) if loops.loops[d].level in ("cluster", "block"))
    left = wave
    for loop in reversed(blocks):
        for a, taken in first_units(loop.rounds, loop.order, min(left, loop.total)):
            tile[a] = min(nest.extents[a], taken * below[a])
        left = -(-left // loop.total)
    stages = [p.stage.nest for p in loops.places if p.stage is not None and not p.apart] if loops.shares else []
    made = {w.name for stage in stages for w in stage.writes}
    reads = [(r, n.extents) for n in (nest, *stages) for r in n.reads if r.name not in made]
    together: float = sum(r.footprint_bytes({**extents, **tile}) for r, extents in reads)
    apart = wave * sum(r.footprint_bytes({**extents, **below}) for r, extents in reads)
    whole = sum(r.footprint_bytes(extents) for r, extents in reads)
    if whole <= device.rates.get("l2_bytes", 0.0):
        together = min(together, whole * wave / max(1, loops.units("block") * loops.units("cluster")))
    return min(1.0, together / max(1, apart))


@functools.lru_cache(maxsize=4096)
def first_units(rounds: tuple[tuple[str, int], ...], order: Layout | None, count: int) -> tuple[tuple[str, int], ...]:
    """How far the first `count` units, in the order in which they are numbered, reach along each axis.

    >>> from tilelang import layout
    >>> panels = layout(lambda m, n: (n // 4, m, n % 4))
    >>> first_units((("m", 32), ("n", 32)), None, 64), first_units((("m", 32), ("n", 32)), panels, 64)
    ((('m', 2), ('n', 32)), (('m', 16), ('n', 4)))
    >>> first_units((("m", 1 << 20), ("n", 1 << 20)), panels, 640)
    (('m', 160), ('n', 4))
    """
    if order is None:
        found, left = [], count
        for a, n in reversed(rounds):
            found.append((a, min(n, left)))
            left = -(-left // n)
        return tuple(reversed(found))
    import numpy as np  # late: NumPy takes long to import

    corner = {a: min(n, GPU.few_units) for a, n in rounds}  # only as far as the first units reach, since there may be very many
    while True:
        every = np.indices(tuple(corner.values())).reshape(len(corner), -1).tolist()
        at: dict[str, list[int]] = dict(zip(corner, every, strict=True))
        first = np.argsort(places_at(order, corner, at))[:count]
        reached = {a: len({at[a][i] for i in first}) for a in corner}
        wider = {a: min(n, 2 * corner[a]) for a, n in rounds if reached[a] == corner[a] < n}
        if not wider:
            return tuple(reached.items())
        corner |= wider


def _partial_result_bytes(threads: Threads) -> float:
    """Bytes of shared memory through which threads combine their partial results."""
    loops = threads.loops
    reduced = loops.nest.reduced_extents
    lanes = math.prod(n for a, n, _ in threads.all if a in reduced)
    return GPU.meeting_bytes * threads.count if lanes > 1 else 0.0


def _second_kernel(loops: Loops, device: GpuDevice) -> list[tuple[str, float]]:
    """The cost of a reduction that blocks share: writing partial results, and a second kernel that reads and adds them."""
    reduced = loops.nest.reduced_extents
    parts = math.prod(n for loop in loops.loops if loop.level == "block" for a, n in loop.rounds if a in reduced)
    if parts < 2:
        return []
    moved = 4 * loops.nest.outputs * (2 * parts + 1)
    fast = device.l2_rate if moved < device.rates.get("l2_bytes", 0.0) else device.global_rate
    partial = (moved / fast + device.time("latency_ns") * 2e-9) * device.scale("waiting")
    return [("launch", device.time("launch_us") * 1e-6 * device.scale("launch")), ("partial results", partial)]
