"""Depthwise convolution: every channel has its own small window; channels are the vectors.

Run: `python examples/05_depthwise.py`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import tilelang as tl


def depthwise(N: int, H: int, C: int, R: int = 3) -> tl.Tensor:
    """Z[n, p, q, c] = sum over r, s of X[n, p + r - R/2, q + s - R/2, c] W[r, s, c]; 0 outside X."""
    n, p, q, c, r, s = tl.axes(n=N, p=H, q=H, c=C, r=R, s=R)
    X = tl.input("X", tl.float32, n=N, h=H, w=H, c=C)
    W = tl.input("W", tl.float32, r, s, c)
    return tl.define("Z", tl.sum(tl.pad(X[n, p + r - R // 2, q + s - R // 2, c], 0) * W[r, s, c], over=(r, s)), n, p, q, c)


def cpu(z: tl.Tensor, c: int = 64, q: int = 4) -> tl.Schedule:
    """A core as a block: 16 channels at a time, their window in registers, q pixels of a row at once."""
    return (
        tl.schedule(z)
        .tile(n=1, p=1, c=c).to(tl.block)
        .split(c=16)
        .load("X", tl.shared, steps=tl.move().vectorize(c=16))
        .load("W", tl.register, steps=tl.move().vectorize(c=16))
        .split(q=q)
        .accumulate(tl.register)
        .split(r=1)
        .split(s=1, unroll=True)
        .split(q=1, unroll=True)
        .vectorize(c=16)
    )  # fmt: skip


def simt(z: tl.Tensor, p: int = 4, q: int = 8, c: int = 8) -> tl.Schedule:
    """Threads: a patch of the image in shared memory; a thread has one channel of two pixels, and its window in registers."""
    return (
        tl.schedule(z)
        .tile(n=1, p=p, q=q, c=c).to(tl.block)
        .load("X", tl.shared)
        .tile(p=2, q=1, c=1).to(tl.thread)
        .load("W", tl.register)
        .accumulate(tl.register)
        .split(r=1, s=1)
    )  # fmt: skip


def schedules(N: int = 2, H: int = 29, C: int = 83, R: int = 3, small: bool = False) -> dict[str, tl.Schedule]:
    """The schedules by name; small: with tiles for tiny sizes under a simulator."""
    z = depthwise(N, H, C, R)
    if small:
        return {"cpu": cpu(z, 16, 2), "simt": simt(z, 2, 4, 4)}
    return {"cpu": cpu(z), "simt": simt(z)}


def expected(X: Any, W: Any) -> Any:
    """The same by NumPy, in float64: one shifted image for each element of the window."""
    R, H = W.shape[0], X.shape[1]
    around = R // 2
    padded = np.pad(X.astype(np.float64), ((0, 0), (around, around), (around, around), (0, 0)))
    return sum(padded[:, r : r + H, s : s + H] * W[r, s] for r in range(R) for s in range(R))


def main(N: int = 2, H: int = 29, C: int = 83, R: int = 3, small: bool = False) -> None:
    """Every schedule: checked by the library, compared with NumPy within the derived bound, timed."""
    generator = np.random.default_rng(0)
    x, w = generator.standard_normal((N, H, H, C), np.float32), generator.standard_normal((R, R, C), np.float32)
    for name, schedule in schedules(N, H, C, R, small).items():
        kernel = tl.compile(schedule)
        if not kernel.check() or np.any(np.abs(kernel(x, w) - expected(x, w)) > kernel.computation.bound(X=x, W=w)):
            raise SystemExit(f"{name} is wrong: {kernel.check()}")
        print(f"{name}: right, {kernel.benchmark(repeats=3) * 1e3:.2f} ms")


if __name__ == "__main__":
    main()
