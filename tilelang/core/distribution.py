"""Distributions: which thread holds which element.

A distribution maps its parts (a thread, a slot of its registers, an iteration of each loop) to coordinates, by one expression for each
dimension. It answers who owns an element, which lane has which element of an instruction's operand, which unit takes which tile, and
which banks the lanes access. The answers are found by enumeration: its table has a row for every point.

    >>> from tilelang.core.expr import INDEX, Var
    >>> thread, slot = Var("thread", INDEX), Var("slot", INDEX)
    >>> rows = Distribution(((thread, 4), (slot, 2)), (thread // 2, thread % 2 * 2 + slot))
    >>> columns = Distribution(((thread, 4), (slot, 2)), (slot, thread))
    >>> wanted = columns.table().foreign(rows.table())  # elements that a thread needs by columns, and does not have by rows
    >>> wanted.first()
    (0, (1, 0))
    >>> rows.table().holders((1, 0))
    [2]
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from tilelang.core.expr import INDEX, Expr, Var
from tilelang.core.layout import evaluate
from tilelang.core.simplify import interval

MOST_POINTS = 1 << 22  # that are enumerated
Numbers = npt.NDArray[np.int64]
Part = tuple[Expr, int]  # a variable, and the number of its values, from 0 on


@dataclasses.dataclass(frozen=True)
class Distribution:
    """A map from parts to coordinates. The first part is the holder. where: the conditions under which a point exists."""

    parts: tuple[Part, ...]
    coordinates: tuple[Expr, ...]
    where: tuple[Expr, ...] = ()

    @property
    def shape(self) -> tuple[int, ...]:
        """The number of values of each part."""
        return tuple(n for _, n in self.parts)

    def tiled(self, tile: Sequence[int], counts: Sequence[int]) -> Distribution:
        """The same distribution in each of several tiles along every dimension. The tile numbers are further parts."""
        more = tuple((Var(f"?tile{d}", INDEX), n) for d, n in enumerate(counts))
        moved = tuple(c + v * n for c, (v, _), n in zip(self.coordinates, more, tile, strict=True))
        return Distribution((*self.parts, *more), moved, self.where)

    def shortened(self, most: int = MOST_POINTS, kept: int = 1) -> Distribution:
        """The same with fewer values of the longest parts, until there are at most `most` points. kept: the number of parts that are
        not shortened."""
        counts = list(self.shape)
        while math.prod(counts) > most and max(counts[kept:], default=1) > 1:
            k = kept + counts[kept:].index(max(counts[kept:]))
            counts[k] = -(-counts[k] // 2)
        return dataclasses.replace(self, parts=tuple((v, n) for (v, _), n in zip(self.parts, counts, strict=True)))

    def grid(self) -> tuple[list[Numbers], npt.NDArray[np.bool_]] | None:
        """Each coordinate, and whether the point exists, as arrays with an axis for each part. None if there are too many points to
        enumerate, or if they depend on anything but the parts."""
        if math.prod(self.shape) > MOST_POINTS:
            return None
        values = dict(zip((v for v, _ in self.parts), np.ix_(*map(np.arange, self.shape)), strict=True))
        try:
            found = [np.broadcast_to(evaluate(e, values), self.shape) for e in (*self.coordinates, *self.where)]
        except KeyError:
            return None
        rank = len(self.coordinates)
        return found[:rank], np.logical_and.reduce([np.ones(self.shape, bool), *found[rank:]])

    def table(self) -> Table | None:
        """The existing points, with the first part varying slowest; None as for `grid`."""
        grid = self.grid()
        if grid is None:
            return None
        at = np.nonzero(grid[1])
        return Table(at, tuple(c[at] for c in grid[0]))


@dataclasses.dataclass(frozen=True, eq=False)
class Table:
    """A distribution as numbers: a row for every point, with the values of the parts and the coordinates."""

    parts: tuple[Numbers, ...]
    coordinates: tuple[Numbers, ...]

    @property
    def holder(self) -> Numbers:
        """The first part in every row."""
        return self.parts[0]

    def first(self) -> tuple[int, tuple[int, ...]] | None:
        """The holder and the element of the first row; None if there are no rows."""
        return (int(self.holder[0]), tuple(int(c[0]) for c in self.coordinates)) if self.holder.size else None

    def only(self, rows: Any) -> Table:
        """A selection of rows."""
        return Table(tuple(p[rows] for p in self.parts), tuple(c[rows] for c in self.coordinates))

    def sorted(self) -> Table:
        """The rows sorted by element, then by holder."""
        return self.only(np.lexsort((self.holder, *reversed(self.coordinates))))

    def holders(self, element: Sequence[int]) -> list[int]:
        """The holders of an element."""
        here = np.logical_and.reduce(
            [np.ones(self.holder.shape, bool), *(c == x for c, x in zip(self.coordinates, element, strict=True))]
        )
        found: list[int] = np.unique(self.holder[here]).tolist()
        return found

    def find(self, wanted: Table) -> Numbers:
        """For each row of another table, the last row here with the same holder and element; -1 if there is none."""
        mine = (self.holder, *self.coordinates)
        columns = [np.concatenate(pair) for pair in zip(mine, (wanted.holder, *wanted.coordinates), strict=True)]
        here, there = np.split(row_numbers(columns), [self.holder.size])
        order = np.argsort(here, kind="stable")
        at = np.searchsorted(here[order], there, side="right")
        row = np.concatenate(([-1], order))[at]
        return np.where((row >= 0) & (np.append(here, -1)[row] == there), row, -1)

    def foreign(self, has: Table) -> Table:
        """The rows whose holder does not have the element according to another table."""
        return self.only(has.find(self) < 0)

    @property
    def _elements(self) -> Numbers:
        """The element of every row as a single number."""
        return row_numbers([np.zeros_like(self.holder), *self.coordinates])

    def shared(self) -> tuple[tuple[int, ...], tuple[int, ...]] | None:
        """Two rows with the same element, as their parts: the first repetition of an element, preceded by its first occurrence. None if
        all elements differ."""
        _, first, number = np.unique(self._elements, return_index=True, return_inverse=True)
        again = np.nonzero(first[number] != np.arange(number.size))[0]
        if not again.size:
            return None
        one, other = (tuple(int(p[row]) for p in self.parts) for row in (first[number[again[0]]], again[0]))
        return one, other

    def copies(self) -> Numbers:
        """The number of holders of each element, in the order of the elements."""
        element = np.unique(self._elements, return_inverse=True)[1]
        pairs = np.unique(np.stack([element, self.holder]), axis=1)
        return np.unique(pairs[0], return_counts=True)[1]


def variables(expressions: Sequence[Expr]) -> tuple[Var, ...]:
    """The variables in some expressions, without duplicates, in order."""
    return tuple(dict.fromkeys(v for e in expressions for v in e.walk() if isinstance(v, Var)))


def parts(found: Sequence[Var]) -> tuple[Part, ...] | None:
    """Variables as parts, with the sizes of their ranges; None if a range does not begin at 0 or is unbounded."""
    ends = [interval(v) for v in found]
    counted = tuple((v, high + 1) for v, (low, high) in zip(found, ends, strict=True) if low == 0 and high is not None)
    return counted if len(counted) == len(found) else None


def row_numbers(columns: Sequence[Numbers]) -> Numbers:
    """A number for each row: equal for equal rows, and in lexicographic order.

    >>> row_numbers([np.array([0, 0, 7]), np.array([3, -2, 3])]).tolist()
    [5, 0, 47]
    """
    number, numbers = np.zeros(columns[0].shape, np.int64), 1
    for column in columns:
        low, span = int(column.min(initial=0)), int(column.max(initial=0)) - int(column.min(initial=0)) + 1
        if numbers * span > 1 << 62:  # few of them occur
            number = np.unique(number, return_inverse=True)[1]
            numbers = number.size
        number, numbers = number * span + (column - low), numbers * span
    return number
