"""Twelve graphs that memory bounds: their definitions and sizes.

Each has three sizes: within the L2 caches of a processor, within its last cache, and four times beyond. Six also have bfloat16 arrays,
computed in float32.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import tilelang as tl

EPSILON = 1e-5
Outputs = list[tl.Tensor]


@dataclasses.dataclass(frozen=True)
class Graph:
    """define: the outputs at a size, with arrays of a type; sizes: three; half: whether bfloat16 is measured, too."""

    define: Callable[..., Outputs]
    sizes: tuple[tuple[int, ...], ...]
    half: bool = False

    def computation(self, size: Sequence[int], dtype: Any = tl.float32) -> tl.Computation:
        """The graph at a size."""
        return tl.computation(self.define.__name__, tuple(self.define(*size, dtype=dtype)))


def wide(value: Any) -> tl.Expr:
    """A value in float32."""
    return tl.cast(value, tl.float32)


def layer_norm_gelu_residual(m: int, n: int, dtype: Any) -> Outputs:
    i, j = tl.axes(i=m, j=n)
    X, R = tl.input("X", dtype, i, j), tl.input("R", dtype, i, j)
    gamma, beta = tl.input("gamma", dtype, j), tl.input("beta", dtype, j)
    normal = tl.layer_norm(wide(X[i, j]), over=j, epsilon=EPSILON) * wide(gamma[j]) + wide(beta[j])
    return [tl.define("Y", tl.cast(wide(R[i, j]) + tl.gelu(normal), dtype), i, j)]


def rms_norm(m: int, n: int, dtype: Any) -> Outputs:
    i, j = tl.axes(i=m, j=n)
    X, gamma = tl.input("X", dtype, i, j), tl.input("gamma", dtype, j)
    normal = tl.rms_norm(wide(X[i, j]), over=j, epsilon=EPSILON)
    return [tl.define("Y", tl.cast(normal * wide(gamma[j]), dtype), i, j)]


def masked_softmax(m: int, n: int, dtype: Any) -> Outputs:
    """mask is added to the scores; keep is what dropout multiplies the weights by."""
    i, j = tl.axes(i=m, j=n)
    X, mask, keep = (tl.input(name, dtype, i, j) for name in ("X", "mask", "keep"))
    weights = tl.softmax(wide(X[i, j]) + wide(mask[i, j]), over=j)
    return [tl.define("Y", tl.cast(weights * wide(keep[i, j]), dtype), i, j)]


def batch_norm_relu_pool(images: int, channels: int, side: int, dtype: Any) -> Outputs:
    """With the statistics of training, which are inputs; the largest of 2 x 2 pixels."""
    n, c, p, q = tl.axes(n=images, c=channels, p=side // 2, q=side // 2)
    r, s, h, w = tl.axes(r=2, s=2, h=side, w=side)
    X = tl.input("X", dtype, n, c, h, w)
    mean, variance, gamma, beta = (tl.input(name, dtype, c) for name in ("mean", "variance", "gamma", "beta"))
    scale = tl.rsqrt(wide(variance[c]) + EPSILON) * wide(gamma[c])
    active = tl.define("active", tl.relu((wide(X[n, c, h, w]) - wide(mean[c])) * scale + wide(beta[c])), n, c, h, w)
    return [tl.define("Y", tl.cast(tl.max(active[n, c, 2 * p + r, 2 * q + s], over=(r, s)), dtype), n, c, p, q)]


def rope(tokens: int, heads: int, width: int, dtype: Any) -> Outputs:
    """The halves of each head are turned by the angle of their position and column."""
    t, h, a, e = tl.axes(t=tokens, h=heads, a=2, e=width // 2)
    cos, sin = tl.input("cos", dtype, t, e), tl.input("sin", dtype, t, e)

    def turned(name: str) -> tl.Tensor:
        X = tl.input(name, dtype, t, h, a, e)
        sign = tl.where(a == 0, -1.0, 1.0)
        value = wide(X[t, h, a, e]) * wide(cos[t, e]) + sign * wide(X[t, h, 1 - a, e]) * wide(sin[t, e])
        return tl.define(f"{name}_turned", tl.cast(value, dtype), t, h, a, e)

    return [turned("Q"), turned("K")]


def group_norm_silu(images: int, groups: int, channels: int, pixels: int, dtype: Any) -> Outputs:
    n, g, c, p = tl.axes(n=images, g=groups, c=channels, p=pixels)
    X = tl.input("X", dtype, n, g, c, p)
    gamma, beta = tl.input("gamma", dtype, g, c), tl.input("beta", dtype, g, c)
    normal = tl.layer_norm(wide(X[n, g, c, p]), over=(c, p), epsilon=EPSILON) * wide(gamma[g, c]) + wide(beta[g, c])
    return [tl.define("Y", tl.cast(tl.silu(normal), dtype), n, g, c, p)]


def log_softmax_loss(m: int, n: int, dtype: Any) -> Outputs:
    """The mean over rows of minus the logarithm of the weight that a row's label has."""
    i, j = tl.axes(i=m, j=n)
    X, labels = tl.input("X", dtype, i, j), tl.input("labels", tl.int64, i, range=(0, n))
    peak = tl.define("peak", tl.max(X[i, j], over=j), i)
    total = tl.define("total", tl.sum(tl.exp(X[i, j] - peak[i]), over=j), i)
    losses = tl.define("losses", tl.log(total[i]) + peak[i] - X[i, labels[i]], i)
    return [tl.define("loss", tl.mean(losses[i], over=i))]


