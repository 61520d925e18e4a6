"""The headers that a text needs: functions and types of a dialect that stand before it only where it has their names."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tilelang.lowering.targets.c.dialect import Dialect


def with_headers(text: str, dialect: Dialect) -> str:
    """A text behind the dialect's headers that it needs."""
    words = _words(text)
    for pattern, header in reversed(dialect.headers):  # the later ones may need the earlier ones
        before = "".join(_filled(header, match) for match in _matches(pattern, text if " " in pattern else words))
        if before:
            text, words = before + text, f"{_words(before)}\n{words}"
    return text


def _words(text: str) -> str:
    """The different words of a text, each with the character behind it: all that a pattern without spaces can tell."""
    chunks = "\n".join(dict.fromkeys(text.split()))
    return "\n".join(dict.fromkeys(re.findall(r"\w+[^\w\s]?", chunks)))


def _matches(pattern: str, text: str) -> list[tuple[str, ...]]:
    """The different ways in which a pattern's groups match a text, in order."""
    compiled = re.compile(pattern)
    if not compiled.groups:
        found = compiled.match(text) if pattern.startswith(r"\A") else compiled.search(text)  # a search would try all positions
        return [()] if found else []
    return sorted({match.groups() for match in compiled.finditer(text)})


def _filled(header: str, groups: tuple[str, ...]) -> str:
    for number, group in enumerate(groups, 1):
        header = header.replace(f"${number}", group)
    return header
