"""What a kernel uses of its device: threads, memory, and what a compiler reports of registers and spills."""

from __future__ import annotations

import dataclasses


@dataclasses.dataclass(frozen=True)
class Resources:
    """What one kernel of a program uses: blocks, threads of a block, shared bytes of a block, register elements of a thread.

    The others are what a compiler reports of the machine code (see CompiledKernel), None where none can tell: registers of a thread,
    bytes of its stack, bytes that spilled registers are stored and loaded with, and AMD's scalar and accumulation registers.
    unknown: why they are None; empty where they are not.
    """

    kernel: str
    grid: tuple[int, int, int]
    threads: int
    shared_bytes: int
    register_elements: int
    registers: int | None = None
    stack_bytes: int | None = None
    spill_store_bytes: int | None = None
    spill_load_bytes: int | None = None
    scalar_registers: int | None = None
    accumulation_registers: int | None = None
    unknown: str = ""

    def __str__(self) -> str:
        """What a compiler reports, in words, or why none does."""
        if self.registers is None:
            return f"registers unknown: {self.unknown}"
        kinds = [(self.registers, "registers"), (self.accumulation_registers, "accumulation registers")]
        kinds += [(self.scalar_registers, "scalar registers")]
        spilled = f"spilled {self.spill_store_bytes} bytes stored, {self.spill_load_bytes} loaded" if self.spills else "no spills"
        return ", ".join([*(f"{count} {kind}" for count, kind in kinds if count), f"stack {self.stack_bytes} bytes", spilled])

    @property
    def spills(self) -> bool:
        """Whether a compiler reports that registers are kept in memory for want of room."""
        return bool(self.spill_store_bytes or self.spill_load_bytes)
