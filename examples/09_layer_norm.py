"""Layer normalisation: mean and variance of a row in one pass, by Welford's combiner over a tuple.

Source: B. P. Welford, "Note on a method for calculating corrected sums of squares and products", 1962; T. F. Chan et al., 1979, for
two sets. Run: `python examples/09_layer_norm.py`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import tilelang as tl

EPSILON = 1e-5


def welford(a: Any, b: Any) -> Any:
    """(count, mean, sum of squared deviations) of two sets together."""
    count = a[0] + b[0]
    share = tl.where(count > 0, b[0] / tl.maximum(count, 1.0), 0.0)
    difference = b[1] - a[1]
    return count, a[1] + difference * share, a[2] + b[2] + difference * difference * a[0] * share


def layer_norm(M: int, N: int) -> tl.Tensor:
    """Y[i, j] = (X[i, j] - mean[i]) / sqrt(variance[i] + epsilon) gamma[j] + beta[j]."""
    i, j = tl.axes(i=M, j=N)
    X = tl.input("X", tl.float32, i, j)
    gamma = tl.input("gamma", tl.float32, j)
    beta = tl.input("beta", tl.float32, j)
    one, zero = tl.cast(1, tl.float32), tl.cast(0, tl.float32)
    state = tl.reduce(welford, identity=(0.0, 0.0, 0.0), values=(one, X[i, j], zero), over=j)
    _, mean, squares = tl.define(("count", "mean", "squares"), state, i)
    scale = tl.define("scale", tl.rsqrt(squares[i] / N + EPSILON), i)
    return tl.define("Y", (X[i, j] - mean[i]) * scale[i] * gamma[j] + beta[j], i, j)


def cpu(y: tl.Tensor) -> tl.Schedule:
    """A row a core: 64 running states in vectors, met at the end of the row; then one pass that stores and fetches the next row."""
    return (
        tl.schedule(y)
        .tile(i=1).to(tl.block)
        .via(tl.register, stream=True)
        .compute("mean", tl.register, steps=tl.move().vectorize(j=64))
        .compute("scale", tl.register)
        .split(j=64)
        .load("X", tl.l2, ahead=-(-y.shape[1] // 64))
        .vectorize(j=64)
    )  # fmt: skip


def simt(y: tl.Tensor, threads: int = 128) -> tl.Schedule:
    """A row a block: read once into registers, a running state a thread."""
    spread = tl.move().tile(j=4).to(tl.thread)
    return (
        tl.schedule(y)
        .tile(i=1).to(tl.block)
        .load("X", tl.register, steps=tl.move().vectorize(j=4))
        .compute("mean", tl.register, steps=spread)
        .compute("scale", tl.register)
        .tile(j=4).to(tl.thread, threads)
        .vectorize(j=4)
    )  # fmt: skip


def schedules(M: int = 500, N: int = 1023, small: bool = False) -> dict[str, tl.Schedule]:
    """The schedules by name; small: with tiles for tiny sizes under a simulator."""
    y = layer_norm(M, N)
    return {"cpu": cpu(y), "simt": simt(y, 8 if small else 128)}


def expected(X: Any, gamma: Any, beta: Any) -> Any:
    """The same by NumPy, in float64, in two passes."""
    x = X.astype(np.float64)
    return (x - x.mean(axis=1, keepdims=True)) / np.sqrt(x.var(axis=1, keepdims=True) + EPSILON) * gamma + beta


def main(M: int = 500, N: int = 1023, small: bool = False) -> None:
    """Every schedule: checked by the library, compared with NumPy within the derived bound, timed."""
    generator = np.random.default_rng(0)
    x, gamma, beta = (generator.standard_normal(shape, np.float32) for shape in ((M, N), (N,), (N,)))
    for name, schedule in schedules(M, N, small).items():
        kernel = tl.compile(schedule)
        error = np.abs(kernel(x, gamma, beta) - expected(x, gamma, beta))
        bound = kernel.computation.bound(X=x, gamma=gamma, beta=beta)
        if not kernel.check() or np.any(error > bound):
            raise SystemExit(f"{name} is wrong: {kernel.check()}")
        print(f"{name}: right, error at most {error.max():.1e} of {bound.max():.1e}, {kernel.benchmark(repeats=3) * 1e3:.2f} ms")


if __name__ == "__main__":
    main()
