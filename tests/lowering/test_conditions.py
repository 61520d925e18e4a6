"""Affine conditions of reductions: walks begin and end where somebody needs them, whole pieces have no tests, the rest is right."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import tilelang as tl
from tilelang.lowering import ir
from tilelang.lowering.pipeline import lower
from tilelang.machine import Profile
from tilelang.schedule import Schedule
from tilelang.testing.case import arrays
from tilelang.testing.checking import check_schedule

SIMULATED, POCL = tl.load_profile("simulated"), tl.load_profile("pocl")
SIZES = [(13, 19), (16, 32), (37, 5)]

CONDITIONS: dict[str, Callable[[Any, Any], Any]] = {
    "causal": lambda i, j: j <= i,
    "strict": lambda i, j: j < i,
    "after": lambda i, j: i <= j,
    "window": lambda i, j: (i - 5 <= j) & (j <= i + 1),
    "blocks": lambda i, j: tl.equal(i // 6, j // 6),
    "steep": lambda i, j: 2 * j <= 3 * i + 1,
    "late": lambda i, j: j >= 9,
    "never": lambda i, j: j < i - 100,
}


def product(condition: Callable[[Any, Any], Any], m: int, n: int) -> tl.Tensor:
    i, j, d = tl.axes(i=m, j=m, d=n)
    P, V = tl.input("P", tl.float32, i, j), tl.input("V", tl.float32, j, d)
    return tl.define("O", tl.sum(P[i, j] * V[j, d], over=j, where=condition(i, j)), i, d)


def blocked(o: tl.Tensor) -> Schedule:
    return tl.schedule(o).tile(i=8, d=8).to(tl.block)


def threads(o: tl.Tensor, ahead: int = 0) -> Schedule:
    return (
        blocked(o).accumulate(tl.register).split(j=4)
        .load("P", tl.shared, ahead=ahead).load("V", tl.shared, ahead=ahead).tile(i=2, d=2).to(tl.thread).split(j=1)
    )  # fmt: skip


def vectors(o: tl.Tensor, peel: bool = False, unroll: bool = False) -> Schedule:
    """A core as a block; the accumulator stands below a walk over the reduction, which combines into the output."""
    return (
        blocked(o).split(j=8).load("V", tl.shared).split(i=4).accumulate(tl.register)
        .split(j=3, peel=peel).split(j=1, unroll=unroll).load("V", tl.register).split(i=1, unroll=True).vectorize(d=8)
    )  # fmt: skip


def outer(o: tl.Tensor) -> Schedule:
    """States in shared memory above the walk, with a ring around an accumulator below."""
    return (
        blocked(o).accumulate(tl.shared).split(j=6).load("V", tl.shared, ahead=1)
        .accumulate(tl.register).split(j=2).tile(i=1, d=2).to(tl.thread)
    )  # fmt: skip


SCHEDULES: dict[str, Callable[[tl.Tensor], Schedule]] = {
    "default": tl.schedule,
    "threads": threads,
    "ring": lambda o: threads(o, 1),
    "long ring": lambda o: threads(o, 3),
    "register ring": lambda o: blocked(o).accumulate(tl.register).split(j=4).load("P", tl.register, ahead=1)
    .load("V", tl.register, ahead=2).tile(i=2, d=2).to(tl.thread).split(j=1),
    "nested rings": lambda o: blocked(o).accumulate(tl.register).split(j=8).split(j=2).load("P", tl.shared, ahead=2)
    .load("V", tl.shared, ahead=1).tile(i=1, d=4).to(tl.thread),
    "vectors": vectors,
    "peel": lambda o: vectors(o, peel=True),
    "unroll": lambda o: vectors(o, unroll=True),
    "peel alone": lambda o: blocked(o).split(j=3, peel=True).accumulate(tl.register).split(j=1),
    "states in shared": outer,
    "lanes": lambda o: tl.schedule(o).tile(i=2, d=1).to(tl.block).accumulate(tl.register).split(j=8).vectorize(j=4),
    "threads along it": lambda o: blocked(o).accumulate(tl.register).split(j=8).tile(j=2).to(tl.thread).split(j=1),
    "two axes": lambda o: tl.schedule(o).tile(i=8).to(tl.block).split(i=3, j=4).load("V", tl.shared).accumulate(tl.register),
    "blocks along it": lambda o: tl.schedule(o).tile(i=8, j=8).to(tl.block).accumulate(tl.register).split(j=3),
    "fused": lambda o: tl.schedule(o).fuse(x=("i", "d")).tile(x=16).to(tl.block).accumulate(tl.register).split(j=4).split(j=1),
}  # fmt: skip


def check(plan: Schedule, profile: Profile, opencl: bool = False) -> None:
    """It is right to the bit, and the simulator has nothing to say, with copies as early and as late as allowed."""
    assert check_schedule(plan, arrays(plan.computation, "integers"), profile=profile, opencl=opencl, exactly=True) == []


def kernel(plan: Schedule, profile: Profile = SIMULATED) -> ir.Kernel:
    return lower(plan.computation, plan.steps, profile).kernels[0]


@pytest.mark.parametrize("size", SIZES, ids=str)
@pytest.mark.parametrize("condition", CONDITIONS)
@pytest.mark.parametrize("schedule", SCHEDULES)
def test_what_is_left_is_right(schedule: str, condition: str, size: tuple[int, int]) -> None:
    plan = SCHEDULES[schedule](product(CONDITIONS[condition], *size))
    check(plan, SIMULATED)
    check(plan, POCL, opencl=size == SIZES[0])
