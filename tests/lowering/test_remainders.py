"""Floored remainders and quotients of floats, as NumPy has them, in every width and type."""

import pytest

import tilelang as tl


@pytest.mark.parametrize("kind", [tl.float32, tl.float64])
@pytest.mark.parametrize("columns", [1, 2, 8, 53])
def test_remainders_are_numpys(kind: tl.DType, columns: int) -> None:
    i, j = tl.axes(i=37, j=columns)
    a, b = tl.input("A", kind, i, j), tl.input("B", kind, i, j)
    for value in (a[i, j] % b[i, j], a[i, j] // b[i, j]):
        report = tl.compile(tl.define("Y", value, i, j)).check()
        assert report.ok, str(report)
