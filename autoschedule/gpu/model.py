"""How long a schedule takes on a device whose warps run in lockstep: counted, not tried.

A kernel takes its launch, then waves of blocks: each wave a prologue, steps in which the slowest of the levels decides as far as the
schedule lets them overlap, and an epilogue. How many blocks share a core says how much overlaps; it multiplies no bandwidth. A last
wave that is not full is counted as what it is. A rate that a profile does not have takes no time.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Mapping

from tilelang.autoschedule.common.cost import Estimate
from tilelang.autoschedule.common.limits import shared_bytes
from tilelang.autoschedule.common.loop_summary import Loops
from tilelang.autoschedule.common.matrix_units import rates_of
from tilelang.autoschedule.common.task_accesses import Nest
from tilelang.autoschedule.gpu.bank_conflicts import places_at
from tilelang.autoschedule.gpu.constants import GPU
from tilelang.autoschedule.gpu.threads import Threads, registers, threads_of
from tilelang.autoschedule.gpu.traffic import fragment, global_bytes, rounded, stage_work, staged, staging, stops, storing
from tilelang.autoschedule.tune.prune import Pruning
from tilelang.core.layout import Layout
from tilelang.core.lazy import cached_property
from tilelang.instructions.instruction import use
from tilelang.profiles.profile import Profile

# The rates that are read here: launch_us, latency_ns, barrier_ns; clock_ghz; of one core core_schedulers, core_threads, core_blocks,
# core_registers, core_shared_bytes, l1_bytes; special_instructions: how many plain ones take the time of a special one;
# l2_bytes, l2_gb_per_s: what all share, l2_bytes_per_cycle: what one core takes from there; shared_gb_per_s, global_gb_per_s,
# TYPE_gflops, matrix_TYPE_gflops.


@dataclasses.dataclass(frozen=True)
class Lanes:
    """A device as cores whose warps run in lockstep, in numbers of its profile. pruning: what drops candidates for it."""

    profile: Profile
    pruning: Pruning = dataclasses.field(default_factory=Pruning, compare=False, repr=False)

    def time(self, name: str) -> float:
        """A rate that is a time, in its unit; none where it is unknown."""
        return self.rates.get(name, 0.0)

    def room(self, name: str) -> float:
        """How much of something a core has; without end where it is unknown."""
        return self.rates.get(name, math.inf)

    def scale(self, what: str) -> float:
        """By how much a calibration found that something takes longer."""
        return self.rates.get(f"{what}_scale", 1.0)

    @cached_property
    def rates(self) -> Mapping[str, float]:
        return dict(self.profile.rates)

    @cached_property
    def cores(self) -> int:
        return self.profile.compute_units or 1

    @cached_property
    def warp(self) -> int:
        return self.profile.warp_size

    @cached_property
    def banks(self) -> tuple[int, int]:
        """Banks of shared memory, and the bytes of each; one for each lane where nobody counted them."""
        shared = self.profile.memory("shared")
        return shared.banks or self.warp, shared.bank_bytes

    @cached_property
    def shared_bytes(self) -> int:
        """What one block may have; where that is unknown the least that the language lets a device have."""
        known = self.profile.memory("shared").capacity_bytes
        return 32768 if known is None else known

    @cached_property
    def core_shared_bytes(self) -> float:
        return self.rates.get("core_shared_bytes", float(self.shared_bytes))

    @cached_property
    def transaction_bytes(self) -> int:
        """The least that memory moves; a word where that is unknown."""
        memory = self.profile.memory("global")
        return memory.transaction_bytes or memory.line_bytes or 4

    @cached_property
    def line_bytes(self) -> int:
        """What the first cache gives at once."""
        return max(self.profile.memory("global").line_bytes, self.transaction_bytes)

    # Rates of all cores together, in a second; without end where they are unknown: then they take no time.

    @cached_property
    def cycles(self) -> float:
        """Cycles, by the clock or by what its lanes compute at it."""
        clock, peak, schedulers = (self.rates.get(name) for name in ("clock_ghz", "float32_gflops", "core_schedulers"))
        if clock is None and peak is not None and schedulers is not None:
            return peak * 1e9 / (2 * self.warp * schedulers)
        return clock * 1e9 * self.cores if clock is not None else math.inf

    @cached_property
    def issue_rate(self) -> float:
        """Instructions of lanes: one of a warp for each scheduler in a cycle; as many as multiply-adds where schedulers are unknown."""
        schedulers, peak = self.rates.get("core_schedulers"), self.rates.get("float32_gflops")
        if schedulers is not None:
            return schedulers * self.warp * self.cycles
        return peak * 1e9 / 2 if peak is not None else math.inf

    @cached_property
    def shared_rate(self) -> float:
        """Bytes of all shared memories, without conflicts."""
        known = self.rates.get("shared_gb_per_s")
        return known * 1e9 if known is not None else self.banks[0] * self.banks[1] * self.cycles

    @cached_property
    def global_rate(self) -> float:
        return self.rates.get("global_gb_per_s", math.inf) * 1e9

    @cached_property
    def first_cache_rate(self) -> float:
        """Bytes of all first caches: through the ports of shared memory where nothing else is known."""
        known = self.rates.get("l1_gb_per_s")
        return known * 1e9 if known is not None else self.shared_rate

    @cached_property
    def l2_rate(self) -> float:
        return self.rates.get("l2_gb_per_s", math.inf) * 1e9

    @cached_property
    def near_rate(self) -> float:
        """Bytes that cores take from the second-level cache, each from its own way there."""
        return self.rates.get("l2_bytes_per_cycle", math.inf) * self.cycles

    def flops_rate(self, nest: Nest, matrix: bool = False, licences: tuple[str, ...] = ()) -> float:
        """Operations in the type that a nest computes in, by lanes or by matrix instructions for what it multiplies, or by those that
        need a licence (where there are such); a multiply-add is two."""
        names = rates_of(nest.multiplied, licences) if nest.multiplied is not None and matrix else []
        by_matrix = [self.rates[name] for name in names if name in self.rates]
        by_lanes = self.rates.get(f"{nest.computed.name}_gflops", self.rates.get("float32_gflops"))
        if by_matrix or by_lanes is not None:
            return max([*by_matrix, by_lanes or 0.0]) * 1e9
        return 2 * self.issue_rate

    def balance(self, nest: Nest, bytes_rate: float, matrix: bool = False) -> float:
        """The operations for a byte from which on bytes are not the bottleneck; without end where either rate is unknown."""
        flops = self.flops_rate(nest, matrix)
        return flops / bytes_rate if bytes_rate < math.inf else math.inf


@dataclasses.dataclass(frozen=True)
class Work:
    """What one block asks of each level: seconds in which all cores together could do it; on one core they are `cores` times as many.

    l2_bytes, global_bytes: of one block, without and with what blocks of a wave share. rounds: of the walk that brings new data.
    epilogue: storing the results; alone: nobody else computes meanwhile.
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


