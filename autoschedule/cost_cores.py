"""How long a schedule takes on a device whose blocks are tasks of cores with vectors: counted, not tried.

Every term is a count that `Loops` gives (instructions of the innermost piece, elements moved, bytes that miss a cache) times a rate of
the profile. What runs one after another on a core is summed; what waits for memory runs beside it, so the larger counts. A rate that a
profile does not have takes no time.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping

from tilelang.autoschedule.cost import Estimate
from tilelang.autoschedule.loops import Loops, Placed
from tilelang.autoschedule.nest import Access, Tile
from tilelang.machine import Profile


@dataclasses.dataclass(frozen=True)
class Cache:
    """One cache of a core: its size, the places that a line may take, and the bytes that come from beyond it in a cycle."""

    bytes: int
    ways: int
    line_bytes: int
    beyond: float

    def holds(self, access: Access, tile: Tile) -> bool:
        """Whether the rows of a box find places: rows that lie a power of two apart share the same few."""
        box = access.box(tile)
        row = box[-1] * access.element_bytes if box else access.element_bytes
        lines = -(-row // self.line_bytes)
        sets = max(1, self.bytes // (self.ways * self.line_bytes))
        for extent, stride in zip(box[:-1], access.strides[:-1], strict=True):
            apart = stride * access.element_bytes
            reached = sets if apart % self.line_bytes else sets // math.gcd(apart // self.line_bytes, sets)
            if extent * lines > self.ways * min(sets, lines * reached):
                return False
        return True


@dataclasses.dataclass(frozen=True)
class Cores:
    """A device as cores with vectors, in numbers of one core; from a profile's levels, memories and rates.

    cycle_ns: of one core; issue: multiply-adds, and loads, of vectors that begin in one cycle; latency: cycles from a multiply-add to
    one that needs it; lanes of 32 bits; registers: of vectors.
    """

    cores: int
    lanes: int
    registers: int
    caches: tuple[Cache, ...]
    rates: Mapping[str, float]

    @property
    def cache_bytes(self) -> int:
        return self.caches[-1].bytes if self.caches else 1 << 20

    def rate(self, name: str, otherwise: float) -> float:
        return self.rates.get(name, otherwise)


def cores_of(profile: Profile) -> Cores:
    """The cores of a profile."""
    rates = dict(profile.rates)
    cycle = rates.get("cycle_ns", 0.33)
    inner = sorted((m for m in profile.memories if m.cache and m.owner == "block"), key=lambda m: m.capacity_bytes or 0)
    beyond = [rates.get(f"{m.name}_bytes_per_cycle", 32.0) for m in inner[1:]]
    beyond.append(rates.get("global_gb_per_s", 44.0) * cycle / (profile.compute_units or 1))
    caches = tuple(
        Cache(m.capacity_bytes or 0, 12 if m is inner[0] else 16, m.line_bytes or 64, b)
        for m, b in zip(inner, beyond, strict=True)
    )
    lanes = max(profile.vector_bytes) // 4
    return Cores(
        profile.compute_units or 1, min(lanes, profile.max_vector_lanes), profile.registers_per_thread // lanes, caches, rates
    )


def estimate(kernels: tuple[Loops, ...], device: Cores) -> Estimate:
    """The time of a program's kernels, one after another."""
    found = [_kernel(loops, device) for loops in kernels]
    parts = [p for e in found for p in e.parts]
    return Estimate(sum(e.seconds for e in found), tuple(parts), sum(e.bound for e in found))


def _kernel(loops: Loops, device: Cores) -> Estimate:
    blocks, cores = max(1, loops.units("block")), device.cores
    cycle = device.rate("cycle_ns", 0.33) * 1e-9
    waves = math.ceil(blocks / cores) * cores / blocks  # the last blocks leave cores idle
    share = cycle / cores * waves
    leaf = leaf_cycles(loops, device)
    parts = [("leaf", leaf * share), ("results", result_cycles(loops, device) * share)]
    parts += [(f"move {p.access.name}", move_cycles(loops, p, device) * share)
              for p in loops.places if p.access is not None and p.verb == "load" and p.memory == "shared"]  # fmt: skip
    work = sum(s for _, s in parts)
    waits = [sum(missed_bytes(loops, a, cache) for a in loops.nest.accesses) / cache.beyond * share for cache in device.caches]
    waiting = max(waits, default=0.0)
    fixed = device.rate("launch_us", 50.0) * 1e-6 + blocks / cores * device.rate("block_us", 0.3) * 1e-6
    parts += [("memory beyond the work", max(0.0, waiting - work) + 0.15 * min(work, waiting)), ("launch", fixed)]
    return Estimate(sum(s for _, s in parts), tuple(parts), bound(loops, device))


def bound(loops: Loops, device: Cores) -> float:
    """The roofline: all operations at full rate, or all bytes once at full bandwidth."""
    per_cycle = 4 * device.lanes
    compute = loops.nest.flops / per_cycle / device.cores * device.rate("cycle_ns", 0.33) * 1e-9
    return max(compute, loops.nest.compulsory_bytes / (device.rate("global_gb_per_s", 44.0) * 1e9))


