"""Mutants of the compiler: what is drawn changes what the code does, and verdicts are reported as they are."""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import subprocess
import sys
import types
from pathlib import Path
from typing import Any

import pytest

from benchmarks import compiler_mutants, forked_tests
from benchmarks.compiler_mutants import ROOT, Mutant

SOURCE = """
def f(x: int | None) -> int:
    'Text.'
    y: int = 1
    z: list[int] = list(zip(strict=True))
    return sum(a for a, _ in zip([x], [y], strict=True))
"""
MODULE = """
import functools

@functools.cache
def outer(n, *, more=1):
    def inner(a):
        return a + 1
    if n > 5:
        return 0
    elif n > 3:
        return [inner(x) for x in range(n)][-1]
    return (lambda a: a * 2)(n) + (lambda a: a * 3)(n)

class Box:
    size = 2
    def twice(self):
        return 2 * self.size

TABLE = [n + 1 for n in range(3)]
"""


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("int | None", "int & None"),
        ("-> int", "-> str"),
        ("y: int", "y: str"),
        ("Text", "Other"),
        ("strict=True", "strict=False"),
    ],
)
def test_changes_without_effect_are_not_drawn(before: str, after: str) -> None:
    assert compiler_mutants._behaviour(SOURCE.replace(before, after)) == compiler_mutants._behaviour(SOURCE)


def test_changes_with_an_effect_are() -> None:
    assert compiler_mutants._behaviour(SOURCE.replace("= 1", "= 2")) != compiler_mutants._behaviour(SOURCE)
    assert compiler_mutants._behaviour(SOURCE.replace("return", "return (")) is None


def test_the_mutations_of_a_place_change_its_line() -> None:
    pytest.importorskip("cosmic_ray")
    file = "lowering/passes/commit_groups.py"
    text = (ROOT / file).read_text(encoding="utf-8")
    place, mutations = next(iter(sorted(compiler_mutants._places(ROOT, file).items())))
    mutant = compiler_mutants._mutant(ROOT, place, *mutations[0])
    differing = [n for n, (a, b) in enumerate(zip(text.splitlines(), mutant.text.splitlines(), strict=False), 1) if a != b]
    assert differing and differing[0] == mutant.line and mutant.change[0] != mutant.change[1]


# --- code that is replaced ---


@pytest.fixture
def module(tmp_path: Path) -> types.ModuleType:
    path = tmp_path / "module.py"
    path.write_text(MODULE, encoding="utf-8")
    made = types.ModuleType("module_of_a_mutant")
    made.__file__ = str(path)
    exec(compile(MODULE, str(path), "exec"), made.__dict__)
    return made


def _replace(module: types.ModuleType, text: str) -> bool:
    file = str(module.__file__)
    codes = forked_tests.changed(compile(MODULE, file, "exec"), compile(text, file, "exec"))
    if codes is not None:
        forked_tests.Live([file]).replace(file, codes)
    return codes is not None


@pytest.mark.parametrize(
    ("before", "after", "given", "value"),
    [
        ("return 0", "return 9", 6, 9),
        ("a + 1", "a + 5", 4, 8),
        ("range(n)", "range(n - 1)", 4, 3),
        ("a * 3", "a * 4", 2, 12),
        ("n > 3", "n >= 3", 3, 3),
    ],
)
def test_functions_get_the_code_of_a_mutant(module: types.ModuleType, before: str, after: str, given: int, value: int) -> None:
    used = module.outer  # as another module imports it, behind its decorator
    assert _replace(module, MODULE.replace(before, after))
    assert used(given) == value


def test_methods_get_it_too(module: types.ModuleType) -> None:
    box = module.Box()
    assert _replace(module, MODULE.replace("2 * self", "7 * self")) and box.twice() == 14


@pytest.mark.parametrize(
    ("before", "after"), [("more=1", "more=2"), ("size = 2", "size = 3"), ("n + 1", "n + 2"), ("@functools.cache", "")]
)
def test_what_happens_on_import_cannot_be_replaced(module: types.ModuleType, before: str, after: str) -> None:
    assert not _replace(module, MODULE.replace(before, after))


