"""Checks schedules in every available way: by the reference, the simulator, a device, and the compiler itself.

A check returns the faults that it found, as text; none means that it passed. Programs are compiled for the device in batches, since
starting the compiler is most of the cost of a small kernel.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tilelang.computations.computation import Computation
from tilelang.errors import Refusal
from tilelang.lowering import ir, printer
from tilelang.lowering.descriptors import tensor_maps
from tilelang.lowering.drivers import interface as drivers
from tilelang.lowering.drivers.interface import Connection
from tilelang.lowering.pipeline import lower
from tilelang.lowering.simulator import simulate
from tilelang.lowering.targets.c.dialect import Dialect
from tilelang.lowering.targets.c.emitter import emit, kernel_names
from tilelang.options import Options
from tilelang.profiles.profile import Profile
from tilelang.runtime.targets import DIALECTS, local_target
from tilelang.schedules.schedule import Schedule
from tilelang.semantics import reference
from tilelang.semantics.loop_members import SharedLoop
from tilelang.testing.planner import tiny_profile
from tilelang.testing.tracing import Reading, Trace, reading

Arrays = dict[str, Any]
# Refusals due to the limits of a device. A prefix may exceed a limit that the whole schedule respects, because a later step divides the
# tile among more units or into more iterations.
LIMITS = ("registers-too-many", "memory-over-capacity")


def lowered(schedule: Schedule, profile: Profile | None = None, needs: Sequence[str] = ()) -> ir.Program:
    """The kernel IR of a schedule, verified after every pass. needs: passes that a target needs. Raises Refusal."""
    return lower(schedule.computation, schedule.steps, profile or tiny_profile(), Options(verify=True), needs)


def lowered_here(schedule: Schedule, profile: Profile | None = None) -> ir.Program:
    """The same for the best device here, with the passes that it needs. Raises DeviceError, too, if there is none."""
    return lowered(schedule, profile, local_target().needs)


def check_schedule(
    schedule: Schedule, arrays: Mapping[str, Any], *, profile: Profile | None = None, opencl: bool = False, exactly: bool = False
) -> list[str]:
    """All faults of a schedule on given inputs. Raises Refusal if it is refused.

    The simulator runs it and must report nothing, in whatever order asynchronous copies complete; on request, an OpenCL device runs it,
    too. The results of both must agree with the reference, within its error bound, or bit for bit if `exactly`. The simulated threads
    must access the elements that the steps say, as far as `tracing.reading` covers these steps.
    """
    program = lowered(schedule, profile)
    expected = Expected(schedule.computation, arrays, exactly, schedule.error_ulps, schedule.shared_loops)
    faults = check_simulated(program, expected, reading(schedule, profile or tiny_profile(), arrays))
    if opencl:
        here = lowered_here(schedule, profile)
        faults += check_simulated(here, expected) if here != program else []
        faults += check_device([(here, expected)])[0]
    return faults


@dataclasses.dataclass
class Expected:
    """Inputs and their reference results, which are computed once, on first use. error_ulps, loops: of the schedule."""

    computation: Computation
    arrays: Mapping[str, Any]
    exactly: bool = False
    error_ulps: float = 0
    loops: Sequence[SharedLoop] = ()
    _known: tuple[Arrays, Arrays] | None = None

    def faults(self, results: Mapping[str, Any], where: str) -> list[str]:
        """The faults of results, by output name."""
        named = {t.name: _logical(results[t.name], t.dtype.numpy, t.shape) for t in self.computation.outputs}
        if self._known is None:
            self._known = reference.evaluate_and_bound(self.computation, self.arrays, self.error_ulps, loops=self.loops)
        report = reference.compared(self.computation, self._known, named, self.exactly, "given data")
        return [] if report else [f"{where}: {report}"]


def _logical(array: Any, type: Any, shape: tuple[int, ...]) -> Any:
    """A result in the type and shape of its tensor: conditions are stored as bytes, a scalar as one element."""
    found = np.asarray(array).reshape(shape)
    return found.astype(bool) if np.dtype(type).kind == "b" else found


def stored(array: Any, buffer: ir.Buffer) -> Any:
    """An input as it is stored in its buffer."""
    return np.ascontiguousarray(array, buffer.dtype.numpy).reshape(buffer.shape)


def check_simulated(program: ir.Program, expected: Expected, read: Reading | None = None) -> list[str]:
    """The simulator's findings, wrong results, and accesses by other threads than `read` predicts."""
    faults = []
    inputs = {b.name: stored(expected.arrays[b.name], b) for b in program.buffers if b.role == "input"}
    for number, order in enumerate(simulate.orders(program)):
        trace = Trace() if read is not None and not number else None
        report = simulate.run(program, inputs, order=order, watch=trace, costs=False)
        if trace is not None and read is not None:
            faults += [f"steps: {f}" for f in read.faults(trace)]
        if report.counts:
            faults.append(f"simulator ({order}): {report}")
        faults += expected.faults(report.outputs, f"simulator ({order})")
    return faults


