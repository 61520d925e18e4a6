"""Prefetches whose lines the loops below them share: each line once, an iteration before it is moved, in the innermost loop."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilelang as tl
from tilelang.lowering import ir
from tilelang.lowering.simulator.threads import Threads

PRODUCT = """
computation C(M = {m}, N = 40, K = 24) {{
  input A: float32[m: M, k: K]
  input B: float32[k: K, n: N]
  output C[m, n] = sum[k] A[m, k] * B[k, n]
}}
schedule for C {{
  tile m={m} n=32 -> block
  split k=8
  load B in l2 ahead 1
  load B in shared layout (n / 16, k, n % 16)
  {steps}
}}
"""
BY_PIECES = "split n=16 m={m} peel; accumulate in register; split k={k}; split k=1 unroll; split m=1 unroll; vectorize n=16"


def prefetched(text: str, monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, ...]]:
    """The elements that a kernel prefetches, in order, as the simulator runs it; its results are checked."""
    found: list[tuple[int, ...]] = []

    def note(threads: Any, stmt: ir.Prefetch, mask: Any) -> None:
        every = np.broadcast_arrays(*(threads.defined(i, mask) for i in stmt.indices))  # of all blocks at once
        found.extend(zip(*(np.ravel(n).tolist() for n in every), strict=True))

    monkeypatch.setitem(Threads.statements, ir.Prefetch, note)
    kernel = tl.compile(tl.parse(text).schedule(), tl.target("cpu"))
    assert str(tl.simulate(kernel)) == "no faults found"
    assert kernel.check()
    return found


def lines(rows: range) -> list[tuple[int, int]]:
    """The lines of 16 elements of so many rows, block by block."""
    return sorted((k, n) for k in rows for n in (0, 16, 32))


@pytest.mark.parametrize(
    "m, steps",
    [
        (8, BY_PIECES.format(m=4, k=4)),  # 8 iterations, 16 lines: two in each
        (16, BY_PIECES.format(m=2, k=1)),  # 128 iterations: the last ones bring none
        (7, BY_PIECES.format(m=3, k=2)),  # a rest of one row, with a loop of its own
        (8, "accumulate in register; vectorize n=16"),  # no loop
    ],
)
def test_each_line_of_the_next_iteration_once(m: int, steps: str, monkeypatch: pytest.MonkeyPatch) -> None:
    found = prefetched(PRODUCT.format(m=m, steps=steps), monkeypatch)
    inside = [line for line in found if line[0] < 24 and line[1] < 40]
    assert sorted(inside) == lines(range(8, 24))


def test_they_are_in_the_innermost_loop() -> None:
    kernel = tl.compile(tl.parse(PRODUCT.format(m=16, steps=BY_PIECES.format(m=2, k=1))).schedule(), tl.target("cpu"))
    (loop,) = [
        s for s in ir.statements(kernel.program.kernels[0].body)
        if isinstance(s, ir.For) and any(isinstance(x, ir.Prefetch) for x in ir.statements(s.body))
        and not any(isinstance(x, ir.For) for x in ir.statements(s.body))
    ]  # fmt: skip
    assert loop.var.name.startswith("k")


ROWS = """
computation Y(M = 8, N = 64) {{
  input X: float32[i: M, j: N]
  e[i, j] = exp(X[i, j] - 0.5)
  s[i] = sum[j] e[i, j]
  output Y[i, j] = e[i, j] / s[i]
}}
schedule for Y {{
  tile i=8 -> block
  split i={rows}
  compute e in shared {{ split j=16; load X in l1 ahead {ahead}; vectorize j=16 }}
  compute s in register {{ vectorize j=16 }}
  vectorize j=16
}}
"""


@pytest.mark.parametrize("rows", [1, 2, 4])
def test_further_ahead_than_the_loop_is_long(rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The rows after those that the loop reads, whether or not one iteration covers several rows."""
    found = prefetched(ROWS.format(rows=rows, ahead=4 * rows), monkeypatch)
    at = [line[0] * 64 + line[1] for line in found if len(line) == 2] or [line[0] for line in found]
    assert sorted(n for n in at if n < 512) == [*range(64 * rows, 512, 16)]


@pytest.mark.parametrize(
    "head, tensor, steps, first",
    [
        ("input X: float32[i: 3, j: 5, k: 33]", "X[i, j, k]", "fuse jk=(j, k); tile i=1 -> block; split jk=16", [0, 16, 32]),
        ("input X: float32[i: 3, j: 5, k: 33, o: 1]", "X[i, j, k, 0]", "tile i=1 -> block; split j=1", [0, 16, 32]),
        ("input X: float32[i: 3, j: 4, l: 40]", "X[i, j, k]", "tile i=1 -> block; split j=2", [0, 16, 32, 40, 56, 72]),
    ],
)
def test_lines_of_rows_that_are_contiguous_in_memory(
    head: str, tensor: str, steps: str, first: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whole lines, also through fused axes and where the last dimension has one element; each row that is apart has its own."""
    text = f"""
computation Y {{
  {head}
  axis k: 33
  output Y[i] = sum[j, k] {tensor}
}}
schedule for Y {{
  {steps}
  load X in l1
}}
"""
    kernel = tl.compile(tl.parse(text).schedule(), tl.target("cpu"))
    (shape,) = (t.shape for t in kernel.computation.inputs)
    strides = [int(np.prod(shape[d + 1 :])) for d in range(len(shape))]
    offsets = [int(np.dot(at, strides)) for at in prefetched(text, monkeypatch)]
    assert sorted(offsets)[: len(first)] == first and len(offsets) == len(set(offsets))
