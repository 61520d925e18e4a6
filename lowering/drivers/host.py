"""The CPU driver: kernels are functions in this process, called by a pool of threads, and arrays are used in place.

A launch has finished when it returns, so there are no queues and nothing to wait for. Launches take addresses: of NumPy arrays, of
memory allocated here, and of host arrays of any library, which computations/arguments.py wraps as NumPy arrays without a copy. The
compiler is needed only to build a kernel, not to describe devices.
"""

from __future__ import annotations

import ctypes
import dataclasses
import functools
import math
import struct
import time
import weakref
from collections import deque
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from tilelang.errors import DeviceError, brief
from tilelang.lowering.compilers import interface as compilers
from tilelang.lowering.drivers import host_pool
from tilelang.lowering.drivers.cache import BinaryCache, key
from tilelang.lowering.drivers.cores import usable_cores
from tilelang.lowering.drivers.extensions import allow_tiles
from tilelang.lowering.drivers.host_pool import Memory, Pool, aligned_memory
from tilelang.lowering.drivers.interface import Device, DeviceArray, as_bytes, check_limits, fitting
from tilelang.lowering.drivers.loader import Library, load_library
from tilelang.lowering.drivers.process_lock import OnceForEach, ProcessLock
from tilelang.lowering.drivers.processor import ARM64, X86_64, Processor, processor
from tilelang.lowering.limits import MOST_SCRATCH_BYTES
from tilelang.options import Options

if TYPE_CHECKING:
    from tilelang.lowering.compilers.compiled import Compiled
    from tilelang.lowering.drivers.interface import HostArray as HostArrayProtocol
    from tilelang.lowering.drivers.tensor_maps import TensorMap

NATIVE = "native"  # the platform's name, and the architecture name for this machine
MOST_THREADS = 4096  # per block; they are loop iterations
LEAST_SCRATCH_BYTES = 256 << 10
MOST_RECENT = 256  # unused modules that are kept


@functools.cache
def devices() -> tuple[Device, ...]:
    """The CPU. Raises DeviceError if nothing can be compiled for it, or if TILELANG_THREADS is not a number."""
    found = processor()
    if found.machine not in (X86_64, ARM64):
        message = f"kernels run on x86-64 and arm64 processors, this one is {found.machine or 'unknown'}"
        raise DeviceError("no-device", message, help="use another device, or only a profile: tl.target(profile=...)")
    return (describe_processor(found, Options.from_environment().threads or usable_cores()),)


def describe_processor(found: Processor, threads: int) -> Device:
    """A CPU as a device that computes with `threads` threads."""
    caches = [c.bytes for c in found.caches if c.level == 2 and c.kind != "instruction"]
    return Device(
        driver="cpu",
        name=found.name,
        platform=NATIVE,
        kind="cpu",
        driver_version="1",
        platform_version=found.system,
        compute_units=threads,
        max_threads=MOST_THREADS,
        shared_bytes=max(LEAST_SCRATCH_BYTES, *caches, 0),
        global_bytes=found.memory_bytes,
        host_memory=True,
        architecture=NATIVE,
        vector_bytes=found.vector_bytes,
        details=found.details,
    )


def choose(platform: str | None = None, device: str | None = None) -> Device:
    """The CPU, if its names contain the given parts. Raises DeviceError if they do not."""
    return fitting(devices(), "processor", platform, device)


@OnceForEach
def connect(device: Device) -> Connection:
    """The connection to the CPU; there is only one."""
    return Connection(device)


