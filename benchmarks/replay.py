"""Compiles a fixed set of programs and shows what comes out differently from a recorded baseline, or from another version of the code.

    python benchmarks/replay.py                             # make replay: against the baseline
    python benchmarks/replay.py --explain "moves are peeled once"    # accepts what differs, for the reason given
    python benchmarks/replay.py --against HEAD~3            # make replay BASE=HEAD~3
    python benchmarks/replay.py --record before.jsonl       # then, later: --against before.jsonl

The programs are every schedule of every example for every shipped profile, and the schedule that construction gives each of their
computations; the corpus in tests/corpus; and the texts in benchmarks/replay/, which replay_draw.py wrote once. Each text there is a
computation with a schedule: `drawn/` and `steered/` hold random ones, a quarter of them refused, and `constructed/` the schedules that
were once constructed for random computations, which are constructed anew beside them. Of each program and dialect the printed schedule,
the kernel IR, the source and the estimate are recorded, of a refused one the code, the line and the counterexample. What construction
chooses now is recorded apart, as `construction`: another choice leaves the programs with a schedule of their own as they are.

benchmarks/replay/baseline.json keeps a digest of each record; it is written once, by --baseline, and never again. A difference that is
meant is accepted by --explain, which adds the new digests with the reason to explained.json. A comment of the emitted sources may be
reworded without an explanation: reworded.json lists its words now and when the baseline was recorded, and records have the latter. For
the diff of a program that differs,
the commit that added the baseline is checked out and compiles that program again; so is any other revision of git, with all programs.

Nothing runs, so no device is needed, and the machine's own profile is not used. Exit status 1: something differs.
"""

from __future__ import annotations

import argparse
import collections
import dataclasses
import difflib
import functools
import hashlib
import json
import multiprocessing
import os
import subprocess
import sys
import tempfile
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
CODE = Path(os.environ.get("REPLAY_CODE", ROOT))  # the checkout whose compiler is recorded
sys.path.insert(0, str(CODE))

TEXTS = HERE / "replay"
KEPT = ROOT / "tests" / "corpus"
BASELINE = TEXTS / "baseline.json"
EXPLAINED = TEXTS / "explained.json"
REWORDED = TEXTS / "reworded.json"
SEPARATOR = "# ---- "  # begins the title of each program in a file of texts
GENERATED = "generated"  # the name of the schedule that construction chooses
DIGITS = 10  # of a digest
Found = dict[str, str]  # what was recorded of one program, by kind and dialect: "schedule cuda", "ir cuda", "refusal opencl", ...


NEWER_PROFILES = {"zen3"}  # shipped since the baseline was recorded, whose code does not have them


@dataclasses.dataclass(frozen=True, order=True)
class Program:
    """A schedule of a text for a profile. title: within a file of texts; schedule: its name, or GENERATED."""

    file: str
    title: str
    schedule: str
    profile: str

    def __str__(self) -> str:
        return " ".join(part for part in (self.file, self.title, self.schedule, f"@ {self.profile}") if part)


# ---------------------------------------------------------------- the programs


def programs() -> Iterator[Program]:
    """All programs, in a fixed order."""
    import tilelang as tl

    profiles = sorted({path.stem for path in (ROOT / "tilelang" / "profiles").glob("*.toml")} - NEWER_PROFILES)
    for path in sorted((ROOT / "examples").glob("*.tile")):
        document = tl.read(path)
        file = _name(path)
        for profile in profiles:
            loaded = tl.load_profile(profile)
            yield from (Program(file, "", e.name, profile) for e in document.holding({}, loaded))
            yield from (Program(file, name, GENERATED, profile) for name in document.computations)
    for path in sorted(KEPT.glob("*.tile")):
        yield Program(_name(path), "", "", _device_of(path)[1])
    for path in sorted(TEXTS.glob("*/*.tile")):
        for title in texts(path):
            yield Program(_name(path), title, "", path.stem)
            if path.parent.name == "constructed":
                yield Program(_name(path), title, GENERATED, path.stem)


def _name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


