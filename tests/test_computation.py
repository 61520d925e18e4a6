"""Definitions: what they become, what they refuse, and their text."""

import subprocess
import sys
from typing import Any

import numpy as np
import pytest

import tilelang as tl
from tilelang.computations import functions
from tilelang.computations.computation import Definition, as_computation, axes, computation
from tilelang.computations.define import define
from tilelang.computations.elaborate import free_axes
from tilelang.core import dtype as dt
from tilelang.core.expr import Binary, Expr, Reduce, Select
from tilelang.errors import ComputationError


def matmul(m: int = 4, n: int = 5, k: int = 6, dtype: dt.DType = dt.float32) -> tl.Tensor:
    i, j, r = axes(m=m, n=n, k=k)
    a, b = tl.input("A", dtype, i, r), tl.input("B", dtype, r, j)
    made: tl.Tensor = define("C", tl.sum(a[i, r] * b[r, j], over=r), i, j)
    return made


def welford(left: Any, right: Any) -> Any:
    n = left[2] + right[2]
    d = right[0] - left[0]
    safe = tl.maximum(n, 1.0)
    return left[0] + d * right[2] / safe, left[1] + right[1] + d * d * left[2] * right[2] / safe, n


def names(tensor: tl.Tensor) -> list[str]:
    return [t.name for d in as_computation(tensor).definitions for t in d.tensors]


def definition_of(tensor: tl.Tensor) -> Definition:
    assert tensor.definition is not None
    return tensor.definition


# ---------------------------------------------------------------- the invariant


def assert_invariant(made: Definition) -> None:
    first = made.reduction
    if first is None:
        assert len(made.tensors) == 1
        assert not any(isinstance(e, Reduce) for e in made.values[0].walk())
    else:
        assert made.values == tuple(first.replace(member=i) for i in range(len(first.values)))
        assert not any(isinstance(e, Reduce) for v in first.values for e in v.walk())
    for t, v in zip(made.tensors, made.values, strict=True):
        assert t.dtype == v.dtype and t.dims == made.axes and made.tensors[t.member] is t
        assert free_axes(v) <= set(made.axes)


def test_a_plain_sum_is_one_reduction() -> None:
    made = matmul()
    assert names(made) == ["C"] and made.definition is not None
    assert made.definition.reduction is made.definition.values[0]
    assert made.shape == (4, 5) and made.dtype == dt.float32


def test_softmax_in_one_line_becomes_three_definitions() -> None:
    i, j = axes(i=4, j=8)
    x = tl.input("X", dt.float32, i, j)
    e = tl.exp(x[i, j] - tl.max(x[i, j], over=j))
    made = define("S", e / tl.sum(e, over=j), i, j)
    assert names(made) == ["S_max", "S_sum", "S"]
    for d in as_computation(made).definitions:
        assert_invariant(d)
    assert as_computation(made).tensor("S_sum").hidden and as_computation(made).tensor("S_sum").shape == (4,)


def test_a_nested_reduction_keeps_the_axes_around_it() -> None:
    i, j, k = axes(i=3, j=4, k=5)
    x = tl.input("X", dt.float32, i, j, k)
    made = define("y", tl.max(tl.sum(x[i, j, k], over=k), over=j), i)
    inner = as_computation(made).definitions[0]
    assert [a.name for a in inner.axes] == ["i", "j"] and names(made) == ["y_sum", "y"]
    for d in as_computation(made).definitions:
        assert_invariant(d)


def test_a_nested_reduction_of_an_axis_itself_depends_on_it() -> None:
    i, k = axes(i=3, k=5)
    x = tl.input("X", dt.int64, i)
    made = define("y", tl.sum(i, over=k) - x[i], i)
    assert [a.name for a in as_computation(made).definitions[0].axes] == ["i"]
    assert tl.compile(made, "cpu")([1, 1, 1]).tolist() == as_computation(made).evaluate(X=[1, 1, 1]).tolist() == [-1, 4, 9]


