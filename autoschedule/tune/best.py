"""Chooses the best of a few candidates: by timing them, or from the database of earlier timings.

`tl.compile(..., trials=k)` calls `best`, and before it, also without trials, `recall`. Timings are kept in the database that the
options name, per computation, given steps, device, profile and compilers. Generated schedules are kept as well, per version of the
autoscheduler, so that other processes need not generate them again.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterable, Iterator, Sequence

from tilelang.autoschedule.common.lower_bound import bound
from tilelang.autoschedule.models import estimate_schedule
from tilelang.autoschedule.tune.database import Database
from tilelang.autoschedule.tune.entries import Entry, Key, Recalled, now
from tilelang.autoschedule.tune.measure import LIMIT_S, Measured, Progress, measure
from tilelang.autoschedule.tune.recall import OnDevice, key_constructed, key_of, recall
from tilelang.computations.computation import Computation
from tilelang.errors import DeviceError
from tilelang.options import Options
from tilelang.profiles.profile import Profile
from tilelang.schedules.schedule import Schedule
from tilelang.schedules.steps import Step

# For 21 pairs of shapes of ten operators on two cores, at most `recall.NEAR` apart: when this limit accepts it, the fastest schedule of
# one shape took, in the geometric mean, 0.93 of the time of the generated schedule for the other; when the model ranks it behind, 1.05
# to 1.84.
BEHIND = 1.1  # it is not preferred if its estimate exceeds the generated one's by this factor


@dataclasses.dataclass(frozen=True)
class Best:
    """A schedule and its origin: recalled, or measured; bound_s is in `measured`."""

    schedule: Schedule
    recalled: Recalled | None = None
    measured: Measured | None = None


def nearly_as_fast(schedule: Schedule, other: Schedule, profile: Profile) -> bool:
    """Whether the fastest schedule of a similar shape is preferred to a merely generated one, because its estimate is not much
    worse."""
    return estimate_schedule(schedule, profile).seconds <= BEHIND * estimate_schedule(other, profile).seconds


def remember_constructed(
    schedule: Schedule, target: OnDevice, given: Sequence[Step] = (), options: Options | None = None
) -> None:  # fmt: skip
    """Remembers a generated schedule that can be lowered, with the model's time."""
    database = Database.of(options or Options.from_environment(), patient=False)
    if database is not None:
        found = estimate_schedule(schedule, target.profile)
        ratio = found.seconds / found.bound if found.bound else None
        key = key_constructed(schedule.computation, target, given)
        database.record_constructed(Entry(key, schedule.text, found.seconds, 0.0, 0.0, ratio, 0, now()))


def best(
    computation: Computation,
    candidates: Iterable[Schedule],
    target: OnDevice,
    trials: int,
    *,
    given: Sequence[Step] = (),
    bound_s: float | None = None,
    limit_s: float = LIMIT_S,
    options: Options | None = None,
    progress: Progress | None = None,
) -> Best:
    """The schedule remembered from at least `trials` trials, else the fastest of the first `trials` candidates, which is then
    remembered.

    candidates: the most promising first; generated on demand, and only as many as are tried. A candidate that cannot be lowered
    for the target is replaced by the next. A schedule remembered from fewer trials, or for another shape, is tried first. given,
    options: as for `recall`. bound_s: None for the model's bound; it and the others: as for `measure`. Raises DeviceError if no
    candidate runs and is correct, or if none can be measured.
    """
    options = options or Options.from_environment()
    recalled = recall(computation, target, given, options)
    if recalled is not None and recalled.distance == 0 and recalled.trials >= trials:
        return Best(recalled.schedule, recalled=recalled)
    known = [recalled.schedule] if recalled is not None else []
    if bound_s is None:
        bound_s = bound(computation, target.profile)
    tried, most = _different(itertools.chain(known, candidates)), len(known) + trials
    measured = measure(
        computation, tried, target, most=most, bound_s=bound_s, limit_s=limit_s, options=options, progress=progress
    )
    if measured.best is None:
        why = "; ".join(f"{k + 1}: {t}" for k, t in enumerate(measured.trials[:most])) or "there is none"
        raise DeviceError("no-candidate", f"no candidate for {computation.name} is right: {why}", help="use another schedule")
    database = Database.of(options)
    if database is not None:
        database.record(_entries(key_of(computation, target, given), measured, trials))
    return Best(measured.best.schedule, measured=measured)


def _different(schedules: Iterable[Schedule]) -> Iterator[Schedule]:
    """The schedules without duplicates."""
    seen = set[str]()
    for schedule in schedules:
        if schedule.text not in seen:
            seen.add(schedule.text)
            yield schedule


def _entries(key: Key, measured: Measured, trials: int) -> list[Entry]:
    """The entries for trials with correct results."""
    date, bound_s = now(), measured.bound_s
    found = []
    for t in (t for t in measured.trials if not t.code):
        ratio = t.median_s / bound_s if bound_s else None
        found.append(Entry(key, t.schedule.text, t.median_s, t.iqr_s, t.error_ratio or 0.0, ratio, trials, date))
    return found
