"""Conversions of floats to integers end at the least and the greatest of the type, everywhere alike; NaN gives 0."""

from typing import Any

import numpy as np
import pytest

import tilelang as tl

INTEGERS = ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"]
EDGES = [
    0.0, -0.0, 0.5, -0.5, 1.0, -1.0, -1.5, 127.0, 127.5, 128.0, -128.0, -128.9, -129.0, 255.0, 255.5, 256.0, 32767.0, 32768.0,
    -32769.0, 65535.0, 65536.0, 2147483520.0, 2147483647.0, 2147483648.0, -2147483648.0, -2147483904.0, 4294967040.0, 4294967296.0,
    9.223371e18, 2.0**63, -(2.0**63), -9.3e18, 1.8446743e19, 2.0**64, 1e30, -1e30, np.inf, -np.inf, np.nan,
]  # fmt: skip


def ended(x: float, target: str) -> int:
    limits = np.iinfo(target)
    if np.isnan(x):
        return 0
    return int(limits.max if x > limits.max else limits.min if x < limits.min else np.trunc(x))


@pytest.mark.parametrize("target", INTEGERS)
@pytest.mark.parametrize("source", ["float16", "bfloat16", "float32", "float64"])
def test_reference_simulator_and_processor_agree_on_every_end(source: str, target: str) -> None:
    i = tl.axes(i=48)
    X = tl.input("X", getattr(tl, source), i)
    computation = tl.computation("c", tl.define("Y", tl.cast(X[i], getattr(tl, target)), i))
    with np.errstate(over="ignore"):
        x = np.resize(EDGES, 48).astype(X.dtype.numpy)
    wanted = np.array([ended(float(v), target) for v in x], target)
    assert np.array_equal(computation.evaluate(X=x), wanted)
    for lanes in (1, 4, 16):
        made = tl.schedule(computation) if lanes == 1 else tl.schedule(computation).vectorize(i=lanes)
        kernel = tl.compile(made, tl.target("cpu"))
        assert np.array_equal(kernel(x), wanted)
        assert np.array_equal(tl.simulate(kernel, X=x).outputs["Y"], wanted)


@pytest.mark.parametrize("dialect, profile", [("cuda", "ampere"), ("hip", "cdna3"), ("opencl", "simulated")])
def test_the_text_of_each_dialect_ends_them(dialect: str, profile: str) -> None:
    i = tl.axes(i=64)
    X = tl.input("X", tl.float32, i)
    made = tl.schedule(tl.define("Y", tl.cast(X[i], tl.int8), i)).vectorize(i=4)
    source = tl.compile(made, tl.target(dialect, profile=profile)).source
    assert "127.0f" in source and "-128.0f" in source


def test_a_bound_of_a_cast_beyond_the_type_knows_its_ends() -> None:
    i = tl.axes(i=4)
    X = tl.input("X", tl.float32, i)
    computation = tl.computation("c", tl.define("Y", tl.cast(X[i] * 1000.0, tl.int8), i))
    x = np.array([1.0, -1.0, 0.0105, 0.13], np.float32)
    assert computation.evaluate(X=x).tolist() == [127, -128, 10, 127]
    assert np.all(np.asarray(computation.bound(X=x)) <= 1)
    assert tl.compile(computation, tl.target("cpu")).check()


@pytest.mark.parametrize("name", ["int8", "int16", "uint8", "uint16", "int32", "int64"])
def test_the_greatest_and_least_of_no_points_are_the_ends_of_the_type(name: str) -> None:
    j, k = tl.axes(j=3, k=6)
    X = tl.input("X", getattr(tl, name), j, k)
    limits = np.iinfo(name)
    x = np.full((3, 6), 5, name)
    for reduction, end in ((tl.max, limits.min), (tl.min, limits.max)):
        Y = tl.define("Y", reduction(X[j, k], over=k, where=k < j - 1), j)
        for kernel in (tl.compile(Y, tl.target("cpu")), tl.compile(tl.schedule(Y), tl.target("cpu"))):
            assert kernel(x).tolist() == [end, end, 5] and kernel.check()
            assert tl.simulate(kernel, X=x).outputs["Y"].tolist() == [end, end, 5]
        assert tl.computation("c", Y).evaluate(X=x).tolist() == [end, end, 5]


def test_points_left_out_change_no_extreme_of_a_type_without_infinities() -> None:
    i, k = tl.axes(i=2, k=3)
    X = tl.input("X", tl.float8_e4m3, i, k)
    x = np.array([[-3, -2, 1], [4, 7, 5]]).astype(tl.float8_e4m3.numpy)
    for reduction, wanted in ((tl.max, [-2, 7]), (tl.min, [-3, 5])):
        condition = (X[i, k] < 0) | (X[i, k] >= 5)
        computation = tl.computation("c", tl.define("Y", reduction(X[i, k], over=k, where=condition), i))
        assert computation.evaluate(X=x).astype(float).tolist() == wanted
        assert tl.compile(computation, "cpu")(x).astype(float).tolist() == wanted