def test_an_axis_that_is_reduced_and_ranged_over_is_two() -> None:
    i, j = axes(i=3, j=4)
    x = tl.input("X", dt.float32, i, j)
    made = define("y", x[i, j] / tl.sum(x[i, j], over=j), i, j)
    assert names(made) == ["y_sum", "y"] and [a.name for a in as_computation(made).definitions[0].axes] == ["i"]


def test_half_precision_sums_have_a_float32_state() -> None:
    made = matmul(dtype=dt.float16)
    assert made.dtype == dt.float16 and names(made) == ["C_sum", "C"]
    state, output = as_computation(made).definitions
    assert state.tensors[0].dtype == dt.float32
    assert str(state.values[0]) == "sum[k](cast(A[m, k], float32) * cast(B[k, n], float32))"
    assert str(output.values[0]) == "cast(C_sum[m, n], float16)"


def test_half_precision_work_is_rounded_only_where_it_is_stored() -> None:
    i = axes(i=4)
    x = tl.input("X", dt.float16, i)
    made = define("y", tl.cast(tl.exp(x[i]) * 0.1, dt.bfloat16) + 1, i)
    (definition,) = as_computation(made).definitions
    assert made.dtype == dt.bfloat16
    assert str(definition.values[0]) == "cast(exp(cast(X[i], float32)) * 0.1 + 1.0, bfloat16)"
    moved = define("z", tl.where(i < 2, x[i], 0), i)
    assert str(definition_of(moved).values[0]) == "where(i < 2, X[i], 0.0)"


def test_small_integers_work_in_32_bits() -> None:
    i, k = axes(i=4, k=4)
    x = tl.input("X", dt.int8, i, k)
    total = define("total", tl.sum(x[i, k] * x[i, k], over=k), i)
    assert (
        total.dtype == dt.int32 and str(definition_of(total).values[0]) == "sum[k](cast(X[i, k], int32) * cast(X[i, k], int32))"
    )
    assert define("wrapped", x[i, 0] * x[i, 0], i).dtype == dt.int8


def test_a_tuple_reduction_is_one_definition() -> None:
    i, j = axes(i=4, j=8)
    x = tl.input("X", dt.float32, i, j)
    mean, m2, count = define(("mean", "m2", "count"), tl.reduce(welford, (0, 0, 0), (x[i, j], 0.0, 1.0), over=j), i)
    assert mean.definition is m2.definition is count.definition and [t.member for t in (mean, m2, count)] == [0, 1, 2]
    assert_invariant(definition_of(mean))
    # One member alone is read from a hidden definition.
    variance = define("variance", tl.reduce(welford, (0, 0, 0), (x[i, j], 0.0, 1.0), over=j)[1] / 8, i)
    assert names(variance) == ["variance_reduce_0", "variance_reduce_1", "variance_reduce_2", "variance"]


def test_argmax_gives_an_index_with_a_range() -> None:
    i, j = axes(i=4, j=8)
    x, table = tl.input("X", dt.float32, i, j), tl.input("T", dt.float32, j)
    best = define("best", tl.argmax(x[i, j], over=j), i)
    assert best.dtype == dt.int32 and best.range == (0, 8)
    assert define("y", table[best[i]], i).shape == (4,)


def test_a_reduction_under_a_condition_takes_it_along() -> None:
    i, k = axes(i=4, k=3)
    x = tl.input("X", dt.float32, i, k)
    made = define("y", tl.where(i > 0, tl.sum(x[i - 1, k], over=k), 0), i)
    inner = as_computation(made).definitions[0].reduction
    assert inner is not None and str(inner.condition) == "0 < i"
    safe = define("z", tl.where(i > 0, tl.sum(x[i, k], over=k), 0), i)
    plain = as_computation(safe).definitions[0].reduction
    assert plain is not None and plain.condition is None


def test_conditions_on_data_become_choices() -> None:
    i, k = axes(i=4, k=3)
    x = tl.input("X", dt.float32, i, k)
    reduction = definition_of(define("y", tl.max(x[i, k], over=k, where=x[i, k] < 0), i)).reduction
    assert reduction is not None and reduction.condition is None and isinstance(reduction.values[0], Select)
    reduction = definition_of(define("z", tl.max(x[i, k], over=k, where=k <= i), i)).reduction
    assert reduction is not None and reduction.condition is not None


