"""The lower bound: of a computation, below every schedule's time and every time ever measured."""

import dataclasses
import json
import re
from pathlib import Path
from typing import Any

import pytest

import tilelang as tl
from benchmarks import operators_cases
from tests.autoschedule.test_construct import COMPUTATIONS
from tilelang.autoschedule.common.construct import construct
from tilelang.autoschedule.common.lower_bound import SPREAD, bandwidth, bound, needs, peak
from tilelang.computations.computation import Computation, as_computation
from tilelang.core.dtype import DType
from tilelang.instructions.instruction import Instruction, known
from tilelang.profiles.files import shipped_profiles
from tilelang.profiles.profile import Curve, Profile

POCL = tl.load_profile("sapphire_rapids")
RESULTS = Path(operators_cases.__file__).parent / "results" / "operators.jsonl"


def flops(computation: Computation) -> float:
    return sum(needs(computation)[1].values())


def elements(computation: Computation) -> dict[str, float]:
    return needs(computation)[0]


def measured_on(row: dict[str, Any]) -> tl.Profile:
    """The shipped profile of the processor that a row was measured on; rows that name none are of the first one."""
    numbers = " ".join(re.findall(r"\d+", row.get("processor", "").rpartition("(")[2]))
    names = [n for n in shipped_profiles() if any(p.endswith(f" {numbers}") for p in tl.load_profile(n).processors)]
    return tl.load_profile(names[0]) if numbers and names else POCL


@pytest.mark.slow
def test_nothing_measured_lies_below_it() -> None:
    """Times of schedules and of other libraries, alone and in a row, each on the device of its profile."""
    known = {o.id: o for o in (*operators_cases.read(), *operators_cases.SQUARES)}
    rows = [json.loads(line) for line in RESULTS.read_text().splitlines()]
    assert len(rows) > 100
    for row in rows:
        least = bound(as_computation(known[row["operator"]].computation()), measured_on(row)) * 1e6
        times = [us for what in ("row_us", "alone_us", "ranked_us") for us in row.get(what, {}).values()]
        assert 0 < least <= min(times, default=least), (
            f"{row['operator']}: {min(times):.1f} us measured, no less than {least:.1f}"
        )


def test_what_depends_on_fewer_axes_is_computed_once_for_each_point_of_these() -> None:
    i, j, k = tl.axes(i=30, j=40, k=50)
    A, B = tl.input("A", tl.float32, i, k), tl.input("B", tl.float32, k, j)
    C = tl.define("C", tl.sum(tl.exp(A[i, k]) * B[k, j], over=k), i, j)
    assert flops(as_computation(C)) == 30 * 50 + 2 * 30 * 40 * 50 - 30 * 40  # the first of the products is added to nothing


def test_of_a_border_only_what_lies_inside_is_counted() -> None:
    text = COMPUTATIONS["convolution"]
    computation = tl.parse(text).computation()
    (name, whole) = next((t.name, t.shape) for t in computation.inputs if t.name == "X")
    n, c, h, w = whole
    padded = flops(computation)
    f, p, q = computation.outputs[0].shape[1:]
    kernel = next(t.shape for t in computation.inputs if t.name != name)
    every = 2 * n * f * p * q * c * kernel[-1] * kernel[-2]
    assert 0.8 * every < padded < every


def test_a_border_of_long_axes_is_not_counted_point_by_point() -> None:
    i, j = tl.axes(i=10**9, j=10**9)
    x = tl.input("X", tl.float32, tl.axes(k=10**9))
    shifted = tl.define("Y", tl.sum(tl.pad(x[i + j - 5], 0.0), over=j), i)
    assert bound(as_computation(shifted), POCL) > 0


def test_what_is_not_read_need_not_be_moved_or_computed() -> None:
    i, j = tl.axes(i=100, j=64)
    X = tl.input("X", tl.float32, i=200, j=64)
    half = as_computation(tl.define("Y", X[2 * i, j] + 1, i, j))
    assert elements(half) == {"X": 6400, "Y": 6400} and flops(half) == 6400
    r = tl.axes(r=200)
    E = tl.define("E", tl.exp(X[r, j]), r, j)
    assert flops(as_computation(tl.define("Y", E[2 * i, j], i, j))) == 6400


def test_a_condition_is_counted_where_it_holds() -> None:
    i, k = tl.axes(i=100, k=100)
    A, x = tl.input("A", tl.float32, i, k), tl.input("x", tl.float32, k)
    lower = as_computation(tl.define("y", tl.sum(A[i, k] * x[k], over=k, where=k <= i), i))
    assert flops(lower) == 2 * 5050 - 100 and "A" not in elements(lower)
    chosen = as_computation(tl.define("y", tl.where(x[k] > 0, x[k], A[0, k]), k))
    assert elements(chosen) == {"y": 100, "x": 100}


