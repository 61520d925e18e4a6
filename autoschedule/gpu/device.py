"""A GPU: the numbers of its profile that the model and the generation use."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping

from tilelang.autoschedule.common.matrix_units import rates_of
from tilelang.autoschedule.common.prune import Pruning
from tilelang.autoschedule.common.task_accesses import Nest
from tilelang.core.lazy import cached_property
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