def test_wide_expressions_that_share_parts_are_quick() -> None:
    i = axes(i=4)
    value: Expr = tl.input("X", dt.float32, i)[i]
    for _ in range(40):
        value = value * value + 1
    assert len(definition_of(define("y", value, i)).reads) == 1


def test_parts_that_an_expression_shares_are_definitions() -> None:
    """Written out, this expression has 2e29 operations."""
    i = axes(i=4)
    x = np.array([-1.5, 0.0, 0.75, 100.0], np.float32)
    value: Expr = tl.input("X", dt.float32, i)[i]
    expected = x
    for _ in range(60):
        value = tl.where(value > 1, value * 0.5, tl.minimum(-value, 3.0) + 1)
        expected = np.where(expected > 1, expected * np.float32(0.5), np.minimum(-expected, np.float32(3)) + np.float32(1))
    whole = computation("c", define("y", value, i))
    np.testing.assert_array_equal(whole.evaluate(X=x), expected)
    np.testing.assert_array_equal(tl.compile(whole)(x), expected)
    assert tl.parse(whole.text).computation().text == whole.text


def test_parts_of_small_floats_are_not_rounded() -> None:
    i = axes(i=4)
    value: Expr = tl.input("X", dt.float16, i)[i]
    X = expected = np.array([0.1, 0.2, 0.3, 0.4], np.float16).astype(np.float32)
    for _ in range(12):
        value = value * value - 1
        expected = expected * expected - 1
    whole = computation("c", define("y", value, i))
    assert {d.tensors[0].dtype for d in whole.definitions} == {dt.float32, dt.float16} and len(whole.definitions) > 1
    assert np.array_equal(whole.evaluate(X=X.astype(np.float16)), expected.astype(np.float16))


def test_parts_of_small_integers_stay() -> None:
    i = axes(i=4)
    value: Expr = tl.input("X", dt.int16, i)[i]
    for _ in range(12):
        value = value * value + 1
    assert [tensor.name for tensor in definition_of(define("y", value, i)).reads] == ["X"]


def test_parts_of_indices_and_names_that_are_taken_stay() -> None:
    i, j = axes(i=8, j=2)
    flat, taken = tl.input("Z", dt.float32, z=2), tl.input("y_part_0", dt.float32, i, j)
    place = (i * 16 + j * 2) + (i - j)
    value = flat[place - i * 17] + taken[i, j]
    for _ in range(11):
        value = value * value + 1
    whole = computation("c", define("y", value, i, j))
    arrays = {"Z": np.array([0.5, -0.25], np.float32), "y_part_0": np.zeros((8, 2), np.float32)}
    assert tl.compile(whole).check()
    assert whole.evaluate(**arrays).shape == (8, 2)


@pytest.mark.slow
@pytest.mark.parametrize("kind", [dt.float32, dt.float16, dt.float64, dt.int32])
def test_parts_of_a_deep_expression_become_definitions(kind: dt.DType) -> None:
    """Operations may be nested deeper than Python's stack; the parts round nothing, whatever the type."""
    i, k = axes(i=4, k=3)
    X, Z = tl.input("X", kind, i), tl.input("Z", kind, i, k)
    value: Expr = tl.sum(Z[i, k], over=k)
    for n in range(2500):
        value = tl.minimum(value + X[i], n + 1) if n % 2 else value - X[i]
    whole = computation("c", define("y", value, i))
    assert [d.tensors[0].name for d in whole.definitions][:2] == ["y_part_0", "y_part_1"]
    arrays = {"X": np.array([1, 0, 3, 4]).astype(kind.numpy), "Z": np.arange(12).reshape(4, 3).astype(kind.numpy)}
    expected = arrays["Z"].astype(np.float64).sum(axis=1)
    for n in range(2500):
        expected = np.minimum(expected + arrays["X"], n + 1) if n % 2 else expected - arrays["X"]
    kernel = tl.compile(whole)
    assert np.array_equal(whole.evaluate(**arrays), expected) and np.array_equal(kernel(**arrays), expected)


