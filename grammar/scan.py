"""Scans a text before parsing, in one pass over its characters: its size, its brackets, its top-level items.

For any file this takes linear time and little memory; it protects the parser from texts that would not.
"""

from __future__ import annotations

import dataclasses
import re

from tilelang.errors import ParseError, Span

MOST_BYTES = 256 * 1024
DEEPEST = 200
_OPENING = {"(": ")", "[": "]", "{": "}"}
_CLOSING = {")": "(", "]": "[", "}": "{"}
_PIECES = re.compile(
    r"(?P<foreign>\*\*|&&|\|\||=>|!(?!=)|(?<![\w.)\]])\.\d+|(?<![\w.])\d+\.(?![\d.])"
    r"|(?<![\w.])(?!\d+[eE][+-]?\d+\b)\d+[^\W\d]\w*)|#[^\r\n]*|\r(?!\n)|[^\W\d]\w*|[()\[\]{}]|\n|[^\s\w.,:;=+\-*/%<>!&|^~?`#]|[\x00-\x08\x0e-\x1f\x7f]"
)
_VERSION = re.compile(r"(?:\s|#[^\n]*\n)*(tilelang(?:\s|#[^\n]*\n)+(\d+))")
VERSION = "1"  # the version of the language that is read here
_ITEMS = ("computation", "schedule", "use", "when")


@dataclasses.dataclass(frozen=True, slots=True)
class Piece:
    """A top-level item of a text: its range, and the line and column (from 1) of its start."""

    begin: int
    end: int
    line: int
    column: int


def scan(text: str, file: str, most_bytes: int = MOST_BYTES) -> list[Piece]:
    """The top-level items of a text.

    Raises ParseError if the text is larger than `most_bytes`, of another version, or nested deeper than DEEPEST, if a bracket has no
    partner, or if a character is not part of the language.
    """
    check_size(len(text.encode("utf-8", "surrogatepass")), file, most_bytes)
    _check_version(text, file)
    starts: list[Piece] = []
    open_brackets: list[tuple[str, int, int]] = []
    line, line_begin = 1, 0
    for found in _PIECES.finditer(text):
        word, column = found[0], found.start() - line_begin + 1
        if found["foreign"]:
            raise _foreign(word, Span(file, line, column, column + len(word)))
        if word == "\n":
            line, line_begin = line + 1, found.end()
        elif word in _OPENING:
            if len(open_brackets) == DEEPEST:
                raise ParseError(
                    "too-deep",
                    f"brackets are nested deeper than {DEEPEST}",
                    span=Span(file, line, column, column + 1),
                    help="name the inner parts by definitions of their own",
                )
            open_brackets.append((word, line, column))
        elif word in _CLOSING:
            _close(word, open_brackets, Span(file, line, column, column + 1))
        elif word in _ITEMS and not open_brackets and _begins_an_item(text, found.start(), starts):
            starts.append(Piece(found.start(), len(text), line, column))
        elif word == "\r":
            raise ParseError(
                "stray-character",
                "a carriage return alone does not end a line",
                span=Span(file, line, column, column + 1),
                help="end lines with a line feed, or with both",
            )
        elif not word[0].isidentifier() and not word.startswith("#"):
            raise ParseError(
                "stray-character",
                f"{word!r} is not valid here",
                span=Span(file, line, column, column + 1),
                help="names are letters, digits and _; `#` begins a comment",
            )
    if open_brackets:
        bracket, at, column = open_brackets[-1]
        raise ParseError(
            "bracket-not-closed",
            f"`{bracket}` is never closed",
            span=Span(file, at, column, column + 1),
            help=f"add the `{_OPENING[bracket]}` that ends it",
        )
    ends = [*(s.begin for s in starts[1:]), len(text)][: len(starts)]
    return [dataclasses.replace(s, end=end) for s, end in zip(starts, ends, strict=True)]


_OF_OTHERS = {"**": "write it as in pow(x, 2.0)", "&&": "`and`", "||": "`or`", "!": "`not`", "=>": "`>=`; before a level, `->`"}


def _foreign(word: str, span: Span) -> ParseError:
    """The error for an operator or a number in another language's notation."""
    if word in _OF_OTHERS:
        return ParseError("stray-character", f"`{word}` is not valid here", span=span, help=_OF_OTHERS[word])
    meant = (
        f"`{'0' + word if word[0] == '.' else word + '0'}`" if "." in word else "as 16, 2.5, 1e-3; a name begins with a letter"
    )
    return ParseError("number-form", f"`{word}` is not a number", span=span, help=meant)


def check_size(size: int, file: str, most_bytes: int) -> None:
    """Refuses a text that exceeds the size limit."""
    if size > most_bytes:
        raise ParseError(
            "too-large",
            f"{file} has more than {most_bytes} bytes",
            span=Span(file, 1),
            help="split it into several files, or raise the limit: limit_bytes=, --limit-bytes",
        )


def _check_version(text: str, file: str) -> None:
    """Refuses a text of another version before any other error is reported."""
    found = _VERSION.match(text)
    if found is not None and found[2].lstrip("0") != VERSION:
        line, column = text.count("\n", 0, found.start(2)) + 1, found.start(2) - text.rfind("\n", 0, found.start(2))
        raise ParseError(
            "unknown-version",
            f"this reads version {VERSION} of the language, not version {found[2]}",
            span=Span(file, line, column, column + len(found[2])),
            help=f"`tilelang {VERSION}`, or a newer tilelang",
        )


def _begins_an_item(text: str, at: int, starts: list[Piece]) -> bool:
    """Whether a word at this position begins an item: the first one on its line, or the first after a closing bracket."""
    before = text[text.rfind("\n", 0, at) + 1 : at].strip()
    return not before or before.endswith("}")


def _close(bracket: str, open_brackets: list[tuple[str, int, int]], span: Span) -> None:
    if not open_brackets:
        message = f"`{bracket}` does not close anything"
        raise ParseError("bracket-not-open", message, span=span, help=f"remove it, or add the `{_CLOSING[bracket]}` before it")
    wanted, line, column = open_brackets.pop()
    if _OPENING[wanted] != bracket:
        raise ParseError(
            "bracket-mismatch",
            f"`{bracket}` cannot close the `{wanted}` of line {line}, column {column}",
            span=span,
            help=f"`{_OPENING[wanted]}`",
        )
