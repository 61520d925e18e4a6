"""Partial vectors, also empty ones, in CUDA and HIP sources that are emulated on the CPU: no pointer leaves its array."""

from __future__ import annotations

import pytest

import tilelang as tl
from tilelang import testing
from tilelang.schedules.schedule import Schedule
from tilelang.testing import emulation

pytestmark = pytest.mark.skipif(emulation.absent() is not None, reason=str(emulation.absent()))


def scaled(I: int, J: int) -> Schedule:
    i, j = tl.axes(i=I, j=J)
    X = tl.input("X", tl.float32, i, j)
    return tl.schedule(tl.define("C", X[i, j] * 2.0, i, j))


@pytest.mark.parametrize("target", [("cuda", "ampere"), ("hip", "cdna3")], ids=str)
def test_threads_beyond_the_last_tile_stay_in_shared_memory(target: tuple[str, str]) -> None:
    """One tile for ten threads: what the others would read begins up to 72 elements after an array of 10."""
    held = scaled(2, 5).tile(i=2, j=5).to(tl.block).load("X", tl.shared)
    held = held.load("X", tl.register, steps=tl.move().tile(j=8).to(tl.thread).vectorize(j=4)).load("X", tl.register)
    dialect, device = target
    kernel = tl.compile(held.tile(i=1, j=1).to(tl.thread), tl.target(dialect, profile=device))
    assert "load_first_shared_float4(X_shared + (0 < " in kernel.source
    assert testing.check_kernel(kernel) == []
