"""The OpenCL driver, through pyopencl, which is imported on first use: devices, builds, memory, launches, times. Independent of the IR.

Devices that cannot compile an empty kernel are excluded, with their compiler's message as the reason. Launches go through a queue.
Devices that compute in host memory use NumPy arrays in place; for others they are copied. pyopencl arrays are ordered with other work
on their queue if that queue is the one launched on.
"""

from __future__ import annotations

import contextlib
import functools
import textwrap
import threading
import warnings
from collections.abc import Callable, Sequence
from typing import Any

from tilelang.errors import DeviceError, brief
from tilelang.lowering.drivers.cache import BinaryCache, key
from tilelang.lowering.drivers.cores import usable_cores
from tilelang.lowering.drivers.interface import KINDS, Device, DeviceArray, OpenedBy, as_bytes, check_limits, fitting
from tilelang.lowering.drivers.opencl_memory import HostArray as HostArray
from tilelang.lowering.drivers.opencl_memory import device_buffer, failed
from tilelang.lowering.drivers.process_lock import OnceForEach
from tilelang.lowering.drivers.tensor_maps import TensorMap
from tilelang.options import prepare_opencl

POCL = "Portable Computing Language"
# PoCL 3 miscompiles barriers in loops and under conditions, or never finishes compiling; later versions have not been tried without.
POCL_NEEDS = ("unconditional_barriers", "barrier_at_loop_end", "diverge_tail_conditions")
GET = "the OpenCL driver of the GPU's vendor, or pip install 'tilelang-rtile[pocl]' for the processor (x86-64 Linux)"

_opened = OpenedBy("OpenCL")

_TYPES = {2: "cpu", 4: "gpu", 8: "accelerator", 16: "custom"}  # CL_DEVICE_TYPE_*


@functools.cache
def _cl() -> Any:
    """The module pyopencl. Raises DeviceError if it is not installed or finds no loader."""
    prepare_opencl()
    try:
        import pyopencl  # late: an optional library
    except ImportError as error:
        raise DeviceError("no-driver", f"pyopencl cannot be imported: {error}", help="pip install 'pyopencl[pocl]'") from None
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
        compute_units=min(units, usable_cores()) if platform == POCL else units,
        max_threads=handle.max_work_group_size,
        shared_bytes=handle.local_mem_size,
        global_bytes=handle.global_mem_size,
        host_memory=bool(handle.host_unified_memory) and bool(handle.type & 2),
        vector_bytes=4 * handle.native_vector_width_float if handle.type & 2 else 0,
        workarounds=POCL_NEEDS if platform == POCL else (),
        details=f"{handle.version.strip()}, cache of {handle.global_mem_cache_size} bytes",
        handle=handle,
    )


EMPTY_KERNEL = "__kernel void nothing(void) {}\n"


def devices() -> tuple[Device, ...]:
    """All OpenCL devices that compile kernels, best first: GPUs, then accelerators, then by number of compute units.

    Empty if there are no devices. Raises DeviceError if pyopencl is missing, or if no device compiles an empty kernel.
    """
    found, unusable = _probed()
    if unusable and not found:
        raise _cannot_compile(unusable)
    return found


def unusable_devices() -> tuple[tuple[Device, str], ...]:
    """The devices that do not compile an empty kernel, each with the first lines of its compiler's message.

    Raises DeviceError if pyopencl is missing.
    """
    return _probed()[1]


@functools.cache
def _probed() -> tuple[tuple[Device, ...], tuple[tuple[Device, str], ...]]:
    """The devices that compile an empty kernel, best first; and the others, each with the reason.

    Each process probes again (30 ms, because drivers cache compilations): a result on disk would outlive a driver update.
    """
    cl = _cl()
    _opened.here()
    found = []
    try:
        platforms = cl.get_platforms()
    except cl.Error:  # the loader knows no platform
        return (), ()
    for one in platforms:
        try:
            found += [_describe(handle) for handle in one.get_devices()]
        except cl.Error:  # a platform without hardware
            continue
    found.sort(key=lambda d: (KINDS.index(d.kind), -d.compute_units))
    reasons = [_why_unusable(device) for device in found]
    usable = tuple(device for device, why in zip(found, reasons, strict=True) if why is None)
    return usable, tuple((device, why) for device, why in zip(found, reasons, strict=True) if why is not None)


