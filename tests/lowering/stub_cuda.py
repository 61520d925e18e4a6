"""A module in place of cuda.bindings.driver that records calls, with memory that can be copied to and from, and kernels in Python.

Every function gives a status and its results. Calls that need a context fail where none is current in their thread, as the driver's do.
What a kernel does is a Python function by its name, which gets the addresses and the bytes of tensor maps that it was launched on: its
signature says how many, and which of them are maps (`: bytes`).
"""

from __future__ import annotations

import ctypes
import inspect
import threading
import types
from collections.abc import Callable, Sequence
from typing import Any

ATTRIBUTES = {
    "MULTIPROCESSOR_COUNT": 132, "MAX_THREADS_PER_BLOCK": 1024, "MAX_SHARED_MEMORY_PER_BLOCK_OPTIN": 232448,
    "MAX_GRID_DIM_X": 2**31 - 1, "MAX_GRID_DIM_Y": 65535, "MAX_GRID_DIM_Z": 65535,
}  # fmt: skip
OUT_OF_MEMORY, NO_DEVICE, INVALID_CONTEXT, ILLEGAL_ADDRESS = 2, 100, 201, 700
STATUSES = {
    OUT_OF_MEMORY: ("CUDA_ERROR_OUT_OF_MEMORY", "out of memory"),
    NO_DEVICE: ("CUDA_ERROR_NO_DEVICE", "no CUDA-capable device is detected"),
    INVALID_CONTEXT: ("CUDA_ERROR_INVALID_CONTEXT", "invalid device context"),
    ILLEGAL_ADDRESS: ("CUDA_ERROR_ILLEGAL_ADDRESS", "an illegal memory access was encountered\nand more"),
}
MAP_BYTES, MAP_ALIGNMENT = 128, 64


class Failed(Exception):
    """What a kernel raises, or a call ends with: its status."""


class Handle(int):
    """A number of the library's own type."""


class CUstream(Handle):
    """A stream."""


