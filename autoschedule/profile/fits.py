"""Interprets curves: plateaus by a monotone step fit on logarithmic axes, and upper envelopes.

A plateau is a run of points of about the same height; points between plateaus belong to none. So a ramp does not become a
staircase of small plateaus, and a level that does not exist leaves no trace. The fit is globally optimal, by dynamic programming;
there is no detector that scans the curve and could be misled.
"""

from __future__ import annotations

import dataclasses
import math
import statistics
from collections.abc import Sequence

Points = Sequence[tuple[float, float]]
LOOSE = 4.0  # cost of a point on no plateau, in squares of the tolerance
PLATEAU = 9.0  # cost of a plateau, so that noise creates none


@dataclasses.dataclass(frozen=True)
class Plateau:
    """A section of a curve of about the same height, from x `first` to `last`."""

    first: float
    last: float
    level: float


@dataclasses.dataclass(frozen=True)
class _Fit:
    """The cheapest fit of the points up to a plateau's end."""

    cost: float
    plateaus: tuple[Plateau, ...]


def plateaus(points: Points, falling: bool = True, tolerance: float = 0.05, step: float = 0.15) -> tuple[Plateau, ...]:
    """The plateaus of a curve that falls from one to the next (falling=False: rises), in order of x.

    tolerance: how far, as a share, points may be from their plateau; step: the least share between two plateaus. A plateau has at
    least three points, and its last x is at least twice its first. x and y must be positive.
    """
    xs = [x for x, _ in sorted(points)]
    heights = [math.log(y) * (-1 if falling else 1) for _, y in sorted(points)]
    best = _Fit(LOOSE * len(xs), ())
    ending: list[tuple[int, float, _Fit]] = []  # for each plateau: the point after it, its height, the fit up to there
    for first in range(len(xs)):
        begun = [(_loose(first, 0), _Fit(0.0, ()), -math.inf)]
        begun += [(_loose(first, end), fit, height) for end, height, fit in ending if end <= first]
        for end in range(first + 3, len(xs) + 1):
            if xs[end - 1] < 2 * xs[first] or _slopes(heights[first:end], step):
                continue
            height = statistics.median(heights[first:end])
            if max(abs(heights[first] - height), abs(heights[end - 1] - height)) > 2 * tolerance:
                continue  # a disturbed point may be inside a plateau, not at its ends
            strayed = sum(min(((h - height) / tolerance) ** 2, LOOSE) for h in heights[first:end])
            allowed = [(skipped + fit.cost, fit) for skipped, fit, before in begun if height - before >= step]
            cost, before = min(allowed, key=lambda pair: pair[0])
            found = Plateau(xs[first], xs[end - 1], math.exp(height * (-1 if falling else 1)))
            fit = _Fit(cost + strayed + PLATEAU, (*before.plateaus, found))
            ending.append((end, height, fit))
            if fit.cost + _loose(len(xs), end) < best.cost:
                best = _Fit(fit.cost + _loose(len(xs), end), fit.plateaus)
    return best.plateaus


def _slopes(heights: Sequence[float], step: float) -> bool:
    """Whether points are part of a ramp: their two halves differ by more than noise."""
    half = len(heights) // 2
    return abs(statistics.median(heights[:half]) - statistics.median(heights[-half:])) >= 2 / 3 * step


def _loose(first: int, end: int) -> float:
    """The cost of the points between a plateau's end and the first point of the next."""
    return LOOSE * (first - end)


def capacity(before: Plateau, after: Plateau, points: Points) -> float:
    """The x at which one plateau changes into the next: where the curve crosses the middle of their heights, on logarithmic axes."""
    middle = math.log(before.level * after.level) / 2
    between = [(math.log(x), math.log(y)) for x, y in sorted(points) if before.last <= x <= after.first]
    for (x0, y0), (x1, y1) in zip(between, between[1:], strict=False):
        if min(y0, y1) <= middle <= max(y0, y1) and y0 != y1:
            return math.exp(x0 + (x1 - x0) * (middle - y0) / (y1 - y0))
    return before.last


def upper_envelope(points: Points) -> tuple[tuple[float, float], ...]:
    """The highest y at each x or beyond: the level that a falling curve still reaches there, ignoring points that were
    disturbed.

    >>> upper_envelope([(1, 5.0), (2, 3.0), (4, 4.0), (8, 1.0)])
    ((1, 5.0), (2, 4.0), (4, 4.0), (8, 1.0))
    """
    found: dict[float, float] = {}
    highest = -math.inf
    for x, y in sorted(points, reverse=True):
        found[x] = highest = max(highest, y)
    return tuple(reversed(found.items()))


def line(points: Points) -> tuple[float, float]:
    """The slope and the intercept of the line through points, by the median of the slopes of all pairs (Theil and Sen).

    >>> line([(0, 1.0), (1, 3.0), (2, 5.0), (3, 100.0)])
    (2.0, 1.0)
    """
    slopes = [(b - d) / (a - c) for k, (a, b) in enumerate(points) for c, d in points[:k] if a != c]
    slope = statistics.median_low(slopes)
    return slope, statistics.median_low([y - slope * x for x, y in points])
