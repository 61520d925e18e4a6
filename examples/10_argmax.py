"""The index of the greatest element of every row: a reduction whose state is a pair, spread like any other.

Ties take the smaller index and NaN wins, as in NumPy, however the row is cut. Run: `python examples/10_argmax.py`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import tilelang as tl


def argmax(M: int, N: int) -> tl.Tensor:
    """Y[i] = the least j for which X[i, j] is greatest."""
    i, j = tl.axes(i=M, j=N)
    X = tl.input("X", tl.float32, i, j)
    return tl.define("Y", tl.argmax(X[i, j], over=j), i)


def cpu(y: tl.Tensor) -> tl.Schedule:
    """A row a core: 16 candidates in vector registers; `peel` makes a loop over whole vectors, and the rest apart."""
    return tl.schedule(y).tile(i=1).to(tl.block).accumulate(tl.register).split(j=16, peel=True).vectorize(j=16)


def simt(y: tl.Tensor, threads: int = 64) -> tl.Schedule:
    """A row a block: a candidate a thread, which meet in shared memory."""
    return tl.schedule(y).tile(i=1).to(tl.block).tile(j=1).to(tl.thread, threads)


def schedules(M: int = 501, N: int = 1500, small: bool = False) -> dict[str, tl.Schedule]:
    """The schedules by name; small: with tiles for tiny sizes under a simulator."""
    y = argmax(M, N)
    return {"cpu": cpu(y), "simt": simt(y, 4 if small else 64)}


def expected(X: Any) -> Any:
    """The same by NumPy."""
    return np.argmax(X, axis=1)


def main(M: int = 501, N: int = 1500, small: bool = False) -> None:
    """Every schedule: checked by the library, compared with NumPy on data with ties and NaN, timed."""
    x = np.random.default_rng(0).integers(-9, 9, (M, N)).astype(np.float32)
    x[::7, N // 2 :: 5] = np.nan
    for name, schedule in schedules(M, N, small).items():
        kernel = tl.compile(schedule)
        if not kernel.check() or not np.array_equal(kernel(x), expected(x)):
            raise SystemExit(f"{name} is wrong: {kernel.check()}")
        print(f"{name}: right, {kernel.benchmark(repeats=3) * 1e3:.2f} ms")


if __name__ == "__main__":
    main()
