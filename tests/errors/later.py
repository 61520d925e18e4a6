"""What the language has and no target lowers yet."""

import tilelang as tl
from tests.errors._computations import copy, linear, matmul


def roles() -> None:
    producer, consumer = tl.warps(1).as_role("producer", 40), tl.warps(4).as_role("consumer", 232)
    tl.schedule(matmul()).units(block=(producer, consumer)).tile(m=16, n=16).to(tl.block).check("sapphire_rapids")


def clusters_of_warps() -> None:
    tl.schedule(matmul()).units(cluster=tl.warps(2)).tile(m=16, n=16).to(tl.block).check("simulated")


def state_that_blocks_of_a_cluster_share() -> None:
    start = tl.schedule(matmul()).tile(m=32, n=32).to(tl.cluster).accumulate(tl.shared)
    start.tile(m=16, n=16).to(tl.block).check("simulated")


def reduction_among_the_blocks_of_a_cluster() -> None:
    tl.schedule(matmul()).tile(m=32, n=32).to(tl.cluster).tile(k=8).to(tl.block).check("simulated")


def far_behind() -> None:
    tl.schedule(copy()).tile(i=4).to(tl.block).via(tl.shared, behind=2).check()


def once() -> None:
    tl.schedule(matmul()).load("B", tl.global_, once=True).check()


def image_memory() -> None:
    tl.schedule(matmul()).load("A", tl.image).tile(m=16, n=16).to(tl.block).check()


def image_inside_a_block() -> None:
    tl.schedule(matmul()).tile(m=16, n=16).to(tl.block).load("A", tl.image).check()


def extent_known_at_launch() -> None:
    tl.axes(m=tl.symbol("M"))


def int4() -> None:
    i = tl.axes(i=8)
    tl.schedule(tl.define("Y", tl.input("X", tl.int4, i)[i], i)).check()


def stage_ahead_of_a_load_that_it_reads() -> None:
    made = tl.schedule(linear()).tile(m=16, n=16).to(tl.block).split(m=8).load("A", tl.shared)
    made.compute("C_sum", tl.shared, ahead=1).check()


def load_ahead_below_a_stage_that_reads_it() -> None:
    i = tl.axes(i=64)
    X = tl.input("X", tl.float32, i)
    S = tl.define("S", X[i] * 2, i)
    start = tl.schedule(tl.define("Y", S[i] + X[i], i)).tile(i=16).to(tl.block).split(i=4)
    start.compute("S", tl.shared).load("X", tl.shared, ahead=1).check()


def stop_in_registers_that_runs_ahead() -> None:
    start = tl.schedule(matmul()).tile(m=16, n=16).to(tl.block).split(k=8)
    start.load("A", tl.shared, ahead=1, steps=tl.move().via(tl.register, ahead=1)).check()


def ahead_from_a_stop_on() -> None:
    start = tl.schedule(matmul()).tile(m=16, n=16).to(tl.block).split(k=8)
    start.load("A", tl.register, ahead=1, steps=tl.move().via(tl.shared)).check()


def instruction_behind_a_stop_in_registers() -> None:
    start = tl.schedule(matmul()).tile(m=16, n=16).to(tl.block).split(k=8)
    start.load("A", tl.shared, steps=tl.move().via(tl.register).do("cp_async_16")).check("ampere")


def state_above_an_unfuse() -> None:
    start = tl.schedule(matmul()).fuse(mn=("m", "n")).tile(k=32).to(tl.block).accumulate(tl.shared)
    start.unfuse(mn={"x": 64, "y": 64}).check()


def rounds_of_registers_that_end_inside_a_row() -> None:
    """30 tiles for 20 threads: the second round begins in the middle of the first row, so that threads have 2 elements or 1."""
    start = tl.schedule(copy(4, 30)).units(block=tl.threads(20)).tile(i=4).to(tl.block)
    start.load("X", tl.register, steps=tl.move().tile(i=2, j=1).to(tl.thread)).tile(i=2, j=1).to(tl.thread).check()
