"""Which loops of a kernel for processors a compiler may unroll."""

from __future__ import annotations

import pytest

from tilelang import dtype as dt
from tilelang.expr import Const, Var, index
from tilelang.lowering.ir import Buffer, For, Stmt, Store, seq
from tilelang.lowering.targets import cpu, opencl
from tilelang.lowering.targets.c_loops import LONG_BODY, SHORT_LOOP, pragma

Y = Buffer("Y", dt.float32, (4096,), "global", "output")
I, J = Var("i", dt.int64, 0, 99), Var("j", dt.int64, 0, 99)


def stores(count: int) -> Stmt:
    return seq(*(Store(Y, (index(n),), Const(1.0, dt.float32)) for n in range(count)))


@pytest.mark.parametrize(("extent", "statements", "kept"), [
    (64, LONG_BODY, False), (64, LONG_BODY + 1, True), (SHORT_LOOP, LONG_BODY + 1, False), (SHORT_LOOP + 1, LONG_BODY + 1, True),
])  # fmt: skip
def test_a_long_body_is_not_unrolled_unless_it_runs_a_few_times(extent: int, statements: int, kept: bool) -> None:
    assert pragma(For(I, index(extent), stores(statements)), cpu.DIALECT) == ("#pragma nounroll" if kept else "")


def test_a_long_body_is_not_unrolled_with_a_loop_inside_however_short() -> None:
    inner = For(J, index(2), stores(LONG_BODY + 1))
    assert pragma(inner, cpu.DIALECT) == ""
    assert pragma(For(I, index(2), inner), cpu.DIALECT) == "#pragma nounroll"


def test_what_the_schedule_unrolls_is_unrolled_however_long() -> None:
    assert pragma(For(I, index(64), stores(LONG_BODY + 1), "unroll"), cpu.DIALECT) == "#pragma unroll"


def test_other_compilers_decide_for_themselves() -> None:
    assert pragma(For(I, index(64), stores(LONG_BODY + 1)), opencl.DIALECT) == ""
