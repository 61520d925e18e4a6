"""Constructed schedules for devices whose warps run in lockstep: accepted, within the device, right."""

import dataclasses

import pytest

import tilelang as tl
from tests.autoschedule.test_construct import COMPUTATIONS
from tilelang.autoschedule.common.construct import construct
from tilelang.autoschedule.common.loop_summary import loops_of
from tilelang.autoschedule.common.search_notes import notes
from tilelang.autoschedule.common.task_accesses import nest_of
from tilelang.autoschedule.common.threads import threads_of
from tilelang.autoschedule.gpu.bank_conflicts import layout_phases, phases
from tilelang.autoschedule.gpu.construct import block_front, register_tiles
from tilelang.autoschedule.gpu.device import GpuDevice
from tilelang.autoschedule.gpu.tile import layout_over
from tilelang.autoschedule.models import estimate_schedule, model_of
from tilelang.schedules.task import plan
from tilelang.testing import arrays, check_schedule, lowered

SIMULATED = tl.load_profile("simulated")
DEVICES = [n for n in tl.profiles.files.shipped_profiles() if tl.load_profile(n).lockstep]


@pytest.mark.slow
@pytest.mark.parametrize("name", COMPUTATIONS)
def test_the_first_candidates_are_right(name: str) -> None:
    computation = tl.parse(COMPUTATIONS[name]).computation()
    candidates = construct(computation, SIMULATED)
    times = [c.estimate.seconds for c in candidates]
    assert candidates and times == sorted(times)
    for candidate in candidates[:3]:
        faults = check_schedule(candidate.schedule, arrays(computation), profile=SIMULATED)
        assert not faults, f"{candidate.schedule}\n" + "\n".join(faults)


@pytest.mark.slow
@pytest.mark.parametrize("name", COMPUTATIONS)
def test_every_candidate_is_accepted_and_fits(name: str) -> None:
    computation = tl.parse(COMPUTATIONS[name]).computation()
    for number, device in enumerate(DEVICES):
        profile = tl.load_profile(device)
        for candidate in construct(computation, profile)[number :: len(DEVICES)]:
            program = lowered(candidate.schedule, profile)
            assert program.kernels[-1].shared_bytes <= (profile.memory("shared").capacity_bytes or 0)


def test_what_is_too_small_for_threads_gets_a_schedule_too() -> None:
    text = "computation Y(M = 1, N = 4) { input X: float32[i: M, j: N] output Y[i] = sum[j] X[i, j] }"
    computation = tl.parse(text).computation()
    (only,) = construct(computation, SIMULATED)
    assert not check_schedule(only.schedule, arrays(computation), profile=SIMULATED)


def test_estimates_add_up_and_are_those_of_the_schedule() -> None:
    volta = tl.load_profile("volta")
    for text in COMPUTATIONS.values():
        for candidate in construct(tl.parse(text).computation(), volta)[:4]:
            found = candidate.estimate
            assert found.seconds == pytest.approx(sum(s for _, s in found.parts)) and found.seconds >= found.bound > 0
            assert estimate_schedule(candidate.schedule, volta).seconds == pytest.approx(found.seconds)


def test_the_order_of_factors_is_nothing() -> None:
    """Nor is that of the reads: a table of indices, or a mask, that is read first computes nothing."""
    i, j, k = tl.axes(i=512, j=512, k=512)
    half, B = tl.input("A", tl.float16, i, k), tl.input("B", tl.float32, k, j)
    hopper = tl.load_profile("hopper")
    products = [tl.define("C", tl.sum(x * y, over=k), i, j) for x, y in ((half[i, k], B[k, j]), (B[k, j], half[i, k]))]
    one, other = (construct(tl.schedule(p).computation, hopper)[0].estimate for p in products)
    assert (one.seconds, one.bound) == (other.seconds, other.bound)
    assert one.seconds >= one.bound == pytest.approx((2 * 512**3 - 512**2) / (dict(hopper.rates)["float32_gflops"] * 1e9))
    nests = [nest_of(plan(tl.schedule(p).computation, set())[-1]) for p in products]
    assert all((n.computed, n.multiplied) == (tl.float32, tl.float32) for n in nests)
    table = tl.input("T", tl.int32, i, range=(0, 512))
    gathered = tl.define("C", tl.sum(half[table[i], k] * half[j, k], over=k), i, j)
    nest = nest_of(plan(tl.schedule(gathered).computation, set())[0])
    assert (nest.computed, nest.multiplied) == (tl.float32, tl.float16)


