"""Options of the compiler that a text for the processor names itself."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import tilelang as tl
from tilelang.lowering.compilers.native import own_options

SIDE_BY_SIDE, ROWS_APART = ("-mllvm", "-pre-RA-sched=list-ilp"), ("-fno-slp-vectorize",)


def options(made: Callable[[], tl.Tensor]) -> tuple[str, ...]:
    return own_options(tl.compile(made(), "cpu").source)


@pytest.mark.parametrize("function", [tl.exp, tl.gelu_tanh, lambda x: tl.maximum(tl.erf(x), 0.5)])
def test_calls_over_vectors_go_side_by_side(function: Callable[[tl.Expr], tl.Expr]) -> None:
    i = tl.axes(i=4096)
    X = tl.input("X", tl.float32, i)
    assert options(lambda: tl.define("Y", function(X[i]), i)) == SIDE_BY_SIDE


def test_other_texts_keep_the_scheduler_that_they_had() -> None:
    m, n, k = tl.axes(m=128, n=128, k=128)
    A, B = tl.input("A", tl.float32, m, k), tl.input("B", tl.float32, k, n)
    assert options(lambda: tl.define("C", tl.exp(tl.sum(A[m, k] * B[k, n], over=k)), m, n)) == ROWS_APART
    assert options(lambda: tl.define("C", tl.maximum(A[m, k], 0), m, k)) == ()
    schedule = tl.schedule(tl.define("C", tl.exp(A[m, k]), m, k)).tile(m=1).to(tl.block)
    assert own_options(tl.compile(schedule, "cpu").source) == ()  # element by element
