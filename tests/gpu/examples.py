"""What runs under the checkers of `make gpu-check`: small kernels, launched once each, with NumPy arrays."""

from __future__ import annotations

import tilelang as tl
from tests.errors._computations import row_sum
from tests.test_examples import NAMES, SIZES, for_threads, schedules_for
from tilelang.errors import Refusal
from tilelang.reference import random_arrays


def tiny() -> None:
    """One kernel, to see whether a checker starts."""
    kernel = tl.compile(row_sum(4, 8))
    kernel(**random_arrays(kernel.computation))


def every() -> None:
    """Every example's schedules for threads, at odd sizes."""
    profile, count = tl.target().profile, 0
    for name in NAMES:
        for schedule in filter(for_threads, schedules_for(name, SIZES[name][1], profile).values()):
            try:
                kernel = tl.compile(schedule)
            except Refusal:
                continue
            kernel(**random_arrays(kernel.computation))
            count += 1
    print(f"{count} kernels of examples ran")
