"""What is undefined stays so through every operation, and is a finding only where it reaches a store, a condition or an index."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.lowering.small_kernels import ORDERS, THREAD, array, program, shared
from tests.lowering.test_instruction_groups import warp_product
from tilelang.core import dtype as dt
from tilelang.core.expr import INDEX, Binary, Call, Cast, Expr, Select, Unary, Var, binary, const, index
from tilelang.instructions.instruction import use
from tilelang.lowering import ir
from tilelang.lowering.simulator.simulate import Report, run

X = ir.Buffer("x", dt.float32, (8,), "register")  # of which the threads below 3 have written the elements below 6
N = ir.Buffer("n", dt.int64, (2,), "register")  # of which the second element is undefined
OUT, WIDE = array("out", 4, role="output"), array("wide", 16, role="output")
ZERO, ONE = const(0.0, dt.float32), const(1.0, dt.float32)
LAST = binary("==", THREAD, 3)
I = Var("i", INDEX, 0, 7)
WRITTEN = ir.seq(
    *(ir.If(Unary("not", LAST), ir.Store(X, (index(e),), const(float(e), dt.float32))) for e in range(6)),
    ir.Store(N, (index(0),), index(0)),
)


def x(element: int, lanes: int = 1) -> ir.Load:
    return ir.Load(X, (index(element),), lanes)


def stored(*values: Expr, buffer: ir.Buffer = OUT) -> Report:
    """Four threads store values one after another, where the last one's are undefined."""
    lanes = ir.lanes(values[0])
    body = ir.seq(WRITTEN, *(ir.Store(buffer, (THREAD * lanes,), v) for v in values))
    return run(program(body, X, N, buffer, threads=4), {})


def undefined(report: Report) -> int:
    """How many elements or threads used what is undefined, which is all that is found."""
    assert set(report.counts) <= {"uninitialised-read"}, str(report)
    return report.counts.get("uninitialised-read", 0)


@pytest.mark.parametrize(
    "value",
    [
        x(0), x(0) + ONE, ZERO * x(0), Unary("-", x(0)), Call("exp", (x(0),)), Cast(Cast(x(0), dt.int32), dt.float32),
        Cast(binary("<", x(0), ONE), dt.float32), Select(binary("<", x(0), ONE), ONE, ONE),
        Cast(Binary("and", binary("<", x(0), ONE), binary("<", x(1), ONE)), dt.float32),
        Cast(Binary("or", binary("<", ONE, x(0)), binary("<", x(1), ONE)), dt.float32),
    ],
    ids=str,
)  # fmt: skip
def test_a_result_is_undefined_where_an_operand_is(value: Expr) -> None:
    report = stored(value)
    assert undefined(report) == 1
    (finding,) = report.findings
    assert (finding.buffer, finding.threads) == ("x", (3,)) and "is stored in `out[thread * 1] = " in finding.message


def test_what_is_selected_away_does_no_harm() -> None:
    for value in (
        Select(LAST, ZERO, x(0)),
        Select(Unary("not", LAST), x(0) + ONE, ZERO),
        Cast(Binary("and", Unary("not", LAST), binary("<", x(0), ONE)), dt.float32),
        Cast(Binary("or", LAST, binary("<", x(0), ONE)), dt.float32),
    ):
        assert undefined(stored(value)) == 0, str(value)


def test_what_was_kept_in_registers_is_selected_away_later() -> None:
    """A value that is undefined moves from one buffer to another, with where it came from."""
    y = ir.Buffer("y", dt.float32, (1,), "register")
    move, kept = ir.Store(y, (index(0),), x(0) * 2.0), ir.Load(y, (index(0),))
    for value, found in ((Select(LAST, ZERO, kept), 0), (kept, 1)):
        body = ir.seq(WRITTEN, move, ir.Store(OUT, (THREAD,), value))
        report = run(program(body, X, N, y, OUT, threads=4), {})
        assert undefined(report) == found and [f.buffer for f in report.findings] == ["x"] * found
    again = ir.seq(WRITTEN, move, ir.Store(y, (index(0),), ONE), ir.Store(OUT, (THREAD,), kept))
    assert undefined(run(program(again, X, N, y, OUT, threads=4), {})) == 0


@pytest.mark.parametrize(
    ("value", "found"),
    [
        (x(4, 4), 10), (x(4, 4) + x(0, 4), 10), (ir.Pack((x(0), x(5), x(6), ONE)), 6), (ir.Shuffle(x(0, 4), x(4, 4), (0, 1, 4, 7)), 7),
        (Select(ir.Ramp(index(0), 4) < 2, x(4, 4), ir.Pack((ZERO,) * 4)), 2), (ir.Shuffle(x(0, 4), x(4, 4), (0, 1, 4, 5)), 4),
        (Select(ir.Ramp(THREAD * 4, 4) < 12, ir.Shuffle(x(0, 4), x(4, 4), (0, 1, 4, 5)), ir.Pack((ZERO,) * 4)), 0),
        (x(4, 4) + x(0), 10), (Cast(ir.Ramp(ir.Load(N, (index(1),)), 4), dt.float32), 16),
    ],
    ids=str,
)  # fmt: skip
def test_lanes_are_undefined_one_by_one(value: Expr, found: int) -> None:
    assert undefined(stored(value, buffer=WIDE)) == found