@pytest.mark.parametrize("source", ["float8_e4m3", "float8_e5m2", "float16", "bfloat16", "float32", "float64"])
def test_casts_end_wherever_they_stand(source: str) -> None:
    i, k = tl.axes(i=48, k=4)
    X, W, G = tl.input("X", getattr(tl, source), i), tl.input("W", getattr(tl, source), i, k), tl.input("G", tl.int32, g=16)
    with np.errstate(over="ignore"):
        x = np.resize(EDGES, 48).astype(X.dtype.numpy)
    w, g = np.random.default_rng(0).choice(x, (48, 4)), np.arange(16, dtype=np.int32) * 3
    peaks = [np.nan if np.isnan(row).any() else row.max() for row in w.astype(float)]
    for target in INTEGERS:
        T, point = getattr(tl, target), np.array([ended(float(v), target) for v in x], object)
        D = tl.define("D", tl.cast(X[i], T), i)
        nearest = tl.define("at", tl.minimum(tl.maximum(tl.cast(X[i], T), 0), 15), i)
        rows = np.array([[ended(float(v), target) for v in row] for row in w], object)
        cases = [
            (tl.where(D[i] == tl.cast(X[i], T), 1, 0), np.ones(48, object)),
            (tl.sum(tl.cast(W[i, k], T), over=k), rows.sum(1)),
            (tl.max(tl.cast(W[i, k], T), over=k), rows.max(1)),
            (tl.cast(tl.max(W[i, k], over=k) * 1.0, T), np.array([ended(float(v), target) for v in peaks], object)),
            (tl.cast(tl.pad(X[i + 1], 3.0), T), np.array([*point[1:], 3], object)),
            (G[nearest[i]], g[np.clip(point, 0, 15).astype(int)]),
        ]
        for expression, wanted in cases:
            computation = tl.computation("c", tl.define("Y", expression, i))
            arrays: dict[str, Any] = {t.name: {"X": x, "W": w, "G": g}[t.name] for t in computation.inputs}
            found = computation.evaluate(**arrays)
            bits = 2 ** (8 * found.dtype.itemsize)
            assert [int(v) % bits for v in found] == [int(v) % bits for v in wanted], computation.text
            if target in ("int8", "uint64"):
                kernel = tl.compile(computation, tl.target("cpu"))
                assert np.array_equal(kernel(*arrays.values()), found), computation.text
                assert np.array_equal(tl.simulate(kernel, **arrays).outputs["Y"], found), computation.text


def test_a_cast_of_small_integers_to_their_own_type_wraps() -> None:
    i = tl.axes(i=5)
    X, x = tl.input("X", tl.uint8, i), np.array([16, 15, 200, 20, 255], np.uint8)
    square = tl.cast(X[i] * X[i], tl.uint8)
    for value, wanted in (
        (square // 2, x * x // 2),
        (tl.where(square < 100, 1, 0), np.where(x * x < 100, 1, 0)),
        (tl.argmax(X[i] * X[i], over=i), np.argmax(x * x)),
        (tl.argmin(X[i] + X[i], over=i), np.argmin(x + x)),
        (tl.sum(square, over=i), np.sum(x * x)),
    ):
        computation = tl.computation("c", tl.define("Y", value, *(() if value.dtype in (tl.int32, tl.uint32) else (i,))))
        assert np.array_equal(computation.evaluate(X=x), wanted)
        assert np.array_equal(tl.compile(computation, tl.target("cpu"))(x), wanted)
        assert tl.parse(computation.text).computation("c").hash == computation.hash


@pytest.mark.parametrize("name", ["int8", "uint8", "int16", "uint16"])
def test_extremes_of_small_integers_are_of_values_that_wrapped(name: str) -> None:
    i, k = tl.axes(i=4, k=6)
    X = tl.input("X", getattr(tl, name), i, k)
    limits = np.iinfo(name)
    x = np.random.default_rng(0).integers(limits.min, limits.max + 1, (4, 6)).astype(name)
    for value, wanted in ((X[i, k] + X[i, k], x + x), (-X[i, k], -x), (X[i, k] * X[i, k], x * x)):
        Y = tl.define("Y", tl.max(value, over=k), i)
        assert np.array_equal(tl.compile(Y, tl.target("cpu"))(x), wanted.max(1))
        assert tl.parse(tl.computation("c", Y).text).computation("c").hash == tl.computation("c", Y).hash
