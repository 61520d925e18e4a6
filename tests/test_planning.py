"""A computation without a schedule gets one that the device takes, whatever it computes."""

import contextlib
import dataclasses
import gc
import logging
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given

import tilelang as tl
from tilelang import testing
from tilelang.autoschedule.tune import programs, recall
from tilelang.autoschedule.tune.database import Database
from tilelang.autoschedule.tune.entries import Entry, now
from tilelang.computations.computation import Computation
from tilelang.errors import DeviceError, Refusal
from tilelang.lowering import ir, pipeline
from tilelang.lowering.build import default_schedules
from tilelang.lowering.passes import unroll
from tilelang.lowering.pipeline import lower
from tilelang.options import Options
from tilelang.profiles.profile import Profile
from tilelang.runtime import likely_kernel, schedule_selection
from tilelang.schedules.steps import Step
from tilelang.testing import Recipe

PRODUCT = tl.parse(
    "computation C(M = 70, N = 90, K = 50) { input A: float32[m: M, k: K] input B: float32[k: K, n: N]"
    " output C[m, n] = sum[k] A[m, k] * B[k, n] }"
).computation()


def test_what_is_constructed_is_a_schedule_of_the_language() -> None:
    kernel = tl.compile(PRODUCT)
    assert any(getattr(s, "verb", "") == "accumulate" for s in kernel.schedule.steps)
    assert kernel.check().ok
    assert tl.compile(tl.schedule(PRODUCT), schedule=None).schedule.steps == ()
    again = tl.compile(kernel.schedule)
    assert again.schedule is kernel.schedule and again.source == kernel.source


@pytest.mark.parametrize("profile", ["sapphire_rapids", "volta"])
def test_the_estimate_adds_up(profile: str) -> None:
    found = tl.compile(PRODUCT, tl.target("opencl", profile=profile)).estimate
    assert found.seconds == pytest.approx(sum(s for _, s in found.parts)) and found.seconds >= found.bound > 0


def test_what_the_device_refuses_is_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    refused = tl.schedule(PRODUCT).tile(m=8, n=8).to(tl.block).tile(m=1, n=1).to(tl.warpgroup)
    good = tl.schedule(PRODUCT).tile(m=8, n=16).to(tl.block)
    with pytest.raises(Refusal):
        tl.compile(refused)
    monkeypatch.setattr(schedule_selection, "constructed", lambda *given, **_: iter((refused, good)))
    assert tl.compile(PRODUCT).schedule is good


@pytest.mark.parametrize("profile", ["simulated", "sapphire_rapids"])
def test_nothing_to_compute(profile: str) -> None:
    i, j = tl.axes(i=0, j=3)
    none = tl.define("Y", tl.input("X", tl.float32, i, j)[i, j] * 2, i, j)
    assert tl.compile(none, tl.target("opencl", profile=profile)).schedule.computation.outputs[0].shape == (0, 3)


@pytest.mark.parametrize(("origin", "said"), [("shipped", 1), ("partly measured", 1), ("measured", 0), ("given", 0)])
def test_a_device_that_nobody_measured_is_said_once(origin: str, said: int, caplog: pytest.LogCaptureFixture) -> None:
    schedule_selection._log.cache_clear()
    target = dataclasses.replace(tl.target(), origin=origin)
    with caplog.at_level(logging.WARNING, "tilelang"):
        tl.compile(PRODUCT, target)
        tl.compile(PRODUCT, target)
    assert len(caplog.messages) == said
    assert all("`tilelang profile` measures the device" in message for message in caplog.messages)


def half_product(size: int) -> tl.Tensor:
    m, n, k = tl.axes(m=size, n=size, k=size)
    A, B = tl.input("A", tl.float16, m, k), tl.input("B", tl.float16, k, n)
    return tl.define("C", tl.sum(A[m, k] * B[k, n], over=k), m, n)


