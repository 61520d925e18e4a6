"""What a text means: parameters, computations, schedules, conditions; and every error of meaning at its place."""

from pathlib import Path

import numpy as np
import pytest

import tilelang as tl
from tilelang.errors import Findings, ParseError, TileLangError
from tilelang.grammar import Document, parse, read

MATMUL = """tilelang 1
computation matmul(M, N, K = M / 2, dtype = float32) {
  input A: dtype[m: M, k: K]
  input B: dtype[k: K, n: N]
  output C[m, n] = sum[k] A[m, k] * B[k, n]
}
schedule plain(size = 8) for matmul {
  tile m=size n=2*size -> block
  split k=K/4
  load B in shared
}
schedule rows for matmul { tile m=1 -> block }
"""


def test_parameters_are_bound_to_numbers_and_types() -> None:
    document = parse(MATMUL)
    c = document.computation(M=16, N=8, dtype=tl.float16)
    assert [t.shape for t in c.inputs] == [(16, 8), (8, 8)] and c.inputs[0].dtype is tl.float16
    made = document.schedule("plain", M=16, N=8, K=32, size=4)
    assert [str(s) for s in made.steps] == ["tile m=4 n=8 -> block", "split k=8", "load B in shared"]
    assert document.parameters(document.computations["matmul"][0]) == ("M", "N", "K", "dtype")


def test_a_text_runs() -> None:
    kernel = tl.compile(parse(MATMUL).schedule("plain", M=37, N=21, K=19))
    a, b = np.ones((37, 19), np.float32), np.ones((19, 21), np.float32)
    assert (kernel(a, b) == 19).all() and kernel.check()


def test_steps_know_their_place() -> None:
    made = parse(MATMUL, "gemm.tile").schedule("plain", M=16, N=8)
    assert [str(getattr(s, "span", None)) for s in made.steps] == ["gemm.tile:8:3", "gemm.tile:9:3", "gemm.tile:10:3"]
    with pytest.raises(tl.Refusal) as refused:
        parse(MATMUL.replace("load B in shared", "load B in sharde"), "gemm.tile").schedule("plain", M=16, N=8).check()
    assert "gemm.tile:10:3" in str(refused.value) and "10 |   load B in sharde\n" in str(refused.value)


def test_text_and_builder_say_the_same() -> None:
    m, n, k = tl.axes(m=16, n=8, k=8)
    A, B = tl.input("A", tl.float32, m, k), tl.input("B", tl.float32, k, n)
    c = tl.computation("matmul", tl.define("C", tl.sum(A[m, k] * B[k, n], over=k), m, n))
    assert parse(MATMUL).computation(M=16, N=8).hash == c.hash
    by_hand = tl.schedule(c).tile(m=8, n=16).to("block").split(k=2).load("B", "shared")
    assert parse(MATMUL).schedule("plain", M=16, N=8).hash == by_hand.hash


def test_conditions_choose_steps_and_schedules() -> None:
    text = (
        MATMUL
        + """
    when M >= 64 and can(async_copy) { schedule wide for matmul { split k=2 } }
    else {
      schedule wide for matmul {
        tile m=4 -> block
        when m < 8 { split k=1 } else { split k=4 }
        when N > 4 { load A in shared }
      }
    }
    """
    )
    assert [str(s) for s in parse(text).schedule("wide", M=64, N=8, profile=tl.load_profile("simulated")).steps] == ["split k=2"]
    steps = parse(text).schedule("wide", M=64, N=8, profile=tl.load_profile("sapphire_rapids")).steps
    assert [str(s) for s in steps[1:]] == ["when m < 8 { split k=1 } else { split k=4 }", "load A in shared"]
    assert tl.compile(parse(text).schedule("wide", M=16, N=8)).check()


