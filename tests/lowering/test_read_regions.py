"""What a load brings for reads whose indices are no sums of axes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilelang as tl

READ = """
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
"""


@pytest.mark.parametrize("size", [1, 4])
@pytest.mark.parametrize("index", ["max(a, b)", "min(a, 7 - b)", "a * b % 8", "(a * b) // 8"])
def test_an_index_of_two_axes_of_which_few_elements_are_left(index: str, size: int) -> None:
    schedule = tl.parse(READ.format(index=index, size=size)).schedule()
    arrays: dict[str, Any] = {"A": np.zeros(8, np.float32), "X": np.arange(64, dtype=np.float32).reshape(8, 8)}
    report = tl.simulate(tl.compile(schedule, tl.target("opencl", profile="simulated")), **arrays)
    assert not report.findings
    assert np.array_equal(report.outputs["Y"], schedule.computation.evaluate(**arrays))
