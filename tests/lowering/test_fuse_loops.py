"""Loops are merged where every element is still written before it is read, and nowhere else."""

from __future__ import annotations

import numpy as np
import pytest

import tilelang as tl
from tests.lowering.small_kernels import array, program, shared
from tilelang.core.expr import INDEX, Expr, Var, const, index
from tilelang.lowering import ir
from tilelang.lowering.passes.fuse_loops import fuse_loops, merged
from tilelang.testing import check_schedule

I, J, K = (Var(name, INDEX, 0, 7) for name in "ijk")
X, Y = array("X", 64), array("Y", 64, role="output")
S, T = shared("S", 64), ir.Buffer("T", tl.float32, (1,), "register")


def loop(var: Var, *body: ir.Stmt, extent: int = 8) -> ir.For:
    return ir.For(var, index(extent), ir.seq(*body))


def copy(target: ir.Buffer, to: Expr, source: ir.Buffer, at: Expr) -> ir.Store:
    return ir.Store(target, (to,), ir.Load(source, (at,)))


def loops(*body: ir.Stmt, threads: int = 1) -> int:
    """How many loops are left at the top."""
    (kernel,) = program(ir.Seq(body), X, Y, S, T, threads=threads).kernels
    made = fuse_loops(kernel).body
    return sum(isinstance(s, ir.For) for s in ir.parts(made) or (made,)) if not isinstance(made, ir.For) else 1


WRITE = loop(I, copy(S, I, X, I))


def test_what_was_just_written_is_read_in_the_same_loop() -> None:
    clear = ir.Store(T, (index(0),), const(0.0, tl.float32))
    total = loop(J, ir.Store(T, (index(0),), ir.Load(T, (index(0),)) + ir.Load(S, (J,))))
    assert loops(WRITE, clear, total) == 1
    (kernel,) = program(ir.Seq((WRITE, clear, total)), X, Y, S, T, threads=1).kernels
    made = fuse_loops(kernel).body
    assert isinstance(made, ir.Seq) and made.body[0] == clear, "what stands between goes before"


@pytest.mark.parametrize(
    ("second", "count"),
    [
        (loop(J, copy(Y, J, S, J)), 1),
        (loop(J, copy(Y, J, S, J // 2)), 2),  # j // 2 may be any round's: not proven
        (loop(J, copy(Y, J, S, 7 - J)), 2),
        (loop(J, copy(Y, J, S, J + 1)), 2),  # written a round later
        (loop(J, copy(Y, J, S, J), extent=7), 2),
        (loop(J, copy(Y, J, X, J)), 2),  # nothing is gained
    ],
)
def test_rounds_must_agree(second: ir.For, count: int) -> None:
    assert loops(WRITE, second) == count


@pytest.mark.parametrize(
    ("place", "count"), [(7 - J, 1), (8 - J, 1), (6 - J, 2), (J, 2), (ir.Load(array("N", 8, type=tl.int64), (J,)), 2)]
)
def test_loops_that_go_down_agree_too(place: Expr, count: int) -> None:
    """Element 7 - i is written in round i; 8 - j was written the round before, 6 - j comes a round later."""
    assert loops(loop(I, copy(S, 7 - I, X, I)), loop(J, copy(Y, J, S, place))) == count


def test_what_stands_between_must_be_able_to_move() -> None:
    last = ir.Store(T, (index(0),), ir.Load(S, (index(3),)))
    assert loops(WRITE, last, loop(J, copy(Y, J, S, J))) == 2


def test_loops_with_what_keeps_its_place_are_not_merged() -> None:
    read, copied = copy(Y, J, S, J), ir.Copy(shared("other", 64), (J,), X, (J,), 1)
    assert loops(loop(I, copy(S, I, X, I), ir.Commit()), loop(J, read)) == 2
    assert loops(WRITE, loop(J, read, copied)) == 2
    assert loops(WRITE, loop(J, read)) == 1


def test_blocks_of_threads_keep_their_loops() -> None:
    assert loops(WRITE, loop(J, copy(Y, J, S, J)), threads=4) == 2


def test_pieces_wider_than_a_round() -> None:
    def piece(var: Var, shift: int) -> ir.For:
        lane = Var(f"{var.name}_lane", INDEX, 0, 7)
        return loop(var, ir.For(lane, index(8), copy(S, var * 8 + lane, X, var * 8 + lane + shift), "vector"))

    lane = Var("lane", INDEX, 0, 7)
    read = loop(K, ir.For(lane, index(8), copy(Y, K * 8 + lane, S, K * 8 + lane), "vector"))
    assert merged(piece(I, 0), read) is not None
    overlapping = loop(K, ir.For(lane, index(8), copy(Y, K * 8 + lane, S, K * 4 + lane + 4), "vector"))
    assert merged(piece(I, 0), overlapping) is None


def test_another_value_written_to_the_same_place_keeps_the_order() -> None:
    assert merged(loop(I, copy(S, I, X, I)), loop(J, copy(S, J, Y, J))) is not None
    assert merged(loop(I, copy(S, index(0), X, I)), loop(J, copy(S, index(0), Y, J))) is None


def test_a_computation_is_right_when_its_loops_are_merged() -> None:
    i, j = tl.axes(i=5, j=37)
    x = tl.input("X", tl.float32, i, j)
    square = tl.define("square", x[i, j] * x[i, j], i, j)
    total = tl.define("total", tl.sum(square[i, j], over=j), i)
    schedule = (
        tl.schedule(tl.define("Y", square[i, j] / total[i], i, j))
        .tile(i=2).to(tl.block).split(i=1)
        .compute("square", tl.shared, steps=tl.move().vectorize(j=8))
        .compute("total", tl.register, steps=tl.move().vectorize(j=8))
        .vectorize(j=8)
    )  # fmt: skip
    assert not check_schedule(schedule, {"X": np.random.default_rng(0).standard_normal((5, 37)).astype(np.float32)})
