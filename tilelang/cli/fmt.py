"""`tilelang fmt FILE ...`: formats files."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from tilelang.cli.common import LIMIT, RIGHT, WRONG, errors_of, exit_code, reporting, text_of
from tilelang.cli.output import emit, is_json, write_whole
from tilelang.errors import ParseError, Span, TileLangError
from tilelang.grammar import format_text


@click.command("fmt")
@click.argument("files", nargs=-1, required=True, type=click.Path())
@click.option("--check", "only_check", is_flag=True, help="Change nothing; exit with 1 if a file is not formatted.")
@LIMIT
@reporting
def command(files: tuple[str, ...], only_check: bool, limit_bytes: int) -> None:
    """Format FILES: indentation and spaces. Words, comments and line endings are kept. `-` formats standard input to standard
    output."""
    code, changed, errors, printed = RIGHT, [], [], dict[str, str]()
    for name in files:
        try:
            text, made = _formatted(name, only_check, limit_bytes)
            if made != text:
                changed.append(name)
            if name == "-":
                printed["text"] = made
        except TileLangError as error:
            code = max(code, exit_code(error))
            errors += errors_of(error)
            if not is_json():
                click.echo(error.render(), err=True)
    if is_json():
        emit({"changed": changed, "errors": errors, **printed})
    elif "-" not in files:
        for name in changed:
            click.echo(f"{name}: {'would be' if only_check else 'was'} reformatted")
    sys.exit(max(code, WRONG if only_check and changed else RIGHT))


def _formatted(name: str, only_check: bool, limit_bytes: int) -> tuple[str, str]:
    """Formats one file; returns its text before and after."""
    text = text_of(name, limit_bytes)
    made = format_text(text, name, limit_bytes)
    if name == "-":
        if not is_json():
            click.echo(made.encode(), nl=False)  # as in a file: UTF-8
    elif made != text and not only_check:
        if not Path(name).is_file():
            raise ParseError(
                "file", f"{name} is a pipe or a device", span=Span(name, 0), help="pass `-` to format standard input"
            )
        write_whole(name, lambda file: file.write(made.encode()))
    return text, made