@pytest.mark.parametrize(("profile", "said"), [("volta", 1), ("ampere", 0)])
def test_matrix_instructions_that_nobody_defined_are_said_once(profile: str, said: int, caplog: pytest.LogCaptureFixture) -> None:
    schedule_selection._log.cache_clear()
    with caplog.at_level(logging.WARNING, "tilelang"):
        for size in (32, 48):
            tl.compile(half_product(size), tl.target("cuda", profile=profile))
    start = f"the profile `{profile}` has a rate for matrix products of float16, but no such instruction is defined for cuda"
    assert len(caplog.messages) == said and all(message.startswith(start) for message in caplog.messages)


@pytest.mark.parametrize("trials", [0, 2])
def test_a_plain_schedule_that_stands_in_is_said(
    trials: int, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    schedule_selection._log.cache_clear()
    target, options = dataclasses.replace(tl.target("cpu"), origin="given"), Options(database="")
    computation = tl.schedule(PRODUCT).computation
    *others, plain = schedule_selection.constructed(computation, target.profile, options)

    def refusing(
        what: Computation, steps: tuple[Step, ...], profile: Profile, options: Options, needed: tuple[str, ...]
    ) -> ir.Program:
        if steps != plain.steps:
            raise Refusal("too-large", "none of these")
        return lower(what, steps, profile, options, needed)

    for module in (pipeline, likely_kernel, programs):
        monkeypatch.setattr(module, "lower", refusing)
    with caplog.at_level(logging.WARNING, "tilelang"):
        for _ in range(2):
            assert tl.compile(computation, target, trials=trials, options=options).schedule.steps == plain.steps
    (message,) = caplog.messages
    assert others and message.startswith(
        f"C: all generated schedules were refused for `{target.profile.name}`, so a simple one is used"
    )
    assert "none of these" in message


def test_threads_say_it_once_together(caplog: pytest.LogCaptureFixture) -> None:
    schedule_selection._log.cache_clear()
    target, start = dataclasses.replace(tl.target(), origin="shipped"), threading.Barrier(4)

    def compile_together(_: int) -> None:
        start.wait()
        tl.compile(PRODUCT, target)

    with caplog.at_level(logging.WARNING, "tilelang"), ThreadPoolExecutor(4) as pool:
        list(pool.map(compile_together, range(4)))
    assert len(caplog.messages) == 1


def test_a_schedule_that_is_given_constructs_nothing() -> None:
    program = (
        "import sys, tilelang as tl; i = tl.axes(i=64); y = tl.define('Y', tl.input('X', tl.float32, i)[i] * 2, i);"
        "tl.compile(tl.schedule(y).tile(i=8).to(tl.block), tl.target('opencl', profile='sapphire_rapids'));"
        "print([m for m in sys.modules if m.startswith('tilelang.autoschedule')])"
    )
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"


@given(testing.recipes())
def test_every_computation_without_a_schedule_is_right(recipe: Recipe) -> None:
    report = tl.compile(recipe.build()).check()
    assert report.ok, f"{recipe}\n{report}"


def test_candidates_are_timed_once_and_then_remembered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    options = Options(database=str(tmp_path / "schedules.sqlite"))
    timed = tl.compile(PRODUCT, trials=2, options=options)
    assert timed.check().ok
    monkeypatch.setattr(schedule_selection, "constructed", lambda *given, **_: iter(()))
    assert tl.compile(PRODUCT, options=options).schedule.text == timed.schedule.text
    assert tl.compile(PRODUCT, trials=2, options=options).schedule.text == timed.schedule.text


def test_who_watches_is_told_how_far_trials_are(tmp_path: Path) -> None:
    told: list[tuple[str, int, int]] = []
    tl.compile(PRODUCT, trials=2, options=Options(database=""), progress=lambda *now: told.append(now))
    assert told[0] == ("check", 0, 2) and ("check", 2, 2) in told and told[-1][0] == "time"


def test_no_more_is_constructed_than_is_timed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []

    def constructed(*given: object, **_: object) -> Iterator[tl.Schedule]:
        for size in (4, 8, 16):
            asked.append(size)
            yield tl.schedule(PRODUCT).tile(m=size, n=16).to(tl.block)

    monkeypatch.setattr(schedule_selection, "constructed", constructed)
    options = Options(database=str(tmp_path / "schedules.sqlite"))
    for _ in range(2):  # what is remembered of as many needs none
        tl.compile(PRODUCT, trials=2, options=options)
        assert asked == [4, 8]


def nothing_constructed(*given: object, **_: object) -> Iterator[tl.Schedule]:
    raise LookupError("it was constructed")
    yield


def test_what_was_constructed_is_not_constructed_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    options = Options(database=str(tmp_path / "schedules.sqlite"))
    half = tl.schedule(PRODUCT).tile(m=tl.hole, n=tl.hole).to(tl.block)
    real = schedule_selection.constructed
    kernel, filled = tl.compile(PRODUCT, options=options), tl.compile(half, options=options)
    monkeypatch.setattr(schedule_selection, "constructed", nothing_constructed)
    assert tl.compile(PRODUCT, options=options).schedule.text == kernel.schedule.text
    assert tl.compile(half, options=options).schedule.text == filled.schedule.text
    monkeypatch.setattr(schedule_selection, "constructed", real)
    timed = tl.compile(PRODUCT, trials=1, options=options)  # constructed is not timed
    monkeypatch.setattr(schedule_selection, "constructed", nothing_constructed)
    entries = Database(options.database or "").entries()
    assert sorted(e.trials for e in entries) == [0, 0, 1] and timed.schedule.text in {e.schedule for e in entries if e.trials}
    monkeypatch.setattr(recall, "_scheduler_version", lambda: "another")
    assert tl.compile(PRODUCT, options=options).schedule.text == timed.schedule.text
    with pytest.raises(LookupError):  # another scheduler may construct something else
        tl.compile(half, options=options)


def test_a_second_process_constructs_nothing(tmp_path: Path) -> None:
    program = (
        "import sys, tilelang as tl; i = tl.axes(i=64); y = tl.define('Y', tl.input('X', tl.float32, i)[i] * 2, i);"
        "tl.compile(y, options=tl.Options(database=sys.argv[1]));"
        "print('tilelang.autoschedule.cpu.construct' in sys.modules)"
    )
    command = [sys.executable, "-c", program, str(tmp_path / "schedules.sqlite")]
    found = [subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip() for _ in range(2)]
    assert found == ["True", "False"]


@given(testing.recipes())
def test_what_is_recalled_is_what_was_constructed(recipe: Recipe) -> None:
    with tempfile.TemporaryDirectory() as folder:
        options = Options(database=f"{folder}/schedules.sqlite")
        first, second = (tl.compile(recipe.build(), options=options) for _ in range(2))
        assert second.schedule.text == first.schedule.text and second.source == first.source
        (entry,) = Database(options.database or "").entries()
        assert entry.schedule == first.schedule.text and entry.constructed


def product(rows: int) -> Computation:
    return tl.parse(PRODUCT.text.replace("m: 70", f"m: {rows}")).computation()


@pytest.mark.parametrize(
    ("rows", "plain", "taken"),
    [(80, True, True), (140, True, True), (150, True, False), (80, False, False)],
    ids=["near", "a doubling", "farther", "behind"],
)
def test_what_was_timed_for_a_near_shape_is_taken_unless_it_is_behind(
    rows: int, plain: bool, taken: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of the two schedules the model likes `good` better."""
    options, target, asked = Options(database=str(tmp_path / "schedules.sqlite")), tl.target(), list[int]()
    good = tl.compile(PRODUCT, options=Options(database="")).schedule.steps
    poor = tl.schedule(PRODUCT).tile(m=1, n=1).to(tl.block).steps
    timed, made = (good, poor) if plain else (poor, good)

    def constructed(*given: object, **_: object) -> Iterator[tl.Schedule]:
        asked.append(1)
        yield tl.Schedule(PRODUCT, made)

    monkeypatch.setattr(schedule_selection, "constructed", constructed)
    near = tl.Schedule(product(rows), timed)
    entry = Entry(recall.key_of(near.computation, target), near.text, 1e-3, 0.0, 0.5, None, 8, now())
    assert Database(tmp_path / "schedules.sqlite").record([entry])
    for _ in range(2):  # what was constructed is remembered beside it
        assert tl.compile(PRODUCT, target, options=options).schedule.steps == (timed if taken else made)
    assert asked == [1]


def test_a_schedule_of_a_near_shape_that_cannot_be_is_passed_over(tmp_path: Path) -> None:
    options, target = Options(database=str(tmp_path / "schedules.sqlite")), tl.target()
    near = tl.schedule(product(80)).tile(m=8, n=16).to(tl.block).steps
    entry = Entry(recall.key_of(product(80), target), tl.Schedule(product(80), near).text, 1e-3, 0.0, 0.5, None, 8, now())
    impossible = dataclasses.replace(entry, schedule=entry.schedule.replace("tile m=8", "tile q=8"))
    assert Database(tmp_path / "schedules.sqlite").record([impossible])
    assert tl.compile(PRODUCT, target, options=options).schedule.text == tl.compile(PRODUCT, target).schedule.text


def test_trials_need_a_device() -> None:
    with pytest.raises(DeviceError):
        tl.compile(PRODUCT, tl.target("opencl", profile="sapphire_rapids"), trials=1)


@pytest.mark.parametrize("enabled", [True, False])
@pytest.mark.parametrize("refused", [True, False])
def test_the_collector_pauses_while_a_schedule_is_made_and_is_as_before_after_it(
    monkeypatch: pytest.MonkeyPatch, enabled: bool, refused: bool
) -> None:
    seen = list[bool]()

    def noted(*given: Any) -> Any:
        seen.append(gc.isenabled())
        if refused:
            raise Refusal("bad-size", "no")
        return lower(*given)

    monkeypatch.setattr(pipeline, "lower", noted)
    i = tl.axes(i=64)
    given = tl.schedule(tl.define("Y", tl.input("X", tl.float32, i)[i] * 2, i)).tile(i=8).to(tl.block)
    try:
        if not enabled:
            gc.disable()
        with contextlib.suppress(Refusal):
            tl.compile(given, tl.target("cpu", profile="avx2"))
        assert seen == [False] and gc.isenabled() == enabled
    finally:
        gc.enable()


@pytest.mark.parametrize(("operations", "tiled"), [(1500, True), (40, False)])
def test_what_would_be_unrolled_too_far_is_taken_with_loops(
    operations: int, tiled: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A kernel with long expressions is not refused for what its schedule unrolls; the plain schedule never unrolls that much."""
    monkeypatch.setattr(unroll, "MOST_OPERATIONS", operations)
    monkeypatch.setattr(default_schedules, "MOST_OPERATIONS", operations)
    made = tl.compile(PRODUCT, tl.target("cpu", profile="zen3"), options=Options(database="")).schedule
    text = str(made)
    assert "accumulate in register\n" in text if tiled else "tile m=1 n=8 -> block" in text
    assert "unroll" not in text and tl.compile(made, tl.target("cpu")).check().ok


def test_a_tensor_that_is_read_with_and_without_padding_is_not_staged_by_points() -> None:
    what = tl.parse(
        "computation c { axis i: 8 axis k: 16 input X: int32[a: 8, b: 8]"
        " output D[i] = sum[k] X[i, i] output E[i] = pad(X[i, i], -1) }"
    ).computation()
    target = tl.target("cpu", profile="zen3")
    for plan in list(schedule_selection.constructed(what, target.profile, Options()))[:8]:
        assert lower(what, plan.steps, target.profile, needs=target.needs).kernels
