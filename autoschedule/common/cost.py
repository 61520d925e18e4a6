"""Estimates the time of a schedule by a model of the device. Nothing is run.

Every model counts operations and accesses in the loops that `loops_of` derives from a schedule, whether written by hand or generated,
and multiplies them by rates of the profile. A rate that the profile lacks counts as no time.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from typing import Self

from tilelang.renamed import moved

__getattr__ = moved(__name__, dict.fromkeys(("estimate_schedule", "estimate_loops"), "tilelang.autoschedule.models"))

# Rates that calibration adds to a profile: factors by which real times exceed those that the other rates predict.
SCALES = ("operations_scale", "moves_scale", "waiting_scale", "launch_scale")


def summed(parts: Iterable[tuple[str, float]]) -> dict[str, float]:
    """The seconds of parts by name.

    >>> summed([("move A", 1.0), ("blocks", 2.0), ("move A", 3.0)])
    {'move A': 4.0, 'blocks': 2.0}
    """
    found: dict[str, float] = {}
    for what, seconds in parts:
        found[what] = found.get(what, 0.0) + seconds
    return found


@dataclasses.dataclass(frozen=True)
class Estimate:
    """A predicted time. parts: (name, seconds), which add up to `seconds`; bound: a lower bound for all schedules of the computation
    (lower_bound.py), 0 if unknown."""

    seconds: float
    parts: tuple[tuple[str, float], ...]
    bound: float = 0.0

    @classmethod
    def of(cls, parts: Iterable[tuple[str, float]]) -> Self:
        """The estimate with these parts; parts of the same name are added."""
        found = summed(parts)
        return cls(sum(found.values()), tuple(found.items()))

    def above(self, bound: float) -> Self:
        """The estimate with the lower bound of its computation."""
        return dataclasses.replace(self, bound=bound)

    @property
    def bottleneck(self) -> str:
        return max(self.parts, key=lambda p: p[1])[0]

    @property
    def breakdown(self) -> str:
        """The parts that add up to the time, the longest first, each with its share."""
        whole = self.seconds or 1.0
        lines = [f"{self.seconds * 1e6:10.1f} us, no less than {self.bound * 1e6:.1f} us"]
        for what, seconds in sorted(self.parts, key=lambda p: -p[1]):
            lines.append(f"{seconds * 1e6:10.1f} us {seconds / whole:4.0%}  {what}")
        return "\n".join(lines)

    def __str__(self) -> str:
        return self.breakdown
