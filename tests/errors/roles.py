"""Roles of units that a device, or no target yet, can have."""

import tilelang as tl
from tests.errors._computations import linear, matmul


def role_without_a_name() -> None:
    tl.schedule(matmul()).units(block=tl.warps(1).as_role("producer") + tl.warps(2)).check("simulated")


def role_named_as_a_level() -> None:
    roles = tl.warps(1).as_role("producer") + tl.warps(2).as_role("warp")
    tl.schedule(matmul()).units(block=roles).tile(m=16, n=16).to(tl.block).check("simulated")


def role_of_units_without_a_size() -> None:
    roles = tl.warps(1).as_role("producer") + tl.blocks(2).as_role("consumer")
    tl.schedule(matmul()).units(block=roles).tile(m=16, n=16).to(tl.block).check("simulated")


def nobody_computes() -> None:
    roles = tl.warps(1).as_role("first") + tl.warps(2).as_role("second")
    start = tl.schedule(matmul()).units(block=roles).tile(m=16, n=16).to(tl.block).split(k=8)
    start.load("A", tl.shared, on="first").load("B", tl.shared, on="second").check("simulated")


def two_roles_compute() -> None:
    roles = tl.warps(1).as_role("first") + tl.warps(2).as_role("second")
    start = tl.schedule(matmul()).units(block=roles).tile(m=16, n=16).to(tl.block)
    start.tile(m=8).to("first").tile(n=8).to("second").check("simulated")


def a_role_without_work() -> None:
    roles = tl.warps(1).as_role("producer") + tl.warps(2).as_role("consumer")
    start = tl.schedule(matmul()).units(block=roles).tile(m=16, n=16).to(tl.block).split(k=8)
    start.load("A", tl.shared).tile(m=8).to("consumer").check("simulated")


def on_a_role_that_is_not_there() -> None:
    roles = tl.warps(1).as_role("producer") + tl.warps(2).as_role("consumer")
    start = tl.schedule(matmul()).units(block=roles).tile(m=16, n=16).to(tl.block).split(k=8)
    start.load("A", tl.shared, on="producers", ahead=1).tile(m=8).to("consumer").check("simulated")


def on_a_role_without_roles() -> None:
    tl.schedule(matmul()).tile(m=16, n=16).to(tl.block).load("A", tl.shared, on="producer").check()


def in_registers_on_a_role() -> None:
    roles = tl.warps(1).as_role("producer") + tl.warps(2).as_role("consumer")
    start = tl.schedule(matmul()).units(block=roles).tile(m=16, n=16).to(tl.block).split(k=8)
    start.load("A", tl.register, on="producer").tile(m=8).to("consumer").check("simulated")


def on_a_role_below_a_spread_of_another() -> None:
    roles = tl.warps(1).as_role("producer") + tl.warps(2).as_role("consumer")
    start = tl.schedule(matmul()).units(block=roles).tile(m=16, n=16).to(tl.block).tile(m=8).to("consumer")
    start.split(k=8).load("A", tl.shared, on="producer").check("simulated")


def on_a_role_where_rounds_are_missing() -> None:
    roles = tl.warps(1).as_role("producer") + tl.warps(2).as_role("consumer")
    start = tl.schedule(linear()).units(block=roles).tile(m=16, n=16).to(tl.block).split(k=48).split(k=8)
    start.load("A", tl.shared, on="producer", ahead=1).tile(m=8).to("consumer").check("simulated")


def budgets_where_registers_stay() -> None:
    producer, consumer = tl.warps(1).as_role("producer", 40), tl.warps(4).as_role("consumer", 232)
    plan = tl.schedule(matmul()).units(block=(producer, consumer)).tile(m=16, n=16).to(tl.block)
    plan.load("A", tl.shared, on="producer").check("simulated")


def budget_of_no_multiple() -> None:
    roles = tl.warpgroups(1).as_role("producer", 40) + tl.warpgroups(2).as_role("consumer", 130)
    plan = tl.schedule(matmul()).units(block=roles).tile(m=16, n=16).to(tl.block).split(k=8)
    plan.load("A", tl.shared, on="producer").check("hopper")


def budget_of_a_warp() -> None:
    roles = tl.warps(1).as_role("producer", 40) + tl.warpgroups(2).as_role("consumer", 128)
    plan = tl.schedule(matmul()).units(block=roles).tile(m=16, n=16).to(tl.block).split(k=8)
    plan.load("A", tl.shared, on="producer").check("hopper")


def budgets_beyond_a_block() -> None:
    roles = tl.warpgroups(1).as_role("producer", 256) + tl.warpgroups(2).as_role("consumer", 256)
    plan = tl.schedule(matmul()).units(block=roles).tile(m=16, n=16).to(tl.block).split(k=8)
    plan.load("A", tl.shared, on="producer").check("hopper")


def box_that_nobody_awaits() -> None:
    i, j = tl.axes(i=64, j=64)
    made = tl.define("Y", tl.input("X", tl.float16, i, j)[i, j], i, j)
    plan = tl.schedule(made).units(block=tl.warps(1)).tile(i=64, j=64).to(tl.block)
    plan.load("X", tl.shared, steps=tl.move().do("tma_load_2d")).check("hopper")
