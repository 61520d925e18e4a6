"""Estimates: one rule for every schedule, parts that add up, the bound beside them."""

import pytest

import tilelang as tl
from tilelang.autoschedule.cost import Estimate, estimate_schedule

POCL = tl.load_profile("pocl")


def test_a_breakdown_lists_the_longest_part_first() -> None:
    found = Estimate(4e-6, (("launch", 1e-6), ("leaf", 3e-6)), 2e-6)
    lines = [line.split() for line in found.breakdown.splitlines()]
    assert lines == [
        ["4.0", "us,", "no", "less", "than", "2.0", "us"],
        ["3.0", "us", "75%", "leaf"],
        ["1.0", "us", "25%", "launch"],
    ]
    assert found.bottleneck == "leaf" and str(found) == found.breakdown


def test_schedules_written_by_hand_are_estimated() -> None:
    m, n, k = tl.axes(m=64, n=96, k=256)
    A, B = tl.input("A", tl.float32, m, k), tl.input("B", tl.float32, k, n)
    C = tl.define("C", tl.sum(A[m, k] * B[k, n], over=k), m, n)
    whole = tl.schedule(C).tile(m=64, n=96).to(tl.block)
    wide = estimate_schedule(
        whole.split(m=8, n=48).accumulate(tl.register).split(k=1).split(m=1, unroll=True).vectorize(n=16), POCL
    )
    narrow = estimate_schedule(whole.split(m=1, n=16).accumulate(tl.register).split(k=1).vectorize(n=16), POCL)
    assert narrow.seconds > wide.seconds >= wide.bound > 0
    for found in (wide, narrow):
        assert found.seconds == pytest.approx(sum(seconds for _, seconds in found.parts))
