"""What a piece of a kernel does with its registers: what it writes in full, and what it reads from before."""

from __future__ import annotations

import pytest

import tilelang as tl
from tests.lowering.small_kernels import THREAD, array
from tilelang.core import dtype as dt
from tilelang.core.expr import INDEX, Expr, Var, const, index
from tilelang.instructions.instruction import Instruction, instruction, updates
from tilelang.instructions.operand import operand
from tilelang.lowering import ir
from tilelang.lowering.passes.register_use import Use, register_uses

I, J, K = Var("i", INDEX, 0, 2), Var("j", INDEX, 0, 1), Var("k", INDEX, 0, 3)
TILE, OUT = ir.Buffer("tile", dt.float32, (3, 2), "register"), array("out", 64, role="output")
ONE = const(1.0, dt.float32)


def put(*at: Expr | int) -> ir.Store:
    return ir.Store(TILE, tuple(i if isinstance(i, Expr) else index(i) for i in at), ONE)


def rows(body: ir.Stmt, columns: int = 2) -> ir.For:
    """A statement for every row and column."""
    return ir.For(I, index(3), ir.For(J, index(columns), body))


def use(*body: ir.Stmt) -> Use:
    return register_uses(ir.seq(*body))[TILE]


READ = rows(ir.Store(OUT, (THREAD,), ir.Load(TILE, (I, J))))


def test_nested_loops_write_a_tile_in_full() -> None:
    found = use(rows(put(I, J)), READ)
    assert (found.whole, found.exposed, found.written, found.accesses) == (True, False, True, 12)
    assert use(ir.For(K, index(1), ir.seq(rows(put(I, J)), READ))).accesses == 12
    again = ir.For(K, index(4), ir.seq(rows(put(I, J)), READ))
    assert (use(again).whole, use(again).exposed, use(again).accesses) == (True, False, 48)
    assert use(put(0, 0), put(0, 1), put(1, 0), put(1, 1), put(2, 0), put(2, 1)).whole


@pytest.mark.parametrize(
    "partly",
    [
        rows(put(I, J), columns=1),
        rows(put(I, 1)),
        rows(ir.If(I < 2, put(I, J))),
        ir.For(I, index(3), ir.For(J, Var("n", INDEX, 0, 2), put(I, J))),
        ir.For(K, Var("n", INDEX, 0, 4), rows(put(I, J))),
    ],
    ids=["a column", "the other column", "two rows", "some columns", "maybe nothing"],
)
def test_what_is_missing_is_read_from_before(partly: ir.Stmt) -> None:
    found = use(partly, READ)
    assert (found.whole, found.exposed, found.written) == (False, True, True)


def test_a_buffer_of_no_dimension_is_one_element() -> None:
    one = ir.Buffer("one", dt.float32, (), "register")
    read = ir.Store(OUT, (THREAD,), ir.Load(one, ()))
    assert register_uses(ir.seq(ir.Store(one, (), ONE), read))[one].whole
    assert register_uses(read)[one].exposed


def test_a_read_under_the_condition_of_the_write_is_covered() -> None:
    some = THREAD < 5
    under = ir.If(some, rows(put(I, J))), ir.If(some, READ)
    assert (use(*under).whole, use(*under).exposed) == (False, False)
    assert use(under[0], READ).exposed
    either = ir.If(some, rows(put(I, J)), rows(put(I, J)))
    assert (use(either, READ).whole, use(either, READ).exposed) == (True, False)


def test_what_is_written_under_a_condition_that_is_read_is_known_below_it_alone() -> None:
    some, other = ir.Load(OUT, (THREAD,)) < 0.5, ir.Store(OUT, (THREAD,), ONE)
    own = ir.Store(OUT, (THREAD,), ir.Load(TILE, (index(2), index(0))))
    below = ir.If(some, ir.seq(put(2, 0), ir.If(some, other), own))
    assert not use(below).exposed
    first, read = put(0, 0), ir.Store(OUT, (THREAD,), ir.Load(TILE, (index(0), index(0))))
    assert use(ir.If(some, first), ir.If(some, read)).exposed
    assert not use(ir.If(THREAD < 5, ir.seq(first, ir.If(some, other), read))).exposed
    assert use(ir.If(some, put(2, 0)), ir.If(some, own)).exposed  # it may be another value by then
    assert not use(put(2, 0), ir.If(some, other), own).exposed


def add_two() -> Instruction:
    """acc[i] += x[i] of two elements, by one thread."""
    i = tl.axes(i=2)
    acc, x = operand("Acc", dt.float32, "register", i), operand("Xs", dt.float32, "register", i)
    return instruction("add_two_of_a_row", means=updates(acc[i], x[i] * 1.0), operands=(acc, x), level="thread", replace=True)


def test_an_instruction_reads_the_elements_that_follow_each_other() -> None:
    other = ir.Buffer("other", dt.float32, (2,), "register")
    add = ir.Instruction(add_two(), (("Acc", other, (index(0),)), ("Xs", TILE, (index(1), index(0)))))
    found = use(put(1, 0), put(1, 1), add)
    assert (found.exposed, found.pinned) == (False, True)
    assert use(put(0, 0), put(0, 1), put(1, 0), add).exposed and use(put(2, 0), put(2, 1), add).exposed
    assert register_uses(add)[other] == Use(exposed=True, written=True, whole=True, pinned=True, accesses=4)
