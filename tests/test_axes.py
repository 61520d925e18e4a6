"""Axes are known by their names; two of one name that meet in a definition are refused, wherever they were made."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tilelang as tl


def refused(define: Callable[[], Any]) -> str:
    with pytest.raises(tl.ComputationError) as found:
        define()
    return found.value.code


def test_two_axes_of_one_name_do_not_become_one() -> None:
    X = tl.input("X", tl.float32, r=8, c=8)
    a, b = tl.axes(i=8), tl.axes(i=8)
    assert refused(lambda: tl.define("Y", tl.sum(X[a, b], over=b), a)) == "axes-of-one-name"
    assert refused(lambda: tl.define("Y", X[a, b] * 2, a)) == "axes-of-one-name"
    Z = tl.input("Z", tl.float32, r=8)
    assert refused(lambda: tl.define("Y", Z[a] + Z[b], a)) == "axes-of-one-name"


def test_definitions_may_each_have_axes_of_their_own() -> None:
    def row_sums(X: tl.Tensor, name: str) -> tl.Tensor:
        i, j = tl.axes(i=4, j=6)
        return tl.define(name, tl.sum(X[i, j], over=j), i)

    X = tl.input("X", tl.float32, r=4, c=6)
    first, second = row_sums(X, "first"), row_sums(X, "second")
    i = tl.axes(i=4)
    x = np.arange(24, dtype=np.float32).reshape(4, 6)
    both = tl.define("both", first[i] + second[i], i)
    assert np.array_equal(tl.compile(both, tl.target("cpu"))(x), 2 * x.sum(1))


def test_reductions_beside_each_other_may_have_axes_of_their_own() -> None:
    A, B = tl.input("A", tl.float32, r=4, c=6), tl.input("B", tl.float32, r=4, c=6)
    i, j = tl.axes(i=4, j=6)
    other = tl.axes(j=6)
    Y = tl.define("Y", tl.sum(A[i, j], over=j) * tl.max(B[i, other], over=other), i)
    a = np.arange(24, dtype=np.float32).reshape(4, 6)
    assert np.array_equal(tl.compile(Y, tl.target("cpu"))(a, a), a.sum(1) * a.max(1))


def test_one_axis_may_be_reduced_beside_itself_but_not_be_hidden() -> None:
    i, j = tl.axes(i=4, j=6)
    X = tl.input("X", tl.float32, i, j)
    x = np.random.default_rng(0).standard_normal((4, 6)).astype(np.float32)
    S = tl.define("S", X[i, j] / tl.sum(tl.abs(X[i, j]), over=j), i, j)
    assert np.allclose(tl.compile(S, tl.target("cpu"))(x), x / np.abs(x).sum(1, keepdims=True), rtol=1e-5)
    assert refused(lambda: tl.define("Z", tl.sum(X[i, j], over=j), i, j)) == "axis-hidden"


def test_a_reduction_in_another_one_does_not_hide_its_axis() -> None:
    k, l = tl.axes(k=8, l=8)
    X, V = tl.input("X", tl.float32, r=8, c=8), tl.input("V", tl.float32, r=8)
    assert refused(lambda: tl.define("Y", tl.sum(tl.sum(X[k, k], over=k) * 2.0, over=k))) == "axis-hidden"
    assert refused(lambda: tl.define("Y", tl.max(tl.sum(X[l, k], over=k), over=(l, k)))) == "axis-hidden"
    v = np.arange(8, dtype=np.float32)
    Y = tl.define("Y", tl.sum(V[k] * tl.max(V[k], over=k), over=k))
    assert float(tl.compile(Y, tl.target("cpu"))(v)) == v.sum() * v.max()


WHERE_AXES_MEET: dict[str, Callable[[tl.Axis, tl.Axis, tl.Tensor, tl.Tensor], Any]] = {
    "in a condition": lambda a, b, X, V: tl.define("Y", tl.where(a > b, 1.0, V[a]), a),
    "in a reduction's condition": lambda a, b, X, V: tl.define("Y", tl.sum(V[a], over=a, where=b < 3)),
    "in a padded index": lambda a, b, X, V: tl.define("Y", tl.pad(V[a + b - 3], 0), a),
    "in a gathered row": lambda a, b, X, V: tl.define("Y", X[tl.input("J", tl.int32, r=8, range=(0, 8))[a], b], a),
    "in argmax": lambda a, b, X, V: tl.define("Y", tl.argmax(X[a, b], over=b), a),
    "in any": lambda a, b, X, V: tl.define("Y", tl.any(X[a, b] > 0, over=b), a),
    "in a combiner's values": lambda a, b, X, V: tl.define("Y", tl.reduce(lambda x, y: x + y, 0.0, X[a, b], over=b), a),
    "among the axes that are reduced": lambda a, b, X, V: tl.define("Y", tl.sum(X[a, b], over=(a, b))),
    "among the axes of a definition": lambda a, b, X, V: tl.define("Y", V[a] * V[b], a, b),
    "between a value and its axes": lambda a, b, X, V: tl.define("Y", V[a], b),
    "between the members of a definition": lambda a, b, X, V: tl.define(("P", "Q"), (V[a], V[b]), a),
    "in a nested reduction": lambda a, b, X, V: tl.define("Y", tl.sum(V[a] * tl.max(X[b, a], over=a), over=a), b),
}


@pytest.mark.parametrize("where", WHERE_AXES_MEET)
def test_axes_of_one_name_are_refused_wherever_they_meet(where: str) -> None:
    X, V = tl.input("X", tl.float32, r=8, c=8), tl.input("V", tl.float32, r=8)
    assert refused(lambda: WHERE_AXES_MEET[where](tl.axes(i=8), tl.axes(i=8), X, V)) == "axes-of-one-name"


HEAD = "computation t { input X: float32[r: 8, c: 8] input V: float32[r: 8] axis i: 8 axis k: 8 "


@pytest.mark.parametrize("value", ["sum[i] X[i, i]", "sum[k] (sum[k] X[i, k])", "V[i] + (sum[k] (max[k] X[i, k]))"])
def test_texts_refuse_a_reduction_that_hides_an_axis(value: str) -> None:
    with pytest.raises(tl.TileLangError, match="axis-hidden"):
        tl.parse(f"{HEAD} output Y[i] = {value} }}").computation("t")


def test_texts_may_use_a_reduced_axis_beside_its_reduction() -> None:
    made = tl.parse(f"{HEAD} output Y[i] = V[i] + (sum[k] X[i, k] * (max[k] X[i, k]) * (sum[i] V[i])) }}").computation("t")
    X, V = np.arange(64, dtype=np.float32).reshape(8, 8), np.arange(8, dtype=np.float32)
    assert np.array_equal(made.evaluate(X=X, V=V), V + X.sum(1) * X.max(1) * V.sum())


def test_texts_refuse_an_axis_that_hides_another() -> None:
    text = "computation t { input X: float32[r: 8, c: 8] axis i: 8 output Y[i] = sum[i] X[i, i] }"
    with pytest.raises(tl.TileLangError, match="axis-hidden"):
        tl.parse(text).computation("t")


def test_steps_name_reads_by_any_axes_of_those_names() -> None:
    m, k = tl.axes(m=8, k=8)
    A = tl.input("A", tl.float32, m, k)
    Y = tl.define("Y", tl.sum(A[m, k], over=k), m)
    again = tl.axes(m=8, k=8)
    made = tl.schedule(Y).tile(m=4).to(tl.block).split(k=4).load(A[again[0], again[1]], tl.shared)
    assert tl.compile(made, tl.target("cpu")).check()
