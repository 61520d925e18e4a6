"""Gradients: against central differences of the reference for every function, reduction and index; their texts; refusals; PyTorch's."""

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import tilelang as tl
from tests.gradients import KINKED, OPERATIONS, SMOOTH, Drawing, compare, random_arrays
from tilelang.core import expr
from tilelang.semantics.reference import evaluate

TOLERANCE = 1e-8
I, J, K = tl.axes(i=4, j=5, k=3)
X, Y = tl.input("X", tl.float64, I, J), tl.input("Y", tl.float64, I, J)
V = tl.input("V", tl.float64, h=11)
RANDOM = np.random.default_rng(3)
x, y, v = RANDOM.standard_normal((4, 5)), RANDOM.standard_normal((4, 5)), RANDOM.standard_normal(11)


def text(output: Any, inputs: Any, seed: Any = None) -> list[str]:
    """The definitions of a gradient, as lines."""
    found = tl.grad(output, inputs, seed)
    whole = tl.computation("g", found)
    return [line.strip() for line in whole.text.splitlines() if "=" in line]


# ---------------------------------------------------------------- functions


@pytest.mark.parametrize("name", [*expr.FLOAT_FUNCTIONS, "abs", "relu", "gelu", "gelu_tanh", "silu", "softplus"])
def test_functions(name: str) -> None:
    positive = name in ("log", "log2", "log1p", "sqrt", "rsqrt")
    value = tl.define("y", getattr(tl, name)(X[I, J]), I, J)
    assert compare(value, X, {"X": np.abs(x) + 0.25 if positive else x}) < TOLERANCE


@pytest.mark.parametrize("number", range(len(SMOOTH) + len(KINKED)))
def test_expressions(number: int) -> None:
    function = (*SMOOTH, *KINKED)[number]
    assert compare(tl.define("y", function(X[I, J]), I, J), X, {"X": x}) < TOLERANCE


@pytest.mark.parametrize("number", range(len(OPERATIONS)))
def test_operations(number: int) -> None:
    function = OPERATIONS[number]
    assert compare(tl.define("y", function(X[I, J], Y[I, J]), I, J), (X, Y), {"X": x, "Y": y}) < TOLERANCE
    assert compare(tl.define("y", function(X[I, J], 0.75), I, J), X, {"X": x}) < TOLERANCE
    assert compare(tl.define("y", function(0.75, X[I, J]), I, J), X, {"X": x}) < TOLERANCE


@pytest.mark.parametrize("power", [0, 1, 2, 3, -1, 0.5, -1.5])
def test_constant_powers(power: float) -> None:
    positive = np.abs(x) + 0.5
    assert compare(tl.define("y", X[I, J] ** power, I, J), X, {"X": positive}) < TOLERANCE
    assert compare(tl.define("y", abs(power) ** X[I, J], I, J), X, {"X": positive}) < TOLERANCE


def value_at(output: tl.Tensor, inputs: tl.Tensor, **arrays: Any) -> Any:
    made = tl.computation("g", tl.grad(output, inputs))
    return made.evaluate(**{t.name: arrays[t.name] for t in made.inputs})


KINKS: list[tuple[Callable[[Any], Any], float, float]] = [
    (tl.relu, 0.0, 0.0),  # a constant does not give way
    (tl.abs, 0.0, 0.0),
    (lambda a: tl.maximum(a, 2 * a), 0.0, 1.5),  # half of either
    (lambda a: tl.minimum(a, 2 * a), 0.0, 1.5),
    (lambda a: tl.clamp(a, -1, 1), 1.0, 0.0),
    (tl.softplus, 0.0, 0.5),
    (tl.floor, 1.5, 0.0),
    (lambda a: tl.cast(tl.cast(a, tl.int32), tl.float64) + a, 1.5, 1.0),
    (lambda a: tl.where(a > 0, tl.sqrt(a), 0), 0.0, 0.0),  # not NaN, although the slope of the branch not taken is infinite
    (lambda a: tl.where(a > 0, tl.log(a), a), -1.0, 1.0),
    (lambda a: tl.maximum(tl.sqrt(a), 1.0), 0.0, 0.0),
    (lambda a: a**0, 0.0, 0.0),
    (lambda a: a**2, 0.0, 0.0),
]


@pytest.mark.parametrize("number", range(len(KINKS)))
def test_slopes_at_kinks(number: int) -> None:
    function, at, slope = KINKS[number]
    i = tl.axes(i=1)
    one = tl.input("X", tl.float64, i)
    with np.errstate(all="ignore"):
        found = value_at(tl.define("y", function(one[i]), i), one, X=np.array([at]))
    assert found[0] == slope


