"""Roles of units as CUDA text on this processor: rings between them, copies of boxes, products of warpgroups."""

from __future__ import annotations

from typing import Any

import pytest

import tilelang as tl
from tests.lowering.test_roles import by_boxes, by_hand, linear, matmul
from tilelang.testing import emulation

pytestmark = pytest.mark.skipif(emulation.absent() is not None, reason=str(emulation.absent()))

PLANS = {
    "by hand": lambda: by_hand(matmul(33, 70, 29), blocks=3),
    "by asynchronous copies": lambda: by_hand(matmul(40, 64, 32), 2, 2, "cp_async_16_of_4_bytes"),
    "boxes, stored from registers": lambda: by_boxes(linear(100, 72, 136), 64, None, back="registers"),
    "boxes, persistent": lambda: by_boxes(linear(72, 136, 200), 64, 1, back="whole"),
    "boxes, stored in pieces": lambda: by_boxes(linear(136, 264, 72), 256, 2, ahead=3),
}


@pytest.mark.parametrize("what", PLANS)
def test_roles_compute_what_they_should(what: str) -> None:
    kernel = tl.compile(PLANS[what](), target=tl.target("cuda", profile="hopper"))
    found: Any = emulation.check(kernel)
    assert found, found


@pytest.mark.parametrize(
    "line",
    [
        "barrier_wait((unsigned long long*)(A_B_full",
        "barrier_wait((unsigned long long*)(A_B_empty",
        "barrier_arrive((unsigned long long*)(A_B_empty",
    ],
)
def test_what_orders_the_roles_is_needed(line: str) -> None:
    """A text without one of its waits or arrivals is wrong, or stands still."""
    plan = by_boxes(linear(64, 64, 320), 64, None, ahead=1, back="registers")
    kernel = tl.compile(plan, target=tl.target("cuda", profile="hopper"))
    kept = "\n".join("" if line in text else text for text in kernel.source.splitlines())
    try:
        found: Any = kernel.computation.check(lambda a: emulation.run_kernel(kernel, a, kept))
    except emulation.EmulationFault:
        return
    assert not found
