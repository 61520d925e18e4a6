"""`tilelang check FILE`: everything that can be known of a file without a device."""

from __future__ import annotations

import sys
from typing import Any

import click

from tilelang.cli.common import RIGHT, Asked, emit, errors_of, exit_code, is_json, of_a_file, show
from tilelang.errors import Findings, TileLangError
from tilelang.grammar.document import Entry
from tilelang.schedule import Schedule


@click.command("check")
@click.option("--format", "form", type=click.Choice(["text", "json", "github"]), default="text", help="How findings are printed.")
@of_a_file
def command(asked: Asked, form: str) -> None:
    """Check FILE without a device.

    Every computation and schedule of the file, or the one of --schedule, is built for the sizes given (else the parameters' defaults)
    and lowered for the profile (default: pocl). All findings are printed, those that depend on each other once. Exits with 1 where
    there are any.
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
    """What is wrong with the file's computations and schedules, flat."""
    from tilelang.machine import load_profile
    from tilelang.targets import target

    profile = asked.profile or load_profile("pocl")
    document, errors = asked.document, list[TileLangError]()

    def tried(action: Any, entry: Entry | None = None) -> None:
        try:
            action()
        except TileLangError as error:
            if entry is not None and error.span is None:
                error.span = document.place_of(entry)
            errors.extend(error.errors if isinstance(error, Findings) else (error,))

    if asked.schedule_name is not None:
        tried(lambda: asked.kernel(target("opencl", profile=profile)))
        return errors
    known = {name for e in document.entries() for name in document.parameters(e)}
    sizes = {n: v for n, v in asked.sizes.items() if n in known}
    computations = [e for e in document.entries() if not e.of]
    first = next((e for e in computations if document.holds(e, sizes, profile)), None)
    of = {n: v for n, v in sizes.items() if first is not None and n in document.parameters(first)}
    for name in set(asked.sizes) - known:
        tried(lambda name=name: document.computation(first.name if first is not None else None, profile, **of, **{name: 0}))
    for entry in computations:
        name = entry.name
        own = {n: v for n, v in sizes.items() if n in document.parameters(entry)}
        if document.holds(entry, own, profile) and not document.schedules_of(name, own, profile):
            tried(lambda name=name, own=own: Schedule(document.computation(name, profile=profile, **own)).check(profile), entry)
    tried(lambda: document.holding(sizes, profile))
    for entry in document.schedules:
        if not document.holds(entry, sizes, profile):
            continue
        tried(lambda entry=entry: Schedule(*document.built(entry, sizes, profile)).check(profile), entry)
    return errors


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
