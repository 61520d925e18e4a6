"""The numbers of a CPU's profile that the model and the construction use, per core."""

from __future__ import annotations

import dataclasses
import math
import statistics
from collections.abc import Mapping

from tilelang.autoschedule.common.prune import Pruning
from tilelang.autoschedule.cpu.cache_traffic import Cache
from tilelang.autoschedule.cpu.dot_product_words import Dot, dots
from tilelang.core.lazy import cached_property
from tilelang.profiles.profile import Curve, Profile

# The rates of one core that the model reads, besides those that `cpu_device` reads. Cycles are per vector, unless the name says
# "element".
#   stores_per_cycle, operations_per_cycle: the maximum of all kinds together; latency_cycles: of a multiply-add;
#   window_operations: the size of the reorder window
#   exp_cycles, divide_cycles ...: one operation, by its name; fold_cycles: the horizontal sum of a vector
#   vector_move_cycles; turned_vector_cycles (one vector of a square transposed in registers; derived if unknown);
#   padded_vector_move_cycles, padded_move_cycles (one element, with conditions or remainders in its index)
#   loads_share: the part of the smaller of arithmetic and loads that does not overlap with the larger;
#   crossing_cycles: a vector that crosses a cache line; array_offset_bytes: the offset of arrays from a cache line
#   gathered_element_cycles: one lane of a read that is not contiguous; scattered_element_cycles: one lane of such a result
#   edge_element_cycles: one lane of a read that may be out of bounds
#   masked_vector_cycles, masked_store_cycles: a partial vector; such stores overlap with the computation that follows
#   turned_store_cycles: a partial store of a row, transposed in shared memory, to a line outside the core's caches
#   guard_cycles: to test for the end of a reduction at one point; peeled_cycles: the same if the last iteration is peeled
#   spill_cycles: a value without a register; round_cycles: a loop iteration; piece_cycles: to start and to end a register tile
#   awaited_lines: the number of misses in flight at once; begun_lines: the misses of a row before the hardware prefetcher follows it;
#   followed_rows: the number of rows that it follows at once
#   kept_share: the share of the last cache with data that the previous launch left and this one reuses
#   streamed_lines: the lines that can be read from memory in the time of one non-temporal store; streamed_row_ns: to start such a row
#   loose_lines: the consecutive lines that the next cache delivers in the time of one line of several interleaved rows
#   waiting_share: the part of the smaller of work and waiting that does not overlap with the larger; far_waiting_share: the same for
#   memory, if there is far more work
#   launch_us; next_launch_us: a kernel queued behind another; block_us: the overhead of a block on its core


@dataclasses.dataclass(frozen=True)
class CpuDevice:
    """A CPU as cores with vectors, from a profile's levels, memories and rates. Numbers are per core unless they say otherwise."""

    cores: int
    lanes: int  # of 32 bits
    registers: int  # vector registers
    shared_bytes: float  # the maximum shared memory of a block
    caches: tuple[Cache, ...]  # its own caches, nearest first
    last_level: Cache | None  # a core's share of the cache that all cores share; None: there is none, or its size is not known
    pages: tuple[tuple[Cache, float], ...]  # TLBs as caches of pages, each with the cycles of a miss
    latency: Curve | None  # of memory: ns over the bytes in use
    multiply_adds: float | None  # vector operations per cycle; None: they take no time
    loads: float | None  # vector loads per cycle; None: they take no time
    rates: Mapping[str, float]
    reads: Curve | None = None  # GB/s of all cores, over the footprint of each
    profile: Profile | None = dataclasses.field(default=None, compare=False, repr=False)
    pruning: Pruning = dataclasses.field(default_factory=Pruning, compare=False, repr=False)  # the rules that drop candidates

    @property
    def cache_bytes(self) -> int:
        return self.caches[-1].bytes if self.caches else 1 << 20

    @property
    def room_bytes(self) -> float:
        """The shared memory of a block that stays in the core's last cache."""
        return min(self.cache_bytes, self.shared_bytes)

    @property
    def fetches(self) -> bool:
        """Whether schedules can prefetch."""
        return any(cache.name == "l1" for cache in self.caches)

    @property
    def dots(self) -> tuple[Dot, ...]:
        """The integer dot products of words that it has instructions for."""
        return dots(self.profile) if self.profile is not None and self.profile.capabilities else ()

    def far(self, footprint_bytes: float) -> float | None:
        """The bytes per cycle that a core gets from beyond its caches for a footprint: by the measured curve, else the single rate."""
        cycle = self.rates.get("cycle_ns")
        if self.reads is None or not cycle:
            return self.caches[-1].beyond
        found = self._far.get(footprint_bytes)
        if found is None:
            found = self._far[footprint_bytes] = self.reads.at(footprint_bytes) * cycle / self.cores
        return found

    @cached_property
    def _far(self) -> dict[float, float]:
        return {}

    def rate(self, name: str) -> float:
        """A rate that is a time; 0 if it is unknown."""
        return self.rates.get(name, 0.0)

    def scale(self, what: str) -> float:
        """The factor by which calibration found that something takes longer."""
        return self.rates.get(f"{what}_scale", 1.0)

    def per(self, count: float, name: str) -> float:
        """The time of `count` items by a rate that is a number per time; 0 if it is unknown."""
        return divided(count, self.rates.get(name))


