"""Barriers in random control: the simulator finds no race with them, and one without any of them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.lowering.gemm_kernels import Faults, matrices, tiled_product
from tests.lowering.test_barriers import ZERO, barriers, without
from tilelang.core import dtype as dt
from tilelang.core.expr import INDEX, Expr, Var, index
from tilelang.errors import Refusal
from tilelang.lowering import ir
from tilelang.lowering.passes.barriers import insert_barriers, missing_barrier
from tilelang.lowering.simulator import simulate

SMALL = 8
SHARED = ir.Buffer("S", dt.float32, (SMALL,), "shared")
SLOTS = ir.Buffer("R", dt.float32, (2, SMALL), "shared", ring=2)
SCRATCH = ir.Buffer("W", dt.float32, (2, SMALL), "global", "workspace")
HERE = ir.Buffer("here", dt.float32, (1,), "register")
U = Var("thread", INDEX, 0, SMALL - 1)
BLOCK = Var("block_x", INDEX, 0, 1)


@st.composite
def statement(draw: st.DrawFn, loops: tuple[Var, ...], depth: int) -> ir.Stmt:
    """A write by each thread of an element of its own, a read of any element, or control around such."""
    kind = draw(st.sampled_from(["write", "read", "write", "read", *(["for", "for", "if"] if depth else [])]))
    if kind in ("write", "read"):
        shifts = [U, SMALL - 1 - U, (U + 1) % SMALL, *((U + i) % SMALL for i in loops)]
        slots = [index(0), *((i + draw(st.integers(0, 2))) % 2 for i in loops)]
        buffer = draw(st.sampled_from([SHARED, SLOTS, SCRATCH]))
        where = draw(st.sampled_from(shifts if kind == "write" else [*shifts, U // 2, index(3)]))
        first: tuple[Expr, ...] = {"S": (), "R": (draw(st.sampled_from(slots)),), "W": (BLOCK,)}[buffer.name]
        if kind == "write":
            return ir.Store(buffer, (*first, where), ZERO)
        return ir.Store(HERE, (index(0),), ir.Load(buffer, (*first, where)))
    if kind == "for":
        i = Var(f"i{len(loops)}", INDEX, 0, 3)
        body = draw(sequence((*loops, i), depth - 1))
        return ir.For(i, draw(st.sampled_from([index(0), index(1), index(3), index(4), U % 3, *(j + 1 for j in loops)])), body)
    condition = draw(st.sampled_from([U < 3, U % 2 < 1, *(i < 2 for i in loops), *(i + U < 5 for i in loops)]))
    otherwise = draw(st.none() | sequence(loops, depth - 1))
    return ir.If(condition, draw(sequence(loops, depth - 1)), otherwise)


def sequence(loops: tuple[Var, ...], depth: int) -> st.SearchStrategy[ir.Stmt]:
    return st.lists(statement(loops, depth), min_size=1, max_size=4).map(lambda items: ir.Seq(tuple(items)))


def races(k: ir.Kernel) -> int:
    counts = simulate.run(ir.Program((k,), (SCRATCH,)), {}).counts
    return counts.get("data-race", 0) + counts.get("divergent-barrier", 0)


@given(sequence((), 3))
def test_no_race_is_left_and_no_barrier_is_idle(body: ir.Stmt) -> None:
    given = ir.Kernel("k", (2, 1, 1), SMALL, (SCRATCH, SHARED, SLOTS, HERE), body)
    try:
        done = insert_barriers(given)
    except Refusal as refused:
        assert refused.code == "barrier-in-divergent-control"
        return
    assert races(done) == 0
    assert not missing_barrier(done)
    for barrier in barriers(done.body):
        assert missing_barrier(done.replace(body=without(done.body, barrier)))


@pytest.mark.parametrize("tile", [2, 4])
def test_the_tiled_product_gets_its_two_barriers(tile: int) -> None:
    program = tiled_product(8, tile, Faults(no_first_barrier=True, no_second_barrier=True))
    data = matrices(8)
    assert simulate.run(program, data).counts["data-race"]
    done = insert_barriers(program.kernels[0])
    report = simulate.run(program.replace(kernels=(done,)), data)
    assert not report.counts
    np.testing.assert_array_equal(report.outputs["C"], data["A"] @ data["B"])
    assert len(list(barriers(done.body))) == 2
    for barrier in barriers(done.body):
        worse = done.replace(body=without(done.body, barrier))
        assert simulate.run(program.replace(kernels=(worse,)), data).counts["data-race"]
