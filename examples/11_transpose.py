"""Transpose: rows come in whole and go out whole, turned in shared memory.

The padding keeps the column that a warp reads in different banks. Run: `python examples/11_transpose.py`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import tilelang as tl


def transpose(M: int, N: int) -> tl.Tensor:
    """Y[j, i] = X[i, j]."""
    i, j = tl.axes(i=M, j=N)
    X = tl.input("X", tl.float32, i, j)
    return tl.define("Y", X[i, j], j, i)


def cpu(y: tl.Tensor, tile: int = 32) -> tl.Schedule:
    """A core as a block: vectors in along j, vectors out along i and past the cache."""
    return (
        tl.schedule(y)
        .tile(j=tile, i=tile).to(tl.block)
        .via(tl.register, stream=True)
        .load("X", tl.shared, steps=tl.move().vectorize(j=16))
        .split(j=1)
        .vectorize(i=16)
    )  # fmt: skip


def simt(y: tl.Tensor, tile: int = 32, rows: int = 4) -> tl.Schedule:
    """Threads: neighbours read and write neighbouring elements; each takes `rows` of them."""
    return (
        tl.schedule(y)
        .tile(j=tile, i=tile).to(tl.block)
        .load("X", tl.shared, layout=tl.layout("i", "j").pad(1), steps=tl.move().tile(i=rows, j=1).to(tl.thread))
        .tile(j=rows, i=1).to(tl.thread)
    )  # fmt: skip


def schedules(M: int = 700, N: int = 901, small: bool = False) -> dict[str, tl.Schedule]:
    """The schedules by name; small: with tiles for tiny sizes under a simulator."""
    y = transpose(M, N)
    return {"cpu": cpu(y, 16), "simt": simt(y, 8, 2)} if small else {"cpu": cpu(y), "simt": simt(y)}


def expected(X: Any) -> Any:
    """The same by NumPy."""
    return X.T


def main(M: int = 700, N: int = 901, small: bool = False) -> None:
    """Every schedule: checked by the library, compared with NumPy to the bit, timed."""
    x = np.random.default_rng(0).standard_normal((M, N), np.float32)
    for name, schedule in schedules(M, N, small).items():
        kernel = tl.compile(schedule)
        if not kernel.check() or not np.array_equal(kernel(x), expected(x)):
            raise SystemExit(f"{name} is wrong: {kernel.check()}")
        seconds = kernel.benchmark(repeats=3)
        print(f"{name}: right, {seconds * 1e3:.2f} ms, {2e-9 * x.nbytes / seconds:.1f} GB/s")


if __name__ == "__main__":
    main()
