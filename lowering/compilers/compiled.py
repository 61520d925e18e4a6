"""What a compiler gives: machine code and what each of its kernels uses, as frozen records that a cache can keep as bytes."""

from __future__ import annotations

import dataclasses
import json
from typing import Self

from tilelang.errors import DeviceError
from tilelang.lowering.drivers.cache import BinaryCache

_MOST_LINES = 12  # of what the compiler says that an error repeats


@dataclasses.dataclass(frozen=True, slots=True)
class CompiledKernel:
    """What the compiler reports of one kernel, for each thread, `shared_bytes` for each block.

    registers: of 32 bits, vector registers on AMD. scalar_registers: for each wave, and accumulation_registers: the registers that
    only matrix instructions and moves reach; both AMD's alone (None elsewhere). stack_bytes: memory of a thread, spilled registers
    among it. spill_store_bytes, spill_load_bytes: what the instructions that save registers to memory and bring them back move, each
    instruction counted once.
    """

    name: str
    registers: int
    shared_bytes: int
    stack_bytes: int
    spill_store_bytes: int
    spill_load_bytes: int
    scalar_registers: int | None = None
    accumulation_registers: int | None = None

    @property
    def spills(self) -> bool:
        """Whether registers are kept in memory for want of room."""
        return bool(self.spill_store_bytes or self.spill_load_bytes)


@dataclasses.dataclass(frozen=True, slots=True)
class Compiled:
    """Machine code for one architecture, ready for a driver.

    compiler: its name and version. code: a cubin, or an AMD code object. assembly: the text of the code where the compiler writes it
    (None: ask a disassembler). log: what the compiler said.
    """

    architecture: str
    compiler: str
    code: bytes
    kernels: tuple[CompiledKernel, ...]
    assembly: str | None = None
    log: str = ""

    def kernel(self, name: str) -> CompiledKernel:
        """What the kernel of that name uses."""
        return next(k for k in self.kernels if k.name == name)

    def to_bytes(self) -> bytes:
        """The record as bytes, for a cache: a line of JSON, then the code."""
        head = {f.name: getattr(self, f.name) for f in dataclasses.fields(self) if f.name != "code"}
        head["kernels"] = [dataclasses.asdict(k) for k in self.kernels]
        return json.dumps(head).encode() + b"\n" + self.code

    @classmethod
    def from_bytes(cls, data: bytes) -> Self:
        """The record that `to_bytes` wrote. Raises ValueError where the bytes are no such record."""
        text, _, code = data.partition(b"\n")
        try:
            head = json.loads(text)
            return cls(**{**head, "kernels": tuple(CompiledKernel(**k) for k in head["kernels"])}, code=code)
        except (KeyError, TypeError) as error:
            raise ValueError(f"no compiled kernel: {error}") from None


def compile_failed(compiler: str, architecture: str, log: str) -> DeviceError:
    """The error of a text that does not compile, with the first lines of what the compiler said."""
    lines = [line for line in log.splitlines() if line.strip() and "warning" not in line]
    shown = [*lines[:_MOST_LINES], *([f"... and {len(lines) - _MOST_LINES} more lines"] if len(lines) > _MOST_LINES else [])]
    message = f"{compiler} does not compile the kernel for {architecture}\n" + "\n".join(shown)
    return DeviceError(
        "compile-failed",
        message,
        mend="use an instruction that the architecture has; otherwise report it, since the source is generated",
    )


def kept(cache: BinaryCache | None, name: str) -> Compiled | None:
    """The record that a cache has under a name; None where it has none, or one that another version wrote."""
    data = cache.get(name) if cache is not None else None
    try:
        return Compiled.from_bytes(data) if data is not None else None
    except ValueError:
        return None
