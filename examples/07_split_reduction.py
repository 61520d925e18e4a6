"""A long reduction with little output: the reduction axis itself is given to blocks, and a second kernel adds what they found.

Only the first tile differs from a row sum's schedule: it cuts j too. Run: `python examples/07_split_reduction.py`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import tilelang as tl


def squares(M: int, N: int) -> tl.Tensor:
    """Y[i] = sum over j of X[i, j] squared."""
    i, j = tl.axes(i=M, j=N)
    X = tl.input("X", tl.float32, i, j)
    return tl.define("Y", tl.sum(X[i, j] * X[i, j], over=j), i)


def cpu(y: tl.Tensor, j: int = 65536) -> tl.Schedule:
    """A core takes j elements of a row, in vectors, and fetches ahead."""
    return (
        tl.schedule(y)
        .tile(i=1, j=j).to(tl.block)
        .accumulate(tl.register)
        .split(j=64)
        .load("X", tl.l1, ahead=16)
        .vectorize(j=64)
    )  # fmt: skip


def simt(y: tl.Tensor, j: int = 16384, threads: int = 64) -> tl.Schedule:
    """A block takes j elements of a row, four a thread in every round."""
    return tl.schedule(y).tile(i=1, j=j).to(tl.block).tile(j=4).to(tl.thread, threads).vectorize(j=4)


def schedules(M: int = 3, N: int = 500_001, small: bool = False) -> dict[str, tl.Schedule]:
    """The schedules by name; small: with tiles for tiny sizes under a simulator."""
    y = squares(M, N)
    return {"cpu": cpu(y, 128), "simt": simt(y, 32, 4)} if small else {"cpu": cpu(y), "simt": simt(y)}


def expected(X: Any) -> Any:
    """The same by NumPy, in float64."""
    return np.square(X.astype(np.float64)).sum(axis=1)


def main(M: int = 3, N: int = 500_001, small: bool = False) -> None:
    """Every schedule: checked by the library, compared with NumPy within the derived bound, timed."""
    x = np.random.default_rng(0).standard_normal((M, N), np.float32)
    for name, schedule in schedules(M, N, small).items():
        kernel = tl.compile(schedule)
        if not kernel.check() or np.any(np.abs(kernel(x) - expected(x)) > kernel.computation.bound(X=x)):
            raise SystemExit(f"{name} is wrong: {kernel.check()}")
        print(f"{name}: right, {len(kernel.resources)} kernels, {kernel.benchmark(repeats=3) * 1e3:.2f} ms")


if __name__ == "__main__":
    main()
