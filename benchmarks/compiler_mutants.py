"""Mutation testing of the compiler: do the tests notice when a line of lowering/build, passes or needs.py is wrong?

    python benchmarks/compiler_mutants.py map                    # which test meets which mutant, and how long it takes
    python benchmarks/compiler_mutants.py run --seconds 600      # judges mutants; goes on where it stopped
    python benchmarks/compiler_mutants.py report                 # the share found, and the survivors as diffs

cosmic-ray (`pip install -e '.[mutants]'`) makes the mutants. A place in the code is drawn first, then one of the mutations possible
there, so that a place with many possible mutations is drawn no more often than another. Mutations of annotations and docstrings change
nothing and are not drawn, nor are those of `strict=True`, an assertion that right code never meets. `--count` and `--seed` fix the
sample, of which a change of the code changes only what it touches; `--folder` (default: build/mutants) holds it with the map and the
verdicts.

A mutant runs the tests that meet its statement, the quickest first, and then those of `--cases` random programs that do (python -m
benchmarks.foreign), up to the first failure. It is made in a copy of HEAD, never in the checkout itself, by forks of one process that
has collected the tests (benchmarks/forked_tests.py). Map and verdicts hold as long as lowering/ is the same: `map` adds new tests,
which `run` runs on the survivors. `--of COMMIT` keeps to the lowering/ of that commit while HEAD goes on. `--test-seconds` bounds the
tests of one mutant; another `run` goes on with the survivors where it stopped.

    python benchmarks/compiler_mutants.py report --to benchmarks/results/compiler_mutants.json
    python benchmarks/compiler_mutants.py run --from benchmarks/results/compiler_mutants.json

keep the verdicts, and take those of found mutants over, at another commit or on another machine. They hold while the text of the
mutated file is the same. Where it is not, the test that found the same change runs first: if it fails again, it is the verdict.

benchmarks/results/equivalent_mutants.json names mutants that behave like the original, each with the reason. They are not run; the
report lists them and leaves them out of the share.
"""

from __future__ import annotations

import argparse
import ast
import collections
import contextlib
import dataclasses
import difflib
import functools
import json
import os
import random
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.forked_tests import read

ROOT = Path(__file__).resolve().parent.parent
MUTATED = ("lowering/build/**/*.py", "lowering/passes/*.py", "lowering/needs.py")
EQUIVALENT = Path(__file__).resolve().parent / "results" / "equivalent_mutants.json"
NOT_DRAWN = (
    "VariableReplacer",
    "VariableInserter",
    "ExceptionReplacer",
)  # the first two need names, the third a class of cosmic-ray
Place = tuple[str, int, int]  # file, line from 1, column


@dataclasses.dataclass(frozen=True)
class Mutant:
    """One change of one file. line: from 1; text: the whole file, changed; difference: to the original, with a line around it."""

    file: str
    line: int
    column: int
    operator: str
    text: str
    difference: str

    @property
    def name(self) -> str:
        return f"{self.file}:{self.line}:{self.column} {self.operator}"

    @property
    def module(self) -> str:
        return "tilelang." + self.file.removesuffix(".py").replace("/", ".")

    @property
    def change(self) -> tuple[str, str]:
        """What the file has and what the mutant has in its place: tells it apart when lines have moved."""
        lines = self.difference.splitlines()[1:]
        before, after = ([line[1:].strip() for line in lines if line.startswith(sign)] for sign in "-+")
        return "\n".join(before), "\n".join(after)


