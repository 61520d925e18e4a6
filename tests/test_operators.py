"""What Python's operators and NumPy's functions make of expressions: what they mean, and when two expressions are one."""

import copy
import math
import operator
import pickle
from collections.abc import Callable
from typing import Any, cast

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tilelang as tl
from tilelang.computations.computation import as_computation
from tilelang.core import dtype as dt
from tilelang.core.dtype import _FLOAT_RANGES
from tilelang.core.expr import Binary, Const, Pad, literal
from tilelang.core.operators import _UFUNCS
from tilelang.core.simplify import conjunction
from tilelang.errors import ComputationError

i, j = tl.axes(i=3, j=4)
X, N, B = tl.input("X", tl.float32, i, j), tl.input("N", tl.int32, i, j), tl.input("B", tl.bool, i, j)
FLOATS = np.array([[0.5, 1, 2, 1], [2.5, 1, 3, 0.25], [1, 1.5, 1, 4]], np.float32)
WHOLE = np.array([[1, 2, 3, 0], [4, 2, 1, 5], [6, 7, 2, 2]], np.int32)
TRUTH = WHOLE % 2 == 0
ARRAYS = {"X": FLOATS, "N": WHOLE, "B": TRUTH}


def value(expression: Any) -> Any:
    """What a definition of this expression evaluates to, its operands given above."""
    made = as_computation(tl.define("Y", tl.cast(expression, tl.float64), i, j))
    return made.evaluate(**{t.name: ARRAYS[t.name] for t in made.inputs})


ANY_ORDER: list[Callable[[Any, Any], Any]] = [
    operator.add, operator.sub, operator.mul, operator.truediv, operator.floordiv, operator.mod, operator.pow,
    operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge,
]  # fmt: skip
OF_INTEGERS: list[Callable[[Any, Any], Any]] = [operator.and_, operator.or_, operator.xor, operator.lshift, operator.rshift]


@pytest.mark.parametrize("apply", ANY_ORDER)
def test_operators_mean_what_numpy_means(apply: Callable[[Any, Any], Any]) -> None:
    for number in (2, 1.0, np.float32(2), np.int64(1)):
        np.testing.assert_allclose(value(apply(X[i, j], number)), apply(FLOATS, number), rtol=1e-6)
        np.testing.assert_allclose(value(apply(number, X[i, j])), apply(number, FLOATS), rtol=1e-6)
    np.testing.assert_allclose(value(apply(X[i, j], X[i, 0])), apply(FLOATS, FLOATS[:, :1]), rtol=1e-6)


@pytest.mark.parametrize("apply", OF_INTEGERS)
def test_operators_of_integers(apply: Callable[[Any, Any], Any]) -> None:
    for number in (2, np.int32(1)):
        np.testing.assert_array_equal(value(apply(N[i, j], number)), apply(WHOLE, number))
        np.testing.assert_array_equal(value(apply(number, N[i, j])), apply(np.int32(number), WHOLE))


@pytest.mark.parametrize("apply", [operator.and_, operator.or_, operator.xor])
def test_operators_of_conditions(apply: Callable[[Any, Any], Any]) -> None:
    np.testing.assert_array_equal(value(apply(B[i, j], X[i, j] == 1)), apply(TRUTH, FLOATS == 1))
    np.testing.assert_array_equal(value(apply(True, B[i, j])), apply(True, TRUTH))


@pytest.mark.parametrize("apply", [operator.neg, operator.pos, abs, round, math.floor, math.ceil])
def test_functions_of_python(apply: Callable[[Any], Any]) -> None:
    for tensor, array in ((X, FLOATS), (N, WHOLE)):
        np.testing.assert_array_equal(value(apply(tensor[i, j] - 2)), np.vectorize(apply)(array - 2))
    assert round(N[i, j]) is N[i, j]


