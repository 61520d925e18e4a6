"""Distributions: their tables, inverted and compared, beside loops over every point."""

from __future__ import annotations

import itertools
import math
import random

import numpy as np
import pytest

from tilelang.core import distribution
from tilelang.core.distribution import Distribution, Table, parts, row_numbers
from tilelang.core.expr import INDEX, Axis, Binary, Expr, Var, index
from tilelang.core.layout import evaluate

THREAD, SLOT, WALK = Var("thread", INDEX), Var("slot", INDEX), Var("walk", INDEX)


def rows(table: Table | None) -> list[tuple[tuple[int, ...], tuple[int, ...]]]:
    assert table is not None
    columns = [x.tolist() for x in (*table.parts, *table.coordinates)]
    n = len(table.parts)
    return [(tuple(row[:n]), tuple(row[n:])) for row in zip(*columns, strict=True)]


def drawn(seed: int) -> Distribution:
    """A few threads, slots and rounds with random coordinates, some of them the same."""
    r = random.Random(seed)
    shape = [r.randint(1, 4) for _ in range(3)]
    found = tuple(zip((THREAD, SLOT, WALK), shape, strict=True))

    def coordinate() -> Expr:
        total: Expr = index(r.randint(0, 3))
        for v, _ in found:
            total = total + v // r.randint(1, 2) % r.randint(1, 4) * r.randint(-2, 2)
        return total

    where = (Binary("<", coordinate(), index(r.randint(1, 4))),) if r.random() < 0.5 else ()
    return Distribution(found, (coordinate(), coordinate()), where)


def by_loops(d: Distribution) -> list[tuple[tuple[int, ...], tuple[int, ...]]]:
    out = []
    for point in itertools.product(*map(range, d.shape)):
        values = dict(zip((v for v, _ in d.parts), point, strict=True))
        if all(evaluate(c, values) for c in d.where):
            out.append((point, tuple(int(evaluate(c, values)) for c in d.coordinates)))
    return out


@pytest.mark.parametrize("seed", range(40))
def test_a_table_says_what_loops_over_every_point_find(seed: int) -> None:
    d, other = drawn(seed), drawn(seed + 1000)
    points, others = by_loops(d), by_loops(other)
    table, wanted = d.table(), other.table()
    assert table is not None and wanted is not None and rows(table) == points
    elements = [e for _, e in points]
    last = {(p[0], e): n for n, (p, e) in enumerate(points)}
    assert table.find(wanted).tolist() == [last.get((p[0], e), -1) for p, e in others]
    assert rows(wanted.foreign(table)) == [(p, e) for p, e in others if (p[0], e) not in last]
    assert [table.holders(e) for e in elements] == [sorted({p[0] for p, x in points if x == e}) for e in elements]
    assert table.copies().tolist() == [len({p[0] for p, x in points if x == e}) for e in sorted(set(elements))]
    again = next((n for n, e in enumerate(elements) if e in elements[:n]), None)
    assert table.shared() == (None if again is None else (points[elements.index(elements[again])][0], points[again][0]))
    smallest = min(((e, p[0]) for p, e in points), default=None)
    assert table.sorted().first() == (None if smallest is None else smallest[::-1])


@pytest.mark.parametrize("seed", range(10))
def test_tiles_are_a_composition(seed: int) -> None:
    d = drawn(seed)
    tiles = [((i, j), (3 * i, 5 * j)) for i in range(2) for j in range(3)]
    expected = [((*p, *t), (e[0] + low[0], e[1] + low[1])) for p, e in by_loops(d) for t, low in tiles]
    assert rows(d.tiled((3, 5), (2, 3)).table()) == expected


def test_a_scalar_has_one_element() -> None:
    table = Distribution(((THREAD, 3),), ()).table()
    assert table is not None
    assert (table.holders(()), table.copies().tolist(), table.shared(), table.first()) == ([0, 1, 2], [3], ((0,), (1,)), (0, ()))


def test_what_others_than_the_parts_decide_is_not_enumerated() -> None:
    assert Distribution(((THREAD, 2),), (THREAD + WALK,)).table() is None
    assert Distribution(((THREAD, 2),), (THREAD,), (Binary("<", Axis("i", 4), index(2)),)).grid() is None


def test_what_is_too_much_is_not_enumerated(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(distribution, "MOST_POINTS", 12)
    assert Distribution(((THREAD, 3), (SLOT, 4)), (SLOT,)).grid() is not None
    assert Distribution(((THREAD, 3), (SLOT, 5)), (SLOT,)).grid() is None


def test_the_longest_parts_are_shortened_first_and_the_first_ones_not() -> None:
    d = Distribution(((THREAD, 64), (SLOT, 4), (WALK, 100)), (SLOT,))
    assert d.shortened(64 * 4 * 100).shape == (64, 4, 100)
    assert d.shortened(64 * 4 * 60).shape == (64, 4, 50)
    assert d.shortened(64).shape == (64, 1, 1)
    assert math.prod(d.shortened(8, kept=0).shape) <= 8


@pytest.mark.parametrize(("first", "last", "counted"), [(0, 3, True), (1, 3, False), (0, None, False), (None, 3, False)])
def test_variables_that_begin_at_0_and_end_are_parts(first: int | None, last: int | None, counted: bool) -> None:
    walk = Var("walk", INDEX, first, last)
    assert parts([walk, Var("thread", INDEX, 0, 7)]) == (((walk, 4), (Var("thread", INDEX, 0, 7), 8)) if counted else None)


def test_rows_have_numbers_in_their_order_however_far_apart_they_are() -> None:
    columns = [np.array([0, 1 << 40, 0, -(1 << 40)]), np.array([5, -(1 << 40), 5, 1 << 40])]
    found = row_numbers(columns)
    assert found[0] == found[2] and found[3] < found[0] < found[1]
