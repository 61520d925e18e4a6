"""The CUDA driver, through cuda-bindings, which is imported on first use. NVRTC compiles for the device's own architecture.

Each device uses its primary context, which other libraries share, so any of their streams can be launched on. Within the driver a
stream is its handle, a number.
"""

from __future__ import annotations

import ctypes
import functools
import struct
from collections.abc import Callable, Sequence
from typing import Any

from tilelang.core.lazy import cached_property
from tilelang.errors import DeviceError
from tilelang.lowering.drivers import device_arrays, streams
from tilelang.lowering.drivers.cache import BinaryCache
from tilelang.lowering.drivers.interface import Device, OpenedBy, fitting
from tilelang.lowering.drivers.process_lock import OnceForEach
from tilelang.lowering.drivers.streams import seconds as seconds
from tilelang.lowering.drivers.tensor_maps import MAP_BYTES, TensorMap, encode

GET = "NVIDIA's driver, and pip install 'tilelang-rtile[cuda,compilers]'"
_KINDS = (device_arrays.CUDA, device_arrays.CUDA_MANAGED)
_STATIC_BYTES = 48 << 10  # of shared memory; a kernel must request more explicitly
_DEFAULT_STREAM = 1  # DLPack's number for it
_MAP_ALIGNMENT = 64  # of a tensor map in host memory
_NAME_BYTES = 256
_opened = OpenedBy("CUDA")


class CudaError(Exception):
    """An error of the CUDA driver. name: the driver's name for it."""

    def __init__(self, message: str, name: str) -> None:
        super().__init__(message)
        self.name = name


@functools.cache
def _cuda() -> Any:
    """The module cuda.bindings.driver. Raises DeviceError if it is not installed or finds no driver."""
    try:
        import cuda.bindings.driver as driver  # late: an optional library
    except ImportError as error:
        raise DeviceError("no-driver", f"cuda-bindings cannot be imported: {error}", help=GET) from None
    try:
        driver.cuDriverGetVersion()  # opens the driver's library
    except RuntimeError as error:
        said = (str(error) or type(error).__name__).splitlines()[0]
        raise DeviceError("no-driver", f"cuda-bindings finds no CUDA driver: {said}", help=GET) from None
    return driver


def _call(function: Callable[..., Any], *arguments: Any) -> Any:
    """Calls a driver function and returns its results without the status. Raises CudaError if the status is not success."""
    status, *given = function(*arguments)
    if status:
        raise _error(function.__name__, status)
    return given[0] if given else None


def _error(function: str, status: Any) -> CudaError:
    cuda = _cuda()
    name, words = ((text or b"").decode() for _, text in (cuda.cuGetErrorName(status), cuda.cuGetErrorString(status)))
    name = name or f"error {int(status)}"
    return CudaError(f"{function} failed: {words or 'unknown error'} ({name})", name)


@functools.cache
def devices() -> tuple[Device, ...]:
    """All CUDA devices, best first: the highest architecture, then the most multiprocessors. Empty if there are none.

    Raises DeviceError if cuda-bindings or the driver is missing.
    """
    cuda = _cuda()
    _opened.here()
    try:
        _call(cuda.cuInit, 0)
        found = [_describe(cuda, number) for number in range(_call(cuda.cuDeviceGetCount))]
    except CudaError:  # a driver without hardware
        return ()
    return tuple(sorted(found, key=lambda d: (-int(d.architecture.strip("sm_a")), -d.compute_units)))


