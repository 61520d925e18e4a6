"""Sums of products and of differences of bytes, added up by halves of a vector: clang 22 knows instructions for them, and counts the
halves wrongly."""

from __future__ import annotations

import numpy as np
import pytest

import tilelang as tl


@pytest.mark.parametrize("lanes", [4, 8, 16])
@pytest.mark.parametrize("name", ["products", "differences"])
def test_all_lanes_are_added_up(name: str, lanes: int) -> None:
    rng = np.random.default_rng(lanes)
    m, k = tl.axes(m=3, k=lanes)
    A, B = tl.input("A", tl.uint8, m, k), tl.input("B", tl.int8 if name == "products" else tl.uint8, k)
    left, right = tl.cast(A[m, k], tl.int32), tl.cast(B[k], tl.int32)
    Y = tl.define("Y", tl.sum(left * right if name == "products" else tl.abs(left - right), over=k), m)
    plan = tl.schedule(Y).split(m=1).accumulate(tl.register).split(k=lanes).vectorize(k=lanes)
    a = rng.integers(0, 256, (3, lanes)).astype(np.uint8)
    b = rng.integers(-128, 128, lanes).astype(np.int8) if name == "products" else rng.integers(0, 256, lanes).astype(np.uint8)
    whole = a.astype(np.int32), b.astype(np.int32)
    expected = whole[0] * whole[1] if name == "products" else abs(whole[0] - whole[1])
    np.testing.assert_array_equal(tl.compile(plan, "cpu")(a, b), expected.sum(axis=1))
