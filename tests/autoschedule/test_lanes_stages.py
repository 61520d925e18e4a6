"""Several tasks in one kernel of a graphics processor: rows in the registers of the threads that share them."""

import pytest

import tilelang as tl
from benchmarks.gpu_cases import example
from tests.gate.machine_code import compile_for_architecture
from tilelang.autoschedule.common.construct import construct
from tilelang.autoschedule.common.kernel_part import Part
from tilelang.autoschedule.gpu.device import GpuDevice
from tilelang.autoschedule.gpu.row_fusion import rows_by_lanes
from tilelang.autoschedule.models import estimate_schedule
from tilelang.computations.computation import Computation, as_computation
from tilelang.schedules.schedule import Schedule
from tilelang.testing import arrays, check_schedule, lowered

SIMULATED = tl.load_profile("simulated")
DEVICES = [n for n in tl.profiles.files.shipped_profiles() if tl.load_profile(n).lockstep]


def softmax(m: int, n: int) -> Computation:
    return as_computation(example("08_softmax").softmax(m, n))


def layer_norm(m: int, n: int) -> Computation:
    return as_computation(example("09_layer_norm").layer_norm(m, n))


def two_passes(m: int, n: int) -> Computation:
    """A variance by the mean, then by what is left of each element without it."""
    i, j = tl.axes(i=m, j=n)
    X = tl.input("X", tl.float32, i, j)
    mean = tl.define("mean", tl.sum(X[i, j], over=j) / n, i)
    variance = tl.define("variance", tl.sum((X[i, j] - mean[i]) * (X[i, j] - mean[i]), over=j) / n, i)
    return as_computation(tl.define("Y", (X[i, j] - mean[i]) * tl.rsqrt(variance[i] + 1e-5), i, j))


@pytest.mark.slow
@pytest.mark.parametrize("make", [softmax, layer_norm, two_passes])
@pytest.mark.parametrize(("rows", "columns"), [(9, 132), (5, 77), (70, 12)])
def test_every_form_is_right(make: type, rows: int, columns: int) -> None:
    computation = make(rows, columns)
    found = list(rows_by_lanes(Part.whole(computation), GpuDevice(SIMULATED)))
    assert found
    for _, steps in found:
        plan = Schedule(computation, steps)
        faults = check_schedule(plan, arrays(computation), profile=SIMULATED)
        assert not faults, f"{plan}\n" + "\n".join(faults)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("make", [softmax, layer_norm, two_passes])
def test_rows_are_read_once_and_written_once(make: type, device: str) -> None:
    computation, profile = make(65536, 1024), tl.load_profile(device)
    best = construct(computation, profile)[0]
    assert len(lowered(best.schedule, profile).kernels) == 1
    moved = 65536 * 1024 * 8 / GpuDevice(profile).global_rate
    assert best.estimate.seconds < 2.5 * moved


@pytest.mark.parametrize(("device", "dialect"), [("volta", "cuda"), ("h200", "cuda"), ("cdna3", "hip")])
def test_rows_fit_in_registers(device: str, dialect: str) -> None:
    profile = tl.load_profile(device)
    for computation in (softmax(65536, 1024), layer_norm(8192, 4096)):
        source = tl.compile(construct(computation, profile)[0].schedule, target=tl.target(dialect, profile=device)).source
        for kernel in compile_for_architecture(str(profile.architecture))(source).compiled.kernels:
            assert kernel.stack_bytes == 0 and not kernel.spills


def test_rows_that_no_registers_hold_have_kernels_of_their_own() -> None:
    assert not list(rows_by_lanes(Part.whole(softmax(4, 1_000_000)), GpuDevice(SIMULATED)))
    assert construct(softmax(4, 1_000_000), SIMULATED)


def test_a_schedule_by_hand_is_estimated_by_the_same_rules() -> None:
    """What stages read is read once, and what they compute takes time."""
    y = example("08_softmax").softmax(65536, 1024)
    hand = estimate_schedule(example("08_softmax").softmax_rows(y), tl.load_profile("volta"))
    assert hand.bound < hand.seconds < 1.5 * hand.bound