def _describe(cuda: Any, number: int) -> Device:
    handle = _call(cuda.cuDeviceGet, number)

    def fact(name: str) -> int:
        return int(_call(cuda.cuDeviceGetAttribute, getattr(cuda.CUdevice_attribute, f"CU_DEVICE_ATTRIBUTE_{name}"), handle))

    major = fact("COMPUTE_CAPABILITY_MAJOR")
    return Device(
        driver="cuda",
        name=_call(cuda.cuDeviceGetName, _NAME_BYTES, handle).partition(b"\0")[0].decode(),
        platform="CUDA",
        kind="gpu",
        driver_version=_version(_call(cuda.cuDriverGetVersion)),
        platform_version=_version(cuda.CUDA_VERSION),
        compute_units=fact("MULTIPROCESSOR_COUNT"),
        max_threads=fact("MAX_THREADS_PER_BLOCK"),
        shared_bytes=fact("MAX_SHARED_MEMORY_PER_BLOCK_OPTIN"),
        global_bytes=int(_call(cuda.cuDeviceTotalMem, handle)),
        host_memory=False,
        # with architecture-specific features
        architecture=f"sm_{major}{fact('COMPUTE_CAPABILITY_MINOR')}" + ("a" if major >= 9 else ""),
        grid_max=tuple(fact(f"MAX_GRID_DIM_{d}") for d in "XYZ"),
        handle=number,
    )


def _version(number: int) -> str:
    """
    >>> _version(12090)
    '12.9'
    """
    return f"{number // 1000}.{number % 1000 // 10}"


def choose(platform: str | None = None, device: str | None = None) -> Device:
    """The best CUDA device whose name contains `device`. Raises DeviceError if there is none."""
    return fitting(devices(), "CUDA device", platform, device, help=GET)


@OnceForEach
def connect(device: Device) -> Connection:
    """The connection to a device; there is one per device."""
    return Connection(device)


class Connection(streams.Connection):
    """A device with its primary context."""

    opened = _opened
    errors = CudaError

    def __init__(self, device: Device) -> None:
        super().__init__(device)
        self.cuda = _cuda()
        self._device = _call(self.cuda.cuDeviceGet, device.handle)
        self.context = _call(self.cuda.cuDevicePrimaryCtxRetain, self._device)

    def enter(self) -> None:
        _call(self.cuda.cuCtxPushCurrent, self.context)

    def leave(self) -> None:
        _call(self.cuda.cuCtxPopCurrent)

    def compile(self, source: str, options: Sequence[str], cache: BinaryCache | None) -> bytes:
        from tilelang.lowering.compilers import nvrtc  # late: only this target needs it

        return nvrtc.compile_source(source, self.device.architecture, options, cache).code

    def load(self, code: bytes) -> Any:
        return _call(self.cuda.cuModuleLoadData, code)

    def kernel(self, module: Any, name: str, shared_bytes: int) -> tuple[Any, int]:
        found, facts = _call(self.cuda.cuModuleGetFunction, module, name.encode()), self.cuda.CUfunction_attribute
        dynamic = max(0, shared_bytes - _call(self.cuda.cuFuncGetAttribute, facts.CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, found))
        if shared_bytes > _STATIC_BYTES and dynamic:
            _call(self.cuda.cuFuncSetAttribute, found, facts.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, dynamic)
        return found, dynamic

    def launch(
        self, kernel: Any, grid: tuple[int, ...], threads: int, arguments: Sequence[Any], shared_bytes: int, queue: Any
    ) -> None:
        memory, pointers = by_pointers(arguments)  # `memory` must live until the driver has read it
        _call(self.cuda.cuLaunchKernel, kernel, *grid, threads, 1, 1, shared_bytes, queue or 0, pointers, 0)

    @cached_property
    def _zero(self) -> Any:
        """Memory that holds a zero."""
        import numpy as np  # late: NumPy takes long to import

        return self.upload(np.zeros(16, np.uint8))

    def tensor_map(self, map: TensorMap, buffer: Any) -> bytes:
        if 0 in map.shape:
            map, buffer = map.of_one_element(), self._zero
        with self.current():
            return encode(self.cuda, map, int(buffer))

    def fresh(self, size_bytes: int) -> Any:
        try:
            return int(_call(self.cuda.cuMemAlloc, size_bytes))
        except CudaError as error:
            if error.name == "CUDA_ERROR_OUT_OF_MEMORY":
                return None
            raise

    def free(self, block: Any) -> None:
        _call(self.cuda.cuMemFree, block)

    def copy_in(self, address: int, array: Any, queue: Any) -> None:
        if queue is None:
            _call(self.cuda.cuMemcpyHtoD, address, array.ctypes.data, array.nbytes)
        else:
            _call(self.cuda.cuMemcpyHtoDAsync, address, array.ctypes.data, array.nbytes, queue)
            self.synchronize(queue)  # the copy may read host memory until then

    def copy_out(self, array: Any, address: int, queue: Any) -> None:
        if queue is None:
            _call(self.cuda.cuMemcpyDtoH, array.ctypes.data, address, array.nbytes)
        else:
            _call(self.cuda.cuMemcpyDtoHAsync, array.ctypes.data, address, array.nbytes, queue)
            self.synchronize(queue)

    def event(self) -> Any:
        return _call(self.cuda.cuEventCreate, 0)

    def record(self, event: Any, queue: Any) -> None:
        _call(self.cuda.cuEventRecord, event, queue or 0)

    def elapsed_ms(self, start: Any, end: Any) -> float:
        _call(self.cuda.cuEventSynchronize, end)
        return float(_call(self.cuda.cuEventElapsedTime, start, end))

    def handle(self, queue: Any) -> int:
        return queue or 0

    def dlpack_stream(self, queue: Any) -> int:
        return queue or _DEFAULT_STREAM

    def synchronize(self, queue: Any) -> None:
        if queue is None:
            _call(self.cuda.cuCtxSynchronize)
        else:
            _call(self.cuda.cuStreamSynchronize, queue)

    def close(self) -> None:
        super().close()
        self.cuda.cuDevicePrimaryCtxRelease(self._device)

    def queue_of(self, arrays: Sequence[Any]) -> None:
        """The default stream, which is ordered with those of other libraries: kernels share one workspace for calls on all of them."""


