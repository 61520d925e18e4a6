"""How long a schedule takes on a device whose warps run in lockstep: counted, not tried.

A kernel takes its launch, then waves of blocks: each wave a prologue, steps in which the slowest of the levels decides as far as the
schedule lets them overlap, and an epilogue. How many blocks share a core says how much overlaps; it multiplies no bandwidth. A last
wave that is not full is counted as what it is. A rate that a profile does not have takes the value that `NOMINAL` has for it.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Mapping

from tilelang.autoschedule.cost import Estimate
from tilelang.autoschedule.lanes_threads import Threads, registers, threads_of
from tilelang.autoschedule.loops import Loops, Placed
from tilelang.autoschedule.nest import Access, Nest, Tile
from tilelang.autoschedule.prune import Pruning
from tilelang.machine import Profile

# Of one core where a profile says nothing: what most devices of this kind have had for ten years. They order schedules; they promise
# no time.
NOMINAL = {
    "clock_ghz": 1.2,
    "core_schedulers": 4.0,
    "core_threads": 2048.0,
    "core_blocks": 16.0,
    "core_registers": 65536.0,
    "launch_us": 3.0,
    "latency_ns": 500.0,
    "barrier_ns": 20.0,
    "l1_bytes": 32768.0,
    "l2_bytes": 4194304.0,
}
SPECIAL = {
    "exp": 8,
    "log": 8,
    "sqrt": 8,
    "rsqrt": 4,
    "/": 10,
    "tanh": 12,
    "erf": 20,
    "sin": 12,
    "cos": 12,
    "pow": 20,
    "//": 12,
    "%": 12,
}


@dataclasses.dataclass(frozen=True)
class Lanes:
    """A device as cores whose warps run in lockstep, in numbers of its profile. pruning: what drops candidates for it."""

    profile: Profile
    pruning: Pruning = dataclasses.field(default_factory=Pruning, compare=False, repr=False)

    def rate(self, name: str) -> float:
        """A number of the profile, else the nominal one."""
        found = self.rates.get(name)
        return NOMINAL[name] if found is None else found

    @functools.cached_property
    def rates(self) -> Mapping[str, float]:
        return dict(self.profile.rates)

    @functools.cached_property
    def cores(self) -> int:
        return self.profile.compute_units or 16

    @functools.cached_property
    def warp(self) -> int:
        return self.profile.warp_size

    @functools.cached_property
    def banks(self) -> tuple[int, int]:
        """Banks of shared memory, and the bytes of each."""
        shared = self.profile.memory("shared")
        return shared.banks or 32, shared.bank_bytes

    @functools.cached_property
    def shared_bytes(self) -> int:
        """What one block may have."""
        return self.profile.memory("shared").capacity_bytes or 32768

    @functools.cached_property
    def core_shared_bytes(self) -> float:
        return self.rates.get("core_shared_bytes", float(self.shared_bytes))

    @functools.cached_property
    def transaction_bytes(self) -> int:
        return self.profile.memory("global").transaction_bytes or 32

    @functools.cached_property
    def cycles(self) -> float:
        """Cycles of all cores in a second."""
        return self.rate("clock_ghz") * 1e9 * self.cores

    @functools.cached_property
    def shared_rate(self) -> float:
        """Bytes a second of all shared memories together, without conflicts."""
        known = self.rates.get("shared_gb_per_s")
        return known * 1e9 if known is not None else self.banks[0] * self.banks[1] * self.cycles

    @functools.cached_property
    def global_rate(self) -> float:
        known = self.rates.get("global_gb_per_s")
        return known * 1e9 if known is not None else 8 * self.cycles

    @functools.cached_property
    def l2_rate(self) -> float:
        known = self.rates.get("l2_gb_per_s")
        return known * 1e9 if known is not None else 3 * self.global_rate

    def flops_rate(self, type_name: str, matrix: bool = False) -> float:
        """Operations a second of a type, by lanes or by matrix instructions (where it has such); a multiply-add is two."""
        by_lanes = self.rates.get(f"{type_name}_gflops", self.rates.get("float32_gflops"))
        lanes = by_lanes * 1e9 if by_lanes is not None else 4 * 32 * self.cycles
        by_matrix = self.rates.get(f"matrix_{type_name}_gflops")
        return max(lanes, by_matrix * 1e9) if matrix and by_matrix is not None else lanes


@dataclasses.dataclass(frozen=True)
class Work:
    """What one block asks of each level: seconds in which all cores together could do it; on one core they are `cores` times as many.

    l2_bytes, global_bytes: of one block, without and with what blocks of a wave share. rounds: of the walk that brings new data.
    """

    multiply_adds: float
    instructions: float
    shared: float
    l2_bytes: float
    global_bytes: float
    rounds: int
    ahead: int
    stored_bytes: float


def estimate(kernels: tuple[Loops, ...], device: Lanes) -> Estimate:
    """The time of a program's kernels, one after another."""
    found = [kernel_estimate(loops, device) for loops in kernels]
    parts: dict[str, float] = {}
    for e in found:
        for what, seconds in e.parts:
            parts[what] = parts.get(what, 0.0) + seconds
    return Estimate(sum(e.seconds for e in found), tuple(parts.items()), sum(e.bound for e in found))


