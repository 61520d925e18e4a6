"""Tiles that do not fit."""

import tilelang as tl
from tests.errors._computations import copy, matmul


def over_capacity() -> None:
    start = tl.schedule(matmul(256, 256, 256)).tile(m=128, n=128).to(tl.block).accumulate(tl.register).split(k=32)
    loaded = start.load("A", tl.shared, ahead=2).load("B", tl.shared, layout=tl.layout("k", "n").pad(4))
    loaded.tile(m=8, n=8).to(tl.thread).split(k=1).check("simulated")


def over_capacity_by_a_shared_state() -> None:
    tl.schedule(matmul(256, 256, 256)).tile(m=128, n=128).to(tl.block).accumulate(tl.shared).check("simulated")


def walk_addresses_too_many_registers() -> None:
    start = tl.schedule(matmul(256, 256, 64)).tile(m=64, n=64).to(tl.block).accumulate(tl.register).split(k=8)
    start.tile(m=32, n=32).to(tl.thread).split(m=1, n=1).check("simulated")


def above_the_first_block() -> None:
    tl.schedule(matmul()).load("A", tl.shared)


def load_in_global_inside_a_block() -> None:
    tl.schedule(matmul()).tile(m=16, n=16).to(tl.block).load("A", tl.global_).check()


def layout_of_what_is_computed_in_global() -> None:
    i = tl.axes(i=8)
    twice = tl.define("D", tl.input("X", tl.float32, i)[i] * 2, i)
    tl.schedule(tl.define("Y", twice[i] + 1, i)).compute("D", tl.global_, layout=tl.layout("i").pad(1)).check("simulated")


def store_width_does_not_divide() -> None:
    start = tl.schedule(matmul(12, 12, 8)).tile(m=12, n=12).to(tl.block)
    start.accumulate(tl.register, steps=tl.move().vectorize(n=4)).tile(m=2, n=6).to(tl.thread).check()


def prefetch_of_scattered_elements() -> None:
    b, e = tl.axes(b=8, e=8)
    ids = tl.input("ids", tl.int32, b, range=(0, 100))
    table = tl.input("table", tl.float32, v=100, e=8)
    start = tl.schedule(tl.define("Y", table[ids[b], e], b, e)).tile(b=4).to(tl.block)
    start.load("table", tl.l1, layout=tl.layout("b", "e")).check()


def prefetch_of_what_is_resident() -> None:
    tl.schedule(copy()).tile(i=4).to(tl.block).load("X", tl.register).load("X", tl.l1).check()


def via_in_global() -> None:
    tl.schedule(copy()).tile(i=4).to(tl.block).via(tl.global_).check()


def results_that_stop_in_global() -> None:
    start = tl.schedule(matmul()).tile(m=16, n=16).to(tl.block)
    start.accumulate(tl.register, steps=tl.move().via(tl.global_)).split(k=8).tile(m=4, n=4).to(tl.thread).check()


def results_that_stop_nowhere() -> None:
    start = tl.schedule(matmul()).tile(m=16, n=16).to(tl.block)
    start.accumulate(tl.register, steps=tl.move().via("shred")).split(k=8).tile(m=4, n=4).to(tl.thread).check()


def unknown_memory_above_the_first_block() -> None:
    tl.schedule(matmul()).load("A", "sharde").check()


def load_that_stops_in_global() -> None:
    tl.schedule(matmul()).tile(m=16, n=16).to(tl.block).load("A", tl.shared, steps=tl.move().via(tl.global_)).check()


def stop_in_registers_before_registers() -> None:
    tl.schedule(matmul()).tile(m=16, n=16).to(tl.block).load("A", tl.register, steps=tl.move().via(tl.register)).check()


def stop_in_registers_with_a_layout() -> None:
    stop = tl.move().via(tl.register, layout=tl.layout("k", "m"))
    tl.schedule(matmul()).tile(m=16, n=16).to(tl.block).load("A", tl.shared, steps=stop).check()


def way_to_a_stop_said_twice() -> None:
    stop = tl.move().tile(m=1, k=4).to(tl.thread).via(tl.shared, steps=tl.move().vectorize(k=4))
    tl.schedule(matmul()).tile(m=16, n=16).to(tl.block).split(k=8).load("A", tl.register, steps=stop).check()


def results_that_stop_in_registers_with_steps() -> None:
    tl.schedule(copy()).tile(i=4).to(tl.block).via(tl.register, stream=True, steps=tl.move().split(i=1)).check()


def prefetch_that_stops_in_shared() -> None:
    tl.schedule(copy()).tile(i=4).to(tl.block).load("X", tl.l1, steps=tl.move().via(tl.shared)).check()


def over_capacity_by_one_load_ahead() -> None:
    start = tl.schedule(matmul(64, 64, 2048)).tile(m=32, n=32).to(tl.block).split(k=1024)
    start.load("A", tl.shared, ahead=1).check("ampere")


def over_capacity_by_each_stage() -> None:
    start = tl.schedule(matmul(64, 64, 4096)).tile(m=64, n=32).to(tl.block).split(k=2048)
    start.load("A", tl.shared, ahead=1).check("ampere")
