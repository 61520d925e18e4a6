"""The interface between the runtime or the command line and the compilers: which one a dialect has, and which are installed.

A compiler is a module of this package, such as native.py or nvrtc.py, that implements `Compiler`. A dialect without one is compiled by
its driver.
"""

from __future__ import annotations

import contextlib
import dataclasses
import importlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol, cast

from tilelang.errors import DeviceError
from tilelang.lowering.compilers import wheels
from tilelang.lowering.drivers.cache import BinaryCache

if TYPE_CHECKING:
    from tilelang.lowering.compilers.compiled import Compiled
    from tilelang.lowering.compilers.processes import Early

COMPILERS = {"cpu": "native", "cuda": "nvrtc", "hip": "clang"}

# The dialects whose compilers report registers and spills.
REPORTING = ("cuda", "hip")

# The dialects whose compiler is a separate program, which can run while this process goes on.
PROGRAMS = ("cpu",)

# Error codes for a compiler that cannot be used at all; they say nothing about the text.
ABSENT = ("no-compiler", "unknown-architecture")


class Compiler(Protocol):
    """A module of this package."""

    def compile_source(
        self, source: str, architecture: str, options: Sequence[str] = (), cache: BinaryCache | None = None
    ) -> Compiled:
        """The machine code of a text. Raises DeviceError, one of ABSENT or `compile-failed`."""

    def text_of_code(self, source: str, compiled: Compiled) -> str:
        """The assembly of a compiled text. Raises DeviceError if no program can produce it."""

    def version(self) -> str:
        """Its name and version. Raises DeviceError `no-compiler` if it is not installed."""


@dataclasses.dataclass(frozen=True, slots=True)
class Tool:
    """A program that needs no device. found: its name and version, or None. use: its purpose. get: how to install it."""

    found: str | None
    use: str
    get: str


def load(dialect: str) -> Compiler:
    """The compiler of a dialect. Raises DeviceError `no-compiler` if only a driver compiles it."""
    if dialect not in COMPILERS:
        message = (
            f"{dialect} is compiled only by the device's driver, which reports neither a kernel's resources nor its machine code"
        )
        raise DeviceError(
            "no-compiler",
            message,
            help="read kernel.source, or use a target that has a compiler: " + ", ".join(sorted(COMPILERS)),
        )
    return cast(Compiler, importlib.import_module(f"tilelang.lowering.compilers.{COMPILERS[dialect]}"))


def begun(dialect: str, architecture: str, options: Sequence[str]) -> contextlib.AbstractContextManager[None]:
    """In the `with` block a text of a dialect is generated and compiled. A compiler that is a separate, slowly starting program is
    started in advance. options: those that the text will name."""
    if dialect not in PROGRAMS:
        return contextlib.nullcontext()
    from tilelang.lowering.compilers import native  # late: only this target needs it

    return native.begun(architecture, options)


def compile_early(dialect: str, source: str, architecture: str) -> Early | None:
    """Starts to compile a text in the background, in case its code is needed soon; None if the dialect or the system cannot."""
    if dialect not in PROGRAMS:
        return None
    from tilelang.lowering.compilers import native  # late: only this target needs it

    return native.compile_early(source, architecture)


def tools() -> tuple[Tool, ...]:
    """The compilers and the disassembler, whether installed or not."""
    found = []
    for dialect in COMPILERS:
        try:
            version = load(dialect).version()
        except DeviceError:
            version = None
        found.append(Tool(version, f"to compile for {dialect}", wheels.INSTALL if dialect == "cuda" else wheels.CLANG))
    from tilelang.lowering.compilers import disassembly  # late: only a list of what is installed needs it

    program = next((path.name for path in disassembly.disassemblers()), None)
    found.append(Tool(program, "to show the machine code of cuda", wheels.INSTALL))
    return tuple(found)
