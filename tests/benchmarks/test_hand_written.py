"""The yardsticks compute the right thing, tails included, at sizes that build and run in a moment."""

from __future__ import annotations

import functools

import numpy as np
import pytest

from benchmarks import hand_written as hw
from benchmarks.hand_written_matmul import MatmulTiles, best_tiles, leaf_source, matmul_source
from benchmarks.harness import Contestant, FloatArray, HostBench, aligned_array, compare, table

ROWS, COLUMNS = 32, 128


@pytest.fixture(scope="module")
def bench() -> HostBench:
    return HostBench()


def filled(shape: tuple[int, ...], seed: int = 0) -> FloatArray:
    array = aligned_array(shape)
    array[...] = np.random.default_rng(seed).standard_normal(shape)
    return array


def run(bench: HostBench, source: str, grid: tuple[int, ...], inputs: list[FloatArray], shape: tuple[int, ...]) -> FloatArray:
    out = aligned_array(shape)
    out[...] = np.nan
    bench.launch(source, grid, [*inputs, out])()
    return out


@pytest.mark.parametrize(
    ("m", "n", "k", "packed"), [(16, 96, 8, False), (21, 103, 13, False), (21, 103, 13, True), (9, 64, 5, True), (7, 7, 3, False)]
)
def test_matmul_with_tails(bench: HostBench, m: int, n: int, k: int, packed: bool) -> None:
    tiles = MatmulTiles(16, 96, 4, pack_a=packed, rows_outer=not packed)
    a, b = filled((m, k)), filled((k, n), 1)
    c = run(bench, matmul_source(m, n, k, tiles), tiles.grid(m, n), [a, b], (m, n))
    np.testing.assert_allclose(c, a.astype("d") @ b.astype("d"), atol=1e-6 * k)


@pytest.mark.parametrize("size", [(128, 1000, 4032), (1000, 1111, 777), (7, 65, 3)])
def test_blocks_of_a_product_are_shared_evenly_by_two_cores(size: tuple[int, int, int]) -> None:
    tiles = best_tiles(*size)
    columns, rows = tiles.grid(size[0], size[1])
    assert rows == 1 and columns % 2 == 0 and tiles.kc <= 512 and columns * tiles.nt < size[1] + 2 * tiles.nt


def test_the_innermost_loop_alone(bench: HostBench) -> None:
    tiles, a, b = best_tiles(64, 64, 64), filled((5, 6)), filled((5, 64), 1)
    c = run(bench, leaf_source(5, 3, tiles), (2,), [a, b], (2, 6, 64))
    np.testing.assert_allclose(c, [a.T.astype("d") @ b.astype("d")] * 2, atol=1e-5)


@pytest.mark.parametrize("source", [hw.softmax_source(COLUMNS), hw.softmax_overlapped_source(COLUMNS, rows=8)])
def test_softmax(bench: HostBench, source: str) -> None:
    x = filled((ROWS, COLUMNS))
    x[3, 5] = -np.inf
    grid = (ROWS // 8,) if "i < 8" in source else (ROWS,)
    e = np.exp(x.astype("d") - x.max(1, keepdims=True))
    np.testing.assert_allclose(run(bench, source, grid, [x], x.shape), e / e.sum(1, keepdims=True), rtol=1e-5)


def test_layer_normalization(bench: HostBench) -> None:
    x, gamma, beta = filled((ROWS, COLUMNS)), filled((COLUMNS,), 1), filled((COLUMNS,), 2)
    wide = x.astype("d")
    expected = (wide - wide.mean(1, keepdims=True)) / np.sqrt(wide.var(1, keepdims=True) + 1e-5) * gamma + beta
    got = run(bench, hw.layer_normalization_source(COLUMNS), (ROWS,), [x, gamma, beta], x.shape)
    np.testing.assert_allclose(got, expected, atol=1e-5)


def test_row_sum_gelu_transpose_and_copy(bench: HostBench) -> None:
    x = filled((ROWS, COLUMNS))
    wide = x.astype("d")
    np.testing.assert_allclose(run(bench, hw.row_sum_source(COLUMNS), (ROWS,), [x], (ROWS,)), wide.sum(1), atol=1e-4)
    gelu = 0.5 * wide * (1 + np.tanh(np.sqrt(2 / np.pi) * (wide + 0.044715 * wide**3)))
    np.testing.assert_allclose(run(bench, hw.gelu_source(COLUMNS), (ROWS,), [x], x.shape), gelu, atol=1e-6)
    grid = (COLUMNS // 32, ROWS // 32)
    np.testing.assert_array_equal(run(bench, hw.transpose_source(ROWS, COLUMNS), grid, [x], (COLUMNS, ROWS)), x.T)
    np.testing.assert_array_equal(run(bench, hw.copy_source(COLUMNS), (ROWS // 8,), [x], x.shape), x)
    peaks = run(bench, hw.read_source(COLUMNS), (ROWS // 8,), [x], (ROWS // 8,))
    np.testing.assert_array_equal(peaks, x.reshape(ROWS // 8, -1).max(1))


def test_exponential_is_within_a_unit_in_the_last_place(bench: HostBench) -> None:
    body = "KERNEL(const float* X, float* Y, BLOCK)"
    body += " { size_t i = block[0] * 16; STORE(Y + i, exponential(LOAD(X + i))); }"
    x = aligned_array((1 << 16,))
    x[...] = np.linspace(-87.2, 88.7, x.size)
    exact = np.exp(x.astype("d"))
    y = run(bench, hw.PRELUDE + hw.EXPONENTIAL + body, (x.size // 16,), [x], x.shape)
    assert (np.abs(y - exact) / np.spacing(exact.astype("f"))).max() <= 1
    special = aligned_array((16,))
    special[:6] = -np.inf, np.inf, np.nan, -1e30, 1e30, 89
    y = run(bench, hw.PRELUDE + hw.EXPONENTIAL + body, (1,), [special], (16,))
    np.testing.assert_array_equal(y[:7], np.array([0, np.inf, np.nan, 0, np.inf, np.inf, 1], "f"))


def test_sizes_without_a_form_are_refused() -> None:
    with pytest.raises(ValueError, match="not a multiple"):
        hw.row_sum_source(100)
    with pytest.raises(ValueError, match="cut evenly"):
        hw.transpose_source(100, 64)
    with pytest.raises(ValueError, match="power of two"):
        hw.layer_normalization_source(96, vectors=3)


def test_contestants_take_turns() -> None:
    order: list[str] = []
    calls = [Contestant(n, n, functools.partial(order.append, n)) for n in ("a", "b")]
    measured = compare(calls, rounds=2, pause_s=0)
    assert order == ["a", "a", "b", "b"] * 2
    assert measured.processor_seconds.keys() == {"a", "b"}
    assert measured.ratio("a", "a") == measured.best_ratio("b", "b") == 1
    assert len(measured.seconds["a"]) == 2
    assert measured.best_ms("a") <= measured.median_ms("a")


def test_table_lines_up() -> None:
    assert table([("name", "ms"), ("copy", "10.5")]) == "name    ms\n----------\ncopy  10.5"
