"""Moves of one thread in vectors: what becomes rows and squares, what is filled around what exists, what stays as it was."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tilelang as tl
from tests.lowering.small_kernels import array, program, shared
from tilelang.core.expr import INDEX, Binary, Expr, Select, Var, const, index
from tilelang.core.simplify import conjunction
from tilelang.lowering import ir
from tilelang.lowering.passes.vectorize_moves import vectorize_moves
from tilelang.lowering.pipeline import lower
from tilelang.lowering.simulator.simulate import run
from tilelang.profiles.profile import Profile
from tilelang.schedules.schedule import Schedule

CORES = tl.load_profile("avx512")
NARROW = tl.load_profile("neon")


def lanes(plan: Schedule, name: str, profile: Profile = CORES) -> set[int]:
    """The lanes of what is stored to a buffer."""
    stores = (s for k in lower(plan.computation, plan.steps, profile).kernels for s in ir.statements(k.body))
    return {ir.lanes(s.value) for s in stores if isinstance(s, ir.Store) and s.buffer.name == name}


def check_right(plan: Schedule, x: Any, expected: Any, profile: Profile = CORES) -> None:
    """It is right in the simulator, which finds nothing, and on the processor here."""
    simulated = tl.simulate(tl.compile(plan, tl.target("cpu", profile=profile)), X=x)
    assert not simulated.findings
    np.testing.assert_array_equal(simulated.outputs["Y"], expected)
    if profile is CORES:
        np.testing.assert_array_equal(tl.compile(plan, "cpu")(x), expected)


def image(h: int, w: int, c: int, stride: int, pad: int, type: tl.DType = tl.int32, fill: float = 0) -> tl.Tensor:
    """Sums of 3 x 3 windows of an image with a border, channels last."""
    n = (h + 2 * pad - 3) // stride + 1, (w + 2 * pad - 3) // stride + 1
    p, q, ch, r, s = tl.axes(p=n[0], q=n[1], c=c, r=3, s=3)
    X = tl.input("X", type, tl.axes(c=c), tl.axes(h=h), tl.axes(w=w))
    at = X[ch, p * stride + r - pad, q * stride + s - pad]
    return tl.define("Y", tl.sum(tl.pad(at, fill) if pad else at, over=(r, s)), ch, p, q)


def windows(x: Any, stride: int, pad: int, fill: float = 0) -> Any:
    x = np.pad(x, ((0, 0), (pad, pad), (pad, pad)), constant_values=fill)
    h, w = x.shape[1:]
    rows, columns = range(0, h - 2, stride), range(0, w - 2, stride)
    return np.array([[[x[c, a : a + 3, b : b + 3].sum() for b in columns] for a in rows] for c in range(x.shape[0])], x.dtype)


def staged(y: tl.Tensor, layout: Any, **tile: int) -> Schedule:
    """A tile's input in shared memory in a layout, moved as the lowering chooses."""
    plan = tl.schedule(y).tile(**tile).to(tl.block).load("X", tl.shared, layout=layout)
    ones: dict[str, Any] = dict.fromkeys(tile, 1)
    return plan.split(**ones).accumulate(tl.register)


def channels_last(y: tl.Tensor, c: int, p: int, q: int) -> Schedule:
    return staged(y, tl.layout("h", "w", "c"), c=c, p=p, q=q)


