"""Convolution without a product: rows of the image are staged by region, the window walks over them.

`load X in shared` brings the box that the window touches, zeros outside included, so the inner loops have no condition.
Run: `python examples/04_direct_convolution.py`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import tilelang as tl

# Rows and columns of sums that fit a core's vector registers, by the lanes of one: 24 of 32 registers of 16 or 4, 12 of 16 of 8.
REGISTER_TILES = {16: (8, 48), 8: (6, 16), 4: (8, 12)}


def convolution(N: int, H: int, C: int, F: int, R: int = 3) -> tl.Tensor:
    """Z[n, p, q, f] = sum over r, s, c of X[n, p + r - R/2, q + s - R/2, c] W[r, s, c, f]; 0 outside X."""
    n, p, q, f, r, s, c = tl.axes(n=N, p=H, q=H, f=F, r=R, s=R, c=C)
    X = tl.input("X", tl.float32, n=N, h=H, w=H, c=C)
    W = tl.input("W", tl.float32, r, s, c, f)
    pixel = tl.pad(X[n, p + r - R // 2, q + s - R // 2, c], 0)
    return tl.define("Z", tl.sum(pixel * W[r, s, c, f], over=(r, s, c)), n, p, q, f)


def cpu(z: tl.Tensor, q: int = 8, f: int = 48, lanes: int = 16) -> tl.Schedule:
    """A core as a block: one row of pixels; q x f sums in vector registers, the window inside."""
    return (
        tl.schedule(z)
        .tile(n=1, p=1).to(tl.block)
        .load("X", tl.shared)
        .split(f=f, q=q)
        .accumulate(tl.register)
        .split(r=1, s=1, c=1)
        .load("W", tl.register, steps=tl.move().vectorize(f=lanes))
        .split(q=1, unroll=True)
        .vectorize(f=lanes)
    )  # fmt: skip


def simt(z: tl.Tensor, p: int = 4, q: int = 8, f: int = 16, c: int = 4) -> tl.Schedule:
    """Threads: a patch of the image and some channels of the filters in shared memory, 1 x 2 pixels and 2 filters a thread."""
    return (
        tl.schedule(z)
        .tile(n=1, p=p, q=q, f=f).to(tl.block)
        .accumulate(tl.register)
        .split(c=c)
        .load("X", tl.shared)
        .load("W", tl.shared)
        .tile(p=1, q=2, f=2).to(tl.thread)
        .split(r=1, s=1, c=1)
    )  # fmt: skip


def schedules(
    N: int = 2, H: int = 15, C: int = 19, F: int = 50, R: int = 3, small: bool = False, lanes: int = 16
) -> dict[str, tl.Schedule]:
    """The schedules by name; small: with tiles for tiny sizes under a simulator; lanes: of a core's vectors."""
    z = convolution(N, H, C, F, R)
    if small:
        return {"cpu": cpu(z, 2, 16), "simt": simt(z, 2, 4, 4, 2)}
    return {"cpu": cpu(z, *REGISTER_TILES[lanes], lanes), "simt": simt(z)}


def expected(X: Any, W: Any) -> Any:
    """The same by NumPy, in float64: one product for each element of the window."""
    R, H = W.shape[0], X.shape[1]
    around = R // 2
    padded = np.pad(X.astype(np.float64), ((0, 0), (around, around), (around, around), (0, 0)))
    return sum(padded[:, r : r + H, s : s + H] @ W[r, s].astype(np.float64) for r in range(R) for s in range(R))


def main(N: int = 2, H: int = 15, C: int = 19, F: int = 50, R: int = 3, small: bool = False) -> None:
    """Every schedule: checked by the library, compared with NumPy within the derived bound, timed."""
    generator = np.random.default_rng(0)
    x, w = generator.standard_normal((N, H, H, C), np.float32), generator.standard_normal((R, R, C, F), np.float32)
    lanes = max(tl.target().profile.vector_bytes) // 4
    for name, schedule in schedules(N, H, C, F, R, small, lanes=lanes).items():
        kernel = tl.compile(schedule)
        if not kernel.check() or np.any(np.abs(kernel(x, w) - expected(x, w)) > kernel.computation.bound(X=x, W=w)):
            raise SystemExit(f"{name} is wrong: {kernel.check()}")
        print(f"{name}: right, {kernel.benchmark(repeats=3) * 1e3:.2f} ms")


if __name__ == "__main__":
    main()