@functools.cache
def texts(path: Path) -> dict[str, str]:
    """The programs of a file of texts, by title."""
    parts = path.read_text(encoding="utf-8").split(SEPARATOR)[1:]
    return {title: text for title, _, text in (part.partition("\n") for part in parts)}


def _device_of(path: Path) -> list[str]:
    """The dialect and the profile that a text of the corpus names in its first line."""
    with path.open(encoding="utf-8") as lines:
        return next(lines).removeprefix("# ").partition(":")[0].split()


def _read(program: Program) -> Any:
    """The schedule of a program, or its computation if one is to be constructed."""
    import tilelang as tl
    from benchmarks.foreign import instructions

    path, profile = ROOT / program.file, tl.load_profile(program.profile)
    if path.is_relative_to(ROOT / "examples"):
        if program.schedule == GENERATED:
            return tl.read(path).computation(program.title, profile=profile)
        return tl.read(path).schedule(program.schedule, profile=profile)
    text = texts(path)[program.title] if program.title else path.read_text(encoding="utf-8")
    instructions.define(text)
    document = tl.parse(text, path.name)
    return document.computation() if program.schedule == GENERATED else document.schedule()


# ---------------------------------------------------------------- recording


def recorded(program: Program) -> Found:
    """What the compiler makes of a program. Errors of ours are recorded; any other exception too, by its type.

    Comments are as they would have been when the baseline was recorded: in the words of that time, and without the checkout's path.
    """
    import tilelang as tl

    profile = tl.load_profile(program.profile)
    dialects = [_device_of(ROOT / program.file)[0]] if program.file.startswith("tests/corpus/") else profile.dialects
    try:
        what = _read(program)
    except tl.TileLangError as error:
        return _refusal(error)
    found: Found = {}
    for dialect in dialects:
        try:
            made = _compiled(what, dialect, program)
        except tl.TileLangError as error:
            made = _refusal(error)
        except Exception as error:
            made = {"traceback": f"{type(error).__name__}: {error}"}
        found |= {f"{kind} {dialect}": in_words_then(text.replace(f"{ROOT}{os.sep}", "")) for kind, text in made.items()}
    return found


@functools.cache
def _reworded() -> list[tuple[str, str]]:
    return [(now, then) for now, then in json.loads(REWORDED.read_text(encoding="utf-8"))]


def in_words_then(text: str) -> str:
    """A text with its comments in the words that they had when the baseline was recorded."""
    for now, then in _reworded():
        text = text.replace(now, then)
    return text


def _compiled(what: Any, dialect: str, program: Program) -> Found:
    import tilelang as tl
    from tilelang.lowering.printer import to_text

    kernel = tl.compile(what, tl.target(dialect, profile=program.profile))
    written = "construction" if program.schedule == GENERATED else "schedule"
    found = {written: str(kernel.schedule), "ir": to_text(kernel.program), "source": kernel.source}
    try:
        found["estimate"] = str(kernel.estimate)
    except tl.TileLangError as error:
        found["estimate"] = f"none: {error.code}"
    return found


def _refusal(error: Any) -> Found:
    line = error.span.line if error.span is not None and error.span.file.endswith(".tile") else ""
    return {"refusal": f"{error.code} at line {line}", "counterexample": str(error.counterexample)}


def records(chosen: Sequence[Program], processes: int) -> Iterator[tuple[str, Found]]:
    """The record of each program, with its name."""
    with multiprocessing.get_context("spawn").Pool(processes) as pool:
        for n, (program, found) in enumerate(zip(chosen, pool.imap(recorded, chosen, chunksize=8), strict=True), 1):
            if sys.stderr.isatty():
                print(f"\r{n} of {len(chosen)}", end="\n" * (n == len(chosen)), file=sys.stderr, flush=True)
            yield str(program), found


def record(file: Path, chosen: Sequence[Program], processes: int) -> None:
    """Records programs, one line of JSON each."""
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("w", encoding="utf-8") as out:
        out.writelines(json.dumps(each) + "\n" for each in records(chosen, processes))


