"""Generates the TextMate grammar for editors from `schedule.lark`.

Its keywords are the grammar's terminals, each in the scope of its meaning; `tests/grammar/test_highlight.py` checks that the committed
file is up to date.
"""

from __future__ import annotations

import json
from typing import Any

from tilelang.core import dtype as dt
from tilelang.core.expr import ANY_FUNCTIONS, FLOAT_FUNCTIONS, PREDICATES
from tilelang.grammar.parser import keywords

# TextMate scopes and their keywords; all others are control keywords.
_SCOPES = {
    "keyword.control": "computation schedule use when else for",
    "keyword.declaration": "input output axis combiner identity outputs allow only in at launch",
    "keyword.other.step": "units fuse unfuse tile split load compute accumulate via inline vectorize do",
    "storage.modifier": "unroll peel of layout pad swizzle ahead behind on once stream order as registers",
    "support.function.reduction": "sum prod max min argmax argmin any all reduce",
    "keyword.operator.word": "and or not",
    "constant.language": "true false inf nan",
    "keyword.other.version": "tilelang",
}


def textmate() -> dict[str, Any]:
    """The grammar in the format of TextMate, Visual Studio Code and others."""
    left = set(keywords().values()) - {w for words in _SCOPES.values() for w in words.split()}
    assert not left, f"no scope for {sorted(left)}"
    more = "where cast pad pow relu gelu gelu_tanh clamp silu softplus can".split()
    functions = sorted({*FLOAT_FUNCTIONS, *ANY_FUNCTIONS, *PREDICATES, *more})

    def words(found: Any) -> str:
        return rf"\b(?:{'|'.join(sorted(found))})\b"

    patterns = [
        {"name": "comment.line.number-sign.tilelang", "match": "#.*$"},
        {"name": "variable.other.quoted.tilelang", "match": r"`[^\W\d]\w*`"},
        {"name": "constant.numeric.tilelang", "match": r"\b\d+(?:\.\d+)?(?:[eE][+-]?\d+)?\b"},
        *(
            {"name": f"{scope}.tilelang", "match": words(w for w in text.split() if w in keywords().values())}
            for scope, text in _SCOPES.items()
        ),
        {"name": "support.type.tilelang", "match": words(dt.ALL)},
        {"name": "support.function.tilelang", "match": rf"{words(functions)}(?=\s*\()"},
        {"name": "keyword.operator.tilelang", "match": r"->|==|!=|<=|>=|<<|>>|//|\.\.\.|\.\.|[-+*/%<>=&|^~?]"},
    ]
    return {
        "$schema": "https://raw.githubusercontent.com/martinring/tmlanguage/master/tmlanguage.json",
        "name": "TileLang",
        "scopeName": "source.tilelang",
        "fileTypes": ["tile"],
        "patterns": patterns,
    }


if __name__ == "__main__":
    print(json.dumps(textmate(), indent=2))
