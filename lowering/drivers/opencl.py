"""OpenCL through pyopencl, which is imported on first use: devices, builds, memory, launches, times. Knows no IR.

What PoCL compiled runs as functions of this process where that can be, over NumPy arrays and device memory of ours and over
`pyopencl.array.Array`s; other buffers, and other platforms, by their queue. Arrays of pyopencl are used in order with their queue's
other work when that queue is the one launched on.
"""

from __future__ import annotations

import ctypes
import functools
import logging
import platform as machine
import sys
import threading
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from tilelang.errors import DeviceError, brief
from tilelang.lowering.drivers.cache import BinaryCache, key
from tilelang.lowering.drivers.host_threads import HostFunction, cores
from tilelang.lowering.drivers.interface import KINDS, Device, DeviceArray, OpenedBy, as_bytes, check_limits, fitting
from tilelang.lowering.drivers.opencl_memory import POCL as POCL
from tilelang.lowering.drivers.opencl_memory import ArrayPlaces, HostMemory, address_of, device_buffer
from tilelang.lowering.drivers.opencl_memory import HostArray as HostArray
from tilelang.lowering.drivers.pocl_cache import drop_damaged
from tilelang.lowering.drivers.pocl_functions import Hosting
from tilelang.lowering.drivers.tensor_maps import TensorMap
from tilelang.options import Options, check_pocl_cache, prepare_opencl

