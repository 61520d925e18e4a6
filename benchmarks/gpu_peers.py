"""What `benchmarks/gpu.py` compares with: cuBLAS and cuDNN through PyTorch, torch.compile, and a product in Triton.

Peers get PyTorch tensors by the computation's names and the output's, and give calls that return their result.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from typing import Any

from benchmarks.gpu_cases import Case

Call = Callable[[], Any]


def peers(torch: Any, case: Case, tensors: dict[str, Any], output: Any) -> dict[str, Call]:
    """The peers of a case by name; the first one's result is the one to compare with."""
    x: Any = tensors.get("X")
    match case.operator:
        case "matmul":
            return products(torch, case, tensors["A"], tensors["B"], output)
        case "matmul transposed":
            return {"cuBLAS": lambda: torch.matmul(tensors["A"], tensors["B"].T, out=output)}
        case "linear gelu":
            weights, bias = tensors["B"], tensors["bias"].to(tensors["B"].dtype)
            return both(torch, lambda a: torch.nn.functional.gelu(torch.nn.functional.linear(a, weights, bias)), tensors["A"])
        case "convolution" | "depthwise":
            return convolution(torch, case, x, tensors["W"])
        case "softmax":
            return both(torch, lambda x: torch.softmax(x, 1), x)
        case "layer norm":
            gamma, beta = tensors["gamma"], tensors["beta"]
            return both(torch, lambda x: torch.nn.functional.layer_norm(x, x.shape[1:], gamma, beta), x)
        case "row sum":
            return both(torch, lambda x: torch.sum(x, 1), x)
        case "transpose":
            return both(torch, lambda x: x.T.contiguous(), x)
        case "gelu":
            return both(torch, lambda x: torch.nn.functional.gelu(x, approximate="tanh"), x)
        case "relu":
            return both(torch, torch.relu, x)
        case "average pooling":
            r, stride, padding = case.facts
            images = x.permute(0, 3, 1, 2)  # channels last in memory
            return both(torch, lambda x: torch.nn.functional.avg_pool2d(x, r, stride, padding).permute(0, 2, 3, 1), images)
    raise ValueError(f"nobody else computes {case.operator} here")


def both(torch: Any, function: Callable[[Any], Any], x: Any) -> dict[str, Call]:
    """A function by PyTorch as it is, and compiled by torch.compile."""
    torch.compiler.reset()  # else only the first few shapes of a function are compiled
    compiled = torch.compile(function, dynamic=False)
    return {"PyTorch": lambda: function(x), "torch.compile": lambda: compiled(x)}


def products(torch: Any, case: Case, a: Any, b: Any, c: Any) -> dict[str, Call]:
    """cuBLAS; for float32 without and with tf32; and Triton where it is installed."""

    def library(tf32: bool) -> Call:
        def call() -> Any:
            torch.backends.cuda.matmul.allow_tf32 = tf32
            return torch.matmul(a, b, out=c)

        return call

    found = {"cuBLAS": library(False)}
    if case.type.name == "float32":
        found["cuBLAS tf32"] = library(True)
    if importlib.util.find_spec("triton") is not None and a.is_cuda:
        from benchmarks.gpu_triton import matmul

        found["Triton"] = lambda: matmul(a, b, c)
    return found


def convolution(torch: Any, case: Case, x: Any, w: Any) -> dict[str, Call]:
    """cuDNN, whose search for the best algorithm is not timed; without and with tf32."""
    stride, padding = case.facts
    images, channels = x.permute(0, 3, 1, 2), x.shape[3]
    if case.operator == "depthwise":
        filters, groups = w.permute(2, 0, 1).unsqueeze(1).contiguous(), channels
    else:
        filters, groups = w.permute(3, 2, 0, 1).contiguous(memory_format=torch.channels_last), 1

    def library(tf32: bool) -> Call:
        def call() -> Any:
            torch.backends.cudnn.benchmark, torch.backends.cudnn.allow_tf32 = True, tf32
            return torch.nn.functional.conv2d(images, filters, None, stride, padding, 1, groups).permute(0, 2, 3, 1)

        return call

    with_tf32 = case.operator == "convolution" and case.type.name == "float32"
    return {"cuDNN": library(False)} | ({"cuDNN tf32": library(True)} if with_tf32 else {})
