"""What Numba makes of the cases of `benchmarks/processor.py`: a user's loops, rows in parallel, the innermost along memory."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numba
import numpy as np

from benchmarks.operators_numba import matmul
from benchmarks.peers import Array, Operation

parallel: Callable[[Callable[..., None]], Callable[..., None]] = numba.njit(parallel=True, fastmath=True, cache=True)
HALF, ONE = np.float32(0.5), np.float32(1)
ROOT_HALF, ROOT_2_BY_PI, CUBIC = np.float32(math.sqrt(0.5)), np.float32(math.sqrt(2 / math.pi)), np.float32(0.044715)
TILE = 32


@parallel
def exp(x: Any, y: Any) -> None:
    for i in numba.prange(x.shape[0]):
        for j in range(x.shape[1]):
            y[i, j] = math.exp(x[i, j])


@parallel
def tanh(x: Any, y: Any) -> None:
    for i in numba.prange(x.shape[0]):
        for j in range(x.shape[1]):
            y[i, j] = math.tanh(x[i, j])


@parallel
def gelu(x: Any, y: Any) -> None:
    for i in numba.prange(x.shape[0]):
        for j in range(x.shape[1]):
            y[i, j] = HALF * x[i, j] * (ONE + math.erf(x[i, j] * ROOT_HALF))


@parallel
def gelu_tanh(x: Any, y: Any) -> None:
    for i in numba.prange(x.shape[0]):
        for j in range(x.shape[1]):
            v = x[i, j]
            y[i, j] = HALF * v * (ONE + math.tanh(ROOT_2_BY_PI * (v + CUBIC * v * v * v)))


@parallel
def softmax(x: Any, y: Any) -> None:
    for i in numba.prange(x.shape[0]):
        peak = x[i, 0]
        for j in range(x.shape[1]):
            peak = max(peak, x[i, j])
        total = np.float32(0)
        for j in range(x.shape[1]):
            y[i, j] = math.exp(x[i, j] - peak)
            total += y[i, j]
        scale = ONE / total
        for j in range(x.shape[1]):
            y[i, j] *= scale


@parallel
def layer_norm(x: Any, gamma: Any, beta: Any, y: Any, epsilon: float) -> None:
    for i in numba.prange(x.shape[0]):
        total = np.float32(0)
        for j in range(x.shape[1]):
            total += x[i, j]
        mean = total / np.float32(x.shape[1])
        squares = np.float32(0)
        for j in range(x.shape[1]):
            squares += (x[i, j] - mean) * (x[i, j] - mean)
        scale = ONE / np.float32(math.sqrt(squares / np.float32(x.shape[1]) + np.float32(epsilon)))
        for j in range(x.shape[1]):
            y[i, j] = (x[i, j] - mean) * scale * gamma[j] + beta[j]


@parallel
def transpose(x: Any, y: Any) -> None:
    for block in numba.prange((y.shape[0] + TILE - 1) // TILE):
        for first in range(0, y.shape[1], TILE):
            for i in range(block * TILE, min(y.shape[0], block * TILE + TILE)):
                for j in range(first, min(y.shape[1], first + TILE)):
                    y[i, j] = x[j, i]


LOOPS: dict[str, Callable[..., None]] = {
    "matmul": matmul, "exp": exp, "tanh": tanh, "gelu": gelu, "gelu_tanh": gelu_tanh, "softmax": softmax, "transpose": transpose,
}  # fmt: skip


def call(operation: Operation, inputs: list[Array], out: Array, threads: int) -> Callable[[], Array] | None:
    """A call of an operation's loops; None where there are none."""
    numba.set_num_threads(threads)
    if operation.kind == "layer_norm":
        return lambda: (layer_norm(*inputs, out, operation.epsilon), out)[1]
    loops = LOOPS.get(operation.kind)
    return None if loops is None else lambda: (loops(*inputs, out), out)[1]
