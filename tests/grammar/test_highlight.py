"""The editors' grammar is the one that the language's grammar makes."""

import json
import re
from pathlib import Path

from tilelang.grammar.highlight import textmate
from tilelang.grammar.parser import keywords

FILE = Path(__file__).resolve().parent.parent.parent / "editors" / "tilelang.tmLanguage.json"


def test_the_file_is_up_to_date() -> None:
    assert json.loads(FILE.read_text()) == textmate(), "python -m tilelang.grammar.highlight > editors/tilelang.tmLanguage.json"


def scope(word: str) -> str:
    """The scope of the first pattern that takes a word."""
    return next((p["name"] for p in textmate()["patterns"] if re.match(p["match"], word)), "")


def test_every_keyword_has_a_scope() -> None:
    assert all(scope(word) for word in keywords().values())
    assert scope("tile").startswith("keyword.other.step") and scope("tiles") == scope("m") == ""
    assert (
        scope("0.5e-3").startswith("constant.numeric")
        and scope("# x").startswith("comment")
        and scope("`order`").startswith("variable")
    )
    assert scope("float32").startswith("support.type") and scope("exp(x)").startswith("support.function")
