"""The fastest candidate is measured once and remembered; another shape's is tried first."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import tilelang as tl
from tilelang.autoschedule.tune import programs
from tilelang.autoschedule.tune import recall as recall_module
from tilelang.autoschedule.tune.best import best
from tilelang.autoschedule.tune.database import Database
from tilelang.autoschedule.tune.recall import key_of, recall
from tilelang.computations.computation import Computation
from tilelang.errors import DeviceError
from tilelang.lowering import pipeline
from tilelang.lowering.compilers import native
from tilelang.options import Options
from tilelang.schedules.schedule import Schedule
from tilelang.schedules.steps import Step


def sums(rows: int) -> Computation:
    i, j = tl.axes(i=rows, j=24)
    x = tl.input("X", tl.float32, i, j)
    return tl.computation("sums", tl.define("Y", tl.sum(x[i, j], over=j), i))


def candidates(computation: Computation, asked: list[int]) -> Iterator[Schedule]:
    for size in (4, 8, 16):
        asked.append(size)
        yield tl.schedule(computation).tile(i=size).to(tl.block)


@pytest.fixture
def options(tmp_path: Path) -> Options:
    return Options(database=str(tmp_path / "best.sqlite"))


@pytest.mark.slow
def test_what_was_measured_is_remembered(options: Options) -> None:
    target, asked = tl.target("cpu"), list[int]()
    first = best(sums(40), candidates(sums(40), asked), target, 2, bound_s=1e-9, options=options)
    assert asked == [4, 8] and first.recalled is None and first.measured is not None
    assert first.measured.best is not None and first.schedule is first.measured.best.schedule
    second = best(sums(40), candidates(sums(40), asked), target, 2, options=options)
    assert asked == [4, 8] and second.schedule.text == first.schedule.text and second.measured is None
    assert second.recalled is not None and second.recalled.distance == 0
    third = best(sums(40), candidates(sums(40), asked), target, 3, options=options)
    assert asked == [4, 8, 4, 8, 16] and third.measured is not None and len(third.measured.trials) == 3
    assert best(sums(40), iter(()), target, 3, options=options).measured is None
    entry = second.recalled.entry
    assert entry.median_s == first.measured.best.median_s and entry.bound_ratio == pytest.approx(entry.median_s / 1e-9)
    assert len(Database(options.database or "").entries()) == 3
    assert tl.compile(second.schedule, target).check()


def test_another_shape_is_tried_first(options: Options) -> None:
    target = tl.target("cpu")
    first = best(sums(40), candidates(sums(40), []), target, 1, options=options)
    near = recall(sums(80), target, options=options)
    assert near is not None and near.distance == 1 and near.schedule.computation.hash == sums(80).hash
    asked: list[int] = []
    found = best(sums(80), (s for s in candidates(sums(80), asked) if "=4" not in s.text), target, 1, options=options)
    assert found.measured is not None
    assert [t.schedule.text.partition("\n")[2] for t in found.measured.trials][0] == first.schedule.text.partition("\n")[2]
    assert len(found.measured.trials) == 2 and asked == [4, 8]


def test_given_steps_are_part_of_the_key(options: Options) -> None:
    target = tl.target("cpu")
    given = tl.schedule(sums(40)).tile(i=4).to(tl.block).steps
    best(sums(40), candidates(sums(40), []), target, 1, given=given, options=options)
    assert recall(sums(40), target, options=options) is None
    assert recall(sums(40), target, given, options=options) is not None


def test_without_a_database_or_a_device_nothing_is_recalled(options: Options) -> None:
    assert recall(sums(40), tl.target("cpu"), options=Options(database="")) is None
    assert recall(sums(40), tl.target("opencl", profile="simulated"), options=options) is None
    assert best(sums(40), candidates(sums(40), []), tl.target("cpu"), 1, options=Options(database="")).measured is not None


def test_what_the_target_does_not_take_is_followed_by_the_next(options: Options) -> None:
    wrong = tl.schedule(sums(40)).tile(i=1).to(tl.warpgroup)
    found = best(sums(40), [wrong, wrong, *candidates(sums(40), [])], tl.target("cpu"), 1, options=options)
    assert found.measured is not None and [bool(t.code) for t in found.measured.trials] == [True, False]


def test_each_candidate_is_lowered_once(options: Options, monkeypatch: pytest.MonkeyPatch) -> None:
    real, lowered = pipeline.lower, list[str]()

    def lower(computation: Computation, steps: tuple[Step, ...], *rest: Any) -> Any:
        lowered.append(str(steps[0]))
        return real(computation, steps, *rest)

    monkeypatch.setattr(programs, "lower", lower)
    several = [*candidates(sums(40), []), *candidates(sums(40), [])]
    best(sums(40), several, tl.target("cpu"), 3, options=options)
    assert lowered == [f"tile i={size} -> block" for size in (4, 8, 16)]


def test_where_no_candidate_is_right_each_says_why(options: Options) -> None:
    wrong = tl.schedule(sums(40)).tile(i=1).to(tl.warpgroup)
    with pytest.raises(DeviceError) as caught:
        best(sums(40), [wrong], tl.target("cpu"), 1, options=options)
    assert caught.value.code == "no-candidate" and "1: " in caught.value.message
    with pytest.raises(DeviceError, match="there is none"):
        best(sums(40), [], tl.target("cpu"), 1, options=options)


def test_another_profile_or_compiler_has_another_key(monkeypatch: pytest.MonkeyPatch) -> None:
    target = tl.target("cpu")
    key = key_of(sums(40), target)
    assert key == key_of(sums(40), tl.target("cpu")) and key.hash == key_of(sums(40), tl.target("cpu")).hash
    changed = tl.Target("opencl", target.profile.with_queried(compute_units=99), target.device)
    assert key_of(sums(40), changed).family != key.family
    monkeypatch.setattr(native, "version", lambda: "clang 99")
    other = key_of(sums(40), target)
    monkeypatch.setattr(recall_module, "VERSION", "2")
    assert len({key.hash, other.hash, key_of(sums(40), target).hash}) == 3