def leaf_cycles(loops: Loops, device: Cores) -> float:
    """Cycles of the innermost piece, all rounds of all blocks."""
    depth, tile = _piece(loops)
    reduced = {a.name for a in loops.nest.reduced}
    axis, lanes = loops.vector if loops.vector is not None else ("", 1)
    lanes = min(lanes, device.lanes)
    points = math.prod(n for a, n in tile.items() if a in reduced) if reduced else 1
    vectors = 1.0
    for a, n in tile.items():
        if a not in reduced:
            vectors *= math.ceil(n / lanes) if a == axis else n
    if axis in reduced and loops.vector is not None:
        vectors *= loops.vector[1] / lanes
        points = math.ceil(points / loops.vector[1])
    operations = sum(loops.nest.inner.values())
    operations -= min(loops.nest.inner.get("*", 0), loops.nest.inner.get("+", 0))  # a multiply-add is one
    loads = sum(_loads(loops, a, tile, axis, lanes, device) for a in loops.nest.reads)
    latency = device.rate("latency_cycles", 4.0) if reduced else 0.0
    cycles = max(vectors * max(1, operations) / 2, loads / 2, latency)
    spilled = max(0.0, vectors + 4 - device.registers)
    cycles += spilled * device.rate("spill_cycles", 2.0) + device.rate("loop_cycles", 0.5)
    return loops.rounds(depth) * points * cycles


def _piece(loops: Loops) -> tuple[int, Mapping[str, int]]:
    """The piece whose results are in registers: inside the innermost accumulator, or the leaf where nothing is reduced."""
    depths = [p.depth for p in loops.places if p.verb == "accumulate" and p.memory == "register"]
    depth = max(depths) if depths else len(loops.loops)
    if not loops.nest.reduced or not depths:
        depth = len(loops.loops)
    return depth, loops.tiles[depth]


def _loads(loops: Loops, access: Access, tile: Mapping[str, int], axis: str, lanes: int, device: Cores) -> float:
    """Loads of one operand for one point of the reduction of a piece: each element once, vectors where they lie side by side."""
    reduced = {a.name for a in loops.nest.reduced}
    count = 1.0
    for a in access.axes - reduced:
        count *= math.ceil(tile[a] / lanes) if a == axis else tile[a]
    staged = any(p.access is not None and p.access.name == access.name and p.memory == "shared" for p in loops.places)
    if axis in access.axes:
        if axis in reduced and loops.vector is not None:
            count *= loops.vector[1] / lanes
        if access.stride(axis) != 1 and not staged:
            count *= lanes * device.rate("gather_cycles", 1.5)
    if access.padded and not staged:
        count *= 3 * lanes
    return count


def result_cycles(loops: Loops, device: Cores) -> float:
    """Cycles to begin and to hand on accumulators: once for every time that the innermost one begins."""
    depth, tile = _piece(loops)
    outside = [p for p in loops.places if p.verb == "accumulate" and p.memory == "shared"]
    vectors = math.prod(tile[a.name] for a in loops.nest.spatial) / device.lanes
    return loops.rounds(depth) * vectors * (2.0 if outside else 1.0)


def move_cycles(loops: Loops, place: Placed, device: Cores) -> float:
    """Cycles of the moves of a place, all rounds: by vectors, or by elements, which cost more where a condition stands at each."""
    assert place.access is not None
    elements = loops.rounds(place.depth) * place.box_bytes / place.access.element_bytes
    if place.vector is not None and place.vector[1] > 1:
        return elements / min(place.vector[1], device.lanes) * device.rate("vector_move_cycles", 2.0)
    return elements * device.rate("element_move_cycles", 1.2) * (1.5 if place.access.padded else 1.0)


def missed_bytes(loops: Loops, access: Access, cache: Cache) -> float:
    """Bytes of one operand that come from beyond a cache: every walk that leaves its box alone finds it there only if all that one
    round touches fits, and its own rows find places."""
    staged = [p for p in loops.places if p.access is not None and p.access.name == access.name and p.memory == "shared"]
    depth = _piece(loops)[0]
    times = 1
    for d in range(depth):
        for a, n in loops.loops[d].rounds:
            if a in access.axes:
                times *= n
            elif n > 1 and not _stays(loops, access, d, bool(staged) and staged[0].depth <= d, cache):
                times *= n
    streamed = any(p.stream for p in loops.places)
    both_ways = 2 if access.store and not streamed else 1
    whole = access.footprint_bytes(loops.nest.extents)
    return both_ways * max(whole, times * access.footprint_bytes(loops.tiles[depth]) if times > 1 else whole)


def _stays(loops: Loops, access: Access, depth: int, packed: bool, cache: Cache) -> bool:
    """Whether a round of loop `depth` leaves what it read of an operand in a cache for the next round."""
    tile = loops.tiles[depth + 1]
    if sum(a.footprint_bytes(tile) for a in loops.nest.accesses) > cache.bytes:
        return False
    return packed or cache.holds(access, tile)