def used(use_of: Any) -> ir.Program:
    """Each of four threads uses an undefined number once."""
    return program(ir.seq(WRITTEN, use_of), X, N, OUT, array("given", 4), threads=4)


N0, N1 = ir.Load(N, (index(0),)), ir.Load(N, (index(1),))
GIVEN, STORE = ir.Load(array("given", 4), (N1,)), ir.Store(OUT, (THREAD,), ONE)
LET = Var("let", INDEX)


@pytest.mark.parametrize(
    ("statement", "what"),
    [
        (ir.If(binary("<", N1, 4), STORE), "a condition"), (ir.For(I, N1, STORE), "the extent of a loop"),
        (ir.Store(OUT, (THREAD,), GIVEN), "an index"), (ir.Store(OUT, (N1 + THREAD,), ONE), "an index"),
        (ir.Store(OUT, (THREAD,), ir.Load(array("given", 4), (THREAD,), 1, N1 + 1, ZERO)), "a count"),
        (ir.seq(ir.Let(LET, N1), ir.Store(OUT, (LET + THREAD,), ONE)), "an index"),
    ],
    ids=["condition", "extent", "load", "store", "count", "let"],
)  # fmt: skip
def test_a_condition_an_index_or_a_count_must_be_defined(statement: ir.Stmt, what: str) -> None:
    report = run(used(statement), {"given": np.ones(4, np.float32)})
    assert report.counts["uninitialised-read"] == 4 and set(report.counts) <= {
        "uninitialised-read",
        "unwritten-output",
        "data-race",
    }
    assert f"is part of {what} in " in report.findings[0].message


def test_an_undefined_number_that_nobody_uses_is_no_index() -> None:
    guarded = Select(binary("<", THREAD, 0), GIVEN, ZERO)
    assert undefined(run(used(ir.Store(OUT, (THREAD,), guarded)), {"given": np.ones(4, np.float32)})) == 0


@pytest.mark.parametrize("order", ORDERS)
def test_what_a_copy_brings_is_as_undefined_as_its_source(order: str | int) -> None:
    workspace, s = array("workspace", 8, role="workspace"), shared("s", 8)
    fill = ir.If(binary("<", THREAD, 3), ir.Store(workspace, (THREAD * 2,), ONE))
    copy = ir.seq(ir.Copy(s, (THREAD * 2,), workspace, (THREAD * 2,), 2), ir.Commit(), ir.Wait(0))
    first, second = (ir.Load(s, (THREAD * 2 + e,)) for e in range(2))
    for value, found in ((Select(LAST, ZERO, first), 0), (first, 1), (first + second, 4), (Select(LAST, second, first), 1)):
        body = ir.seq(fill, copy, ir.Store(OUT, (THREAD,), value))
        assert undefined(run(program(body, workspace, s, OUT, threads=4), {}, order=order)) == found


@pytest.mark.parametrize(("name", "slot", "found"), [("A_held", 0, 64), ("B_held", 0, 128), ("C_held", 1, 32)])
def test_a_product_is_undefined_in_the_rows_and_columns_of_an_undefined_operand(name: str, slot: int, found: int) -> None:
    """By half of a warp's lanes, a slot of A, B or C is not written."""
    whole = warp_product()
    (kernel,) = whole.kernels

    def without(stmt: ir.Stmt) -> ir.Stmt:
        if isinstance(stmt, ir.Store) and stmt.buffer.name == name and stmt.indices[0] is index(slot):
            return ir.If(binary("<", THREAD % 32, 16), stmt)
        return stmt.map_children(lambda c: without(c) if isinstance(c, ir.Stmt) else c)

    broken = whole.replace(kernels=(kernel.replace(body=without(kernel.body)),))
    given = {"A": np.ones((2, 16, 8), np.float32), "B": np.ones((2, 8, 8), np.float32)}
    report = run(broken, given)
    assert undefined(report) == found and {f.buffer for f in report.findings} == {name}


def test_an_instruction_hands_on_the_mark_of_each_element() -> None:
    product = use("simulated_mma_m16n8k8")
    marks = {"A": np.zeros((32, 4), np.int64), "B": np.zeros((32, 2), np.int64), "C": np.zeros((32, 4), np.int64)}
    values = {name: np.zeros(m.shape, np.float32) for name, m in marks.items()}
    assert not product.undefined(values, marks).any()
    marks["C"][5, 2] = 7
    assert np.argwhere(product.undefined(values, marks)).tolist() == [[5, 2]] and product.undefined(values, marks).max() == 7
