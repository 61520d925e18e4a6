"""Staging buffers of loads: `via` in their braces.

A buffer in shared memory splits the load into two: the steps before `via` move the elements into the buffer, those after it move
them on. A buffer in registers keeps the load in one: the same threads read all of their elements before they store them.
"""

from __future__ import annotations

from tilelang.lowering.build.refusals import refuse
from tilelang.schedules.steps import Do, Place, Step


def with_stops(steps: tuple[Step, ...]) -> tuple[Step, ...]:
    """The steps with every load through a shared staging buffer written as two loads.

    >>> print(*with_stops((Place("load", "A", "register", steps=(Place("via", None, "shared"),)),)), sep="; ")
    load A in shared; load A in register
    """
    out: list[Step] = []
    for step in steps:
        if isinstance(step, Place) and step.verb == "load" and step.memory != "global":
            out += _stages_of(step)
        elif isinstance(step, Place) and step.steps:
            inner = with_stops(step.steps)
            out.append(step if inner == step.steps else step.replace(steps=inner))
        else:
            out.append(step)
    return tuple(out)


def by_registers(step: Place) -> bool:
    """Whether all elements of a load wait in registers before the first of them is stored."""
    return any(_is_stop(s) for s in step.steps or ())


def without_stops(steps: tuple[Step, ...] | None) -> tuple[Step, ...] | None:
    """The steps of a move, without `via`."""
    return steps if steps is None else tuple(s for s in steps if not _is_stop(s))


def at_stop(steps: tuple[Step, ...] | None, but: str = "") -> tuple[tuple[Step, ...], Place, tuple[Step, ...]] | None:
    """The steps before the first `via` into another memory than `but`, that `via`, and the steps after it; None if there is none."""
    for k, step in enumerate(steps or ()):
        if isinstance(step, Place) and _is_stop(step) and step.memory != but:
            return (steps or ())[:k], step, (steps or ())[k + 1 :]
    return None


def _is_stop(step: Step) -> bool:
    return isinstance(step, Place) and step.verb == "via"


def _stages_of(step: Place) -> list[Step]:
    """A load as a sequence of loads, from one staging buffer to the next."""
    parted = at_stop(step.steps, but="register")
    if parted is None:
        _check_register_stops(step)
        return [step]
    before, stop, after = parted
    stops_there = step.memory in ("shared", "register")
    if stop.memory != "shared" or not stops_there:
        raise refuse(stop, "via-memory", f"`{stop}` in a load in {step.memory}: only a load in register or shared can be staged, and"
                     " only in register or"
                     " shared", "write `via shared`, or remove the `via`" if stops_there else "remove the `via`")  # fmt: skip
    if step.ahead:
        raise refuse(stop, "not-lowered-yet", f"`{step}`: `ahead` for the copy out of a staging buffer is valid, but not supported yet",
                     f"prefetch into the staging buffer: via shared ahead {step.ahead}")  # fmt: skip
    if stop.steps and before:
        raise refuse(stop, "via-steps", f"`{step}` has two sets of steps for the copy of {step.tensor_name} to its staging buffer:"
                     f" before `{stop}` and in its braces",
                     "keep one set")  # fmt: skip
    first = stop.replace(verb="load", what=step.what, steps=before or stop.steps, stream=step.stream or stop.stream)
    second = step.replace(steps=after or None, stream=False)
    return [*_stages_of(first), *_stages_of(second)]


def _check_register_stops(step: Place) -> None:
    """Refuses `via register` with a layout or steps of its own, or where it has no meaning."""
    stops = [s for s in step.steps or () if isinstance(s, Place) and _is_stop(s)]
    if not stops:
        return
    stop = stops[-1]
    if len(stops) > 1 or step.memory != "shared":
        raise refuse(stop, "via-memory", f"`{step}`: `via register` is only possible in a load in shared, and once",
                     "remove the `via`")  # fmt: skip
    if isinstance((step.steps or ())[-1], Do):
        raise refuse(stop, "not-lowered-yet", f"`{stop}` before an instruction is valid, but not supported yet",
                     "remove the `via` or the instruction")  # fmt: skip
    if stop.ahead:
        raise refuse(stop, "not-lowered-yet", f"`{stop}` in a load is valid, but not supported yet",
                     "remove its `ahead`: a load with `ahead` already keeps its data in registers from the start of an iteration to its"
                     " end")  # fmt: skip
    if stop.layout is not None or stop.steps:
        raise refuse(stop, "via-steps", f"`{stop}`: the threads that fetch the data into registers also store it, so `via register` has"
                     " no layout or steps of its own", "via register")  # fmt: skip
