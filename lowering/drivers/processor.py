"""Describes the CPU from what the operating system reports: model, instruction set extensions, caches. No compiler is needed.

processor_linux.py, processor_macos.py and processor_windows.py turn what each system reports into a `Processor`; their parsers are
pure functions, so that tests can use recordings from other machines. Values that a system does not report are empty or 0.
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import platform
import sys

X86_64, ARM64 = "x86_64", "arm64"
_MACHINES = {"x86_64": X86_64, "amd64": X86_64, "aarch64": ARM64, "arm64": ARM64}
_AVX512 = {"avx512f", "avx512bw", "avx512dq", "avx512vl"}  # common to all server and desktop CPUs with AVX-512


@dataclasses.dataclass(frozen=True, slots=True, order=True)
class Cache:
    """A cache as one core sees it; 0: unknown."""

    level: int
    kind: str  # data, instruction or unified
    bytes: int
    ways: int = 0  # associativity
    line_bytes: int = 0
    shared_by: int = 0  # logical processors that share it

    def __str__(self) -> str:
        size = f"L{self.level} {self.kind} {self.bytes >> 10} KiB"
        return f"{size}, {self.ways} ways, lines of {self.line_bytes} bytes, for {self.shared_by}"


@dataclasses.dataclass(frozen=True, slots=True)
class Processor:
    """A CPU."""

    machine: str  # x86_64, arm64, or the system's name for another architecture
    system: str
    vendor: str
    name: str
    family: int  # family, model, stepping: the vendor's numbers; on arm64 variant and part from the register MIDR
    model: int
    stepping: int
    features: frozenset[str]  # as the system names them
    logical: int  # logical processors
    caches: tuple[Cache, ...]  # ordered by level
    memory_bytes: int  # of the machine

    @property
    def vector_bytes(self) -> int:
        """The widest vector register available to every kernel; arm64's scalable vectors count as their minimum of 16 bytes."""
        if self.machine != X86_64:
            return 16
        if self.features >= _AVX512:
            return 64
        return 32 if "avx2" in self.features else 16

    def cache(self, level: int) -> Cache | None:
        """The data cache of a level."""
        return next((c for c in self.caches if c.level == level and c.kind != "instruction"), None)

    @property
    def numbers(self) -> str:
        """Vendor, family and model, as `Profile.processors` lists them."""
        return f"{self.vendor} {self.family} {self.model}"

    @property
    def details(self) -> str:
        """Distinguishes it from other CPUs: its numbers, a hash of its features, its caches."""
        features = hashlib.sha256(" ".join(sorted(self.features)).encode()).hexdigest()[:8]
        numbers = f"family {self.family} model {self.model} stepping {self.stepping}"
        caches = "; ".join(map(str, self.caches)) or "caches unknown"
        return f"{self.machine} {self.vendor} {numbers}, features {features}, {caches}"


@functools.cache
def processor() -> Processor:
    """The CPU that this process runs on."""
    machine = _MACHINES.get(platform.machine().lower(), platform.machine())
    if sys.platform == "darwin":
        from tilelang.lowering.drivers import processor_macos  # late: only this target needs it

        return processor_macos.read(machine)
    if sys.platform == "win32":
        from tilelang.lowering.drivers import processor_windows  # late: only this target needs it

        return processor_windows.read(machine)
    from tilelang.lowering.drivers import processor_linux  # late: only this target needs it

    return processor_linux.read(machine)
