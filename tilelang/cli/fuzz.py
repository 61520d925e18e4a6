"""`tilelang fuzz FILE`: tries random sizes, data and schedules until it finds a fault or runs out of time."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import click

from tilelang.cli.common import PROFILES, RIGHT, WRONG, Asked, of_a_file, target_option
from tilelang.cli.output import emit, is_json, show, table, working, write_whole
from tilelang.grammar.document import Entry
from tilelang.schedules.schedule import Schedule

if TYPE_CHECKING:
    from tilelang.computations.computation import Computation
    from tilelang.core.dtype import DType
    from tilelang.runtime.targets import Target
    from tilelang.testing.choice import Source
    from tilelang.testing.fuzzing import Found, Subject

START = 24  # initial size of a parameter without a value
EXTENTS = (1, 2, 3, 0, 4, 5, 7, 8, 13, 16, 17, 24, 31, 40)
PIECES = (1, 2, 4, 8, 16, 3, 5, 32)
KINDS = ("random", "integers", "special", "infinite", "denormal", "extreme", "zero")
MOST_LINES = 8  # of the faults, in a printed case
TOLD_S = 10.0  # between two progress lines, if standard error is not a terminal


@click.command("fuzz")
@click.option(
    "--seconds", type=click.FloatRange(0, min_open=True), default=60.0, show_default=True, help="How long to try new cases."
)
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="The seed of the random cases.")
@click.option(
    "--data", "kinds", multiple=True, type=click.Choice(KINDS), help="The kind of input data. Repeatable. Default: all kinds."
)
@click.option(
    "--output", "-o", type=click.Path(dir_okay=False), metavar="FILE.tile", help="Also write the failing case to a file."
)
@target_option(None, "cpu, cuda, hip or opencl. Default: the best device's.")
@of_a_file
def command(asked: Asked, seconds: float, seed: int, kinds: tuple[str, ...], output: str | None, dialect: str | None) -> None:
    """Search for a fault in the schedules of FILE, at random sizes and on random data.

    Every schedule of the file (or the one that --schedule names) is first tried unchanged, then at other sizes: its parameters
    without --size and its axes vary. The generated schedule and random schedules are tried as well, also for a computation
    without a schedule. Each case is simulated if that does not take long, and runs on this machine's device if it has one for the
    target. (CUDA and HIP kernels are emulated on the CPU otherwise.) The results must match the reference.

    The first fault is shrunk for up to a minute and printed as a file that reproduces it with this command; the exit status is then 1.
    Otherwise the command prints how many cases were right and how many were refused, by error code.
    """
    from tilelang.testing.fuzzing import fuzz  # late: a command imports what it needs itself

    target = target_of(asked, dialect)
    subjects = [*subjects_of(asked, target)]
    with progress() as tell:
        found = fuzz(subjects, target, seconds, seed, kinds or KINDS, tell)
    text = case_text(found, asked.path, target, dialect) if found.case is not None else None
    if text is not None and output is not None:
        write_whole(output, lambda file: file.write(text.encode()))
    if is_json():
        emit(facts(found, text, target))
    else:
        show(text.rstrip() if text is not None else summary(found, asked.path, target))
        if text is not None:
            click.echo(summary(found, asked.path, target), err=True)
    sys.exit(WRONG if text is not None else RIGHT)


def target_of(asked: Asked, dialect: str | None) -> Target:
    """The target: on a device of the dialect if there is one, else with the profile only."""
    from tilelang.runtime.kernel import devices  # late: a command imports what it needs itself
    from tilelang.runtime.targets import devices_of, local_target, target  # late: a command imports what it needs itself

    if dialect is None and asked.profile is not None:
        dialect = "cpu" if "cpu" in asked.profile.dialects else asked.profile.dialects[0]
    if devices() if dialect is None else dialect in PROFILES and devices_of(dialect)[0]:
        return local_target(asked.profile, dialect)
    dialect = dialect or "opencl"
    return target(dialect, profile=asked.profile or PROFILES.get(dialect))


def subjects_of(asked: Asked, target: Target) -> Iterator[Subject]:
    """The schedules of the file that apply, or the requested one; and its computations without one."""
    document, profile, name = asked.document, target.profile, asked.schedule_name
    document.check(asked.sizes)
    sizes = {n: START for e in document.entries() for n in document.without_value(e)} | dict(asked.sizes)
    if name is not None:
        document.has_schedule(name, profile=profile, **sizes)
    entries = document.holding(sizes, profile, name)
    if name is None:
        scheduled = {e.of for e in entries}
        entries += [e for e in document.entries() if not e.of and e.name not in scheduled and document.holds(e, sizes, profile)]
    if not entries:
        document.computation(profile=profile, **sizes)  # raises the error that says what is missing
    for entry in entries:
        yield _subject(asked, target, entry, sizes)


def _subject(asked: Asked, target: Target, entry: Entry, sizes: Mapping[str, int | DType]) -> Subject:
    from tilelang.testing.fuzzing import Subject  # late: a command imports what it needs itself

    document, values = asked.document, asked.document.values(entry, sizes)
    free = {n: v for n, v in values.items() if isinstance(v, int) and not isinstance(v, bool) and n not in asked.sizes}
    pieces = set(document.parameters(entry)) if entry.of else set()

    def made(sizes: Mapping[str, int | DType]) -> Schedule | Computation:
        if entry.of:
            return Schedule(*document.built(entry, sizes, target.profile))
        return document.computation(entry.name, profile=target.profile, **{n: v for n, v in sizes.items() if n in values})

    def draw(source: Source) -> Schedule | Computation:
        drawn = {n: source.pick(EXTENTS) for n in free if n not in pieces}
        drawn |= {n: source.pick(PIECES) for n in free if n in pieces and source.chance(30)}
        return made({**sizes, **drawn})

    return Subject(entry.name or entry.of, made(sizes), draw if free else None)


@contextlib.contextmanager
def progress() -> Iterator[Callable[[str], None]]:
    """A function that shows progress: a spinner on a terminal, otherwise occasional lines on standard error; nothing with JSON."""
    last = [time.monotonic()]
    with working("fuzzing") as spinner:

        def tell(text: str) -> None:
            if spinner is not None:
                spinner.update(text)
            elif not is_json() and time.monotonic() - last[0] >= TOLD_S:
                last[0] = time.monotonic()
                click.echo(text, err=True)

        yield tell


def case_text(found: Found, path: str, target: Target, dialect: str | None) -> str:
    """The failing case as a file that reproduces the fault."""
    from tilelang.grammar import format_text  # late: only where a text is read

    assert found.case is not None and found.outcome is not None
    case = found.case
    on = f" --target {dialect}" if dialect is not None else ""
    profile = click.get_current_context().params.get("profile")
    on += f" --profile {profile}" if profile else ""
    lines = [line for fault in found.outcome.said for line in fault.splitlines()][:MOST_LINES]
    head = [
        f"found in {path} by tilelang fuzz, {target}: {found.outcome.kind}" + ("" if found.shrunk else " (not fully shrunk)"),
        *(f"  {line}" for line in lines),
        f"to reproduce it: tilelang fuzz FILE{on} --data {case.data} --seed {case.seed} --seconds 1",
    ]
    return "".join(f"# {line}".rstrip() + "\n" for line in head) + "\n" + str(format_text(case.text))


def summary(found: Found, path: str, target: Target) -> str:
    """The number of cases and their outcomes."""
    left = sum(found.set_aside.values())
    ended = " (interrupted)" if found.interrupted else ""
    text = f"{path}: {found.cases} cases in {found.seconds:.0f} s{ended} for {target}: {found.right} right"
    text += f", {found.refused.total()} refused" + (f", {left} set aside" if left else "")
    text += (
        ", a fault found" if found.case is not None else ", no faults found" if found.right else ", so the result is inconclusive"
    )
    rows = [
        (n, code, what)
        for what, codes in (("refused", found.refused), ("set aside", found.set_aside))
        for code, n in codes.most_common()
    ]
    return text + ("\n" + table(("cases", "code", ""), rows) if rows else "")


def facts(found: Found, text: str | None, target: Target) -> dict[str, Any]:
    """The result as JSON."""
    fault = None
    if found.case is not None and found.outcome is not None:
        fault = {"kind": found.outcome.kind, "code": found.outcome.code, "said": list(found.outcome.said), "data": found.case.data,
                 "seed": found.case.seed, "text": text, "smallest": found.shrunk}  # fmt: skip
    return {
        "target": str(target), "seconds": found.seconds, "cases": found.cases, "right": found.right, "refused": dict(found.refused),
        "set_aside": dict(found.set_aside), "interrupted": found.interrupted, "fault": fault,
    }  # fmt: skip
