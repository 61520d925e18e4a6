"""Indices and conditions with quotients and remainders by negative numbers, by 0, and by axes, against reference and steps."""

from __future__ import annotations

import pytest

import tilelang as tl
from tilelang.testing import arrays, check_schedule

LOAD = "tile i=5 -> block; load X in {} ; tile i=1 -> thread"
WALK = "tile i=4 -> block; accumulate in register; split j=4; tile i=1 -> thread"
INDICES = ["i // -2 + 8", "i % -4 + 3", "(i + 3) % -4 + 3", "7 - i // -3", "i // k + k", "i % k", "(i + k) // -3 + 6"]


def check(text: str, steps: str) -> None:
    plan = tl.parse(f"computation c {{ {text} }} schedule for c {{ {steps} }}").schedule()
    assert check_schedule(plan, arrays(plan.computation), profile=tl.load_profile("ampere")) == []


@pytest.mark.parametrize("zero", [False, True])
@pytest.mark.parametrize("memory", ["shared", "register"])
@pytest.mark.parametrize("index", INDICES)
def test_the_region_of_a_load(index: str, memory: str, zero: bool) -> None:
    """zero: the axis `k` has one point, 0, by which its divisor is."""
    read = f"input X: float32[p: 9] axis i: 16 axis k: {1 if zero else 3} output Y[i, k] = pad(X[{index}], 0.0) * 2.0"
    check(read, LOAD.format(memory))


@pytest.mark.parametrize("by", [-1, -3])
def test_the_region_of_a_stage(by: int) -> None:
    text = f"input X: float32[p: 24] axis i: 24 s[p] = exp(X[p]) output Y[i] = s[i // {by} + 23]"
    check(text, "tile i=8 -> block; compute s in shared; tile i=2 -> thread")


@pytest.mark.parametrize(
    "condition", ["j <= i // -2 + 12", "j // -2 >= -5", "j // -3 + i // 4 <= -2", "j <= i // k + 4", "j // k <= i"]
)
def test_the_ends_of_a_loop(condition: str) -> None:
    check(f"input X: float32[i: 16, j: 20] axis k: 1 output Y[i, k] = sum[j: {condition}] X[i, j]", WALK)
