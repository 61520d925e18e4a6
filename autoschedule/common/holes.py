"""The holes of a schedule: finds them, and fills them with values. Given steps are not changed.

A hole is a missing number (`?`: a size, lanes, a count of units), or missing steps (`...`: anywhere in the schedule, or at the end of
the braces of a step that places a tensor). Holes are numbered in the order of the text; those under a `when` whose condition is false
are ignored.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tilelang.computations.computation import Computation
from tilelang.profiles.profile import Profile
from tilelang.schedules.check import axis_extents, resolve_when
from tilelang.schedules.steps import Hole, Open, Place, Sizes, Split, Step, Tile, Vectorize, When

SIZE, LANES, COUNT, STEPS, MOVE = "size", "lanes", "count", "steps", "move"
Value = int | tuple[Step, ...]


@dataclasses.dataclass(frozen=True, eq=False)
class Slot:
    """A hole. step: the step that it is in; axis: of a size or of lanes; of: the enclosing places, innermost last; after: the steps
    that follow it."""

    number: int
    kind: str
    step: Step
    axis: str = ""
    of: tuple[Place, ...] = ()
    after: tuple[Step, ...] = ()


def slots(computation: Computation, steps: Sequence[Step], profile: Profile | None = None) -> list[Slot]:
    """The holes of a schedule's steps.

    >>> import tilelang as tl
    >>> i, j = tl.axes(i=64, j=100)
    >>> Y = tl.schedule(tl.define("Y", tl.input("X", tl.float32, i, j)[i, j] * 2, i, j))
    >>> found = slots(Y.computation, Y.tile(i=tl.hole, j=4).to(tl.block).rest().steps)
    >>> [(s.kind, str(s.step)) for s in found]
    [('size', 'tile i=? j=4 -> block'), ('steps', '...')]
    """
    found: list[Slot] = []
    _Traversal(computation, profile, lambda slot: found.append(slot)).steps(tuple(steps))
    return found


def filled(
    computation: Computation, steps: Sequence[Step], values: Mapping[int, Value], profile: Profile | None = None
) -> tuple[Step, ...]:
    """The steps with values for the holes of these numbers."""
    return _Traversal(computation, profile, lambda slot: values.get(slot.number)).steps(tuple(steps))


def before(
    computation: Computation, steps: Sequence[Step], values: Mapping[int, Value], number: int, profile: Profile | None = None
) -> tuple[Step, ...]:
    """The filled steps above the step with the hole of this number."""

    def choose(slot: Slot) -> Value | None:
        if slot.number == number:
            raise _Reached
        return values.get(slot.number)

    traversal = _Traversal(computation, profile, choose)
    out: list[Step] = []
    try:
        for step in steps:
            out += traversal.steps((step,))
    except _Reached:
        pass
    return tuple(out)


class _Reached(Exception):
    """The hole of interest is reached."""


class _Traversal:
    """Traverses steps in order, and fills their holes. choose: the value of a hole, or None to leave it open."""

    def __init__(self, computation: Computation, profile: Profile | None, choose: Callable[[Slot], Any]) -> None:
        self.extents, self.profile, self.choose, self.number = axis_extents(computation), profile, choose, 0

    def steps(self, steps: tuple[Step, ...], of: tuple[Place, ...] = ()) -> tuple[Step, ...]:
        """The steps with the chosen values."""
        out: list[Step] = []
        for k, step in enumerate(steps):
            match step:
                case Open():
                    value = self._value(STEPS, step, of=of, after=steps[k + 1 :])
                    out += (step,) if value is None else value
                case Place():
                    out.append(self._place(step, of))
                case When():
                    out.append(self._when(step, of))
                case Tile(sizes=sizes, count=count):
                    sizes = self._sizes(step, sizes, of, steps[k + 1 :])
                    if isinstance(count, Hole):
                        value = self._value(COUNT, step, of=of)
                        count = count if value is None else value
                    out.append(step.replace(sizes=sizes, count=count) if (sizes, count) != (step.sizes, step.count) else step)
                case Split(sizes=sizes):
                    sizes = self._sizes(step, sizes, of, steps[k + 1 :])
                    out.append(step.replace(sizes=sizes) if sizes != step.sizes else step)
                case Vectorize(axis, Hole()):
                    value = self._value(LANES, step, axis, of)
                    out.append(step if value is None else step.replace(lanes=value))
                case _:
                    out.append(step)
        return tuple(out)

    def _sizes(self, step: Step, sizes: Sizes, of: tuple[Place, ...], after: tuple[Step, ...]) -> Sizes:
        out = []
        for axis, size in sizes:
            value = self._value(SIZE, step, axis, of, after) if isinstance(size, Hole) else None
            out.append((axis, size if value is None else value))
        return tuple(out)

    def _place(self, step: Place, of: tuple[Place, ...]) -> Place:
        made = step
        if step.steps is not None:
            inner = self.steps(step.steps, (*of, step))
            made = step.replace(steps=inner) if inner != step.steps else step
        if step.open:
            value = self._value(MOVE, step, of=(*of, step))
            if value is not None:
                made = made.replace(steps=(*(made.steps or ()), *value) or None, open=False)
        return made

    def _when(self, step: When, of: tuple[Place, ...]) -> When:
        """The step with the holes filled in the branch that holds on this device."""
        if resolve_when((step.replace(then=(Open(),), otherwise=()),), self.extents, self.profile):
            return step.replace(then=self.steps(step.then, of))
        return step.replace(otherwise=self.steps(step.otherwise, of))

    def _value(self, kind: str, step: Step, axis: str = "", of: tuple[Place, ...] = (), after: tuple[Step, ...] = ()) -> Any:
        self.number += 1
        return self.choose(Slot(self.number, kind, step, axis, of, after))
