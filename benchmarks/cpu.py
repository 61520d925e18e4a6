"""Schedules on the CPU beside hand-written kernels, NumPy and PyTorch: the table that says whether the compiler loses anything.

`python benchmarks/cpu.py` measures every operator interleaved with its hand-written yardstick, its peer, a streaming copy and a pure
read, over the same arrays, outputs preallocated, warm caches, a pause at every change of sides; each result is first checked against
the reference. Ratios above 1 mean that the schedule is faster.
"""

from __future__ import annotations

import argparse
import dataclasses
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # `python benchmarks/cpu.py` from anywhere

import tilelang as tl
from benchmarks import cpu_schedules as schedules
from benchmarks import hand_written as hand
from benchmarks.hand_written_matmul import best_tiles, leaf_source, matmul_source
from benchmarks.harness import Contestant, FloatArray, HostBench, aligned_array, compare, record, table
from benchmarks.harness import launcher as launched
from benchmarks.operators_ours import limits

HEADING = ("operator", "size", "ms", "x hand", "x peer", "peer", "x copy", "x read")
PRODUCT_HEADING = ("product", "ms", "x hand", "x constructed", "x NumPy", "x PyTorch", "GFLOP/s", "of leaf", "of peak")
# Cubes, a size that nothing divides, and the products of benchmarks/operators_cpu.csv.
PRODUCTS = (
    (1024, 1024, 1024), (2048, 2048, 2048), (3072, 3072, 3072), (1000, 1111, 777), (128, 1000, 4032), (128, 1000, 2048),
    (2048, 4096, 1024), (4096, 1024, 1024), (2048, 1024, 4096), (256, 1024, 30522),
)  # fmt: skip


@dataclasses.dataclass(frozen=True)
class Row:
    """One operator at one size; ratios are how many times faster the schedule is."""

    operator: str
    size: str
    ms: float
    hand_ratio: float
    peer: str
    peer_ratio: float
    copy_ratio: float | None = None
    read_ratio: float | None = None

    def cells(self) -> tuple[str, ...]:
        optional = [f"{v:.2f}" if v is not None else "" for v in (self.copy_ratio, self.read_ratio)]
        return (self.operator, self.size, f"{self.ms:.2f}", f"{self.hand_ratio:.2f}", f"{self.peer_ratio:.2f}", self.peer,
                *optional)  # fmt: skip


@dataclasses.dataclass(frozen=True)
class ProductRow:
    """One matrix product: how many times faster the schedule by hand is than the others, and which part of two limits it reaches.

    of_leaf: of the innermost loop alone, with its operands in the nearest cache; of_peak: of multiply-adds without operands.
    """

    operator: str
    size: str
    ms: float
    hand_ratio: float
    constructed_ratio: float
    numpy_ratio: float
    torch_ratio: float
    gflops: float
    of_leaf: float
    of_peak: float

    def cells(self) -> tuple[str, ...]:
        ratios = (self.hand_ratio, self.constructed_ratio, self.numpy_ratio, self.torch_ratio)
        limits = (self.of_leaf, self.of_peak)
        return (self.size, f"{self.ms:.2f}", *(f"{x:.2f}" for x in ratios), f"{self.gflops:.0f}", *(f"{x:.2f}" for x in limits))


def launcher(schedule: tl.Schedule | tl.Tensor, inputs: dict[str, FloatArray], output: FloatArray) -> Callable[[], None]:
    """The compiled schedule, or the one constructed for a tensor, over NumPy arrays in place, after a check against the reference."""
    kernel = tl.compile(schedule, "cpu")
    name = kernel.computation.outputs[0].name
    begin, finish = launched(kernel, {**inputs, name: output}, (name,))

    def run() -> None:
        begin()
        finish()

    output[...] = np.nan
    run()
    from tilelang.semantics.reference import compare as compare_with_reference

    report = compare_with_reference(kernel.computation, inputs, {name: output})
    if not report:
        raise SystemExit(f"{kernel.computation.name} is wrong: {report}")
    return run


