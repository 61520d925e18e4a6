"""Operations as models of OpenVINO's, compiled for the processor in the type of the arrays, which are its tensors where they lie."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import openvino
from openvino import opset13 as op

from benchmarks.peers import Array, Operation


def result(operation: Operation, given: Sequence[Any]) -> Any:
    """The operation over parameters."""
    o = operation
    strides, pads = [o.stride] * 2, [o.padding] * 2
    match o.kind:
        case "matmul":
            return op.matmul(*given, False, False)
        case "row_sum":
            return op.reduce_sum(given[0], np.array([1]), False)
        case "convolution":
            return op.convolution(*given, strides, pads, pads, [1, 1])
        case "depthwise":
            return op.group_convolution(*given, strides, pads, pads, [1, 1])
        case "average_pooling":
            return op.avg_pool(given[0], strides, pads, pads, [o.window] * 2, False)
        case "gelu" | "gelu_tanh":
            return op.gelu(given[0], "tanh" if o.kind == "gelu_tanh" else "erf")
        case "softmax":
            return op.softmax(given[0], 1)
        case "layer_norm":
            normal = op.mvn(given[0], np.array([1]), True, o.epsilon, "inside_sqrt")
            return op.add(op.multiply(normal, given[1]), given[2])
        case "transpose":
            return op.transpose(given[0], np.array([1, 0]))
    return {"exp": op.exp, "tanh": op.tanh, "relu": op.relu}[o.kind](given[0])


def tensor(array: Array) -> Any:
    """A tensor over an array's memory."""
    if array.dtype.name == "bfloat16":
        return openvino.Tensor(array.view(np.uint16), openvino.Shape(array.shape), openvino.Type.bf16)
    return openvino.Tensor(array, shared_memory=True)


def call(operation: Operation, inputs: Sequence[Array], out: Array, threads: int) -> Callable[[], Array]:
    """A call of the compiled model."""
    given = list(inputs)
    if operation.kind == "depthwise":
        given[1] = given[1][:, None, None]  # views: of a group's filters, and of its channels
    half = out.dtype.name == "bfloat16"
    types = [openvino.Type.bf16 if a.dtype.name == "bfloat16" else openvino.Type.f32 for a in given]
    parameters = [op.parameter(list(a.shape), t) for a, t in zip(given, types, strict=True)]
    model = openvino.Model([result(operation, parameters)], parameters)
    options = {
        "INFERENCE_NUM_THREADS": str(threads), "PERFORMANCE_HINT": "LATENCY", "INFERENCE_PRECISION_HINT": "bf16" if half else "f32",
    }  # fmt: skip
    request = openvino.Core().compile_model(model, "CPU", options).create_infer_request()
    for number, array in enumerate(given):
        request.set_input_tensor(number, tensor(array))
    request.set_output_tensor(0, tensor(out))

    def run() -> Array:
        request.infer()
        return out

    return run
