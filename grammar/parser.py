"""From text to a syntax tree: Lark's LALR parser over `schedule.lark`, built on first use; and from its failures to errors for people.

A text is scanned before it is parsed (scan.py). Where it has a fault, its top-level items are parsed one by one, and in an item what
follows the faulty statement, so that all faults that do not depend on each other are told at once.
"""

from __future__ import annotations

import contextlib
import functools
import gc
import json
import linecache
from collections.abc import Callable, Iterator
from importlib import resources
from typing import TYPE_CHECKING, Any, TypeAlias

from tilelang.errors import MOST_FINDINGS, ParseError, Span, TileLangError, together
from tilelang.grammar.scan import MOST_BYTES, Piece, scan

if TYPE_CHECKING:
    from lark import Lark

BYTE_ORDER_MARK = "\ufeff"  # that some editors put first


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
    """The parser, from the tables beside the grammar where they are of this grammar and of the Lark that is installed; else they are
    computed, which takes a fifth of a second."""
    import lark as package

    text = _grammar()
    kept = json.loads(resources.files("tilelang.grammar").joinpath(TABLES).read_text(encoding="utf-8"))
    if (kept["grammar"], kept["lark"]) != (text, package.__version__):
        return built(text)
    made, postlex = _classes()
    data, memo = kept["tables"]["data"], _numbered(kept["tables"]["memo"])
    actions = data["parser"]["parser"]
    actions["states"] = _numbered(actions["states"])
    parser: Lark = made._load_from_dict(data, memo, tree_class=Tree, postlex=postlex())
    return parser


TABLES = "schedule.json"  # made by `python -m tilelang.grammar.tables`


def _grammar() -> str:
    return resources.files("tilelang.grammar").joinpath("schedule.lark").read_text(encoding="utf-8")


def built(text: str) -> Lark:
    """The parser of a grammar, its tables computed."""
    made, postlex = _classes()
    parser: Lark = made(text, parser="lalr", lexer="contextual", maybe_placeholders=False, tree_class=Tree, postlex=postlex())
    return parser


@functools.cache
def _classes() -> tuple[Any, Any]:
    """Lark as it is used here, and what it does between words and parsing."""
    from lark import Lark
    from lark.lark import PostLex

    class WholeWords(PostLex):
        """A name is read everywhere, also where the parser then refuses it: else `usef` would be `use f`."""

        always_accept = ("NAME",)

        def process(self, stream: Iterator[Any]) -> Iterator[Any]:
            return stream

    class Placing(Lark):
        """Lark with places that cost a fifth of what `propagate_positions` costs."""

        def _prepare_callbacks(self) -> None:
            super()._prepare_callbacks()
            self._callbacks = {rule: _placed(build) for rule, build in self._callbacks.items()}

    return Placing, WholeWords


def _numbered(read: dict[str, Any]) -> dict[int, Any]:
    """What was read from JSON, whose keys are texts, by numbers again."""
    return {int(key): value for key, value in read.items()}


ITEM, COMPUTATION, SCHEDULE = "", "computation f {", "schedule for f {"  # after which an item, a declaration, a step can begin


@functools.cache
def keywords() -> dict[str, str]:
    """The words that are terminals of the grammar, by terminal."""
    return {t.name: t.pattern.value for t in lark().terminals if t.pattern.type == "str" and t.pattern.value.isidentifier()}


@functools.cache
def first_words(before: str) -> frozenset[str]:
    """The keywords that can follow a text."""
    state: Any = lark().parse_interactive(before)
    state.exhaust_lexer()
    return frozenset(keywords()[t] for t in state.accepts() if t in keywords())


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


def parse_tree(text: str, file: str = "<text>", limit_bytes: int = MOST_BYTES) -> Syntax:
    """The syntax tree of a text. Raises ParseError, or Findings where several statements have faults."""
    tree, faults, _ = parse_parts(text, file, limit_bytes)
    if faults:
        raise together(faults)
    return tree


@uncollected()
def parse_parts(text: str, file: str, limit_bytes: int = MOST_BYTES) -> tuple[Syntax, list[TileLangError], list[str]]:
    """The tree of the items that have no fault, the faults of the others, and their texts. Raises ParseError where it is not parsed."""
    text = text.removeprefix(BYTE_ORDER_MARK)
    remember(text, file)
    items = scan(text, file, limit_bytes)
    try:
        return _parsed(text, file), [], []
    except ParseError:
        pass
    whole, errors, broken = Tree("start", []), list[TileLangError](), list[str]()
    for item in (Piece(0, items[0].begin if items else len(text), 1, 1), *items):
        here = "\n" * (item.line - 1) + " " * (item.column - 1) + text[item.begin : item.end]
        try:
            whole.children += _parsed(here, file).children
        except ParseError as error:
            errors += _faults(error, here, file)
            broken.append(text[item.begin : item.end])
        if len(errors) > MOST_FINDINGS:
            break
    return whole, errors, broken


def _faults(error: ParseError, text: str, file: str) -> list[TileLangError]:
    """The first fault of an item, and those of the statements that follow it."""
    from tilelang.grammar.recovery import resumed

    def place(error: ParseError) -> int:
        assert error.span is not None
        return len(text) - len(text.split("\n", error.span.line - 1)[-1]) + error.span.column - 1

    found: list[TileLangError] = [error]
    last = after = place(error)
    while len(found) <= MOST_FINDINGS and (rest := resumed(text, after)) is not None:
        try:
            _parsed(rest, file)
            break
        except ParseError as next_one:
            if (at := place(next_one)) > last:
                found.append(next_one)
                text, last, after = rest, at, at
            elif after == last:
                after += 1  # this statement is the one that cannot stand here
            else:
                break  # what surrounds it is at fault
    return found


def remember(text: str, file: str) -> None:
    """Keeps the lines of a text that errors will show; a file on disk may have changed, or never been there."""
    linecache.cache[file] = (len(text), None, [line + "\n" for line in text.split("\n")], file)


def _parsed(text: str, file: str) -> Syntax:
    from lark.exceptions import UnexpectedInput

    try:
        return lark().parse(text)
    except UnexpectedInput as error:
        raise _explained(error, text, file) from None
    except RecursionError:
        raise ParseError("too-deep", "nested too deeply", span=Span(file, 1), mend="name the inner parts") from None


# ---------------------------------------------------------------- errors


def _explained(error: Any, text: str, file: str) -> ParseError:
    """A fault of the syntax in a person's words."""
    from tilelang.grammar.messages import explain

    word, at = _found(error, text)
    line = text.count("\n", 0, at) + 1
    column = at - text.rfind("\n", 0, at)
    span = Span(file, line, column, column + max(1, len(word)))
    return explain(error, word, span, text, lambda part: Span(file, part.line, part.column, part.end_column))


def _found(error: Any, text: str) -> tuple[str, int]:
    """The word at which parsing stopped, empty at the end; and where it stands: the end is that of the last word."""
    token = getattr(error, "token", None)
    if token is None:  # no word begins here
        return text[error.pos_in_stream : error.pos_in_stream + 1], error.pos_in_stream
    return ("", token.end_pos or 0) if token.type == "$END" else (str(token), token.start_pos)
