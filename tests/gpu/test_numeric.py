"""What a GPU computes, against the reference: every example at odd and at large sizes, types, shapes, shared memory, threads."""

from __future__ import annotations

import pickle
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

import tilelang as tl
from benchmarks import function_errors as fe
from tests.errors._computations import copy, matmul, row_sum, softmax
from tests.gpu.examples import matrix_schedules
from tests.lowering.test_function_errors import NAMES as FUNCTIONS
from tests.lowering.test_function_errors import run as run_functions
from tests.test_examples import NAMES, cases, for_threads, formula, load, schedules_for
from tilelang.errors import Refusal
from tilelang.lowering.targets.c.emitter import ulps
from tilelang.runtime.targets import DIALECTS
from tilelang.semantics.error_bound import ULPS
from tilelang.semantics.reference import evaluate_and_bound, random_arrays

CACHES = ("`l1`", "`l2`")  # which schedules for a CPU prefetch into


@pytest.fixture
def large(request: pytest.FixtureRequest) -> None:
    """Sizes at which an emulation would take minutes."""
    if request.config.getoption("--emulated"):
        pytest.skip("too large to emulate")


def accepted(schedule: tl.Schedule) -> tl.Kernel | None:
    """The kernel of a schedule; None where it asks for what only a CPU has."""
    try:
        return tl.compile(schedule)
    except Refusal as refusal:
        if refusal.code == "unknown-memory" and any(cache in refusal.message for cache in CACHES):
            return None
        raise


def small(*shape: int, dtype: Any = np.float32, seed: int = 0) -> Any:
    return np.random.default_rng(seed).integers(-4, 5, shape).astype(dtype)


# ---------------------------------------------------------------- examples


@pytest.mark.parametrize(("name", "sizes"), cases())
def test_examples_agree_with_their_formula(name: str, sizes: tuple[int, ...]) -> None:
    for schedule in schedules_for(name, sizes, tl.target().profile).values():
        kernel = accepted(schedule)
        if kernel is None or (name == "14_own_instruction" and not for_threads(schedule)):  # whose text is OpenCL's
            continue
        arrays = random_arrays(kernel.computation, seed=1)
        (output,) = kernel.computation.outputs
        _, bounds = evaluate_and_bound(kernel.computation, arrays)
        result = kernel(**arrays)
        assert np.all(np.abs(result - formula(load(name), name, sizes, arrays)) <= bounds[output.name])
        assert kernel.check()


@pytest.mark.usefixtures("large")
@pytest.mark.parametrize("name", NAMES)
def test_examples_at_their_own_sizes(name: str) -> None:
    for schedule in filter(for_threads, load(name).schedules().values()):
        report = tl.compile(schedule).check()
        assert report, str(report)


@pytest.mark.parametrize("name", matrix_schedules())
def test_matrix_instructions(name: str) -> None:
    """Where the device has them."""
    try:
        kernel = tl.compile(matrix_schedules()[name]())
    except Refusal as refusal:
        pytest.skip(f"refused: {refusal.code}")
    report = kernel.check()
    assert report, str(report)


@pytest.mark.parametrize("lanes", [1, 4])
@pytest.mark.parametrize("type", ["float32", "float64"])
def test_functions_keep_their_stated_error(type: str, lanes: int) -> None:
    dialect = DIALECTS[tl.target().dialect]
    x = fe.samples(type, 1 << 15 if type == "float32" else 1 << 13, lanes)
    inputs = {"x": x, "y": np.random.default_rng(lanes).permutation(x)}
    names = (*FUNCTIONS, *fe.TWO_ARGUMENTS)
    stated = {**ULPS, **ulps(dialect)} if type == "float32" else ULPS
    exceeding = []
    for name, result in run_functions(inputs, lanes, names).items():
        arguments = tuple(inputs.values()) if name in fe.TWO_ARGUMENTS else (x,)
        off = fe.errors(name, arguments, result)
        worst = int(off.argmax())
        at = ", ".join(repr(a[worst]) for a in arguments)
        if off[worst] > stated[name]:
            exceeding.append(f"{name}: {off[worst]} ulps at {at}, which gives {result[worst]!r}; stated {stated[name]}")
    assert not exceeding, "\n".join(exceeding)


