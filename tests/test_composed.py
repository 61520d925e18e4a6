"""Means, softmax, normalizations and activations: their values by NumPy's own formulas, and at the edges of each."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tilelang as tl
from tilelang.computations import composed

I, J = tl.axes(i=6, j=5)
RANDOM = np.random.default_rng(7)
MASK = np.arange(5) <= np.arange(6)[:, None] - 2  # the first two rows have no points
UNIT = {tl.float64: 2.0**-50, tl.float32: 2.0**-21, tl.float16: 2.0**-10, tl.bfloat16: 2.0**-7}


def softmax(x: Any, mask: Any = True) -> Any:
    powers = np.where(mask, np.exp(x - x.max(axis=-1, keepdims=True)), 0)
    total = powers.sum(axis=-1, keepdims=True)
    return powers / np.where(total == 0, 1, total)


def logarithm(x: Any) -> Any:
    with np.errstate(divide="ignore"):
        return np.log(x)


def over_rows(a: Callable[[Any], Any]) -> Callable[[tl.Tensor], tl.Tensor]:
    return lambda X: tl.define("y", a(X[I, J]), I)


def at_points(a: Callable[[Any], Any]) -> Callable[[tl.Tensor], tl.Tensor]:
    return lambda X: tl.define("y", a(X[I, J]), I, J)


CASES: dict[str, tuple[Callable[[tl.Tensor], tl.Tensor], Callable[[Any], Any]]] = {
    "mean": (over_rows(lambda v: tl.mean(v, over=J)), lambda x: x.mean(axis=1)),
    "mean where": (
        over_rows(lambda v: tl.mean(v, over=[J], where=J <= I)),
        lambda x: x.mean(axis=1, where=np.tri(6, 5, dtype=bool)),
    ),
    "mean of both axes": (lambda X: tl.define("y", tl.mean(X[I, J], over=(I, J))), lambda x: x.mean()),
    "var": (over_rows(lambda v: tl.var(v, over=J)), lambda x: x.var(axis=1)),
    "var of a sample": (over_rows(lambda v: tl.var(v, over=J, ddof=1)), lambda x: x.var(axis=1, ddof=1)),
    "var where": (
        over_rows(lambda v: tl.var(v, over=J, where=J <= I + 1, ddof=1)),
        lambda x: x.var(axis=1, where=np.tri(6, 5, 1, dtype=bool), ddof=1),
    ),
    "softmax": (at_points(lambda v: tl.softmax(v, over=J)), softmax),
    "softmax of both axes": (
        at_points(lambda v: tl.softmax(v, over=iter((I, J)))),
        lambda x: softmax(x.reshape(-1)).reshape(x.shape),
    ),
    "softmax where": (at_points(lambda v: tl.softmax(v, over=J, where=J <= I - 2)), lambda x: softmax(x, MASK)),
    "log_softmax": (at_points(lambda v: tl.log_softmax(v, over=J)), lambda x: logarithm(softmax(x))),
    "log_softmax where": (
        at_points(lambda v: tl.log_softmax(v, over=J, where=J <= I - 2)),
        lambda x: logarithm(softmax(x, MASK)),
    ),
    "layer_norm": (
        at_points(lambda v: tl.layer_norm(v, over=J)),
        lambda x: (x - x.mean(axis=1, keepdims=True)) / np.sqrt(x.var(axis=1, keepdims=True) + 1e-5),
    ),
    "rms_norm": (at_points(lambda v: tl.rms_norm(v, over=J)), lambda x: x / np.sqrt((x * x).mean(axis=1, keepdims=True) + 1e-5)),
    "clamp": (at_points(lambda v: tl.clamp(v, -0.5, 1)), lambda x: np.clip(x, -0.5, 1)),
    "clamp above": (at_points(lambda v: tl.clamp(v, high=0.25)), lambda x: np.minimum(x, 0.25)),
    "silu": (at_points(tl.silu), lambda x: x / (1 + np.exp(-x))),
    "softplus": (at_points(tl.softplus), lambda x: np.logaddexp(x, 0)),
}


@pytest.mark.parametrize("dtype", UNIT, ids=str)
@pytest.mark.parametrize("name", CASES)
def test_values_are_those_of_numpy(name: str, dtype: tl.DType) -> None:
    define, formula = CASES[name]
    y = define(tl.input("X", dtype, I, J))
    x = RANDOM.standard_normal((6, 5)).astype(dtype.numpy)
    found = tl.computation("c", y).evaluate(X=x)
    assert y.dtype is dtype
    np.testing.assert_allclose(found.astype(float), formula(x.astype(float)), rtol=UNIT[dtype], atol=UNIT[dtype])


@pytest.mark.parametrize("name", CASES)
def test_kernels_are_right_and_texts_read_back(name: str) -> None:
    made = tl.computation("c", CASES[name][0](tl.input("X", tl.float32, I, J)))
    assert tl.parse(made.text).computation().text == made.text
    assert tl.compile(made).check().ok


def test_every_function_has_a_case() -> None:
    assert {name.split()[0] for name in CASES} == set(composed.__all__)


@pytest.mark.parametrize("name", ["mean", "var", "softmax", "log_softmax", "layer_norm", "rms_norm"])
def test_integers_are_refused(name: str) -> None:
    n = tl.input("N", tl.int32, I)
    with pytest.raises(tl.ComputationError) as caught:
        getattr(tl, name)(n[I], over=I)
    assert caught.value.code == "operand-type"
    assert caught.value.message == f"tl.{name} does not apply to `N[i]`, which is int32"


def test_integers_are_clamped_as_integers() -> None:
    n = tl.input("N", tl.int8, I)
    y = tl.define("y", tl.clamp(n[I], 0, 7), I)
    assert y.dtype is tl.int8
    np.testing.assert_array_equal(tl.compile(y)(np.array([-128, -1, 0, 3, 7, 127], np.int8)), [0, 0, 0, 3, 7, 7])


def test_no_points() -> None:
    """As in NumPy, the mean of nothing is 0 / 0; softmax over no axis of length 0 has no element to be wrong."""
    k = tl.axes(k=0)
    X = tl.input("X", tl.float32, I, k)
    for value in (tl.mean(X[I, k], over=k), tl.var(X[I, k], over=k)):
        assert np.isnan(tl.compile(tl.define("y", value, I))(np.zeros((6, 0), np.float32))).all()
    empty = tl.define("y", tl.softmax(X[I, k], over=k), I, k)
    assert tl.compile(empty)(np.zeros((6, 0), np.float32)).shape == (6, 0)


def test_one_point_has_no_sample_variance() -> None:
    one = tl.axes(one=1)
    X = tl.input("X", tl.float32, one)
    for ddof in (1, 2):
        y = tl.define("y", tl.var(X[one], over=one, ddof=ddof))
        assert np.isnan(tl.compile(y)(np.ones(1, np.float32)))


@pytest.mark.parametrize("ddof", [-1, 1.0, True])
def test_degrees_of_freedom_are_whole(ddof: Any) -> None:
    X = tl.input("X", tl.float32, I)
    with pytest.raises(tl.ComputationError, match="degrees of freedom") as caught:
        tl.var(X[I], over=I, ddof=ddof)
    assert caught.value.code == "ddof"


def test_softmax_of_infinities() -> None:
    X = tl.input("X", tl.float32, I, J)
    x = np.full((6, 5), -np.inf, np.float32)
    x[0, 2] = 3
    x[1] = [1000, 0, -1000, 999, 1000]
    found = tl.compile(tl.define("y", tl.softmax(X[I, J], over=J), I, J))(x)
    np.testing.assert_array_equal(found[0], [0, 0, 1, 0, 0])
    np.testing.assert_allclose(found[1], softmax(x[1].astype(float)), rtol=1e-6)
    assert np.isnan(found[2:]).all()
    masked = tl.compile(tl.define("y", tl.softmax(X[I, J], over=J, where=X[I, J] > -1e30), I, J))(x)
    np.testing.assert_array_equal(masked[2:], 0)


def test_softplus_at_the_ends() -> None:
    i = tl.axes(i=6)
    X = tl.input("X", tl.float32, i)
    found = tl.compile(tl.define("y", tl.softplus(X[i]), i))(np.array([-np.inf, -200, 0, 200, np.inf, np.nan], np.float32))
    np.testing.assert_allclose(found, [0, 0, np.log(2), 200, np.inf, np.nan], rtol=1e-7)


def test_sums_of_float16_do_not_overflow() -> None:
    i = tl.axes(i=4096)
    X = tl.input("X", tl.float16, i)
    found = tl.compile(tl.define("y", tl.mean(X[i], over=i)))(np.full(4096, 100, np.float16))
    assert found == 100  # the sum, 409,600, is beyond float16


def test_pointwise_functions_are_in_texts() -> None:
    text = "computation c { input X: float32[i: 6] output y[i] = silu(X[i]) + softplus(X[i]) * clamp(X[i], 0.0, 6.0) }"
    i = tl.axes(i=6)
    X = tl.input("X", tl.float32, i)
    made = tl.define("y", tl.silu(X[i]) + tl.softplus(X[i]) * tl.clamp(X[i], 0.0, 6.0), i)
    assert tl.parse(text).computation().text == tl.computation("c", made).text
