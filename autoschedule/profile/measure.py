"""Measures the requested aspects, one after another, into a profile's file and a table of raw times beside it.

Both are rewritten atomically after each aspect, so an interrupted measurement continues where it stopped. The table says which
aspects were measured, at which version; the profile has their results.
"""

from __future__ import annotations

import contextlib
import csv
import dataclasses
import io
import os
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from tilelang.autoschedule.profile.aspects import ASPECTS, Aspect
from tilelang.autoschedule.profile.bench import Bench
from tilelang.autoschedule.profile.findings import Findings, NotApplicable, Row
from tilelang.autoschedule.profile.sampling import REPEATS
from tilelang.autoschedule.profile.text import profile_text
from tilelang.errors import DeviceError, TileLangError
from tilelang.profiles.files import read_profile
from tilelang.profiles.profile import QUERIED, SHIPPED, Profile
from tilelang.profiles.toml_schema import near

Rows = dict[str, list[Row] | str]  # by aspect and version, such as `clock 1`; a text: why the aspect does not apply to the device
HEADING = "What `tilelang profile` measured on {device}. The raw times are in {table}."


@dataclasses.dataclass(frozen=True)
class Progress:
    """Callbacks: with the number of aspects; when one begins; after each of its samples; when it is done."""

    begin: Callable[[int], object] = lambda total: None
    aspect: Callable[[str, str], object] = lambda name, about: None
    sample: Callable[[str], object] = lambda series: None
    done: Callable[[], object] = lambda: None


@dataclasses.dataclass(frozen=True)
class Outcome:
    """The profile, the aspects measured now, and warnings about doubtful or failed measurements. left_out: aspects that do not
    apply to the device, with the reason."""

    profile: Profile
    measured: tuple[str, ...]
    warnings: tuple[str, ...]
    left_out: Mapping[str, str] = dataclasses.field(default_factory=dict)


def measure(
    bench: Bench,
    path: Path,
    asked: Collection[str] = (),
    aspects: Mapping[str, Aspect] = ASPECTS,
    repeats: int = REPEATS,
    progress: Progress | None = None,
) -> Outcome:
    """The profile of a device. asked: aspects to measure even if they were measured before; if empty, all that are missing.

    Raises DeviceError `unknown-aspect`, or `other-device` if the file belongs to another device.
    """
    progress = progress or Progress()
    known(asked, aspects)
    profile, rows = begun(bench, path)
    wanted = _wanted(asked, aspects, rows)
    warnings: list[str] = []
    measured, left_out = list[str](), dict[str, str]()
    progress.begin(len(wanted))
    for name in wanted:
        aspect = aspects[name]
        progress.aspect(name, aspect.about)
        found = Findings(dict(profile.rates), repeats, progress.sample, profile)
        try:
            taken = _answer(aspect, bench, found)
        except TileLangError as error:
            warnings.append(f"{name} is not measured: {error.message}")
        except Exception as error:  # an unknown device may fail in unexpected ways: other aspects may still work
            warnings.append(f"{name} is not measured: {type(error).__name__}: {error}")
        else:
            if isinstance(taken, str):
                left_out[name] = taken
            else:
                measured.append(name)
                warnings += [f"{name}: {warning}" for warning in found.warnings()]
                profile = with_findings(profile, found)
            rows = {key: kept for key, kept in rows.items() if key.split()[0] != name} | {_key(name, aspect): taken}
            profile = dataclasses.replace(profile, unmeasured=tuple(_missing(aspects, rows)))
            write(path, profile, rows, str(bench.device))
        progress.done()
    return Outcome(profile, tuple(measured), tuple(warnings), left_out)


def known(asked: Collection[str], aspects: Mapping[str, Aspect] = ASPECTS) -> None:
    """Raises DeviceError `unknown-aspect` if a requested aspect does not exist."""
    for name in asked:
        if name not in aspects:
            raise DeviceError("unknown-aspect", f"there is no aspect `{name}`", help=near(name, aspects))


def _answer(aspect: Aspect, bench: Bench, found: Findings) -> list[Row] | str:
    """The times of an aspect, or why it does not apply to the device."""
    try:
        aspect.ask(bench, found)
    except NotApplicable as reason:
        return str(reason)
    return found.rows


def begun(bench: Bench, path: Path) -> tuple[Profile, Rows]:
    """The results of an earlier run at a path.

    If there are none: no rows, and the device's shipped profile, whose sources say that values not queried are as shipped.
    """
    if not path.exists():
        sources = tuple((p, how if how == QUERIED else f"{SHIPPED}{how}") for p, how in bench.profile.sources)
        return dataclasses.replace(bench.profile, description=str(bench.device), sources=sources), {}
    profile = read_profile(path)
    if profile.description != str(bench.device):
        message = f"{path} is the profile of {profile.description}, not of {bench.device}"
        raise DeviceError("other-device", message, help="use another path for --output")
    table = path.with_suffix(".csv")
    return profile, read_rows(table.read_text(encoding="utf-8", errors="replace")) if table.exists() else {}


