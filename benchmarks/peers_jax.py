"""Operations as functions that JAX compiles, over arrays of JAX's own: it takes none for a result."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp

from benchmarks.peers import Array, Operation


def function(operation: Operation) -> Callable[..., Any]:
    """The operation, to be compiled."""
    o, pads = operation, [(operation.padding,) * 2] * 2
    match o.kind:
        case "matmul":
            return lambda a, b: jnp.matmul(a, b)
        case "row_sum":
            return lambda x: x.sum(1)
        case "convolution" | "depthwise":
            return lambda x, w: jax.lax.conv_general_dilated(
                x, w if w.ndim == 4 else w[:, None], (o.stride,) * 2, pads, feature_group_count=x.shape[1] if w.ndim == 3 else 1
            )
        case "average_pooling":
            window, strides = (1, 1, o.window, o.window), (1, 1, o.stride, o.stride)
            around = [(0, 0), (0, 0), *pads]
            return lambda x: jax.lax.reduce_window(x, 0.0, jax.lax.add, window, strides, around) * (1.0 / o.window**2)
        case "gelu" | "gelu_tanh":
            return lambda x: jax.nn.gelu(x, approximate=o.kind == "gelu_tanh")
        case "layer_norm":
            return lambda x, gamma, beta: normalized(x, o.epsilon) * gamma + beta
        case "transpose":
            return lambda x: x.T
        case "softmax":
            return lambda x: jax.nn.softmax(x, -1)
    others: dict[str, Callable[..., Any]] = {"exp": jnp.exp, "tanh": jnp.tanh, "relu": jax.nn.relu}
    return others[o.kind]


def normalized(x: Any, epsilon: float) -> Any:
    """Rows of mean 0 and variance 1."""
    deviation = x - x.mean(-1, keepdims=True)
    return deviation * jax.lax.rsqrt((deviation**2).mean(-1, keepdims=True) + epsilon)


def call(operation: Operation, inputs: Sequence[Array]) -> Callable[[], Any]:
    """A call of the compiled function, which waits for its result."""
    given = [jax.device_put(array) for array in inputs]
    compiled = jax.jit(function(operation))
    return lambda: compiled(*given).block_until_ready()
