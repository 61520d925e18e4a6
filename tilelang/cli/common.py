"""What the commands share: options, the file and what is asked of it, errors as exit codes, output as text or JSON."""

from __future__ import annotations

import dataclasses
import functools
import io
import json
import math
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, NoReturn, TypeVar

import click

from tilelang import dtype as dt
from tilelang.computation import Computation
from tilelang.dtype import DType
from tilelang.errors import ComputationError, Refusal, TileLangError, each
from tilelang.grammar import Document, read
from tilelang.grammar.scan import MOST_BYTES
from tilelang.machine import Profile
from tilelang.schedule import Schedule
from tilelang.steps import Step

if TYPE_CHECKING:
    from tilelang.runtime import Kernel
    from tilelang.targets import Target

RIGHT, WRONG, USAGE, NO_DEVICE = 0, 1, 2, 3
# What a command was asked that is not there; what the file says is another matter.
_ASKED = ("unknown-parameter", "parameter-without-value", "which-schedule", "which-computation", "unknown-schedule", "file",
          "profile-not-found")  # fmt: skip
_NO_DEVICE = ("no-device", "no-such-device", "no-driver")
F = TypeVar("F", bound=Callable[..., Any])


class Size(click.ParamType[Any]):
    """NAME=VALUE: a whole number, or a type."""

    name = "NAME=VALUE"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, int | DType]:
        name, equals, text = str(value).partition("=")
        if equals and name.isidentifier():
            if text in dt.ALL:
                return name, dt.ALL[text]
            try:
                return name, int(text, 0)
            except ValueError:
                pass
        self.fail(f"{value!r} is no size; write it as M=1024, or type=float16", param, ctx)


@dataclasses.dataclass(frozen=True)
class Asked:
    """A file, and which of its schedules at which sizes."""

    path: str
    document: Document
    schedule_name: str | None
    sizes: Mapping[str, int | DType]
    profile: Profile | None

    def kernel(self, target: Target, until: int | None = None) -> Kernel:
        """The schedule that is asked for, compiled for a target; until: only its first steps. Raises Refusal, at its place."""
        from tilelang.runtime import compile

        computation, steps = self.steps(target.profile)
        if until is not None and until > len(steps):
            raise click.UsageError(f"--until {until}: the schedule has {len(steps)} steps")
        try:
            return compile(Schedule(computation, steps if until is None else steps[:until]), target)
        except Refusal as error:
            if error.span is None:
                error.span = self.document.place(self.schedule_name, profile=target.profile, **self.sizes)
            raise

    def steps(self, profile: Profile) -> tuple[Computation, tuple[Step, ...]]:
        """The schedule that is asked for, before its steps are checked against each other. profile: decides conditions."""
        return self.document.steps(self.schedule_name, profile=profile, **self.sizes)


def of_a_file(command: F) -> F:
    """The argument FILE and the options that choose a schedule; the command gets an Asked."""

    @click.argument("file", type=click.Path())
    @click.option("--schedule", "-s", "schedule_name", metavar="NAME", help="Which schedule; needed where there are several.")
    @click.option(
        "--size", "-S", "sizes", multiple=True, type=Size(), help="A parameter's value, as in --size M=1024. Repeatable."
    )
    @click.option(
        "--profile", "-p", metavar="NAME", help="The device profile: a shipped one's name, or a path. Default: the device's."
    )
    @click.option(
        "--limit-bytes", type=click.IntRange(1), default=MOST_BYTES, show_default=True, help="The largest file that is read."
    )
    @functools.wraps(command)
    def wrapped(file: str, schedule_name: str | None, sizes: Any, profile: str | None, limit_bytes: int, **more: Any) -> Any:
        from tilelang.machine import load_profile

        facts = load_profile(profile) if profile is not None else None
        return command(Asked(file, read(file, limit_bytes=limit_bytes, faulty=True), schedule_name, dict(sizes), facts), **more)

    return reporting(wrapped)  # type: ignore[return-value]


def reporting(command: F) -> F:
    """The option --json, and every error of ours as text or JSON with its exit code."""

    @click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
    @functools.wraps(command)
    def wrapped(*arguments: Any, as_json: bool, **named: Any) -> Any:
        click.get_current_context().meta["tilelang.json"] = as_json or named.get("form") == "json"
        try:
            return command(*arguments, **named)
        except TileLangError as error:
            fail(error)
        except MemoryError:
            fail(ComputationError("too-large-to-run", "the memory does not suffice", mend="smaller sizes: --size NAME=VALUE"))
        except BrokenPipeError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            sys.exit(WRONG)

    return wrapped  # type: ignore[return-value]


