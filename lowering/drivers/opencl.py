"""OpenCL through pyopencl, which is imported on first use: devices, builds, memory, launches, times. Knows no IR.

On devices that compute in the host's memory, NumPy arrays are used in place: a buffer over their memory is made for each launch and
never kept, because the memory behind an address may change hands between two launches. On other devices they are copied. PoCL works
in the array itself, so that its work only needs to be finished; elsewhere a buffer is mapped first, which PoCL would wake threads for.
`pyopencl.array.Array` arguments are used as they are, in order with their queue's other work when that queue is the one launched on.
"""

from __future__ import annotations

import ctypes
import functools
import threading
import time
import warnings
from collections.abc import Sequence
from typing import Any

from tilelang.errors import DeviceError, brief
from tilelang.lowering.drivers.cache import BinaryCache, key
from tilelang.lowering.drivers.interface import KINDS, Device, DeviceArray, OpenedBy, as_bytes, check_limits, fitting
from tilelang.lowering.drivers.pocl_cache import drop_damaged
from tilelang.lowering.drivers.pocl_waiting import Waiting, can_wait
from tilelang.lowering.drivers.tensor_maps import TensorMap
from tilelang.options import Options, check_pocl_cache, prepare_opencl

GET = "pip install 'pyopencl[pocl]' runs kernels on the processor; for a graphics processor install its vendor's OpenCL driver"

# Keeps what it compiles itself, where options.prepare_opencl says; getting a binary from it would cost another compilation.
POCL = "Portable Computing Language"

_opened = OpenedBy("OpenCL")

_TYPES = {2: "cpu", 4: "gpu", 8: "accelerator", 16: "custom"}  # CL_DEVICE_TYPE_*


@functools.cache
def _cl() -> Any:
    """The module pyopencl. Raises DeviceError where it is not installed or finds no loader."""
    prepare_opencl()
    try:
        import pyopencl
    except ImportError as error:
        raise DeviceError("no-driver", f"pyopencl cannot be imported: {error}", mend="pip install 'pyopencl[pocl]'") from None
    return pyopencl


def _describe(handle: Any) -> Device:
    return Device(
        driver="opencl",
        name=handle.name.strip(),
        platform=handle.platform.name.strip(),
        kind=_TYPES.get(handle.type & 30, "custom"),
        driver_version=handle.driver_version,
        platform_version=handle.platform.version,
        compute_units=handle.max_compute_units,
        max_threads=handle.max_work_group_size,
        shared_bytes=handle.local_mem_size,
        global_bytes=handle.global_mem_size,
        host_memory=bool(handle.host_unified_memory) and bool(handle.type & 2),
        vector_bytes=4 * handle.native_vector_width_float if handle.type & 2 else 0,
        details=f"{handle.version.strip()}, cache of {handle.global_mem_cache_size} bytes",
        handle=handle,
    )


@functools.cache
def devices() -> tuple[Device, ...]:
    """Every OpenCL device here, the best first: graphics processors, then accelerators, then the most compute units.

    Empty where there is none. Raises DeviceError where pyopencl is missing.
    """
    cl = _cl()
    _opened.here()
    found = []
    try:
        platforms = cl.get_platforms()
    except cl.Error:  # the loader knows no platform
        return ()
    for platform in platforms:
        try:
            found += [_describe(handle) for handle in platform.get_devices()]
        except cl.Error:  # a platform without its hardware
            continue
    return tuple(sorted(found, key=lambda d: (KINDS.index(d.kind), -d.compute_units)))


def choose(platform: str | None = None, device: str | None = None) -> Device:
    """The best device whose platform's and own name contain the given parts, whatever their case.

    Raises DeviceError where there is none, with what there is.
    """
    found = devices()
    if not found:
        check_pocl_cache()  # without which PoCL gives no device
    return fitting(found, "OpenCL device", platform, device, mend=GET)