def check_determinism(schedule: Schedule, profile: Profile | None = None) -> list[str]:
    """Whether two lowerings of one schedule give the same text."""
    first, second = (printer.to_text(lowered(schedule, profile)) for _ in range(2))
    return [] if first == second else ["two lowerings of one schedule differ"]


def check_prefixes(schedule: Schedule, arrays: Mapping[str, Any], profile: Profile | None = None) -> list[str]:
    """The faults of all prefixes of an accepted schedule. Each of them must run.

    A refused prefix is a fault, too, unless it exceeds a limit of the device.
    """
    faults = []
    for n in range(len(schedule.steps)):
        try:
            faults += [f"the first {n} steps: {f}" for f in check_schedule(schedule.prefix(n), arrays, profile=profile)]
        except Refusal as refused:
            if refused.code in LIMITS:
                continue
            faults.append(f"the first {n} steps are refused: {refused}")
        except Exception as error:
            faults.append(f"the first {n} steps fail: {type(error).__name__}: {error}")
    return faults


# ---------------------------------------------------------------- on a device


def check_device(items: Sequence[tuple[ir.Program, Expected]]) -> list[list[str]]:
    """The faults of each program's results on the best device here. All programs are compiled together."""
    results = run_on_device([(program, expected.arrays) for program, expected in items])
    where = str(local_target().dialect)
    found = []
    for (_, expected), result in zip(items, results, strict=True):
        outside = [f"{where}: wrote outside {name}" for name in result.overrun]
        found.append(outside + expected.faults(result.outputs, where))
    return found


def joined(programs: Sequence[ir.Program]) -> ir.Program:
    """Several programs as one source, with kernels renamed so that all names differ."""
    kernels = tuple(k.replace(name=f"p{i}_{j}_{k.name}") for i, p in enumerate(programs) for j, k in enumerate(p.kernels))
    return ir.Program(kernels, ())


def run_on_device(items: Sequence[tuple[ir.Program, Mapping[str, Any]]]) -> list[DeviceRun]:
    """The outputs of each program for its inputs, on the best device here. Raises DeviceError if there is none."""
    connection, dialect = connect()
    whole = joined([program for program, _ in items])
    names = kernel_names(whole, dialect)
    module = connection.build(emit(whole, dialect))
    found = []
    for i, (program, inputs) in enumerate(items):
        arrays = {b.name: Guarded(b, inputs.get(b.name)) for b in program.buffers}
        held = {
            b.name: connection.host_array(arrays[b.name].array, "input" if b.role == "input" else "both", None)
            for b in program.buffers
        }
        for j, k in enumerate(program.kernels):
            function = module.function(names[f"p{i}_{j}_{k.name}"], k.grid, k.threads, k.shared_bytes)
            maps = [connection.tensor_map(map, held[name].buffer) for name, map in tensor_maps(k)]
            function([*(held[b.name].buffer for b in k.arguments), *maps])
        for argument in held.values():
            argument.land()
        connection.finish()
        found.append(DeviceRun({b.name: arrays[b.name].array for b in program.buffers if b.role == "output"},
                               [b.name for b in program.buffers if not arrays[b.name].intact()]))  # fmt: skip
    return found


def connect() -> tuple[Connection, Dialect]:
    """The best device here, or TILELANG_TARGET's if that is set, and its dialect. Raises DeviceError if there is none."""
    target = local_target()
    assert target.device is not None
    return drivers.load(target.dialect).connect(target.device), DIALECTS[target.dialect]


@dataclasses.dataclass(frozen=True)
class DeviceRun:
    """The results of a program on a device. overrun: the buffers beyond which it wrote."""

    outputs: Arrays
    overrun: list[str]


class Guarded:
    """An array for a buffer, between two guard zones.

    Buffers other than inputs start with garbage, as uninitialised memory would: the bytes of a NaN, or an unexpected number.
    """

    STRIP = 256  # bytes

    def __init__(self, buffer: ir.Buffer, value: Any) -> None:
        end = self.STRIP + buffer.bytes
        self._bytes = np.full(end + self.STRIP, 0xA5, np.uint8)
        self._strips = self._bytes[: self.STRIP], self._bytes[end:]
        inside = self._bytes[self.STRIP : end]
        inside[...] = 0xFF
        self.array = inside.view(buffer.dtype.numpy).reshape(buffer.shape)
        if buffer.role == "input":
            self.array[...] = stored(value, buffer)

    def intact(self) -> bool:
        """Whether the guard zones are unchanged."""
        return all(bool((strip == 0xA5).all()) for strip in self._strips)
