"""What the runtime asks of a driver: devices, connections, modules, launches, times, and arrays that already are on a device.

A driver is a module of this package, opencl.py and its neighbours, that has what `Driver` says and imports its library on first use.
A queue is whatever work is enqueued on in order: an OpenCL command queue, a CUDA or HIP stream. None is the connection's own.
"""

from __future__ import annotations

import dataclasses
import importlib
import os
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol, cast

from tilelang.errors import DeviceError

if TYPE_CHECKING:
    from tilelang.lowering.drivers.cache import BinaryCache
    from tilelang.lowering.drivers.tensor_maps import TensorMap

DRIVERS = {"cpu": "host", "opencl": "opencl", "cuda": "cuda", "hip": "hip"}  # their modules, by the dialect that they run
KINDS = ("gpu", "accelerator", "cpu", "custom")  # of devices, the best first


@dataclasses.dataclass(frozen=True, slots=True)
class Device:
    """A device of a driver. kind: cpu, gpu, accelerator or custom. host_memory: it computes in the host's own memory.

    architecture: what a compiler calls it, as in sm_90a or gfx942; "" where the driver compiles itself. platform_version: of the
    platform's interface. grid_max: blocks along each dimension of a grid (empty: the driver does not tell). vector_bytes: the widest
    vector of a processor (0: the driver does not tell). details: what else tells it from other devices of its name. handle: the
    driver's own name of it.
    """

    driver: str
    name: str
    platform: str
    kind: str
    driver_version: str
    platform_version: str
    compute_units: int
    max_threads: int
    shared_bytes: int
    global_bytes: int
    host_memory: bool
    architecture: str = ""
    grid_max: tuple[int, ...] = ()
    vector_bytes: int = 0
    details: str = ""
    workarounds: tuple[str, ...] = ()  # passes of lowering/workarounds that its compiler needs
    handle: Any = dataclasses.field(default=None, compare=False, repr=False)

    def __str__(self) -> str:
        return f"{self.name} ({self.kind}, {self.platform})"

    @property
    def fingerprint(self) -> str:
        """What tells it from other devices, also on other machines: what is measured on it is kept under this."""
        return f"{self}, {self.details or self.architecture}, {self.compute_units} compute units"

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickles by its names: what the driver gives belongs to the process."""
        return _found_again, (self.driver, self.platform, self.name)


def _found_again(driver: str, platform: str, name: str) -> Device:
    return load(driver).choose(platform, name)


class DeviceArray:
    """An array on a device as a launch takes it. dtype: NumPy's. begin: where its bytes begin in `base`, whatever that is."""

    __slots__ = ("base", "begin", "buffer", "contiguous", "dtype", "nbytes", "shape", "writeable")

    def __init__(
        self,
        shape: tuple[int, ...],
        dtype: Any,
        contiguous: bool,
        writeable: bool,
        buffer: Any,
        base: Any,
        begin: int,
        nbytes: int,
    ) -> None:
        self.shape, self.dtype, self.contiguous, self.writeable = shape, dtype, contiguous, writeable
        self.buffer, self.base, self.begin, self.nbytes = buffer, base, begin, nbytes

    def overlaps(self, other: DeviceArray) -> bool:
        """Whether two arrays have bytes in common; both contiguous."""
        if self.begin >= other.begin + other.nbytes or other.begin >= self.begin + self.nbytes:
            return False
        return bool(self.base == other.base)


class HostArray(Protocol):
    """A NumPy array as an argument of one launch, kept alive as long as this object."""

    @property
    def buffer(self) -> Any:
        """What a launch takes."""

    def land(self, queue: Any = None) -> None:
        """Waits until the array holds what kernels enqueued before have written."""


class Function(Protocol):
    """A kernel with its launch shape."""

    def __call__(self, buffers: Sequence[Any], queue: Any = None) -> Any:
        """Enqueues one launch on buffers in the order of the kernel's arguments. Raises DeviceError where that fails."""

    def timed(self, buffers: Sequence[Any], queue: Any = None) -> Any:
        """The same, and gives the launch's event (None for a grid of no blocks)."""


class Module(Protocol):
    """A compiled source text."""

    def function(self, name: str, grid: Sequence[int], threads: int, shared_bytes: int) -> Function:
        """A kernel of it. Raises DeviceError where the device has fewer threads or less shared memory for a block."""