# ---------------------------------------------------------------- arguments


@pytest.mark.parametrize(
    "dtype", [tl.float16, tl.bfloat16, tl.float8_e4m3, tl.float8_e5m2, tl.float64, tl.int8, tl.uint32, tl.int64, tl.bool]
)
def test_types(dtype: tl.DType) -> None:
    x = small(4, 8).astype(dtype.numpy)
    result = tl.compile(copy(4, 8, dtype))(x)
    assert result.dtype == x.dtype
    np.testing.assert_array_equal(result, x)


@pytest.mark.parametrize(("m", "n", "k"), [(0, 6, 7), (5, 0, 7), (5, 6, 0), (0, 0, 0), (1, 1, 1), (5, 6, 7)])
def test_sizes_of_zero_and_one(m: int, n: int, k: int) -> None:
    a, b = small(m, k), small(k, n, seed=1)
    np.testing.assert_array_equal(tl.compile(matmul(m, n, k))(a, b), a @ b)


@pytest.mark.parametrize("sizes", [(0, 256, 128), (256, 0, 128), (256, 256, 0)])
def test_products_by_boxes_of_tensors_without_elements(sizes: tuple[int, ...]) -> None:
    made = load("01_matmul")
    try:
        kernel = tl.compile(made.gemm_hopper(made.linear(*sizes)))
    except Refusal as refusal:
        pytest.skip(f"refused: {refusal.code}")
    assert kernel.check()


def test_strides_and_outputs_that_are_given() -> None:
    kernel = tl.compile(matmul(5, 6, 7))
    a, b, out = small(7, 5).T, small(7, 12)[:, ::2], np.zeros((6, 5), np.float32).T
    assert kernel(a, b, out=out) is out
    np.testing.assert_array_equal(out, a @ b)


def test_kernels_are_pickled_and_timed() -> None:
    kernel = tl.compile(row_sum(4, 64))
    x = small(4, 64)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(kernel))(x), x.sum(axis=1))
    assert kernel.benchmark(repeats=3) > 0


def test_calls_of_many_threads() -> None:
    """With a workspace, which two calls must not mix."""
    kernel = tl.compile(softmax(16, 64))
    inputs = [small(16, 64, seed=s) / 4 for s in range(8)]

    def run(x: Any) -> Any:
        return [kernel(x) for _ in range(2)][-1]

    with ThreadPoolExecutor(4) as pool:
        results = list(pool.map(run, inputs))
    for x, y in zip(inputs, results, strict=True):
        e = np.exp(x - x.max(axis=1, keepdims=True))
        np.testing.assert_allclose(y, e / e.sum(axis=1, keepdims=True), rtol=1e-4)


def test_shared_memory_beyond_48_kib() -> None:
    """Rows of 16 000 floats in shared memory, read backwards: 62.5 KiB a block."""
    i, j = tl.axes(i=3, j=16_000)
    x = tl.input("X", tl.float32, i, j)
    schedule = tl.schedule(tl.define("Y", x[i, 15_999 - j] + 1.0, i, j)).tile(i=1).to(tl.block)
    schedule = schedule.load("X", tl.shared, steps=tl.move().tile(j=1).to(tl.thread, 128)).tile(j=1).to(tl.thread, 128)
    profile = tl.target().profile
    if (profile.memory("shared").capacity_bytes or 0) < 64_000:
        pytest.skip("the device has less")
    kernel = tl.compile(schedule)
    assert kernel.resources[0].shared_bytes >= 64_000
    x = small(3, 16_000)
    np.testing.assert_array_equal(kernel(x), x[:, ::-1] + 1)


def test_what_is_built_is_kept_for_other_processes(tmp_path: Any) -> None:
    options = tl.Options(cache_dir=str(tmp_path))
    x = small(4, 5)
    for _ in range(2):
        np.testing.assert_array_equal(tl.compile(row_sum(4, 5), options=options)(x), x.sum(axis=1))
