"""The parser and what it says of broken texts: the table of messages is its own test."""

import numpy as np
import pytest

from tilelang.core.identifiers import RESERVED
from tilelang.errors import Findings, ParseError, TileLangError
from tilelang.grammar import parse
from tilelang.grammar.messages import MESSAGES
from tilelang.grammar.parser import lark, parse_tree
from tilelang.grammar.scan import DEEPEST, MOST_BYTES

CASES = [(code, text) for code, _, _, texts in MESSAGES for text in texts]


@pytest.mark.parametrize("code, text", CASES)
def test_an_example_of_a_message_gets_that_message(code: str, text: str) -> None:
    with pytest.raises(ParseError) as found:
        parse_tree(text)
    message, help = next((m, h) for c, m, h, _ in MESSAGES if c == code)
    assert (found.value.code, found.value.message, found.value.help) == (code, message, help)
    assert found.value.span is not None and found.value.span.file == "<text>"


def test_messages_are_told_apart() -> None:
    assert len({code for code, *_ in MESSAGES}) == len({message for _, message, *_ in MESSAGES}) == len(MESSAGES)


def failure(text: str) -> str:
    with pytest.raises(TileLangError) as found:
        parse_tree(text, "gemm.tile")
    return str(found.value)


def test_a_caret_shows_the_word() -> None:
    assert failure("schedule s for f {\n  tile m=8, n=8 -> block\n}") == (
        "error[comma-between-sizes]: sizes are separated by spaces, not by commas\n"
        "  --> gemm.tile:2:11\n"
        "2 |   tile m=8, n=8 -> block\n"
        "  |           ^\n"
        "  = help: write it as in `tile m=8 n=8 -> block`"
    )


@pytest.mark.parametrize(
    "word, meant", [("accumlate", "accumulate"), ("vectorise", "vectorize"), ("lod", "load"), ("spilt", "split")]
)
def test_a_misspelt_verb(word: str, meant: str) -> None:
    text = failure(f"schedule s for f {{\n  {word} in register\n}}")
    assert text.startswith("error[unknown-word]") and f"did you mean `{meant}`?" in text


@pytest.mark.parametrize("before", ["tile m=8 -> block", "tile m=8 -> block 4", "split m=8", "load A in shared {\n  split m=8"])
@pytest.mark.parametrize(
    "line, meant", [("accumlate in register", "accumulate"), ("spilt k=8", "split"), ("tlie n=1 -> warp", "tile")]
)
def test_a_misspelt_verb_after_a_step_that_could_go_on(before: str, line: str, meant: str) -> None:
    """A count of units, or one more axis, could stand there; the fault is at the verb, not at the word after it."""
    with pytest.raises(ParseError) as found:
        parse_tree(f"schedule s for f {{\n  {before}\n  {line}\n}}" + "}" * before.count("{"))
    error = found.value
    assert error.code == "unknown-word" and error.help == f"did you mean `{meant}`?"
    assert error.span is not None and (error.span.line, error.span.column) == (3 + before.count("\n"), 3)


@pytest.mark.parametrize(
    "line", ["tile m=8 -> block order (\n  tile_k n)", "split m=8 of\n  unit 3", "fuse mn = (m,\n  fused n)"]
)
def test_a_name_inside_a_step_is_not_a_misspelt_verb(line: str) -> None:
    with pytest.raises(ParseError) as found:
        parse_tree(f"schedule s for f {{\n  {line}\n}}")
    assert "did you mean" not in (found.value.help or "")


@pytest.mark.parametrize(
    "text, code, column, help",
    [
        ("outpt Y[i] = A[i]", "unknown-word", 3, "did you mean `output`?"), ("inptu B: float32[i]", "unknown-word", 3, "`input`?"),
        ("Y[i] = A[i] alow tf32", "unknown-word", 15, "did you mean `allow`?"),
        ("output Y[i] = sun[i] A[i]\n  output Z[i] = A[i]", "operator-missing", 24, "did you mean `sum[...] A`?"),
        ("output Y[i] = exp A[i]", "operator-missing", 21, "exp(A...)"),
        ("output Y[i] = A[i] 2.0", "operator-missing", 22, "a * b"), ("output Y[i] = 2.0 A[i]", "operator-missing", 21, "a * b"),
        ("output Y[i] A[i]", "expected-equals", 15, ""), ("output Y[i] = A[i] ; Z[i] A[i]", "expected-equals", 29, ""),
    ],
)  # fmt: skip
def test_a_slip_is_shown_where_it_is(text: str, code: str, column: int, help: str) -> None:
    with pytest.raises(ParseError) as found:
        parse_tree(f"computation f {{\n  input A: float32[i: 4]\n  {text}\n}}")
    error = found.value
    assert error.code == code and error.span is not None and (error.span.line, error.span.column) == (3, column), error
    assert help in (error.help or "")


