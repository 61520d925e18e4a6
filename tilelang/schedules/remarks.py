"""Remarks on unexpected effects of a legal schedule: steps without effect, accumulators inside too many loops, and accumulators that
exceed the registers. `explain` and the HTML page print them. A remark says what happens, never what would be faster.

Each function of `REMARKS` takes the steps with their specs and yields sentences; a new remark is a new function.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from tilelang.core.expr import Axis, Read, free
from tilelang.errors import counted
from tilelang.profiles.profile import Profile, l1, l2
from tilelang.schedules.steps import Do, Place, Split, Step, Tile, Vectorize
from tilelang.schedules.task import Task
from tilelang.schedules.walk import count_pieces, piece_of

if TYPE_CHECKING:
    from tilelang.schedules.explain import Refinement
    from tilelang.schedules.spec import Spec

Refined = Sequence["Refinement"]
CACHES = (l1.name, l2.name)


class Remarked(NamedTuple):
    """A schedule as the remarks see it: its refinements, the last kernel's task, and the device if it is known."""

    found: Refined
    task: Task
    profile: Profile | None


def remarks(found: Refined, task: Task, profile: Profile | None = None) -> list[str]:
    """The remarks on a schedule. profile: of the device; without it, remarks that depend on a device are left out.

    >>> import tilelang as tl
    >>> i = tl.axes(i=8)
    >>> X = tl.input("X", tl.float32, i)
    >>> s = tl.schedule(tl.define("Y", X[i] * 2, i)).tile(i=4).to(tl.block).load("X", tl.shared, ahead=1)
    >>> print(s.explain().splitlines()[-1])
    note: `load X in shared ahead 1`: `ahead` has no effect, because this step is not directly inside a loop
    """
    return [sentence for remark in REMARKS for sentence in remark(Remarked(found, task, profile))]


# ---------------------------------------------------------------- steps without effect


def unused_ahead(seen: Remarked) -> Iterator[str]:
    """Loads and stages with `ahead` that are not directly inside a loop. Only steps that place tensors may be between it and them."""
    for steps in _chains(seen.found):
        for number, r in enumerate(steps):
            place = r.step
            if not (isinstance(place, Place) and place.ahead and place.verb in ("load", "compute") and place.on is None):
                continue
            if place.memory in CACHES:  # a prefetch, whose distance counts the loops below it
                continue
            above = range(number - 1, 0, -1)
            loops = [k for k in above if isinstance(steps[k].step, Split) and _iterations(steps, k)]
            direct = next((k for k in above if not _is_beside(steps[k].step)), None)
            if direct in loops:
                continue
            why = "this step is not directly inside a loop"
            if direct is not None and isinstance(steps[direct].step, Split):
                why = f"the loop of `{steps[direct].head}` has a single iteration"
            elif loops and direct is not None:
                why = f"`{steps[direct].head}` is between this step and the loop of `{steps[loops[0]].head}`"
            yield f"`{r.head}`: `ahead` has no effect, because {why}"


def _is_beside(step: Step | None) -> bool:
    """Whether a step may be between a loop and a prefetching place in it."""
    return isinstance(step, Place) and step.verb != "accumulate"


# ---------------------------------------------------------------- accumulators


