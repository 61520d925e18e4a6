"""The loops of a kernel beside its source: rows of the statement tree, each linked to its source lines."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from tilelang.cli.page.contents import shortened
from tilelang.cli.page.html import Html, join, tag
from tilelang.errors import Span
from tilelang.lowering import ir, printer


@dataclasses.dataclass(frozen=True)
class Row:
    """Neighbouring statements of one kind; loops, conditions and barriers are alone. numbers: in the order of `ir.statements`."""

    statements: tuple[ir.Stmt, ...]
    numbers: tuple[int, ...]
    inside: tuple[tuple[str, tuple[Row, ...]], ...]

    @property
    def span(self) -> Span | None:
        return getattr(self.statements[0], "span", None)

    @property
    def around(self) -> frozenset[Span]:
        """The places of the steps that divided the work of its statements; for a loop or a condition, its inner rows have them."""
        inner = () if self.inside else (s for stmt in self.statements for s in ir.statements(stmt))
        places = (getattr(s, "span", None) for s in inner)
        return frozenset(span for place in places if place is not None for span in place.around)


@dataclasses.dataclass(frozen=True)
class Shown:
    """Links from rows. pictures: a statement's number -> the figure of its move. names: files as displayed. steps: a row's originating
    steps, as attributes."""

    pictures: Mapping[int, str]
    names: Mapping[str, str]
    steps: Callable[[Row], Mapping[str, str | None]]


def rows(kernel: ir.Kernel) -> tuple[Row, ...]:
    """The statement tree of a kernel as rows."""
    numbers: dict[int, Iterator[int]] = {}
    found: dict[int, list[int]] = {}
    for number, stmt in enumerate(ir.statements(kernel.body)):
        found.setdefault(id(stmt), []).append(number)
    numbers = {key: iter(of) for key, of in found.items()}  # one object may occur several times
    return _rows(kernel.body, numbers)


def _rows(stmt: ir.Stmt, numbers: dict[int, Iterator[int]]) -> tuple[Row, ...]:
    out = []
    for _, group in itertools.groupby(_opened(stmt, numbers), key=lambda pair: _kind(pair[0])):
        same = list(group)
        if _kind(same[0][0]) is not None:
            inner = [n for s, _ in same for n in _skip(s, numbers)]
            out.append(Row(tuple(s for s, _ in same), (*(n for _, n in same), *inner), ()))
        else:
            out += [Row((s,), (n,), _inside(s, numbers)) for s, n in same]
    return tuple(out)


def _opened(stmt: ir.Stmt, numbers: dict[int, Iterator[int]]) -> list[tuple[ir.Stmt, int]]:
    """The statements of a sequence, nested ones flattened, with their numbers."""
    number = next(numbers[id(stmt)])
    if isinstance(stmt, ir.Seq):
        return [pair for s in stmt.body for pair in _opened(s, numbers)]
    return [(stmt, number)]


def _skip(stmt: ir.Stmt, numbers: dict[int, Iterator[int]]) -> list[int]:
    return [next(numbers[id(s)]) for s in itertools.islice(ir.statements(stmt), 1, None)]


def _inside(stmt: ir.Stmt, numbers: dict[int, Iterator[int]]) -> tuple[tuple[str, tuple[Row, ...]], ...]:
    match stmt:
        case ir.For(body=body):
            return (("", _rows(body, numbers)),)
        case ir.If(then=then, otherwise=otherwise):
            inner = (("", _rows(then, numbers)),)
            return inner if otherwise is None else (*inner, ("else", _rows(otherwise, numbers)))
        case _:
            return ()


def _kind(stmt: ir.Stmt) -> Any:
    """A key of statements that share a row; None for those with their own row."""
    match stmt:
        case ir.For() | ir.Barrier():
            return None
        case ir.Seq(body):
            inner = [_kind(s) for s in body]
            return None if None in inner or len(set(inner)) != 1 else inner[0]
        case ir.If(then=then, otherwise=otherwise, span=span):
            inner = [_kind(then)] + ([_kind(otherwise)] if otherwise is not None else [])
            return None if None in inner else ("if", span, *inner)
        case _:
            touched = [b.name for b, writes in ir.touched(stmt) if writes] or [b.name for b, _ in ir.touched(stmt)]
            return (type(stmt).__name__, getattr(stmt, "span", None), *touched)


def section(
    number: int,
    kernel: ir.Kernel,
    source: str | None,
    places: Sequence[range],
    shown: Shown,
) -> Html:
    """The tree and the source of one kernel, side by side, with a line for the steps that a selected row comes from."""
    first, last = _extent(places) if source is not None else (0, 0)
    tree = tag("ul", *(_item(number, row, places, shown) for row in rows(kernel)), class_="tree", data_kernel=number)
    chosen = tag("p", "Select a row or a line to see here the steps that it comes from.", class_="from lead", aria_live="polite")
    if source is None:
        return tag("div", chosen, tag("div", tree, class_="single"), class_="kernel")
    lines = source.split("\n")
    # the emitter precedes a kernel with comments
    first = max((i for i in range(first) if lines[i].startswith("//")), default=first)
    text = [
        tag(
            "span",
            tag("i", str(n + 1)),
            tag("code", lines[n]),
            class_="line",
            role="option",
            id=f"k{number}-l{n + 1}",
            data_line=n + 1,
        )
        for n in range(first, min(last + 1, len(lines)))
    ]
    label = f"source of {kernel.name}: arrows move, Enter shows the statement"
    pane = tag("div", *text, class_="source", data_kernel=number, tabindex=0, role="listbox", aria_label=label)
    return tag("div", chosen, tag("div", tag("div", tree, class_="pane"), pane, class_="beside"), class_="kernel")


def _extent(places: Sequence[range]) -> tuple[int, int]:
    used = [r for r in places if r]
    return (min(r.start for r in used), max(r.stop for r in used)) if used else (0, 0)


def _item(number: int, row: Row, places: Sequence[range], shown: Shown) -> Html:
    lines = [places[n] for n in row.numbers if n < len(places) and places[n]]
    found = _extent(lines)
    count = len(row.statements)
    stmt = row.statements[0]
    text = printer.headline(stmt)
    if isinstance(stmt, ir.If) and not row.inside:
        text += " " + next(printer.headline(s) for s in ir.statements(stmt) if not isinstance(s, (ir.If, ir.Seq)))
    button = tag(
        "button", tag("code", text), tag("span", f"and {count - 1} more", class_="more") if count > 1 else None, type="button",
        class_=f"row {_word(stmt)}", id=f"k{number}-s{row.numbers[0]}", data_from=found[0] + 1 if lines else None,
        data_to=found[1] if lines else None, data_kernel=number, **shown.steps(row),
    )  # fmt: skip
    picture = next((shown.pictures[n] for n in row.numbers if n in shown.pictures), None)
    link = tag("a", "picture", href=f"#{picture}", class_="see") if picture else None
    parts: list[Any] = [tag("div", button, link, class_="head")]
    if isinstance(stmt, ir.Barrier):
        parts.append(
            tag("ul", *(tag("li", shortened(r, shown.names)) for r in stmt.reasons), class_="reasons") if stmt.reasons else None
        )
    for word, inner in row.inside:
        parts.append(tag("span", word, class_="else") if word else None)
        parts.append(tag("ul", *(_item(number, r, places, shown) for r in inner)))
    return tag("li", join(*parts))


def _word(stmt: ir.Stmt) -> str:
    return {ir.For: "loop", ir.If: "condition", ir.Barrier: "barrier"}.get(type(stmt), "simple")
