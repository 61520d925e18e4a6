"""Partitions a computation into kernels: which definitions are written to memory, and which are fused into their readers.

A *cut* is the set of tensors that are written to memory. There is one kernel for each of them, and one for the outputs. Pointwise
definitions in between are inlined. A reduction becomes an accumulator of the kernel if the kernel reads it element by element; other
reductions, and values that are expensive to recompute, are kept on chip row by row.

If there are few candidates, all cuts are compared by the sum of their kernels' estimates. A cut is examined only while its lower bound
is below the best estimate so far, and each kernel is scheduled once, however many cuts contain it. If there are more candidates, a
greedy search moves one definition at a time into or out of memory, the most profitable change first.
"""

from __future__ import annotations

import dataclasses
import heapq
import itertools
import math
from collections.abc import Iterator, Sequence
from typing import Any

from tilelang.autoschedule.common.cost import Estimate
from tilelang.autoschedule.common.device_model import DeviceModel, Likely, Steps, TaskCandidate
from tilelang.autoschedule.common.equal_parts import Signature, renamed
from tilelang.autoschedule.common.kernel_part import Part, in_rows, reads_of
from tilelang.autoschedule.common.loop_summary import Loops, loops_of, read_steps
from tilelang.autoschedule.common.lower_bound import moved
from tilelang.autoschedule.common.task_accesses import Nest, nest_of
from tilelang.computations.computation import Computation, Definition, Tensor
from tilelang.computations.inlining import kept_in_memory
from tilelang.core.expr import Pad
from tilelang.core.lazy import cached_property
from tilelang.errors import collected
from tilelang.profiles.profile import Profile
from tilelang.schedules.schedule import Schedule
from tilelang.schedules.steps import Place, Units
from tilelang.schedules.task import Task, Unplaced, joins, made_with, make_task, plan, reads

MOST_COMPARED = 8  # candidates; with more, not all cuts are compared
MOST_SCHEDULED = 24  # kernels that are scheduled; with more candidates, all of the few cuts that are compared
MOST_CHANGES = 8  # that the greedy search tries for each candidate
KEPT = 4  # cuts that are returned
KEPT_OF_SEVERAL = 16  # steps of the last kernel that are returned, after a kernel for each task
# A cut must be estimated below this share of the time of the default cuts: a kernel for each task, or one for all of them. Estimates
# are not exact: for rows of a mean, a variance and a gelu at 512 x 768, a separate kernel for the mean was estimated at 0.82 of the
# time and took 1.07 of it (on an EPYC with two cores).
CLEARLY = 0.8
AS_FAST = 0.97  # one kernel is preferred to several whose estimate is better by less. Chosen

Cut = frozenset[Tensor]


def choices(computation: Computation) -> list[Tensor]:
    """The candidates for a place in memory: the first tensor of each definition that may be in memory or not.

    A definition is left out if it is never better in memory, because its only reader has the same elements and can be computed in its
    place.
    """
    readers: dict[Tensor, dict[Definition, None]] = {}
    for definition, (_, read) in reads_of(computation).items():
        for tensor in read:
            readers.setdefault(tensor, {})[definition] = None
    found, kept, outputs = [], set(kept_in_memory(computation)), set(computation.outputs)
    for definition in computation.definitions:
        first = definition.tensors[0]
        if first.name in kept or not outputs.isdisjoint(definition.tensors):
            continue
        if not _continued(definition, list(dict.fromkeys(d for t in definition.tensors for d in readers.get(t, ())))):
            found.append(first)
    return found


def _continued(definition: Definition, readers: list[Definition]) -> bool:
    """Whether a definition has one reader, which is pointwise and reads it element by element, so that one kernel can make both."""
    if len(readers) != 1 or readers[0].reduction is not None:
        return False
    (reader,), own = readers, set(definition.tensors)
    found = [r.read if isinstance(r, Pad) else r for v in reader.values for r in reads(v)]
    mine = [r for r in found if r.tensor in own]
    if any(isinstance(r, Pad) and r.read.tensor in own for v in reader.values for r in reads(v)):
        return False
    if not all(joins(r.indices, reader.axes) for r in mine) or len({r.indices for r in mine}) != 1:
        return False
    try:
        make_task(reader.tensors, lambda t: t not in own and t not in reader.tensors)
    except Unplaced:
        return False
    return True


