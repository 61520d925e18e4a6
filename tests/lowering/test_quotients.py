"""Vectors divided by one number on native processors: what a division gives, for every kind of divisor and dividend."""

from __future__ import annotations

import numpy as np
import pytest

import tilelang as tl
from benchmarks import function_errors as fe

ROWS, COLUMNS = 512, 64
LEAST = {"float32": 2.0**-103, "float64": 2.0**-969}  # of a dividend whose quotient is that of a division, bit by bit


def source_of(divisor: float) -> str:
    i = tl.axes(i=64)
    X = tl.input("X", tl.float32, i)
    schedule = tl.schedule(tl.define("Y", X[i] / divisor, i)).tile(i=64).to(tl.block).vectorize(i=16)
    return tl.compile(schedule, tl.target("cpu")).source


@pytest.mark.parametrize("lanes", [2, 8, 16])
@pytest.mark.parametrize("type", ["float32", "float64"])
def test_quotients_of_rows_are_those_of_a_division(type: str, lanes: int) -> None:
    i, j = tl.axes(i=ROWS, j=COLUMNS)
    X, D = tl.input("X", type, i, j), tl.input("D", type, i)
    schedule = tl.schedule(tl.define("Y", X[i, j] / D[i], i, j)).tile(i=8).to(tl.block).split(i=1).vectorize(j=lanes)
    kernel = tl.compile(schedule, tl.target("cpu"))
    scalar = {"float32": "float", "float64": "double"}[type]
    assert f"quotients_{scalar}{lanes}(" in kernel.source

    rng, info = np.random.default_rng(0), np.finfo(type)
    samples = fe.samples(type, 1 << 13, lanes)
    x = rng.choice(np.concatenate([samples, rng.standard_normal(1 << 13).astype(type)]), (ROWS, COLUMNS))
    near_most = (1 - rng.random(COLUMNS) / 50).astype(type)
    x[::3] = info.max * near_most  # quotients on both sides of the greatest number
    x[1::3, :8] = [0.0, -0.0, np.inf, -np.inf, np.nan, info.tiny, info.smallest_subnormal, info.max]
    d = np.concatenate(
        [rng.choice(samples, ROWS // 2), rng.uniform(0.5, 2000, ROWS // 4), 1 - rng.random(ROWS // 4) / 50]
    ).astype(type)
    d = rng.permutation(d)
    found = kernel(x, d)
    with np.errstate(all="ignore"):
        expected = x / d[:, None]
        unit = np.spacing(np.maximum(np.abs(expected), info.tiny))
        near = (np.abs(found - expected) <= 2 * unit) & (np.abs(x) < LEAST[type]) & (np.signbit(found) == np.signbit(expected))
    same = (found == expected) & (np.signbit(found) == np.signbit(expected)) | (np.isnan(found) & np.isnan(expected))
    wrong = ~(same | near)
    assert not wrong.any(), [
        *zip(x[wrong], np.broadcast_to(d[:, None], x.shape)[wrong], found[wrong], expected[wrong], strict=True)
    ][:4]


def test_a_power_of_two_is_divided_by_as_it_stands() -> None:
    assert "quotients" in source_of(3.0)
    assert "quotients" not in source_of(4.0) and "quotients" not in source_of(-0.125)
