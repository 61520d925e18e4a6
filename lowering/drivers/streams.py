"""The common part of the CUDA and HIP drivers: streams, events and machine code. Subclasses implement the single library calls.

Work goes to the default stream unless the caller names another one; arrays of other libraries are ordered with it by their protocols
(device_arrays.py). Each operation makes its device current while it runs, so any thread may call it.
"""

from __future__ import annotations

import abc
import atexit
import contextlib
import math
import threading
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Any, SupportsInt, cast

from tilelang.errors import ComputationError, DeviceError, brief
from tilelang.lowering.drivers import device_arrays, pool
from tilelang.lowering.drivers.cache import BinaryCache, key
from tilelang.lowering.drivers.interface import Device, DeviceArray, OpenedBy, as_bytes, check_limits

ARGUMENT_ALIGNMENT = 16  # bytes: the widest load and store from the start of an argument in both dialects

_HANDLES = ("cuda_stream", "ptr", "handle")  # attributes of streams: PyTorch's, CuPy's, pycuda's


class Connection(abc.ABC):
    """A device, ready for work. `queue` is the default stream, None."""

    address: Callable[[Any], int] | None = None  # launches take device buffers

    opened: OpenedBy
    errors: type[Exception] = Exception  # the exceptions of the library

    def __init__(self, device: Device) -> None:
        self.opened.check()
        self.device, self.queue = device, None
        self._modules: dict[str, Module] = {}
        self._lock = threading.Lock()
        self._pool = pool.Pool(self._fresh, self._free)
        self._events: list[Any] = []  # reused, because they can be freed only while their device is current
        atexit.register(self.close)

    # ------------------------------------------------------------ library calls

    @abc.abstractmethod
    def enter(self) -> None:
        """Makes the device current in this thread."""

    @abc.abstractmethod
    def leave(self) -> None:
        """Restores the previously current device."""

    @abc.abstractmethod
    def compile(self, source: str, options: Sequence[str], cache: BinaryCache | None) -> bytes:
        """Machine code for the device's architecture."""

    @abc.abstractmethod
    def load(self, code: bytes) -> Any:
        """Loads machine code."""

    @abc.abstractmethod
    def kernel(self, module: Any, name: str, shared_bytes: int) -> tuple[Any, int]:
        """A kernel of a loaded module, prepared for blocks with that much shared memory, and the amount each launch must request."""

    @abc.abstractmethod
    def launch(
        self, kernel: Any, grid: tuple[int, ...], threads: int, arguments: Sequence[Any], shared_bytes: int, queue: Any
    ) -> None:
        """Enqueues a kernel with its arguments in order: addresses, and tensor maps as bytes."""

    @abc.abstractmethod
    def fresh(self, size_bytes: int) -> Any:
        """New memory from the library, as its address; None if there is not enough."""

    @abc.abstractmethod
    def free(self, block: Any) -> None:
        """Returns memory to the library."""

    @abc.abstractmethod
    def copy_in(self, address: int, array: Any, queue: Any) -> None:
        """Copies bytes from host to device; the host memory may be reused afterwards."""

    @abc.abstractmethod
    def copy_out(self, array: Any, address: int, queue: Any) -> None:
        """Copies bytes from device to host after the work enqueued before, and waits for them."""

    @abc.abstractmethod
    def event(self) -> Any:
        """A new event that records times."""

    @abc.abstractmethod
    def record(self, event: Any, queue: Any) -> None:
        """Enqueues an event."""

    @abc.abstractmethod
    def elapsed_ms(self, start: Any, end: Any) -> float:
        """Milliseconds between two events; waits for the second."""

    @abc.abstractmethod
    def handle(self, queue: Any) -> int:
        """A stream's handle; 0 for the default one."""

    @abc.abstractmethod
    def dlpack_stream(self, queue: Any) -> int:
        """A stream in DLPack's numbering."""

    @abc.abstractmethod
    def synchronize(self, queue: Any) -> None:
        """Waits for a stream; for the default one, waits for everything on the device."""

    @abc.abstractmethod
    def queue_of(self, arrays: Sequence[Any]) -> Any:
        """The stream on which work on these arrays needs the least waiting."""

    def trim(self) -> None:
        """Returns unused memory to the library."""
        self._pool.free_unused()

    def close(self) -> None:
        """Frees unused memory at the end of the process. After a lost context the library may refuse, and frees everything itself."""
        with contextlib.suppress(DeviceError):
            self.trim()

    # ------------------------------------------------------------ the interface for the runtime

    def current(self, what: str = "launch-failed") -> Current:
        """Makes the device current in a `with` block; turns errors of the library into a DeviceError with that code."""
        return Current(self, what)

    def build(self, source: str, options: Sequence[str] = (), cache: BinaryCache | None = None) -> Module:
        """Compiles a source text for this device, unless a cache has it. Raises DeviceError if it does not compile."""
        self.opened.check()
        name = key([source, *options])
        with self._lock:
            module = self._modules.get(name)
            if module is None:
                code = self.compile(source, options, cache)
                with self.current("build-failed"):
                    module = self._modules[name] = Module(self, self.load(code))
        return module

    def _fresh(self, size_bytes: int) -> Any:
        with self.current("out-of-memory"):
            return self.fresh(size_bytes)

    def _free(self, block: Any) -> None:
        with self.current():
            self.free(block)

    def allocate(self, size_bytes: int) -> pool.Memory:
        """Device memory, freed with the object. Raises DeviceError if there is not enough."""
        found = self._pool.take(size_bytes)
        if found is None:
            raise DeviceError("out-of-memory", f"{size_bytes} bytes on {self.device}", help="use smaller tensors")
        return found

    def upload(self, array: Any, queue: Any = None) -> pool.Memory:
        """New device memory with a copy of a contiguous NumPy array."""
        memory = self.allocate(array.nbytes)
        if array.nbytes:
            with self.current():
                self.copy_in(int(memory), as_bytes(array), queue)
        return memory

    def host_array(self, array: Any, role: str, queue: Any) -> HostArray:
        return HostArray(self, array, role, queue)

    def take(self, name: str, array: Any, queue: Any) -> DeviceArray:
        """A device array as an argument, ordered by its protocol.

        Raises DeviceError if it is on another device, ComputationError if it is not aligned to 16 bytes.
        """
        found = device_arrays.find(name, array, self.dlpack_stream(queue))
        if found.ordinal is not None and found.ordinal != self.device.handle:
            help = f"move it to device {self.device.handle}"
            raise DeviceError("other-context", f"the array for {name} is on another device than {self.device}", help=help)
        if found.stream is not None and (found.stream or 1) != (self.handle(queue) or 1):  # 0 and 1 are the default stream
            self.finish()  # another library's stream, for which no other wait exists
        size = math.prod(found.shape) * found.dtype.itemsize
        if size and found.address % ARGUMENT_ALIGNMENT:
            message = f"the array for {name} begins at {found.address:#x}, which is not a multiple of {ARGUMENT_ALIGNMENT}"
            raise ComputationError("argument", message, help="pass a copy, or a view that begins at a multiple of 16 bytes")
        base, begin = self.device.handle, found.address
        return DeviceArray(found.shape, found.dtype, found.contiguous, found.writeable, begin, base, begin, size)

    def hand_back(self, arrays: Sequence[Any], queue: Any) -> None:
        """Makes the current streams of the arrays' libraries wait for the launches; if a library has no such stream, the host waits."""
        handle = self.handle(queue)
        waiting = [device_arrays.wait_for(array, handle) for array in arrays]
        if not all(waiting):
            self.finish(queue)

    def empty(self, shape: tuple[int, ...], type: Any, queue: Any, like: Any) -> Any:
        """A new array of the same library as `like`."""
        with self.current():
            return device_arrays.empty(shape, type, like)

    def finish(self, queue: Any = None) -> None:
        """Waits for the enqueued work. Raises DeviceError if a kernel failed."""
        with self.current("kernel-failed"):
            self.synchronize(queue)

    def take_event(self) -> Any:
        """An event that records times; return it with `keep_event`."""
        return self._events.pop() if self._events else self.event()

    def keep_event(self, event: Any) -> None:
        """Keeps an event for reuse."""
        self._events.append(event)


