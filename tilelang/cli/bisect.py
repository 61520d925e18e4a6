"""`tilelang bisect FILE`: finds the first step whose prefix fails."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

import click

from tilelang.cli.common import PROFILES, RIGHT, SEED, WRONG, Asked, of_a_file
from tilelang.cli.output import emit, is_json, show, working
from tilelang.cli.run import check_memory
from tilelang.computations.computation import Computation
from tilelang.errors import DeviceError, TileLangError
from tilelang.schedules.schedule import Schedule
from tilelang.schedules.steps import Step

if TYPE_CHECKING:
    from tilelang.runtime.targets import Target


@click.command("bisect")
@click.option(
    "--on",
    type=click.Choice(["device", "simulator"]),
    default=None,
    help="Where to run the prefixes. Default: the device, if there is one.",
)
@SEED
@of_a_file
def command(asked: Asked, on: str | None, seed: int) -> None:
    """Find the first step of a schedule of FILE that makes it refused or wrong.

    Every prefix of a schedule is a complete schedule; the remaining work runs as plain loops. Prefixes are tried from the longest on
    until one is right. Exits with 1 if a step is wrong.
    """
    from tilelang.runtime.kernel import devices  # late: a command imports what it needs itself
    from tilelang.runtime.targets import local_target, no_device, target  # late: a command imports what it needs itself

    where = on or ("device" if devices() else "simulator")
    if where == "device" and not devices():
        raise DeviceError("no-device", no_device().message, help="use --on simulator")
    chosen = target(profile=asked.profile or PROFILES["cpu"]) if where == "simulator" else local_target(asked.profile)
    computation, steps = asked.steps(chosen.profile)
    check_memory(computation)
    with working("trying prefixes"):
        bad, fault = first_fault(len(steps), lambda n: _fault(computation, steps[:n], chosen, seed))
    if fault is None:
        _report(
            {"right": True, "steps": len(steps), "on": where},
            f"the results are right after each of the {len(steps)} steps (on the {where})",
        )
        sys.exit(RIGHT)
    step = steps[bad - 1] if bad else None
    span = getattr(step, "span", None)
    said = f"step {bad} of {len(steps)}: {step}" if step is not None else "without any step"
    _report(
        {"right": False, "step": bad, "text": str(step), "line": span.line if span else None, "fault": fault.text, "on": where},
        f"{said}{f' ({span})' if span else ''}\n{fault.text}",
    )
    sys.exit(WRONG)


def _report(found: dict[str, object], text: str) -> None:
    if is_json():
        emit(found)
    else:
        show(text)


class Fault(NamedTuple):
    """A fault of a schedule: its kind and its description."""

    kind: str
    text: str


def first_fault(steps: int, fault_of: Callable[[int], Fault | None]) -> tuple[int, Fault | None]:
    """The length of the first prefix that has the whole schedule's fault, after the longest correct prefix; and the fault, None if
    there is none.

    A prefix may be refused for something that later steps fix, such as a tile that is too large before it is mapped to threads.

    >>> first_fault(4, lambda n: {2: Fault("mended later", ""), 4: Fault("wrong", "at the end")}.get(n))
    (4, Fault(kind='wrong', text='at the end'))
    """
    first, whole = steps, fault_of(steps)
    if whole is None:
        return 0, None
    found: Fault = whole
    for n in reversed(range(steps)):
        fault = fault_of(n)
        if fault is None:
            break
        if fault.kind == whole.kind:
            first, found = n, fault
    return first, found


def _fault(computation: Computation, steps: tuple[Step, ...], chosen: Target, seed: int) -> Fault | None:
    """The fault of the schedule with these steps, run on the target's device or else in the simulator; None if it is right."""
    from tilelang.lowering.simulator.simulate import check_work  # late: a command imports what it needs itself
    from tilelang.runtime.kernel import compile, simulate  # late: a command imports what it needs itself
    from tilelang.semantics import reference  # late: a command imports what it needs itself

    try:
        plan = Schedule(computation, steps)
        kernel = compile(plan, chosen)
        if chosen.device is not None:
            found = kernel.check(seed)
            return None if found else Fault("wrong", str(found))
        check_work(kernel.program)
        given = reference.random_arrays(plan.computation, seed)
        report = simulate(kernel, **given)
        return Fault(" ".join(sorted(report.counts)), str(report)) if report.counts else None
    except TileLangError as error:
        if error.code in ("no-device", "no-driver", "too-much-to-simulate"):
            raise
        return Fault(error.code, error.render())
