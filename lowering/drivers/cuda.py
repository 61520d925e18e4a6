"""CUDA through pycuda, which is imported on first use. Texts are compiled by NVRTC for the device's own architecture.

Each device has one context, the primary one, which other libraries use too. pycuda launches on streams of its own and on the default
one, on no stream of another library.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

from tilelang.errors import DeviceError, brief
from tilelang.lowering.drivers import device_arrays, streams
from tilelang.lowering.drivers.cache import BinaryCache
from tilelang.lowering.drivers.interface import Device, OpenedBy, fitting
from tilelang.lowering.drivers.streams import seconds as seconds
from tilelang.lowering.drivers.tensor_maps import TensorMap, encode

GET = "NVIDIA's driver, and pip install 'tilelang-rtile[cuda,compilers]'"
_KINDS = (device_arrays.CUDA, device_arrays.CUDA_MANAGED)
_STATIC_BYTES = 48 << 10  # of shared memory; a kernel must ask for more
_DEFAULT_STREAM = 1  # as DLPack numbers it
_opened = OpenedBy("CUDA")


@functools.cache
def _cuda() -> Any:
    """The module pycuda.driver. Raises DeviceError where it is not installed or finds no driver."""
    try:
        import pycuda.driver
    except ModuleNotFoundError as error:
        raise DeviceError("no-driver", f"pycuda cannot be imported: {error}", mend=GET) from None
    except ImportError as error:  # the driver's library
        raise DeviceError("no-driver", f"pycuda finds no CUDA driver: {error}", mend=GET) from None
    return pycuda.driver


@functools.cache
def devices() -> tuple[Device, ...]:
    """Every CUDA device here, the best first: the highest architecture, then the most multiprocessors. Empty where there is none.

    Raises DeviceError where pycuda or the driver is missing.
    """
    cuda = _cuda()
    _opened.here()
    try:
        cuda.init()
        found = [_describe(cuda, number) for number in range(cuda.Device.count())]
    except cuda.Error:  # a driver without its hardware
        return ()
    return tuple(sorted(found, key=lambda d: (-int(d.architecture.strip("sm_a")), -d.compute_units)))


def _describe(cuda: Any, number: int) -> Device:
    handle, facts = cuda.Device(number), cuda.device_attribute
    major, minor = handle.compute_capability()
    version = cuda.get_driver_version()
    return Device(
        driver="cuda",
        name=handle.name(),
        platform="CUDA",
        kind="gpu",
        driver_version=f"{version // 1000}.{version % 1000 // 10}",
        platform_version=".".join(map(str, cuda.get_version())),
        compute_units=handle.get_attribute(facts.MULTIPROCESSOR_COUNT),
        max_threads=handle.get_attribute(facts.MAX_THREADS_PER_BLOCK),
        shared_bytes=handle.get_attribute(facts.MAX_SHARED_MEMORY_PER_BLOCK_OPTIN),
        global_bytes=handle.total_memory(),
        host_memory=False,
        architecture=f"sm_{major}{minor}" + ("a" if major >= 9 else ""),  # `a`: with what this architecture alone has
        grid_max=tuple(handle.get_attribute(getattr(facts, f"MAX_GRID_DIM_{d}")) for d in "XYZ"),
        handle=number,
    )


def choose(platform: str | None = None, device: str | None = None) -> Device:
    """The best CUDA device whose name contains the given part. Raises DeviceError where there is none."""
    return fitting(devices(), "CUDA device", platform, device, mend=GET)


@functools.cache
def connect(device: Device) -> Connection:
    """The one connection to a device."""
    return Connection(device)


class Connection(streams.Connection):
    """A device with its primary context."""

    opened = _opened

    def __init__(self, device: Device) -> None:
        super().__init__(device)
        self.cuda = _cuda()
        self.errors = self.cuda.Error
        self.context = self.cuda.Device(device.handle).retain_primary_context()

    def enter(self) -> None:
        self.context.push()

    def leave(self) -> None:
        self.context.pop()

    def compile(self, source: str, options: Sequence[str], cache: BinaryCache | None) -> bytes:
        from tilelang.lowering.compilers import nvrtc

        return nvrtc.compile_source(source, self.device.architecture, options, cache).code

    def load(self, code: bytes) -> Any:
        return self.cuda.module_from_buffer(code)

    def kernel(self, module: Any, name: str, shared_bytes: int) -> tuple[Any, int]:
        found, facts = module.get_function(name), self.cuda.function_attribute
        dynamic = max(0, shared_bytes - found.get_attribute(facts.SHARED_SIZE_BYTES))
        if shared_bytes > _STATIC_BYTES and dynamic:
            found.set_attribute(facts.MAX_DYNAMIC_SHARED_SIZE_BYTES, dynamic)
        return found, dynamic

    def launch(self, kernel: Any, grid: tuple[int, ...], threads: int, arguments: bytes, shared_bytes: int, queue: Any) -> None:
        kernel._launch_kernel(grid, (threads, 1, 1), arguments, shared_bytes, queue)

    @functools.cached_property
    def _zero(self) -> Any:
        """Memory that holds zero."""
        import numpy as np

        return self.upload(np.zeros(16, np.uint8))

    def tensor_map(self, map: TensorMap, buffer: Any) -> bytes:
        if 0 in map.shape:
            map, buffer = map.of_one_element(), self._zero
        with self.current():
            return encode(map, int(buffer))

    def fresh(self, size_bytes: int) -> Any:
        try:
            return self.cuda.mem_alloc(size_bytes)
        except self.cuda.MemoryError:
            return None

    def free(self, block: Any) -> None:
        block.free()

    def copy_in(self, address: int, array: Any, queue: Any) -> None:
        if queue is None:
            self.cuda.memcpy_htod(address, array)
        else:
            self.cuda.memcpy_htod_async(address, array, queue)

    def copy_out(self, array: Any, address: int, queue: Any) -> None:
        if queue is None:
            self.cuda.memcpy_dtoh(array, address)
        else:
            self.cuda.memcpy_dtoh_async(array, address, queue)
            queue.synchronize()

    def event(self) -> Any:
        return self.cuda.Event()

    def record(self, event: Any, queue: Any) -> None:
        event.record(queue)

    def elapsed_ms(self, start: Any, end: Any) -> float:
        end.synchronize()
        return float(end.time_since(start))

    def handle(self, queue: Any) -> int:
        return int(queue.handle) if queue is not None else 0

    def dlpack_stream(self, queue: Any) -> int:
        return self.handle(queue) or _DEFAULT_STREAM

    def synchronize(self, queue: Any) -> None:
        if queue is None:
            self.cuda.Context.synchronize()
        else:
            queue.synchronize()

    def close(self) -> None:
        super().close()
        self.context.detach()  # else pycuda would, in a way that primary contexts refuse

    def queue_of(self, arrays: Sequence[Any]) -> None:
        """The default stream, with which the current streams of other libraries are ordered."""


def is_device_array(value: Any) -> bool:
    """Whether an argument is an array on a CUDA device, told without importing anything."""
    return device_arrays.on_device(value, _KINDS)


def describe(value: Any) -> tuple[tuple[int, ...], Any]:
    """Shape and NumPy type of a device array."""
    found = device_arrays.find("an argument", value, _DEFAULT_STREAM)
    return found.shape, found.dtype


def check_queue(queue: Any) -> None:
    """Raises DeviceError where a queue is not a stream of pycuda's."""
    if not isinstance(queue, _cuda().Stream):
        mend = "a pycuda.driver.Stream; without queue= the default stream, with which PyTorch's and CuPy's streams are ordered"
        raise DeviceError("bad-queue", f"queue={brief(queue)} is not a stream of pycuda's", mend=mend)