@functools.lru_cache(maxsize=256)
def _layout(maps: tuple[bool, ...]) -> tuple[struct.Struct, Any, tuple[int, ...]]:
    """The memory layout of a launch's arguments after the pointers to them, with aligned tensor maps: the struct, an array type with
    room for any start address, and the offset of each argument."""
    size, words, begins = 8 * len(maps), [f"{len(maps)}Q"], []
    for is_map in maps:
        padding = -size % (_MAP_ALIGNMENT if is_map else 8)
        begins.append(size + padding)
        words.append(f"{padding}x{MAP_BYTES}s" if is_map else "Q")
        size += padding + (MAP_BYTES if is_map else 8)
    laid = struct.Struct("=" + "".join(words))
    return laid, ctypes.c_char * (laid.size + _MAP_ALIGNMENT), tuple(begins)


def by_pointers(arguments: Sequence[Any]) -> tuple[Any, int]:
    """Stores kernel arguments (addresses, and tensor maps as bytes) each at its own address. Returns the memory and the address of the
    array of pointers to them. The driver knows how the kernel lays out its arguments; that depends on the architecture."""
    laid, room, begins = _layout(tuple([type(a) is bytes for a in arguments]))
    memory = room()
    start = ctypes.addressof(memory)
    first = -start % _MAP_ALIGNMENT
    start += first
    laid.pack_into(memory, first, *[start + begin for begin in begins], *arguments)
    return memory, start


def is_device_array(value: Any) -> bool:
    """Whether an argument is an array on a CUDA device, determined without importing anything."""
    return device_arrays.on_device(value, _KINDS)


def describe(value: Any) -> tuple[tuple[int, ...], Any]:
    """The shape and NumPy type of a device array."""
    found = device_arrays.find("an argument", value, _DEFAULT_STREAM)
    return found.shape, found.dtype


def as_queue(queue: Any) -> int | None:
    """The handle of any library's stream; None for the default one. Raises DeviceError if it is not a stream."""
    return streams.stream_handle(queue, _cuda().CUstream)
