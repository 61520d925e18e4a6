"""HTML with automatic escaping: text becomes `Html` only through `tag`, so user-defined names can never be interpreted as markup."""

from __future__ import annotations

import html
import json
from collections.abc import Mapping, Sequence
from typing import Any


class Html(str):
    """Markup."""

    __slots__ = ()


VOID = frozenset(("input", "meta", "br", "hr", "col"))
REQUESTS = {
    "previous": ("◀", "the request before"),
    "next": ("▶", "the next request"),
    "worst": ("dearest", "the dearest request"),
    "all": ("all", "all requests"),
}


def tag(name: str, /, *children: Any, **attributes: Any) -> Html:
    """An element. Text children are escaped, Html is kept, None is skipped. `class_` becomes class, `data_row` becomes data-row.

    >>> print(tag("a", "x < y", href="#top", data_row=3))
    <a href="#top" data-row="3">x &lt; y</a>
    """
    head = name
    for key, value in attributes.items():
        if value is None or value is False:
            continue
        spelled = key.rstrip("_").replace("_", "-")
        head += f" {spelled}" if value is True else f' {spelled}="{html.escape(str(value))}"'
    return Html(f"<{head}>") if name in VOID else Html(f"<{head}>{join(*children)}</{name}>")


def join(*children: Any) -> Html:
    """The concatenated children, escaped unless they are Html."""
    return Html("".join(c if isinstance(c, Html) else html.escape(str(c)) for c in children if c is not None))


def data(identity: str, value: Any) -> Html:
    """A script element that holds a value for the page's script."""
    text = json.dumps(value, separators=(",", ":"), sort_keys=True, ensure_ascii=True)
    text = text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
    return Html(f'<script type="application/json" id="{html.escape(identity)}">{text}</script>')


def table(heads: list[Any], rows: list[list[Any]], **attributes: Any) -> Html:
    """A table in its own box, which scrolls if it is too wide. Cells are text or Html; numbers are right-aligned."""
    numbers = [any(isinstance(row[n], (int, float)) for row in rows) for n in range(len(heads))]
    named = [tag("th", h, scope="col", class_="number" if n else None) for h, n in zip(heads, numbers, strict=True)]
    top = tag("thead", tag("tr", *named))
    body = [tag("tr", *(_cell(c) for c in row)) for row in rows]
    return tag("div", tag("table", top, tag("tbody", *body), **attributes), class_="wide")


def _cell(value: Any) -> Html:
    if isinstance(value, (int, float)):
        return tag("td", f"{value:,}" if isinstance(value, int) else f"{value:.3g}", class_="number")
    return tag("td", value)


def figure(
    identity: str,
    title: Html,
    about: str,
    colours: Sequence[str],
    facts: Sequence[tuple[str, Any]],
    of: str,
    one: Mapping[str, tuple[str, str]] = REQUESTS,
) -> Html:
    """The frame of a picture, which the page's script draws from the data element `of`. one: buttons that show a single part."""
    options = [tag("option", word, value=word) for word in colours]
    choose = tag("label", "colour by ", tag("select", *options, class_="colour")) if len(options) > 1 else None
    buttons = [tag("button", word, type="button", data_go=go, aria_label=label) for go, (word, label) in one.items()]
    alone = tag("span", "one alone: ", *buttons, class_="requests", hidden=True) if buttons else None
    counted = [join(tag("dt", name), tag("dd", f"{value:,}" if isinstance(value, int) else value)) for name, value in facts]
    return tag(
        "figure",
        tag("figcaption", title),
        tag("div", choose, alone, class_="controls"),
        tag("p", class_="said", aria_live="polite", hidden=True),
        tag("div", tag("canvas", tabindex=0, role="img", aria_label=f"{about}; arrow keys move over the cells"), class_="canvas"),
        tag("div", class_="legend"),
        tag("p", class_="cut", hidden=True),
        tag("dl", *counted),
        class_="picture",
        id=identity,
        data_of=of,
    )
