"""What runs under the checkers of `make gpu-check`: small kernels, launched once each, with NumPy arrays."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable, Iterator

import tilelang as tl
from tests.errors._computations import row_sum
from tests.test_examples import NAMES, SIZES, for_threads, load, schedules_for
from tilelang.errors import DeviceError, Refusal
from tilelang.semantics.reference import random_arrays

FAILED = "FAILED"  # begins the line of a kernel that fails


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


def schedules() -> Iterator[tuple[str, Callable[[], tl.Schedule]]]:
    """Those with matrix instructions, then every example's for threads, at odd sizes; each with its name."""
    yield from matrix_schedules().items()
    for name in NAMES:
        for which, schedule in schedules_for(name, SIZES[name][1], tl.target().profile).items():
            if for_threads(schedule):
                yield f"{name}, {which}", _always(schedule)


def _always(schedule: tl.Schedule) -> Callable[[], tl.Schedule]:
    return lambda: schedule


def every(limit_s: float = math.inf) -> None:
    """Runs all of them that the device has the instructions for, until the time is over. Names those that fail, and exits with 1 then;
    the device does nothing more after some, and the rest are left."""
    end, ran, refused, left, failed, lost = time.monotonic() + limit_s, 0, 0, 0, 0, ""
    for name, build in schedules():
        if lost or time.monotonic() > end:
            left += 1
            continue
        try:
            kernel = tl.compile(build())
            kernel(**random_arrays(kernel.computation))
            ran += 1
        except Refusal:
            refused += 1
        except DeviceError as error:
            failed += 1
            print(f"{FAILED} {name}: {error.message.splitlines()[0]}", flush=True)
            lost = name if not _works() else ""
    why = f"after {lost} the device does nothing more" if lost else "the time was over"
    over = f"; {why}: {left} were not run" if left or lost else ""
    print(f"{ran} kernels of examples ran, {failed} failed, {refused} are refused here{over}", flush=True)
    if failed:
        sys.exit(1)


def _works() -> bool:
    """Whether the device still runs kernels."""
    try:
        tiny()
    except DeviceError:
        return False
    return True
