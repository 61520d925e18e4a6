"""The bound: it holds for float32 evaluations in any order, and is tight enough to find faults."""

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import tilelang as tl
from tilelang.computations.computation import Computation, as_computation, axes
from tilelang.computations.define import define
from tilelang.core import dtype as dt
from tilelang.core import numeric
from tilelang.core.expr import Expr, Reduce
from tilelang.semantics import evaluator as evaluator_module
from tilelang.semantics import reference
from tilelang.semantics.error_bound import Approx, Arithmetic
from tilelang.semantics.evaluator import Block, Evaluator


def matmul(m: int, n: int, k: int, dtype: dt.DType = dt.float32, **options: Any) -> Computation:
    i, j, r = axes(m=m, n=n, k=k)
    a, b = tl.input("A", dtype, i, r), tl.input("B", dtype, r, j)
    return as_computation(define("C", tl.sum(a[i, r] * b[r, j], over=r), i, j, **options))


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


def in_float32(whole: Computation, arrays: dict[str, Any]) -> dict[str, Any]:
    """What a kernel that computes in float32 gives: the definitions with float32 as the type in which floats are held."""
    values = Evaluator(whole, {t: arrays[t.name] for t in whole.inputs}, errors=False, wide=np.float32).run()
    return {t.name: values[t].value.astype(t.dtype.numpy) for t in whole.outputs}


