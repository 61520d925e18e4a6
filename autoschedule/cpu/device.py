"""A CPU as cores with vectors: the numbers of its profile that the model and the generation use, per core."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping

from tilelang.autoschedule.common.prune import Pruning
from tilelang.autoschedule.cpu.cache_traffic import Cache
from tilelang.autoschedule.cpu.dot_product_words import Dot, dots
from tilelang.core.lazy import cached_property
from tilelang.profiles.profile import Curve, Profile

# The rates of one core that a model reads, besides those that `cores_of` reads; cycles are of a whole vector unless they say "element".
#   stores_per_cycle, operations_per_cycle: all of them together; latency_cycles: from a multiply-add to one that needs it;
#   window_operations: so many run ahead of one that waits
#   exp_cycles, divide_cycles ...: one operation, by its name; fold_cycles: the lanes of a vector to one sum
#   vector_move_cycles; turned_vector_cycles (of a square whose rows and columns change places; derived where it is not known);
#   padded_vector_move_cycles, padded_move_cycles (of an element: with conditions or remainders at each)
#   loads_share: of the smaller of operations and loads, what does not run beside the larger; crossing_cycles: a vector on two lines;
#   array_offset_bytes: how far behind a line arrays begin
#   gathered_element_cycles: a lane of a read that is not side by side; scattered_element_cycles: of a result
#   edge_element_cycles: a lane of a read that may lie outside
#   masked_vector_cycles, masked_store_cycles: a vector that ends beyond what there is; stores leave beside what is computed after them
#   turned_store_cycles: a store of part of a row, transposed in shared memory, to a line outside the core's caches
#   guard_cycles: to look for the end of a reduction at one point; peeled_cycles: the same where the last round has code of its own
#   spill_cycles: a value that has no register; round_cycles: a round of a loop; piece_cycles: to begin and to end results in registers
#   awaited_lines: so many come at once where nothing fetched them before; begun_lines: so many of a row, before it is followed, and of
#   so many rows at a time (followed_rows)
#   kept_share: of the last cache, what a launch finds there of the one before it; streamed_lines: as many lines come from memory while
#   one goes there past the caches; streamed_row_ns: more, to begin a row of such lines
#   loose_lines: as many lines, one after another, come from the next cache while one does of several rows in turn
#   waiting_share: of the smaller of work and waiting, what does not run beside the larger; far_waiting_share: for memory, where work is
#   by far the larger
#   launch_us; next_launch_us: a kernel behind another; block_us: a block, on its core


@dataclasses.dataclass(frozen=True)
class Cores:
    """A device as cores with vectors, in numbers of one core; from a profile's levels, memories and rates.

    lanes of 32 bits; registers: of vectors; shared_bytes: what a block may have of shared memory; last_level: a core's share of the
    cache that all cores share (None: there is none, or its size is not known); pages: those whose places are known,
    as caches, each with the cycles that another one takes; latency: of memory, in ns over the bytes in use. multiply_adds, loads: of
    vectors, in a cycle (None: they take no time). reads: GB/s of all cores over the bytes that each goes over. profile: what it
    was made of. pruning: what drops candidates for it.
    """

    cores: int
    lanes: int
    registers: int
    shared_bytes: float
    caches: tuple[Cache, ...]
    last_level: Cache | None
    pages: tuple[tuple[Cache, float], ...]
    latency: Curve | None
    multiply_adds: float | None
    loads: float | None
    rates: Mapping[str, float]
    reads: Curve | None = None
    profile: Profile | None = dataclasses.field(default=None, compare=False, repr=False)
    pruning: Pruning = dataclasses.field(default_factory=Pruning, compare=False, repr=False)

    @property
    def cache_bytes(self) -> int:
        return self.caches[-1].bytes if self.caches else 1 << 20

    @property
    def room_bytes(self) -> float:
        """What a block may keep on chip so that it stays in the last cache of its core."""
        return min(self.cache_bytes, self.shared_bytes)

    @property
    def fetches(self) -> bool:
        """Whether a schedule can bring lines near before they are used."""
        return any(cache.name == "l1" for cache in self.caches)

    @property
    def dots(self) -> tuple[Dot, ...]:
        """The dot products of words that it has an instruction for."""
        return dots(self.profile) if self.profile is not None and self.profile.capabilities else ()

    def far(self, footprint_bytes: float) -> float | None:
        """Bytes of a core in a cycle from beyond its caches, while it goes over so many: by the curve, else by the one rate."""
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
        """A rate that is a time; none where it is unknown."""
        return self.rates.get(name, 0.0)

    def scale(self, what: str) -> float:
        """By how much a calibration found that something takes longer."""
        return self.rates.get(f"{what}_scale", 1.0)

    def per(self, count: float, name: str) -> float:
        """The time of so many by a rate that is a number in a time; none where it is unknown."""
        return divided(count, self.rates.get(name))


def divided(count: float, rate: float | None) -> float:
    """The time of so many at a rate; none where it is unknown."""
    return count / rate if rate else 0.0


def cores_of(profile: Profile, pruning: Pruning | None = None) -> Cores:
    """The cores of a profile."""
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
    sizes = [
        rates[name] for name in ("l3_bytes", "near_global_bytes") if name in rates
    ]  # as built, and as far as reads stay fast
    last_level = Cache("l3", int(min(sizes) / cores), None, 64, page_bytes=size) if sizes else None
    return Cores(
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
        profile.curve("read_bandwidth"),
        profile,
        pruning or Pruning(),
    )