class Current:
    """Makes a device current, for a `with` block."""

    __slots__ = ("connection", "what")

    def __init__(self, connection: Connection, what: str) -> None:
        self.connection, self.what = connection, what

    def __enter__(self) -> None:
        try:
            self.connection.enter()
        except self.connection.errors as error:  # calls may report earlier failures
            raise self._refused(error) from None

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        try:
            self.connection.leave()
        except self.connection.errors as later:
            error = error or later
        if isinstance(error, self.connection.errors):
            raise self._refused(error) from None

    def _refused(self, error: BaseException) -> DeviceError:
        reason = (str(error) or type(error).__name__).splitlines()[0]
        help = "run `make gpu-check`, which uses the device's checkers; report the result with the schedule"
        return DeviceError(self.what, f"{self.connection.device}: {reason}", help=help)


class Module:
    """Loaded machine code."""

    def __init__(self, connection: Connection, module: Any) -> None:
        self.connection, self.module = connection, module

    def function(self, name: str, grid: Sequence[int], threads: int, shared_bytes: int) -> Function:
        """A kernel of the module, ready to launch. Raises DeviceError if the device cannot run it."""
        check_limits(self.connection.device, name, grid, threads, shared_bytes)
        with self.connection.current("build-failed"):
            kernel, dynamic = self.connection.kernel(self.module, name, shared_bytes)
        return Function(self.connection, kernel, tuple(grid), threads, dynamic)


