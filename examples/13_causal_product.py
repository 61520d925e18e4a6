"""A product with a triangle: position i adds up what stands at j <= i only.

The condition belongs to the reduction's domain; schedules are those of a matrix product. Run: `python examples/13_causal_product.py`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import tilelang as tl

# Rows and columns of sums that fit a core's vector registers, by the lanes of one: 24 of 32 registers of 16 or 4, 12 of 16 of 8.
REGISTER_TILES = {16: (8, 48), 8: (6, 16), 4: (8, 12)}


def causal(M: int, D: int) -> tl.Tensor:
    """O[i, d] = sum over j <= i of P[i, j] V[j, d]."""
    i, j, d = tl.axes(i=M, j=M, d=D)
    P = tl.input("P", tl.float32, i, j)
    V = tl.input("V", tl.float32, j, d)
    return tl.define("O", tl.sum(P[i, j] * V[j, d], over=j, where=j <= i), i, d)


def cpu(o: tl.Tensor, i: int = 96, d: int = 96, j: int = 64, rows: int = 8, columns: int = 48, lanes: int = 16) -> tl.Schedule:
    """A core as a block: packed panels of V, and the register tile of a matrix product."""
    return (
        tl.schedule(o)
        .tile(i=i, d=d).to(tl.block)
        .split(j=j)
        .load("V", tl.shared, layout=tl.layout(lambda j, d: (d // columns, j, d % columns)), steps=tl.move().vectorize(d=lanes))
        .split(i=rows)
        .split(d=columns)
        .accumulate(tl.register)
        .split(j=4, peel=True)
        .split(j=1, unroll=True)
        .load("V", tl.register, steps=tl.move().vectorize(d=lanes))
        .split(i=1, unroll=True)
        .vectorize(d=lanes)
    )  # fmt: skip


def simt(o: tl.Tensor, i: int = 32, d: int = 32, j: int = 8, piece: int = 2) -> tl.Schedule:
    """Threads: tiles of both operands in shared memory, piece x piece sums a thread."""
    return (
        tl.schedule(o)
        .tile(i=i, d=d).to(tl.block)
        .accumulate(tl.register)
        .split(j=j)
        .load("P", tl.shared)
        .load("V", tl.shared)
        .tile(i=piece, d=piece).to(tl.thread)
        .split(j=1)
    )  # fmt: skip


def schedules(M: int = 333, D: int = 70, small: bool = False, lanes: int = 16) -> dict[str, tl.Schedule]:
    """The schedules by name; small: with tiles for tiny sizes under a simulator; lanes: of a core's vectors."""
    o = causal(M, D)
    return (
        {"cpu": cpu(o, 8, 32, 4, 4, 16), "simt": simt(o, 8, 8, 4)}
        if small
        else {"cpu": cpu(o, 96, 96, 64, *REGISTER_TILES[lanes], lanes), "simt": simt(o)}
    )


def expected(P: Any, V: Any) -> Any:
    """The same by NumPy, in float64: the upper triangle as zeros."""
    return np.tril(P.astype(np.float64)) @ V.astype(np.float64)


def main(M: int = 333, D: int = 70, small: bool = False) -> None:
    """Every schedule: checked by the library, compared with NumPy within the derived bound, timed; what is masked may be NaN."""
    generator = np.random.default_rng(0)
    p, v = generator.standard_normal((M, M), np.float32), generator.standard_normal((M, D), np.float32)
    lanes = max(tl.target().profile.vector_bytes) // 4
    for name, schedule in schedules(M, D, small, lanes=lanes).items():
        kernel = tl.compile(schedule)
        result = kernel(p, v)
        if not kernel.check() or np.any(np.abs(result - expected(p, v)) > kernel.computation.bound(P=p, V=v)):
            raise SystemExit(f"{name} is wrong: {kernel.check()}")
        masked = kernel(np.where(np.triu(np.ones((M, M), bool), 1), np.float32(np.nan), p), v)
        if not np.array_equal(masked, result):
            raise SystemExit(f"{name} reads what the condition excludes")
        print(f"{name}: right, {kernel.benchmark(repeats=3) * 1e3:.2f} ms")


if __name__ == "__main__":
    main()