def _why_unusable(device: Device) -> str | None:
    """The reason why a device does not compile an empty kernel, in one line of its compiler's message; None if it does."""
    cl = _cl()
    try:
        compile_program(cl.Context([device.handle]), device.handle, EMPTY_KERNEL, ())
    except cl.Error as error:  # of the context
        return _first_lines(str(error))
    except DeviceError as error:
        return _first_lines(error.message.partition("\n")[2] or error.message)
    return None


def _first_lines(text: str, count: int = 3, most: int = 300) -> str:
    """The first non-empty lines of a text, as one line."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return textwrap.shorten("; ".join(lines[:count]), most, placeholder=" ...")


def _cannot_compile(unusable: Sequence[tuple[Device, str]]) -> DeviceError:
    said = "; ".join(f"{device} cannot compile an empty kernel: {why}" for device, why in unusable)
    return DeviceError(
        "no-device", f"no OpenCL device can be used: {said}", help="use another OpenCL driver for the device, or a newer one"
    )


def choose(platform: str | None = None, device: str | None = None) -> Device:
    """The best device whose platform and name contain the given parts, ignoring case.

    Raises DeviceError if there is none, listing the others; `no-device` with the reason if a match cannot compile.
    """
    found = devices()
    try:
        return fitting(found, "OpenCL device", platform, device, help=GET)
    except DeviceError:
        asked = [(d, why) for d, why in unusable_devices() if _fits(d, platform, device)] if found else []
        if asked:
            raise _cannot_compile(asked) from None
        raise


def _fits(one: Device, platform: str | None, device: str | None) -> bool:
    """Whether a device's platform and name contain the given parts, ignoring case."""
    return (platform or "").casefold() in one.platform.casefold() and (device or "").casefold() in one.name.casefold()


def compile_program(context: Any, handle: Any, source: str, options: Sequence[str]) -> Any:
    """Compiles a text for a device. Raises DeviceError with the compiler's message if it does not compile.

    pyopencl's own disk cache is bypassed, because it holds pickles, which run code when they are read.
    """
    cl = _cl()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # compiler messages arrive as Python warnings
        program = cl.Program(context, source)
        try:
            program.get_info(cl.program_info.NUM_DEVICES)  # creates it now: only programs created by `build` use the cache
            program.build(list(options), [handle])
            names = program.get_info(cl.program_info.KERNEL_NAMES)
        except cl.Error as error:
            raise _not_built(program, handle, error) from None
    if names or "__kernel" not in source:
        return program
    message = f"{handle.name.strip()} returns a program without kernels, as PoCL does for a file in its cache that it cannot read"
    raise DeviceError("build-failed", message, help="set POCL_KERNEL_CACHE=0, or POCL_CACHE_DIR to an empty directory")


def _not_built(program: Any, handle: Any, error: Any) -> DeviceError:
    """The error of a failed build: the compiler's message if there is one, else OpenCL's name of the status."""
    cl = _cl()
    device, code, said = handle.name.strip(), cl.status_code, str(error).splitlines()[0]
    of_text = error.code in (code.BUILD_PROGRAM_FAILURE, code.COMPILE_PROGRAM_FAILURE, code.LINK_PROGRAM_FAILURE)
    if of_text or error.code == code.INVALID_BUILD_OPTIONS:
        with contextlib.suppress(cl.Error):
            said = program.get_build_info(handle, cl.program_build_info.LOG).strip() or said
    if of_text:
        return DeviceError(
            "compile-failed", f"{device} does not compile the kernel\n{said}", help="report it, since the source is generated"
        )
    if error.code == code.INVALID_BUILD_OPTIONS:
        help = "check PYOPENCL_BUILD_OPTIONS and the driver's own environment variables"
        return DeviceError("build-options", f"{device} refuses an option of the build\n{said}", help=help)
    return DeviceError(
        "build-failed", f"{device} cannot build the kernel\n{said}", help="free memory, or use another OpenCL driver"
    )


