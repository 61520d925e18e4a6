"""Sources of random choices: Hypothesis, which shrinks failures, or a seed.

Generators are written once, against `Source`; `Drawn` and `Seeded` are the two sources.
"""

from __future__ import annotations

import functools
import random
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

T = TypeVar("T")


class Source(Protocol):
    """The choices that a generator makes. The first choices are the simplest."""

    def integer(self, low: int, high: int) -> int:
        """An integer in a closed range."""
        ...

    def pick(self, items: Sequence[T]) -> T:
        """One of the items."""
        ...

    def chance(self, percent: int) -> bool:
        """True in about this percentage of cases; False is the simpler choice."""
        ...


class Drawn:
    """Choices by Hypothesis. `draw` is the argument of functions decorated with `hypothesis.strategies.composite`."""

    def __init__(self, draw: Callable[[SearchStrategy[Any]], Any]) -> None:
        self._draw = draw

    def integer(self, low: int, high: int) -> int:
        return int(self._draw(_integers(low, high)))

    def pick(self, items: Sequence[T]) -> T:
        return items[self._draw(_integers(0, len(items) - 1))] if len(items) > 1 else items[0]

    def chance(self, percent: int) -> bool:
        return bool(self._draw(_integers(0, 99)) >= 100 - percent)


@functools.cache
def _integers(low: int, high: int) -> SearchStrategy[int]:
    from hypothesis import strategies  # late: an optional library

    return strategies.integers(low, high)


class Seeded:
    """Choices by a seed."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def integer(self, low: int, high: int) -> int:
        return self._random.randint(low, high)

    def pick(self, items: Sequence[T]) -> T:
        return self._random.choice(items)

    def chance(self, percent: int) -> bool:
        return self._random.random() * 100 < percent


def subset(source: Source, items: Sequence[T], percent: int = 50) -> list[T]:
    """Some of the items, in order."""
    return [x for x in items if source.chance(percent)]
