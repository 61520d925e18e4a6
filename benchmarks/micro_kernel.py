"""The innermost loops of a matrix product, from the emitter and by hand, side by side on the processor here.

    python benchmarks/micro_kernel.py [--size M N K] [--repeats 9] [--show]

The kernel IR below is built by hand and is what the schedule `gemm_cpu` should lower to: a block of 336 x 384, panels of 256 packed in
shared memory, a register tile of 8 x 48 in named vectors, the loop over k unrolled by four. The yardstick is the same kernel written
in C by a person. The emitted one must reach 0.97 of it. Calls are interleaved, with a pause before each.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # `python benchmarks/micro_kernel.py` from anywhere

from benchmarks.harness import HostBench
from tilelang.core import dtype as dt
from tilelang.core.expr import Binary, Const, Expr, Var, index
from tilelang.lowering import ir
from tilelang.lowering.ir import Buffer, For, If, Kernel, Load, Pack, Program, Store, seq
from tilelang.lowering.targets import cpu
from tilelang.lowering.targets.c import emitter

ROWS, VECTORS, LANES = 8, 3, 16  # register tile: 8 rows of three vectors
COLUMNS = VECTORS * LANES
DEPTH, UNROLL = 256, 4
BLOCK_M, BLOCK_N = 336, 384


def loop(name: str, extent: int, body: Callable[[Expr], ir.Stmt]) -> For:
    """A serial loop."""
    var = Var(name, dt.int64, 0, extent - 1)
    return For(var, index(extent), body(var))


def program(m: int, n: int, k: int) -> Program:
    """The packed matrix product as final kernel IR."""
    A = Buffer("A", dt.float32, (m, k), "global", "input")
    B = Buffer("B", dt.float32, (k, n), "global", "input")
    C = Buffer("C", dt.float32, (m, n), "global", "output")
    As = Buffer("A_shared", dt.float32, (BLOCK_M // ROWS, DEPTH, ROWS), "shared", offset=0)
    Bs = Buffer("B_shared", dt.float32, (BLOCK_N // COLUMNS, DEPTH, COLUMNS), "shared", offset=As.bytes)
    acc = Buffer("acc", dt.float32, (ROWS, COLUMNS), "register", vector=LANES)
    b = Buffer("b", dt.float32, (COLUMNS,), "register", vector=LANES)
    block_n, block_m = Var("block_x", dt.int64, 0, n // BLOCK_N - 1), Var("block_y", dt.int64, 0, m // BLOCK_M - 1)
    tile = [(i, v * LANES) for i in range(ROWS) for v in range(VECTORS)]

    def pack_b(ko: Expr, p: Expr, kk: Expr) -> ir.Stmt:
        source = (ko * DEPTH + kk, block_n * BLOCK_N + p * COLUMNS)
        return seq(*(Store(Bs, (p, kk, index(v)), Load(B, (source[0], source[1] + v), LANES)) for v in range(0, COLUMNS, LANES)))

    def pack_a(ko: Expr, q: Expr, kk: Expr) -> ir.Stmt:
        source = (block_m * BLOCK_M + q * ROWS, ko * DEPTH + kk)
        return seq(*(Store(As, (q, kk, index(i)), Load(A, (source[0] + i, source[1]))) for i in range(ROWS)))

    def step(p: Expr, q: Expr, kk: Expr) -> ir.Stmt:
        body: list[ir.Stmt] = []
        for v in range(0, COLUMNS, LANES):
            body.append(Store(b, (index(v),), Load(Bs, (p, kk, index(v)), LANES)))
        for i, j in tile:
            product = Load(As, (q, kk, index(i))) * Load(b, (index(j),), LANES)
            body.append(Store(acc, (index(i), index(j)), Load(acc, (index(i), index(j)), LANES) + product))
        return seq(*body)

    def micro(ko: Expr, p: Expr, q: Expr) -> ir.Stmt:
        zero = Pack((Const(0.0, dt.float32),) * LANES)
        row, column = block_m * BLOCK_M + q * ROWS, block_n * BLOCK_N + p * COLUMNS
        value = {(i, j): Load(acc, (index(i), index(j)), LANES) for i, j in tile}
        first = [Store(C, (row + i, column + j), value[i, j]) for i, j in tile]
        later = [Store(C, (row + i, column + j), Load(C, (row + i, column + j), LANES) + value[i, j]) for i, j in tile]
        return seq(
            *(Store(acc, (index(i), index(j)), zero) for i, j in tile),
            loop("k", DEPTH // UNROLL, lambda kk: seq(*(step(p, q, kk * UNROLL + u) for u in range(UNROLL)))),
            If(Binary("==", ko, index(0)), seq(*first), seq(*later)),
        )

    def panel(ko: Expr) -> ir.Stmt:
        return seq(
            loop("p", BLOCK_N // COLUMNS, lambda p: loop("k", DEPTH, lambda kk: pack_b(ko, p, kk))),
            loop("q", BLOCK_M // ROWS, lambda q: loop("k", DEPTH, lambda kk: pack_a(ko, q, kk))),
            loop("p", BLOCK_N // COLUMNS, lambda p: loop("q", BLOCK_M // ROWS, lambda q: micro(ko, p, q))),
        )

    kernel = Kernel("gemm", (n // BLOCK_N, m // BLOCK_M, 1), 1, (A, B, C, As, Bs, acc, b), loop("panel", k // DEPTH, panel))
    return Program((kernel,), (A, B, C))


def by_hand(n: int, k: int) -> str:
    """The same kernel as a person writes it: running pointers, an unrolled loop left to the compiler."""
    pairs = [(i, v) for i in range(ROWS) for v in range(VECTORS)]
    place = "C + (size_t)(m0 + q * {rows} + {i}) * {n} + n0 + p * {columns} + {v}"
    out = [
        "typedef float unaligned __attribute__((ext_vector_type(16), aligned(4)));",
        "typedef __SIZE_TYPE__ size_t;",
        "typedef float float16 __attribute__((ext_vector_type(16)));",
        "static inline __attribute__((always_inline))",
        "void kernel_block(const float* restrict A, const float* restrict B, float* restrict C, float* local, const long long* block)",
        "{",
        f"const int m0 = (int)block[1] * {BLOCK_M}, n0 = (int)block[0] * {BLOCK_N};",
        f"float* restrict Bs = local, * restrict As = local + {BLOCK_N * DEPTH};",
        f"for (int k0 = 0; k0 < {k}; k0 += {DEPTH}) {{",
        f"for (int p = 0; p < {BLOCK_N // COLUMNS}; p++) for (int k = 0; k < {DEPTH}; k++) {{",
    ]
    for v in range(VECTORS):
        source = f"B + (size_t)(k0 + k) * {n} + n0 + p * {COLUMNS} + {16 * v}"
        out.append(f"*(float16*)(Bs + (p * {DEPTH} + k) * {COLUMNS} + {16 * v}) = *(const unaligned*)({source});")
    out += ["}", f"for (int q = 0; q < {BLOCK_M // ROWS}; q++) for (int k = 0; k < {DEPTH}; k++) {{"]
    out += [f"As[(q * {DEPTH} + k) * {ROWS} + {i}] = A[(size_t)(m0 + q * {ROWS} + {i}) * {k} + k0 + k];" for i in range(ROWS)]
    out += ["}", f"for (int p = 0; p < {BLOCK_N // COLUMNS}; p++) for (int q = 0; q < {BLOCK_M // ROWS}; q++) {{"]
    out += [f"const float* b = Bs + p * {DEPTH * COLUMNS}; const float* a = As + q * {DEPTH * ROWS};"]
    out += [f"float16 c{i}_{v} = (float16)(0.0f);" for i, v in pairs]
    out += [f"#pragma unroll {UNROLL}", f"for (int k = 0; k < {DEPTH}; k++) {{"]
    out += [f"float16 b{v} = *(const float16*)(b + {16 * v});" for v in range(VECTORS)]
    for i in range(ROWS):
        out += [f"{{ float16 x = (float16)(a[{i}]);", *(f"c{i}_{v} = x * b{v} + c{i}_{v};" for v in range(VECTORS)), "}"]
    out += [f"b += {COLUMNS}; a += {ROWS}; }}"]
    for head, sign in (("if (k0 == 0) {", "="), ("} else {", "+=")):
        out.append(head)
        for i, v in pairs:
            out.append(f"*(unaligned*)({place.format(rows=ROWS, columns=COLUMNS, i=i, v=16 * v, n=n)}) {sign} c{i}_{v};")
    return "\n".join([*out, "}}}}"])


def interleaved(calls: list[Callable[[], None]], repeats: int) -> list[tuple[float, float]]:
    """Median seconds of each call, by the clock and of the processors: the second hardly changes when others use the machine."""
    times: list[list[tuple[float, float]]] = [[] for _ in calls]
    for _ in range(repeats):
        for call, seconds in zip(calls, times, strict=True):
            time.sleep(0.25)
            call()
            start = time.perf_counter(), time.process_time()
            call()
            seconds.append((time.perf_counter() - start[0], time.process_time() - start[1]))
    return [(statistics.median(clock for clock, _ in t), statistics.median(busy for _, busy in t)) for t in times]


def measure(m: int, n: int, k: int, repeats: int) -> str:
    """One line: speed emitted and by hand, their ratio, and how far the emitted kernel's result is from NumPy's."""
    bench, made = HostBench(), program(m, n, k)
    kernel = made.kernels[0]
    rng = np.random.default_rng(0)
    a, b, c = rng.random((m, k), np.float32), rng.random((k, n), np.float32), np.empty((m, n), np.float32)
    emitted_text = emitter.emit(made, cpu.DIALECT)
    function = bench.connection.build(emitted_text).function("gemm", kernel.grid, 1, kernel.shared_bytes)
    held = [bench.connection.host_array(x, "both", None) for x in (a, b, c)]
    buffers = [h.buffer for h in held]
    calls = [lambda: function(buffers), bench.launch(by_hand(n, k), kernel.grid[:2], [a, b, c])]
    calls[0]()
    expected = a @ b
    error = float(np.abs(c - expected).max() / np.abs(expected).max())
    (emitted, emitted_busy), (hand, hand_busy) = interleaved(calls, repeats)
    work = 2e-9 * m * n * k
    return (
        f"{m} x {n} x {k}: emitted {work / emitted:.0f} GFLOP/s, by hand {work / hand:.0f}, ratio {hand / emitted:.3f}"
        f" (of processor time {hand_busy / emitted_busy:.3f}), error {error:.1e}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--size", type=int, nargs=3, default=(2016, 1920, 2048), metavar=("M", "N", "K"))
    parser.add_argument("--repeats", type=int, default=9)
    parser.add_argument("--show", action="store_true", help="print the emitted source")
    arguments = parser.parse_args()
    m, n, k = arguments.size
    if m % BLOCK_M or n % BLOCK_N or k % DEPTH:
        parser.error(f"extents must divide {BLOCK_M}, {BLOCK_N}, {DEPTH}")
    if arguments.show:
        print(emitter.emit(program(m, n, k), cpu.DIALECT))
        return
    print(measure(m, n, k, arguments.repeats))


if __name__ == "__main__":
    main()
