"""From text to a syntax tree: Lark's LALR parser over `schedule.lark`, built on first use; and from its failures to errors for people.

A text is scanned before it is parsed (scan.py). Where it has a fault, its top-level items are parsed one by one, so that all faults
that do not depend on each other are told at once.
"""

from __future__ import annotations

import contextlib
import difflib
import functools
import gc
import linecache
from collections.abc import Callable, Iterable, Iterator
from importlib import resources
from typing import TYPE_CHECKING, Any, TypeAlias

from tilelang.errors import Findings, ParseError, Span, TileLangError
from tilelang.grammar.scan import MOST_BYTES, Piece, scan

if TYPE_CHECKING:
    from lark import Lark

BYTE_ORDER_MARK = "\ufeff"  # that some editors put first
MOST_FINDINGS = 20  # more are seldom read


class Tree:
    """A rule's name, its parts (trees, and the words that mean something), and the first and the last word of its text."""

    __slots__ = ("data", "children", "first", "last")

    def __init__(self, data: str, children: list[Any]) -> None:
        self.data, self.children = data, children
        self.first: Any = None
        self.last: Any = None

    def named(self, rule: str) -> Iterator[Tree]:
        """The trees of a rule in this one, itself too."""
        left = [self]
        while left:
            tree = left.pop()
            if tree.data == rule:
                yield tree
            left += [child for child in reversed(tree.children) if child.__class__ is Tree]


Syntax: TypeAlias = Any  # a Tree, or a word


def _placed(build: Callable[[list[Any]], Any]) -> Callable[[list[Any]], Any]:
    """What builds a tree from all words of a rule, those that the tree leaves out too, with its place."""

    def call(parts: list[Any]) -> Any:
        made = build(parts)
        if made.__class__ is Tree and made.first is None and parts:
            first, last = parts[0], parts[-1]
            made.first = first.first if first.__class__ is Tree else first
            made.last = last.last if last.__class__ is Tree else last
        return made

    return call


@functools.cache
def lark() -> Lark:
    """The parser. Building it takes a tenth of a second, once."""
    from lark import Lark

    class Placing(Lark):
        """Lark with places that cost a fifth of what `propagate_positions` costs."""

        def _prepare_callbacks(self) -> None:
            super()._prepare_callbacks()
            self._callbacks = {rule: _placed(build) for rule, build in self._callbacks.items()}

    text = resources.files("tilelang.grammar").joinpath("schedule.lark").read_text(encoding="utf-8")
    return Placing(text, parser="lalr", lexer="contextual", maybe_placeholders=False, tree_class=Tree)


@contextlib.contextmanager
def uncollected() -> Iterator[None]:
    """No garbage collection inside: what a large text makes is all kept, and walking it again and again takes half of the time."""
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()


@uncollected()
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