def test_marks_tell_which_statements_run(module: types.ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    met: set[int] = set()
    monkeypatch.setattr("builtins.__met__", met.add, raising=False)
    at = ["a + 1", "n > 5", "return 0", "n > 3", "a * 3", "* self", "size = 2"]
    places = {
        number: (MODULE[: MODULE.index(text)].count("\n") + 1, next(x for x in MODULE.splitlines() if text in x).index(text))
        for number, text in enumerate(at)
    }
    file = str(module.__file__)
    codes = forked_tests.changed(compile(MODULE, file, "exec"), forked_tests.marked(MODULE, places, file))
    assert codes is not None
    forked_tests.Live([file]).replace(file, codes)
    for given, expected in ((6, {1, 2}), (4, {0, 1, 3}), (2, {1, 3, 4})):
        met.clear()
        module.outer(given)
        assert met == expected
    met.clear()
    assert module.Box().twice() == 4 and met == {5}


def test_a_command_that_fails_or_hangs_is_noticed() -> None:
    assert forked_tests.fails(["false"], 10)
    assert forked_tests.fails(["sleep", "30"], 0.1)
    assert not forked_tests.fails(["true"], 10)


# --- the job and the report ---


TESTED = """
def test_small():
    from lowering_of_a_mutant import twice
    assert twice(0) == 0

def test_large():
    from lowering_of_a_mutant import twice
    assert sum(range(5_000_000))  # a hundred times as long as the others: the quickest runs first
    assert twice(4) == 8

def test_other():
    assert True
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the tests of mutants run in forks")
def test_mutants_are_judged_by_the_tests_that_meet_them(tmp_path: Path) -> None:
    source = "def twice(n):\n    return n * 2 * ONE\n\nONE = 1\n"
    module = "lowering_of_a_mutant"
    (tmp_path / f"{module}.py").write_text(source, encoding="utf-8")
    (tmp_path / "test_it.py").write_text(TESTED, encoding="utf-8")
    (tmp_path / "pytest.ini").write_text("[pytest]\npythonpath = .\nfilterwarnings = error\n", encoding="utf-8")
    firsts = {"again": "test_it.py::test_large", "same": "test_it.py::test_gone"}
    mutants = [
        {"file": f"{module}.py", "module": module, "line": 2, "column": 11, "text": source.replace(*change), "name": name,
         "equivalent": name == "known", "first": firsts.get(name)}
        for name, change in {"found": ("* 2", "* 3"), "same": ("n * 2", "2 * n"), "literal": ("n * 2", "(n is not 1)"),
                             "imported": ("= 1", "= 2"), "known": ("n * 2", "n * 3"), "again": ("n * 2", "n * 4")}.items()
    ]  # fmt: skip
    job = {"folder": str(tmp_path), "mutants": mutants, "tests": ["test_it.py"], "cases": 0, "seconds": 60, "test_seconds": 60}
    (tmp_path / "job.json").write_text(json.dumps(job), encoding="utf-8")
    program = [sys.executable, "-P", str(ROOT / "benchmarks" / "forked_tests.py")]
    settings = os.environ | {"PYTHONPATH": str(ROOT)}
    early = subprocess.run([*program, "run", "job.json"], cwd=tmp_path, env=settings, capture_output=True, text=True)
    assert early.returncode == 1 and "run `map` first" in early.stderr
    for command in ("map", "run", "run"):
        subprocess.run([*program, command, "job.json"], cwd=tmp_path, env=settings, check=True, stdout=subprocess.DEVNULL)
    collected = [one["test"] for one in forked_tests.read(tmp_path / "collected.jsonl")]
    assert collected == [f"test_it.py::test_{name}" for name in ("small", "large", "other")]
    verdicts = forked_tests.read(tmp_path / "verdicts.jsonl")
    assert [one["mutant"] for one in verdicts] == ["found", "same", "literal", "imported", "again"]
    large, imported = "test_it.py::test_large", verdicts[3]["found"]
    assert [one["found"] for one in verdicts] == [large, None, "test_it.py::test_small", imported, large]
    assert imported and [one["tests"] for one in verdicts] == [2, 2, 2, 2, 2]
    assert [len(one["passed"]) for one in verdicts] == [1, 2, 0, 0, 0], "the quickest first, or what is said"


def test_the_report_leaves_out_what_is_equivalent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def mutant(line: int) -> Mutant:
        return Mutant("a.py", line, 0, "Op", "", f"@@ -1 +1 @@\n-x = {line}\n+x = {line + 1}")

    verdicts = [
        {"mutant": mutant(1).name, "found": "case 7", "passed": [], "tests": 1, "seconds": 1},
        {"mutant": mutant(2).name, "found": None, "passed": ["t"], "tests": 1, "seconds": 1},
        {"mutant": mutant(3).name, "found": None, "passed": [], "tests": 1, "seconds": 1},
        {"mutant": mutant(4).name, "found": "test_a.py::test_b[the case 3]", "passed": [], "tests": 1, "seconds": 1},
    ]
    chosen = argparse.Namespace(folder=tmp_path, count=5, to=None)
    with pytest.raises(SystemExit, match="run `map` first"):
        compiler_mutants.report(chosen)
    assert not (tmp_path / "sample.json").exists()
    sample = [dataclasses.asdict(mutant(n)) for n in (1, 2, 3, 4, 5)]
    (tmp_path / "sample.json").write_text(json.dumps(sample), encoding="utf-8")
    for name, tests in {"collected": ("t", "u", "v"), "map": ("t", "case 7")}.items():
        lines = "\n".join(json.dumps({"test": test}) for test in tests)
        (tmp_path / f"{name}.jsonl").write_text(lines, encoding="utf-8")
    (tmp_path / "verdicts.jsonl").write_text("\n".join(map(json.dumps, verdicts)), encoding="utf-8")
    (tmp_path / "equivalent.json").write_text(
        json.dumps([{"file": "a.py", "before": "x = 2", "after": "x = 3", "why": "x is not read"}]), encoding="utf-8"
    )
    monkeypatch.setattr(compiler_mutants, "EQUIVALENT", tmp_path / "equivalent.json")
    assert compiler_mutants.report(chosen) == 0
    text = capsys.readouterr().out
    assert "4 of 5 mutants judged: 2 found, 1 of them by random programs only" in text
    assert "1 survived (1 of them without running all their tests), 1 are equivalent" in text
    assert "equivalent: 66.7%" in text and "x is not read" in text
    assert "tests collected last: 3, 2 of them not in the map" in text


def test_verdicts_are_kept_while_a_file_is_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def mutant(file: str, line: int) -> Mutant:
        return Mutant(file, line, 0, "Op", "", f"@@ -1 +1 @@\n-x = {line}\n+x = {line + 1}")

    sample = [mutant("a.py", 1), mutant("a.py", 2), mutant("b.py", 1), mutant("b.py", 7)]
    verdicts: dict[str, Any] = {
        m.name: {"found": None if m.line == 2 else "t", "passed": [], "tests": 1, "seconds": 1.0} for m in sample[:3]
    }
    monkeypatch.setattr(compiler_mutants, "_blob", lambda _, file: f"blob of {file}")
    compiler_mutants.keep(tmp_path / "kept.json", sample, verdicts, "HEAD")
    monkeypatch.setattr(compiler_mutants, "_blob", lambda _, file: "blob of a.py" if file == "a.py" else "another")
    for _ in range(2):
        again = compiler_mutants.take_over(tmp_path / "kept.json", tmp_path, [*sample, mutant("a.py", 3)], "HEAD")
        assert again == {sample[2].name: "t"}, "the same change of another text: to be found once more"
    (taken,) = forked_tests.read(tmp_path / "verdicts.jsonl")
    assert (taken["mutant"], taken["found"]) == (sample[0].name, "t")


def test_a_change_of_the_code_changes_the_sample_only_there(tmp_path: Path) -> None:
    pytest.importorskip("cosmic_ray")
    folder = tmp_path / "lowering" / "passes"
    folder.mkdir(parents=True)
    lines = [f"def f{n}(x):\n    return x + {n} * 2\n" for n in range(40)]
    (folder / "a.py").write_text("\n".join(lines), encoding="utf-8")
    before = {mutant.change for mutant in compiler_mutants.drawn(tmp_path, 20, 1)}
    lines[3:3] = ["def g(x):\n    return x < 3\n"]
    (folder / "a.py").write_text("\n".join(lines), encoding="utf-8")
    after = {mutant.change for mutant in compiler_mutants.drawn(tmp_path, 20, 1)}
    assert len(before) == 20 and len(before & after) >= 18


def test_what_is_called_equivalent_is_in_the_code() -> None:
    for file, before, _ in compiler_mutants._reasons():
        lines = [line.strip() for line in (ROOT / file).read_text(encoding="utf-8").splitlines()]
        assert set(filter(None, before.splitlines())) <= set(lines), (file, before)
