"""Text to language and back. Import it as tilelang.grammar.

    from tilelang.grammar import parse, read, format_text

`schedule.lark` is the grammar; `document.parse` and `document.read` give a Document, of which computations and schedules are asked for.
Printing is the language's own: `computation.text`, `schedule.text`.
"""

from __future__ import annotations

if __name__ != "tilelang.grammar":
    raise ImportError("import tilelang.grammar")

from tilelang.grammar.document import Document, parse, read
from tilelang.grammar.fmt import format_text

__all__ = ["Document", "format_text", "parse", "read"]
