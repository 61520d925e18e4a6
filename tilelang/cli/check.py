"""`tilelang check FILE`: checks everything about a file that needs no device."""

from __future__ import annotations

import contextlib
import dataclasses
import sys
from typing import TYPE_CHECKING, Any

import click

from tilelang.cli.common import RIGHT, Asked, errors_of, exit_code, of_a_file
from tilelang.cli.output import annotation, emit, is_json, show, working
from tilelang.errors import Refusal, Span, TileLangError, collected, counted

if TYPE_CHECKING:
    from tilelang.profiles.profile import Profile
    from tilelang.runtime.simulated_check import Verdict


@click.command("check")
@click.option("--format", "form", type=click.Choice(["text", "json", "github"]), default="text", help="The output format.")
@click.option(
    "--simulate",
    "simulated",
    is_flag=True,
    help="Simulate each schedule at small sizes and compare the results with the reference.",
)
@click.option(
    "--seconds",
    type=click.FloatRange(0, min_open=True),
    default=60.0,
    show_default=True,
    help="Time limit for the simulation of one schedule.",
)
@of_a_file
def command(asked: Asked, form: str, simulated: bool, seconds: float) -> None:
    """Check FILE without a device.

    Every computation and schedule of the file (or the one that --schedule names) is built for the given sizes, by default those of its
    parameters, and lowered for the profile, by default sapphire_rapids. All errors are printed; an error that follows from another one
    is not repeated. With --simulate, each schedule is also simulated at sizes with whole and partial tiles, and the output lists what
    could not be simulated. Exits with 1 if there is an error.
    """
    errors = findings(asked)
    verdicts = simulations(asked, seconds) if simulated else {}
    errors += [wrong(asked, name, verdict) for name, verdict in verdicts.items() if verdict.faulty]
    seen: dict[tuple[Any, ...], TileLangError] = {}
    for e in errors:
        seen.setdefault((e.code, e.message, e.span), e)
    every = sorted(seen.values(), key=lambda e: (e.span.line, e.span.column) if e.span else (0, 0))
    if is_json() or form == "json":
        facts = {"simulated": {name: verdict_facts(v) for name, v in verdicts.items()}} if simulated else {}
        emit({"file": asked.path, "errors": [x for e in every for x in errors_of(e)], **facts})
    elif form == "github":
        for e in every:
            click.echo(annotation(e))
    elif every:
        click.echo("\n\n".join(e.render() for e in every), err=True)
    else:
        show(
            "\n".join(
                [*(f"{name}: {line}" for name, v in verdicts.items() for line in str(v).splitlines()), summary(asked, verdicts)]
            )
        )
    sys.exit(max((exit_code(e) for e in every), default=RIGHT))


def summary(asked: Asked, verdicts: dict[str, Verdict]) -> str:
    """A summary of what was checked successfully, and what remains unknown."""
    document, profile, name = asked.document, profile_of(asked), asked.schedule_name
    entries = [e for e in document.entries() if name is None or (e.of and e.name == name)]
    checked = [e for e in entries if document.holds(e, asked.sizes, profile)]
    kinds = {"computation": sum(not e.of for e in checked), "schedule": sum(bool(e.of) for e in checked)}
    text = f"{asked.path}: {', '.join(counted(n, kind) for kind, n in kinds.items() if name is None or n)}"
    if name is None and len(entries) > len(checked):
        text += f" ({len(entries) - len(checked)} not checked, because their conditions do not hold)"
    partly = [name for name, v in verdicts.items() if v.skipped]
    if not partly:
        return f"{text}, no faults found"
    return f"{text}, no errors found; not simulated at every size: {', '.join(partly)}"


def profile_of(asked: Asked) -> Profile:
    """The profile that a file is checked for."""
    from tilelang.profiles.files import load_profile  # late: a command imports what it needs itself

    return asked.profile or load_profile("sapphire_rapids")


def findings(asked: Asked) -> list[TileLangError]:
    """The errors in the file's computations and schedules, or in the one named by --schedule."""
    from tilelang.runtime.targets import target  # late: a command imports what it needs itself

    profile = profile_of(asked)
    if asked.schedule_name is None:
        return asked.document.findings(asked.sizes, profile)
    found: list[TileLangError] = []
    with collected(found):
        asked.kernel(target(profile=profile))
    return found


def simulations(asked: Asked, seconds: float) -> dict[str, Verdict]:
    """Simulates, at small sizes, the requested schedule, else all that apply and compile, else a generated one; by name."""
    from tilelang.runtime.simulated_check import check_simulated  # late: a command imports what it needs itself
    from tilelang.runtime.targets import target  # late: a command imports what it needs itself

    profile = profile_of(asked)
    entries = asked.document.holding(asked.sizes, profile, asked.schedule_name)
    found: dict[str, Verdict] = {}
    for name in [e.name or None for e in entries] or [None]:
        # Compilation errors are among the findings already.
        with working(f"simulating {name or asked.path}"), contextlib.suppress(TileLangError):
            kernel = dataclasses.replace(asked, schedule_name=name).kernel(target(profile=profile))
            found[name or kernel.computation.name] = check_simulated(kernel.schedule, kernel.target, seconds)
    return found


def wrong(asked: Asked, name: str, verdict: Verdict) -> Refusal:
    """The finding for a schedule that was simulated and is wrong."""
    from tilelang.runtime.simulated_check import not_as_defined  # late: a command imports what it needs itself

    assert verdict.faulty is not None
    entry = next((e for e in asked.document.schedules if e.name == name), None)
    span = asked.document.place_of(entry) if entry is not None else Span(asked.path, 0)
    return not_as_defined(name, verdict.faulty, span)


def verdict_facts(verdict: Verdict) -> dict[str, Any]:
    """A verdict as JSON."""
    instances = [{"extents": dict(i.extents), "faults": list(i.faults), "shorter_loops": i.shorter} for i in verdict.instances]
    return {"instances": instances, "skipped": list(verdict.skipped)}
