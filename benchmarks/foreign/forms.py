"""What a text uses of the language: verbs, places, types and forms of indices, each with how often."""

import collections
import re
from collections.abc import Iterator
from typing import Any

from benchmarks.foreign.mutate import parts


def used(text: str) -> dict[str, int]:
    """What a program uses: verbs, places, modifiers, types, forms of indices, readers."""
    computation, steps = parts(text)
    found: collections.Counter[str] = collections.Counter()

    def look(step: Any, inside: str) -> None:
        own, inner = (step, []) if isinstance(step, str) else step
        words = own.split()
        found["verb " + words[0] + inside] += 1
        found.update(f"{words[0]} {p} {words[words.index(p) + 1]}" for p in ("in", "->") if p in words)
        found.update(
            f"with {m}"
            for m in ("layout", "ahead", "pad", "unroll", "peel", "order", "stream", "behind", "once", "on", "swizzle", "of")
            if m in words
        )
        for s in inner:
            look(s, " in braces")

    for step in steps:
        look(step, "")
    found.update(f"type {t}" for t in re.findall(r"input \w+: (\w+)\[", computation))
    found.update(
        f"reduce {k}" for k in re.findall(r"\b(sum|prod|max|min|any|all|argmax|argmin|reduce)\b(?=\s*\w*\[)", computation)
    )
    found.update(f"index {form_of(i)}" for i in _indices(computation))
    found.update(w for w in ("pad", "where", "cast") if f"{w}(" in computation)
    return dict(found)


def _indices(computation: str) -> Iterator[str]:
    for line in computation.splitlines():
        if " = " in line:
            for inner in re.findall(
                r"\b(?!(?:sum|prod|max|min|any|all|argmax|argmin)\[)[A-Za-z]\w*\[([^\[\]]*(?:\[[^\[\]]*\][^\[\]]*)*)\]",
                line.split(" = ", 1)[1],
            ):
                yield from inner.split(", ")


def form_of(index: str) -> str:
    """Of an index: an axis, a number, shifted, strided, a window, divided, a remainder, gathered."""
    if re.fullmatch(r"\w+", index):
        return "number" if index.isdigit() else "axis"
    for mark, name in (
        ("[", "gathered"),
        ("%", "remainder"),
        ("//", "divided"),
        ("*", "strided or window"),
        ("-", "shifted down"),
        ("+", "shifted up"),
    ):
        if mark in index:
            return name
    return "other"
