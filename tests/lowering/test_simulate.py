"""The simulator: right kernels give the right result in silence, every planted fault is reported where it is."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest

from tests.lowering.gemm_kernels import Faults, at, blocked_product, matrices, tiled_product
from tests.lowering.small_kernels import THREAD, array, kinds, program, shared
from tilelang.core import dtype as dt
from tilelang.core.expr import Binary, Call, Cast, Const, Expr, Select, Unary, Var, binary, const, index
from tilelang.errors import ComputationError
from tilelang.instructions.instruction import use
from tilelang.lowering import ir
from tilelang.lowering.simulator.memory_model import Watched
from tilelang.lowering.simulator.simulate import Report, run


def value_of(expr: Expr, **inputs: Any) -> Any:
    """What one thread computes for an expression over Loads of the inputs' elements 0."""
    buffers = [array(n, 1, type=dt.dtype(a.dtype)) for n, a in inputs.items()]
    out = array("out", 1, type=expr.dtype, role="output")
    report = run(program(ir.Store(out, (index(0),), expr), *buffers, out, threads=1), inputs)
    assert not report.findings, str(report)
    return report.outputs["out"][0]


# ---------------------------------------------------------------- whole kernels


@pytest.mark.parametrize("type", [dt.float32, dt.float16, dt.bfloat16, dt.float8_e4m3, dt.int8], ids=str)
def test_tiled_product_is_right_and_silent(type: dt.DType) -> None:
    arrays = matrices(24, type)
    report = run(tiled_product(24, 8, type=type), arrays)
    assert str(report) == "no faults found"
    np.testing.assert_array_equal(report.outputs["C"], arrays["A"].astype(np.float32) @ arrays["B"].astype(np.float32))


@pytest.mark.parametrize("lanes", [1, 2, 4])
def test_blocked_product_in_registers(lanes: int) -> None:
    arrays = matrices(64)
    report = run(blocked_product(64, lanes), arrays)
    assert str(report) == "no faults found"
    np.testing.assert_array_equal(report.outputs["C"], arrays["A"] @ arrays["B"])


@pytest.mark.parametrize(
    ("fault", "kind", "buffer", "line"),
    [
        ({"no_first_barrier": True}, "data-race", "As", 6),
        ({"no_second_barrier": True}, "data-race", "As", 3),
        ({"shared_column": 1}, "out-of-bounds", "As", 3),
        ({"output_row": 1}, "out-of-bounds", "C", 7),
        ({"output_row": 1}, "unwritten-output", "C", 0),
        ({"input_column": 1}, "out-of-bounds", "A", 3),
        ({"barrier_under_if": True}, "divergent-barrier", "", 5),
        ({"all_rows_to_one": True}, "data-race", "C", 7),
        ({"no_zero": True}, "uninitialised-read", "acc", 6),
    ],
)
def test_planted_fault_is_reported(fault: dict[str, Any], kind: str, buffer: str, line: int) -> None:
    report = run(tiled_product(16, 8, Faults(**fault)), matrices(16))
    found = [f for f in report.findings if f.kind == kind]
    assert found, f"{kind} not among {report.counts}"
    assert found[0].buffer == buffer
    assert found[0].span == (at(line) if line else None)


def test_every_fault_of_the_helper_is_planted_above() -> None:
    tried = {"no_first_barrier", "no_second_barrier", "shared_column", "output_row", "input_column", "barrier_under_if"}
    assert tried | {"all_rows_to_one", "no_zero"} == {f.name for f in dataclasses.fields(Faults)}


def test_finding_names_element_threads_and_both_accesses() -> None:
    report = run(tiled_product(16, 8, Faults(no_first_barrier=True)), matrices(16))
    first = report.findings[0]
    assert (first.element, first.threads, first.block) == ((0, 0), (0, 1), (0, 0, 0))
    assert "wrote As[0, 0]" in first.message and "gemm.py:3" in first.message and "`As[thread // 8, k]`" in first.message


