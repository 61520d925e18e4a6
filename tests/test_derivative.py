"""Derivatives against differences."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilelang as tl
from tilelang.core import dtype as dt
from tilelang.core import numeric
from tilelang.core.expr import Expr, Var
from tilelang.semantics.derivative import NotDifferentiable, choices, derivative

X, Y = Var("x", dt.float64), Var("y", dt.float64)

CASES: dict[str, Expr] = {
    "arithmetic": X * Y - X / Y + 3 * X - Y,
    "quotient": (X * X + 1) / (X + Y),
    "power": X**2.5 * Y,
    "exponentials": tl.exp(X * Y) + tl.exp2(X) - tl.expm1(-X),
    "logarithms": tl.log(X * Y) + tl.log2(X + 1) * tl.log1p(X),
    "roots": tl.sqrt(X * Y) / tl.rsqrt(X + Y),
    "waves": tl.sin(X) * tl.cos(X * Y),
    "bounded": tl.tanh(X - Y) + tl.sigmoid(X) * tl.erf(X),
    "extremes": tl.maximum(X, Y) * tl.minimum(X * X, Y) + tl.abs(Y - X),
    "choice": tl.where(X < Y, X * X, Y * X),
    "cast": tl.cast(X, dt.float32) * Y,
}


@pytest.mark.parametrize("name", CASES)
def test_derivatives_are_limits_of_differences(name: str) -> None:
    generator = np.random.default_rng(0)
    at: dict[Expr, Any] = {X: generator.uniform(0.2, 2, 50), Y: generator.uniform(0.2, 2, 50)}
    for by in (X, Y):
        step = 1e-2 if name == "cast" else 1e-6  # a conversion's rounding is no part of its derivative
        up, down = ({**at, by: at[by] + s} for s in (step, -step))
        slope = (numeric.evaluate(CASES[name], up) - numeric.evaluate(CASES[name], down)) / (2 * step)
        found = derivative(CASES[name], by)
        np.testing.assert_allclose(0 if found is None else numeric.evaluate(found, at), slope, rtol=1e-4, atol=1e-5)


def test_what_does_not_depend_or_steps() -> None:
    assert derivative(tl.exp(Y) * 2, X) is None
    assert derivative(tl.where(X < Y, Y, 2 * Y), X) is None
    for stepping in (tl.floor(X), X % Y, X // 2, tl.cast(tl.cast(X, dt.int32), dt.float64), Y**X):
        with pytest.raises(NotDifferentiable):
            derivative(stepping, X)


def test_choices_are_what_may_jump() -> None:
    condition = X < Y
    assert choices(tl.where(condition, X, Y) * tl.maximum(X, Y)) == (condition,)
