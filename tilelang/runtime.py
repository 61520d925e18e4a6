"""From a computation to a kernel that runs: `compile`, `Kernel`, `@kernel`, `simulate`, targets and devices.

The only module that sees schedules, lowering and drivers together. A Kernel owns nothing but its program and its binary: arguments are
checked before the launch, nothing is remembered about them afterwards.
"""

from __future__ import annotations

import collections
import dataclasses
import functools
import statistics
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tilelang import arguments
from tilelang.arguments import array_type, as_array, bind, check_array, check_range, first, share_memory, wrong
from tilelang.check import main_task
from tilelang.computation import Computation, Tensor, as_computation, computation, input
from tilelang.errors import ComputationError, DeviceError, Refusal, brief
from tilelang.lowering import ir
from tilelang.lowering.build.program import default_steps
from tilelang.lowering.drivers import opencl as driver
from tilelang.lowering.drivers.cache import BinaryCache
from tilelang.lowering.pipeline import lower
from tilelang.lowering.targets import opencl
from tilelang.lowering.targets.c_family import emit, kernel_names
from tilelang.machine import Profile, load_profile, shipped_profiles
from tilelang.options import Options
from tilelang.schedule import Builder, Schedule

if TYPE_CHECKING:
    from tilelang.lowering.simulate import Report
    from tilelang.reference import Report as CheckReport

DIALECTS = {"opencl": opencl.DIALECT}


@dataclasses.dataclass(frozen=True)
class Target:
    """What kernels are compiled for: a code dialect, a device profile, and the device (None: compile only)."""

    dialect: str
    profile: Profile
    device: driver.Device | None = None

    def __str__(self) -> str:
        return f"{self.dialect} for {self.device or self.profile.name}"


def devices() -> tuple[driver.Device, ...]:
    """The devices here, the best first. Empty where there is none.

    >>> all(device.compute_units > 0 for device in devices())
    True
    """
    return driver.devices()


def target(dialect: str = "opencl", profile: str | Profile | None = None, device: driver.Device | None = None) -> Target:
    """A target. Without a profile: the best device here (or the one given), with the profile that fits it and its queried limits.
    With a profile alone: kernels can be compiled to source, simulated and read, not run.

    Raises DeviceError where there is no device, or no such profile.

    >>> print(target("opencl", profile="simulated"))
    opencl for simulated
    """
    if dialect not in DIALECTS:
        mend = (
            f'tl.target("opencl", profile="{dialect}")'
            if dialect in shipped_profiles()
            else "one of " + ", ".join(sorted(DIALECTS))
        )
        raise DeviceError("unknown-dialect", f"`{dialect}` is not lowered to yet", mend=mend)
    if device is not None and not isinstance(device, driver.Device):
        raise DeviceError("no-such-device", f"device={device!r} is no device", mend="one of tl.devices()")
    options = Options.from_environment()
    if profile is None and options.profile is not None:
        profile = options.profile
    if profile is not None:
        found = profile if isinstance(profile, Profile) else load_profile(profile)
        return Target(dialect, found, device)
    return _local_target(dialect, device or driver.choose(options.platform, options.device))


@functools.cache
def _local_target(dialect: str, device: driver.Device) -> Target:
    profile = load_profile("pocl").with_queried(
        max_block_threads=device.max_threads,
        shared_bytes=device.shared_bytes,
        global_bytes=device.global_bytes,
        compute_units=device.compute_units,
        zero_copy_host=device.host_memory,
        source="queried from the device",
    )
    return Target(dialect, profile, device)


def compile(
    what: Computation | Tensor | Schedule,
    target: Target | str | None = None,
    schedule: Builder | None = None,
    trials: int = 0,
    options: Options | None = None,
) -> Kernel:
    """A kernel for a computation or a schedule.

    target: a Target, a dialect's name, or None for the best device here. schedule: how, if `what` is a computation: a Schedule, or a
    Move's steps; without one a plain default is taken. trials: reserved for measuring candidates. Raises Refusal for a schedule that
    cannot be, DeviceError where there is no device or it cannot do what is asked.

    >>> import tilelang as tl
    >>> i = tl.axes(i=4)
    >>> twice = tl.define("Y", tl.input("X", tl.float32, i)[i] * 2, i)
    >>> compile(twice, target("opencl", profile="simulated"))
    <kernel Y (opencl for simulated)>
    """
    if trials:
        raise Refusal(
            "not-lowered-yet",
            f"`trials={trials}`: candidates are measured by the autoscheduler, which is not there yet",
            mend="trials=0",
        )
    chosen = target if isinstance(target, Target) else globals()["target"]("opencl" if target is None else target)
    options = Options.from_environment() if options is None else options
    if not isinstance(options, Options):
        raise DeviceError("bad-options", f"options={brief(options)} are no options", mend="tl.Options(verify=True), say")
    plan = _plan(what, schedule, chosen.profile)
    return Kernel(plan, chosen, lower(plan.computation, plan.steps, chosen.profile, options), options)


