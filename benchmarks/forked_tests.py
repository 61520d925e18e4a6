"""Runs tests on changed code without starting Python anew: pytest collects once, then each run is a fork whose functions are replaced.

benchmarks/compiler_mutants.py starts it in a copy of the repository: `python benchmarks/forked_tests.py map|run JOB`, where JOB is a
file of JSON (`Job`). Besides the tests of pytest there are the random programs of benchmarks/foreign: `case 0`, `case 1`, ...

A change of a function's body is made in memory: every function object with that code gets the new code (`replaced`). What a module or a
class does while it is imported cannot be changed so; such a change is written to the file, for ordinary processes of pytest.

`map` puts a call before the statement of each mutant and notes which tests meet it, and how long each takes (map.jsonl). `run` judges
mutants by the tests that meet them, the quickest first (verdicts.jsonl). Both go on where they stopped, and note which tests pytest
collected (collected.jsonl).
"""

from __future__ import annotations

import ast
import builtins
import collections
import contextlib
import dataclasses
import functools
import gc
import importlib
import inspect
import json
import os
import select
import signal
import subprocess
import sys
import time
import types
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

AT_ONCE = 60  # tests in one ordinary call of pytest: few enough for a command line, many enough to pay for collecting them
MEMORY = 6 << 30  # bytes that a fork may hold
LONGEST = 120  # seconds for a test that was never timed
TESTS = ("-m", "not slow", "-p", "no:cacheprovider", "-q")

Key = tuple[str, int]  # qualified name and first line of a function
Codes = dict[Key, types.CodeType]


@dataclasses.dataclass(frozen=True)
class Job:
    """What to do. mutants: file, module, line, column, operator, text, name, whether it is equivalent, and the test that runs first,
    if there is one; cases, seconds, test_seconds: as the options are."""

    folder: str
    mutants: list[dict[str, Any]]
    tests: list[str]
    cases: int
    seconds: float
    test_seconds: float


@dataclasses.dataclass(frozen=True)
class Result:
    """How one test ended. seconds: of processors; marks: the mutants whose statement it met, by number."""

    test: str
    passed: bool
    seconds: float
    marks: list[int]


# --- code ---


def compiled(text: str, file: str) -> types.CodeType:
    """The code of a module, whatever the compiler warns of: pytest may make errors of warnings."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return compile(text, file, "exec")


def functions_of(code: types.CodeType) -> Iterator[tuple[Key, types.CodeType]]:
    """The functions in a code, those within functions too, and the lambdas and comprehensions."""
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield (constant.co_qualname, constant.co_firstlineno), constant
            yield from functions_of(constant)


def _when_imported(code: types.CodeType) -> list[Any]:
    """What a module does while it is imported, with the bodies of its classes and without those of its functions."""
    inner: list[Any] = []
    for constant in code.co_consts:
        if not isinstance(constant, types.CodeType) or constant.co_name.endswith(("comp>", "<genexpr>")):
            inner.append((type(constant), constant))
        elif constant.co_flags & inspect.CO_NEWLOCALS:  # a function
            inner.append(constant.co_qualname)
        else:
            inner.append(_when_imported(constant))
    return [code.co_code, code.co_names, inner]


def changed(before: types.CodeType, after: types.CodeType) -> Codes | None:
    """The functions that differ, as they are afterwards; None where replacing them is not enough."""
    if _when_imported(before) != _when_imported(after):
        return None
    old, new = list(functions_of(before)), list(functions_of(after))
    if [key for key, _ in old] != [key for key, _ in new]:
        return None
    found = {key: code for (key, was), (_, code) in zip(old, new, strict=True) if was != code}
    several = {key for key, n in collections.Counter(key for key, _ in old).items() if n > 1}
    if any(key in several and "<locals>" not in key[0] for key in found):
        return None
    return {key: code for key, code in found.items() if key not in several}  # the function around them makes them anew


class _Marker(ast.NodeTransformer):
    """Puts the calls of `marks` before their statements."""

    def __init__(self, marks: dict[ast.AST, list[int]]) -> None:
        self.marks = marks

    def visit(self, node: ast.AST) -> Any:
        self.generic_visit(node)
        call = "__met__({})"
        return [*(ast.parse(call.format(n)).body[0] for n in self.marks[node]), node] if node in self.marks else node


def marked(text: str, places: dict[int, tuple[int, int]], file: str) -> types.CodeType:
    """The code that calls `__met__(number)` before the statement of each place, line and column, that lies in a function."""
    tree = ast.parse(text)
    marks: dict[ast.AST, list[int]] = collections.defaultdict(list)
    for number, place in places.items():
        statement = _statement(tree, place)
        if statement is not None:
            marks[statement].append(number)
    return compile(ast.fix_missing_locations(_Marker(marks).visit(tree)), file, "exec")


def _statement(tree: ast.AST, place: tuple[int, int]) -> ast.stmt | None:
    """The innermost statement at a place; None where that belongs to no function's body."""
    found: ast.stmt | None = None
    node, inside = tree, False
    while True:
        for field, child in _children(node):
            if _holds(child, place):
                inside |= field == "body" and isinstance(node, ast.FunctionDef)
                found = child if inside and isinstance(child, ast.stmt) else found
                node = child
                break
        else:
            return found


