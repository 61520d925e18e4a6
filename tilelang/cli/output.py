"""Output of commands: text, tables, JSON, atomically written files."""

from __future__ import annotations

import contextlib
import io
import json
import math
import os
import shutil
import sys
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO

import click

from tilelang.errors import ComputationError, TileLangError

LEAST_WIDTH = 8  # of a truncated column
CUT = "..."  # ends a truncated text


def is_json() -> bool:
    """Whether the command was asked for JSON."""
    return bool(click.get_current_context().meta.get("tilelang.json"))


def emit(found: Mapping[str, Any]) -> None:
    """Prints one JSON object on standard output; numbers that JSON lacks are strings, such as "nan"."""
    click.echo(json.dumps({"schema": 1, **_plain(found)}, indent=2, allow_nan=False))


def _plain(found: Any) -> Any:
    if isinstance(found, Mapping):
        return {name: _plain(part) for name, part in found.items()}
    if isinstance(found, (list, tuple)):
        return [_plain(part) for part in found]
    return str(found) if isinstance(found, float) and not math.isfinite(found) else found


def write_whole(path: str, write: Callable[[BinaryIO], object]) -> None:
    """Writes a file atomically. A link is followed; a pipe or a device is written directly.

    Raises ComputationError if it cannot be written.
    """
    if not path:
        raise ComputationError("output-file", "the name of the output file is empty", help="name a file, or leave the option out")
    try:
        _written(Path(os.path.realpath(path)), write)
    except OSError as error:
        message = f"{path} cannot be written: {error.strerror or error}"
        raise ComputationError("output-file", message, help="use another path") from None


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


def annotation(error: TileLangError) -> str:
    """An error as a GitHub annotation."""
    span = error.span
    place = f"file={_escaped(span.file)},line={max(1, span.line)}" if span is not None else ""
    if span is not None and span.column:
        place += f",col={span.column},endColumn={span.end_column or span.column}"
    message, help = error.words()
    text = message + (f"\n{error.counterexample}" if error.counterexample else "") + (f"\nhelp: {help}" if help else "")
    return f"::error {place},title={_escaped(error.code)}::" + text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _escaped(text: str) -> str:
    return text.replace("%", "%25").replace("\n", "%0A").replace(",", "%2C").replace(":", "%3A")


def table(header: Sequence[str], rows: Sequence[Sequence[object]], title: str = "", cut: Collection[str] = ()) -> str:
    """Rows with a header, as plain text; numbers are right-aligned.

    cut: the columns that may be truncated, widest first, until the table fits the terminal.
    """
    texts = [[str(c) for c in row] for row in rows]
    widths = [max(len(r[k]) for r in ([*header], *texts)) for k in range(len(header))]
    right = [bool(rows) and all(isinstance(row[k], (int, float)) for row in rows) for k in range(len(header))]
    room = shutil.get_terminal_size().columns if sys.stdout.isatty() else sys.maxsize
    while sum(widths) + 2 * (len(widths) - 1) > room:
        widest = max((k for k, name in enumerate(header) if name in cut), key=widths.__getitem__, default=None)
        if widest is None or widths[widest] <= LEAST_WIDTH:
            break
        widths[widest] -= 1

    def line(cells: Sequence[str]) -> str:
        shown = [c if len(c) <= w else c[: w - len(CUT)] + CUT for c, w in zip(cells, widths, strict=True)]
        return "  ".join(c.rjust(w) if r else c.ljust(w) for c, w, r in zip(shown, widths, right, strict=True)).rstrip()

    return "\n".join([*([title] if title else []), line(header), line(["-" * w for w in widths]), *map(line, texts)])


def show(text: str) -> None:
    """Prints text on standard output; on a terminal, headings and errors in colour."""
    if not sys.stdout.isatty():
        click.echo(text)
        return
    from rich.console import Console  # late: slow to import, seldom needed
    from rich.highlighter import ReprHighlighter  # late: slow to import, seldom needed

    Console(highlighter=ReprHighlighter(), soft_wrap=True).print(text, markup=False)


def working(what: str) -> Any:
    """A spinner on standard error during a long operation; nothing if that is not a terminal, or with JSON."""
    if not sys.stderr.isatty() or is_json():
        return contextlib.nullcontext()
    from rich.console import Console  # late: slow to import, seldom needed

    return Console(stderr=True).status(what)


@contextlib.contextmanager
def compiling() -> Iterator[Callable[[str, int, int], None]]:
    """A spinner during compilation; yields a function that takes the state of the trials and shows it."""
    with working("compiling") as spinner:

        def tell(stage: str, done: int, of: int) -> None:
            if spinner is not None:
                spinner.update(f"{_STAGES[stage]}: {done} of {of}")

        yield tell


_STAGES = {"check": "checking candidates", "time": "timing them in turns"}
