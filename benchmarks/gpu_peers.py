"""What `benchmarks/gpu.py` compares with: cuBLAS and cuDNN through PyTorch (on AMD's devices hipBLAS and MIOpen), torch.compile, and a
product in Triton; and what a right result is.

A peer is a function of a set of arrays, PyTorch's tensors by the computation's names, the output's included; it gives its result.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from typing import Any

from benchmarks.gpu_cases import Case

Arrays = dict[str, Any]
Peer = Callable[[Arrays], Any]
CHUNK_BYTES = 1 << 30  # of a convolution in float64


def absent() -> dict[str, str]:
    """The peers that are not installed, each with what is missing."""
    needs = {"cuBLAS, cuDNN, torch.compile, and checks of whole results": "torch", "Triton, torch.compile": "triton"}
    return {peer: f"{module} is not installed" for peer, module in needs.items() if importlib.util.find_spec(module) is None}


def peers(torch: Any, case: Case, on_gpu: bool = True) -> dict[str, Peer]:
    """The peers of a case by name."""
    functional = torch.nn.functional
    match case.operator:
        case "matmul" | "matmul tf32" | "matmul transposed":
            return products(torch, case, on_gpu)
        case "convolution" | "depthwise":
            return convolution(torch, case)
        case "linear gelu":
            return both(torch, lambda a, w, bias: functional.gelu(functional.linear(a, w, bias)), "A", "B", "bias")
        case "softmax":
            return both(torch, lambda x: torch.softmax(x, 1))
        case "layer norm":
            return both(torch, lambda x, g, b: functional.layer_norm(x, x.shape[1:], g, b), "X", "gamma", "beta")
        case "row sum":
            return both(torch, lambda x: torch.sum(x, 1))
        case "transpose":
            return both(torch, lambda x: x.T.contiguous())
        case "gelu":
            return both(torch, lambda x: functional.gelu(x, approximate="tanh"))
        case "relu":
            return both(torch, lambda x: torch.relu(x))
        case "average pooling":
            r, stride, padding = case.facts
            return both(torch, lambda x: functional.avg_pool2d(x.permute(0, 3, 1, 2), r, stride, padding).permute(0, 2, 3, 1))
    raise ValueError(f"nobody else computes {case.operator} here")


def both(torch: Any, function: Callable[..., Any], *names: str) -> dict[str, Peer]:
    """PyTorch's operators one by one, and compiled as one function, once for all sets of arrays."""
    torch._dynamo.reset()  # which would compile a function of the same text only so many times, and then no more
    compiled = torch.compile(function, dynamic=False)

    def of(call: Callable[..., Any]) -> Peer:
        return lambda arrays: call(*(_given(arrays, name) for name in names or ("X",)))

    return {"PyTorch": of(function), "torch.compile": of(compiled)}


def _given(arrays: Arrays, name: str) -> Any:
    """An array; the bias of a layer in the type of the layer's weights, as PyTorch takes it."""
    return arrays[name].to(arrays["B"].dtype) if name == "bias" else arrays[name]


def products(torch: Any, case: Case, on_gpu: bool) -> dict[str, Peer]:
    """cuBLAS, and Triton where it is installed."""
    tf32 = case.operator == "matmul tf32"
    name = "hipBLAS" if torch.version.hip else "cuBLAS"

    def second(arrays: Arrays) -> Any:
        return arrays["B"].T if case.operator == "matmul transposed" else arrays["B"]

    def library(arrays: Arrays) -> Any:
        torch.backends.cuda.matmul.allow_tf32 = tf32
        return torch.matmul(arrays["A"], second(arrays), out=arrays["C"])

    found: dict[str, Peer] = {f"{name} tf32" if tf32 else name: library}
    if on_gpu and importlib.util.find_spec("triton") is not None:

        def by_triton(arrays: Arrays) -> Any:
            from benchmarks.gpu_triton import matmul

            return matmul(arrays["A"], second(arrays), arrays["C"], tf32)

        found["Triton"] = by_triton
    return found


def convolution(torch: Any, case: Case) -> dict[str, Peer]:
    """cuDNN, whose search for the best algorithm is not timed; for float32 without and with tf32."""
    name = "MIOpen" if torch.version.hip else "cuDNN"
    filters = once_for_each(lambda w: _filters(torch, case, w))

    def library(tf32: bool) -> Peer:
        def call(arrays: Arrays) -> Any:
            torch.backends.cudnn.benchmark, torch.backends.cudnn.allow_tf32 = True, tf32
            return _convolved(torch, case, arrays["X"], filters(arrays["W"]))

        return call

    with_tf32 = case.operator == "convolution" and case.type.name == "float32" and not torch.version.hip
    return {name: library(False)} | ({f"{name} tf32": library(True)} if with_tf32 else {})


def once_for_each(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """A function of arrays that is computed once for each: laying filters out is no part of a library's time."""
    known: dict[int, tuple[Any, Any]] = {}

    def call(array: Any) -> Any:
        if id(array) not in known:
            known[id(array)] = array, function(array)  # the array stays, and with it its number
        return known[id(array)][1]

    return call


def _filters(torch: Any, case: Case, w: Any) -> Any:
    """Filters as PyTorch takes them."""
    if case.operator == "depthwise":
        return w.permute(2, 0, 1).unsqueeze(1).contiguous()
    return w.permute(3, 2, 0, 1).contiguous(memory_format=torch.channels_last)


def _convolved(torch: Any, case: Case, x: Any, filters: Any) -> Any:
    stride, padding = case.facts
    groups = x.shape[3] if case.operator == "depthwise" else 1
    return torch.nn.functional.conv2d(x.permute(0, 3, 1, 2), filters, None, stride, padding, 1, groups).permute(0, 2, 3, 1)


def expected(torch: Any, case: Case, arrays: Arrays) -> Any:
    """The result of a case whose arrays hold small whole numbers, to the bit.

    Products are added in float32, which holds all sums. Convolutions in float64, image by image: in float32 a library may compute
    with fractions (Winograd).
    """
    if case.operator in ("convolution", "depthwise"):
        x = arrays["X"]
        count = max(1, CHUNK_BYTES // (8 * x[0].numel()))
        filters = _filters(torch, case, arrays["W"].double())
        parts = [_convolved(torch, case, chunk.double(), filters).to(x.dtype) for chunk in x.split(count)]
        return torch.cat(parts)
    precise = torch.backends.cuda.matmul
    before = precise.allow_fp16_reduced_precision_reduction, precise.allow_bf16_reduced_precision_reduction
    precise.allow_fp16_reduced_precision_reduction = precise.allow_bf16_reduced_precision_reduction = False
    try:
        return next(iter(peers(torch, case, on_gpu=False).values()))(arrays)
    finally:
        precise.allow_fp16_reduced_precision_reduction, precise.allow_bf16_reduced_precision_reduction = before
