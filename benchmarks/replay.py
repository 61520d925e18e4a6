"""Compiles a fixed set of programs with two versions of the code and shows what came out differently.

    python benchmarks/replay.py --against HEAD~3            # make replay BASE=HEAD~3
    python benchmarks/replay.py --record before.jsonl       # then, later: --against before.jsonl
    python benchmarks/replay.py --draw 40                   # writes the files in benchmarks/replay/ anew

The programs are every schedule of every example for every shipped profile, the generated schedule of each of their computations, and
the programs in benchmarks/replay/: drawn at random once and kept as texts, one file for each profile. Of each program and dialect the
printed schedule, the kernel IR, the source and the estimate are recorded; of a refused one the code, the line and the counterexample.

A revision of git is checked out into a temporary folder and recorded by this script, so that both versions compile the same programs.
Nothing runs, so no device is needed, and the machine's own profile is not used. Exit status 1: something differs.
"""

from __future__ import annotations

import argparse
import collections
import dataclasses
import difflib
import json
import multiprocessing
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
CODE = Path(os.environ.get("REPLAY_CODE", ROOT))  # the checkout whose compiler is recorded
sys.path.insert(0, str(CODE))

if TYPE_CHECKING:
    from tilelang.schedule import Schedule

CORPUS = HERE / "replay"
SEPARATOR = "# ---- "  # begins the title of each program in a file of the corpus
GENERATED = "generated"  # the name of the schedule that construction chooses
DRAWN_FOR = ("avx2", "zen5", "neon", "ampere", "hopper", "cdna3", "rdna3", "simulated")
Found = dict[str, str]  # what was recorded of one program, by kind and dialect: "schedule cuda", "ir cuda", "refusal opencl", ...


@dataclasses.dataclass(frozen=True, order=True)
class Program:
    """A schedule of a text for a profile. title: within a file of the corpus; schedule: its name, or GENERATED."""

    file: str
    title: str
    schedule: str
    profile: str

    def __str__(self) -> str:
        return " ".join(part for part in (self.file, self.title, self.schedule, f"@ {self.profile}") if part)


def programs() -> Iterator[Program]:
    """All programs, in a fixed order."""
    import tilelang as tl

    for path in sorted((ROOT / "examples").glob("*.tile")):
        document = tl.read(path)
        file = str(path.relative_to(ROOT))
        for profile in tl.machine.shipped_profiles():
            loaded = tl.load_profile(profile)
            yield from (Program(file, "", e.name, profile) for e in document.holding({}, loaded))
            yield from (Program(file, name, GENERATED, profile) for name in document.computations)
    for path in sorted(CORPUS.glob("*.tile")):
        file = str(path.relative_to(ROOT))
        yield from (Program(file, title, "", path.stem) for title in corpus(path))


def corpus(path: Path) -> dict[str, str]:
    """The programs of a file of the corpus, by title."""
    parts = path.read_text(encoding="utf-8").split(SEPARATOR)[1:]
    return {title: text for title, _, text in (part.partition("\n") for part in parts)}


def recorded(program: Program) -> Found:
    """What the compiler makes of a program. Errors of ours are recorded; any other exception too, by its type."""
    import tilelang as tl
    from tilelang.errors import TileLangError

    profile = tl.load_profile(program.profile)
    try:
        what = _read(program)
    except TileLangError as error:
        return _refusal(error)
    found: Found = {}
    for dialect in profile.dialects:
        try:
            made = _compiled(what, dialect, program.profile)
        except TileLangError as error:
            made = _refusal(error)
        except Exception as error:
            made = {"traceback": f"{type(error).__name__}: {error}"}
        found |= {f"{kind} {dialect}": text for kind, text in made.items()}
    return found


def _read(program: Program) -> Any:
    import tilelang as tl

    path = ROOT / program.file
    if program.schedule == GENERATED:
        return tl.read(path).computation(program.title, profile=tl.load_profile(program.profile))
    if not program.title:
        return tl.read(path).schedule(program.schedule, profile=tl.load_profile(program.profile))
    return tl.parse(corpus(path)[program.title], path.name).schedule()


def _compiled(what: Any, dialect: str, profile: str) -> Found:
    import tilelang as tl
    from tilelang.lowering.printer import to_text

    kernel = tl.compile(what, tl.target(dialect, profile=profile))
    found = {"schedule": str(kernel.schedule), "ir": to_text(kernel.program), "source": kernel.source}
    try:
        found["estimate"] = str(kernel.estimate)
    except tl.TileLangError as error:
        found["estimate"] = f"none: {error.code}"
    return found


def _refusal(error: Any) -> Found:
    line = error.span.line if error.span is not None and error.span.file.endswith(".tile") else ""
    return {"refusal": f"{error.code} at line {line}", "counterexample": str(error.counterexample)}


def record(file: Path, only: str, processes: int) -> None:
    """Records all programs whose names contain `only`, one line of JSON each."""
    chosen = [p for p in programs() if only in str(p)]
    file.parent.mkdir(parents=True, exist_ok=True)
    with multiprocessing.get_context("spawn").Pool(processes) as pool, file.open("w", encoding="utf-8") as out:
        for n, (program, found) in enumerate(zip(chosen, pool.imap(recorded, chosen, chunksize=8), strict=True), 1):
            out.write(json.dumps([str(program), found]) + "\n")
            if sys.stderr.isatty():
                print(f"\r{n} of {len(chosen)}", end="", file=sys.stderr, flush=True)


