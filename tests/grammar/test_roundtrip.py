"""Text and language are the same: printing and reading give back what was there, for whatever the random generators make."""

import math
import re
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tilelang as tl
from tilelang.computations.computation import Computation
from tilelang.core.identifiers import RESERVED
from tilelang.errors import TileLangError
from tilelang.grammar import format_text, parse
from tilelang.grammar.parser import SCHEDULE, first_words, keywords
from tilelang.schedules.schedule import Schedule
from tilelang.testing.case import draw_case
from tilelang.testing.choice import Seeded
from tilelang.testing.language import draw_program, draw_text, program_text


def read_back(made: Schedule) -> Schedule:
    return parse(made.computation.text + made.text).schedule()


def check(made: Schedule) -> None:
    """The text, the hash, the steps, and the definitions as they were elaborated."""
    again = read_back(made)
    assert again.computation.text == made.computation.text
    assert again.text == made.text and again.hash == made.hash
    assert [str(d.values) for d in again.computation.definitions] == [str(d.values) for d in made.computation.definitions]
    assert [repr(s) for s in again.steps] == [repr(s) for s in made.steps]


@pytest.mark.slow
@given(st.integers(0, 2**32))
def test_random_schedules(seed: int) -> None:
    try:
        made = draw_case(Seeded(seed)).schedule
    except TileLangError:
        return  # a draw that is refused while it is made
    check(made)


@pytest.mark.slow
@given(st.integers(0, 2**32))
def test_formatting_changes_no_word(seed: int) -> None:
    try:
        made = draw_case(Seeded(seed)).schedule
    except TileLangError:
        return
    text = made.computation.text + made.text + "\n"
    once = format_text(text)
    assert "".join(once.split()) == "".join(text.split())
    assert format_text(once) == once
    assert parse(once).schedule().hash == made.hash


@pytest.mark.slow
@given(st.integers(0, 2**32))
def test_programs_of_every_form(seed: int) -> None:
    made, steps = draw_program(Seeded(seed))
    text = program_text(made, steps)
    again, read = parse(text).steps()
    assert again.text == made.text and [repr(s) for s in read] == [repr(s) for s in steps]
    once = format_text(text)
    assert format_text(once) == once and [repr(s) for s in parse(once).steps()[1]] == [repr(s) for s in steps]


@given(st.integers(0, 2**32))
def test_what_the_grammar_derives_is_parsed_and_laid_out(seed: int) -> None:
    text = draw_text(Seeded(seed))
    once = format_text(text)
    assert "".join(once.split()) == "".join(text.split()) and format_text(once) == once


@pytest.mark.slow
def test_what_is_drawn_has_every_word_of_the_language() -> None:
    derived = {word for seed in range(300) for word in draw_text(Seeded(seed)).split()}
    assert set(keywords().values()) | {"image", "?", "...", "`order`"} <= derived
    printed = {w for seed in range(300) for w in re.findall(r"[`\w]+|\?", program_text(*draw_program(Seeded(seed))))}
    assert first_words(SCHEDULE) <= printed and {"swizzle", "pad", "on", "once", "stream", "of", "ahead", "behind"} <= printed
    assert {"allow", "only", "outputs", "image", "registers", "as", "`order`", "?", "peel", "unroll", "else"} <= printed


