"""DLPack, the protocol by which array libraries share arrays: its structures, and host arrays.

A capsule that is not consumed frees its tensor when it is freed itself, so an array created here keeps the capsule alive. Only the
common part of DLPack 0 and 1 is read, and the read-only flag of version 1.
"""

from __future__ import annotations

import ctypes
import math
from typing import Any

from tilelang.core.dtype import bfloat16, float8_e4m3, float8_e5m2

HOST = (1, 3, 11)  # device types whose memory is the host's: the CPU, and memory pinned for CUDA or ROCm
_KINDS = {0: "int", 1: "uint", 2: "float"}
_BEYOND_NUMPY = {(4, 16): bfloat16, (10, 8): float8_e4m3, (12, 8): float8_e5m2}  # by kind and bits
_BOOL = 6
_OFFSET, _FLAGS_OFFSET, _READ_ONLY = 32, 24, 1  # offsets of the tensor and of the flags in DLPack 1's structure


class DLTensor(ctypes.Structure):
    """The part common to both versions. Strides are in elements and may be null for row-major arrays."""

    _fields_ = [
        ("data", ctypes.c_void_p), ("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32), ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)), ("strides", ctypes.POINTER(ctypes.c_int64)), ("byte_offset", ctypes.c_uint64),
    ]  # fmt: skip

    @property
    def address(self) -> int:
        return int(self.data or 0) + int(self.byte_offset)

    @property
    def extents(self) -> tuple[int, ...]:
        return tuple(self.shape[d] for d in range(self.ndim))

    @property
    def steps(self) -> tuple[int, ...] | None:
        return tuple(self.strides[d] for d in range(self.ndim)) if self.strides else None


def tensor_of(capsule: Any) -> tuple[DLTensor, bool]:
    """The tensor in a capsule, valid as long as the capsule, and whether it is marked read-only."""
    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.restype, get.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    valid = ctypes.pythonapi.PyCapsule_IsValid
    valid.restype, valid.argtypes = ctypes.c_int, [ctypes.py_object, ctypes.c_char_p]
    if not valid(capsule, b"dltensor_versioned"):
        return DLTensor.from_address(get(capsule, b"dltensor")), False
    whole = get(capsule, b"dltensor_versioned")
    flags = ctypes.c_uint64.from_address(whole + _FLAGS_OFFSET).value
    return DLTensor.from_address(whole + _OFFSET), bool(flags & _READ_ONLY)


def element_type(code: int, bits: int, lanes: int) -> Any:
    """The NumPy type for DLPack's. Raises TypeError if there is none."""
    import numpy as np  # late: NumPy takes long to import

    if lanes == 1 and code == _BOOL and bits == 8:
        return np.dtype(np.bool_)
    if lanes == 1 and (code, bits) in _BEYOND_NUMPY:
        return np.dtype(_BEYOND_NUMPY[code, bits].numpy)
    if lanes != 1 or code not in _KINDS:
        raise TypeError(f"its element type, DLPack's {code} of {bits} bits, is not known here")
    return np.dtype(f"{_KINDS[code]}{bits}")


def host_array(value: Any) -> Any:
    """A NumPy array over the memory of another library's array, which it keeps alive.

    Raises TypeError if the array is on a device or of a type that NumPy lacks, BufferError if its library does not share it.
    """
    import numpy as np  # late: NumPy takes long to import

    device = int(value.__dlpack_device__()[0])
    if device not in HOST:
        raise TypeError(f"it lives on a device, DLPack's kind {device}")
    try:
        capsule = value.__dlpack__(max_version=(1, 0))
    except TypeError:  # its library supports DLPack 0 only
        capsule = value.__dlpack__()
    tensor, read_only = tensor_of(capsule)
    dtype, shape = element_type(tensor.code, tensor.bits, tensor.lanes), tensor.extents
    if 0 in shape:
        return np.empty(shape, dtype)
    steps = tensor.steps or tuple(math.prod(shape[d + 1 :]) for d in range(len(shape)))
    if min(steps, default=0) < 0:
        raise BufferError("it has negative strides")
    last = sum((extent - 1) * step for extent, step in zip(shape, steps, strict=True))
    memory = (ctypes.c_char * ((last + 1) * dtype.itemsize)).from_address(tensor.address)
    setattr(memory, "capsule", capsule)
    found = np.ndarray(shape, dtype, buffer=memory, strides=tuple(step * dtype.itemsize for step in steps))
    found.flags.writeable = not read_only
    return found