class Connection:
    """A device with a context and a queue that takes times."""

    def __init__(self, device: Device) -> None:
        _opened.check()
        cl = _cl()
        self.device = device
        self.context = cl.Context([device.handle])
        self.queue = cl.CommandQueue(self.context, device.handle, cl.command_queue_properties.PROFILING_ENABLE)
        self._modules: dict[str, Module] = {}
        self._lock = threading.Lock()
        self.waiting = Waiting(self, cl.enqueue_nd_range_kernel) if may_wait(device) else None

    def build(self, source: str, options: Sequence[str] = (), cache: BinaryCache | None = None) -> Module:
        """Compiles a source text, or finds it compiled: in this process, then in the cache given.

        Raises DeviceError with the compiler's words where the source does not compile.
        """
        _opened.check()
        d = self.device
        name = key(["opencl", source, *options, "|", d.platform, d.platform_version, d.name, d.driver_version])
        with self._lock:
            module = self._modules.get(name)
            if module is None:
                program = self._from_cache(name, options, cache) or self._from_source(name, source, options, cache)
                module = self._modules[name] = Module(self, program)
        return module

    def _from_cache(self, name: str, options: Sequence[str], cache: BinaryCache | None) -> Any:
        binary = cache.get(name) if cache is not None else None
        if cache is None or binary is None:
            return None
        cl = _cl()
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                return cl.Program(self.context, [self.device.handle], [binary]).build(list(options))
        except cl.Error:  # whole, but this driver will not have it
            cache.drop(name)
            return None

    def _from_source(self, name: str, source: str, options: Sequence[str], cache: BinaryCache | None) -> Any:
        cl = _cl()
        if self.device.platform == POCL:
            return self._from_pocl(source, options)
        program = self._compiled(source, options)
        if cache is not None:
            cache.put(name, program.get_info(cl.program_info.BINARIES)[0])
        return program

    def _from_pocl(self, source: str, options: Sequence[str]) -> Any:
        """Built by PoCL, which may have kept it; what it keeps and is damaged is made anew."""
        directory, start = check_pocl_cache(), time.time()
        program = self._compiled(source, options)
        lost = not program.get_info(_cl().program_info.KERNEL_NAMES)
        drop_damaged(directory, start, bitcode=lost)
        if not lost:
            return program
        # What was read of damaged bitcode stays in PoCL's context, and it aborts where such a context ends: this one never does.
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(self.context))
        return self._compiled(source, options)

    def _compiled(self, source: str, options: Sequence[str]) -> Any:
        cl = _cl()
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # the compiler's remarks come as Python warnings
                return cl.Program(self.context, source).build(list(options))
        except cl.Error as error:
            raise DeviceError(
                "compile-failed", f"{self.device} does not compile the kernel\n{error}", mend="report it: the text is ours"
            ) from None

    def tensor_map(self, map: TensorMap, buffer: Any) -> bytes:
        raise DeviceError("tensor-map", "OpenCL has no copies of boxes", mend="loads without them")

    def allocate(self, size_bytes: int) -> Any:
        """Device memory, for workspace. Raises DeviceError where there is not enough."""
        cl = _cl()
        try:
            return cl.Buffer(self.context, cl.mem_flags.READ_WRITE, max(1, size_bytes))
        except cl.Error as error:
            raise _out_of_memory(size_bytes, self.device, error) from None

    def upload(self, array: Any) -> Any:
        """Device memory of its own with what a contiguous NumPy array holds."""
        cl = _cl()
        if array.nbytes == 0:
            return self.allocate(1)
        try:
            return cl.Buffer(self.context, cl.mem_flags.READ_WRITE | cl.mem_flags.COPY_HOST_PTR, hostbuf=as_bytes(array))
        except cl.Error as error:
            raise _out_of_memory(array.nbytes, self.device, error) from None

    def host_array(self, array: Any, role: str, queue: Any) -> HostArray:
        return HostArray(self, array, role != "input")

    def queue_of(self, arrays: Sequence[Any]) -> Any:
        """The first queue that one of these pyopencl arrays was made with."""
        return next((a.queue for a in arrays if a.queue is not None), None)

    def take(self, name: str, array: Any, queue: Any) -> DeviceArray:
        """A pyopencl array as an argument. Its own queue orders what fills it; another one is the caller's to order."""
        contiguous, base, offset = array.flags.c_contiguous, array.base_data, array.offset
        buffer = device_buffer(self, base, offset, array.nbytes) if contiguous else None
        return DeviceArray(array.shape, array.dtype, contiguous, True, buffer, base, offset, array.nbytes)

    def hand_back(self, arrays: Sequence[Any], queue: Any) -> None:
        """Nothing is to be done: the arrays' queue is the one launched on."""

    def empty(self, shape: tuple[int, ...], type: Any, queue: Any, like: Any) -> Any:
        """A new pyopencl array."""
        import pyopencl.array

        return pyopencl.array.empty(queue or self.queue, shape, type)

    def finish(self, queue: Any = None) -> None:
        (queue or self.queue).finish()


def _out_of_memory(size_bytes: int, device: Device, error: Exception) -> DeviceError:
    return DeviceError("out-of-memory", f"{size_bytes} bytes on {device}: {error}", mend="smaller tensors")


def may_wait(device: Device) -> bool:
    """Whether the device's threads wait for the next launch: PoCL's, where that is possible, unless TILELANG_ACTIVE_WAIT=0."""
    return device.platform == POCL and can_wait(device.compute_units) and Options.from_environment().active_wait


@functools.cache
def connect(device: Device) -> Connection:
    """The one connection to a device."""
    return Connection(device)


class Module:
    """A compiled source text."""

    def __init__(self, connection: Connection, program: Any) -> None:
        self.connection, self.program = connection, program

    def function(self, name: str, grid: Sequence[int], threads: int, shared_bytes: int) -> Function:
        """A kernel of the module, ready to launch.

        Raises DeviceError where the device cannot run it: too many threads, or too much shared memory (which PoCL would not
        refuse but crash on).
        """
        check_limits(self.connection.device, name, grid, threads, shared_bytes)
        return Function(self, name, tuple(grid), threads)