def repeated_reductions(seen: Remarked) -> Iterator[str]:
    """Implied accumulators below implied loops over outputs: each piece runs its own loop over the whole reduction."""
    at = next((k for k, r in enumerate(seen.found) if r.implied and isinstance(r.step, Place)), None)
    if at is None:
        return
    first = at
    while first > 1 and seen.found[first - 1].implied:
        first -= 1
    if first == at or not any(isinstance(r.step, (Split, Tile)) for r in seen.found[:first]):
        return
    before, after = seen.found[first - 1].spec, seen.found[at].spec
    iterations = {a.name: -(-a.extent // after.axis(a.name).extent) for a in before.axes if not a.reduction}
    again = {a: read for a, n in iterations.items() if n > 1 and (read := _read_alike(seen, after, a))}
    if not again:
        return
    reduced = [a.name for a in after.axes if a.reduction]
    each = " ".join(f"{a.name}:{a.extent}" for a in after.axes if not a.reduction)
    repeated = " and ".join(f"{', '.join(names)} in each iteration over {a}" for a, names in again.items())
    most = "up to " if any(a.bounds for a in before.axes if a.name in iterations) else ""
    yield (
        f"without `accumulate`, the whole loop over {' and '.join(reduced)} runs {most}"
        f"{counted(math.prod(iterations.values()), 'time')} in each piece, once for every {each}; it reads the same"
        f" elements again: {repeated}"
    )


def _read_alike(seen: Remarked, spec: Spec, axis: str) -> list[str]:
    """The tensors, except those in registers, of which the reductions read the same elements at every point of an axis."""
    at, found = dict(spec.coordinates), list[str]()
    held = {name.split(":")[0] for name in spec.residences if name.endswith(":register")}
    for read in (e for s in seen.task.states for v in s.reduce.values for e in v.walk() if isinstance(e, Read)):
        points = {v.name[1:] for i in read.indices for e in i.walk() if isinstance(e, Axis) for v in free(at[e.name])}
        if axis not in points and read.tensor.name not in {*held, *found}:
            found.append(read.tensor.name)
    return found


def too_many_accumulators(seen: Remarked) -> Iterator[str]:
    """Accumulators that exceed the registers of a thread. Schedules with instructions are skipped."""
    if seen.profile is None or any(isinstance(r.step, Do) for r in seen.found) or any(a.empty for a in seen.found[0].spec.axes):
        return
    at = next((k for k, r in enumerate(seen.found) if isinstance(s := r.step, Place) and _is_state(s)), None)
    if at is None:
        return
    elements = _elements_of_a_thread(seen.found, at)
    needed = sum(elements * t.dtype.bytes for s in seen.task.states for t in s.tensors)
    limit = seen.profile.registers_per_thread * 4
    if needed > limit:
        where = " is implied above the first cut of a reduction and" if seen.found[at].implied else ""
        yield (
            f"`{seen.found[at].head}`{where} gives each thread {elements:,} accumulators ({needed:,} bytes), more than the {limit:,} "
            f"bytes of registers of a thread of `{seen.profile.name}`"
        )


def _is_state(place: Place) -> bool:
    return place.verb == "accumulate" and place.memory == "register"


def _elements_of_a_thread(found: Refined, at: int) -> int:
    """The number of elements that a thread accumulates: the product of the iterations of all loops over outputs below, of the tiles per
    unit, and of the remaining extents."""
    last = found[-1].spec
    reduced = {a.name for r in found for a in r.spec.axes if a.reduction}
    held = math.prod(a.extent for a in last.axes if not a.reduction)
    for k in range(at + 1, len(found)):
        step = found[k].step
        if isinstance(step, Split):
            held *= math.prod(n for a, n in _iterations(found, k).items() if a not in reduced)
        elif isinstance(step, Tile) and isinstance(step.count, int):
            tiles = math.prod(n for a, n in _iterations(found, k).items() if a not in reduced)
            held *= -(-tiles // max(1, step.count))
        elif isinstance(step, Vectorize) and step.axis in reduced and isinstance(step.lanes, int):
            held *= step.lanes
    return held


# ---------------------------------------------------------------- shared functions


def _chains(found: Refined) -> Iterator[Refined]:
    """The steps of a schedule, then those in the braces of each, as far as they are known."""
    yield found
    for r in found:
        if r.inside:
            yield from _chains(r.inside)


def _iterations(found: Refined, at: int) -> dict[str, int]:
    """The number of pieces along each axis that a cut divides into several."""
    step = found[at].step
    pieces = count_pieces(piece_of(step), found[at - 1].spec.extents.sizes) if step is not None else {}
    return {a: n for a, n in pieces.items() if n > 1}


REMARKS: tuple[Callable[[Remarked], Iterator[str]], ...] = (unused_ahead, repeated_reductions, too_many_accumulators)
