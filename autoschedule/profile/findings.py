"""The record of a probe: every raw time, and the numbers derived from them, each with its method."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence

from tilelang.autoschedule.profile.sampling import MOST_SPREAD, REPEATS, Run, Sample, sampled
from tilelang.profiles.profile import Curve, Profile


class NotApplicable(Exception):
    """An aspect does not apply to this kind of device, or cannot be measured on it; the text says why."""


@dataclasses.dataclass(frozen=True)
class Row:
    """A raw measurement: the seconds of one iteration of a probe at x, and the spread of its repeats."""

    series: str
    x: float
    seconds: float
    spread: float
    best: float
    repeats: int
    rounds: int


@dataclasses.dataclass(frozen=True)
class Fact:
    """A field of a memory or a level, such as `ways` of `l1`."""

    of: str
    field: str
    value: int
    source: str


class Findings:
    """The results of one aspect.

    known: the rates known so far; repeats: of each sample; tick: called after each sample; so_far: the device's profile with the
    results of earlier aspects (None: none were measured).
    """

    def __init__(
        self, known: Mapping[str, float], repeats: int = REPEATS, tick: Callable[[str], object] = lambda series: None,
        so_far: Profile | None = None,
    ) -> None:  # fmt: skip
        self.known, self.repeats, self._tick, self.so_far = dict(known), repeats, tick, so_far
        self.rows: list[Row] = []
        self.rates: dict[str, tuple[float, str]] = {}
        self.curves: list[tuple[Curve, str]] = []
        self.facts: list[Fact] = []
        self.remarks: list[str] = []

    def time(self, series: str, x: float, run: Run, per: float = 1.0, rounds: int = 1) -> Sample:
        """Times a run and records it. per: the number of operations in one iteration; the sample is then of one operation."""
        found = sampled(run, rounds, self.repeats)
        sample = dataclasses.replace(found, seconds=found.seconds / per, best=found.best / per)
        self.rows.append(Row(series, x, sample.seconds, sample.spread, sample.best, sample.repeats, sample.rounds))
        self._tick(series)
        return sample

    def note(self, series: str, points: Sequence[tuple[float, float]], rounds: int) -> None:
        """Records single times, which are not repeats of each other, as seconds against x."""
        self.rows += [Row(series, x, y, 0.0, y, 1, rounds) for x, y in points]

    def warnings(self) -> list[str]:
        """The remarks, and a line about samples whose repeats differ."""
        loose = [row for row in self.rows if row.spread > MOST_SPREAD]
        if not loose:
            return self.remarks
        worst = max(loose, key=lambda row: row.spread)
        kept = f"the repeats of {len(loose)} of {len(self.rows)} samples differ by more than {MOST_SPREAD:.0%}"
        return [*self.remarks, f"{kept}, the most by {worst.spread:.0%}: {worst.series} at {worst.x:g}"]

    def rate(self, name: str, value: float, how: str, by: str = "measured") -> None:
        """Records a number, with its unit in the name; later aspects can use it. Counts stay integers. by: its origin if it
        was not measured."""
        self.rates[name] = (float(value if isinstance(value, int) else f"{value:.4g}"), f"{by}: {how}")
        self.known[name] = value

    def curve(self, name: str, x: str, y: str, points: Sequence[tuple[float, float]], how: str) -> None:
        """Records a curve."""
        rounded = tuple((float(f"{a:.8g}"), float(f"{b:.4g}")) for a, b in sorted(points))
        self.curves.append((Curve(name, x, y, rounded), f"measured: {how}"))

    def fact(self, of: str, field: str, value: int, how: str) -> None:
        """Records a field of a memory or a level."""
        self.facts.append(Fact(of, field, value, f"measured: {how}"))
