"""Sizes for tests of a computation or schedule: zero, one, one less or more than a tile, odd, prime."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, overload

from tilelang.computations.computation import Computation, Tensor, as_computation
from tilelang.errors import ComputationError, Refusal, brief, meant, whole_number
from tilelang.runtime.targets import Target
from tilelang.schedules.check import axis_extents, resolve_when
from tilelang.schedules.resize import resize, resize_schedule
from tilelang.schedules.schedule import Schedule
from tilelang.schedules.steps import Split, Tile, Vectorize, every_step, has_holes
from tilelang.testing.accepted import is_accepted
from tilelang.testing.choice import Source

EXTENTS = (1, 2, 3, 0, 4, 5, 7, 8, 13, 16, 17, 24, 31)
MOST_POINTS = 30_000  # of a definition, its reduction's included


@overload
def resized(what: Schedule, sizes: Mapping[str, int]) -> Schedule: ...
@overload
def resized(what: Computation | Tensor, sizes: Mapping[str, int]) -> Computation: ...
@overload
def resized(what: Schedule | Computation, sizes: Mapping[str, int]) -> Schedule | Computation: ...
def resized(what: Any, sizes: Mapping[str, int]) -> Any:
    """The same computation, or the schedule with the same steps, at other extents of its axes, by name.

    Raises ComputationError for an unknown axis, an invalid extent, and extents at which the computation does not exist; Refusal if a
    step is illegal at these extents.

    >>> import tilelang as tl
    >>> i = tl.axes(i=1000)
    >>> y = tl.computation("twice", tl.define("Y", tl.input("X", tl.float32, i)[i] * 2, i))
    >>> print(*resized(y, {"i": 7}).inputs)
    X: float32[i: 7]
    """
    made = what if isinstance(what, Schedule) else as_computation(what)
    known = _extents(made)
    for axis, n in sizes.items():
        if axis not in known:
            raise ComputationError("unknown-axis", f"there is no axis {brief(axis)} to resize", help=meant(str(axis), known))
        whole = whole_number(n)
        if whole is None or whole < 0:
            raise ComputationError("bad-size", f"{axis}={brief(n)} is not a valid extent", help="use a whole number, 0 or more")
    return resize_schedule(made, sizes) if isinstance(made, Schedule) else resize(made, sizes)


def draw_sizes(
    source: Source, what: Computation | Schedule, target: Target | None = None, points: int = MOST_POINTS
) -> dict[str, int]:
    """Extents by axis for which the computation exists and, with a target, the schedule is accepted.

    An axis keeps its own extent if none of the drawn ones is possible. points: the maximum number of points of a definition, if its
    axes can be made that short.
    """
    own = _extents(what)
    pieces = _pieces(what)
    wanted: dict[str, int] = {}
    room = points
    for axis, n in own.items():
        known = [e for e in dict.fromkeys((*EXTENTS, *pieces.get(axis, ()), n)) if e <= room]
        wanted[axis] = source.pick(known or [1])
        room //= max(1, wanted[axis])
    found = largest_part(wanted, lambda sizes: _exists(what, sizes, target))
    now = _extents(resized(what, found))  # axes may be longer than requested, because another definition reads beyond that
    return {axis: now[axis] for axis in found}


def largest_part(wanted: Mapping[str, int], holds: Callable[[dict[str, int]], bool]) -> dict[str, int]:
    """The wanted items if they hold together; otherwise each one that holds together with those kept before it."""
    if holds(dict(wanted)):
        return dict(wanted)
    found: dict[str, int] = {}
    for axis, n in wanted.items():
        if holds({**found, axis: n}):
            found[axis] = n
    return found


def _exists(what: Computation | Schedule, sizes: Mapping[str, int], target: Target | None) -> bool:
    try:
        made = resized(what, sizes)
    except (ComputationError, Refusal):
        return False
    if not isinstance(made, Schedule) or target is None or has_holes(made.steps):  # which are filled for each size
        return True
    return is_accepted(made, target)


def _extents(what: Computation | Schedule) -> dict[str, int]:
    """The extent of every axis of the definitions, by name."""
    return axis_extents(what.computation if isinstance(what, Schedule) else what)


def _pieces(what: Computation | Schedule) -> dict[str, list[int]]:
    """By axis, the extents at which a piece of the schedule ends, and one more or one less."""
    if not isinstance(what, Schedule):
        return {}
    found: dict[str, set[int]] = {}
    for step in every_step(resolve_when(what.steps, _extents(what))):
        sizes = (
            step.sizes if isinstance(step, (Tile, Split)) else ((step.axis, step.lanes),) if isinstance(step, Vectorize) else ()
        )
        for axis, n in sizes:
            if isinstance(n, int):
                found.setdefault(axis, set()).update((n - 1, n, n + 1, 2 * n, 2 * n + 1))
    return {axis: sorted(sizes) for axis, sizes in found.items()}


def points(computation: Computation) -> int:
    """The number of points of the largest definition, including those of its reduction."""
    axes = ((*d.axes, *(d.reduction.axes if d.reduction is not None else ())) for d in computation.definitions)
    return max((math.prod(a.extent for a in every) for every in axes), default=0)
