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

# Rates read here: launch_us, latency_ns, barrier_ns; clock_ghz; for one core: core_schedulers, core_threads, core_blocks,
# core_registers, core_shared_bytes, l1_bytes; special_instructions: the number of plain ones that take as long as a special one;
# l2_bytes, l2_gb_per_s: shared by all cores, l2_bytes_per_cycle: of one core; shared_gb_per_s, global_gb_per_s,
# TYPE_gflops, matrix_TYPE_gflops.


@dataclasses.dataclass(frozen=True)
class GpuDevice:
    """A GPU as cores whose warps run in lockstep, with the numbers of its profile. pruning: the rules that drop candidates for it."""

    profile: Profile
    pruning: Pruning = dataclasses.field(default_factory=Pruning, compare=False, repr=False)

    def time(self, name: str) -> float:
        """A rate that is a time, in its unit; 0 if unknown."""
        return self.rates.get(name, 0.0)

    def room(self, name: str) -> float:
        """A core's capacity for something; infinite if unknown."""
        return self.rates.get(name, math.inf)

    def scale(self, what: str) -> float:
        """The factor by which a calibration found something to take longer."""
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
        """The number of banks of shared memory, and the bytes of each; as many banks as lanes if unknown."""
        shared = self.profile.memory("shared")
        return shared.banks or self.warp, shared.bank_bytes

    @cached_property
    def shared_bytes(self) -> int:
        """The shared memory that a block may have; if unknown, the minimum that the language requires of a device."""
        known = self.profile.memory("shared").capacity_bytes
        return 32768 if known is None else known

    @cached_property
    def core_shared_bytes(self) -> float:
        return self.rates.get("core_shared_bytes", float(self.shared_bytes))

    @cached_property
    def transaction_bytes(self) -> int:
        """The smallest transaction of global memory; one word if unknown."""
        memory = self.profile.memory("global")
        return memory.transaction_bytes or memory.line_bytes or 4

    @cached_property
    def line_bytes(self) -> int:
        """The line size of the first-level cache."""
        return max(self.profile.memory("global").line_bytes, self.transaction_bytes)

    # Rates of all cores together, per second; infinite if unknown, so that they take no time.

    @cached_property
    def cycles(self) -> float:
        """Cycles, from the clock or from the peak of its lanes."""
        clock, peak, schedulers = (self.rates.get(name) for name in ("clock_ghz", "float32_gflops", "core_schedulers"))
        if clock is None and peak is not None and schedulers is not None:
            return peak * 1e9 / (2 * self.warp * schedulers)
        return clock * 1e9 * self.cores if clock is not None else math.inf

    @cached_property
    def issue_rate(self) -> float:
        """Lane instructions: one warp instruction per scheduler and cycle; if the schedulers are unknown, as many as multiply-adds."""
        schedulers, peak = self.rates.get("core_schedulers"), self.rates.get("float32_gflops")
        if schedulers is not None:
            return schedulers * self.warp * self.cycles
        return peak * 1e9 / 2 if peak is not None else math.inf

    @cached_property
    def shared_rate(self) -> float:
        """Bytes of all shared memories, without bank conflicts."""
        known = self.rates.get("shared_gb_per_s")
        return known * 1e9 if known is not None else self.banks[0] * self.banks[1] * self.cycles

    @cached_property
    def global_rate(self) -> float:
        return self.rates.get("global_gb_per_s", math.inf) * 1e9

    @cached_property
    def first_cache_rate(self) -> float:
        """Bytes of all first-level caches; if unknown, the same as shared memory."""
        known = self.rates.get("l1_gb_per_s")
        return known * 1e9 if known is not None else self.shared_rate

    @cached_property
    def l2_rate(self) -> float:
        return self.rates.get("l2_gb_per_s", math.inf) * 1e9

    @cached_property
    def near_rate(self) -> float:
        """Bytes that all cores together can read from the second-level cache, each through its own port."""
        return self.rates.get("l2_bytes_per_cycle", math.inf) * self.cycles

    def flops_rate(self, nest: Nest, matrix: bool = False, licences: tuple[str, ...] = ()) -> float:
        """Operations in the nest's type, by lanes or by matrix instructions if there are any for it; a multiply-add counts as
        two.

        licences: also allows matrix instructions that need these licences.
        """
        names = rates_of(nest.multiplied, licences) if nest.multiplied is not None and matrix else []
        by_matrix = [self.rates[name] for name in names if name in self.rates]
        by_lanes = self.rates.get(f"{nest.computed.name}_gflops", self.rates.get("float32_gflops"))
        if by_matrix or by_lanes is not None:
            return max([*by_matrix, by_lanes or 0.0]) * 1e9
        return 2 * self.issue_rate

    def balance(self, nest: Nest, bytes_rate: float, matrix: bool = False) -> float:
        """The operations per byte from which on memory is no longer the bottleneck; infinite if either rate is unknown."""
        flops = self.flops_rate(nest, matrix)
        return flops / bytes_rate if bytes_rate < math.inf else math.inf
