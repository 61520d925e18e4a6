"""Arrays that say they are on a CUDA or HIP device, of libraries that are not here; their memory is the host's."""

from __future__ import annotations

import ctypes
import types
from typing import Any

import numpy as np

from tilelang.core.dlpack import DLTensor
from tilelang.lowering.drivers import device_arrays


def capsule(array: Any, device: tuple[int, int]) -> Any:
    """DLPack's capsule over a NumPy array, with another device in it."""
    exported = array.__dlpack__()
    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.restype, get.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    tensor = DLTensor.from_address(get(exported, b"dltensor"))
    tensor.device_type, tensor.device_id = device
    return exported


class Exported:
    """An array with DLPack alone. `streams` are those that it was asked to make wait."""

    def __init__(self, array: Any, device: tuple[int, int] = (device_arrays.CUDA, 0)) -> None:
        self.array, self.on, self.streams = array, device, list[int | None]()
        self.device = f"{'cuda' if device[0] == device_arrays.CUDA else 'rocm'}:{device[1]}"

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.on

    def __dlpack__(self, stream: int | None = None) -> Any:
        self.streams.append(stream)
        return capsule(self.array, self.on)


class TorchTensor(Exported):
    """A tensor of PyTorch."""

    __module__ = "torch"


class JaxArray(Exported):
    """An array of JAX."""

    __module__ = "jaxlib._jax"


class Interfaced:
    """An array with the CUDA array interface alone."""

    def __init__(self, array: Any, stream: int | None = None, read_only: bool = False) -> None:
        self.array, self.stream, self.read_only = array, stream, read_only

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        a = self.array
        strides = None if a.flags.c_contiguous else a.strides
        found = {
            "shape": a.shape,
            "typestr": a.dtype.str,
            "data": (a.ctypes.data, self.read_only),
            "strides": strides,
            "version": 3,
        }
        return found | ({"stream": self.stream} if self.stream is not None else {})


class TorchStream:
    """A stream of PyTorch; `waited` holds the handles of those that it was told to wait for."""

    def __init__(self, handle: int) -> None:
        self.cuda_stream, self.waited = handle, list[int]()

    def wait_stream(self, other: TorchStream) -> None:
        self.waited.append(other.cuda_stream)


def torch_stub(stream: TorchStream, device: tuple[int, int] = (device_arrays.CUDA, 0)) -> types.ModuleType:
    """A module in PyTorch's place whose current stream is the one given."""
    found = types.ModuleType("torch")
    cuda = types.SimpleNamespace(
        current_stream=lambda device=None: stream,
        default_stream=lambda device=None: TorchStream(0),
        ExternalStream=lambda handle, device=None: TorchStream(handle),
    )

    def empty(shape: tuple[int, ...], dtype: Any, device: str) -> TorchTensor:
        return TorchTensor(np.zeros(shape, dtype), (device_arrays.CUDA if "cuda" in device else device_arrays.ROCM, 0))

    members = {"cuda": cuda, "float32": np.float32, "empty": empty}
    for name, value in members.items():
        setattr(found, name, value)
    return found
