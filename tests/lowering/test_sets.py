"""Answers about integer sets against enumeration of their points, with isl and without it."""

import threading

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from tilelang.core.dtype import int64
from tilelang.core.expr import INDEX, Binary, Expr, Unary, Var, index
from tilelang.core.layout import evaluate
from tilelang.lowering import ir, sets

VARIABLES = (Var("x", INDEX, 0, 6), Var("y", INDEX, -2, 3), Var("thread", INDEX, 0, 7))

numbers = st.one_of(st.sampled_from(VARIABLES), st.integers(-9, 9).map(index))
indices = st.recursive(
    numbers,
    lambda e: st.one_of(
        st.builds(Binary, st.sampled_from(("+", "-", "min", "max")), e, e),
        st.builds(Binary, st.sampled_from(("//", "%")), e, st.integers(1, 5).map(index)),
        st.builds(Binary, st.just("*"), e, st.integers(-4, 4).map(index)),
    ),
    max_leaves=5,
)
comparisons = st.builds(Binary, st.sampled_from(("<", "<=", "==", "!=")), indices, indices)
conditions = st.recursive(
    comparisons,
    lambda c: st.one_of(st.builds(Binary, st.sampled_from(("and", "or")), c, c), st.builds(Unary, st.just("not"), c)),
    max_leaves=3,
)


POINTS = dict(zip(VARIABLES, np.meshgrid(*(np.arange(v.lower or 0, (v.upper or 0) + 1) for v in VARIABLES)), strict=True))


def truth(c: Expr) -> NDArray[np.bool_]:
    """Where a condition holds, over all points."""
    match c:
        case Unary("not", operand):
            return ~truth(operand)
        case Binary("and", left, right):
            return truth(left) & truth(right)
        case Binary("or", left, right):
            return truth(left) | truth(right)
    return np.broadcast_to(np.asarray(evaluate(c, POINTS), bool), POINTS[VARIABLES[0]].shape)


def exists(asked: list[Expr]) -> bool:
    """Whether some point meets all conditions."""
    return bool(np.logical_and.reduce([truth(c) for c in asked]).any())


@given(st.lists(conditions, min_size=1, max_size=4))
def test_sets_are_empty_as_enumeration_finds(asked: list[Expr]) -> None:
    assert sets.impossible(asked) == (not exists(asked)), [str(c) for c in asked]


@given(st.lists(conditions, min_size=1, max_size=4))
def test_an_example_is_a_point_of_the_set(asked: list[Expr]) -> None:
    found = sets.example(asked)
    if found is not None:
        at = np.logical_and.reduce([POINTS[v] == found.get(v.name, v.lower) for v in VARIABLES])
        assert all(truth(c)[at].all() for c in asked)
    assert (found is None) == (not exists(asked))


@given(st.lists(conditions, min_size=1, max_size=4), conditions)
def test_without_the_library_nothing_wrong_is_proven(asked: list[Expr], more: Expr) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sets, "_library", lambda: None)
        sets._impossible.cache_clear()
        proven = sets.impossible(asked), sets.implied(more, asked)
    sets._impossible.cache_clear()
    assert not (proven[0] and exists(asked))
    assert not (proven[1] and exists([*asked, Unary("not", more)]))


def test_what_is_beyond_a_piece_contradicts_what_is_inside_without_the_library(monkeypatch: pytest.MonkeyPatch) -> None:
    block, k = Var("block_x", INDEX, 0, 15), Var("k", INDEX, 0, 63)
    monkeypatch.setattr(sets, "_library", lambda: pytest.fail("isl is not asked"))
    sets._impossible.cache_clear()
    assert sets.impossible([block * 64 + k < 1000, index(1000) <= block * 64 + k])
    assert sets.impossible([block * 64 < 1000, index(1000 + 63) <= block * 64 + k])
    assert not sets.impossible([block * 64 + k < 1000, index(999) <= block * 64 + k])


def test_multiples_never_lie_between() -> None:
    block, lane = Var("block_x", INDEX, 0, 99), Var("lane", INDEX, 0, 7)
    assert sets.implied(block * 8 + lane < 400, [block * 8 < 400])
    assert not sets.implied(block * 8 + lane < 401, [block * 8 < 401])


def test_a_value_from_memory_is_any_number_of_its_range() -> None:
    unknown = Var("x", INDEX, 0, 6) * Var("y", INDEX, -2, 3)  # 17 is within its range, and no product is 17
    assert not sets.impossible([unknown == 17])
    assert sets.impossible([unknown < 3, index(5) <= unknown])


def test_a_value_of_a_gather_is_in_its_range() -> None:
    """A point is looked for by hand first: it may not take a value that the tensor does not hold."""
    table = ir.Buffer("table", int64, (8,), "global")
    row = ir.Load(table, (Var("x", INDEX, 0, 6),))
    assert not sets.impossible([row < 5])
    bounded = Binary("max", row, index(3))
    assert sets.impossible([bounded < 3])
    assert not sets.impossible([bounded < 4])


def test_a_question_that_takes_too_long_is_not_proven(monkeypatch: pytest.MonkeyPatch) -> None:
    x, y = Var("x", INDEX, 0, 999), Var("y", INDEX, 0, 999)
    asked = [x * 7 + y * 11 == 59]
    assert sets.impossible(asked)
    monkeypatch.setattr(sets, "_of_thread", threading.local())
    monkeypatch.setattr(sets, "MOST_OPERATIONS", 1)
    sets._impossible.cache_clear()
    assert not sets.impossible(asked)
    monkeypatch.setattr(sets, "MOST_OPERATIONS", 200_000)
    monkeypatch.setattr(sets, "_of_thread", threading.local())
    sets._impossible.cache_clear()
    assert sets.impossible(asked), "one question that took too long says nothing about the next"


def test_threads_ask_at_the_same_time() -> None:
    x, y = Var("x", INDEX, 0, 999), Var("y", INDEX, 0, 999)
    never = (59, 52, 48, 45, 41, 38, 37, 34, 31, 30, 27, 26)
    answers: dict[int, bool] = {}

    def ask(n: int) -> None:
        answers[n] = all(sets.impossible([x * 7 + y * 11 == total, x <= 500 + n]) for total in never)

    threads = [threading.Thread(target=ask, args=(n,)) for n in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert answers == dict.fromkeys(range(4), True)


@pytest.mark.parametrize(
    "factor, never", [(2**60, True), (2**61, False), (2**62, False)], ids=["fits", "wraps at 4", "wraps at 2"]
)
def test_a_sum_that_may_wrap_is_taken_for_no_number(factor: int, never: bool) -> None:
    """x + c * 2**62 is negative for c = 2."""
    x, c = Var("x", INDEX, 0, 15), Var("c", INDEX, 0, 4)
    assert sets.impossible([x + c * factor < 12, Binary("<", index(1), c)]) is never