def _plan(what: Computation | Tensor | Schedule, schedule: Builder | None, profile: Profile) -> Schedule:
    """The schedule that `compile` is asked for."""
    if schedule is not None and not isinstance(schedule, Builder):
        mend = "a Schedule, or a tl.move() with steps"
        raise Refusal("bad-steps", f"schedule={brief(schedule)} is no schedule", mend=mend)
    if isinstance(what, Schedule):
        if schedule is not None:
            raise Refusal("bad-steps", "a schedule is compiled, and schedule= gives another one", mend="give one of them")
        return what
    wanted = as_computation(what)
    if schedule is None:
        return Schedule(wanted, default_steps(main_task(wanted, ()), profile))
    plan = schedule if isinstance(schedule, Schedule) else Schedule(wanted, schedule.steps)
    if plan.computation.hash != wanted.hash:
        message = f"the schedule is for {plan.computation.name}, not for this computation"
        raise Refusal("schedule-of-another", message, mend="schedule the computation that is compiled")
    return plan


def check_schedule(schedule: Schedule, profile: Profile | str | None) -> None:
    """Lowers a schedule for a profile, without a device, for the refusal that it may give.

    >>> import tilelang as tl
    >>> i = tl.axes(i=64)
    >>> y = tl.define("Y", tl.input("X", tl.float32, i)[i] * 2, i)
    >>> check_schedule(tl.schedule(y).tile(i=8).to(tl.block), "simulated")
    """
    found = profile if isinstance(profile, Profile) else load_profile(profile or "pocl")
    lower(schedule.computation, schedule.steps, found)


@dataclasses.dataclass(frozen=True)
class Resources:
    """What one kernel of a program uses: blocks, threads of a block, shared bytes of a block, register elements of a thread."""

    kernel: str
    grid: tuple[int, int, int]
    threads: int
    shared_bytes: int
    register_elements: int