def test_conditions_choose_computations() -> None:
    double, triple = (f"computation {name}(M) {{ input X: float32[i: M] output Y[i] = X[i] + 1.0 }}" for name in "fg")
    document = parse(f"when M < 8 {{ {double} }} else {{ {triple} schedule s for g {{ tile i=4 -> block }} }}", "f.tile")
    assert [document.computation(M=m).name for m in (4, 8)] == ["f", "g"]
    assert [document.schedule(M=m).text for m in (4, 8)] == ["schedule for f { }", "schedule for g {\n  tile i=4 -> block\n}"]
    with pytest.raises(ParseError, match="the conditions around the computation `f` do not hold") as found:
        document.computation("f", M=8)
    assert found.value.code == "unknown-computation" and found.value.span is not None and found.value.span.column == 14
    with pytest.raises(ParseError, match="the conditions around the schedule `s` do not hold"):
        document.schedule("s", M=4)
    asked = parse(f"when can(async_copy) {{ {double} }}", "f.tile")
    assert asked.computation(M=8, profile=tl.load_profile("simulated")).name == "f"
    with pytest.raises(ParseError, match="the conditions around its computations do not hold"):
        asked.computation(M=8)


def test_computations_of_one_name_under_conditions() -> None:
    one, two = (f"computation f(N) {{ input X: float32[i: N] output Y[i] = X[i] + {v} }}" for v in ("1.0", "2.0"))
    document = parse(f"when N < 8 {{ {one} }} else {{ {two} }} schedule s for f {{ tile i=4 -> block }}", "f.tile")
    for n, value in ((4, "1.0"), (8, "2.0")):
        assert document.computation(N=n).text.endswith(f"X[i] + {value}\n}}\n")
        assert document.schedule("s", N=n).computation.hash == document.computation("f", N=n).hash
    parse(f"{one} when N < 8 {{ schedule s for f {{ }} }} else {{ schedule s for f {{ tile i=4 -> block }} }}").schedule("s", N=8)


def test_functions_of_numbers_in_parameters_and_sizes() -> None:
    text = "computation f(N = max(2, 3), P = pow(2, 3)) { input X: float32[i: N + abs(-P)] output Y[i] = X[i] }"
    made = parse(text + "schedule s for f { tile i=min(N, 4) -> block }").schedule()
    assert made.computation.inputs[0].shape == (11,) and str(made.steps[0]) == "tile i=3 -> block"
    for value in ("pow(3, 999999999)", "pow(0, -1)", "pow(-8.0, 0.5)", "pow(1e300, 2.0)"):
        with pytest.raises(ParseError, match="pow") as found:
            parse(f"computation f(N = {value}) {{ output Y[] = 1.0 }}").computation()
        assert found.value.code == "number"


def test_a_schedule_is_there_where_its_computation_is() -> None:
    """What stands outside of the condition around its computation goes with it."""
    text = "when M < 8 { computation f(M) { input X: float32[i: M] output Y[i] = X[i] } } schedule s for f { tile i=4 -> block }"
    assert parse(text).schedule("s", M=4).text == "schedule for f {\n  tile i=4 -> block\n}"
    with pytest.raises(ParseError, match="the conditions around the schedule `s` do not hold"):
        parse(text).schedule("s", M=8)


def test_axes_come_before_parameters_in_layouts_and_conditions() -> None:
    text = "computation f(i) { input X: float32[i: 2 * i] output Y[i] = X[i] * 2.0 } schedule for f { tile i=i / 2 -> block "
    made = parse(text + "when 40 < i { load X in shared layout (i % 4, i / 4) } }").schedule(i=32)
    assert [str(s) for s in made.steps] == ["tile i=16 -> block", "when 40 < i { load X in shared layout (i % 4, i / 4) }"]
    assert tl.compile(made).check() and "X_shared" in tl.compile(made).source


def test_what_a_device_can_do_is_asked_when_it_is_known() -> None:
    steps = "tile m=4 -> block split k=4 when can(async_copy) { load A in shared ahead 2 } else { load A in shared }"
    text = f"{MATMUL} schedule s for matmul {{ {steps} }}"
    made = parse(text).schedule("s", M=16, N=16, K=16)
    for profile, ring in (("simulated", 3), ("sapphire_rapids", 0)):
        program = tl.compile(made, tl.target("opencl", profile=profile)).program
        (shared,) = [b for b in program.kernels[0].buffers if b.name == "A_shared"]
        assert shared.ring == ring


def test_outputs_in_another_order() -> None:
    text = "computation two { input X: int32[i: 4] output a[i] = X[i] + 1 output b[i] = X[i] * 2 outputs b, a }"
    assert [t.name for t in parse(text).computation().outputs] == ["b", "a"]


