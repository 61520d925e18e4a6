"""Prepends a dialect's headers (functions and types) to a text that uses their names."""

from __future__ import annotations

import functools
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tilelang.lowering.targets.c.dialect import Dialect


def with_headers(text: str, dialect: Dialect) -> str:
    """The text, preceded by the headers of the dialect that it needs."""
    words = _words(text)
    for pattern, header in reversed(dialect.headers):  # later headers may need earlier ones
        before = "".join(_filled(header, match) for match in _matches(pattern, text if " " in pattern else words))
        if before:
            text, words = before + text, _words(before) + words
    return text


def _words(text: str) -> str:
    """The distinct words of a text, each on a line of its own with the following character: all that a pattern without spaces can
    match."""
    chunks = "\n".join(dict.fromkeys(text.split()))
    return "\n".join(["", *dict.fromkeys(re.findall(r"\w+[^\w\s]?", chunks))])


def _matches(pattern: str, text: str) -> list[tuple[str, ...]]:
    """The distinct matches of a pattern's groups in a text, sorted."""
    compiled = _compiled(pattern)
    if not compiled.groups:
        found = compiled.match(text) if pattern.startswith(r"\A") else compiled.search(text)  # a search would try all positions
        return [()] if found else []
    return sorted({match.groups() for match in compiled.finditer(text)})


@functools.cache
def _compiled(pattern: str) -> re.Pattern[str]:
    """A pattern that begins at the beginning of a word looks for the end of the line before, which is found fast."""
    return re.compile(pattern if " " in pattern or not pattern.startswith(r"\b") else "\n" + pattern.removeprefix(r"\b"))


def _filled(header: str, groups: tuple[str, ...]) -> str:
    for number, group in enumerate(groups, 1):
        header = header.replace(f"${number}", group)
    return header
