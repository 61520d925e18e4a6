"""The reference against NumPy, the bound against float32 evaluations, and the check against kernels that are wrong."""

import math
import os
import tracemalloc
from typing import Any

import numpy as np
import pytest

import tilelang as tl
from tilelang.computations.computation import MOST_AXES, Computation, as_computation, axes, computation
from tilelang.computations.define import define
from tilelang.core import dtype as dt
from tilelang.core.expr import Pad, Read
from tilelang.errors import ComputationError
from tilelang.semantics import evaluator as evaluator_module
from tilelang.semantics import reference
from tilelang.semantics.contraction import contract
from tilelang.semantics.evaluator import Evaluator, blocks, peak_bytes
from tilelang.semantics.exactness import amplitude, inexact


def matmul(m: int, n: int, k: int, dtype: dt.DType = dt.float32, **options: Any) -> Computation:
    i, j, r = axes(m=m, n=n, k=k)
    a, b = tl.input("A", dtype, i, r), tl.input("B", dtype, r, j)
    return as_computation(define("C", tl.sum(a[i, r] * b[r, j], over=r), i, j, **options))


def test_powers_of_infinities_and_zeros_are_exact() -> None:
    """By C's definition of `pow`, whatever a library makes of them: glibc's `powl` gives infinity for the first."""
    given = [
        (-np.inf, -(2.0**63), 0.0), (-np.inf, -3.0, -0.0), (-np.inf, 3.0, -np.inf), (-np.inf, 0.5, np.inf), (-np.inf, 0.0, 1.0),
        (-0.0, -3.0, -np.inf), (-0.0, -2.0, np.inf), (-0.0, 0.5, 0.0), (-0.0, 3.0, -0.0), (np.inf, -0.5, 0.0), (-0.0, np.nan, np.nan),
        (-np.inf, np.inf, np.inf), (-np.inf, -np.inf, 0.0), (-2.0, 3.0, -8.0), (-2.0, 0.5, np.nan),
    ]  # fmt: skip
    bases, exponents, powers = np.array(given).T
    for type in (tl.float32, tl.float64):
        i = axes(i=len(given))
        x, y = tl.input("X", type, i), tl.input("Y", type, i)
        power = as_computation(define("P", x[i] ** y[i], i))
        found = power.evaluate(X=bases.astype(type.numpy), Y=exponents.astype(type.numpy))
        np.testing.assert_array_equal(found, powers.astype(type.numpy))
        np.testing.assert_array_equal(np.signbit(found[powers == 0]), np.signbit(powers[powers == 0]))


def vector(n: int = 6, dtype: dt.DType = dt.float32) -> tuple[Any, tl.Tensor]:
    i = axes(i=n)
    return i, tl.input("X", dtype, i)


def matrix(m: int = 5, n: int = 7, dtype: dt.DType = dt.float32) -> tuple[Any, Any, tl.Tensor]:
    i, j = axes(i=m, j=n)
    return i, j, tl.input("X", dtype, i, j)


def welford(left: Any, right: Any) -> Any:
    n = left[2] + right[2]
    d = right[0] - left[0]
    safe = tl.maximum(n, 1.0)
    return left[0] + d * right[2] / safe, left[1] + right[1] + d * d * left[2] * right[2] / safe, n


def evaluate(tensor: tl.Tensor, **arrays: Any) -> Any:
    return as_computation(tensor).evaluate(**arrays)


def in_float32(whole: Computation, arrays: dict[str, Any]) -> dict[str, Any]:
    """What a kernel that computes in float32 gives: the definitions with float32 as the type in which floats are held."""
    values = Evaluator(whole, {t: arrays[t.name] for t in whole.inputs}, errors=False, wide=np.float32).run()
    return {t.name: values[t].value.astype(t.dtype.numpy) for t in whole.outputs}


# ---------------------------------------------------------------- values

