"""Arguments of verbs that are not what the verb takes."""

import tilelang as tl
from tests.errors._computations import matmul


def vector_of_two_axes() -> None:
    tl.schedule(matmul()).tile(m=16, n=16).to(tl.block).vectorize(m=4, n=4)


def units_as_a_number() -> None:
    tl.schedule(matmul()).units(block=8)  # type: ignore[arg-type]


def layout_as_text() -> None:
    tl.schedule(matmul()).tile(m=16, n=16).to(tl.block).load("A", tl.shared, layout="k m")


def order_as_text() -> None:
    tl.schedule(matmul()).tile(m=16, n=16).to(tl.block, order="n")  # type: ignore[arg-type]


def size_as_text() -> None:
    tl.schedule(matmul()).split(k="8")  # type: ignore[arg-type]


def tile_without_a_level_is_compiled() -> None:
    tl.compile(tl.schedule(matmul()).tile(m=16))  # type: ignore[arg-type]