@dataclasses.dataclass(frozen=True, eq=False)
class Scheduled:
    """The steps of one kernel, and their estimate."""

    part: Part
    steps: Steps
    estimate: Estimate

    @property
    def seconds(self) -> float:
        return self.estimate.seconds


class Partition:
    """The partitions of a computation into kernels, for a device. Kernels, their bounds and their schedules are computed once."""

    def __init__(self, computation: Computation, profile: Profile, model: DeviceModel) -> None:
        self.computation, self.profile, self.model = computation, profile, model
        names = kept_in_memory(computation)
        self.always = frozenset(t for d in computation.definitions for t in d.tensors if t.name in names)
        self.tasks = plan(computation, set(), names)
        self.main = self.tasks[-1].outputs  # made by the last kernel
        self.others = tuple(t for t in computation.outputs if t not in self.main)
        self._parts: dict[tuple[tuple[Tensor, ...], frozenset[Tensor], tuple[Tensor, ...]], Part] = {}
        self._of_cut: dict[Cut, list[Part]] = {}
        self._bounds: dict[Part, float] = {}
        self._least_seconds: dict[tuple[Any, ...], float] = {}  # by what does not depend on names
        self._signatures: dict[Part, Signature] = {}
        self._scheduled: dict[Part, Scheduled | None] = {}
        self._equal: dict[
            tuple[Any, ...], tuple[Signature, Scheduled | None]
        ] = {}  # the first of those that differ only in names

    @cached_property
    def between(self) -> float:
        """The change in time of a kernel that follows another one."""
        return saved_by_launch(self.model, self._plain)

    @cached_property
    def launch(self) -> float:
        """The time of a launch, which is part of every kernel's."""
        return dict(self.model.estimate((self._plain,)).parts).get("launch", 0.0)

    @cached_property
    def _plain(self) -> Loops:
        part = self._part(self.main, frozenset())
        return read_steps(nest_of(part.task(part.made_whole)), ())

    def parts(self, cut: Cut) -> list[Part]:
        """The kernels of a cut, in order. Outputs that are not in the cut are stored by the last one."""
        if cut not in self._of_cut:
            self._of_cut[cut] = self._cut_into(cut)
        return self._of_cut[cut]

    def _cut_into(self, cut: Cut) -> list[Part]:
        kept = frozenset(t for first in cut for t in made_with(first))
        firsts = sorted({made_with(t) for t in cut}, key=lambda together: self._order(together[0]))
        stored = tuple(t for t in self.others if t not in kept)
        return [*(self._part(outputs, kept) for outputs in firsts), self._part(self.main, kept, stored)]

    def _order(self, tensor: Tensor) -> int:
        assert tensor.definition is not None
        return reads_of(self.computation)[tensor.definition][0]

    def _part(self, outputs: tuple[Tensor, ...], kept: frozenset[Tensor], stored: tuple[Tensor, ...] = ()) -> Part:
        read = Part(self.computation, outputs, kept, stored).read & kept
        return self._parts.setdefault((outputs, read, stored), Part(self.computation, outputs, read, stored))

    def bound(self, part: Part) -> float:
        """A lower bound on the seconds of a kernel; infinite if it has no schedule for this device."""
        if not part.is_possible:
            return math.inf
        if part not in self._bounds:
            known = self._scheduled.get(part)
            self._bounds[part] = known.seconds if known is not None else self._least_of(part)
        return self._bounds[part]

    def _least_of(self, part: Part) -> float:
        """The bound of a part without a schedule, once for those that differ only in names; the estimate where one of them has one."""
        key = self._signature(part).key
        if key not in self._least_seconds:
            self._least_seconds[key] = self._bound(part)
        return self._least_seconds[key]

    def _signature(self, part: Part) -> Signature:
        if part not in self._signatures:
            self._signatures[part] = Signature(part)
        return self._signatures[part]

    def _bound(self, part: Part) -> float:
        stages = [t for t in part.staged if t.member == 0]
        nests = [*(nest_of(part.stage(t, part.staged)) for t in stages), nest_of(part.task(part.staged))]
        work = sum(self.model.least(nest) for nest in nests)
        return max(work, *_sides(part, nests, self.profile)) + self.launch

    def scheduled(self, part: Part) -> Scheduled | None:
        """The best steps of a kernel, by rows if it has several tasks; None if it has no schedule for this device. Kernels that differ
        only in names are scheduled once."""
        if not part.is_possible:
            return None
        if part not in self._scheduled:
            signature = self._signature(part)
            first, found = self._equal.setdefault(signature.key, (signature, None))
            if first is signature:
                found = next(self.variants(part), None)
                self._equal[signature.key] = first, found
            elif found is not None:
                steps = renamed(found.steps, first, signature)
                found = next(self.variants(part), None) if steps is None else Scheduled(part, steps, found.estimate)
            self._scheduled[part] = found
            self._bounds[part] = self._least_seconds[signature.key] = found.seconds if found is not None else math.inf
        return self._scheduled[part]

    def variants(self, part: Part) -> Iterator[Scheduled]:
        """Steps of a kernel, the best first."""
        if not part.is_possible:
            return iter(())
        found: list[TaskCandidate] = []
        if part.made_whole or part.overlapping:
            every = ((steps, rows.loops(steps, self.profile)) for rows, steps in self.model.fuse_rows(part))
            found = [TaskCandidate(steps, self.model.estimate((loops,))) for steps, loops in every]
        made = iter(sorted(found, key=lambda m: m.estimate.seconds))
        if not part.made_whole:
            made = heapq.merge(made, of_task(part.task(), self.model), key=lambda m: m.estimate.seconds)
        return (Scheduled(part, m.steps, m.estimate) for m in made)

    def estimate(self, kernels: Sequence[Scheduled]) -> Estimate:
        """The time of kernels, one after another."""
        launches = ("launch", self.between * (len(kernels) - 1))
        return Estimate.of((*(p for k in kernels for p in k.estimate.parts), launches))

    def first(self, among: list[Tensor]) -> Cut:
        """The default cut, which others must clearly beat: a kernel for each task; if there are many definitions, all of them in
        memory, because the last tasks would otherwise inline all pointwise ones."""
        made = among if len(among) > MOST_COMPARED else [task.outputs[0] for task in self.tasks[:-1]]
        return self.always | frozenset(made) | frozenset(self.others)

    def apart(self, cut: Cut) -> list[TaskCandidate]:
        """Separate kernels for a cut, with the best steps of the last one; and one kernel for all tasks, row by row. The best
        come first."""
        *parts, last = self.parts(cut)
        before = [k for part in parts if (k := self.scheduled(part)) is not None]
        if len(before) < len(parts) or not cut.isdisjoint(self.main):  # no step can describe the kernels of another output
            return self._last_alone()
        found = [[*before, k] for k in itertools.islice(self.variants(last), KEPT_OF_SEVERAL)]
        found += [[k] for k in self.in_one]
        if not found:  # the last kernel would keep a value on chip, and has no rows
            return self._last_alone()
        made = [(self.estimate(kernels), kernels) for kernels in found]
        made.sort(key=lambda m: m[0].seconds * (AS_FAST if len(m[1]) == 1 else 1.0))
        return [TaskCandidate(steps_of(kernels), estimate) for estimate, kernels in made]

    @cached_property
    def in_one(self) -> list[Scheduled]:
        """One kernel for all tasks, row by row, where there is one."""
        return [k for whole in Part.with_all_outputs(self.computation) for k in self.variants(whole)]

    def _last_alone(self) -> list[TaskCandidate]:
        """The best steps of the last task, which leave the kernels before it without a schedule."""
        last = itertools.islice(of_task(self.tasks[-1], self.model), KEPT_OF_SEVERAL)
        return [TaskCandidate(m.steps, self._estimated(m.steps)) for m in last]

    def _estimated(self, steps: Steps) -> Estimate:
        """The estimate of a schedule. Raises Refusal for steps that contradict each other."""
        return self.model.estimate(loops_of(Schedule(self.computation, steps), self.profile))

    # ------------------------------------------------------------ comparing

    def best(self, among: list[Tensor], seconds: float) -> list[list[Scheduled]]:
        """The kernels of the best cuts whose estimate is below `seconds`, the best first. among: the candidates."""
        several = [*among, *dict.fromkeys(made_with(t)[0] for t in self.others)]
        cuts = self._every(several) if len(several) <= MOST_COMPARED else self._climbed(among)
        found: list[tuple[float, int, list[Scheduled]]] = []
        most, queue = seconds, [(self._least(cut), n, cut) for n, cut in enumerate(cuts)]
        heapq.heapify(queue)
        left = sum(len(self.parts(cut)) for cut in cuts) if len(several) > MOST_COMPARED else MOST_SCHEDULED
        while queue and queue[0][0] < seconds:
            _, number, cut = queue[0]
            parts = self.parts(cut)
            todo = next((p for p in sorted(parts, key=self.bound, reverse=True) if p not in self._scheduled), None)
            if todo is None:
                heapq.heappop(queue)
                made = [s for p in parts if (s := self._scheduled[p]) is not None]
                total = self._least(cut)  # its kernels may have been scheduled for other cuts since it was queued
                if len(made) == len(parts) and total < most:
                    seconds = min(seconds, total)
                    found.append((total, number, made))
                continue
            if left == 0:
                break
            left -= self.scheduled(todo) is not None  # a kernel that cannot be scheduled costs no search time
            heapq.heapreplace(queue, (self._least(cut), number, cut))
        return [made for _, _, made in sorted(found, key=lambda f: f[:2])[:KEPT]]

    def _every(self, among: list[Tensor]) -> list[Cut]:
        return [
            self.always | frozenset(chosen)
            for n in range(len(among) + 1)
            for chosen in itertools.combinations(among, n)
        ]  # fmt: skip

    def _climbed(self, among: list[Tensor]) -> list[Cut]:
        """The cut that the greedy search ends at, the same with all outputs stored by the last kernel if it can, and the cut with every
        candidate in memory.

        The search starts with every candidate in memory, and makes the change of one candidate that lowers the time most, until no
        change lowers it. The time is bounded from below until a change is about to be made: then its kernels are scheduled, and it must
        stand by their estimates. A gain is computed again when a kernel that it depends on has changed.
        """
        others = frozenset(self.others)
        cut = self.always | frozenset(among) | others
        parts = {p.outputs: p for p in self.parts(cut)}
        queue = [(self._gain(parts, cut, t)[0], n) for n, t in enumerate(among)]
        heapq.heapify(queue)
        for _ in range(MOST_CHANGES * len(among)):
            if not queue:
                break
            _, n = heapq.heappop(queue)
            gain, gone, made = self._gain(parts, cut, among[n])
            unsure = [p for p in (*gone, *made) if p not in self._scheduled] if gain < 0 else []
            if queue and gain > queue[0][0]:
                heapq.heappush(queue, (gain, n))
            elif unsure:
                for part in unsure:
                    self.scheduled(part)
                heapq.heappush(queue, (self._gain(parts, cut, among[n])[0], n))
            elif gain < 0:
                cut ^= {among[n]}
                parts = {o: p for o, p in parts.items() if p not in gone} | {p.outputs: p for p in made}
                near = frozenset[Tensor]().union(*(p.read | p.inside for p in made)) - {among[n]}
                queue = [(self._gain(parts, cut, among[m])[0] if among[m] in near else g, m) for g, m in queue]
                heapq.heapify(queue)
        stored = [cut - others] if in_rows(self.others) else []
        return list(dict.fromkeys((cut, *stored, self.always | frozenset(among) | others)))

    def _gain(self, parts: dict[tuple[Tensor, ...], Part], cut: Cut, tensor: Tensor) -> tuple[float, list[Part], list[Part]]:
        """By how much the lower bound of a cut changes when one definition leaves memory, or enters it, 0 unless it clearly falls; the
        kernels that this removes, and those that it adds."""
        own, other = made_with(tensor), cut ^ {tensor}
        kept = frozenset(t for first in other for t in made_with(first))
        gone = [p for p in parts.values() if not (p.read if tensor in cut else p.inside).isdisjoint(own)]
        made = [self._part(p.outputs, kept) for p in gone]
        if tensor in cut:
            gone.append(parts[own])
        else:
            made.append(self._part(own, kept))
        before, after = (sum(self.bound(p) + self.between for p in parts) for parts in (gone, made))
        return (after - before if after < before * CLEARLY else 0.0), gone, made

    def _least(self, cut: Cut) -> float:
        parts = self.parts(cut)
        return sum(map(self.bound, parts)) + self.between * (len(parts) - 1)

    def compared(self, near: Cut) -> Iterator[tuple[float, Cut, Steps | None]]:
        """Cuts, each with its estimate and steps; or with its lower bound, if the search did not schedule one of its kernels. All cuts,
        or if there are too many, `near` and those that differ from it by one definition."""
        among = choices(self.computation)
        several = [*among, *dict.fromkeys(made_with(t)[0] for t in self.others)]
        cuts = self._every(several) if len(several) <= MOST_COMPARED else [near, *(near ^ {t} for t in among)]
        for cut in cuts:
            parts = self.parts(cut)
            made = [k for p in parts if (k := self._scheduled.get(p)) is not None]
            found = next(self._made([made]), None) if len(made) == len(parts) else None
            yield (found.estimate.seconds, cut, found.steps) if found is not None else (self._least(cut), cut, None)

    def planned(self, among: list[Tensor], seconds: float) -> list[TaskCandidate]:
        """Schedules of cuts that are clearly faster than the default ones, the best first. seconds: the estimate of the best default
        cut."""
        return list(self._made(self.best(among, seconds * CLEARLY)))

    def greedy(self, among: list[Tensor]) -> list[TaskCandidate]:
        """Schedules of the cuts that the greedy search ends at, and of one kernel for all tasks if there is one, the best first."""
        found = [
            *self._made(self.best(among, math.inf)),
            *(TaskCandidate(steps_of([k]), self.estimate([k])) for k in self.in_one),
        ]
        return sorted(found, key=lambda m: m.estimate.seconds)

    def _made(self, several: list[list[Scheduled]]) -> Iterator[TaskCandidate]:
        """The schedules of several choices of kernels, without those that have a refused step."""
        for kernels in several:
            steps = steps_of(kernels)
            with collected([]):
                yield TaskCandidate(steps, self._estimated(steps))


