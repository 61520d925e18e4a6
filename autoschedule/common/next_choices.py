"""Where a plan keeps each value that one definition hands to another, and what the next choice would have cost.

Next choices are those of the search: the plans that it estimated, and the lower bounds of those that it dropped unseen.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Iterator, Mapping

from tilelang.autoschedule.common.construct import KEPT, ranked
from tilelang.autoschedule.common.kernel_part import reads_of
from tilelang.autoschedule.common.lower_bound import has_empty_axis
from tilelang.autoschedule.common.partition import Partition, choices
from tilelang.autoschedule.models import model_of
from tilelang.computations.computation import Computation, Definition, Tensor
from tilelang.profiles.profile import Profile
from tilelang.schedules.schedule import Schedule
from tilelang.schedules.steps import Place, Step, every_step
from tilelang.schedules.task import Task, made_with, prefix_of, tasks_of

MEMORY, SHARED, REGISTERS, INLINED = "in memory", "in shared memory", "in registers", "inlined"
PLACES = {"global": MEMORY, "shared": SHARED}  # any other memory is one of registers

Kept = Mapping[str, Mapping[str, str]]  # by value and by the kernel that reads it: the place


def kept(computation: Computation, steps: tuple[Step, ...]) -> Kept:
    """Where a schedule keeps what its definitions read of each other: by the first tensor of a definition, and by the kernel that reads
    it, one of `in memory`, `in shared memory`, `in registers` and `inlined`. Accumulators count as what holds them.

    >>> import tilelang as tl
    >>> i, j = tl.axes(i=64, j=64)
    >>> X = tl.input("X", tl.float32, i, j)
    >>> peak = tl.define("peak", tl.max(X[i, j], over=j), i)
    >>> made = tl.schedule(tl.define("Y", X[i, j] - peak[i], i, j))
    >>> kept(made.computation, made.steps), kept(made.computation, made.tile(i=4).to(tl.block).compute(peak, tl.shared).steps)
    ({'peak': {'Y': 'in memory'}}, {'peak': {'Y': 'in shared memory'}})
    """
    tasks, prefix, found = tasks_of(computation, steps), prefix_of(steps), dict[str, dict[str, str]]()
    made = {t for task in tasks[:-1] for t in task.outputs}
    own = {s.tensor_name: s.steps or () for s in prefix}
    for task in tasks:
        inner = next((own[t.name] for t in task.outputs if t.name in own), ())
        if task is tasks[-1]:
            inner = tuple(s for s in steps if s not in prefix)
        for tensor, place in _of_kernel(computation, task, inner, made):
            found.setdefault(tensor.name, {})[task.name] = place
    order = [d.tensors[0].name for d in computation.definitions]
    return {name: found[name] for name in order if name in found}


def _of_kernel(computation: Computation, task: Task, steps: tuple[Step, ...], made: set[Tensor]) -> Iterator[tuple[Tensor, str]]:
    """The first tensor of each definition that a kernel reads or computes inside, with its place. made: what other kernels make."""
    places = [s for s in every_step(steps) if isinstance(s, Place)]
    memories = {t: s.memory for s in places if s.verb == "compute" for t in made_with(computation.tensor(s.tensor_name))}
    sums = next((s.memory for s in steps if isinstance(s, Place) and s.verb == "accumulate"), "register")
    memories |= {t: sums for state in task.states for t in state.tensors}
    waiting, seen = [t.definition for t in task.outputs], set[Definition]()
    while waiting:
        definition = waiting.pop()
        assert definition is not None
        for tensor in reads_of(computation)[definition][1]:
            read = tensor.definition
            if read is None or read in seen:
                continue
            seen.add(read)
            if tensor in made and tensor not in task.outputs:
                yield read.tensors[0], MEMORY
                continue
            waiting.append(read)
            if tensor not in task.outputs:
                plain = INLINED if read.reduction is None else REGISTERS
                yield read.tensors[0], PLACES.get(memories[tensor], REGISTERS) if tensor in memories else plain


@dataclasses.dataclass(frozen=True)
class NextChoice:
    """The fastest plan of the search that keeps a value elsewhere. place: where; seconds: its estimate; least: if the search estimated
    no such plan, the smallest lower bound of those that it dropped. None: the search has none."""

    place: str = ""
    seconds: float | None = None
    least: float | None = None

    def __str__(self) -> str:
        if self.seconds is not None:
            return f"{self.place}, {self.seconds * 1e6:.1f} us"
        return (
            f"not compared ({self.place} takes at least {self.least * 1e6:.1f} us)" if self.least is not None else "not compared"
        )


def described(places: Mapping[str, str]) -> str:
    """The places of one value, with the kernels that read it there if these differ.

    >>> described({"Y": "in memory", "Z": "in memory"}), described({"Y": "in registers", "Z": "inlined"})
    ('in memory', 'in registers for Y, inlined for Z')
    """
    if len(set(places.values())) == 1:
        return next(iter(places.values()))
    return ", ".join(f"{place} for {kernel}" for kernel, place in places.items())


def next_choices(schedule: Schedule, profile: Profile) -> dict[str, NextChoice]:
    """For each value that a schedule's definitions hand to each other, the fastest other choice of the search for the same computation.
    Runs the search, which takes as long as generating a schedule."""
    computation = schedule.computation
    here = kept(computation, schedule.steps)
    if not here or has_empty_axis(computation):
        return dict.fromkeys(here, NextChoice())
    partition = Partition(computation, profile, model_of(profile))
    found = itertools.islice(ranked(computation, profile, partition=partition), KEPT)
    plans = [(c.estimate.seconds, kept(computation, c.steps)) for c in found]
    least = dict[str, NextChoice]()
    for seconds, cut, steps in partition.compared(_cut(partition, here)):
        if steps is not None:
            plans.append((seconds, kept(computation, steps)))
        for name in here:
            inside = any(t.name == name for t in cut)
            if inside == (MEMORY in here[name].values()) or math.isinf(seconds):
                continue
            known = least.get(name)
            if known is None or known.least is None or seconds < known.least:
                least[name] = NextChoice(MEMORY if inside else "elsewhere", least=seconds)
    plans.sort(key=lambda plan: plan[0])
    other = {
        name: next((p for p in plans if {*p[1].get(name, places).values()} != {*places.values()}), None)
        for name, places in here.items()
    }
    return {
        name: NextChoice(described(plan[1][name]), plan[0]) if plan is not None else least.get(name, NextChoice())
        for name, plan in other.items()
    }


def _cut(partition: Partition, here: Kept) -> frozenset[Tensor]:
    """The choices that a schedule keeps in memory, with what every plan has there."""
    among = [t for t in choices(partition.computation) if MEMORY in here.get(t.name, {}).values()]
    return partition.always | frozenset(among) | frozenset(partition.others)
