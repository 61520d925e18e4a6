"""Error recovery: parsing resumes at the next statement, as if the faulty one were absent."""

from __future__ import annotations

import functools
import re

from tilelang.grammar.parser import COMPUTATION, ITEM, SCHEDULE, first_words

_WORDS = re.compile(r"#[^\n]*|`?[^\W\d]\w*`?|\S|\n")
_PARAMETERS = re.compile(r"((?:computation|schedule)\b[^({]*)(\([^{]*\))")
_DEFINITION = re.compile(r"`?[^\W\d]\w*`?\s*(\[[^\]=]*\]\s*)?(,|=(?!=))")


@functools.cache
def _heads() -> frozenset[str]:
    return first_words(ITEM) | first_words(COMPUTATION) | first_words(SCHEDULE)


def resumed(text: str, at: int) -> str | None:
    """The text from the next statement after a position, with the heads of the enclosing braces; omitted parts become spaces.

    A statement begins a line, or follows a brace or a semicolon. None if there are no more.

    >>> print(resumed("schedule s for f {\\n  tile 8; split k=8\\n}", 26))
    schedule s for f {
              split k=8
    }
    """
    around: list[tuple[int, int]] = []  # of the open braces: the start and end of each head
    begin, first = 0, True
    for found in _WORDS.finditer(text):
        word = found[0]
        if word == "{":
            around.append((begin, found.end()))
        elif word == "}" and around:
            begin, _ = around.pop()  # the head of an `else` is the whole `when`
        elif first and (word in _heads() or _DEFINITION.match(text, found.start())):
            begin = found.start()
            if begin >= at:
                return _blanked(text[:begin], around) + text[begin:]
        first = word in ("\n", ";", "{", "}") or first and word.startswith("#")
    return None


def _blanked(text: str, kept: list[tuple[int, int]]) -> str:
    """The text with spaces for all tokens outside the given ranges, and for parameters, which may be faulty, too."""

    def spaces(part: str) -> str:
        return re.sub(r"[^\n]", " ", part)

    out, end = "", 0
    for begin, stop in kept:
        out += spaces(text[end:begin]) + _PARAMETERS.sub(lambda m: m[1] + spaces(m[2]), text[begin:stop])
        end = stop
    return out + spaces(text[end:])
