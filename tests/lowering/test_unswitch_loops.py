"""Conditions on the thread around a role's loops instead of inside them."""

from __future__ import annotations

import pytest

from tests.lowering.small_kernels import THREAD, array, program
from tilelang.core import dtype as dt
from tilelang.core.expr import Expr, Var, const, index
from tilelang.lowering import ir
from tilelang.lowering.passes.unswitch_loops import unswitch_loops
from tilelang.lowering.printer import to_text

K = Var("k", dt.int64, 0, 3)
T = Var("t", dt.int64, 0, 6)


def moved(body: ir.Stmt) -> list[str]:
    """The lines of a role after the pass."""
    (kernel,) = program(ir.Roles((ir.Role("only", 0, 4, body),)), array("out", 8, role="output"), threads=4).kernels
    return to_text(unswitch_loops(kernel).roles[0].body).splitlines()


def walk(condition: Expr, *before: ir.Stmt) -> ir.Stmt:
    stored = ir.Store(array("out", 8, role="output"), (K,), const(1.0, dt.float32))
    return ir.For(K, index(4), ir.seq(*before, ir.If(condition, stored)))


def test_a_loop_under_its_only_condition() -> None:
    assert moved(walk(THREAD < 1)) == ["if thread < 1:", "  for k in 0..4:", "    out[k] = 1.0: float32"]


def test_names_go_with_the_loop() -> None:
    lines = moved(walk(THREAD < 1, ir.Let(T, K * 2)))
    assert lines == ["if thread < 1:", "  for k in 0..4:", "    let t: int64 = k * 2", "    out[k] = 1.0: float32"]


@pytest.mark.parametrize(
    ("condition", "before"),
    [(K < 2, ()), (THREAD < K, ()), (THREAD < 1, (ir.Barrier(("shared",)),))],
    ids=["of the round", "of both", "after a barrier"],
)
def test_other_conditions_stay_where_they_are(condition: Expr, before: tuple[ir.Stmt, ...]) -> None:
    assert moved(walk(condition, *before))[0] == "for k in 0..4:"
