"""How steps change the axes. Only this module reads the sizes of `tile` and `split`, and renames axes by `fuse` and `unfuse`.

`refine` applies a step to points: to a `Spec`, which also has the start and the bounds of a piece, or to `Extents`, which are only
numbers. `walk_steps` traverses a chain of steps with the extents before and after each one. The checks, the implied steps, the
lowering, the cost model and the notes of `explain` all read schedules in this way, so they cannot disagree about the remaining extents.
`tilelang/testing/naive.py` interprets the steps independently, to check all of this.
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
        """The same points with one axis instead of several."""

    def unfuse(self, axis: str, parts: tuple[tuple[str, int], ...]) -> Self:
        """The same points with several axes instead of one."""


P = TypeVar("P", bound=Points)


def refine(points: P, step: Step) -> P:
    """The points that remain after a step: all of them, unless it cuts or renames axes.

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
    """The size of a piece along each axis that a step cuts; holes are left out.

    >>> piece_of(Split((("m", 2), ("n", 4))))
    {'m': 2, 'n': 4}
    """
    return {a: n for a, n in step.sizes if isinstance(n, int)} if isinstance(step, (Tile, Split)) else {}


def count_pieces(piece: Mapping[str, int], sizes: Mapping[str, int]) -> dict[str, int]:
    """The number of pieces along each axis, at least one. sizes: the remaining extents; axes that are not in it are left out.

    >>> count_pieces({"m": 4, "n": 8, "o": 1}, {"m": 10, "n": 0})
    {'m': 3, 'n': 1}
    """
    return {a: max(1, -(-sizes[a] // n)) for a, n in piece.items() if a in sizes}


@node
class Extents:
    """The remaining extent of each axis, by name. Axes that steps made come last.

    reduced: the reduction axes. within: the maximum number of existing points, if that is less than the size of some piece; see `most`.
    """

    sizes: Mapping[str, int]
    reduced: frozenset[str] = frozenset()
    within: Mapping[str, int] | None = None

    @property
    def most(self) -> Mapping[str, int]:
        """The maximum number of existing points along each axis: a piece may be larger than the axis that it is cut from.

        >>> Extents({"m": 10}).cut({"m": 16}).most
        {'m': 10}
        """
        return self.sizes if self.within is None else self.within

    def cut(self, sizes: Mapping[str, int]) -> Extents:
        """One piece. Axes that do not exist are ignored."""
        left = dict(self.sizes)  # the cost model calls this often
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
        """The extents with one axis instead of several."""
        return self._renamed(parts, {name: math.prod(self.sizes[a] for a in parts)})

    def unfuse(self, axis: str, parts: tuple[tuple[str, int], ...]) -> Extents:
        """The extents with several axes instead of one."""
        return self._renamed((axis,), dict(parts))

    def _renamed(self, gone: tuple[str, ...], made: Mapping[str, int]) -> Extents:
        """Renames axes that were not cut, so that all of their points exist."""
        sizes, most = ({**{a: n for a, n in left.items() if a not in gone}, **made} for left in (self.sizes, self.most))
        reduced = self.reduced - set(gone) | made.keys() if gone[0] in self.reduced else self.reduced
        return Extents(sizes, reduced, None if self.within is None else most)

    def in_order(self, axes: Iterable[str]) -> Extents:
        """The same extents with the axes in another order."""
        sizes, most = ({a: left[a] for a in axes} for left in (self.sizes, self.most))
        return Extents(sizes, self.reduced, None if self.within is None else most)

    def after(self, steps: Iterable[Step]) -> Extents:
        """The extents after a chain of steps.

        >>> Extents({"m": 8, "n": 6}).after((Fuse("mn", ("m", "n")), Split((("mn", 4),)))).sizes
        {'mn': 4}
        """
        found = self
        for step in steps:
            found = refine(found, step)
        return found


class VisitedStep(NamedTuple):
    """A step of a chain with its number, and the extents before and after it."""

    number: int
    step: Step
    before: Extents
    after: Extents

    @property
    def piece(self) -> dict[str, int]:
        """The sizes of the pieces that the step makes; empty if it does not cut."""
        return {a: n for a, n in piece_of(self.step).items() if a in self.before.sizes}

    @property
    def rounds(self) -> dict[str, int]:
        """The number of pieces along each axis that it cuts, at least one."""
        return count_pieces(piece_of(self.step), self.before.sizes)

    @property
    def loops(self) -> dict[str, int]:
        """The axes with more than one piece."""
        return {a: n for a, n in self.rounds.items() if n > 1}


def walk_steps(extents: Extents, steps: Iterable[Step], first: int = 0) -> Iterator[VisitedStep]:
    """The steps of a chain in order. first: the number of the first one.

    >>> for w in walk_steps(Extents({"m": 8, "n": 6}), (Tile((("m", 4),), "block"), Split((("m", 1), ("n", 4))))):
    ...     print(w.step, w.rounds, w.after.sizes)
    tile m=4 -> block {'m': 2} {'m': 4, 'n': 6}
    split m=1 n=4 {'m': 4, 'n': 2} {'m': 1, 'n': 4}
    """
    for number, step in enumerate(steps, first):
        after = refine(extents, step)
        yield VisitedStep(number, step, extents, after)
        extents = after
