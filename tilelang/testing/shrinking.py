"""Shrinks a failing case: fewer steps, smaller extents, plainer arguments, while it fails in the same way.

Hypothesis shrinks what its own tests find; this is for cases that were collected first and run together.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

from tilelang.errors import TileLangError
from tilelang.schedules.schedule import Schedule
from tilelang.schedules.steps import Place, Split, Step, Tile
from tilelang.testing.case import Case
from tilelang.testing.family import Recipe

LIMIT = 600  # attempts
C = TypeVar("C")


def shrink(case: Case, fails: Callable[[Case], bool], limit: int = LIMIT) -> Case:
    """The smallest case found for which `fails` holds, as it does for the given one."""
    attempts = itertools.count(1)
    return smallest(case, simpler, fails, lambda: next(attempts) <= limit)


def smallest(case: C, simpler: Callable[[C], Iterable[C]], fails: Callable[[C], bool], go_on: Callable[[], bool]) -> C:
    """The smallest case found for which `fails` holds, as it does for the given one, by one change after another.

    simpler: the cases that are one change simpler than a given one, the most promising first. go_on: called before each attempt.
    """
    changed = True
    while changed:
        changed = False
        for smaller in simpler(case):
            if not go_on():
                return case
            if fails(smaller):
                case, changed = smaller, True
                break
    return case


def simpler(case: Case) -> Iterator[Case]:
    """All cases that are one change simpler."""
    if case.data != "random":
        yield dataclasses.replace(case, data="random")
    for steps in fewer_steps(case.schedule.steps):
        made = _rebuilt(case.recipe, steps)
        if made is not None:
            yield dataclasses.replace(case, schedule=made)
    for name, value in case.recipe.arguments:
        for other in _plainer(name, value):
            changed = tuple((n, other if n == name else v) for n, v in case.recipe.arguments)
            recipe = Recipe(case.recipe.family, changed)
            made = _rebuilt(recipe, case.schedule.steps)
            if made is not None:
                yield dataclasses.replace(case, recipe=recipe, schedule=made)


def _rebuilt(recipe: Recipe, steps: tuple[Step, ...]) -> Schedule | None:
    """The schedule with these steps for a recipe; None if they do not fit together."""
    try:
        return Schedule(recipe.build(), steps)
    except (TileLangError, KeyError, IndexError, TypeError):
        return None


def fewer_steps(steps: tuple[Step, ...]) -> Iterator[tuple[Step, ...]]:
    """The steps without one of them, or with one of them simplified."""
    for i in range(len(steps)):
        yield (*steps[:i], *steps[i + 1 :])
    for i, step in enumerate(steps):
        for other in _plainer_step(step):
            yield (*steps[:i], other, *steps[i + 1 :])


def _plainer_step(step: Step) -> Iterator[Step]:
    match step:
        case Tile(sizes):
            if step.count is not None:
                yield step.replace(count=None)
            if step.order is not None:
                yield step.replace(order=None)
            if len(sizes) > 1:
                yield from (step.replace(sizes=sizes[:i] + sizes[i + 1 :]) for i in range(len(sizes)))
        case Split(sizes):
            if step.unroll or step.peel:
                yield step.replace(unroll=False, peel=False)
            if len(sizes) > 1:
                yield from (step.replace(sizes=sizes[:i] + sizes[i + 1 :]) for i in range(len(sizes)))
        case Place():
            if step.layout is not None:
                yield step.replace(layout=None)
            if step.ahead:
                yield step.replace(ahead=step.ahead - 1)
            if step.behind:
                yield step.replace(behind=0)
            if step.stream:
                yield step.replace(stream=False)
            if step.steps is not None:
                yield step.replace(steps=None)
                yield from (step.replace(steps=inner) for inner in fewer_steps(step.steps))
        case _:
            return


def _plainer(name: str, value: Any) -> Iterator[Any]:
    match value:
        case bool():
            if value:
                yield False
        case int():
            yield from (n for n in dict.fromkeys((1, 2, value // 2, value - 1)) if 0 < n < value)
        case str() if name == "dtype" and value != "float32":
            yield "float32"
        case str() if name in ("to", "where") and value:
            yield ""
        case tuple():
            for i, item in enumerate(value):
                yield (*value[:i], *value[i + 1 :])
                if isinstance(item, int):
                    yield from ((*value[:i], n, *value[i + 1 :]) for n in _plainer(name, item))
        case _:
            return
