"""Writes the parser's tables beside the grammar, so that no process computes them again: `python -m tilelang.grammar.tables`.

They are for one version of Lark and one grammar, both stored with them; with another Lark the parser computes its own.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tilelang.grammar.parser import TABLES, built


def tables(text: str) -> dict[str, Any]:
    """The stored form of a grammar's tables: plain lists, dictionaries, strings and numbers."""
    import lark  # late: slow to import, seldom needed
    from lark.grammar import Rule  # late: slow to import, seldom needed
    from lark.lexer import TerminalDef  # late: slow to import, seldom needed

    parser = built(text)
    for own in ("tree_class", "postlex"):  # our classes, which are passed again when the tables are read
        parser.options.options[own] = None
    data, memo = parser.memo_serialize([TerminalDef, Rule])
    return {"lark": lark.__version__, "grammar": text, "tables": {"data": data, "memo": memo}}


def main() -> None:
    """Writes the tables."""
    folder = Path(__file__).resolve().parent
    text = (folder / "schedule.lark").read_text(encoding="utf-8")
    (folder / TABLES).write_text(json.dumps(tables(text), sort_keys=True) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
