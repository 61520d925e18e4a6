"""Every function on the device here, at every vector width: within the ulps that are stated and that enter the bound."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import tilelang as tl
from benchmarks import function_errors as fe
from tests.lowering.c_family_cases import loads, together
from tilelang.core import dtype as dt
from tilelang.core.expr import ANY_FUNCTIONS, FLOAT_FUNCTIONS, Binary, Call, Expr
from tilelang.lowering.targets.c import emitter
from tilelang.lowering.targets.dialects import DIALECTS
from tilelang.semantics import error_bound, reference

WIDTHS = [1, 2, 4, 8, 16]
NAMES = (*FLOAT_FUNCTIONS, *ANY_FUNCTIONS)


def run(inputs: dict[str, Any], lanes: int, names: tuple[str, ...]) -> dict[str, Any]:
    x, *others = loads(inputs, lanes)
    values: dict[str, Expr] = {f"{n}_of_x": Call(n, (x,)) for n in names if n not in fe.TWO_ARGUMENTS}
    values |= {f"{n}_of_x": Binary(n, x, others[0]) for n in names if n in fe.TWO_ARGUMENTS}
    found = together({n.replace("/", "over"): e for n, e in values.items()}, inputs, lanes)
    return {n: found[f"{n}_of_x".replace("/", "over")] for n in names}


def test_what_is_stated_enters_the_bound() -> None:
    assert set(fe.EXACT) == {*NAMES, *fe.TWO_ARGUMENTS}
    for dialect in DIALECTS.values():
        for type in ("float", "double"):
            stated, bounds = emitter.ulps(dialect, type), emitter.error_bounds(dialect)
            assert all(stated.get(name, 0) <= bounds[name] <= error_bound.ULPS[name] for name in fe.EXACT)
    assert set(fe.stated("float32")) >= set(fe.EXACT) and set(fe.stated("float64")) >= set(fe.EXACT)


@pytest.mark.parametrize("lanes", WIDTHS)
@pytest.mark.parametrize("type", ["float32", "float64"])
def test_functions_keep_their_stated_error(type: str, lanes: int) -> None:
    x = fe.samples(type, 1 << 15 if type == "float32" else 1 << 13, lanes)
    inputs = {"x": x, "y": np.random.default_rng(lanes).permutation(x)}
    found, stated = run(inputs, lanes, (*NAMES, *fe.TWO_ARGUMENTS)), fe.stated(type)
    for name, result in found.items():
        arguments = tuple(inputs.values()) if name in fe.TWO_ARGUMENTS else (x,)
        off = fe.errors(name, arguments, result)
        worst = int(off.argmax())
        limit = stated[name]
        at = ", ".join(repr(a[worst]) for a in arguments)
        assert off[worst] <= limit, f"{name}: {off[worst]} ulps at {at}, which gives {result[worst]!r}; stated {limit}"
        if type == "float32" and limit > 0.5 and name != "/":  # whose stated error is that of dividing by one number
            assert off[worst] > limit / 3, f"{name}: {off[worst]} ulps, far below the stated {limit}"


@pytest.mark.parametrize("lanes", [1, 16])
@pytest.mark.parametrize("type", [np.float16, ml_dtypes.bfloat16])
def test_all_numbers_of_16_bits(type: Any, lanes: int) -> None:
    x = fe.halves(type)
    found, stated = run({"x": x}, lanes, NAMES), fe.stated()
    for name, result in found.items():
        right = fe.rounds_to(name, x, result.astype(dt.dtype(x.dtype.name).numpy), stated[name])
        at = int(np.argmin(right))
        assert right.all(), f"{name} of {x[at]} is {result[at]}; {np.sum(~right)} are wrong"


@pytest.mark.parametrize("lanes", WIDTHS)
def test_exp_under_licence_is_another_and_within_the_licence(lanes: int) -> None:
    x = fe.samples("float32", 1 << 13, lanes)
    i = tl.axes(i=len(x))
    X = tl.input("X", tl.float32, i)
    schedule = tl.schedule(tl.define("Y", tl.exp(X[i]), i, allow=("fast_exp",))).tile(i=512).to(tl.block)
    kernel = tl.compile(schedule if lanes == 1 else schedule.vectorize(i=lanes))
    found = kernel(x)
    assert "fast_exp_float" in kernel.source
    assert reference.compare(kernel.computation, {"X": x}, {"Y": found})
    off = fe.errors("exp", (x,), found)
    claimed = np.abs(x) < 88  # beyond, whether an infinity is right is for the bound to say
    assert (off[claimed] <= 7 + 2 * np.abs(x[claimed])).all()
    assert off[claimed].max() > fe.stated()["exp"], "the licence is used"


def test_a_licence_counts_where_every_definition_gives_it() -> None:
    i = tl.axes(i=64)
    X = tl.input("X", tl.float32, i)
    first = tl.define("F", tl.exp(X[i]), i, allow=("fast_exp",))
    for allow, fast in (("fast_exp", True), ((), False)):
        second = tl.define("Y", first[i] + tl.exp(-X[i]), i, allow=allow)
        assert ("fast_exp" in tl.compile(second).source) == fast
    assert "fast_exp" not in tl.compile(tl.define("Y", tl.tanh(X[i]), i, allow=("fast_exp",))).source


def test_a_lane_is_right_whatever_is_beside_it() -> None:
    """Beside one that is huge, infinite or NaN, and takes another way."""
    x = np.tile(np.array([1e-30, 3e38, -2.5, np.inf, 1e-45, np.nan, 0.1, -1e10], np.float32), 64)
    for lanes in WIDTHS:
        for name, result in run({"x": x}, lanes, ("sin", "cos")).items():
            assert fe.errors(name, (x,), result).max() <= fe.stated()[name]


@pytest.mark.parametrize("lanes", WIDTHS)
def test_odd_functions_keep_the_sign_of_zero(lanes: int) -> None:
    x = np.tile(np.array([-0.0, 0.0], np.float32), 16)
    for name, result in run({"x": x}, lanes, ("tanh", "erf", "sin", "sqrt")).items():
        assert np.array_equal(np.signbit(result), np.signbit(x)) and not result.any(), name
