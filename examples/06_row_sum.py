"""Row sums: one reduction, spread over vector lanes, over threads, or over both.

Nobody writes how partial sums meet: a spread of a reduction axis gives every unit a partial state, combined once at the end.
Run: `python examples/06_row_sum.py`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import tilelang as tl


def row_sum(M: int, N: int) -> tl.Tensor:
    """Y[i] = sum over j of X[i, j]."""
    i, j = tl.axes(i=M, j=N)
    X = tl.input("X", tl.float32, i, j)
    return tl.define("Y", tl.sum(X[i, j], over=j), i)


def cpu(y: tl.Tensor) -> tl.Schedule:
    """A row a core: 64 partial sums in vector registers; `load X in l1` fetches what comes 16 rounds later into the cache."""
    return (
        tl.schedule(y)
        .tile(i=1).to(tl.block)
        .accumulate(tl.register)
        .split(j=64)
        .load("X", tl.l1, ahead=16)
        .vectorize(j=64)
    )  # fmt: skip


def simt(y: tl.Tensor, threads: int = 64) -> tl.Schedule:
    """A row a block: each thread adds four neighbours a round; the threads' sums meet in shared memory."""
    return tl.schedule(y).tile(i=1).to(tl.block).tile(j=4).to(tl.thread, threads).vectorize(j=4)


def schedules(M: int = 1001, N: int = 1500, small: bool = False) -> dict[str, tl.Schedule]:
    """The schedules by name; small: with tiles for tiny sizes under a simulator."""
    y = row_sum(M, N)
    return {"cpu": cpu(y), "simt": simt(y, 4 if small else 64)}


def expected(X: Any) -> Any:
    """The same by NumPy, in float64."""
    return X.astype(np.float64).sum(axis=1)


def main(M: int = 1001, N: int = 1500, small: bool = False) -> None:
    """Every schedule: checked by the library, compared with NumPy within the derived bound, timed."""
    x = np.random.default_rng(0).standard_normal((M, N), np.float32)
    for name, schedule in schedules(M, N, small).items():
        kernel = tl.compile(schedule)
        if not kernel.check() or np.any(np.abs(kernel(x) - expected(x)) > kernel.computation.bound(X=x)):
            raise SystemExit(f"{name} is wrong: {kernel.check()}")
        seconds = kernel.benchmark(repeats=3)
        print(f"{name}: right, {seconds * 1e3:.2f} ms, {x.nbytes / seconds * 1e-9:.1f} GB/s")


if __name__ == "__main__":
    main()