def record_revision(revision: str, file: Path, names: Collection[str], processes: int) -> None:
    """Records programs with the compiler of a revision of git. Raises CalledProcessError where git does not know it or it cannot be
    recorded."""
    with tempfile.TemporaryDirectory() as folder:
        code, chosen = Path(folder) / "code", Path(folder) / "names"
        chosen.write_text("\n".join(names), encoding="utf-8")
        subprocess.run(["git", "-C", str(ROOT), "worktree", "add", "--quiet", "--detach", str(code), revision], check=True)
        try:
            command = [sys.executable, __file__, "--record", str(file), "--named", str(chosen), "--processes", str(processes)]
            subprocess.run(command, check=True, env={**os.environ, "REPLAY_CODE": str(code)})
        finally:
            subprocess.run(["git", "-C", str(ROOT), "worktree", "remove", "--force", str(code)], check=True)


def read(file: Path) -> dict[str, Found]:
    """What `record` wrote."""
    return dict(json.loads(line) for line in file.read_text(encoding="utf-8").splitlines())


# ---------------------------------------------------------------- the baseline


def digested(found: Found) -> Found:
    """A digest of each text of a record."""
    return {kind: hashlib.sha256(text.encode()).hexdigest()[:DIGITS] for kind, text in found.items()}


def expected() -> dict[str, Found]:
    """The digests of all programs: of the baseline, or of the last explanation of a difference from it."""
    found: dict[str, Found] = json.loads(BASELINE.read_text(encoding="utf-8"))
    for entry in explanations():
        found |= entry["programs"]
    return found


def explanations() -> list[dict[str, Any]]:
    """Why programs differ from the baseline: `why`, and the digests of the `programs` it holds for."""
    return json.loads(EXPLAINED.read_text(encoding="utf-8")) if EXPLAINED.exists() else []


def explain(why: str, now: Mapping[str, Found], differ: Collection[str]) -> None:
    """Accepts differences for a reason."""
    entry = {"why": why, "programs": {name: digested(now[name]) for name in sorted(differ)}}
    EXPLAINED.write_text(json.dumps([*explanations(), entry], indent=1) + "\n", encoding="utf-8")


def write_baseline(now: Mapping[str, Found]) -> None:
    """Writes the baseline, one program on each line."""
    lines = [f"{json.dumps(name)}: {json.dumps(digested(found))}" for name, found in now.items()]
    BASELINE.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


def baseline_commit() -> str:
    """The commit that added the baseline; nothing where git does not know it."""
    command = ["git", "-C", str(ROOT), "log", "--diff-filter=A", "--format=%H", "-1", "--", str(BASELINE)]
    done = subprocess.run(command, capture_output=True, text=True)
    return done.stdout.strip()


# ---------------------------------------------------------------- comparing


def differences(before: Mapping[str, Found], after: Mapping[str, Found]) -> dict[str, list[str]]:
    """The programs that came out differently, by the kinds of record that differ. Programs that only one side knows are left out."""
    groups = collections.defaultdict(list)
    for name in before.keys() & after.keys():
        old, new = before[name], after[name]
        kinds = sorted({kind.split()[0] for kind in old.keys() | new.keys() if old.get(kind) != new.get(kind)})
        if kinds:
            groups[" + ".join(kinds)].append(name)
    return {kinds: sorted(names) for kinds, names in sorted(groups.items())}


Records = Mapping[str, Found]


def report(before: Records, after: Records, lines: int, texts: tuple[Records, Records] | None = None) -> str:
    """How many programs are the same, each group of different ones with its names, and the diff of the first of each.

    texts: of the first program of each group, before and after, where the others are digests.
    """
    groups, (old, new) = differences(before, after), texts or (before, after)
    common, different = before.keys() & after.keys(), sum(map(len, groups.values()))
    parts = [f"{len(common)} programs on both sides: {len(common) - different} the same, {different} differ"]
    if alone := before.keys() ^ after.keys():
        parts.append(f"{len(alone)} on one side only: {', '.join(sorted(alone)[:5])}")
    for kinds, names in groups.items():
        shown = "\n".join(f"  {name}" for name in names[:10]) + f"\n  and {len(names) - 10} more" * (len(names) > 10)
        first = names[0]
        diff = _diff(first, old[first], new[first], lines) if first in old else "git does not have the text of the baseline"
        parts.append(f"\n{kinds}: {len(names)}\n{shown}\n{diff}")
    return "\n".join(parts)


