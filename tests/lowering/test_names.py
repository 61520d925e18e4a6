"""Names of a kernel's own: a person may give axes and tensors any of them."""

from __future__ import annotations

from typing import Any

import pytest

import tilelang as tl
from tilelang.testing import arrays, check_schedule


def faults(schedule: tl.Schedule) -> list[str]:
    return check_schedule(schedule, arrays(schedule.computation, "random", 1), opencl=True)


def test_an_axis_named_as_another_one_s_second_loop() -> None:
    i, j = tl.axes(j=6, j_1=9)
    x = tl.input("X", tl.float32, i, j)
    schedule = tl.schedule(tl.define("Y", x[i, j] * 2, i, j)).tile(j=4).to(tl.block).split(j=2).split(j=1).split(j_1=4)
    assert not faults(schedule.split(j_1=1))


@pytest.mark.parametrize("block", ["block_x", "block_size"])
def test_axes_named_as_units(block: str) -> None:
    pieces: dict[str, Any] = {block: 2}
    i, j, k = tl.axes(**{"thread": 6, block: 9, "round": 5})
    x, y = tl.input("X", tl.float32, i, j), tl.input("tile", tl.float32, j, k)
    schedule = (
        tl.schedule(tl.define("Y", tl.sum(x[i, j] * y[j, k], over=j), i, k))
        .tile(thread=2).to(tl.block, 2)
        .split(**pieces)
        .split(thread=1)
        .load("tile", tl.shared)
        .tile(round=1).to(tl.thread)
    )  # fmt: skip
    assert not faults(schedule)
