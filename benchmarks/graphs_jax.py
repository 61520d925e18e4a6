"""The graphs of graphs_memory_bound.py as functions that JAX compiles, over the same arrays, in the order of a graph's inputs."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from benchmarks.graphs_memory_bound import EPSILON


def wide(x: Any) -> Any:
    """An array in float32."""
    return x.astype(jnp.float32)


def normalized(x: Any, axes: tuple[int, ...]) -> Any:
    """Mean 0 and variance 1 along axes."""
    deviation = x - x.mean(axes, keepdims=True)
    return deviation * jax.lax.rsqrt((deviation**2).mean(axes, keepdims=True) + EPSILON)


def layer_norm_gelu_residual(X: Any, R: Any, gamma: Any, beta: Any) -> Any:
    normal = normalized(wide(X), (-1,)) * wide(gamma) + wide(beta)
    return (wide(R) + jax.nn.gelu(normal, approximate=False)).astype(X.dtype)


def rms_norm(X: Any, gamma: Any) -> Any:
    x = wide(X)
    return (x * jax.lax.rsqrt((x * x).mean(-1, keepdims=True) + EPSILON) * wide(gamma)).astype(X.dtype)


def masked_softmax(X: Any, mask: Any, keep: Any) -> Any:
    return (jax.nn.softmax(wide(X) + wide(mask), -1) * wide(keep)).astype(X.dtype)


def batch_norm_relu_pool(X: Any, mean: Any, variance: Any, gamma: Any, beta: Any) -> Any:
    scale = jax.lax.rsqrt(wide(variance) + EPSILON) * wide(gamma)
    each = (slice(None), None, None)
    active = jax.nn.relu((wide(X) - wide(mean)[each]) * scale[each] + wide(beta)[each])
    n, c, h, w = X.shape
    return active.reshape(n, c, h // 2, 2, w // 2, 2).max((3, 5)).astype(X.dtype)


def rope(cos: Any, sin: Any, Q: Any, K: Any) -> Any:
    def turned(x: Any) -> Any:
        a, b, c, s = wide(x[:, :, 0]), wide(x[:, :, 1]), wide(cos)[:, None], wide(sin)[:, None]
        return jnp.stack((a * c - b * s, b * c + a * s), 2).astype(x.dtype)

    return turned(Q), turned(K)


def group_norm_silu(X: Any, gamma: Any, beta: Any) -> Any:
    normal = normalized(wide(X), (2, 3)) * wide(gamma)[..., None] + wide(beta)[..., None]
    return jax.nn.silu(normal).astype(X.dtype)


def log_softmax_loss(X: Any, labels: Any) -> Any:
    return -jnp.take_along_axis(jax.nn.log_softmax(X, -1), labels[:, None], -1).mean()


def adam(W: Any, G: Any, M: Any, V: Any) -> Any:
    first, second = M * 0.9 + G * 0.1, V * 0.999 + G * G * 0.001
    step = (first / (1 - 0.9**100)) / (jnp.sqrt(second / (1 - 0.999**100)) + 1e-8)
    return W - 1e-3 * step, first, second


def layer_norm_backward(X: Any, dY: Any, gamma: Any, mean: Any, rstd: Any) -> Any:
    normal, scaled = (X - mean[:, None]) * rstd[:, None], dY * gamma
    first, second = scaled.mean(-1, keepdims=True), (scaled * normal).mean(-1, keepdims=True)
    return rstd[:, None] * (scaled - first - normal * second), (dY * normal).sum(0), dY.sum(0)


def row_and_column_sums(X: Any) -> Any:
    return X.sum(1), X.sum(0)


def transposed_gather_bias(table: Any, bias: Any, numbers: Any) -> Any:
    return (table[numbers] + bias).T


def four_step_stencil(U: Any) -> Any:
    for _ in range(4):
        around = jnp.pad(U, 1)
        U = U * 0.6 + (around[:-2, 1:-1] + around[2:, 1:-1] + around[1:-1, :-2] + around[1:-1, 2:]) * 0.1
    return U