def _sides(part: Part, nests: list[Nest], profile: Profile) -> tuple[float, ...]:
    """Lower bounds on the seconds in which a kernel's reads, and its writes, are moved."""
    read: dict[str, float] = {}
    written = 0.0
    names = {t.name for t in part.read}
    for nest in nests:
        for access in nest.accesses:
            count = float(access.footprint_bytes(nest.extents))
            if access.store:
                written += count if access.tensor in part.outputs or access.tensor in part.stored else 0.0
            elif access.name in names:
                read[access.name] = max(read.get(access.name, 0.0), count)
    return moved(profile, sum(read.values()), written)


def of_task(task: Task, model: DeviceModel, likely: Likely | None = None) -> Iterator[TaskCandidate]:
    """Steps for a task, the best first."""
    root = nest_of(task)
    return model.construct(root, likely) if root.points else iter([TaskCandidate((), model.estimate((read_steps(root, ()),)))])


def saved_by_launch(model: DeviceModel, loops: Loops) -> float:
    """The change in a kernel's time when it follows another one in a launch; negative if it gets faster."""
    once, twice = (model.estimate((loops,) * n).seconds for n in (1, 2))
    return twice - 2 * once


def steps_of(kernels: list[Scheduled]) -> Steps:
    """One schedule for some kernels: the steps of the last one, with a `compute` for each of the others."""
    *before, last = kernels
    return with_kernels([Place("compute", s.part.outputs[0].name, "global", steps=s.steps or None) for s in before], last.steps)


def with_kernels(before: Sequence[Place], steps: Steps) -> Steps:
    """The steps of the last kernel, with the places of the kernels before it inserted below its `units`."""
    first = next((n for n, s in enumerate(steps) if not isinstance(s, Units)), len(steps))
    return (*steps[:first], *before, *steps[first:])
