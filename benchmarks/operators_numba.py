"""What Numba makes of the operators that move more than they compute: a user's loops, over rows or channels in parallel."""

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


def peer(operator: Operator, arrays: Arrays, out: Any, threads: int) -> Callable[[], Any] | None:
    """A call of the operator's loop; None for products and convolutions, whose plain loops nobody would use."""
    numba.set_num_threads(threads)
    if operator.kind in ("matmul", "convolution"):
        return None
    if operator.kind in ("row_sum", "relu"):
        loop = row_sum if operator.kind == "row_sum" else relu
        return lambda: (loop(arrays["X"], out), out)[1]
    r, stride, padding, _ = operator.facts
    planes = (lambda a: a.reshape(math.prod(a.shape[:2]), *a.shape[2:]))(arrays["X"])
    results = out.reshape(-1, *out.shape[2:])
    if operator.kind == "depthwise":
        return lambda: (depthwise(planes, arrays["W"], results, r, stride, padding), out)[1]
    return lambda: (pooled(planes, results, r, stride, padding), out)[1]
