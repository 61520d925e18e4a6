"""Tensor maps (TMA descriptors): the layout of a tensor in global memory for tile copies by one thread. Encoded by cuda-bindings.

Source: CUDA Driver API, cuTensorMapEncodeTiled; its rules are checked here so that an error names the cause.
"""

from __future__ import annotations

import ctypes
import dataclasses
import functools
from typing import Any

from tilelang.core.dtype import DType
from tilelang.errors import DeviceError, counted

MAP_BYTES = 128
_SWIZZLES = {0: "NONE", 32: "32B", 64: "64B", 128: "128B"}
_TYPES = {
    "float16": "FLOAT16", "bfloat16": "BFLOAT16", "float32": "FLOAT32", "float64": "FLOAT64", "uint8": "UINT8", "int8": "UINT8",
    "float8_e4m3": "UINT8", "float8_e5m2": "UINT8",
    "uint16": "UINT16", "int16": "UINT16", "uint32": "UINT32", "int32": "INT32", "uint64": "UINT64", "int64": "INT64",
}  # fmt: skip


@dataclasses.dataclass(frozen=True, slots=True)
class TensorMap:
    """A tensor in global memory and the TMA tile (`box`) that one copy moves. Elements outside the tensor are read as zero."""

    dtype: DType
    shape: tuple[int, ...]
    strides_bytes: tuple[int, ...]  # from one index of each dimension to the next, the innermost last
    box: tuple[int, ...]
    swizzle_bytes: int = 0  # width of the swizzle in shared memory: 0, 32, 64 or 128

    def __post_init__(self) -> None:
        fault = self._fault()
        if fault is not None:
            raise DeviceError("tensor-map", f"no tensor map: {fault}", help="use another tile, layout or padding, or plain loads")

    def of_one_element(self) -> TensorMap:
        """The same tiles of a tensor of one element. If that element is zero, they read like those of an empty tensor.

        Empty tensors themselves have no map.
        """
        rank = len(self.shape)
        strides = (*(16,) * (rank - 1), self.dtype.bytes)
        return dataclasses.replace(self, shape=(1,) * rank, strides_bytes=strides)

    def _fault(self) -> str | None:
        """Why the hardware would reject this map, or None."""
        size = self.dtype.bytes
        if self.dtype.name not in _TYPES:
            return f"{self.dtype} is not a type of its elements"
        if not 1 <= len(self.shape) <= 5 or not len(self.shape) == len(self.strides_bytes) == len(self.box):
            return f"{counted(len(self.shape), 'dimension')}; there may be one to five"
        if self.strides_bytes[-1] != size:
            return "elements of the innermost dimension are not contiguous"
        if any(s % 16 or s >= 1 << 40 for s in self.strides_bytes[:-1]):
            return f"rows begin {self.strides_bytes[0]} bytes apart, which must be a multiple of 16"
        if any(e > 1 << 32 for e in self.shape):
            return f"a tensor of {' x '.join(map(str, self.shape))}; each side is at most {1 << 32}"
        if any(not 1 <= b <= 256 for b in self.box):
            return f"a TMA tile of {' x '.join(map(str, self.box))}; each side is 1 to 256"
        inner = self.box[-1] * size
        if inner % 16:
            return f"the TMA tile has {inner} bytes in a row, which must be a multiple of 16"
        if self.swizzle_bytes not in _SWIZZLES or 0 < self.swizzle_bytes < inner:
            return f"a row of the TMA tile has {inner} bytes, more than its swizzle of {self.swizzle_bytes}"
        return None


@functools.lru_cache(maxsize=256)
def encode(driver: Any, map: TensorMap, address: int) -> bytes:
    """The kernel argument for the map of a tensor at an address. driver: the module cuda.bindings.driver. Raises DeviceError if it
    refuses.

    The context of the tensor's device must be current.
    """
    if address % 16:
        raise DeviceError("tensor-map", f"the array begins at {address:#x}, which is not a multiple of 16", help="copy it")
    rank = len(map.shape)
    status, made = driver.cuTensorMapEncodeTiled(
        getattr(driver.CUtensorMapDataType, f"CU_TENSOR_MAP_DATA_TYPE_{_TYPES[map.dtype.name]}"),
        rank,
        address,
        [driver.cuuint64_t(e) for e in reversed(map.shape)],  # innermost first
        [driver.cuuint64_t(s) for s in reversed(map.strides_bytes[:-1])],
        [driver.cuuint32_t(b) for b in reversed(map.box)],
        [driver.cuuint32_t(1)] * rank,
        driver.CUtensorMapInterleave.CU_TENSOR_MAP_INTERLEAVE_NONE,
        getattr(driver.CUtensorMapSwizzle, f"CU_TENSOR_MAP_SWIZZLE_{_SWIZZLES[map.swizzle_bytes]}"),
        driver.CUtensorMapL2promotion.CU_TENSOR_MAP_L2_PROMOTION_L2_128B,
        driver.CUtensorMapFloatOOBfill.CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE,
    )
    if int(status):
        raise DeviceError("tensor-map", f"cuTensorMapEncodeTiled refuses {map}: {status}", help="report it with the schedule")
    return ctypes.string_at(made.getPtr(), MAP_BYTES)
