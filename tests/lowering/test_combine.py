"""Combining states: tuples at once, what members have in common worked out once, in vectors, between threads and between rounds."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest

import tilelang as tl
from tilelang.core.expr import Binary, Call, Expr
from tilelang.lowering import ir
from tilelang.lowering.pipeline import lower
from tilelang.schedules.schedule import Schedule
from tilelang.testing.case import arrays
from tilelang.testing.checking import check_schedule

POCL = tl.load_profile("sapphire_rapids")


def argmax(rows: int, columns: int) -> tl.Tensor:
    i, j = tl.axes(i=rows, j=columns)
    return tl.define("Y", tl.argmax(tl.input("X", tl.float32, i, j)[i, j], over=j), i)


def variance(rows: int, columns: int) -> tl.Tensor:
    """Sum of squared deviations by (count, mean, squares), of products, so that an operand is dear and wanted more than once."""
    i, j = tl.axes(i=rows, j=columns)
    X = tl.input("X", tl.float32, i, j)

    def combine(a: Any, b: Any) -> Any:
        n, delta = a[0] + b[0], b[1] - a[1]
        part = tl.where(n > 0, b[0] / tl.maximum(n, 1.0), 0.0)
        return n, a[1] + delta * part, a[2] + b[2] + delta * delta * a[0] * part

    one, zero = tl.cast(1, tl.float32), tl.cast(0, tl.float32)
    state = tl.reduce(combine, (0.0, 0.0, 0.0), (one, X[i, j] * X[i, j], zero), over=j)
    return tl.define("Y", state[2], i)


def in_lanes(c: tl.Tensor) -> Schedule:
    return tl.schedule(c).tile(i=1).to(tl.block).accumulate(tl.register).split(j=8).vectorize(j=8)


def in_rows(c: tl.Tensor) -> Schedule:
    return tl.schedule(c).tile(i=8).to(tl.block).accumulate(tl.register).split(j=1).vectorize(i=8)


def by_threads(c: tl.Tensor) -> Schedule:
    return tl.schedule(c).tile(i=1).to(tl.block).tile(j=1).to(tl.thread, 4)


def in_rounds(c: tl.Tensor) -> Schedule:
    return (
        tl.schedule(c).tile(i=4).to(tl.block).accumulate(tl.shared).split(j=16)
        .split(i=2).accumulate(tl.register).split(j=4).vectorize(j=4)
    )  # fmt: skip


def into_shared(c: tl.Tensor) -> Schedule:
    return tl.schedule(c).tile(i=4).to(tl.block).accumulate(tl.shared).split(j=1).vectorize(i=4)


@pytest.mark.parametrize("plan", [in_lanes, in_rows, by_threads, in_rounds, into_shared], ids=lambda p: p.__name__)
@pytest.mark.parametrize("define", [argmax, variance], ids=lambda d: d.__name__)
@pytest.mark.parametrize("shape", [(9, 37), (5, 0)], ids=str)
def test_tuples_are_right(define: Any, plan: Any, shape: tuple[int, int]) -> None:
    made = plan(define(*shape))
    for data in ("random", "integers"):
        assert check_schedule(made, arrays(made.computation, data), profile=POCL, opencl=True) == []


@pytest.mark.parametrize("plan", [in_lanes, in_rows, by_threads, in_rounds, into_shared], ids=lambda p: p.__name__)
def test_ties_and_nans_keep_their_order(plan: Any) -> None:
    x = np.zeros((9, 37), np.float32)
    x[1, 5:9], x[2, 36], x[3, [7, 30]], x[4] = 3, 1, np.nan, -np.inf
    made = plan(argmax(9, 37))
    assert check_schedule(made, {"X": x}, profile=POCL, opencl=True, exactly=True) == []


def computed(plan: Schedule) -> Counter[Expr]:
    """How many statements of the innermost walk compute each load, function, or operation on floats."""
    found: Counter[Expr] = Counter()
    (kernel,) = lower(plan.computation, plan.steps, POCL).kernels
    loops = [s for s in ir.statements(kernel.body) if isinstance(s, ir.For)]
    for s in ir.statements(loops[-1].body):
        for e in ir.expressions(s):
            found.update(
                {x for x in e.walk() if isinstance(x, (Call, ir.Load)) or isinstance(x, Binary) and x.left.dtype.is_float}
            )
    return found


@pytest.mark.parametrize("plan", [in_lanes, in_rows], ids=lambda p: p.__name__)
def test_what_members_ask_is_answered_once(plan: Any) -> None:
    for define in (argmax, variance):
        counts = computed(plan(define(16, 64)))
        assert any(isinstance(e, Binary) for e in counts)
        assert {e: n for e, n in counts.items() if n > 1 and not (isinstance(e, ir.Load) and e.buffer.memory == "register")} == {}


def test_the_lanes_of_a_comparison_are_one_vector() -> None:
    (kernel,) = lower(in_lanes(argmax(5, 37)).computation, in_lanes(argmax(5, 37)).steps, POCL).kernels
    loads = [x for s in ir.statements(kernel.body) for e in ir.expressions(s) for x in ir.loads(e) if x.buffer.name == "X"]
    assert [(x.lanes, x.count is not None) for x in loads] == [(8, False), (8, True)]


def test_a_plain_sum_needs_no_more_registers() -> None:
    i, j = tl.axes(i=4, j=16)
    plan = in_lanes(tl.define("Y", tl.sum(tl.exp(tl.input("X", tl.float32, i, j)[i, j]), over=j), i))
    (kernel,) = lower(plan.computation, plan.steps, POCL).kernels
    assert [b.role for b in kernel.registers if b.role] == []


def test_a_later_round_combines_what_came_through_shared_memory() -> None:
    i, j = tl.axes(i=6, j=12)
    X = tl.input("X", tl.float32, i, j)
    y = tl.define("Y", tl.reduce(lambda a, b: a + b + a * b, 0.0, X[i, j], over=j), i)  # it asks for each operand twice
    made = tl.schedule(y).tile(i=6).to(tl.block).split(j=4).accumulate(tl.register, steps=tl.move().via(tl.shared))
    assert check_schedule(made.tile(i=2).to(tl.thread), arrays(made.computation, "random"), profile=POCL) == []


def test_only_what_is_worked_out_twice_is_held() -> None:
    """Not the registers, constants and indices that several members ask for: X's element, and whether it wins."""
    plan = in_rows(argmax(16, 64))
    (kernel,) = lower(plan.computation, plan.steps, POCL).kernels
    held = {b.name: b.shape for b in kernel.registers if b.role}
    assert held == {"Y_argmax_0_state_value": (8,), "Y_argmax_0_state_common": (8,)}
