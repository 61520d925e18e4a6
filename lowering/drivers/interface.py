"""The interface between the runtime and a driver: devices, connections, modules, launches, times, and device arrays.

A driver is a module of this package (opencl.py and its neighbours) that implements `Driver` and imports its library on first use.
A queue is whatever orders the enqueued work: an OpenCL command queue, a CUDA or HIP stream. None is the connection's default.
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

DRIVERS = {"cpu": "host", "opencl": "opencl", "cuda": "cuda", "hip": "hip"}  # their modules, by dialect
KINDS = ("gpu", "accelerator", "cpu", "custom")  # of devices, best first


@dataclasses.dataclass(frozen=True, slots=True)
class Device:
    """A device of a driver."""

    driver: str
    name: str
    platform: str
    kind: str  # cpu, gpu, accelerator or custom
    driver_version: str
    platform_version: str  # of the platform's interface
    compute_units: int
    max_threads: int
    shared_bytes: int
    global_bytes: int
    host_memory: bool  # computes in the host's memory
    architecture: str = ""  # the compiler's name for it, such as sm_90a or gfx942; "" if the driver itself compiles
    grid_max: tuple[int, ...] = ()  # maximum blocks along each dimension of a grid (empty: unknown)
    vector_bytes: int = 0  # the widest vector of a CPU (0: unknown)
    details: str = ""  # distinguishes devices of the same name
    workarounds: tuple[str, ...] = ()  # passes in lowering/workarounds that its compiler needs
    handle: Any = dataclasses.field(default=None, compare=False, repr=False)  # the driver's own object for it

    def __str__(self) -> str:
        return f"{self.name} ({self.kind}, {self.platform})"

    @property
    def fingerprint(self) -> str:
        """Identifies the device, also across machines: measurements are stored under this key."""
        return f"{self}, {self.details or self.architecture}, {self.compute_units} compute units"

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickles by name, because the driver's handle is valid only in this process."""
        return _found_again, (self.driver, self.platform, self.name)


def _found_again(driver: str, platform: str, name: str) -> Device:
    return load(driver).choose(platform, name)


class DeviceArray:
    """A device array as a launch takes it. dtype: NumPy's. begin: the offset of its first byte in `base`."""

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
        """Whether two contiguous arrays share bytes."""
        if self.begin >= other.begin + other.nbytes or other.begin >= self.begin + self.nbytes:
            return False
        return bool(self.base == other.base)


class HostArray(Protocol):
    """A NumPy array as an argument of one launch, kept alive as long as this object."""

    @property
    def buffer(self) -> Any:
        """The argument that a launch takes."""

    def land(self, queue: Any = None) -> None:
        """Waits until the array holds what previously enqueued kernels wrote."""


class Function(Protocol):
    """A kernel with its launch shape."""

    def __call__(self, buffers: Sequence[Any], queue: Any = None) -> Any:
        """Enqueues one launch with buffers in the order of the kernel's arguments. Raises DeviceError if that fails."""

    def timed(self, buffers: Sequence[Any], queue: Any = None) -> Any:
        """Like a call, but returns the launch's event (None for an empty grid)."""


class Module(Protocol):
    """A compiled source text."""

    def function(self, name: str, grid: Sequence[int], threads: int, shared_bytes: int) -> Function:
        """A kernel of the module. Raises DeviceError if a block needs more threads or shared memory than the device has."""


class Connection(Protocol):
    """A device, ready for work."""

    @property
    def device(self) -> Device:
        """The device."""

    @property
    def queue(self) -> Any:
        """The queue of launches for which the caller names none."""

    @property
    def address(self) -> Callable[[Any], int] | None:
        """For drivers whose launches take host addresses and are synchronous: returns the address of a writable contiguous NumPy array,
        or raises TypeError, ValueError or BufferError for any other. None for other drivers."""

    def build(self, source: str, options: Sequence[str] = (), cache: BinaryCache | None = None) -> Module:
        """Compiles a text, unless a cache has it. Raises DeviceError with the compiler's message if it does not compile."""

    def allocate(self, size_bytes: int) -> Any:
        """Device memory, freed with the object. Raises DeviceError if there is not enough."""

    def tensor_map(self, map: TensorMap, buffer: Any) -> bytes:
        """The kernel argument that describes a tensor in a buffer for TMA copies. Raises DeviceError if the device has none."""

    def upload(self, array: Any) -> Any:
        """New device memory with a copy of a contiguous NumPy array."""

    def host_array(self, array: Any, role: str, queue: Any) -> HostArray:
        """A contiguous NumPy array as an argument of one launch on a queue. role: "input", "output", or "both"."""

    def queue_of(self, arrays: Sequence[Any]) -> Any:
        """The queue on which work on these device arrays needs the least waiting; None: the connection's default."""

    def take(self, name: str, array: Any, queue: Any) -> DeviceArray:
        """A device array as an argument; later launches on the queue wait for the work that fills the array.

        Raises DeviceError if the array is not on this device, ComputationError if it is not accessible.
        """

    def hand_back(self, arrays: Sequence[Any], queue: Any) -> None:
        """Makes later work of these arrays' libraries wait for the launches on the queue."""

    def empty(self, shape: tuple[int, ...], dtype: Any, queue: Any, like: Any) -> Any:
        """A new device array of the same library as `like`."""

    def finish(self, queue: Any = None) -> None:
        """Waits for everything that was enqueued. Raises DeviceError if a kernel failed."""


