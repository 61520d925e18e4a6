"""Which loops of a kernel for processors a compiler may unroll."""

from __future__ import annotations

import pytest

from tilelang.core import dtype as dt
from tilelang.core.expr import Cast, Const, Var, index
from tilelang.lowering.ir import Buffer, For, Load, Stmt, Store, seq
from tilelang.lowering.targets import cpu, cuda, hip, opencl
from tilelang.lowering.targets.c.loops import LONG_BODY, SHORT_LOOP, pragma

X = Buffer("X", dt.float32, (4096,), "global", "input")
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


@pytest.mark.parametrize(("extent", "is_read", "kept"), [(64, False, False), (65, False, True), (65, True, False)])
def test_loops_over_numbers_alone_stay_loops_on_gpus(extent: int, is_read: bool, kept: bool) -> None:
    """NVRTC works such loops out, and took 135 s for nine of 1,024 iterations."""
    loop = For(I, index(extent), Store(Y, (I,), Load(X, (I,)) if is_read else Cast(I, dt.float32)))
    assert pragma(loop, cuda.DIALECT) == pragma(loop, hip.DIALECT) == ("#pragma unroll 1" if kept else "")
    assert pragma(loop, cpu.DIALECT) == ""
