"""Habits of this repository that neither the formatter nor the linter checks."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

TESTS = Path(__file__).resolve().parent
CHECKS = re.compile(r"(^|[._])(assert|check|raises|warns|verify|refuse)")


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