class Connection:
    """The CPU with its thread pool."""

    @staticmethod
    def address(array: Any) -> int:
        """The address of a writable contiguous NumPy array. Raises TypeError, ValueError or BufferError for any other."""
        return _addressof(_byte_of(array))

    def __init__(self, device: Device) -> None:
        self.device, self.queue = device, None
        self._lock = ProcessLock()
        self._modules: weakref.WeakValueDictionary[str, Module] = weakref.WeakValueDictionary()
        self._recent: deque[Module] = deque(maxlen=MOST_RECENT)
        self._pool_library: Library | None = None
        waits = Options.from_environment().active_wait and device.compute_units <= usable_cores()
        self.pool = Pool(self._pool_code, device.compute_units, host_pool.WAIT_S if waits else 0.0)
        if "amx_tile" in processor().features:
            allow_tiles()

    def build(self, source: str, options: Sequence[str] = (), cache: BinaryCache | None = None) -> Module:
        """Compiles a C text, unless it is found compiled in this process or in the given cache.

        Raises DeviceError: `no-compiler`, `compile-failed` with the compiler's message, or `cannot-load`.
        """
        name = key([source, *options])
        with self._lock.held():
            module = self._modules.get(name)
            if module is None:
                self._pool_code(cache)
                code = self._compile(source, options, cache).code
                module = self._modules[name] = Module(self, load_library(code, "tilelang-kernel"))
            self._recent.append(module)
        return module

    def _compile(self, source: str, options: Sequence[str], cache: BinaryCache | None) -> Compiled:
        return compilers.load(self.device.driver).compile_source(source, self.device.architecture, options, cache)

    def _pool_code(self, cache: BinaryCache | None = None) -> Library:
        """The compiled thread pool."""
        with self._lock.held():
            if self._pool_library is None:
                # otherwise atomics are calls to a library
                inline = ("-mno-outline-atomics",) if processor().machine == ARM64 else ()
                source = host_pool.SOURCE_FILE.read_text(encoding="utf-8")
                self._pool_library = load_library(self._compile(source, inline, cache).code, "tilelang-pool")
            return self._pool_library

    def allocate(self, size_bytes: int) -> Memory:
        """Page-aligned memory, freed with the object. Raises DeviceError if there is not enough."""
        return aligned_memory(size_bytes)

    def tensor_map(self, map: TensorMap, buffer: Any) -> bytes:
        raise DeviceError("tensor-map", "a CPU has no TMA copies", help="use loads without TMA")

    def upload(self, array: Any) -> Memory:
        """New memory with a copy of a contiguous NumPy array."""
        memory = aligned_memory(array.nbytes)
        if array.nbytes:
            ctypes.memmove(int(memory), address_of(as_bytes(array)), array.nbytes)
        return memory

    def host_array(self, array: Any, role: str, queue: Any) -> HostArrayProtocol:
        """A contiguous NumPy array as an argument, used in place; copied if its elements are not aligned."""
        return HostArray(array, role != "input")

    def queue_of(self, arrays: Sequence[Any]) -> None:
        """None: launches have finished when they return."""

    def take(self, name: str, array: Any, queue: Any) -> DeviceArray:
        """A NumPy array as a device array; the runtime itself passes NumPy arrays as host arrays."""
        begin, flags = address_of(array), array.flags
        return DeviceArray(array.shape, array.dtype, flags.c_contiguous, flags.writeable, begin, NATIVE, begin, array.nbytes)

    def hand_back(self, arrays: Sequence[Any], queue: Any) -> None:
        """Does nothing: launches have finished when they return."""

    def empty(self, shape: tuple[int, ...], dtype: Any, queue: Any, like: Any) -> Any:
        """A new NumPy array."""
        import numpy as np  # late: NumPy takes long to import

        return np.empty(shape, dtype)

    def finish(self, queue: Any = None) -> None:
        """Does nothing: launches have finished when they return."""


class Module:
    """A loaded library, unloaded when neither it nor a function of it is referenced."""

    def __init__(self, connection: Connection, library: Library) -> None:
        self.connection, self.library = connection, library
        weakref.finalize(self, library.close).atexit = False  # a thread may run its code until the process ends

    def function(self, name: str, grid: Sequence[int], threads: int, shared_bytes: int) -> Function:
        """A kernel of the library, ready to launch.

        Raises DeviceError if a block has too many threads or too much shared memory, or if there is no kernel of that name.
        """
        roomy = dataclasses.replace(self.connection.device, shared_bytes=MOST_SCRATCH_BYTES)
        check_limits(roomy, name, grid, threads, shared_bytes)
        return Function(self, name, math.prod(grid), shared_bytes)


class CompletedLaunch:
    """The event of a completed launch. seconds: its duration."""

    __slots__ = ("seconds",)

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds

    def wait(self) -> None:
        """Returns at once."""


