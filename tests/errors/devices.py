"""What a device or a target cannot do."""

import tilelang as tl
from tests.errors._computations import copy, matmul
from tilelang.core.expr import Axis
from tilelang.instructions.instruction import instruction, updates
from tilelang.instructions.operand import operand


def unknown_dialect() -> None:
    tl.target("metal")


def profile_as_target() -> None:
    tl.target("zen5")


def no_clusters() -> None:
    tl.schedule(matmul()).units(cluster=tl.blocks(2)).tile(m=16, n=16).to(tl.block).check("ampere")


def unknown_profile() -> None:
    tl.target(profile="simulate")


def profile_without_a_device() -> None:
    kernel = tl.compile(copy(4, 4), target=tl.target(profile="simulated"))
    kernel.benchmark()


def profile_for_another_dialect() -> None:
    tl.target("hip", profile="ampere")


def assembly() -> None:
    tl.compile(copy(4, 4), target=tl.target(profile="simulated")).assembly  # noqa: B018


def instruction_of_another_device() -> None:
    tl.schedule(matmul()).tile(m=16, n=8).to(tl.block).do("mma_m16n8k16").check("sapphire_rapids")


def instruction_unknown() -> None:
    tl.schedule(matmul()).tile(m=16, n=16).to(tl.block).do("opencl_mad").check("sapphire_rapids")


def instruction_without_a_text() -> None:
    n = Axis("n", 4)
    A, C = operand("A", tl.float32, "register"), operand("C", tl.float32, "register", n)
    instruction("add4", means=updates(C[n], A[()] * 2.0), operands=(A, C), level="thread")
    m, n4, k = tl.axes(m=4, n=4, k=4)
    X = tl.input("X", tl.float32, m, k)
    start = tl.schedule(tl.define("Y", tl.sum(X[m, k] * 2.0, over=k), m, n4)).tile(m=4, n=4).to(tl.block)
    tl.compile(start.accumulate(tl.register).split(m=1).split(k=1).load("X", tl.register).do("add4")).source  # noqa: B018


def trials() -> None:
    tl.compile(copy(4, 4), trials=-1)


def trials_without_a_device() -> None:
    tl.compile(copy(4, 4), target=tl.target(profile="sapphire_rapids"), trials=2)
