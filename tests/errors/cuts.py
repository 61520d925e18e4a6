"""Cuts that contradict the spec they meet: order of steps, of levels, axes that are not what they were."""

import tilelang as tl
from tests.errors._computations import matmul, row_sum, softmax


def level_goes_up() -> None:
    tl.schedule(matmul()).tile(m=32, n=32).to(tl.block).tile(m=4, n=4).to(tl.thread).tile(m=2, n=2).to(tl.warp)


def block_below_warp() -> None:
    tl.schedule(matmul()).tile(m=32, n=32).to(tl.warp).tile(m=16).to(tl.block)


def thread_in_a_thread() -> None:
    tl.schedule(matmul()).tile(m=32, n=32).to(tl.block).tile(m=4, n=4).to(tl.thread).tile(m=2).to(tl.thread)


def blocks_twice() -> None:
    tl.schedule(matmul()).tile(m=32).to(tl.block).tile(n=32).to(tl.block).check()


def blocks_beyond_a_grid() -> None:
    x, y = tl.axes(x=1 << 16, y=1 << 16)
    made = tl.define("Y", tl.input("X", tl.float32, x, y)[x, y] * 2.0, x, y)
    tl.compile(tl.schedule(made).tile(x=1, y=1).to(tl.block), target=tl.target(profile="hopper"))


def step_after_the_leaf() -> None:
    tl.schedule(matmul()).tile(m=32, n=32).to(tl.block).vectorize(n=16).split(k=4)


def units_after_a_tile() -> None:
    tl.schedule(row_sum()).tile(i=8).to(tl.block).units(block=tl.threads(32))


def units_twice() -> None:
    tl.schedule(row_sum()).units(block=tl.threads(4)).units(block=tl.threads(8))


def units_of_a_move() -> None:
    steps = tl.move().units(block=tl.threads(8)).tile(k=1).to(tl.thread)
    tl.schedule(matmul()).tile(m=16, n=16).to(tl.block).load("A", tl.shared, steps=steps)


def inline_late() -> None:
    tl.schedule(softmax()).tile(i=1).to(tl.block).inline("shifted")


def inline_of_a_reduction() -> None:
    tl.schedule(softmax()).inline("total").check()


def axis_twice() -> None:
    tl.schedule(matmul()).fuse(mm=("m", "m"))


def fused_name_is_taken() -> None:
    tl.schedule(matmul()).fuse(k=("m", "n"))


def fuse_of_an_output_and_a_reduction() -> None:
    tl.schedule(matmul()).fuse(mk=("m", "k"))


def fuse_after_a_cut() -> None:
    tl.schedule(matmul()).tile(m=32, n=32).to(tl.block).fuse(mn=("m", "n"))


def fused_axis_is_gone() -> None:
    tl.schedule(matmul()).fuse(mn=("m", "n")).tile(m=32).to(tl.block)


def unfuse_after_a_cut() -> None:
    tl.schedule(matmul(60)).tile(m=16, n=32).to(tl.block).unfuse(m={"a": 4, "b": 4})


def unfused_name_is_taken() -> None:
    tl.schedule(matmul()).unfuse(m={"n": 8, "k": 8})


def walk_over_a_fused_reduction_around_the_blocks() -> None:
    tl.schedule(row_sum()).unfuse(j={"outer": 8, "inner": 8}).split(outer=1).tile(i=4).to(tl.block)


def unfuse_to_another_size() -> None:
    tl.schedule(matmul()).unfuse(m={"a": 5, "b": 13})


def reduction_over_clusters() -> None:
    tl.schedule(row_sum()).tile(j=16).to(tl.cluster)


def too_many_threads() -> None:
    tl.schedule(matmul(128, 128)).tile(m=128, n=128).to(tl.block).tile(m=2, n=2).to(tl.thread).check("simulated")


def too_many_warps() -> None:
    tl.schedule(matmul()).units(block=tl.warps(64)).tile(m=16, n=16).to(tl.block).check("simulated")


def more_units_than_there_are() -> None:
    start = tl.schedule(row_sum()).units(block=tl.threads(32)).tile(i=8).to(tl.block)
    start.tile(i=1, j=1).to(tl.thread, 128).check("simulated")


def warp_not_filled() -> None:
    tl.schedule(matmul()).tile(m=32, n=32).to(tl.block).tile(m=16, n=32).to(tl.warp).tile(m=4, n=8).to(tl.thread).check()


def level_that_the_device_has_not() -> None:
    tl.schedule(matmul()).tile(m=32, n=32).to(tl.block).tile(m=16, n=16).to(tl.warpgroup).check("sapphire_rapids")
