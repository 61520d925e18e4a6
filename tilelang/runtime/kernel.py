"""From a computation to a kernel that runs: `compile`, `Kernel`, `simulate`, targets and devices.

The only module that sees schedules, lowering and drivers together; which schedule it is, planning.py says. A Kernel owns nothing but
its program and its binary: arguments are checked before the launch, nothing is remembered about them afterwards.
"""

from __future__ import annotations

import collections
import contextlib
import dataclasses
import logging
import math
import os
import statistics
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tilelang.computations import arguments
from tilelang.computations.arguments import array_type, bind
from tilelang.computations.computation import Computation, Tensor
from tilelang.core.lazy import cached_property
from tilelang.core.node import Unchanging, fill
from tilelang.errors import ComputationError, DeviceError, Refusal, brief
from tilelang.lowering import ir
from tilelang.lowering.compilers import interface as compilers
from tilelang.lowering.descriptors import tensor_maps
from tilelang.lowering.drivers import interface as drivers
from tilelang.lowering.drivers.cache import BinaryCache
from tilelang.lowering.drivers.tensor_maps import TensorMap
from tilelang.lowering.targets.c.emitter import emit, error_bounds, kernel_names
from tilelang.options import Options
from tilelang.profiles.files import load_profile
from tilelang.profiles.profile import Profile
from tilelang.runtime import schedule_selection
from tilelang.runtime.launch_arguments import Direct, Placing, given_outputs
from tilelang.runtime.resources import Resources
from tilelang.runtime.targets import DIALECTS, Target, devices, target
from tilelang.schedules.explain import Refinement, explain, refinements
from tilelang.schedules.schedule import Builder, Schedule
from tilelang.schedules.steps import Place

if TYPE_CHECKING:
    from tilelang.autoschedule.common.cost import Estimate
    from tilelang.autoschedule.tune.measure import Progress
    from tilelang.lowering.compilers.compiled import Compiled
    from tilelang.lowering.drivers.interface import Connection, Driver, Function
    from tilelang.lowering.simulator.simulate import Report
    from tilelang.semantics.reference import Report as CheckReport

__all__ = ["DIALECTS", "Kernel", "Resources", "Target", "check_schedule", "compile", "devices", "simulate", "target"]


def compile(
    what: Computation | Tensor | Schedule,
    target: Target | str | None = None,
    schedule: Builder | None = None,
    trials: int = 0,
    options: Options | None = None,
    progress: Progress | None = None,
) -> Kernel:
    """A kernel for a computation or a schedule.

    target: a Target, a dialect's name, or None for what the options name, else the best device here. schedule: how, if `what` is a
    computation: a Schedule, or a Move's steps; without one it is constructed for the device. trials: how many candidates are timed on
    the device; 0: none, what was found by timing before is taken, else the likeliest. options: of these, target, profile, platform and
    device count where no Target is given. progress: called while candidates are timed with a stage ("check", "time"), what is done of
    it, and of how much. With check="simulate" in the options, the schedule is simulated at small sizes before the kernel is given out.
    Raises Refusal for a schedule that cannot be, or is found wrong so, DeviceError where there is no device or it cannot do what is
    asked.

    >>> import tilelang as tl
    >>> i = tl.axes(i=4)
    >>> twice = tl.define("Y", tl.input("X", tl.float32, i)[i] * 2, i)
    >>> compile(twice, target("opencl", profile="simulated"))
    <kernel Y (opencl for simulated)>
    """
    check_trials(trials)
    if options is not None and not isinstance(options, Options):
        raise DeviceError(
            "bad-options", f"options={brief(options)} is not a tl.Options", mend="pass tl.Options, as in tl.Options(verify=True)"
        )
    chosen = target if isinstance(target, Target) else globals()["target"](target, options=options)
    options = Options.from_environment() if options is None else options
    plan, program, new = schedule_selection.planned(schedule_selection.asked(what, schedule), chosen, trials, options, progress)
    if options.check == "simulate":
        _check_simulated(plan, chosen, options.check_seconds)
    return Kernel(plan, chosen, program, options, new)


def _check_simulated(plan: Schedule, chosen: Target, seconds: int | None) -> None:
    """Refuses a schedule whose simulation at small sizes has a fault; what could not be simulated is said in the log."""
    from tilelang.runtime.simulated_check import check_simulated, not_as_defined

    verdict = check_simulated(plan, chosen, seconds)
    for why in verdict.skipped:
        logging.getLogger("tilelang").warning("%s: not simulated: %s", plan.computation.name, why)
    if verdict.faulty is not None:
        raise not_as_defined(plan.computation.name, verdict.faulty)


