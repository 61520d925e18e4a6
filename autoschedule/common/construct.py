"""Generates schedules: for each task by the model of the device, and for all tasks of a computation together.

A separate kernel for each task is always possible. One kernel for all tasks, row by row, is tried if the device has one (`fuse_rows`),
and preferred if its single pass over the data is faster.
"""

from __future__ import annotations

import dataclasses
import heapq
import itertools
from collections.abc import Iterator

from tilelang.autoschedule.common.cost import Estimate
from tilelang.autoschedule.common.device_model import Likely, Steps
from tilelang.autoschedule.common.lower_bound import bound
from tilelang.autoschedule.common.partition import MOST_COMPARED, Partition, choices, of_task
from tilelang.autoschedule.common.prune import Pruning
from tilelang.autoschedule.models import model_of
from tilelang.computations.computation import Computation
from tilelang.computations.inlining import kept_in_memory
from tilelang.core.lazy import cached_property
from tilelang.profiles.profile import Profile
from tilelang.schedules.schedule import Schedule
from tilelang.schedules.task import plan

KEPT = 64  # candidates that are returned


@dataclasses.dataclass(frozen=True, eq=False)
class Candidate:
    """A schedule and its estimate."""

    computation: Computation
    steps: Steps
    estimate: Estimate

    @cached_property
    def schedule(self) -> Schedule:
        return Schedule(self.computation, self.steps)


def construct(computation: Computation, profile: Profile, pruning: Pruning | None = None) -> list[Candidate]:
    """Candidates for a computation on a device, the best first; at least one. pruning: the rules that drop candidates."""
    return list(itertools.islice(ranked(computation, profile, pruning), KEPT))


def ranked(
    computation: Computation,
    profile: Profile,
    pruning: Pruning | None = None,
    likely: Likely | None = None,
    partition: Partition | None = None,
) -> Iterator[Candidate]:
    """`construct` as an iterator, for callers that need only a few. likely: as for `DeviceModel.construct`, if there is a single
    task. partition: a new one of the computation, for callers that ask it afterwards what was compared."""
    model, least = model_of(profile, pruning), bound(computation, profile)
    tasks, among = plan(computation, set(), kept_in_memory(computation)), choices(computation)
    if len(tasks) == 1 and not among:
        found = of_task(tasks[0], model, likely)
    else:
        partition = partition or Partition(computation, profile, model)
        first_cut = partition.first(among)
        if len(among) > MOST_COMPARED and len(tasks) > 1:
            found = itertools.chain(partition.greedy(among), (m for cut in (first_cut,) for m in partition.apart(cut)))
            return (Candidate(computation, m.steps, m.estimate.above(least)) for m in found)
        found = iter(partition.apart(first_cut)) if len(tasks) > 1 else of_task(tasks[0], model)
        if among or partition.others:
            first = next(found)
            others = partition.planned(among, first.estimate.seconds)
            found = heapq.merge(others, itertools.chain((first,), found), key=lambda m: m.estimate.seconds)
    return (Candidate(computation, m.steps, m.estimate.above(least)) for m in found)
