"""Random schedules that are accepted: one verb is drawn at a time, and refused steps are dropped.

`draw_step` looks at the remaining spec (its axes, extents and level) and draws any verb for it. It knows only the obvious rules of the
compiler, so, unlike `planner`, it does not share the compiler's idea of a good schedule. `keep_accepted` drops the steps that the
checks refuse, so every draw gives a schedule, which may be the empty one.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable
from typing import Any

from tilelang.computations.computation import Computation, Tensor
from tilelang.core.expr import INDEX, Read, Var, index
from tilelang.errors import Refusal
from tilelang.lowering.pipeline import lower
from tilelang.options import Options
from tilelang.runtime.targets import Target
from tilelang.schedules.check import main_task
from tilelang.schedules.schedule import Builder, Move, Schedule, move, threads, warps
from tilelang.schedules.spec import LEVELS
from tilelang.schedules.steps import Split, Step
from tilelang.testing.choice import Source, subset
from tilelang.testing.moves import draw_layout, draw_move, draw_order

MOST_STEPS = 9
SIZES = (4, 2, 8, 1, 3, 16, 5, 32, 64)  # of tiles and chunks, besides the axis' own extent and larger sizes
LANES = (4, 2, 8, 16, 1)
FACTORS = (2, 4, 3, 8, 5, 1)


def draw_schedule(source: Source, computation: Computation, target: Target, most: int = MOST_STEPS) -> Schedule:
    """A random schedule that compiles for the target, with a limited number of steps."""
    return keep_accepted(computation, draw_steps(source, computation, target, most).steps, target)


def draw_steps(source: Source, computation: Computation, target: Target, most: int = MOST_STEPS) -> Schedule:
    """A random schedule whose steps are accepted one by one; the target may still refuse them together."""
    made = Schedule(computation)
    for _ in range(source.integer(0, most)):
        made = with_step(source, made, target)
    return made


def with_step(source: Source, made: Schedule, target: Target) -> Schedule:
    """The schedule with one more step; unchanged if that step is refused as it is written."""
    try:
        return _Verbs(source, made, target).draw()
    except Refusal:
        return made


def keep_accepted(computation: Computation, steps: Iterable[Step], target: Target) -> Schedule:
    """The schedule with these steps, without those that make the target refuse it.

    If all are accepted together, all are kept. Otherwise each step is tried after the earlier steps that were accepted.
    """
    whole = _built(computation, tuple(steps))
    if whole is not None and is_accepted(whole, target):
        return whole
    found = Schedule(computation)
    for step in steps:
        longer = _built(computation, (*found.steps, step))
        if longer is not None and is_accepted(longer, target):
            found = longer
    return found


def is_accepted(schedule: Schedule, target: Target) -> bool:
    """Whether a schedule can be lowered for a target, so that `tl.compile` does not refuse it."""
    here = dataclasses.replace(target.profile, dialects=(target.dialect,))
    try:
        lower(schedule.computation, schedule.steps, here, Options(), target.needs)
    except Refusal:
        return False
    except Exception as error:  # a fault of the compiler: report it with the schedule that triggers it
        error.add_note(f"while this was compiled for {target}:\n{schedule.computation.text}{schedule}")
        raise
    return True


def _built(computation: Computation, steps: tuple[Step, ...]) -> Schedule | None:
    try:
        return Schedule(computation, steps)
    except Refusal:
        return None


class _Verbs:
    """Draws one more step for a schedule, of any verb."""

    def __init__(self, source: Source, made: Schedule, target: Target) -> None:
        self.source, self.made, self.profile = source, made, target.profile
        self.spec = made.specs[-1]
        self.axes = [a.name for a in self.spec.axes]
        self.task = main_task(made.computation, made.steps)

    def draw(self) -> Schedule:
        """The schedule with the step; unchanged if no verb applies. Raises Refusal."""
        verbs: list[tuple[int, Callable[[Schedule], Schedule], bool]] = [
            (5, self.tile, bool(self.axes) and self.spec.level != "thread"),
            (3, self.split, bool(self.axes)),
            (4, self.load, bool(self.read) and self.spec.level != "kernel"),
            (3, self.accumulate, bool(self.task.states) and self.spec.level != "kernel"),
            (2, self.vectorize, bool(self.axes)),
            (2, self.compute, bool(self.stages)),
            (1, self.inline, bool(self.stages) and not self.made.steps),
            (1, self.fuse, len(self.axes) > 1),
            (1, self.unfuse, bool(self.axes)),
            (1, self.via, not self.task.states and self.spec.level != "kernel"),
            (1, self.units, not self.made.steps),
            (1, self.when, bool(self.axes)),
        ]
        possible = [verb for weight, verb, holds in verbs if holds for _ in range(weight)]
        return self.source.pick(possible)(self.made) if possible else self.made

    # ------------------------------------------------------------ what there is

    @property
    def read(self) -> dict[Tensor, list[Read]]:
        """The tensors that the task reads, and the reads; without its own accumulators."""
        found: dict[Tensor, list[Read]] = {}
        for read in self.task.reads():
            if self.task.state_member(read.tensor) is None and read not in found.setdefault(read.tensor, []):
                found[read.tensor].append(read)
        return found

    @property
    def stages(self) -> list[Tensor]:
        """The first tensor of each definition that is not an output."""
        outputs = self.made.computation.outputs
        return [
            d.tensors[0] for d in self.made.computation.definitions if not d.tensors[0].hidden and d.tensors[0] not in outputs
        ]

    def extent(self, axis: str) -> int:
        return self.spec.axis(axis).extent

    def size(self, axis: str) -> int:
        """The size of a piece: a small number, the whole extent, or more."""
        n = self.extent(axis)
        return self.source.pick([*(s for s in SIZES if s < n), max(1, n), n + 1])

    def some_axes(self) -> list[str]:
        """Usually one axis, otherwise several, in any order."""
        if self.source.chance(45):
            chosen = subset(self.source, self.axes, 60) or self.axes[:1]
            return chosen[::-1] if self.source.chance(15) else chosen
        return [self.source.pick(self.axes)]

    # ------------------------------------------------------------ the verbs

    def tile(self, made: Builder) -> Any:
        known = [x for x in LEVELS if x in self.profile.level_names]
        below = known[known.index(self.spec.level) + 1 :] if self.spec.level in known else known
        level = below[0] if below[:1] == ["block"] or not self.source.chance(60) else below[-1]
        sizes = {a: self.size(a) for a in self.some_axes()}
        order = draw_order(self.source, list(sizes)) if len(sizes) > 1 and self.source.chance(15) else None
        count = self.source.pick((2, 3, 4, 8)) if self.source.chance(12) else None
        return made.tile(**sizes).to(level, count=count, order=order)

    def split(self, made: Builder) -> Any:
        sizes = {a: self.size(a) for a in self.some_axes()}
        unroll = self.source.chance(15)
        return made._then(Split(tuple(sizes.items()), unroll, not unroll and self.source.chance(15)))

    def load(self, made: Builder) -> Any:
        tensor = self.source.pick(list(self.read))
        one = self.source.pick(self.read[tensor]) if self.source.chance(10) else tensor.name
        memory = self.source.pick(("shared", "register"))
        how: dict[str, Any] = {"ahead": self.source.pick((1, 2)) if self.source.chance(20) else 0}
        how["stream"] = self.source.chance(5)
        dims = [d.name for d in tensor.dims]
        if dims and self.source.chance(25):
            how["layout"] = draw_layout(self.source, dims)
        if dims and self.source.chance(40):
            how["steps"] = draw_move(self.source, dims, self.spec.level == "thread")
        return made.load(one, memory, **how)

    def accumulate(self, made: Builder) -> Any:
        return made.accumulate(self.source.pick(("register", "register", "shared")), **self.stored())

    def via(self, made: Builder) -> Any:
        return made.via(self.source.pick(("register", "shared")), **self.stored())

    def stored(self) -> dict[str, Any]:
        """The steps of a store."""
        how: dict[str, Any] = {"behind": int(self.source.chance(15)), "stream": self.source.chance(5)}
        dims = [d.name for d in self.task.outputs[0].dims]
        if dims and self.source.chance(25):
            how["steps"] = draw_move(self.source, dims, self.spec.level == "thread")
        return how

    def vectorize(self, made: Builder) -> Any:
        axis = self.axes[-1] if self.source.chance(30) else self.source.pick(self.axes)
        return made.vectorize(**{axis: self.source.pick(LANES)})

    def compute(self, made: Builder) -> Any:
        tensor = self.source.pick(self.stages)
        memory = "global" if self.spec.level == "kernel" else self.source.pick(("shared", "register"))
        steps: Move | None = None
        if tensor.dims and self.source.chance(40):
            axis = self.source.pick([d.name for d in tensor.dims])
            steps = move().tile(**{axis: self.source.pick(SIZES)}).to("block" if memory == "global" else "thread")
            steps = steps.vectorize(**{axis: self.source.pick(LANES)}) if self.source.chance(30) else steps
        return made.compute(tensor.name, memory, steps=steps, ahead=int(memory != "global" and self.source.chance(15)))

    def inline(self, made: Builder) -> Any:
        return made.inline(self.source.pick(self.stages))

    def fuse(self, made: Builder) -> Any:
        first = self.source.integer(0, len(self.axes) - 2)
        parts = tuple(self.axes[first : first + 2])
        return made.fuse(**{f"{'_'.join(parts)}": parts})

    def unfuse(self, made: Builder) -> Any:
        axis = self.source.pick(self.axes)
        n = self.extent(axis)
        factor = self.source.pick([f for f in FACTORS if n % f == 0])
        return made.unfuse(**{axis: {f"{axis}_outer": max(1, n // factor), f"{axis}_inner": factor}})

    def units(self, made: Builder) -> Any:
        count = self.source.pick((4, 8, 16, 32, 64, 3))
        return made.units(block=warps(self.source.pick((1, 2))) if self.source.chance(30) else threads(count))

    def when(self, made: Builder) -> Any:
        """A step under a condition on an extent, which may hold or not."""
        axes = [a.name for a in self.made.specs[0].axes if a.name in self.axes]
        if not axes:
            return made
        condition = Var(self.source.pick(axes), INDEX) < index(self.source.pick((1000000, 8)))
        inside = self.spec.level != "kernel"
        inner: list[Callable[[Any], Any]] = [self.split, *[self.load] * (inside and bool(self.read)), self.vectorize]
        inner += [self.tile] * (self.spec.level != "thread")
        return made.when(condition, self.source.pick(inner)(move()))
