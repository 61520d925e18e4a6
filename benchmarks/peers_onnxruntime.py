"""Operations as models of one node that onnxruntime runs over NumPy's arrays, bound once, results written in place."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import onnx
import onnxruntime
from onnx import helper

from benchmarks.peers import Array, Operation

OPSET, IR_VERSION = 20, 10  # in which Gelu has both forms


def node(operation: Operation, names: Sequence[str], integers: bool = False) -> tuple[Any, list[Any]]:
    """The node of an operation from inputs to `result`, and the constants that it needs besides. integers: bytes, summed in int32."""
    o, constants = operation, list[Any]()
    attributes: dict[str, Any]
    pads, window = [o.padding] * 4, {"kernel_shape": [o.window] * 2, "strides": [o.stride] * 2}
    match o.kind:
        case "matmul":
            kind, attributes = "MatMulInteger" if integers else "MatMul", {}
        case "row_sum":
            constants = [helper.make_tensor("axes", onnx.TensorProto.INT64, [1], [1])]
            kind, attributes = "ReduceSum", {"keepdims": 0}
        case "convolution" | "depthwise":
            kind, attributes = "Conv", {**window, "pads": pads}
        case "average_pooling":
            kind, attributes = "AveragePool", {**window, "pads": pads, "count_include_pad": 1}
        case "gelu" | "gelu_tanh":
            kind, attributes = "Gelu", {"approximate": "tanh" if o.kind == "gelu_tanh" else "none"}
        case "softmax":
            kind, attributes = "Softmax", {"axis": -1}
        case "layer_norm":
            kind, attributes = "LayerNormalization", {"axis": -1, "epsilon": o.epsilon}
        case "transpose":
            kind, attributes = "Transpose", {"perm": [1, 0]}
        case _:
            kind, attributes = {"exp": "Exp", "tanh": "Tanh", "relu": "Relu"}[o.kind], {}
    return helper.make_node(kind, [*names, *(c.name for c in constants)], ["result"], **attributes), constants


def call(operation: Operation, inputs: Sequence[Array], out: Array, threads: int) -> Callable[[], Array]:
    """A call of the model. Raises onnxruntime's error where it has no kernel for the types."""
    given = list(inputs)
    if operation.kind == "depthwise":
        given[1] = given[1][:, None]  # a view: filters have a dimension for the channels of a group
    names = [f"input{n}" for n in range(len(given))]
    made, constants = node(operation, names, out.dtype == np.int32)
    if operation.kind == "depthwise":
        made.attribute.append(helper.make_attribute("group", given[0].shape[1]))
    infos = [helper.make_tensor_value_info(n, type_of(a), a.shape) for n, a in zip(names, given, strict=True)]
    result = helper.make_tensor_value_info("result", type_of(out), out.shape)
    graph = helper.make_graph([made], operation.kind, infos, [result], constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=IR_VERSION)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    binding = session.io_binding()
    for name, array in zip(names, given, strict=True):
        binding.bind_input(name, "cpu", 0, type_of(array), array.shape, array.ctypes.data)
    binding.bind_output("result", "cpu", 0, type_of(out), out.shape, out.ctypes.data)

    def run() -> Array:
        session.run_with_iobinding(binding)
        return out

    return run


def type_of(array: Array) -> Any:
    """ONNX's number of an array's type."""
    return onnx.TensorProto.BFLOAT16 if array.dtype.name == "bfloat16" else helper.np_dtype_to_tensor_dtype(np.dtype(array.dtype))
