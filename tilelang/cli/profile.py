"""`tilelang profile`: measures this machine's device and stores a profile for choosing schedules."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from tilelang.cli.common import completed, reporting, target_option
from tilelang.cli.output import emit, is_json, show, table


def _aspects() -> list[str]:
    from tilelang.autoschedule.profile.aspects import ASPECTS  # late: a command imports what it needs itself

    return list(ASPECTS)


@click.command("profile")
@click.option(
    "--aspect", "-a", "asked", multiple=True, metavar="NAME", shell_complete=completed(lambda ctx: _aspects()),
    help="Measure this aspect, even if it was measured before. Repeatable. Default: all missing aspects.",
)  # fmt: skip
@click.option("--output", "-o", metavar="FILE.toml", help="Store the profile in this file, and the raw times in FILE.csv.")
@click.option("--plot", "directory", metavar="DIR", help="Draw every curve with its plateaus; needs matplotlib.")
@click.option("--list", "listed", is_flag=True, help="List the aspects, or those named with --aspect, without measuring.")
@target_option(None, "cpu, cuda, hip or opencl. Default: the best device's.")
@reporting
def command(asked: tuple[str, ...], output: str | None, directory: str | None, listed: bool, dialect: str | None) -> None:
    """Measure this machine's device for the autoscheduler, in a few minutes. An interrupted run continues where it stopped.

    Without --output, the profile is stored where tilelang finds it, and kernels for this device use it from then on.
    """
    from tilelang.autoschedule.profile.aspects import ASPECTS  # late: a command imports what it needs itself
    from tilelang.autoschedule.profile.measure import known, measure, set_aside  # late: a command imports what it needs itself

    if listed:
        known(asked)
        rows = [(name, aspect.about) for name, aspect in ASPECTS.items() if name in asked or not asked]
        emit({"aspects": dict(rows)}) if is_json() else show(table(("aspect", "what is measured"), rows))
        return
    from tilelang.autoschedule.profile.bench import Bench  # late: a command imports what it needs itself
    from tilelang.autoschedule.profile.plot import drawing, plot  # late: a command imports what it needs itself
    from tilelang.runtime.targets import (  # late: a command imports what it needs itself
        local_target,
        measured_path,
        shipped_target,
    )

    if directory is not None:
        drawing()  # refused before anything is measured
    device = local_target(dialect=dialect).device
    assert device is not None
    path = Path(output) if output is not None else measured_path(device)
    if output is None and (aside := set_aside(path)) is not None:
        click.echo(f"{path} is not a valid profile: it was renamed to {aside.name}, and a new one is started", err=True)
    try:
        with _progress() as progress:
            outcome = measure(Bench(device, shipped_target(device).profile), path, asked, progress=progress)
    except KeyboardInterrupt:
        click.echo(f"the results so far are in {path}; run the same command again to continue", err=True)
        raise
    drawn = [str(path) for path in plot(outcome.profile, Path(directory))] if directory is not None else []
    if is_json():
        emit(
            {
                "device": str(device), "profile": str(path), "measured": list(outcome.measured), "plots": drawn,
                "rates": dict(outcome.profile.rates), "warnings": list(outcome.warnings), "left_out": dict(outcome.left_out),
            }
        )  # fmt: skip
        return
    rates = [(name, f"{value:.4g}", outcome.profile.source(f"rates.{name}") or "") for name, value in outcome.profile.rates]
    click.echo("".join(f"warning: {warning}\n" for warning in outcome.warnings), err=True, nl=False)
    click.echo("".join(f"{name} does not apply here: {why}\n" for name, why in outcome.left_out.items()), err=True, nl=False)
    show(table(("rate", "value", "source"), rates))
    show(f"{len(outcome.measured)} aspects measured; {path}" + "".join(f"\n{picture}" for picture in drawn))


@contextlib.contextmanager
def _progress() -> Iterator[Any]:
    """On a terminal, a bar with the count and the remaining time; otherwise a line per aspect; with JSON, nothing."""
    from tilelang.autoschedule.profile.measure import Progress  # late: a command imports what it needs itself

    if is_json():
        yield Progress()
        return
    if not sys.stderr.isatty():
        yield Progress(aspect=lambda name, about: click.echo(f"{name}: {about}", err=True))
        return
    from rich.console import Console  # late: slow to import, seldom needed
    from rich.progress import (  # late: slow to import, seldom needed
        BarColumn,
        MofNCompleteColumn,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )
    from rich.progress import Progress as Bar  # late: slow to import, seldom needed

    columns = (
        TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TimeRemainingColumn(),
        TextColumn("{task.fields[series]}"),
    )  # fmt: skip
    with Bar(*columns, console=Console(stderr=True), speed_estimate_period=3600) as bar:
        task = bar.add_task("", total=None, series="")
        yield Progress(
            begin=lambda total: bar.update(task, total=total),
            aspect=lambda name, about: bar.update(task, description=f"{name}: {about}", series=""),
            sample=lambda series: bar.update(task, series=series),
            done=lambda: bar.advance(task),
        )
