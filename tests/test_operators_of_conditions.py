"""Operators of two conditions: what NumPy gives, in scalars, in vectors, in every dialect's text, or a refusal."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tilelang as tl
from tilelang.testing import emulation

ORDERED: dict[str, tuple[Callable[[Any, Any], Any], Callable[[Any, Any], Any]]] = {
    "<": (operator.lt, operator.lt),
    "<=": (operator.le, operator.le),
    ">": (operator.gt, operator.gt),
    ">=": (operator.ge, operator.ge),
    "==": (tl.equal, np.equal),
    "!=": (tl.not_equal, np.not_equal),
    "^": (operator.xor, operator.xor),
    "minimum": (tl.minimum, np.minimum),
    "maximum": (tl.maximum, np.maximum),
}
RNG = np.random.default_rng(0)
P, Q = RNG.random((2, 5, 19)) < 0.5
X = RNG.standard_normal((5, 19)).astype(np.float32)


def computation(op: str) -> tuple[tl.Computation, dict[str, Any]]:
    """A condition of two tensors, of a tensor and a comparison, a choice by it, and what counts it; with what NumPy says."""
    ours, numpys = ORDERED[op]
    i, j = tl.axes(i=5, j=19)
    p, q, x = tl.input("P", tl.bool, i, j), tl.input("Q", tl.bool, i, j), tl.input("X", tl.float32, i, j)
    outputs = (
        tl.define("plain", ours(p[i, j], q[i, j]), i, j),
        tl.define("mixed", ours(p[i, j], x[i, j] > 0), i, j),
        tl.define("chosen", tl.where(ours(p[i, j], q[i, j]), x[i, j], 0.0), i, j),
        tl.define("counted", tl.sum(ours(p[i, j], q[i, j]), over=j), i),
        tl.define("everywhere", tl.all(ours(p[i, j], q[i, j]), over=i), j),
    )
    plain = numpys(P, Q)
    right = {
        "plain": plain,
        "mixed": numpys(P, X > 0),
        "chosen": np.where(plain, X, 0),
        "counted": plain.sum(1),
        "everywhere": plain.all(0),
    }
    return tl.computation("conditions", outputs), right


@pytest.mark.parametrize("op", [operator.and_, operator.or_, operator.xor], ids=lambda op: op.__name__)
def test_a_condition_beside_an_integer_is_0_or_1(op: Any) -> None:
    """On either side, and beside a number of Python."""
    i = tl.axes(i=8)
    p, n = tl.input("P", tl.bool, i), tl.input("N", tl.int32, i)
    outputs = [tl.define("left", op(p[i], n[i]), i), tl.define("right", op(n[i], p[i]), i), tl.define("number", op(p[i], 3), i)]
    flags, numbers = np.arange(8) % 2 == 1, np.arange(-4, 4, dtype=np.int32)
    found = tl.compile(tl.computation("both", tuple(outputs)), "cpu")(flags, numbers)
    for name, right in {"left": op(flags, numbers), "right": op(numbers, flags), "number": op(flags.astype(int), 3)}.items():
        np.testing.assert_array_equal(found._asdict()[name], right)


@pytest.mark.parametrize("op", ORDERED)
def test_two_conditions_compare_as_numpys(op: str) -> None:
    """Lanes of masks are 0 and -1, whose order is not that of False and True."""
    made, right = computation(op)
    given = {"P": P, "Q": Q, "X": X}
    found = tl.compile(made, "cpu")(**given)._asdict()
    report = tl.simulate(tl.compile(made, tl.target(profile="ampere")), **given)
    assert not report.findings
    for name, expected in right.items():
        np.testing.assert_array_equal(found[name], expected, name)
        assert report.outputs[name].dtype == found[name].dtype


@pytest.mark.parametrize("op", ["<", "<=", "maximum"])
@pytest.mark.parametrize("dialect", ["cuda", "hip"])
def test_the_text_of_a_gpu_compares_them_so_in_vectors(op: str, dialect: str) -> None:
    if emulation.absent() is not None:
        pytest.skip("no compiler of the text of GPUs is here")
    ours, numpys = ORDERED[op]
    i = tl.axes(i=16)
    p, q = tl.input("P", tl.bool, i), tl.input("Q", tl.bool, i)
    made = tl.schedule(tl.define("Y", ours(p[i], q[i]), i)).tile(i=16).to(tl.block).tile(i=4).to(tl.thread).vectorize(i=4)
    kernel = tl.compile(made, tl.target(dialect, profile="ampere" if dialect == "cuda" else "cdna3"))
    found = emulation.run_kernel(kernel, {"P": P[0, :16], "Q": Q[0, :16]})["Y"]
    np.testing.assert_array_equal(np.asarray(found).astype(bool), numpys(P[0, :16], Q[0, :16]))


@pytest.mark.parametrize("op", [operator.lshift, operator.rshift, operator.add])
def test_conditions_are_no_numbers(op: Callable[[Any, Any], Any]) -> None:
    i = tl.axes(i=4)
    p = tl.input("P", tl.bool, i)
    with pytest.raises(tl.ComputationError, match="operand-type"):
        op(p[i], p[i])


@pytest.mark.parametrize("extreme", ["minimum", "maximum"])
def test_the_extreme_of_a_condition_and_a_number_is_a_number(extreme: str) -> None:
    ours, numpys = ORDERED[extreme]
    i = tl.axes(i=19)
    p, n = tl.input("P", tl.bool, i), tl.input("N", tl.int32, i)
    given = {"P": P[0], "N": np.arange(-9, 10, dtype=np.int32)}
    for made in (ours(p[i], n[i]), ours(n[i], p[i])):
        found = tl.compile(tl.define("Y", made, i), "cpu")(**given)
        np.testing.assert_array_equal(found, numpys(given["P"], given["N"]))