def test_a_long_expression_may_be_reduced() -> None:
    """The reduction itself is no part of its definition: it used to become a definition of its own without end."""
    i, j = axes(i=4, j=5)
    value: Expr = tl.input("X", dt.float64, i, j)[i, j]
    for _ in range(9):
        value = tl.sin(value) + value * value
    whole = computation("c", define("y", tl.sum(value, over=j), i))
    assert [d.tensors[0].name for d in whole.definitions] == ["y"]
    expected = x = np.linspace(-0.7, 0.5, 20).reshape(4, 5)
    for _ in range(9):
        expected = np.sin(expected) + expected * expected
    np.testing.assert_allclose(whole.evaluate(X=x), expected.sum(axis=1), rtol=1e-12)


def test_tensors_of_one_name_are_refused_by_the_name_that_was_given() -> None:
    i, j = axes(i=4, j=5)
    X = tl.input("X", dt.float32, i, j)
    total = define("y", 1 + tl.sum(X[i, j], over=j), i)
    with pytest.raises(ComputationError, match="are named y: y: float32"):
        computation("c", (total, define("y", 2 + tl.sum(X[i, j], over=j), i)))
    with pytest.raises(ComputationError, match=r"named y_sum: .* which is part of another definition") as caught:
        computation("c", (total, define("y_sum", X[i, 0] * 2, i)))
    assert caught.value.code == "name-twice"


def test_a_deep_expression_may_be_reduced() -> None:
    """Parts inside the reduction are over its axes, too."""
    i, j = axes(i=4, j=5)
    value: Expr = tl.input("X", dt.float64, i, j)[i, j]
    for _ in range(300):
        value = abs(value) * 0.5 - 1.0
    whole = computation("c", define("y", tl.sum(value, over=j, where=j <= i) + 1.0, i))
    (first, *_) = whole.definitions
    assert first.tensors[0].name == "y_part_0" and [a.name for a in first.axes] == ["i", "j"]
    assert tl.parse(whole.text).computation().text == whole.text
    expected = x = np.linspace(-0.7, 0.5, 20).reshape(4, 5)
    for _ in range(300):
        expected = np.abs(expected) * 0.5 - 1.0
    total = np.where(np.tri(4, 5, dtype=bool), expected, 0.0).sum(axis=1) + 1.0
    np.testing.assert_allclose(whole.evaluate(X=x), total, rtol=1e-12)
    assert not tl.simulate(tl.compile(whole, tl.target("opencl", profile="simulated")), X=x).findings


@pytest.mark.slow
def test_conditions_nested_too_deeply_are_refused() -> None:
    i = axes(i=4)
    X = tl.input("X", dt.float32, i)
    condition = X[i] > 0
    for n in range(1500):
        condition = condition & (X[i] != n) if n % 2 else condition | (X[i] == n)
    with pytest.raises(ComputationError) as caught:
        define("y", tl.where(condition, X[i], 0), i)
    assert caught.value.code == "too-deep"


# ---------------------------------------------------------------- the DAG


def test_inputs_and_definitions_stand_in_the_order_they_were_made() -> None:
    i = axes(i=4)
    b, a = tl.input("B", dt.float32, i), tl.input("A", dt.float32, i)
    tl.input("unused", dt.float32, i)
    mid = define("mid", a[i] + 1, i)
    define("other", mid[i] * 2, i)
    out = define("out", mid[i] * b[i], i)
    whole = computation("whole", (out, mid))
    assert [t.name for t in whole.inputs] == ["B", "A"]
    assert [d.tensors[0].name for d in whole.definitions] == ["mid", "out"]
    assert [t.name for t in whole.outputs] == ["out", "mid"]


