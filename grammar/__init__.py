"""Parses the text form of the language. Import it as tilelang.grammar.

    from tilelang.grammar import parse, read, format_text

`schedule.lark` is the grammar. `document.parse` and `document.read` return a Document, which provides computations and schedules.
Printing is part of the language itself: `computation.text`, `schedule.text`.
"""

from __future__ import annotations

if __name__ != "tilelang.grammar":
    raise ImportError("import tilelang.grammar")

from tilelang.grammar.document import Document, parse, read
from tilelang.grammar.fmt import format_text

__all__ = ["Document", "format_text", "parse", "read"]
