"""Samples of clocks that are made up: rounds, repeats, retries, and a probe that does nothing."""

import pytest

from tilelang.autoschedule.profile.sampling import LEAST_SECONDS, REPEATS, enough, sampled, summary
from tilelang.errors import DeviceError


def test_a_sample_takes_a_millisecond() -> None:
    asked = []

    def run(rounds: int) -> float:
        asked.append(rounds)
        return 5e-6 + rounds * 2e-6

    sample = sampled(run)
    assert sample.rounds * 2e-6 + 5e-6 >= LEAST_SECONDS > asked[-REPEATS - 2] * 2e-6
    assert sample.seconds == pytest.approx(2e-6, rel=0.01) and sample.steady and sample.repeats == REPEATS
    assert asked[-REPEATS:] == [sample.rounds] * REPEATS and len(asked) < 12 + REPEATS


def test_one_round_may_suffice() -> None:
    assert enough(lambda rounds: rounds * 0.5) == 1


def test_samples_that_differ_are_taken_again() -> None:
    times = iter([0.01] + [0.01, 0.02] * 5 + [0.01] + [0.01] * 11)
    assert sampled(lambda rounds: next(times)).steady
    assert next(times, None) is None


def test_what_stays_unsteady_is_kept_with_a_warning() -> None:
    times = iter([0.01] + [0.01, 0.02] * 50)
    sample = sampled(lambda rounds: next(times))
    assert not sample.steady and sample.best == 0.01


def test_the_median_is_the_middle() -> None:
    assert summary([3.0, 1.0, 2.0], 1).seconds == 2
    assert summary([4.0, 1.0, 2.0, 3.0], 1).seconds == 2.5
    assert summary([1.0] * 10 + [9.0], 1).spread == 0


def test_a_probe_that_takes_no_time_is_refused() -> None:
    with pytest.raises(DeviceError) as caught:
        sampled(lambda rounds: 1e-9)
    assert caught.value.code == "probe-does-nothing"
