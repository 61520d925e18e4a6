"""Tiles that no unit takes, and tiles that two units take."""

import tilelang as tl
from tests.errors._computations import copy, matmul, softmax


def tile_not_covered() -> None:
    """A panel of 4 tiles, without the term that says which of the panels."""
    order = tl.layout(lambda m, n: (m, n % 4))
    tl.schedule(matmul(32, 64)).tile(m=8, n=8).to(tl.block, order=order)


def tile_not_covered_within_panels() -> None:
    order = tl.layout(lambda m, n: (n // 4, m))
    tl.schedule(matmul(32, 64)).tile(m=8, n=8).to(tl.block, order=order)


def tile_covered_twice() -> None:
    order = tl.layout(lambda m, n: (m, n, n % 2))
    tl.schedule(matmul(32, 64)).tile(m=8, n=8).to(tl.block, order=order)


def order_that_cannot_be_turned_round() -> None:
    order = tl.layout(lambda m, n: (m, n + 2 * m))
    tl.schedule(matmul(32, 64)).tile(m=8, n=8).to(tl.block, order=order)


def axis_left_out() -> None:
    tl.schedule(matmul(32, 64)).tile(m=8, n=8).to(tl.block, order=tl.layout("n"))


def order_names_another_axis() -> None:
    tl.schedule(matmul(32, 64)).tile(m=8, n=8).to(tl.block, order=tl.layout("n", "m", "k"))


def order_puts_two_tiles_in_one_place() -> None:
    tl.schedule(copy(32, 64)).tile(i=8, j=8).to(tl.block, order=tl.layout(lambda i, j: (i + j,)))


def order_of_the_threads_of_a_move() -> None:
    """How many tiles the region has is known when it is lowered: its order has numbers for 3, twice."""
    order = tl.layout(lambda m: (m, m % 2))
    steps = tl.move().tile(m=4).to(tl.thread, order=order)
    tl.schedule(matmul(32, 64)).tile(m=12, n=8).to(tl.block).load("A", tl.shared, steps=steps).check()


def order_of_a_move_names_another_axis() -> None:
    steps = tl.move().tile(m=4).to(tl.thread, order=tl.layout("k", "m"))
    tl.schedule(matmul(32, 64)).tile(m=12, n=8).to(tl.block).load("A", tl.shared, steps=steps)


def order_in_a_stage_of_threads_that_share_a_reduction() -> None:
    steps = tl.move().tile(i=1, j=4).to(tl.thread, order=tl.layout("j", "i"))
    tl.schedule(softmax()).tile(i=4).to(tl.block).compute("total", tl.shared, steps=steps).check()


def order_of_threads_that_share_a_reduction() -> None:
    tl.schedule(matmul(32, 64)).tile(m=8, n=8).to(tl.block).tile(m=1, k=1).to(tl.thread, order=tl.layout("k", "m"))


def order_that_leaves_blocks_of_a_reduction_without_a_tile() -> None:
    order = tl.layout(lambda m, k: (k // 4, m, k % 4))
    tl.schedule(matmul(32, 64, 48)).tile(m=8, k=8).to(tl.block, order=order)
