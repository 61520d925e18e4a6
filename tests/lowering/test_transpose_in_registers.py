"""Squares turned in registers: which loops are, what is stored, what stands under a condition, and the words of the processor's C."""

from __future__ import annotations

import dataclasses
import re
from typing import Any

import numpy as np
import pytest

import tilelang as tl
from tilelang.core.expr import INDEX, Select, Var, const, index
from tilelang.lowering import ir
from tilelang.lowering.passes.transpose_in_registers import transpose_in_registers
from tilelang.lowering.pipeline import lower
from tilelang.lowering.targets.c.emitter import emit
from tilelang.lowering.targets.cpu import DIALECT
from tilelang.profiles.profile import Profile
from tilelang.schedules.schedule import Schedule

CORES = tl.load_profile("avx512")


def transposed(rows: int, columns: int, type: tl.DType = tl.float32, twice: bool = False) -> tl.Tensor:
    i, j = tl.axes(i=rows, j=columns)
    X = tl.input("X", type, i, j)
    return tl.define("Y", X[i, j] + X[i, j] if twice else X[i, j], j, i)


def staged(plan: Schedule, n: int = 16) -> Schedule:
    """Rows are read into shared memory as columns, and stored from there."""
    move = tl.move().split(i=n).split(j=n).split(i=1, unroll=True).vectorize(j=n)
    return plan.load("X", tl.shared, layout=tl.layout("j", "i"), steps=move).split(j=1).vectorize(i=n)


def direct(plan: Schedule, n: int = 16) -> Schedule:
    """What is stored along i is read along j."""
    return plan.split(i=n).split(j=n).split(j=1, unroll=True).vectorize(i=n)


def kernels(plan: Schedule, profile: Profile = CORES) -> tuple[ir.Kernel, ...]:
    return lower(plan.computation, plan.steps, profile).kernels


def widths(plan: Schedule, profile: Profile = CORES) -> dict[str, set[int]]:
    """The lanes of the accesses of every buffer that is in memory."""
    found: dict[str, set[int]] = {}
    for s in (s for k in kernels(plan, profile) for s in ir.statements(k.body)):
        if isinstance(s, ir.Store) and s.buffer.memory != "register":
            found.setdefault(s.buffer.name, set()).add(ir.lanes(s.value))
        for load in (x for e in ir.expressions(s) for x in ir.loads(e) if x.buffer.memory != "register"):
            found.setdefault(load.buffer.name, set()).add(load.lanes)
    return found


def check_right(plan: Schedule, x: Any, expected: Any) -> None:
    """It is right in the simulator, which finds nothing, and on the processor here."""
    kernel = tl.compile(plan, tl.target("cpu", profile=CORES))
    simulated = tl.simulate(kernel, X=x)
    assert not simulated.findings and np.array_equal(simulated.outputs["Y"], expected)
    assert np.array_equal(tl.compile(plan, "cpu")(x), expected)


def start(y: tl.Tensor, size: int = 32) -> Schedule:
    return tl.schedule(y).tile(j=size, i=size).to(tl.block)


@pytest.mark.parametrize(("n", "twice"), [(4, False), (8, True), (16, False), (16, True)])
def test_whole_squares_are_vectors_only(n: int, twice: bool) -> None:
    y = transposed(16, 32, twice=twice)
    x = np.arange(16 * 32, dtype=np.float32).reshape(16, 32)
    for made in (staged, direct):
        plan = made(start(y, 16), n)
        assert set().union(*widths(plan).values()) == {n}
        check_right(plan, x, (2 * x if twice else x).T)


@pytest.mark.parametrize("type", [tl.int8, tl.float16, tl.float64, tl.int32])
def test_every_type_is_turned(type: tl.DType) -> None:
    x = np.random.default_rng(0).integers(-100, 100, (16, 16)).astype(type.name)
    for made in (staged, direct):
        plan = made(start(transposed(16, 16, type), 16))
        assert set().union(*widths(plan).values()) == {16}
        check_right(plan, x, x.T)


@pytest.mark.parametrize("shape", [(17, 32), (20, 23), (5, 7)])
def test_squares_that_exist_in_part_go_by_elements(shape: tuple[int, int]) -> None:
    x = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
    for made in (staged, direct):
        check_right(made(start(transposed(*shape))), x, x.T)


def test_a_square_is_whole_where_its_last_point_exists() -> None:
    for made in (staged, direct):
        (body,) = (k.body for k in kernels(made(start(transposed(24, 32)))))
        conditions = {str(s.condition) for s in ir.statements(body) if isinstance(s, ir.If) and s.otherwise is not None}
        assert conditions and conditions <= {"i * 16 < 9", "i_2 * 16 < 9"}  # i * 16 + 15 < 24


def test_what_is_no_square_stays() -> None:
    y = transposed(64, 64)
    plain = start(y).split(i=16).split(j=8).split(j=1, unroll=True).vectorize(i=16)
    assert 1 in widths(plain)["X"], "8 x 16"
    assert set().union(*widths(direct(start(y), 2)).values()) == {1, 2}, "2 x 2"
    loop = start(y).split(i=16).split(j=16).split(j=1).vectorize(i=16)
    assert 1 in widths(loop)["X"], "a loop that nobody wrote out"
    i, j = tl.axes(i=64, j=64)
    copy = tl.define("Y", tl.input("X", tl.float32, i, j)[i, j] * 2, i, j)
    kept = tl.schedule(copy).tile(i=16, j=16).to(tl.block).split(i=1, unroll=True).vectorize(j=16)
    assert not any("turned" in b.name for k in kernels(kept) for b in k.buffers), "side by side on both sides"


