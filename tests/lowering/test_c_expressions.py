"""Expressions as C: what they compute on the device here, and as text of CUDA and HIP, against the scalar semantics in NumPy."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from tests.lowering.c_family_cases import (
    Array,
    assert_same,
    elementwise,
    emulating,
    floats,
    integers,
    loads,
    near_ties,
    places,
    run,
    splat,
    together,
)
from tilelang.core import dtype as dt
from tilelang.core.expr import (
    ANY_FUNCTIONS,
    FLOAT_FUNCTIONS,
    INDEX,
    PREDICATES,
    Binary,
    Call,
    Cast,
    Const,
    Expr,
    Select,
    Unary,
    Var,
    index,
)
from tilelang.lowering.ir import Buffer, For, Kernel, Load, Pack, Ramp, Store
from tilelang.lowering.simulator import scalar_semantics
from tilelang.lowering.targets import cuda, hip
from tilelang.lowering.targets.c.dialect import Dialect
from tilelang.testing import emulation


@pytest.fixture(params=[None, cuda.DIALECT, hip.DIALECT], ids=["device", "cuda", "hip"], autouse=True)
def emulated(request: pytest.FixtureRequest) -> Iterator[Dialect | None]:
    """Every test runs on the device here, and as text of each dialect that this processor can emulate."""
    reason = emulation.absent()
    if request.param is not None and reason is not None:
        pytest.skip(reason)
    with emulating(request.param):
        yield request.param


@pytest.mark.parametrize("lanes", [1, 4])
@pytest.mark.parametrize("type", ["float32", "float64", "float16"])
def test_functions_agree_with_numpy(lanes: int, type: str, emulated: Dialect | None) -> None:
    x = floats(3, type=type)
    x = np.where(np.abs(x) > 1000, x.dtype.type(3), x) if type != "float16" else x
    (v,) = loads({"x": x}, lanes)
    result = dt.float64 if type == "float64" else dt.float32
    names = sorted({*FLOAT_FUNCTIONS, *ANY_FUNCTIONS, *PREDICATES})
    found = together({f"{n}_of_x": Cast(Call(n, (v,)), dt.bool_ if n in PREDICATES else result) for n in names}, {"x": x}, lanes)
    wide = scalar_semantics.widen(x, dt.dtype(type))
    for name in names:
        with np.errstate(all="ignore"):
            expected = np.asarray(scalar_semantics.call(name, wide))
        units = 16 * np.finfo(result.numpy).eps
        np.testing.assert_allclose(
            found[f"{name}_of_x"], expected, rtol=units, atol=1e-300 if type == "float64" else 1e-44, err_msg=name
        )


# ---------------------------------------------------------------- operators

COMPARED = ("==", "!=", "<", "<=")
WORDS = {
    "+": "plus", "-": "minus", "*": "times", "/": "over", "//": "floor_over", "%": "modulo", "&": "and_", "|": "or_", "^": "xor_",
    "<<": "left", ">>": "right", "==": "eq", "!=": "ne", "<": "lt", "<=": "le", "min": "least", "max": "most", "pow": "raised",
}  # fmt: skip


@pytest.mark.parametrize("lanes", [1, 8])
@pytest.mark.parametrize("type", ["float32", "float64", "bfloat16", "float8_e4m3"])
def test_operators_of_floats(type: str, lanes: int, emulated: Dialect | None) -> None:
    t, inputs = dt.dtype(type), {"a": floats(1, type=type), "b": floats(2, type=type)}
    x, y = loads(inputs, lanes)
    ops = ("+", "-", "*", "/", "//", "%", "min", "max", "pow", *COMPARED)
    result = dt.compute_type(t)
    found = together({WORDS[op]: Cast(Binary(op, x, y), dt.bool_ if op in COMPARED else result) for op in ops}, inputs, lanes)
    for op in ops:
        with np.errstate(all="ignore"):
            expected = np.asarray(scalar_semantics.binary(op, *(scalar_semantics.widen(v, t) for v in inputs.values())))
        if op == "pow":
            units, least = 16 * np.finfo(result.numpy).eps, float(np.finfo(result.numpy).tiny)
            np.testing.assert_allclose(found[WORDS[op]], expected, rtol=units, atol=least)
        else:
            assert_same(found[WORDS[op]], expected, op)


@pytest.mark.parametrize("lanes", [1, 8])
@pytest.mark.parametrize("type", ["int8", "uint8", "int16", "int32", "uint32", "int64", "uint64"])
def test_operators_of_integers(type: str, lanes: int) -> None:
    t, inputs = dt.dtype(type), {"a": integers(1, type), "b": integers(2, type)}
    small = np.random.default_rng(3).integers(0, t.bits + 3, 1024)
    inputs["amount"] = small.astype(t.numpy)
    inputs["power"] = (small % 9 - (3 if t.kind == "int" else 0)).astype(t.numpy)
    ops = ("+", "-", "*", "//", "%", "min", "max", "&", "|", "^", "<<", ">>", "pow", *COMPARED)
    right = {"<<": "amount", ">>": "amount", "pow": "power"}
    of = dict(zip(inputs, loads(inputs, lanes), strict=True))
    found = together({WORDS[op]: Binary(op, of["a"], of[right.get(op, "b")]) for op in ops}, inputs, lanes)
    for op in ops:
        with np.errstate(all="ignore"):
            expected = np.asarray(scalar_semantics.binary(op, inputs["a"], inputs[right.get(op, "b")]))
        assert_same(found[WORDS[op]], expected, op)


@pytest.mark.parametrize("lanes", [1, 4])
def test_casts(lanes: int) -> None:
    types = ("bool", "int8", "uint8", "uint16", "int32", "int64", "uint64", "float16", "bfloat16", "float32", "float64",
             "float8_e4m3", "float8_e5m2")  # fmt: skip
    rng, inputs = np.random.default_rng(5), {}
    for source in types:
        type = dt.dtype(source)
        x = rng.integers(0, 2 if type.kind == "bool" else 100, 512)  # what every type can hold: beyond, C is undefined
        inputs[f"from_{source}"] = (x * 0.97 if type.is_float else x).astype(type.numpy)
    of = dict(zip(types, loads(inputs, lanes), strict=True))
    found = together({f"{s}_as_{t}": Cast(of[s], dt.dtype(t)) for s in types for t in types}, inputs, lanes)
    for s in types:
        for t in types:
            x = scalar_semantics.widen(inputs[f"from_{s}"], dt.dtype(s))
            expected = np.asarray(scalar_semantics.cast(x, dt.dtype(s), dt.dtype(t)))
            assert_same(found[f"{s}_as_{t}"].astype(np.float64), expected.astype(np.float64), f"{s} as {t}")


def test_negative_numbers_are_cast_too() -> None:
    inputs = {"f": np.nan_to_num(floats(6).clip(-100, 100)), "i": integers(6, "int8")}
    for lanes in (1, 16):
        f, i = loads(inputs, lanes)
        found = together({"cut": Cast(f, dt.int32), "wide": Cast(i, dt.int64), "wrapped": Cast(i, dt.uint32)}, inputs, lanes)
        assert_same(found["cut"], np.trunc(inputs["f"]).astype(np.int32))
        assert_same(found["wide"], inputs["i"].astype(np.int64))
        assert_same(found["wrapped"], inputs["i"].astype(np.uint32))


@pytest.mark.parametrize("type", ["float16", "bfloat16", "float8_e5m2"])
def test_narrow_floats_that_are_gathered_are_not_converted(type: str) -> None:
    """Bits of NaN too: elements of several rows in one vector, where they exist."""
    t = dt.dtype(type)
    x, y, i = Buffer("x", t, (4, 64), "global", "input"), Buffer("y", t, (64, 4), "global", "output"), Var("thread", INDEX, 0, 63)
    column = Pack(tuple(Load(x, (index(row), i)) for row in range(4)))
    body = Store(y, (i, index(0)), Select(Binary("<", i, index(60)), column, Const(0.0, t)))
    kept = np.dtype(f"uint{t.bits}")
    bits = np.random.default_rng(0).integers(0, 1 << t.bits, (4, 64), kept)
    arrays = {"x": bits.view(t.numpy), "y": np.zeros((64, 4), t.numpy)}
    source = run(Kernel("one", (1, 1, 1), 64, (x, y), body), arrays)
    assert np.array_equal(arrays["y"].view(kept), np.where(np.arange(64)[:, None] < 60, bits.T, 0))
    assert "float_to_" not in source


@pytest.mark.parametrize("type", ["float16", "bfloat16", "float8_e4m3", "float8_e5m2"])
@pytest.mark.parametrize("lanes", [1, 16])
def test_every_narrow_float_survives_both_ways(type: str, lanes: int) -> None:
    bits = dt.dtype(type).bits
    every = np.arange(1 << bits, dtype=f"uint{bits}").view(dt.dtype(type).numpy)
    wide = elementwise(lambda v: Cast(v, dt.float32), {"x": every}, dt.float32, lanes)
    assert_same(wide, every)
    back = elementwise(lambda v: Cast(v, dt.dtype(type)), {"x": wide}, dt.dtype(type), lanes)
    assert_same(back, every)


@pytest.mark.parametrize("lanes", [1, 16])
@pytest.mark.parametrize("type", ["float16", "bfloat16", "float8_e4m3", "float8_e5m2"])
def test_rounding_to_fewer_bits_is_to_nearest_even(type: str, lanes: int) -> None:
    t = dt.dtype(type)
    patterns = np.random.default_rng(2).integers(0, 2**32, 1 << 14, dtype=np.uint32)
    x = np.concatenate([patterns.view(np.float32), near_ties(t)])
    found = elementwise(lambda v: Cast(v, t), {"x": x}, t, lanes)
    with np.errstate(all="ignore"):
        assert_same(found, x.astype(t.numpy))


@pytest.mark.parametrize("type", ["float8_e4m3", "float8_e5m2"])
def test_devices_without_floats_of_8_bits_convert_them_in_software(type: str) -> None:
    """What the CUDA text has for architectures below sm_89."""
    if emulation.absent() is not None:
        pytest.skip(str(emulation.absent()))
    older = tuple((pattern, text.replace("__CUDA_ARCH__ >= 890", "0")) for pattern, text in cuda.DIALECT.headers)
    assert older != cuda.DIALECT.headers
    t, x = dt.dtype(type), near_ties(dt.dtype(type))
    every = np.arange(256, dtype=np.uint8).view(t.numpy)
    with emulating(dataclasses.replace(cuda.DIALECT, headers=older)), np.errstate(all="ignore"):
        assert_same(elementwise(lambda v: Cast(v, dt.float32), {"x": every}, dt.float32, 4), every)
        assert_same(elementwise(lambda v: Cast(v, t), {"x": x}, t, 4), x.astype(t.numpy))


@pytest.mark.parametrize("lanes", [1, 8])
@pytest.mark.parametrize("index_bits", [32, 64])
def test_indices_as_values(lanes: int, index_bits: int) -> None:
    """A place number as data: in int64, as float, compared, and wrapped by // and % below zero."""
    inputs = {"x": floats(4)}
    i, n = places(1024, lanes), np.arange(1024)
    where = Ramp(i * lanes, lanes) if lanes > 1 else i * lanes
    shifted = Binary("-", where, index(37))
    cases = {
        "as_float_": (Cast(shifted, dt.float32), (n - 37).astype(np.float32)),
        "wide": (shifted * 1000003000, (n - 37) * 1000003000),
        "quotient": (Binary("//", shifted, index(5)), (n - 37) // 5),
        "remainder_": (Binary("%", shifted, index(5)), (n - 37) % 5),
        "chosen": (Select(Binary("<", where, index(100)), Const(1, dt.int64), where), np.where(n < 100, 1, n)),
        "nested": (Binary("//", index(90), Binary("+", Binary("%", where, index(7)), index(1))), 90 // (n % 7 + 1)),
        "quotient_of": (
            Binary("-", index(5), Binary("//", where * where + 3, Binary("*", i + 1, i + 1))),
            5 - (n * n + 3) // (n // lanes + 1) ** 2,
        ),
        "remainder_by": (Binary("%", index(90), Binary("*", i + 1, i + 2)), 90 % ((n // lanes + 1) * (n // lanes + 2))),
        "most": (Binary("max", where, index(50)), np.maximum(n, 50)),
    }
    found = together({name: e for name, (e, _) in cases.items()}, inputs, lanes, index_bits)
    for name, (_, expected) in cases.items():
        assert_same(found[name], np.asarray(expected), name)


@pytest.mark.parametrize("lanes", [1, 4])
def test_conditions(lanes: int) -> None:
    a, b, f = floats(1), floats(2, type="float64"), np.random.default_rng(0).integers(0, 2, 1024).astype(bool)

    def body(x: Expr, y: Expr, c: Expr) -> Expr:
        near = Binary("<", x, splat(Const(1.0, dt.float32), lanes))
        both = Binary("and", Binary("or", near, c), Unary("not", Call("isnan", (y,))))
        return Select(both, Select(c, y, Unary("-", y)), splat(Const(7.0, dt.float64), lanes))

    found = elementwise(body, {"a": a, "b": b, "f": f}, dt.float64, lanes)
    assert_same(found, np.where(((a < 1) | f) & ~np.isnan(b), np.where(f, b, -b), 7.0))
    stored = elementwise(lambda x, c: Binary("or", Binary("<=", x, Const(0.5, dt.float32)), c), {"a": a, "f": f}, dt.bool_, lanes)
    assert_same(stored, (a <= 0.5) | f)


def test_a_lane_that_is_not_taken_is_not_read() -> None:
    """Reads outside under a vector condition become lane by lane."""
    x = np.arange(64, dtype=np.float32)
    small = Buffer("small", dt.float32, (61,), "global", "input")
    out = Buffer("out", dt.float32, (64,), "global", "output")
    i = Var("i", dt.int64, 0, 7)
    value = Select(Binary("<", Ramp(i * 8, 8), index(61)), Load(small, (i * 8,), 8), splat(Const(-1.0, dt.float32), 8))
    result = np.zeros(64, np.float32)
    source = run(
        Kernel("guarded", (1, 1, 1), 1, (small, out), For(i, index(8), Store(out, (i * 8,), value))),
        {"small": x[:61], "out": result},
    )
    assert_same(result, np.where(np.arange(64) < 61, x, -1))
    assert "? small[i * 8 + 7]" in source.replace("(", "").replace(")", "")


def test_brackets_keep_the_tree() -> None:
    x = integers(8, "int32", 64) % 1000
    shapes: list[Callable[[Expr, Expr], Expr]] = [
        lambda a, b: Binary("-", a, Binary("-", b, a)),
        lambda a, b: Binary("*", Binary("+", a, b), Binary("-", a, b)),
        lambda a, b: Unary("-", Unary("-", Binary("-", a, Unary("-", b)))),
        lambda a, b: Binary("&", Binary("|", a, b), Binary("^", a, Const(-7, dt.int32))),
        lambda a, b: Binary("<<", Binary("&", a, Const(3, dt.int32)), Binary("&", b, Const(7, dt.int32))),
        lambda a, b: Binary("//", Binary("*", a, b), Binary("+", Binary("*", b, b), Const(1, dt.int32))),
        lambda a, b: Select(
            Binary("<", Select(Binary("<", a, b), a, b), a), Binary("-", a, b), Binary("+", a, Const(-(2**31), dt.int32))
        ),
    ]
    inputs = {"a": x, "b": x[::-1].copy()}
    for lanes in (1, 4):
        a, b = loads(inputs, lanes)
        found = together({f"shape{n}": shape(a, b) for n, shape in enumerate(shapes)}, inputs, lanes)
        for n, shape in enumerate(shapes):
            assert_same(found[f"shape{n}"], evaluate(shape, x, x[::-1]), str(n))


def evaluate(shape: Callable[[Expr, Expr], Expr], a: Array, b: Array) -> Array:
    """The same expression in NumPy."""
    x, y = Var("x", dt.int32), Var("y", dt.int32)

    def go(e: Expr) -> Any:
        match e:
            case Var():
                return a if e is x else b
            case Const():
                return scalar_semantics.constant(e)
            case Binary(op, left, right):
                return scalar_semantics.binary(op, go(left), go(right))
            case Unary(op, operand):
                return scalar_semantics.unary(op, go(operand))
            case Select(c, then, otherwise):
                return np.where(go(c), go(then), go(otherwise))
        raise AssertionError(e)

    with np.errstate(all="ignore"):
        return np.asarray(go(shape(x, y)))
