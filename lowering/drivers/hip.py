"""The HIP driver, through pyhip-interface, which is imported on first use. clang compiles for the device's own architecture.

Within the driver a stream is its handle, a number; calls with PyTorch tensors are launched on PyTorch's current stream. Nothing here
has run on an AMD device: the calls are tested against a library that records them.
"""

from __future__ import annotations

import ctypes
import functools
import struct
from collections.abc import Sequence
from typing import Any

from tilelang.errors import DeviceError
from tilelang.lowering.drivers import device_arrays, streams
from tilelang.lowering.drivers.cache import BinaryCache
from tilelang.lowering.drivers.interface import Device, OpenedBy, fitting
from tilelang.lowering.drivers.process_lock import OnceForEach
from tilelang.lowering.drivers.streams import seconds as seconds
from tilelang.lowering.drivers.tensor_maps import TensorMap

GET = "AMD's driver with ROCm, its lib folder in LD_LIBRARY_PATH, and pip install 'tilelang-rtile[hip,compilers]'"
_KINDS = (device_arrays.ROCM,)
_OUT_OF_MEMORY = "hipErrorOutOfMemory"
_opened = OpenedBy("HIP")


@functools.cache
def _hip() -> Any:
    """The module pyhip.hip. Raises DeviceError if it is not installed or finds no library."""
    try:
        import pyhip.hip  # late: an optional library
    except ModuleNotFoundError as error:
        raise DeviceError("no-driver", f"pyhip-interface cannot be imported: {error}", help=GET) from None
    except Exception as error:  # the import opens the library and asks for its version
        raise DeviceError("no-driver", f"pyhip-interface finds no HIP library: {_error_text(error)}", help=GET) from None
    return pyhip.hip


def _error_text(error: BaseException) -> str:
    """The text of a pyhip error, which often has only a name."""
    return (str(error) or type(error).__name__).splitlines()[0]


@functools.cache
def devices() -> tuple[Device, ...]:
    """All HIP devices, the one with the most compute units first. Empty if there are none.

    Raises DeviceError if pyhip-interface or the library is missing.
    """
    hip = _hip()
    _opened.here()
    try:
        found = [_describe(hip, number) for number in range(hip.hipGetDeviceCount())]
    except hip.hipError:  # a library without hardware
        return ()
    return tuple(sorted(found, key=lambda d: -d.compute_units))


def _describe(hip: Any, number: int) -> Device:
    facts = hip.hipGetDeviceProperties(number)
    driver, runtime = (version // 10_000_000 for version in (hip.hipDriverGetVersion(), hip.hipRuntimeGetVersion()))
    return Device(
        driver="hip",
        name=facts.name,
        platform="HIP",
        kind="gpu",
        driver_version=str(driver),
        platform_version=str(runtime),
        compute_units=facts.multiProcessorCount,
        max_threads=facts.maxThreadsPerBlock,
        shared_bytes=facts.sharedMemPerBlock,
        global_bytes=facts.totalGlobalMem,
        host_memory=False,
        architecture=facts.gcnArchName.partition(":")[0],  # gfx90a:sramecc+:xnack-
        grid_max=tuple(facts.maxGridSize),
        handle=number,
    )


def choose(platform: str | None = None, device: str | None = None) -> Device:
    """The best HIP device whose name contains `device`. Raises DeviceError if there is none."""
    return fitting(devices(), "HIP device", platform, device, help=GET)


@OnceForEach
def connect(device: Device) -> Connection:
    """The connection to a device; there is one per device."""
    return Connection(device)


class Connection(streams.Connection):
    """A device."""

    opened = _opened

    def __init__(self, device: Device) -> None:
        super().__init__(device)
        self.hip = _hip()
        self.errors = self.hip.hipError

    def enter(self) -> None:
        self.hip.hipSetDevice(self.device.handle)

    def leave(self) -> None:
        """Does nothing: every operation makes its own device current."""

    def compile(self, source: str, options: Sequence[str], cache: BinaryCache | None) -> bytes:
        from tilelang.lowering.compilers import clang  # late: only this target needs it

        return clang.compile_source(source, self.device.architecture, options, cache).code

    def load(self, code: bytes) -> Any:
        return self.hip.hipModuleLoadData(code)

    def kernel(self, module: Any, name: str, shared_bytes: int) -> tuple[Any, int]:
        """The kernel's shared arrays are static, so a launch requests no more."""
        return self.hip.hipModuleGetFunction(module, name), 0

    def launch(
        self, kernel: Any, grid: tuple[int, ...], threads: int, arguments: Sequence[Any], shared_bytes: int, queue: Any
    ) -> None:
        laid = (ctypes.c_char * (8 * len(arguments))).from_buffer_copy(struct.pack(f"{len(arguments)}Q", *arguments))
        self.hip.hipModuleLaunchKernel(kernel, *grid, threads, 1, 1, shared_bytes, queue, laid)

    def tensor_map(self, map: TensorMap, buffer: Any) -> bytes:
        raise DeviceError("tensor-map", "HIP has no TMA copies", help="use loads without TMA")

    def fresh(self, size_bytes: int) -> Any:
        try:
            return self.hip.hipMalloc(size_bytes).value
        except self.hip.hipError as error:
            if type(error).__name__ == _OUT_OF_MEMORY:
                return None
            raise

    def free(self, block: Any) -> None:
        self.hip.hipFree(block)

    def copy_in(self, address: int, array: Any, queue: Any) -> None:
        if queue is None:
            self.hip.hipMemcpy_htod(address, array.ctypes.data, array.nbytes)
        else:
            self.hip.hipMemcpyAsync_htod(address, array.ctypes.data, array.nbytes, queue)
            self.hip.hipStreamSynchronize(queue)  # the copy reads host memory until then

    def copy_out(self, array: Any, address: int, queue: Any) -> None:
        if queue is None:
            self.hip.hipMemcpy_dtoh(array.ctypes.data, address, array.nbytes)
        else:
            self.hip.hipMemcpyAsync_dtoh(array.ctypes.data, address, array.nbytes, queue)
            self.hip.hipStreamSynchronize(queue)

    def event(self) -> Any:
        return self.hip.hipEventCreate()

    def record(self, event: Any, queue: Any) -> None:
        self.hip.hipEventRecord(event, queue)

    def elapsed_ms(self, start: Any, end: Any) -> float:
        self.hip.hipEventSynchronize(end)
        return float(self.hip.hipEventElapsedTime(start, end))

    def handle(self, queue: Any) -> int:
        return queue or 0

    def dlpack_stream(self, queue: Any) -> int:
        return queue or 0

    def synchronize(self, queue: Any) -> None:
        if queue is None:
            self.hip.hipDeviceSynchronize()
        else:
            self.hip.hipStreamSynchronize(queue)

    def queue_of(self, arrays: Sequence[Any]) -> int | None:
        """The current stream of the first array's library."""
        return device_arrays.current_stream(arrays[0]) or None


def is_device_array(value: Any) -> bool:
    """Whether an argument is an array on an AMD device, determined without importing anything."""
    return device_arrays.on_device(value, _KINDS)


def describe(value: Any) -> tuple[tuple[int, ...], Any]:
    """The shape and NumPy type of a device array."""
    found = device_arrays.find("an argument", value, 0)
    return found.shape, found.dtype


def as_queue(queue: Any) -> int | None:
    """The handle of any library's stream; None for the default one. Raises DeviceError if it is not a stream."""
    return streams.stream_handle(queue)
