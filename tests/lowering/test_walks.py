"""Walks whose last piece is peeled, below walks that are written out and tiles that go beyond them."""

import pytest

import tilelang as tl
from tests.lowering.test_shares import faults


def doubled(rows: int, columns: int) -> tl.Schedule:
    """Y = 2 X, a row per block of two warps."""
    i, j = tl.axes(i=rows, j=columns)
    x = tl.input("X", tl.float32, i, j)
    return tl.schedule(tl.define("Y", x[i, j] * 2, i, j)).units(block=tl.warps(2)).tile(i=1).to("block")


@pytest.mark.parametrize("rows", [0, 2])
@pytest.mark.parametrize("columns", [5, 11])
def test_a_peeled_walk_in_a_tile_as_long_as_the_whole_axis(rows: int, columns: int) -> None:
    """The bounds of the tile and of the axis have one limit, and the peeled walk takes the place of the first alone."""
    made = doubled(rows, columns).split(j=4, unroll=True).tile(j=columns).to("warp").split(j=4, peel=True)
    assert not faults(made.tile(j=1).to("thread", count=8))


@pytest.mark.parametrize("moves", [{}, {"ahead": 1}])
def test_a_peeled_walk_stores_what_no_point_contributes_to(moves: dict[str, int]) -> None:
    """The only whole piece of the last rows lies before the first that their window needs."""
    i, j = tl.axes(i=13, j=4)
    x = tl.input("X", tl.float32, i, j)
    made = tl.schedule(tl.define("Y", tl.prod(x[i, j], over=j, where=(i - 2 <= j) & (j <= i + 1)), i)).tile(i=4, j=6).to("block")
    made = made.split(j=4, peel=True).accumulate("register").load("X", "register", **moves)
    assert not faults(made)