def test_findings_are_capped_counted_and_repeatable() -> None:
    faulty = tiled_product(16, 8, Faults(no_first_barrier=True, no_second_barrier=True, no_zero=True, output_row=1))
    one, two = run(faulty, matrices(16)), run(faulty, matrices(16))
    assert one.findings == two.findings and one.counts == two.counts
    assert len(one.findings) <= 20 < sum(one.counts.values())


def test_a_watcher_is_told_of_every_access_and_may_end_the_run() -> None:
    seen: list[Watched] = []
    report = run(tiled_product(24, 8), matrices(24), watch=seen.append)
    for memory, counts in (("global", report.transactions), ("shared", report.conflicts)):
        found: dict[tuple[str, str], list[int]] = {}
        for one in (s for s in seen if s.buffer.memory == memory):
            sums = found.setdefault((one.site.text, one.site.access), [0, 0])
            sums[0], sums[1] = sums[0] + one.requests, sums[1] + one.cost
        assert found == {(c.text, c.access): [c.requests, c.total] for c in counts}
    assert {s.site.access == "store" for s in seen if s.writes} == {True}
    assert all(isinstance(s.site.statement, ir.Stmt) for s in seen)

    def stop(one: Watched) -> None:
        raise StopIteration(one.site.text)

    with pytest.raises(StopIteration):
        run(tiled_product(24, 8), matrices(24), watch=stop)


@pytest.mark.parametrize("memory", ["global", "shared"])
@pytest.mark.parametrize("lanes", [1, 2])
@pytest.mark.parametrize("end", [3, 4, 5])
def test_one_thread_is_checked_alike_whether_its_accesses_are_counted(memory: str, lanes: int, end: int) -> None:
    """Elements are copied through `y`: those that exist, all but some, or more. Not counting them takes another path."""
    k, n = Var("k", dt.int64, 0, end - 1), 4 * lanes
    x, out = array("x", n), array("out", n, role="output")
    y = shared("y", n) if memory == "shared" else array("y", n, role="workspace")
    copied = ir.Store(y, (k * lanes,), ir.Load(x, (k * lanes,), lanes))
    stored = ir.Store(out, (k * lanes + THREAD,), ir.Load(y, (k * lanes,), lanes))
    body = ir.seq(ir.For(k, index(end), copied), ir.For(k, index(4), stored))
    arrays = {"x": np.arange(n, dtype=np.float32)}
    reports = [run(program(body, x, y, out, threads=1), arrays, costs=costs) for costs in (True, False)]
    expected = {3: {"uninitialised-read": lanes}, 4: {}, 5: {"out-of-bounds": 2 * lanes}}[end]
    assert [r.counts for r in reports] == [expected, expected] and reports[0].findings == reports[1].findings
    np.testing.assert_array_equal(reports[0].outputs["out"], reports[1].outputs["out"])


def test_a_run_may_be_ended_at_an_iteration() -> None:
    seen: list[int] = []

    def tick() -> None:
        seen.append(0)
        if len(seen) == 3:
            raise TimeoutError

    with pytest.raises(TimeoutError):
        run(tiled_product(24, 8), matrices(24), tick=tick)
    assert len(seen) == 3


def test_arguments_are_checked() -> None:
    with pytest.raises(ComputationError, match="no array for"):
        run(tiled_product(16, 8), {"A": np.zeros((16, 16), np.float32)})
    with pytest.raises(ComputationError, match="pass an array of shape"):
        run(tiled_product(16, 8), {"A": np.zeros((16, 16), np.float32), "B": np.zeros(16, np.float32)})


# ---------------------------------------------------------------- races


def write_then_read(barrier: tuple[str, ...] | None, memory: str, shift: int) -> Report:
    """Thread t writes element t of a buffer and reads element (t + shift) % 32."""
    x = shared("x", 32) if memory == "shared" else array("x", 32, role="workspace")
    out = array("out", 32, role="output")
    body = ir.seq(
        ir.Store(x, (THREAD,), Cast(THREAD, dt.float32)),
        None if barrier is None else ir.Barrier(barrier),
        ir.Store(out, (THREAD,), ir.Load(x, ((THREAD + shift) % 32,))),
    )
    return run(program(body, x, out), {})


