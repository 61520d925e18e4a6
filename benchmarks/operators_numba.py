"""What Numba makes of the operators: a user's loops, over rows or channels in parallel, the innermost along what follows in memory."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numba
import numpy as np

from benchmarks.operators_cases import Operator
from benchmarks.operators_peers import Arrays

parallel: Callable[[Callable[..., None]], Callable[..., None]] = numba.njit(parallel=True, fastmath=True, cache=True)


@parallel
def matmul(a: Any, b: Any, c: Any) -> None:
    for i in numba.prange(a.shape[0]):
        c[i] = 0
        for k in range(a.shape[1]):
            for j in range(b.shape[1]):
                c[i, j] += a[i, k] * b[k, j]


@parallel
def convolution(x: Any, w: Any, z: Any, stride: int, padding: int) -> None:
    filters, side, h = z.shape[1], z.shape[2], x.shape[2]
    for nf in numba.prange(z.shape[0] * filters):
        n, f = nf // filters, nf % filters
        z[n, f] = 0
        for c in range(x.shape[1]):
            for i in range(w.shape[2]):
                for j in range(w.shape[3]):
                    for p in range(side):
                        y = stride * p + i - padding
                        if 0 <= y < h:
                            first = max(0, (padding - j + stride - 1) // stride)
                            last = min(side, (h - 1 + padding - j) // stride + 1)
                            for q in range(first, last):
                                z[n, f, p, q] += w[f, c, i, j] * x[n, c, y, stride * q + j - padding]


@parallel
def row_sum(x: Any, y: Any) -> None:
    for i in numba.prange(x.shape[0]):
        total = np.float32(0)
        for j in range(x.shape[1]):
            total += x[i, j]
        y[i] = total


@parallel
def relu(x: Any, y: Any) -> None:
    for i in numba.prange(x.shape[0]):
        y[i] = max(x[i], np.float32(0))


@parallel
def pooled(x: Any, z: Any, r: int, stride: int, padding: int) -> None:
    side, h = z.shape[1], x.shape[1]
    for c in numba.prange(x.shape[0]):
        for p in range(side):
            for q in range(side):
                total = np.float32(0)
                for i in range(max(0, padding - stride * p), min(r, h + padding - stride * p)):
                    for j in range(max(0, padding - stride * q), min(r, h + padding - stride * q)):
                        total += x[c, stride * p + i - padding, stride * q + j - padding]
                z[c, p, q] = total * np.float32(1.0 / (r * r))


@parallel
def depthwise(x: Any, w: Any, z: Any, r: int, stride: int, padding: int) -> None:
    side, h = z.shape[1], x.shape[1]
    for c in numba.prange(x.shape[0]):
        filters = w[c % w.shape[0]]
        for p in range(side):
            for q in range(side):
                total = np.float32(0)
                for i in range(max(0, padding - stride * p), min(r, h + padding - stride * p)):
                    for j in range(max(0, padding - stride * q), min(r, h + padding - stride * q)):
                        total += x[c, stride * p + i - padding, stride * q + j - padding] * filters[i, j]
                z[c, p, q] = total


def peer(operator: Operator, arrays: Arrays, out: Any, threads: int) -> Callable[[], Any]:
    """A call of the operator's loop."""
    numba.set_num_threads(threads)
    match operator.kind:
        case "matmul":
            return lambda: (matmul(arrays["A"], arrays["B"], out), out)[1]
        case "row_sum":
            return lambda: (row_sum(arrays["X"], out), out)[1]
        case "relu":
            return lambda: (relu(arrays["X"], out), out)[1]
    r, stride, padding, _ = operator.facts
    if operator.kind == "convolution":
        return lambda: (convolution(arrays["X"], arrays["W"], out, stride, padding), out)[1]
    planes = (lambda a: a.reshape(math.prod(a.shape[:2]), *a.shape[2:]))(arrays["X"])
    results = out.reshape(-1, *out.shape[2:])
    if operator.kind == "depthwise":
        return lambda: (depthwise(planes, arrays["W"], results, r, stride, padding), out)[1]
    return lambda: (pooled(planes, results, r, stride, padding), out)[1]
