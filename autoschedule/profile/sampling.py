"""Reliable times: enough iterations per sample, the median of several samples, repeated if they differ.

A run is a function of a number of iterations that returns their time in seconds.
"""

from __future__ import annotations

import dataclasses
import math
import statistics
from collections.abc import Callable, Sequence

from tilelang.errors import DeviceError

Run = Callable[[int], float]
LEAST_SECONDS = 1e-3  # per sample
REPEATS = 11
MOST_SPREAD = 0.03
TRIES = 3
MOST_ROUNDS = 1 << 24


@dataclasses.dataclass(frozen=True)
class Sample:
    """The seconds of one iteration: the median of `repeats`, the interquartile range as a share of it, and the least as `best`."""

    seconds: float
    spread: float
    best: float
    repeats: int
    rounds: int

    @property
    def steady(self) -> bool:
        """Whether the repeats agree; if not, the sample is kept with a warning."""
        return self.spread <= MOST_SPREAD


def sampled(run: Run, rounds: int = 1, repeats: int = REPEATS) -> Sample:
    """The time of one iteration of a run, from at least `repeats` samples of at least a millisecond each; the steadiest of up
    to three tries."""
    rounds = enough(run, rounds)
    tries: list[Sample] = []
    while len(tries) < TRIES and not any(sample.steady for sample in tries):
        tries.append(summary([run(rounds) / rounds for _ in range(repeats)], rounds))
    return min(tries, key=lambda sample: sample.spread)


def enough(run: Run, rounds: int = 1) -> int:
    """A number of iterations that takes at least a millisecond. Raises DeviceError if no number does, because the compiler
    removed the work."""
    while (seconds := run(rounds)) < LEAST_SECONDS:
        if rounds >= MOST_ROUNDS:
            message = f"{rounds} rounds of a probe take {seconds:.2g} s: the device's compiler took its work away"
            raise DeviceError("probe-does-nothing", message, help="exclude this aspect: --aspect names those that are measured")
        factor = 1.25 * LEAST_SECONDS / seconds if seconds > 0 else 16.0
        rounds = min(MOST_ROUNDS, max(rounds + 1, math.ceil(rounds * min(factor, 16.0))))
    return rounds


def summary(values: Sequence[float], rounds: int) -> Sample:
    """The median of some times, and their interquartile range as a share of it.

    >>> summary([1.0, 1.1, 0.9, 5.0, 1.0], 1)
    Sample(seconds=1.0, spread=0.10000000000000009, best=0.9, repeats=5, rounds=1)
    """
    middle = statistics.median(values)
    quarters = statistics.quantiles(values, n=4, method="inclusive")
    return Sample(middle, (quarters[2] - quarters[0]) / middle, min(values), len(values), rounds)
