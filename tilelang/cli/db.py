"""`tilelang db list|show|export|import|prune`: the database of autotuned and generated schedules."""

from __future__ import annotations

import datetime
import functools
import itertools
import json
import re
import sys
import warnings
from typing import TYPE_CHECKING, Any

import click

from tilelang.cli.common import RIGHT, WRONG, Command, errors_of, reporting, text_of
from tilelang.cli.output import emit, is_json, show, table, write_whole
from tilelang.errors import ComputationError, TileLangError, counted
from tilelang.options import Options

if TYPE_CHECKING:
    from tilelang.autoschedule.tune.database import Database
    from tilelang.autoschedule.tune.entries import Entry

DIGITS = 8  # of a key, in a table
MOST_BYTES = 1 << 26  # of a file that is imported: some 50,000 schedules
NAME = re.compile(r"(?:[^(,]|\([^)]*\))*")  # of a device, at the beginning of its full description


@click.group("db")
def command() -> None:
    """Manage the database of schedules, both autotuned and generated ones.

    The database is the file TILELANG_DATABASE, by default schedules.sqlite in the cache directory. KEY is the name of a computation or
    the first digits of a key; `list` shows both.
    """


def of_a_database(inner: Command) -> Command:
    """The options --database and --json; the command gets a Database, whose warnings go to standard error."""

    @click.option("--database", "-d", "path", metavar="FILE", help="The database file. Default: the one in use.")
    @functools.wraps(inner)
    def wrapped(path: str | None, **named: Any) -> Any:
        from tilelang.autoschedule.tune.database import Database  # late: a command imports what it needs itself

        found = Database.of(Options.from_environment().replace(database=path))
        if found is None:
            raise click.UsageError("no database: TILELANG_DATABASE or TILELANG_CACHE_DIR is empty; name one with --database FILE")
        with warnings.catch_warnings():
            warnings.simplefilter("always")
            warnings.showwarning = lambda message, *_, **__: click.echo(f"warning: {message}", err=True)
            return inner(found, **named)

    return reporting(wrapped)


def _by_key(entries: list[Entry]) -> list[list[Entry]]:
    """The entries grouped by key, fastest first."""
    return [list(group) for _, group in itertools.groupby(entries, key=lambda e: e.key.hash)]


def _asked(database: Database, keys: tuple[str, ...]) -> list[list[Entry]]:
    """The entries of the requested keys, or all."""
    found = _by_key(database.entries())
    for key in keys:
        if not any(_is(group[0], key) for group in found):
            raise click.UsageError(f"the database has no key or computation `{key}`; `tilelang db list` shows them")
    return [group for group in found if not keys or any(_is(group[0], key) for key in keys)]


def _is(entry: Entry, key: str) -> bool:
    return entry.key.name == key or entry.key.hash.startswith(key)


def _facts(group: list[Entry]) -> dict[str, Any]:
    """A key and its fastest entry, as JSON."""
    key, first = group[0].key, group[0]
    return {
        "key": key.hash, "computation": key.name, "sizes": key.sizes, "given": key.given, "device": key.device, "profile": key.profile,
        "compiler": key.compiler, "schedules": len(group), "constructed": first.constructed, "median_s": first.median_s,
        "iqr_s": first.iqr_s,
        "bound_ratio": first.bound_ratio, "date": first.date,
    }  # fmt: skip


@command.command("list")
@of_a_database
def list_(database: Database) -> None:
    """List the stored computations and devices with the fastest time of each.

    A time is an estimate of the model, or was measured in trials. `x bound` is the time over the lower bound for the device.
    """
    found = [_facts(group) for group in _asked(database, ())]
    if is_json():
        emit({"database": str(database.path), "keys": found})
        return
    header = ("key", "name", "sizes", "device", "ms", "from", "x bound", "date")
    rows = [
        (f["key"][:DIGITS], f["computation"], " ".join(f"{n}={e}" for n, e in f["sizes"].items()), _device(f["device"]),
         _number(f["median_s"] * 1e3), "model" if f["constructed"] else "trials", _number(f["bound_ratio"]), f["date"][:10])
        for f in found
    ]  # fmt: skip
    show(table(header, rows, cut=("name", "sizes", "device")) if rows else f"{database.path} has no schedules")


def _device(known: str) -> str:
    """The name of a device, such as `AMD EPYC (cpu, native)`, without further distinguishing details."""
    found = NAME.match(known)
    return found[0].strip() if found and found[0].strip() else known


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.4g}"


@command.command("show")
@click.argument("key")
@of_a_database
def show_(database: Database, key: str) -> None:
    """Print the computation and the schedules of KEY as a .tile file, fastest first."""
    found = _asked(database, (key,))
    if len(found) > 1:
        several = ", ".join(group[0].key.hash[:DIGITS] for group in found)
        raise click.UsageError(f"several keys match `{key}`: {several}")
    (group,) = found
    if is_json():
        emit({**_facts(group), "text": _text(group), "entries": [e.as_json() for e in group]})
    else:
        click.echo(_text(group), nl=False)


