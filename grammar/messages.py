"""Messages of syntax errors: a table of invalid texts, each of which defines and tests its message.

A parser failure is compared with the states in which the examples fail; the first example that fails in the same way gives the message.
If no example matches, the message lists the tokens that could follow.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from typing import Any

from tilelang.errors import ParseError, Span, nearest
from tilelang.grammar.parser import COMPUTATION, SCHEDULE, first_words, keywords, lark

_C = "computation f(M) {{ input A: float32[m: M] {} }}".format
_S = "schedule s for f {{ {} }}".format

# code, message, help, invalid texts
MESSAGES: list[tuple[str, str, str, list[str]]] = [
    (
        "tile-without-level",
        "`tile` does not say which units its tiles are mapped to",
        "add `-> block`, `-> warp` or `-> thread`; for a sequential loop write `split`",
        [_S("tile m=8"), _S("tile m=8 split k=4"), _S("tile m=8; split k=4"), _S("tile m=8 order (m)")],
    ),
    (
        "size-without-axis",
        "a size belongs to an axis",
        "write axis=size, as in m=8",
        [_S("tile 8 -> block"), _S("split 8"), _S("vectorize 4"), _S("tile m -> block"), _S("split m")],
    ),
    (
        "comma-between-sizes",
        "sizes are separated by spaces, not by commas",
        "write it as in `tile m=8 n=8 -> block`",
        [_S("tile m=8, n=8 -> block"), _S("split m=8, n=8")],
    ),
    (
        "place-without-memory",
        "this does not name a memory",
        "write it as in `load A in shared`",
        [_S("load A"), _S("load A shared"), _S("compute P"), _S("accumulate"), _S("accumulate register"), _S("load A; split k=4")],
    ),
    (
        "expected-equals",
        "a definition has the form name[axes] = value",
        "write it as in `output C[m, n] = A[m, n] * 2.0`",
        [_C("output C[m]"), _C("output C[m] A[m]"), _C("C[m] : A[m]")],
    ),
    (
        "value-missing",
        "a value is missing",
        "a number, an axis, a read such as A[m, k], or a function of those",
        [
            _C("output C[m] = "), _C("output C[m] = A[m] + "), _C("output C[m] = A[m] * * 2"), _C("output C[m] = = A[m]"),
            _C("output C[m] = ()"), _C("C[m] = "), _C("C[m] = = A[m]"),
        ],
    ),
    (
        "reduction-without-body",
        "a reduction has the form sum[axes] value",
        "write it as in `sum[k] A[m, k] * B[k, n]`; a condition follows the axes: `sum[k: k <= m] A[m, k]`",
        [_C("output C[m] = sum[k]"), _C("output C[m] = sum[] A[m]"), _C("output C[m] = sum A[m]"), _C("output C[m] = sum[k, ] A[m]")],
    ),
    (
        "reduction-inside",
        "a reduction inside a larger expression must be in parentheses",
        "write it as in `2.0 * (sum[k] A[m, k])`",
        [_C("output C[m] = 2.0 * sum[k] A[m, k]"), _C("output C[m] = A[m] + max[k] A[m, k]"), _C("output C[m] = -sum[k] A[k]")],
    ),
    (
        "input-without-type",
        "an input has the form name: type[dimensions]",
        "write it as in `input A: float32[m: M, k: K]`",
        [
            "computation f { input A }", "computation f { input A: }", "computation f { input A: float32 }",
            "computation f { input A: float32 output C[m] = 1.0 }", "computation f { input A[m: 4] }",
            "computation f { input A float32 }",
        ],
    ),
    (
        "schedule-without-computation",
        "a schedule must name its computation",
        "write it as in `schedule fast for matmul {`",
        ["schedule s {}", "schedule s { tile m=8 -> block }", "schedule s for { }", "schedule {}"],
    ),
    (
        "computation-without-name",
        "a computation must have a name and a body in braces",
        "write it as in `computation matmul(M, N, K) {`",
        ["computation {}", "computation f", "computation f(M)", "computation (M) {}", "computation f(M) output C[m] = 1.0"],
    ),
    (
        "statement-outside",
        "only `computation`, `schedule`, `use` and `when` can be at the top level of a file",
        "put steps into `schedule NAME for COMPUTATION {`, definitions into `computation NAME {`",
        ["tile m=8 -> block", "input A: float32[m: 4]", "C[m] = A[m]", "load A in shared", "output C[m] = 1.0", "x", "1"],
    ),
    (
        "layout-without-terms",
        "a layout lists its terms in parentheses",
        "write it as in `layout (k, m) pad 4`",
        [_S("load A in shared layout"), _S("load A in shared layout k, m"), _S("load A in shared layout ()"),
         _S("load A in shared pad")],
    ),
    (
        "modifier-form",
        "`ahead`, `behind`, `pad` and `swizzle` are written before their number, without `=`",
        "write it as in `ahead 1`",
        [_S("load A in shared ahead=1"), _S("load A in shared behind=1"), _S("load A in shared pad=1"),
         _S("load A in shared swizzle=64")],
    ),
    (
        "list-in-brackets",
        "the items of a list are separated by commas",
        "write it as in C[m, n], or max(a, b)",
        [
            _S("load A in shared layout (i j)"), _S("tile m=8 -> block order (i j)"), _C("output C[m] = max(a b)"),
            _C("output C[m] = A[m + 1 k]"), _C("output C[m n] = A[m]"), _C("output C[m, n] = A[m n]"), "computation f(M N) {}",
            _S("fuse mn=(m n)"),
        ],
    ),
    (
        "fuse-form",
        "`fuse` has the form name=(axis, axis)",
        "write it as in `fuse mn=(m, n)`",
        [_S("fuse m n"), _S("fuse mn"), _S("fuse mn=m"), _S("fuse (m, n)")],
    ),
    (
        "unfuse-form",
        "`unfuse` has the form axis=(name: extent, name: extent)",
        "write it as in `unfuse m=(a: 4, b: 8)`",
        [_S("unfuse m"), _S("unfuse m=(a, b)"), _S("unfuse m=4"), _S("unfuse m=(a=4, b=8)")],
    ),
    (
        "do-form",
        "`do` names an instruction, and pairs its axes in parentheses",
        "write it as in `do mma_m16n8k16 (m=m, n=n, k=k)`",
        [_S("do"), _S("do (m=m)"), _S("do mma m=m"), _S("do mma (m)"), _S("do mma (m=8)"), _S("do mma (m=m n=n)")],
    ),
    (
        "when-form",
        "`when` has the form condition { steps } else { steps }",
        "write it as in `when m <= 64 { split k=8 } else { split k=32 }`",
        [_S("when { split k=4 }"), _S("when m <= 64 split k=4"), _S("when m <= 64 { } else split k=4")],
    ),
    (
        "units-form",
        "`units` has the form level = count level",
        "write it as in `units block = 8 warp`",
        [_S("units block"), _S("units block 8 warp"), _S("units block = warp"), _S("units block = 8")],
    ),
    (
        "combiner-form",
        "a combiner has the form name(left: type; right: type) { results identity values }",
        "write it as in `combiner most(a: float32; b: float32) { max(a, b) identity 0.0 }`",
        [
            "computation f { combiner w { } }", "computation f { combiner w(a: float32) { a identity 0.0 } }",
            "computation f { combiner w(a: float32; b: float32) { a + b } }",
            "computation f { combiner w(a; b) { a + b identity 0.0 } }",
            "computation f { combiner w(a: float32; b: float32) { identity 0.0 } }",
        ],
    ),
]  # fmt: skip

# Names of terminals for failures without an example.
NAMED = {
    "NAME": "a name", "QUOTED": "a name", "INT": "a whole number", "NUMBER": "a number", "$END": "the end of the text",
    "RARR": "`->`", "LBRACE": "`{`", "RBRACE": "`}`", "LPAR": "`(`", "RPAR": "`)`", "LSQB": "`[`", "RSQB": "`]`",
    "COMMA": "`,`", "COLON": "`:`", "SEMICOLON": "`;`", "_SEPARATOR": "`;`", "EQUAL": "`=`", "__ANON_0": "`..`", "QMARK": "`?`",
    "AMPERSAND": "`&`", "COMPARE": "a comparison", "INVERT": "`~`", "BAR": "`|`", "CARET": "`^`", "SHIFT": "`<<`",
    "PLUS": "`+`", "MINUS": "`-`", "TIMES": "`*`", "DIVIDE": "`/`", "MODULO": "`%`",
}  # fmt: skip
_OPERATORS = {"OR", "AND", "COMPARE", "BAR", "CARET", "AMPERSAND", "SHIFT", "PLUS", "MINUS", "TIMES", "DIVIDE", "MODULO"}
_VALUES = {"INT", "NUMBER", "LPAR", "NAME", "QUOTED", "TRUE", "FALSE", "INFINITY", "NOT_A_NUMBER"}
MISSING, OPERATORS = (
    "two values follow each other without an operator between them",
    "write it as in `a * b`; each definition begins a line of its own",
)
MOST_WORDS = 6  # in the list of tokens that could follow
_OF_OTHERS = {  # keywords of other languages, and their equivalents here
    "return": "`output NAME[axes] = value`", "let": "NAME[axes] = value, without it", "def": "`computation NAME`",
    "loop": "`split`, or `tile ... -> thread`", "for": "`split`, or `tile ... -> thread`", "parallel": "`tile ... -> thread`",
    "if": "`when`; in a value, where(condition, a, b)", "var": "NAME[axes] = value, without it",
}  # fmt: skip


def explain(error: Any, word: str, span: Span, text: str, place: Callable[[Any], Span]) -> ParseError:
    """The error for a parser failure at a word (empty: the end of the text). place: maps a part of the tree to the file."""
    slip = _slip(error, text, place)
    at = slip.span if slip is not None and slip.span is not None else span
    if word == "//" or "//" in text.split("\n")[at.line - 1][: at.column - 1]:
        return ParseError("unknown-word", "this is not valid here", span=at, help="`#` begins a comment; `//` divides")
    if slip is not None:
        return slip
    if word in _OF_OTHERS:
        return ParseError("unknown-word", f"`{word}` is not valid here", span=span, help=_OF_OTHERS[word])
    if word == "?" and _OPERATORS & _accepted(error):
        return ParseError("unknown-word", "there is no operator `? :`", span=span, help="where(condition, a, b)")
    keyword = _meant(error, word)
    if keyword is not None:
        return ParseError("unknown-word", f"`{word}` is not valid here", span=span, help=f"did you mean `{keyword}`?")
    verb = _misspelt_verb(error, span, text)
    if verb is not None:
        return verb
    exact, by_state = _examples()
    state, kind = _place(error)
    known = exact.get((state, kind), by_state.get(state))
    if known is None and _VALUES <= _accepted(error):
        known = next(k for k, (code, *_) in enumerate(MESSAGES) if code == "value-missing")
    if known is not None:
        code, message, help, _ = MESSAGES[known]
        return ParseError(code, message, span=span, help=help)
    if getattr(getattr(error, "token", None), "type", "") in _VALUES and _OPERATORS & _accepted(error):
        return ParseError("operator-missing", MISSING, span=span, help=OPERATORS)
    found = f"`{word}` is not valid here" if word else "the text ends too early"
    return ParseError("unexpected", found, span=span, help=f"expected {_expected(error)}")


def _slip(error: Any, text: str, place: Callable[[Any], Span]) -> ParseError | None:
    """The cause before the word at which a declaration failed: a misspelt keyword, or two values in a row.

    Both parse as the target of a definition; only what follows shows that they are not.
    """
    stack = list(getattr(error.state, "value_stack", ()))
    done = next((n for n in reversed(range(len(stack))) if _kind(stack[n]).startswith(("__computation_star", "LBRACE"))), None)
    if done is None or len(stack) < done + 2 or _kind(stack[done + 1]) != "name":
        return None
    first, name = stack[done + 1], str(stack[done + 1].children[0])
    if len(stack) == done + 2 and {"EQUAL", "LSQB", "COMMA"} <= _accepted(error):
        meant = nearest(name, {*first_words(COMPUTATION), "allow", "only"})  # these may follow a definition
        help = _OF_OTHERS.get(name) or meant and f"did you mean `{meant}`?"
        if help:
            return ParseError("unknown-word", f"`{name}` is not valid here", span=place(first.first), help=help)
    before = getattr(stack[done], "children", ())  # the children of a brace or of a lone semicolon: none
    last = before[-1] if before else None
    if (
        last is None
        or _kind(last) != "definition"
        or last.last.end_line != first.first.line
        or _kind(last.children[-1]) != "expressions"
    ):
        return None
    if text[last.last.end_pos : first.first.start_pos].strip():
        return None
    value = last.children[-1].children[-1]
    return ParseError("operator-missing", MISSING, span=place(first.first), help=_instead(value, name))


def _misspelt_verb(error: Any, span: Span, text: str) -> ParseError | None:
    """The error for a misspelt verb at the beginning of the line: `tile m=8 -> block` accepts it as its number of units, and `split
    m=8` as a further axis, so the parser fails only at the following word."""
    line = text.split("\n")[span.line - 1]
    word = line[: span.column - 1].strip()
    before = getattr(error, "interactive_parser", None)
    if before is None or not word.isidentifier() or word in keywords().values():
        return None
    before = before.copy()  # the state before it consumed the word
    before.parser_state.state_stack.pop()
    before.parser_state.value_stack.pop()
    meant = nearest(word, first_words(SCHEDULE) & {keywords().get(t) for t in before.accepts()})
    column = line.index(word) + 1
    at = dataclasses.replace(span, column=column, end_column=column + len(word))
    return ParseError("unknown-word", f"`{word}` is not valid here", span=at, help=f"did you mean `{meant}`?") if meant else None


def _instead(value: Any, name: str) -> str:
    """The probable meaning of a value that is directly followed by a name."""
    from tilelang.grammar.values import FUNCTIONS, REDUCERS  # late: only for the text of an error

    if _kind(value) == "read":
        meant = nearest(str(value.children[0].children[0]), REDUCERS)
        if meant is not None:
            return f"did you mean `{meant}[...] {name}`?"
    if _kind(value) == "variable" and str(value.children[0]) in FUNCTIONS:
        return f"a function takes its values in parentheses: `{value.children[0]}({name}...)`"
    return OPERATORS


def _kind(part: Any) -> str:
    """The rule of a tree, or the terminal of a token."""
    return str(getattr(part, "data", None) or getattr(part, "type", ""))


def _place(error: Any) -> tuple[int, str]:
    """The parser's state at a failure, and the kind of the offending token."""
    return error.state.position, error.token.type if getattr(error, "token", None) is not None else ""


