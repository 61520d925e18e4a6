"""Where curves step: with noise, on ramps, where a level is missing; a disturbed point makes no step."""

import random
from collections.abc import Callable

import pytest

from tilelang.autoschedule.profile.aspects.images import leaning
from tilelang.autoschedule.profile.aspects.local import gain
from tilelang.autoschedule.profile.aspects.residence import pooled
from tilelang.autoschedule.profile.steps import Points, at_once, banks, end_of_floor, granularity, step, transaction

SEEDS = range(5)


def noisy(points: Points, noise: float, seed: int) -> Points:
    draw = random.Random(seed)
    return [(x, y * draw.gauss(1, noise)) for x, y in points]


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("lanes", [4, 8, 16, 32, 64])
def test_lanes_that_run_together_are_a_step(lanes: int, seed: int) -> None:
    points = noisy([(1 << k, 2.0 if 1 << k < lanes else 1.0) for k in range(8)], 0.05, seed)
    found = step(points)
    assert found is not None and found.first == lanes and found.before == pytest.approx(2, rel=0.1)


@pytest.mark.parametrize("seed", SEEDS)
def test_one_level_and_a_ramp_have_no_step(seed: int) -> None:
    assert step(noisy([(1 << k, 1.0) for k in range(8)], 0.08, seed)) is None
    assert step(noisy([(1 << k, 1.4**-k) for k in range(8)], 0.03, seed)) is None
    assert step([(1, 1.0), (2, 1.0), (4, 2.0)]) is None


def test_a_disturbed_point_makes_no_step() -> None:
    points = [(1 << k, 1.0) for k in range(8)]
    assert step([(x, 3.0 if x == 16 else y) for x, y in points]) is None
    assert step([(x, 3.0 if x == 1 else y) for x, y in points]) is None
    found = step([(x, 9.0 if x == 2 else 2.0 if x < 32 else 1.0) for x, _ in points])
    assert found is not None and (found.last, found.first) == (16, 32)


def stair(paid: int) -> Points:
    """Time of threads that are paid for so many at a time."""
    return [(n, float(-(-n // paid))) for k in range(8) for n in (1 << k, (1 << k) + 1)]


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("paid", [1, 4, 16, 32, 64])
def test_a_stair_is_as_deep_as_it_is(paid: int, seed: int) -> None:
    assert granularity(noisy(stair(paid), 0.05, seed)) == paid


def test_where_nothing_costs_time_there_is_no_stair() -> None:
    assert granularity([(x, 1.0) for x, _ in stair(1)]) is None


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("kept", [48, 112, 176])
def test_values_without_a_register_leave_the_floor(kept: int, seed: int) -> None:
    points = noisy([(n, 1.0 if n <= kept else 1.0 + (n - kept) / 40) for n in range(16, 272, 16)], 0.03, seed)
    found = end_of_floor(points)
    assert found is not None and kept <= found <= kept + 32  # a spill that costs less than noise is none yet


def test_a_floor_that_does_not_end() -> None:
    points = [(n, 1.0) for n in range(16, 272, 16)]
    assert end_of_floor(points) is None
    assert end_of_floor([(x, 3.0 if x == 96 else y) for x, y in points]) is None
    assert end_of_floor([(x, 2.0 if 64 < x < 128 else y) for x, y in points]) is None  # it comes back
    assert end_of_floor([]) is None


def waits(resident: int, noise: float, seed: int, grows: float = 0.0) -> Callable[[int], float]:
    """The time of so many blocks of a core, of which so many are there at once."""
    draw = random.Random(seed)
    return lambda count: -(-count // resident) * (1 + grows * min(count, resident)) * draw.gauss(1, noise)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("resident", [1, 2, 3, 5, 8, 13, 31, 32])
def test_blocks_at_once(resident: int, seed: int) -> None:
    assert at_once(waits(resident, 0.05, seed), 64) == resident
    assert at_once(waits(resident, 0.03, seed, grows=0.01), 64) == resident  # the way to memory is a little fuller


def test_no_more_blocks_than_are_tried() -> None:
    assert at_once(waits(100, 0.05, 0), 64) == 64
    assert at_once(waits(100, 0.05, 0), 48) == 48
    assert at_once(waits(40, 0.0, 0), 48) == 40


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(("count", "lanes"), [(16, 16), (32, 32), (32, 16), (32, 64), (64, 32)])
def test_banks_are_the_stride_that_is_worst(count: int, lanes: int, seed: int) -> None:
    points = [(1 << k, max(1.0, lanes / max(1, count // (1 << k)))) for k in range(8)]
    assert banks(noisy(points, 0.05, seed)) == count


def test_memory_without_banks() -> None:
    assert banks([(1 << k, 1.0 + 0.05 * k) for k in range(8)]) is None
    assert banks([(1 << k, 2.0**k) for k in range(8)]) is None  # it still grows: nobody knows where it ends
    assert banks([]) is None
    others = [0.26, 0.13, 0.26, 0.13, 0.18, 0.16, 0.18, 0.18]  # of a processor that others use
    assert banks([(1 << k, y) for k, y in enumerate(others)]) is None


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("moved", [32, 64, 128])
def test_short_runs_waste_the_rest_of_what_is_moved(moved: int, seed: int) -> None:
    points = [(n, 400.0 * min(1, n / moved)) for n in (4, 8, 16, 32, 64, 128, 256, 512)]
    assert transaction(noisy(points, 0.05, seed)) == moved


def test_runs_that_waste_nothing() -> None:
    assert transaction([(n, 400.0) for n in (4, 8, 16, 32)]) is None
    assert (
        transaction([(4, 18.0), (8, 9.0), (16, 8.5), (32, 4.6), (64, 4.7)]) is None
    )  # long runs bring less: something else did that


def test_what_is_said_of_pairs_of_curves() -> None:
    real, same = [(2048, 900.0), (4096, 910.0), (8192, 905.0)], [(2048, 300.0), (4096, 299.0), (8192, 60.0)]
    assert gain(real, same) == pytest.approx(3.04, rel=0.01) and gain(same, same) == 1
    assert pooled([(32, 2048), (64, 1024), (128, 512)]) and not pooled([(32, 512), (64, 512), (128, 512)]) and not pooled([])
    rows, columns = [(16, 100.0), (256, 390.0)], [(16, 380.0), (256, 360.0)]
    assert leaning(rows, columns) > 3 > 1 / 3 > leaning(columns, rows) and leaning(rows, rows) == 1