def test_a_rate_that_is_not_known_takes_no_time() -> None:
    volta = tl.load_profile("volta")
    (candidate, *_) = construct(product(512, tl.float32), volta)
    nothing = dataclasses.replace(volta, rates=(), curves=())
    assert estimate_schedule(candidate.schedule, nothing).seconds == 0
    assert construct(product(512, tl.float32), nothing)
    for name, unit in (("launch_us", 1e-6), ("latency_ns", 1e-9)):
        found = estimate_schedule(candidate.schedule, dataclasses.replace(nothing, rates=((name, 50.0),)))
        assert found.seconds >= 50 * unit and found.bottleneck == name.split("_")[0]


def test_a_function_takes_as_long_as_the_unit_for_it() -> None:
    i = tl.axes(i=1 << 16)
    X = tl.input("X", tl.float32, i)
    roots = tl.schedule(tl.define("Y", tl.rsqrt(X[i]), i)).tile(i=256).to(tl.block).tile(i=1).to(tl.thread)
    known = (("clock_ghz", 1.0), ("core_schedulers", 4.0))
    one, eight = (
        estimate_schedule(
            roots, dataclasses.replace(tl.load_profile("volta"), rates=(*known, ("special_instructions", n)), curves=())
        )
        for n in (1.0, 8.0)
    )
    assert eight.seconds > 1.5 * one.seconds > 0


# ---------------------------------------------------------------- what published numbers of devices lead to


def product(n: int, type: tl.DType) -> tl.Computation:
    m, n_, k = tl.axes(m=n, n=n, k=n)
    A, B = tl.input("A", type, m, k), tl.input("B", type, k, n_)
    return tl.schedule(tl.define("C", tl.sum(A[m, k] * B[k, n_], over=k), m, n_)).computation


def tiles_of(profile: tl.Profile, count: int = 10) -> list[tuple[tuple[int, ...], tuple[int, ...]]]:
    """The register tile and the block of the first candidates of a large product."""
    found: list[tuple[tuple[int, ...], tuple[int, ...]]] = []
    for candidate in construct(product(4096, tl.float32), profile)[:count]:
        loops = loops_of(candidate.schedule, profile)[-1]
        threads = threads_of(loops, profile)
        share = threads.share(0)
        found.append(((share["m"], share["n"]), (loops.tiles[1]["m"], loops.tiles[1]["n"])))
    return found


def scaled(profile: tl.Profile, name: str, factor: float) -> tl.Profile:
    return dataclasses.replace(profile, rates=tuple((k, v * factor if k == name else v) for k, v in profile.rates))


def test_tiles_on_numbers_of_a_published_artifact() -> None:
    """Shared memory and register tiles as measured there; its peaks, which its own kernels exceeded, are mended."""
    volta = tl.load_profile("volta")
    whole = tiles_of(volta)
    assert ((8, 4), (128, 64)) in whole
    slower = tiles_of(scaled(volta, "shared_gb_per_s", 0.5))
    fewer = tiles_of(dataclasses.replace(scaled(volta, "core_registers", 0.5), registers_per_thread=127))
    assert ((8, 4), (128, 64)) not in slower and ((8, 4), (128, 64)) not in fewer


def test_growth_says_where_no_tile_hides_memory() -> None:
    device = GpuDevice(tl.load_profile("h200"))
    nest = nest_of(plan(product(8192, tl.float16), set())[-1])
    found = block_front(nest, device, {"m": 64, "n": 64}, 64)
    assert not found.reached and {"m": 128, "n": 256} in found.tiles
    volta = GpuDevice(tl.load_profile("volta"))
    assert register_tiles(nest_of(plan(product(4096, tl.float32), set())[-1]), volta).reached