def check_trials(trials: int) -> None:
    """Raises Refusal `bad-size` for what is not a number of candidates to time.

    >>> check_trials(8)
    """
    if not isinstance(trials, int) or isinstance(trials, bool) or trials < 0:
        raise Refusal(
            "bad-size", f"trials={brief(trials)} is not a valid number of candidates", mend="use a whole number, 0 or more"
        )


def check_schedule(schedule: Schedule, profile: Profile | str | None) -> None:
    """Lowers a schedule for a profile, without a device, for the refusal that it may give.

    >>> import tilelang as tl
    >>> i = tl.axes(i=64)
    >>> y = tl.define("Y", tl.input("X", tl.float32, i)[i] * 2, i)
    >>> check_schedule(tl.schedule(y).tile(i=8).to(tl.block), "simulated")
    """
    schedule_selection.check(
        schedule, profile if isinstance(profile, Profile) else load_profile("sapphire_rapids" if profile is None else profile)
    )


class Kernel(Unchanging):
    """A compiled computation. Call it with the inputs in order or by name; see `__call__`."""

    schedule: Schedule
    target: Target
    program: ir.Program
    options: Options
    computation: Computation

    def __init__(self, schedule: Schedule, target: Target, program: ir.Program, options: Options, new: bool = False) -> None:
        """new: the schedule was just constructed, so that the kernel is hardly in a cache."""
        fill(self, schedule=schedule, target=target, program=program, options=options, computation=schedule.computation)
        self._new = new
        self._spare: list[tuple[dict[str, Any], Any]] = []  # workspaces that no call uses, each with the queue that used it last
        self._direct: Direct | None = None  # after the first call, which compiles
        self._inputs = [(t, array_type(t)) for t in self.computation.inputs]
        self._outputs = [(t, array_type(t)) for t in self.computation.outputs]

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickles as what it was compiled from: whoever loads it compiles it again, for the device of that name there."""
        return compile, (self.schedule, self.target, None, 0, self.options)

    # ------------------------------------------------------------ what it is

    @cached_property
    def source(self) -> str:
        """The text that the device's compiler gets."""
        with schedule_selection.no_collection():
            return emit(self.program, DIALECTS[self.target.dialect])

    @cached_property
    def compiled(self) -> Compiled:
        """The machine code for the profile's architecture, with what it uses; no device is needed.

        Raises DeviceError: `no-compiler` where only the driver compiles the dialect, or its compiler is not installed.
        """
        architecture = self.target.profile.architecture
        compiler = compilers.load(self.target.dialect)
        if architecture is None:
            message = f"the profile {self.target.profile.name} does not name an architecture to compile for"
            raise DeviceError("no-compiler", message, mend='use a profile that names one, as in architecture = "sm_80"')
        return compiler.compile_source(self.source, architecture, (), BinaryCache(self.options.cache_dir))

    @property
    def resources(self) -> tuple[Resources, ...]:
        """What each kernel of the program uses; also what the compiler reports, where one is installed that can tell."""
        compiled, unknown = self._reported_or_why
        kernels = self.program.kernels
        found = [Resources(k.name, k.grid, k.threads, k.shared_bytes, sum(b.elements for b in k.registers)) for k in kernels]
        if compiled is None:
            return tuple(dataclasses.replace(r, unknown=unknown) for r in found)
        names = kernel_names(self.program, DIALECTS[self.target.dialect])
        reported = [dataclasses.asdict(compiled.kernel(names[r.kernel])) for r in found]
        taken = {f.name for f in dataclasses.fields(Resources)} - {"shared_bytes"}
        return tuple(dataclasses.replace(r, **{k: v for k, v in one.items() if k in taken})
                     for r, one in zip(found, reported, strict=True))  # fmt: skip

    @cached_property
    def _reported_or_why(self) -> tuple[Compiled | None, str]:
        """The machine code with what its compiler reports, or why there is none."""
        if self.target.dialect in compilers.COMPILERS and self.target.dialect not in compilers.REPORTING:
            return None, "the compiler does not report them"
        try:
            return self.compiled, ""
        except DeviceError as error:
            if error.code not in compilers.ABSENT:
                raise
            return None, f"{error.message}: {error.mend}"

    @property
    def assembly(self) -> str:
        """The machine code as text: assembly of the processor or of AMD's GPUs, or SASS.

        Raises DeviceError where no compiler or no disassembler can give it, with what to install.
        """
        return compilers.load(self.target.dialect).text_of_code(self.source, self.compiled)

    @cached_property
    def estimate(self) -> Estimate:
        """The predicted time by the profile's numbers: `seconds`, the `parts` that add up to it, and the `bound` below which no
        schedule can go."""
        from tilelang.autoschedule.models import estimate_schedule

        return estimate_schedule(self.schedule, self.target.profile)

    @cached_property
    def refinements(self) -> tuple[Refinement, ...]:
        """The steps of the schedule as a tree, each with the spec after it, those in braces beneath the step that they are of."""
        return refinements(self.schedule, self.target.profile, self.program.chains)

    def explain(self) -> str:
        """The spec after each step of the schedule, and notes on what it may do unexpectedly; then what each kernel uses, what was
        chosen for loads that run ahead, and its barriers with the accesses that need them."""
        lines = [explain(self.schedule, self.refinements, self.target.profile)]
        for k, used in zip(self.program.kernels, self.resources, strict=True):
            grid = " x ".join(str(n) for n in used.grid if n != 1) or "1"
            lines.append(f"kernel {k.name}: blocks {grid}, threads {used.threads}, shared memory {used.shared_bytes} bytes")
            lines += [f"  {used}"] if self.target.dialect in compilers.REPORTING else []
            lines += [f"  {note}" for note in k.notes]
            for barrier in (s for s in ir.statements(k.body) if isinstance(s, ir.Barrier)):
                lines += ["  barrier", *(f"    {reason}" for reason in barrier.reasons)]
        return "\n".join(lines)

    def export(
        self, folder: str | os.PathLike[str], name: str | None = None, architecture: str | None = None
    ) -> tuple[Path, ...]:
        """Writes the kernel for C programs, which need no Python: its text, a header, a launcher with and without threads, a static
        and a shared library, a `main.c` that calls it, and a readme with the commands; the files.

        folder: made where it is not there; an earlier export in it is replaced, no other file is. name: what files and functions are
        called, by default as the computation. architecture: another processor or system, `neoverse-v2@aarch64-linux`; by default the
        profile's. Raises DeviceError: the kernel is none of the target cpu, the name is none in C, the folder cannot be written, a
        file is in the way, or a compiler is missing.
        """
        from tilelang.lowering.export.folder import export

        if self.target.dialect != "cpu":
            message = f"export needs the target cpu, this kernel is compiled for {self.target}"
            raise DeviceError("export-target", message, mend='tl.compile(..., target="cpu")')
        architecture = architecture or self.target.profile.architecture or "native"
        return export(self.computation, self.program, self.source, folder, name or self.computation.name, architecture)

    def __repr__(self) -> str:
        return f"<kernel {self.computation.name} ({self.target})>"

    # ------------------------------------------------------------ running

    @cached_property
    def _result(self) -> Any:
        """The named tuple of several outputs."""
        return collections.namedtuple("Outputs", [t.name for t in self.computation.outputs], rename=True)

    @cached_property
    def _driver(self) -> Driver:
        return drivers.load(self.target.dialect)

    @cached_property
    def _connection(self) -> Connection:
        if self.target.device is None:
            mend = "compile without profile=, or use tl.simulate"
            raise DeviceError("no-device", f"{self.target} is a profile without a device", mend=mend)
        return self._driver.connect(self.target.device)

    @property
    def queue(self) -> Any:
        """The queue that calls are launched on: with OpenCL, pyopencl arrays made with it are taken as they are."""
        return self._connection.queue

    @cached_property
    def _launches(self) -> list[tuple[Function, tuple[str, ...], tuple[tuple[str, TensorMap], ...]]]:
        connection = self._connection
        with self._compiler_begun():
            module = connection.build(self.source, (), BinaryCache(self.options.cache_dir))
        names = kernel_names(self.program, DIALECTS[self.target.dialect])
        return [
            (
                module.function(names[k.name], k.grid, k.threads, k.shared_bytes),
                tuple(b.name for b in k.arguments),
                tensor_maps(k),
            )
            for k in self.program.kernels
        ]

    def _compiler_begun(self) -> contextlib.AbstractContextManager[None]:
        """In the `with` the text is written and compiled: the compiler starts now, unless the text may have been compiled before."""
        device, dialect = self.target.device, self.target.dialect
        if device is None or not self._new:
            return contextlib.nullcontext()
        sums = any(step.verb == "accumulate" for step in self.schedule.steps if isinstance(step, Place))
        return compilers.begun(dialect, device.architecture, DIALECTS[dialect].summing if sums else ())

    @cached_property
    def _workspace(self) -> tuple[ir.Buffer, ...]:
        return tuple(b for b in self.program.buffers if b.role == "workspace")

    def launch(self, buffers: Mapping[str, Any], queue: Any = None) -> list[Any]:
        """Enqueues the kernels on device buffers by tensor name; their events."""
        return self._enqueue(buffers, None if queue is None else self._driver.as_queue(queue), timed=True)

    def _enqueue(self, buffers: Mapping[str, Any], queue: Any, timed: bool = False) -> list[Any]:
        """The same; events only if timed.

        No lock is held, so that a call may come from another thread, from a signal's handler in the middle of this one, or in a child
        that was forked meanwhile. Each has a workspace of its own.
        """
        if not self._workspace:
            return [function.timed(given, queue) if timed else function(given, queue) for function, given in self._with(buffers)]
        workspace = self._take_workspace(queue)
        try:
            launches = self._with({**workspace, **buffers})
            return [function.timed(given, queue) if timed else function(given, queue) for function, given in launches]
        finally:
            self._spare.append((workspace, queue))

    def _take_workspace(self, queue: Any) -> dict[str, Any]:
        """Memory for the intermediate results of one call. Where kernels of another queue may still use it, waits for them."""
        try:
            workspace, last = self._spare.pop()
        except IndexError:
            return {b.name: self._connection.allocate(b.bytes) for b in self._workspace}
        try:
            if queue != last:  # a handle's stream may be gone: all are waited for
                self._connection.finish(None if isinstance(last, int) else last)
        except BaseException:  # Ctrl-C: those kernels still use it, so it must not be freed
            self._spare.append((workspace, last))
            raise
        return workspace

    def _with(self, buffers: Mapping[str, Any]) -> list[tuple[Function, list[Any]]]:
        """The kernels in order, each with its buffers."""
        found = []
        launches = self._launches  # compiles: what goes wrong there is not for want of buffers
        try:
            for function, names, maps in launches:
                given = [buffers[n] for n in names]
                if maps:
                    given += [self._connection.tensor_map(m, buffers[n]) for n, m in maps]
                found.append((function, given))
        except (KeyError, TypeError) as error:
            mend = "pass a device buffer for each of " + ", ".join(b.name for b in self.program.buffers if b.role != "workspace")
            raise ComputationError("arguments", f"launch needs a device buffer for each name: {error}", mend=mend) from None
        return found

    def __call__(self, /, *arrays: Any, out: Any = None, queue: Any = None, **named: Any) -> Any:
        """Runs the kernel.

        arrays, named: the inputs, in order or by name; NumPy arrays (or what NumPy takes as one, such as a PyTorch tensor on the
        host) or arrays on the device: pyopencl's with OpenCL; with CUDA and HIP those of PyTorch, CuPy, JAX and others that have
        `__dlpack__` or `__cuda_array_interface__`. out: the output array, or one per output (a sequence, or a mapping by name).
        queue: a queue of pyopencl's, or a stream of any library, or its handle. With device inputs the results are device arrays of
        the same library and the call does not wait; otherwise NumPy arrays, finished. One output: the array; several: a named
        tuple, in the order of the computation.

        Raises ComputationError, before the launch, where a name, number, shape, type or memory does not fit.
        """
        if self._direct is not None and queue is None and not named:
            result = self._direct.run(arrays, out)
            if result is not None:
                return result
        given, outs = bind(self.computation, arrays, named), given_outputs(self._outputs, out)
        connection, is_device_array = self._connection, self._driver.is_device_array
        on_device = [a for a in (*given, *outs) if is_device_array(a)]
        if queue is not None:
            queue = self._driver.as_queue(queue)
        elif on_device:
            queue = connection.queue_of(on_device)
        placing = Placing(connection, queue, is_device_array if on_device else None, self.options.check_ranges)
        placed = [placing.input(tensor, type, value) for (tensor, type), value in zip(self._inputs, given, strict=True)]
        inputs, like = len(placed), on_device[0] if on_device else None
        for (tensor, type), value in zip(self._outputs, outs, strict=True):
            placed.append(placing.output(tensor, type, value, like, placed, inputs))
            if value is None and like is not None:
                on_device.append(placed[-1].result)
        results = placed[inputs:]
        try:
            self._enqueue({p.name: p.buffer for p in placed}, queue)
            for result in results:
                result.land(queue)
            if on_device:
                connection.hand_back(on_device, queue)
                if len(on_device) < len(placed):  # the memory of those of the host may change hands after the call
                    connection.finish(queue)
        except BaseException:  # Ctrl-C: no kernel may outlive the arrays that it works on
            connection.finish(queue)
            raise
        if self._direct is None and connection.address is not None:
            self._direct = self._directly(connection.address)
        return results[0].result if len(results) == 1 else self._result(*(r.result for r in results))

    def _directly(self, address: Callable[[Any], int]) -> Direct | None:
        """Calls without detours, where there is one launch, one output, and nothing to look up in the arrays."""
        looks = self.options.check_ranges and any(t.range is not None for t, _ in self._inputs)
        if looks or len(self._launches) != 1 or len(self._outputs) != 1 or self._workspace:
            return None
        ((function, names, maps),) = self._launches
        order = [t.name for t, _ in (*self._inputs, *self._outputs)]
        if maps or not set(names) <= set(order):
            return None
        return Direct(function, [order.index(n) for n in names], self._inputs, self._outputs, address)

    # ------------------------------------------------------------ trusting and timing it

    def check(self, seed: int = 0) -> CheckReport:
        """Compares with the reference: random data within the derived bound, and small integers exactly where that applies."""
        from tilelang.semantics.reference import check

        return check(
            self.computation,
            lambda arrays: self._by_name(self(*(arrays[tensor.name] for tensor, _ in self._inputs))),
            seed,
            self.schedule.error_ulps,
            error_bounds(DIALECTS[self.target.dialect]),
        )

    def _by_name(self, result: Any) -> dict[str, Any]:
        names = [t.name for t, _ in self._outputs]
        return {names[0]: result} if len(names) == 1 else dict(zip(names, result, strict=True))

    def benchmark(self, repeats: int = 11, seed: int = 0) -> float:
        """Median seconds of the kernels on the device, by its events, over `repeats` runs on random data that stays there."""
        from tilelang.semantics.reference import random_arrays

        if not isinstance(repeats, int) or repeats < 1:
            raise ComputationError(
                "repeats", f"repeats={repeats!r} is not a valid number of runs", mend="use a whole number, 1 or more"
            )
        connection = self._connection
        buffers = {name: connection.upload(array) for name, array in random_arrays(self.computation, seed).items()}
        buffers |= {t.name: connection.allocate(math.prod(t.shape) * t.dtype.bytes) for t, _ in self._outputs}
        self.launch(buffers)
        connection.finish()
        seconds = self._driver.seconds
        return statistics.median(sum(seconds(e) for e in self.launch(buffers) if e is not None) for _ in range(repeats))


