"""Mutation testing of the compiler: do the tests notice when a line of lowering/build or lowering/passes is wrong?

    python benchmarks/compiler_mutants.py map                    # which test covers which line: the suite under coverage
    python benchmarks/compiler_mutants.py run --seconds 600      # judges mutants; goes on where it stopped
    python benchmarks/compiler_mutants.py report                 # the share found, and the survivors as diffs

cosmic-ray (`pip install -e '.[mutants]'`) makes the mutants. A place in the code is drawn first, then one of the mutations possible
there, so that a place with many possible mutations is drawn no more often than another. Mutations of annotations and docstrings change
nothing and are not drawn, nor are those of `strict=True`, an assertion that right code never meets. `--count` and `--seed` fix the
sample; `--folder` (default: build/mutants) holds it with the map and the verdicts.

A mutant runs the tests that cover its line, those that cover least first, and then `--cases` random programs (python -m
benchmarks.foreign), up to the first failure. It is made in a copy of HEAD, never in the checkout itself; the map and the verdicts are
of one commit, and another commit begins anew. `--test-seconds` bounds the tests of one mutant: the report then says how many survivors
were not given all their tests. benchmarks/results/equivalent_mutants.txt names survivors that behave like the original, each with the
reason; the report lists them and leaves them out of the share.
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
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from tilelang.testing.processes import kill

ROOT = Path(__file__).resolve().parent.parent
MUTATED = ("lowering/build", "lowering/passes")
EQUIVALENT = Path(__file__).resolve().parent / "results" / "equivalent_mutants.txt"
NOT_DRAWN = (
    "VariableReplacer",
    "VariableInserter",
    "ExceptionReplacer",
)  # the first two need names, the third a class of cosmic-ray
TESTS = ("-m", "not slow", "-p", "no:cacheprovider", "-q")
AT_ONCE = 60  # tests in one call of pytest: few enough for a command line, many enough to pay for collecting them

Place = tuple[str, int, int]  # file, line from 1, column


@dataclasses.dataclass(frozen=True)
class Mutant:
    """One change of one file. line: from 1; text: the whole file, changed."""

    file: str
    line: int
    operator: str
    text: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line} {self.operator}"

    def difference(self, root: Path = ROOT) -> str:
        before = (root / self.file).read_text(encoding="utf-8").splitlines()
        lines = list(difflib.unified_diff(before, self.text.splitlines(), lineterm="", n=1))
        return "\n".join(lines[2:])


def drawn(root: Path, count: int, seed: int) -> list[Mutant]:
    """The sample: `count` places, drawn without replacement, and a mutation of each."""
    places = {place: found for file in _files(root) for place, found in _places(root, file).items()}
    chance = random.Random(seed)
    sample: list[Mutant] = []
    for place in chance.sample(sorted(places), len(places)):
        if len(sample) == count:
            break
        operator, occurrence = chance.choice(places[place])
        file, line, _ = place
        text = _mutated(root, file, operator, occurrence)
        if _behaviour(text) not in (None, _behaviour((root / file).read_text(encoding="utf-8"))):
            sample.append(Mutant(file, line, operator.removeprefix("core/"), text))
    return sample


def _files(root: Path) -> list[str]:
    return sorted(str(path.relative_to(root)) for folder in MUTATED for path in (root / folder).glob("*.py"))


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


def _mutated(root: Path, file: str, operator: str, occurrence: int) -> str:
    from cosmic_ray.mutating import mutate_code

    text: str = mutate_code((root / file).read_text(encoding="utf-8"), _operators()[operator], occurrence)
    return text


class _Bare(ast.NodeTransformer):
    """Leaves out what has no effect on right code: annotations (they are never evaluated here), docstrings, `strict=True`."""

    def visit_arg(self, node: ast.arg) -> ast.arg:
        return ast.arg(node.arg)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        return ast.AnnAssign(node.target, ast.Constant(None), node.value, node.simple)

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


# --- which test covers which line ---


def mapped(root: Path, chosen: argparse.Namespace) -> dict[str, dict[str, list[str]]]:
    """The tests of each line, by file and line: node ids as pytest has them. Those that cover the fewest lines come first."""
    import coverage

    data = chosen.folder / "coverage"
    settings = chosen.folder / "coveragerc"
    settings.write_text(f"[run]\nsource = {','.join(MUTATED)}\ndata_file = {data}\n", encoding="utf-8")
    cover = ("--cov", "--cov-config", str(settings), "--cov-context=test", "--cov-report=")
    subprocess.run(
        [sys.executable, "-m", "pytest", *TESTS, *chosen.tests, "-n", str(chosen.processes), *cover],
        cwd=root,
        env=_environment(root),
    )
    read = coverage.CoverageData(str(data))
    read.read()
    found: dict[str, dict[str, list[str]]] = {}
    size: collections.Counter[str] = collections.Counter()
    for path in read.measured_files():
        file = str(Path(path).resolve().relative_to(root))
        lines = {line: _tests(contexts) for line, contexts in read.contexts_by_lineno(path).items()}
        found[file] = {str(line): tests for line, tests in lines.items() if tests}
        size.update(test for tests in lines.values() for test in tests)
    for tests in (tests for lines in found.values() for tests in lines.values()):
        tests.sort(key=lambda test: (size[test], test))
    return found


def _tests(contexts: Sequence[str]) -> list[str]:
    """The tests among the contexts, which pytest-cov calls `node id|phase`; "" is what runs while modules are imported."""
    return sorted({context.rpartition("|")[0] for context in contexts if context})


# --- the verdict on a mutant ---


@dataclasses.dataclass(frozen=True)
class Limits:
    """cases: random programs for each mutant; test_seconds: no call of pytest begins later than that for one mutant."""

    cases: int
    test_seconds: float


def verdict(root: Path, mutant: Mutant, tests: Sequence[str], limits: Limits) -> dict[str, Any]:
    """What noticed the mutant: "tests", "cases", or None."""
    path = root / mutant.file
    original = path.read_text(encoding="utf-8")
    begun, ran = time.monotonic(), 0
    try:
        path.write_text(mutant.text, encoding="utf-8")
        while ran < len(tests) and time.monotonic() - begun < limits.test_seconds:
            some = tests[ran : ran + AT_ONCE]
            ran += len(some)
            if _fails(root, [sys.executable, "-m", "pytest", "-x", *TESTS, *some], 60 + 10 * len(some)):
                return {"found": "tests", "ran": ran, "tests": len(tests)}
        cases = [sys.executable, "-m", "benchmarks.foreign", "--kind", "simulated", "--first", "0"]
        if _fails(root, [*cases, "--count", str(limits.cases), "--seconds", "1000"], 1200):
            return {"found": "cases", "ran": ran, "tests": len(tests)}
        return {"found": None, "ran": ran, "tests": len(tests)}
    finally:
        path.write_text(original, encoding="utf-8")


def _fails(root: Path, command: Sequence[str], seconds: float) -> bool:
    """Whether a command ends with another status than 0, or not in time. Its children end with it."""
    child = subprocess.Popen(
        command, cwd=root, env=_environment(root), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
    )
    try:
        return child.wait(seconds) != 0
    except subprocess.TimeoutExpired:
        return True
    finally:
        kill(child)


def _environment(root: Path) -> dict[str, str]:
    """PYTHONDONTWRITEBYTECODE: a mutant of the same size and second as the original would otherwise run the original's bytecode."""
    return os.environ | {"PYTHONPATH": str(root), "PYTHONDONTWRITEBYTECODE": "1"}


