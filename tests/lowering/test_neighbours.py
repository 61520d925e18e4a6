"""Whether neighbouring threads write one behind the other."""

from __future__ import annotations

import pytest

from tilelang.core import dtype as dt
from tilelang.core.expr import INDEX, Expr, Var, index
from tilelang.errors import Refusal
from tilelang.instructions.instruction import use
from tilelang.lowering import ir
from tilelang.lowering.build.instruction.consecutive_threads import check_neighbours
from tilelang.schedules.steps import Do

THREAD, WALK = Var(ir.THREAD.name, INDEX, 0, 127), Var("k", INDEX, 0, 3)
BLOCK = Var("block_x", INDEX, 0, (1 << 22) - 1)
SHARED = ir.Buffer("S", dt.float32, (1 << 16,), "shared")


def check(at: Expr, *guards: Expr) -> None:
    copy = use("global_load_lds_4_of_4_bytes")
    check_neighbours(Do(copy.name), copy.operand("D"), SHARED, (at,), 1, list(guards), 128)


@pytest.mark.parametrize(
    ("at", "guards"),
    [
        (THREAD, ()),
        (THREAD + WALK * 128, ()),
        (THREAD + WALK * 3 + BLOCK * 7, ()),  # what all of them share is not looked at
        (THREAD % 64 + THREAD // 64 * 1000, ()),  # each wave for itself
        (THREAD, (THREAD < 100,)),
        (THREAD + 5, (THREAD >= 3,)),
        (THREAD, (WALK < 2, THREAD < 70)),
    ],
)
def test_one_behind_the_other(at: Expr, guards: tuple[Expr, ...]) -> None:
    check(at, *guards)


@pytest.mark.parametrize(
    ("at", "guards", "seen"),
    [
        (THREAD * 2, (), "threads 0 and 63 write 126 elements apart, not 63"),
        (index(127) - THREAD, (), "threads 1 and 0 write -1 elements apart, not 1"),
        (THREAD % 64 // 32 * 100 + THREAD % 32, (), "threads 0 and 32 write 100 elements apart, not 32"),
        (THREAD * 2, (THREAD < 2,), "threads 0 and 1 write 2 elements apart, not 1"),
    ],
)
def test_threads_that_write_elsewhere_are_named(at: Expr, guards: tuple[Expr, ...], seen: str) -> None:
    with pytest.raises(Refusal) as caught:
        check(at, *guards)
    assert (caught.value.code, caught.value.counterexample) == ("lanes-not-in-a-row", seen)


def test_what_cannot_be_enumerated_is_refused() -> None:
    without_end = Var("k", INDEX, 0, None)
    with pytest.raises(Refusal) as caught:
        check(THREAD * (without_end + 1))
    assert caught.value.counterexample == "the elements that they write cannot be enumerated" and not caught.value.proven


@pytest.mark.parametrize(("rounds", "enumerated"), [(1 << 15, True), ((1 << 15) + 1, False)])
def test_as_many_as_four_million_points_are_enumerated(rounds: int, enumerated: bool) -> None:
    k = Var("k", INDEX, 0, rounds - 1)
    at = THREAD % 64 + k * (k + 2 * THREAD + 1) % 2  # one of the factors is even, which their ranges do not tell
    if enumerated:
        check(at)
    else:
        with pytest.raises(Refusal) as caught:
            check(at)
        assert caught.value.counterexample == "the elements that they write cannot be enumerated"
