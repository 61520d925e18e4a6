"""All that is wrong with a text is told at once, in its order, at its place; and what depends on a fault is not."""

import sys

import pytest

import tilelang as tl
from tilelang.errors import MOST_FINDINGS, TileLangError, each, meant
from tilelang.grammar import parse
from tilelang.grammar.values import Values
from tilelang.schedules.schedule import Schedule

HEAD = "computation f(N = 64) {\n  input X: float32[i: N, j: 64]\n  output Y[i] = sum[j] X[i, j]\n}\n"


def told(text: str) -> list[tuple[str, int]]:
    """The codes and lines of all findings."""
    found = parse(text, "f.tile", faulty=True).findings({}, tl.load_profile("sapphire_rapids"))
    return sorted(((e.code, e.span.line if e.span else 0) for e in found), key=lambda f: f[1])


def scheduled(*lines: str) -> str:
    """A schedule for HEAD whose first line is line 6."""
    return HEAD + "\n".join(["schedule s for f {", *lines, "}"])


def test_a_fault_of_one_item_hides_no_error_of_meaning_of_another() -> None:
    text = "computation g { input X float32[i: 4] output Y[i] = X[i] }\n" + HEAD + "schedule s for f { split q=4 }\n"
    assert told(text + "schedule t for g { split z=4 }") == [("input-without-type", 1), ("unknown-axis", 6)]


def test_nothing_can_be_asked_of_a_text_with_faults() -> None:
    document = parse(HEAD + "schedule s for f { tile }", faulty=True)
    for ask in (document.computation, document.schedule, document.steps):
        with pytest.raises(TileLangError) as found:
            ask()
        assert found.value.span is not None and found.value.span.line == 5


@pytest.mark.parametrize(
    "text, faults",
    [
        ("computation f {\n input X float32[i: 4]\n a[i] = = 1.0\n output\n b[i] = 1.0\n output c[i] = 2.0 * }",
         [("input-without-type", 2), ("value-missing", 3), ("value-missing", 6)]),
        (scheduled("tile i=4 j", "load X in shared { split 4", "vectorize 2 }", "split j=8; vectorise j=4"),
         [("size-without-axis", 7), ("size-without-axis", 7), ("size-without-axis", 8), ("unknown-word", 9)]),
        ("when true {\n computation f { input A }\n} else {\n computation g {\n output Y[] = }\n}", [("input-without-type", 2)]),
        ("when true {\n computation f { input A }\n computation g {\n output Y[] = }\n}",
         [("input-without-type", 2), ("value-missing", 4)]),
        ("split i=4\ncomputation f { output Y[] = }", [("statement-outside", 1), ("value-missing", 2)]),
        ("computation f(N=64 M=64) {\n output Y[] = }", [("unexpected", 1), ("value-missing", 2)]),
    ],
)  # fmt: skip
def test_faults_of_several_statements_of_an_item(text: str, faults: list[tuple[str, int]]) -> None:
    assert told(text) == faults


@pytest.mark.parametrize(
    "lines, faults",
    [
        (["load Xx in shared", "vectorize q=7", "tile j=8 -> thraed"],
         [("unknown-tensor", 6), ("unknown-axis", 7), ("step-after-leaf", 8)]),
        (["load Xx in shared", "tile i=8 i=8 -> block", "load X in shared pad Q"],
         [("unknown-tensor", 6), ("axis-twice", 7), ("unknown-name", 8)]),
        (["tile i=8 q=4 -> block", "load X in shared", "split i=16", "split z=1"], [("unknown-axis", 6), ("unknown-axis", 9)]),
        (["fuse p=(i, q)", "tile p=8 -> block", "unfuse j=(a: 3, b: 5)", "split a=2"], [("unknown-axis", 6), ("unfuse-product", 8)]),
        (["tile i=8 -> block", "load X in shared { split q=4; split z=4 }"], [("unknown-axis", 7), ("unknown-axis", 7)]),
        (["load X in shared { split q=4 }"], [("memory-above-block", 6), ("unknown-axis", 6)]),
        (["load X in shared { split j=2.5; split i=1.5 }"], [("not-a-number", 6), ("not-a-number", 6), ("memory-above-block", 6)]),
        (["tile i=2.5 -> thread", "tile i=4 -> block"], [("not-a-number", 6)]),
    ],
)  # fmt: skip
def test_faults_of_several_steps(lines: list[str], faults: list[tuple[str, int]]) -> None:
    assert sorted(told(scheduled(*lines))) == sorted(faults)