def workloads() -> dict[str, Computation]:
    i, j, x = matrix(6, 50)
    e = tl.exp(x[i, j] - tl.max(x[i, j], over=j))
    mean, m2, _ = tl.reduce(welford, (0, 0, 0), (x[i, j], 0.0, 1.0), over=j)
    half = tl.input("X", dt.float16, i, j)
    positive = tl.abs(x[i, j]) + 0.5
    found = {
        "softmax": define("y", e / tl.sum(e, over=j), i, j),
        "layernorm": define("y", (x[i, j] - mean) * tl.rsqrt(m2 / 50 + 1e-5), i, j),
        "gelu": define("y", tl.gelu(x[i, j]), i, j),
        "gelu_tanh": define("y", tl.gelu_tanh(x[i, j]), i, j),
        "half": define("y", tl.sum(tl.tanh(half[i, j]) * half[i, j], over=j) + 1, i),
        "product": define("y", tl.prod(x[i, j] * 1.1, over=j), i),
        "log_sum_exp": define("y", tl.log(tl.sum(tl.exp(x[i, j]), over=j)), i),
        "powers": define("y", positive**1.7 + tl.sqrt(positive) * tl.log(positive) - tl.exp2(x[i, j]) / positive, i, j),
        "waves": define("y", tl.sin(x[i, j] * 3) * tl.cos(x[i, j]) + tl.sigmoid(x[i, j]) - tl.erf(x[i, j]), i, j),
        "near": define("y", tl.expm1(x[i, j] * 1e-3) + tl.log1p(tl.abs(x[i, j]) * 1e-3) + tl.log2(positive), i, j),
        "steps": define("y", tl.floor(x[i, j] * 1.3) + tl.where(x[i, j] * 0.7 > 0.1, x[i, j], 3.0) + tl.round(x[i, j] / 3), i, j),
        "remainder": define("y", positive % 0.3 + positive // 0.7, i, j),
    }
    return {name: as_computation(t) for name, t in found.items()}


@pytest.mark.parametrize("name", list(workloads()))
def test_float32_lies_within_the_bound(name: str) -> None:
    whole = workloads()[name]
    for seed in range(5):
        arrays = reference.random_arrays(whole, seed)
        report = reference.compare(whole, arrays, in_float32(whole, arrays))
        assert report, report
        assert report.runs[0].unclaimed <= report.runs[0].elements * 0.1, "a bound that claims nothing checks nothing"


def orders(a: Any, b: Any) -> dict[str, Any]:
    """The product of two float32 matrices, summed in several orders."""
    m, k = a.shape
    one = np.zeros((m, b.shape[1]), np.float32)
    backwards = np.zeros_like(one)
    for r in range(k):
        one = one + a[:, r : r + 1] * b[r : r + 1]
    for r in reversed(range(k)):
        backwards = backwards + a[:, r : r + 1] * b[r : r + 1]
    lanes = np.zeros((16, *one.shape), np.float32)
    for r in range(k):
        lanes[r % 16] = lanes[r % 16] + a[:, r : r + 1] * b[r : r + 1]
    products = a[:, :, None] * b[None]
    fused = one * 0
    for r in range(k):  # a fused multiply-add: the product is not rounded
        fused = (fused.astype(np.float64) + a[:, r : r + 1].astype(np.float64) * b[r : r + 1]).astype(np.float32)
    return {
        "forwards": one, "backwards": backwards, "sixteen lanes": lanes.sum(axis=0, dtype=np.float32), "fused": fused,
        "pairwise": products.sum(axis=1, dtype=np.float32), "library": a @ b,
        "by size": np.add.reduce(np.take_along_axis(products, np.argsort(np.abs(products), axis=1)[:, ::-1], axis=1), axis=1),
    }  # fmt: skip


@pytest.mark.parametrize("k", [1, 2, 17, 300])
def test_every_order_of_a_sum_lies_within_the_bound(k: int) -> None:
    whole = matmul(6, 5, k)
    arrays = reference.random_arrays(whole, k)
    for name, result in orders(arrays["A"], arrays["B"]).items():
        report = reference.compare(whole, arrays, {"C": result})
        assert report, f"{name}: {report}"


def test_the_bound_of_a_product_is_gamma_times_magnitude() -> None:
    whole = matmul(4, 3, 100)
    arrays = reference.random_arrays(whole)
    magnitude = np.abs(arrays["A"]).astype(np.float64) @ np.abs(arrays["B"])
    unit = 2.0**-24
    found = whole.bound(**arrays)
    # 99 additions and one product; the reference's own rounding at the end is one more unit.
    assert (found >= 100 * unit * magnitude).all() and (found <= 102.1 * unit * magnitude).all()


def test_from_which_length_on_the_bound_misses_a_dropped_term() -> None:
    """The last term of each sum dropped: the share of elements that each of the two runs finds wrong."""
    shares: dict[int, tuple[float, float]] = {}
    for k in (8, 64, 512, 4096, 8192):
        whole = matmul(48, 48, k)
        report = reference.check(whole, lambda a: {"C": a["A"][:, :-1] @ a["B"][:-1]})
        shares[k] = tuple(run.wrong / run.elements for run in report.runs)  # type: ignore[assignment]
        assert not report
    random, integers = ({k: s[i] for k, s in shares.items()} for i in (0, 1))
    # Normal data: every term is found at 8, nearly every one at 64 and 512, a part at 4096; the share falls about as k**-1.
    assert random[8] > 0.99 and random[64] > 0.97 and random[512] > 0.7 and random[4096] < 0.7
    assert random[8192] < random[4096] < random[512]
    # Small integers find every term that is not zero, at any length.
    assert all(share > 0.8 for share in integers.values())


def test_uniform_data_hides_a_dropped_term_of_a_long_sum() -> None:
    whole = matmul(32, 32, 8192)
    generator = np.random.default_rng(0)
    arrays = {t.name: generator.uniform(0, 1, t.shape).astype(np.float32) for t in whole.inputs}
    dropped = {"C": arrays["A"][:, :-1] @ arrays["B"][:-1]}
    assert reference.compare(whole, arrays, dropped), (
        "the bound lets a dropped term through, which is why there is an integer run"
    )


def test_licences_widen_the_bound() -> None:
    arrays = reference.random_arrays(matmul(8, 8, 64))
    plain = matmul(8, 8, 64).bound(**arrays)
    for licence in ("tf32", "float16_accumulate"):
        assert (matmul(8, 8, 64, allow=(licence,)).bound(**arrays) > plain * 10).all()
    assert (matmul(8, 8, 64, allow=("reorder",)).bound(**arrays) == plain).all()
    i, x = vector()
    data = np.full(6, 5, np.float32)
    fast = as_computation(define("y", tl.exp(x[i]), i, allow=("fast_exp",)))
    assert (fast.bound(X=data) > as_computation(define("y", tl.exp(x[i]), i)).bound(X=data)).all()


def test_tf32_lies_within_its_licence() -> None:
    whole = matmul(8, 8, 64, allow=("tf32",))
    arrays = reference.random_arrays(whole)
    cut = {name: (a.view(np.uint32) & np.uint32(0xFFFFE000)).view(np.float32) for name, a in arrays.items()}
    assert reference.compare(whole, arrays, {"C": cut["A"] @ cut["B"]})
    assert not reference.compare(matmul(8, 8, 64), arrays, {"C": cut["A"] @ cut["B"]})


def test_nothing_is_claimed_after_an_overflow() -> None:
    i, x = vector(3)
    whole = as_computation(define("y", tl.exp(x[i]) / tl.exp(x[i]), i))
    bound = whole.bound(X=np.array([1, 95, 0], np.float32))
    assert np.isfinite(bound[0]) and np.isinf(bound[1])


def test_certain_nans_and_infinities_are_claimed() -> None:
    i, j, x = matrix(4, 3)
    data = np.array([[1, np.nan, 2], [np.inf, 1, 1], [np.inf, -np.inf, 1], [1, 2, 3]], np.float32)
    whole = as_computation(define("y", tl.sum(x[i, j] * 2, over=j), i))
    assert np.isfinite(whole.bound(X=data)).all()
    right = np.array([np.nan, np.inf, np.nan, 12], np.float32)
    assert reference.compare(whole, {"X": data}, {"y": right})
    for at in range(3):
        wrong = right.copy()
        wrong[at] = 1
        assert not reference.compare(whole, {"X": data}, {"y": wrong})


def test_an_infinite_sum_whose_finite_terms_may_overflow_first_is_not_claimed() -> None:
    """In float32 three of 2e38 add up to infinity, which makes NaN of the other one."""
    i, j, x = matrix(4, 4)
    big = 2e38
    data = np.array([[-np.inf, big, big, big], [-np.inf, big, -1, 1], [np.nan, big, big, big], [-np.inf, 1e30, 1, 1]], np.float32)
    sums = as_computation(define("y", tl.sum(x[i, j] * 1, over=j), i))
    assert sums.bound(X=data).tolist() == [np.inf, 0, 0, 0]
    many = np.full((32, 32), 1e30, np.float32)
    many[:, 5] = -np.inf
    assert np.isinf(matmul(32, 32, 32).bound(A=many, B=np.full((32, 32), 1e30, np.float32))).all()


def test_an_infinite_product_whose_finite_factors_may_underflow_first_is_not_claimed() -> None:
    i, j, x = matrix(3, 4)
    data = np.array([[np.inf, 1e-30, 1e-30, 2], [np.inf, 1e-30, 3, 2], [np.nan, 1e-30, 1e-30, 2]], np.float32)
    products = as_computation(define("y", tl.prod(x[i, j], over=j), i))
    assert products.bound(X=data).tolist() == [np.inf, 0, 0]


def test_exact_types_have_no_bound() -> None:
    whole = matmul(4, 4, 9, dt.int32)
    assert not whole.bound(**reference.random_arrays(whole)).any()
    i, x = vector()
    assert (
        not as_computation(define("y", tl.where(x[i] > 0, x[i], tl.maximum(x[i], -1)), i)).bound(X=np.ones(6, np.float32)).any()
    )


def test_float64_is_checked_in_a_wider_type() -> None:
    whole = matmul(6, 5, 40, dt.float64)
    report = reference.check(whole, lambda a: {"C": a["A"] @ a["B"]})
    assert report, report
    wrong = reference.check(whole, lambda a: {"C": (a["A"].astype(np.float32) @ a["B"].astype(np.float32)).astype(np.float64)})
    assert not wrong


@pytest.mark.parametrize(("dtype", "narrow"), [(dt.float16, np.float16), (dt.bfloat16, ml_dtypes.bfloat16)])
def test_sixteen_bit_results_are_checked_to_their_last_place(dtype: dt.DType, narrow: Any) -> None:
    whole = matmul(6, 5, 40, dtype)

    def run(arrays: dict[str, Any]) -> dict[str, Any]:
        return {"C": (arrays["A"].astype(np.float32) @ arrays["B"].astype(np.float32)).astype(narrow)}

    def accumulated_in_sixteen_bits(arrays: dict[str, Any]) -> dict[str, Any]:
        total = np.zeros((6, 5), narrow)
        for k in range(40):
            total = (total + arrays["A"][:, k : k + 1] * arrays["B"][k : k + 1]).astype(narrow)
        return {"C": total}

    assert reference.check(whole, run)
    assert not reference.check(whole, accumulated_in_sixteen_bits).runs[0].wrong == 0


def test_nothing_is_claimed_of_a_bounded_function_after_an_overflow() -> None:
    i, x = vector(2)
    whole = as_computation(define("y", tl.sin(tl.exp(x[i]) - tl.exp(x[i] * 0.5)), i))
    bound = whole.bound(X=np.array([1, 200], np.float32))
    assert np.isfinite(bound[0]) and np.isinf(bound[1])


def test_nothing_is_claimed_of_a_remainder_by_what_may_be_zero() -> None:
    i, x = vector(2)
    whole = as_computation(define("y", 3.0 % tl.exp2(x[i]), i))
    bound = whole.bound(X=np.array([1, -160], np.float32))
    assert np.isfinite(bound[0]) and np.isinf(bound[1])


# ---------------------------------------------------------------- combiners


def chan(a: Any, b: Any) -> Any:
    """Welford's state with the count in front, as the layer normalisation has it."""
    count = a[0] + b[0]
    share = tl.where(count > 0, b[0] / tl.maximum(count, 1.0), 0.0)
    difference = b[1] - a[1]
    return count, a[1] + difference * share, a[2] + b[2] + difference * difference * a[0] * share


def softmax_sum(a: Any, b: Any) -> Any:
    peak = tl.maximum(a[0], b[0])
    return peak, a[1] * tl.exp(a[0] - peak) + b[1] * tl.exp(b[0] - peak)


def complex_product(a: Any, b: Any) -> Any:
    return a[0] * b[0] - a[1] * b[1], a[0] * b[1] + a[1] * b[0]


def weighted_mean(a: Any, b: Any) -> Any:
    weight = a[1] + b[1]
    return (a[0] * a[1] + b[0] * b[1]) / weight, weight


def symmetric(a: Any, b: Any) -> Any:
    """The elementary symmetric polynomials of the first two degrees."""
    return a[0] + b[0], a[1] + b[1] + a[0] * b[0]


def combined(name: str, n: int, rows: int = 12) -> Computation:
    i, j, x = matrix(rows, n)
    one, value = tl.cast(1, tl.float32), x[i, j]
    kinds: dict[str, tuple[Any, tuple[Any, ...], tuple[Any, ...]]] = {
        "welford": (welford, (0, 0, 0), (value, 0.0, 1.0)),
        "chan": (chan, (0, 0, 0), (one, value, 0.0)),
        "softmax sum": (softmax_sum, (-1e30, 0), (value, one)),
        "complex product": (complex_product, (1, 0), (1 + value * 0.01, value * 0.1)),
        "hypotenuse": (lambda a, b: (tl.sqrt(a[0] * a[0] + b[0] * b[0]),), (0,), (tl.abs(value),)),
        "log sum exp": (lambda a, b: (tl.maximum(a[0], b[0]) + tl.log1p(tl.exp(-tl.abs(a[0] - b[0]))),), (-1e30,), (value,)),
        "weighted mean": (weighted_mean, (0, 1e-12), (value, tl.abs(value) + 0.1)),
        "sum": (lambda a, b: (a[0] + b[0],), (0,), (value,)),
        "symmetric": (symmetric, (0, 0), (value, 0.0)),
    }
    combiner, identity, values = kinds[name]
    found = tl.reduce(combiner, identity, values, over=j, name=name.replace(" ", "_"))
    made = define(tuple(f"y{k}" for k in range(len(found))), found, i)
    return tl.computation(name.replace(" ", "_"), made)


COMBINED = ("welford", "chan", "softmax sum", "complex product", "hypotenuse", "log sum exp", "weighted mean", "sum", "symmetric")


def reduced_in_float32(whole: Computation, x: Any, tree: str) -> dict[str, Any]:
    """The reduction's members by output, each combination rounded to float32. tree: how the points are arranged and combined."""
    (definition,) = whole.definitions
    reduce = definition.reduction
    assert isinstance(reduce, Reduce)
    evaluator = Evaluator(whole, {whole.inputs[0]: x}, errors=False, wide=np.float32)
    arithmetic, combiner = Arithmetic(np.float32, errors=False), reduce.combiner
    generator = np.random.default_rng(x.shape[1])

    def combine(a: Any, b: Any) -> Any:
        known: dict[Expr, Approx] = dict(zip((*combiner.left, *combiner.right), map(Approx, (*a, *b)), strict=True))
        return [np.broadcast_to(arithmetic.evaluate(r, known).value, len(x)).astype(np.float32) for r in combiner.result]

    with numeric.quiet():
        block = Block(evaluator, definition, (*definition.axes, *reduce.axes), ((0, len(x)), (0, x.shape[1])))
        leaves = [np.broadcast_to(block.value(v).value, x.shape).astype(np.float32) for v in reduce.values]
        orders = {"up": np.argsort(x, axis=1), "down": np.argsort(-x, axis=1), "large first": np.argsort(-np.abs(x), axis=1)}
        order = orders.get(tree.split(",")[0], np.broadcast_to(generator.permutation(x.shape[1]), x.shape))
        points = [[np.take_along_axis(v, order, axis=1)[:, k] for v in leaves] for k in range(x.shape[1])]
        identity = [np.full(len(x), c.value, np.float32) for c in combiner.identity]
        if tree.endswith("lanes"):
            lanes = [identity] * 16
            for k, point in enumerate(points):
                lanes[k % 16] = combine(lanes[k % 16], point)
            points = lanes
        if tree == "random tree":
            while len(points) > 1:
                first, second = (points.pop(generator.integers(len(points))) for _ in range(2))
                points.append(combine(first, second))
        state = identity
        for point in points:
            state = combine(state, point)
    return {t.name: member for t, member in zip(whole.outputs, state, strict=True)}


@pytest.mark.slow
@pytest.mark.parametrize("name", COMBINED)
def test_every_tree_of_a_combiner_lies_within_the_bound(name: str) -> None:
    for n in (1, 2, 5, 150):
        whole = combined(name, n)
        for offset in (0, 20) if name != "complex product" else (0,):
            x = (np.random.default_rng(n).standard_normal((12, n)) + offset).astype(np.float32)
            for tree in ("as it comes", "up", "down", "large first", "up, lanes", "as it comes, lanes", "random tree"):
                report = reference.compare(whole, {"X": x}, reduced_in_float32(whole, x, tree))
                assert report and not report.runs[0].unclaimed, f"{n}, {offset}, {tree}: {report}"


@pytest.mark.slow
def test_from_which_length_on_the_bound_of_a_tuple_misses_a_dropped_term() -> None:
    """The last point of each row dropped: the share of rows that the mean and the squared deviations find wrong, counts left out."""
    shares: dict[int, tuple[float, ...]] = {}
    for n in (64, 256, 1023, 4096):
        whole = combined("welford", n, 60)
        x = np.random.default_rng(n).standard_normal((60, n)).astype(np.float32)
        expected, bounds = whole.evaluate(X=x), whole.bound(X=x)
        dropped = combined("welford", n - 1, 60).evaluate(X=x[:, :-1])
        shares[n] = tuple(float(np.mean(np.abs(dropped[y] - expected[y]) > bounds[y])) for y in ("y0", "y1", "y2"))
    means, squares, counts = ({n: s[k] for n, s in shares.items()} for k in range(3))
    assert means[64] > 0.97 and means[256] > 0.97 and means[1023] > 0.9 and means[4096] > 0.5
    assert squares[64] > 0.9 and squares[256] > 0.85 and squares[1023] > 0.7 and squares[4096] < squares[1023]
    assert all(share == 1 for share in counts.values()), "whole numbers that only add up are exact"


def test_the_bound_of_a_users_sum_is_about_that_of_a_sum() -> None:
    whole = combined("sum", 500)
    i, j, x = matrix(12, 500)
    data = (np.random.default_rng(0).standard_normal((12, 500)) + 1).astype(np.float32)
    plain = as_computation(define("y", tl.sum(x[i, j], over=j), i)).bound(X=data)
    found = whole.bound(X=data)
    assert (found > plain * 0.3).all() and (found < plain * 3).all()


def test_errors_of_the_points_reach_a_tuple_without_growing_on_the_way() -> None:
    """The mean of rounded points is as uncertain as a point, not 2**levels times as much."""
    i, j, x = matrix(4, 512)
    mean, _, _ = tl.reduce(welford, (0, 0, 0), (tl.exp(x[i, j] * 0.1), 0.0, 1.0), over=j)
    data = np.random.default_rng(0).standard_normal((4, 512)).astype(np.float32)
    assert as_computation(define("y", mean, i)).bound(X=data).max() < 1e-4


@pytest.mark.slow
def test_blocks_of_a_combiner_give_what_one_block_gives(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = combined("chan", 700, 3)
    x = np.random.default_rng(1).standard_normal((3, 700)).astype(np.float32)
    one = whole.evaluate(X=x), whole.bound(X=x)
    monkeypatch.setattr(evaluator_module, "BLOCK", 64)
    many = whole.evaluate(X=x), whole.bound(X=x)
    for name in ("y0", "y1", "y2"):
        np.testing.assert_allclose(many[0][name], one[0][name], rtol=1e-6)
        assert (many[1][name] <= 10 * one[1][name]).all() and (one[1][name] <= 10 * many[1][name]).all()


def test_what_is_not_a_number_is_claimed_of_a_tuple_too() -> None:
    whole = combined("chan", 40, 3)
    x = np.random.default_rng(1).standard_normal((3, 40)).astype(np.float32)
    x[1, 5] = np.nan
    found = {name: np.array(a) for name, a in whole.evaluate(X=x).items()}
    assert reference.compare(whole, {"X": x}, found)
    assert np.isfinite(whole.bound(X=x)["y1"]).all()
    found["y1"][1] = 0
    assert not reference.compare(whole, {"X": x}, found)


def test_nothing_is_claimed_of_a_product_with_zero_that_may_overflow_before() -> None:
    _, _, x = matrix(100, 2)
    i, j = axes(i=100, j=2)
    product = as_computation(define("P", tl.prod(x[i, j], over=i), j))
    data = np.full((100, 2), 3.0, np.float32)
    data[99, 0] = 0.0  # met last, after the others have become infinite
    data[:, 1] = 1e-5
    data[0, 1] = 0.0  # terms that only underflow change nothing
    bound = product.bound(X=data)
    assert product.evaluate(X=data).tolist() == [0.0, 0.0]
    assert np.isinf(bound[0])
    assert bound[1] < 1e-30


def test_a_power_of_a_half_is_that_of_c() -> None:
    i, x = vector(4)
    root = as_computation(define("Y", x[i] ** 0.5, i))
    data = np.array([-np.inf, np.inf, -0.0, 4.0], np.float32)
    found = root.evaluate(X=data)
    assert found.tolist() == [np.inf, np.inf, 0.0, 2.0]
    assert not np.signbit(found[2])


def test_nothing_is_claimed_where_another_order_may_lose_a_nan() -> None:
    """A choice by a comparison keeps a NaN or drops it, as it comes; a sum keeps it in any order."""
    i, j, x = matrix(3, 29)

    def larger(a: Any, b: Any) -> Any:
        first = (a[0] > b[0]) | ((a[0] == b[0]) & (a[1] < b[1]))
        return tl.where(first, a[0], b[0]), tl.where(first, a[1], b[1])

    value, place = tl.reduce(larger, (-1e6, 1e6), (x[i, j], tl.cast(j, tl.float32)), over=j)
    whole = as_computation(define("V", value + 0 * place, i))
    data = np.zeros((3, 29), np.float32)
    data[1, 4] = data[2, 28] = np.nan  # the reference drops the first
    data[:, 3] = 5
    assert np.isinf(whole.bound(X=data)[1:]).all() and np.isfinite(whole.bound(X=data)[0])
