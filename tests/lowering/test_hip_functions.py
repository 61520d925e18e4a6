"""Functions that the HIP target makes itself, emulated on this processor: within the ulps that are stated and that enter the bound."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from benchmarks import function_errors as fe
from tests.lowering.c_family_cases import Arrays, emulating, loads, together
from tilelang.core.expr import ANY_FUNCTIONS, FLOAT_FUNCTIONS, Binary, Call, Expr
from tilelang.lowering.targets import cuda, hip, hip_doubles
from tilelang.lowering.targets.c import emitter
from tilelang.semantics import error_bound
from tilelang.testing import emulation

EVERY = {*FLOAT_FUNCTIONS, *ANY_FUNCTIONS, *fe.TWO_ARGUMENTS}
MADE = (
    "log1p",
    "expm1",
    "rsqrt",
    "sin",
    "cos",
    "tanh",
    "erf",
    "sigmoid",
    "pow",
)  # of 32-bit floats; the others are the back end's


@pytest.fixture(autouse=True)
def emulated() -> Iterator[None]:
    reason = emulation.absent()
    if reason is not None:
        pytest.skip(reason)
    with emulating(hip.DIALECT):
        yield


def run(inputs: Arrays, names: tuple[str, ...]) -> Arrays:
    x, y = loads(inputs, 1)
    values: dict[str, Expr] = {f"{n}_of_x": Binary("pow", x, y) if n == "pow" else Call(n, (x,)) for n in names}
    return {n.removesuffix("_of_x"): found for n, found in together(values, inputs, 1).items()}


@pytest.mark.parametrize("dialect", [cuda.DIALECT, hip.DIALECT], ids=lambda d: d.name)
def test_what_is_stated_enters_the_bound(dialect: emitter.Dialect) -> None:
    stated = emitter.ulps(dialect)
    assert all(stated[name] <= error_bound.ULPS[name] for name in EVERY - {"sigmoid"})


@pytest.mark.parametrize("type", ["float32", "float64"])
def test_functions_keep_their_stated_error(type: str) -> None:
    x = fe.samples(type, 1 << 15 if type == "float32" else 1 << 13, 1)
    inputs = {"x": x, "y": np.random.default_rng(1).permutation(x)}
    names = MADE if type == "float32" else tuple(sorted(EVERY - {"/", "abs"}))
    stated = emitter.ulps(hip.DIALECT) if type == "float32" else error_bound.ULPS | hip_doubles.ULPS
    for name, result in run(inputs, names).items():
        arguments = tuple(inputs.values()) if name == "pow" else (x,)
        off = fe.errors(name, arguments, result)
        worst = int(off.argmax())
        at = ", ".join(repr(a[worst]) for a in arguments)
        assert off[worst] <= stated[name], f"{name}: {off[worst]} ulps at {at}, which gives {result[worst]!r}"


def test_log1p_beside_where_its_argument_is_rounded_most() -> None:
    """1 + x is rounded by up to half an ulp, which a factor puts back worse than a sum."""
    x = np.concatenate([31.528319180960995 + np.arange(4096) * 2.0**-40, [-1.0, 0.0, -0.0, np.inf, 1e300, -1.5, 2.0**-60]])
    found = run({"x": x, "y": x}, ("log1p",))["log1p"]
    assert fe.errors("log1p", (x,), found).max() <= 1.5


def test_sine_and_cosine_of_huge_numbers() -> None:
    """Down to the last bit of the largest exponents, where a quarter turn is far below an ulp."""
    exponents = np.arange(13, 128, dtype=np.float32)
    mantissas = 1 + np.random.default_rng(2).random((64, 1), np.float32)
    x = np.concatenate([(mantissas * 2**exponents).ravel(), -(mantissas * 2**exponents).ravel()]).astype(np.float32)
    for name, result in run({"x": x, "y": x}, ("sin", "cos")).items():
        assert fe.errors(name, (x,), result).max() <= 0.55


def test_sine_and_cosine_of_huge_doubles() -> None:
    """Near multiples of quarter turns too, around where the way of taking turns off changes, and up to the greatest exponent."""
    generator = np.random.default_rng(3)
    huge = (1 + generator.random((16, 1))) * 2.0 ** np.arange(20, 1024)
    turns = generator.integers(1 << 20, 1 << 33, 4096) * (np.pi / 2)
    x = np.concatenate(
        [huge.ravel(), -huge.ravel(), turns, [6381956970095103 * 2.0**797, 2.0**31, np.nextafter(2.0**31, 0), -0.0]]
    )
    for name, result in run({"x": x, "y": x}, ("sin", "cos")).items():
        assert fe.errors(name, (x,), result).max() <= hip_doubles.ULPS[name]


def test_powers_of_doubles_far_from_one() -> None:
    """Where the logarithm's last bits count most, and exponents that are whole, odd, huge or infinite."""
    generator = np.random.default_rng(4)
    x = np.concatenate([np.exp(generator.uniform(-700, 700, 1 << 14)), generator.uniform(0.5, 2, 1 << 14)])
    y = np.concatenate([708 / np.log(x[: 1 << 14]), generator.uniform(-1020, 1020, 1 << 14)])
    ends = np.array([0.0, -0.0, 1.0, -1.0, 2.0, -2.0, 3.0, -3.0, 0.5, -1.5, 2.0**52 + 1, 1e300, np.inf, -np.inf, np.nan, 5e-324])
    x, y = np.concatenate([x, np.repeat(ends, ends.size)]), np.concatenate([y, np.tile(ends, ends.size)])
    off = fe.errors("pow", (x, y), run({"x": x, "y": y}, ("pow",))["pow"])
    worst = int(off.argmax())
    assert off[worst] <= hip_doubles.ULPS["pow"], (x[worst], y[worst])
