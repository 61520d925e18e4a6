"""`tilelang bisect FILE`: the first step whose prefix goes wrong."""

from __future__ import annotations

import sys

import click

from tilelang.cli.common import RIGHT, WRONG, Asked, emit, is_json, of_a_file, show, working
from tilelang.cli.run import check_memory
from tilelang.computation import Computation
from tilelang.errors import DeviceError, Refusal, TileLangError
from tilelang.schedule import Schedule
from tilelang.steps import Step


@click.command("bisect")
@click.option(
    "--on",
    type=click.Choice(["device", "simulator"]),
    default=None,
    help="Where prefixes run. Default: a device, if there is one.",
)
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="Of the random inputs.")
@of_a_file
def command(asked: Asked, on: str | None, seed: int) -> None:
    """Find the first step of a schedule of FILE from which on it is refused or wrong.

    Every prefix of a schedule runs, what is left being done by plain loops; so a wrong step is found by halving. Exits with 1 where
    there is one.
    """
    from tilelang.runtime import devices

    computation, steps = asked.steps()
    check_memory(computation)
    where = on or ("device" if devices() else "simulator")
    if where == "device" and not devices():
        raise DeviceError("no-device", "no device was found", mend="--on simulator")
    with working("trying prefixes"):

        def fault_of(n: int) -> str | None:
            return _fault(computation, steps[:n], asked, where, seed)

        good, bad = 0, len(steps)
        fault = fault_of(bad)
        if fault is not None and (first := fault_of(0)) is not None:
            bad, fault = 0, first
        while fault is not None and bad - good > 1:
            middle = (good + bad) // 2
            found = fault_of(middle)
            good, bad, fault = (middle, bad, fault) if found is None else (good, middle, found)
    if fault is None:
        _report({"right": True, "steps": len(steps), "on": where}, f"all {len(steps)} steps are right on the {where}")
        sys.exit(RIGHT)
    step = steps[bad - 1] if bad else None
    span = getattr(step, "span", None)
    said = f"step {bad} of {len(steps)}: {step}" if step is not None else "without any step"
    _report(
        {"right": False, "step": bad, "text": str(step), "line": span.line if span else None, "fault": fault, "on": where},
        f"{said}{f' ({span})' if span else ''}\n{fault}",
    )
    sys.exit(WRONG)


def _report(found: dict[str, object], text: str) -> None:
    if is_json():
        emit(found)
    else:
        show(text)


def _fault(computation: Computation, steps: tuple[Step, ...], asked: Asked, where: str, seed: int) -> str | None:
    """What is wrong with the schedule of these steps; None where it is right."""
    from tilelang import reference
    from tilelang.lowering.simulate import check_work
    from tilelang.runtime import compile, simulate, target
    from tilelang.targets import local_target

    try:
        chosen = target("opencl", profile=asked.profile or "pocl") if where == "simulator" else local_target(asked.profile)
        plan = Schedule(computation, steps)
        kernel = compile(plan, chosen)
        if where == "device":
            found = kernel.check(seed)
            return None if found else str(found)
        check_work(kernel.program)
        given = reference.random_arrays(plan.computation, seed)
        report = simulate(kernel, **given)
        compared = reference.compare(plan.computation, given, report.outputs, error_ulps=plan.error_ulps)
        return str(report) if report.counts else None if compared else str(compared)
    except Refusal as refusal:
        return refusal.render()
    except TileLangError as error:
        if error.code in ("no-device", "no-driver", "too-much-to-simulate"):
            raise
        return error.render()
