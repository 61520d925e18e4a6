"""What the operating system says of the processor: its model, its instruction extensions, its caches. No compiler is asked.

How each system says it stands in processor_linux.py, processor_macos.py and processor_windows.py, as functions from what was read to a
`Processor`, so that tests read what was recorded on other machines. What a system does not say is empty or 0.
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import platform
import sys

X86_64, ARM64 = "x86_64", "arm64"
_MACHINES = {"x86_64": X86_64, "amd64": X86_64, "aarch64": ARM64, "arm64": ARM64}
_AVX512 = {"avx512f", "avx512bw", "avx512dq", "avx512vl"}  # what processors with AVX-512 for servers and desktops have in common


@dataclasses.dataclass(frozen=True, slots=True, order=True)
class Cache:
    """A cache as one core sees it. kind: data, instruction or unified. ways: its associativity, line_bytes: of its lines. shared_by:
    how many logical processors use it. 0: not known."""

    level: int
    kind: str
    bytes: int
    ways: int = 0
    line_bytes: int = 0
    shared_by: int = 0

    def __str__(self) -> str:
        size = f"L{self.level} {self.kind} {self.bytes >> 10} KiB"
        return f"{size}, {self.ways} ways, lines of {self.line_bytes} bytes, for {self.shared_by}"


@dataclasses.dataclass(frozen=True, slots=True)
class Processor:
    """A processor. machine: x86_64 or arm64, or what the system calls another one. family, model, stepping: the vendor's numbers; on
    arm64 variant and part, as in the register MIDR. features: as the system names them. logical: how many threads it runs at once.
    caches: in order of their levels. memory_bytes: of the machine."""

    machine: str
    system: str
    vendor: str
    name: str
    family: int
    model: int
    stepping: int
    features: frozenset[str]
    logical: int
    caches: tuple[Cache, ...]
    memory_bytes: int

    @property
    def vector_bytes(self) -> int:
        """The widest vector register that every kernel may use; scalable vectors of arm64 count as the 16 bytes they have at least."""
        if self.machine != X86_64:
            return 16
        if self.features >= _AVX512:
            return 64
        return 32 if "avx2" in self.features else 16

    def cache(self, level: int) -> Cache | None:
        """The cache of a level that holds data."""
        return next((c for c in self.caches if c.level == level and c.kind != "instruction"), None)

    @property
    def numbers(self) -> str:
        """Its vendor, family and model, as `Profile.processors` lists them."""
        return f"{self.vendor} {self.family} {self.model}"

    @property
    def details(self) -> str:
        """What tells it from other processors: its numbers, a hash of its features, its caches."""
        features = hashlib.sha256(" ".join(sorted(self.features)).encode()).hexdigest()[:8]
        numbers = f"family {self.family} model {self.model} stepping {self.stepping}"
        caches = "; ".join(map(str, self.caches)) or "caches unknown"
        return f"{self.machine} {self.vendor} {numbers}, features {features}, {caches}"


@functools.cache
def processor() -> Processor:
    """The processor that this process runs on."""
    machine = _MACHINES.get(platform.machine().lower(), platform.machine())
    if sys.platform == "darwin":
        from tilelang.lowering.drivers import processor_macos

        return processor_macos.read(machine)
    if sys.platform == "win32":
        from tilelang.lowering.drivers import processor_windows

        return processor_windows.read(machine)
    from tilelang.lowering.drivers import processor_linux

    return processor_linux.read(machine)
