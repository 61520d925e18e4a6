"""A module in place of pycuda.driver that records every call, with memory that can be copied to and from, and kernels in Python.

Calls that need a context raise where none is current in their thread, as the driver does. What a kernel does is a Python function by
its name, which gets the addresses that it was launched on.
"""

from __future__ import annotations

import ctypes
import struct
import threading
import types
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

ATTRIBUTES = {
    "MULTIPROCESSOR_COUNT": 132, "MAX_THREADS_PER_BLOCK": 1024, "MAX_SHARED_MEMORY_PER_BLOCK_OPTIN": 232448,
    "MAX_GRID_DIM_X": 2**31 - 1, "MAX_GRID_DIM_Y": 65535, "MAX_GRID_DIM_Z": 65535,
}  # fmt: skip


class Error(Exception):
    """What the driver raises."""


class LogicError(Error):
    """A call that cannot be."""


class MemoryError(Error):
    """No memory."""


class Recorder:
    """The calls in order, each a tuple of its name and arguments."""

    def __init__(self, total_bytes: int = 1 << 20, devices: Sequence[tuple[str, tuple[int, int]]] = (("Stub", (9, 0)),)) -> None:
        self.calls: list[tuple[Any, ...]] = []
        self.kernels: dict[str, Callable[..., None]] = {}
        self.static_bytes: dict[str, int] = {}
        self.total_bytes, self.devices = total_bytes, devices
        self.taken = 0
        self._contexts = threading.local()

    def note(self, *call: Any, context: bool = True) -> None:
        self.calls.append(call)
        if context and not self.stack:
            raise LogicError(f"{call[0]} failed: invalid device context")

    @property
    def stack(self) -> list[Any]:
        if not hasattr(self._contexts, "stack"):
            self._contexts.stack = []
        found: list[Any] = self._contexts.stack
        return found

    def named(self, *names: str) -> list[tuple[Any, ...]]:
        """The calls of these names."""
        return [call for call in self.calls if call[0] in names]

    def module(self) -> types.ModuleType:
        """The module that stands in pycuda.driver's place."""
        found = types.ModuleType("pycuda.driver")
        members = {
            "Error": Error, "LogicError": LogicError, "MemoryError": MemoryError,
            "init": lambda: self.note("init", context=False),
            "get_version": lambda: (13, 0, 0), "get_driver_version": lambda: 13000,
            "device_attribute": types.SimpleNamespace(**{name: name for name in ATTRIBUTES}),
            "function_attribute": types.SimpleNamespace(
                SHARED_SIZE_BYTES="SHARED_SIZE_BYTES", MAX_DYNAMIC_SHARED_SIZE_BYTES="MAX_DYNAMIC_SHARED_SIZE_BYTES"
            ),
            "Device": _device_type(self), "Context": Context(self, None), "Stream": _bound(Stream, self), "Event": _bound(Event, self),
            "mem_alloc": self.mem_alloc, "module_from_buffer": lambda code: Module(self, code),
            "memcpy_htod": lambda to, array: self.copy("memcpy_htod", to, array, None),
            "memcpy_dtoh": lambda array, at: self.copy("memcpy_dtoh", at, array, None),
            "memcpy_htod_async": lambda to, array, stream: self.copy("memcpy_htod_async", to, array, stream),
            "memcpy_dtoh_async": lambda array, at, stream: self.copy("memcpy_dtoh_async", at, array, stream),
        }  # fmt: skip
        for name, value in members.items():
            setattr(found, name, value)
        return found

    def mem_alloc(self, size: int) -> Allocation:
        self.note("mem_alloc", size)
        if self.taken + size > self.total_bytes:
            raise MemoryError("cuMemAlloc failed: out of memory")
        self.taken += size
        return Allocation(self, size)

    def copy(self, name: str, address: int, array: Any, stream: Stream | None) -> None:
        assert type(address) is int and array.dtype == np.uint8 and array.flags.c_contiguous
        self.note(name, address, array.nbytes, *([stream] if stream is not None else []))
        host = array.ctypes.data
        target, source = (host, address) if "dtoh" in name else (address, host)
        ctypes.memmove(target, source, array.nbytes)


