"""From a computation to a running kernel: `compile`, `Kernel`, `simulate`.

Only this module uses schedules, lowering and drivers together; schedule_selection.py chooses the schedule. A Kernel owns only its
program and its binary: arguments are checked before each launch and not kept afterwards.
"""

from __future__ import annotations

import collections
import contextlib
import dataclasses
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
from tilelang.lowering.compilers import interface as compilers
from tilelang.lowering.drivers import interface as drivers
from tilelang.lowering.drivers.cache import BinaryCache
from tilelang.lowering.drivers.tensor_maps import TensorMap
from tilelang.options import Options
from tilelang.profiles.files import load_profile
from tilelang.profiles.profile import Profile
from tilelang.runtime import launch_plan, schedule_selection
from tilelang.runtime.launch_arguments import Direct, Placing, given_outputs
from tilelang.runtime.launch_plan import LaunchPlan
from tilelang.runtime.resources import Resources
from tilelang.runtime.targets import DIALECTS, Target, devices, target
from tilelang.schedules.schedule import Builder, Schedule

if TYPE_CHECKING:
    from tilelang.autoschedule.common.cost import Estimate
    from tilelang.autoschedule.tune.entries import StoredSchedule
    from tilelang.autoschedule.tune.measure import Progress
    from tilelang.lowering import ir
    from tilelang.lowering.compilers.compiled import Compiled
    from tilelang.lowering.drivers.interface import Connection, Driver, Function
    from tilelang.lowering.simulator.simulate import Report
    from tilelang.schedules.explain import Refinement
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
    """Compiles a computation or a schedule to a kernel.

    target: a Target, a dialect's name, or None for the one that the options name, else the best device here. schedule: for a
    computation, a Schedule or a Move's steps; without one a schedule is generated for the device. trials: how many candidates are timed
    on the device; with 0, an earlier autotuning result is used, else the candidate with the best prediction. options: their target,
    profile, platform and device apply if no Target is given. progress: called during autotuning with a stage ("check", "time"), the
    amount done, and the total. With check="simulate" in the options, the schedule is simulated at small sizes before the kernel is
    returned.
    Raises Refusal for an invalid schedule, or one that the simulation shows to be wrong, DeviceError if there is no device or it cannot
    do what is asked.

    >>> import tilelang as tl
    >>> i = tl.axes(i=4)
    >>> twice = tl.define("Y", tl.input("X", tl.float32, i)[i] * 2, i)
    >>> compile(twice, target("opencl", profile="simulated"))
    <kernel Y (opencl for simulated)>
    """
    check_trials(trials)
    if options is not None and not isinstance(options, Options):
        raise DeviceError(
            "bad-options", f"options={brief(options)} is not a tl.Options", help="pass tl.Options, as in tl.Options(verify=True)"
        )
    chosen = target if isinstance(target, Target) else globals()["target"](target, options=options)
    options = Options.from_environment() if options is None else options
    plan = schedule_selection.select(schedule_selection.requested(what, schedule), chosen, trials, options, progress)
    kernel = Kernel(plan.schedule, chosen, plan.program, options, plan.new, plan.source, plan.launch_plan)
    if options.check == "simulate":
        from tilelang.runtime.simulated_check import refuse_faulty  # late: only checks need it

        refuse_faulty(kernel.schedule, chosen, options.check_seconds)
    return kernel


def check_trials(trials: int) -> None:
    """Raises Refusal `bad-size` for an invalid number of trials.

    >>> check_trials(8)
    """
    if not isinstance(trials, int) or isinstance(trials, bool) or trials < 0:
        raise Refusal(
            "bad-size", f"trials={brief(trials)} is not a valid number of candidates", help="use a whole number, 0 or more"
        )