# a declaration, the code and the column of its fault, and its help
FOREIGN = [
    ("output Y[i] = 0x10 * A[i]", "number-form", 17, "as 16, 2.5"), ("output Y[i] = .5 * A[i]", "number-form", 17, "`0.5`"),
    ("output Y[i] = 5. * A[i]", "number-form", 17, "`5.0`"), ("output Y[i] = !A[i]", "stray-character", 17, "`not`"),
    ("output Y[i] = A[i] && A[i]", "stray-character", 22, "`and`"), ("output Y[i] = A[i] => 1", "stray-character", 22, "`>=`"),
    ("output Y[i] = A[i] ** 2", "stray-character", 22, "pow(x, 2.0)"), ("output Y[i] = A[i] ? 1 : 2", "unknown-word", 22, "where("),
    ("// twice", "unknown-word", 3, "`#` begins a comment"), ("Y[i] = A[i] // two times", "unknown-word", 22, "`#` begins a comment"),
    ("return A[i]", "unknown-word", 3, "`output NAME[axes] = value`"),
]  # fmt: skip


@pytest.mark.parametrize("text, code, column, help", FOREIGN)
def test_what_other_languages_write_has_a_mend(text: str, code: str, column: int, help: str) -> None:
    with pytest.raises(ParseError) as found:
        parse_tree(f"computation f {{\n  input A: float32[i: 4]\n  {text}\n}}")
    error = found.value
    assert error.code == code and error.span is not None and (error.span.line, error.span.column) == (3, column), error
    assert help in (error.help or "")


def test_numbers_keep_their_forms() -> None:
    text = "computation f(N = 8) { input A1: int8[i: 16] in 0..4 output Y[i] = 1e5 + 2.5e-3 + 1E+2 + A1[i] + 3 }"
    assert np.allclose(parse(text).computation().evaluate(A1=np.full(16, 2, np.int8)), 100105.0025, rtol=1e-6)


def test_declarations_may_be_parted_by_semicolons() -> None:
    one = "computation f {{ input A: float32[i: 4]{0} output Y[i] = A[i]{0} output Z[i] = A[i]{0} }}"
    assert parse(one.format(";")).computation().text == parse(one.format("")).computation().text


def test_the_end_of_a_text_is_that_of_its_last_word() -> None:
    text = failure("use  # an instruction\n\n")
    assert "gemm.tile:1:4" in text and "the text ends too early" in text


def test_all_faults_of_independent_items_are_told_in_order() -> None:
    text = "computation f {\n  input A\n}\nschedule s for f { tile m=4 }\nschedule t for f { split 4 }\n"
    with pytest.raises(Findings) as found:
        parse_tree(text, "three.tile")
    assert [e.code for e in found.value.errors] == ["input-without-type", "tile-without-level", "size-without-axis"]
    assert [e.span.line for e in found.value.errors if e.span] == [3, 4, 5]
    assert str(found.value).count("error[") == 3


@pytest.mark.parametrize(
    "text, code",
    [
        ("computation f {", "bracket-not-closed"), ("computation f { ] }", "bracket-mismatch"), ("}", "bracket-not-open"),
        ("computation f { input A: float32[m: 4; }", "bracket-mismatch"), ("schedule $", "stray-character"),
        ("\x00", "stray-character"),
        ("use x @", "stray-character"), ('computation f { "text" }', "stray-character"), ("(" * 201, "too-deep"),
        ("#" * (MOST_BYTES + 1), "too-large"), ("use `a b`", "unexpected"), ("use `", "unexpected"),
    ],
)  # fmt: skip
def test_what_is_refused_before_it_is_parsed(text: str, code: str) -> None:
    with pytest.raises(ParseError) as found:
        parse_tree(text)
    assert found.value.code == code


def test_the_limits_themselves_are_accepted() -> None:
    assert parse_tree("#" * MOST_BYTES).children == []
    assert parse_tree("#" * (MOST_BYTES + 1), limit_bytes=MOST_BYTES + 1).children == []
    deep = DEEPEST - 1
    made = parse(f"computation f {{ output Y[] = {'(' * deep}1.5{')' * deep} }}").computation()
    assert made.evaluate() == 1.5


def test_keywords_are_reserved_words() -> None:
    """Else a name could be taken for one where it is printed."""
    words = {t.pattern.value for t in lark().terminals if t.pattern.type == "str"}
    assert {w for w in words if w.isidentifier()} <= RESERVED


def test_the_grammar_has_no_colliding_terminals() -> None:
    """Every keyword is a NAME as well; which it is, the parser's state decides. Nothing else overlaps."""
    names = {t.name for t in lark().terminals}
    assert {"NAME", "QUOTED", "NUMBER", "INT"} <= names


def test_of_a_long_line_what_stands_around_the_fault_is_shown() -> None:
    text = failure("computation f { " + "a[] = 1.0 " * 300 + "tile m=4 " + "b[] = 1.0 " * 300 + "}")
    line, caret = text.splitlines()[2:4]
    assert len(line) < 220 and line[caret.index("^") :].startswith("tile m=4") and "..." in line


def test_a_declaration_after_semicolons_alone() -> None:
    assert "error[" in failure("computation Y {\n  ; X: float32[j: 4]\n  output Y[j] = 0.0\n}")
