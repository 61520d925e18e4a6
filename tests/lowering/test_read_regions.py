"""What a load brings: regions of indices that are not sums of axes, several reads with one region, places by access."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilelang as tl


def check_right(text: str) -> None:
    """The program is right in the simulator, which finds nothing."""
    schedule = tl.parse(text).schedule()
    chance = np.random.default_rng(0)
    arrays: dict[str, Any] = {}
    for tensor in schedule.computation.inputs:
        low, high = (0, 20) if tensor.dtype is tl.int32 else (1, 30)
        shape = [dim.extent for dim in tensor.dims]
        arrays[tensor.name] = chance.integers(low, high, shape).astype(np.int32 if low == 0 else np.float32)
    report = tl.simulate(tl.compile(schedule, tl.target("opencl", profile="simulated")), **arrays)
    assert not report.findings
    np.testing.assert_array_equal(report.outputs["Y"], schedule.computation.evaluate(**arrays))


@pytest.mark.parametrize("size", [1, 4])
@pytest.mark.parametrize("index", ["max(a, b)", "min(a, 7 - b)", "a * b % 8", "(a * b) // 8"])
def test_an_index_of_two_axes_of_which_few_elements_are_left(index: str, size: int) -> None:
    check_right(f"""
computation Y(N = 8) {{
  input A: float32[a: N]
  input X: float32[i: N, b: N]
  output Y[a, b] = A[a] + X[{index}, b]
}}
schedule for Y {{
  tile a=1 b={size} -> block
  load X in shared {{ tile b=1 -> thread }}
  tile b={size} -> thread
}}
""")


@pytest.mark.parametrize("more", ["", " + T[3]"])
@pytest.mark.parametrize("tile", ["a=4 b=4", "a=1 b=8", "a=8 b=8"])
def test_a_stage_read_at_remainders_of_a_product_is_made_whole(tile: str, more: str) -> None:
    """Where such remainders end is not known: no element of the stage is left out."""
    check_right(f"""
computation Y(N = 8) {{
  input X: float32[i: N]
  axis a: N
  axis b: N
  T[i] = X[i] * 2.0
  output Y[a, b] = T[a * b % 8]{more}
}}
schedule for Y {{
  tile {tile} -> block
  compute T in shared
  tile a=1 b=2 -> thread
}}
""")


@pytest.mark.parametrize("index", ["a / 2", "(a + 1) / 2", "(a + 2) / 3", "(a + 3) % 8"])
def test_quotients_that_begin_within_a_group(index: str) -> None:
    check_right(f"""
computation Y(N = 16) {{
  input A: float32[a: 24]
  input X: float32[i: N]
  output Y[a] = A[a] + X[{index}]
}}
schedule for Y {{
  tile a=4 -> block
  load X in shared {{ tile i=1 -> thread }}
  tile a=1 -> thread
}}
""")


@pytest.mark.parametrize("fills", [(0, 5), (5, 0), (3, 3)])
def test_reads_that_are_padded_with_two_values_share_a_load(fills: tuple[int, int]) -> None:
    check_right(f"""
computation Y(N = 16) {{
  input A: float32[a: N]
  input X: float32[i: N]
  output Y[a] = A[a] + pad(X[a - 1], {fills[0]}) + pad(X[a + 1], {fills[1]})
}}
schedule for Y {{
  tile a=4 -> block
  load X in shared {{ tile i=1 -> thread }}
  tile a=1 -> thread
}}
""")


BY_ACCESS = """
computation Y(N = 8) {{
  input X: float32[v: 20, j: N]
  input ids: int32[i: N] in 0..19
  output Y[i, j] = X[ids[i], j]
}}
schedule for Y {{
  tile i={i} j=8 -> block
  load X in shared layout ({layout}) {{ tile i=1 j=2 -> thread }}
  tile i=1 j=2 -> thread
}}
"""


@pytest.mark.parametrize(("layout", "i"), [("j, i", 4), ("j, i", 1)])
def test_a_layout_by_access_may_name_axes_of_one_point(layout: str, i: int) -> None:
    check_right(BY_ACCESS.format(layout=layout, i=i))


LAYOUTS = [("i", "leaves out j"), ("i, q", "names q"), ("j", "names dimensions of X")]


@pytest.mark.parametrize(("layout", "why"), LAYOUTS)
def test_a_layout_by_access_names_the_axes_that_are_longer(layout: str, why: str) -> None:
    with pytest.raises(tl.Refusal, match=f"the layout {why}") as caught:
        tl.parse(BY_ACCESS.format(layout=layout, i=4)).schedule().check()
    assert caught.value.code == "layout-dimension"
