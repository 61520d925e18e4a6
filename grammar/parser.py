"""From text to a syntax tree: Lark's LALR parser over `schedule.lark`, built on first use; and from its failures to errors for people.

A text is scanned before it is parsed (scan.py). Where it has a fault, its top-level items are parsed one by one, so that all faults
that do not depend on each other are told at once.
"""

from __future__ import annotations

import difflib
import functools
import linecache
from collections.abc import Iterable
from importlib import resources
from typing import TYPE_CHECKING, Any, TypeAlias

from tilelang.errors import Findings, ParseError, Span, TileLangError
from tilelang.grammar.scan import MOST_BYTES, Piece, scan

if TYPE_CHECKING:
    from lark import Lark

Syntax: TypeAlias = Any  # a tree of Lark's: a rule's name, children, and where it stands; or a word

BYTE_ORDER_MARK = "\ufeff"  # that some editors put first
MOST_FINDINGS = 20  # more are seldom read


class Place:
    """Where a tree stands, as Lark tells it."""

    __slots__ = ("empty", "line", "column", "start_pos", "end_line", "end_column", "end_pos", "container_line", "container_column",
                 "container_start_pos", "container_end_line", "container_end_column", "container_end_pos")  # fmt: skip

    def __init__(self) -> None:
        self.empty = True


@functools.cache
def lark() -> Lark:
    """The parser. Building it takes a tenth of a second, once."""
    from lark import Lark, Tree

    class Node(Tree):  # type: ignore[type-arg]
        """A tree whose place takes a third of the memory that Lark's takes."""

        @property
        def meta(self) -> Any:
            if self._meta is None:
                self._meta = Place()  # type: ignore[assignment]
            return self._meta

    text = resources.files("tilelang.grammar").joinpath("schedule.lark").read_text(encoding="utf-8")
    return Lark(text, parser="lalr", lexer="contextual", propagate_positions=True, maybe_placeholders=False, tree_class=Node)


def parse_tree(text: str, file: str = "<text>", limit_bytes: int = MOST_BYTES) -> Syntax:
    """The syntax tree of a text. Raises ParseError, or Findings where several items have faults."""
    text = text.removeprefix(BYTE_ORDER_MARK)
    remember(text, file)
    items = scan(text, file, limit_bytes)
    try:
        return _parsed(text, file, 1, 1)
    except ParseError as first:
        errors = (_each(text, file, items) if len(items) > 1 else []) or [first]
    raise errors[0] if len(errors) == 1 else Findings(errors)


def remember(text: str, file: str) -> None:
    """Keeps the lines of a text that errors will show; a file on disk may have changed, or never been there."""
    linecache.cache[file] = (len(text), None, text.splitlines(True), file)


def _each(text: str, file: str, items: Iterable[Piece]) -> list[TileLangError]:
    """The faults of the items by themselves, at most MOST_FINDINGS."""
    errors: list[TileLangError] = []
    for item in items:
        try:
            _parsed(text[item.begin : item.end], file, item.line, item.column)
        except ParseError as error:
            errors.append(error)
            if len(errors) == MOST_FINDINGS:
                break
    return errors


def _parsed(text: str, file: str, line: int, column: int) -> Syntax:
    """The tree of a text that begins at a line and column of its file."""
    from lark.exceptions import UnexpectedInput

    try:
        return lark().parse(text)
    except UnexpectedInput as error:
        raise _explained(error, text, file, line - 1, column - 1) from None
    except RecursionError:
        raise ParseError("too-deep", "nested too deeply", span=Span(file, line), mend="name the inner parts") from None


# ---------------------------------------------------------------- errors


def _explained(error: Any, text: str, file: str, lines: int, columns: int) -> ParseError:
    """A fault of the syntax in a person's words. lines, columns: how far the text's beginning is from the file's."""
    from tilelang.grammar.messages import explain

    word, at = _found(error, text)
    line = text.count("\n", 0, at) + 1
    column = at - text.rfind("\n", 0, at)
    span = Span(file, line + lines, column + (columns if line == 1 else 0), 0)
    span = Span(file, span.line, span.column, span.column + max(1, len(word)))

    def place(part: Any) -> Span:
        """Where a part of the text stands in its file."""
        shift = columns if part.line == 1 else 0
        return Span(file, part.line + lines, part.column + shift, part.end_column + shift)

    return explain(error, word, span, text, place)


def _found(error: Any, text: str) -> tuple[str, int]:
    """The word at which parsing stopped, empty at the end; and where it stands: the end is that of the last word."""
    token = getattr(error, "token", None)
    if token is None:  # no word begins here
        return text[error.pos_in_stream : error.pos_in_stream + 1], error.pos_in_stream
    if token.type == "$END":
        bare = _without_comments(text)
        return "", len(bare.rstrip())
    return str(token), token.start_pos


def _without_comments(text: str) -> str:
    """The text with spaces for its comments."""
    return "\n".join(
        line[: line.index("#")] + " " * (len(line) - line.index("#")) if "#" in line else line for line in text.split("\n")
    )


def nearest(word: str, words: Iterable[str]) -> str | None:
    """The word that was probably meant."""
    folded = {w.casefold(): w for w in words}
    near = difflib.get_close_matches(word.casefold(), folded, 1, 0.6)
    return folded[near[0]] if near else None
