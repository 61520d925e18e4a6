"""The record of a probe: every raw time, and the numbers derived from them, each with its method."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence

from tilelang.autoschedule.profile.sampling import MOST_SPREAD, REPEATS, Run, Sample, sampled
from tilelang.profiles.profile import Curve, Profile


class NotApplicable(Exception):
    """An aspect asks for something that such a device does not have, or that cannot be said of it; the text says why."""


@dataclasses.dataclass(frozen=True)
class Row:
    """A raw measurement: the seconds of one round of a probe at x, and how far its repeats lie apart."""

    series: str
    x: float
    seconds: float
    spread: float
    best: float
    repeats: int
    rounds: int


@dataclasses.dataclass(frozen=True)
class Fact:
    """A field of a memory or of a level, as `ways` of `l1`."""

    of: str
    field: str
    value: int
    source: str


class Findings:
    """What one aspect finds. known: the rates that are known already; repeats: of each sample; tick: called after each sample; so_far:
    the device's profile with all that aspects before found (None: none was asked)."""

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
        """Times a run and notes it; per: what is done in one round, so that the sample is of one of it."""
        found = sampled(run, rounds, self.repeats)
        sample = dataclasses.replace(found, seconds=found.seconds / per, best=found.best / per)
        self.rows.append(Row(series, x, sample.seconds, sample.spread, sample.best, sample.repeats, sample.rounds))
        self._tick(series)
        return sample

    def note(self, series: str, points: Sequence[tuple[float, float]], rounds: int) -> None:
        """Notes single times that are not repeats of each other, as seconds against x."""
        self.rows += [Row(series, x, y, 0.0, y, 1, rounds) for x, y in points]

    def warnings(self) -> list[str]:
        """What was remarked; what is kept although its repeats differ, in a line."""
        loose = [row for row in self.rows if row.spread > MOST_SPREAD]
        if not loose:
            return self.remarks
        worst = max(loose, key=lambda row: row.spread)
        kept = f"the repeats of {len(loose)} of {len(self.rows)} samples differ by more than {MOST_SPREAD:.0%}"
        return [*self.remarks, f"{kept}, the most by {worst.spread:.0%}: {worst.series} at {worst.x:g}"]

    def rate(self, name: str, value: float, how: str, by: str = "measured") -> None:
        """Notes a number, its unit in the name; later aspects know it. Counts are kept whole. by: what found it, where that is no
        measurement."""
        self.rates[name] = (float(value if isinstance(value, int) else f"{value:.4g}"), f"{by}: {how}")
        self.known[name] = value

    def curve(self, name: str, x: str, y: str, points: Sequence[tuple[float, float]], how: str) -> None:
        """Notes a relation."""
        rounded = tuple((float(f"{a:.8g}"), float(f"{b:.4g}")) for a, b in sorted(points))
        self.curves.append((Curve(name, x, y, rounded), f"measured: {how}"))

    def fact(self, of: str, field: str, value: int, how: str) -> None:
        """Notes a field of a memory, or of a level."""
        self.facts.append(Fact(of, field, value, f"measured: {how}"))
