"""The arrays of one kernel call as launch arguments: checked before anything is launched, and not kept afterwards."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tilelang.computations.arguments import as_array, check_array, check_range, contiguous, new_array, share_memory, wrong
from tilelang.computations.computation import Tensor
from tilelang.errors import ComputationError, counted
from tilelang.lowering.drivers import interface as drivers

if TYPE_CHECKING:
    from tilelang.lowering.drivers.interface import Connection, DeviceArray, HostArray

Typed = tuple[Tensor, Any]  # a tensor, and the NumPy type of its arrays


class Placed:
    """A tensor's array in one call. result: what the caller gets. device, or host: the array in the driver's form."""

    __slots__ = ("array", "buffer", "device", "host", "name", "result", "staged")

    def __init__(
        self, name: str, result: Any, buffer: Any, device: DeviceArray | None, host: HostArray | None, array: Any, staged: Any
    ) -> None:
        self.name, self.result, self.buffer, self.device, self.host = name, result, buffer, device, host
        self.array, self.staged = array, staged  # the NumPy array as passed, and as launched

    def overlaps(self, other: Placed) -> bool:
        """Whether two arrays share bytes."""
        if self.device is not None or other.device is not None:
            (a, size), (b, other_size) = self._span, other._span
            if a is not None and b is not None:
                return a < b + other_size and b < a + size
            return self.device is not None and other.device is not None and self.device.overlaps(other.device)
        return self.array is not None and other.array is not None and share_memory(self.array, other.array)

    @property
    def _span(self) -> tuple[int | None, int]:
        """The start of the array in host memory (None: unknown), and its size in bytes."""
        return getattr(self.buffer, "address", None), (self.array if self.device is None else self.device).nbytes

    def land(self, queue: Any) -> None:
        """Waits until the caller's array holds the result; does nothing for device arrays."""
        if self.host is None:
            return
        self.host.land(queue)
        if self.staged is not self.array:
            self.array[...] = self.staged


class Placing:
    """How the arrays of one call are passed: the connection, and the queue to launch on.

    is_device_array: recognises arrays of the device; None if all arrays are host arrays.
    """

    __slots__ = ("check_ranges", "connection", "is_device_array", "queue")

    def __init__(self, connection: Connection, queue: Any, is_device_array: Any, check_ranges: bool) -> None:
        self.connection, self.queue, self.is_device_array, self.check_ranges = connection, queue, is_device_array, check_ranges

    def input(self, tensor: Tensor, type: Any, value: Any) -> Placed:
        """An input's array. Raises ComputationError if it does not fit."""
        if self.is_device_array is not None and self.is_device_array(value):
            return self._on_device(tensor, type, value, "input")
        import numpy as np  # late: NumPy takes long to import

        if not isinstance(value, np.ndarray):
            self._check_place(tensor.name, value)
        array = as_array(tensor.name, value, tensor.dtype)
        check_array(tensor, type, array, "input")
        if self.check_ranges:
            check_range(tensor, array)
        staged = contiguous(tensor, array)  # strided arrays are copied
        host = self.connection.host_array(staged, "input", self.queue)
        return Placed(tensor.name, value, host.buffer, None, host, array, staged)

    def output(self, tensor: Tensor, type: Any, value: Any, like: Any, before: Sequence[Placed], inputs: int) -> Placed:
        """An output's array: the given one or a new one, on the device if `like` is a device array.

        before: the arrays processed before, `inputs` inputs followed by outputs. Raises ComputationError if the array does not fit.
        """
        if value is None:
            if like is None:
                return self._on_host(tensor, type, None)
            made = self.connection.empty(tensor.shape, type, self.queue, like)
            return self._on_device(tensor, type, made, "result")
        if self.is_device_array is not None and self.is_device_array(value):
            placed = self._on_device(tensor, type, value, "output")
        else:
            placed = self._on_host(tensor, type, value)
        for number, other in enumerate(before):
            if placed.overlaps(other):
                if number < inputs:
                    raise wrong(tensor.name, f"shares memory with the input {other.name}", "pass another array as out=")
                message = f"the arrays for {other.name} and {tensor.name} share memory"
                raise ComputationError("argument", message, help="pass a separate array for each output")
        return placed

    def _check_place(self, name: str, value: Any) -> None:
        """Raises ComputationError if an array that is not on the kernel's device is on a device of another driver."""
        driver = drivers.of_array(value)
        if driver is not None:
            here = f"the kernel's is {self.connection.device.driver}"
            raise wrong(
                name, f"is on a device of {driver}, but {here}", "pass an array on the kernel's device, or a copy on the host"
            )

    def _on_device(self, tensor: Tensor, type: Any, value: Any, role: str) -> Placed:
        array = self.connection.take(tensor.name, value, self.queue)
        check_array(tensor, type, array, role)
        if not array.contiguous:
            help = "pass a contiguous copy" if role == "input" else "pass a contiguous array as out="
            raise wrong(tensor.name, "is not contiguous", help)
        if role == "output" and not array.writeable:
            raise wrong(tensor.name, "cannot be written", "pass another array as out=")
        return Placed(tensor.name, value, array.buffer, array, None, None, None)

    def _on_host(self, tensor: Tensor, type: Any, value: Any) -> Placed:
        import numpy as np  # late: NumPy takes long to import

        array = value
        if value is None:
            array = new_array(tensor, type)
        elif not isinstance(value, np.ndarray):
            self._check_place(tensor.name, value)
            array = as_array(tensor.name, value)
            if array.size and not share_memory(array, as_array(tensor.name, value)):
                raise wrong(tensor.name, "is not an array whose memory can be written", "pass a NumPy array as out=")
        if value is not None:
            check_array(tensor, type, array, "output")
            if not array.flags.writeable:
                raise wrong(tensor.name, "cannot be written", "pass an array with flags.writeable")
            if not array.flags.c_contiguous and _meets_itself(array):
                raise wrong(tensor.name, "has elements that share memory with each other", "pass another array as out=")
        staged = array if array.flags.c_contiguous else new_array(tensor, type)
        host = self.connection.host_array(staged, "output", self.queue)
        return Placed(tensor.name, array if value is None else value, host.buffer, None, host, array, staged)


