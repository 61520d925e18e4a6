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

# Of 21 pairs of shapes of ten operators on two cores, at most `recall.NEAR` apart, the fastest schedule of one shape took, in the
# geometric mean, 0.93 of the time
# of what was constructed for the other where these let it through, and 1.05 to 1.84 of it where the model saw it behind.
BEHIND = 1.1  # times the constructed one's estimate, beyond which it is not


@dataclasses.dataclass(frozen=True)
class Best:
    """A schedule, and where it is from: recalled, or measured; bound_s is in `measured`."""

    schedule: Schedule
    recalled: Recalled | None = None
    measured: Measured | None = None


def nearly_as_fast(schedule: Schedule, other: Schedule, profile: Profile) -> bool:
    """Whether a schedule that was the fastest for a near shape is to be preferred to one that was only constructed."""
    return estimate_schedule(schedule, profile).seconds <= BEHIND * estimate_schedule(other, profile).seconds


def remember_constructed(
    schedule: Schedule, target: OnDevice, given: Sequence[Step] = (), options: Options | None = None
) -> None:  # fmt: skip
    """Keeps a schedule that was constructed and can be lowered, with the model's time."""
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
    """The schedule that is remembered of as many trials, else the fastest of the first `trials` candidates, remembered from now on.

    candidates: the likeliest first; they are asked for only where too little is remembered, and no more of them than are tried; one
    that the target does not take is followed by the next. One that is remembered of fewer trials, or for another shape, is tried before
    them. given, options: as of `recall`. bound_s: None: the model's; it and the others: as of `measure`. Raises DeviceError where no
    candidate runs and is right, or none can be measured.
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
    """Schedules, none of them twice."""
    seen = set[str]()
    for schedule in schedules:
        if schedule.text not in seen:
            seen.add(schedule.text)
            yield schedule


def _entries(key: Key, measured: Measured, trials: int) -> list[Entry]:
    """What is remembered of trials: those that were right."""
    date, bound_s = now(), measured.bound_s
    found = []
    for t in (t for t in measured.trials if not t.code):
        ratio = t.median_s / bound_s if bound_s else None
        found.append(Entry(key, t.schedule.text, t.median_s, t.iqr_s, t.error_ratio or 0.0, ratio, trials, date))
    return found
