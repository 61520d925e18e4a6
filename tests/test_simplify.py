"""Simplification: equal values, intervals that hold, and nothing left to simplify."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tilelang.core import dtype as dt
from tilelang.core.expr import INDEX, Axis, Binary, Const, Expr, Select, Unary, Var, free, index, substitute, to_text
from tilelang.core.layout import evaluate
from tilelang.core.simplify import FALSE, TRUE, conjunction, from_linear, interval, linear, simplify, weighted_sum

VARIABLES = (Var("a", INDEX, 0, 7), Var("b", INDEX, 0, 0), Var("c", INDEX, -5, 11), Var("d", INDEX, 3, 100), Axis("i", 6))


def _join(parts: st.SearchStrategy[Expr]) -> st.SearchStrategy[Expr]:
    constants = (st.integers(1, 12) | st.integers(-5, -1)).map(index)
    return st.one_of(
        st.builds(Binary, st.sampled_from(("+", "-", "min", "max")), parts, parts),
        st.builds(Binary, st.just("*"), parts, st.integers(-6, 6).map(index)),
        st.builds(Binary, st.sampled_from(("//", "%")), parts, constants),
        st.builds(lambda e, c: Binary("+", Binary("*", Binary("//", e, c), c), Binary("%", e, c)), parts, constants),
        st.builds(lambda e, m, n: Binary("^", Binary("%", e, index(m)), n), parts, st.just(8), st.integers(0, 7).map(index)),
    )


INDICES = st.recursive(st.sampled_from(VARIABLES) | st.integers(-20, 20).map(index), _join, max_leaves=8)
COMPARISONS = st.builds(Binary, st.sampled_from(("<", "<=", "==", "!=")), INDICES, INDICES)
CONDITIONS = st.recursive(
    COMPARISONS, lambda parts: st.builds(Binary, st.sampled_from(("and", "or")), parts, parts), max_leaves=3
)


@st.composite
def values(draw: st.DrawFn) -> dict[Any, int]:
    """A value for every variable, inside its range."""
    return {v: draw(st.integers(*interval(v))) for v in VARIABLES}


@given(INDICES, values())
def test_an_index_keeps_its_value(e: Expr, at: dict[Any, int]) -> None:
    assert evaluate(simplify(e), at) == evaluate(e, at)
    assert evaluate(from_linear(linear(e)), at) == evaluate(e, at)


@given(CONDITIONS, values())
def test_a_condition_keeps_its_value(e: Expr, at: dict[Any, int]) -> None:
    assert bool(evaluate(simplify(e), at)) == bool(evaluate(e, at))


@given(INDICES, values())
def test_values_stay_in_the_interval(e: Expr, at: dict[Any, int]) -> None:
    low, high = interval(e)
    assert low is not None and high is not None, "every variable here has a range"
    assert low <= evaluate(e, at) <= high


@given(INDICES | CONDITIONS)
def test_a_second_time_changes_nothing(e: Expr) -> None:
    once = simplify(e)
    assert simplify(once) is once
    assert free(once) <= free(e)


@given(INDICES, values())
def test_known_variables_leave_a_constant(e: Expr, at: dict[Any, int]) -> None:
    known = simplify(substitute(e, {v: index(n) for v, n in at.items()}))
    assert known is index(evaluate(e, at))


@given(st.lists(st.tuples(INDICES, st.integers(-4, 300)), max_size=3))
def test_a_weighted_sum_is_the_linear_form_of_the_written_sum(parts: list[tuple[Expr, int]]) -> None:
    total: Expr = index(0)
    for e, factor in parts:
        total = total + e * factor
    assert weighted_sum([e for e, _ in parts], [factor for _, factor in parts]) == linear(total)


a, i = VARIABLES[0], VARIABLES[4]


@pytest.mark.parametrize(
    ("written", "simple"),
    [
        ((i * 8 + 3) // 8, "i"),
        ((i * 8 + 3) % 8, "3"),
        ((i * 8 + a) // 8, "i"),
        ((i * 12 + a) // 4, "i * 3 + a // 4"),
        (i // 2 // 3, "0"),
        (i // -2, "(0 - i) // 2"),
        (i % -4 + 3, "3 - (0 - i) % 4"),
        (Binary("//", i, index(0)), "0"),
        (Binary("%", i + a, index(0)), "0"),
        (a // 2 // 2, "a // 4"),
        (a % 6 % 3, "a % 3"),
        (a // 4 * 4 + a % 4, "a"),
        ((i * 77 + a // 3) // 3 * 9 + (i * 77 + a // 3) % 3 * 3 + a % 3, "i * 231 + a"),
        ((i * 231 + a) // 9 * 9 + (i * 77 + a // 3) % 3 * 3 + a % 3, "i * 231 + a"),
        ((i * 4 + 3) // 8, "i // 2"),
        ((i * 4 + a % 4) // 8, "i // 2"),
        ((i * 4 + a % 4) % 8, "i % 2 * 4 + a % 4"),
        ((i * 4 + a) % 8, "(i * 4 + a) % 8"),
        ((a * 4 % 16 + i % 4) // 4, "a % 4"),
        (a - a, "0"),
        (Binary("min", a, index(9)), "a"),
        (Binary("^", a, index(0)), "a"),
        (a < 8, "true"),
        (a + 1 <= i - 6, "false"),
        (Select(a < 8, i, a), "i"),
        (Unary("not", a < 0), "true"),
        (a + 3 < i + 1, "a + 2 < i"),
    ],
)
def test_the_rules_by_example(written: Expr, simple: str) -> None:
    assert to_text(simplify(written)) == simple


def test_values_of_the_computation_are_left_alone() -> None:
    x = Var("x", dt.float32)
    assert simplify((x + 1.0) - 1.0) is (x + 1.0) - 1.0


def test_conjunctions() -> None:
    assert conjunction([a < 8, i < 6]) is None
    assert conjunction([a < 8, a < 3]) is simplify(a < 3)
    assert conjunction([a < 0, i < 6]) is FALSE
    assert simplify(a <= 7) is TRUE and simplify(a < 7) is not TRUE and TRUE is Const(True, dt.bool_)