def drawn(root: Path, count: int, seed: int) -> list[Mutant]:
    """The sample: `count` places and a mutation of each. The text of its line decides on a place, not those of the others."""
    order: list[tuple[float, Place, str, int]] = []
    for file in _files(root):
        lines = (root / file).read_text(encoding="utf-8").splitlines()
        for place, mutations in _places(root, file).items():
            _, line, column = place
            text = lines[line - 1]
            chance = random.Random(f"{seed} {file} {column} {lines[:line].count(text)} {text}")
            order.append((chance.random(), place, *chance.choice(mutations)))
    sample: list[Mutant] = []
    for _, place, operator, occurrence in sorted(order):
        if len(sample) == count:
            break
        mutant = _mutant(root, place, operator, occurrence)
        if _behaviour(mutant.text) not in (None, _behaviour((root / mutant.file).read_text(encoding="utf-8"))):
            sample.append(mutant)
    return sample


def _mutant(root: Path, place: Place, operator: str, occurrence: int) -> Mutant:
    from cosmic_ray.mutating import mutate_code

    before = (root / place[0]).read_text(encoding="utf-8")
    text: str = mutate_code(before, _operators()[operator], occurrence)
    lines = list(difflib.unified_diff(before.splitlines(), text.splitlines(), lineterm="", n=1))
    return Mutant(*place, operator.removeprefix("core/"), text, "\n".join(lines[2:]))


def _files(root: Path) -> list[str]:
    return sorted(str(path.relative_to(root)) for files in MUTATED for path in root.glob(files))


def _places(root: Path, file: str) -> dict[Place, list[tuple[str, int]]]:
    """The places of a file that can be mutated, each with the operators that can and which of their occurrences it is."""
    from cosmic_ray.ast import ast_nodes, get_ast

    tree = get_ast((root / file).read_text(encoding="utf-8"))
    found: dict[Place, list[tuple[str, int]]] = collections.defaultdict(list)
    nodes = list(ast_nodes(tree))
    for name, operator in _operators().items():
        positions = (start for node in nodes for start, _ in operator.mutation_positions(node))
        for occurrence, (line, column) in enumerate(positions):
            found[file, line, column].append((name, occurrence))
    return found


@functools.cache
def _operators() -> dict[str, Any]:
    from cosmic_ray.plugins import get_operator, operator_names

    return {name: get_operator(name)() for name in operator_names() if name.removeprefix("core/") not in NOT_DRAWN}


class _Bare(ast.NodeTransformer):
    """Leaves out what has no effect on right code: annotations (they are never evaluated here), docstrings, `strict=True`."""

    def visit_arg(self, node: ast.arg) -> ast.arg:
        return ast.arg(node.arg)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        value = None if node.value is None else self.visit(node.value)
        return ast.AnnAssign(node.target, ast.Constant(None), value, node.simple)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        node.returns = None
        return self.generic_visit(node)

    def visit_keyword(self, node: ast.keyword) -> ast.AST | None:
        return None if node.arg == "strict" else self.generic_visit(node)

    def visit_Expr(self, node: ast.Expr) -> ast.AST | None:
        return None if isinstance(node.value, ast.Constant) else self.generic_visit(node)


def _behaviour(text: str) -> str | None:
    """What a module does, apart from its annotations; None where it is not Python."""
    try:
        return ast.dump(_Bare().visit(ast.parse(text)))
    except SyntaxError:
        return None


# --- the commands ---


@contextlib.contextmanager
def _copy(commit: str) -> Iterator[Path]:
    """A checkout of HEAD in a temporary folder, with what a commit has in lowering/."""
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        root = Path(folder).resolve() / "copy"
        _git("worktree", "add", "--quiet", "--detach", str(root), "HEAD")
        try:
            _git("-C", str(root), "checkout", "--quiet", "--no-overlay", commit, "--", "lowering")
            yield root
        finally:
            _git("worktree", "remove", "--force", str(root))


def _git(*command: str) -> str:
    return subprocess.run(["git", *command], cwd=ROOT, check=True, capture_output=True, text=True).stdout.strip()


def _sample(folder: Path) -> list[Mutant]:
    path = folder / "sample.json"
    if not path.exists():
        sys.exit("no sample yet: run `map` first")
    return [Mutant(**entry) for entry in json.loads(path.read_text(encoding="utf-8"))]