class Function:
    """A kernel with its launch shape. A call with the addresses of its arguments runs all blocks and returns when they are done."""

    __slots__ = ("at", "_given", "_launch", "_module", "_pack", "_pool", "blocks", "name")

    def __init__(self, module: Module, name: str, blocks: int, shared_bytes: int) -> None:
        self.name, self.blocks, self._module, self._pool = name, blocks, module, module.connection.pool
        self._given = (ctypes.c_int64 * 3)(0, module.library.address(name), blocks)  # `Launch` in host_pool.c
        self.at = ctypes.addressof(self._given)
        self._launch, self._pack = self._pool.launch, _packer(0)
        self._pool.reserve(shared_bytes)

    def __call__(self, buffers: Sequence[int], queue: Any = None) -> None:
        """Launches with addresses in the order of the kernel's arguments."""
        if queue is not None:
            as_queue(queue)
        if self.blocks:
            pool = self._pool
            try:
                request = self._pack(pool.address or pool.start(), self.at, *buffers)
            except (struct.error, TypeError):
                request = self._packed(buffers)
            self._launch(request)

    def _packed(self, buffers: Sequence[int]) -> bytes:
        """Packs a request whose number of arguments is new, as in the first launch. Raises DeviceError if they are not addresses."""
        self._pack = _packer(len(buffers))
        try:
            request: bytes = self._pack(self._pool.address or self._pool.start(), self.at, *buffers)
            return request
        except (struct.error, TypeError):
            given = next((b for b in buffers if not isinstance(b, int)), None)
            error = "an address does not fit 64 bits" if given is None else f"got {type(given).__name__}, not an address"
            help = "pass addresses: host_array(...).buffer, or the results of upload and allocate"
            raise DeviceError("launch-failed", f"{self.name} could not be launched: {error}", help=help) from None

    def timed(self, buffers: Sequence[int], queue: Any = None) -> CompletedLaunch | None:
        """Launches and returns the time taken; None for an empty grid."""
        if not self.blocks:
            return None
        start = time.perf_counter()
        self(buffers, queue)
        return CompletedLaunch(time.perf_counter() - start)


@functools.cache
def _packer(arguments: int) -> Any:
    """Packs the addresses of a pool, a launch and `arguments` arguments as host_pool_launch takes them."""
    return struct.Struct(f"{2 + arguments}Q").pack


def seconds(event: CompletedLaunch) -> float:
    """The duration of a launch."""
    return event.seconds


# ---------------------------------------------------------------- arguments


class HostArray:
    """A NumPy array as an argument of one launch, kept alive as long as this object. buffer: its address."""

    __slots__ = ("_array", "_copy", "_written", "buffer")

    def __init__(self, array: Any, written: bool) -> None:
        self._array, self._written, self._copy = array, written, None
        try:
            self.buffer = _addressof(_byte_of(array))  # `address_of`, inlined for speed
        except (TypeError, ValueError, BufferError):
            self.buffer = int(array.ctypes.data)
        if self.buffer % (array.itemsize or 1):
            self._copy = array.copy()
            self.buffer = address_of(self._copy)

    def land(self, queue: Any = None) -> None:
        """Copies results back if the array had to be copied."""
        if self._written and self._copy is not None:
            self._array[...] = self._copy


_addressof, _byte_of = ctypes.addressof, ctypes.c_char.from_buffer


def address_of(array: Any) -> int:
    """The address of a NumPy array."""
    try:
        return _addressof(_byte_of(array))
    except (TypeError, ValueError, BufferError):  # read-only, empty, or of a type without a buffer protocol; slower
        return int(array.ctypes.data)


def is_device_array(value: Any) -> bool:
    """Whether this driver must take an array over: never, because host arrays are used directly."""
    return False


def describe(value: Any) -> tuple[tuple[int, ...], Any]:
    """The shape and NumPy type of an array."""
    return value.shape, value.dtype


def as_queue(queue: Any) -> None:
    """Raises DeviceError: the CPU has no queues."""
    message = f"queue={brief(queue)}: a CPU has no queues; a call has finished when it returns"
    raise DeviceError("bad-queue", message, help="remove queue=")