class Connection:
    """A device with a context and a profiling queue."""

    address: Callable[[Any], int] | None = None  # launches take device buffers

    def __init__(self, device: Device) -> None:
        _opened.check()
        cl = _cl()
        self.device = device
        self.context = cl.Context([device.handle])
        self.queue = cl.CommandQueue(self.context, device.handle, cl.command_queue_properties.PROFILING_ENABLE)
        self._modules: dict[str, Module] = {}
        self._lock = threading.Lock()

    def build(self, source: str, options: Sequence[str] = (), cache: BinaryCache | None = None) -> Module:
        """Compiles a source text, unless it is found compiled in this process or in the given cache.

        Raises DeviceError with the compiler's message if the source does not compile.
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
        except cl.Error:  # intact, but rejected by this driver
            cache.drop(name)
            return None

    def _from_source(self, name: str, source: str, options: Sequence[str], cache: BinaryCache | None) -> Any:
        program = compile_program(self.context, self.device.handle, source, options)
        if cache is not None and self.device.platform != POCL:  # PoCL has its own cache, and would recompile to get a binary
            cache.put(name, program.get_info(_cl().program_info.BINARIES)[0])
        return program

    def tensor_map(self, map: TensorMap, buffer: Any) -> bytes:
        raise DeviceError("tensor-map", "OpenCL has no TMA copies", help="use loads without TMA")

    def allocate(self, size_bytes: int) -> Any:
        """Device memory, for workspace. Raises DeviceError if there is not enough."""
        cl = _cl()
        try:
            return cl.Buffer(self.context, cl.mem_flags.READ_WRITE, max(1, size_bytes))
        except cl.Error as error:
            raise _out_of_memory(size_bytes, self.device, error) from None

    def upload(self, array: Any) -> Any:
        """New device memory with a copy of a contiguous NumPy array."""
        cl = _cl()
        if array.nbytes == 0:
            return self.allocate(1)
        try:
            flags = cl.mem_flags.READ_WRITE | cl.mem_flags.COPY_HOST_PTR
            return cl.Buffer(self.context, flags, hostbuf=as_bytes(array))
        except cl.Error as error:
            raise _out_of_memory(array.nbytes, self.device, error) from None

    def image(self, pixels: Any) -> Any:
        """An image with the values of a NumPy array of (rows, columns, 4) floats. Raises DeviceError if there is not enough memory."""
        cl = _cl()
        flags, kind = cl.mem_flags, cl.ImageFormat(cl.channel_order.RGBA, cl.channel_type.FLOAT)
        try:
            return cl.create_image(self.context, flags.READ_ONLY | flags.COPY_HOST_PTR, kind, pixels.shape[1::-1], hostbuf=pixels)
        except (cl.Error, MemoryError) as error:
            raise _out_of_memory(pixels.nbytes, self.device, error) from None

    def host_array(self, array: Any, role: str, queue: Any) -> HostArray:
        return HostArray(self, array, role != "input")

    def queue_of(self, arrays: Sequence[Any]) -> Any:
        """The first queue attached to one of these pyopencl arrays."""
        return next((a.queue for a in arrays if a.queue is not None), None)

    def take(self, name: str, array: Any, queue: Any) -> DeviceArray:
        """A pyopencl array as an argument. Its own queue orders the work that fills it; for any other queue the caller must do so."""
        contiguous, base, offset = array.flags.c_contiguous, array.base_data, array.offset
        buffer = device_buffer(self, base, offset, array.nbytes) if contiguous else None
        return DeviceArray(array.shape, array.dtype, contiguous, True, buffer, base, offset, array.nbytes)

    def hand_back(self, arrays: Sequence[Any], queue: Any) -> None:
        """Does nothing: the arrays' queue is the one launched on."""

    def empty(self, shape: tuple[int, ...], type: Any, queue: Any, like: Any) -> Any:
        """A new pyopencl array."""
        import pyopencl.array  # late: an optional library

        return pyopencl.array.empty(queue or self.queue, shape, type)

    def finish(self, queue: Any = None) -> None:
        try:
            (queue or self.queue).finish()
        except _cl().Error as error:
            raise failed(error) from None


