"""What `do` refuses, and what the refusal says."""

from __future__ import annotations

from typing import Any

import pytest

import tilelang as tl
from tests.lowering.test_instruct import (
    MMA,
    POCL,
    SIMULATED,
    by_warps,
    check,
    issued,
    matmul,
    operands,
    refused,
    start,
)
from tilelang.instructions.fragment import fragment
from tilelang.instructions.instruction import instruction, updates
from tilelang.instructions.operand import operand
from tilelang.schedules.schedule import Schedule
from tilelang.testing.case import arrays
from tilelang.testing.checking import check_schedule


def test_on_another_device() -> None:
    error = refused(lambda: by_warps(matmul(32, 32, 16)), POCL)
    assert error.code == "instruction-not-here"
    assert error.message == f"`do {MMA} (m=m, n=n, k=k)`: profile sapphire_rapids does not have {MMA}"


def test_an_operand_that_is_nowhere_near() -> None:
    error = refused(lambda: start(matmul(32, 32, 16)).accumulate(tl.register).split(k=8).tile(m=16, n=16).to(tl.warp).do(MMA))
    assert error.counterexample == "memory of A: the instruction has register, but the step has global"


def test_a_piece_that_is_too_small() -> None:
    error = refused(lambda: operands(start(matmul(32, 32, 16)).accumulate(tl.register).split(k=4).tile(m=16, n=16).to(tl.warp)))
    assert error.counterexample == "shape of k: the instruction has k = 8, but the step has k = 4, which is not a multiple of it"


def test_a_level_that_is_too_narrow_names_what_fits() -> None:
    error = refused(lambda: start(matmul(32, 32, 16)).accumulate(tl.register).split(k=8).tile(m=16, n=8).to(tl.thread)
                    .load("A", tl.register).load("B", tl.register).do(MMA))  # fmt: skip
    assert error.counterexample == "level: the instruction has warp, but the step has thread"
    assert error.notes[1].endswith(": fits")


def test_another_meaning() -> None:
    m, n, k = tl.axes(m=32, n=32, k=16)
    A, B = tl.input("A", tl.float32, m, k), tl.input("B", tl.float32, k, n)
    c = tl.define("C", tl.max(A[m, k] * B[k, n], over=k), m, n)
    error = refused(lambda: operands(start(c).accumulate(tl.register).split(k=8).tile(m=16, n=16).to(tl.warp)))
    assert error.counterexample is not None and error.counterexample.startswith(
        "means: the instruction has C[m, n] += sum[k] A[m, k] * B[k, n]"
    )


def test_a_store_wider_than_a_lane_s_run() -> None:
    error = refused(lambda: operands(start(matmul(32, 32, 16)).accumulate(tl.register, steps=tl.move().vectorize(n=4)).split(k=8)
                                     .tile(m=16, n=16).to(tl.warp)))  # fmt: skip
    assert error.code == "store-width" and error.help == "vectorize n=2"


@pytest.mark.parametrize("n", [1, 4])
def test_a_piece_of_the_results_that_lanes_hold_in_part(n: int) -> None:
    """A lane holds two neighbours, and four lanes the eight columns of a row."""
    start = tl.schedule(matmul(16, 8, 16)).tile(m=16, n=8).to(tl.block)
    start = start.accumulate(tl.register, steps=tl.move().split(n=n).via(tl.shared)).split(k=8)
    error = refused(lambda: operands(start.tile(m=16, n=8).to(tl.warp)))
    assert error.code == "store-width" and "splits the consecutive elements that a lane holds" in error.message


def unfoldable(k: int) -> Schedule:
    """A sum of exponentials by an instruction: a point that does not exist cannot be filled to contribute nothing."""
    r, j = tl.axes(r=4, j=8)
    a, c = operand("a", tl.float32, tl.register, r, j), operand("c", tl.float32, tl.register, j)
    instruction("exponentials", means=updates(c[j], tl.exp(a[r, j])), operands=(a, c), level=tl.thread, replace=True)
    n, k_axis = tl.axes(n=16, k=k)
    X = tl.input("X", tl.float32, k_axis, n)
    y = tl.define("Y", tl.sum(tl.exp(X[k_axis, n]), over=k_axis), n)
    return tl.schedule(y).tile(n=16).to(tl.block).accumulate(tl.register).split(k=8).load("X", tl.register).do("exponentials")


def test_do_with_a_tail_that_does_not_fold() -> None:
    assert check_schedule(unfoldable(16), arrays(unfoldable(16).computation), profile=POCL) == []
    error = refused(lambda: unfoldable(10), POCL)
    assert error.code == "unguardable-do"
    assert "its operands give exp(0.0) there, not the identity 0.0" in error.message
    assert error.counterexample == "k = 10 is past the end, but the tile of 4 that begins at k = 8 includes it"


def test_do_with_a_tail_that_nothing_fills() -> None:
    r = tl.axes(r=4)
    run = fragment(1, 4, lambda lane, slot: slot)
    a, b = (operand(name, tl.float32, tl.global_, r, fragment=run) for name in "ab")
    instruction("dot_of_global", means=updates(operand("c", tl.float32, tl.register)[()], a[r] * b[r]), level=tl.thread, replace=True,
                operands=(a, b, operand("c", tl.float32, tl.register)))  # fmt: skip

    def plan(j: int) -> Schedule:
        i_axis, j_axis = tl.axes(i=3, j=j)
        X, Y = tl.input("X", tl.float32, i_axis, j_axis), tl.input("Y", tl.float32, i_axis, j_axis)
        c = tl.define("Z", tl.sum(X[i_axis, j_axis] * Y[i_axis, j_axis], over=j_axis), i_axis)
        return tl.schedule(c).tile(i=1).to(tl.block).do("dot_of_global")

    check(plan(16), POCL)
    error = refused(lambda: plan(14), POCL)
    assert error.code == "unguardable-do" and "nothing fills X, Y there" in error.message