def _bound(kind: Any, recorder: Recorder) -> Any:
    return type(kind.__name__, (kind,), {"recorder": recorder})


def _device_type(recorder: Recorder) -> Any:
    class Device:
        """A device by its number."""

        def __init__(self, number: int) -> None:
            self.number = number

        @staticmethod
        def count() -> int:
            return len(recorder.devices)

        def name(self) -> str:
            return recorder.devices[self.number][0]

        def compute_capability(self) -> tuple[int, int]:
            return recorder.devices[self.number][1]

        def total_memory(self) -> int:
            return recorder.total_bytes

        def get_attribute(self, name: str) -> int:
            return ATTRIBUTES[name]

        def retain_primary_context(self) -> Context:
            recorder.note("retain_primary_context", self.number, context=False)
            return Context(recorder, self.number)

    return Device


class Context:
    """A context; current in the threads that have pushed it."""

    def __init__(self, recorder: Recorder, number: int | None) -> None:
        self.recorder, self.number = recorder, number

    def push(self) -> None:
        self.recorder.stack.append(self)

    def pop(self) -> None:
        self.recorder.stack.pop()

    def synchronize(self) -> None:
        self.recorder.note("Context.synchronize")

    def detach(self) -> None:
        self.recorder.note("Context.detach", context=False)


class Allocation:
    """Memory; its address is that of memory of the host."""

    def __init__(self, recorder: Recorder, size: int) -> None:
        self.recorder, self.size = recorder, size
        self.memory = (ctypes.c_uint8 * size)()

    def __int__(self) -> int:
        return ctypes.addressof(self.memory)

    def free(self) -> None:
        self.recorder.note("free", self.size)
        self.recorder.taken -= self.size


class Stream:
    """A stream."""

    recorder: Recorder

    def __init__(self) -> None:
        self.handle = 4096

    def synchronize(self) -> None:
        self.recorder.note("Stream.synchronize", self)


class Event:
    """An event; each is a millisecond after the one recorded before."""

    recorder: Recorder

    def __init__(self) -> None:
        self.recorder.note("Event")
        self.number = -1

    def record(self, stream: Stream | None = None) -> Event:
        self.recorder.note("Event.record", stream)
        self.number = len(self.recorder.named("Event.record"))
        return self

    def synchronize(self) -> None:
        self.recorder.note("Event.synchronize")

    def time_since(self, other: Event) -> float:
        return float(self.number - other.number)


class Module:
    """A loaded cubin."""

    def __init__(self, recorder: Recorder, code: bytes) -> None:
        assert isinstance(code, bytes)
        recorder.note("module_from_buffer", code[:4])
        self.recorder = recorder

    def get_function(self, name: str) -> Function:
        self.recorder.note("get_function", name)
        return Function(self.recorder, name)


class Function:
    """A kernel."""

    def __init__(self, recorder: Recorder, name: str) -> None:
        self.recorder, self.name = recorder, name

    def get_attribute(self, name: str) -> int:
        assert name == "SHARED_SIZE_BYTES"
        return self.recorder.static_bytes.get(self.name, 0)

    def set_attribute(self, name: str, value: int) -> None:
        self.recorder.note("set_attribute", self.name, name, value)

    def _launch_kernel(self, grid: Any, block: Any, arguments: bytes, shared: int, stream: Stream | None) -> None:
        assert len(grid) == len(block) == 3 and all(type(n) is int for n in (*grid, *block, shared))
        self.recorder.note("launch", self.name, grid, block, len(arguments), shared, stream)
        run = self.recorder.kernels.get(self.name)
        if run is not None:
            run(*struct.unpack(f"{len(arguments) // 8}Q", arguments))