@functools.cache
def _examples() -> tuple[dict[tuple[int, str], int], dict[int, int]]:
    """The messages by the failures of their examples: by state and token; by state alone if all failures there have one message."""
    from lark.exceptions import UnexpectedInput  # late: only for the text of an error

    exact: dict[tuple[int, str], int] = {}
    by_state: dict[int, set[int]] = {}
    for number, (*_, texts) in enumerate(MESSAGES):
        for text in texts:
            try:
                lark().parse(text)
            except UnexpectedInput as error:
                state, kind = _place(error)
                exact.setdefault((state, kind), number)
                if not _OPERATORS & _accepted(error):  # many other tokens can follow a value
                    by_state.setdefault(state, set()).add(number)
    return exact, {state: numbers.pop() for state, numbers in by_state.items() if len(numbers) == 1}


def _accepted(error: Any) -> set[str]:
    """The terminals that could follow."""
    return set(getattr(error, "accepts", None) or getattr(error, "allowed", None) or getattr(error, "expected", None) or ())


def _keywords(error: Any) -> dict[str, str]:
    """The keywords that could follow, by terminal."""
    return {t: keywords()[t] for t in _accepted(error) if t in keywords()}


def _meant(error: Any, word: str) -> str | None:
    """The keyword that a word is probably a misspelling of."""
    if not word.isidentifier() or len(word) < 3 or word in keywords().values():
        return None
    return nearest(word, _keywords(error).values())


def _expected(error: Any) -> str:
    """The tokens that could follow, in words."""
    accepted = _accepted(error)
    words_there = _keywords(error)
    plain = [f"`{words_there[t]}`" for t in sorted(words_there) if t not in _OPERATORS]
    named = [NAMED[t] for t in sorted(accepted - set(words_there) - _OPERATORS) if t in NAMED]
    words = list(dict.fromkeys([*named, *plain]))
    if accepted & _OPERATORS:
        words.append("an operator")
    if len(words) > MOST_WORDS:
        words = [*words[: MOST_WORDS - 1], "..."]
    return " or ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words) or "something else"
