"""Barriers under no condition, for compilers that need it; kernels with loops over a block's share of the tiles are right there."""

from __future__ import annotations

import pytest

import tilelang as tl
from tests.lowering.small_kernels import THREAD, array, program, shared
from tilelang import testing
from tilelang.core.expr import INDEX, Binary, Const, Var, index
from tilelang.lowering import ir
from tilelang.lowering.pipeline import lower
from tilelang.lowering.printer import to_text
from tilelang.lowering.workarounds.unconditional_barriers import unconditional_barriers

BLOCK, K = Var("block_x", INDEX, 0, 1), Var("k", INDEX, 0, 2)
HELD, OUT = shared("held", 32), array("out", 32, role="output")
MEET = ir.Barrier(("shared",))
STORE = ir.Store(HELD, (THREAD,), ir.Load(OUT, (THREAD,)))
BACK = ir.Store(OUT, (THREAD,), ir.Load(HELD, (THREAD,)))


def met(body: ir.Stmt) -> ir.Stmt:
    """The body after the pass."""
    (kernel,) = program(body, HELD, OUT).kernels
    return unconditional_barriers(kernel).body


def conditions(body: ir.Stmt) -> list[tuple[str, ...]]:
    """For every barrier, the conditions and the loops without a certain round around it."""
    found: list[tuple[str, ...]] = []

    def visit(stmt: ir.Stmt, around: tuple[str, ...]) -> None:
        match stmt:
            case ir.Barrier():
                found.append(around)
            case ir.If():
                for child in (stmt.then, stmt.otherwise):
                    if child is not None:
                        visit(child, (*around, str(stmt.condition)))
            case ir.For(extent=extent):
                certain = stmt.kind == "do" or isinstance(extent, Const)
                visit(stmt.body, around if certain else (*around, str(extent)))
            case ir.Seq(body=body):
                for child in body:
                    visit(child, around)

    visit(body, ())
    return found


def test_a_loop_that_certainly_has_a_round_is_a_do_loop() -> None:
    loop = ir.For(K, 3 - BLOCK, ir.Seq((STORE, MEET)))
    assert met(loop) == loop.replace(kind="do")


def test_a_loop_that_may_have_none_runs_once_and_does_nothing() -> None:
    loop = met(ir.For(K, 2 - BLOCK * 2, ir.Seq((STORE, MEET, BACK))))
    assert isinstance(loop, ir.For) and loop.kind == "do"
    assert str(loop.extent) == "max(2 - block_x * 2, 1)"
    assert isinstance(loop.body, ir.Seq)
    store, meet, back = loop.body.body
    assert isinstance(meet, ir.Barrier)
    for part in (store, back):
        assert isinstance(part, ir.If)
        assert str(part.condition) == "k < 2 - block_x * 2"


def test_what_has_no_barrier_stays() -> None:
    loop = ir.For(K, 2 - BLOCK * 2, STORE)
    condition = ir.If(BLOCK < 1, loop)
    assert met(condition) == condition
    assert met(ir.Seq((condition, MEET))) == ir.Seq((condition, MEET))


def test_barriers_leave_both_branches_and_what_stands_in_them() -> None:
    inner = ir.For(K, index(3), ir.Seq((STORE, MEET, BACK)))
    nested = ir.If(Binary("==", BLOCK, index(0)), ir.Seq((inner, MEET)), ir.If(BLOCK < 1, ir.Seq((STORE, MEET)), BACK))
    assert any(conditions(nested))
    assert conditions(met(nested)) == [(), (), ()]


def test_a_condition_that_is_read_is_read_once() -> None:
    read = Binary("<", ir.Load(HELD, (index(0),)), ir.Load(OUT, (index(0),)))
    found = met(ir.If(read, ir.Seq((STORE, MEET, BACK))))
    names = [s for s in ir.statements(found) if isinstance(s, ir.Let)]
    assert [n.value for n in names] == [read]
    assert all(s.condition is names[0].var for s in ir.statements(found) if isinstance(s, ir.If))


def persistent(count: int, chunk: int, ahead: int) -> tl.Schedule:
    b, h, e = tl.axes(b=40, h=24, e=8)
    A, W = tl.input("A", tl.float32, b, h), tl.input("W", tl.float32, h, e)
    made = tl.schedule(tl.define("Y", tl.sum(A[b, h] * W[h, e], over=h), b, e)).tile(b=8).to("block", count=count)
    made = made.load("A", "shared").accumulate("register").split(h=chunk).load("A", "register").load("W", "shared", ahead=ahead)
    return made.tile(b=1, e=1).to("thread")


@pytest.mark.parametrize("count, chunk, ahead", [(2, 5, 1), (1, 5, 1), (3, 7, 2)])
def test_rounds_of_blocks_with_a_ring_inside(count: int, chunk: int, ahead: int) -> None:
    made = persistent(count, chunk, ahead)
    assert not testing.check_schedule(made, testing.arrays(made.computation), opencl=True)


def test_loops_stay_where_no_device_needs_it() -> None:
    made, profile = persistent(2, 5, 1), tl.load_profile("sapphire_rapids")
    needed, plain = (lower(made.computation, made.steps, profile, needs=w) for w in (("unconditional_barriers",), ()))
    assert "do round in" in to_text(needed)
    assert "do round in" not in to_text(plain)


def test_rounds_that_store_and_rounds_that_combine_share_a_stop() -> None:
    m, n, k = tl.axes(m=16, n=1, k=20)
    a, b = tl.input("A", tl.float32, m, k), tl.input("B", tl.float32, k, n)
    back = tl.move().via("shared").tile(n=1).to("thread")
    made = tl.schedule(tl.define("C", tl.sum(a[m, k] * b[k, n], over=k), m, n)).tile(m=16).to("block").split(k=8)
    made = made.accumulate("shared", steps=back).tile(m=4).to("thread")
    assert not testing.check_schedule(made, testing.arrays(made.computation), opencl=True)