POINTWISE: dict[str, Any] = {
    "exp": np.exp, "exp2": np.exp2, "expm1": np.expm1, "log": np.log, "log2": np.log2, "log1p": np.log1p, "sqrt": np.sqrt,
    "rsqrt": lambda x: 1 / np.sqrt(x), "sin": np.sin, "cos": np.cos, "tanh": np.tanh, "erf": np.vectorize(math.erf),
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)), "floor": np.floor, "ceil": np.ceil, "round": np.rint, "abs": np.abs, "isnan": np.isnan,
    "relu": lambda x: np.maximum(x, 0), "gelu": lambda x: x / 2 * (1 + np.vectorize(math.erf)(x / math.sqrt(2))),
    "gelu_tanh": lambda x: x / 2 * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))),
}  # fmt: skip


@pytest.mark.parametrize("name", POINTWISE)
def test_pointwise_functions(name: str) -> None:
    i, x = vector(9)
    data = np.array([0.0, 0.5, 1.5, 2.5, 3.75, 80.0, np.inf, np.nan, 1e-30], np.float32)
    with np.errstate(all="ignore"):
        expected = POINTWISE[name](data.astype(np.float64))
    found = evaluate(define("y", getattr(tl, name)(x[i]), i), X=data)
    # Two formulas in float64, rounded to float32, differ by one unit in the last place at most.
    np.testing.assert_array_max_ulp(found.astype(np.float32), np.asarray(expected).astype(np.float32), 1)


def test_gelu_ends_in_what_can_be_one_fused_multiply_add() -> None:
    i, x = vector()
    assert str(tl.gelu(x[i])) == f"X[i] * 0.5 * erf(X[i] * {math.sqrt(0.5)}) + X[i] * 0.5"