def _meets_itself(array: Any) -> bool:
    """Whether two elements of a strided array overlap."""
    import numpy as np  # late: NumPy takes long to import

    reach, steps = array.itemsize, sorted((abs(step), n) for step, n in zip(array.strides, array.shape, strict=True) if n > 1)
    for step, n in steps:
        if step < reach:  # rows may interleave or overlap: then the address of every element decides
            places = sum(np.ix_(*(np.arange(m) * s for s, m in steps)), start=np.zeros((1,) * len(steps), np.int64))
            return bool((np.diff(np.sort(places, axis=None)) < array.itemsize).any())
        reach += (n - 1) * step
    return False


class Direct:
    """The fast path for calls of one kernel with NumPy arrays that can be used in place: performs the checks of `Placing` in a few
    steps.

    function: the kernel's only launch. order: maps its arguments to inputs and outputs. address: of a writable contiguous array; raises
    an exception for any other. Everything that does not pass immediately is left to `Placing`, which reports the error or copies.
    """

    __slots__ = ("_address", "_array", "_empty", "_function", "_inputs", "_order", "_outputs")

    def __init__(
        self, function: Any, order: Sequence[int], inputs: Sequence[Typed], outputs: Sequence[Typed], address: Any
    ) -> None:
        import numpy as np  # late: NumPy takes long to import

        self._function, self._order, self._address, self._array, self._empty = function, order, address, np.ndarray, np.empty
        self._inputs, self._outputs = ([(t.shape, d, d.itemsize, math.prod(t.shape) * d.itemsize) for t, d in typed]
                                       for typed in (inputs, outputs))  # fmt: skip

    def run(self, arrays: Sequence[Any], out: Any) -> Any:
        """The filled output, or None, with nothing launched, if an array needs a closer look. out: the output's array or None."""
        ((out_shape, out_dtype, alignment, size),) = self._outputs
        if len(arrays) != len(self._inputs):
            return None
        ndarray, address = self._array, self._address
        found = []
        try:
            for array, (shape, dtype, _, _) in zip(arrays, self._inputs, strict=True):
                if type(array) is not ndarray or array.shape != shape or array.dtype != dtype:
                    return None
                found.append(address(array))
            if out is None:
                out = self._empty(out_shape, out_dtype)
            elif type(out) is not ndarray or out.shape != out_shape or out.dtype != out_dtype:
                return None
            begin = address(out)
        except (TypeError, ValueError, BufferError, MemoryError):
            # Read-only, strided, empty, of a type without a buffer protocol, or too large for the memory.
            return None
        end = begin + size
        for at, (_, _, each, taken) in zip(found, self._inputs, strict=True):
            if at % each or (at < end and begin < at + taken):
                return None
        if begin % alignment:
            return None
        found.append(begin)
        self._function([found[n] for n in self._order])
        return out


def given_outputs(outputs: Sequence[Typed], out: Any) -> list[Any]:
    """The array of `out=` for each output, or None. Raises ComputationError if their number does not fit."""
    count = len(outputs)
    if out is None:
        return [None] * count
    if count == 1 and not isinstance(out, (tuple, list, Mapping)):
        return [out]
    names = [t.name for t, _ in outputs]
    if isinstance(out, Mapping):
        unknown = [str(name) for name in out if name not in names]
        if unknown:
            message = f"out= names {', '.join(unknown)}, which is not an output"
            raise ComputationError(
                "arguments", message, help=f"the {'output is' if len(names) == 1 else 'outputs are'} {', '.join(names)}"
            )
        return [out.get(name) for name in names]
    if not isinstance(out, (tuple, list)) or len(out) != count:
        raise ComputationError(
            "arguments",
            f"out= has {counted(len(out) if isinstance(out, (tuple, list)) else 1, 'array')} for {counted(count, 'output')}",
            help="pass one array for each output, in this order: " + ", ".join(names),
        )
    return list(out)