@pytest.mark.parametrize("memory", ["shared", "global"])
def test_barrier_must_order_the_memory(memory: str) -> None:
    other = {"shared": "global", "global": "shared"}[memory]
    assert kinds(write_then_read((memory,), memory, 1)) == set()
    assert kinds(write_then_read(("shared", "global"), memory, 1)) == set()
    assert kinds(write_then_read((other,), memory, 1)) == {"data-race"}
    assert kinds(write_then_read(None, memory, 1)) == {"data-race"}


def test_own_element_needs_no_barrier() -> None:
    assert kinds(write_then_read(None, "shared", 0)) == set()


def test_equal_values_still_race() -> None:
    x = shared("x", 1)
    assert run(program(ir.Store(x, (index(0),), const(1.0, dt.float32)), x), {}).counts == {"data-race": 31}


def test_early_reader_convicts_a_later_writer_of_another_block() -> None:
    """Block 0 reads, then block 1 reads, then block 0 writes: the reader of block 1 must not be forgotten."""
    x, out = array("x", 1, role="workspace"), array("out", 2, role="output")
    zero = ir.Store(x, (index(0),), const(0.0, dt.float32))
    first = ir.Kernel("fill", (1, 1, 1), 1, (x,), zero)
    body = ir.seq(
        ir.Store(out, (ir.BLOCK[0],), ir.Load(x, (index(0),))),
        ir.If(Binary("==", ir.BLOCK[0], index(0)), ir.Store(x, (index(0),), const(1.0, dt.float32))),
    )
    second = ir.Kernel("race", (2, 1, 1), 1, (x, out), body)
    report = run(ir.Program((first, second), (x, out)), {})
    assert kinds(report) == {"data-race"} and report.findings[0].threads == (0, 0)


def test_kernels_are_ordered() -> None:
    x, out = array("x", 64, role="workspace"), array("out", 64, role="output")
    number = ir.BLOCK[0] * 32 + THREAD
    first = ir.Kernel("first", (2, 1, 1), 32, (x,), ir.Store(x, (number,), Cast(number, dt.float32)))
    second = ir.Kernel("second", (2, 1, 1), 32, (x, out), ir.Store(out, (number,), ir.Load(x, (63 - number,))))
    report = run(ir.Program((first, second), (x, out)), {})
    assert not report.findings
    np.testing.assert_array_equal(report.outputs["out"], np.arange(63, -1, -1))


@pytest.mark.parametrize("barrier", [True, False])
def test_buffers_that_share_memory_race_and_lose_their_values(barrier: bool) -> None:
    x, y = shared("x", 32, offset=0), shared("y", 64, type=dt.float16, offset=0)
    out = array("out", 32, role="output")
    body = ir.seq(
        ir.Store(x, (THREAD,), const(1.0, dt.float32)),
        ir.Barrier(("shared",)),
        ir.Store(out, (THREAD,), ir.Load(x, (31 - THREAD,))),
        ir.Barrier(("shared",)) if barrier else None,
        ir.Store(y, (THREAD,), const(1.0, dt.float16)),
    )
    assert kinds(run(program(body, x, y, out), {})) == (set() if barrier else {"data-race"})
    again = ir.seq(body, ir.Barrier(("shared",)), ir.Store(out, (THREAD,), ir.Load(x, (THREAD,))))
    assert run(program(again, x, y, out), {}).counts.get("uninitialised-read") == 16


# ---------------------------------------------------------------- control flow


def test_untaken_branches_touch_nothing() -> None:
    x, out = array("x", 8), array("out", 32, role="output")
    inside, load = THREAD < 8, ir.Load(x, (THREAD,))
    positive = binary("<", const(0.0, dt.float32), load)
    one, zero = const(1.0, dt.float32), const(0.0, dt.float32)
    for value in (
        Select(inside, load, zero),
        Select(Unary("not", inside), zero, load),
        Select(Binary("and", inside, positive), one, zero),
        Select(Binary("or", Unary("not", inside), positive), one, zero),
    ):
        report = run(program(ir.Store(out, (THREAD,), value), x, out), {"x": np.arange(8, dtype=np.float32)})
        assert not report.findings, str(value)
    swapped = ir.Store(out, (THREAD,), Select(Binary("and", positive, inside), one, zero))
    assert run(program(swapped, x, out), {"x": np.ones(8, np.float32)}).counts == {"out-of-bounds": 24}


