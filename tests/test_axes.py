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