def _children(node: ast.AST) -> Iterator[tuple[str, ast.AST]]:
    for field, value in ast.iter_fields(node):
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST):
                yield field, child


def _holds(node: ast.AST, place: tuple[int, int]) -> bool:
    """Whether a node holds a place, a line and a column; what has no place itself (arguments, say) does if something in it does."""
    if getattr(node, "end_lineno", None) is None:
        return any(_holds(child, place) for _, child in _children(node))
    start: Any = min([node, *getattr(node, "decorator_list", [])], key=lambda one: (one.lineno, one.col_offset))
    end: Any = node
    return (start.lineno, start.col_offset - (start is not node)) <= place < (end.end_lineno, end.end_col_offset)


class Live:
    """The function objects of some files."""

    def __init__(self, files: Sequence[str]) -> None:
        self.found: dict[str, dict[Key, list[types.FunctionType]]] = {file: collections.defaultdict(list) for file in files}
        paths = {os.path.realpath(file): file for file in files}
        real: dict[str, str | None] = {}
        for function in (one for one in gc.get_objects() if isinstance(one, types.FunctionType)):
            code = function.__code__
            if code.co_filename not in real:
                real[code.co_filename] = paths.get(os.path.realpath(code.co_filename))
            file = real[code.co_filename]
            if file is not None:
                self.found[file][code.co_qualname, code.co_firstlineno].append(function)

    def replace(self, file: str, codes: Codes) -> None:
        for key, code in codes.items():
            for function in self.found[file].get(key, ()):
                function.__code__ = code


# --- tests in a fork ---


