"""Names of a kernel's own: a person may give axes and tensors any of them."""

from __future__ import annotations

from typing import Any

import pytest

import tilelang as tl
from tests.gate.machine_code import compile_for_architecture
from tilelang.testing import arrays, check_schedule


def faults(schedule: tl.Schedule) -> list[str]:
    return check_schedule(schedule, arrays(schedule.computation, "random", 1), opencl=True)


def test_an_axis_named_as_another_one_s_second_loop() -> None:
    i, j = tl.axes(j=6, j_1=9)
    x = tl.input("X", tl.float32, i, j)
    schedule = tl.schedule(tl.define("Y", x[i, j] * 2, i, j)).tile(j=4).to(tl.block).split(j=2).split(j=1).split(j_1=4)
    assert not faults(schedule.split(j_1=1))


@pytest.mark.parametrize("block", ["block_x", "block_size"])
def test_axes_named_as_units(block: str) -> None:
    pieces: dict[str, Any] = {block: 2}
    i, j, k = tl.axes(**{"thread": 6, block: 9, "round": 5})
    x, y = tl.input("X", tl.float32, i, j), tl.input("tile", tl.float32, j, k)
    schedule = (
        tl.schedule(tl.define("Y", tl.sum(x[i, j] * y[j, k], over=j), i, k))
        .tile(thread=2).to(tl.block, 2)
        .split(**pieces)
        .split(thread=1)
        .load("tile", tl.shared)
        .tile(round=1).to(tl.thread)
    )  # fmt: skip
    assert not faults(schedule)


# Keywords, types, builtins and macros of C, C++, OpenCL, CUDA and HIP, and of the compilers' own headers.
TAKEN = """
_Bool _Complex _Generic _Static_assert _Float16 _Nonnull __half asm typeof linux unix NULL EOF M_PI M_PI_F FLT_MAX DBL_EPSILON INT_MAX
HUGE_VALF MAXFLOAT NAN CLK_LOCAL_MEM_FENCE CLK_sRGBA CL_VERSION_1_2 cl_khr_fp64 _cl_sqrt nullptr constexpr alignas template typename
namespace operator decltype concept requires wchar_t char8_t threadIdx blockIdx warpSize dim3 half2 uint4 float16 vec native_exp
atom_add vload4 kernel local restrict register _ _1 __x
""".split()


@pytest.mark.parametrize("dialect, profile", [("opencl", None), ("cuda", "ampere"), ("hip", "cdna2")])
def test_names_that_the_languages_have_taken(dialect: str, profile: str | None) -> None:
    i = tl.axes(i=40)
    value: Any = 0
    for name in TAKEN:
        value = tl.input(name, tl.float32, i)[i] + value
    y = tl.define("Y", value, i)
    if profile is None:
        assert not faults(tl.schedule(y).tile(i=8).to(tl.block))
        return
    kernel = tl.compile(y, tl.target(dialect, profile=profile))
    assert compile_for_architecture(str(kernel.target.profile.architecture))(kernel.source).compiled.kernels
