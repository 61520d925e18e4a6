"""Compilation results: machine code and each kernel's resources, as frozen records that a cache can store as bytes."""

from __future__ import annotations

import dataclasses
import json
from typing import Self

from tilelang.errors import DeviceError
from tilelang.lowering.drivers.cache import BinaryCache

_MOST_LINES = 12  # of the compiler's message that an error repeats


@dataclasses.dataclass(frozen=True, slots=True)
class CompiledKernel:
    """The resources of one kernel as the compiler reports them, per thread unless noted otherwise."""

    name: str
    # 32-bit registers; on AMD, vector registers
    registers: int
    shared_bytes: int  # per block
    stack_bytes: int  # local memory, including spilled registers
    spill_store_bytes: int  # bytes moved by spill stores and loads, counting each instruction once
    spill_load_bytes: int
    # AMD only (None elsewhere): registers per wave, and those that only matrix instructions and moves can access
    scalar_registers: int | None = None
    accumulation_registers: int | None = None

    @property
    def spills(self) -> bool:
        """Whether registers are spilled to memory."""
        return bool(self.spill_store_bytes or self.spill_load_bytes)


@dataclasses.dataclass(frozen=True, slots=True)
class Compiled:
    """Machine code for one architecture, ready for a driver."""

    architecture: str
    compiler: str  # its name and version
    code: bytes  # a cubin, or an AMD code object
    kernels: tuple[CompiledKernel, ...]
    assembly: str | None = None  # the text of the code if the compiler writes it (None: use a disassembler)
    log: str = ""  # the compiler's messages

    def kernel(self, name: str) -> CompiledKernel:
        """The resources of the kernel of that name."""
        return next(k for k in self.kernels if k.name == name)

    def to_bytes(self) -> bytes:
        """The record as bytes, for a cache: a line of JSON, then the code."""
        head = {f.name: getattr(self, f.name) for f in dataclasses.fields(self) if f.name != "code"}
        head["kernels"] = [dataclasses.asdict(k) for k in self.kernels]
        return json.dumps(head).encode() + b"\n" + self.code

    @classmethod
    def from_bytes(cls, data: bytes) -> Self:
        """Reads what `to_bytes` wrote. Raises ValueError for any other bytes."""
        text, _, code = data.partition(b"\n")
        if not code:
            raise ValueError("no machine code")
        try:
            head = json.loads(text)
            return cls(**{**head, "kernels": tuple(CompiledKernel(**k) for k in head["kernels"])}, code=code)
        except (KeyError, TypeError) as error:
            raise ValueError(f"no compiled kernel: {error}") from None


def compile_failed(compiler: str, architecture: str, log: str) -> DeviceError:
    """The error for a text that does not compile, with the first lines of the compiler's message."""
    lines = [line for line in log.splitlines() if line.strip() and "warning" not in line]
    shown = [*lines[:_MOST_LINES], *([f"... and {len(lines) - _MOST_LINES} more lines"] if len(lines) > _MOST_LINES else [])]
    message = f"{compiler} does not compile the kernel for {architecture}\n" + "\n".join(shown)
    return DeviceError(
        "compile-failed",
        message,
        help="use an instruction that the architecture has; otherwise report it, since the source is generated",
    )


def kept(cache: BinaryCache | None, name: str) -> Compiled | None:
    """A cached record; None if there is none, or if another version wrote it."""
    data = cache.get(name) if cache is not None else None
    try:
        return Compiled.from_bytes(data) if data is not None else None
    except ValueError:
        return None