def test_several_tasks_read_and_write_once_what_enters_and_leaves() -> None:
    i, j = tl.axes(i=2048, j=1024)
    X = tl.input("X", tl.float32, i, j)
    M = tl.define("M", tl.max(X[i, j], over=j), i)
    S = tl.define("S", tl.sum(tl.exp(X[i, j] - M[i]), over=j), i)
    softmax = as_computation(tl.define("Z", tl.exp(X[i, j] - M[i]) / S[i], i, j))
    copy = as_computation(tl.define("Z", X[i, j], i, j))
    rates = dataclasses.replace(POCL, rates=(("global_gb_per_s", 50.0),), curves=(), memories=())
    assert bound(softmax, rates) == bound(copy, rates) == pytest.approx(2 * 4 * 2048 * 1024 / 50e9 / SPREAD)


def profile_of(*memories: tuple[str, int], cores: int = 2, curves: tuple[Curve, ...] = (), **rates: float) -> Profile:
    caches = tuple(dataclasses.replace(POCL.memory(name), capacity_bytes=size) for name, size in memories)
    return dataclasses.replace(POCL, compute_units=cores, memories=caches, rates=tuple(rates.items()), curves=curves)


def test_a_footprint_moves_at_the_rate_of_the_nearest_memory_that_it_fits() -> None:
    profile = profile_of(("l1", 1000), ("l2", 4000), l1_bytes_per_cycle=64.0, cycle_ns=0.5, global_gb_per_s=10.0)
    assert bandwidth(profile, 2000, ()) == 2 * 64 / 0.5
    assert bandwidth(profile, 2001, ()) is None  # what the second cache gives is not known
    assert bandwidth(profile, 8001, ()) == 10


def test_what_fits_a_cache_moves_as_fast_as_anything_that_needs_it() -> None:
    """A cache that others share holds more of a footprint at another time: over it the rate measured there is not a limit."""
    curve = Curve(
        "read_bandwidth", "footprint_bytes", "gb_per_s", ((500.0, 100.0), (2000.0, 80.0), (3500.0, 20.0), (6000.0, 10.0))
    )
    profile = profile_of(("l1", 1000), ("l2", 4000), cores=1, curves=(curve,))
    found = [bandwidth(profile, size, ("read_bandwidth",)) for size in (900, 1001, 2000, 3600, 4000, 4001, 6000)]
    assert found == [100, 80, 80, 80, 80, 20, 10]


def test_what_a_cache_holds_may_lie_there_from_the_launch_before() -> None:
    """Of 32,000 bytes all but these come from beyond; a cache whose rate is unknown gives them at once."""
    i = tl.axes(i=4000)
    copy = as_computation(tl.define("Y", tl.input("X", tl.float32, i)[i], i))
    profile = profile_of(
        ("l1", 1000), ("l2", 4000), l1_bytes_per_cycle=32.0, l2_bytes_per_cycle=16.0, cycle_ns=0.5, global_gb_per_s=10.0
    )
    beyond, near, nearest = 24000 / 10, 6000 / 64, 2000 / 128
    assert bound(copy, profile) == pytest.approx((beyond + near + nearest) * 1e-9 / SPREAD)
    unknown = dataclasses.replace(profile, rates=tuple((n, r) for n, r in profile.rates if n != "l2_bytes_per_cycle"))
    assert bound(copy, unknown) == pytest.approx((beyond + nearest) * 1e-9 / SPREAD)


def test_what_enters_may_move_beside_what_leaves() -> None:
    """Where either was measured by itself; a documented rate is of both together."""
    i = tl.axes(i=1 << 20)
    copy = as_computation(tl.define("Y", tl.input("X", tl.float32, i)[i], i))
    curve = Curve("read_bandwidth", "footprint_bytes", "gb_per_s", ((1000.0, 10.0),))
    measured, documented = profile_of(curves=(curve,)), profile_of(global_gb_per_s=10.0)
    one_side = 4 * (1 << 20) / 10e9 / SPREAD
    assert bound(copy, measured) == pytest.approx(one_side) and bound(copy, documented) == pytest.approx(2 * one_side)


@pytest.mark.parametrize("name", shipped_profiles())
def test_more_bytes_take_no_less_time(name: str) -> None:
    profile, found = tl.load_profile(name), []
    for extent in sorted({round(1000 * 1.1**k) for k in range(150)} | {1 << 19, (1 << 19) + 1}):
        i = tl.axes(i=extent)
        found.append(bound(as_computation(tl.define("Y", tl.input("X", tl.float32, i)[i], i)), profile))
    assert found == sorted(found)