def test_untaken_lanes_touch_nothing() -> None:
    x, out = array("x", 6), array("out", 8, role="output")
    lanes, zero = ir.Ramp(THREAD * 4, 4), ir.Pack((const(0.0, dt.float32),) * 4)
    load = ir.Pack(tuple(ir.Load(x, (THREAD * 4 + n,)) for n in range(4)))
    for value in (Select(lanes < 6, load, zero), Select(Unary("not", lanes < 6), zero, load + 0.0)):
        report = run(program(ir.Store(out, (THREAD * 4,), value), x, out, threads=2), {"x": np.arange(1, 7)})
        assert not report.findings
        assert report.outputs["out"].tolist() == [1, 2, 3, 4, 5, 6, 0, 0]
    value = Select(lanes < 7, load, zero)
    assert run(program(ir.Store(out, (THREAD * 4,), value), x, out, threads=2), {"x": np.ones(6)}).counts == {"out-of-bounds": 1}
    single = Select(lanes < 4, ir.Load(x, (THREAD * 6,)), zero)  # a scalar that a lane of thread 0 alone needs
    assert not run(program(ir.Store(out, (THREAD * 4,), single), x, out, threads=2), {"x": np.ones(6)}).findings


def test_one_access_brings_lanes_that_are_not_taken() -> None:
    x, out = array("x", 6), array("out", 8, role="output")
    lanes, zero = ir.Ramp(THREAD * 4, 4), ir.Pack((const(0.0, dt.float32),) * 4)
    store = ir.Store(out, (THREAD * 4,), Select(lanes < 6, ir.Load(x, (THREAD * 4,), 4), zero))
    assert run(program(store, x, out, threads=2), {"x": np.ones(6)}).counts == {"out-of-bounds": 2}
    partial = ir.Store(x.replace(role=""), (THREAD * 4,), ir.Load(x, (THREAD * 4,), 4), 6 - THREAD * 4)
    assert run(program(partial, x, threads=2), {"x": np.ones(6)}).counts == {"out-of-bounds": 2}