GET = "pip install 'pyopencl[pocl]' runs kernels on the processor; for a graphics processor install its vendor's OpenCL driver"

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
    platform, units = handle.platform.name.strip(), handle.max_compute_units
    return Device(
        driver="opencl",
        name=handle.name.strip(),
        platform=platform,
        kind=_TYPES.get(handle.type & 30, "custom"),
        driver_version=handle.driver_version,
        platform_version=handle.platform.version,
        compute_units=max(1, min(units, int(cores()))) if platform == POCL else units,
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
    for one in platforms:
        try:
            found += [_describe(handle) for handle in one.get_devices()]
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
        self.hosting = self._hosting()
        self._beside = cl.CommandQueue(self.context, device.handle)  # on which nothing waits
        self.places = ArrayPlaces(self._beside)

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
                functions = self.hosting.functions(source, options) if self.hosting is not None else {}

                def program() -> Any:
                    return self._from_cache(name, options, cache) or self._from_source(name, source, options, cache)

                module = self._modules[name] = Module(self, functions, program)
        return module

    def _hosting(self) -> Hosting | None:
        """What runs kernels as functions of this process; None where the device does not compute in it, or that cannot be had."""
        if not can_host(self.device):
            return None
        try:
            return Hosting(self.queue, self._from_pocl, self.device.compute_units, Options.from_environment().active_wait)
        except (DeviceError, OSError) as error:
            logging.getLogger("tilelang").warning("kernels are launched by OpenCL's queue, which takes longer: %s", error)
            return None

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
        if self.device.platform == POCL:  # which keeps what it compiles; a binary from it would cost another compilation
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
            return self._placed(cl.Buffer(self.context, cl.mem_flags.READ_WRITE, max(1, size_bytes)))
        except cl.Error as error:
            raise _out_of_memory(size_bytes, self.device, error) from None

    def upload(self, array: Any) -> Any:
        """Device memory of its own with what a contiguous NumPy array holds."""
        cl = _cl()
        if array.nbytes == 0:
            return self.allocate(1)
        try:
            flags = cl.mem_flags.READ_WRITE | cl.mem_flags.COPY_HOST_PTR
            return self._placed(cl.Buffer(self.context, flags, hostbuf=as_bytes(array)))
        except cl.Error as error:
            raise _out_of_memory(array.nbytes, self.device, error) from None

    def _placed(self, buffer: Any) -> Any:
        """A buffer as launches take it: with its address, where kernels are functions of this process."""
        return buffer if self.hosting is None else HostMemory(address_of(self._beside, buffer), buffer)

    def image(self, pixels: Any) -> Any:
        """An image with what a NumPy array of (rows, columns, 4) floats holds. Raises DeviceError where there is not enough memory."""
        cl = _cl()
        flags, kind = cl.mem_flags, cl.ImageFormat(cl.channel_order.RGBA, cl.channel_type.FLOAT)
        try:
            return cl.create_image(self.context, flags.READ_ONLY | flags.COPY_HOST_PTR, kind, pixels.shape[1::-1], hostbuf=pixels)
        except (cl.Error, MemoryError) as error:
            raise _out_of_memory(pixels.nbytes, self.device, error) from None

    def host_array(self, array: Any, role: str, queue: Any) -> HostArray:
        return HostArray(self, array, role != "input")

    def queue_of(self, arrays: Sequence[Any]) -> Any:
        """The first queue that one of these pyopencl arrays was made with."""
        return next((a.queue for a in arrays if a.queue is not None), None)

    def take(self, name: str, array: Any, queue: Any) -> DeviceArray:
        """A pyopencl array as an argument. Its own queue orders what fills it; another one is the caller's to order."""
        contiguous, base, offset = array.flags.c_contiguous, array.base_data, array.offset
        buffer = device_buffer(self, base, offset, array.nbytes) if contiguous else None
        if buffer is not None and self.hosting is not None and array.nbytes:
            buffer = HostMemory(self.places.of(array, buffer), buffer)
        return DeviceArray(array.shape, array.dtype, contiguous, True, buffer, base, offset, array.nbytes)

    def hand_back(self, arrays: Sequence[Any], queue: Any) -> None:
        """Nothing is to be done: the arrays' queue is the one launched on."""

    def empty(self, shape: tuple[int, ...], type: Any, queue: Any, like: Any) -> Any:
        """A new pyopencl array."""
        import pyopencl.array

        return pyopencl.array.empty(queue or self.queue, shape, type)

    def finish(self, queue: Any = None) -> None:
        try:
            (queue or self.queue).finish()
        except _cl().Error as error:
            raise _failed(error) from None


def _failed(error: Exception) -> DeviceError:
    return DeviceError("kernel-failed", f"a kernel ended with an error: {error}", mend="smaller blocks, or another schedule")


def _out_of_memory(size_bytes: int, device: Device, error: Exception) -> DeviceError:
    return DeviceError("out-of-memory", f"{size_bytes} bytes on {device}: {error}", mend="smaller tensors")


def can_host(device: Device) -> bool:
    """Whether kernels for a device can be functions of this process: PoCL's, on the system that our threads are written for."""
    if device.platform != POCL or not device.host_memory or (sys.platform, machine.machine()) != ("linux", "x86_64"):
        return False
    return "rdtscp" in Path("/proc/cpuinfo").read_text().split()  # by which threads know their cores


@functools.cache
def connect(device: Device) -> Connection:
    """The one connection to a device."""
    return Connection(device)


class Module:
    """A compiled source text. functions: where its kernels are that are functions of this process; program: gives PoCL's, or another
    platform's, program."""

    def __init__(self, connection: Connection, functions: Mapping[str, tuple[int, int]], program: Callable[[], Any]) -> None:
        self.connection, self.functions, self._program, self._lock = connection, functions, program, threading.Lock()
        if not functions:
            _ = self.program

    @functools.cached_property
    def program(self) -> Any:
        """What OpenCL has compiled."""
        with self._lock:
            return self._program()

    def function(self, name: str, grid: Sequence[int], threads: int, shared_bytes: int) -> Function:
        """A kernel of the module, ready to launch.

        Raises DeviceError where the device cannot run it: too many threads, or too much shared memory (which PoCL would not
        refuse but crash on).
        """
        check_limits(self.connection.device, name, grid, threads, shared_bytes)
        hosting, hosted = self.connection.hosting, None
        if hosting is not None and name in self.functions and hosting.can_run(grid, threads, shared_bytes):
            hosted = hosting.threads.function(*self.functions[name], grid)
        return Function(self, name, tuple(grid), threads, hosted)


class Function:
    """A kernel with its launch shape. Calling it enqueues one launch and gives its event (None for a grid of no blocks).

    hosted: what runs it in this process, at once, where all its arguments are in the host's memory.
    """

    def __init__(self, module: Module, name: str, grid: tuple[int, ...], threads: int, hosted: HostFunction | None) -> None:
        self.name, self.queue, self._module, self._hosted = name, module.connection.queue, module, hosted
        self.empty = 0 in grid
        self.global_size = (grid[0] * threads, *grid[1:])
        self.local_size = (threads, *(1 for _ in grid[1:]))
        self._lock = threading.Lock()  # arguments stay in the kernel between setting and launching

    @functools.cached_property
    def kernel(self) -> Any:
        """OpenCL's kernel."""
        return _cl().Kernel(self._module.program, self.name)

    def __call__(self, buffers: Sequence[Any], queue: Any = None) -> Any:
        """Launches on buffers in the order of the kernel's arguments; on the connection's queue, or another of its context."""
        _opened.check()
        if self.empty:
            return None
        if self._hosted is not None:
            addresses = [b.address for b in buffers if isinstance(b, HostMemory)]
            if len(addresses) == len(buffers):  # OpenCL's buffers do not say where they are
                return self._here(self._hosted, addresses, queue or self.queue)
        with self._lock:
            try:
                self.kernel.set_args(*[b.opencl if isinstance(b, HostMemory) else b for b in buffers])
                return _cl().enqueue_nd_range_kernel(queue or self.queue, self.kernel, self.global_size, self.local_size)
            except (_cl().Error, TypeError) as error:
                raise self._refused(str(error).splitlines()[0].split(" - ")[0]) from None

    def _here(self, hosted: HostFunction, addresses: list[int], queue: Any) -> Ran:
        """Runs all blocks in this process, after what was enqueued."""
        if queue is not self.queue and queue.context != self.queue.context:
            raise self._refused("the queue is of another context")
        queue.finish()
        start = time.perf_counter()
        hosted(addresses)
        return Ran(time.perf_counter() - start)

    def _refused(self, why: str) -> DeviceError:
        mend = "device buffers, and a queue, of kernel.queue's context"
        return DeviceError("launch-failed", f"{self.name} could not be launched: {why}", mend=mend)

    timed = __call__  # every launch has an event


class Ran:
    """The event of a launch that is over. seconds: how long it took."""

    __slots__ = ("seconds",)

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds

    def wait(self) -> None:
        """Returns at once, as with events of OpenCL."""


def seconds(event: Any) -> float:
    """How long a launch ran on the device; waits for it."""
    if isinstance(event, Ran):
        return event.seconds
    try:
        event.wait()
        return float(event.profile.end - event.profile.start) * 1e-9
    except _cl().Error as error:
        raise _failed(error) from None


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
