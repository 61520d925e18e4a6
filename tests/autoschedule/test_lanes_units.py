"""Products by the matrix instructions of warps, by construction: split reductions, results through shared memory, licences, banks."""

import dataclasses

import pytest

import tilelang as tl
from benchmarks.gpu_cases import example
from tilelang.autoschedule.common.construct import construct
from tilelang.autoschedule.common.loop_summary import loops_of
from tilelang.autoschedule.common.task_accesses import nest_of
from tilelang.autoschedule.gpu.device import GpuDevice
from tilelang.autoschedule.gpu.matrix_tiles import fits, grids, warp_tiles
from tilelang.computations.computation import Computation, as_computation
from tilelang.lowering.pipeline import lower
from tilelang.lowering.simulator.simulate import run
from tilelang.schedules.schedule import Schedule
from tilelang.schedules.task import plan
from tilelang.testing import arrays, check_schedule


def product(m: int, n: int, k: int, type: tl.DType = tl.float16) -> Computation:
    return as_computation(example("01_matmul").matmul(m, n, k, type))


def by_tf32(m: int, n: int, k: int) -> Computation:
    return as_computation(example("16_matrix_types").matmul(m, n, k))


@pytest.mark.slow
@pytest.mark.parametrize("device", ["ampere", "ada", "h200", "blackwell", "cdna2", "cdna3", "rdna3"])
@pytest.mark.parametrize(("n", "k"), [(1000, 4032), (4032, 1000)])
def test_few_rows_fill_the_device(device: str, n: int, k: int) -> None:
    """Products of 128 rows: several blocks share a reduction, so that few cores are without one."""
    profile = tl.load_profile(device)
    best = construct(product(128, n, k), profile)[0]
    loops = loops_of(best.schedule, profile)[-1]
    assert loops.instruction is not None and loops.units("block") >= GpuDevice(profile).cores / 3
    one = construct(product(128, n, k // 4), profile)[0].estimate.seconds
    assert best.estimate.seconds < 4 * one, "longer reductions cost less than in proportion"


@pytest.mark.slow
@pytest.mark.parametrize("device", ["ampere", "cdna3"])
def test_a_reduction_that_blocks_share_is_right(device: str) -> None:
    computation, profile = product(72, 64, 1024), tl.load_profile(device)
    split = next(
        c for c in construct(computation, profile) if "k=" in str(c.schedule).split("-> block")[0] and "do m" in str(c.schedule)
    )
    faults = check_schedule(split.schedule, arrays(computation), profile=profile)
    assert not faults, f"{split.schedule}\n" + "\n".join(faults)


@pytest.mark.slow
@pytest.mark.parametrize("device", ["ampere", "cdna3", "rdna3"])
def test_results_of_16_bits_go_through_shared_memory(device: str) -> None:
    computation, profile = product(72, 80, 96), tl.load_profile(device)
    via = next(c for c in construct(computation, profile) if "via shared" in str(c.schedule))
    assert "-> thread; vectorize n=8 }" in str(via.schedule)
    faults = check_schedule(via.schedule, arrays(computation), profile=profile)
    assert not faults, f"{via.schedule}\n" + "\n".join(faults)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("device", "type"),
    [("ampere", tl.float16), ("cdna2", tl.float16), ("cdna3", tl.float16), ("rdna3", tl.float16), ("ampere", tl.float32)],
    ids=str,
)
def test_no_lane_waits_for_a_bank(device: str, type: tl.DType) -> None:
    """The first candidate of a large product, on a small one of which every tile is full."""
    profile = tl.load_profile(device)
    large, small = ((by_tf32(n, n, k) if type == tl.float32 else product(n, n, k)) for n, k in ((4096, 4096), (256, 64)))
    best = construct(large, profile)[0]
    assert "do " in str(best.schedule)
    program = lower(small, Schedule(small, best.steps).steps, profile)
    report = run(program, arrays(small))
    assert not report.findings and sum(count.total for count in report.conflicts) == 0, best.schedule


@pytest.mark.slow
def test_tf32_is_taken_only_where_the_definition_gives_leave() -> None:
    for device in ("ampere", "h200"):
        profile = tl.load_profile(device)
        assert not any("tf32" in str(c.schedule) for c in construct(product(1024, 1024, 1024, tl.float32), profile))
        allowed = construct(by_tf32(1024, 1024, 1024), profile)[0]
        exact = construct(product(1024, 1024, 1024, tl.float32), profile)[0]
        assert "do mma_m16n8k8_tf32" in str(allowed.schedule) and allowed.estimate.seconds < exact.estimate.seconds
    computation = by_tf32(72, 80, 40)
    first = next(c for c in construct(computation, tl.load_profile("ampere")) if "tf32" in str(c.schedule))
    faults = check_schedule(first.schedule, arrays(computation), profile=tl.load_profile("ampere"))
    assert not faults, f"{first.schedule}\n" + "\n".join(faults)


@pytest.mark.parametrize("device", ["ampere", "cdna3", "rdna3"])
def test_tiles_of_warps_are_instructions_that_fill_registers(device: str) -> None:
    profile = tl.load_profile(device)
    fewer = dataclasses.replace(profile, registers_per_thread=(profile.registers_per_thread + 1) // 2)
    nest = nest_of(plan(product(512, 512, 512), set())[-1])
    for fit in fits(nest, GpuDevice(profile), "register"):
        rows, columns, _ = (fit.made.shape[a] for a, _ in fit.binding)
        found = warp_tiles(fit, GpuDevice(profile))
        assert found and all(m % rows == n % columns == 0 for m, n in found)
        largest, smaller = (max(m * n for m, n in warp_tiles(fit, GpuDevice(p))) for p in (profile, fewer))
        assert largest == 2 * smaller == (profile.registers_per_thread + 1) // 2 * profile.warp_size
    schedulers = int(dict(profile.rates)["core_schedulers"])
    assert max(a * b for a, b in grids(GpuDevice(profile))) == 4 * schedulers and grids(
        GpuDevice(dataclasses.replace(profile, rates=()))
    )


@pytest.mark.parametrize("profile", ["ampere", "adreno640"])
def test_a_dot_product_whose_result_has_no_dimensions_is_estimated(profile: str) -> None:
    plan = tl.parse("""
        computation f {
          input X: float32[j: 13, r: 16]
          input A: float32[t: 16, r: 16]
          output P[j, t] = sum[r] X[j, r] * A[t, r]
        }
        schedule for f {
          tile j=4 t=8 -> block
          accumulate in register
          tile j=1 t=2 -> thread
          split r=4
          load X in register { vectorize r=4 }
          load A in register { vectorize r=4 }
          do opencl_dot4 (k=r)
        }
    """).schedule()
    assert tl.compile(plan, tl.target("opencl", profile=profile)).estimate.seconds > 0
