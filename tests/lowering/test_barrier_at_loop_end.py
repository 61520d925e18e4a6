"""Loops with barriers end with one; others stay as they are; the kernels that PoCL got wrong without it are right."""

from __future__ import annotations

import pytest

import tilelang as tl
from tests.lowering.small_kernels import THREAD, array, program, shared
from tilelang import testing
from tilelang.core.expr import INDEX, Var, index
from tilelang.lowering import ir
from tilelang.lowering.workarounds.barrier_at_loop_end import barrier_at_loop_end
from tilelang.testing import families

K = Var("k", INDEX, 0, 1)
HELD, OUT = shared("held", 32), array("out", 32, role="output")
MEET = ir.Barrier(("shared",))
STORE = ir.Store(HELD, (THREAD,), ir.Load(OUT, (THREAD,)))


def ended(*body: ir.Stmt) -> ir.Stmt:
    """The body of a loop over k after the pass."""
    loop = ir.For(K, index(2), ir.Seq(body))
    (kernel,) = program(loop, HELD, OUT).kernels
    made = barrier_at_loop_end(kernel).body
    assert isinstance(made, ir.For)
    return made.body


def test_a_loop_with_a_barrier_ends_with_one() -> None:
    found = ended(MEET, STORE)
    assert isinstance(found, ir.Seq)
    assert [type(s) for s in found.body] == [ir.Barrier, ir.Store, ir.Barrier]


def test_one_barrier_at_the_end_is_enough() -> None:
    assert ended(STORE, MEET) == ir.Seq((STORE, MEET))


def test_a_loop_without_barriers_stays() -> None:
    assert ended(STORE, STORE) == ir.Seq((STORE, STORE))


def test_inner_and_outer_loops_end_with_barriers() -> None:
    inner = ir.For(Var("j", INDEX, 0, 3), index(4), ir.Seq((MEET, STORE)))
    found = ended(inner)
    assert sum(isinstance(s, ir.Barrier) for s in ir.statements(found)) == 3


def test_a_name_stays_inside_its_sequence() -> None:
    found = ended(ir.Let(Var("name", INDEX), index(1)), MEET, STORE)
    assert isinstance(found, ir.Seq)
    assert isinstance(found.body[-1], ir.Barrier)


@pytest.mark.usefixtures("on_opencl")
@pytest.mark.parametrize("rounds", [2, 3])
def test_two_rounds_that_the_device_got_wrong(rounds: int) -> None:
    recipe = families.convolution(
        n=1, channels=1, size=1, filters=1, window=rounds, stride=1, dilation=1, pad=1, dtype="float32", depthwise=False
    )
    c = tl.schedule(recipe).computation
    s = tl.schedule(c).tile(p=8).to("block").split(r=1).load("X", "shared").tile(p=1).to("thread")
    assert not testing.check_schedule(s, testing.arrays(c, "random", 735), opencl=True)
    c = tl.schedule(
        families.product(m=1, n=1, k=rounds, dtype="float32", form="nt", bias=False, steps=(), to="", causal=False, batch=1)
    ).computation
    s = tl.schedule(c).tile(n=2).to("warp").split(k=1).load("A", "shared").accumulate("register")
    assert not testing.check_schedule(s, testing.arrays(c, "random", 265), opencl=True)


def test_a_loop_that_begins_with_a_loop_begins_with_a_barrier() -> None:
    inner = ir.For(Var("j", INDEX, 0, 1), index(2), STORE)
    name = ir.Let(Var("n", INDEX, 0, 1), K)
    for first in (inner, ir.Seq((name, inner))):
        found = ended(first, MEET, STORE)
        assert isinstance(found, ir.Seq)
        assert [type(s) for s in found.body[:1]] == [ir.Barrier]


@pytest.mark.usefixtures("on_opencl")
def test_two_loops_that_begin_together_are_right_on_the_device() -> None:
    """Rounds of a move first in a walk with barriers: the compiler crashed on its own result."""
    c = tl.schedule(families.gather(rows=1, bag=4, width=2, table=1, dtype="float32", kind="max")).computation
    schedule = tl.schedule(c).tile(b=1).to("block").accumulate("shared").split(t=3).load("ids", "shared").split(e=1)
    assert not testing.check_schedule(schedule.tile(t=2).to("thread"), testing.arrays(c, "random", 901), opencl=True)


@pytest.mark.usefixtures("on_opencl")
def test_a_move_that_never_happens_hides_no_loop() -> None:
    """A ring of as many rounds as its walk leaves nothing to move in it: the walk then begins with a loop."""
    c = tl.schedule(families.normalised(rows=3, columns=1, dtype="float32")).computation
    schedule = tl.schedule(c).tile(j=2).to("block").split(i=2).load("mean", "shared", steps=tl.move().split(i=4))
    schedule = schedule.load("squares", "shared", ahead=2).load("count", "shared", steps=tl.move().tile(i=8).to("thread"))
    made = schedule.tile(i=1).to("thread")
    assert not testing.check_schedule(made, testing.arrays(c, "random", 731), opencl=True)
