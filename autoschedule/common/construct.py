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
from tilelang.autoschedule.common.device_model import DeviceModel, Likely, Made, Steps
from tilelang.autoschedule.common.kernel_part import Part
from tilelang.autoschedule.common.loop_summary import loops_of, read_steps
from tilelang.autoschedule.common.lower_bound import bound
from tilelang.autoschedule.common.partition import choices, planned, saved_by_launch, with_kernels
from tilelang.autoschedule.common.prune import Pruning
from tilelang.autoschedule.common.task_accesses import nest_of
from tilelang.autoschedule.models import model_of
from tilelang.computations.computation import Computation
from tilelang.computations.inlining import kept_in_memory
from tilelang.core.lazy import cached_property
from tilelang.profiles.profile import Profile
from tilelang.schedules.schedule import Schedule
from tilelang.schedules.steps import Place
from tilelang.schedules.task import Task, plan

KEPT = 64  # candidates that are handed on
KEPT_OF_SEVERAL = 16  # where the task is the last of several: each is estimated with all kernels


@dataclasses.dataclass(frozen=True, eq=False)
class Candidate:
    """A schedule and the time that the model gives it."""

    computation: Computation
    steps: Steps
    estimate: Estimate

    @cached_property
    def schedule(self) -> Schedule:
        return Schedule(self.computation, self.steps)


def construct(computation: Computation, profile: Profile, pruning: Pruning | None = None) -> list[Candidate]:
    """Candidates for a computation on a device, the best first; at least one. pruning: what drops some."""
    return list(itertools.islice(ranked(computation, profile, pruning), KEPT))


def ranked(
    computation: Computation, profile: Profile, pruning: Pruning | None = None, likely: Likely | None = None
) -> Iterator[Candidate]:
    """The same as an iterator, for callers that need only a few. likely: as for `DeviceModel.construct`, if there is a single task."""
    model, least = model_of(profile, pruning), bound(computation, profile)
    *earlier, last = plan(computation, set(), kept_in_memory(computation))
    several = bool(choices(computation))
    found = of_task(last, model, None if earlier or several else likely)
    if earlier:
        found = iter(_of_several(computation, profile, model, earlier, list(itertools.islice(found, KEPT_OF_SEVERAL))))
    if several:
        first = next(found)
        others = planned(computation, profile, model, first.estimate.seconds)
        found = heapq.merge(others, itertools.chain((first,), found), key=lambda m: m.estimate.seconds)
    return (Candidate(computation, m.steps, m.estimate.above(least)) for m in found)


def of_task(task: Task, model: DeviceModel, likely: Likely | None = None) -> Iterator[Made]:
    """Steps for a task, the best first."""
    root = nest_of(task)
    return model.construct(root, likely) if root.points else iter([Made((), Estimate.of(()))])


def _of_several(
    computation: Computation, profile: Profile, model: DeviceModel, earlier: list[Task], made: list[Made]
) -> list[Made]:
    """Steps for a computation, the best first, where tasks come before the last one, for which steps are made."""
    last = plan(computation, set(), kept_in_memory(computation))[-1]
    head: list[Place] = []
    if said := not any(t in computation.outputs for task in earlier for t in task.outputs):  # no step says how those are made
        firsts = [(task, next(of_task(task, model)).steps) for task in earlier]
        head = [Place("compute", task.outputs[0].name, "global", steps=steps or None) for task, steps in firsts]
    apart = [with_kernels(head, m.steps) for m in made]  # a kernel for each task
    before = [k for loops in loops_of(Schedule(computation, apart[0]), profile) for k in loops.kernels()][:-1]
    nest = nest_of(last)
    less = ("launch", saved_by_launch(model, before[0])) if before else ("launch", 0.0)
    parts = (*model.estimate(tuple(before)).parts, less) if before else ()  # of the kernels before, which are the same for all
    found = [
        Made(steps, Estimate.of((*parts, *model.estimate((read_steps(nest, m.steps),)).parts)))
        for steps, m in zip(apart, made, strict=True)
    ]
    for rows, steps in model.fuse_rows(Part.whole(computation)) if said else ():
        found.append(Made(steps, model.estimate((rows.loops(steps, profile),))))
    return sorted(found, key=lambda m: m.estimate.seconds)
