"""Steps that are not a step: wrong words, wrong numbers."""

from typing import Any, cast

import tilelang as tl
from tests.errors._computations import copy, matmul, softmax


def tile_without_level() -> None:
    tl.schedule(matmul()).tile(m=16).split(k=4)


def split_of_nothing() -> None:
    tl.schedule(matmul()).split()


def tile_of_nothing() -> None:
    tl.schedule(matmul()).tile().to(tl.block)


def size_zero() -> None:
    tl.schedule(matmul()).split(k=0)


def size_not_whole() -> None:
    tl.schedule(matmul()).tile(m=cast(int, 2.5)).to(tl.block)


def ahead_negative() -> None:
    tl.schedule(matmul()).tile(m=16, n=16).to(tl.block).load("A", tl.shared, ahead=-1)


def units_zero() -> None:
    tl.schedule(matmul()).units(block=tl.warps(0))


def unknown_level_of_units() -> None:
    tl.schedule(matmul()).units(blok=tl.warps(4))


def unknown_level_of_tile() -> None:
    tl.schedule(matmul()).tile(m=16, n=16).to("wrap").check()


def unknown_axis_with_a_near_one() -> None:
    x, block_row = tl.axes(x=8, block_row=8)
    A = tl.input("A", tl.float32, x, block_row)
    tl.schedule(tl.define("B", A[x, block_row] + 1, x, block_row)).split(blok_row=4)


def unknown_axis_without_a_near_one() -> None:
    tl.schedule(matmul()).tile(m=16, q=16).to(tl.block)


def unknown_axis_in_a_move() -> None:
    start = tl.schedule(matmul()).tile(m=16, n=16).to(tl.block)
    start.load("A", tl.shared, steps=tl.move().vectorize(n=4)).check()


def unknown_axis_in_the_store_of_a_scalar() -> None:
    i = tl.axes(i=64)
    total = tl.define("T", tl.sum(tl.input("X", tl.float32, i)[i], over=i))
    tl.schedule(total).accumulate(tl.register, steps=tl.move().tile(i=16).to(tl.thread))


def unknown_axis_in_the_store_of_a_stage() -> None:
    stage = tl.move().accumulate(tl.register, steps=tl.move().tile(j=4).to(tl.thread)).tile(i=4).to(tl.thread)
    tl.schedule(softmax()).tile(i=16).to(tl.block).compute("peak", tl.shared, steps=stage).tile(i=1).to(tl.thread).check()


def unknown_tensor() -> None:
    tl.schedule(matmul()).tile(m=16, n=16).to(tl.block).load("AA", tl.shared)


def unknown_memory() -> None:
    tl.schedule(matmul()).tile(m=16, n=16).to(tl.block).load("A", "sharde").check()


def misspelt_verb_after_a_tile() -> None:
    tl.parse("schedule s for f {\n  tile m=8 -> block\n  accumlate in register\n}")


def steps_that_are_no_move() -> None:
    tl.schedule(matmul()).tile(m=16, n=16).to(tl.block).load("A", tl.shared, steps=cast(Any, ["vectorize k=4"]))


def compute_of_an_input() -> None:
    tl.schedule(matmul()).tile(m=16, n=16).to(tl.block).compute("A", tl.shared)


def load_of_what_nobody_reads() -> None:
    """X is read by the stage above alone."""
    start = tl.schedule(softmax()).tile(i=1).to(tl.block)
    for stage in ("peak", "shifted", "total"):
        start = start.compute(stage, tl.shared)
    start.load("X", tl.shared).check()


def stage_before_what_it_reads() -> None:
    """`total` is made of `peak`, which comes after it."""
    tl.schedule(softmax()).tile(i=1).to(tl.block).compute("total", tl.shared).compute("peak", tl.shared).check()


def load_before_the_stage_that_makes_it() -> None:
    tl.schedule(softmax()).tile(i=1).to(tl.block).load("shifted", tl.shared).compute("shifted", tl.shared).check()


def unknown_axis_in_a_stage() -> None:
    tl.schedule(softmax()).tile(i=1).to(tl.block).compute("peak", tl.shared, steps=tl.move().split(k=4))


def unknown_axis_in_a_store() -> None:
    start = tl.schedule(matmul()).tile(m=16, n=16).to(tl.block)
    start.accumulate(tl.register, steps=tl.move().via(tl.shared).tile(k=4).to(tl.thread))


def accumulate_without_a_reduction() -> None:
    tl.schedule(copy()).tile(i=4).to(tl.block).accumulate(tl.register)


def inline_of_an_input() -> None:
    tl.schedule(matmul()).inline("A")


def three_lanes() -> None:
    tl.schedule(copy()).tile(i=1).to(tl.block).vectorize(j=3)


def repacked_definition() -> None:
    tl.schedule(softmax()).load("peak", tl.global_).tile(i=1).to(tl.block).check()
