"""What the runtime and the command line ask of the compilers: which one a dialect has, and which programs are here.

A compiler is a module of this package, such as native.py or nvrtc.py, that has what `Compiler` says. A dialect without one is
compiled by its driver alone.
"""

from __future__ import annotations

import contextlib
import dataclasses
import importlib
from collections.abc import Sequence
from typing import Protocol, cast

from tilelang.errors import DeviceError
from tilelang.lowering.compilers import disassembly, wheels
from tilelang.lowering.compilers.compiled import Compiled
from tilelang.lowering.drivers.cache import BinaryCache

COMPILERS = {"cpu": "native", "cuda": "nvrtc", "hip": "clang"}

# The dialects whose compiler reports registers and spills.
REPORTING = ("cuda", "hip")

# What is raised where a compiler cannot be asked at all, and its text may be right.
ABSENT = ("no-compiler", "unknown-architecture")


class Compiler(Protocol):
    """A module of this package."""

    def compile_source(
        self, source: str, architecture: str, options: Sequence[str] = (), cache: BinaryCache | None = None
    ) -> Compiled:
        """The machine code of a text. Raises DeviceError, one of ABSENT or `compile-failed`."""

    def text_of_code(self, source: str, compiled: Compiled) -> str:
        """The text of the machine code of a compiled text. Raises DeviceError where no program can give it."""

    def version(self) -> str:
        """Its name and version. Raises DeviceError `no-compiler` where it is not installed."""


@dataclasses.dataclass(frozen=True, slots=True)
class Tool:
    """A program that needs no device. found: its name and version, or None. use: what it is for; get: how to install it."""

    found: str | None
    use: str
    get: str


def load(dialect: str) -> Compiler:
    """The compiler of a dialect. Raises DeviceError `no-compiler` where only a driver compiles it."""
    if dialect not in COMPILERS:
        message = (
            f"{dialect} is compiled only by the device's driver, which reports neither a kernel's resources nor its machine code"
        )
        raise DeviceError(
            "no-compiler",
            message,
            mend="read kernel.source, or use a target that has a compiler: " + ", ".join(sorted(COMPILERS)),
        )
    return cast(Compiler, importlib.import_module(f"tilelang.lowering.compilers.{COMPILERS[dialect]}"))


def begun(dialect: str, architecture: str, options: Sequence[str]) -> contextlib.AbstractContextManager[None]:
    """In the `with` a text of a dialect is written and compiled: a compiler that is a program, and takes a while to start, does so
    meanwhile. options: those that the text will name."""
    if dialect != "cpu":
        return contextlib.nullcontext()
    from tilelang.lowering.compilers import native

    return native.begun(architecture, options)


def tools() -> tuple[Tool, ...]:
    """The compilers and the disassembler, whether they are here or not."""
    found = []
    for dialect in COMPILERS:
        try:
            version = load(dialect).version()
        except DeviceError:
            version = None
        found.append(Tool(version, f"to compile for {dialect}", wheels.INSTALL if dialect == "cuda" else wheels.CLANG))
    program = next((path.name for path in disassembly.disassemblers()), None)
    found.append(Tool(program, "to show the machine code of cuda", wheels.INSTALL))
    return tuple(found)