def test_a_file_is_read(tmp_path: Path) -> None:
    path = tmp_path / "gemm.tile"
    path.write_text(MATMUL)
    assert isinstance(read(path), Document)
    for name, raw, code in (
        ("gone", None, "file"),
        ("binary", b"\xff\xfe\x00", "not-text"),
        ("large", b"#" * 300_000, "too-large"),
    ):
        if raw is not None:
            (tmp_path / name).write_bytes(raw)
        with pytest.raises(ParseError) as found:
            read(tmp_path / name)
        assert found.value.code == code
    assert read(tmp_path / "large", limit_bytes=300_000).computations == {}


def body(text: str) -> str:
    return f"computation f(N = 8) {{\n  input X: float32[i: N, j: 4]\n  input ids: int32[i: N] in 0 .. 4\n  {text}\n}}\n"


def steps(text: str) -> str:
    return body("output Y[i] = sum[j] X[i, j]") + f"schedule s for f {{\n  {text}\n}}\n"


def lowered(text: str) -> str:
    return body(text) + "schedule for f { }"


# text, code, the column in line 4 (of bodies) or 7 (of steps) that is shown, a part of the help
MEANING = [
    (body("output Y[i] = Z[i, j]"), "unknown-tensor", 17, "one of X, ids"),
    (body("output Y[i] = sum[j] x[i, j]"), "unknown-tensor", 24, "did you mean `X`?"),
    (body("output Y[k] = 1.0"), "unknown-axis", 12, "one of i, j"),
    (body("output Y[i] = sum[q] X[i, q]"), "unknown-axis", 21, "one of i, j"),
    (body("output Y[i] = ex(X[i, 0])"), "unknown-function", 17, "did you mean `exp`?"),
    (body("output Y[i] = M * 1.0"), "unknown-name", 17, ""),
    (body("output Y[i] = cast(X[i, 0], flaot32)"), "unknown-type", 31, "did you mean `float32`?"),
    (body("output Y[i] = cast(X[i, 0], 2)"), "arguments", 17, "cast(A[m, k], float32)"),
    (body("output Y[i] = where(X[i, 0], 1.0)"), "arguments", 17, "where(x > 0, x, 0.0)"),
    (body("output Y[i] = where(0 <= i < 4, 1.0, 0.0)"), "chained-comparison", 30, "write `0 <= i and i < 4`"),
    (body("output Y[i] = can(fly)"), "unknown-function", 17, ""),
    (body("output Y[i] = X * 2.0"), "whole-tensor", 17, "read one element: X[i, j]"),
    (body("output Y[i] = X[i]"), "rank", 17, "X[i, j]"),
    (body("output Y[i, j] = X[i + 1, j]"), "read-outside", 3, ""),
    (body("output Y[i, j] = X[i, j] and true"), "operand-type", 20, "compare first"),
    (body("output Y[i] = ids[i] << 99"), "number-out-of-range", 17, ""),
    (body("output Y[i] = 1 << 4096"), "number", 17, ""),
    (body("output Y[i] = ids[i] + (1 << 4096)"), "number", 27, ""),
    (body(f"output Y[i] = {'9' * 60}"), "number-out-of-range", 17, ""),
    (body("output Y[i] = 1 / 0"), "number", 17, ""),
    (body(f"output Y[i] = {'-' * 250}1.0"), "too-deep", None, ""),
    (body("output Y[i] = reduce w[j] X[i, j]"), "unknown-combiner", 17, ""),
    (body("output Y[i] = sum[j] (X[i, j], 1.0)"), "reduce-members", 17, "reduce NAME[axes] (a, b)"),
    (body("combiner w(a: float32; b: float32) { a + b, a identity 0.0 }"), "reduce-members", 3, "one result and one identity"),
    (body("combiner w(a: float32; a: float32) { a identity 0.0 }"), "reduce-members", 3, "combiner w(a: float32; b: float32)"),
    (
        body("combiner w(a: float32; b: float32) { a - b identity 0.0 } output Y[i] = reduce w[j] X[i, j]"),
        "combiner-refuted",
        61,
        "",
    ),
    (body("combiner w(a: float32; b: int8) { a + b identity 0.0 } output Y[i] = X[i, 0]"), "combiner-types", 3, "the same types"),
    (
        body("combiner w(a: float64; b: float64) { a + b identity 0.0 } output Y[i] = reduce w[j] X[i, j]"),
        "combiner-types",
        75,
        "declare (float32)",
    ),
    (
        body("combiner w(a: bool; b: bool) { a or b identity false } output Y[i] = reduce w[j] X[i, j] > 0.0"),
        "combiner-types",
        72,
        "declare (int32), as conditions",
    ),
    (body("output Y[i] = 1e999 * X[i, 0]"), "number-out-of-range", 17, "`inf`"),
    (body("output a[i] = 1.0 outputs a outputs a"), "outputs-twice", 31, "one list"),
    (body("output b[i] = 1.0 output a[i] = 1.0 outputs a"), "output-not-listed", 39, "list it too"),
    (body("input W: flaot32[w: 4] output a[w] = W[w]"), "unknown-type", 12, "float32"),
    (body("input W: int8[w: 4] in 0 .. 999 output a[w] = 1.0"), "range", 3, ""),
    (body("input W: float32[w: Q] input V: int8[w] output a[w] = 1.0"), "unknown-name", 23, ""),
    (body("output a[i], b[j] = 1.0, 2.0"), "define-members", 3, ""),
    (body("output a[i], b[i] = 1.0"), "define-members", 3, "one name for each expression"),
    (body("output X[i] = 1.0"), "name-twice", 10, "another name"),
    (body("output a[i] = 1.0 allow speed"), "licence", 3, "tf32"),
    (body("output a[i], b[i] = 1.0, 2.0 only c"), "unknown-tensor", 37, "one of a, b"),
    (body("output a[i] = 1.0 outputs a, b"), "unknown-tensor", 32, ""),
    (body("input W: float32[w] output a[i] = 1.0"), "extent", 20, "w: 64"),
    (body("input W: float32[w: 2.5] output a[i] = 1.0"), "extent", 23, ""),
    (body("input W: float32[w: 4] layout (w) output a[i] = 1.0"), "not-lowered-yet", 26, "load W in global layout"),
    (body("input W: int8[w: 4] in 0 .. 999 output a[i] = 1.0"), "range", 3, ""),
    (lowered("input W: uint4[w: 4] output a[w] = cast(W[w], float32)"), "not-lowered-yet", 9, "use a float type"),
    (lowered("Z[i] = cast(X[i, 0], int4) output Y[i] = cast(Z[i], float32)"), "not-lowered-yet", 3, "8 bits or more"),
    (lowered("output Y[i] = cast(cast(X[i, 0], uint4), float32)"), "not-lowered-yet", 10, ""),
    (lowered("output Y[i] = sum[j] cast(X[i, j], int4)"), "not-lowered-yet", 10, ""),
    (body("output Y[i] = sum(X[i, j], j)"), "unknown-function", 17, "`sum[k] A[m, k]`"),
    (body("input W: float[w: 4] output a[w] = W[w]"), "unknown-type", 12, "did you mean `float32`?"),
    (body("output class[i] = 1.0"), "name", 10, "a keyword of Python"),
    (body("output \u00b5[i] = 1.0"), "name", 10, "its normal form"),
    (body("input W: float32[global: 4] output a[i] = 1.0"), "name", 20, "a keyword of Python"),
    (steps("do mma (m=i)"), "unknown-instruction", 3, "did you mean mma_"),
    (steps("inline Z"), "inline-unknown", 3, "one of Y"),
    (steps("tile q=4 -> block"), "unknown-axis", 3, ""),
    (steps("tile i=4 -> blok"), "level-not-here", 3, "did you mean `block`?"),
    (steps("tile i=2.5 -> block"), "not-a-number", 10, ""),
    (steps("tile i=0 -> block"), "bad-size", 3, ""),
    (steps("split i=4 unroll unroll"), "modifier-twice", 20, "remove one"),
    (steps("tile i=4 i=2 -> block"), "axis-twice", 12, ""),
    (steps("load X[i, 0] in shared"), "unknown-read", 8, "one of X[i, j]"),
    (steps("load Z[i] in shared"), "unknown-tensor", 8, "one of X, Y"),
    (steps("load Z in shared"), "unknown-tensor", 3, ""),
    (steps("load X in shared ahead 1 ahead 2"), "modifier-twice", 28, ""),
    (steps("load X in shared { ...; split j=2 }"), "hole", 20, "to the end"),
    (steps("load X in shared swizzle 99"), "unknown-swizzle", 3, "32, 64 or 128"),
    (steps("load X in shared layout (1.5)"), "layout-term", 3, ""),
    (steps("unfuse i=(a: 2, a: 4)"), "axis-twice", 3, ""),
    (steps("units block = 0 warp"), "number-too-small", 17, "1 or more"),
    (steps("when i { split j=2 }"), "bad-condition", 3, ""),
    (steps("when 4 { split j=2 }"), "not-a-condition", 8, "m <= 64"),
    (steps("when can(4) { split j=2 }"), "arguments", 8, "can(async_copy)"),
    (steps("split peel=1 peel"), "axis-name", 9, "another name"),
    (steps("tile self=1 -> block"), "axis-name", 8, "another name"),
    (steps("fuse of=(i, j)"), "axis-name", 8, "another name"),
    (steps("do nothing_known"), "unknown-instruction", 3, ""),
    (steps("units block = 1 warp as producer (40 registers) + 2 warp as consumer"), "not-lowered-yet", 3, ""),
]