def set_aside(path: Path) -> Path | None:
    """Renames a file that is not a valid profile and returns its new path; None if the file is valid or does not exist."""
    try:
        if path.exists():
            read_profile(path)
    except DeviceError:
        return path.replace(path.with_name(f"{path.name}.damaged"))
    return None


def _wanted(asked: Collection[str], aspects: Mapping[str, Aspect], rows: Rows) -> list[str]:
    """The aspects to measure, in order: the requested ones and those they need, or all that are missing."""
    missing = _missing(aspects, rows)
    if not asked:
        return missing
    needed = {need for name in asked for need in aspects[name].needs}
    return [name for name in aspects if name in asked or (name in needed and name in missing)]


def _missing(aspects: Mapping[str, Aspect], rows: Rows) -> list[str]:
    """The aspects that have not been measured at their current version."""
    return [name for name, aspect in aspects.items() if _key(name, aspect) not in rows]


def _key(name: str, aspect: Aspect) -> str:
    return f"{name} {aspect.version}"


def with_findings(profile: Profile, found: Findings) -> Profile:
    """A profile updated with new results, except for facts that the system or the driver states exactly."""
    sources = dict(profile.sources)
    rates = dict(profile.rates) | {name: value for name, (value, _) in found.rates.items()}
    sources |= {f"rates.{name}": how for name, (_, how) in found.rates.items()}
    new = {curve.name for curve, _ in found.curves}
    curves = [curve for curve in profile.curves if curve.name not in new] + [curve for curve, _ in found.curves]
    sources |= {f"curves.{curve.name}.points": how for curve, how in found.curves}
    memories, levels = list(profile.memories), list(profile.levels)
    for fact in found.facts:
        changed: dict[str, Any] = {fact.field: fact.value}
        table = "levels" if profile.has_level(fact.of) else "memories"
        if sources.get(f"{table}.{fact.of}.{fact.field}") == QUERIED:
            continue
        memories = [dataclasses.replace(m, **changed) if m.name == fact.of else m for m in memories]
        levels = [dataclasses.replace(level, **changed) if level.name == fact.of else level for level in levels]
        sources[f"{table}.{fact.of}.{fact.field}"] = fact.source
    return dataclasses.replace(
        profile, rates=tuple(sorted(rates.items())), curves=tuple(curves), memories=tuple(memories), levels=tuple(levels),
        sources=tuple(sorted(sources.items())),
    )  # fmt: skip


# ---------------------------------------------------------------- files

LEFT_OUT, NOTHING = "not applicable: ", "nothing timed"
_COLUMNS = ("aspect", *(field.name for field in dataclasses.fields(Row)))


def write(path: Path, profile: Profile, rows: Rows, device: str) -> None:
    """Writes the profile, then the table of raw times. Raises DeviceError if they cannot be written."""
    table = path.with_suffix(".csv")
    text = profile_text(profile, HEADING.format(device=device, table=table.name))
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        for file, content in ((path, text), (table, rows_text(rows))):
            beside = file.with_name(f".{file.name}.{os.getpid()}")
            try:
                beside.write_text(content, encoding="utf-8")
                beside.replace(file)
            finally:
                beside.unlink(missing_ok=True)
    except OSError as error:
        raise DeviceError("output-file", f"{path} cannot be written: {error.strerror or error}", help="another path") from None


def rows_text(rows: Rows) -> str:
    """Raw rows as comma-separated values; an aspect without any has a single row that says why."""
    out = io.StringIO()
    table = csv.writer(out, lineterminator="\n")
    table.writerow(_COLUMNS)
    for aspect, found in rows.items():
        if not found or isinstance(found, str):
            table.writerow([aspect, f"{LEFT_OUT}{found}" if found else NOTHING])
            continue
        table.writerows([aspect, *(f"{v:.6g}" if isinstance(v, float) else v for v in dataclasses.astuple(row))] for row in found)
    return out.getvalue()


def read_rows(text: str) -> Rows:
    """The rows of a text that `rows_text` wrote.

    An aspect with a malformed line is omitted, so that it is measured again; if the text is not a table, all are.
    """
    lines: dict[str, list[list[str]]] = {}
    rows: Rows = {}
    with contextlib.suppress(csv.Error):
        for aspect, *cells in list(filter(None, csv.reader(io.StringIO(text))))[1:]:
            lines.setdefault(aspect, []).append(cells)
    for aspect, found in lines.items():
        with contextlib.suppress(ValueError):
            rows[aspect] = _taken(found)
    return rows


def _taken(lines: Sequence[Sequence[str]]) -> list[Row] | str:
    """The rows of an aspect from its lines, or why it does not apply. Raises ValueError if a line is malformed."""
    if lines == [[NOTHING]]:
        return []
    if len(lines) == 1 and len(lines[0]) == 1 and lines[0][0].startswith(LEFT_OUT):
        return lines[0][0].removeprefix(LEFT_OUT)
    rows = []
    for cells in lines:
        series, x, seconds, spread, best, repeats, rounds = cells
        rows.append(Row(series, float(x), float(seconds), float(spread), float(best), int(repeats), int(rounds)))
    return rows