def test_text_and_hash() -> None:
    made = as_computation(matmul())
    assert made.text == (
        "computation C {\n"
        "  input A: float32[m: 4, k: 6]\n"
        "  input B: float32[k: 6, n: 5]\n"
        "  output C[m, n] = sum[k] A[m, k] * B[k, n]\n"
        "}\n"
    )
    assert made.hash == as_computation(matmul()).hash != as_computation(matmul(k=7)).hash
    assert as_computation(matmul(dtype=dt.float16)).text.count("cast") == 0


def test_text_says_axes_ranges_and_licences() -> None:
    i, k, e = axes(i=4, k=3, e=8)
    ids = tl.input("ids", dt.int32, i, range=(0, 10))
    table = tl.input("table", dt.float32, row=10, e=8)
    made = define("y", tl.sum(table[ids[i], e], over=k, where=k <= i), i, e, allow=("reorder", "tf32"))
    assert as_computation(made).text == (
        "computation y {\n"
        "  input ids: int32[i: 4] in 0 .. 10\n"
        "  input table: float32[row: 10, e: 8]\n"
        "  axis k: 3\n"
        "  output y[i, e] = sum[k: k <= i] table[cast(ids[i], int64), e] allow reorder, tf32\n"
        "}\n"
    )


def test_hash_is_the_same_in_every_process() -> None:
    program = "import tests.test_computation as t; print(t.as_computation(t.matmul()).hash)"
    program = program.replace("tests.test_computation", "test_computation")
    found = {
        subprocess.run(
            [sys.executable, "-c", f"import sys; sys.path.insert(0, {str(__file__.rsplit('/', 1)[0])!r}); {program}"],
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": ":".join(sys.path)},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(found) == 1


# ---------------------------------------------------------------- functions

FUNCTIONS = (
    "exp",
    "exp2",
    "expm1",
    "log",
    "log2",
    "log1p",
    "sqrt",
    "rsqrt",
    "sin",
    "cos",
    "tanh",
    "erf",
    "sigmoid",
)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_float_functions_refuse_integers(name: str) -> None:
    i = axes(i=4)
    assert getattr(tl, name)(tl.input("X", dt.float32, i)[i]).dtype == dt.float32
    with pytest.raises(ComputationError, match=f"tl.{name} does not apply to"):
        getattr(tl, name)(tl.input("N", dt.int32, i)[i])


def test_every_listed_function_exists() -> None:
    assert all(callable(getattr(tl, name)) for name in functions.__all__)


def test_where_promotes_and_takes_numbers() -> None:
    i = axes(i=4)
    x, n = tl.input("X", dt.float32, i), tl.input("N", dt.int8, i)
    assert tl.where(x[i] > 0, n[i], 1.5).dtype == dt.int8 or tl.where(x[i] > 0, n[i], 1.5).dtype == dt.float32
    assert tl.where(x[i] > 0, n[i], x[i]).dtype == dt.float32
    assert isinstance(tl.equal(x[i], 0), Binary) and tl.not_equal(x[i], 0).dtype == dt.bool_


# ---------------------------------------------------------------- what a stranger wrote


@pytest.mark.parametrize("element", ["X[i, j] / Y[i, j]", "tl.sqrt(X[i, j])", "tl.log(X[i, j])", "X[i, j] - X[i, j]"])
def test_a_combiner_is_tried_on_finite_states(element: str) -> None:
    """Whether a combiner is accepted does not depend on how its elements may become infinite or NaN."""

    def welford(a: Any, b: Any) -> Any:
        (n1, mean1, m1), (n2, mean2, m2) = a, b
        total = n1 + n2
        share, delta = n2 / tl.maximum(total, 1.0), mean2 - mean1
        return total, mean1 + delta * share, m1 + m2 + delta * delta * n1 * share

    i, j = axes(i=2, j=10)
    X, Y = tl.input("X", dt.float32, i, j), tl.input("Y", dt.float32, i, j)
    value = eval(element, {"tl": tl, "X": X, "Y": Y, "i": i, "j": j})
    assert len(tl.reduce(welford, (0.0, 0.0, 0.0), (1.0, value, 0.0), over=j)) == 3
    with pytest.raises(ComputationError) as caught:
        tl.reduce(lambda a, b: a - b, 0.0, value + 1.0, over=j)
    assert caught.value.code == "combiner-refuted"


@pytest.mark.parametrize(
    ("kind", "index", "given", "places"),
    [
        (dt.uint8, lambda x: 15 - tl.minimum(x, 15), [0, 15, 255], [15, 0, 0]),
        (dt.uint8, lambda x: (x + x) // 34, [0, 100, 255], [0, 5, 15]),
        (dt.uint64, lambda x: tl.minimum(x, 15), [0, 15, 2**64 - 1], [0, 15, 15]),
        (dt.uint64, lambda x: x % 16, [0, 17, 2**64 - 1], [0, 1, 15]),
        (dt.int8, lambda x: (x + 100 + 28) // 16, [-128, 0, 127], [0, 8, 15]),
    ],
)
def test_types_bound_sums_in_an_index(kind: dt.DType, index: Any, given: list[int], places: list[int]) -> None:
    i, v = axes(i=3, v=16)
    X, T = tl.input("X", kind, i), tl.input("T", dt.float32, v)
    kernel = tl.compile(define("Y", T[index(X[i])], i))
    table = np.arange(16, dtype=np.float32)
    assert np.array_equal(kernel(np.array(given, kind.numpy), table), table[places])


def test_a_condition_on_data_allows_an_index_without_a_range() -> None:
    i, v = axes(i=6, v=4)
    ids, T = tl.input("ids", dt.int32, i), tl.input("T", dt.float32, v)
    given, table = np.array([0, 3, 4, -1, 2**31 - 1, -(2**31)], np.int32), np.arange(1, 5, dtype=np.float32)
    for condition in (ids[i] >= 0, (ids[i] >= 0) & (ids[i] < 4), ids[i] != 7):
        kernel = tl.compile(define("Y", tl.where(condition, T[ids[i]], 0.0), i))
        assert np.array_equal(kernel(given, table), [1, 4, 0, 0, 0, 0])


def test_a_condition_on_data_allows_a_read_at_a_reduction_of_ranged_data() -> None:
    i, k = axes(i=5, k=4)
    ids, T = tl.input("ids", dt.int32, i, k, range=(0, 5)), tl.input("T", dt.float32, d=4)
    total = tl.sum(ids[i, k], over=k)
    kernel = tl.compile(define("Y", tl.where(ids[i, 0] > 0, T[total], -1.0), i))
    given = np.array([[1, 0, 0, 0], [0, 1, 1, 1], [1, 1, 1, 0], [1, 4, 0, 0], [2, 0, 0, 0]], np.int32)
    assert kernel(given, np.array([5, 6, 7, 8], np.float32)).tolist() == [6, -1, 8, 0, 7]


@pytest.mark.parametrize("shape", [(0, 3), (3, 0)])
def test_an_empty_tensor_is_read_under_pad(shape: tuple[int, int]) -> None:
    d, e = axes(d=shape[0], e=shape[1])
    a, r = axes(a=4, r=3)
    X = tl.input("X", dt.int32, d, e)
    kernel = tl.compile(define("Y", tl.sum(tl.pad(X[r, a], 5), over=r), a))
    assert np.array_equal(kernel(np.zeros(shape, np.int32)), [15] * 4)


@pytest.mark.parametrize("least", [0.0, 16.0])
def test_a_combiner_is_tried_on_states_of_many_elements(least: float) -> None:
    """The number of pairs; states of at most `least` elements leave those between two states out."""

    def paired(a: Any, b: Any) -> Any:
        count = a[0] + b[0]
        return count, a[1] + b[1] + tl.where(count > least, a[0] * b[0], 0.0)

    i, j = axes(i=2, j=64)
    x = tl.input("x", dt.float32, i, j)
    if not least:
        assert len(tl.reduce(paired, (0.0, 0.0), (1.0, x[i, j]), over=j)) == 2
        return
    with pytest.raises(ComputationError, match="not associative") as caught:
        tl.reduce(paired, (0.0, 0.0), (1.0, x[i, j]), over=j)
    assert caught.value.code == "combiner-refuted"