def record_revision(revision: str, file: Path, only: str, processes: int) -> None:
    """Records the compiler of a revision of git. Raises CalledProcessError where git does not know it or it cannot be recorded."""
    with tempfile.TemporaryDirectory() as folder:
        code = Path(folder) / "code"
        subprocess.run(["git", "-C", str(ROOT), "worktree", "add", "--quiet", "--detach", str(code), revision], check=True)
        try:
            command = [sys.executable, __file__, "--record", str(file), "--only", only, "--processes", str(processes)]
            subprocess.run(command, check=True, env={**os.environ, "REPLAY_CODE": str(code)})
        finally:
            subprocess.run(["git", "-C", str(ROOT), "worktree", "remove", "--force", str(code)], check=True)


def read(file: Path) -> dict[str, Found]:
    """What `record` wrote."""
    return dict(json.loads(line) for line in file.read_text(encoding="utf-8").splitlines())


def differences(before: Mapping[str, Found], after: Mapping[str, Found]) -> dict[str, list[str]]:
    """The programs that came out differently, by the kinds of record that differ. Programs that only one side knows are left out."""
    groups = collections.defaultdict(list)
    for name in before.keys() & after.keys():
        old, new = before[name], after[name]
        kinds = sorted({kind.split()[0] for kind in old.keys() | new.keys() if old.get(kind) != new.get(kind)})
        if kinds:
            groups[" + ".join(kinds)].append(name)
    return {kinds: sorted(names) for kinds, names in sorted(groups.items())}


def report(before: Mapping[str, Found], after: Mapping[str, Found], lines: int) -> str:
    """How many programs are the same, each group of different ones with its names, and the diff of the first of each."""
    groups = differences(before, after)
    common, different = before.keys() & after.keys(), sum(map(len, groups.values()))
    parts = [f"{len(common)} programs on both sides: {len(common) - different} the same, {different} differ"]
    if alone := before.keys() ^ after.keys():
        parts.append(f"{len(alone)} on one side only: {', '.join(sorted(alone)[:5])}")
    for kinds, names in groups.items():
        shown = "\n".join(f"  {name}" for name in names[:10]) + f"\n  and {len(names) - 10} more" * (len(names) > 10)
        parts.append(f"\n{kinds}: {len(names)}\n{shown}\n{_diff(names[0], before[names[0]], after[names[0]], lines)}")
    return "\n".join(parts)


def _diff(name: str, old: Found, new: Found, lines: int) -> str:
    kind = next(k for k in (*old, *new) if old.get(k) != new.get(k))
    before, after = (side.get(kind, "").splitlines() for side in (old, new))
    found = list(difflib.unified_diff(before, after, f"before: {name}, {kind}", "after", lineterm="", n=2))
    return "\n".join([*found[:lines], *([f"... {len(found) - lines} more lines"] if len(found) > lines else [])])


def draw(each: int) -> None:
    """Replaces the corpus by `each` random programs for each profile, including those that are refused."""
    import tilelang as tl
    from tilelang.errors import TileLangError
    from tilelang.testing.case import draw_case
    from tilelang.testing.choice import Seeded

    CORPUS.mkdir(exist_ok=True)
    for n, name in enumerate(DRAWN_FOR):
        parts, seed = list[str](), 100_000 * n
        while len(parts) < each:
            seed += 1
            try:
                made: Schedule = draw_case(Seeded(seed), profile=tl.load_profile(name)).schedule
                text = made.computation.text + "\n" + made.text
                tl.parse(text).schedule()
            except TileLangError:  # a step that contradicts those before it
                continue
            parts.append(f"{SEPARATOR}{len(parts):03}\n{text.strip()}\n")
        (CORPUS / f"{name}.tile").write_text("\n".join(parts), encoding="utf-8")


def main(arguments: Sequence[str] | None = None) -> int:
    """Records, compares or draws. 1: something differs."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--against", metavar="REVISION|FILE", help="compare with a revision of git, or with a recorded file")
    what.add_argument("--record", metavar="FILE", type=Path, help="record this version")
    what.add_argument("--draw", metavar="N", type=int, help="write the random programs anew, N for each profile")
    parser.add_argument("--only", default="", help="programs whose names contain this")
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--lines", type=int, default=40, help="of each diff (default %(default)s)")
    given = parser.parse_args(arguments)
    if given.draw is not None:
        draw(given.draw)
        return 0
    if given.record is not None:
        record(given.record, given.only, given.processes)
        return 0
    with tempfile.TemporaryDirectory() as folder:
        now, before = Path(folder) / "now.jsonl", Path(given.against)
        if not before.is_file():
            before = Path(folder) / "before.jsonl"
            record_revision(given.against, before, given.only, given.processes)
        record(now, given.only, given.processes)
        old, new = read(before), read(now)
        print(report(old, new, given.lines))
        return 1 if differences(old, new) else 0


if __name__ == "__main__":
    sys.exit(main())
