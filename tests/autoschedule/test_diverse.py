"""Candidates to be timed: the likeliest first, and none that is all but one that was chosen while another one is nearly as good."""

import tilelang as tl
from tests.errors._computations import matmul
from tilelang.autoschedule.common.complete import candidates
from tilelang.autoschedule.tune.diverse import NEARNESS, distance, diverse, traits_of
from tilelang.options import Options
from tilelang.runtime import schedule_selection
from tilelang.schedules.steps import Step

START = tl.schedule(matmul(256, 512, 128))


def tiled(m: int, n: int, packed: bool = False) -> tuple[Step, ...]:
    made = START.tile(m=m, n=n).to(tl.block)
    return (made.load("B", tl.shared, layout=tl.layout(lambda k, n: (n // 16, k, n % 16))) if packed else made).steps


def test_the_fastest_comes_first_and_near_ones_later() -> None:
    far = 1 + NEARNESS / 2
    given = [
        (tiled(16, 32), 1.0),
        (tiled(16, 33), 1.001),
        (tiled(16, 34), 1.002),
        (tiled(64, 128), far),
        (tiled(16, 32, True), far),
    ]
    assert diverse(given, 3) == [0, 3, 4, 1, 2]
    assert diverse(given, 0) == [0, 1, 2, 3, 4] and diverse(list(reversed(given)), 1)[0] == 4
    assert diverse([], 8) == []


def test_what_is_much_slower_does_not_come_before_what_is_near() -> None:
    slow = 1 + 2 * NEARNESS
    assert diverse([(tiled(16, 32), 1.0), (tiled(16, 33), 1.0), (tiled(64, 256, True), slow)], 2)[:2] == [0, 1]


def test_distances_count_extents_and_places() -> None:
    one = traits_of(tiled(16, 32))
    assert distance(one, one) == 0 and distance(one, traits_of(tiled(32, 64))) == 2
    assert distance(one, traits_of(tiled(16, 1 << 8))) == 2  # not more for one extent
    assert distance(one, traits_of(tiled(16, 32, True))) == 2


def test_trials_are_of_diverse_candidates_and_no_trials_of_the_likeliest() -> None:
    profile = tl.load_profile("sapphire_rapids")
    ranked = [c.schedule.text for c in candidates(START.computation, profile)]
    plain, tried = (
        [s.text for s in schedule_selection.constructed(START.computation, profile, Options(), n)][:8] for n in (0, 8)
    )  # fmt: skip
    assert plain == ranked[:8] and tried[0] == plain[0] and set(tried) < set(ranked)
    assert tried != plain
    # As many as there are, and more of them than without trials.
    many = len(list(schedule_selection.constructed(START.computation, profile, Options(), 30)))
    assert schedule_selection.MOST_TRIED < many <= len(ranked) + 1