def test_divmod() -> None:
    for found, expected in zip(divmod(N[i, j], 2), divmod(WHOLE, 2), strict=True):
        np.testing.assert_array_equal(value(found), expected)
    assert divmod(7, N[i, j]) == (7 // N[i, j], 7 % N[i, j])


@pytest.mark.parametrize("name", _UFUNCS)
def test_functions_of_numpy(name: str) -> None:
    function = getattr(np, name)
    integers, conditions = ("bitwise", "shift", "invert"), ("logical",)
    part, array = (N, WHOLE) if any(w in name for w in integers) else (B, TRUTH) if name.startswith(conditions) else (X, FLOATS)
    left, others = part[i, j], (array, array[:, :1])[: function.nin]
    arguments = (left, part[i, 0])[: function.nin]
    np.testing.assert_allclose(value(function(*arguments)), function(*others), rtol=1e-6)


def test_functions_of_whole_numbers() -> None:
    assert tl.floor(N[i, j]) is tl.ceil(N[i, j]) is tl.round(N[i, j]) is N[i, j]
    assert np.isnan(N[i, j]) is tl.isnan(N[i, j]) is Const(False, dt.bool_)


# ---------------------------------------------------------------- equality


def test_equality_is_a_condition() -> None:
    assert (X[i, j] == 0) is tl.equal(X[i, j], 0) and (X[i, j] != 0) is tl.not_equal(X[i, j], 0)
    assert isinstance(i == j, Binary) and (i == j).dtype is dt.bool_
    diagonal = tl.define("trace", tl.sum(N[i, j], over=(i, j), where=i == j))
    assert as_computation(diagonal).evaluate(N=WHOLE) == np.trace(WHOLE)
    chosen = tl.define("chosen", tl.where((X[i, j] == 1) & (i != j), 1.0, 0.0), i, j)
    expected = np.where((FLOATS == 1) & ~np.eye(3, 4, dtype=bool), 1.0, 0.0)
    np.testing.assert_array_equal(as_computation(chosen).evaluate(X=FLOATS), expected)


def test_what_is_no_operand_is_not_equal() -> None:
    others: list[Any] = [None, "i", 1j, (i,), tl.float32, object()]
    assert not any(i == other for other in others) and all(i != other for other in others)


def test_containers_find_expressions() -> None:
    assert i in {i, j} and {i: 1, j: 2}[j] == 2 and (i, j) == (i, j) and [i, j].index(i) == 0
    assert X[i, j] not in {i, j, X[i, 0]}
    assert pickle.loads(pickle.dumps(i)) is copy.deepcopy(i) is i


@pytest.mark.parametrize(
    "question", ["bool(i == j)", "j in (i, j)", "(i,) == (j,)", "not X[i, j] != 0", "1 if X[i, j] == 0 else 2"]
)
def test_a_comparison_is_not_known_in_a_definition(question: str) -> None:
    with pytest.raises(ComputationError, match="not known until the kernel runs"):
        eval(question, {"i": i, "j": j, "X": X})


def test_inside_the_compiler_equal_steps_and_tuples_are_of_the_same_expressions() -> None:
    layout = tl.layout(lambda m, k: (m, k // 8, k % 8))
    assert layout == tl.layout(lambda m, k: (m, k // 8, k % 8)) != tl.layout(lambda m, k: (m, k // 4, k % 4))
    inside: dict[str, Any] = {"__name__": "tilelang.somewhere", "a": N[i, j], "b": tl.cast(N[i, j], tl.int64)}
    for question in ("a == b", "b == a", "a in (b,)", "(a, a) == (a, b)", "a != a", "not (a,) != (b,)"):
        assert not eval(f"bool({question})", inside), question
    for question in ("a == a", "a != b", "a in (b, a)", "(a, b) == (a, b)"):
        assert eval(f"bool({question})", inside), question


def test_an_expression_equals_its_conversion_where_the_kernel_runs() -> None:
    np.testing.assert_array_equal(value(N[i, j] == tl.cast(N[i, j], tl.int64)), np.ones_like(WHOLE))


def test_conditions_join() -> None:
    found = conjunction([i == 1, j == 2])
    assert found is not None and str(found) == "i == 1 and j == 2"


# ---------------------------------------------------------------- numbers


@given(st.sampled_from([t for t in dt.ALL.values() if t.is_float]), st.floats(allow_nan=False), st.integers(-300, 300))
def test_floats_hold_what_numpy_keeps(t: dt.DType, mantissa: float, exponent: int) -> None:
    number = math.ldexp(math.frexp(mantissa)[0], exponent) if math.isfinite(mantissa) else mantissa
    with np.errstate(all="ignore"):
        kept = np.float64(np.asarray(number).astype(t.numpy))
    assert t.holds(number) == (np.isinf(kept) == np.isinf(number) and not np.isnan(kept) and (kept == 0) == (number == 0))


@pytest.mark.parametrize("t", [dt.float8_e4m3, dt.float8_e5m2, dt.float16, dt.bfloat16, dt.float32])
def test_floats_hold_up_to_where_they_round(t: dt.DType) -> None:
    for edge in _FLOAT_RANGES[t.name]:
        step = 2.0**-14 if t.bits < 32 and t is not dt.float16 else 2.0**-52  # ml_dtypes rounds to float32 first
        for number in (edge, edge * (1 - step), edge * (1 + step)):
            with np.errstate(all="ignore"):
                kept = np.float64(np.asarray(number).astype(t.numpy))
            assert t.holds(number) == (bool(np.isfinite(kept)) and kept != 0), number


@given(st.sampled_from([t for t in dt.ALL.values() if t.is_integer and not t.later]), st.integers(-(1 << 65), 1 << 65))
def test_integers_hold_their_range(t: dt.DType, number: int) -> None:
    info = np.iinfo(t.numpy)
    assert t.holds(number) == (int(info.min) <= number <= int(info.max))
    assert t.holds(0.0) and not t.holds(0.5) and not t.holds(math.inf) and not t.holds(math.nan)


def test_small_floats_work_with_numbers_that_only_float32_holds() -> None:
    half = tl.input("H", tl.float16, i, j)
    scaled = tl.define("Y", half[i, j] * 1e-6 * 100000, i, j)
    found = as_computation(scaled).evaluate(H=np.full((3, 4), 1000, np.float16))
    np.testing.assert_allclose(found, 100, rtol=1e-3)
    with pytest.raises(ComputationError, match="infinity in float16"):
        tl.where(i < j, half[i, j], -1e9)
    assert tl.where(i < j, half[i, j], -math.inf).dtype is dt.float16


def test_literals_keep_their_value() -> None:
    assert literal(3, dt.float32) is Const(3.0, dt.float32) and literal(2.0, dt.int32) is Const(2, dt.int32)
    assert str(tl.cast(1e300, tl.float64)) == "1e+300"
    padded = tl.pad(N[i, j - 1], 2.0)
    assert isinstance(padded, Pad) and padded.value is Const(2, dt.int32)


def test_where_and_round_of_numpy() -> None:
    i = tl.axes(i=4)
    x = cast(Any, tl.input("X", tl.float32, i)[i])
    given = np.array([-1.5, 0.5, 2.5, np.inf], np.float32)
    for value, expected in (
        (np.where(x > 0, x, 0.0), np.where(given > 0, given, 0)),
        (np.round(x), np.round(given)),
        (np.round(x, 0), np.round(given)),
        (round(x, 0), np.round(given)),
        (round(x * 10) / 10, np.round(given * 10) / 10),
    ):
        np.testing.assert_array_equal(tl.computation("c", tl.define("Y", value, i)).evaluate(X=given), expected)
