"""What runs under the checkers of `make gpu-check`: small kernels, launched once each, with NumPy arrays."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator

import tilelang as tl
from tests.errors._computations import row_sum
from tests.test_examples import NAMES, SIZES, for_threads, load, schedules_for
from tilelang.errors import Refusal
from tilelang.reference import random_arrays


def tiny() -> None:
    """One kernel, to see whether a checker starts."""
    kernel = tl.compile(row_sum(4, 8))
    kernel(**random_arrays(kernel.computation))


def matrix_schedules() -> dict[str, Callable[[], tl.Schedule]]:
    """Schedules with matrix instructions, each with its computation at a small size."""
    made, units, types = load("01_matmul"), load("15_matrix_units"), load("16_matrix_types")
    return {
        "warpgroups": lambda: made.gemm_hopper(made.linear(256, 256, 128)),
        "warpgroups of float16": lambda: made.gemm_hopper(made.linear(130, 264, 72, tl.float16)),
        "warps": lambda: units.gemm_ampere(units.matmul(256, 256, 128)),
        "warps of bfloat16": lambda: units.gemm_ampere(units.matmul(130, 264, 72, tl.bfloat16)),
        "warps, B transposed": lambda: units.gemm_ampere_transposed(units.transposed(130, 264, 72)),
        "warps, a layer": lambda: units.gemm_ampere_transposed(made.linear(130, 264, 72)),
        "warps, convolution": lambda: units.conv_ampere(units.convolution(2, 10, 32, 64)),
        "waves": lambda: units.gemm_cdna(units.matmul(256, 128, 64)),
        "waves by smaller products": lambda: units.gemm_cdna(units.matmul(128, 256, 64), "mfma_16x16x16"),
        "waves, straight into shared memory": lambda: units.gemm_direct(units.transposed(256, 130, 96)),
        "warps of tf32": lambda: types.gemm_tf32(types.matmul(130, 264, 72)),
        "warps of bytes": lambda: types.gemm_bytes(types.linear(130, 264, 80)),
        "warps of 8-bit floats": lambda: types.gemm_bytes(types.linear(130, 264, 80, tl.float8_e4m3), tl.float8_e4m3),
        "waves of 32": lambda: types.gemm_rdna(types.matmul(128, 128, 64, tl.float16)),
        "waves of bfloat16": lambda: units.gemm_cdna(units.matmul(128, 128, 64, tl.bfloat16)),
    }


def schedules() -> Iterator[Callable[[], tl.Schedule]]:
    """Those with matrix instructions, then every example's for threads, at odd sizes."""
    yield from matrix_schedules().values()
    for name in NAMES:
        for schedule in filter(for_threads, schedules_for(name, SIZES[name][1], tl.target().profile).values()):
            yield _always(schedule)


def _always(schedule: tl.Schedule) -> Callable[[], tl.Schedule]:
    return lambda: schedule


def every(limit_s: float = math.inf) -> None:
    """Runs all of them that the device has the instructions for, until the time is over."""
    end, ran, refused, left = time.monotonic() + limit_s, 0, 0, 0
    for build in schedules():
        if time.monotonic() > end:
            left += 1
            continue
        try:
            kernel = tl.compile(build())
        except Refusal:
            refused += 1
            continue
        kernel(**random_arrays(kernel.computation))
        ran += 1
    over = f"; the time was over: {left} were not run" if left else ""
    print(f"{ran} kernels of examples ran, {refused} are refused here{over}", flush=True)
