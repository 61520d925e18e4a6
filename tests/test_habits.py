"""Habits of this repository that neither the formatter nor the linter checks."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

TESTS = Path(__file__).resolve().parent
ROOT = TESTS.parent
SOURCES = ("tilelang", "grammar", "lowering", "autoschedule")
CHECKS = re.compile(r"(^|[._])(assert|check|raises|warns|verify|refuse)")
REASON = re.compile(r"  # late: \w")


def functions(path: Path) -> Iterator[ast.FunctionDef]:
    """The tests of a file, wherever they stand in it."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
            yield node


def shows_its_check(test: ast.FunctionDef) -> bool:
    """Whether a test asserts something, or calls what by its name checks something."""
    return any(
        isinstance(node, ast.Assert) or (isinstance(node, ast.Call) and CHECKS.search(ast.unparse(node.func)) is not None)
        for node in ast.walk(test)
    )


def test_every_test_shows_what_it_checks() -> None:
    found = [(path, test) for path in sorted(TESTS.rglob("test_*.py")) for test in functions(path)]
    assert len(found) > 1000
    hidden = [f"{path.relative_to(TESTS)}:{test.lineno} {test.name}" for path, test in found if not shows_its_check(test)]
    assert not hidden, "assert in the test itself, or name the helper check_..., assert_..., verify_..."


def test_a_test_without_a_check_is_seen() -> None:
    hidden, shown = ast.parse("def test_a(): right(1)\ndef test_b(): check_right(1)").body
    assert isinstance(hidden, ast.FunctionDef) and not shows_its_check(hidden)
    assert isinstance(shown, ast.FunctionDef) and shows_its_check(shown)


def late_imports(source: str) -> Iterator[tuple[int, str]]:
    """The imports inside functions: their line numbers and lines."""
    lines = source.splitlines()
    for outer in ast.walk(ast.parse(source)):
        if isinstance(outer, (ast.FunctionDef, ast.AsyncFunctionDef)):
            for node in ast.walk(outer):
                if isinstance(node, (ast.Import, ast.ImportFrom)):
                    yield node.lineno, lines[node.lineno - 1]


def test_every_import_inside_a_function_has_a_reason() -> None:
    files = [path for folder in SOURCES for path in sorted((ROOT / folder).rglob("*.py"))]
    found = [(path, line, text) for path in files for line, text in late_imports(path.read_text(encoding="utf-8"))]
    assert found
    silent = {f"{path.relative_to(ROOT)}:{line} {text.strip()}" for path, line, text in found if REASON.search(text) is None}
    assert not silent, "import it at the top, or say why not: `import numpy as np  # late: NumPy takes long to import`"


def test_an_import_without_a_reason_is_seen() -> None:
    text = "import a\ndef f():\n    import b\n    import c  # late: an optional library\n"
    assert [REASON.search(line) is not None for _, line in late_imports(text)] == [False, True]