def check_schedule(schedule: Schedule, profile: Profile | str | None) -> None:
    """Lowers a schedule for a profile, without a device, to raise any Refusal.

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

    target: Target
    options: Options
    computation: Computation

    def __init__(
        self,
        schedule: Schedule | StoredSchedule,
        target: Target,
        program: ir.Program | None,
        options: Options,
        new: bool = False,
        source: str | None = None,
        kept: LaunchPlan | None = None,
    ) -> None:
        """program: None if it is lowered only when the kernel IR is needed. new: the schedule was just generated, so the kernel is
        probably not cached. source: the program's text, if it is being compiled. kept: the launch plan of an earlier process."""
        fill(self, target=target, options=options, computation=schedule.computation)
        self._given = schedule
        source = kept.source if kept is not None else source
        for name, value in (("program", program), ("source", source), ("_launch_plan", kept)):
            if value is not None:
                fill(self, **{name: value})
        self._kept = kept is not None
        self._new = new
        self._spare: list[tuple[dict[str, Any], Any]] = []  # idle workspaces, each with the queue that used it last
        self._direct: Direct | None = None  # set by the first call, which compiles
        self._inputs = [(t, array_type(t)) for t in self.computation.inputs]
        self._outputs = [(t, array_type(t)) for t in self.computation.outputs]

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickles as its sources: loading compiles it again, for the device of that name on the loading machine."""
        return compile, (self.schedule, self.target, None, 0, self.options)

    # ------------------------------------------------------------ what it is

    @cached_property
    def schedule(self) -> Schedule:
        """The schedule, given or generated."""
        return self._given if isinstance(self._given, Schedule) else self._given.schedule

    @cached_property
    def program(self) -> ir.Program:
        """The kernel IR after all passes."""
        with schedule_selection.no_collection():
            return schedule_selection.lowered(self.schedule, self.target, self.options)

    @cached_property
    def source(self) -> str:
        """The source text passed to the device's compiler."""
        from tilelang.lowering.targets.c.emitter import emit  # late: a process that recalls a plan needs no kernel IR

        with schedule_selection.no_collection():
            return emit(self.program, DIALECTS[self.target.dialect])

    @cached_property
    def compiled(self) -> Compiled:
        """The machine code for the profile's architecture and its resource usage; needs no device.

        Raises DeviceError: `no-compiler` if only the driver compiles the dialect, or if its compiler is not installed.
        """
        architecture = self.target.profile.architecture
        compiler = compilers.load(self.target.dialect)
        if architecture is None:
            message = f"the profile {self.target.profile.name} does not name an architecture to compile for"
            raise DeviceError("no-compiler", message, help='use a profile that names one, as in architecture = "sm_80"')
        return compiler.compile_source(self.source, architecture, (), BinaryCache(self.options.cache_dir))

    @property
    def resources(self) -> tuple[Resources, ...]:
        """The resources of each kernel of the program, including the compiler's report if a compiler that reports them is installed."""
        from tilelang.lowering.targets.c.emitter import kernel_names  # late: a process that recalls a plan needs no kernel IR

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
        """The machine code with its compiler's report, or the reason why there is none."""
        if self.target.dialect in compilers.COMPILERS and self.target.dialect not in compilers.REPORTING:
            return None, "the compiler does not report them"
        try:
            return self.compiled, ""
        except DeviceError as error:
            if error.code not in compilers.ABSENT:
                raise
            return None, f"{error.message}: {error.help}"

    @property
    def assembly(self) -> str:
        """The machine code as text: CPU or AMD GPU assembly, or SASS.

        Raises DeviceError, with what to install, if there is no compiler or disassembler.
        """
        return compilers.load(self.target.dialect).text_of_code(self.source, self.compiled)

    @cached_property
    def estimate(self) -> Estimate:
        """The predicted time by the profile's numbers: `seconds`, its summands `parts`, and a lower `bound` for any schedule."""
        from tilelang.autoschedule.models import estimate_schedule  # late: compiling a given schedule does not need it

        return estimate_schedule(self.schedule, self.target.profile)

    @cached_property
    def refinements(self) -> tuple[Refinement, ...]:
        """The steps of the schedule as a tree, each with the resulting spec; steps in braces are children of their step."""
        from tilelang.schedules.explain import refinements  # late: running a kernel does not need it

        return refinements(self.schedule, self.target.profile, self.program.chains)

    def explain(self) -> str:
        """The spec after each step of the schedule, with notes on unexpected effects; where the values between definitions are kept,
        their bytes, and the predicted time of the best plan that keeps them elsewhere; then each kernel's resources, the chosen
        prefetch methods, and its barriers with the accesses that need them.

        The search for a schedule runs again for this, which takes as long as `tl.compile` without a database."""
        from tilelang.runtime.explained import explained  # late: running a kernel does not need it

        return explained(self)

    def export(
        self, folder: str | os.PathLike[str], name: str | None = None, architecture: str | None = None
    ) -> tuple[Path, ...]:
        """Exports the kernel for C programs, which need no Python: source, header, a launcher with and without threads, a static and a
        shared library, an example `main.c`, and a readme with the commands. Returns the files.

        folder: created if necessary; an earlier export in it is replaced, other files never are. name: of files and functions, by
        default the computation's. architecture: another CPU or system, such as `neoverse-v2@aarch64-linux`; by default the profile's.
        Raises DeviceError if the kernel's target is not cpu, the name is not valid in C, the folder cannot be written, a file is in the
        way, or a compiler is missing.
        """
        from tilelang.lowering.export.folder import export  # late: compiling a given schedule does not need it

        if self.target.dialect != "cpu":
            message = f"export needs the target cpu, this kernel is compiled for {self.target}"
            raise DeviceError("export-target", message, help='tl.compile(..., target="cpu")')
        architecture = architecture or self.target.profile.architecture or "native"
        return export(self.computation, self.program, self.source, folder, name or self.computation.name, architecture)

    def __repr__(self) -> str:
        return f"<kernel {self.computation.name} ({self.target})>"

    # ------------------------------------------------------------ running

    @cached_property
    def _result(self) -> Any:
        """The named tuple type for several outputs."""
        return collections.namedtuple("Outputs", [t.name for t in self.computation.outputs], rename=True)

    @cached_property
    def _driver(self) -> Driver:
        return drivers.load(self.target.dialect)

    @cached_property
    def _connection(self) -> Connection:
        if self.target.device is None:
            help = "compile without profile=, or use tl.simulate"
            raise DeviceError("no-device", f"the target {self.target} has no device to run on", help=help)
        return self._driver.connect(self.target.device)

    @property
    def queue(self) -> Any:
        """The queue that calls are launched on; with OpenCL, pyopencl arrays created with it need no extra synchronization."""
        return self._connection.queue

    @cached_property
    def _launch_plan(self) -> LaunchPlan:
        return launch_plan.of_program(self.program, self.target.dialect, self.source)

    @cached_property
    def _launches(self) -> list[tuple[Function, tuple[str, ...], tuple[tuple[str, TensorMap], ...]]]:
        connection = self._connection
        with self._compiler_begun():
            module = connection.build(self.source, (), BinaryCache(self.options.cache_dir))
        plan = self._launch_plan
        found = [(module.function(n.name, n.grid, n.threads, n.shared_bytes), n.arguments, n.maps) for n in plan.launches]
        if not self._kept:
            launch_plan.remember(plan, self.schedule, self.target, self.options)
        return found

    def _compiler_begun(self) -> contextlib.AbstractContextManager[None]:
        """In the `with` block the source is generated and compiled: starts the compiler now, unless there is a source already, or the
        result is probably cached."""
        device, dialect = self.target.device, self.target.dialect
        if device is None or not self._new or "source" in self.__dict__:
            return contextlib.nullcontext()
        from tilelang.runtime.likely_kernel import options_of  # late: a process that recalls a plan needs no lowering

        return compilers.begun(dialect, device.architecture, options_of(dialect, self.schedule.steps))

    @cached_property
    def _workspace(self) -> tuple[tuple[str, int], ...]:
        return self._launch_plan.workspace if self._launches else ()  # the compiler starts before the plan's source is written

    def launch(self, buffers: Mapping[str, Any], queue: Any = None) -> list[Any]:
        """Enqueues the kernels with device buffers by tensor name; returns their events."""
        return self._enqueue(buffers, None if queue is None else self._driver.as_queue(queue), timed=True)

    def _enqueue(self, buffers: Mapping[str, Any], queue: Any, timed: bool = False) -> list[Any]:
        """Enqueues the kernels; returns events only if `timed`.

        It holds no lock, so another call may come from another thread, from a signal handler in the middle of this one, or from a child
        forked in the meantime. Each has its own workspace.
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
        """Memory for the intermediate results of one call. If kernels of another queue may still use it, waits for them."""
        mine = next((k for k, (_, last) in enumerate([*self._spare]) if last == queue), -1)
        try:  # other threads may take some meanwhile: then this is another one, or there is none
            workspace, last = self._spare.pop(mine)
        except IndexError:
            return {name: self._connection.allocate(size) for name, size in self._workspace}
        try:
            if queue != last:  # a stream with this handle may no longer exist, so wait for all
                self._connection.finish(None if isinstance(last, int) else last)
        except BaseException:  # Ctrl-C: those kernels still use the memory, so it must not be freed
            self._spare.append((workspace, last))
            raise
        return workspace

    def _with(self, buffers: Mapping[str, Any]) -> list[tuple[Function, list[Any]]]:
        """The kernels in order, each with its buffers."""
        found = []
        launches = self._launches  # compile first: its errors do not depend on the buffers
        try:
            for function, names, maps in launches:
                given = [buffers[n] for n in names]
                if maps:
                    given += [self._connection.tensor_map(m, buffers[n]) for n, m in maps]
                found.append((function, given))
        except (KeyError, TypeError) as error:
            help = "pass a device buffer for each of " + ", ".join(b.name for b in self.program.buffers if b.role != "workspace")
            raise ComputationError("arguments", f"launch needs a device buffer for each name: {error}", help=help) from None
        return found

    def __call__(self, /, *arrays: Any, out: Any = None, queue: Any = None, **named: Any) -> Any:
        """Runs the kernel.

        arrays, named: the inputs, in order or by name: NumPy arrays (or anything that NumPy converts, such as a PyTorch tensor on the
        host), or device arrays: pyopencl's with OpenCL; with CUDA and HIP those of PyTorch, CuPy, JAX and other libraries with
        `__dlpack__` or `__cuda_array_interface__`. out: the output array, or one per output (a sequence, or a mapping by name). queue:
        a pyopencl queue, or a stream of any library, or its handle. With device inputs the results are device arrays of the same
        library and the call does not wait; otherwise they are completed NumPy arrays. Returns the array of a single output, or a named
        tuple in the order of the computation.

        Raises ComputationError, before the launch, if a name, number, shape, type or memory does not fit.
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
                if len(on_device) < len(placed):  # host arrays may be freed or reused after the call
                    connection.finish(queue)
        except BaseException:  # Ctrl-C: no kernel may outlive its arrays
            connection.finish(queue)
            raise
        if self._direct is None and connection.address is not None:
            self._direct = self._directly(connection.address)
        return results[0].result if len(results) == 1 else self._result(*(r.result for r in results))

    def _directly(self, address: Callable[[Any], int]) -> Direct | None:
        """The fast path for calls, if there is a single launch and output and the arrays need no inspection."""
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
        """Compares with the reference: on random data within the derived bound, and exactly on small integers if that applies."""
        from tilelang.lowering.targets.c.emitter import error_bounds  # late: only checks need it
        from tilelang.semantics.reference import check  # late: only checks need it

        return check(
            self.computation,
            lambda arrays: self._by_name(self(*(arrays[tensor.name] for tensor, _ in self._inputs))),
            seed,
            self.schedule.error_ulps,
            error_bounds(DIALECTS[self.target.dialect]),
            self.schedule.shared_loops,
        )

    def _by_name(self, result: Any) -> dict[str, Any]:
        names = [t.name for t, _ in self._outputs]
        return {names[0]: result} if len(names) == 1 else dict(zip(names, result, strict=True))

    def benchmark(self, repeats: int = 11, seed: int = 0) -> float:
        """The median time of the kernels on the device in seconds, from its events, over `repeats` runs on random device data."""
        from tilelang.semantics.reference import random_arrays  # late: only checks need it

        if not isinstance(repeats, int) or repeats < 1:
            raise ComputationError(
                "repeats", f"repeats={repeats!r} is not a valid number of runs", help="use a whole number, 1 or more"
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
    """Simulates a kernel's IR for every thread in NumPy: outputs, faults, memory transactions and bank conflicts.

    Outputs that differ from the reference by more than the bound are a fault, too (`wrong-value`).

    arrays, named: the inputs, in order or by name (random ones by default). order: when asynchronous operations complete.
    limit_statements: the maximum number of statements to run, each counted per batch of blocks (None: what takes a few minutes;
    math.inf: no limit). The device's parameters (warp, banks, transactions) come from the kernel's profile. Raises ComputationError if
    the limit is exceeded, or if arrays do not fit.

    >>> import tilelang as tl
    >>> i = tl.axes(i=4)
    >>> twice = tl.define("Y", tl.input("X", tl.float32, i)[i] * 2, i)
    >>> print(simulate(compile(twice, target("opencl", profile="simulated"))))
    no faults found
    """
    from tilelang.lowering.simulator.simulate import check_work, device_numbers, run  # late: only checks need it
    from tilelang.runtime.simulated_check import with_wrong_values  # late: only checks need it
    from tilelang.semantics.reference import random_arrays  # late: only checks need it

    if not isinstance(kernel, Kernel):
        raise ComputationError(
            "not-a-kernel", f"{brief(kernel)} is not a kernel", help="pass a kernel, as in tl.simulate(tl.compile(...))"
        )
    if limit_statements is not None and not isinstance(limit_statements, (int, float)):
        raise ComputationError(
            "limit", f"limit_statements={brief(limit_statements)} is not a number", help="pass a number, or math.inf"
        )
    check_work(kernel.program, limit_statements, help="use smaller sizes, or a larger limit_statements=")
    given = random_arrays(kernel.computation)
    if arrays or named:
        given = {t.name: a for t, a in arguments.inputs(kernel.computation, arrays, named).items()}
    report = run(kernel.program, given, order=order, **device_numbers(kernel.target.profile))
    return with_wrong_values(report, kernel.schedule, kernel.target, given)
