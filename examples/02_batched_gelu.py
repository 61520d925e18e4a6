"""A batched product with bias and tanh-GELU fused into it: the same schedules as for the product alone.

Bias and activation are computed where the finished sums are, before the store; no step of the schedules mentions them.
Run: `python examples/02_batched_gelu.py`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import tilelang as tl

# Rows and columns of sums that fit a core's vector registers, by the lanes of one: 24 of 32 registers of 16 or 4, 12 of 16 of 8.
REGISTER_TILES = {16: (8, 48), 8: (6, 16), 4: (8, 12)}


def product(B: int, M: int, N: int, K: int, fused: bool) -> tl.Tensor:
    """C[b, m, n] = sum over k of X[b, m, k] W[b, k, n]; fused: Y[b, m, n] = gelu(that + bias[n])."""
    b, m, n, k = tl.axes(b=B, m=M, n=N, k=K)
    X = tl.input("X", tl.float32, b, m, k)
    W = tl.input("W", tl.float32, b, k, n)
    bias = tl.input("bias", tl.float32, n)
    acc = tl.sum(X[b, m, k] * W[b, k, n], over=k)
    return tl.define("Y", tl.gelu_tanh(acc + bias[n]), b, m, n) if fused else tl.define("C", acc, b, m, n)


def cpu(c: tl.Tensor, m: int = 168, n: int = 192, k: int = 128, rows: int = 8, columns: int = 48, lanes: int = 16) -> tl.Schedule:
    """A core as a block: sums of a tile wait in shared memory until every chunk of k has been added."""
    return (
        tl.schedule(c)
        .tile(b=1, m=m, n=n).to(tl.block)
        .accumulate(tl.shared, steps=tl.move().vectorize(n=lanes))
        .split(k=k)
        .load("W", tl.shared, layout=tl.layout(lambda b, k, n: (n // columns, k, n % columns)), steps=tl.move().vectorize(n=lanes))
        .load("X", tl.shared, layout=tl.layout(lambda b, m, k: (m // rows, k, m % rows)))
        .split(n=columns, m=rows)
        .accumulate(tl.register)
        .split(k=4)
        .split(k=1, unroll=True)
        .load("W", tl.register, steps=tl.move().vectorize(n=lanes))
        .split(m=1, unroll=True)
        .vectorize(n=lanes)
    )  # fmt: skip


def simt(c: tl.Tensor, m: int = 64, n: int = 64, k: int = 8, piece: int = 4) -> tl.Schedule:
    """Threads: each owns piece x piece sums in registers, and finishes them there."""
    return (
        tl.schedule(c)
        .tile(b=1, m=m, n=n).to(tl.block)
        .accumulate(tl.register)
        .split(k=k)
        .load("X", tl.shared, layout=tl.layout("b", "k", "m").pad(1))
        .load("W", tl.shared)
        .tile(m=piece, n=piece).to(tl.thread)
        .split(k=1)
        .load("X", tl.register)
        .load("W", tl.register)
    )  # fmt: skip


def schedules(
    B: int = 3, M: int = 250, N: int = 333, K: int = 200, small: bool = False, lanes: int = 16
) -> dict[str, tl.Schedule]:
    """Both schedules, each with and without the epilogue; small: with tiles for tiny sizes under a simulator;
    lanes: of a core's vectors."""
    made = {}
    for suffix, fused in (("", False), ("_gelu", True)):
        c = product(B, M, N, K, fused)
        made[f"cpu{suffix}"] = cpu(c, 16, 32, 8, 4, 16) if small else cpu(c, 168, 12 * lanes, 128, *REGISTER_TILES[lanes], lanes)
        made[f"simt{suffix}"] = simt(c, 8, 8, 4, 2) if small else simt(c)
    return made


def expected(X: Any, W: Any, bias: Any | None = None) -> Any:
    """The same by NumPy, in float64: the product alone where there is no bias."""
    sums = np.einsum("bmk,bkn->bmn", X.astype(np.float64), W.astype(np.float64))
    if bias is None:
        return sums
    x = sums + bias.astype(np.float64)
    return x * np.exp(-np.logaddexp(0, -2 * np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))  # (1 + tanh u) / 2 = 1 / (1 + exp(-2 u))


def main(B: int = 3, M: int = 250, N: int = 333, K: int = 200, small: bool = False) -> None:
    """Every schedule: checked by the library, compared with NumPy within the derived bound, timed."""
    generator = np.random.default_rng(0)
    arrays = {n: generator.standard_normal(s, np.float32) for n, s in (("X", (B, M, K)), ("W", (B, K, N)), ("bias", (N,)))}
    lanes = max(tl.target().profile.vector_bytes) // 4
    for name, schedule in schedules(B, M, N, K, small, lanes=lanes).items():
        kernel = tl.compile(schedule)
        given = {t.name: arrays[t.name] for t in kernel.computation.inputs}
        error = np.abs(kernel(**given) - expected(**given))
        if not kernel.check() or np.any(error > kernel.computation.bound(**given)):
            raise SystemExit(f"{name} is wrong: {kernel.check()}")
        print(f"{name}: right, {kernel.benchmark(repeats=3) * 1e3:.2f} ms")


if __name__ == "__main__":
    main()