def _out_of_memory(size_bytes: int, device: Device, error: Exception) -> DeviceError:
    return DeviceError("out-of-memory", f"{size_bytes} bytes on {device}: {error}", help="use smaller tensors")


@OnceForEach
def connect(device: Device) -> Connection:
    """The connection to a device; there is one per device."""
    return Connection(device)


class Module:
    """A compiled source text. program: pyopencl's."""

    def __init__(self, connection: Connection, program: Any) -> None:
        self.connection, self.program = connection, program

    def function(self, name: str, grid: Sequence[int], threads: int, shared_bytes: int) -> Function:
        """A kernel of the module, ready to launch.

        Raises DeviceError if the device cannot run it: too many threads, or too much shared memory (on which PoCL would crash instead
        of reporting an error).
        """
        check_limits(self.connection.device, name, grid, threads, shared_bytes)
        return Function(self, name, tuple(grid), threads)


class Function:
    """A kernel with its launch shape. A call enqueues one launch and returns its event (None for an empty grid)."""

    def __init__(self, module: Module, name: str, grid: tuple[int, ...], threads: int) -> None:
        self.name, self.queue, self._module = name, module.connection.queue, module
        self.empty = 0 in grid
        self.global_size = (grid[0] * threads, *grid[1:])
        self.local_size = (threads, *(1 for _ in grid[1:]))
        self._spare: list[Any] = []  # idle kernel objects: arguments belong to the object between setting and launching

    def __call__(self, buffers: Sequence[Any], queue: Any = None) -> Any:
        """Launches with buffers in the order of the kernel's arguments, on the connection's queue or another of its context."""
        _opened.check()
        if self.empty:
            return None
        cl = _cl()
        try:
            kernel = self._spare.pop()
        except IndexError:
            kernel = cl.Kernel(self._module.program, self.name)
        try:
            kernel.set_args(*buffers)
            return cl.enqueue_nd_range_kernel(queue or self.queue, kernel, self.global_size, self.local_size)
        except (cl.Error, TypeError) as error:
            said = str(error).splitlines()[0].split(" - ")[0]
            help = "pass device buffers and a queue of kernel.queue's context"
            raise DeviceError("launch-failed", f"{self.name} could not be launched: {said}", help=help) from None
        finally:
            self._spare.append(kernel)

    timed = __call__  # every launch has an event


def seconds(event: Any) -> float:
    """The time that a launch took on the device; waits for it."""
    try:
        event.wait()
        return float(event.profile.end - event.profile.start) * 1e-9
    except _cl().Error as error:
        raise failed(error) from None


# ---------------------------------------------------------------- arguments


_IS_ARRAY: dict[type, bool] = {}  # whether a type is pyopencl.array.Array


def is_device_array(value: Any) -> bool:
    """Whether an argument is a pyopencl.array.Array, determined without importing pyopencl."""
    try:
        return _IS_ARRAY[type(value)]
    except KeyError:
        kind = type(value)
        found = _IS_ARRAY[kind] = any(c.__module__ == "pyopencl.array" and c.__name__ == "Array" for c in kind.__mro__)
        return found


def describe(value: Any) -> tuple[tuple[int, ...], Any]:
    """The shape and NumPy type of a pyopencl array."""
    return value.shape, value.dtype


def as_queue(queue: Any) -> Any:
    """The queue itself. Raises DeviceError if it is not a pyopencl queue."""
    if not isinstance(queue, _cl().CommandQueue):
        raise DeviceError(
            "bad-queue",
            f"queue={brief(queue)} is not a queue",
            help="pass kernel.queue, or a pyopencl.CommandQueue of its context",
        )
    return queue
