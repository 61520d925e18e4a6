"""A computation without a schedule, and one of which half is given: the rest is constructed for the device here.

Run: `python examples/17_no_schedule.py`.
"""

from __future__ import annotations

import numpy as np

import tilelang as tl


def matmul(M: int, N: int, K: int) -> tl.Tensor:
    """C[m, n] = sum over k of A[m, k] * B[k, n]."""
    m, n, k = tl.axes(m=M, n=N, k=K)
    A, B = tl.input("A", tl.float32, m, k), tl.input("B", tl.float32, k, n)
    return tl.define("C", tl.sum(A[m, k] * B[k, n], over=k), m, n)


@tl.kernel
def normalised(x: tl.Tensor) -> tl.Tensor:
    """Rows over their sums; a schedule for each shape that it is called with."""
    i, j = tl.axes(i=x.shape[0], j=x.shape[1])
    total = tl.define("total", tl.sum(x[i, j], over=j), i)
    return tl.define("y", x[i, j] / total[i], i, j)


def main() -> None:
    """Compiles a product twice, prints what was chosen, and normalises rows."""
    C = matmul(300, 400, 500)
    half = tl.schedule(C).tile(m=tl.hole, n=96).to(tl.block).rest()
    for kernel in (tl.compile(C), tl.compile(half)):
        assert kernel.check().ok
        print(kernel.schedule, kernel.estimate, sep="\n", end="\n\n")
    x = np.random.default_rng(0).random((100, 200), np.float32)
    print("rows sum to", normalised(x).sum(axis=1).mean())


if __name__ == "__main__":
    main()
