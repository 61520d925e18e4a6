"""Vector loops as lanes: which accesses become one, how tails are cut off, what is computed once; right wherever it runs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilelang as tl
from tilelang import testing
from tilelang.core import dtype as dt
from tilelang.core.expr import Select, Var, const, index
from tilelang.lowering import ir
from tilelang.lowering.passes.vectorize import vectorize
from tilelang.lowering.pipeline import lower
from tilelang.lowering.simulator.simulate import run
from tilelang.schedules.schedule import Schedule
from tilelang.testing.case import arrays
from tilelang.testing.checking import check_schedule, stored

from .small_kernels import THREAD, array, kinds, program

POCL = tl.load_profile("sapphire_rapids")


def check(plan: Schedule) -> None:
    """It is right in the simulator and on the device, to the bit on small integers."""
    for data in ("random", "integers"):
        given = arrays(plan.computation, data)
        assert check_schedule(plan, given, profile=POCL, opencl=True, exactly=data == "integers") == []


def statements(plan: Schedule) -> list[ir.Stmt]:
    """The statements of a schedule's final kernels."""
    return [s for k in lower(plan.computation, plan.steps, POCL).kernels for s in ir.statements(k.body)]


def accesses(plan: Schedule, name: str) -> list[tuple[int, bool, bool]]:
    """(lanes, across rows, only the first of them) of every access of a buffer."""
    stores = [s for s in statements(plan) if isinstance(s, ir.Store)]
    loads = [x for s in statements(plan) for e in ir.expressions(s) for x in ir.loads(e) if x.buffer.name == name]
    found = [(ir.lanes(s.value), s.across, s.count is not None) for s in stores if s.buffer.name == name]
    return found + [(x.lanes, x.across, x.count is not None) for x in loads]


def scaled(*shape: int) -> tl.Tensor:
    axes = tl.axes(**dict(zip("bmn"[-len(shape) :], shape, strict=True)))
    X, Y = tl.input("X", tl.float32, *axes), tl.input("Y", tl.float32, axes[-1])
    return tl.define("Z", X[axes] * Y[axes[-1]], *axes)


def absolute(*shape: int) -> tl.Tensor:
    axes = tl.axes(**dict(zip("bmn"[-len(shape) :], shape, strict=True)))
    return tl.define("Z", tl.abs(tl.input("X", tl.float32, *axes)[axes]), *axes)


def fused(c: tl.Tensor, *parts: str) -> Schedule:
    return tl.schedule(c).fuse(all=parts).tile(all=64).to(tl.block).tile(all=4).to(tl.thread).vectorize(all=4)


# ---------------------------------------------------------------- fused axes


def test_a_vector_along_a_fused_axis_stays_in_a_row_where_rows_hold_whole_vectors() -> None:
    plan = fused(scaled(13, 12), "m", "n")
    assert [accesses(plan, name) for name in "XYZ"] == [[(4, False, False)]] * 3
    check(plan)


def test_rows_that_hold_no_whole_vectors_are_crossed() -> None:
    plan = fused(scaled(12, 13), "m", "n")
    assert [accesses(plan, name) for name in "XZ"] == [[(4, True, False)]] * 2
    assert {lanes for lanes, _, _ in accesses(plan, "Y")} == {1}  # every row begins it anew
    check(plan)


def test_the_last_vector_of_a_fused_axis_is_cut_off() -> None:
    plan = fused(absolute(7, 5), "m", "n")
    assert sorted(set(accesses(plan, "X"))) == [(4, True, False), (4, True, True)]
    check(plan)


def test_three_fused_axes_are_one() -> None:
    plan = fused(absolute(3, 5, 7), "b", "m", "n")
    assert set(accesses(plan, "Z")) == {(4, True, False), (4, True, True)}
    check(plan)


def test_fused_axes_that_do_not_follow_each_other_are_taken_one_by_one() -> None:
    plan = fused(absolute(4, 6, 6), "b", "n")
    assert {lanes for lanes, _, _ in accesses(plan, "Z")} == {1}
    check(plan)