# ---------------------------------------------------------------- reductions

ZEROS = x.copy()
ZEROS[0, 1] = ZEROS[1, 2] = ZEROS[1, 3] = ZEROS[3, 4] = 0

REDUCTIONS: dict[str, Callable[..., Any]] = {
    "sum": tl.sum, "prod": tl.prod, "max": tl.max, "min": tl.min, "mean": tl.mean, "var": tl.var,
}  # fmt: skip


@pytest.mark.parametrize("name", REDUCTIONS)
def test_reductions(name: str) -> None:
    reduce = REDUCTIONS[name]
    arrays = {"X": x}
    assert compare(tl.define("y", reduce(X[I, J], over=J), I), X, arrays) < TOLERANCE
    assert compare(tl.define("y", reduce(tl.sin(X[I, J]) * 2 + I, over=(I, J))), X, arrays) < TOLERANCE
    assert compare(tl.define("y", reduce(X[I, J], over=I, where=J <= I), J) if name not in ("max", "min", "mean", "var") else
                   tl.define("y", reduce(X[I, J], over=J, where=J <= I), I), X, arrays) < TOLERANCE  # fmt: skip
    assert compare(tl.define("y", reduce(X[I, J], over=J, where=(X[I, J] > 0) | (J == 0)), I), X, arrays) < TOLERANCE


@pytest.mark.parametrize("over", [(J,), (I, J)])
def test_products_with_factors_of_zero(over: tuple[Any, ...]) -> None:
    """With one 0 among the factors only its own derivative is not 0; with two of them none is."""
    rest = tuple(a for a in (I, J) if a not in {*over})
    product = tl.define("y", tl.prod(X[I, J], over=over), *rest)
    assert compare(product, X, {"X": ZEROS}) < TOLERANCE


def test_the_first_of_equal_values_receives_the_gradient() -> None:
    i, j = tl.axes(i=3, j=4)
    T = tl.input("T", tl.float32, i, j)
    data = np.array([[1, 3, 3, 0], [2, 2, 2, 2], [0, 1, 2, 2]], np.float32)
    found = value_at(tl.define("y", tl.max(T[i, j], over=j), i), T, T=data)
    np.testing.assert_array_equal(found, [[0, 1, 0, 0], [1, 0, 0, 0], [0, 0, 1, 0]])
    found = value_at(tl.define("y", tl.max(T[i, j], over=(j, i))), T, T=data)
    np.testing.assert_array_equal(found, [[0, 1, 0, 0], [0, 0, 0, 0], [0, 0, 0, 0]])


@pytest.mark.parametrize("name", REDUCTIONS)
def test_reductions_of_no_points(name: str) -> None:
    i, none = tl.axes(i=3, none=0)
    T, U = tl.input("T", tl.float32, i, none), tl.input("U", tl.float32, i)
    y = tl.define("y", tl.where(i >= 0, REDUCTIONS[name](T[i, none] * U[i], over=none), 0), i)
    arrays = {"T": np.zeros((3, 0), np.float32), "U": np.ones(3, np.float32)}
    dT, dU = tl.grad(y, (T, U))
    whole = tl.computation("g", (dT, dU))
    with np.errstate(all="ignore"):
        found = whole.evaluate(**{t.name: arrays[t.name] for t in whole.inputs})
    assert found["dy_dT"].shape == (3, 0)
    np.testing.assert_array_equal(found["dy_dU"], 0)


# ---------------------------------------------------------------- indices

Z, P, U, H = tl.axes(z=44, p=5, u=3, h=11)
W = tl.input("W", tl.float64, U)
IDS = tl.input("ids", tl.int32, Z, range=(0, 11))