def adam(n: int, dtype: Any) -> Outputs:
    """A step of Adam at the hundredth iteration."""
    i = tl.axes(i=n)
    W, G, M, V = (tl.input(name, dtype, i) for name in "WGMV")
    first = tl.define("M_next", M[i] * 0.9 + G[i] * 0.1, i)
    second = tl.define("V_next", V[i] * 0.999 + G[i] * G[i] * 0.001, i)
    step = (first[i] / (1 - 0.9**100)) / (tl.sqrt(second[i] / (1 - 0.999**100)) + 1e-8)
    return [tl.define("W_next", W[i] - 1e-3 * step, i), first, second]


def layer_norm_backward(m: int, n: int, dtype: Any) -> Outputs:
    """The gradients of a layer normalization's input, scale and shift; mean and rstd were kept of each row."""
    i, j = tl.axes(i=m, j=n)
    X, dY, gamma = tl.input("X", dtype, i, j), tl.input("dY", dtype, i, j), tl.input("gamma", dtype, j)
    mean, rstd = tl.input("mean", dtype, i), tl.input("rstd", dtype, i)
    normal = (X[i, j] - mean[i]) * rstd[i]
    scaled = dY[i, j] * gamma[j]
    first = tl.define("first", tl.mean(scaled, over=j), i)
    second = tl.define("second", tl.mean(scaled * normal, over=j), i)
    dX = tl.define("dX", rstd[i] * (scaled - first[i] - normal * second[i]), i, j)
    return [dX, tl.define("dgamma", tl.sum(dY[i, j] * normal, over=i), j), tl.define("dbeta", tl.sum(dY[i, j], over=i), j)]


def row_and_column_sums(m: int, n: int, dtype: Any) -> Outputs:
    i, j = tl.axes(i=m, j=n)
    X = tl.input("X", dtype, i, j)
    return [tl.define("rows", tl.sum(X[i, j], over=j), i), tl.define("columns", tl.sum(X[i, j], over=i), j)]


def transposed_gather_bias(tokens: int, rows: int, width: int, dtype: Any) -> Outputs:
    """Rows of a table by number, as columns."""
    t, v, d = tl.axes(t=tokens, v=rows, d=width)
    table, bias = tl.input("table", dtype, v, d), tl.input("bias", dtype, d)
    numbers = tl.input("numbers", tl.int64, t, range=(0, rows))
    return [tl.define("Y", table[numbers[t], d] + bias[d], d, t)]


def four_step_stencil(m: int, n: int, dtype: Any) -> Outputs:
    """Four steps of heat on a plate whose border is cold."""
    i, j = tl.axes(i=m, j=n)
    u = tl.input("U", dtype, i, j)
    for step in range(4):
        around = tl.pad(u[i - 1, j], 0.0) + tl.pad(u[i + 1, j], 0.0) + tl.pad(u[i, j - 1], 0.0) + tl.pad(u[i, j + 1], 0.0)
        u = tl.define(f"U{step + 1}", u[i, j] * 0.6 + around * 0.1, i, j)
    return [u]


ROWS = ((128, 384), (1024, 1024), (8192, 4096))  # 0.2, 4 and 128 MiB of float32
GRAPHS = {
    "layer_norm_gelu_residual": Graph(layer_norm_gelu_residual, ROWS, True),
    "rms_norm": Graph(rms_norm, ROWS, True),
    "masked_softmax": Graph(masked_softmax, ((96, 384), (1024, 768), (8192, 2048)), True),
    "batch_norm_relu_pool": Graph(batch_norm_relu_pool, ((1, 16, 64), (8, 32, 64), (32, 64, 128)), True),
    "rope": Graph(rope, ((64, 4, 64), (1024, 8, 64), (8192, 16, 128)), True),
    "group_norm_silu": Graph(group_norm_silu, ((1, 8, 4, 1024), (4, 32, 8, 1024), (16, 32, 16, 4096)), True),
    "log_softmax_loss": Graph(log_softmax_loss, ((128, 512), (1024, 2048), (4096, 8192))),
    "adam": Graph(adam, ((1 << 14,), (1 << 18,), (1 << 24,))),
    "layer_norm_backward": Graph(layer_norm_backward, ((96, 384), (1024, 768), (8192, 2048))),
    "row_and_column_sums": Graph(row_and_column_sums, ((256, 384), (2048, 2048), (8192, 4096))),
    "transposed_gather_bias": Graph(transposed_gather_bias, ((128, 256, 256), (1024, 4096, 768), (16384, 16384, 1024))),
    "four_step_stencil": Graph(four_step_stencil, ((256, 256), (1024, 1024), (4096, 4096))),
}  # fmt: skip
TINY = {
    "layer_norm_gelu_residual": (3, 17), "rms_norm": (5, 33), "masked_softmax": (3, 19), "batch_norm_relu_pool": (2, 3, 10),
    "rope": (3, 2, 6), "group_norm_silu": (2, 3, 2, 7), "log_softmax_loss": (5, 9), "adam": (37,), "layer_norm_backward": (5, 17),
    "row_and_column_sums": (7, 11), "transposed_gather_bias": (5, 9, 7), "four_step_stencil": (9, 14),
}  # fmt: skip
