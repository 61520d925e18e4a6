"""Arrays of other libraries on a CUDA or HIP device, used in place through DLPack or the CUDA array interface.

Both protocols give the address and order the work. DLPack's producer makes the given stream wait for the work that it has enqueued; the
CUDA array interface names the stream to wait for. After a launch the roles are reversed: the current streams of PyTorch and CuPy wait
for ours. No library is imported here except the one whose array was passed.
"""

from __future__ import annotations

import dataclasses
import functools
import sys
from typing import Any

from tilelang.computations.arguments import wrong
from tilelang.core.dlpack import element_type, tensor_of
from tilelang.errors import DeviceError

CUDA, CUDA_MANAGED, ROCM = 2, 13, 10  # DLPack's device types


@dataclasses.dataclass(frozen=True, slots=True)
class Found:
    """A device array. ordinal: its device's number (None: unknown). stream: the stream to wait for (None: nothing)."""

    address: int
    shape: tuple[int, ...]
    dtype: Any
    contiguous: bool
    writeable: bool
    ordinal: int | None
    stream: int | None


@functools.cache
def _protocol_of_type(kind: type) -> str | None:
    """The protocol of all arrays of a type; None if the type does not determine it, or if they are always on the host."""
    if library(kind) == "numpy":
        return None
    if hasattr(kind, "__dlpack__") and hasattr(kind, "__dlpack_device__"):
        return "dlpack"
    return "interface" if hasattr(kind, "__cuda_array_interface__") else None


def _protocol(value: Any) -> str | None:
    """The protocol of an array, from its type or an attribute of its own; None if it is on the host or not an array."""
    kind: Any = type(value)
    own = getattr(value, "__dict__", ())
    return _protocol_of_type(kind) or ("interface" if "__cuda_array_interface__" in own else None)


def library(kind: type) -> str:
    """The name of the library that defines a type."""
    name = kind.__module__.partition(".")[0]
    return "jax" if name == "jaxlib" else name


def on_device(value: Any, kinds: tuple[int, ...]) -> bool:
    """Whether an array is on a device of these DLPack types; one with only the CUDA array interface is on a CUDA device.

    An array on a device unknown to DLPack, such as PyTorch's `meta`, or whose memory has been freed, is on none.
    """
    protocol = _protocol(value)
    if protocol == "dlpack":
        try:
            return int(value.__dlpack_device__()[0]) in kinds
        except (BufferError, RuntimeError, ValueError):
            return False
    return protocol == "interface" and CUDA in kinds


def find(name: str, value: Any, stream: int) -> Found:
    """Locates the array for `name`; `stream`, in DLPack's numbering, waits for the work that fills it.

    Raises ComputationError if its library does not export it.
    """
    kind: Any = type(value)
    try:
        if _protocol(value) == "interface":
            return _by_interface(value)
        return _by_dlpack(value.__dlpack__(stream=stream), kind)
    except (BufferError, RuntimeError, TypeError, ValueError, AttributeError) as error:
        raise wrong(name, f"cannot be shared by its library: {error}", "pass a plain array, detached") from None


def _by_dlpack(capsule: Any, kind: type) -> Found:
    tensor, read_only = tensor_of(capsule)
    return Found(
        address=tensor.address,
        shape=tensor.extents,
        dtype=element_type(tensor.code, tensor.bits, tensor.lanes),
        contiguous=_contiguous(tensor.extents, tensor.steps),
        writeable=not read_only and library(kind) != "jax",
        ordinal=tensor.device_id,
        stream=None,
    )


def _by_interface(value: Any) -> Found:
    import numpy as np  # late: NumPy takes long to import

    facts = value.__cuda_array_interface__
    address, read_only = facts["data"]
    shape, dtype = tuple(facts["shape"]), np.dtype(facts["typestr"])
    strides = facts.get("strides")
    steps = None if strides is None else tuple(s // dtype.itemsize for s in strides)
    return Found(address or 0, shape, dtype, _contiguous(shape, steps), not read_only, None, facts.get("stream"))


def _contiguous(shape: tuple[int, ...], strides: tuple[int, ...] | None) -> bool:
    """Whether elements are in row-major order. strides: in elements, or None for row-major; ignored along an extent of 1."""
    if strides is None or 0 in shape:
        return True
    wanted = 1
    for extent, step in zip(reversed(shape), reversed(strides), strict=True):
        if extent != 1 and step != wanted:
            return False
        wanted *= extent
    return True


def current_stream(value: Any) -> int | None:
    """The handle of the stream that an array's library currently uses, 0 for the default one; None if unknown."""
    match library(type(value)):
        case "torch":
            return int(sys.modules["torch"].cuda.current_stream(value.device).cuda_stream)
        case "cupy":
            return int(sys.modules["cupy"].cuda.get_current_stream().ptr)
    return None


def wait_for(value: Any, handle: int) -> bool:
    """Makes later work of an array's library wait for a stream; False if that needs a wait on the host."""
    current = current_stream(value)
    if current is None or current == handle:
        return current is not None
    match library(type(value)):
        case "torch":
            cuda = sys.modules["torch"].cuda
            other = cuda.ExternalStream(handle, device=value.device) if handle else cuda.default_stream(value.device)
            cuda.current_stream(value.device).wait_stream(other)
            return True
        case "cupy":
            cuda = sys.modules["cupy"].cuda
            other = cuda.ExternalStream(handle) if handle else cuda.Stream.null
            cuda.get_current_stream().wait_event(other.record())
            return True
    return False


def empty(shape: tuple[int, ...], dtype: Any, like: Any) -> Any:
    """A new array of the same library and on the same device as `like`. Raises DeviceError if the library has no such type."""
    name = library(type(like))
    try:
        match name:
            case "torch":
                torch = sys.modules["torch"]
                return torch.empty(shape, dtype=getattr(torch, dtype.name), device=like.device)
            case "cupy":
                return sys.modules["cupy"].empty(shape, dtype)
            case "jax":
                return sys.modules["jax"].numpy.empty(shape, dtype, device=like.device)
    except (AttributeError, TypeError, ValueError) as error:
        raise DeviceError(
            "no-array", f"{name} cannot allocate an array of {dtype} for the result: {error}", help="pass out="
        ) from None
    raise DeviceError("no-array", f"{name} cannot allocate an array for the result", help="pass out=")