def phases(y: tl.Tensor, c: int, p: int, q: int) -> Schedule:
    return staged(y, tl.layout(lambda c, h, w: (c, h, w % 2, w // 2)), c=c, p=p, q=q)


def test_an_image_whose_channels_come_last_moves_by_squares() -> None:
    y, x = image(20, 20, 16, 1, 1), np.random.default_rng(0).integers(-9, 9, (16, 20, 20)).astype(np.int32)
    plan = channels_last(y, 16, 20, 20)
    assert lanes(plan, "X_shared") == {16}
    check_right(plan, x, windows(x, 1, 1))


def test_what_lies_around_an_image_is_filled_apart_from_it() -> None:
    """No condition is left in the loops over what exists."""
    plan = channels_last(image(20, 20, 16, 1, 1), 16, 20, 20)
    (kernel,) = lower(plan.computation, plan.steps, CORES).kernels
    tested = [s for s in ir.statements(kernel.body) if isinstance(s, ir.Store) and "Select" in str(type(s.value))]
    assert not tested
    x = np.random.default_rng(1).integers(-9, 9, (16, 20, 20)).astype(np.int32)
    plan = channels_last(image(20, 20, 16, 1, 1, fill=7), 16, 20, 20)
    check_right(plan, x, windows(x, 1, 1, 7))


@pytest.mark.parametrize("stride", [1, 2])
@pytest.mark.parametrize("pad", [0, 1])
@pytest.mark.parametrize("tile", [(3, 2, 5), (16, 4, 7), (20, 20, 20)])
def test_every_cut_of_an_image_is_right(stride: int, pad: int, tile: tuple[int, int, int]) -> None:
    y, x = image(13, 17, 20, stride, pad), np.random.default_rng(2).integers(-9, 9, (20, 13, 17)).astype(np.int32)
    for made in (channels_last, phases):
        check_right(made(y, *tile), x, windows(x, stride, pad))
        check_right(made(y, *tile), x, windows(x, stride, pad), NARROW)


@pytest.mark.parametrize("type", [tl.int8, tl.float16, tl.bfloat16, tl.float64])
def test_every_type_moves(type: tl.DType) -> None:
    i, j = tl.axes(i=37, j=45)
    y = tl.define("Y", tl.input("X", type, i, j)[i, j], j, i)
    x = np.random.default_rng(3).integers(-100, 100, (37, 45)).astype(type.numpy)
    plan = tl.schedule(y).tile(j=20, i=24).to(tl.block).load("X", tl.shared, layout=tl.layout("j", "i")).split(j=1, i=1)
    check_right(plan, x, x.T)


def test_panels_of_a_product_are_squares_with_and_without_a_tail() -> None:
    m, k = tl.axes(m=70, k=50)
    y = tl.define("Y", tl.sum(tl.input("X", tl.int32, m, k)[m, k], over=k), m)
    x = np.random.default_rng(4).integers(-9, 9, (70, 50)).astype(np.int32)
    panels = tl.layout(lambda m, k: (m // 16, k, m % 16))
    plan = tl.schedule(y).tile(m=32).to(tl.block).split(k=16).load("X", tl.shared, layout=panels)
    plan = plan.split(m=16).accumulate(tl.register).split(k=1).vectorize(m=16)
    assert lanes(plan, "X_shared") == {16}
    check_right(plan, x, x.sum(1))


def test_results_that_pass_through_shared_memory_leave_by_squares() -> None:
    i, j = tl.axes(i=40, j=33)
    y = tl.define("Y", tl.input("X", tl.int32, j, i)[j, i] + 1, i, j)
    x = np.random.default_rng(5).integers(-9, 9, (33, 40)).astype(np.int32)
    plan = tl.schedule(y).tile(i=40, j=33).to(tl.block).via(tl.shared, layout=tl.layout("j", "i")).split(i=1, j=1)
    check_right(plan, x, x.T + 1)


def test_steps_that_say_how_are_kept() -> None:
    i, j = tl.axes(i=32, j=32)
    y = tl.define("Y", tl.input("X", tl.float32, i, j)[i, j], j, i)
    plan = tl.schedule(y).tile(j=32, i=32).to(tl.block)
    move = tl.move().vectorize(i=4)
    assert lanes(plan.load("X", tl.shared, layout=tl.layout("j", "i"), steps=move).split(j=1, i=1), "X_shared") == {4}


def test_blocks_of_threads_keep_their_loops() -> None:
    i, j = tl.axes(i=32, j=32)
    y = tl.define("Y", tl.input("X", tl.float32, i, j)[i, j], j, i)
    plan = tl.schedule(y).tile(j=32, i=32).to(tl.block).load("X", tl.shared, layout=tl.layout("j", "i"))
    assert lanes(plan.tile(j=1, i=16).to(tl.thread).split(i=1), "X_shared") == {1}


def test_rows_found_through_a_tensor_stay() -> None:
    i, j, v = tl.axes(i=9, j=20, v=40)
    table, ids = tl.input("X", tl.int32, v, j), tl.input("ids", tl.int32, i, range=(0, 40))
    y = tl.define("Y", table[ids[i], j], i, j)
    plan = tl.schedule(y).tile(i=9, j=20).to(tl.block).load("X", tl.shared, layout=tl.layout("j", "i")).split(i=1, j=1)
    x, n = np.arange(800, dtype=np.int32).reshape(40, 20), np.random.default_rng(6).integers(0, 40, 9).astype(np.int32)
    np.testing.assert_array_equal(tl.compile(plan, "cpu")(x, n), x[n])


@given(
    sizes=st.tuples(st.integers(1, 40), st.integers(1, 40)),
    tile=st.tuples(st.integers(1, 44), st.integers(1, 44)),
    below=st.tuples(st.integers(0, 9), st.integers(0, 9)),
    above=st.tuples(st.integers(0, 9), st.integers(0, 9)),
    turned=st.booleans(),
    profile=st.sampled_from([CORES, NARROW]),
)
def test_any_box_with_any_border_is_right(
    sizes: tuple[int, int], tile: tuple[int, int], below: tuple[int, int], above: tuple[int, int], turned: bool, profile: Profile
) -> None:
    """A copy of an array with constants around it, by blocks of any size, both ways round."""
    whole = [n + a + b for n, a, b in zip(sizes, below, above, strict=True)]
    i, j = tl.axes(i=whole[0], j=whole[1])
    X = tl.input("X", tl.int32, tl.axes(a=sizes[0]), tl.axes(b=sizes[1]))
    y = tl.define("Y", tl.pad(X[i - below[0], j - below[1]], -5), i, j)
    order = tl.layout("b", "a") if turned else tl.layout("a", "b")
    plan = tl.schedule(y).tile(i=tile[0], j=tile[1]).to(tl.block).load("X", tl.shared, layout=order).split(i=1, j=1)
    x = np.arange(sizes[0] * sizes[1], dtype=np.int32).reshape(sizes)
    expected = np.pad(x, [*zip(below, above, strict=True)], constant_values=-5)
    kernel = tl.compile(plan, tl.target("cpu", profile=profile))
    simulated = tl.simulate(kernel, X=x)
    assert not simulated.findings
    np.testing.assert_array_equal(simulated.outputs["Y"], expected)


@pytest.mark.parametrize("layout", [lambda i, j: (i % 2, i // 2, j), lambda i, j: (j, i % 2, i // 2)], ids=["rows", "columns"])
def test_a_range_over_a_loop_that_is_taken_apart_stays(layout: Any) -> None:
    i, j = tl.axes(i=8, j=8)
    X = tl.input("X", tl.int32, i, j)
    S = tl.define("S", tl.where(j <= i, X[i, j], 0), i, j)
    plan = tl.schedule(tl.define("Y", S[i, j] + 1, i, j)).tile(i=8, j=8).to(tl.block)
    x = np.arange(64, dtype=np.int32).reshape(8, 8)
    check_right(plan.compute("S", tl.shared, layout=tl.layout(layout)).split(i=1, j=1), x, np.tril(x) + 1)


BLOCK, I, J = Var("block_x", INDEX, 0, 2), Var("i", INDEX, 0, 15), Var("j", INDEX, 0, 15)
IN, OUT, HELD = array("X", 40), array("Y", 48, role="output"), shared("held", 16)


def copied(v: Var, at: Expr, rounds: int, tested: bool) -> ir.Stmt:
    """Elements of the input in shared memory; tested: with 0 for what does not exist."""
    load = ir.Load(IN, (at,))
    value = Select(BLOCK * 16 + v < 40, load, const(0.0, load.dtype)) if tested else load
    return ir.For(v, index(rounds), ir.Store(HELD, (v,), value))


@pytest.mark.parametrize(
    "whole",
    [
        copied(I, BLOCK * 16 + I, 16, False),
        copied(I, BLOCK * 16 + 15 - I, 16, False),
        copied(I, BLOCK * 16 + I, 8, False),
        copied(I, BLOCK * 16 + I, 16, True),
        ir.Seq((copied(I, BLOCK * 16 + I, 16, False), ir.Store(HELD, (index(3),), const(5.0, HELD.dtype)))),
    ],
    ids=["the same", "other elements", "fewer elements", "tested", "a store after it"],
)
def test_both_sides_of_a_condition_are_one_move_only_where_they_are_the_same(whole: ir.Stmt) -> None:
    before = ir.For(J, index(16), ir.Store(HELD, (J,), const(7.0, HELD.dtype)))
    after = ir.For(J, index(16), ir.Store(OUT, (BLOCK * 16 + J,), ir.Load(HELD, (J,))))
    either = ir.If(BLOCK * 16 < 25, whole, copied(J, BLOCK * 16 + J, 16, True))  # as the builder says that all exist
    built = program(ir.Seq((before, either, after)), IN, OUT, HELD, threads=1, grid=(3, 1, 1))
    moved = built.replace(kernels=(vectorize_moves(built.kernels[0], 8),))
    assert moved.kernels[0].body is not built.kernels[0].body
    x = np.arange(40, dtype=np.float32)
    expected, found = (run(each, {"X": x}) for each in (built, moved))
    assert not found.findings
    np.testing.assert_array_equal(found.outputs["Y"], expected.outputs["Y"])


@pytest.mark.parametrize(
    "condition", [Binary("==", J, index(3)), Binary("<", J * 2, index(9)), Binary("!=", J, index(4))], ids=str
)
def test_conditions_that_end_no_range_of_rounds_stay(condition: Expr) -> None:
    load = ir.Load(IN, (J * 2,))
    held = ir.For(J, index(16), ir.Store(HELD, (J,), Select(condition, load, const(0.0, load.dtype))))
    stored = ir.For(J, index(16), ir.Store(OUT, (J,), ir.Load(HELD, (J,))))
    built = program(ir.Seq((held, stored)), IN, OUT, HELD, threads=1)
    moved = built.replace(kernels=(vectorize_moves(built.kernels[0], 8),))
    expected, found = (run(each, {"X": np.arange(1, 41, dtype=np.float32)}) for each in (built, moved))
    np.testing.assert_array_equal(found.outputs["Y"][:16], expected.outputs["Y"][:16])


def test_a_test_that_fails_in_the_first_round_only_is_not_left_out() -> None:
    """In block 0 the first element does not exist, though the condition says that all of them do."""
    load = ir.Load(IN, (BLOCK * 16 + J,))
    some = conjunction([Binary("<=", index(1), BLOCK * 16 + J), BLOCK * 16 + J < 40])
    assert some is not None
    tested = ir.For(J, index(16), ir.Store(HELD, (J,), Select(some, load, const(0.0, load.dtype))))
    either = ir.If(BLOCK * 16 < 25, copied(I, BLOCK * 16 + I, 16, False), tested)  # as the builder says that all are below 40
    stored = ir.For(J, index(16), ir.Store(OUT, (BLOCK * 16 + J,), ir.Load(HELD, (J,))))
    built = program(ir.Seq((either, stored)), IN, OUT, HELD, threads=1, grid=(3, 1, 1))
    moved = built.replace(kernels=(vectorize_moves(built.kernels[0], 8),))
    expected, found = (run(each, {"X": np.arange(1, 41, dtype=np.float32)}) for each in (built, moved))
    np.testing.assert_array_equal(found.outputs["Y"], expected.outputs["Y"])
