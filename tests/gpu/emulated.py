"""A driver whose device is this processor: CUDA and HIP text run by tilelang.testing.emulation, with a device's memory of its own.

`pytest --emulated cuda tests/gpu` puts it in the place of the driver of that name, so that the numeric suite, which `make gpu-check`
runs on a GPU, is tried on the same text without one. No queues, no arrays of other libraries; times are the clock's.
"""

from __future__ import annotations

import contextlib
import ctypes
import time
from collections.abc import Sequence
from typing import Any

import numpy as np

from tilelang.errors import DeviceError
from tilelang.lowering.drivers.cache import BinaryCache
from tilelang.lowering.drivers.interface import Device, DeviceArray, check_limits
from tilelang.lowering.drivers.tensor_maps import TensorMap
from tilelang.profiles.files import load_profile
from tilelang.testing import emulation

PROFILES = {"cuda": "hopper", "hip": "cdna2"}


class Driver:
    """The driver of a dialect."""

    def __init__(self, dialect: str) -> None:
        profile = load_profile(PROFILES[dialect])
        shared = profile.memory("shared").capacity_bytes or 0
        self.device = Device(
            dialect, f"emulated {dialect}", "emulation", "gpu", "", "", 1, profile.max_block_threads, shared, 1 << 32, False,
            profile.architecture or "",
        )  # fmt: skip
        self.connection = Connection(self.device, profile.warp_size)

    def devices(self) -> tuple[Device, ...]:
        return (self.device,)

    def choose(self, platform: str | None = None, device: str | None = None) -> Device:
        return self.device

    def connect(self, device: Device) -> Connection:
        return self.connection

    def is_device_array(self, value: Any) -> bool:
        return False

    def describe(self, value: Any) -> tuple[tuple[int, ...], Any]:
        raise NotImplementedError

    def as_queue(self, queue: Any) -> None:
        raise DeviceError("bad-queue", "an emulated device has no queues", help="no queue=")

    def seconds(self, event: float) -> float:
        return event


class Connection:
    """The emulated device. Memory is an array of bytes."""

    queue = address = None

    def __init__(self, device: Device, warp: int) -> None:
        self.device, self.warp = device, warp

    def build(self, source: str, options: Sequence[str] = (), cache: BinaryCache | None = None) -> Module:
        return Module(self, source)

    def allocate(self, size_bytes: int) -> Any:
        return np.full(max(1, size_bytes), 0xFF, np.uint8).view(Memory)

    def upload(self, array: Any) -> Any:
        return np.frombuffer(array.tobytes() or b"\xff", np.uint8).copy().view(Memory)

    def host_array(self, array: Any, role: str, queue: Any) -> HostArray:
        return HostArray(self, array, role)

    def queue_of(self, arrays: Sequence[Any]) -> None:
        return None

    def take(self, name: str, array: Any, queue: Any) -> DeviceArray:
        raise NotImplementedError

    def hand_back(self, arrays: Sequence[Any], queue: Any) -> None:
        return None

    def empty(self, shape: tuple[int, ...], type: Any, queue: Any, like: Any) -> Any:
        raise NotImplementedError

    def tensor_map(self, map: TensorMap, buffer: Any) -> Any:
        """What `Function` takes in place of the map's bytes."""
        return map, buffer

    def finish(self, queue: Any = None) -> None:
        return None

    def trim(self) -> None:
        return None

    def current(self, what: str = "") -> contextlib.AbstractContextManager[None]:
        return contextlib.nullcontext()

    def take_event(self) -> list[float]:
        return [0.0]

    def keep_event(self, event: list[float]) -> None:
        return None

    def record(self, event: list[float], queue: Any) -> None:
        event[0] = time.perf_counter()

    def elapsed_ms(self, start: list[float], end: list[float]) -> float:
        return (end[0] - start[0]) * 1e3

    def copy_out(self, array: Any, address: int, queue: Any) -> None:
        ctypes.memmove(array.ctypes.data, address, array.nbytes)


class Memory(np.ndarray[Any, np.dtype[np.uint8]]):
    """Memory of the emulated device: bytes; as a number its address."""

    def __int__(self) -> int:
        return int(self.ctypes.data)


class Module:
    """A source text."""

    def __init__(self, connection: Connection, source: str) -> None:
        self.connection, self.source = connection, source

    def function(self, name: str, grid: Sequence[int], threads: int, shared_bytes: int) -> Function:
        check_limits(self.connection.device, name, grid, threads, shared_bytes)
        return Function(self, name, (*grid, 1, 1)[:3], threads, shared_bytes)


class Function:
    """A kernel of a text. A call runs it, for every thread."""

    def __init__(self, module: Module, name: str, grid: tuple[int, ...], threads: int, shared_bytes: int) -> None:
        self.module, self.name, self.grid, self.threads, self.shared_bytes = module, name, grid, threads, shared_bytes

    def __call__(self, buffers: Sequence[Any], queue: Any = None) -> None:
        if 0 in self.grid:
            return
        given = {f"argument {n}": b for n, b in enumerate(buffers) if not isinstance(b, tuple)}
        arguments: list[Any] = list(given)
        for map, memory in buffers[len(given) :]:
            arguments.append(emulation.Mapped(next(n for n, b in given.items() if b is memory), map))
        x, y, z = self.grid
        launch = emulation.Launch(self.name, (x, y, z), self.threads, tuple(arguments))
        after = emulation.run(
            self.module.source, [launch], given, warp=self.module.connection.warp, shared_bytes=self.shared_bytes
        )
        for name, buffer in given.items():
            buffer[...] = after[name]

    def timed(self, buffers: Sequence[Any], queue: Any = None) -> float:
        start = time.perf_counter()
        self(buffers)
        return time.perf_counter() - start


class HostArray:
    """A NumPy array with its copy in the device's memory."""

    def __init__(self, connection: Connection, array: Any, role: str) -> None:
        self.array, self.role = array, role
        self.buffer = connection.allocate(array.nbytes) if role == "output" else connection.upload(array)

    def land(self, queue: Any = None) -> None:
        if self.role != "input" and self.array.nbytes:
            self.array.reshape(-1).view(np.uint8)[...] = self.buffer[: self.array.nbytes]
