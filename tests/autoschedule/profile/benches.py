"""Benches without a device: probes are compiled as for one, and take times that are made up."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tilelang.autoschedule.profile.bench import Bench
from tilelang.autoschedule.profile.sampling import Run
from tilelang.lowering.compilers import interface as compilers
from tilelang.lowering.drivers.cache import BinaryCache
from tilelang.lowering.drivers.interface import Device
from tilelang.profiles.profile import Profile
from tilelang.schedules.schedule import Schedule

MADE_UP = Device("opencl", "made up", "nowhere", "gpu", "1", "1", 4, 256, 1 << 15, 1 << 30, False)


class Compiling(Bench):
    """Compiles every probe for a profile, where a compiler is installed, and gives each a millisecond a round."""

    def __init__(self, profile: Profile, dialect: str, compiled: bool) -> None:
        device = Device(dialect, "made up", "nowhere", "gpu", "1", "1", 8, 1024, 1 << 15, 1 << 32, False)
        super().__init__(device, profile)
        self.compiled, self.sources = compiled, list[str]()

    def of_schedule(self, schedule: Schedule, data: Mapping[str, Any] | None = None) -> Run:
        program, source, _ = self.lowered(schedule)
        for name, array in (data or {}).items():
            assert array.shape == next(t.shape for t in schedule.computation.inputs if t.name == name)
        assert all(k.threads <= self.profile.max_block_threads for k in program.kernels)
        return self._taken(source)

    def of_text(self, body: str, blocks: int, threads: int, arrays: Sequence[Any], shared_bytes: int = 0) -> Run:
        assert threads <= self.profile.max_block_threads and blocks > 0
        assert shared_bytes <= (self.profile.memory("shared").capacity_bytes or 0)
        return self._taken(self.text(body, 1 + len(arrays)))

    def _taken(self, source: str) -> Run:
        if self.compiled and self.profile.architecture is not None and source not in self.sources:
            compiler = compilers.load(self.device.driver)
            compiler.compile_source(source, self.profile.architecture, (), BinaryCache(""))
        self.sources.append(source)
        return lambda rounds: rounds * 1e-3