def test_steps_built_in_python_are_refused_together() -> None:
    steps = parse(scheduled("load Xx in shared", "split q=4")).steps()
    with pytest.raises(tl.Refusal) as found:
        Schedule(*steps)
    assert [e.code for e in each(found.value)] == ["unknown-tensor", "unknown-axis"]


@pytest.mark.parametrize(
    "text",
    [
        "computation f {\n" + "".join(f"  output Y{n}[] = Z{n}\n" for n in range(30)) + "}",
        "computation f {\n" + "".join(f"  output Y{n}[] = = 1.0\n" for n in range(30)) + "}",
        scheduled(*(f"load Z{n} in shared" for n in range(30))),
        "".join(f"computation f{n} {{ input }}\n" for n in range(30)),
        "".join(f"use Z{n}\n" for n in range(30)),
    ],
)
def test_of_many_faults_it_is_said_that_there_are_more(text: str) -> None:
    with pytest.raises(TileLangError) as found:
        parse(text).schedule()
    assert len(each(found.value)) == MOST_FINDINGS
    assert str(found.value).count("there are more") == 1 == str(each(found.value)[-1]).count("there are more")


def test_after_many_faults_no_more_are_looked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def use(name: str) -> None:  # compares each with the names of all instructions
        asked.append(name)
        raise tl.Refusal("unknown-instruction", f"there is no instruction `{name}`")

    monkeypatch.setattr(sys.modules["tilelang.instructions.instruction"], "use", use)
    with pytest.raises(TileLangError):
        parse("use Zz\n" * 1000)
    assert len(asked) == MOST_FINDINGS + 1


@pytest.mark.parametrize("between", ["\f", "\u2028", "\x85", "\v", "\x1c"])
def test_the_line_shown_is_the_line_counted(between: str) -> None:
    with pytest.raises(TileLangError) as found:
        parse(f"# a{between}page\ncomputation f {{\n\toutput Y[] = Z\n}}", "f.tile").computation()
    assert "f.tile:3:15\n3 |  output Y[] = Z\n  |               ^\n" in str(found.value)


def test_a_carriage_return_alone_is_refused() -> None:
    with pytest.raises(TileLangError, match="a carriage return alone does not end a line"):
        parse("computation f { # of an old file\r output Y[] = 1.0\r}")
    assert parse("computation f {\r\n output Y[] = 1.0 # one\r\n}\r\n").computation()


@pytest.mark.parametrize(
    "text", ["usef", "computationf { output Y[] = 1.0 }", "tilelang1", "computation f { outputY[] = 1.0 axisq: 4 }"]
)
def test_keywords_end_where_their_word_ends(text: str) -> None:
    with pytest.raises(TileLangError) as found:
        parse(text)
    assert found.value.code in ("statement-outside", "unknown-word", "expected-equals")


def test_conditions_are_decided_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """However many entries of one name there are, each of their conditions is computed a few times."""
    count = 0
    value = Values.value

    def counted(self: Values, tree: object) -> object:
        nonlocal count
        count += 1
        return value(self, tree)

    n = 60
    computation, schedule = "computation f(M) { input X: float32[i: M] output Y[i] = X[i] }", "schedule s for f { }"
    document = parse("".join(f"when M == {k} {{ {computation} {schedule} }}\n" for k in range(1, n)), "f.tile")
    monkeypatch.setattr(Values, "value", counted)
    assert document.findings({"M": 7}, tl.load_profile("sapphire_rapids")) == []
    assert count < 100 * n


def test_a_mend_lists_no_more_names_than_can_be_read() -> None:
    assert meant("q", [f"tensor_{n}" for n in range(10_000)]).endswith("tensor_11, ... (10000 in all)")


def test_a_slash_between_axes_is_no_division_that_rounds() -> None:
    """As in Python: whole numbers are divided by `//`; in an index, an extent and a layout `/` means it."""
    with pytest.raises(TileLangError) as found:
        parse("computation f { input X: float32[m: 8] output Y[m] = m / 2 }").computation()
    assert found.value.code == "operand-type"
    assert parse("computation f { input X: float32[m: 8] output Y[m] = X[m / 2] }").computation()
