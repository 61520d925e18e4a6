"""Finds steps in a curve: a step between two levels, staircases, and the point where it leaves its floor. Pure functions of
points.

They return None for a curve without a step: a ramp, a single level, noise.
"""

from __future__ import annotations

import dataclasses
import math
import statistics
from collections.abc import Callable, Sequence

Points = Sequence[tuple[float, float]]
STRAY = 0.2  # if points are farther from their level, as a share of the step, the curve is a ramp


@dataclasses.dataclass(frozen=True)
class Step:
    """Two levels of a curve: `before` up to x `last`, `after` from x `first` on."""

    last: float
    first: float
    before: float
    after: float


def step(points: Points, least: float = 1.3) -> Step | None:
    """The single step of a curve, whose two levels have at least two points each and differ by a factor of `least`; None if
    there is none.

    >>> step([(1, 2.0), (2, 2.1), (4, 1.0), (8, 1.0)])
    Step(last=2, first=4, before=2.05, after=1.0)
    """
    xs, heights = [x for x, _ in sorted(points)], [math.log(y) for _, y in sorted(points)]
    found = []
    for split in range(2, len(xs) - 1):
        strayed = [math.fsum(_strays(level)) for level in (heights[:split], heights[split:])]
        found.append((sum(strayed), split))
    if not found:
        return None
    split = min(found)[1]
    low, high = heights[:split], heights[split:]
    height = abs(statistics.median(high) - statistics.median(low))
    if height < math.log(least) or any(_mean_stray(level) > STRAY * height for level in (low, high)):
        return None
    before, after = (statistics.median(y for _, y in part) for part in (sorted(points)[:split], sorted(points)[split:]))
    return Step(xs[split - 1], xs[split], before, after)


def _strays(level: Sequence[float]) -> list[float]:
    """The distance of each point from the median of its level, in ascending order."""
    middle = statistics.median(level)
    return sorted(abs(h - middle) for h in level)


def _mean_stray(level: Sequence[float]) -> float:
    """The mean distance; of many points, the farthest is ignored as disturbed."""
    strays = _strays(level)
    return statistics.fmean(strays[:-1] if len(strays) > 4 else strays)


def granularity(points: Points, more: float = 1.4) -> int | None:
    """The width of a staircase: the least power of two beyond which one more takes at least `more` times as long; None if one
    more is always free.

    The curve must have powers of two, and one more than each.

    >>> granularity([(1, 5.0), (2, 5.0), (3, 5.0), (4, 5.1), (5, 10.0), (8, 10.1), (9, 15.0)])
    4
    """
    times = dict(points)
    for x in sorted(times):
        if int(x).bit_count() == 1 and times.get(x + 1, 0.0) > more * times[x]:
            return int(x)
    return None


def end_of_floor(points: Points, more: float = 1.15) -> float | None:
    """The last x before a curve leaves its initial level for good; None if it does not. A single disturbed point is ignored.

    >>> end_of_floor([(8, 1.0), (16, 1.0), (24, 1.1), (32, 1.0), (40, 1.9), (48, 2.0)])
    32
    """
    if len(points) < 4:
        return None
    ordered = sorted(points)
    heights = [y for _, y in ordered]
    calm = [statistics.median(heights[max(0, k - 1) : k + 2]) if 0 < k < len(heights) - 1 else y for k, y in enumerate(heights)]
    floor = statistics.median(calm[: max(3, len(calm) // 4)])
    above = [k for k, y in enumerate(calm) if y > more * floor]
    if not above or above[0] == 0 or above[-1] != len(calm) - 1:
        return None
    return ordered[above[0] - 1][0]


def at_once(seconds: Callable[[int], float], most: int, more: float = 1.5) -> int:
    """How many run at once: the most whose time is below `more` times that of one; `most` if none takes so long.

    Found by doubling, then by bisection.
    """
    alone = seconds(1)
    few, many = 1, 2
    while many <= most and seconds(many) < more * alone:
        few, many = many, 2 * many
    if many > most:
        return most if few == most or seconds(most) < more * alone else _between(seconds, few, most, more * alone)
    return _between(seconds, few, many, more * alone)


def _between(seconds: Callable[[int], float], few: int, many: int, slow: float) -> int:
    """The largest count that is not slow, given that `few` is not and `many` is."""
    while many - few > 1:
        middle = (few + many) // 2
        few, many = (middle, many) if seconds(middle) < slow else (few, middle)
    return few


def banks(points: Points, more: float = 1.4) -> int | None:
    """The number of banks of a memory, from the times of reads whose lanes are x words apart: the stride from which on a longer
    one costs no more.

    None if no stride costs anything, or if the longest still costs more. The strides are powers of two.

    >>> banks([(1, 1.0), (2, 2.0), (4, 4.0), (8, 8.1), (16, 16.0), (32, 32.0), (64, 32.2), (128, 32.0)])
    32
    """
    ordered = sorted(points)
    times = [y for _, y in ordered]
    grown = [k for k in range(1, len(times)) if min(times[k:]) > more * max(times[:k])]
    return None if not grown or grown[-1] == len(times) - 1 else int(ordered[grown[-1]][0])


def transaction(points: Points) -> int | None:
    """The bytes that memory moves for the smallest request, from the bandwidth of runs of x bytes relative to whole lines.

    The ratio tells how much of each transaction is used. None if even the shortest runs lose nothing. The last x is of contiguous
    bytes.

    >>> transaction([(4, 50.0), (8, 100.0), (16, 200.0), (32, 390.0), (64, 400.0), (512, 400.0)])
    32
    """
    whole = max(y for _, y in points)
    if max(points)[1] < 0.75 * whole:
        return None
    used = [x * whole / y for x, y in points if y < 0.75 * whole]
    return 1 << round(math.log2(statistics.median(used))) if len(used) > 1 else None
