"""Checks a compiled kernel in every way that is possible here: the simulator, the device, or emulated text."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

from tilelang.computations.arguments import inputs
from tilelang.computations.computation import Computation, Tensor
from tilelang.errors import ComputationError
from tilelang.lowering import ir
from tilelang.lowering.passes.fission import SCRATCH_BYTES
from tilelang.lowering.pipeline import lower
from tilelang.lowering.simulator import simulate
from tilelang.options import Options
from tilelang.runtime import kernel as runtime_kernel
from tilelang.runtime.kernel import Kernel
from tilelang.runtime.targets import Target
from tilelang.schedules.schedule import Schedule
from tilelang.testing import emulation
from tilelang.testing.case import arrays as plain_arrays
from tilelang.testing.checking import Expected, Guarded, check_simulated
from tilelang.testing.tracing import reading, traced

MOST_SIMULATED = 20_000  # statements, each for a batch of blocks: about two seconds


def check_kernel(
    what: Kernel | Schedule | Computation | Tensor,
    arrays: Mapping[str, Any] | None = None,
    target: Target | str | None = None,
    *,
    exactly: bool = False,
    statements: int = MOST_SIMULATED,
) -> list[str]:
    """The faults of a kernel on given inputs, as text; empty if everything is right.

    A schedule or a computation is first compiled for the target. The kernel is simulated, with separate threads even on the CPU, if
    this takes at most `statements` statements. If its device is on this machine, it runs there; else its CUDA or HIP text is emulated
    on the CPU, if possible. Results must agree with the reference within the error bound, or bit for bit if `exactly`. arrays: the
    inputs by name (default: random numbers).

    Raises Refusal as `tl.compile` does. Raises ComputationError if an array is missing or does not fit, and `too-much-to-simulate` if
    only the simulator could run the kernel and would take too long.
    """
    kernel = what if isinstance(what, Kernel) else runtime_kernel.compile(what, target)
    given = plain_arrays(kernel.computation) if arrays is None else by_name(kernel.computation, arrays)
    made = kernel.schedule
    return faults_of(kernel, Expected(kernel.computation, given, exactly, made.error_ulps, made.shared_loops), statements)


def faults_of(
    kernel: Kernel, expected: Expected, statements: int = MOST_SIMULATED, before_run: Callable[[], None] = lambda: None
) -> list[str]:
    """The faults of a kernel, as for `check_kernel`. before_run: called before the kernel itself runs."""
    runs = runner(kernel)
    faults = []
    program = as_threads(kernel)
    try:
        simulate.check_work(program, statements, help="smaller sizes, or statements=")
        faults += check_simulated(program, expected)
    except ComputationError as error:
        if error.code != "too-much-to-simulate" or runs is None:
            raise
    if runs is not None:
        load(kernel)
        before_run()
        faults += runs(kernel, expected)
    return faults


def against_steps(kernel: Kernel, arrays: Mapping[str, Any]) -> list[str]:
    """Accesses of a simulated kernel's threads that contradict its steps. Also empty if the naive reading does not cover these steps.

    arrays: the inputs by name. It takes as long as `tl.simulate`, and is for kernels that this may simulate.
    """
    read = reading(kernel.schedule, kernel.target.profile, arrays)
    return [] if read is None else read.faults(traced(as_threads(kernel), arrays))


def by_name(computation: Computation, arrays: Mapping[str, Any]) -> dict[str, Any]:
    """The inputs by name, as for the reference. Raises ComputationError if one is missing, unknown, or does not fit."""
    return {t.name: array for t, array in inputs(computation, (), arrays).items()}


def runner(kernel: Kernel) -> Callable[[Kernel, Expected], list[str]] | None:
    """A function that runs a kernel here and returns its faults: on its device, else as emulated text; None if neither is possible."""
    if kernel.target.device is not None:
        return run_guarded
    return _emulated if kernel.target.dialect in ("cuda", "hip") and emulation.absent() is None else None


def load(kernel: Kernel) -> None:
    """Compiles a kernel for its device, if that is here, as the first call would."""
    if kernel.target.device is not None:
        _ = kernel._launches


def as_threads(kernel: Kernel) -> ir.Program:
    """The kernel IR of a kernel's schedule with threads, if its target turns the threads of a block into loops."""
    if not kernel.target.needs:
        return kernel.program
    profile = kernel.target.profile
    memories = tuple(  # on the target, exceeding the cache gives a note, not a refusal
        dataclasses.replace(m, capacity_bytes=SCRATCH_BYTES) if m.name == "shared" else m for m in profile.memories
    )
    here = dataclasses.replace(profile, dialects=(kernel.target.dialect,), memories=memories)
    return lower(kernel.computation, kernel.schedule.steps, here, Options(verify=True))


def run_guarded(kernel: Kernel, expected: Expected) -> list[str]:
    """The faults of a kernel's results on its device, and the outputs beyond which it wrote."""
    where = str(kernel.target.dialect)
    buffers = {b.name: b for b in kernel.program.buffers}
    held = {t.name: Guarded(buffers[t.name], None) for t in kernel.computation.outputs}
    shaped = [held[t.name].array.view(t.dtype.numpy).reshape(t.shape) for t in kernel.computation.outputs]
    kernel(**expected.arrays, out=shaped[0] if len(shaped) == 1 else tuple(shaped))
    outside = [f"{where}: wrote outside {name}" for name, guarded in held.items() if not guarded.intact()]
    return outside + expected.faults({name: guarded.array for name, guarded in held.items()}, where)


def _emulated(kernel: Kernel, expected: Expected) -> list[str]:
    """The faults of a kernel's emulated text, with asynchronous copies completing late."""
    where = f"{kernel.target.dialect} text on this processor"
    try:
        return expected.faults(emulation.run_kernel(kernel, expected.arrays), where)
    except emulation.EmulationFault as fault:
        return [f"{where}: {fault}"]
