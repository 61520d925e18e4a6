"""The common part of the commands: options, the file and the selection from it, errors as exit codes."""

from __future__ import annotations

import dataclasses
import functools
import os
import sys
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

import click

from tilelang.cli.output import annotation, compiling, emit, is_json
from tilelang.computations.computation import Computation
from tilelang.core import dtype as dt
from tilelang.core.dtype import DType
from tilelang.errors import ComputationError, Refusal, TileLangError, counted, each
from tilelang.grammar import Document, parse, read
from tilelang.grammar.document import read_text
from tilelang.grammar.scan import MOST_BYTES
from tilelang.profiles.files import load_profile, shipped_profiles
from tilelang.profiles.profile import Profile
from tilelang.schedules.schedule import Schedule
from tilelang.schedules.steps import Step, has_holes

if TYPE_CHECKING:
    from tilelang.runtime.kernel import Kernel
    from tilelang.runtime.targets import Target

RIGHT, WRONG, USAGE, NO_DEVICE = 0, 1, 2, 3
# The profile of a dialect if none is requested and nothing runs: the same on every machine.
PROFILES = {"cpu": "sapphire_rapids", "opencl": "sapphire_rapids", "cuda": "ampere", "hip": "cdna2"}
# Errors in what the command line asks for, as opposed to errors in the file.
_ASKED = ("unknown-parameter", "parameter-without-value", "which-schedule", "which-computation", "unknown-schedule", "file",
          "profile-not-found", "unknown-dialect", "unknown-aspect", "unknown-rule", "option-value")  # fmt: skip
NO_DEVICE_CODES = ("no-device", "no-such-device", "no-driver")
F = TypeVar("F", bound=Callable[..., Any])
Command = Callable[..., Any]


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
        self.fail(f"{value!r} is not a valid size; write it as M=1024, or type=float16", param, ctx)


def completed(known: Callable[[click.Context], Iterable[str]]) -> Callable[..., list[str]]:
    """Completes an option with the known names that begin with the typed text."""
    return lambda ctx, param, incomplete: [name for name in known(ctx) if name.startswith(incomplete)]


def _schedules(ctx: click.Context) -> list[str]:
    """The schedules of the given file; empty if it cannot be read."""
    files = [ctx.params.get("file"), *ctx.args]  # not yet a parameter if the completed option precedes it
    try:
        return [e.name for file in files if file for e in read(file).schedules if e.name]
    except TileLangError:
        return []


def once(ctx: click.Context, param: click.Parameter, given: tuple[tuple[str, Any], ...]) -> dict[str, Any]:
    """The values of a repeatable option NAME=VALUE by name; a name with two values is refused."""
    found: dict[str, Any] = {}
    for name, value in given:
        if found.setdefault(name, value) != value:
            raise click.BadParameter(f"`{name}` has two values, {found[name]} and {value}", ctx, param)
    return found


SCHEDULE = click.option(
    "--schedule", "-s", "schedule_name", metavar="NAME", help="The schedule to use; required if the file has several.",
    shell_complete=completed(_schedules),
)  # fmt: skip
SIZES = click.option(
    "--size",
    "-S",
    "sizes",
    multiple=True,
    type=Size(),
    callback=once,
    help="Set a parameter, for example --size M=1024. Repeatable.",
)
PROFILE = click.option(
    "--profile", "-p", envvar="TILELANG_PROFILE", metavar="NAME", shell_complete=completed(lambda ctx: shipped_profiles()),
    help="The device profile: a shipped profile's name or a path. Default: TILELANG_PROFILE, else that of the device or the target.",
)  # fmt: skip
LIMIT = click.option("--limit-bytes", type=click.IntRange(1), default=MOST_BYTES, show_default=True, help="Refuse larger files.")
UNTIL = click.option("--until", type=click.IntRange(0), metavar="STEP", help="Use only the first STEP steps of the schedule.")
TRIALS = click.option(
    "--trials", metavar="K", type=click.IntRange(0), default=0, show_default=True,
    help="Autotune: time the K best candidates for the parts that the file leaves open, and take the fastest.",
)  # fmt: skip
SEED = click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="The seed of the random inputs.")


def target_option(default: str | None, help: str) -> Callable[[F], F]:
    """The option --target: a dialect."""
    return click.option(
        "--target", "dialect", metavar="DIALECT", default=default, show_default=True, help=help,
        shell_complete=completed(lambda ctx: PROFILES),
    )  # fmt: skip


