"""What launches on an OpenCL device take: the host's memory by its address, NumPy's arrays, and where pyopencl's arrays are.

On devices that compute in the host's memory, NumPy arrays are used in place: a buffer over their memory is made for each launch and
never kept, because the memory behind an address may change hands between two launches. On other devices they are copied. PoCL works
in the array itself, so that its work only needs to be finished; elsewhere a buffer is mapped first, which PoCL would wake threads for.
"""

from __future__ import annotations

import ctypes
import functools
import weakref
from typing import TYPE_CHECKING, Any

from tilelang.errors import DeviceError
from tilelang.lowering.drivers.interface import as_bytes

if TYPE_CHECKING:
    from tilelang.lowering.drivers.opencl import Connection

POCL = "Portable Computing Language"


def _cl() -> Any:
    import pyopencl

    return pyopencl


def address_of(queue: Any, buffer: Any) -> int:
    """Where a buffer is in the host's memory, for as long as it is. That takes longer than a launch."""
    import numpy as np

    cl = _cl()
    mapped, _ = cl.enqueue_map_buffer(queue, buffer, cl.map_flags.READ, 0, (1,), np.uint8)
    address = int(mapped.ctypes.data)
    mapped.base.release(queue)
    return address


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


class ArrayPlaces:
    """Where pyopencl's arrays are in the host's memory, each asked once: that costs more than a launch."""

    def __init__(self, queue: Any) -> None:
        self._queue = queue
        self._arrays: dict[int, tuple[weakref.ref[Any], tuple[int, int], int]] = {}  # by the arrays' numbers

    @property
    def known(self) -> int:
        """Of how many arrays that is known."""
        return len(self._arrays)

    def of(self, array: Any, buffer: Any) -> int:
        """The address of an array that is in a buffer."""
        place, known = (array.base_data.int_ptr, array.offset), self._arrays.get(id(array))
        if known is None or known[1] != place:
            forgotten = weakref.ref(array, functools.partial(self._forget, id(array)))
            known = self._arrays[id(array)] = forgotten, place, address_of(self._queue, buffer)
        return known[2]

    def _forget(self, number: int, _: weakref.ref[Any]) -> None:
        self._arrays.pop(number, None)


class HostMemory:
    """The host's memory as an argument of launches. address: where it begins; opencl: it as OpenCL's buffer."""

    __slots__ = ("_buffer", "address")

    def __init__(self, address: int, buffer: Any) -> None:
        self.address, self._buffer = address, buffer

    @property
    def opencl(self) -> Any:
        return self._buffer


class HostArray(HostMemory):
    """A NumPy array as an argument of one launch.

    Contiguous arrays only; `land` brings results back, waiting for them. The array is kept alive as long as this object.
    """

    __slots__ = ("_array", "_connection", "_written")

    def __init__(self, connection: Connection, array: Any, written: bool) -> None:
        super().__init__(0, None)
        self._connection, self._array, self._written = connection, array, written
        if connection.hosting is not None:
            self.address = _address(array)
        else:
            _ = self.opencl

    @property
    def buffer(self) -> Any:
        """What a launch takes."""
        return self.opencl if self._connection.hosting is None else self

    @property
    def opencl(self) -> Any:
        if self._buffer is None:
            self._buffer = self._as_buffer()
        return self._buffer

    def _as_buffer(self) -> Any:
        cl = _cl()
        array, connection = self._array, self._connection
        flags = cl.mem_flags
        if array.nbytes == 0:
            return cl.Buffer(connection.context, flags.READ_WRITE, 1)
        if connection.device.host_memory:
            access = flags.READ_WRITE if array.flags.writeable else flags.READ_ONLY
            return cl.Buffer(connection.context, access | flags.USE_HOST_PTR, hostbuf=as_bytes(array))
        return cl.Buffer(connection.context, flags.READ_WRITE | flags.COPY_HOST_PTR, hostbuf=as_bytes(array))

    def land(self, queue: Any = None) -> None:
        """Waits until the array holds what kernels enqueued before have written."""
        if not self._written or self._array.nbytes == 0:
            return
        cl = _cl()
        queue, device = queue or self._connection.queue, self._connection.device
        if device.host_memory and device.platform == POCL:
            self._connection.finish(queue)
        elif device.host_memory:  # mapping is what makes the host's memory current
            import numpy as np

            mapped, _ = cl.enqueue_map_buffer(queue, self._buffer, cl.map_flags.READ, 0, (self._array.nbytes,), np.uint8)
            mapped.base.release(queue)
        else:
            cl.enqueue_copy(queue, as_bytes(self._array), self._buffer)


def _address(array: Any) -> int:
    """Where a contiguous array begins."""
    try:
        return ctypes.addressof(ctypes.c_char.from_buffer(array))
    except (TypeError, ValueError, BufferError):  # of no bytes, read-only, or of a type that buffers do not know; slower
        return int(array.ctypes.data)
