"""The normal form of repairs: which expressions are recognised as equal, and that none is taken for another one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tilelang as tl
from tilelang.core.expr import Binary, Call, Const, Expr, Unary, Var
from tilelang.core.numeric import evaluate
from tilelang.semantics.normal_form import equal_forms

a, b, n, m = (Var(x, tl.float64) for x in "abnm")

EQUAL = {
    "a sign of a product": (-(a * b), (-a) * b),
    "a sign of a factor": ((n - b) * a, -((b - n) * a)),
    "a sign in an exponent": (tl.exp(-(n - b)), tl.exp(b - n)),
    "a sign of a product in an exponent": (tl.exp(-(a * b)), tl.exp((-a) * b)),
    "a sign of a divisor": (-(tl.exp(b) / n), tl.exp(b) / -n),
    "two signs": ((-a) * (-b), a * b),
    "a common constant": (2 * n - 2 * b, (n - b) * 2),
    "a product of sums": ((a - b) * (n - m), a * n - a * m - b * n + b * m),
    "base 2": (tl.exp2(b - n), tl.exp2(b) / tl.exp2(n)),
    "base 2, with a sign": (tl.exp2(-(n - b)), 1 / tl.exp2(n - b)),
    "base 2 and e": (tl.exp2(b) * tl.exp(n), tl.exp(b * tl.log(2.0) + n)),
    "logarithms": (tl.log2(a), tl.log(a) / tl.log(2.0)),
    "a logarithm of a quotient": (tl.log(n / b), tl.log(n) - tl.log(b)),
    "an exponential of logarithms": (tl.exp(tl.log(b) - tl.log(n)), abs(b / n)),
    "a root of a quotient": (tl.sqrt(b / n), tl.sqrt(b) * tl.rsqrt(n)),
    "a root of an exponential": (tl.sqrt(tl.exp(2 * (b - n))), tl.exp(b - n)),
    "odd functions": (tl.tanh(-(n - b)), -tl.tanh(n - b)),
    "even functions": (abs(b - n) * tl.cos(b - n), abs(n - b) * tl.cos(n - b)),
}
APART = {
    "bases": (tl.exp2(b - n), tl.exp(b - n)),
    "a decimal number for log(2)": (tl.exp2(b), tl.exp(b * 0.6931471805599453)),
    "a root of a square": (tl.sqrt(b * b), b),
    "a product of roots": (tl.sqrt(a * b) * tl.sqrt(a * n), a * tl.sqrt(b * n)),
    "a sign": (tl.exp(b - n), tl.exp(n - b)),
    "a magnitude": (abs(a) * b, a * b),
    "an odd power": (a**3, abs(a) ** 3),
    "a magnitude of an even function": (tl.cos(b), abs(tl.cos(b))),
    "a root of the square of an even function": (tl.sqrt(tl.cos(b) * tl.cos(b)), tl.cos(b)),
    "constants that cancel": (n + 1e12 + 1.0 - 1e12, n),
    "constants that overflow": (a * 1e200 * 1e200, a * 1e200 * 1e250),
    "constants that underflow": (a * 1e-200 * 1e-200, b * 1e-200 * 1e-200),
}


@pytest.mark.parametrize("case", EQUAL)
def test_equal_expressions(case: str) -> None:
    assert equal_forms(*EQUAL[case]) and equal_forms(*reversed(EQUAL[case]))


@pytest.mark.parametrize("case", APART)
def test_expressions_that_differ_or_may(case: str) -> None:
    assert not equal_forms(*APART[case])


def test_a_variable_that_is_never_negative_has_a_root() -> None:
    assert equal_forms(tl.sqrt(b * b), b, [b]) and equal_forms(tl.sqrt(a * b) * tl.sqrt(a * n), a * tl.sqrt(b * n), [a])


def grown(below: Any) -> Any:
    """Expressions with one more operation."""

    def applied(name: str) -> Any:
        return below.map(lambda x: Call(name, (x,)))

    functions = map(applied, ("exp", "exp2", "log", "log2", "sqrt", "rsqrt", "abs", "tanh", "cos"))
    operations = st.builds(Binary, st.sampled_from("+-*/"), below, below)
    powers = st.builds(Binary, st.just("pow"), below, st.just(Const(2.0, tl.float64)))
    return st.one_of(operations, powers, st.builds(Unary, st.just("-"), below), *functions)


LEAVES = st.sampled_from([a, b, n]) | st.sampled_from([0.0, 0.5, 1.0, -2.0]).map(lambda x: Const(x, tl.float64))
EXPRESSIONS = st.recursive(LEAVES, grown, max_leaves=4)


@given(EXPRESSIONS, EXPRESSIONS, st.integers(0, 2**32))
@settings(max_examples=300, deadline=None)
def test_what_is_equal_has_equal_values(x: Expr, y: Expr, seed: int) -> None:
    """Whatever is recognised as equal is equal at random points, of either sign, where both are defined."""
    generator = np.random.default_rng(seed)
    values: dict[Expr, Any] = {v: generator.uniform(0.3, 2, 50) * generator.choice((-1, 1), 50) for v in (a, b, n)}
    for left, right in ((x, y), (x, Unary("-", Unary("-", x))), (Binary("*", x, y), Binary("*", y, x))):
        if equal_forms(left, right):
            with np.errstate(all="ignore"):
                found, wanted = (np.broadcast_to(evaluate(e, values), 50) for e in (left, right))
            both = np.isfinite(found) & np.isfinite(wanted)
            np.testing.assert_allclose(found[both], wanted[both], rtol=1e-6, atol=1e-9)