def estimate(kernels: tuple[Loops, ...], device: Lanes) -> Estimate:
    """The time of a program's kernels, one after another."""
    every = [kernel for loops in kernels for kernel in loops.kernels()]
    return Estimate.of(part for kernel in every for part in kernel_parts(kernel, device))


def kernel_parts(loops: Loops, device: Lanes) -> list[tuple[str, float]]:
    """What the time of one kernel is made of, and of the second one that adds where blocks share a reduction."""
    parts = {"launch": device.time("launch_us") * 1e-6 * device.scale("launch")}
    if not loops.nest.points:
        return [*parts.items()]
    threads = threads_of(loops, device.profile)
    blocks = max(1, loops.units("block") * loops.units("cluster"))
    resident = resident_blocks(loops, threads, device)
    wave = max(1, resident) * device.cores
    work = block_work(loops, threads, min(blocks, wave), device)
    full, rest = divmod(blocks, wave)
    for count, times in ((wave, full), (rest, 1)):
        if count and times:
            for what, seconds in wave_parts(work, threads, count, device):
                parts[what] = parts.get(what, 0.0) + times * seconds
    spilled = registers(loops, threads) / device.profile.registers_per_thread if resident else GPU.no_room
    if spilled > 1:
        parts["spills"] = sum(parts.values()) * (spilled - 1) * GPU.spilled
    return [*parts.items(), *_second_kernel(loops, device)]


