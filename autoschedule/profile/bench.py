"""Runs probes on a device: schedules of the language, compiled as usual, and source texts for what the language cannot express.

Times are measured by the driver, on the device: launches are enqueued on an idle device, one after another.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tilelang.autoschedule.profile.preludes import text_of
from tilelang.autoschedule.profile.sampling import Run
from tilelang.core.lazy import cached_property
from tilelang.lowering import ir
from tilelang.lowering.drivers import interface as drivers
from tilelang.lowering.drivers.interface import Connection, Device
from tilelang.lowering.drivers.processor import processor
from tilelang.lowering.pipeline import lower
from tilelang.lowering.targets.c.emitter import emit, kernel_names
from tilelang.lowering.targets.dialects import DIALECTS, needs
from tilelang.profiles.profile import Profile
from tilelang.schedules.schedule import Schedule

if TYPE_CHECKING:
    import numpy as np


class Bench:
    """A device with its profile, ready to run probes."""

    def __init__(self, device: Device, profile: Profile) -> None:
        self.device, self.profile, self.driver = device, profile, drivers.load(device.driver)

    @cached_property
    def connection(self) -> Connection:
        return self.driver.connect(self.device)

    @property
    def lockstep(self) -> bool:
        """Whether threads run in lockstep (warps)."""
        return self.profile.lockstep

    @property
    def cores(self) -> int:
        return self.profile.compute_units or 1

    @property
    def lanes(self) -> int:
        """The 32-bit lanes of the widest vector."""
        return min(max(self.profile.vector_bytes) // 4, self.profile.max_vector_lanes)

    @property
    def text_lanes(self) -> int:
        """The lanes of a text's `WIDE`: of a vector of the CPU; in OpenCL, of a core's vector, or four on GPUs, which have few
        registers; 1 if the dialect has no vectors."""
        if self.device.driver == "cpu":
            return self.lanes
        return (4 if self.lockstep else 16) if self.device.driver == "opencl" else 1

    @property
    def has_vectors(self) -> bool:
        """Whether texts can use vectors of the dialect."""
        return self.device.driver in ("opencl", "cpu")

    @property
    def meets(self) -> bool:
        """Whether a text's block can have several threads, with barriers and shared memory; on a CPU it has one."""
        return self.device.driver != "cpu"

    def text(self, body: str, arguments: int) -> str:
        """The whole source text of a probe. arguments: the number of its kernel's arguments."""
        return text_of(self.device.driver, body, self.text_lanes, arguments)

    @property
    def extensions(self) -> frozenset[str]:
        """Optional features of the device: OpenCL's extensions, or a CPU's features as the system names them."""
        if self.device.driver == "cpu":
            return processor().features
        return frozenset(str(getattr(self.device.handle, "extensions", "")).split())

    @property
    def clock_ghz(self) -> float | None:
        """The highest clock, according to an OpenCL driver; None if unknown."""
        told = getattr(self.device.handle, "max_clock_frequency", 0)
        return told / 1000 if told else None

    @property
    def threads(self) -> int:
        """The threads of a block that keep a core busy: 1 on CPUs."""
        return min(256, self.profile.max_block_threads) if self.lockstep else 1

    def lowered(self, schedule: Schedule) -> tuple[ir.Program, str, Mapping[str, str]]:
        """A schedule's program, its source text, and the names of its kernels there."""
        dialect = DIALECTS[self.device.driver]
        program = lower(schedule.computation, schedule.steps, self.profile, needs=needs(self.device.driver, self.device))
        return program, emit(program, dialect), kernel_names(program, dialect)

    def of_schedule(self, schedule: Schedule, data: Mapping[str, Any] | None = None) -> Run:
        """A schedule's kernels as a run, on ones or on given arrays; each iteration launches each kernel once."""
        import numpy as np  # late: NumPy takes long to import

        computation = schedule.computation
        program, source, names = self.lowered(schedule)
        module = self.connection.build(source)
        buffers = {b.name: self.connection.allocate(b.bytes) for b in program.buffers if b.role != "input"}
        for tensor in computation.inputs:
            array = (data or {}).get(tensor.name)
            buffers[tensor.name] = self.connection.upload(np.ones(tensor.shape, np.float32) if array is None else array)
        launches = [
            (module.function(names[k.name], k.grid, k.threads, k.shared_bytes), [buffers[b.name] for b in k.arguments])
            for k in program.kernels
        ]
        return self._run(launches)

    def of_text(
        self, body: str, blocks: int, threads: int, arrays: Sequence[np.ndarray[Any, Any] | int | Any], shared_bytes: int = 0
    ) -> Run:
        """The kernel `probe` of a source text as a run.

        Its first argument holds the number of iterations; then there is one for each array, number of bytes, or `image`.
        shared_bytes: of its LOCAL_ARRAY.
        """
        import numpy as np  # late: NumPy takes long to import

        module = self.connection.build(self.text(body, 1 + len(arrays)))
        function = module.function("probe", (blocks, 1, 1), threads, shared_bytes)
        buffers = [self._argument(a) for a in arrays]

        def run(rounds: int) -> float:
            count = self.connection.upload(np.array([rounds], np.int32))
            return self._seconds([function.timed([count, *buffers])])

        run(1)
        return run

    def _argument(self, given: Any) -> Any:
        """Device memory holding an array, or of a number of bytes; existing device memory as it is."""
        import numpy as np  # late: NumPy takes long to import

        if isinstance(given, np.ndarray):
            return self.connection.upload(given)
        return self.connection.allocate(given) if isinstance(given, int) else given

    def image(self, pixels: np.ndarray[Any, Any]) -> Any:
        """An image of (rows, columns, 4) floats, for devices that support images."""
        device: Any = self.connection
        return device.image(pixels)

    def value_of_text(self, body: str, given: Any) -> float:
        """The float that a text's kernel, with one thread and one iteration, writes to its second argument; the third one is
        `given`."""
        import numpy as np  # late: NumPy takes long to import

        function = self.connection.build(self.text(body, 3)).function("probe", (1, 1, 1), 1, 0)
        value = np.zeros(1, np.float32)
        out = self.connection.host_array(value, "output", None)
        self._seconds([function.timed([self.connection.upload(np.ones(1, np.int32)), out.buffer, self._argument(given)])])
        out.land(None)
        self.connection.finish()
        return float(value[0])

    def waited(self, run: Run) -> Run:
        """The same run, timed by the host's clock, waiting after each iteration."""

        def timed(rounds: int) -> float:
            start = time.perf_counter()
            for _ in range(rounds):
                run(1)
            return time.perf_counter() - start

        return timed

    def _run(self, launches: Sequence[tuple[Any, Sequence[Any]]]) -> Run:
        def run(rounds: int) -> float:
            return self._seconds([f.timed(given) for _ in range(rounds) for f, given in launches])

        run(1)
        return run

    def _seconds(self, events: Sequence[Any]) -> float:
        return math.fsum(self.driver.seconds(e) for e in events if e is not None)
