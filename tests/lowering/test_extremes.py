"""min and max of floats on the processor, bit by bit: the same in every width."""

from __future__ import annotations

import numpy as np
import pytest

import tilelang as tl

NUMBERS = [0.0, -0.0, 1.0, -1.0, 2.5, -2.5, 1e-40, -1e-40, 3e38, -3e38, np.inf, -np.inf, np.nan, -np.nan, np.nextafter(1, 2), 7.0]


@pytest.mark.parametrize("lanes", [1, 2, 4, 8, 16])
@pytest.mark.parametrize("type", ["float32", "float64"])
@pytest.mark.parametrize("op", ["minimum", "maximum"])
def test_the_second_of_equals_and_nan_from_either_side(op: str, type: str, lanes: int) -> None:
    first, second = (np.ravel(v) for v in np.meshgrid(*[np.array(NUMBERS, type)] * 2))
    i = tl.axes(i=first.size)
    A, B = tl.input("A", getattr(tl, type), i), tl.input("B", getattr(tl, type), i)
    schedule = tl.schedule(tl.define("Y", getattr(tl, op)(A[i], B[i]), i)).tile(i=64).to(tl.block)
    kernel = tl.compile(schedule.vectorize(i=lanes) if lanes > 1 else schedule, "cpu")
    found = kernel(first, second)
    expected = np.where(first > second if op == "maximum" else first < second, first, second)
    nan = np.isnan(first) | np.isnan(second)
    assert (np.isnan(found) == nan).all()
    assert (found.view(bits := f"uint{type.removeprefix('float')}")[~nan] == expected.view(bits)[~nan]).all()


@pytest.mark.parametrize("op", ["min", "max"])
def test_a_row_is_nan_wherever_its_nan_stands(op: str) -> None:
    i, j = tl.axes(i=200, j=200)
    X = tl.input("X", tl.float32, i, j)
    kernel = tl.compile(tl.define("Y", getattr(tl, op)(X[i, j], over=j), i), "cpu")
    x = np.random.default_rng(1).normal(size=(200, 200)).astype("float32")
    x[np.arange(0, 200, 2), np.arange(0, 200, 2)] = np.nan
    np.testing.assert_array_equal(kernel(x), getattr(x, op)(axis=1))


def test_whole_vectors_need_no_mask_on_x86() -> None:
    i, j = tl.axes(i=16, j=64)
    X = tl.input("X", tl.float32, i, j)
    schedule = tl.schedule(tl.define("Y", tl.max(X[i, j], over=j), i)).tile(i=1).to(tl.block)
    source = tl.compile(schedule.accumulate("register").vectorize(j=16), "cpu").source
    assert "__builtin_ia32_maxps512(a, b, 4), s = __builtin_ia32_maxps512(b, a, 4);" in source
    assert "as_int4(r) | (as_int4(s) & 0x7fffffff)" in source  # of the last lanes' halves, too
