"""Accesses that a loop repeats: what the simulator keeps of them does not outlast what it depends on."""

from __future__ import annotations

import numpy as np
import pytest

from tests.lowering.small_kernels import THREAD, array, program, shared
from tilelang.core import dtype as dt
from tilelang.core.expr import Select, Var, const, index
from tilelang.lowering import ir
from tilelang.lowering.simulator.simulate import run

ROUND = Var("round", dt.int64, 0, 3)
THREADS = 4


def in_rounds(*body: ir.Stmt) -> ir.Stmt:
    return ir.For(ROUND, index(4), ir.seq(*body))


def test_a_variable_may_differ_between_threads_in_some_iterations() -> None:
    x, y = array("X", 4), array("Y", 4, THREADS, role="output")
    chosen = Var("chosen", dt.int64, 0, 3)
    let = ir.Let(chosen, Select(ROUND < 2, ROUND, THREAD))
    body = in_rounds(let, ir.Store(y, (ROUND, THREAD), ir.Load(x, (chosen,))))
    given = np.arange(4, dtype=np.float32)
    report = run(program(body, x, y, threads=THREADS), {"X": given})
    assert str(report) == "no faults found"
    np.testing.assert_array_equal(report.outputs["Y"], [[0] * 4, [1] * 4, given, given])


def test_the_threads_of_a_condition_change_with_the_loop() -> None:
    y = array("Y", 4, THREADS, role="output")
    some = ir.If(
        THREAD < ROUND, ir.Store(y, (ROUND, THREAD), const(1.0, dt.float32)), ir.Store(y, (ROUND, THREAD), const(2.0, dt.float32))
    )
    again = Var("again", dt.int64, 0, 1)
    report = run(program(ir.For(again, index(2), in_rounds(some)), y, threads=THREADS), {})
    assert str(report) == "no faults found"
    np.testing.assert_array_equal(report.outputs["Y"], np.where(np.arange(THREADS) < np.arange(4)[:, None], 1, 2))


@pytest.mark.parametrize("threads", [1, THREADS])
def test_a_sum_that_becomes_undefined_is_reported(threads: int) -> None:
    held, source = ir.Buffer("held", dt.float32, (1,), "register"), shared("S", 4)
    y = array("Y", 4, threads, role="output")
    one, total = const(1.0, dt.float32), ir.Load(held, (index(0),))
    first = ir.If(THREAD < 1, ir.seq(*(ir.Store(source, (index(n),), one) for n in (0, 1, 3))))
    add = ir.Store(held, (index(0),), total + ir.Load(source, (ROUND,)))
    body = in_rounds(add, ir.Store(y, (ROUND, THREAD), total))
    start = ir.seq(first, ir.Barrier(("shared",)), ir.Store(held, (index(0),), one))
    report = run(program(ir.seq(start, body), source, held, y, threads=threads), {})
    assert report.counts == {"uninitialised-read": 2 * threads}  # it stays undefined
    assert {f.element for f in report.findings} == {(2,)}


def test_elements_out_of_bounds_are_reported_in_each_iteration() -> None:
    x, y = array("X", 2), array("Y", 4, THREADS, role="output")
    again = Var("again", dt.int64, 0, 1)
    body = ir.For(again, index(2), in_rounds(ir.Store(y, (ROUND, THREAD), ir.Load(x, (ROUND,)))))
    report = run(program(body, x, y, threads=THREADS), {"X": np.ones(2, np.float32)})
    assert report.counts == {"out-of-bounds": 2 * 2 * THREADS}
