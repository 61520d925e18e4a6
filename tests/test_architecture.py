"""docs/architecture.md names files, folders and functions that exist."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PAGE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
ROW = re.compile(r"^\| (.*\?) \| (.*) \| (.*) \|$", re.MULTILINE)
PLACE = re.compile(r"\[`([\w/.]+)`\]\(\.\./([\w/.]+)\)((?:,? `[\w.]+`)+)")
QUESTIONS = ROW.findall(PAGE)
PLACES = [
    (path, name) for *_, where in QUESTIONS for path, _, names in PLACE.findall(where) for name in names.replace("`", " ").split()
]


def defined(path: str) -> set[str]:
    """The functions and classes of a file, and `Class.method`."""
    found = set[str]()
    for item in ast.parse((ROOT / path).read_text(encoding="utf-8")).body:
        if isinstance(item, (ast.FunctionDef, ast.ClassDef)):
            found.add(item.name)
            if isinstance(item, ast.ClassDef):
                found |= {f"{item.name}.{inner.name}" for inner in item.body if isinstance(inner, ast.FunctionDef)}
    return found


def test_there_are_twenty_questions_and_each_has_a_place() -> None:
    assert len(QUESTIONS) == 20
    assert [q for q, _, where in QUESTIONS if PLACE.sub("", where).strip("; ")] == []


def test_the_text_of_a_link_is_its_target() -> None:
    assert [text for text, target, _ in PLACE.findall(PAGE) if text != target] == []


@pytest.mark.parametrize(("path", "name"), [(p, n.strip(",")) for p, n in PLACES if n.strip(",")])
def test_the_function_that_answers_a_question_exists(path: str, name: str) -> None:
    assert name in defined(path)


def test_the_folders_and_files_that_the_page_names_exist() -> None:
    named = re.findall(r"`((?:[\w.]+/)+(?:\w+\.\w+)?)`", PAGE)
    assert len(named) > 20
    assert [n for n in named if not (ROOT / n).exists()] == []