def test_a_vector_across_rows_may_not_leave_its_buffer() -> None:
    x, z = array("x", 3, 4), array("z", 3, 4, role="output")
    at = (THREAD * 3 // 4, THREAD * 3 % 4)
    body = ir.Store(z, at, ir.Load(x, at, 3, None, None, True), None, False, None, True)
    values = {"x": stored(range(12), x)}
    assert kinds(run(program(body, x, z, threads=4), values)) == set()
    assert run(program(body, x, z, threads=5), values).counts == {"out-of-bounds": 6}
    assert kinds(run(program(ir.Store(z, at, ir.Load(x, at, 3)), x, z, threads=4), values)) == {
        "out-of-bounds",
        "unwritten-output",
    }


@pytest.mark.parametrize(("width", "lanes"), [(36, [16, 16, 4]), (44, [16, 16, 8, 4]), (19, [16, 2, 1])], ids=str)
def test_a_loop_wider_than_vectors_ends_where_its_buffer_does(width: int, lanes: list[int]) -> None:
    x, z, v = array("x", width), array("z", width, role="output"), Var("v", dt.int64, 0, width - 1)
    loop = ir.For(v, index(width), ir.Store(z, (v,), ir.Load(x, (v,))), "vector")
    before = program(loop, x, z, threads=1)
    made = before.replace(kernels=(vectorize(before.kernels[0]),))
    stores = [s for s in ir.statements(made.kernels[0].body) if isinstance(s, ir.Store)]
    assert [ir.lanes(s.value) for s in stores if s.buffer is z] == lanes
    assert kinds(run(made, {"x": stored(range(width), x)})) == set()
    assert [s.buffer is z for s in stores] == [False] * len(lanes) + [True] * len(lanes)  # all values first


@pytest.mark.parametrize("inner", [">", "<"])
def test_a_condition_on_lanes_within_another_one(inner: str) -> None:
    """Lanes that the outer condition leaves out stay out, whatever form the inner one takes."""
    x, z, v = array("x", 40), array("z", 40, role="output"), Var("v", dt.int64, 0, 15)
    own = v > 2 if inner == ">" else THREAD * 8 + v < 20
    loop = ir.For(v, index(16), ir.If(v < 8, ir.If(own, ir.Store(z, (THREAD * 8 + v,), ir.Load(x, (THREAD * 8 + v,))))), "vector")
    before = program(loop, x, z, threads=3)
    made = before.replace(kernels=(vectorize(before.kernels[0]),))
    found, expected = (run(each, {"x": stored(range(1, 41), x)}) for each in (made, before))
    assert kinds(found) == kinds(expected) and found.counts == expected.counts
    assert stored_once(made) == stored_once(before)


def stored_once(whole: ir.Program) -> list[int]:
    """The elements of the last buffer that are written when only the first thread runs."""
    alone = whole.replace(kernels=(whole.kernels[0].replace(threads=1),))
    values = run(alone, {"x": np.arange(1, 41, dtype=np.float32)}).outputs["z"]
    return [int(n) for n in np.flatnonzero(values == np.arange(1, 41))]


def test_vectors_that_read_what_they_store_are_stored_one_by_one() -> None:
    z, v = array("z", 36, role="output"), Var("v", dt.int64, 0, 35)
    before = program(ir.For(v, index(36), ir.Store(z, (v,), ir.Load(z, (v,)) + 1), "vector"), z, threads=1)
    after = vectorize(before.kernels[0])
    assert [ir.lanes(s.value) for s in ir.statements(after.body) if isinstance(s, ir.Store)] == [16, 16, 4]
    assert after.buffers == before.kernels[0].buffers


@pytest.mark.parametrize(("width", "held"), [(128, 8), (144, 0)])
def test_values_of_more_vectors_than_registers_hold_do_not_come_first(width: int, held: int) -> None:
    x, z, v = array("x", width), array("z", width, role="output"), Var("v", dt.int64, 0, width - 1)
    loop = ir.For(v, index(width), ir.Store(z, (v,), ir.Load(x, (v,))), "vector")
    after = vectorize(program(loop, x, z, threads=1).kernels[0])
    assert _stores(after.body, "register") == held and _stores(after.body, "global") == width // 16


@pytest.mark.parametrize(("memory", "held"), [("global", 2), ("shared", 2), ("register", 0)])
def test_values_come_first_where_they_are_stored_in_memory(memory: str, held: int) -> None:
    x, v = array("x", 32), Var("v", dt.int64, 0, 31)
    z = array("z", 32, role="output") if memory == "global" else ir.Buffer("z", dt.float32, (32,), memory)
    loop = ir.For(v, index(32), ir.Store(z, (v,), ir.Load(x, (v,))), "vector")
    after = vectorize(program(loop, x, z, threads=1).kernels[0])
    assert sum(isinstance(s, ir.Store) and s.buffer.name == "z_value" for s in ir.statements(after.body)) == min(held, 1)
    assert sum(b.name.startswith("z_value") for b in after.buffers) == held


def test_values_come_first_where_all_lanes_exist_and_else_one_by_one() -> None:
    i = tl.axes(i=1000)
    plan = tl.schedule(tl.define("Y", tl.abs(tl.input("X", tl.float32, i)[i]), i)).tile(i=512).to(tl.block)
    plan = plan.split(i=64).vectorize(i=64)
    (whole,) = (s for s in statements(plan) if isinstance(s, ir.If) and s.otherwise is not None and _stores(s.then, "register"))
    assert _stores(whole.then, "register") == _stores(whole.then, "global") == 4
    assert _stores(whole.otherwise, "register") == 0 and _stores(whole.otherwise, "global") > 4
    check(plan)


def test_a_choice_is_one_vector_where_both_ends_say_so() -> None:
    x, z = array("x", 24), array("z", 24, role="output")
    v, at = Var("v", dt.int64, 0, 3), Var("block_x", dt.int64, 0, 5) * 4
    value = Select(at + v < 18, ir.Load(x, (at + v,)) * 2.0, const(0.0, dt.float32))
    loop = ir.For(v, index(4), ir.Store(z, (at + v,), value), "vector")
    store = vectorize(program(loop, x, z, threads=1, grid=(6, 1, 1)).kernels[0]).body
    assert isinstance(store, ir.Store) and isinstance(store.value, Select)
    assert str(store.value.condition) == "block_x * 4 < 18 and block_x * 4 < 15"
    assert isinstance(store.value.otherwise, ir.Pack) and not isinstance(store.value.then, ir.Pack)


def _stores(stmt: ir.Stmt | None, memory: str) -> int:
    assert stmt is not None
    return sum(isinstance(s, ir.Store) and s.buffer.memory == memory for s in ir.statements(stmt))


# ---------------------------------------------------------------- tails, scattered vectors


@pytest.mark.parametrize(("columns", "kept"), [(64, 0), (60, 0), (61, 1)])
def test_a_tail_that_no_vector_ends_in_is_not_written(columns: int, kept: int) -> None:
    plan = tl.schedule(scaled(4, columns)).tile(m=1, n=16).to(tl.block).tile(n=4).to(tl.thread).vectorize(n=4)
    assert sum(counted for _, _, counted in accesses(plan, "Z")) == kept
    check(plan)


def test_a_vector_is_computed_once_before_it_is_scattered() -> None:
    i, j = tl.axes(i=12, j=20)
    X = tl.input("X", tl.float32, i, j)
    plan = (
        tl.schedule(tl.define("Y", tl.abs(X[i, j]), j, i)).tile(j=8, i=4).to(tl.block).tile(j=4, i=1).to(tl.thread).vectorize(j=4)
    )
    found = statements(plan)
    assert [ir.lanes(s.value) for s in found if isinstance(s, ir.Store)] == [4, 1, 1, 1, 1]
    assert len([s for s in found for e in ir.expressions(s) for x in e.walk() if isinstance(x, tl.core.expr.Call)]) == 1
    check(plan)


def test_a_vector_that_is_zero_in_one_round_is_stored_in_all_its_lanes() -> None:
    i, j = tl.axes(i=4, j=8)
    x = tl.input("X", tl.int64, i, j)
    times = tl.define("Y", x[i, j] * tl.cast(i, tl.int64), i, j)
    check(tl.schedule(times).tile(i=4, j=8).to(tl.block).split(i=1, unroll=True).vectorize(j=8))


@pytest.mark.parametrize("sizes", [(32, 16), (31, 17), (9, 3)], ids=str)
@pytest.mark.parametrize("type", [tl.float32, tl.float16, tl.int8], ids=str)
def test_a_vector_of_one_lane_stored_from_vectors_is_a_scalar(type: tl.DType, sizes: tuple[int, int]) -> None:
    """A store by `vectorize n=1` of what is computed in vectors along m."""
    m, n, k = tl.axes(m=sizes[0], n=sizes[1], k=8)
    A, B = tl.input("A", type, m, k), tl.input("B", type, k, n)
    start = tl.schedule(tl.define("C", tl.sum(A[m, k] * B[k, n], over=k), m, n)).tile(m=16, n=16).to(tl.block)
    plan = start.accumulate(tl.register, steps=tl.move().vectorize(n=1)).vectorize(m=8)
    check(plan)
    packs = [e for s in statements(plan) for root in ir.expressions(s) for e in root.walk() if isinstance(e, ir.Pack)]
    assert all(len(e.items) > 1 for e in packs)


@pytest.mark.parametrize("sizes", [(8, 8), (7, 9)], ids=str)
def test_results_in_a_loop_inside_the_vector_are_stored_lane_by_lane(sizes: tuple[int, int]) -> None:
    """Results leave in vectors along n, but the loop along n is outside the loop along m."""
    m, n, k = tl.axes(m=sizes[0], n=sizes[1], k=8)
    A, B = tl.input("A", tl.float32, m, k), tl.input("B", tl.float32, k, n)
    start = tl.schedule(tl.define("C", tl.sum(A[m, k] * B[k, n], over=k), m, n)).tile(m=4, n=8).to(tl.block)
    plan = start.accumulate(tl.register, steps=tl.move().vectorize(n=4)).split(k=1).split(n=1).split(m=1)
    assert {lanes for lanes, _, _ in accesses(plan, "C")} == {1}
    check(plan)


def test_a_choice_by_data_is_a_vector_where_all_lanes_may_be_read() -> None:
    """Of inputs; 32-bit integers that were widened for the comparison are compared as they are."""
    i, v = tl.axes(i=64, v=3)
    ids, X = tl.input("ids", tl.int32, i), tl.input("X", tl.float32, i)
    plan = tl.schedule(tl.define("Y", tl.sum(tl.where(tl.equal(ids[i], v), X[i], 0), over=i), v)).tile(v=1).to(tl.block)
    source = tl.compile(plan.split(i=16).vectorize(i=16), tl.target("cpu", profile="zen4")).source
    assert (
        "(*(const int16_u*)(ids + i * 16) == (int16)((int)block_x) ? *(const float16_u*)(X + i * 16) : (float16)(0.0f))" in source
    )
    checked = tl.compile(plan.split(i=16).vectorize(i=16))
    assert (
        testing.check_kernel(checked, {"ids": np.arange(64, dtype=np.int32) % 5 - 1, "X": np.arange(64, dtype=np.float32)}) == []
    )


@pytest.mark.parametrize("type", [tl.int8, tl.int32, tl.uint32, tl.int64], ids=str)
def test_comparisons_in_a_narrow_type_are_right_beyond_it(type: Any) -> None:
    """A value that the narrow type may not have keeps the wide one: 2^31 + v differs from any int32."""
    i, v = tl.axes(i=64, v=3)
    ids, X = tl.input("ids", type, i), tl.input("X", tl.float32, i)
    for shift in (0, 100, 2**31, 2**32 - 1):
        o = tl.define("Y", tl.sum(tl.where(tl.cast(ids[i], tl.int64) < v + shift, X[i], 0), over=i), v)
        kernel = tl.compile(tl.schedule(o).tile(v=1).to(tl.block).split(i=16).vectorize(i=16))
        values = np.resize(np.array([0, 1, 99, 100, 101, 127, -1, -128, 2**31 - 1, 2**31, 2**32 - 1]), 64)
        low, high = (np.iinfo(type.numpy).min, np.iinfo(type.numpy).max)
        given = {"ids": np.clip(values, low, high).astype(type.numpy), "X": np.arange(64, dtype=np.float32)}
        assert testing.check_kernel(kernel, given) == []
        expected = [given["X"][given["ids"].astype(np.int64) < place + shift].sum() for place in range(3)]
        np.testing.assert_array_equal(kernel(**given), np.array(expected, np.float32))
