"""The libraries with models of their own, onnxruntime, OpenVINO and JAX, as peers of an operation: a call each.

All get the same row-major arrays. Weights are inputs like any other array, so that no library folds, packs or reorders them outside the
timed call; results go into an array that was there before where a library takes one (JAX takes none). A library that is not installed,
or that lacks an operation, is named with the reason by `absent` and by the exception that `made` raises.
"""

from __future__ import annotations

import dataclasses
import importlib.metadata
import importlib.util
from collections.abc import Callable, Sequence
from typing import Any

import numpy.typing as npt

Array = npt.NDArray[Any]
Call = Callable[[], Any]  # computes once; gives its result

MODULES = {"onnxruntime": ("onnxruntime", "onnx"), "OpenVINO": ("openvino",), "JAX": ("jax",)}  # that a peer needs
DISTRIBUTIONS = {"onnxruntime": "onnxruntime", "OpenVINO": "openvino", "JAX": "jax"}
KINDS = (
    "matmul", "row_sum", "relu", "convolution", "depthwise", "average_pooling",
    "exp", "tanh", "gelu", "gelu_tanh", "softmax", "layer_norm", "transpose",
)  # fmt: skip


@dataclasses.dataclass(frozen=True)
class Operation:
    """What is computed. kind: one of KINDS; of those with windows the window's side, its stride, and zeros around an image.

    Arrays are float32, of bfloat16 products the inputs and the result are bfloat16. Softmax and layer normalization go along rows;
    layer_norm takes X, gamma and beta and adds `epsilon` to the variance.
    """

    kind: str
    window: int = 1
    stride: int = 1
    padding: int = 0
    epsilon: float = 1e-5


def absent() -> dict[str, str]:
    """The peers of this module that are not installed, each with the reason."""
    found = {}
    for who, modules in MODULES.items():
        missing = [m for m in modules if importlib.util.find_spec(m) is None]
        if missing:
            found[who] = f"{missing[0]} is not installed"
    return found


def version(who: str) -> str:
    """The installed version of a peer. Raises importlib.metadata.PackageNotFoundError."""
    return importlib.metadata.version(DISTRIBUTIONS[who])


def made(who: str, operation: Operation, inputs: Sequence[Array], out: Array, threads: int) -> Call:
    """A call of an operation over arrays. Raises whatever the library raises that has no such operation."""
    match who:
        case "onnxruntime":
            from benchmarks import peers_onnxruntime

            return peers_onnxruntime.call(operation, inputs, out, threads)
        case "OpenVINO":
            from benchmarks import peers_openvino

            return peers_openvino.call(operation, inputs, out, threads)
        case "JAX":
            from benchmarks import peers_jax

            return peers_jax.call(operation, inputs)
    raise ValueError(f"{who} is none of {', '.join(MODULES)}")


def when_called(who: str, operation: Operation, inputs: Sequence[Array], out: Array, threads: int) -> Call:
    """The same, built at the first call: what a library cannot do is told then, as any other failure of a peer."""
    built: list[Call] = []

    def run() -> Any:
        if not built:
            built.append(made(who, operation, inputs, out, threads))
        return built[0]()

    return run
