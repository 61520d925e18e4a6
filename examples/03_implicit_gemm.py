"""Convolution as a matrix product that nobody writes out: rows of the product are output pixels, staged by access.

`fuse` makes one axis of image, row and column; a layout over (npq, c) stages one element per pixel and channel, padding and stride
included, so the inner loops are those of a product. Run: `python examples/03_implicit_gemm.py`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import tilelang as tl

# Rows and columns of sums that fit a core's vector registers, by the lanes of one: 24 of 32 registers of 16 or 4, 12 of 16 of 8.
REGISTER_TILES = {16: (8, 48), 8: (6, 16), 4: (8, 12)}


def convolution(N: int, H: int, C: int, F: int, R: int = 3, stride: int = 1, padding: int = 1) -> tl.Tensor:
    """Z[n, p, q, f] = sum over r, s, c of X[n, stride p + r - padding, stride q + s - padding, c] W[r, s, c, f]; 0 outside X."""
    P = (H + 2 * padding - R) // stride + 1
    n, p, q, f, r, s, c = tl.axes(n=N, p=P, q=P, f=F, r=R, s=R, c=C)
    X = tl.input("X", tl.float32, n=N, h=H, w=H, c=C)
    W = tl.input("W", tl.float32, r, s, c, f)
    pixel = tl.pad(X[n, stride * p + r - padding, stride * q + s - padding, c], 0)
    return tl.define("Z", tl.sum(pixel * W[r, s, c, f], over=(r, s, c)), n, p, q, f)


def cpu(z: tl.Tensor, npq: int = 96, f: int = 96, c: int = 64, rows: int = 8, columns: int = 48, lanes: int = 16) -> tl.Schedule:
    """A core as a block: the packed panels and register tile of a matrix product."""
    return (
        tl.schedule(z)
        .fuse(npq=("n", "p", "q"))
        .tile(npq=npq, f=f).to(tl.block)
        .split(r=1, s=1, c=c)
        .load("W", tl.shared, layout=tl.layout(lambda c, f: (f // columns, c, f % columns)), steps=tl.move().vectorize(f=lanes))
        .load("X", tl.shared, layout=tl.layout(lambda npq, c: (npq // rows, c, npq % rows)))
        .split(f=columns, npq=rows)
        .accumulate(tl.register)
        .split(c=1)
        .load("W", tl.register, steps=tl.move().vectorize(f=lanes))
        .split(npq=1, unroll=True)
        .vectorize(f=lanes)
    )  # fmt: skip


def simt(z: tl.Tensor, npq: int = 64, f: int = 32, c: int = 8, piece: int = 4) -> tl.Schedule:
    """Threads: pixels and filters of a chunk of channels in shared memory, piece x piece sums a thread."""
    return (
        tl.schedule(z)
        .fuse(npq=("n", "p", "q"))
        .tile(npq=npq, f=f).to(tl.block)
        .accumulate(tl.register)
        .split(r=1, s=1, c=c)
        .load("X", tl.shared, layout=tl.layout("npq", "c").pad(1))
        .load("W", tl.shared, layout=tl.layout("c", "f"))
        .tile(npq=piece, f=piece).to(tl.thread)
        .split(c=1)
    )  # fmt: skip


def schedules(
    N: int = 2,
    H: int = 27,
    C: int = 35,
    F: int = 50,
    R: int = 3,
    stride: int = 2,
    padding: int = 1,
    small: bool = False,
    lanes: int = 16,
) -> dict[str, tl.Schedule]:
    """The schedules by name; small: with tiles for tiny sizes under a simulator; lanes: of a core's vectors."""
    z = convolution(N, H, C, F, R, stride, padding)
    if small:
        return {"cpu": cpu(z, 8, 32, 4, 4, 16), "simt": simt(z, 8, 8, 2, 2)}
    return {"cpu": cpu(z, 96, 96, 64, *REGISTER_TILES[lanes], lanes), "simt": simt(z)}


def expected(X: Any, W: Any, stride: int = 2, padding: int = 1) -> Any:
    """The same by NumPy, in float64: windows of the padded images, then one contraction."""
    X, R = X.astype(np.float64), W.shape[0]
    padded = np.pad(X, ((0, 0), (padding, padding), (padding, padding), (0, 0)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (R, R), axis=(1, 2))[:, ::stride, ::stride]
    return np.einsum("npqcrs,rscf->npqf", windows, W.astype(np.float64))


def main(
    N: int = 2,
    H: int = 27,
    C: int = 35,
    F: int = 50,
    R: int = 3,
    stride: int = 2,
    padding: int = 1,
    small: bool = False,
    lanes: int = 16,
) -> None:
    """Every schedule: checked by the library, compared with NumPy within the derived bound, timed."""
    generator = np.random.default_rng(0)
    x, w = generator.standard_normal((N, H, H, C), np.float32), generator.standard_normal((R, R, C, F), np.float32)
    lanes = max(tl.target().profile.vector_bytes) // 4
    for name, schedule in schedules(N, H, C, F, R, stride, padding, small, lanes=lanes).items():
        kernel = tl.compile(schedule)
        error = np.abs(kernel(x, w) - expected(x, w, stride, padding))
        if not kernel.check() or np.any(error > kernel.computation.bound(X=x, W=w)):
            raise SystemExit(f"{name} is wrong: {kernel.check()}")
        print(f"{name}: right, {kernel.benchmark(repeats=3) * 1e3:.2f} ms")


if __name__ == "__main__":
    main()
