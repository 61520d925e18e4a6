"""The schedules of the CPU table are right at sizes that divide nothing."""

from collections.abc import Callable

import pytest

import tilelang as tl
from benchmarks import cpu_schedules as schedules


@pytest.mark.parametrize("size", [(37, 111), (64, 128), (1, 1)])
@pytest.mark.parametrize("make", [schedules.row_sum, schedules.softmax, schedules.layer_normalization, schedules.gelu,
                                  schedules.transpose, schedules.copy])  # fmt: skip
def test_memory_bound_schedules_agree(make: Callable[[int, int], tl.Schedule], size: tuple[int, int]) -> None:
    report = tl.compile(make(*size)).check()
    assert report.ok, str(report)


@pytest.mark.parametrize("size", [(400, 410, 300), (37, 111, 77), (8, 48, 0)])
def test_matrix_product_agrees(size: tuple[int, int, int]) -> None:
    report = tl.compile(schedules.matmul_schedule(*size)).check()
    assert report.ok, str(report)