@pytest.mark.parametrize("text, code, column, help", MEANING)
def test_errors_of_meaning(text: str, code: str, column: int | None, help: str) -> None:
    with pytest.raises(TileLangError) as found:
        document = parse(text, "f.tile")
        document.schedule().check() if document.schedules else document.computation()
    error = found.value
    assert error.code == code, error
    assert error.span is not None and error.span.file == "f.tile" and error.span.line == (7 if "schedule s" in text else 4)
    assert column is None or error.span.column == column, error
    assert help in (error.help or "") and "tl." not in str(error)


# text, what its error says, in the text's words
WORDS = [
    (body("output Y[i] = X[i, 0] + (N / 0)"), "`N / 0`: division by zero"),
    (steps("tile i=true -> block"), "the size along i is `true`, not"),
    (steps("when N { split j=2 }"), "`N` is not a condition"),
    (steps("tile i=4 -> block 0"), "`tile ... -> block 0`: 0 is not a valid size"),
    (steps("split i=0"), "use a whole number, 1 or more, or `?`"),
    (steps("load X in shared layout (1.5)"), "of the dimensions' names and whole numbers, as in layout (m, k // 8, k % 8)"),
    (body("output Y[i] = sum[j, j] X[i, j]"), "help: as in sum[k], or sum[k, l]"),
    (body("input V: int8[i] in 9 .. 3 output Y[i] = 1.0"), "V cannot have the range 9 .. 3"),
    (body("input V: int8[i] in 9 .. 3 output Y[i] = 1.0"), "help: write in low .. high with low <= value < high"),
    (body("input V: int32[i] output Y[i] = X[V[i], 0]"), "help: declare their range: input V: ... in 0 .. 8"),
    (body("output a[i] = 1.0 outputs a, a"), "`a` appears twice among the outputs"),
]


