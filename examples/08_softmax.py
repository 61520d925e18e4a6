"""Softmax in one kernel: four definitions, computed one after another while the row stays on chip.

`compute` says where each stage lives; without these steps the reductions would become kernels of their own.
Run: `python examples/08_softmax.py`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import tilelang as tl


def softmax(M: int, N: int) -> tl.Tensor:
    """Y[i, j] = exp(X[i, j] - peak[i]) / total[i]."""
    i, j = tl.axes(i=M, j=N)
    X = tl.input("X", tl.float32, i, j)
    peak = tl.define("peak", tl.max(X[i, j], over=j), i)
    shifted = tl.define("shifted", tl.exp(X[i, j] - peak[i]), i, j)
    total = tl.define("total", tl.sum(shifted[i, j], over=j), i)
    return tl.define("Y", shifted[i, j] / total[i], i, j)


def cpu(y: tl.Tensor) -> tl.Schedule:
    """Rows one after another on a core: the exponentials stay on chip, meanwhile the next row is fetched and the one before stored."""
    wide = tl.move().vectorize(j=64)
    next_row = tl.move().split(j=64).load("X", tl.l1, ahead=-(-y.shape[1] // 64)).vectorize(j=64)
    return (
        tl.schedule(y)
        .tile(i=16).to(tl.block)
        .split(i=1)
        .via(tl.register, stream=True, behind=1)
        .compute("peak", tl.register, steps=wide)
        .compute("shifted", tl.shared, steps=next_row)
        .compute("total", tl.register, steps=wide)
        .split(j=64)
        .vectorize(j=64)
    )  # fmt: skip


def softmax_rows(y: tl.Tensor, threads: int = 256) -> tl.Schedule:
    """A row a block: read once into registers, each exponential computed once, by the thread that stores it."""
    spread = tl.move().tile(j=4).to(tl.thread)
    return (
        tl.schedule(y)
        .tile(i=1).to(tl.block)
        .load("X", tl.register, steps=tl.move().vectorize(j=4))
        .compute("peak", tl.register, steps=spread)
        .compute("shifted", tl.register, steps=spread)
        .compute("total", tl.register, steps=spread)
        .tile(j=4).to(tl.thread, threads)
        .vectorize(j=4)
    )  # fmt: skip


def schedules(M: int = 500, N: int = 1023, small: bool = False) -> dict[str, tl.Schedule]:
    """The schedules by name; small: with tiles for tiny sizes under a simulator."""
    y = softmax(M, N)
    return {"cpu": cpu(y), "softmax_rows": softmax_rows(y, 8 if small else 256)}


def expected(X: Any) -> Any:
    """The same by NumPy, in float64."""
    powers = np.exp(X.astype(np.float64) - X.max(axis=1, keepdims=True))
    return powers / powers.sum(axis=1, keepdims=True)


def main(M: int = 500, N: int = 1023, small: bool = False) -> None:
    """Every schedule: checked by the library, compared with NumPy within the derived bound, timed."""
    x = np.random.default_rng(0).standard_normal((M, N), np.float32)
    for name, schedule in schedules(M, N, small).items():
        kernel = tl.compile(schedule)
        if not kernel.check() or np.any(np.abs(kernel(x) - expected(x)) > kernel.computation.bound(X=x)):
            raise SystemExit(f"{name} is wrong: {kernel.check()}")
        print(f"{name}: right, {len(kernel.resources)} kernel, {kernel.benchmark(repeats=3) * 1e3:.2f} ms")


if __name__ == "__main__":
    main()