def test_a_search_says_where_no_block_hides_memory() -> None:
    h200, volta, rapids = (tl.load_profile(name) for name in ("h200", "volta", "sapphire_rapids"))

    def told(type: tl.DType, profile: tl.Profile) -> tuple[str, ...]:
        return notes(product(8192, type), profile, model_of(profile))

    (said,) = told(tl.float16, h200)
    assert said.startswith("C: no blocks that fit are so large that memory takes less time than matrix") and "m=128 n=256" in said
    assert told(tl.float32, volta) == told(tl.float32, rapids) == ()
    (said,) = told(tl.float16, volta)
    assert "a rate for matrix products of float16" in said


@pytest.mark.parametrize("name", ["product", "strided windows", "row sum"])
def test_more_bandwidth_or_cores_take_no_more_time(name: str) -> None:
    computation, volta = tl.parse(COMPUTATIONS[name]).computation(), tl.load_profile("volta")
    for rate in ("global_gb_per_s", "shared_gb_per_s", "float32_gflops"):
        for candidate in construct(computation, volta)[:3]:
            better = estimate_schedule(candidate.schedule, scaled(volta, rate, 2)).seconds
            assert better <= candidate.estimate.seconds * 1.001


def test_phases_are_those_of_the_simulator() -> None:
    at = [128 * (lane % 8) + 16 * (lane // 8) for lane in range(32)]
    assert phases(at, 16, 32, 4) == 32 and phases([16 * lane for lane in range(32)], 16, 32, 4) == 4
    assert phases([0] * 32, 4, 32, 4) == 1 and phases([8 * lane for lane in range(32)], 4, 32, 4) == 2
    padded = layout_over(["k", "m"], 4)
    extents = (("k", 8), ("m", 128))
    assert layout_phases(padded, extents, (("m", 16, 1), ("k", 2, 4)), 32, (4, 1, 32, 4)) == 1
    assert layout_phases(layout_over(["k", "m"], 0), extents, (("m", 16, 1), ("k", 2, 4)), 32, (4, 1, 32, 4)) == 2


# ---------------------------------------------------------------- instructions


def small_product(type: tl.DType, turned: bool) -> tl.Computation:
    m, n, k = tl.axes(m=72, n=80, k=96)
    A = tl.input("A", type, m, k)
    B = tl.input("B", type, n, k) if turned else tl.input("B", type, k, n)
    factor = B[n, k] if turned else B[k, n]
    value = tl.sum(tl.cast(A[m, k], tl.float32) * tl.cast(factor, tl.float32), over=k)
    return tl.schedule(tl.define("C", value, m, n)).computation


@pytest.mark.slow
@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize(
    ("device", "type", "instruction"),
    [("ampere", tl.float16, "mma_m16n8k16"), ("hopper", tl.bfloat16, "mma_m16n8k16_bfloat16"), ("cdna3", tl.float16, "mfma_"),
     ("rdna3", tl.float16, "wmma_16x16x16")],
)  # fmt: skip
def test_products_take_the_instructions_of_a_profile(device: str, type: tl.DType, instruction: str, turned: bool) -> None:
    computation, profile = small_product(type, turned), tl.load_profile(device)
    found = [c for c in construct(computation, profile) if f"do {instruction}" in str(c.schedule)]
    assert found
    faults = check_schedule(found[0].schedule, arrays(computation), profile=profile)
    assert not faults, f"{found[0].schedule}\n" + "\n".join(faults)


def test_the_swizzle_of_an_operand_is_the_one_that_keeps_its_rows_apart() -> None:
    large = product(1024, tl.float16)
    text = next(
        t for c in construct(large, tl.load_profile("ampere")) if "mma_m16n8k16" in (t := str(c.schedule)) and "k=32" in t
    )
    assert "layout (m, k / 8 ^ m / 2 % 4, k % 8) ahead 3" in text and "layout (k, n / 8 ^ k % 8, n % 8) ahead 3" in text
    assert "do ldmatrix_x4 }" in text and "do ldmatrix_x4_trans }" in text