@pytest.mark.parametrize(
    ("memory", "n", "turned"),
    [
        ("shared", 8, True),
        ("shared", 4, True),
        ("shared", 6, False),
        ("shared", 2, False),
        ("shared", 16, False),
        ("register", 8, False),
    ],
)
def test_squares_in_memory_of_as_many_lanes_as_vectors_have_are_turned(memory: Any, n: int, turned: bool) -> None:
    x, held = ir.Buffer("X", tl.float32, (n, n), "global", "input"), ir.Buffer("held", tl.float32, (n, n), memory)
    u, v = (Var(name, INDEX, 0, n - 1) for name in "uv")
    row = ir.For(v, index(n), ir.Store(held, (v, u), ir.Load(x, (u, v))), "vector")
    kernel = ir.Kernel("k", (1, 1, 1), 1, (x, held), ir.For(u, index(n), row, "unroll"))
    assert (transpose_in_registers(kernel, 8).body != kernel.body) is turned


def test_where_threads_run_together_nothing_is_turned() -> None:
    plan = direct(start(transposed(32, 32)), 4)
    assert not any("turned" in b.name for k in kernels(plan, tl.load_profile("opencl_gpu")) for b in k.buffers)


def test_the_processors_words_are_shuffles_of_two_vectors() -> None:
    plan = direct(start(transposed(32, 32)))
    text = emit(lower(plan.computation, plan.steps, CORES), DIALECT)
    shuffles = re.findall(r"__builtin_shufflevector\(\w+, \w+, ([\d, ]+)\)", text)
    assert len(shuffles) == 4 * 16 and all(len(set(numbers.split(", "))) == 16 for numbers in shuffles)
    assert max(int(n) for numbers in shuffles for n in numbers.split(", ")) == 31


def test_narrow_vectors_turn_smaller_squares() -> None:
    narrow = dataclasses.replace(CORES, max_vector_lanes=8)
    assert set().union(*widths(direct(start(transposed(32, 32)), 8), narrow).values()) == {8}


@pytest.mark.parametrize(("few", "n", "type"), [(2, 16, tl.bfloat16), (4, 16, tl.int8), (2, 4, tl.float32), (8, 16, tl.int16)])
def test_rows_are_interleaved(few: int, n: int, type: tl.DType) -> None:
    """As instructions that add up neighbours along k want their operand."""
    k, m = tl.axes(k=4 * few + 1, m=3 * n + 5)
    y = tl.define("Y", tl.sum(tl.cast(tl.input("X", type, k, m)[k, m], tl.float32), over=k), m)
    move = tl.move().split(k=few, m=n).split(k=1, unroll=True).vectorize(m=n)
    layout = tl.layout(lambda k, m: (k // few, m, k % few))
    plan = tl.schedule(y).tile(m=2 * n).to(tl.block).split(k=2 * few).load("X", tl.shared, layout=layout, steps=move)
    plan = plan.split(m=1).accumulate(tl.register).split(k=1)
    assert n in widths(plan)["X_shared"]
    x = np.random.default_rng(0).integers(-8, 8, (4 * few + 1, 3 * n + 5)).astype(type.numpy)
    check_right(plan, x, x.astype(np.float32).sum(0))


@pytest.mark.parametrize(
    ("few", "n", "interleaved"),
    [
        (2, 4, True),
        (4, 8, True),
        (1, 8, False),
        (3, 8, False),
        (2, 6, False),
        (2, 3, False),
        (8, 4, False),
        (2, 2, False),
        (2, 16, False),
    ],
)
def test_powers_of_two_of_fewer_rows_than_lanes_are_interleaved(few: int, n: int, interleaved: bool) -> None:
    """On a device with vectors of 8."""
    x, held = ir.Buffer("X", tl.float32, (few, n), "global", "input"), ir.Buffer("held", tl.float32, (n * few,), "shared")
    u, v = Var("u", INDEX, 0, few - 1), Var("v", INDEX, 0, n - 1)
    row = ir.For(v, index(n), ir.Store(held, (v * few + u,), ir.Load(x, (u, v))), "vector")
    kernel = ir.Kernel("k", (1, 1, 1), 1, (x, held), ir.For(u, index(few), row, "unroll"))
    assert (transpose_in_registers(kernel, 8).body != kernel.body) is interleaved


@pytest.mark.parametrize("value", ["an element", "an element or 0", "a sum", "an element where another one is small"])
def test_part_of_a_square_is_turned_where_it_is_only_moved(value: str) -> None:
    """10 of 12 columns exist: the whole squares are turned, the last one too if its elements are moved or replaced by a constant."""
    x, y = ir.Buffer("X", tl.float32, (12, 4), "global", "input"), ir.Buffer("Y", tl.float32, (4, 12), "global", "output")
    block, u, v = Var("block_x", INDEX, 0, 2), Var("u", INDEX, 0, 3), Var("v", INDEX, 0, 3)
    element, zero = ir.Load(x, (block * 4 + u, v)), const(0.0, tl.float32)
    stored = {
        "an element": element,
        "an element or 0": Select(v < 3, element, zero),
        "a sum": element + 1.0,
        "an element where another one is small": Select(ir.Load(x, (block, v)) < 0.5, element, zero),
    }[value]
    one = ir.If(block * 4 + u < 10, ir.Store(y, (v, block * 4 + u), stored))
    square = ir.For(u, index(4), ir.For(v, index(4), one, "vector"), "unroll")
    made = transpose_in_registers(ir.Kernel("k", (3, 1, 1), 1, (x, y), square), 8).body
    assert isinstance(made, ir.If) and str(made.condition) == "block_x * 4 < 7" and made.otherwise is not None
    assert any(isinstance(e, ir.Shuffle) for s in ir.statements(made.then) for e in ir.expressions(s))
    assert (made.otherwise == square) is (value not in ("an element", "an element or 0"))
