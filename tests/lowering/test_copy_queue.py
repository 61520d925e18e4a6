"""Asynchronous copies in the simulator: they land when they like, and whoever cannot bear it is reported."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.lowering.gemm_kernels import at
from tests.lowering.small_kernels import ORDERS, THREAD, array, kinds, program, shared
from tilelang.core import dtype as dt
from tilelang.core.expr import Binary, Expr, Var, const, index
from tilelang.lowering import ir
from tilelang.lowering.simulator.simulate import orders, run


def copies(*, wait: bool = True, read_first: bool = False, overwrite: bool = False, again: bool = False, pending: int = 0) -> Any:
    """Four elements per thread come asynchronously; with faults on demand."""
    x, out, tile = array("x", 32), array("out", 32, role="output"), shared("tile", 32)
    work = array("work", 32, role="workspace")
    read = ir.Store(out, (THREAD * 4,), ir.Load(tile, (THREAD * 4,), 4), span=at(4))
    copy = ir.Copy(tile, (THREAD * 4,), work, (THREAD * 4,), 4, span=at(1))
    body = ir.seq(
        ir.Store(work, (THREAD * 4,), ir.Load(x, (THREAD * 4,), 4)),
        copy,
        ir.Commit(),
        ir.Store(work, (THREAD * 4,), ir.Pack((const(9.0, dt.float32),) * 4), span=at(2)) if overwrite else None,
        copy if again else None,
        read if read_first else None,
        ir.Wait(pending, span=at(3)) if wait else None,
        read,
    )
    return program(body, x, work, out, tile, threads=8)


def test_copies_are_run_in_both_orders() -> None:
    assert orders(copies()) == ("early", "late")


@pytest.mark.parametrize("order", ORDERS)
def test_copy_lands_by_its_wait(order: str | int) -> None:
    values = np.arange(32, dtype=np.float32)
    report = run(copies(), {"x": values}, order=order)
    assert str(report) == "no faults found"
    np.testing.assert_array_equal(report.outputs["out"], values)


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize(
    ("fault", "expected"),
    [
        ({"wait": False}, {"read-before-wait": 32, "copy-never-awaited": 8}),
        ({"pending": 1}, {"read-before-wait": 32, "copy-never-awaited": 8}),
        ({"read_first": True}, {"read-before-wait": 32}),
        ({"overwrite": True}, {"source-overwritten": 32}),
    ],
)
def test_hasty_use_of_a_copy_is_reported_in_every_order(order: str | int, fault: Any, expected: dict[str, int]) -> None:
    report = run(copies(**fault), {"x": np.zeros(32)}, order=order)
    assert report.counts == expected


def test_late_copies_read_their_source_late() -> None:
    values = np.arange(32, dtype=np.float32)
    assert (run(copies(overwrite=True), {"x": values}, order="late").outputs["out"] == 9).all()
    assert (run(copies(overwrite=True), {"x": values}, order="early").outputs["out"] == values).all()


def test_second_copy_to_the_same_place_before_the_wait() -> None:
    report = run(copies(again=True), {"x": np.zeros(32)})
    assert report.counts["write-before-wait"] == 32 and report.findings[0].span == at(1)


@pytest.mark.parametrize(("barrier", "found"), [(True, set()), (False, {"data-race"})])
def test_another_thread_needs_a_barrier_after_the_wait(barrier: bool, found: set[str]) -> None:
    x, out, tile = array("x", 32), array("out", 32, role="output"), shared("tile", 32)
    body = ir.seq(
        ir.Copy(tile, (THREAD,), x, (THREAD,), 1),
        ir.Commit(),
        ir.Wait(0),
        ir.Barrier(("shared",)) if barrier else None,
        ir.Store(out, (THREAD,), ir.Load(tile, (31 - THREAD,))),
    )
    assert kinds(run(program(body, x, out, tile), {"x": np.zeros(32)})) == found


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize(("pending", "found"), [(2, set()), (3, {"read-before-wait", "data-race"})])
def test_ring_of_copies(order: str | int, pending: int, found: set[str]) -> None:
    """A ring of four: three groups ahead, the oldest of which must have landed before it is read."""
    x, out, ring = array("x", 8, 32), array("out", 8, 32, role="output"), shared("ring", 4, 32)
    step = Var("step", dt.int64, 0, 7)

    def fetch(row: Expr) -> ir.Stmt:
        copy = ir.Copy(ring, (row % 4, THREAD), x, (row, THREAD), 1)
        return ir.seq(ir.If(row < 8, copy), ir.Commit())

    body = ir.seq(
        *(fetch(index(row)) for row in range(3)),
        ir.For(
            step,
            index(8),
            ir.seq(
                ir.Wait(pending),
                ir.Barrier(("shared",)),
                ir.Store(out, (step, THREAD), ir.Load(ring, (step % 4, 31 - THREAD))),
                fetch(step + 3),
            ),
        ),
        ir.Wait(0),
    )
    values = np.arange(256, dtype=np.float32).reshape(8, 32)
    report = run(program(body, x, out, ring), {"x": values}, order=order)
    assert kinds(report) == found
    if not found:
        np.testing.assert_array_equal(report.outputs["out"], values[:, ::-1])


def test_lanes_beyond_the_count_of_a_copy_become_zero() -> None:
    x, out, tile = array("x", 30), array("out", 32, role="output"), shared("tile", 32)
    count = Binary("min", index(4), 30 - THREAD * 4)
    body = ir.seq(
        ir.Copy(tile, (THREAD * 4,), x, (THREAD * 4,), 4, count),
        ir.Commit(),
        ir.Wait(0),
        ir.Store(out, (THREAD * 4,), ir.Load(tile, (THREAD * 4,), 4)),
    )
    for order in ORDERS:
        report = run(program(body, x, out, tile, threads=8), {"x": np.ones(30)}, order=order)
        assert not report.findings
        assert report.outputs["out"].tolist() == [1.0] * 30 + [0.0] * 2


@pytest.mark.parametrize("count", [index(5), index(-1)], ids=str)
def test_a_count_of_more_lanes_than_a_copy_has_or_less_than_none(count: Expr) -> None:
    x, tile = array("x", 64), shared("tile", 32)
    body = ir.seq(ir.Copy(tile, (THREAD * 4,), x, (THREAD * 4,), 4, count), ir.Commit(), ir.Wait(0))
    assert kinds(run(program(body, x, tile, threads=8), {"x": np.ones(64)})) == {"instruction-operand"}
