"""Fences between what threads store to shared memory and what instructions read there by themselves: each needed one, and no other."""

from __future__ import annotations

import pytest

import tilelang as tl
from tests.lowering.small_kernels import THREAD, array, program, shared
from tilelang.core import dtype as dt
from tilelang.core.expr import Var, const, index
from tilelang.instructions.instruction import ONE_LANE, Instruction, fragment, instruction, moves, use
from tilelang.instructions.operand import operand, queue
from tilelang.lowering import ir
from tilelang.lowering.passes.proxy_fences import insert_proxy_fences
from tilelang.lowering.printer import to_text

K = Var("k", dt.int64, 0, 3)
SOURCE, OUT = shared("S", 64), array("out", 64, role="output")
BARRIER = ir.Barrier(("shared",))
STORE = ir.Store(SOURCE, (THREAD,), const(1.0, dt.float32))


def row_store() -> Instruction:
    """A row of shared memory to a tensor, by the device."""
    c = tl.axes(c=64)
    D, S = operand("D", dt.float32, "global", c), operand("S", dt.float32, "shared", c)
    published = queue("row_store", publish={"cuda": "row_store_fence();"})
    return instruction("row_store", means=moves(D[c], S[c]), operands=(D, S), level="block", issue=ONE_LANE,
                       completes="in-order group", queue=published, proxy="asynchronous",
                       needs=("row_store",), replace=True)  # fmt: skip


def store_of_lanes() -> Instruction:
    """A number of each lane to shared memory, at once."""
    c = tl.axes(c=32)
    D = operand("D", dt.float32, "shared", c)
    S = operand("S", dt.float32, "register", c, fragment=fragment(32, 1, lambda lane, slot: lane))
    return instruction("store_of_lanes", means=moves(D[c], S[c]), operands=(D, S), level="warp", replace=True)


def sent() -> ir.Stmt:
    """One thread has the row stored."""
    c = Var("c", dt.int64, 0, 63)
    made = ir.Instruction(
        row_store(), (("D", OUT, (c,)), ("S", SOURCE, (c,))), regions=(ir.Region("D", (c,)), ir.Region("S", (c,)))
    )
    return ir.If(THREAD < 1, made)


def fences(body: ir.Stmt) -> list[str]:
    """Of the statements behind the pass: stores, fences and barriers, by their first letters."""
    (kernel,) = program(body, OUT, SOURCE, threads=32).kernels
    words = [line.strip() for line in to_text(insert_proxy_fences(kernel).body).splitlines()]
    return [w[0] for w in words if w.startswith(("S[", "fence", "barrier", "do store"))]


def test_a_fence_stands_between_a_store_and_the_barrier_behind_it() -> None:
    assert fences(ir.seq(STORE, BARRIER, sent())) == ["S", "f", "b"]


def test_a_barrier_with_nothing_new_before_it_needs_none() -> None:
    walk = ir.For(K, index(4), ir.seq(BARRIER, STORE, BARRIER, sent()))
    assert fences(walk) == ["b", "S", "f", "b"]


def test_what_a_round_stores_last_is_published_in_the_next() -> None:
    walk = ir.For(K, index(4), ir.seq(BARRIER, sent(), STORE))
    assert fences(walk) == ["f", "b", "S"]


@pytest.mark.parametrize("condition", [THREAD < 5, K < 2], ids=["some threads", "some rounds"])
def test_a_store_under_a_condition_counts(condition: tl.Expr) -> None:
    walk = ir.For(K, index(4), ir.seq(BARRIER, ir.If(condition, STORE), BARRIER, sent()))
    assert fences(walk) == ["b", "S", "f", "b"]


def test_an_instruction_that_stores_at_once_counts() -> None:
    held = ir.Buffer("held", dt.float32, (1,), "register")
    store = ir.Instruction(store_of_lanes(), (("D", SOURCE, (index(0),)), ("S", held, (index(0),))), 32)
    assert fences(ir.seq(store, BARRIER, sent())) == ["d", "f", "b"]


def test_stores_to_registers_and_to_what_an_instruction_writes_count_for_nothing() -> None:
    product, zero = use("wgmma_m64n104k16"), index(0)
    a, b = (shared(name, 64, 16, type=dt.float16) for name in "AB")
    held = ir.Buffer("C", dt.float32, (4,), "register")
    call = ir.Instruction(product, (("A", a, (zero, zero)), ("B", b, (zero, zero)), ("C", held, (zero,))), 128)
    first = ir.Store(held, (zero,), const(0.0, dt.float32))
    assert fences(ir.seq(first, BARRIER, call)) == ["b"]
    assert fences(ir.seq(first, ir.Store(a, (THREAD, zero), const(0.0, dt.float16)), BARRIER, call)) == ["f", "b"]
    brought, whole = use("tma_load_2d"), array("X", 64, 16, type=dt.float16)
    load = ir.Instruction(brought, (("D", a, (zero, zero)), ("S", whole, (zero, zero))))
    assert fences(ir.seq(ir.Store(a, (THREAD, zero), const(0.0, dt.float16)), BARRIER, load)) == ["b"]