def simulate(
    kernel: Kernel, /, *arrays: Any, order: str | int = "early", limit_statements: float | None = None, **named: Any
) -> Report:
    """Runs a kernel's IR for every thread in NumPy: its outputs, faults, memory transactions and bank conflicts.

    Outputs that differ from the reference by more than the bound are a fault, too (`wrong-value`).

    arrays, named: the inputs, in order or by name (random ones where none is given). order: when asynchronous results land.
    limit_statements: the most that are run, each for a batch of blocks (None: as many as take some minutes; math.inf: any number).
    Source of the device's numbers (warp, banks, transactions): the kernel's profile. Raises ComputationError for more statements,
    or arrays that do not fit.

    >>> import tilelang as tl
    >>> i = tl.axes(i=4)
    >>> twice = tl.define("Y", tl.input("X", tl.float32, i)[i] * 2, i)
    >>> print(simulate(compile(twice, target("opencl", profile="simulated"))))
    nothing found
    """
    from tilelang.lowering.simulator.simulate import check_work, device_numbers, run
    from tilelang.runtime.simulated_check import with_wrong_values
    from tilelang.semantics.reference import random_arrays

    if not isinstance(kernel, Kernel):
        raise ComputationError(
            "not-a-kernel", f"{brief(kernel)} is not a kernel", mend="pass a kernel, as in tl.simulate(tl.compile(...))"
        )
    if limit_statements is not None and not isinstance(limit_statements, (int, float)):
        raise ComputationError(
            "limit", f"limit_statements={brief(limit_statements)} is not a number", mend="pass a number, or math.inf"
        )
    check_work(kernel.program, limit_statements, mend="use smaller sizes, or a larger limit_statements=")
    given = random_arrays(kernel.computation)
    if arrays or named:
        given = {t.name: a for t, a in arguments.inputs(kernel.computation, arrays, named).items()}
    report = run(kernel.program, given, order=order, **device_numbers(kernel.target.profile))
    return with_wrong_values(report, kernel.schedule, kernel.target, given)
