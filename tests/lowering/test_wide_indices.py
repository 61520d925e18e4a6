"""Indices whose parts are beyond 32 bits, where the indices themselves and the tensors are not."""

import itertools
import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tilelang as tl
from tilelang.core.interval import OPERATORS, interval_of_operator
from tilelang.core.simplify import interval

N = 1000
FORMS: dict[str, Callable[[Any], Any]] = {
    "a product's quotient": lambda i: i * i * i * i // 10**11,
    "a remainder of multiples": lambda i: i * 3_000_000_000 % 7,
    "a product's low bits": lambda i: (i * i * i * i) & 15,
    "a shifted product": lambda i: (i * i * i * i) >> 37,
    "a left shift": lambda i: (i << 24) % 7,
    "a left shift of negative numbers": lambda i: -(i << 24) % 7,
    "a left shift by other amounts": lambda i: ((i + 1) << (i % 30)) % 7,
    "multiples of a right shift": lambda i: (i >> 1) * 3_000_000_000 % 7,
    "multiples of bits": lambda i: (i & (i - 1)) * 3_000_000_000 % 7,
    "multiples of bits of negative numbers": lambda i: (i ^ (i - 5)) * 3_000_000 % 7,
    "multiples of an inverse": lambda i: ~i * 3_000_000 % 7,
    "multiples of a remainder": lambda i: i % (i + 1) * 3_000_000 % 7,
    "multiples of a quotient": lambda i: i * i // (i + 1) * 3_000_000 % 7,
    "a shift out of 64 bits": lambda i: (i << 60) >> 60 & 7,
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


VALUES: dict[str, Callable[[int, int], int]] = {  # also by zero, and by amounts that no shift has
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "//": lambda x, y: x // y if y else 0,
    "%": lambda x, y: x % y if y else 0,
    "&": operator.and_,
    "^": operator.xor,
    "|": operator.or_,
    "<<": lambda x, y: x << y if y >= 0 else 0,
    ">>": lambda x, y: x >> y if y >= 0 else -(x < 0),
    "min": min,
    "max": max,
}


@pytest.mark.parametrize("op", OPERATORS)
def test_an_interval_holds_every_value_of_an_operator(op: str) -> None:
    ends = [(low, high) for low in range(-5, 6) for high in range(low, 6)]
    for left, right in itertools.product(ends, ends):
        low, high = interval_of_operator(op, left, right)
        found = [VALUES[op](x, y) for x in range(left[0], left[1] + 1) for y in range(right[0], right[1] + 1)]
        assert low is not None and high is not None and low <= min(found) and max(found) <= high, (op, left, right)


@pytest.mark.parametrize("narrow", [tl.int8, tl.uint8, tl.int16], ids=str)
def test_a_cast_to_fewer_bits_may_leave_a_one_sided_range(narrow: tl.DType) -> None:
    """It wraps: a number that is at least 0 may become negative, and one that is at most 5 may become greater."""
    i = tl.axes(i=6)
    X, T = tl.input("X", tl.int64, i), tl.input("T", tl.float32, tl.axes(q=128))
    x = np.array([200, 300, 0, 5, -7, -1000], np.int64)
    low, high = np.maximum(x, 0).astype(narrow.numpy).astype(np.int64), np.minimum(x, 5).astype(narrow.numpy).astype(np.int64)

    def wrapped(value: Any) -> Any:
        return tl.cast(tl.cast(value, narrow), tl.int64)

    table = np.arange(128, dtype=np.float32)
    inside = (low >= 0) & (low < 128)
    read = tl.compile(tl.define("Y", tl.pad(T[wrapped(tl.maximum(X[i], 0))], -1.0), i), "cpu")
    np.testing.assert_array_equal(read(x, table), np.where(inside, table[np.where(inside, low, 0)], -1))
    small = tl.compile(tl.define("Y", tl.where(wrapped(tl.minimum(X[i], 5)) < 6, 1, 0), i), "cpu")
    np.testing.assert_array_equal(small(x), high < 6)