class Kernel:
    """A compiled computation. Call it with the inputs in order or by name; see `__call__`."""

    def __init__(self, schedule: Schedule, target: Target, program: ir.Program, options: Options) -> None:
        self.schedule, self.target, self.program, self.options = schedule, target, program, options
        self.computation = schedule.computation
        self._lock = threading.Lock()
        self._inputs = [(t, array_type(t)) for t in self.computation.inputs]
        self._outputs = [(t, array_type(t)) for t in self.computation.outputs]
        self._result = collections.namedtuple("Outputs", [t.name for t in self.computation.outputs], rename=True)  # type: ignore[misc]

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickles as what it was compiled from: whoever loads it compiles it again, for the device of that name there."""
        return compile, (self.schedule, self.target, None, 0, self.options)

    # ------------------------------------------------------------ what it is

    @functools.cached_property
    def source(self) -> str:
        """The text that the device's compiler gets."""
        return emit(self.program, DIALECTS[self.target.dialect])

    @property
    def resources(self) -> tuple[Resources, ...]:
        """What each kernel of the program uses."""
        kernels = self.program.kernels
        return tuple(Resources(k.name, k.grid, k.threads, k.shared_bytes, sum(b.elements for b in k.registers)) for k in kernels)

    @property
    def assembly(self) -> str:
        """The machine code as text, where the target can give it."""
        raise DeviceError("no-assembly", f"{self.target} gives no assembly", mend="read kernel.source")

    @property
    def estimate(self) -> Any:
        """The predicted time: the autoscheduler's, which is not there yet."""
        message = "estimates need a measured device profile, which is not there yet"
        raise DeviceError("no-estimate", message, mend="kernel.benchmark()")

    def explain(self) -> str:
        """The spec after each step of the schedule; then what each kernel uses, what was chosen for loads that run ahead, and its
        barriers with the accesses that need them."""
        lines = [self.schedule.explain()]
        for k, used in zip(self.program.kernels, self.resources, strict=True):
            grid = " x ".join(str(n) for n in used.grid if n != 1) or "1"
            lines.append(f"kernel {k.name}: blocks {grid}, threads {used.threads}, shared memory {used.shared_bytes} bytes")
            lines += [f"  {note}" for note in k.notes]
            for barrier in (s for s in ir.statements(k.body) if isinstance(s, ir.Barrier)):
                lines += ["  barrier", *(f"    {reason}" for reason in barrier.reasons)]
        return "\n".join(lines)

    def __repr__(self) -> str:
        return f"<kernel {self.computation.name} ({self.target})>"

    # ------------------------------------------------------------ running

    @functools.cached_property
    def _connection(self) -> driver.Connection:
        if self.target.device is None:
            mend = "compile without profile=, or tl.simulate"
            raise DeviceError("no-device", f"{self.target} is a profile without a device", mend=mend)
        return driver.connect(self.target.device)

    @property
    def queue(self) -> Any:
        """The pyopencl queue that calls are launched on: arrays made with it are taken as they are."""
        return self._connection.queue

    @functools.cached_property
    def _launches(self) -> list[tuple[driver.Function, tuple[str, ...]]]:
        module = self._connection.build(self.source, (), BinaryCache(self.options.cache_dir))
        names = kernel_names(self.program, DIALECTS[self.target.dialect])
        return [
            (module.function(names[k.name], k.grid, k.threads, k.shared_bytes), tuple(b.name for b in k.arguments))
            for k in self.program.kernels
        ]

    @functools.cached_property
    def _workspace(self) -> dict[str, Any]:
        return {b.name: self._connection.allocate(b.bytes) for b in self.program.buffers if b.role == "workspace"}

    def launch(self, buffers: Mapping[str, Any], queue: Any = None) -> list[Any]:
        """Enqueues the kernels on device buffers by tensor name; their events."""
        with self._lock:  # the workspace is one: the kernels of two calls must not mix
            every = {**self._workspace, **buffers} if self._workspace else buffers
            try:
                arguments = [[every[n] for n in names] for _, names in self._launches]
            except (KeyError, TypeError) as error:
                mend = "a device buffer for each of " + ", ".join(b.name for b in self.program.buffers if b.role != "workspace")
                raise ComputationError("arguments", f"launch needs buffers by name: {error}", mend=mend) from None
            return [function(given, queue) for (function, _), given in zip(self._launches, arguments, strict=True)]

    def __call__(self, /, *arrays: Any, out: Any = None, queue: Any = None, **named: Any) -> Any:
        """Runs the kernel.

        arrays, named: the inputs, in order or by name; NumPy arrays (or what NumPy takes as one, such as a PyTorch tensor on the
        host) or pyopencl arrays. out: the output array, or one per output (a sequence, or a mapping by name). queue: a pyopencl
        queue, for pyopencl arrays. With pyopencl inputs the results are pyopencl arrays and the call does not wait; otherwise
        NumPy arrays, finished. One output: the array; several: a named tuple in definition order.

        Raises ComputationError, before the launch, where a name, number, shape, type or memory does not fit.
        """
        given = bind(self.computation, arrays, named)
        connection = self._connection
        if queue is not None:
            driver.check_queue(queue)
        on_device = any(driver.is_device_array(a) for a in given) or (out is not None and driver.is_device_array(first(out)))
        buffers: dict[str, Any] = {}
        held: list[Any] = []
        for (tensor, type), value in zip(self._inputs, given, strict=True):
            buffers[tensor.name] = self._input(connection, tensor, type, value, held)
        if queue is None and on_device:
            queue = next((a.queue for a in given if driver.is_device_array(a) and a.queue is not None), None)
        outs = self._outs(out)
        self._check_apart(outs)
        results: list[Any] = []
        landing: list[tuple[Any, Any, Any]] = []
        for (tensor, type), value in zip(self._outputs, outs, strict=True):
            result, buffer, arrives = self._output(connection, tensor, type, value, on_device, queue, given)
            results.append(result)
            buffers[tensor.name] = buffer
            landing += [arrives] if arrives is not None else []
        try:
            self.launch(buffers, queue)
            for host, staged, wanted in landing:
                host.land(queue)
                if staged is not wanted:
                    wanted[...] = staged
            if not landing and not on_device:
                connection.finish()
        except BaseException:  # Ctrl-C: no kernel may outlive the arrays that it works on
            (queue or connection.queue).finish()
            raise
        return results[0] if len(results) == 1 else self._result(*results)

    def _input(self, connection: driver.Connection, tensor: Tensor, type: Any, value: Any, held: list[Any]) -> Any:
        if driver.is_device_array(value):
            check_array(tensor, type, value, "input")
            if not value.flags.c_contiguous:
                raise wrong(tensor.name, "is not contiguous", "pass a contiguous copy")
            return driver.device_buffer(connection, value)
        import numpy as np

        array = as_array(tensor.name, value)
        check_array(tensor, type, array, "input")
        if self.options.check_ranges:
            check_range(tensor, array)
        if not array.flags.c_contiguous:
            array = np.ascontiguousarray(array)  # strides are honoured by a copy
        host = driver.HostArray(connection, array, False)
        held.append(host)
        return host.buffer

    def _outs(self, out: Any) -> list[Any]:
        count = len(self._outputs)
        if out is None:
            return [None] * count
        if isinstance(out, Mapping):
            unknown = [str(name) for name in out if name not in {t.name for t, _ in self._outputs}]
            if unknown:
                raise ComputationError("arguments", f"out= names {', '.join(unknown)}, which is no output",
                                       mend="the outputs are " + ", ".join(t.name for t, _ in self._outputs))  # fmt: skip
            return [out.get(t.name) for t, _ in self._outputs]
        if count == 1 and not isinstance(out, (tuple, list)):
            return [out]
        if not isinstance(out, (tuple, list)) or len(out) != count:
            raise ComputationError(
                "arguments",
                f"out= gives {len(out) if isinstance(out, (tuple, list)) else 1} arrays for {count} outputs",
                mend="one array for each output, in definition order: " + ", ".join(t.name for t, _ in self._outputs),
            )
        return list(out)

    def _check_apart(self, outs: Sequence[Any]) -> None:
        """Two outputs in one place would lose one of them."""
        given = [(t.name, o) for (t, _), o in zip(self._outputs, outs, strict=True) if o is not None]
        for k, (name, one) in enumerate(given):
            for other, two in given[:k]:
                if driver.is_device_array(one) and driver.is_device_array(two):
                    same = driver.overlap(one, two)
                else:
                    same = share_memory(one, two)
                if same:
                    message = f"the arrays for {other} and {name} share memory"
                    raise ComputationError("argument", message, mend="one array for each output")

    def _output(self, connection: driver.Connection, tensor: Tensor, type: Any, value: Any, on_device: bool, queue: Any,
                inputs: Sequence[Any]) -> tuple[Any, Any, Any]:  # fmt: skip
        """(what the caller gets, the buffer, what must land afterwards)."""
        import numpy as np

        if value is None and on_device:
            import pyopencl.array as device_array

            value = device_array.empty(queue or connection.queue, tensor.shape, type)
        if driver.is_device_array(value):
            check_array(tensor, type, value, "output")
            if not value.flags.c_contiguous:
                raise wrong(tensor.name, "is not contiguous", "pass a contiguous array as out=")
            for (other, _), array in zip(self._inputs, inputs, strict=True):
                if driver.is_device_array(array) and driver.overlap(value, array):
                    raise wrong(tensor.name, f"shares memory with the input {other.name}", "pass another array as out=")
            return value, driver.device_buffer(connection, value), None
        if value is None:
            value = np.empty(tensor.shape, type)
        if not isinstance(value, np.ndarray):
            converted = np.asarray(value)
            if not np.shares_memory(converted, np.asarray(value)):
                raise wrong(tensor.name, "is not an array whose memory can be written", "pass a NumPy array as out=")
            value = converted
        check_array(tensor, type, value, "output")
        if not value.flags.writeable:
            raise wrong(tensor.name, "cannot be written", "pass an array with flags.writeable")
        for (other, _), array in zip(self._inputs, inputs, strict=True):
            if share_memory(value, array):
                raise wrong(tensor.name, f"shares memory with the input {other.name}", "pass another array as out=")
        staged = value if value.flags.c_contiguous else np.empty(tensor.shape, type)
        host = driver.HostArray(connection, staged, True)
        return value, host.buffer, (host, staged, value)

    # ------------------------------------------------------------ trusting and timing it

    def check(self, seed: int = 0) -> CheckReport:
        """Compares with the reference: random data within the derived bound, and small integers exactly where that applies."""
        from tilelang.reference import check

        return check(self.computation, lambda arrays: self._by_name(self(**arrays)), seed, self.schedule.error_ulps)

    def _by_name(self, result: Any) -> dict[str, Any]:
        names = [t.name for t, _ in self._outputs]
        return {names[0]: result} if len(names) == 1 else dict(zip(names, result, strict=True))

    def benchmark(self, repeats: int = 11, seed: int = 0) -> float:
        """Median seconds of the kernels on the device, by its events, over `repeats` runs on random data that stays there."""
        import pyopencl.array as device_array

        from tilelang.reference import random_arrays

        if not isinstance(repeats, int) or repeats < 1:
            raise ComputationError("repeats", f"repeats={repeats!r} is no number of runs", mend="a whole number, one or more")
        connection = self._connection
        arrays = [device_array.to_device(connection.queue, a) for a in random_arrays(self.computation, seed).values()]
        buffers = {t.name: driver.device_buffer(connection, a) for (t, _), a in zip(self._inputs, arrays, strict=True)}
        outs = [device_array.empty(connection.queue, t.shape, type) for t, type in self._outputs]
        buffers |= {t.name: driver.device_buffer(connection, a) for (t, _), a in zip(self._outputs, outs, strict=True)}
        self.launch(buffers)
        connection.finish()
        return statistics.median(sum(driver.seconds(e) for e in self.launch(buffers) if e is not None) for _ in range(repeats))


