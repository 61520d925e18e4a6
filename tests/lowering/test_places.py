"""Where statements come from: the step they stand for, and the steps that divided the work they do, also where those left no loop."""

from __future__ import annotations

import tilelang as tl
from tilelang.lowering import ir

PRODUCT = """
computation C(M = 64, N = 64, K = 16) {
  input A: float32[m: M, k: K]
  input B: float32[k: K, n: N]
  output C[m, n] = sum[k] A[m, k] * B[k, n]
}
schedule for C {
  tile m=32 n=32 -> block
  accumulate in register
  split k=8
  load A in shared { tile m=1 k=4 -> thread; vectorize k=4 }
  split k=1
  split m=16
  tile m=4 n=4 -> thread
}
"""

STAGES = """
computation Y(M = 4, N = 64) {
  input X: float32[i: M, j: N]
  peak[i] = max[j] X[i, j]
  output Y[i, j] = X[i, j] - peak[i]
}
schedule for Y {
  tile i=1 -> block
  compute peak in register { tile j=4 -> thread }
  tile j=4 -> thread
}
"""


def stores(text: str, buffer: str) -> list[ir.Store]:
    kernel = tl.compile(tl.parse(text).schedule(), tl.target("opencl", profile="simulated"))
    found = [s for k in kernel.program.kernels for s in ir.statements(k.body)]
    return [s for s in found if isinstance(s, ir.Store) and s.buffer.name == buffer]


def line(text: str, step: str) -> int:
    return text.split("\n").index(f"  {step}") + 1


def test_a_statement_knows_the_steps_that_divided_its_work() -> None:
    *_, last = stores(PRODUCT, "C_state")
    cuts = ("tile m=32 n=32 -> block", "split k=8", "split k=1", "split m=16", "tile m=4 n=4 -> thread")
    assert last.span is not None and last.span.line == line(PRODUCT, cuts[-1])
    assert [place.line for place in last.span.around] == [line(PRODUCT, cut) for cut in cuts]
    (first, *_) = stores(PRODUCT, "C")
    assert first.span is not None and first.span.line == line(PRODUCT, "accumulate in register")
    assert line(PRODUCT, "split m=16") in [place.line for place in first.span.around]


def test_a_move_knows_the_steps_above_it() -> None:
    (first, *_) = stores(PRODUCT, "A_shared")
    assert first.span is not None
    above = [place.line for place in first.span.around]
    assert above[:2] == [line(PRODUCT, "tile m=32 n=32 -> block"), line(PRODUCT, "split k=8")]
    assert line(PRODUCT, "split m=16") not in above


def test_what_a_stage_implies_comes_from_the_stage() -> None:
    here = line(STAGES, "compute peak in register { tile j=4 -> thread }")
    assert {s.span and s.span.line for name in ("peak_state", "peak_register") for s in stores(STAGES, name)} == {here}