def _smooth(curve: Curve | None) -> Curve | None:
    """A measured curve with the median of five neighbours at each point, which leaves steps as they are: one that falls or rises alone
    was disturbed."""
    if curve is None:
        return None
    values = [y for _, y in curve.points]
    sides = [min(2, n, len(values) - 1 - n) for n in range(len(values))]  # symmetric, also at the ends
    near = (values[n - side : n + side + 1] for n, side in enumerate(sides))
    points = zip((x for x, _ in curve.points), map(statistics.median, near), strict=True)
    return dataclasses.replace(curve, points=tuple(points))


def divided(count: float, rate: float | None) -> float:
    """The time of `count` items at a rate; 0 if it is unknown."""
    return count / rate if rate else 0.0


def cpu_device(profile: Profile, pruning: Pruning | None = None) -> CpuDevice:
    """The `CpuDevice` of a profile."""
    rates = dict(profile.rates)
    cores, cycle = profile.compute_units or 1, rates.get("cycle_ns")
    lanes = max(1, max(profile.vector_bytes) // 4)
    inner = sorted((m for m in profile.memories if m.cache and m.owner == "block"), key=lambda m: m.capacity_bytes or 0)
    memory, peak, first = rates.get("global_gb_per_s"), rates.get("float32_gflops"), rates.get("l1_bytes_per_cycle")
    beyond = [rates.get(f"{m.name}_bytes_per_cycle") for m in inner[1:]]
    beyond.append(memory * cycle / cores if memory and cycle else None)
    size, searches = int(rates.get("page_bytes", 0)), rates.get("page_searches", 1.0)
    caches = tuple(
        Cache(m.name, m.capacity_bytes or 0, m.ways, m.line_bytes or 64, b, size) for m, b in zip(inner, beyond, strict=False)
    )
    pages = [(rates.get("found_pages"), divided(rates.get("page_search_ns", 0.0) / searches, cycle)),
             (rates.get("near_pages"), rates.get("near_page_cycles", 0.0))]  # fmt: skip
    shared = profile.memory("shared").capacity_bytes
    sizes = [rates[name] for name in ("l3_bytes", "near_global_bytes") if name in rates]  # its size; up to where reads are fast
    last_level = Cache("l3", int(min(sizes) / cores), None, 64, page_bytes=size) if sizes else None
    return CpuDevice(
        cores,
        min(lanes, profile.max_vector_lanes),
        profile.registers_per_thread // lanes,
        math.inf if shared is None else shared,
        caches,
        last_level,
        tuple((Cache(f"{int(n)} pages", int(n) * size, None, size), cycles) for n, cycles in pages if size and n and cycles),
        profile.curve("latency"),
        peak * cycle / (2 * lanes * cores) if peak and cycle else rates.get("multiply_adds_per_cycle"),
        first / (4 * lanes) if first else None,
        rates,
        _smooth(profile.curve("read_bandwidth")),
        profile,
        pruning or Pruning(),
    )
