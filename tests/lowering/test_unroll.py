"""Loops that are written out: how many statements one may become."""

from __future__ import annotations

import pytest

from tests.lowering.small_kernels import array, program
from tilelang.core.expr import INDEX, Call, Var, const, index
from tilelang.errors import Refusal, Span
from tilelang.lowering import ir
from tilelang.lowering.passes import unroll

I, J, OUT = Var("i", INDEX, 0, 63), Var("j", INDEX, 0, 15), array("out", 64, role="output")


def stores(extent: int, kind: str = "unroll") -> list[ir.Store]:
    """What is left of a loop of so many rounds, after another one."""
    zero = const(0.0, OUT.dtype)
    first = ir.For(J, index(16), ir.Store(OUT, (J,), zero), "unroll", Span("s.py", 1))
    loop = ir.For(I, index(extent), ir.Seq((ir.Store(OUT, (I,), zero), ir.Store(OUT, (63 - I,), zero))), kind, Span("s.py", 2))
    written = unroll.unroll(program(ir.Seq((first, loop)), OUT).kernels[0], 1 << 20)
    return [s for s in ir.statements(written.body) if isinstance(s, ir.Store)]


def test_a_loop_becomes_as_many_statements_as_a_compiler_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unroll, "MOST_STATEMENTS", 20)
    assert len(stores(10)) == 16 + 2 * 10
    with pytest.raises(Refusal, match="20 statements") as caught:
        stores(11)
    assert caught.value.span is not None and caught.value.span.line == 2
    assert len(stores(11, "serial")) == 16 + 2


def test_long_expressions_count_by_their_operations(monkeypatch: pytest.MonkeyPatch) -> None:
    """A function's call stands for the operations of its body: thousands of them in a kernel take a compiler minutes."""
    x = array("x", 64)
    called = ir.Store(OUT, (I,), Call("exp", (ir.Load(x, (I,)),)))
    kernel = program(ir.For(I, index(64), called, "unroll", Span("s.py", 1)), x, OUT).kernels[0]
    unroll.unroll(kernel, 1 << 20)
    monkeypatch.setattr(unroll, "MOST_OPERATIONS", 1000)
    with pytest.raises(Refusal, match="1,000 operations"):
        unroll.unroll(kernel, 1 << 20)


def test_the_registers_that_take_most_are_told_first() -> None:
    few, most, many = (ir.Buffer(name, OUT.dtype, (n,), "register") for name, n in (("a", 2), ("z", 64), ("b", 8)))
    body = ir.seq(
        *(ir.Store(b, (index(0),), const(0.0, b.dtype)) for b in (few, many)), ir.Store(most, (I,), const(0.0, OUT.dtype))
    )
    kernel = program(ir.For(I, index(64), body, "serial", Span("s.py", 1)), few, most, many, OUT).kernels[0]
    with pytest.raises(Refusal) as caught:
        unroll.unroll(kernel, 32)
    assert caught.value.counterexample == "each thread holds z: 64 elements and b: 8 elements and a: 2 elements"


def test_as_many_operations_as_the_limit_are_written_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """Stores of a constant at a constant: two operations each."""
    monkeypatch.setattr(unroll, "MOST_OPERATIONS", 2 * (16 + 20))
    assert len(stores(10)) == 16 + 20
    with pytest.raises(Refusal, match="72 operations"):
        stores(11)
    monkeypatch.setattr(unroll, "MOST_OPERATIONS", 2 * (16 + 20) - 1)
    with pytest.raises(Refusal, match="71 operations"):
        stores(10)


def test_loops_inside_a_loop_over_registers_that_stays_stay_too() -> None:
    """The registers are an array by the loop around; those that it does not address still have constant places."""
    held, few = (
        ir.Buffer(name, OUT.dtype, shape, "register", "temporary") for name, shape in (("held", (64, 16)), ("few", (16,)))
    )
    zero = const(0.0, OUT.dtype)

    def stored(*inside: ir.Stmt) -> int:
        loops = ir.For(I, index(64), ir.For(J, index(16), ir.seq(*inside), "serial"), "serial")
        written = unroll.unroll(program(loops, OUT).kernels[0], 32)
        return sum(isinstance(s, ir.Store) for s in ir.statements(written.body))

    assert stored(ir.Store(held, (I, J), zero)) == 1
    assert stored(ir.Store(held, (I, J), zero), ir.Store(few, (J,), zero)) == 32