def resident_blocks(loops: Loops, threads: Threads, device: Lanes) -> int:
    """Blocks that a core holds at once, by threads, registers, shared memory and its own limit; 0 where one does not fit."""
    shared = shared_bytes(loops, threads, device.profile)
    if shared > device.shared_bytes or threads.count > device.profile.max_block_threads:
        return 0
    per_thread = min(registers(loops, threads), device.profile.registers_per_thread)
    warps = -(-threads.count // device.warp) * device.warp
    limits = [
        device.room("core_threads") / warps,
        device.room("core_registers") / (warps * -(-per_thread // 8) * 8),
        device.core_shared_bytes / shared if shared else math.inf,
        device.room("core_blocks"),
    ]
    return int(min(limits)) if min(limits) < math.inf else 1


def full_grid(loops: Loops, threads: Threads, device: Lanes) -> int:
    """So many blocks that the device is full, or its grid, and take several tiles each; none where a grid takes not even one."""
    return min(device.profile.most_blocks(threads.count), device.cores * max(1, resident_blocks(loops, threads, device)))


def block_work(loops: Loops, threads: Threads, wave: int, device: Lanes) -> Work:
    """Counts of one block. wave: how many run at once, which share what they read."""
    nest, matrix = loops.nest, loops.instruction is not None
    points = threads.points(loops, nest.extents) * threads.units
    instructions, flops = _operations(nest.inner, device)
    results = math.prod(threads.share(loops, loops.nest.extents, 0)[a.name] for a in nest.spatial) * threads.units
    results *= threads.passes(loops)
    licences = use(loops.instruction).licences if loops.instruction is not None else ()
    rate = device.flops_rate(nest, matrix, licences)
    efficiency = 1.0 if matrix else _multiply_add_efficiency(loops, threads, device)
    done_instructions, done_flops = _operations(nest.outer, device)
    compute = flops * points / (rate * efficiency) + done_flops * results / device.flops_rate(nest)
    issued, shared, stored = storing(loops, threads, device)
    epilogue = issued / device.issue_rate + shared / device.shared_rate + done_flops * results / device.flops_rate(nest)
    epilogue += stops(loops, threads) * 2 * device.time("barrier_ns") * 1e-9 / device.cores
    issued += (0.0 if matrix else instructions * points) + done_instructions * results
    stages = stage_work(loops, threads, device)
    issued += sum(_operations(counts, device)[0] * times for counts, times in stages.operations)
    moved, near = stages.read_bytes, 0.0
    for access in nest.reads:
        if access.name in stages.made:
            issued += results
            continue
        if access not in nest.factors:  # of a finished element
            issued += results
            moved += rounded(access, threads.block_tile(loops), device) * threads.passes(loops)
            continue
        place = staged(loops, access)
        loads, bytes_read = fragment(loops, access, place, threads, device)
        issued += loads
        near += bytes_read / (device.shared_rate if place is not None else device.first_cache_rate)
        if place is not None:
            loads, bytes_written = staging(loops, place, threads, device)
            issued += loads
            shared += bytes_written
        moved += global_bytes(loops, access, place, threads, device)
    whole = sum(rounded(w, threads.block_tile(loops), device) for w in nest.writes) * threads.passes(loops)
    shared += _meeting(loops, threads)
    unique = moved * _shared_by_wave(loops, wave, device)
    ring = [p for p in loops.places if p.verb == "load" and p.memory == "shared"]
    depth = min((p.depth for p in ring), default=None)
    rounds = threads.walked(loops, depth) if depth is not None else threads.walked(loops, len(loops.loops))
    ahead = max((p.ahead for p in ring), default=0)
    if depth is None:  # a thread's loads of unrolled rounds are in flight together
        rounds = -(-rounds // max(1, threads.unrolled(loops)))
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


def _operations(counts: Mapping[str, int], device: Lanes) -> tuple[float, float]:
    """Instructions, and operations as a rate counts them: a multiplication and an addition are one instruction of two. Casts of
    operands are counted where these are read."""
    each = device.rates.get("special_instructions", 1.0)
    instructions = -float(min(counts.get("*", 0), counts.get("+", 0)))
    for op, count in counts.items():
        special, plain = GPU.written.get(op, (0, 1))
        instructions += count * (special * each + plain) if op != "cast" else 0.0
    return instructions, 2.0 * instructions


def _multiply_add_efficiency(loops: Loops, threads: Threads, device: Lanes) -> float:
    """The share of the full rate that a register tile reaches: by a measured curve, else what its independent sums leave of latency."""
    share = threads.share(loops, loops.nest.extents, 0)
    independent = math.prod(share[a.name] for a in loops.nest.spatial) if loops.nest.reduced else 16
    curve = device.profile.curve("register_tile")
    if curve is not None:
        return curve.at(independent) / max(y for _, y in curve.points)
    return min(1.0, independent / (independent + GPU.latency_sums))


def wave_parts(work: Work, threads: Threads, blocks: int, device: Lanes) -> list[tuple[str, float]]:
    """The time of a wave of so many blocks, by what it waits for."""
    on_core = math.ceil(blocks / device.cores)
    per_core = on_core * device.cores
    latency = device.time("latency_ns") * 1e-9
    schedulers = device.rates.get("core_schedulers", 1.0)
    warps = on_core * -(-threads.count // device.warp)
    busy = min(1.0, warps / schedulers)  # a scheduler without a warp issues nothing
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
    if work.alone:  # nothing is computed while the only team stores
        apart += work.epilogue * per_core * moves
    step = latency / (1 + work.ahead) + (device.time("barrier_ns") * 1e-9 if threads.count > device.warp else 0.0)
    waits = max(0.0, work.rounds * step * waiting - longest - apart)
    return [(name, longest), ("what does not overlap", apart), ("latency", waits + latency * waiting)]


def _shared_by_wave(loops: Loops, wave: int, device: Lanes) -> float:
    """The share of what blocks read that comes from memory: the rest another block of the wave, or an earlier one, has brought."""
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
    together: float = sum(r.footprint_bytes(tile) for r in nest.reads)
    apart = wave * sum(r.footprint_bytes(below) for r in nest.reads)
    whole = sum(r.footprint_bytes(nest.extents) for r in nest.reads)
    if whole <= device.rates.get("l2_bytes", 0.0):
        together = min(together, whole * wave / max(1, loops.units("block") * loops.units("cluster")))
    return min(1.0, together / max(1, apart))


@functools.lru_cache(maxsize=4096)
def first_units(rounds: tuple[tuple[str, int], ...], order: Layout | None, count: int) -> tuple[tuple[str, int], ...]:
    """How far the first units of a cut, so many in the order in which they are numbered, reach along each axis.

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
    import numpy as np

    corner = {
        a: min(n, GPU.few_units) for a, n in rounds
    }  # of all units, which may be a great many, so far as the first ones reach
    while True:
        every = np.indices(tuple(corner.values())).reshape(len(corner), -1).tolist()
        at: dict[str, list[int]] = dict(zip(corner, every, strict=True))
        first = np.argsort(places_at(order, corner, at))[:count]
        reached = {a: len({at[a][i] for i in first}) for a in corner}
        wider = {a: min(n, 2 * corner[a]) for a, n in rounds if reached[a] == corner[a] < n}
        if not wider:
            return tuple(reached.items())
        corner |= wider


def _meeting(loops: Loops, threads: Threads) -> float:
    """Bytes of shared memory through which the partial results of threads meet."""
    reduced = {a.name for a in loops.nest.reduced}
    lanes = math.prod(n for a, n, _ in threads.all if a in reduced)
    return GPU.meeting_bytes * threads.count if lanes > 1 else 0.0


def _second_kernel(loops: Loops, device: Lanes) -> list[tuple[str, float]]:
    """What a reduction costs that blocks share: their partial results written, and a kernel that reads and adds them."""
    reduced = {a.name for a in loops.nest.reduced}
    parts = math.prod(n for loop in loops.loops if loop.level == "block" for a, n in loop.rounds if a in reduced)
    if parts < 2:
        return []
    moved = 4 * loops.nest.outputs * (2 * parts + 1)
    fast = device.l2_rate if moved < device.rates.get("l2_bytes", 0.0) else device.global_rate
    partial = (moved / fast + device.time("latency_ns") * 2e-9) * device.scale("waiting")
    return [("launch", device.time("launch_us") * 1e-6 * device.scale("launch")), ("partial results", partial)]
