"""The API reference names everything that is public, and nothing else."""

import re
from pathlib import Path

import tilelang as tl
from tilelang import testing

PAGE = (Path(__file__).resolve().parent.parent / "docs" / "api.md").read_text(encoding="utf-8")


def documented(module: str) -> set[str]:
    """The names of a module that the page documents by a directive, or shows in a table or a sentence."""
    directives = re.findall(rf"^\.\. auto\w+:: {re.escape(module)}\.(\w+)$", PAGE, re.MULTILINE)
    return {*directives, *(re.findall(r"`tl\.(\w+)`", PAGE) if module == "tilelang" else re.findall(rf"`{module}\.(\w+)`", PAGE))}


def test_every_public_name_is_in_the_reference() -> None:
    assert documented("tilelang") == set(tl.__all__)


def test_every_name_of_testing_is_in_the_reference() -> None:
    assert documented("tilelang.testing") == set(testing.__all__)


def test_what_is_documented_has_a_docstring() -> None:
    for module in (tl, testing):
        for name in re.findall(rf"^\.\. auto\w+:: {re.escape(module.__name__)}\.(\w+)$", PAGE, re.MULTILINE):
            assert (getattr(module, name).__doc__ or "").strip(), name