def test_two_reductions_are_no_instruction() -> None:
    i, j = tl.axes(i=4, j=16)
    X = tl.input("X", tl.float32, i, j)
    c = tl.computation("spread", outputs=(tl.define("Y", tl.max(X[i, j], over=j) - tl.min(X[i, j], over=j), i),))
    error = refused(lambda: tl.schedule(c).tile(i=1).to(tl.block).do("opencl_dot4"), POCL)
    assert error.code == "instruction-mismatch" and "2 reductions that share a loop" in str(error.counterexample)


def test_a_reduction_with_two_members_is_told_by_its_first() -> None:
    i, j = tl.axes(i=4, j=16)
    best = tl.define("best", tl.argmax(tl.input("X", tl.float32, i, j)[i, j], over=j), i)
    error = refused(lambda: tl.schedule(best).tile(i=1).to(tl.block).do("opencl_dot4"), POCL)
    assert error.code == "instruction-mismatch"
    assert error.counterexample == "the reduction best_argmax_0 has 2 members"


def test_a_reduction_under_a_condition_is_no_instruction() -> None:
    i, j, d = tl.axes(i=32, j=32, d=16)
    P, V = tl.input("P", tl.float32, i, j), tl.input("V", tl.float32, j, d)

    def by_instruction(where: Any) -> Schedule:
        c = tl.define("C", tl.sum(P[i, j] * V[j, d], over=j, where=where), i, d)
        walk = tl.schedule(c).tile(i=32, d=16).to(tl.block).accumulate(tl.register).split(j=8).tile(i=16, d=8).to(tl.warp)
        return walk.load("P", tl.register).load("V", tl.register).do(MMA, m="i", n="d", k="j")

    assert len(issued(by_instruction(None), SIMULATED)) == 1
    assert refused(lambda: by_instruction(j <= i)).code == "instruction-mismatch"


def test_a_pointwise_leaf_is_no_reduction() -> None:
    i = tl.axes(i=16)
    c = tl.define("Y", tl.input("X", tl.float32, i)[i] * 2, i)
    assert refused(lambda: tl.schedule(c).tile(i=16).to(tl.block).do("opencl_mad16"), POCL).code == "instruction-mismatch"


def test_a_move_by_an_instruction_of_another_meaning() -> None:
    c = matmul(32, 32, 16)
    filled = start(c).accumulate(tl.register).split(k=8)
    assert refused(lambda: filled.load("A", tl.shared, steps=tl.move().do("opencl_mad16")), POCL).code == "instruction-mismatch"


def test_an_operand_that_something_else_reads() -> None:
    m, n, k = tl.axes(m=16, n=8, k=8)
    A, B = tl.input("A", tl.float32, m, k), tl.input("B", tl.float32, k, n)
    c = tl.define("C", tl.sum(A[m, k] * B[k, n], over=k) + A[m, 0], m, n)
    began = tl.schedule(c).units(block=tl.warps(1)).tile(m=16, n=8).to(tl.block).accumulate(tl.register)
    assert refused(lambda: operands(began)).code in ("reads-differ", "reader-is-not-owner")


def test_a_copy_that_reaches_beyond_its_tensor_is_refused() -> None:
    """8 elements along an axis of 5: neither side has the last three."""
    m, n, k = tl.axes(m=16, n=16, k=5)
    A, B = tl.input("A", tl.float16, m, k), tl.input("B", tl.float16, k, n)
    product = tl.define("C", tl.sum(A[m, k] * B[k, n], over=k), m, n)
    made = tl.schedule(product).tile(m=16, n=16).to(tl.block)
    made = made.load("A", tl.shared, steps=tl.move().tile(m=1, k=8).to(tl.thread).do("cp_async_16")).tile(m=4, n=4).to(tl.thread)
    with pytest.raises(tl.Refusal) as refused:
        made.check("ampere")
    assert refused.value.code == "unguardable-do"


@pytest.mark.parametrize("fill", [0.0, 1.0, -1.0])
def test_an_operand_holds_what_its_read_gives_outside(fill: float) -> None:
    """It is in shared memory by the tensor's own dimension, filled as the read says, so the instruction sees no condition."""
    r = tl.axes(r=4)
    run = fragment(1, 4, lambda lane, slot: slot)
    a, b = (operand(name, tl.float32, tl.shared, r, fragment=run) for name in "ab")
    instruction("dot_of_shared", means=updates(operand("c", tl.float32, tl.register)[()], a[r] * b[r]), level=tl.thread, replace=True,
                operands=(a, b, operand("c", tl.float32, tl.register)))  # fmt: skip
    i, j = tl.axes(i=10, j=4)
    X, W = tl.input("X", tl.float32, n=10), tl.input("W", tl.float32, j)
    y = tl.define("Y", tl.sum(tl.pad(X[i + j - 1], fill) * W[j], over=j), i)
    plan = tl.schedule(y).tile(i=2).to(tl.block).load("X", tl.shared).load("W", tl.shared).tile(i=1).to(tl.thread)
    check(plan.do("dot_of_shared"), POCL)