def simulate(
    kernel: Kernel, /, *arrays: Any, order: str | int = "early", limit_statements: float | None = None, **named: Any
) -> Report:
    """Runs a kernel's IR for every thread in NumPy: its outputs, faults, memory transactions and bank conflicts.

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
    from tilelang.lowering.simulate import check_work, device_numbers, run
    from tilelang.reference import random_arrays

    if not isinstance(kernel, Kernel):
        raise ComputationError("not-a-kernel", f"{brief(kernel)} is no kernel", mend="tl.simulate(tl.compile(...))")
    if limit_statements is not None and not isinstance(limit_statements, (int, float)):
        raise ComputationError("limit", f"limit_statements={brief(limit_statements)} is no number", mend="a number, or math.inf")
    check_work(kernel.program, limit_statements, mend="smaller sizes, or a larger limit_statements=")
    given = random_arrays(kernel.computation)
    if arrays or named:
        given = {t.name: a for t, a in arguments.inputs(kernel.computation, arrays, named).items()}
    return run(kernel.program, given, order=order, **device_numbers(kernel.target.profile))


def kernel(function: Callable[..., Any]) -> Callable[..., Any]:
    """A Python function of tensors as a kernel: shapes and types come from the arguments, one compiled kernel for each.

    The function gets input Tensors (named as its parameters, dimensions `x_0`, `x_1`, ...) and returns a defined Tensor, a tuple of
    them, or a Schedule.

    >>> import numpy as np, tilelang as tl
    >>> @kernel
    ... def doubled(x):
    ...     i = tl.axes(i=x.shape[0])
    ...     return tl.define("y", 2 * x[i], i)
    >>> doubled(np.arange(3, dtype=np.int32)).tolist()
    [0, 2, 4]
    """
    import inspect

    if not callable(function):
        raise ComputationError("not-a-function", f"{brief(function)} is no function", mend="@tl.kernel above a def")
    names = list(inspect.signature(function).parameters)
    kernels: dict[Any, Kernel] = {}

    @functools.wraps(function)
    def call(*arrays: Any, out: Any = None, **named: Any) -> Any:
        every = dict(zip(names, arrays, strict=False)) | named
        if len(arrays) + len(named) != len(names) or set(every) != set(names):
            raise ComputationError("arguments", f"{function.__name__} takes {', '.join(names)}, got {len(arrays)} arrays"
                                   + (f" and {', '.join(named)}" if named else ""), mend="one array for each parameter")  # fmt: skip
        given = [every[n] if driver.is_device_array(every[n]) else as_array(n, every[n]) for n in names]
        key = tuple((tuple(a.shape), str(a.dtype)) for a in given)
        found = kernels.get(key)
        if found is None:
            dims: list[dict[str, Any]] = [
                {f"{n}_{d}": int(e) for d, e in enumerate(a.shape)} for n, a in zip(names, given, strict=True)
            ]
            tensors = [input(n, a.dtype, **d) for n, a, d in zip(names, given, dims, strict=True)]
            made = function(*tensors)
            if not isinstance(made, (Schedule, Tensor, Computation)):
                made = computation(function.__name__.strip("<>"), made)
            found = kernels[key] = compile(made)
        return found(*given, out=out)

    return call