def memory_bound(bench: HostBench, n: int, rounds: int, only: str | None) -> list[Row]:
    """Row sum, softmax, layer normalization, GELU and transpose of one n x n matrix."""
    import torch

    torch.set_num_threads(bench.device.compute_units)
    rng = np.random.default_rng(0)
    x, y, sums, gamma, beta = (aligned_array(s) for s in ((n, n), (n, n), (n,), (n,), (n,)))
    x[...], gamma[...], beta[...] = rng.standard_normal((n, n)), rng.standard_normal(n), rng.standard_normal(n)
    tx, ty, tsums, tgamma, tbeta = (torch.from_numpy(a) for a in (x, y, sums, gamma, beta))
    torch_gelu: Callable[..., object] = torch._C._nn.gelu
    norms = {"X": x, "gamma": gamma, "beta": beta}
    operators: dict[str, tuple[tl.Schedule, dict[str, FloatArray], FloatArray, str, tuple[int, ...], Callable[[], object]]] = {
        "row sum": (schedules.row_sum(n, n), {"X": x}, sums, hand.row_sum_source(n), (n,), lambda: torch.sum(tx, 1, out=tsums)),
        "softmax": (schedules.softmax(n, n), {"X": x}, y, hand.softmax_source(n), (n,), lambda: torch.softmax(tx, 1, out=ty)),
        "layer norm": (
            schedules.layer_normalization(n, n), norms, y, hand.layer_normalization_source(n), (n,),
            lambda: torch.layer_norm(tx, (n,), tgamma, tbeta),
        ),
        "gelu (tanh)": (
            schedules.gelu(n, n), {"X": x}, y, hand.gelu_source(n), (n,), lambda: torch_gelu(tx, approximate="tanh", out=ty),
        ),
        "transpose": (
            schedules.transpose(n, n), {"X": x}, y, hand.transpose_source(n, n), (n // 32, n // 32), lambda: ty.copy_(tx.T),
        ),
    }  # fmt: skip
    copy = bench.launch(hand.copy_source(n), (n // 8,), [x, y])
    read = bench.launch(hand.read_source(n), (n // 8,), [x, sums])
    rows = []
    for name, (schedule, inputs, output, source, grid, peer) in operators.items():
        if only is not None and only not in name:
            continue
        contestants = [
            Contestant("copy", "ours", copy),
            Contestant("read", "ours", read),
            Contestant("hand", "ours", bench.launch(source, grid, [*inputs.values(), output])),
            Contestant("ours", "ours", launcher(schedule, inputs, output)),
            Contestant("peer", "torch", peer),
        ]
        found = compare(contestants, rounds)
        reads_only = name == "row sum"
        rows.append(
            Row(name, f"{n}x{n}", found.median_ms("ours"), found.ratio("ours", "hand"), "PyTorch", found.ratio("ours", "peer"),
                None if reads_only else found.ratio("ours", "copy"), found.ratio("ours", "read") if reads_only else None)
        )  # fmt: skip
        print("  ".join(c for c in rows[-1].cells() if c), flush=True)
    return rows


def matrix_product(bench: HostBench, m: int, n: int, k: int, rounds: int, peak_gflops: float) -> ProductRow:
    """One product by hand and constructed beside C, NumPy, PyTorch, and its innermost loop alone in the nearest cache."""
    import torch

    rng = np.random.default_rng(1)
    a, b, *results = (aligned_array(s) for s in ((m, k), (k, n), (m, n), (m, n), (m, n), (m, n)))
    a[...], b[...] = rng.standard_normal((m, k)), rng.standard_normal((k, n))
    by_hand, ours, constructed, product = results
    inputs, tiles, tensors = {"A": a, "B": b}, best_tiles(m, n, k), [torch.from_numpy(x) for x in (a, b, product)]
    cores, depth = bench.device.compute_units, 128
    met = 2.0 * tiles.mr * tiles.nr * depth * cores  # operations of a round of the innermost loop on all cores
    meetings = max(1, round(2.0 * m * n * k / met))
    leaf = bench.launch(leaf_source(depth, meetings, tiles), (cores,), [a, b, product])
    found = compare(
        [
            Contestant("leaf", "ours", leaf),
            Contestant("hand", "ours", bench.launch(matmul_source(m, n, k, tiles), tiles.grid(m, n), [a, b, by_hand])),
            Contestant("ours", "ours", launcher(schedules.matmul_schedule(m, n, k), inputs, ours)),
            Contestant("constructed", "ours", launcher(schedules.matmul(m, n, k), inputs, constructed)),
            Contestant("NumPy", "numpy", lambda: np.matmul(a, b, out=product)),
            Contestant("PyTorch", "torch", lambda: torch.mm(tensors[0], tensors[1], out=tensors[2])),
        ],
        rounds,
    )
    ms, size = found.median_ms("ours"), f"{m}x{n}x{k}"
    hand, made, numpy_ratio, torch_ratio = (found.ratio("ours", name) for name in ("hand", "constructed", "NumPy", "PyTorch"))
    rate, leaf_rate = 2e-6 * m * n * k / ms, 1e-6 * met * meetings / found.median_ms("leaf")
    row = ProductRow("matmul", size, ms, hand, made, numpy_ratio, torch_ratio, rate, rate / leaf_rate, rate / peak_gflops)
    print("  ".join(row.cells()), flush=True)
    return row


def main() -> None:
    """Measures, prints the table, and appends it to a file where one is named."""
    parser = argparse.ArgumentParser(description="schedules on the CPU beside hand-written kernels, NumPy and PyTorch")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--only", help="a part of an operator's name")
    parser.add_argument(
        "--size", help="a product alone, as in 1024x1024x1024", type=lambda text: tuple(map(int, text.split("x")))
    )
    parser.add_argument("--record", type=Path, help="a file of JSON lines to append to")
    options = parser.parse_args()
    bench = HostBench()
    products: list[ProductRow] = []
    rows: list[Row] = []
    if options.only is None or options.only in "matmul":
        peak = limits(tl.target("cpu"))["peak_gflops"]
        products = [
            matrix_product(bench, m, n, k, options.rounds, peak) for m, n, k in ([options.size] if options.size else PRODUCTS)
        ]
        print("\n" + table([PRODUCT_HEADING, *(row.cells() for row in products)]))
    if options.only is None or options.only not in "matmul":
        rows = memory_bound(bench, 4096, options.rounds, options.only)
        print("\n" + table([HEADING, *(row.cells() for row in rows)]))
    if options.record is not None:
        record(
            options.record,
            [dataclasses.asdict(row) for row in products] + [dataclasses.asdict(row) for row in rows],
            bench.device.name,
        )


if __name__ == "__main__":
    main()
