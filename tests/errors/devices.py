"""What a device or a target cannot do."""

import tilelang as tl
from tests.errors._computations import copy, matmul


def unknown_dialect() -> None:
    tl.target("metal")


def unknown_profile() -> None:
    tl.target(profile="simulate")


def profile_without_a_device() -> None:
    kernel = tl.compile(copy(4, 4), target=tl.target(profile="simulated"))
    kernel.benchmark()


def assembly() -> None:
    tl.compile(copy(4, 4), target=tl.target(profile="simulated")).assembly  # noqa: B018


def estimate() -> None:
    tl.compile(copy(4, 4), target=tl.target(profile="simulated")).estimate  # noqa: B018


def instruction_of_another_device() -> None:
    tl.schedule(matmul()).tile(m=16, n=8).to(tl.block).do("mma_m16n8k16").check("pocl")


def instruction_unknown() -> None:
    tl.schedule(matmul()).tile(m=16, n=16).to(tl.block).do("opencl_mad").check("pocl")