class Function:
    """A kernel with its launch shape; each launch requests `shared_bytes` of dynamic shared memory."""

    def __init__(self, connection: Connection, kernel: Any, grid: tuple[int, ...], threads: int, shared_bytes: int) -> None:
        self.connection, self.kernel, self.threads, self.shared_bytes = connection, kernel, threads, shared_bytes
        self.empty = 0 in grid
        self.grid = (*grid, 1, 1)[:3]

    def __call__(self, buffers: Sequence[Any], queue: Any = None) -> None:
        """Launches with device addresses in the order of the kernel's arguments."""
        self.connection.opened.check()
        if self.empty:
            return
        with self.connection.current():
            self._launch(buffers, queue)

    def timed(self, buffers: Sequence[Any], queue: Any = None) -> Timing | None:
        """Launches between two events."""
        self.connection.opened.check()
        if self.empty:
            return None
        with self.connection.current():
            timing = Timing(self.connection)
            self.connection.record(timing.start, queue)
            self._launch(buffers, queue)
            self.connection.record(timing.end, queue)
        return timing

    def _launch(self, buffers: Sequence[Any], queue: Any) -> None:
        self.connection.launch(self.kernel, self.grid, self.threads, buffers, self.shared_bytes, queue)


def stream_handle(queue: Any, kind: type | tuple[type, ...] = ()) -> int | None:
    """The handle of a stream: a number, an object of the wrapper type `kind`, or a stream of PyTorch, CuPy, pycuda, cuda.core or
    another library with cuda.core's protocol. None for the default stream. Raises DeviceError if it is not a stream."""
    if isinstance(queue, kind):
        return int(cast(SupportsInt, queue)) or None
    if hasattr(queue, "__cuda_stream__"):
        told = queue.__cuda_stream__
        queue = (told() if callable(told) else told)[1]
    else:
        queue = next((getattr(queue, name) for name in _HANDLES if hasattr(queue, name)), queue)
        queue = getattr(queue, "value", queue)  # a ctypes pointer
    if type(queue) is not int or queue < 0:
        help = "pass a stream of PyTorch, CuPy or another library with `__cuda_stream__`, or its handle, a number"
        raise DeviceError("bad-queue", f"queue={brief(queue)} is not a stream", help=help)
    return queue or None


class Timing:
    """A launch between two events."""

    __slots__ = ("connection", "end", "start")

    def __init__(self, connection: Connection) -> None:
        self.connection, self.start, self.end = connection, connection.take_event(), connection.take_event()

    def __del__(self) -> None:
        self.connection.keep_event(self.start)
        self.connection.keep_event(self.end)


def seconds(event: Timing) -> float:
    """The time that a launch took on the device; waits for it."""
    with event.connection.current("kernel-failed"):
        return event.connection.elapsed_ms(event.start, event.end) * 1e-3


class HostArray:
    """A NumPy array as an argument of one launch: a copy on the device, which `land` copies back."""

    __slots__ = ("_array", "_connection", "_written", "buffer")

    def __init__(self, connection: Connection, array: Any, role: str, queue: Any) -> None:
        self._connection, self._array, self._written = connection, array, role != "input"
        self.buffer = connection.allocate(array.nbytes) if role == "output" else connection.upload(array, queue)

    def land(self, queue: Any = None) -> None:
        """Waits until the array holds what previously enqueued kernels wrote."""
        if not self._written or self._array.nbytes == 0:
            return
        with self._connection.current("kernel-failed"):
            self._connection.copy_out(as_bytes(self._array), int(self.buffer), queue)