def is_json() -> bool:
    """Whether the command was asked for JSON."""
    return bool(click.get_current_context().meta.get("tilelang.json"))


def fail(error: TileLangError) -> NoReturn:
    """Prints an error and ends with its exit code."""
    if is_json():
        emit({"errors": errors_of(error)})
    else:
        click.echo(error.render(), err=True)
    sys.exit(exit_code(error))


def exit_code(error: TileLangError) -> int:
    """What an error ends a command with."""
    return NO_DEVICE if error.code in _NO_DEVICE else USAGE if error.code in _ASKED else WRONG


def errors_of(error: TileLangError) -> list[dict[str, Any]]:
    """Every error in it, as JSON has it."""
    return [
        {
            "code": e.code, "message": e.words()[0], "file": e.span.file if e.span else None, "line": e.span.line if e.span else None,
            "column": e.span.column if e.span else None, "end_column": e.span.end_column if e.span else None,
            "counterexample": e.counterexample, "mend": e.words()[1], "proven": e.proven, "notes": list(e.notes),
        }
        for e in each(error)
    ]  # fmt: skip


def emit(found: Mapping[str, Any]) -> None:
    """One JSON object on standard output; numbers that JSON lacks are texts, as "nan"."""
    click.echo(json.dumps({"schema": 1, **_plain(found)}, indent=2, allow_nan=False))


def _plain(found: Any) -> Any:
    if isinstance(found, Mapping):
        return {name: _plain(part) for name, part in found.items()}
    if isinstance(found, (list, tuple)):
        return [_plain(part) for part in found]
    return str(found) if isinstance(found, float) and not math.isfinite(found) else found


def write_whole(path: str, write: Callable[[BinaryIO], object]) -> None:
    """Writes a file whole, or leaves it as it was. What a link points to is written; a pipe or a device is written directly.

    Raises ComputationError where it cannot be written.
    """
    try:
        _written(Path(os.path.realpath(path)), write)
    except OSError as error:
        message = f"{path} cannot be written: {error.strerror or error}"
        raise ComputationError("output-file", message, mend="another path") from None


def _written(target: Path, write: Callable[[BinaryIO], object]) -> None:
    if target.exists() and not target.is_file():
        held = io.BytesIO()
        write(held)
        with open(target, "wb", buffering=0) as out:
            rest = held.getbuffer()
            while rest:
                rest = rest[out.write(rest) :]
        return
    beside = target.with_name(f".{target.name}.{os.getpid()}")
    try:
        with open(beside, "wb") as file:
            write(file)
        if target.exists():
            beside.chmod(target.stat().st_mode)
        beside.replace(target)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise


def table(header: Sequence[str], rows: Sequence[Sequence[object]], title: str = "") -> str:
    """Rows under their header, numbers to the right; plain text."""
    texts = [[str(c) for c in row] for row in rows]
    widths = [max(len(r[k]) for r in ([*header], *texts)) for k in range(len(header))]
    right = [bool(rows) and all(isinstance(row[k], (int, float)) for row in rows) for k in range(len(header))]

    def line(cells: Sequence[str]) -> str:
        return "  ".join(c.rjust(w) if r else c.ljust(w) for c, w, r in zip(cells, widths, right, strict=True)).rstrip()

    return "\n".join([*([title] if title else []), line(header), line(["-" * w for w in widths]), *map(line, texts)])


def show(text: str) -> None:
    """Text on standard output; on a terminal, headings and errors in colour."""
    if not sys.stdout.isatty():
        click.echo(text)
        return
    from rich.console import Console
    from rich.highlighter import ReprHighlighter

    Console(highlighter=ReprHighlighter(), soft_wrap=True).print(text, markup=False)


def working(what: str) -> Any:
    """A spinner on standard error while something takes long; nothing where that is no terminal, or JSON is wanted."""
    import contextlib

    if not sys.stderr.isatty() or is_json():
        return contextlib.nullcontext()
    from rich.console import Console

    return Console(stderr=True).status(what)