def serve(chosen: argparse.Namespace) -> int:
    """The map, or verdicts: the job of forked_tests.py, in a copy."""
    with _copy(chosen.of) as root:
        path = chosen.folder / "sample.json"
        if not path.exists():  # drawn once: that takes a minute
            sample = drawn(root, chosen.count, chosen.seed)
            path.write_text(json.dumps([dataclasses.asdict(mutant) for mutant in sample]), encoding="utf-8")
        sample, reasons, again = _sample(chosen.folder), _reasons(), dict[str, str]()
        if chosen.take_from is not None:
            again = take_over(chosen.take_from, chosen.folder, sample, chosen.of)
        job = {
            "folder": str(chosen.folder),
            "mutants": [
                dataclasses.asdict(mutant)
                | {"name": mutant.name, "module": mutant.module, "equivalent": (mutant.file, *mutant.change) in reasons}
                | {"first": again.get(mutant.name)}
                for mutant in sample
            ],
            "tests": chosen.tests,
            "cases": chosen.cases,
            "seconds": chosen.seconds,
            "test_seconds": chosen.test_seconds,
        }
        path = root / "job.json"
        path.write_text(json.dumps(job), encoding="utf-8")
        settings = os.environ | {"PYTHONPATH": str(root)}
        program = str(ROOT / "benchmarks" / "forked_tests.py")
        command = [sys.executable, "-P", program, chosen.command, str(path)]
        return subprocess.run(command, cwd=root, env=settings, stdout=subprocess.DEVNULL).returncode


def report(chosen: argparse.Namespace) -> int:
    sample = {mutant.name: mutant for mutant in _sample(chosen.folder)}
    verdicts = {verdict["mutant"]: verdict for verdict in read(chosen.folder / "verdicts.jsonl")}
    reasons = _reasons()
    found = [verdict for verdict in verdicts.values() if verdict["found"]]
    left = [mutant for name, mutant in sample.items() if not verdicts.get(name, {"found": None})["found"]]
    equivalent = [mutant for mutant in left if (mutant.file, *mutant.change) in reasons]
    survivors = [(mutant, verdicts[mutant.name]) for mutant in left if mutant not in equivalent and mutant.name in verdicts]
    partly = sum(len(verdict["passed"]) < verdict["tests"] for _, verdict in survivors)
    by_case = sum(verdict["found"].startswith("case ") for verdict in found)
    judged = len(found) + len(survivors) + len(equivalent)
    print(f"{judged} of {chosen.count} mutants judged: {len(found)} found, {by_case} of them by random programs only,")
    print(f"{len(survivors)} survived ({partly} of them without running all their tests), {len(equivalent)} are equivalent")
    print(f"found, of those that are not equivalent: {len(found) / max(len(found) + len(survivors), 1):.1%}")
    mapped = {result["test"] for result in read(chosen.folder / "map.jsonl")}
    collected = [test["test"] for test in read(chosen.folder / "collected.jsonl")]
    print(f"tests collected last: {len(collected)}, {len(set(collected) - mapped)} of them not in the map")
    print(f"seconds for each: {sum(verdict['seconds'] for verdict in verdicts.values()) / max(len(verdicts), 1):.1f}")
    for mutant, verdict in survivors:
        print(f"\n{mutant.name}: survived {len(verdict['passed'])} of {verdict['tests']} tests\n{mutant.difference}")
    for mutant in equivalent:
        print(f"\n{mutant.name}: equivalent: {reasons[mutant.file, *mutant.change]}\n{mutant.difference}")
    if chosen.to is not None:
        keep(chosen.to, list(sample.values()), verdicts, chosen.of)
    return 0


# --- verdicts that are kept ---


