"""The builder: steps are values with the caller's line, schedules do not change, their text and hash are the same in every process."""

import os
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tilelang as tl
from tests.errors._computations import copy, linear, matmul
from tilelang.errors import Refusal
from tilelang.lowering.pipeline import lower
from tilelang.profiles.files import load_profile
from tilelang.schedules.steps import Hole, Open, Place, Split, Tile, When
from tilelang.testing.checking import check_schedule

ROOT = Path(__file__).resolve().parent.parent

TEXT = """\
schedule for C {
  units block = 4 warp
  tile m=32 n=32 -> block 6 order (n / 2, m, n % 2)
  accumulate in register { via shared layout (m, n) pad 4; tile m=1 n=4 -> thread; vectorize n=4 }
  split k=8
  load A in shared layout (k, m) pad 4 ahead 1 { tile m=1 k=4 -> thread; vectorize k=4 }
  load B in shared swizzle 128 stream
  tile m=4 n=2 -> thread
  split k=1 unroll peel
}"""


def product() -> tl.Schedule:
    store = tl.move().via(tl.shared, layout=tl.layout("m", "n").pad(4)).tile(m=1, n=4).to(tl.thread).vectorize(n=4)
    load = tl.move().tile(m=1, k=4).to(tl.thread).vectorize(k=4)
    return (
        tl.schedule(matmul(64, 96, 32))
        .units(block=tl.warps(4))
        .tile(m=32, n=32)
        .to(tl.block, 6, order=tl.layout(lambda m, n: (n // 2, m, n % 2)))
        .accumulate(tl.register, steps=store)
        .split(k=8)
        .load("A", tl.shared, layout=tl.layout("k", "m").pad(4), ahead=1, steps=load)
        .load("B", tl.shared, layout=tl.layout().swizzle(128), stream=True)
        .tile(m=4, n=2)
        .to(tl.thread)
        .split(k=1, unroll=True, peel=True)
    )


def test_text() -> None:
    assert product().text == TEXT
    assert str(product()) == TEXT
    assert tl.schedule(matmul()).text == "schedule for C { }"


def test_each_method_gives_a_new_schedule() -> None:
    start = tl.schedule(matmul())
    tiled = start.tile(m=16, n=16).to(tl.block)
    one, other = tiled.split(k=8), tiled.split(k=4)
    assert start.steps == ()
    assert [len(s.steps) for s in (tiled, one, other)] == [1, 2, 2]
    assert one.steps[0] is other.steps[0]
    with pytest.raises(AttributeError):
        tiled.steps[0].level = "warp"  # type: ignore[attr-defined]


def test_moves_do_not_change_either() -> None:
    start = tl.move().tile(m=1).to(tl.thread)
    assert len(start.vectorize(k=4).steps) == 2
    assert len(start.steps) == 1


def test_steps_carry_the_caller_s_line() -> None:
    start = tl.schedule(matmul())
    first = start.tile(m=16, n=16).to(tl.block)
    second = first.load("A", tl.shared,
                        steps=tl.move().vectorize(k=4))  # fmt: skip
    spans = [s.span for s in second.steps]  # type: ignore[attr-defined]
    assert all(span is not None and span.file == __file__ for span in spans)
    assert spans[1].line == spans[0].line + 1
    place = second.steps[1]
    assert isinstance(place, Place) and place.steps is not None
    assert place.steps[0].span is not None  # type: ignore[attr-defined]


def test_spans_do_not_count() -> None:
    one = tl.schedule(matmul()).split(k=8)
    other = tl.schedule(matmul()).split(k=8)
    assert one.steps == other.steps
    assert one.steps[0].span != other.steps[0].span  # type: ignore[attr-defined]
    assert one.hash == other.hash


def test_hash_tells_schedules_and_computations_apart() -> None:
    hashes = {
        tl.schedule(matmul()).hash,
        tl.schedule(matmul()).split(k=8).hash,
        tl.schedule(matmul()).split(k=8, unroll=True).hash,
        tl.schedule(matmul(64, 64, 32)).hash,
        tl.schedule(linear()).hash,
    }
    assert len(hashes) == 5


def test_text_and_hash_do_not_depend_on_the_process() -> None:
    code = "from tests.test_schedule import product; s = product(); print(s.hash); print(s.text); print(s.computation.hash)"
    told = [
        subprocess.run([sys.executable, "-c", code], cwd=ROOT, env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": str(ROOT)},
                       capture_output=True, text=True, check=True).stdout
        for seed in ("1", "2")
    ]  # fmt: skip
    assert told[0] == told[1] == f"{product().hash}\n{TEXT}\n{product().computation.hash}\n"


def test_prefixes() -> None:
    whole = product()
    for n in range(len(whole.steps) + 1):
        assert whole.prefix(n).steps == whole.steps[:n]
        assert whole.prefix(n).specs == whole.specs[: n + 1]


@pytest.mark.parametrize("n", range(5))
def test_every_prefix_runs(n: int) -> None:
    load = tl.move().vectorize(k=2)
    whole = tl.schedule(matmul(5, 6, 7)).tile(m=4, n=4).to(tl.block).split(k=4).load("A", tl.shared, steps=load).vectorize(n=2)
    chosen = whole.prefix(n)
    rng = np.random.default_rng(0)
    arrays = {t.name: rng.integers(-3, 4, t.shape).astype(np.float32) for t in chosen.computation.inputs}
    assert check_schedule(chosen, arrays, profile=load_profile("simulated")) == []


def test_when_chooses_by_extents() -> None:
    def steps(m: int) -> tl.Schedule:
        start = tl.schedule(matmul(m, 64, 64))
        wide, narrow = tl.move().tile(m=32, n=32).to(tl.block), tl.move().tile(m=8, n=32).to(tl.block)
        return start.when(tl.extent("m") >= 32, wide, narrow)

    assert str(steps(64).steps[0]) == "when 32 <= m { tile m=32 n=32 -> block } else { tile m=8 n=32 -> block }"
    profile = load_profile("sapphire_rapids")
    assert lower(steps(64).computation, steps(64).steps, profile).kernels[0].grid == (2, 2, 1)
    assert lower(steps(16).computation, steps(16).steps, profile).kernels[0].grid == (2, 2, 1)
    assert lower(steps(24).computation, steps(24).steps, profile).kernels[0].grid == (2, 3, 1)


def test_when_without_otherwise() -> None:
    chosen = tl.schedule(matmul(16, 16, 16)).when(tl.extent("k") > 16, tl.move().split(k=16)).tile(m=8).to(tl.block)
    assert [type(s) for s in chosen.steps] == [When, Tile]
    assert lower(chosen.computation, chosen.steps, load_profile("sapphire_rapids")).kernels[0].grid == (2, 1, 1)


def test_fuse_and_unfuse_undo_each_other() -> None:
    both = tl.schedule(copy(6, 8)).fuse(ij=("i", "j")).unfuse(ij={"a": 6, "b": 8})
    assert [str(s) for s in both.steps] == ["fuse ij=(i, j)", "unfuse ij=(a: 6, b: 8)"]
    assert both.specs[1].names == ("ij",)
    assert both.specs[2].names == ("a", "b")
    arrays = {"X": np.arange(48, dtype=np.float32).reshape(6, 8)}
    tiled = both.tile(a=2, b=4).to(tl.block).tile(b=1).to(tl.thread)
    assert check_schedule(tiled, arrays, profile=load_profile("simulated")) == []


def test_fuse_of_several_axes_is_one_step_each() -> None:
    fused = tl.schedule(copy()).fuse(a=("i",), b=("j",))
    assert [str(s) for s in fused.steps] == ["fuse a=(i)", "fuse b=(j)"]


def test_holes() -> None:
    holed = tl.schedule(matmul()).tile(m=tl.hole, n=16).to(tl.block).load("A", tl.shared, steps=...).rest()
    assert isinstance(tl.hole, Hole)
    assert isinstance(holed.steps[-1], Open)
    assert holed.text.splitlines()[1:-1] == ["  tile m=? n=16 -> block", "  load A in shared { ... }", "  ..."]
    assert tl.schedule(matmul()).load("A", tl.global_).steps[0].open is False  # type: ignore[attr-defined]


def test_levels_and_memories_may_be_texts() -> None:
    by_name = tl.schedule(matmul()).tile(m=16, n=16).to("block").load("A", "shared")
    assert by_name.steps == tl.schedule(matmul()).tile(m=16, n=16).to(tl.block).load("A", tl.shared).steps


def test_tensors_may_be_named_or_given() -> None:
    C = matmul()
    A = tl.schedule(C).computation.inputs[0]
    start = tl.schedule(C).tile(m=16, n=16).to(tl.block)
    assert start.load(A, tl.shared).steps == start.load("A", tl.shared).steps


def test_one_read_may_be_loaded() -> None:
    i, j = tl.axes(i=8, j=8)
    X = tl.input("X", tl.float32, r=8, c=8)
    both = tl.schedule(tl.define("Y", X[i, j] - X[j, i], i, j)).tile(i=4, j=4).to(tl.block)
    chosen = both.load(X[j, i], tl.shared)
    assert str(chosen.steps[-1]) == "load X[j, i] in shared"
    arrays = {"X": np.arange(64, dtype=np.float32).reshape(8, 8) ** 2}
    assert check_schedule(chosen, arrays, profile=load_profile("simulated")) == []


def test_sizes_may_be_numpy_s() -> None:
    given: Any = np.int64(8)
    step = tl.schedule(matmul()).split(k=given).steps[0]
    assert isinstance(step, Split) and step.sizes == (("k", 8),)
    with pytest.raises(Refusal, match="bad-size"):
        tl.schedule(matmul()).split(k=True)


def test_a_refused_step_leaves_the_schedule_as_it_was() -> None:
    start = tl.schedule(matmul()).tile(m=16, n=16).to(tl.block)
    with pytest.raises(Refusal) as caught:
        start.split(q=4)
    assert len(start.steps) == 1
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)


def test_explain_shows_the_spec_after_each_step() -> None:
    lines = product().explain().splitlines()
    assert lines[0].split() == "C m:64 n:96 | k:32 on kernel".split()
    assert lines[2].startswith("tile m=32 n=32 -> block 6 order (n / 2, m, n % 2)")
    assert "C  m:32 n:32 | k:32  on block" in lines[2]
    assert "m:4 n:2 | k:1  on thread  in C:register, A:shared, B:shared" in lines[10]  # long steps have a line of their own
    assert [line.split("  ")[0] for line in lines[11:]] == ["(split m=1)", "(split n=1)"]


@pytest.mark.parametrize("memory", ["register", "shared"])
def test_explain_takes_a_stop_in_shared_where_no_tile_goes_to_blocks(memory: str) -> None:
    """Without a tile for blocks there is one block, whose shared memory results may stop in."""
    steps = tl.move().via(tl.shared).tile(m=1).to(tl.thread)
    plan = tl.schedule(matmul()).accumulate(memory, steps=steps).tile(m=2).to(tl.thread)
    lines = tl.compile(plan, tl.target("opencl", profile="simulated")).explain().splitlines()
    assert any(line.strip().startswith("via shared") and "on block" in line for line in lines)


def test_refinements_have_every_step_in_braces_beneath_its_own() -> None:
    """Where several loads share a move, where results stop on their way, and where steps only say how others store."""
    halves = tl.move().split(k=4)
    by_registers = tl.move().via(tl.register).split(k=8)
    stored = tl.move().via(tl.shared).tile(m=1, n=4).to(tl.thread)
    above = tl.schedule(matmul()).tile(m=16, n=16).to(tl.block).accumulate(tl.register, steps=stored).split(k=8)
    plans = [
        above.load("A", tl.shared, steps=halves).load("B", tl.shared, steps=halves).tile(m=4, n=4).to(tl.thread),
        above.load("A", tl.shared, steps=by_registers).tile(m=4, n=4).to(tl.thread),
        tl.schedule(matmul()).tile(m=16, n=16).to(tl.block).accumulate(tl.register, steps=tl.move().vectorize(n=4)),
    ]
    for made in plans:
        for r in tl.compile(made, tl.target("opencl", profile="simulated")).refinements:
            written = [str(s) for s in r.step.steps or ()] if isinstance(r.step, Place) else []
            assert [str(i) for i in r.inside if i.step is not None and not i.implied] == written
            titles = {i.spec.title for i in r.inside}
            assert titles == ({r.step.tensor_name} if isinstance(r.step, Place) and r.step.what else {"C"} if written else set())


def test_check_lowers_without_a_device() -> None:
    product().check()
    product().check("simulated")
    product().check(load_profile("simulated"))
    with pytest.raises(Refusal, match="level-not-here"):
        tl.schedule(copy()).tile(i=4).to(tl.block).tile(i=1).to(tl.warpgroup).check("sapphire_rapids")


@pytest.mark.parametrize(
    ("step", "code"),
    [
        ("load X in register { compute T in register }", "unknown-tensor"),
        ("compute D in shared { compute T in register }", "unknown-tensor"),
        ("load X in register { compute X in register; vectorize i=2 }", "compute-of-input"),
        ("compute D in shared { load X in register { compute X in register } }", "compute-of-input"),
        ("load X in register { compute D in register }", "stage-unread"),
        ("load X in shared { via register { compute D in register } }", "stage-unread"),
    ],
)
def test_stages_in_braces_are_of_definitions_and_read_there(step: str, code: str) -> None:
    text = """computation c {
      input X: float32[i: 8]
      D[i] = X[i] * 2.0
      output Y[i] = D[i] + X[i]
    }
    schedule for c { tile i=4 -> block; """
    with pytest.raises(tl.TileLangError) as refused:
        tl.parse(text + step + " }").schedule()
    assert refused.value.code == code


@pytest.mark.parametrize(
    ("steps", "code"),
    [
        ("load X in shared { tile i=1 -> warpgroup }", "level-not-here"),
        ("load X in register { tile i=1 -> warpgroup }", "level-not-here"),
        ("do opencl_mad4 (k=i)", "instruction-binding"),
    ],
)
def test_a_step_that_asks_for_what_is_not_there_is_where_the_refusal_is(steps: str, code: str) -> None:
    document = tl.parse(f"""
        computation f {{ input X: float32[i: 8, k: 3] output Y[i] = sum[k] X[i, k] }}
        schedule for f {{
          tile i=4 -> block
          {steps}
        }}
    """, "asks.tile")  # fmt: skip
    with pytest.raises(Refusal) as caught:
        document.schedule().check("ampere")
    span = caught.value.span
    assert caught.value.code == code and span is not None and (span.file, span.line) == ("asks.tile", 5)


def test_an_axis_may_be_called_self() -> None:
    rows, j = tl.axes(self=37, j=16)
    y = tl.define("Y", tl.input("X", tl.float32, rows, j)[rows, j] * 2, rows, j)
    plan = tl.schedule(y).tile(self=8).to(tl.block).split(self=1).vectorize(j=4)
    assert [str(step) for step in plan.steps] == ["tile self=8 -> block", "split self=1", "vectorize j=4"]
