"""Schedules with holes that nothing can fill."""

import tilelang as tl
from tests.errors._computations import copy, matmul


def rows_that_do_not_fit() -> None:
    tl.schedule(matmul(64, 64, 1 << 23)).tile(m=tl.hole, n=16).to(tl.block).load("A", tl.shared).rest().check("sapphire_rapids")


def too_many_threads() -> None:
    made = tl.schedule(copy(64, 8192)).tile(i=tl.hole, j=8192).to(tl.block)
    made.tile(i=1, j=1).to(tl.thread).vectorize(j=tl.hole).check("sapphire_rapids")


def a_level_that_is_not_there() -> None:
    tl.schedule(copy(64, 64)).tile(i=tl.hole).to(tl.block).tile(j=8).to(tl.warpgroup).rest().check("sapphire_rapids")


def more_threads_than_a_warp() -> None:
    made = tl.schedule(copy(64, 64)).tile(i=8, j=8).to(tl.block)
    made.tile(i=1, j=8).to(tl.warp).tile(j=tl.hole).to(tl.thread).check("simulated")