@pytest.mark.parametrize("text, said", WORDS)
def test_errors_of_texts_use_its_words(text: str, said: str) -> None:
    with pytest.raises(TileLangError) as found:
        document = parse(text, "f.tile")
        document.schedule().check() if document.schedules else document.computation()
    assert said in str(found.value)


FILES = [
    ("computation f { } computation f { }", "name-twice", {}),
    (MATMUL + "schedule rows for matmul { }", "name-twice", {}),
    ("when true { computation f { } computation f { } }", "name-twice", {}),
    (
        "when N < 8 { computation f(N) { output Y[] = 1.0 } } computation f(N) { output Y[] = 2.0 }",
        "name-twice",
        {"computation": "f", "N": 4},
    ),
    ("computation f { a[] = 1.0 }", "output", {"computation": "f"}),
    ("use no_such_instruction", "unknown-instruction", {}),
    (MATMUL, "parameter-without-value", {"schedule": "rows", "M": 4}),
    (MATMUL, "unknown-parameter", {"schedule": "rows", "M": 4, "N": 4, "Q": 4}),
    (MATMUL, "which-schedule", {"M": 4, "N": 4}),
    (MATMUL + "computation g { output Y[] = 1.0 }", "which-computation", {"computation": None}),
    (MATMUL + "schedule for matmul { } schedule for matmul { }", "name-twice", {}),
    (MATMUL + "schedule for matmul { }", "which-schedule", {"M": 4, "N": 4}),
    (MATMUL + "when M < 8 { schedule rows for matmul { } }", "name-twice", {"schedule": "rows", "M": 4, "N": 4}),
    (MATMUL + "computation g { output Y[] = 1.0 } schedule rows for g { }", "name-twice", {}),
    (MATMUL + "schedule s(K = 8) for matmul { }", "parameter-twice", {"schedule": "s", "M": 4, "N": 4}),
    (MATMUL, "unknown-computation", {"computation": "matmull"}),
    (MATMUL, "unknown-schedule", {"schedule": "plian", "M": 4, "N": 4}),
    ("schedule s for nothing { }", "unknown-computation", {}),
    ("computation f(N, N) { output Y[] = 1.0 }", "parameter-twice", {"computation": "f", "N": 4}),
    ("computation f { input X: float32[m: 9] output Y[m] = X[m] } schedule s(m = 4) for f { }", "parameter-is-axis", {}),
    (
        "computation f { input X: float32[m: 3, n: 3] output Y[m, n] = X[m, n] } schedule s(z = 4) for f { fuse z=(m, n) }",
        "parameter-is-axis",
        {},
    ),
    (
        "computation f { input X: float32[m: 8] output Y[m] = X[m] } schedule s(b = 4) for f { unfuse m=(a: 2, b: 4) }",
        "parameter-is-axis",
        {},
    ),
    (
        "computation f(N at launch % 8 == 0) { input X: float32[i: N] output Y[i] = X[i] }",
        "not-lowered-yet",
        {"computation": "f"},
    ),
    ("tilelang 2 anything { }", "unknown-version", {}),
    ("# text\ntilelang # of\n 22\n", "unknown-version", {}),
    (
        "computation f(N at launch % 8 != 3) { input X: float32[i: N] output Y[i] = X[i] }",
        "launch-multiple",
        {"computation": "f"},
    ),
    ("computation f(N at launch % 0 == 0) { output Y[] = 1.0 }", "launch-multiple", {"computation": "f"}),
    ("computation f(N at launch % 8 == 0) { output Y[] = 1.0 }", "launch-value", {"computation": "f", "N": 12}),
    ("computation f(N at launch) { output Y[] = 1.0 }", "launch-value", {"computation": "f", "N": tl.int8}),
    (f"computation f(N at launch % 8 == {'9' * 5000}) {{ output Y[] = 1.0 }}", "number-out-of-range", {"computation": "f"}),
    ("computation f(t = flaot32) { input X: t[i: 4] output Y[i] = X[i] }", "unknown-type", {"computation": "f"}),
    ("when 4 { schedule s for f { } } computation f { output Y[] = 1.0 }", "not-a-condition", {}),
]


