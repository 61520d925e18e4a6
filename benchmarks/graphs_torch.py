"""The graphs of graphs_memory_bound.py as functions of PyTorch over the same arrays, in the order of a graph's inputs.

torch.compile takes them as they are; onnxruntime and OpenVINO get the model that PyTorch exports of them.
"""

from __future__ import annotations

from typing import Any

import torch
from torch.nn import functional

from benchmarks.graphs_memory_bound import EPSILON


def layer_norm_gelu_residual(X: Any, R: Any, gamma: Any, beta: Any) -> Any:
    return R + functional.gelu(functional.layer_norm(X, X.shape[-1:], gamma, beta, EPSILON))


def rms_norm(X: Any, gamma: Any) -> Any:
    x = X.float()
    return (x * torch.rsqrt((x * x).mean(-1, keepdim=True) + EPSILON) * gamma.float()).to(X.dtype)


def masked_softmax(X: Any, mask: Any, keep: Any) -> Any:
    return torch.softmax(X + mask, -1) * keep


def batch_norm_relu_pool(X: Any, mean: Any, variance: Any, gamma: Any, beta: Any) -> Any:
    active = functional.relu(functional.batch_norm(X, mean, variance, gamma, beta, False, 0.0, EPSILON))
    return functional.max_pool2d(active, 2)


def rope(cos: Any, sin: Any, Q: Any, K: Any) -> Any:
    """Halves along dimension 2."""

    def turned(x: Any) -> Any:
        a, b, c, s = x[:, :, 0], x[:, :, 1], cos[:, None], sin[:, None]
        return torch.stack((a * c - b * s, b * c + a * s), 2)

    return turned(Q), turned(K)


def group_norm_silu(X: Any, gamma: Any, beta: Any) -> Any:
    n, g, c, p = X.shape
    normal = functional.group_norm(X.reshape(n, g * c, p), g, gamma.reshape(-1), beta.reshape(-1), EPSILON)
    return functional.silu(normal).reshape(n, g, c, p)


def log_softmax_loss(X: Any, labels: Any) -> Any:
    return functional.cross_entropy(X, labels)


def adam(W: Any, G: Any, M: Any, V: Any) -> Any:
    first, second = M * 0.9 + G * 0.1, V * 0.999 + G * G * 0.001
    step = (first / (1 - 0.9**100)) / (torch.sqrt(second / (1 - 0.999**100)) + 1e-8)
    return W - 1e-3 * step, first, second


def layer_norm_backward(X: Any, dY: Any, gamma: Any, mean: Any, rstd: Any) -> Any:
    normal, scaled = (X - mean[:, None]) * rstd[:, None], dY * gamma
    first, second = scaled.mean(-1, keepdim=True), (scaled * normal).mean(-1, keepdim=True)
    return rstd[:, None] * (scaled - first - normal * second), (dY * normal).sum(0), dY.sum(0)


def row_and_column_sums(X: Any) -> Any:
    return X.sum(1), X.sum(0)


def transposed_gather_bias(table: Any, bias: Any, numbers: Any) -> Any:
    return (table[numbers] + bias).T.contiguous()


def four_step_stencil(U: Any) -> Any:
    for _ in range(4):
        around = functional.pad(U, (1, 1, 1, 1))
        U = U * 0.6 + (around[:-2, 1:-1] + around[2:, 1:-1] + around[1:-1, :-2] + around[1:-1, 2:]) * 0.1
    return U
