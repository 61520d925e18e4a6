"""The formatter: indentation by braces, one space between tokens; line breaks and comments are kept.

It works on tokens, so expressions stay as written; the tree tells where statements begin. Line breaks are the author's, continuation
lines are indented, consecutive empty lines become one, and a trailing comment is preceded by two spaces. Line endings follow the first
line, CRLF or LF.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from tilelang.grammar.parser import BYTE_ORDER_MARK, Syntax, parse_tree
from tilelang.grammar.scan import MOST_BYTES

_WORD = re.compile(
    r"(?P<space>[ \t\r\f]+)|(?P<line>\n)|(?P<comment>#[^\n]*)|(?P<name>`[^`\n]*`|[^\W\d]\w*)"
    r"|(?P<number>\d+\.\d+(?:[eE][+-]?\d+)?|\d+[eE][+-]?\d+|\d+)|(?P<mark>\.\.\.|\.\.|->|//|==|!=|<=|>=|<<|>>|.)"
)
_INDENT = "  "
_TIGHT_AFTER = {"(", "[", "~"}
_TIGHT_BEFORE = {")", "]", ",", ";", ":"}
_SPACED = {"->", "==", "!=", "<=", ">=", "<", ">", "<<", ">>", "+", "-", "|", "&", "{", "}", ".."}
_KEYWORDS = {"in", "and", "or", "not", "allow", "only", "layout", "order", "for", "identity", "when", "else", "reduce", "at"}
_MODIFIERS = {"pad", "swizzle", "ahead", "behind"}  # of a step, followed by a number; elsewhere `pad` is a function
_OPERANDS = {"name", "number"}
# Statements in which `=` is written without spaces, as in m=4; in others it has spaces.
_CUTS = {"tile", "split", "vectorize", "fuse", "unfuse", "do"}
_STEPS = _CUTS | {"units", "load", "compute", "accumulate", "via", "inline", "open", "when"}
_OTHERS = {"version", "use", "computation", "schedule", "choice", "input", "axis", "combiner", "definition", "outputs"}


class Word(NamedTuple):
    """A token, its kind, the statement that it belongs to, and whether it is the statement's first."""

    kind: str
    text: str
    statement: str
    begins: bool


def format_text(text: str, file: str = "<text>", limit_bytes: int = MOST_BYTES) -> str:
    """The formatted text. Raises ParseError, or Findings, if it is not valid; then nothing is changed.

    >>> print(format_text("computation f(N){input X:float32[i:N]\\n output Y[i]=X[i]*2.0   # twice\\n}"), end="")
    computation f(N) { input X: float32[i: N]
      output Y[i] = X[i] * 2.0  # twice
    }
    """
    tree = parse_tree(text, file, limit_bytes)
    text = text.removeprefix(BYTE_ORDER_MARK)
    end = "\r\n" if text.partition("\n")[0].endswith("\r") else "\n"  # the first line's, for all lines
    lines: list[str] = []
    depth, begun = 0, 0  # begun: the depth at the start of the statement
    words = _lines(text, tree)
    for line, first in zip(words, _first_words(words), strict=True):
        goes_on = first is not None and not first.begins and first.text not in ("{", "}", ";", "else", "...") and depth == begun
        closing = 0
        for word in line:
            if word.text != "}":
                break
            closing += 1
        indent = max(0, depth + goes_on - closing - sum(w.text in ")]" for w in line[:1]))
        joined = _joined(line)
        if joined or (lines and lines[-1]):
            lines.append(_INDENT * indent + joined if joined else "")
        for word in line:
            begun = depth if word.begins else begun
            depth += (word.text in ("{", "(", "[")) - (word.text in ("}", ")", "]"))
    while lines and not lines[-1]:
        lines.pop()
    return "".join(line + end for line in lines)


def _statements(tree: Syntax) -> Iterator[tuple[int, str]]:
    """The position of each statement, and its rule; outer ones first."""
    left: list[Any] = [tree]
    while left:
        found = left.pop()
        if found.data in _STEPS | _OTHERS:
            yield found.first.start_pos, found.data
        left += [child for child in reversed(found.children) if hasattr(child, "data")]


def _lines(text: str, tree: Syntax) -> list[list[Word]]:
    """The tokens of each line, without spaces."""
    begins = dict(_statements(tree))
    found: list[list[Word]] = [[]]
    statement = ""
    for match in _WORD.finditer(text):
        kind = str(match.lastgroup)
        statement = begins.get(match.start(), statement)
        if kind == "line":
            found.append([])
        elif kind != "space":
            found[-1].append(Word(kind, match[0].rstrip(), statement, match.start() in begins))
    return found


def _first_words(lines: list[list[Word]]) -> list[Word | None]:
    """The first token of each line; for comments and empty lines, that of the next other line."""
    found: list[Word | None] = []
    first = None
    for words in reversed(lines):
        first = words[0] if words and words[0].kind != "comment" else first
        found.append(first)
    return found[::-1]


def _joined(words: list[Word]) -> str:
    """The tokens of a line with the spaces between them."""
    out = ""
    for k, word in enumerate(words):
        if word.kind == "comment":
            out += "  " + word.text if out else word.text
        else:
            out += " " * (k > 0 and _spaced(words, k)) + word.text
    return out


def _spaced(words: list[Word], k: int) -> bool:
    """Whether a space precedes a token that is not the first of its line."""
    kind, last, word = words[k - 1].kind, words[k - 1].text, words[k].text
    if last in _TIGHT_AFTER or word in _TIGHT_BEFORE:
        return False
    if word == "=" or last == "=":
        return words[k].statement not in _CUTS
    if word in ("*", "/", "//", "%", "^") or last in ("*", "/", "//", "%", "^"):
        return True
    if last == "-" and _is_sign(words, k - 1):
        return False
    if word in _SPACED or last in _SPACED:
        return True
    if word == "(" and (words[k].statement in _STEPS and last in _MODIFIERS or k >= 2 and words[k - 2].text == "->"):
        return True  # a number follows: the modifier's, or the count of a level's units
    if word in ("(", "["):
        return last in _KEYWORDS or kind == "mark" and last not in (")", "]") or _after_instruction(words, k)
    return True


def _is_sign(words: list[Word], k: int) -> bool:
    """Whether the minus at a position has no left operand."""
    if k == 0:
        return True
    kind, word, *_ = words[k - 1]
    return not (kind in _OPERANDS and word not in _KEYWORDS or word in (")", "]"))


def _after_instruction(words: list[Word], k: int) -> bool:
    """Whether a parenthesis follows the name of an instruction, the domain of a reduction, or the units of a role."""
    if words[k].text != "(":
        return False
    role = any(w.text == "registers" for w in words[k + 1 : k + 4])
    return k >= 2 and words[k - 2].text == "do" or words[k - 1].text == "]" or role
