"""`tilelang check FILE`: everything that can be known of a file without a device."""

from __future__ import annotations

import sys
from typing import Any

import click

from tilelang.cli.common import RIGHT, Asked, errors_of, exit_code, of_a_file
from tilelang.cli.output import emit, is_json, show
from tilelang.errors import TileLangError, collected


@click.command("check")
@click.option("--format", "form", type=click.Choice(["text", "json", "github"]), default="text", help="How findings are printed.")
@of_a_file
def command(asked: Asked, form: str) -> None:
    """Check FILE without a device.

    Every computation and schedule of the file, or the one of --schedule, is built for the sizes given (else the parameters' defaults)
    and lowered for the profile (default: sapphire_rapids). All findings are printed, those that depend on each other once. Exits with 1
    where there are any.
    """
    errors = findings(asked)
    seen: dict[tuple[Any, ...], TileLangError] = {}
    for e in errors:
        seen.setdefault((e.code, e.message, e.span), e)
    every = sorted(seen.values(), key=lambda e: (e.span.line, e.span.column) if e.span else (0, 0))
    if is_json() or form == "json":
        emit({"file": asked.path, "errors": [x for e in every for x in errors_of(e)]})
    elif form == "github":
        for e in every:
            click.echo(annotation(e))
    elif every:
        click.echo("\n\n".join(e.render() for e in every), err=True)
    else:
        count = len(asked.document.schedules)
        show(f"{asked.path}: {len(asked.document.computations)} computations, {count} schedules, nothing found")
    sys.exit(max((exit_code(e) for e in every), default=RIGHT))


def findings(asked: Asked) -> list[TileLangError]:
    """What is wrong with the file's computations and schedules, or with the one of --schedule."""
    from tilelang.machine import load_profile
    from tilelang.targets import target

    profile = asked.profile or load_profile("sapphire_rapids")
    if asked.schedule_name is None:
        return asked.document.findings(asked.sizes, profile)
    found: list[TileLangError] = []
    with collected(found):
        asked.kernel(target(profile=profile))
    return found


def annotation(error: TileLangError) -> str:
    """An error as an annotation of GitHub's."""
    span = error.span
    place = f"file={_escaped(span.file)},line={max(1, span.line)}" if span is not None else ""
    if span is not None and span.column:
        place += f",col={span.column},endColumn={span.end_column or span.column}"
    message, mend = error.words()
    text = message + (f"\n{error.counterexample}" if error.counterexample else "") + (f"\nhelp: {mend}" if mend else "")
    return f"::error {place},title={_escaped(error.code)}::" + text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _escaped(text: str) -> str:
    return text.replace("%", "%25").replace("\n", "%0A").replace(",", "%2C").replace(":", "%3A")