def keep(path: Path, sample: list[Mutant], verdicts: dict[str, Any], commit: str) -> None:
    """Writes the verdicts of a sample, for each file with its blob in git. found: the test that fails, or None."""
    files: dict[str, Any] = {}
    for mutant in sorted(sample, key=lambda mutant: (mutant.file, mutant.line, mutant.column)):
        if mutant.name in verdicts:
            file = files.setdefault(mutant.file, {"blob": _blob(commit, mutant.file), "mutants": []})
            before, after = mutant.change
            file["mutants"].append(
                {"mutant": mutant.name, "before": before, "after": after, "found": verdicts[mutant.name]["found"]}
            )
    path.write_text(json.dumps(files, indent=1) + "\n", encoding="utf-8")


def _blob(commit: str, file: str) -> str:
    """What git calls the text of a file; nothing where there is none."""
    return _git("ls-tree", "--format=%(objectname)", commit, "--", file)


def take_over(path: Path, folder: Path, sample: list[Mutant], commit: str) -> dict[str, str]:
    """Adds the kept verdicts of found mutants to those in a folder, for files whose text is the same. For other files: the test that
    found the same change, by the mutant's name."""
    kept = json.loads(path.read_text(encoding="utf-8"))
    known = {verdict["mutant"] for verdict in read(folder / "verdicts.jsonl") if verdict["found"]}
    same = {file for file, entry in kept.items() if entry["blob"] == _blob(commit, file)}
    ones = [(file, one) for file, entry in kept.items() for one in entry["mutants"] if one["found"]]
    taken = {(one["mutant"], one["before"], one["after"]): one["found"] for file, one in ones if file in same}
    tests = {(file, one["before"], one["after"]): one["found"] for file, one in ones}
    again: dict[str, str] = {}
    with (folder / "verdicts.jsonl").open("a", encoding="utf-8") as record:
        for mutant in (mutant for mutant in sample if mutant.name not in known):
            if (test := taken.get((mutant.name, *mutant.change))) is not None:
                verdict = {"found": test, "passed": [], "seconds": 0.0, "mutant": mutant.name, "tests": 0}
                print(json.dumps(verdict), file=record)
            elif (test := tests.get((mutant.file, *mutant.change))) is not None:
                again[mutant.name] = test
    return again


def _reasons() -> dict[tuple[str, str, str], str]:
    """Why mutants are equivalent, by file and change."""
    entries = json.loads(EQUIVALENT.read_text(encoding="utf-8")) if EQUIVALENT.exists() else []
    return {(entry["file"], entry["before"], entry["after"]): entry["why"] for entry in entries}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=("map", "run", "report"))
    parser.add_argument("--folder", type=Path, default=ROOT / "build" / "mutants", help="of the map and the verdicts")
    parser.add_argument("--of", default="HEAD", metavar="COMMIT", help="whose lowering/ is changed")
    parser.add_argument("--count", type=int, default=400, help="how many mutants are drawn")
    parser.add_argument("--seed", type=int, default=20261125, help="of the draw")
    parser.add_argument("--cases", type=int, default=200, help="random programs for each mutant that the tests do not find")
    parser.add_argument("--seconds", type=float, default=1e9, help="no mutant, and no file of tests, begins later than that")
    parser.add_argument("--test-seconds", type=float, default=1e9, help="bounds the tests of one mutant")
    parser.add_argument("--from", dest="take_from", type=Path, metavar="FILE", help="of kept verdicts, which `run` takes over")
    parser.add_argument("--to", type=Path, metavar="FILE", help="in which `report` keeps the verdicts")
    parser.add_argument("--tests", nargs="+", default=["tests"], help="files and folders")
    chosen = parser.parse_args()
    lowering = _git("rev-parse", f"{chosen.of}:lowering")
    chosen.folder = chosen.folder.resolve() / f"{lowering[:12]}-{chosen.count}-{chosen.seed}"
    chosen.folder.mkdir(parents=True, exist_ok=True)
    return report(chosen) if chosen.command == "report" else serve(chosen)


if __name__ == "__main__":
    sys.exit(main())