def _text(group: list[Entry]) -> str:
    """The entries as a .tile file."""
    key = group[0].key
    lines = [
        f"# {word}: {line}" for word in ("device", "profile", "compiler", "given") for line in getattr(key, word).splitlines()
    ]
    parts = ["\n".join(lines) + "\n", key.computation]
    for number, e in enumerate(group, 1):
        over = f", {e.bound_ratio:.4g} times the lower bound" if e.bound_ratio is not None else ""
        spread = "predicted by the model, never timed" if e.constructed else f"quartiles {e.iqr_s * 1e3:.2g} ms apart"
        heading = f"# {e.median_s * 1e3:.4g} ms, {spread}{over}; {e.date.splitlines()[0]}\n"
        parts.append(heading + e.schedule.replace("schedule for", f"schedule s{number} for", 1) + "\n")
    return "\n".join(parts)


@command.command("export")
@click.argument("keys", nargs=-1, metavar="[KEY]...")
@click.option("--output", "-o", metavar="FILE", help="Write to FILE instead of standard output.")
@of_a_database
def export(database: Database, keys: tuple[str, ...], output: str | None) -> None:
    """Write the database, or its entries for KEYS, as JSON that `import` reads."""
    entries = [e.as_json() for group in _asked(database, keys) for e in group]
    if output is None:
        emit({"entries": entries})
        return
    text = json.dumps({"schema": 1, "entries": entries}, indent=2) + "\n"
    write_whole(output, lambda file: file.write(text.encode()))
    _tell({"exported": len(entries), "file": output}, f"{output}: {counted(len(entries), 'schedule')}")


@command.command("import")
@click.argument("file", type=click.Path())
@click.option("--limit-bytes", type=click.IntRange(1), default=MOST_BYTES, show_default=True, help="Refuse larger files.")
@of_a_database
def import_(database: Database, file: str, limit_bytes: int) -> None:
    """Add the schedules that `export` wrote to FILE.

    Every schedule is parsed and checked against its computation. Invalid ones are reported and left out, and the command then exits
    with 1. `-` reads standard input.
    """
    from tilelang.autoschedule.tune.entries import Entry, check_entry  # late: a command imports what it needs itself

    good: list[Entry] = []
    refused: list[TileLangError] = []
    for found in _entries(text_of(file, limit_bytes), file):
        try:
            entry = Entry.from_json(found)
            check_entry(entry)
            good.append(entry)
        except TileLangError as error:
            refused.append(error)
    kept = database.record(good)
    count = len(good) if kept else 0
    if is_json():
        emit({"imported": count, "errors": [facts for one in refused for facts in errors_of(one)]})
    else:
        for one in refused:
            click.echo(one.render(), err=True)
        show(f"imported: {counted(count, 'schedule')}; refused: {len(refused)}")
    sys.exit(RIGHT if kept and not refused else WRONG)


def _entries(text: str, file: str) -> list[Any]:
    """The contents of an exported file. Raises ComputationError."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as error:
        found = str(error)
    if isinstance(found, dict) and found.get("schema") == 1 and isinstance(found.get("entries"), list):
        return list(found["entries"])
    why = found if isinstance(found, str) else 'it has no "entries" of schema 1'
    raise ComputationError("database-file", f"{file} is not an export: {why}", help="use a file that `tilelang db export` wrote")


@command.command("prune")
@click.option("--keep", type=click.IntRange(0), metavar="N", help="Keep only the N fastest schedules of each key.")
@click.option(
    "--older-than", type=click.IntRange(0), metavar="DAYS", help="Remove schedules that were measured more than DAYS days ago."
)
@click.option(
    "--stale",
    is_flag=True,
    help="Remove schedules of this machine's devices with another driver, profile or version of tilelang.",
)
@click.option("--constructed", is_flag=True, help="Remove generated schedules that were never timed.")
@click.option("--all", "everything", is_flag=True, help="Remove all schedules.")
@of_a_database
def prune(database: Database, keep: int | None, older_than: int | None, stale: bool, constructed: bool, everything: bool) -> None:
    """Remove the schedules that the options select."""
    from tilelang.autoschedule.tune.database import KEPT  # late: a command imports what it needs itself

    if keep is None and older_than is None and not stale and not constructed and not everything:
        raise click.UsageError("select what to remove: --keep N, --older-than DAYS, --stale, --constructed or --all")
    before = ""
    if older_than is not None:
        then = datetime.datetime.now(datetime.UTC) - datetime.timedelta(days=min(older_than, 500_000))
        before = then.isoformat(timespec="seconds")
    least = 0 if everything else KEPT if keep is None else keep
    is_stale = _is_stale() if stale else lambda e: False
    count = database.prune(least, before, lambda e: is_stale(e) or (constructed and e.constructed))
    _tell({"forgotten": count}, f"removed {counted(count, 'schedule')}")


def _is_stale() -> Any:
    """A predicate for entries of this machine's devices that can no longer be used."""
    from tilelang.autoschedule.tune.recall import constructed_by, place_of  # late: a command imports what it needs itself
    from tilelang.runtime.targets import devices, target  # late: a command imports what it needs itself

    here = [place_of(target(device=device)) for device in devices()]
    known = {device for device, _, _ in here}
    current = {*here, *((device, profile, constructed_by(compiler)) for device, profile, compiler in here)}
    return lambda e: e.key.device in known and (e.key.device, e.key.profile, e.key.compiler) not in current


def _tell(found: dict[str, Any], text: str) -> None:
    if is_json():
        emit(found)
    else:
        show(text)
