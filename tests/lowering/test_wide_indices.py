"""Indices whose parts are beyond 32 bits, where the indices themselves and the tensors are not."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tilelang as tl
from tilelang.core.simplify import interval

N = 1000
FORMS: dict[str, Callable[[Any], Any]] = {
    "a product's quotient": lambda i: i * i * i * i // 10**11,
    "a remainder of multiples": lambda i: i * 3_000_000_000 % 7,
    "a product's low bits": lambda i: (i * i * i * i) & 15,
    "a shifted product": lambda i: (i * i * i * i) >> 37,
}


def check_agreement(computation: tl.Computation, arrays: dict[str, Any], wanted: Any) -> None:
    kernel = tl.compile(tl.schedule(computation).vectorize(i=8), tl.target("cpu"))
    for found in (computation.evaluate(**arrays), kernel(*arrays.values()), tl.simulate(kernel, **arrays).outputs["Y"]):
        assert np.array_equal(found, wanted)


@pytest.mark.parametrize("form", FORMS)
def test_of_axes(form: str) -> None:
    i = tl.axes(i=N)
    G, g = tl.input("G", tl.float32, g=16), np.arange(16, dtype=np.float32)
    at = FORMS[form](np.arange(N))
    check_agreement(tl.computation("c", tl.define("Y", G[FORMS[form](i)], i)), {"G": g}, g[at])
    check_agreement(tl.computation("c", tl.define("Y", tl.where(FORMS[form](i) < 3, 1, 0), i)), {}, np.where(at < 3, 1, 0))


def test_of_data() -> None:
    i = tl.axes(i=N)
    G, J, X = tl.input("G", tl.float32, g=16), tl.input("J", tl.int64, i, range=(0, 1 << 40)), tl.input("X", tl.float32, i)
    g, j = np.arange(16, dtype=np.float32), np.random.default_rng(0).integers(0, 1 << 40, N)
    check_agreement(tl.computation("c", tl.define("Y", G[J[i] // (1 << 36)], i)), {"G": g, "J": j}, g[j // (1 << 36)])
    x = np.resize(np.array([np.nan, np.inf, -np.inf, 1e12, -1e12, 3.7, -2, 15.5], np.float32), N)
    at = tl.define("at", tl.minimum(tl.maximum(tl.cast(X[i], tl.int64), 0), 15), i)
    check_agreement(
        tl.computation("c", tl.define("Y", G[at[i]], i)), {"G": g, "X": x}, np.resize([0.0, 15, 0, 15, 0, 3, 0, 15], N)
    )


def test_what_a_small_type_cannot_hold_is_no_index() -> None:
    i = tl.axes(i=300)
    G = tl.input("G", tl.float32, g=300)
    with pytest.raises(tl.ComputationError, match="at i = 128"):
        tl.define("Y", G[tl.cast(i, tl.int8)], i)
    assert interval(tl.cast(tl.cast(i, tl.uint8), tl.int64)) == (0, 255)