# --- the commands ---


@contextlib.contextmanager
def _copy() -> Iterator[Path]:
    """A checkout of HEAD in a temporary folder."""
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        root = Path(folder).resolve() / "copy"
        subprocess.run(["git", "worktree", "add", "--quiet", "--detach", str(root), "HEAD"], cwd=ROOT, check=True)
        try:
            yield root
        finally:
            subprocess.run(["git", "worktree", "remove", "--force", str(root)], cwd=ROOT, check=True)


def _commit() -> str:
    return subprocess.run(["git", "rev-parse", "HEAD"], cwd=ROOT, check=True, capture_output=True, text=True).stdout.strip()


def _sample(root: Path, chosen: argparse.Namespace) -> list[Mutant]:
    """The sample, drawn once: that takes a minute."""
    path = chosen.folder / f"sample-{chosen.count}-{chosen.seed}.json"
    if not path.exists():
        path.write_text(
            json.dumps([dataclasses.asdict(mutant) for mutant in drawn(root, chosen.count, chosen.seed)]), encoding="utf-8"
        )
    return [Mutant(**entry) for entry in json.loads(path.read_text(encoding="utf-8"))]


def _verdicts(folder: Path) -> dict[str, dict[str, Any]]:
    path = folder / "verdicts.jsonl"
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    return {entry["mutant"]: entry for entry in map(json.loads, lines)}