def _diff(name: str, old: Found, new: Found, lines: int) -> str:
    kind = next((k for k in (*old, *new) if old.get(k) != new.get(k)), "")
    before, after = (side.get(kind, "").splitlines() for side in (old, new))
    found = list(difflib.unified_diff(before, after, f"before: {name}, {kind}", "after", lineterm="", n=2))
    return "\n".join([*found[:lines], *([f"... {len(found) - lines} more lines"] if len(found) > lines else [])])


def against_baseline(chosen: Sequence[Program], whole: bool, processes: int, lines: int, why: str | None) -> int:
    """Compares with the baseline, or accepts what differs from it. whole: all programs are chosen. 1: something differs that is not
    explained."""
    made = dict(records(chosen, processes))
    now = {name: digested(found) for name, found in made.items()}
    before = {name: found for name, found in expected().items() if whole or name in now}
    groups = differences(before, now)
    differ = [name for group in groups.values() for name in group]
    if why is not None:
        explain(why, made, differ)
        print(f"{len(differ)} programs explained: {why}")
        return 0
    old = _texts_before([group[0] for group in groups.values()], processes) if groups else {}
    print(report(before, now, lines, (old, made)))
    for entry in explanations():
        print(f"explained before: {len(entry['programs'])} programs: {entry['why']}")
    if differ:
        print('Accept differences that are meant with a reason: make replay ARGUMENTS="--explain REASON"')
    return 1 if differ else 0


def _texts_before(names: Sequence[str], processes: int) -> dict[str, Found]:
    """What the compiler of the baseline's commit makes of some programs; nothing where git does not have it."""
    commit = baseline_commit()
    if not commit:
        return {}
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "before.jsonl"
        record_revision(commit, file, names, min(processes, len(names)))
        return read(file)


# ---------------------------------------------------------------- the command line


def main(arguments: Sequence[str] | None = None) -> int:
    """Records or compares. 1: something differs."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--against", metavar="REVISION|FILE", default="baseline", help="a revision of git, or a recorded file")
    what.add_argument("--record", metavar="FILE", type=Path, help="record this version")
    what.add_argument("--baseline", action="store_true", help="write the baseline, once")
    parser.add_argument("--explain", metavar="REASON", help="accept what differs from the baseline")
    parser.add_argument("--only", default="", help="programs whose names contain this")
    parser.add_argument("--named", metavar="FILE", type=Path, help="programs whose names are lines of this file")
    parser.add_argument("--every", type=int, default=1, metavar="N", help="every Nth program")
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--lines", type=int, default=40, help="of each diff (default %(default)s)")
    given = parser.parse_args(arguments)
    beside_baseline = given.record is None and not given.baseline and given.against == "baseline"
    if given.explain is not None and not beside_baseline:
        parser.error("--explain is for differences from the baseline")
    if beside_baseline and not BASELINE.exists():
        parser.error(f"{BASELINE.name} is not written yet: use --baseline, or --against REVISION")
    named = None if given.named is None else set(given.named.read_text(encoding="utf-8").splitlines())
    chosen = [p for p in programs() if given.only in str(p) and (named is None or str(p) in named)][:: given.every]
    if given.record is not None:
        record(given.record, chosen, given.processes)
        return 0
    if given.baseline:
        if BASELINE.exists():
            parser.error(f"{BASELINE.name} exists; it is written once")
        write_baseline(dict(records(chosen, given.processes)))
        return 0
    if beside_baseline:
        whole = not given.only and named is None and given.every == 1
        return against_baseline(chosen, whole, given.processes, given.lines, given.explain)
    with tempfile.TemporaryDirectory() as folder:
        now, before = Path(folder) / "now.jsonl", Path(given.against)
        if not before.is_file():
            before = Path(folder) / "before.jsonl"
            record_revision(given.against, before, [str(p) for p in chosen], given.processes)
        record(now, chosen, given.processes)
        old, new = read(before), read(now)
        print(report(old, new, given.lines))
        return 1 if differences(old, new) else 0


if __name__ == "__main__":
    sys.exit(main())
