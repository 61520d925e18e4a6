"""Sources compiled for an architecture, and what tests look at in the machine code."""

import dataclasses
import functools
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import pytest

from tilelang.errors import DeviceError
from tilelang.lowering.compilers import clang, nvrtc
from tilelang.lowering.compilers.compiled import Compiled, CompiledKernel
from tilelang.lowering.compilers.disassembly import disassemble
from tilelang.lowering.compilers.interface import ABSENT
from tilelang.lowering.compilers.listing import Listing, listings

KERNELS = Path(__file__).parent / "kernels"

NVIDIA = ("sm_70", "sm_80", "sm_89", "sm_90", "sm_90a", "sm_100", "sm_120")
AMD = ("gfx90a", "gfx942", "gfx1100")

_ABSENT = (*ABSENT, "no-disassembler")


@dataclasses.dataclass(frozen=True)
class MachineCode:
    """A source of one kernel, compiled."""

    compiled: Compiled

    @property
    def uses(self) -> CompiledKernel:
        """What the kernel uses."""
        (only,) = self.compiled.kernels
        return only

    @functools.cached_property
    def listing(self) -> Listing:
        """The kernel's instructions; skips where no disassembler is installed."""
        (only,) = listings(_or_skip(lambda: disassemble(self.compiled)))
        return only


T = TypeVar("T")
CompileFor = Callable[[str], Callable[[str], MachineCode]]


def _or_skip(what: Callable[[], T]) -> T:
    """What a function gives; a skip where it needs a program that is not installed."""
    try:
        return what()
    except DeviceError as error:
        if error.code in _ABSENT:
            pytest.skip(f"{error.message}: {error.help}")
        raise


def compile_for_architecture(architecture: str) -> Callable[[str], MachineCode]:
    """A function that compiles a source for an architecture, CUDA for NVIDIA's and HIP for AMD's."""
    compile_source = clang.compile_source if architecture.startswith("gfx") else nvrtc.compile_source
    return lambda source: MachineCode(_or_skip(lambda: compile_source(source, architecture)))


_MULTIPLY_ADDS = (
    *("FFMA", "FMUL", "HFMA2", "HMUL2", "DFMA", "DMUL"),
    *("v_fma", "v_mac", "v_mad_f", "v_mul_f", "v_pk_fma", "v_pk_mul_f", "v_dual_fma", "v_dual_mul_f", "v_dot2"),
)


def multiply_adds(part: Listing) -> int:
    """How many multiplications of floats stand in a part of a kernel outside matrix instructions.

    An HFMA2 of nothing but zeros and constants is how SASS writes a constant into a register.
    """
    found = [i for i in part.instructions if i.name.startswith(_MULTIPLY_ADDS)]
    return sum(not (i.name.startswith("HFMA2") and "-RZ, RZ" in i.operands) for i in found)


def kernel_text(name: str) -> str:
    """A hand-written kernel of this folder."""
    return (KERNELS / name).read_text(encoding="utf-8")


def values_kept(count: int, threads: int) -> str:
    """A kernel whose threads keep `count` numbers through a loop, each needed for others: CUDA and HIP alike."""
    lines = [
        f'extern "C" __global__ void __launch_bounds__({threads}) kept(float* x, int rounds) {{',
        *(f"  float a{i} = x[{i * threads} + threadIdx.x];" for i in range(count)),
        "  for (int k = 0; k < rounds; ++k) {",
        *(f"    a{i} = a{i} * a{(i * 7 + 3) % count} + x[k];" for i in range(count)),
        "  }",
        *(f"  x[{i * threads} + threadIdx.x] = a{i};" for i in range(count)),
        "}",
    ]
    return "\n".join(lines)
