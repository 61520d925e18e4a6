"""Whole numbers of 64 bits wrap around, also where they have the type of indices; indices beyond 32 bits keep their value."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tilelang as tl

ENDS = np.iinfo(np.int64)
DATA = np.array([ENDS.max, ENDS.max - 1, ENDS.min, ENDS.min + 3, 5, -6, 0, 4611686018427387904], np.int64)
SCHEDULES: dict[str, Callable[[Any], Any]] = {
    "constructed": lambda c: c,
    "vectors": lambda c: tl.schedule(c).vectorize(i=4),
    "written out": lambda c: tl.schedule(c).split(i=1, unroll=True),
    "threads": lambda c: tl.schedule(c).tile(i=4).to(tl.block).tile(i=2).to(tl.thread),
}


def wide(e: Any) -> Any:
    return tl.cast(e, tl.int64)


def chosen(condition: Any) -> Any:
    return tl.where(condition, 1, 0)


def check_values(expressions: dict[str, Any], i: Any, expected: dict[str, Any], schedule: str, **arrays: Any) -> None:
    whole = tl.computation("wide", [tl.define(name, e, i) for name, e in expressions.items()])
    found = tl.compile(SCHEDULES[schedule](whole), "cpu")(**arrays)
    for name, array in found._asdict().items():
        np.testing.assert_array_equal(array, expected[name], name)


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_values_of_64_bits_wrap_around(schedule: str) -> None:
    i = tl.axes(i=8)
    A = tl.input("A", tl.int64, i)
    a = A[i]
    expressions = {
        "less": chosen(a < a + 1), "moved": chosen(a + 3 < 5), "negated": chosen(-a < a), "doubled": chosen(a * 2 == 6),
        "half": a * 2 // 2, "rest": (a * 6) % 3, "larger": tl.maximum(a, a + 1), "least": tl.minimum(a - 5, a), "sixth": a * 3 // 6,
        "beyond": a + ENDS.max + 1,
    }  # fmt: skip
    with np.errstate(over="ignore"):
        expected = {
            "less": DATA < DATA + 1, "moved": DATA + 3 < 5, "negated": -DATA < DATA, "doubled": DATA * 2 == 6, "half": DATA * 2 // 2,
            "rest": (DATA * 6) % 3, "larger": np.maximum(DATA, DATA + 1), "least": np.minimum(DATA - 5, DATA), "sixth": DATA * 3 // 6,
            "beyond": DATA + ENDS.max + np.int64(1),
        }  # fmt: skip
    check_values(expressions, i, expected, schedule, A=DATA)


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("type", [tl.int32, tl.int64])
def test_the_least_number_is_its_own_negative(type: tl.DType, schedule: str) -> None:
    """C leaves that undefined, and clang takes the rest of a division by 7 for that of a number above 0."""
    i = tl.axes(i=8)
    a = tl.input("A", type, i)[i]
    data = np.array([type.lowest, type.highest, -1, 0, 1, 8, -8, type.lowest + 1], type.numpy)
    with np.errstate(over="ignore"):
        expected = {"negated": -data % 7, "size": np.abs(data) % 7}
    check_values({"negated": -a % 7, "size": tl.abs(a) % 7}, i, expected, schedule, A=data)


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_indices_beyond_their_type_keep_their_value(schedule: str) -> None:
    i = tl.axes(i=8)
    n, big = np.arange(8), 2**62
    A = tl.input("A", tl.float32, p=7)
    square = (i + 70000) * (i + 70000)
    expressions = {
        "square": chosen(square > 4900500000), "rest": chosen(square % 7 == 3), "product": chosen(wide(i) * 3000000000 > 7000000000),
        "wrapped": chosen(wide(i) * wide(i) * big > 0), "gathered": A[square % 7], "quotient": tl.cast(square * 5 // 7, tl.float64),
        "narrow": chosen(wide(tl.cast(i * 30, tl.int8)) >= 0), "below": chosen(wide(i) // -3 < -1),
    }  # fmt: skip
    m = (n + 70000) ** 2
    a = np.arange(7, dtype=np.float32)
    with np.errstate(over="ignore"):
        expected = {
            "square": m > 4900500000, "rest": m % 7 == 3, "product": n * 3000000000 > 7000000000, "wrapped": n * n * big > 0,
            "gathered": a[m % 7], "quotient": (m * 5 // 7).astype(np.float64), "narrow": (n * 30).astype(np.int8) >= 0,
            "below": n // -3 < -1,
        }  # fmt: skip
    check_values(expressions, i, expected, schedule, A=a)


def test_the_smallest_of_values_whose_comparison_would_overflow() -> None:
    p, j = tl.axes(p=8, j=1)
    least = tl.define("least", tl.argmin(-wide(p), over=j), p)
    made = tl.schedule(least).accumulate(tl.register, steps=tl.move().vectorize(p=8))
    assert tl.compile(made, "cpu")().tolist() == [0] * 8
