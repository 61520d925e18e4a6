"""A file's one layout: indentation by braces, one space between words, lines and comments where they were.

It works on words, not on the tree, so that expressions stay as they were written. Line breaks are the author's; runs of empty lines
become one, and spaces before a comment that ends a line become two. Lines end as the first one does, with CRLF or LF.
"""

from __future__ import annotations

import re

from tilelang.grammar.parser import BYTE_ORDER_MARK, parse_tree
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
_MODIFIERS = {"pad", "swizzle", "ahead", "behind"}  # of a step: a number follows; elsewhere `pad` is a function
_OPERANDS = {"name", "number"}


def format_text(text: str, file: str = "<text>", limit_bytes: int = MOST_BYTES) -> str:
    """The text in the one layout. Raises ParseError, or Findings, where it is no program: nothing is changed then.

    >>> print(format_text("computation f(N){input X:float32[i:N]\\n output Y[i]=X[i]*2.0   # twice\\n}"), end="")
    computation f(N) { input X: float32[i: N]
      output Y[i] = X[i] * 2.0  # twice
    }
    """
    parse_tree(text, file, limit_bytes)
    text = text.removeprefix(BYTE_ORDER_MARK)
    end = "\r\n" if text.partition("\n")[0].endswith("\r") else "\n"  # of all lines as of the first
    lines: list[str] = []
    depth = 0
    for words in _lines(text):
        closing = 0
        for kind, word in words:
            if (kind, word) != ("mark", "}"):
                break
            closing += 1
        indent = max(0, depth - closing - sum(w in ")]" for _, w in words[:1]))
        line = _joined(words)
        if line or (lines and lines[-1]):
            lines.append(_INDENT * indent + line if line else "")
        depth += sum((w in ("{", "(", "[")) - (w in ("}", ")", "]")) for k, w in words if k == "mark")
    while lines and not lines[-1]:
        lines.pop()
    return "".join(line + end for line in lines)


def _lines(text: str) -> list[list[tuple[str, str]]]:
    """The words of each line, without spaces."""
    found: list[list[tuple[str, str]]] = [[]]
    for match in _WORD.finditer(text):
        kind = str(match.lastgroup)
        if kind == "line":
            found.append([])
        elif kind != "space":
            found[-1].append((kind, match[0].rstrip()))
    return found


def _joined(words: list[tuple[str, str]]) -> str:
    """The words of a line with the spaces between them."""
    out = ""
    braces = 0  # of parentheses and brackets: inside, `=` binds names to names
    before: tuple[str, str] | None = None
    sizes = _is_step(words)
    for k, (kind, word) in enumerate(words):
        if kind == "comment":
            out += "  " + word if out else word
            continue
        if before is not None and _spaced(words, k, before, braces, sizes):
            out += " "
        out += word
        braces += (word in ("(", "[")) - (word in (")", "]"))
        before = (kind, word)
    return out


def _is_step(words: list[tuple[str, str]]) -> bool:
    """Whether a line's `=` gives sizes: tight, as in m=4; that of a definition is spaced."""
    heads = {"tile", "split", "vectorize", "fuse", "unfuse", "do", "load", "compute", "accumulate", "via", "schedule", "when"}
    return any(kind == "name" and word in heads for kind, word in words) and not any(
        word in ("output", "input") for _, word in words
    )


def _spaced(words: list[tuple[str, str]], k: int, before: tuple[str, str], braces: int, sizes: bool) -> bool:
    """Whether a space stands before a word."""
    last, word = before[1], words[k][1]
    if last in _TIGHT_AFTER or word in _TIGHT_BEFORE:
        return False
    if word == "=" or last == "=":
        header = words[0][1] == "schedule" and braces and ("mark", "{") not in words[:k]  # its parameters' defaults
        return not sizes or words[0][1] == "units" or bool(header)
    if word in ("*", "/", "//", "%", "^") or last in ("*", "/", "//", "%", "^"):
        return True
    if last == "-" and _is_sign(words, k - 1):
        return False
    if word in _SPACED or last in _SPACED:
        return True
    if word == "(" and (sizes and last in _MODIFIERS or k >= 2 and words[k - 2][1] == "->"):  # the number of a level's units
        return True
    if word in ("(", "["):
        return last in _KEYWORDS or before[0] == "mark" and last not in (")", "]") or _after_instruction(words, k)
    return True


def _is_sign(words: list[tuple[str, str]], k: int) -> bool:
    """Whether the minus at a place has no left operand."""
    if k == 0:
        return True
    kind, word = words[k - 1]
    return not (kind in _OPERANDS and word not in _KEYWORDS or word in (")", "]"))


def _after_instruction(words: list[tuple[str, str]], k: int) -> bool:
    """Whether a parenthesis follows the name of an instruction, the domain of a reduction, or the units of a role."""
    if words[k][1] == "(" and k >= 2 and words[k - 2][1] == "do":
        return True
    return words[k][1] == "(" and (words[k - 1][1] == "]" or any(w == "registers" for _, w in words[k + 1 : k + 4]))