class Connection(Protocol):
    """A device, ready for work."""

    @property
    def device(self) -> Device:
        """The device."""

    @property
    def queue(self) -> Any:
        """What launches are enqueued on unless the caller says otherwise."""

    @property
    def address(self) -> Callable[[Any], int] | None:
        """Where launches take addresses of the host's arrays and are over when they return: the address of a writable contiguous NumPy
        array, TypeError, ValueError or BufferError for any other. None elsewhere."""

    def build(self, source: str, options: Sequence[str] = (), cache: BinaryCache | None = None) -> Module:
        """Compiles a text, or finds it compiled. Raises DeviceError with the compiler's words where it does not compile."""

    def allocate(self, size_bytes: int) -> Any:
        """Device memory, freed with the object. Raises DeviceError where there is not enough."""

    def tensor_map(self, map: TensorMap, buffer: Any) -> bytes:
        """The kernel argument by which copies of boxes know a tensor in a buffer. Raises DeviceError where there are none such."""

    def upload(self, array: Any) -> Any:
        """Device memory of its own with what a contiguous NumPy array holds."""

    def host_array(self, array: Any, role: str, queue: Any) -> HostArray:
        """A contiguous NumPy array as an argument of one launch on a queue. role: "input", "output", or "both"."""

    def queue_of(self, arrays: Sequence[Any]) -> Any:
        """The queue on which work on these device arrays needs the least waiting; None: the connection's own."""

    def take(self, name: str, array: Any, queue: Any) -> DeviceArray:
        """A device array as an argument; what is launched on the queue from now on comes after what fills the array.

        Raises DeviceError where the array lives elsewhere than on this device, ComputationError where it cannot be had.
        """

    def hand_back(self, arrays: Sequence[Any], queue: Any) -> None:
        """What these arrays' libraries do from now on comes after what was launched on the queue."""

    def empty(self, shape: tuple[int, ...], dtype: Any, queue: Any, like: Any) -> Any:
        """A new device array of the kind that `like` is."""

    def finish(self, queue: Any = None) -> None:
        """Waits for everything that was enqueued. Raises DeviceError where a kernel failed."""


class Driver(Protocol):
    """A module that drives one kind of device."""

    def devices(self) -> tuple[Device, ...]:
        """Every device here, the best first. Raises DeviceError where the driver or its library is missing."""

    def choose(self, platform: str | None = None, device: str | None = None) -> Device:
        """The best device whose names contain the given parts. Raises DeviceError where there is none."""

    def connect(self, device: Device) -> Connection:
        """The one connection to a device."""

    def is_device_array(self, value: Any) -> bool:
        """Whether an argument is an array on one of its devices, told without importing anything."""

    def describe(self, value: Any) -> tuple[tuple[int, ...], Any]:
        """Shape and NumPy type of a device array."""

    def as_queue(self, queue: Any) -> Any:
        """A caller's queue as connections take it. Raises DeviceError where the driver cannot launch on it."""

    def seconds(self, event: Any) -> float:
        """How long a launch ran on the device; waits for it."""


def load(name: str) -> Driver:
    """The driver of a dialect: its module, without its library."""
    return cast(Driver, importlib.import_module(f"tilelang.lowering.drivers.{DRIVERS[name]}"))


def of_array(value: Any) -> str | None:
    """The name of the driver whose device an array is on; None for anything else."""
    return next((name for name in DRIVERS if load(name).is_device_array(value)), None)


def fitting(found: Sequence[Device], what: str, platform: str | None, device: str | None, mend: str = "") -> Device:
    """The first device whose platform's and own name contain the given parts, whatever their case.

    Raises DeviceError where there is none: with the names of the others, or with what to install where there are no devices.
    """
    for one in found:
        if (platform or "").casefold() in one.platform.casefold() and (device or "").casefold() in one.name.casefold():
            return one
    if not found:
        raise DeviceError("no-device", f"no {what} was found", mend=mend)
    asked = " and ".join(f"{kind} {part!r}" for kind, part in (("platform", platform), ("device", device)) if part)
    raise DeviceError("no-such-device", f"no {what} fits {asked}", mend="use one of " + "; ".join(map(str, found)))


def check_limits(device: Device, name: str, grid: Sequence[int], threads: int, shared_bytes: int) -> None:
    """Raises DeviceError where the device cannot run a kernel: too many threads, or too much shared memory, for a block; or too many
    blocks."""
    if any(blocks > most for blocks, most in zip(grid, device.grid_max, strict=False)):
        of, most = (" x ".join(map(str, numbers)) for numbers in (grid, device.grid_max))
        raise DeviceError(
            "too-many-blocks",
            f"{name} needs {of} blocks, but {device} allows at most {most}",
            mend="use larger tiles, or limit the number of blocks",
        )
    if threads > device.max_threads:
        raise DeviceError(
            "too-many-threads",
            f"{name} needs {threads} threads per block, but {device} allows at most {device.max_threads}",
            mend="use larger tiles for each thread, or smaller blocks",
        )
    if shared_bytes > device.shared_bytes:
        raise DeviceError(
            "shared-memory",
            f"{name} needs {shared_bytes} bytes of shared memory per block, but {device} has {device.shared_bytes}",
            mend="use smaller tiles, or a smaller `ahead`",
        )


class OpenedBy:
    """The process that opened a driver: a forked child has its memory, and none of its threads."""

    def __init__(self, name: str) -> None:
        self.name, self._process = name, 0

    def here(self) -> None:
        """Notes that it was this process."""
        self._process = os.getpid()

    def check(self) -> None:
        """Raises DeviceError in a forked child of that process, where launches fail or wait for ever."""
        if self._process and self._process != os.getpid():
            parent = f"this process was forked from process {self._process}"
            raise DeviceError(
                "forked",
                f"{parent}, whose {self.name} driver does not work in a forked process: its threads do not exist there",
                mend='use multiprocessing.get_context("spawn"), or fork before using a device',
            )


def as_bytes(array: Any) -> Any:
    """A contiguous NumPy array as plain bytes over the same memory, whatever its element type."""
    import numpy as np

    return array.reshape(-1).view(np.uint8)
