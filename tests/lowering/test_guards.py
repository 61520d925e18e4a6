"""Guards that are dropped make no difference: random statements run with those that are kept and with all of them."""

import itertools
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

import tilelang as tl
from tilelang.core.dtype import float32, int32
from tilelang.core.expr import INDEX, Binary, Const, Expr, Var, const, index
from tilelang.core.layout import evaluate
from tilelang.lowering.guards import FOLDED, IMPLIED, UNREAD, Access, Effect, counterexample, settle
from tilelang.lowering.pipeline import lower

I, K = Var("i", INDEX, 0, 7), Var("k", INDEX, 0, 7)
A, B = Var("A", float32), Var("B", float32)
ZERO = const(0.0, float32)


def test_a_tail_of_a_reduction_whose_operands_are_filled() -> None:
    bound = K < 5
    filled = [Access(x, there=(K < 8,), fill=ZERO, real=(bound,)) for x in (A, B)]
    update = Effect(value=A * B, identity=ZERO)
    assert settle([bound], [], filled, update).dropped == ((bound, FOLDED),)
    assert [str(c) for c in settle([bound], [], filled[:1], update).conditions] == ["k < 5"]


def test_a_fill_folds_only_where_both_operands_have_it() -> None:
    """0 times what is not filled may be NaN."""
    bound = K < 5
    half = [Access(A, fill=ZERO, real=(bound,)), Access(B, fill=ZERO, real=(K < 6,))]
    found = settle([bound], [], half, Effect(value=A * B, identity=ZERO))
    assert found.conditions == [bound]
    assert counterexample(bound, found, []) is not None


def test_a_point_of_an_output_that_nobody_reads() -> None:
    bound = I < 5
    assert settle([bound], [], [Access(A, there=(I < 8,))], Effect(stored=(bound,))).dropped == ((bound, UNREAD),)
    outside = settle([bound], [], [Access(A, there=(I < 7,))], Effect(stored=(bound,)))
    assert outside.kept == ((bound, "where it fails, A is out of bounds or was never written"),)


def test_what_the_loops_keep_is_no_guard() -> None:
    assert settle([I * 8 + K < 40], [I < 5], [], Effect()).dropped == ((I * 8 + K < 40, IMPLIED),)


def test_a_condition_is_judged_with_those_dropped_before_it() -> None:
    """Each could be dropped if the other stood: together they let the read out of its buffer."""
    conditions = [I < 4, K < 4]
    access = Access(A, there=(I + K < 11,))
    found = settle(conditions, [], [access], Effect(stored=tuple(conditions)))
    assert found.conditions == [K < 4]


bounds = st.builds(
    lambda e, n: Binary("<", e, index(n)), st.sampled_from([I, K, I + K, I * 2 + K, I - K + 7, (I + K) // 2]), st.integers(1, 12)
)


@st.composite
def statements(draw: st.DrawFn) -> tuple[list[Expr], list[Access], Effect]:
    """An update of a state by A * B, A + B or a maximum, whose operands are filled beyond some bounds."""
    conditions: list[Expr] = list(draw(st.lists(bounds, min_size=1, max_size=4)))
    op, identity = draw(st.sampled_from([("*", ZERO), ("+", ZERO), ("max", const(-math.inf, float32))]))
    fills = st.sampled_from([None, identity])
    accesses = [
        Access(
            x, there=tuple(draw(st.lists(bounds, max_size=2))), fill=draw(fills), real=tuple(draw(st.lists(bounds, max_size=3)))
        )
        for x in (A, B)
    ]
    stored = tuple(draw(st.lists(st.sampled_from(conditions), max_size=2)))
    return conditions, accesses, Effect(stored, Binary(op, A, B), identity)


@given(statements())
def test_points_that_come_with_a_dropped_condition_change_nothing(
    statement: tuple[list[Expr], list[Access], Effect],
) -> None:
    conditions, accesses, effect = statement
    found = settle(conditions, [], accesses, effect)
    assert {*found.conditions, *(c for c, _ in found.dropped)} <= {*conditions}
    for i, k in itertools.product(range(8), range(8)):
        point = {I: i, K: k}
        holds = {c: bool(evaluate(c, point)) for c in conditions}
        if all(holds.values()) or not all(holds[c] for c in found.conditions):
            continue
        assert all(bool(evaluate(c, point)) for a in accesses for c in a.there), "it reads what is there"
        if all(bool(evaluate(c, point)) for c in effect.stored):
            filled = [a.fill is not None and not all(bool(evaluate(c, point)) for c in a.real) for a in accesses]
            assert all(filled) and effect.identity is not None
            assert isinstance(effect.value, Binary) and effect.value.op in ("*", "+", "max")


@pytest.mark.parametrize("loaded", [True, False])
def test_the_options_print_why_guards_stand_or_not(capsys: pytest.CaptureFixture[str], loaded: bool) -> None:
    i, k = tl.axes(i=100, k=70)
    x = tl.input("X", tl.float32, i, k)
    schedule = tl.schedule(tl.define("Y", tl.sum(x[i, k], over=k), i)).tile(i=16).to(tl.block).accumulate(tl.register).split(k=8)
    schedule = schedule.load("X", tl.shared) if loaded else schedule
    lower(schedule.computation, schedule.tile(i=2).to(tl.thread).steps, tl.load_profile("ampere"), tl.Options(debug="guards"))
    printed = capsys.readouterr().err
    decided = "  dropped: " if loaded else "  kept:    "
    assert f"{decided}block_x * 16 + thread * 2 + i < 100: " in printed
    assert all("(such as block_x = 6, " in line for line in printed.splitlines() if line.startswith("  kept:    block_x"))
    assert "only elements that exist are stored" in printed


def test_a_value_of_several_members_is_not_folded() -> None:
    bound = K < 5
    access = Access(A, fill=Const(0, int32), real=(bound,))
    assert settle([bound], [], [access], Effect()).conditions == [bound]