def test_operators() -> None:
    i, x = vector(6)
    y, n = tl.input("Y", dt.float32, i), tl.input("N", dt.int32, i)
    a = np.array([1.5, -2.5, 7.0, -7.0, 0.0, np.nan], np.float32)
    b = np.array([2.0, 2.0, -3.0, 3.0, 1.0, 1.0], np.float32)
    k = np.array([7, -7, 0, 3, -1, 2], np.int32)
    cases = {
        "a": (x[i] + y[i], a + b), "b": (x[i] - y[i], a - b), "c": (x[i] * y[i], a * b), "d": (x[i] / y[i], a / b),
        "e": (x[i] // y[i], a // b), "f": (x[i] % y[i], np.mod(a, b)), "g": (-x[i], -a),
        "h": (tl.minimum(x[i], y[i]), np.minimum(a, b)),
        "i": (tl.maximum(x[i], y[i]), np.maximum(a, b)), "j": (n[i] // 2, k // 2), "k": (n[i] % 3, k % 3), "l": (n[i] & 3, k & 3),
        "m": (n[i] << 2, k << 2), "n": (n[i] >> 1, k >> 1), "o": (n[i] ^ 5, k ^ 5), "p": (~n[i], ~k), "q": (n[i] ** 2, k**2),
        "r": (x[i] < y[i], a < b), "s": (~(x[i] <= y[i]), ~(a <= b)), "t": (tl.equal(n[i], 3), k == 3),
        "u": (tl.cast(n[i], dt.int8), k.astype(np.int8)), "v": (tl.cast(n[i], dt.bool_), k != 0),
        "w": (i * 2 + 1, np.arange(6) * 2 + 1),
        "x": (tl.cast(y[i] * 1.25, dt.int32), (b * 1.25).astype(np.int32)),
        "y": (tl.where(n[i] > 0, x[i], y[i]), np.where(k > 0, a, b)),
    }  # fmt: skip
    for name, (value, expected) in cases.items():
        found = evaluate(
            define(name, value, i), **{t.name: v for t, v in ((x, a), (y, b), (n, k)) if name in name and _reads(value, t)}
        )
        np.testing.assert_array_equal(found, expected, err_msg=name)


def _reads(value: Any, tensor: tl.Tensor) -> bool:
    return any(isinstance(e, Read) and e.tensor is tensor for e in value.walk())


@pytest.mark.parametrize("name", ["sum", "max", "min", "prod"])
@pytest.mark.parametrize("dtype", [dt.float32, dt.float16, dt.bfloat16, dt.float8_e4m3, dt.float64, dt.int32, dt.int8, dt.uint16])
def test_reductions(name: str, dtype: dt.DType) -> None:
    i, j, x = matrix(5, 7, dtype)
    made = define("y", getattr(tl, name)(x[i, j], over=j), i)
    data = np.random.default_rng(1).integers(0 if dtype.kind == "uint" else -3, 4, (5, 7)).astype(dtype.numpy)
    wide = data.astype(np.float64 if dtype.is_float else np.int64)
    np.testing.assert_array_equal(evaluate(made, X=data).astype(wide.dtype), getattr(np, name)(wide, axis=1))


def test_reductions_over_several_axes_and_any_all() -> None:
    i, j, x = matrix()
    data = np.random.default_rng(1).standard_normal((5, 7)).astype(np.float32)
    np.testing.assert_allclose(evaluate(define("y", tl.sum(x[i, j], over=(i, j))), X=data), data.sum(dtype=np.float64), rtol=1e-7)
    np.testing.assert_array_equal(evaluate(define("y", tl.any(x[i, j] > 1, over=j), i), X=data), (data > 1).any(axis=1))
    np.testing.assert_array_equal(evaluate(define("y", tl.all(x[i, j] > -1, over=i), j), X=data), (data > -1).all(axis=0))


def test_nan_is_handed_on_by_max_and_min() -> None:
    i, j, x = matrix(2, 3)
    data = np.array([[1, np.nan, 3], [1, 2, 3]], np.float32)
    for name in ("max", "min", "sum", "prod"):
        found = evaluate(define("y", getattr(tl, name)(x[i, j], over=j), i), X=data)
        assert np.isnan(found[0]) and not np.isnan(found[1])


def test_argmax_takes_the_first_nan_and_the_smaller_index() -> None:
    i, j, x = matrix(5, 6)
    nan, inf = np.nan, np.inf
    data = np.array(
        [[1, 3, 3, 2, 3, 0], [1, nan, 3, nan, 9, 9], [nan] * 6, [-inf] * 6, [5, 1, 1, 9, 1, 9]],
        np.float32,
    )
    np.testing.assert_array_equal(evaluate(define("a", tl.argmax(x[i, j], over=j), i), X=data), data.argmax(axis=1))
    np.testing.assert_array_equal(evaluate(define("b", tl.argmin(x[i, j], over=j), i), X=data), data.argmin(axis=1))
    np.testing.assert_array_equal(evaluate(define("c", tl.argmax(x[i, j], over=(i, j))), X=data), data.argmax())


def test_conditions() -> None:
    i, j, x = matrix(5, 7)
    data = np.random.default_rng(2).standard_normal((5, 7)).astype(np.float32)
    below = np.tril(np.ones((5, 7), bool))
    found = evaluate(define("y", tl.sum(x[i, j], over=j, where=j <= i), i), X=data)
    np.testing.assert_allclose(found, np.where(below, data, 0).sum(axis=1, dtype=np.float64), rtol=1e-6)
    found = evaluate(define("y", tl.argmax(x[i, j], over=j, where=j <= i), i), X=data)
    np.testing.assert_array_equal(found, np.where(below, data, -np.inf).argmax(axis=1))
    poisoned = np.where(below, data, np.nan).astype(np.float32)
    found = evaluate(define("y", tl.max(x[i, j], over=j, where=j <= i), i), X=poisoned)
    np.testing.assert_array_equal(found, np.where(below, data, -np.inf).max(axis=1).astype(np.float32))


def test_welford_against_numpy() -> None:
    i, j, x = matrix(5, 64)
    data = (np.random.default_rng(3).standard_normal((5, 64)) + 100).astype(np.float32)
    made = define(("mean", "m2", "count"), tl.reduce(welford, (0, 0, 0), (x[i, j], 0.0, 1.0), over=j), i)
    found = computation("statistics", made).evaluate(X=data)
    wide = data.astype(np.float64)
    np.testing.assert_allclose(found["mean"], wide.mean(axis=1), rtol=1e-7)
    np.testing.assert_allclose(found["m2"], wide.var(axis=1) * 64, rtol=1e-6)
    np.testing.assert_array_equal(found["count"], np.full(5, 64))


def test_convolution_with_padding_and_stride() -> None:
    n, o, y, x, ch, r, s = axes(n=2, o=4, y=5, x=4, c=3, r=3, s=3)
    image = tl.input("I", dt.float32, n=2, c=3, h=9, w=8)
    weight = tl.input("W", dt.float32, o, ch, r, s)
    padded = tl.pad(image[n, ch, y * 2 + r - 1, x * 2 + s - 1], 0)
    whole = as_computation(define("Y", tl.sum(padded * weight[o, ch, r, s], over=(ch, r, s)), n, o, y, x))
    data = reference.random_arrays(whole, 4)
    wide = np.pad(data["I"].astype(np.float64), ((0, 0), (0, 0), (1, 1), (1, 1)))
    expected = np.zeros((2, 4, 5, 4))
    for dy in range(3):
        for dx in range(3):
            expected += np.einsum(
                "ncyx,oc->noyx", wide[:, :, dy : dy + 9 : 2, dx : dx + 8 : 2], data["W"][:, :, dy, dx].astype(np.float64)
            )
    np.testing.assert_allclose(whole.evaluate(**data), expected, rtol=1e-5, atol=1e-6)
    assert reference.check(whole, lambda arrays: in_float32(whole, arrays))


def test_embedding_gather() -> None:
    b, t, e = axes(b=3, t=4, e=5)
    ids, table = tl.input("ids", dt.int32, b, t, range=(0, 10)), tl.input("table", dt.float32, row=10, e=5)
    whole = as_computation(define("bag", tl.sum(table[ids[b, t], e], over=t), b, e))
    data = reference.random_arrays(whole, 5)
    assert data["ids"].min() >= 0 and data["ids"].max() < 10
    np.testing.assert_allclose(
        whole.evaluate(**data), data["table"][data["ids"]].sum(axis=1, dtype=np.float64), rtol=1e-6, atol=1e-6
    )
    assert reference.exact(whole)
    data["ids"][1, 2] = 10
    with pytest.raises(tl.ComputationError, match="outside its range") as caught:
        whole.evaluate(**data)
    assert caught.value.counterexample == "ids[1, 2] = 10"


def test_a_read_that_only_data_keeps_inside_gives_0_outside() -> None:
    i, x = vector(4)
    flag = tl.input("F", dt.int32, i)
    whole = as_computation(define("y", tl.where(flag[i] > 0, x[i + 1], 5.0), i))
    data = np.arange(4, dtype=np.float32)
    for flags, expected in (((1, 1, 1, 0), (1, 2, 3, 5)), ((1, 1, 0, 1), (1, 2, 5, 0))):
        given = {"X": data, "F": np.array(flags, np.int32)}
        np.testing.assert_array_equal(whole.evaluate(**given), expected)
        np.testing.assert_array_equal(tl.compile(whole)(**given), expected)


def is_padded(value: Any, *over: Any) -> bool:
    """Whether a definition reads something through `tl.pad`."""
    definition = define("y", value, *over).definition
    assert definition is not None
    return any(isinstance(e, Pad) for e in definition.values[0].walk())


def test_conditions_on_tensors_with_ranges_keep_reads_inside() -> None:
    i, x = vector(4)
    ids, lengths = tl.input("I", dt.int32, i, range=(-1, 4)), tl.input("L", dt.int32, i, range=(0, 5))
    for condition, index, expected in (
        (ids[i] >= 0, ids[i], False),
        (ids[i] >= -1, ids[i], True),
        ((lengths[i] > 2) & (ids[i] >= 0), ids[i], False),
        (~((ids[i] < 0) | (lengths[i] > 2)), ids[i], False),
        ((ids[i] >= 0) | (lengths[i] > 2), ids[i], True),
        ((i < lengths[i]) & (lengths[i] <= 3), i + 1, False),
        (i < lengths[i], i + 1, True),
    ):
        assert is_padded(tl.where(condition, x[index], 0.0), i) is expected, condition


def test_an_index_of_a_small_type_beside_one_that_only_data_keeps_inside() -> None:
    i = tl.axes(i=4)
    codes, flag = tl.input("U", dt.uint8, i), tl.input("F", dt.float32, i)
    table = tl.input("T", dt.float32, v=256, w=4)
    assert is_padded(tl.where(flag[i] > 0, table[codes[i], i + 1], 0.0), i)


def test_many_values_of_an_index_are_narrowed_by_its_condition() -> None:
    i = tl.axes(i=2)
    table, ids = tl.input("T", dt.float32, v=10**6), tl.input("I", dt.int64, i, range=(-1, 10**6))
    assert not is_padded(tl.where(ids[i] >= 0, table[ids[i]], 0.0), i)


def test_zero_extents() -> None:
    i, j, x = matrix(3, 0)
    data = np.zeros((3, 0), np.float32)
    assert evaluate(define("y", tl.sum(x[i, j], over=j), i), X=data).tolist() == [0, 0, 0]
    assert evaluate(define("y", tl.max(x[i, j], over=j), i), X=data).tolist() == [-np.inf] * 3
    assert evaluate(define("y", tl.prod(x[i, j], over=i), j), X=data).shape == (0,)
    assert evaluate(define("y", tl.argmax(x[i, j], over=j), i), X=data).tolist() == [2**31 - 1] * 3
    assert evaluate(define("y", tl.any(x[i, j] > 0, over=j), i), X=data).tolist() == [False] * 3
    assert evaluate(define("y", tl.all(x[i, j] > 0, over=j), i), X=data).tolist() == [True] * 3
    for shape in ((0, 3, 2), (3, 0, 2), (3, 2, 0)):
        whole = matmul(*shape)
        assert not whole.evaluate(**reference.random_arrays(whole)).any()
        assert reference.check(whole, lambda a: {"C": a["A"] @ a["B"]})


def test_every_define_rounds() -> None:
    i, x = vector(1, dt.float16)
    one = define("y", x[i] + 2048, i)
    two = define("z", one[i] - 2048, i)
    assert evaluate(two, X=np.ones(1, np.float16)).tolist() == [0]
    assert evaluate(define("w", x[i] + 2048 - 2048, i), X=np.ones(1, np.float16)).tolist() == [1]


def test_sixteen_bit_sums_do_not_lose_terms() -> None:
    for dtype in (dt.float16, dt.bfloat16):
        i, x = vector(5000, dtype)
        assert float(evaluate(define("y", tl.sum(x[i], over=i)), X=np.ones(5000, dtype.numpy))) == float(
            np.array(5000).astype(dtype.numpy)
        )


def test_several_outputs_come_by_name() -> None:
    i, x = vector(3)
    a, b = define("a", x[i] + 1, i), define("b", x[i] * 2, i)
    found = computation("both", (a, b)).evaluate(X=np.ones(3, np.float32))
    assert list(found) == ["a", "b"] and found["b"].tolist() == [2, 2, 2]


@pytest.mark.parametrize(
    ("arrays", "said"),
    [
        ({}, "needs X too"),
        ({"X": np.zeros(3, np.float32)}, "has shape"),
        ({"X": np.zeros(6)}, "has type"),
        ({"X": np.zeros(6, np.float32), "Z": 1}, "no input Z"),
    ],
)
def test_arrays_that_do_not_fit(arrays: dict[str, Any], said: str) -> None:
    i, x = vector(6)
    with pytest.raises(tl.ComputationError, match=said):
        evaluate(define("y", x[i], i), **arrays)


# ---------------------------------------------------------------- blocks and matrix products


def test_blocks_cover_every_point_once() -> None:
    for shape in ((5, 7, 3), (1,), (), (0, 4), (100,)):
        for limit in (1, 8, 20, 1000):
            seen = np.zeros(shape, int)
            for ranges in blocks(shape, limit):
                part = seen[tuple(slice(*r) for r in ranges)]
                assert part.size <= limit
                seen[tuple(slice(*r) for r in ranges)] += 1
            assert (seen == 1).all()


def test_an_empty_tensor_takes_no_memory_however_long_it_is() -> None:
    i, j, k = axes(i=2**22, j=2**24, k=0)
    whole = as_computation(define("y", tl.input("x", dt.int8, k)[k], i, j, k))
    tracemalloc.start()
    try:
        assert whole.evaluate(x=np.zeros(0, np.int8)).shape == (2**22, 2**24, 0)
        assert tracemalloc.get_traced_memory()[1] < 2**24
    finally:
        tracemalloc.stop()


def test_contract_is_einsum() -> None:
    generator = np.random.default_rng(0)
    for shape_a, shape_b, labels in [
        ((2, 3, 1, 4), (2, 1, 5, 4), "bmik,bink->bmn"),
        ((3, 1, 4, 2), (1, 5, 4, 1), "mikl,inkj->mn"),
        ((6, 1), (1, 7), "ai,ib->ab"),
    ]:
        a, b = generator.standard_normal(shape_a), generator.standard_normal(shape_b)
        outer = len(labels.split("->")[1])
        whole = (a * b).sum(axis=tuple(range(outer, a.ndim)))
        np.testing.assert_allclose(contract(a, b, outer), whole, atol=1e-12)


def test_both_ways_to_a_sum_of_products_agree(monkeypatch: pytest.MonkeyPatch) -> None:
    i, j, k = axes(m=9, n=8, k=40)
    a, b = tl.input("A", dt.float32, i, k), tl.input("B", dt.float32, k, j)
    whole = as_computation(define("C", tl.sum(a[i, k] * tl.exp(b[k, j]), over=k, where=k <= i * 4), i, j))
    data = reference.random_arrays(whole)
    found = []
    for small, block in ((1, 1 << 17), (1 << 40, 64)):
        monkeypatch.setattr(evaluator_module, "SMALL", small)
        monkeypatch.setattr(evaluator_module, "BLOCK", block)
        found.append(reference.evaluate_and_bound(whole, data))
    np.testing.assert_allclose(found[0][0]["C"], found[1][0]["C"], rtol=1e-6)
    np.testing.assert_allclose(found[0][1]["C"], found[1][1]["C"], rtol=1e-6)


# ---------------------------------------------------------------- exactness and reports


def test_what_is_exact() -> None:
    i, j, x = matrix()
    assert reference.exact(matmul(8, 8, 8)) and reference.exact(matmul(8, 8, 8, dt.float16))
    assert reference.exact(as_computation(define("y", tl.argmax(x[i, j], over=j), i)))
    assert reference.exact(as_computation(define("y", tl.relu(tl.max(x[i, j] * 3 - 1, over=j)), i)))
    assert inexact(as_computation(define("y", tl.exp(x[i, j]), i, j))) == "exp rounds"
    assert inexact(as_computation(define("y", x[i, j] * 0.5, i, j))) == "the literal 0.5 is not a whole number"
    assert inexact(as_computation(define("y", x[i, j] / 2, i, j))) == "`/` rounds"
    assert not reference.exact(as_computation(define("y", tl.prod(x[i, j], over=j), i)))
    assert reference.exact(as_computation(define("y", tl.sum(x[i, j], over=j), i)))


def test_integers_are_small_enough_for_every_partial_sum() -> None:
    assert amplitude(matmul(1, 1, 8192)) == 8
    assert amplitude(matmul(1, 1, 2**20)) == 4
    assert amplitude(matmul(1, 1, 2**25)) is None
    accumulated = matmul(1, 1, 512, allow=("float16_accumulate",))
    assert amplitude(accumulated) == 2
    whole = matmul(3, 3, 2**15)
    arrays = reference.integer_arrays(whole)
    assert np.abs(arrays["A"]).astype(np.float64).sum(axis=1).max() * np.abs(arrays["B"]).max() <= 2**24


def test_a_report_names_the_first_wrong_element() -> None:
    whole = matmul(3, 4, 5)

    def run(arrays: dict[str, Any]) -> dict[str, Any]:
        result = arrays["A"] @ arrays["B"]
        result[1, 2:] += 1
        return {"C": result}

    report = whole.check(run)
    assert not report and [r.wrong for r in report.runs] == [2, 2]
    first = report.runs[0].first
    assert first is not None and first.tensor == "C" and first.index == (1, 2) and first.bound > 0
    assert str(report).startswith("C: WRONG\n  random data: 2 of 12 elements wrong; the first: C[1, 2] is ")
    assert str(report.runs[1]).endswith("exactly")


def test_results_that_are_missing_or_of_another_shape_are_refused() -> None:
    whole = matmul(3, 4, 5)
    with pytest.raises(tl.ComputationError, match="result-missing"):
        whole.check(lambda arrays: {})
    with pytest.raises(tl.ComputationError, match="result-shape"):
        whole.check(lambda arrays: {"C": np.zeros((4, 3), np.float32)})
    with pytest.raises(tl.ComputationError, match="result-type"):
        whole.check(lambda arrays: {"C": np.full((3, 4), None)})
    with pytest.raises(tl.ComputationError, match="results"):
        whole.check(lambda arrays: np.zeros((3, 4), np.float32))  # type: ignore[arg-type, return-value]


def test_large_integers_are_compared_without_loss() -> None:
    i, x = vector(1, dt.int64)
    whole = as_computation(define("y", x[i] + 1, i))
    data = {"X": np.array([2**62], np.int64)}
    assert reference.compare(whole, data, {"y": data["X"] + 1})
    assert not reference.compare(whole, data, {"y": data["X"] + 2})


def test_reductions_of_as_many_axes_as_an_array_has() -> None:
    a, k = axes(**{f"a{n}": 1 for n in range(MOST_AXES - 1)}), axes(k=5)
    x = tl.input("X", dt.float32, *a[1:], k)
    best = as_computation(define("best", tl.argmax(x[(*a[1:], k)], over=k), *a))
    assert reference.check(best, lambda arrays: {"best": arrays["X"].argmax(axis=-1).reshape((1,) * len(a)).astype(np.int32)})


def test_what_nothing_reads_any_more_is_not_held() -> None:
    i = tl.axes(i=1 << 16)
    value = tl.input("X", tl.float32, i)
    for k in range(40):
        value = tl.define(f"A{k}", value[i] + 1.0, i)
    whole, x = tl.computation("c", value), np.zeros(1 << 16, np.float32)
    whole.evaluate(X=x)  # what is made once is made
    tracemalloc.start()
    assert float(whole.evaluate(X=x)[0]) == 40.0
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 10 * x.size * 8, peak
    assert peak_bytes(whole, errors=False) == 2 * x.size * 8 and peak_bytes(whole, errors=True) == 4 * x.size * 8


def test_products_of_blocks_are_those_of_the_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    m, n, k = tl.axes(m=60, n=50, k=40)
    A, B = tl.input("A", tl.float32, m, k), tl.input("B", tl.float32, k, n)
    product = tl.computation("c", tl.define("C", tl.sum(A[m, k] * B[k, n], over=k, where=k <= m), m, n))
    arrays = {t.name: np.random.default_rng(0).standard_normal(t.shape).astype(np.float32) for t in product.inputs}
    whole = reference.evaluate_and_bound(product, arrays)
    monkeypatch.setattr(evaluator_module, "PRODUCTS", 70)
    for one, other in zip(whole, reference.evaluate_and_bound(product, arrays), strict=True):
        assert np.allclose(one["C"], other["C"], rtol=1e-6)


def test_a_reference_beyond_the_memory_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    i = tl.axes(i=1000)
    product = tl.computation("c", tl.define("Y", tl.input("X", tl.float16, i)[i] + 1.0, i))
    monkeypatch.setattr(os, "sysconf", {"SC_PHYS_PAGES": 10, "SC_PAGE_SIZE": 1000}.__getitem__)
    with pytest.raises(
        ComputationError, match=r"take 4,000 bytes and the reference holds 16,000 bytes, but this machine's memory has 10,000"
    ):
        product.evaluate(X=np.zeros(1000, np.float16))