def run(chosen: argparse.Namespace) -> int:
    path = chosen.folder / "map.json"
    if not path.exists():
        sys.exit(f"{path} is missing: run `python benchmarks/compiler_mutants.py map` first")
    covering = json.loads(path.read_text(encoding="utf-8"))
    limits, end = Limits(chosen.cases, chosen.test_seconds), time.monotonic() + chosen.seconds
    known = _verdicts(chosen.folder)
    with _copy() as root, (chosen.folder / "verdicts.jsonl").open("a", encoding="utf-8") as record:
        sample = _sample(root, chosen)
        for number, mutant in enumerate(sample, 1):
            if str(mutant) in known:
                continue
            if time.monotonic() > end:
                break
            tests = covering.get(mutant.file, {}).get(str(mutant.line), [])
            found = verdict(root, mutant, tests, limits) | {"mutant": str(mutant), "difference": mutant.difference()}
            print(json.dumps(found), file=record, flush=True)
            print(
                f"{number}/{len(sample)} {mutant}: {found['found'] or 'survived'} ({found['ran']} of {len(tests)} tests)",
                flush=True,
            )
    return 0


def report(chosen: argparse.Namespace) -> int:
    known = _verdicts(chosen.folder)
    reasons = (
        dict(line.split("  ", 1) for line in EQUIVALENT.read_text(encoding="utf-8").splitlines()) if EQUIVALENT.exists() else {}
    )
    survivors = [entry for entry in known.values() if not entry["found"] and entry["mutant"] not in reasons]
    equivalent = [entry for entry in known.values() if not entry["found"] and entry["mutant"] in reasons]
    by = collections.Counter(entry["found"] for entry in known.values() if entry["found"])
    judged = len(known) - len(equivalent)
    partly = sum(entry["ran"] < entry["tests"] for entry in survivors)
    print(f"{len(known)} of {chosen.count} mutants judged: {by['tests']} found by tests, {by['cases']} by random programs,")
    print(f"{len(survivors)} survived ({partly} of them without running all their tests), {len(equivalent)} are equivalent")
    print(f"found, of those that are not equivalent: {(judged - len(survivors)) / max(judged, 1):.1%}")
    for entry in survivors:
        print(f"\n{entry['mutant']}: survived {entry['ran']} of {entry['tests']} tests\n{entry['difference']}")
    for entry in equivalent:
        print(f"\n{entry['mutant']}: equivalent: {reasons[entry['mutant']]}")
    return 0


def map_tests(chosen: argparse.Namespace) -> int:
    with _copy() as root:
        found = mapped(root, chosen)
    (chosen.folder / "map.json").write_text(json.dumps(found), encoding="utf-8")
    print(f"{sum(map(len, found.values()))} lines of {len(found)} files are covered by tests")
    return 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=("map", "run", "report"))
    parser.add_argument("--folder", type=Path, default=ROOT / "build" / "mutants", help="of the map and the verdicts")
    parser.add_argument("--count", type=int, default=400, help="how many mutants are drawn")
    parser.add_argument("--seed", type=int, default=20261125, help="of the draw")
    parser.add_argument("--cases", type=int, default=200, help="random programs for each mutant that the tests do not find")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="no mutant begins later than that")
    parser.add_argument("--test-seconds", type=float, default=float("inf"), help="bounds the tests of one mutant")
    parser.add_argument("--tests", nargs="+", default=["tests"], help="files and folders of the map: fewer make it sooner")
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1, help="of pytest, while the map is made")
    chosen = parser.parse_args()
    chosen.folder = chosen.folder.resolve() / _commit()[:12]
    chosen.folder.mkdir(parents=True, exist_ok=True)
    return {"map": map_tests, "run": run, "report": report}[chosen.command](chosen)


if __name__ == "__main__":
    sys.exit(main())