@pytest.mark.parametrize("extent", [1 << 10, 1 << 22, 1 << 27, 1 << 30])
def test_no_copy_is_estimated_below_it(extent: int) -> None:
    i = tl.axes(i=extent)
    for candidate in construct(as_computation(tl.define("Y", tl.input("X", tl.float32, i)[i], i)), POCL):
        assert candidate.estimate.seconds >= candidate.estimate.bound > 0


def test_what_is_assumed_bounds_nothing() -> None:
    """A cache of an assumed rate is as fast as it likes, and what fits it has no bound."""
    cdna, blackwell = tl.load_profile("cdna3"), tl.load_profile("blackwell")
    assert (blackwell.source("rates.l2_gb_per_s") or "").startswith("assumed") and bandwidth(blackwell, 1e7, ()) is None
    assert bandwidth(blackwell, 1e9, ()) == blackwell.rate("global_gb_per_s")
    assert [bandwidth(cdna, size, ()) for size in (1e8, 1e9)] == [cdna.rate("l3_gb_per_s"), cdna.rate("global_gb_per_s")]


def test_a_curve_is_read_as_an_envelope() -> None:
    """One disturbed point does not make the bound higher; what is reached with more bytes is reached with fewer."""
    curve = Curve(
        "read_bandwidth", "footprint_bytes", "gb_per_s", ((1000.0, 100.0), (2000.0, 20.0), (4000.0, 60.0), (8000.0, 10.0))
    )
    profile = profile_of(cores=1, curves=(curve,))
    found = [bandwidth(profile, size, ("read_bandwidth",)) for size in (10, 1500, 2500, 7999, 8000, 1e9)]
    assert found == [100, 100, 60, 60, 10, 10]


def products(profile: Profile) -> list[tuple[Instruction, DType, str]]:
    """The instructions that a profile lists for products, with what each multiplies and the name of its rate."""
    found = []
    for made in known():
        factors = [o for o in made.operands if o.name != made.writes]
        if made.kind == "update" and made.needs and all(map(profile.can, made.needs)) and len(factors) == 2:
            for type in factors[0].dtypes:
                found.append((made, type, f"matrix_{made.licences[0] if made.licences else type.name}_gflops"))
    return found


@pytest.mark.parametrize("name", shipped_profiles())
def test_no_instruction_is_faster_than_the_peak(name: str) -> None:
    """Where its own rate is unknown, nothing is a peak, whatever lanes are known to do."""
    profile = tl.load_profile(name)
    for made, type, rate in products(profile):
        (computed,) = made.operand(made.writes).dtypes
        least = peak(profile, computed, type, made.licences)
        assert least is None or least >= dict(profile.rates)[rate], f"{made.name}: {least}"
        unknown = dataclasses.replace(profile, rates=tuple((n, r) for n, r in profile.rates if n != rate))
        assert not profile.lockstep or peak(unknown, computed, type, made.licences) is None, made.name


@pytest.mark.parametrize("name", [name for name in shipped_profiles() if tl.load_profile(name).has_level("warp")])
def test_every_matrix_instruction_has_a_rate_where_documents_have_one(name: str) -> None:
    profile = tl.load_profile(name)
    missing = {rate for made, _, rate in products(profile) if made.level != "thread" and profile.architecture}
    assert missing <= {rate for rate, _ in profile.rates}


def square(n: int, type: DType, computed: DType) -> Computation:
    i, j, k = tl.axes(i=n, j=n, k=n)
    A, B = tl.input("A", type, i, k), tl.input("B", type, k, j)
    return as_computation(tl.define("C", tl.sum(tl.cast(A[i, k], computed) * tl.cast(B[k, j], computed), over=k), i, j))


def test_an_instruction_without_a_rate_is_not_held_to_that_of_lanes() -> None:
    """The lanes of the one multiply four such numbers in an instruction; the rate of the other's matrix instructions is known."""
    volta, blackwell = tl.load_profile("volta"), tl.load_profile("blackwell")
    product = square(1024, tl.int8, tl.int32)
    moving = dataclasses.replace(volta, rates=tuple((n, r) for n, r in volta.rates if not n.endswith("gflops")))
    assert 0 < bound(product, volta) == bound(product, moving)
    by_lanes = flops(product) / (blackwell.rate("float32_gflops") or 0) * 1e-9
    assert bound(product, blackwell) < construct(product, blackwell)[0].estimate.seconds < by_lanes


def test_a_type_without_a_rate_has_no_peak() -> None:
    mali, ada = tl.load_profile("mali_g76"), tl.load_profile("ada")
    assert peak(mali, tl.float64) is peak(POCL, tl.bfloat16) is peak(ada, tl.int64) is None
    assert (peak(ada, tl.float64) or 0) < (peak(ada, tl.float32) or 0) / 60