@pytest.mark.parametrize("text, code, asked", FILES)
def test_errors_of_files(text: str, code: str, asked: dict[str, object]) -> None:
    sizes = {n: v for n, v in asked.items() if n.isupper()}
    with pytest.raises(TileLangError) as found:
        document = parse(text, "f.tile")
        if "computation" in asked:
            document.computation(asked["computation"], **sizes)  # type: ignore[arg-type]
        else:
            document.schedule(asked.get("schedule"), **sizes)  # type: ignore[arg-type]
    assert found.value.code == code and found.value.help
    assert found.value.span is not None and found.value.span.file == "f.tile"


# text, what its error says, its place
PLACES = [
    (
        "computation f { output Y[] = 1.0 }\nschedule for f { }\nschedule for f { }",
        "two schedules for f have no name",
        "f.tile:3:14",
    ),
    ("computation f(K = 4) { output Y[] = 1.0 }\nschedule s(K = 2) for f { }", "can be used here as it is", "f.tile:2:12"),
    (
        "computation f(N = 4) { output Y[] = 1.0 }\nwhen N > 2 { schedule s for f { } }\nwhen N < 6 { schedule s for f { } }",
        "the conditions of two schedules named s hold",
        "f.tile:3:23",
    ),
]


@pytest.mark.parametrize("text, said, place", PLACES)
def test_faults_of_names_have_their_place(text: str, said: str, place: str) -> None:
    with pytest.raises(ParseError) as found:
        parse(text, "f.tile").schedule()
    assert said in found.value.message and str(found.value.span) == place


