"""A kernel's use of its device: threads, memory, and the compiler's report of registers and spills."""

from __future__ import annotations

import dataclasses


@dataclasses.dataclass(frozen=True)
class Resources:
    """The resources of one kernel of a program. Fields with the default None are from the compiler's report (see CompiledKernel)."""

    kernel: str
    grid: tuple[int, int, int]  # blocks
    threads: int  # per block
    shared_bytes: int  # per block
    register_elements: int  # per thread
    registers: int | None = None  # per thread
    stack_bytes: int | None = None
    spill_store_bytes: int | None = None
    spill_load_bytes: int | None = None
    scalar_registers: int | None = None
    accumulation_registers: int | None = None
    unknown: str = ""  # the reason why the compiler's fields are None; empty if they are not

    def __str__(self) -> str:
        """The compiler's report in words, or the reason why there is none."""
        if self.registers is None:
            return f"registers unknown: {self.unknown}"
        kinds = [(self.registers, "registers"), (self.accumulation_registers, "accumulation registers")]
        kinds += [(self.scalar_registers, "scalar registers")]
        spilled = f"spilled {self.spill_store_bytes} bytes stored, {self.spill_load_bytes} loaded" if self.spills else "no spills"
        return ", ".join([*(f"{count} {kind}" for count, kind in kinds if count), f"stack {self.stack_bytes} bytes", spilled])

    @property
    def spills(self) -> bool:
        """Whether the compiler reports spilled registers."""
        return bool(self.spill_store_bytes or self.spill_load_bytes)
