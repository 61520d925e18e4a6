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


def fuse_of_a_text() -> None:
    tl.schedule(matmul()).fuse(mn="mn")


def unfuse_of_a_number() -> None:
    tl.schedule(matmul()).unfuse(m=4)  # type: ignore[arg-type]


def do_nothing() -> None:
    tl.schedule(matmul()).do(None)


def when_of_a_bool() -> None:
    tl.schedule(matmul()).when(True, tl.move())  # type: ignore[arg-type]


def no_count() -> None:
    tl.schedule(matmul()).tile(m=4).to(tl.block, 0)


def half_an_iteration() -> None:
    tl.schedule(matmul()).tile(m=4).to(tl.block).load("A", tl.shared, ahead=1.5)


def half_a_place() -> None:
    tl.layout("k", "m").pad(1.5)  # type: ignore[arg-type]


def options_of_a_text() -> None:
    tl.compile(matmul(), options="fast")  # type: ignore[arg-type]


def schedule_of_a_text() -> None:
    tl.compile(matmul(), schedule="fast")  # type: ignore[arg-type]


def blocks_inside_a_walk_over_the_reduction() -> None:
    tl.schedule(matmul()).split(k=8).tile(m=4).to(tl.block)


def dump_where_nothing_can_be_written() -> None:
    tl.compile(matmul(), options=tl.Options(dump="/proc/nowhere"))


def behind_a_load() -> None:
    tl.schedule(matmul()).tile(m=16, n=16).to(tl.block).load("A", tl.shared, behind=1)