class Server:
    """A plugin of pytest: in place of the tests it does the job, with what was collected."""

    def __init__(self, command: str, job: Job) -> None:
        self.command, self.job = command, job
        self.failed = False
        self.met: set[int] = set()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.failed |= report.failed

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        from benchmarks.foreign import worker

        self.case = worker.case
        self.items = {item.nodeid: item for item in session.items}
        collected = "".join(json.dumps({"test": test}) + "\n" for test in self.items)
        (Path(self.job.folder) / "collected.jsonl").write_text(collected, encoding="utf-8")
        self.sources = {file: Path(file).read_text(encoding="utf-8") for file in sorted({m["file"] for m in self.job.mutants})}
        self.codes = {file: compiled(text, file) for file, text in self.sources.items()}
        for module in sorted({m["module"] for m in self.job.mutants}):
            importlib.import_module(module)  # also what tests would import late: a fork cannot replace what is not there
        self.live = Live(list(self.sources))
        setattr(builtins, "__met__", self.met.add)
        gc.collect()
        gc.freeze()
        {"map": self.map, "run": self.run}[self.command]()
        return True

    # --- the map ---

    def map(self) -> None:
        end = time.monotonic() + self.job.seconds
        path = Path(self.job.folder) / "map.jsonl"
        known = {result["test"] for result in read(path)}
        groups: dict[str, list[str]] = collections.defaultdict(list)
        for test in [*(f"case {n}" for n in range(self.job.cases)), *self.items]:
            if test not in known:
                groups[test.partition("::")[0]].append(test)
        marks = {file: self.marks(file) for file in self.sources}

        def put_marks() -> None:
            for file, codes in marks.items():
                self.live.replace(file, codes)

        with path.open("a", encoding="utf-8") as record:
            for done, tests in enumerate(groups.values(), 1):
                begun = time.monotonic()
                while tests and begun < end:
                    results = list(self.attempt(tests, put_marks, {}, stop=False))
                    tests = tests[len(results) :]  # after a test that hangs, the others in a fork of their own
                    record.writelines(json.dumps(dataclasses.asdict(result)) + "\n" for result in results)
                    record.flush()
                    log(f"{done} of {len(groups)}: {results[0].test}: {len(results)} in {time.monotonic() - begun:.1f} s")

    def marks(self, file: str) -> Codes:
        numbered = enumerate(self.job.mutants)
        places = {number: (mutant["line"], mutant["column"]) for number, mutant in numbered if mutant["file"] == file}
        codes = changed(self.codes[file], marked(self.sources[file], places, file))
        assert codes is not None, file
        return codes

    # --- verdicts ---

    def run(self) -> None:
        end = time.monotonic() + self.job.seconds
        path = Path(self.job.folder) / "verdicts.jsonl"
        verdicts = {verdict["mutant"]: verdict for verdict in read(path)}
        results = {one["test"]: Result(**one) for one in read(Path(self.job.folder) / "map.jsonl")}
        seconds = {test: result.seconds for test, result in results.items() if result.passed}
        met: dict[int, list[str]] = collections.defaultdict(list)
        for test in sorted(seconds, key=lambda test: (test.startswith("case "), seconds[test])):
            if test in self.items or test.startswith("case "):
                for number in results[test].marks:
                    met[number].append(test)
        unjudged_first = sorted(enumerate(self.job.mutants), key=lambda one: one[1]["name"] in verdicts)
        with path.open("a", encoding="utf-8") as record:
            for number, mutant in unjudged_first:
                before = verdicts.get(mutant["name"], {"found": None, "passed": [], "seconds": 0.0})
                if before["found"] or mutant["equivalent"]:
                    continue
                if time.monotonic() > end:
                    break
                codes = changed(self.codes[mutant["file"]], compiled(mutant["text"], mutant["file"]))
                meeting = met[number] if codes is not None else self.of_file(mutant["file"], met, seconds)
                if (first := mutant["first"]) is not None and (first in seconds or self.passes_unchanged(first)):
                    meeting = [first, *(test for test in meeting if test != first)]
                tests = [test for test in meeting if test not in set(before["passed"])]
                if not tests and "mutant" in before:
                    continue
                verdict = self.judge(mutant, codes, tests, before, seconds) | {"mutant": mutant["name"], "tests": len(meeting)}
                print(json.dumps(verdict), file=record, flush=True)
                log(
                    f"{number + 1} of {len(self.job.mutants)}: {mutant['name']}: {verdict['found'] or 'survived'}, "
                    f"{len(verdict['passed'])} of {len(meeting)} passed, {verdict['seconds']} s"
                )

    def passes_unchanged(self, test: str) -> bool:
        known = test in self.items or test.startswith("case ")
        return known and all(result.passed for result in self.attempt([test], lambda: None, {}, stop=True))

    def of_file(self, file: str, met: dict[int, list[str]], seconds: dict[str, float]) -> list[str]:
        """The tests that meet any mutant of a file, the quickest first."""
        numbers = [number for number, mutant in enumerate(self.job.mutants) if mutant["file"] == file]
        tests = dict.fromkeys(test for number in numbers for test in met[number])
        return sorted(tests, key=lambda test: (test.startswith("case "), seconds[test]))

    def judge(
        self, mutant: dict[str, Any], codes: Codes | None, tests: list[str], before: dict[str, Any], seconds: dict[str, float]
    ) -> dict[str, Any]:
        """found: the test that fails, or None; passed: those that do not."""
        begun, passed, found = time.monotonic(), list(before["passed"]), None
        some = list(self.within(tests, seconds))
        if codes is None:
            results = self.ordinary(mutant, some)
        else:
            results = self.attempt(some, functools.partial(self.live.replace, mutant["file"], codes), seconds, stop=True)
        for result in results if some else ():
            if not result.passed:
                found = result.test
                break
            passed.append(result.test)
            if time.monotonic() - begun > 2 * self.job.test_seconds:  # processes of their own take longer than forks do
                break
        took = round(before["seconds"] + time.monotonic() - begun, 1)
        return {"found": found, "passed": passed, "seconds": took}

    def within(self, tests: list[str], seconds: dict[str, float]) -> Iterator[str]:
        """The first tests that take no longer together than is allowed, and half as much of random cases."""
        left = {False: self.job.test_seconds, True: self.job.test_seconds / 2}
        for test in tests:
            case = test.startswith("case ")
            left[case] -= seconds.get(test, 0.0)
            if left[case] >= 0:
                yield test

    def ordinary(self, mutant: dict[str, Any], tests: list[str]) -> Iterator[Result]:
        """The results of tests in processes of their own, for what a module does while it is imported. One stands for some at once."""
        path = Path(mutant["file"])
        groups = [[test for test in tests[n : n + AT_ONCE] if test in self.items] for n in range(0, len(tests), AT_ONCE)]
        cases = [test for test in tests if test not in self.items]
        try:
            path.write_text(mutant["text"], encoding="utf-8")
            for some in groups:
                passed = not some or not fails([sys.executable, "-m", "pytest", "-x", *TESTS, *some], 60 + 10 * len(some))
                yield from (Result(test, passed, 0.0, []) for test in some)
            program = [sys.executable, "-m", "benchmarks.foreign", "--kind", "simulated", "--first"]
            for case in cases:
                yield Result(case, not fails([*program, case.removeprefix("case "), "--count", "1"], LONGEST), 0.0, [])
        finally:
            path.write_text(self.sources[mutant["file"]], encoding="utf-8")

    # --- a fork ---

    def attempt(
        self, tests: Sequence[str], prepare: Callable[[], None], seconds: dict[str, float], stop: bool
    ) -> Iterator[Result]:
        """Runs tests in one fork, until one takes the process down or exceeds its time, or until the first failure."""
        reading, writing = os.pipe()
        child = os.fork()
        if not child:
            os.close(reading)
            self.child(tests, prepare, writing, stop)
        os.close(writing)
        try:
            left, rest = list(tests), b""
            while left:
                data = self.heard(reading, child, 60 + 10 * seconds.get(left[0], LONGEST / 10))
                if not data:
                    yield Result(left[0], False, LONGEST, [])
                    return
                *lines, rest = (rest + data).split(b"\n")
                for line in lines:
                    result = Result(**json.loads(line))
                    left.pop(0)
                    yield result
                    if stop and not result.passed:
                        return
        finally:
            for end in (os.killpg, os.kill):
                with contextlib.suppress(ProcessLookupError):
                    end(child, signal.SIGKILL)
            os.waitpid(child, 0)
            os.close(reading)

    def heard(self, reading: int, child: int, limit: float) -> bytes:
        """What a child says; nothing when it ends, needs too much memory or says nothing so long. Pauses of both do not count."""
        for _ in range(round(limit)):
            ready, _, _ = select.select([reading], [], [], 1)
            if ready:
                return os.read(reading, 1 << 16)
            with contextlib.suppress(OSError):
                if int(Path(f"/proc/{child}/statm").read_text(encoding="utf-8").split()[1]) > MEMORY // 4096:
                    break
        return b""

    def child(self, tests: Sequence[str], prepare: Callable[[], None], writing: int, stop: bool) -> None:
        try:
            os.setpgid(0, 0)
            prepare()
            for test, following in zip(tests, [*tests[1:], None], strict=True):
                begun = sum(os.times()[:4])
                self.met.clear()
                passed = self.passes(test, following)
                result = Result(test, passed, round(sum(os.times()[:4]) - begun, 3), sorted(self.met))
                os.write(writing, json.dumps(dataclasses.asdict(result)).encode() + b"\n")
                if stop and not passed:
                    break
            time.sleep(1000)  # it is ended from outside, with what it has started
        finally:
            os._exit(1)

    def passes(self, test: str, following: str | None) -> bool:
        if test.startswith("case "):
            try:
                return not self.case("simulated", int(test.removeprefix("case ")))["faults"]
            except Exception:
                return False
        item = self.items[test]
        self.failed = False
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=self.items.get(following or ""))
        return not self.failed


def read(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()] if path.exists() else []


def log(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def fails(command: Sequence[str], seconds: float) -> bool:
    """Whether a command ends with another status than 0, or not in time. Its children end with it."""
    from tilelang.testing.processes import kill

    settings = os.environ | {"PYTHONDONTWRITEBYTECODE": "1"}  # the bytecode of a mutant must not outlive it
    quiet = subprocess.DEVNULL
    child = subprocess.Popen(command, env=settings, stdout=quiet, stderr=quiet, start_new_session=True)
    try:
        return child.wait(seconds) != 0
    except subprocess.TimeoutExpired:
        return True
    finally:
        kill(child)


def main() -> int:
    command, path = sys.argv[1:]
    job = Job(**json.loads(Path(path).read_text(encoding="utf-8")))
    if command == "run" and not (Path(job.folder) / "map.jsonl").exists():
        sys.exit("the map is missing: run `map` first")
    return int(pytest.main([*TESTS, *job.tests], plugins=[Server(command, job)]))


if __name__ == "__main__":
    sys.exit(main())
