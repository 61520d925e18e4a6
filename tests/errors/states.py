"""Accumulators that stand where their state cannot be kept."""

import tilelang as tl
from tests.errors._computations import linear, matmul, row_sum


def state_under_a_walk_with_an_epilogue() -> None:
    tl.schedule(linear()).tile(m=16, n=16).to(tl.block).split(k=8).accumulate(tl.register).split(k=1).check()


def shared_state_under_a_walk_with_an_epilogue() -> None:
    tl.schedule(linear()).tile(m=16, n=16).to(tl.block).split(k=8).accumulate(tl.shared).check()


def state_under_a_walk_with_a_narrow_output() -> None:
    tl.schedule(matmul(dtype=tl.float16)).tile(m=16, n=16).to(tl.block).split(k=8).accumulate(tl.register).split(k=1).check()


def state_under_a_walk_of_which_a_member_is_no_output() -> None:
    i, j = tl.axes(i=8, j=64)
    X = tl.input("X", tl.float32, i, j)
    best = tl.define("best", tl.argmax(X[i, j], over=j), i)
    tl.schedule(best).tile(i=4).to(tl.block).split(j=8).accumulate(tl.register).split(j=1).check()


def stop_on_the_way_into_an_outer_state() -> None:
    start = tl.schedule(matmul()).tile(m=16, n=16).to(tl.block).accumulate(tl.shared).split(k=8)
    start.accumulate(tl.register, steps=tl.move().via(tl.shared)).check()


def stage_read_in_several_ways() -> None:
    i, j = tl.axes(i=64, j=64)
    doubled = tl.define("doubled", tl.input("X", tl.float32, i, j)[i, j] * 2, i, j)
    y = tl.define("Y", doubled[i, j] + doubled[j, i], i, j)
    tl.schedule(y).tile(i=4, j=4).to(tl.block).compute("doubled", tl.shared).check()


def load_of_what_is_substituted() -> None:
    i, j = tl.axes(i=64, j=64)
    doubled = tl.define("doubled", tl.input("X", tl.float32, i, j)[i, j] * 2, i, j)
    tl.schedule(tl.define("Y", doubled[i, j] + 1, i, j)).tile(i=4).to(tl.block).load("doubled", tl.shared).check()


def registers_with_a_layout() -> None:
    tl.schedule(matmul()).tile(m=16, n=16).to(tl.block).accumulate(tl.register, layout=tl.layout("n", "m")).check()


def accumulate_ahead() -> None:
    tl.schedule(matmul()).tile(m=16, n=16).to(tl.block).accumulate(tl.register, ahead=1).check()


def accumulate_in_global() -> None:
    tl.schedule(matmul()).tile(m=16, n=16).to(tl.block).accumulate(tl.global_).check()


def shared_inside_register() -> None:
    start = tl.schedule(matmul()).tile(m=16, n=16).to(tl.block).accumulate(tl.register).split(k=8)
    start.accumulate(tl.shared).check()


def state_above_the_blocks() -> None:
    tl.schedule(row_sum()).accumulate(tl.shared).tile(i=4).to(tl.block).check()


def register_state_above_the_blocks() -> None:
    tl.schedule(row_sum()).accumulate(tl.register).tile(i=4).to(tl.block).check()


def state_kept_over_blocks() -> None:
    tl.schedule(row_sum()).accumulate(tl.register).tile(j=16).to(tl.block).check()


def stage_in_a_cache() -> None:
    tl.schedule(linear()).tile(m=16, n=16).to(tl.block).compute("C_sum", tl.l1).check()


def register_inside_register() -> None:
    start = tl.schedule(matmul()).tile(m=16, n=16).to(tl.block).accumulate(tl.register).split(k=8)
    start.accumulate(tl.register).check()


def _attention() -> tl.Schedule:
    i, j, d = tl.axes(i=64, j=128, d=32)
    S, V = tl.input("S", tl.float32, i, j), tl.input("V", tl.float32, j, d)
    weight = tl.define("weight", tl.exp(S[i, j]), i, j)
    total = tl.define("total", tl.sum(weight[i, j], over=j), i)
    return tl.schedule(tl.define("O", tl.sum(weight[i, j] * V[j, d], over=j) / total[i], i, d)).tile(i=16).to(tl.block)


def stage_that_is_read_after_its_walk() -> None:
    _attention().split(j=16).compute("total", tl.shared).check()


def stage_that_nobody_reads() -> None:
    """Z alone reads `twice`, in a kernel of its own."""
    i, j = tl.axes(i=8, j=8)
    X = tl.input("X", tl.float32, i, j)
    twice = tl.define("twice", X[i, j] * 2.0, i, j)
    Y, Z = tl.define("Y", X[i, j] + 1.0, i, j), tl.define("Z", tl.sum(twice[i, j], over=j), i)
    both = tl.computation("both", outputs=(Y, Z))
    tl.schedule(both).tile(i=4, j=8).to(tl.block).compute("twice", tl.shared).check()


def shared_inside_shared() -> None:
    tl.schedule(row_sum()).tile(i=4).to(tl.block).accumulate(tl.shared).accumulate(tl.shared).check("ampere")


def load_of_the_output() -> None:
    tl.schedule(matmul()).tile(m=16, n=16).to(tl.block).load("C", tl.shared).check("ampere")


def stage_stored_by_several_blocks() -> None:
    i, j = tl.axes(i=64, j=64)
    X = tl.input("X", tl.float32, i, j)
    total = tl.define("total", tl.sum(X[i, j], over=j), i)
    whole = tl.computation("c", (tl.define("Y", X[i, j] / total[i], i, j), total))
    tl.schedule(whole).tile(i=4, j=16).to(tl.block).compute("total", tl.global_).check()


def stage_stored_with_what_is_around_it() -> None:
    i, d = tl.axes(i=64, d=3)
    twice = tl.define("twice", tl.input("X", tl.float32, i)[i] * 2, i)
    near = tl.define("Y", tl.sum(tl.pad(twice[i + d], 0.0), over=d), i)
    tl.schedule(tl.computation("c", (near, twice))).tile(i=4).to(tl.block).compute("twice", tl.global_).check()


def stage_in_global_that_is_no_output() -> None:
    i, j = tl.axes(i=64, j=64)
    X = tl.input("X", tl.float32, i, j)
    total = tl.define("total", tl.sum(X[i, j], over=j), i)
    tl.schedule(tl.define("Y", X[i, j] / total[i], i, j)).tile(i=4).to(tl.block).compute("total", tl.global_).check()


def stage_stored_by_threads() -> None:
    i, j = tl.axes(i=64, j=64)
    X = tl.input("X", tl.float32, i, j)
    total = tl.define("total", tl.sum(X[i, j], over=j), i)
    whole = tl.computation("c", (tl.define("Y", X[i, j] / total[i], i, j), total))
    tl.schedule(whole).tile(i=4).to(tl.block).tile(i=1).to(tl.thread).compute("total", tl.global_).check()


def stage_stored_along_fused_axes_of_its_axis_s_name() -> None:
    i, j, q = tl.axes(i=4, j=6, q=5)
    twice = tl.define("twice", tl.input("Z", tl.float32, q)[q] * 2, q)
    whole = tl.computation("c", (tl.define("Y", tl.input("X", tl.float32, i, j)[i, j] * 2, i, j), twice))
    tl.schedule(whole).fuse(q=("i", "j")).tile(q=24).to(tl.block).compute("twice", tl.global_).check()