class Driver(Protocol):
    """A module that drives one kind of device."""

    def devices(self) -> tuple[Device, ...]:
        """All devices, best first. Raises DeviceError if the driver or its library is missing."""

    def choose(self, platform: str | None = None, device: str | None = None) -> Device:
        """The best device whose names contain the given parts. Raises DeviceError if there is none."""

    def connect(self, device: Device) -> Connection:
        """The connection to a device; there is one per device."""

    def is_device_array(self, value: Any) -> bool:
        """Whether an argument is an array on one of its devices, determined without importing anything."""

    def describe(self, value: Any) -> tuple[tuple[int, ...], Any]:
        """The shape and NumPy type of a device array."""

    def as_queue(self, queue: Any) -> Any:
        """A caller's queue as connections take it. Raises DeviceError if the driver cannot launch on it."""

    def seconds(self, event: Any) -> float:
        """The time that a launch took on the device; waits for it."""


def load(name: str) -> Driver:
    """The driver of a dialect: its module, without importing its library."""
    return cast(Driver, importlib.import_module(f"tilelang.lowering.drivers.{DRIVERS[name]}"))


def of_array(value: Any) -> str | None:
    """The name of the driver that owns an array's device; None for anything else."""
    return next((name for name in DRIVERS if load(name).is_device_array(value)), None)


def fitting(found: Sequence[Device], what: str, platform: str | None, device: str | None, help: str = "") -> Device:
    """The first device whose platform and name contain the given parts, ignoring case.

    Raises DeviceError if there is none: with the names of the others, or with what to install if there are no devices.
    """
    for one in found:
        if (platform or "").casefold() in one.platform.casefold() and (device or "").casefold() in one.name.casefold():
            return one
    if not found:
        raise DeviceError("no-device", f"no {what} was found", help=help)
    asked = " and ".join(f"{kind} {part!r}" for kind, part in (("platform", platform), ("device", device)) if part)
    raise DeviceError("no-such-device", f"no {what} fits {asked}", help="use one of " + "; ".join(map(str, found)))


def check_limits(device: Device, name: str, grid: Sequence[int], threads: int, shared_bytes: int) -> None:
    """Raises DeviceError if the device cannot run a kernel: too many threads or too much shared memory for a block, or too many
    blocks."""
    if any(blocks > most for blocks, most in zip(grid, device.grid_max, strict=False)):
        of, most = (" x ".join(map(str, numbers)) for numbers in (grid, device.grid_max))
        raise DeviceError(
            "too-many-blocks",
            f"{name} needs {of} blocks, but {device} allows at most {most}",
            help="use larger tiles, or limit the number of blocks",
        )
    if threads > device.max_threads:
        raise DeviceError(
            "too-many-threads",
            f"{name} needs {threads} threads per block, but {device} allows at most {device.max_threads}",
            help="use larger tiles for each thread, or smaller blocks",
        )
    if shared_bytes > device.shared_bytes:
        raise DeviceError(
            "shared-memory",
            f"{name} needs {shared_bytes} bytes of shared memory per block, but {device} has {device.shared_bytes}",
            help="use smaller tiles, or a smaller `ahead`",
        )


class OpenedBy:
    """The process that opened a driver. A forked child has its memory but none of its threads."""

    def __init__(self, name: str) -> None:
        self.name, self._process = name, 0

    def here(self) -> None:
        """Records this process as the one that opened the driver."""
        self._process = os.getpid()

    def check(self) -> None:
        """Raises DeviceError in a forked child of that process, where launches would fail or hang."""
        if self._process and self._process != os.getpid():
            parent = f"this process was forked from process {self._process}"
            raise DeviceError(
                "forked",
                f"{parent}, whose {self.name} driver does not work in a forked process: its threads do not exist there",
                help='use multiprocessing.get_context("spawn"), or fork before using a device',
            )


def as_bytes(array: Any) -> Any:
    """A contiguous NumPy array as plain bytes over the same memory, whatever its element type."""
    import numpy as np  # late: NumPy takes long to import

    return array.reshape(-1).view(np.uint8)
