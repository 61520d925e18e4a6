"""Fits on curves whose levels are known: with noise, with ramps between the levels, with a level that is missing."""

import math
import random

import pytest

from tilelang.autoschedule.profile.fits import Points, capacity, line, plateaus, upper_envelope

CACHES = ((48 << 10, 300.0), (2 << 20, 120.0), (1 << 40, 20.0))


def curve(levels: tuple[tuple[int, float], ...], noise: float = 0.0, ramp: float = 1.1, seed: int = 0) -> Points:
    """Bandwidth against footprint: each level up to its capacity, then in `ramp` times the footprint down to the next one."""
    draw, points = random.Random(seed), []
    for quarter in range(40, 113):
        x = 2 ** (quarter / 4)
        height = next(level for size, level in levels if x <= size)
        for (size, before), (_, after) in zip(levels, levels[1:], strict=False):
            if size < x < size * ramp:
                share = math.log(x / size) / math.log(ramp)
                height = before ** (1 - share) * after**share
        points.append((x, height * draw.gauss(1, noise)))
    return points


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize(
    "noise, ramp", [(0.0, 1.1), (0.0, 8.0), (0.01, 2.0), (0.01, 8.0), (0.03, 1.1), (0.03, 2.0), (0.03, 8.0), (0.05, 2.0)]
)
def test_every_level_is_found_and_no_other(noise: float, ramp: float, seed: int) -> None:
    points = curve(CACHES, noise, ramp, seed)
    found = plateaus(points)
    assert [p.level for p in found] == pytest.approx([level for _, level in CACHES], rel=0.04)
    for (size, _), before, after in zip(CACHES, found, found[1:], strict=False):
        assert size / 1.2 <= capacity(before, after, points) <= size * ramp


def test_a_missing_level_is_not_invented() -> None:
    assert len(plateaus(curve((CACHES[0], CACHES[2]), 0.03, 4.0))) == 2
    assert len(plateaus(curve(CACHES[2:], 0.03))) == 1


def test_a_ramp_alone_has_no_plateau() -> None:
    assert plateaus([(2 ** (k / 4), 2 ** (-k / 8)) for k in range(60)]) == ()
    assert plateaus([]) == plateaus([(1, 1), (2, 1)]) == ()


def test_latencies_rise() -> None:
    points = [(x, 1e3 / y) for x, y in curve(CACHES, 0.02)]
    assert [p.level for p in plateaus(points, falling=False)] == pytest.approx([1000 / 300, 1000 / 120, 50], rel=0.04)
    before, after, _ = plateaus(points, falling=False)
    assert 40 << 10 <= capacity(before, after, points) <= 56 << 10


def test_a_disturbed_point_makes_no_level() -> None:
    points = [(x, y * (0.4 if k in (10, 50) else 1)) for k, (x, y) in enumerate(curve(CACHES, 0.01))]
    assert [p.level for p in plateaus(points)] == pytest.approx([300, 120, 20], rel=0.03)


def test_a_hill_that_rises_again_is_no_fall() -> None:
    """Where a sweep leaves what it measures (reads past an image's edge), the curve climbs: no level of its own."""
    points = [(x, y if x < 1 << 24 else 290.0) for x, y in curve(CACHES)]
    assert [p.level for p in plateaus(points)] == pytest.approx([300, 120, 20], rel=0.03)


def test_envelopes_are_never_below_a_point() -> None:
    draw = random.Random(1)
    points = [(x, 100 * 2.0**-x * (1 - draw.random() / 4)) for x in range(1, 9) for _ in range(5)]
    envelope = upper_envelope(points)
    assert all(y <= dict(envelope)[x] for x, y in points)
    assert [x for x, _ in envelope] == list(range(1, 9))
    assert [y for _, y in envelope] == sorted((y for _, y in envelope), reverse=True)


def test_a_line_through_disturbed_points() -> None:
    points = [(n, 50 + 0.3 * n + (400 if n == 64 else 0)) for n in (1, 4, 16, 64, 256, 1024)]
    assert line(points) == pytest.approx((0.3, 50), rel=1e-6)


def test_a_plateau_does_not_begin_on_a_ramp() -> None:
    """Measured on a processor: a second-level cache of 2 MB whose edge is soft, then what all cores share, then memory."""
    heights = [
        634,
        365,
        358,
        362,
        357,
        362,
        364,
        357,
        355,
        260,
        289,
        182,
        137,
        102,
        71,
        60,
        58.7,
        57.9,
        57,
        56.2,
        55,
        54,
        55,
        56,
        57,
    ]
    points = [(2 ** (15.5 + k / 3), float(y)) for k, y in enumerate([640, 634, 637, *heights])]
    near, own, shared = plateaus(points, tolerance=0.06)
    assert (own.level, shared.level) == pytest.approx((357, 56.5), rel=0.02)
    assert shared.first > 15 * own.last / 8 and own.last < capacity(own, shared, points) < shared.first