def test_a_computation_with_everything() -> None:
    i, j, k = tl.axes(i=3, j=4, k=5)
    X, ids = tl.input("X", tl.float16, i, j), tl.input("ids", tl.int32, k, range=(0, 4))
    table = tl.input("order", tl.float64, p=4, q=6)  # a name that is a word of the language
    most = tl.reduce(lambda a, b: tl.maximum(a, b), 0.0, tl.abs(X[i, j]), over=j, name="most")
    a = tl.define("a", most, i)
    b = tl.define("b", tl.sum(tl.pad(table[ids[k], i - 1], 1.5), over=k, where=k < 4), i, allow=("tf32", "reorder"))
    c = tl.define("c", tl.where(a[i] > 0.25, tl.cast(2, tl.float16), a[i] - -1.0), i)
    d = tl.define("d", tl.argmin(X[i, j], over=(i, j), where=X[i, j] > 0))
    e = tl.define("e", (tl.sum(X[i, j], over=j) + 1) * tl.max(X[i, j], over=j) - tl.cast(d[()], tl.float16), i)
    f = tl.define("f", ~(ids[k] << 2) // 3 % 5 ^ (ids[k] & 1 | 6), k)
    g = tl.define("g", tl.cast(-tl.cast(3, tl.float64), tl.float32) + tl.cast(True, tl.float32), k)
    h = tl.define("h", (X[i, j] != 0) & ~((X[i, j] < 1) | (i == 2)), i, j)
    outputs = (h, g, f, e, c, b)  # in another order than they were defined
    check(tl.schedule(tl.computation("everything", outputs)))


def test_combiners_of_one_name_are_told_apart() -> None:
    i, j = tl.axes(i=3, j=4)
    X = tl.input("X", tl.float32, i, j)
    a = tl.define("a", tl.reduce(lambda p, q: tl.maximum(p, q), 0.0, tl.abs(X[i, j]), over=j, name="most"), i)
    b = tl.define("b", tl.reduce(lambda p, q: tl.minimum(p, q), 9e9, X[i, j], over=j, name="most"), i)
    text = tl.computation("two", (a, b)).text
    assert "combiner most(" in text and "combiner most_2(" in text
    assert parse(text).computation().text == text


@pytest.mark.parametrize("name", ["most", "lambda", "a b", None])
def test_stages_by_combiners_of_one_name_are_told_apart(name: str | None) -> None:
    """A schedule names the reductions inside an expression, whatever the text calls their combiners."""
    i, j = tl.axes(i=3, j=4)
    X = tl.input("X", tl.float32, i, j)
    a = tl.define("a", 1 + tl.reduce(lambda p, q: tl.maximum(p, q), 0.0, tl.abs(X[i, j]), over=j, name=name), i)
    b = tl.define("b", a[i] * tl.reduce(lambda p, q: tl.minimum(p, q), math.inf, X[i, j], over=j, name=name), i)
    computation = tl.computation("two", b)
    back = parse(computation.text).computation()
    assert back.hash == computation.hash
    assert [t.name for d in back.definitions for t in d.tensors] == [t.name for d in computation.definitions for t in d.tensors]
    made = tl.schedule(computation).tile(i=2).to("block").compute("a_reduce", "register").compute("b_reduce", "register")
    assert read_back(made).hash == made.hash


def test_every_word_can_be_a_name() -> None:
    for word in ("sum", "tile", "load", "output", "true", "order", "ahead", "can", "cast", "float32", "exp"):
        axis = tl.axes(**{word: 8})
        tensor = tl.define("Y", tl.input("X", tl.float32, axis)[axis] * 2, axis)
        check(tl.schedule(tensor).tile(**{word: 4}).to("block").load("X", "shared").vectorize(**{word: 4}))
        i = tl.axes(i=8)
        check(tl.schedule(tl.define(word, tl.input("X", tl.float32, i)[i] * 2, i)).tile(i=4).to("block"))
        if word not in ("can", "cast", "float32", "exp"):
            check(tl.schedule(tl.define("Y", tl.input(word, tl.float32, i)[i] * 2, i)).tile(i=4).to("block").load(word, "shared"))


@pytest.mark.parametrize(
    "name", [*sorted(RESERVED), "Ω", "名", "ß", "_", "__", "e1", "ſ", "x\u0302", "\u212e", "a b", "1a", "x²"]
)
def test_a_name_is_refused_or_read_back(name: str) -> None:
    i, k = tl.axes(i=8, k=3)
    X = tl.input("X", tl.float32, i, k)
    for role in ("tensor", "axis", "dimension", "computation", "definition"):
        named = {"tensor": "X", "axis": "i", "dimension": "p", "computation": "c", "definition": "Y"} | {role: name}
        try:
            i = tl.axes(**{named["axis"]: 8})
            dims: dict[str, Any] = {named["dimension"]: 8, "q": 3}
            X = tl.input(named["tensor"], tl.float32, **dims)
            Y = tl.define(named["definition"], X[i, 0] + tl.max(X[i, k], over=k), i)
            text = tl.computation(named["computation"], Y).text
        except tl.ComputationError as refused:
            assert refused.code in ("name", "range")  # `range=` of tl.input
            continue
        assert parse(text).computation().text == text


def test_all_steps_and_their_forms() -> None:
    """Every verb, as the builder makes it; also what no target lowers yet."""
    m, n, k = tl.axes(m=64, n=64, k=64)
    A, B = tl.input("A", tl.float32, m, k), tl.input("B", tl.float32, k, n)
    C: Computation = tl.computation("C", tl.define("C", tl.sum(A[m, k] * B[k, n], over=k), m, n))
    plan = (
        tl.schedule(C).units(block=tl.warps(8)).tile(m=tl.hole, n=32)
        .to("block", count=7, order=tl.layout(lambda m, n: (n // 8, m, n % 8)))
        .accumulate("register", stream=True, behind=1, steps=tl.move().via("shared", layout=tl.layout().swizzle(128)).split(n=4))
        .unfuse(k={"k1": 8, "k2": 8}).fuse(kk=("k1", "k2")).split(kk=16, unroll=True)
        .load(A[m, k], "shared", layout=tl.layout("k", "m").pad(4), ahead=2, on="producer", once=True, steps=...)
        .when((tl.extent("m") <= 64) & tl.can("async_copy"), tl.move().load("B", "shared", ahead=1), tl.move().load("B", "shared"))
        .split(kk=4, peel=True).tile(m=4, n=tl.hole).to("thread", count=tl.hole)
        .do("mma_m16n8k16", m="m", n="n", k="kk")
    )  # fmt: skip
    assert read_back(plan).text == plan.text
    assert read_back(plan.prefix(9).rest()).text == plan.prefix(9).rest().text


def test_a_combiner_with_a_shipped_name_stays_its_own() -> None:
    i, j = tl.axes(i=3, j=4)
    X = tl.input("X", tl.float32, i, j)
    own = tl.computation("Y", tl.define("Y", tl.reduce(lambda a, b: a * b, 1.0, X[i, j], over=j, name="sum"), i))
    shipped = tl.computation("Y", tl.define("Y", tl.sum(X[i, j], over=j), i))
    assert own.hash != shipped.hash and parse(own.text).computation().text == own.text
    kernel = tl.compile(own)
    assert kernel.check() and kernel(np.full((3, 4), 2, np.float32)).tolist() == [16, 16, 16]


def test_numbers_are_not_computed_when_they_are_read() -> None:
    i = tl.axes(i=3)
    one, two = tl.cast(1.0, tl.float32), tl.cast(2, tl.int64)
    value = (one + 2.0) * tl.where(i < 2, one, one - 1.0) + tl.cast(tl.maximum(two, 5), tl.float32) + tl.cast(two < 3, tl.float32)
    check(tl.schedule(tl.define("Y", value + tl.input("X", tl.float32, i)[tl.cast(0, tl.int64) + 1], i)))