INDICES: dict[str, Callable[[], tl.Tensor]] = {
    "stride": lambda: tl.define("y", tl.sum(V[2 * P + U] * W[U], over=U), P),
    "stride and padding": lambda: tl.define("y", tl.sum(tl.pad(V[3 * P + U - 2], 0) * W[U], over=U), P),
    "padding with a constant": lambda: tl.define("y", tl.sum(tl.pad(V[H + U - 1], 0.5) * W[U], over=U), H),
    "dilation": lambda: tl.define("y", tl.sum(tl.pad(V[H + 2 * U], 0) * W[U], over=U), H),
    "stride and dilation": lambda: tl.define("y", tl.sum(tl.pad(V[2 * P + 3 * U], 0) * W[U], over=U), P),
    "a stride and dilation with a common factor": lambda: tl.define("y", tl.sum(tl.pad(V[2 * P + 4 * U], 0) * W[U], over=U), P),
    "reversed": lambda: tl.define("y", V[10 - H] * W[H % 3], H),
    "reversed window": lambda: tl.define("y", tl.sum(tl.pad(V[2 * P - U], 0) * W[U], over=U), P),
    "repeated": lambda: tl.define("y", V[Z // 4] * W[Z % 3] + V[(Z + 2) % 11], Z),
    "repeated from within": lambda: tl.define("y", V[(Z + 3) // 5], Z),
    "blocks": lambda: tl.define("y", V[Z // 4] * W[Z % 4 % 3], Z),
    "neighbours": lambda: tl.define("y", tl.where((H > 0) & (H < 10), V[H - 1] * V[H] + V[H + 1], V[H] ** 2), H),
    "a constant index": lambda: tl.define("y", V[3] * W[U], U),
    "a product of axes": lambda: tl.define("y", tl.sum(V[P * U], over=U), P),
    "a remainder of a sum": lambda: tl.define("y", tl.sum(V[(P * 3 + U) % 11] * W[U], over=U), P),
    "a gather": lambda: tl.define("y", V[IDS[Z]] ** 2, Z),
    "a gather beside an axis": lambda: tl.define("y", tl.sum(tl.pad(V[IDS[Z] + U - 1], 0) * W[U], over=U), Z),
}


@pytest.mark.parametrize("name", INDICES)
def test_indices(name: str) -> None:
    made = tl.computation("c", INDICES[name]())
    arrays = {"V": v, "W": y[0, :3], "ids": RANDOM.integers(0, 11, 44).astype(np.int32)}
    wanted = [t for t in (V, W) if t in made.inputs]
    assert compare(made, wanted, {t.name: arrays[t.name] for t in made.inputs}) < TOLERANCE


def test_diagonals_and_traces() -> None:
    T = tl.input("T", tl.float64, a=4, b=4)
    data = RANDOM.standard_normal((4, 4))
    assert compare(tl.define("y", T[I, I] * T[I, 3 - I], I), T, {"T": data}) < TOLERANCE
    assert compare(tl.define("y", tl.sum(T[I, I], over=I)), T, {"T": data}) < TOLERANCE
    a, b = tl.axes(a=4, b=4)
    assert compare(tl.define("y", tl.pad(T[a + b - 2, a - b], 0), a, b), T, {"T": data}) < TOLERANCE


# ---------------------------------------------------------------- what the definitions are


def test_a_products_gradients_are_products() -> None:
    m, n, k = tl.axes(m=4, n=3, k=2)
    A, B, S = tl.input("A", tl.float32, m, k), tl.input("B", tl.float32, k, n), tl.input("S", tl.float32, m, n)
    C = tl.define("C", tl.sum(A[m, k] * B[k, n], over=k), m, n)
    assert text(C, (A, B), S) == [
        "output dC_dA[m, k] = sum[n] S[m, n] * B[k, n]",
        "output dC_dB[k, n] = sum[m] S[m, n] * A[m, k]",
    ]


def test_a_convolutions_gradient_walks_through_its_window_in_steps_of_the_stride() -> None:
    S = tl.input("S", tl.float64, P)
    assert text(INDICES["stride"](), (V, W), S) == [
        "output dy_dV[h] = sum[u_by_2] pad(S[h // 2 - u_by_2], 0.0) * pad(W[u_by_2 * 2 + h % 2], 0.0)",
        "output dy_dW[u] = sum[p] S[p] * V[p * 2 + u]",
    ]


def test_a_condition_stays_where_zero_times_infinity_may_arise() -> None:
    S = tl.input("S", tl.float64, P)
    assert text(tl.define("y", tl.sum(V[P + U] * tl.exp(W[U]), over=U), P), V, S) == [
        "output dy_dV[h] = sum[u: u <= h and h < u + 5] S[h - u] * exp(W[u])",
    ]


def test_the_gradient_of_a_crop_is_padded() -> None:
    S = tl.input("S", tl.float64, P)
    assert text(tl.define("y", V[P + 3], P), V, S) == ["output dy_dV[h] = pad(S[h - 3], 0.0)"]


def test_pooling_without_overlap_sums_nothing() -> None:
    w = tl.axes(w=2)
    S = tl.input("S", tl.float64, P)
    assert text(tl.define("y", tl.max(V[2 * P + w], over=w), P), V, S) == [
        "y_place[p] = argmax[w] V[2 * p + w]",
        "output dy_dV[h] = where(h // 2 < 5, where(cast(y_place[h // 2], int64) == h % 2, S[h // 2], 0.0), 0.0)",
    ]


def test_what_was_computed_is_read() -> None:
    assert text(tl.define("y", tl.exp(X[I, J]), I, J), X) == ["y[i, j] = exp(X[i, j])", "output dy_dX[i, j] = y[i, j]"]


def test_licences_hold_for_the_gradient() -> None:
    y = tl.define("y", tl.exp(X[I, J]), I, J, allow="fast_exp")
    gradient = tl.grad(y, X)
    assert gradient.definition is not None and gradient.definition.allow == ("fast_exp",)


def test_a_dimension_whose_name_is_an_axis_of_another_extent_is_renamed() -> None:
    p = tl.axes(h=9)
    y = tl.define("y", V[p] + V[p + 2], p)
    gradient = tl.grad(y, V)
    assert [(d.name, d.extent) for d in gradient.dims] == [("V_h", 11)]
    assert compare(y, V, {"V": v}) < TOLERANCE


def test_names_that_are_taken_are_numbered() -> None:
    taken = tl.input("dy_dX", tl.float64, I, J)
    y = tl.define("y", X[I, J] * taken[I, J], I, J)
    assert tl.grad(y, X).name == "dy_dX_2"


# ---------------------------------------------------------------- graphs


def test_several_outputs_and_inputs_on_the_way() -> None:
    rows = tl.define("rows", tl.sum(X[I, J] * Y[I, J], over=J), I)
    columns = tl.define("columns", tl.sum(tl.tanh(X[I, J]) * rows[I], over=I), J)
    assert compare((columns, rows), (X, Y), {"X": x, "Y": y}) < TOLERANCE
    by_rows = value_at(columns, rows, X=x)
    np.testing.assert_allclose(by_rows, np.tanh(x).sum(axis=1), rtol=1e-12)


def test_a_tensor_that_is_both_output_and_input() -> None:
    y = tl.define("y", X[I, J] * 2, I, J)
    np.testing.assert_array_equal(value_at(y, y), np.ones((4, 5)))


def test_seeds_may_be_numbers_or_definitions() -> None:
    square = tl.define("square", X[I, J] ** 2, I, J)
    half = tl.computation("g", tl.grad(square, X, 0.5)).evaluate(X=x)
    np.testing.assert_allclose(half, x, rtol=1e-15)
    error = tl.define("error", square[I, J] - Y[I, J], I, J)
    made = tl.computation("g", tl.grad(square, X, error))
    np.testing.assert_allclose(made.evaluate(X=x, Y=y), (x * x - y) * 2 * x, rtol=1e-12)


def test_second_derivatives() -> None:
    cube = tl.define("cube", X[I, J] ** 3, I, J)
    second = tl.grad(tl.grad(cube, X), X)
    np.testing.assert_allclose(tl.computation("g", second).evaluate(X=x), 6 * x, rtol=1e-12)
    norm = tl.define("y", tl.layer_norm(X[I, J], over=J), I, J)
    weight = tl.input("weight", tl.float64, I, J)
    first = tl.grad(norm, X, weight)
    assert compare(first, (X, weight), {"X": x, "weight": y}) < TOLERANCE


def test_constants_are_not_differentiated_through() -> None:
    total = tl.define("total", tl.sum(X[I, J] ** 2, over=J), I)
    share = tl.define("share", X[I, J] / total[I], I, J)
    found = tl.computation("g", tl.grad(share, X, constants=total)).evaluate(X=x)
    np.testing.assert_allclose(found, np.broadcast_to(1 / (x * x).sum(axis=1, keepdims=True), (4, 5)), rtol=1e-14)


def peaked() -> tuple[tl.Tensor, tl.Tensor]:
    peak = tl.define("peak", tl.max(X[I, J], over=J), I)
    return peak, tl.define("e", tl.exp(X[I, J] - peak[I]), I, J)


def in_parts() -> tl.Tensor:
    _, e = peaked()
    total = tl.define("total", tl.sum(e[I, J], over=J), I)
    return tl.define("y", e[I, J] / total[I], I, J)


def weighted() -> tl.Tensor:
    _, e = peaked()
    total = tl.define("total", tl.sum(e[I, J], over=J), I)
    return tl.define("y", tl.sum(e[I, J] * Y[K, J], over=J) / total[I], I, K)


def logarithm_of_sum() -> tl.Tensor:
    peak, e = peaked()
    return tl.define("y", tl.log(tl.sum(e[I, J], over=J)) + peak[I], I)


def by_powers_of_two() -> tl.Tensor:
    least = tl.min(X[I, J] * 3, over=J)
    powers = tl.exp2(0.5 * (least - X[I, J] * 3))
    return tl.define("y", tl.where(I > J, powers / tl.sum(powers, over=J, where=J < 3), 0), I, J)


CANCELS: dict[str, Callable[[], tl.Tensor]] = {
    "softmax": lambda: tl.define("y", tl.softmax(X[I, J], over=J), I, J),
    "of both axes": lambda: tl.define("y", tl.softmax(X[I, J], over=(J, I)), I, J),
    "masked": lambda: tl.define("y", tl.softmax(X[I, J], over=J, where=J <= I), I, J),
    "masked by data": lambda: tl.define("y", tl.softmax(X[I, J], over=J, where=(Y[I, J] > 0) | (J == 0)), I, J),
    "log_softmax": lambda: tl.define("y", tl.log_softmax(X[I, J], over=J), I, J),
    "in parts": in_parts,
    "weighted": weighted,
    "logarithm of a sum": logarithm_of_sum,
    "by powers of two": by_powers_of_two,
}
REMAINS: dict[str, Callable[[tl.Tensor], tl.Tensor]] = {
    "of another row": lambda e: tl.define("y", e[I, J] / tl.sum(e[3 - I, J], over=J), I, J),
    "not divided": lambda e: tl.define("y", tl.sum(e[I, J], over=J), I),
    "divided twice": lambda e: tl.define("y", e[I, J] / tl.sum(e[I, J], over=J) ** 2, I, J),
    "a sum over rows": lambda e: tl.define("y", e[I, J] / tl.sum(e[I, J], over=I), I, J),
    "a product": lambda e: tl.define("y", tl.prod(e[I, J], over=J) / tl.sum(e[I, J], over=J), I),
    "plus one": lambda e: tl.define("y", (e[I, J] + 1) / tl.sum(e[I, J], over=J), I, J),
    "chosen by it": lambda e: tl.define("y", tl.where(e[I, J] > 0.5, X[I, J], X[I, J] - tl.max(X[I, J], over=J)), I, J),
}


@pytest.mark.parametrize("name", CANCELS)
def test_the_peak_of_a_softmax_has_no_gradient(name: str) -> None:
    made = tl.computation("c", CANCELS[name]())
    arrays = {"X": x, "Y": y}
    assert compare(made, X, {t.name: arrays[t.name] for t in made.inputs}) < TOLERANCE
    assert not any("arg" in line for line in text(made, X))


@pytest.mark.parametrize("name", REMAINS)
def test_other_maxima_have_one(name: str) -> None:
    whole = tl.computation("c", REMAINS[name](peaked()[1]))
    assert compare(whole, X, {"X": x}) < TOLERANCE
    assert any("arg" in line for line in text(whole, X))


def test_a_constant_total_does_not_cancel_the_peak() -> None:
    whole = tl.computation("c", in_parts())
    total = whole.tensor("total")
    found = tl.computation("g", tl.grad(whole, X, constants=total))
    assert any("argmax" in str(d) for d in found.definitions)


def test_float16_is_summed_in_float32() -> None:
    i = tl.axes(i=4096)
    T, s = tl.input("T", tl.float16, i), tl.input("s", tl.float16)
    y = tl.define("y", T[i] * s[()], i)
    gradient = tl.grad(y, s, 0.125)
    assert gradient.dtype is tl.float16
    assert tl.compile(gradient)(np.full(4096, 100, np.float16)) == 51200  # sums in float16 stop at 32,768 and more at 65,504


# ---------------------------------------------------------------- refusals


def refused(*arguments: Any, **named: Any) -> tuple[str, str]:
    with pytest.raises(tl.ComputationError) as caught:
        tl.grad(*arguments, **named)
    return caught.value.code, caught.value.message


def test_refusals() -> None:
    n = tl.input("N", tl.int32, I)
    square = tl.define("square", X[I, J] ** 2, I, J)
    most = tl.define("most", tl.argmax(X[I, J], over=J), I)
    scaled = tl.define("scaled", n[I] * X[I, 0], I)
    assert refused(square, Y) == ("grad-independent", "square does not depend on Y: float64[i: 4, j: 5]")
    assert refused(most, X) == ("grad-type", "most: int32[i: 4] has no gradient: it does not hold floats")
    assert refused(scaled, n) == ("grad-type", "there is no derivative by N: int32[i: 4]")
    assert refused(square, (X, X)) == ("grad-tensors", "`inputs` of tl.grad has a tensor twice")
    assert refused(square, "X") == ("grad-tensors", "'X' in `inputs` of tl.grad is not a tensor")
    assert refused(square, X, n) == ("grad-seed", "the seed N: int32[i: 4] does not fit square: float64[i: 4, j: 5]")
    assert refused(square, X, (1, 1)) == ("grad-seed", "2 seeds for 1 output")
    assert refused(square, X, "1") == ("grad-seed", "'1' is not a valid seed")


def test_combiners_of_ones_own_are_refused_by_name() -> None:
    longest = tl.define("longest", tl.reduce(tl.maximum, 0.0, tl.abs(X[I, J]), over=J, name="longest_of"), I)
    code, message = refused(longest, X)
    assert code == "grad-combiner"
    assert message == "longest is a reduction by `longest_of`, a combiner of your own, which has no gradient"
    shifted = tl.define("shifted", X[I, J] - longest[I], I, J)
    assert tl.grad(shifted, X, constants=longest).shape == (4, 5)


def test_second_derivatives_of_a_product_with_factors_of_0() -> None:
    """Where one other factor is 0, a derivative is 0, and its slope by that factor is not."""
    i, j = tl.axes(i=81, j=4)
    X, w = tl.input("X", tl.float64, i, j), tl.input("w", tl.float64, i, j)
    first = tl.grad(tl.define("f", tl.prod(X[i, j], over=j), i), X)
    second = tl.grad(tl.define("along", tl.sum(first[i, j] * w[i, j], over=(i, j))), X)
    x = np.array(list(itertools.product((0.0, 2.0, -1.0), repeat=4)))
    along = np.random.default_rng(0).integers(-3, 4, x.shape).astype(float)

    def without(*left_out: int) -> np.ndarray[Any, Any]:
        found: np.ndarray[Any, Any] = np.prod(np.delete(x, left_out, axis=1), axis=1)
        return found

    wanted = [sum(along[:, p] * without(p, q) for p in range(4) if p != q) for q in range(4)]
    assert np.allclose(
        evaluate(tl.computation("first", first), {"X": x})["df_dX"], np.stack([without(q) for q in range(4)], axis=1)
    )
    assert np.allclose(evaluate(tl.computation("second", second), {"X": x, "w": along})[second.name], np.stack(wanted, axis=1))


@pytest.mark.parametrize("data", [(0.0, 1e30, 1e30), (0.0, np.inf, 2.0), (0.0, 0.0, np.inf)])
def test_a_product_with_factors_of_0_and_others_that_overflow(data: tuple[float, ...]) -> None:
    i = tl.axes(i=3)
    X = tl.input("X", tl.float32, i)
    found = evaluate(tl.computation("g", tl.grad(tl.define("f", tl.prod(X[i], over=i)), X)), {"X": np.array(data, np.float32)})
    assert np.array_equal(found["df_dX"], [np.inf, 0, 0] if data.count(0.0) == 1 else [0, 0, 0])


# ---------------------------------------------------------------- random computations


@settings(deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data(), st.integers(0, 2**32 - 1))
def test_random_computations(data: st.DataObject, seed: int) -> None:
    """Near a kink, central differences see both sides: a wrong gradient is wrong at other data, too."""
    outputs, inputs = drawn(data, tl.float64)
    whole = tl.computation("whole", outputs)
    worst = 0.0
    for attempt in range(3):
        with np.errstate(all="ignore"):
            worst = compare(outputs, inputs, random_arrays(whole.inputs, seed + attempt), seed)
        if worst < 1e-6:
            break
    assert worst < 1e-6, f"{worst}\n{whole.text}"


def drawn(data: st.DataObject, dtype: tl.DType) -> tuple[tuple[tl.Tensor, ...], list[tl.Tensor]]:
    """A computation with inputs to differentiate by."""
    from hypothesis import reject

    try:
        outputs, inputs = Drawing(lambda n: data.draw(st.integers(0, n - 1)), dtype).run()
    except tl.ComputationError as error:
        assert error.code == "axis-hidden"  # softmax of a value that does not depend on its axis
        reject()
    if not inputs:
        reject()
    return outputs, inputs