def test_loop_whose_extent_differs_between_threads() -> None:
    out, total = array("out", 32, role="output"), ir.Buffer("total", dt.int64, (1,), "register")
    i = Var("i", dt.int64, 0, 31)
    body = ir.seq(
        ir.Store(total, (index(0),), index(0)),
        ir.For(i, THREAD, ir.Store(total, (index(0),), ir.Load(total, (index(0),)) + i)),
        ir.Store(out, (THREAD,), Cast(ir.Load(total, (index(0),)), dt.float32)),
    )
    t = np.arange(32)
    np.testing.assert_array_equal(run(program(body, out, total), {}).outputs["out"], t * (t - 1) // 2)


def test_barrier_in_a_loop_of_differing_extent_diverges() -> None:
    i = Var("i", dt.int64, 0, 31)
    report = run(program(ir.For(i, THREAD % 2 + 1, ir.Barrier(("shared",)))), {})
    assert report.counts == {"divergent-barrier": 1} and report.findings[0].threads == (0,)


def test_division_by_zero_gives_zero() -> None:
    """The language defines it, and so does the text of every target: no fault of the kernel."""
    out = array("out", 4, type=dt.int64, role="output")
    for op, expected in (("//", [0, 8, 4, 2]), ("%", [0, 0, 0, 2])):
        report = run(program(ir.Store(out, (THREAD,), Binary(op, index(8), THREAD)), out, threads=4), {})
        assert not report.findings and report.outputs["out"].tolist() == expected


# ---------------------------------------------------------------- lanes


def test_count_limits_what_is_touched() -> None:
    x, out = array("x", 10), array("out", 10, role="output")
    count = Binary("min", index(4), 10 - THREAD * 4)
    load = ir.Load(x, (THREAD * 4,), 4, count, const(-1.0, dt.float32))
    values = np.arange(10, dtype=np.float32)
    report = run(program(ir.Store(out, (THREAD * 4,), load, count), x, out, threads=3), {"x": values})
    assert not report.findings
    np.testing.assert_array_equal(report.outputs["out"], values)
    whole = array("whole", 12, role="output")
    report = run(program(ir.Store(whole, (THREAD * 4,), load), x, whole, threads=3), {"x": values})
    np.testing.assert_array_equal(report.outputs["whole"], [*values, -1, -1])
    too_far = ir.Store(out, (THREAD * 4,), ir.Load(x, (THREAD * 4,), 4))
    assert run(program(too_far, x, out, threads=3), {"x": values}).counts == {"out-of-bounds": 4}


def test_lanes_that_are_not_stored_need_no_value() -> None:
    out, held = array("out", 10, role="output"), ir.Buffer("held", dt.float32, (4,), "register")
    count = Binary("min", index(4), 10 - THREAD * 4)
    first_two = [ir.Store(held, (index(i),), const(1.0, dt.float32)) for i in range(2)]
    others = ir.Store(held, (index(2),), ir.Load(held, (index(0),), 2))
    copy = ir.Store(out, (THREAD * 4,), ir.Load(held, (index(0),), 4), count)
    some = ir.If(Binary("==", count, index(4)), others)
    report = run(program(ir.seq(*first_two, some, copy), out, held, threads=3), {})
    assert not report.findings, str(report)
    report = run(program(ir.seq(*first_two, copy), out, held, threads=3), {})
    assert report.counts == {"uninitialised-read": 4}


def test_lanes_of_two_vectors() -> None:
    x, out = array("x", 8, role="input"), array("out", 4, role="output")
    halves = (ir.Load(x, (index(0),), 4), ir.Load(x, (index(4),), 4))
    report = run(program(ir.Store(out, (index(0),), ir.Shuffle(*halves, (0, 5, 2, 7))), x, out, threads=1), {"x": np.arange(8.0)})
    assert not report.findings, str(report)
    np.testing.assert_array_equal(report.outputs["out"], [0, 5, 2, 7])


def test_lanes_that_are_kept_are_not_read() -> None:
    out, held = array("out", 4, role="output"), ir.Buffer("held", dt.float32, (4,), "register")
    zero = (index(0),)
    old, ramp = ir.Load(held, zero, 4), ir.Ramp(index(0), 4)
    value = ir.Pack(tuple(const(float(i), dt.float32) for i in range(4)))

    def merged(where: Expr) -> ir.Stmt:
        return ir.Store(held, zero, Select(where, value, old))

    some, rest = merged(binary("<", ramp, 3)), merged(binary("<", 2, ramp))
    copy = ir.Store(out, zero, old)
    report = run(program(ir.seq(some, rest, copy), out, held, threads=1), {})
    assert not report.findings, str(report)
    np.testing.assert_array_equal(report.outputs["out"], [0, 1, 2, 3])
    assert run(program(ir.seq(some, copy), out, held, threads=1), {}).counts == {"uninitialised-read": 1}


def test_vector_may_not_run_into_the_next_row() -> None:
    x, out = array("x", 2, 4), array("out", 4, role="output")
    load = ir.Load(x, (index(0), index(2)), 4)
    assert run(program(ir.Store(out, (index(0),), load), x, out, threads=1), {"x": np.ones((2, 4))}).counts == {
        "out-of-bounds": 2
    }


def test_ramp_and_pack() -> None:
    out = array("out", 8, type=dt.int64, role="output")
    ramp = ir.Ramp(THREAD * 4, 4)
    value = ramp * 2 + ir.Pack((index(0), index(1), THREAD, index(3)))
    report = run(program(ir.Store(out, (THREAD * 4,), value), out, threads=2), {})
    assert report.outputs["out"].tolist() == [0, 3, 4, 9, 8, 11, 13, 17]


def test_vector_loop_is_a_loop() -> None:
    x, out = array("x", 64), array("out", 64, role="output")
    n = Var("n", dt.int64, 0, 15)
    store = ir.Store(out, (THREAD * 16 + n,), ir.Load(x, (THREAD * 16 + n,)) * 2.0)
    values = np.arange(64, dtype=np.float32)
    report = run(program(ir.For(n, index(16), store, "vector"), x, out, threads=4), {"x": values})
    np.testing.assert_array_equal(report.outputs["out"], values * 2)


# ---------------------------------------------------------------- types


def one(name: str, type: dt.DType) -> Expr:
    return ir.Load(array(name, 1, type=type), (index(0),))


def test_sixteen_bit_floats_round_where_they_are_stored_or_cast() -> None:
    for type in (dt.bfloat16, dt.float16):
        x = np.array([1.0], type.numpy)
        tiny = Const(2.0**-type.mantissa_bits, type)
        a = one("a", type)
        assert float(value_of((a + tiny) + tiny, a=x)) == 1.0 + 2 * 2.0**-type.mantissa_bits  # one rounding, at the store
        assert float(value_of(Cast(Cast(a + tiny, type) + tiny, dt.float32), a=x)) == 1.0 + 2.0**-type.mantissa_bits
        rounded = Cast(Cast(Cast(a, dt.float32) + Const(2.0**-12, dt.float32), type), dt.float32)
        assert float(value_of(rounded, a=x)) == 1.0


def test_integers_wrap_and_divide_towards_minus_infinity() -> None:
    a, b = one("a", dt.int32), one("b", dt.int32)
    big, minus = np.array([2**31 - 1], np.int32), np.array([-7], np.int32)
    assert value_of(a + Const(1, dt.int32), a=big) == -(2**31)
    assert value_of(Binary("//", b, Const(2, dt.int32)), b=minus) == -4
    assert value_of(Binary("%", b, Const(2, dt.int32)), b=minus) == 1
    assert value_of(Cast(b, dt.uint8), b=minus) == 249
    assert value_of(Cast(one("c", dt.float32), dt.int32), c=np.array([-2.7], np.float32)) == -2
    assert value_of(Binary("pow", b, Const(3, dt.int32)), b=minus) == -343
    assert value_of(Binary("pow", b, Const(-1, dt.int32)), b=minus) == 0


def test_minimum_and_maximum_hand_nan_on() -> None:
    a, b = one("a", dt.float32), one("b", dt.float32)
    nan, number = np.array([np.nan], np.float32), np.array([1.0], np.float32)
    for op in ("min", "max"):
        assert np.isnan(value_of(Binary(op, a, b), a=nan, b=number)) and np.isnan(value_of(Binary(op, a, b), a=number, b=nan))
    assert value_of(Call("isnan", (a,)), a=nan) and not value_of(Call("isnan", (a,)), a=number)


def test_functions_work_in_their_type() -> None:
    x = np.array([0.3], np.float32)
    for name, expected in (("exp", np.exp(x)), ("rsqrt", 1 / np.sqrt(x)), ("sigmoid", 1 / (1 + np.exp(-x))), ("abs", x)):
        result = value_of(Call(name, (one("a", dt.float32),)), a=x)
        assert result.dtype == np.float32 and abs(result - expected[0]) <= 2**-22
    assert abs(value_of(Call("erf", (one("a", dt.float32),)), a=x) - 0.32862675945912743) < 1e-7


# ---------------------------------------------------------------- counts


@pytest.mark.parametrize(("stride", "lanes", "expected"), [(1, 1, 1), (2, 1, 2), (32, 1, 32), (0, 1, 1), (4, 4, 4)])
def test_transactions(stride: int, lanes: int, expected: int) -> None:
    x, out = array("x", 1024), array("out", 32 * lanes, role="output")
    body = ir.Store(out, (THREAD * lanes,), ir.Load(x, (THREAD * stride,), lanes), span=at(9))
    report = run(program(body, x, out), {"x": np.zeros(1024)})
    (load,) = [c for c in report.transactions if c.access == "load"]
    assert (load.requests, load.total, load.buffer, load.span) == (1, expected, "x", at(9))


LANE_64 = Var("thread", dt.int64, 0, 63)
HALVES_OF_FOUR = tuple(
    lane for first in (0, 4, 8, 12) for lane in (*range(first, first + 4), *range((first ^ 4) + 16, (first ^ 4) + 20))
)


@pytest.mark.parametrize(
    ("place", "lanes", "order", "extra"),
    [
        (LANE_64, 1, (), 0), (LANE_64 * 2, 1, (), 2), (LANE_64 * 2, 2, (), 0), (LANE_64 * 4, 2, (), 4), (LANE_64 * 4, 4, (), 0),
        (LANE_64 * 4, 4, HALVES_OF_FOUR, 0), (LANE_64 * 8, 4, HALVES_OF_FOUR, 8),
        (LANE_64 * 32 + LANE_64 % 4 * 4 + LANE_64 // 16 % 2 * 16, 4, (), 8),
        (LANE_64 * 32 + LANE_64 % 4 * 4 + LANE_64 // 16 % 2 * 16, 4, HALVES_OF_FOUR, 0),
    ],
)  # fmt: skip
def test_lanes_of_a_wave_are_served_as_many_at_once_as_banks_allow(
    place: Expr, lanes: int, order: tuple[int, ...], extra: int
) -> None:
    """64 lanes at 32 banks: halves, quarters or eighths of a wave; those of a wide read in the order of the device."""
    x, out, i = shared("x", 2112), array("out", 64 * lanes, role="output"), Var("i", dt.int64, 0, 32)
    fill = ir.For(i, index(33), ir.Store(x, (i * 64 + LANE_64,), Const(0.0, dt.float32)))
    body = ir.seq(fill, ir.Barrier(("shared",)), ir.Store(out, (LANE_64 * lanes,), ir.Load(x, (place,), lanes)))
    report = run(program(body, x, out, threads=64), {}, warp=64, wide_read_lanes=order)
    store, load = report.conflicts
    assert not report.findings and (store.total, load.requests, load.total) == (0, 1, extra)


@pytest.mark.parametrize(("place", "found"), [(LANE_64 * 2, 0), (LANE_64 * 2 + 8, 0), (LANE_64 * 4, 63), ((LANE_64 ^ 1) * 2, 32)])
def test_copies_that_a_wave_makes_together_stand_one_behind_the_other(place: Expr, found: int) -> None:
    t = dt.float16
    x, s, out = array("x", 128, type=t), shared("s", 256, type=t), array("out", 64, type=t, role="output")
    copy = ir.Copy(s, (place,), x, (LANE_64 * 2,), 2, by=use("global_load_lds_4"))
    body = ir.seq(copy, ir.Commit(), ir.Wait(0), ir.Barrier(("shared",)), ir.Store(out, (LANE_64,), ir.Load(s, (place,))))
    report = run(program(body, x, s, out, threads=64), {"x": np.arange(128)}, warp=64)
    assert report.counts.get("instruction-operand", 0) == found and len(report.counts) == (found > 0)
    assert np.array_equal(report.outputs["out"], np.arange(0, 128, 2))


@pytest.mark.parametrize(
    ("stride", "lanes", "type", "extra"),
    [
        (1, 1, dt.float32, 0), (2, 1, dt.float32, 1), (32, 1, dt.float32, 31), (33, 1, dt.float32, 0), (0, 1, dt.float32, 0),
        (1, 1, dt.float16, 0), (64, 1, dt.float16, 31), (4, 4, dt.float32, 0), (32, 4, dt.float32, 28), (1, 1, dt.float64, 0),
    ],
)  # fmt: skip
def test_bank_conflicts(stride: int, lanes: int, type: dt.DType, extra: int) -> None:
    x, out = shared("x", 2112, type=type), array("out", 32 * lanes, type=type, role="output")
    i = Var("i", dt.int64, 0, 65)
    fill = ir.For(i, index(66), ir.Store(x, (i * 32 + THREAD,), Const(0.0, type)))
    body = ir.seq(fill, ir.Barrier(("shared",)), ir.Store(out, (THREAD * lanes,), ir.Load(x, (THREAD * stride,), lanes)))
    report = run(program(body, x, out), {})
    assert not report.findings
    store, load = report.conflicts
    assert (store.requests, store.total, load.requests, load.total) == (66, 0, 1, extra)
