"""Layouts that give an element no place, or two elements one place."""

import tilelang as tl
from tests.errors._computations import copy, matmul


def not_injective() -> None:
    layout = tl.layout(lambda m, k: (m % 8, k))
    tl.schedule(matmul()).tile(m=16, n=16).to(tl.block).load("A", tl.shared, layout=layout).check()


def dimension_of_another_tensor() -> None:
    tl.schedule(matmul()).tile(m=16, n=16).to(tl.block).load("A", tl.shared, layout=tl.layout("n", "k")).check()


def dimension_missing() -> None:
    tl.schedule(matmul()).tile(m=16, n=16).to(tl.block).load("A", tl.shared, layout=tl.layout("k")).check()


def swizzle_of_a_short_run() -> None:
    start = tl.schedule(matmul(dtype=tl.float16)).tile(m=16, n=16).to(tl.block).split(k=16)
    start.load("A", tl.shared, layout=tl.layout("m", "k").swizzle(128)).check()


def swizzle_unknown() -> None:
    tl.layout("m", "k").swizzle(100)


def padding_negative() -> None:
    tl.layout("m", "k").pad(-4)


def term_is_no_name() -> None:
    tl.layout("k/8", "m")


def term_that_is_a_fraction() -> None:
    tl.layout(lambda m, k: (m, k * 0.5))


def term_with_an_axis() -> None:
    i = tl.axes(i=8)
    tl.layout(lambda m: (i, m))


def term_that_chooses() -> None:
    tl.layout(lambda m, k: (m, tl.where(k > 0, k, 0)))


def term_that_divides_by_another() -> None:
    tl.layout(lambda m, k: (m // k, k))


def order_that_counts_down() -> None:
    order = tl.layout(lambda m, n: (-m, n))
    tl.schedule(matmul()).tile(m=16, n=16).to(tl.block, order=order).check()


def order_without_axes() -> None:
    tl.schedule(matmul()).tile(m=16, n=16).to(tl.block, order=tl.layout().pad(4)).check()


def reads_that_share_no_region() -> None:
    i, j = tl.axes(i=8, j=8)
    X = tl.input("X", tl.float32, r=8, c=8)
    twice = tl.define("Y", X[i, j] + X[j, i], i, j)
    tl.schedule(twice).tile(i=4, j=2).to(tl.block).load("X", tl.shared).check()


def staged_by_access_and_read_twice() -> None:
    i, j = tl.axes(i=8, j=8)
    X = tl.input("X", tl.float32, r=8, c=9)
    twice = tl.define("Y", X[i, j] + X[i, j + 1], i, j)
    tl.schedule(twice).tile(i=4, j=4).to(tl.block).load("X", tl.shared, layout=tl.layout("i", "j")).check()


def by_access_of_another_axis() -> None:
    tl.schedule(copy()).tile(i=4, j=4).to(tl.block).load("X", tl.shared, layout=tl.layout("i", "j", "q")).check()


def term_without_a_bound() -> None:
    layout = tl.layout(lambda m, k: (m, k + m * 2**62))
    tl.schedule(matmul()).tile(m=16, n=16).to(tl.block).load("A", tl.shared, layout=layout).check()


def place_below_zero() -> None:
    layout = tl.layout(lambda m, k: (m - 1, k))
    tl.schedule(matmul()).tile(m=16, n=16).to(tl.block).load("A", tl.shared, layout=layout).check()


def staged_by_access_and_read_by_a_stage() -> None:
    i, j, a, b = tl.axes(i=4, j=5, a=5, b=5)
    A = tl.input("A", tl.float32, a, b)
    S = tl.define("S", A[j, j], j)
    start = tl.schedule(tl.define("Y", S[i + 1] + S[i], i)).tile(i=2).to(tl.block)
    start.load("A", tl.shared, layout=tl.layout("i")).compute("S", tl.shared).check()
