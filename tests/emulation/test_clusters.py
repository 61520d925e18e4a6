"""Clusters of blocks on this processor: copies that come to all of them, and what happens where they do not wait for each other."""

from __future__ import annotations

import re
from typing import Any

import pytest

import tilelang as tl
from tests.lowering.test_multicast import product, small
from tests.lowering.test_roles import linear
from tilelang.runtime.kernel import Kernel
from tilelang.semantics.reference import compare, random_arrays
from tilelang.testing import emulation

pytestmark = pytest.mark.skipif(emulation.absent() is not None, reason=str(emulation.absent()))

HOPPER = tl.target("cuda", profile="hopper")
HOW: list[dict[str, Any]] = [
    {},
    {"turns": "descending", "landing": "early"},
    {"turns": 1, "landing": 1},
    {"turns": 2, "landing": "late"},
]


def compiled(*sizes: int, **how: Any) -> Kernel:
    return tl.compile(small(linear(*sizes), **how), HOPPER)


@pytest.mark.parametrize(
    ("sizes", "how"),
    [
        ((256, 64, 320), {}),
        ((200, 72, 136), {"clusters": 1}),
        ((520, 40, 72), {"clusters": 2, "ahead": 0}),
        ((100, 64, 72), {"blocks": 4}),
    ],
    ids=str,
)
def test_products_of_clusters(sizes: tuple[int, ...], how: dict[str, Any]) -> None:
    kernel = compiled(*sizes, **how)
    for turns in HOW:
        report = emulation.check(kernel, **turns)
        assert report, report


def test_the_product_of_the_language_s_description_in_clusters() -> None:
    """256 x 256 a cluster of two, four buffers: a tile is loaded while the one before it is stored."""
    kernel = tl.compile(product(linear(264, 264, 136), clusters=1, ahead=3), HOPPER)
    for turns in HOW[1:3]:
        report = emulation.check(kernel, **turns)
        assert report, report


WAITS = re.compile(r"^\s+(?:if \([^{;]*\) )?(?:cluster_meet|barrier_(?!init_fence|init)\w+)\((?!.*tensor_).*$", re.MULTILINE)


def test_every_meeting_and_arrival_is_missed() -> None:
    """A text without one of them uses a block that has ended, waits for ever, races, or gives a wrong result."""
    kernel = compiled(256, 64, 320, ahead=1)
    arrays = random_arrays(kernel.computation)
    places = list(WAITS.finditer(kernel.source))
    arrivals = [place for place in places if "barrier_arrive_in" in place[0]]
    assert len(arrivals) == 4  # in every round but the last; nobody awaits those of that one
    for place in (p for p in places if p not in arrivals[2:]):
        source = kernel.source[: place.start()] + kernel.source[place.end() :]
        assert any(_fails(kernel, arrays, source, how) for how in HOW), f"nobody misses {place[0].strip()}"


def _fails(kernel: Kernel, arrays: dict[str, Any], source: str, how: dict[str, Any]) -> bool:
    try:
        found = emulation.run_kernel(kernel, arrays, source, **how)
    except emulation.EmulationFault:
        return True
    return not compare(kernel.computation, arrays, found, error_ulps=kernel.schedule.error_ulps)