def test_a_schedule_uses_the_parameters_of_its_computation() -> None:
    text = "computation f(K = 8) { input X: float32[i: 64] output Y[i] = X[i] }"
    made = parse(text + "schedule s(B = K / 2) for f { tile i=K -> block split i=B }").schedule(K=16)
    assert [str(s) for s in made.steps] == ["tile i=16 -> block", "split i=8"]
    assert [str(s) for s in parse(text + "schedule s(B = K / 2) for f { split i=B }").schedule(B=2).steps] == ["split i=2"]


def test_a_value_at_launch_is_a_multiple_of_its_divisor() -> None:
    document = parse("computation f(N at launch % 8 == 0) { input X: float32[i: N] output Y[i] = X[i] }")
    assert [document.computation(N=n).inputs[0].shape for n in (0, 8, 24)] == [(0,), (8,), (24,)]
    with pytest.raises(ParseError, match="`N` is 12, which is not a multiple of 8") as found:
        document.computation(N=12)
    assert found.value.help == "give a multiple, as in --size N=16"


def test_independent_faults_of_a_computation_are_told_together() -> None:
    text = body("a[i] = X[i]\n  b[i] = a[i] + 1.0\n  output c[i] = exq(X[i, 0])\n  output d[i] = b[i]")
    with pytest.raises(Findings) as found:
        parse(text, "f.tile").computation()
    assert [e.code for e in found.value.errors] == ["rank", "unknown-function"]


def test_a_byte_order_mark_is_skipped(tmp_path: Path) -> None:
    path = tmp_path / "marked.tile"
    path.write_text("\ufeff" + MATMUL)
    assert read(path).computation(M=2, N=2) is not None and parse("\ufeff" + MATMUL).computations


def test_numbers_of_a_text_stay_small() -> None:
    """Shifts and products of numbers cannot fill the memory."""
    for value in ("1 << 999999999", "*".join(["99999999999999999999"] * 9)):
        with pytest.raises(ParseError):
            parse(f"computation f(N = {value}) {{ output Y[] = 1.0 }}").computation()


@pytest.mark.parametrize(
    "condition, held",
    [
        ("not can(async_copy)", True), ("not i > 2", False), ("i > 2 and not can(x)", True), ("i > 1.5", True), ("inf > i", True),
        ("~i < 3", True), ("abs(i) > 30", False), ("max(i, j) == 8", True), ("where(i > 2, i, j) > 3 or can(x)", True),
    ],
)  # fmt: skip
def test_any_condition_on_extents_is_decided(condition: str, held: bool) -> None:
    made = parse(steps(f"when {condition} {{ split j=2 }} else {{ split j=1 }}")).schedule()
    assert made.specs[-1].axis("j").extent == (2 if held else 1)
    assert tl.compile(made).check()


@pytest.mark.slow
@pytest.mark.parametrize("number", [250, 3000])
def test_chains_of_definitions_are_an_error_of_ours(number: int) -> None:
    chain = "".join(f"a{n + 1}[i] = a{n}[i] + 1.0\n" for n in range(number))
    text = body(f"a0[i] = X[i, 0]\n{chain}output Y[i] = a{number}[i]")
    try:
        assert "Y" in tl.compile(parse(text).schedule(), tl.target("opencl", profile="sapphire_rapids")).source
    except TileLangError as error:
        assert error.code in ("too-deep", "value-too-deep", "value-too-large")


def test_names_that_python_takes_for_one_are_refused() -> None:
    with pytest.raises(TileLangError) as found:
        parse("computation f { input X: float32[i: 4] output \ufb01[i] = X[i] output fi[i] = X[i] }").computation()
    assert found.value.code == "name"


def test_a_sum_of_many_terms_has_no_limit_of_depth() -> None:
    made = parse(body(f"output Y[i] = {' + '.join(['X[i, 0]'] * 1000)}")).computation()
    X = np.arange(made.inputs[0].dims[0].extent * made.inputs[0].dims[1].extent, dtype=np.float32)
    X = X.reshape([d.extent for d in made.inputs[0].dims])
    given = {t.name: X if t.name == "X" else np.zeros([d.extent for d in t.dims], t.dtype.numpy) for t in made.inputs}
    assert np.array_equal(made.evaluate(**given), 1000 * X[:, 0])