class Recorder:
    """The calls in order, each a tuple of its name and arguments, without contexts and events."""

    def __init__(self, total_bytes: int = 1 << 20, devices: Sequence[tuple[str, tuple[int, int]]] = (("Stub", (9, 0)),)) -> None:
        self.calls: list[tuple[Any, ...]] = []
        self.kernels: dict[str, Callable[..., None]] = {}
        self.static_bytes: dict[str, int] = {}
        self.total_bytes, self.devices = total_bytes, devices
        self.memory: dict[int, Any] = {}
        self.names: list[str] = []  # of kernels; one's handle is its place here
        self.times: list[int] = []  # of events: the milliseconds at which each was recorded
        self._contexts = threading.local()

    @property
    def stack(self) -> list[Any]:
        """The contexts that this thread has pushed."""
        if not hasattr(self._contexts, "stack"):
            self._contexts.stack = []
        found: list[Any] = self._contexts.stack
        return found

    def named(self, *names: str) -> list[tuple[Any, ...]]:
        """The calls of these names."""
        return [call for call in self.calls if call[0] in names]

    def note(self, *call: Any) -> None:
        self.calls.append(call)
        if not self.stack:
            raise Failed(INVALID_CONTEXT)

    def module(self) -> types.ModuleType:
        """A stub of the module cuda.bindings.driver."""
        made = types.ModuleType("cuda.bindings.driver")
        found: Any = made
        found.CUDA_VERSION, found.CUstream = 12090, CUstream
        names = (*ATTRIBUTES, "COMPUTE_CAPABILITY_MAJOR", "COMPUTE_CAPABILITY_MINOR")
        found.CUdevice_attribute = types.SimpleNamespace(**{f"CU_DEVICE_ATTRIBUTE_{name}": name for name in names})
        names = ("SHARED_SIZE_BYTES", "MAX_DYNAMIC_SHARED_SIZE_BYTES")
        found.CUfunction_attribute = types.SimpleNamespace(**{f"CU_FUNC_ATTRIBUTE_{name}": name for name in names})
        for name in dir(self):
            if name.startswith("cu"):
                setattr(found, name, _with_status(getattr(self, name)))
        return made

    # ------------------------------------------------------------ the library's functions

    def cuInit(self, flags: int) -> None:
        self.calls.append(("cuInit", flags))

    def cuDriverGetVersion(self) -> int:
        return 13000

    def cuGetErrorName(self, status: int) -> bytes:
        return STATUSES[status][0].encode()

    def cuGetErrorString(self, status: int) -> bytes:
        return STATUSES[status][1].encode()

    def cuDeviceGetCount(self) -> int:
        return len(self.devices)

    def cuDeviceGet(self, number: int) -> Handle:
        return Handle(number)

    def cuDeviceGetName(self, length: int, device: Handle) -> bytes:
        return self.devices[device][0].encode().ljust(length, b"\0")

    def cuDeviceTotalMem(self, device: Handle) -> int:
        assert type(device) is Handle
        return self.total_bytes

    def cuDeviceGetAttribute(self, name: str, device: Handle) -> int:
        capability = self.devices[device][1]
        return {**ATTRIBUTES, "COMPUTE_CAPABILITY_MAJOR": capability[0], "COMPUTE_CAPABILITY_MINOR": capability[1]}[name]

    def cuDevicePrimaryCtxRetain(self, device: Handle) -> Handle:
        self.calls.append(("cuDevicePrimaryCtxRetain", int(device)))
        return Handle(1000 + device)

    def cuDevicePrimaryCtxRelease(self, device: Handle) -> None:
        self.calls.append(("cuDevicePrimaryCtxRelease", int(device)))

    def cuCtxPushCurrent(self, context: Handle) -> None:
        self.stack.append(context)

    def cuCtxPopCurrent(self) -> Handle:
        popped: Handle = self.stack.pop()
        return popped

    def cuCtxSynchronize(self) -> None:
        self.note("cuCtxSynchronize")

    def cuStreamSynchronize(self, stream: int) -> None:
        self.note("cuStreamSynchronize", stream)

    def cuMemAlloc(self, size: int) -> Handle:
        self.note("cuMemAlloc", size)
        if sum(map(len, self.memory.values())) + size > self.total_bytes:
            raise Failed(OUT_OF_MEMORY)
        made = (ctypes.c_uint8 * size)()
        self.memory[ctypes.addressof(made)] = made
        return Handle(ctypes.addressof(made))

    def cuMemFree(self, address: int) -> None:
        self.note("cuMemFree", len(self.memory.pop(address)))

    def _copy(self, name: str, target: int, source: int, size: int, *stream: int) -> None:
        self.note(name, size, *stream)
        assert type(target) is type(source) is int
        ctypes.memmove(target, source, size)

    def cuMemcpyHtoD(self, target: int, source: int, size: int) -> None:
        self._copy("cuMemcpyHtoD", target, source, size)

    def cuMemcpyDtoH(self, target: int, source: int, size: int) -> None:
        self._copy("cuMemcpyDtoH", target, source, size)

    def cuMemcpyHtoDAsync(self, target: int, source: int, size: int, stream: int) -> None:
        self._copy("cuMemcpyHtoDAsync", target, source, size, stream)

    def cuMemcpyDtoHAsync(self, target: int, source: int, size: int, stream: int) -> None:
        self._copy("cuMemcpyDtoHAsync", target, source, size, stream)

    def cuEventCreate(self, flags: int) -> Handle:
        assert flags == 0  # with times
        self.note("cuEventCreate")
        self.times.append(-1)
        return Handle(len(self.times) - 1)

    def cuEventRecord(self, event: Handle, stream: int) -> None:
        self.note("cuEventRecord", stream)
        self.times[event] = len(self.named("cuEventRecord"))

    def cuEventSynchronize(self, event: Handle) -> None:
        self.note("cuEventSynchronize")

    def cuEventElapsedTime(self, start: Handle, end: Handle) -> float:
        return float(self.times[end] - self.times[start])

    def cuModuleLoadData(self, code: bytes) -> Handle:
        self.note("cuModuleLoadData", code[:4])
        return Handle(1)

    def cuModuleGetFunction(self, module: Handle, name: bytes) -> Handle:
        self.note("cuModuleGetFunction", name.decode())
        self.names.append(name.decode())
        return Handle(len(self.names) - 1)

    def cuFuncGetAttribute(self, name: str, kernel: Handle) -> int:
        assert name == "SHARED_SIZE_BYTES"
        return self.static_bytes.get(self.names[kernel], 0)

    def cuFuncSetAttribute(self, kernel: Handle, name: str, value: int) -> None:
        self.note("cuFuncSetAttribute", self.names[kernel], name, value)

    def cuLaunchKernel(self, kernel: Handle, *given: Any) -> None:
        *shape, shared, stream, pointers, extra = given
        assert len(shape) == 6 and all(type(n) is int for n in given) and extra == 0
        name = self.names[kernel]
        self.note("cuLaunchKernel", name, tuple(shape[:3]), tuple(shape[3:]), shared, stream)
        run = self.kernels.get(name)
        if run is not None:
            run(*_arguments(run, pointers))


def _arguments(run: Callable[..., None], pointers: int) -> list[Any]:
    """What an array of pointers leads to, by a kernel's signature."""
    found: list[Any] = []
    for number, (name, parameter) in enumerate(inspect.signature(run).parameters.items()):
        if parameter.kind is parameter.VAR_POSITIONAL:
            break
        at = ctypes.c_uint64.from_address(pointers + 8 * number).value
        is_map = parameter.annotation in (bytes, "bytes")
        assert at % (MAP_ALIGNMENT if is_map else 8) == 0, f"the argument {name} lies at {at:#x}"
        found.append(ctypes.string_at(at, MAP_BYTES) if is_map else ctypes.c_uint64.from_address(at).value)
    return found


def _with_status(function: Callable[..., Any]) -> Callable[..., tuple[Any, ...]]:
    """The function as the library has it: a status, then what it gives."""

    def call(*given: Any) -> tuple[Any, ...]:
        try:
            found = function(*given)
        except Failed as failed:
            return (failed.args[0], None)
        return (0,) if found is None else (0, found)

    call.__name__ = function.__name__
    return call
