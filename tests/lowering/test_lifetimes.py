"""What a buffer holds is undefined in the next iteration of the loop that remakes it; accumulators and rings keep what they hold."""

from __future__ import annotations

from typing import Any

import pytest

import tilelang as tl
from tests.lowering.small_kernels import THREAD, array, program, shared
from tilelang.core import dtype as dt
from tilelang.core.expr import INDEX, Var, binary, const, index
from tilelang.lowering import ir
from tilelang.lowering.simulator.lifetimes import local_buffers
from tilelang.lowering.simulator.simulate import run

K = Var("k", INDEX, 0, 2)
ONE = const(1.0, dt.float32)


def looped(memory: str, made: int, before: bool = False, threads: int = 8) -> dict[str, int]:
    """Counts of three iterations in which each thread reads its element of a stage; iteration k makes it where k < made."""
    own = memory == "register"
    x = ir.Buffer("x", dt.float32, (1,), "register") if own else shared("x", threads)
    out = array("out", 3, threads, role="output")
    at = (index(0),) if own else (THREAD,)
    make = ir.Store(x, at, ONE)
    body = ir.seq(ir.If(binary("<", K, made), make), ir.Store(out, (K, THREAD), ir.Load(x, at)))
    loop = ir.For(K, index(3), body)
    return run(program(ir.seq(make if before else None, loop), x, out, threads=threads), {}).counts


@pytest.mark.parametrize("memory", ["shared", "register"])
def test_the_value_of_the_iteration_before_is_undefined(memory: str) -> None:
    assert looped(memory, 3) == {}
    assert looped(memory, 2) == {"uninitialised-read": 8}
    assert looped(memory, 1) == {"uninitialised-read": 16}


@pytest.mark.parametrize("memory", ["shared", "register"])
def test_what_is_written_before_the_loop_stays(memory: str) -> None:
    assert looped(memory, 0, before=True) == {}


def test_the_innermost_loop_around_all_accesses_counts() -> None:
    x, y = shared("x", 8), shared("y", 8)
    inner = ir.For(Var("i", INDEX, 0, 3), index(4), ir.Store(y, (THREAD,), ir.Load(x, (THREAD,))))
    outer = ir.For(K, index(3), ir.seq(ir.Store(x, (THREAD,), ONE), inner))
    assert local_buffers(outer) == {id(outer): ("x",), id(inner): ("y",)}
    assert local_buffers(ir.seq(inner, inner)) == {}  # one statement in two places


@pytest.mark.parametrize("memory", ["shared", "register"])
@pytest.mark.parametrize("named", [False, True], ids=["index", "let"])
def test_what_an_iteration_writes_for_later_ones_stays(memory: Any, named: bool) -> None:
    x, out, place = ir.Buffer("x", dt.float32, (3,), memory), array("out", 3, role="output"), Var("place", INDEX, 0, 2)
    put = ir.seq(ir.Let(place, index(0) + K), ir.Store(x, (place,), ONE)) if named else ir.Store(x, (K,), ONE)
    for read, expected in ((binary("max", K - 1, index(0)), {}), (binary("min", K + 1, index(2)), {"uninitialised-read": 2})):
        loop = ir.For(K, index(3), ir.seq(put, ir.Store(out, (K,), ir.Load(x, (read,)))))
        assert run(program(loop, x, out, threads=1), {}).counts == expected


def test_an_accumulator_that_the_first_iteration_initialises_stays() -> None:
    x, out = shared("x", 8), array("out", 3, 8, role="output")
    more = ir.Store(x, (THREAD,), ir.Load(x, (THREAD,)) + ONE)
    step = ir.If(binary("<", K, 1), ir.Store(x, (THREAD,), ONE), more)
    loop = ir.For(K, index(3), ir.seq(step, ir.Store(out, (K, THREAD), ir.Load(x, (THREAD,)))))
    report = run(program(loop, x, out, threads=8), {})
    assert not report.counts, str(report)
    assert report.outputs["out"][:, 0].tolist() == [1, 2, 3]


def test_a_store_that_stays_behind_reads_the_iteration_before() -> None:
    text = """
computation c {
  input B: int16[j: 1, q: 16]
  output G[j, q] = B[j, q] * 3
  output D[q, j] = G[j, q] + 1
}
schedule for c {
  split j=4 q=1 peel
  tile j=3 q=5 -> thread
  split q=8 j=8
  split q=16 j=1 unroll
  via shared behind 1
  split q=1 j=7 unroll
  vectorize j=8
}
"""
    kernel = tl.compile(tl.parse(text).schedule(), tl.target("cuda", profile="hopper"))
    assert tl.simulate(kernel).findings == ()
