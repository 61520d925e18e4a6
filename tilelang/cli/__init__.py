"""The command line: `tilelang COMMAND FILE ...`, one module per command, imported on use.

Exit codes: 0 right, 1 wrong or refused, 2 usage, 3 no device. `--json` prints one object, errors included, with "schema": 1.
"""

from __future__ import annotations

import importlib
import io
import os
import sys
from typing import Any, NoReturn

import click

from tilelang.core.version import VERSION

COMMANDS = {
    "run": "Run a schedule on this machine's device, check it and time it.",
    "check": "Check a file without a device: syntax, types, and whether its schedules can be lowered.",
    "fmt": "Format files.",
    "fill": "Generate a schedule or fill the holes of one, and print it.",
    "source": "Print the source code that a schedule is lowered to.",
    "export": "Export a kernel for C programs: source, header, launcher, libraries.",
    "explain": "Explain a schedule: specs, buffers, threads, barriers, memory transactions.",
    "simulate": "Simulate a schedule, thread by thread, and report faults.",
    "bisect": "Find the first step of a schedule that goes wrong.",
    "fuzz": "Search for a fault in schedules with random sizes, data and steps.",
    "diff": "Compare two schedules and the resources that they use.",
    "db": "Manage the database of schedules: list, show, export, import, prune.",
    "profile": "Measure this machine's device for the autoscheduler.",
    "devices": "List this machine's devices, and what is missing for others.",
}


class Commands(click.Group):
    """The commands, each imported when it is requested."""

    def main(
        self, args: Any = None, prog_name: Any = None, complete_var: Any = None, standalone_mode: bool = True, **extra: Any
    ) -> Any:
        _open_streams()
        given = sys.argv[1:] if args is None else list(args)
        as_json = standalone_mode and "--json" in given
        try:
            code = super().main(given, prog_name, complete_var, standalone_mode and not as_json, **extra)
        except click.ClickException as error:
            if not as_json:
                raise
            _as_json("usage", error.format_message(), error.exit_code)
        except click.Abort:
            if not as_json:
                raise
            _as_json("interrupted", "the command was interrupted", 1)
        except OSError as error:
            if not standalone_mode or error.filename is not None:
                raise
            _unwritten(error)
        return code if not as_json else sys.exit(code if isinstance(code, int) else 0)

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        found: click.Command = importlib.import_module(f"tilelang.cli.{cmd_name}").command
        return found

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))  # from the table: --help imports nothing

    def resolve_command(self, ctx: click.Context, args: list[str]) -> Any:
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            import difflib  # late: only for the text of an error

            near = difflib.get_close_matches(args[0], COMMANDS, 1)
            if near:
                raise click.UsageError(f"{error.message.rstrip('.')}. Did you mean '{near[0]}'?", ctx) from None
            raise


def _open_streams() -> None:
    """Opens standard streams that the caller closed, so that nothing else gets their descriptors. Characters that a stream's encoding
    lacks, as in some file names, are written as escapes."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))
        elif mode == "w" and isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _as_json(code: str, message: str, exit_code: int) -> NoReturn:
    """Prints an early error as the one object that --json promises."""
    from tilelang.cli.common import errors_of  # late: a command imports what it needs itself
    from tilelang.cli.output import emit  # late: a command imports what it needs itself
    from tilelang.errors import TileLangError  # late: a command imports what it needs itself

    emit({"errors": errors_of(TileLangError(code, message))})
    sys.exit(exit_code)


def _unwritten(error: OSError) -> NoReturn:
    """Exits if standard output cannot be written, for example because the disk is full."""
    click.echo(f"error[output]: standard output cannot be written: {error.strerror}", err=True)
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # so that buffered output is not tried again
    sys.exit(1)


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(VERSION, prog_name="tilelang")
def main() -> None:
    """Write fast kernels as a formula and a schedule in .tile files; this command checks, runs and explains them.

    `tilelang COMMAND --help` describes a command. Completion for bash: eval "$(_TILELANG_COMPLETE=bash_source tilelang)"; zsh and fish
    work alike.
    """
