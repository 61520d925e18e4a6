"""Machine code for processors that are not here: it compiles under their profiles, and products keep to the registers of each."""

from __future__ import annotations

import functools

import pytest

import tilelang as tl
from tests.test_examples import NAMES, SIZES, for_threads, load, schedules_for
from tilelang.lowering.compilers import native
from tilelang.lowering.compilers.listing import Listing
from tilelang.lowering.compilers.native_listing import MULTIPLY_ADDS, functions, main_loops, stack_accesses

MACHINES = {
    "haswell@x86_64-linux": "avx2",
    "sapphirerapids@x86_64-linux": "avx512",
    "znver4@x86_64-linux": "avx512",
    "neoverse-v2@aarch64-linux": "neon",
    "apple-m1@aarch64-macos": "neon",
    "haswell@x86_64-windows": "avx2",
}
PRODUCTS = (
    "01_matmul",
    "02_batched_gelu",
    "03_implicit_gemm",
    "04_direct_convolution",
    "13_causal_product",
    "14_own_instruction",
)
TRIANGLE = "13_causal_product"  # with more bounds in its loop than some machines' schedulers keep in registers
CONSTRUCTED = ("01_matmul", "02_batched_gelu", "03_implicit_gemm")
MAGIC = {"linux": b"\x7fELF", "macos": b"\xcf\xfa\xed\xfe", "windows": b"\x64\x86"}


@functools.cache
def target(architecture: str) -> tl.Target:
    return tl.target("cpu", profile=MACHINES[architecture])


@functools.cache
def kernels(name: str, profile: str, which: str) -> tuple[tl.Kernel, ...]:
    """An example's kernels for a profile: at "odd" sizes; at its own, of the schedules for "cores"; or "constructed"."""
    asked = tl.target("cpu", profile=profile)
    made = list(schedules_for(name, SIZES[name][1] if which == "odd" else (), asked.profile, small=which == "odd").values())
    if which == "constructed":
        return (tl.compile(made[0].computation, asked),)
    return tuple(tl.compile(s, asked) for s in made if which == "odd" or not for_threads(s))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("architecture", MACHINES)
def test_every_example_compiles(architecture: str, name: str) -> None:
    """At odd sizes, schedules for cores and for threads; nothing is left for a library to define."""
    system = native.system_of(architecture)
    for kernel in kernels(name, MACHINES[architecture], "odd"):
        code = native.object_code(kernel.source, system)
        assert code.startswith(MAGIC[system.name])
        if system.name != "macos":  # whose linker makes a C library first, once
            assert len(native.link(code, system)) > 500


def loops(kernel: tl.Kernel, architecture: str) -> list[tuple[Listing, Listing]]:
    """The loops with the most multiply-adds of each function, and the function."""
    text = native.object_code(kernel.source, native.system_of(architecture), as_text=True).decode()
    return [(loop, function) for function in functions(text) for loop in main_loops(function)]


def check_registers(kernel: tl.Kernel, architecture: str, bounds: bool = False) -> None:
    """Asserts that no main loop reads or writes the stack. bounds: but for comparisons with numbers that lie there."""
    found = loops(kernel, architecture)
    assert found and all(loop.count(*MULTIPLY_ADDS) >= 8 for loop, _ in found)
    for loop, function in found:
        on_stack = [i for i in stack_accesses(loop, function) if not (bounds and i.name.startswith("cmp"))]
        assert not on_stack, f"{kernel.source}\n{on_stack}"


@pytest.mark.parametrize("name", PRODUCTS)
@pytest.mark.parametrize("architecture", MACHINES)
def test_products_keep_to_registers(architecture: str, name: str) -> None:
    """The schedules for cores with tiles for the vectors of the profile, at the examples' own sizes."""
    for kernel in kernels(name, MACHINES[architecture], "cores"):
        check_registers(kernel, architecture, bounds=name == TRIANGLE)


@pytest.mark.parametrize("name", CONSTRUCTED)
@pytest.mark.parametrize("architecture", MACHINES)
def test_constructed_products_keep_to_registers(architecture: str, name: str) -> None:
    """At most one access to the stack for ten multiply-adds. Not counted are loops over partial vectors, which test how many elements
    there are and run once for each row of tiles."""
    for kernel in kernels(name, MACHINES[architecture], "constructed"):
        found = [
            (loop, function) for loop, function in loops(kernel, architecture) if loop.count("ja", "jbe", "b.hi", "b.ls") < 2
        ]
        assert found
        for loop, function in found:
            on_stack = stack_accesses(loop, function)
            assert 10 * len(on_stack) <= loop.count(*MULTIPLY_ADDS), f"{kernel.source}\n{on_stack}"


def test_jumps_that_name_a_bit_are_seen() -> None:
    """`#` begins a number of Arm's, and a comment only before a space."""
    text = """
f:                                      // @f
.LBB0_1:
\tfmla\tv0.4s, v1.4s, v2.s[0]
\ttbnz\tw8, #0, .LBB0_1
\tret
"""
    ((loop,),) = (main_loops(function) for function in functions(text))
    assert [i.name for i in loop.instructions] == ["fmla", "tbnz"]


@pytest.mark.parametrize("architecture", MACHINES)
def test_spills_are_seen(architecture: str) -> None:
    """Sums in 16 x 4 vector registers: none of them has as many."""
    example, lanes = load("01_matmul"), max(target(architecture).profile.vector_bytes) // 4
    large = example.gemm_cpu(example.matmul(128, 128, 128), 64, 128, 64, 16, 4 * lanes, lanes)
    found = loops(tl.compile(large, target(architecture)), architecture)
    assert found and all(stack_accesses(loop, function) for loop, function in found)