def text_of(name: str, limit_bytes: int) -> str:
    """The text of a file, or of standard input for `-`."""
    return read_text(name, limit_bytes, sys.stdin.buffer if name == "-" else None)


@dataclasses.dataclass(frozen=True)
class Asked:
    """A file, and the schedule and sizes requested."""

    path: str
    document: Document
    schedule_name: str | None
    sizes: Mapping[str, int | DType]
    profile: Profile | None

    def kernel(self, target: Target, until: int | None = None, trials: int = 0) -> Kernel:
        """The requested schedule, compiled for a target; if the file has none, a generated one.

        until: only its first steps. trials: how many candidates are timed for what the file leaves open. Raises Refusal with its
        location.
        """
        from tilelang.runtime.kernel import compile  # late: a command imports what it needs itself

        try:
            given = self.given(target.profile)
            with compiling() as tell:
                if until is None:
                    return compile(given, target, trials=trials, progress=tell)
                if not isinstance(given, Schedule) or has_holes(given.steps):
                    given = compile(given, target, trials=trials, progress=tell).schedule
                if until > len(given.steps):
                    raise click.UsageError(f"--until {until}: the schedule has {counted(len(given.steps), 'step')}")
                return compile(given.prefix(until), target)
        except Refusal as error:
            if error.span is None:
                error.span = self.document.place(self.schedule_name, profile=target.profile, **self.sizes)
            raise

    def given(self, profile: Profile) -> Schedule | Computation:
        """The requested schedule, or the computation if the file has none."""
        computation, steps = self.steps(profile)
        if self.document.has_schedule(self.schedule_name, profile=profile, **self.sizes):
            return Schedule(computation, steps)
        return computation

    def steps(self, profile: Profile) -> tuple[Computation, tuple[Step, ...]]:
        """The requested schedule before its steps are checked together. profile: decides conditions."""
        return self.document.steps(self.schedule_name, profile=profile, **self.sizes)


def of_a_file(command: Command) -> Command:
    """The argument FILE and the options that select a schedule; the command gets an Asked."""

    @click.argument("file", type=click.Path())
    @SCHEDULE
    @SIZES
    @PROFILE
    @LIMIT
    @functools.wraps(command)
    def wrapped(file: str, schedule_name: str | None, sizes: Any, profile: str | None, limit_bytes: int, **more: Any) -> Any:
        facts = load_profile(profile) if profile is not None else None
        document = parse(text_of(file, limit_bytes), file, limit_bytes=limit_bytes, faulty=True)
        return command(Asked(file, document, schedule_name, sizes, facts), **more)

    return reporting(wrapped)


def reporting(command: Command) -> Command:
    """The option --json; prints every TileLangError as text or JSON and exits with its code."""

    @click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
    @functools.wraps(command)
    def wrapped(*arguments: Any, as_json: bool, **named: Any) -> Any:
        click.get_current_context().meta["tilelang.json"] = as_json or named.get("form") == "json"
        try:
            return command(*arguments, **named)
        except TileLangError as error:
            fail(error)
        except MemoryError:
            fail(ComputationError("too-large-to-run", "there is not enough memory", help="use smaller sizes: --size NAME=VALUE"))
        except BrokenPipeError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            sys.exit(WRONG)

    return wrapped


def fail(error: TileLangError) -> NoReturn:
    """Prints an error and exits with its code."""
    if is_json():
        emit({"errors": errors_of(error)})
    elif click.get_current_context().params.get("form") == "github":
        click.echo("\n".join(annotation(e) for e in each(error)))
    else:
        click.echo(error.render(), err=True)
    sys.exit(exit_code(error))


def exit_code(error: TileLangError) -> int:
    """The exit code of an error."""
    return NO_DEVICE if error.code in NO_DEVICE_CODES else USAGE if error.code in _ASKED else WRONG


def errors_of(error: TileLangError) -> list[dict[str, Any]]:
    """All errors in it, as JSON."""
    return [
        {
            "code": e.code, "message": e.words()[0], "file": e.span.file if e.span else None, "line": e.span.line if e.span else None,
            "column": e.span.column if e.span else None, "end_column": e.span.end_column if e.span else None,
            "counterexample": e.counterexample, "help": e.words()[1], "mend": e.words()[1], "proven": e.proven, "notes": list(e.notes),
        }
        for e in each(error)
    ]  # fmt: skip
