"""Orders of units: which tile a unit takes, and orders that do not take every tile once."""

from __future__ import annotations

import math

import numpy as np
import pytest

import tilelang as tl
from tilelang.errors import Refusal
from tilelang.expr import INDEX, Var
from tilelang.order import check_order, order_extents, tile_of
from tilelang.tensor import Layout, evaluate
from tilelang.testing.case import arrays
from tilelang.testing.checking import check_schedule


def test_order_extents() -> None:
    assert order_extents(tl.layout(lambda m, n: (n // 8, m, n % 8)), {"m": 3, "n": 20}) == [3, 3, 8]


@pytest.mark.parametrize(
    "order",
    [
        tl.layout("n", "m"),
        tl.layout(lambda m, n: (n // 8, m, n % 8)),
        tl.layout(lambda m, n: (m // 2, n // 3, m % 2, n % 3)),
        tl.layout(lambda m, n: (m, n % 4, n // 4)),
        tl.layout(lambda m, n: (m, n ^ (m % 2))),
        tl.layout(lambda m, n: (m, n // 4, (n % 4) ^ (m % 4))),
        tl.layout(lambda m, n: (n // 8, m, n // 2 % 4, n % 2)),
        tl.layout(lambda m, n: ((n + m) % 20, m)),
        tl.layout(lambda m, n: (m, (n - 3 * m) % 20)),
        tl.layout(lambda m, n: (m + 5 * n,)),
        tl.layout(lambda m, n: (m + 8 * n,)),
        tl.layout(lambda m, n: (4 - m, 19 - n)),
    ],
)
def test_orders_that_take_every_tile_once(order: Layout) -> None:
    rounds = {"m": 5, "n": 20}
    check_order(order, rounds)
    unit = Var("unit", INDEX, 0, math.prod(order_extents(order, rounds)) - 1)
    found = tile_of(order, rounds, unit)
    assert found is not None and unit.upper is not None
    numbers = np.arange(unit.upper + 1)
    tiles = list(
        zip(*(np.broadcast_to(evaluate(found[a], {unit: numbers}), numbers.shape).tolist() for a in rounds), strict=True)
    )
    assert sorted(t for t in tiles if t[0] < 5 and t[1] < 20) == [(m, n) for m in range(5) for n in range(20)]
    terms = [np.broadcast_to(evaluate(t, {Var("m", INDEX): np.array(m), Var("n", INDEX): np.array(n)}), ())
             for m, n in tiles if m < 5 and n < 20 for t in order.terms]  # fmt: skip
    numbered = [int(unit) for unit, (m, n) in enumerate(tiles) if m < 5 and n < 20]
    extents = order_extents(order, rounds)
    digits = np.array(terms).reshape(-1, len(extents))
    assert [int(np.ravel_multi_index(tuple(d), extents)) for d in digits] == numbered


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


def test_an_order_of_one_tile_has_units_without_one() -> None:
    check_order(tl.layout(lambda m, n: (n // 8, m, n % 8)), {"m": 2, "n": 1})
    check_order(tl.layout("m"), {"m": 2, "n": 1})


def test_a_term_that_is_0_for_all_tiles_says_nothing() -> None:
    """Of three tiles, n%4 says all; a term of one tile's axis may stand anywhere."""
    check_order(tl.layout(lambda n: (n % 4, n // 4)), {"n": 3})
    check_order(tl.layout(lambda m, n: (n % 4, m, n // 4)), {"m": 1, "n": 4})


def test_a_term_may_name_an_axis_of_one_tile() -> None:
    """Where k has one tile, no term tells k, and `i ^ (k % 2)` is i."""
    for turned in (tl.layout(lambda k, i: (k, i ^ (k % 2))), tl.layout(lambda k, i: (k, (i + k) % 2))):
        check_order(turned, {"k": 1, "i": 2})
        unit = Var("unit", INDEX, 0, 1)
        found = tile_of(turned, {"k": 1, "i": 2}, unit)
        assert found is not None
        assert [[int(evaluate(found[a], {unit: u})) for a in ("k", "i")] for u in range(2)] == [[0, 0], [0, 1]]


def test_a_term_that_is_0_for_all_tiles_is_not_blamed() -> None:
    with pytest.raises(Refusal) as caught:  # 8 is not the number of tiles along i
        check_order(tl.layout(lambda k, i: (k, (i + k) % 8)), {"k": 1, "i": 2})
    assert caught.value.code == "order-term"


def test_an_order_of_no_tiles_is_as_good_as_any() -> None:
    check_order(tl.layout("m", "n"), {"m": 0, "n": 4})


@pytest.mark.parametrize("order", [tl.layout(lambda m, n: (m, n // 4)), tl.layout(lambda m, n: (n, m, n))])
@pytest.mark.parametrize("level", ["block", "thread"])
def test_kernels_of_no_tiles(order: Layout, level: str) -> None:
    m, n = tl.axes(m=0, n=40)
    X = tl.input("X", tl.float32, m, n)
    plan = tl.schedule(tl.define("Y", X[m, n] * 2, m, n))
    plan = plan if level == "block" else plan.tile(n=40).to(tl.block)
    plan = plan.tile(m=2, n=2).to(level, order=order)
    assert check_schedule(plan, arrays(plan.computation, "random"), profile=tl.load_profile("sapphire_rapids"), opencl=True) == []
