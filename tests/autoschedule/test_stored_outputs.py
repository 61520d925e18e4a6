"""Generated schedules of outputs over different axes: one kernel that reads each input once."""

import pytest

import tilelang as tl
from tests.lowering.stored_outputs import backward, normalized, softmax, sums
from tilelang.autoschedule.common.complete import in_order
from tilelang.autoschedule.models import estimate_schedule
from tilelang.schedules.task import is_stored, tasks_of

MADE = (sums, normalized, backward, softmax)
SIZES = [(7, 11), (1, 40), (33, 1), (16, 64), (37, 130)]


def constructed(computation: tl.Computation) -> tl.Kernel:
    return tl.compile(computation, "cpu", options=tl.Options(database=""))


@pytest.mark.parametrize("profile", ["sapphire_rapids", "zen3"])
def test_construction_reads_each_input_once(profile: str) -> None:
    """Statistics and sums of columns are stored by the kernel that reads the rows."""
    for make in MADE:
        schedule = next(in_order(make(4096, 2048), tl.load_profile(profile))).schedule
        assert len(tasks_of(schedule.computation, schedule.steps)) == 1
        assert any(map(is_stored, schedule.steps)), str(schedule)


@pytest.mark.parametrize("size", [*SIZES, (700, 300)])
def test_constructed_values(size: tuple[int, int]) -> None:
    for computation in (*(make(*size) for make in MADE), normalized(*size, dtype=tl.bfloat16)):
        assert constructed(computation).check()


@pytest.mark.parametrize("profile", ["ampere", "zen3"])
def test_constructed_estimates_are_those_of_their_kernels(profile: str) -> None:
    """Where a device has no kernel with such stages, the other outputs are kernels of their own, and counted."""
    device = tl.load_profile(profile)
    for make in MADE:
        found = next(in_order(make(256, 512), device))
        assert estimate_schedule(found.schedule, device).seconds == pytest.approx(found.estimate.seconds)
