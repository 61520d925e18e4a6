"""Orders of units: which tile a unit takes, and orders that do not take every tile once."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

import tilelang as tl
from tilelang.core.expr import INDEX, Var
from tilelang.core.layout import Layout, evaluate
from tilelang.errors import Refusal
from tilelang.schedules.unit_numbering import check_order, order_extents, tile_of
from tilelang.testing.case import arrays
from tilelang.testing.checking import check_schedule


def test_order_extents() -> None:
    assert order_extents(tl.layout(lambda m, n: (n // 8, m, n % 8)), {"m": 3, "n": 20}) == [3, 3, 8]


MANY = {"m": 5, "n": 20}


@pytest.mark.parametrize(
    ("order", "rounds"),
    [
        (tl.layout("n", "m"), MANY),
        (tl.layout(lambda m, n: (n // 8, m, n % 8)), MANY),
        (tl.layout(lambda m, n: (m // 2, n // 3, m % 2, n % 3)), MANY),
        (tl.layout(lambda m, n: (m, n % 4, n // 4)), MANY),
        (tl.layout(lambda m, n: (m, n ^ (m % 2))), MANY),
        (tl.layout(lambda m, n: (m, n // 4, (n % 4) ^ (m % 4))), MANY),
        (tl.layout(lambda m, n: (n // 8, m, n // 2 % 4, n % 2)), MANY),
        (tl.layout(lambda m, n: ((n + m) % 20, m)), MANY),
        (tl.layout(lambda m, n: (m, (n - 3 * m) % 20)), MANY),
        (tl.layout(lambda m, n: (m + 5 * n,)), MANY),
        (tl.layout(lambda m, n: (m + 8 * n,)), MANY),
        (tl.layout(lambda m, n: (4 - m, 19 - n)), MANY),
        (tl.layout(lambda m, n: (n // 8, m, n % 8)), {"m": 2, "n": 1}),  # of one tile: it has units without one
        (tl.layout("m"), {"m": 2, "n": 1}),
        (tl.layout(lambda n: (n % 4, n // 4)), {"n": 3}),  # n % 4 says all, the other term is 0
        (tl.layout(lambda m, n: (n % 4, m, n // 4)), {"m": 1, "n": 4}),  # a term of one tile's axis may stand anywhere
        (tl.layout(lambda k, i: (k, i ^ (k % 2))), {"k": 1, "i": 2}),  # where k has one tile, no term tells k
        (tl.layout(lambda k, i: (k, (i + k) % 2)), {"k": 1, "i": 2}),
        (tl.layout("m", "n"), {"m": 0, "n": 4}),  # no tiles: as good as any
    ],
)
def test_orders_that_take_every_tile_once(order: Layout, rounds: dict[str, int]) -> None:
    check_order(order, rounds)
    extents = order_extents(order, rounds)
    unit = Var("unit", INDEX, 0, math.prod(extents) - 1)
    found = tile_of(order, rounds, unit)
    assert found is not None
    numbers = np.arange(math.prod(extents) if all(rounds.values()) else 0)
    tiles = list(
        zip(*(np.broadcast_to(evaluate(found[a], {unit: numbers}), numbers.shape).tolist() for a in rounds), strict=True)
    )
    taken = {n: t for n, t in enumerate(tiles) if all(x < most for x, most in zip(t, rounds.values(), strict=True))}
    assert sorted(taken.values()) == list(itertools.product(*map(range, rounds.values())))
    for number, tile in taken.items():
        at = {Var(a, INDEX): np.array(x) for a, x in zip(rounds, tile, strict=True)}
        assert int(np.ravel_multi_index(tuple(int(evaluate(t, at)) for t in order.terms), tuple(extents))) == number


@pytest.mark.parametrize("order", [
    tl.layout(lambda i, j: (i, (j % 2) ^ (i % 2), j // 2)), tl.layout(lambda i, j: ((j + i) % 5, i)),
    tl.layout(lambda i, j: (i + 3 * j,)),
])  # fmt: skip
def test_kernels_of_an_order_are_right(order: Layout) -> None:
    i, j = tl.axes(i=11, j=18)
    X = tl.input("X", tl.float32, i, j)
    plan = tl.schedule(tl.define("Y", X[i, j] * 2, i, j)).tile(i=4, j=4).to(tl.block, order=order).tile(i=1, j=1).to(tl.thread)
    given = arrays(plan.computation, "random")
    assert check_schedule(plan, given, profile=tl.load_profile("sapphire_rapids"), opencl=True) == []


@pytest.mark.parametrize(
    ("order", "code"),
    [
        (tl.layout("m"), "tile-not-covered"),
        (tl.layout(lambda m, n: (m, n // 4)), "tile-not-covered"),
        (tl.layout(lambda m, n: (m, n // 4, n % 2)), "tile-not-covered"),
        (tl.layout(lambda m, n: (m, n, m)), "tile-covered-twice"),
        (tl.layout(lambda m, n: (m, n // 4, n // 2, n % 2)), "tile-covered-twice"),
        (tl.layout(lambda m, n: (m, n // 4, n % 8, n % 4)), "tile-covered-twice"),
        (tl.layout(lambda m, n: (m, n, m + n)), "tile-covered-twice"),
        (tl.layout(lambda m, n: (m + n, m - n + 19)), "order-term"),
        (tl.layout(lambda m, n: (m, n + 2 * m)), "order-term"),  # units below 2 m have no tile
        (tl.layout(lambda m, n: (2 * m + 20 * n,)), "order-term"),
        (tl.layout("m", "q"), "order-axis"),
    ],
)
def test_orders_that_do_not(order: Layout, code: str) -> None:
    with pytest.raises(Refusal) as caught:
        check_order(order, {"m": 5, "n": 20})
    assert caught.value.code == code


def test_a_term_that_is_0_for_all_tiles_is_not_blamed() -> None:
    with pytest.raises(Refusal) as caught:  # 8 is not the number of tiles along i
        check_order(tl.layout(lambda k, i: (k, (i + k) % 8)), {"k": 1, "i": 2})
    assert caught.value.code == "order-term"


@pytest.mark.parametrize("order", [tl.layout(lambda m, n: (m, n // 4)), tl.layout(lambda m, n: (n, m, n))])
@pytest.mark.parametrize("level", ["block", "thread"])
def test_kernels_of_no_tiles(order: Layout, level: str) -> None:
    m, n = tl.axes(m=0, n=40)
    X = tl.input("X", tl.float32, m, n)
    plan = tl.schedule(tl.define("Y", X[m, n] * 2, m, n))
    plan = plan if level == "block" else plan.tile(n=40).to(tl.block)
    plan = plan.tile(m=2, n=2).to(level, order=order)
    assert check_schedule(plan, arrays(plan.computation, "random"), profile=tl.load_profile("sapphire_rapids"), opencl=True) == []
