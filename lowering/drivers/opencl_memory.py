"""Buffers for launches on an OpenCL device, from NumPy arrays and pyopencl arrays.

Devices that compute in host memory use NumPy arrays in place: each launch creates a buffer over their memory and never keeps it,
because the memory at an address may be reused between two launches. On other devices they are copied.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tilelang.errors import DeviceError
from tilelang.lowering.drivers.interface import as_bytes

if TYPE_CHECKING:
    from tilelang.lowering.drivers.opencl import Connection


def _cl() -> Any:
    import pyopencl  # late: an optional library

    return pyopencl


def device_buffer(connection: Connection, base: Any, offset: int, size_bytes: int) -> Any:
    """The buffer of a pyopencl array, beginning at its first element.

    Raises DeviceError if the array is in another context, or if the device cannot address its start.
    """
    if base is None:  # an empty array
        return connection.allocate(1)
    if base.context != connection.context:
        raise DeviceError(
            "other-context",
            "the array is in another OpenCL context than the kernel",
            help="make it with kernel.queue, as in pyopencl.array.to_device(kernel.queue, x)",
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
            help=f"copy it, or begin at a multiple of {align} bytes",
        ) from None


def failed(error: Exception) -> DeviceError:
    """The error for a kernel that failed, for example by exhausting the device's resources, as reported by a wait."""
    return DeviceError("kernel-failed", f"a kernel ended with an error: {error}", help="use smaller blocks, or another schedule")


class HostArray:
    """A NumPy array as an argument of one launch.

    The array must be contiguous and is kept alive as long as this object. `land` waits for results and copies them back.
    """

    __slots__ = ("_array", "_connection", "_written", "buffer")

    def __init__(self, connection: Connection, array: Any, written: bool) -> None:
        self._connection, self._array, self._written = connection, array, written
        self.buffer = self._as_buffer()

    def _as_buffer(self) -> Any:
        """The buffer that a launch takes."""
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
        """Waits until the array holds what previously enqueued kernels wrote. Raises DeviceError if one of them failed."""
        if not self._written or self._array.nbytes == 0:
            return
        cl = _cl()
        queue = queue or self._connection.queue
        try:
            if self._connection.device.host_memory:  # mapping makes the host's memory current
                import numpy as np  # late: NumPy takes long to import

                mapped, _ = cl.enqueue_map_buffer(queue, self.buffer, cl.map_flags.READ, 0, (self._array.nbytes,), np.uint8)
                mapped.base.release(queue)
            else:
                cl.enqueue_copy(queue, as_bytes(self._array), self.buffer)
        except cl.Error as error:
            raise failed(error) from None
