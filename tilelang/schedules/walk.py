"""What steps leave of the axes. Only here is a size read out of `tile` and `split`, and are axes renamed by `fuse` and `unfuse`.

`refine` applies a step to points: to a `Spec`, which also knows where a piece begins and which bounds it has, or to `Extents`, which
are numbers alone. `walk_steps` goes over a chain of steps with the extents before and after each one. The checks, the implied steps,
the lowering, the cost model and the notes of `explain` all read schedules with these, so they cannot disagree about what is left.
`tilelang/testing/naive.py` interprets the steps by itself, to check all of this.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple, Protocol, Self, TypeVar

from tilelang.core.node import node
from tilelang.schedules.steps import Fuse, Split, Step, Tile, Unfuse


class Points(Protocol):
    """A set of points that steps refine."""

    def cut(self, sizes: Mapping[str, int]) -> Self:
        """One piece of these sizes."""

    def fuse(self, name: str, parts: tuple[str, ...]) -> Self:
        """The same points with one axis for several."""

    def unfuse(self, axis: str, parts: tuple[tuple[str, int], ...]) -> Self:
        """The same points with several axes for one."""


P = TypeVar("P", bound=Points)


def refine(points: P, step: Step) -> P:
    """The points that a step leaves to those below it; all of them, unless it cuts or renames axes.

    >>> refine(Extents({"m": 8, "n": 6}), Split((("m", 2),))).sizes
    {'m': 2, 'n': 6}
    """
    match step:
        case Tile() | Split():
            return points.cut(piece_of(step))
        case Fuse(name, axes):
            return points.fuse(name, axes)
        case Unfuse(axis, parts):
            return points.unfuse(axis, parts)
        case _:
            return points


def piece_of(step: Step) -> dict[str, int]:
    """The size of a piece along each axis that a step cuts, as far as it is known; a hole is not.

    >>> piece_of(Split((("m", 2), ("n", 4))))
    {'m': 2, 'n': 4}
    """
    return {a: n for a, n in step.sizes if isinstance(n, int)} if isinstance(step, (Tile, Split)) else {}


def count_pieces(piece: Mapping[str, int], sizes: Mapping[str, int]) -> dict[str, int]:
    """How many pieces there are along each axis, at least one. sizes: what is left of the axes; others are left out.

    >>> count_pieces({"m": 4, "n": 8, "o": 1}, {"m": 10, "n": 0})
    {'m': 3, 'n': 1}
    """
    return {a: max(1, -(-sizes[a] // n)) for a, n in piece.items() if a in sizes}


@node
class Extents:
    """What is left of each axis, by name: the size of the piece. Axes that steps made stand last.

    reduced: the axes of a reduction. within: how many points of the axes exist at most, if these are fewer of some axis; use `most`.
    """

    sizes: Mapping[str, int]
    reduced: frozenset[str] = frozenset()
    within: Mapping[str, int] | None = None

    @property
    def most(self) -> Mapping[str, int]:
        """At most so many points of each axis exist: a piece may be larger than what it was cut from.

        >>> Extents({"m": 10}).cut({"m": 16}).most
        {'m': 10}
        """
        return self.sizes if self.within is None else self.within

    def cut(self, sizes: Mapping[str, int]) -> Extents:
        """A piece; of axes that are not there, nothing is cut."""
        left = dict(self.sizes)  # the model comes here often
        within = None if self.within is None else dict(self.within)
        for a, n in sizes.items():
            if a in left:
                if within is None and n > left[a]:
                    within = dict(left)
                if within is not None:
                    within[a] = min(n, within[a])
                left[a] = n
        return Extents(left, self.reduced, within)

    def fuse(self, name: str, parts: tuple[str, ...]) -> Extents:
        """The extents with one axis for several."""
        return self._renamed(parts, {name: math.prod(self.sizes[a] for a in parts)})

    def unfuse(self, axis: str, parts: tuple[tuple[str, int], ...]) -> Extents:
        """The extents with several axes for one."""
        return self._renamed((axis,), dict(parts))

    def _renamed(self, gone: tuple[str, ...], made: Mapping[str, int]) -> Extents:
        """Axes that were not cut, so that all of their points exist, by other names."""
        sizes, most = ({**{a: n for a, n in left.items() if a not in gone}, **made} for left in (self.sizes, self.most))
        reduced = self.reduced - set(gone) | made.keys() if gone[0] in self.reduced else self.reduced
        return Extents(sizes, reduced, None if self.within is None else most)

    def in_order(self, axes: Iterable[str]) -> Extents:
        """The same extents with the axes in another order."""
        sizes, most = ({a: left[a] for a in axes} for left in (self.sizes, self.most))
        return Extents(sizes, self.reduced, None if self.within is None else most)

    def after(self, steps: Iterable[Step]) -> Extents:
        """What a chain of steps leaves.

        >>> Extents({"m": 8, "n": 6}).after((Fuse("mn", ("m", "n")), Split((("mn", 4),)))).sizes
        {'mn': 4}
        """
        found = self
        for step in steps:
            found = refine(found, step)
        return found


class Walked(NamedTuple):
    """A step of a chain by its number, and the extents before and after it."""

    number: int
    step: Step
    before: Extents
    after: Extents

    @property
    def piece(self) -> dict[str, int]:
        """The sizes of the pieces that the step makes; empty where it cuts nothing."""
        return {a: n for a, n in piece_of(self.step).items() if a in self.before.sizes}

    @property
    def rounds(self) -> dict[str, int]:
        """How many pieces it makes along each axis that it cuts, at least one."""
        return count_pieces(piece_of(self.step), self.before.sizes)

    @property
    def loops(self) -> dict[str, int]:
        """Those of the axes with more than one piece."""
        return {a: n for a, n in self.rounds.items() if n > 1}


def walk_steps(extents: Extents, steps: Iterable[Step], first: int = 0) -> Iterator[Walked]:
    """The steps of a chain in order. first: the number of the first one.

    >>> for w in walk_steps(Extents({"m": 8, "n": 6}), (Tile((("m", 4),), "block"), Split((("m", 1), ("n", 4))))):
    ...     print(w.step, w.rounds, w.after.sizes)
    tile m=4 -> block {'m': 2} {'m': 4, 'n': 6}
    split m=1 n=4 {'m': 4, 'n': 2} {'m': 1, 'n': 4}
    """
    for number, step in enumerate(steps, first):
        after = refine(extents, step)
        yield Walked(number, step, extents, after)
        extents = after