class Function:
    """A kernel with its launch shape. Calling it enqueues one launch and gives its event (None for a grid of no blocks)."""

    def __init__(self, module: Module, name: str, grid: tuple[int, ...], threads: int) -> None:
        cl, waiting = _cl(), module.connection.waiting
        self.name, self.queue = name, module.connection.queue
        self._enqueue = cl.enqueue_nd_range_kernel if waiting is None else waiting.launch
        self.kernel = cl.Kernel(module.program, name)
        self.empty = 0 in grid
        self.global_size = (grid[0] * threads, *grid[1:])
        self.local_size = (threads, *(1 for _ in grid[1:]))
        self._lock = threading.Lock()  # arguments stay in the kernel between setting and launching

    def __call__(self, buffers: Sequence[Any], queue: Any = None) -> Any:
        """Launches on buffers in the order of the kernel's arguments; on the connection's queue, or another of its context."""
        _opened.check()
        if self.empty:
            return None
        with self._lock:
            try:
                self.kernel.set_args(*buffers)
                return self._enqueue(queue or self.queue, self.kernel, self.global_size, self.local_size)
            except (_cl().Error, TypeError) as error:
                reason = str(error).splitlines()[0].split(" - ")[0]
                mend = "device buffers, and a queue, of kernel.queue's context"
                raise DeviceError("launch-failed", f"{self.name} could not be launched: {reason}", mend=mend) from None

    timed = __call__  # every launch has an event


def seconds(event: Any) -> float:
    """How long a launch ran on the device; waits for it."""
    event.wait()
    return float(event.profile.end - event.profile.start) * 1e-9


# ---------------------------------------------------------------- arguments


_IS_ARRAY: dict[type, bool] = {}  # whether a type is pyopencl.array.Array


def is_device_array(value: Any) -> bool:
    """Whether an argument is a pyopencl.array.Array, told without importing pyopencl."""
    try:
        return _IS_ARRAY[type(value)]
    except KeyError:
        kind = type(value)
        found = _IS_ARRAY[kind] = any(c.__module__ == "pyopencl.array" and c.__name__ == "Array" for c in kind.__mro__)
        return found


def describe(value: Any) -> tuple[tuple[int, ...], Any]:
    """Shape and NumPy type of a pyopencl array."""
    return value.shape, value.dtype


def check_queue(queue: Any) -> None:
    """Raises DeviceError where a queue is none of pyopencl's."""
    if not isinstance(queue, _cl().CommandQueue):
        raise DeviceError(
            "bad-queue", f"queue={brief(queue)} is no queue", mend="kernel.queue, or a pyopencl.CommandQueue of its context"
        )


def device_buffer(connection: Connection, base: Any, offset: int, size_bytes: int) -> Any:
    """The buffer that a pyopencl array is in, from where it begins.

    Raises DeviceError where the array lives in another context, or begins where the device cannot address it.
    """
    if base is None:  # no elements
        return connection.allocate(1)
    if base.context != connection.context:
        raise DeviceError(
            "other-context",
            "the array lives in another OpenCL context than the kernel",
            mend="make it with kernel.queue, as in pyopencl.array.to_device(kernel.queue, x)",
        )
    if not offset:
        return base
    cl = _cl()
    try:
        return base.get_sub_region(offset, max(1, size_bytes))
    except cl.Error:
        align = connection.device.handle.mem_base_addr_align // 8
        raise DeviceError(
            "unaligned-array",
            f"the array begins {offset} bytes into its buffer",
            mend=f"copy it, or begin at a multiple of {align} bytes",
        ) from None


class HostArray:
    """A NumPy array as an argument of one launch.

    Contiguous arrays only; `land` brings results back, waiting for them. The array is kept alive as long as this object.
    """

    __slots__ = ("_array", "_buffer", "_connection", "_written")

    def __init__(self, connection: Connection, array: Any, written: bool) -> None:
        cl = _cl()
        flags = cl.mem_flags
        self._connection, self._array, self._written = connection, array, written
        if array.nbytes == 0:
            self._buffer = connection.allocate(1)
        elif connection.device.host_memory:
            access = flags.READ_WRITE if array.flags.writeable else flags.READ_ONLY
            self._buffer = cl.Buffer(connection.context, access | flags.USE_HOST_PTR, hostbuf=as_bytes(array))
        else:
            self._buffer = cl.Buffer(connection.context, flags.READ_WRITE | flags.COPY_HOST_PTR, hostbuf=as_bytes(array))

    @property
    def buffer(self) -> Any:
        return self._buffer

    def land(self, queue: Any = None) -> None:
        """Waits until the array holds what kernels enqueued before have written."""
        if not self._written or self._array.nbytes == 0:
            return
        cl, queue, device = _cl(), queue or self._connection.queue, self._connection.device
        if device.host_memory and device.platform == POCL:
            queue.finish()
        elif device.host_memory:  # mapping is what makes the host's memory current
            import numpy as np

            mapped, _ = cl.enqueue_map_buffer(queue, self._buffer, cl.map_flags.READ, 0, (self._array.nbytes,), np.uint8)
            mapped.base.release(queue)
        else:
            cl.enqueue_copy(queue, as_bytes(self._array), self._buffer)