def kernel_estimate(loops: Loops, device: Lanes) -> Estimate:
    """The time of one kernel, and of the second one that adds where blocks share a reduction."""
    parts: dict[str, float] = {"launch": device.rate("launch_us") * 1e-6}
    if not loops.nest.points:
        return Estimate(parts["launch"], tuple(parts.items()), 0.0)
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
    spilled = registers(loops, threads) / device.profile.registers_per_thread if resident else 4.0
    if spilled > 1:
        parts["spills"] = sum(parts.values()) * (spilled - 1) * 2
    for what, seconds in _second_kernel(loops, device):
        parts[what] = parts.get(what, 0.0) + seconds
    return Estimate(sum(parts.values()), tuple(parts.items()), min(bound(loops.nest, device), sum(parts.values())))


def bound(nest: Nest, device: Lanes) -> float:
    """The roofline: all operations at full rate, or all bytes once at full bandwidth."""
    compute = nest.flops / device.flops_rate(_type(nest), matrix=True)
    return max(compute, nest.compulsory_bytes / device.global_rate)


def _type(nest: Nest) -> str:
    return nest.reads[0].tensor.dtype.name if nest.reads else nest.writes[0].tensor.dtype.name


def resident_blocks(loops: Loops, threads: Threads, device: Lanes) -> int:
    """Blocks that a core holds at once, by threads, registers, shared memory and its own limit; 0 where one does not fit."""
    shared = shared_bytes(loops, device)
    if shared > device.shared_bytes or threads.count > device.profile.max_block_threads:
        return 0
    per_thread = min(registers(loops, threads), device.profile.registers_per_thread)
    warps = -(-threads.count // device.warp) * device.warp
    limits = [
        device.rate("core_threads") // warps,
        device.rate("core_registers") // (warps * -(-per_thread // 8) * 8),
        device.core_shared_bytes // shared if shared else device.rate("core_blocks"),
        device.rate("core_blocks"),
    ]
    return int(min(limits))


def shared_bytes(loops: Loops, device: Lanes) -> int:
    """What a block keeps in shared memory: rings of what is brought ahead, with their padding."""
    total = 0
    for p in loops.places:
        if p.memory != "shared":
            continue
        if p.access is None:
            total += 4 * math.prod(loops.tiles[p.depth][a.name] for a in loops.nest.spatial) if p.verb == "accumulate" else 0
            continue
        held = p.box_bytes
        if p.layout is not None and p.layout.padding:
            row = p.tile.get(p.layout.terms[-1].name, 1) if hasattr(p.layout.terms[-1], "name") else 1
            held += held // max(1, row) * p.layout.padding
        total += held * (p.ahead + 1)
    return total


def block_work(loops: Loops, threads: Threads, wave: int, device: Lanes) -> Work:
    """Counts of one block. wave: how many run at once, which share what they read."""
    nest, matrix = loops.nest, loops.instruction is not None
    points = threads.points(loops, nest.extents) * threads.units
    instructions, flops = _operations(nest.inner)
    results = math.prod(threads.share(loops, loops.nest.extents, 0)[a.name] for a in nest.spatial) * threads.units
    rate = device.flops_rate(_type(nest), matrix)
    efficiency = 1.0 if matrix else _multiply_add_efficiency(loops, threads, device)
    done_instructions, done_flops = _operations(nest.outer)
    compute = flops * points / (rate * efficiency) + done_flops * results / device.flops_rate(_type(nest))
    issued = (0.0 if matrix else instructions * points) + done_instructions * results
    shared = moved = 0.0
    for access in nest.reads:
        place = _staged(loops, access)
        loads, bytes_read = _fragment(loops, access, place, threads, device)
        issued += loads
        shared += bytes_read
        if place is not None:
            loads, bytes_written = _staging(loops, place, threads, device)
            issued += loads
            shared += bytes_written
        moved += global_bytes(loops, access, place, threads, device)
    stored = sum(_rounded(w, threads.block_tile(loops), device) for w in nest.writes)
    shared += _meeting(loops, threads)
    lanes = device.rate("core_schedulers") * device.warp * device.cycles
    unique = moved * _shared_by_wave(loops, wave, device)
    staged = [p for p in loops.places if p.verb == "load" and p.memory == "shared"]
    depth = min((p.depth for p in staged), default=None)
    rounds = threads.walked(loops, depth) if depth is not None else threads.walked(loops, len(loops.loops))
    ahead = max((p.ahead for p in staged), default=0)
    if depth is None:  # a thread's loads of unrolled rounds are in flight together
        rounds = -(-rounds // max(1, threads.unrolled(loops)))
    return Work(
        compute, issued / lanes, shared / device.shared_rate, moved + stored, unique + stored, max(1, rounds), ahead, stored
    )


def _operations(counts: Mapping[str, int]) -> tuple[float, float]:
    """Instructions, and operations as a rate counts them: a multiplication and an addition are one instruction of two."""
    pairs = min(counts.get("*", 0), counts.get("+", 0))
    instructions = sum(n * SPECIAL.get(op, 1) for op, n in counts.items()) - pairs
    return float(instructions), 2.0 * instructions


def _multiply_add_efficiency(loops: Loops, threads: Threads, device: Lanes) -> float:
    """The share of the full rate that a register tile reaches: by a measured curve, else what its independent sums leave of latency."""
    share = threads.share(loops, loops.nest.extents, 0)
    independent = math.prod(share[a.name] for a in loops.nest.spatial) if loops.nest.reduced else 16
    curve = device.profile.curve("register_tile")
    if curve is not None:
        return curve.at(independent) / max(y for _, y in curve.points)
    return min(1.0, independent / (independent + 0.5))


def wave_parts(work: Work, threads: Threads, blocks: int, device: Lanes) -> list[tuple[str, float]]:
    """The time of a wave of so many blocks, by what it waits for."""
    on_core = math.ceil(blocks / device.cores)
    per_core = on_core * device.cores
    latency = device.rate("latency_ns") * 1e-9
    warps = on_core * -(-threads.count // device.warp)
    busy = min(1.0, warps * 4 / (device.rate("core_schedulers") * 4))  # a scheduler without a warp issues nothing
    near = 64 * device.cycles  # what cores take from beyond, at most
    levels = [
        ("arithmetic", work.multiply_adds * per_core / busy),
        ("instructions", work.instructions * per_core / busy),
        ("shared memory", work.shared * per_core),
        ("second-level cache", max(work.l2_bytes * blocks / device.l2_rate, work.l2_bytes * per_core / near)),
        ("memory", work.global_bytes * blocks / device.global_rate),
    ]
    name, longest = max(levels, key=lambda level: level[1])
    rest = sum(seconds for _, seconds in levels) - longest
    apart = rest / (max(1.0, warps / 4) * (1 + 2 * work.ahead))
    step = latency / (1 + work.ahead) + (device.rate("barrier_ns") * 1e-9 if threads.count > device.warp else 0.0)
    waits = max(0.0, work.rounds * step - longest - apart)
    return [(name, longest), ("what does not overlap", apart), ("latency", waits + latency)]


# ---------------------------------------------------------------- bytes


def _staged(loops: Loops, access: Access) -> Placed | None:
    """The place in shared memory that a read is served from; the innermost where there are several."""
    found = [
        p for p in loops.places
        if p.memory == "shared" and p.verb == "load" and p.access is not None and p.access.name == access.name
    ]  # fmt: skip
    return found[-1] if found else None


def _fragment(loops: Loops, access: Access, place: Placed | None, threads: Threads, device: Lanes) -> tuple[float, float]:
    """Instructions of all threads of a block for what they read of an operand, and the bytes of banks or cache lines it takes."""
    held = [
        p for p in loops.places
        if p.memory == "register" and p.verb == "load" and p.access is not None and p.access.name == access.name
    ]  # fmt: skip
    depth = held[-1].depth if held else threads.reading_depth(loops)
    share = threads.share(loops, loops.nest.extents, depth)
    elements = math.prod(share[a] for a in access.axes) if access.axes else 1
    elements = min(elements, math.prod(access.box(share)))
    vector = 1
    if held and held[-1].vector is not None:
        vector = held[-1].vector[1]
    elif (
        loops.vector is not None and loops.vector[0] in access.axes and (place is not None or access.stride(loops.vector[0]) == 1)
    ):
        vector = loops.vector[1]
    times = threads.walked(loops, depth)
    if threads.by_instruction(loops):
        bytes_read = elements * access.element_bytes * times * threads.units
        return bytes_read / 16, float(bytes_read)
    loads = math.ceil(elements / vector) * times
    extra = 4.0 if access.padded and place is None else 1.0 if place is None else 0.0
    per_load = _phase_bytes(loops, access, place, threads, vector, device)
    warps = -(-threads.count // device.warp)
    return loads * (1.0 + extra) * threads.units, loads * per_load * warps * (threads.units / threads.count)


def _phase_bytes(loops: Loops, access: Access, place: Placed | None, threads: Threads, vector: int, device: Lanes) -> int:
    """Bytes of banks, or of lines of the first cache, that one load by a warp occupies."""
    from tilelang.autoschedule import lanes_banks

    banks, bank_bytes = device.banks
    eb = access.element_bytes
    if place is not None and place.layout is not None:
        extents = tuple(sorted((a, place.tile.get(a, 1)) for a in place.layout.dims))
        shape = (eb, vector, banks, bank_bytes)
        return lanes_banks.layout_phases(place.layout, extents, threads.spread, device.warp, shape) * banks * bank_bytes
    strides = _box_strides(access, place.tile) if place is not None else access.strides
    found = _steps_of(access, strides, tuple(a for a, _, _ in threads.spread))
    at = lanes_banks.coordinates(threads.spread, device.warp)
    addresses = [sum(at[a][lane] * s for a, s in found.items()) * eb for lane in range(device.warp)]
    if place is not None:
        return lanes_banks.phases(addresses, eb * vector, banks, bank_bytes) * banks * bank_bytes
    lines = {(b + o) // 32 for b in addresses for o in range(0, eb * vector, min(32, eb * vector))}
    return max(len(lines) * 32, 128 * -(-len(lines) // 4))


def _box_strides(access: Access, tile: Tile) -> tuple[int, ...]:
    box = access.box(tile)
    return tuple(math.prod(box[d + 1 :]) for d in range(len(box)))


def _steps_of(access: Access, strides: tuple[int, ...], axes: tuple[str, ...]) -> dict[str, int]:
    """Elements from one point of each axis to the next where dimensions lie so far apart; 0 where memory decides."""
    from tilelang.autoschedule.nest import _value

    found = {}
    for a in axes:
        total = 0
        for i, s in zip(access.indices, strides, strict=True):
            first, second = _value(i, {}), _value(i, {a: 1})
            total += (second - first) * s if first is not None and second is not None else 0
        found[a] = total
    return found


def _staging(loops: Loops, place: Placed, threads: Threads, device: Lanes) -> tuple[float, float]:
    """Instructions of all threads for what is brought to shared memory, and the bytes of banks that writing it takes."""
    assert place.access is not None
    times = threads.walked(loops, place.depth)
    elements = place.box_bytes // place.access.element_bytes
    vector = place.vector[1] if place.vector is not None else 1
    if place.instruction is not None:
        return elements * place.access.element_bytes / 16 * times, float(place.box_bytes * times)
    address = 8.0 if place.access.padded or any(any(True for _ in i.children()) for i in place.access.indices) else 2.0
    return (2.0 + address) * elements / vector * times, float(place.box_bytes * times)


def global_bytes(loops: Loops, access: Access, place: Placed | None, threads: Threads, device: Lanes) -> float:
    """Bytes of an operand that a block asks of what lies beyond its core, in whole transactions."""
    if place is not None:
        if threads.whole_block(loops, place.depth):
            return threads.walked(loops, place.depth) * _rounded(access, place.tile, device)
        return threads.walked(loops, place.depth) * _rounded(access, threads.union(loops, place.depth), device)
    room = device.rate("l1_bytes") / 2
    for depth in range(threads.block_depth, len(loops.loops) + 1):
        tile = threads.union(loops, depth)
        if depth == len(loops.loops) or sum(r.footprint_bytes(tile) for r in loops.nest.reads) <= room:
            return threads.walked(loops, depth) * _rounded(access, tile, device)
    raise AssertionError("the innermost depth ends the search")


def _rounded(access: Access, tile: Tile, device: Lanes) -> float:
    """Bytes of a tile's box where every contiguous run is moved in whole transactions."""
    box, run = access.box(tile), 1
    for n, whole in zip(reversed(box), reversed(access.tensor.shape), strict=True):
        run *= n
        if n < whole:
            break
    run_bytes = run * access.element_bytes
    rounded = -(-run_bytes // device.transaction_bytes) * device.transaction_bytes
    return math.prod(box) * access.element_bytes * rounded / max(1, run_bytes)


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
        for a, n in reversed(loop.rounds):
            taken = min(n, left)
            tile[a] = min(nest.extents[a], taken * below[a])
            left = -(-left // taken)
    together: float = sum(r.footprint_bytes(tile) for r in nest.reads)
    apart = wave * sum(r.footprint_bytes(below) for r in nest.reads)
    whole = sum(r.footprint_bytes(nest.extents) for r in nest.reads)
    if whole <= device.rate("l2_bytes"):
        together = min(together, whole * wave / max(1, loops.units("block") * loops.units("cluster")))
    return min(1.0, together / max(1, apart))


def _meeting(loops: Loops, threads: Threads) -> float:
    """Bytes of shared memory through which the partial results of threads meet."""
    reduced = {a.name for a in loops.nest.reduced}
    lanes = math.prod(n for a, n, _ in threads.all if a in reduced)
    return 16.0 * threads.count if lanes > 1 else 0.0


def _second_kernel(loops: Loops, device: Lanes) -> list[tuple[str, float]]:
    """What a reduction costs that blocks share: their partial results written, and a kernel that reads and adds them."""
    reduced = {a.name for a in loops.nest.reduced}
    parts = math.prod(n for loop in loops.loops if loop.level == "block" for a, n in loop.rounds if a in reduced)
    if parts < 2:
        return []
    moved = 4 * loops.nest.outputs * (2 * parts + 1)
    fast = device.l2_rate if moved < device.rate("l2_bytes") else device.global_rate
    return [("launch", device.rate("launch_us") * 1e-6), ("partial results", moved / fast + device.rate("latency_ns") * 2e-9)]
