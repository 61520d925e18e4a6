"""The parser's kept tables are of the grammar as it stands, and the parser that reads them parses as one that computes its own."""

from __future__ import annotations

import json
from importlib import resources
from pathlib import Path
from typing import Any

import pytest

from tilelang.grammar import parser, tables

EXAMPLES = sorted((Path(__file__).resolve().parents[2] / "examples").glob("*.tile"))


def shape(tree: Any) -> Any:
    """A tree as plain data, with the places of its words."""
    if isinstance(tree, parser.Tree):
        return tree.data, [shape(child) for child in tree.children], str(tree.first), str(tree.last)
    return tree.type, str(tree), tree.line, tree.column


def test_tables_are_of_the_grammar_and_of_plain_data() -> None:
    kept = json.loads(resources.files("tilelang.grammar").joinpath(parser.TABLES).read_text(encoding="utf-8"))
    assert kept["grammar"] == parser._grammar(), "run python -m tilelang.grammar.tables"
    made = json.loads(json.dumps(tables.tables(kept["grammar"])))
    assert made.keys() == kept.keys() and made["tables"]["data"].keys() == kept["tables"]["data"].keys()


def test_both_parsers_agree() -> None:
    computed = parser.built(parser._grammar())
    assert EXAMPLES and {t.name: t.pattern.value for t in computed.terminals} == {
        t.name: t.pattern.value for t in parser.lark().terminals
    }
    for path in EXAMPLES:
        text = path.read_text(encoding="utf-8")
        assert shape(parser.lark().parse(text)) == shape(computed.parse(text))


def test_tables_of_another_lark_are_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    used: list[str] = []
    monkeypatch.setattr("lark.__version__", "0")
    monkeypatch.setattr(parser, "built", used.append)
    parser.lark.__wrapped__()
    assert used == [parser._grammar()]
