"""The benchmark of a call's overhead without its times: what it calls, what it keeps, and when a promise is broken."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from benchmarks import call_overhead

KEPT = {"bare launch": 10.0, "NumPy arrays": 14.9}


@pytest.mark.parametrize(
    ("times", "empty", "code", "said"),
    [
        (KEPT, 0.9, 0, ["yes"]),
        (KEPT, 1.1, 1, ["yes"]),
        ({**KEPT, "NumPy arrays": 15.0}, 0.9, 1, ["no"]),
    ],
)
def test_promises_are_told_and_kept_with_the_times(
    times: dict[str, float],
    empty: float,
    code: int,
    said: list[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def once(calls: dict[str, Callable[[], object]]) -> dict[str, float]:
        for call in calls.values():
            call()
        return {name: times[name] for name in calls}

    monkeypatch.setattr(call_overhead, "medians_us", once)
    monkeypatch.setattr(call_overhead, "empty_launch_us", lambda: empty)
    path = tmp_path / "call_overhead.jsonl"
    assert call_overhead.main(["--results", str(path)]) == code
    lines = [line.split() for line in capsys.readouterr().out.splitlines()[2:]]
    assert [line[-1] for line in lines if "arrays" in line] == 2 * said
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    assert [row["kernel"] for row in rows] == ["tl.compile", "@tl.kernel"]
    for row in rows:
        assert row["median_us"] == times and row["limits_us"] == {"NumPy arrays": 5.0} and row["empty_launch_us"] == empty
        assert row["over_us"]["NumPy arrays"] == pytest.approx(times["NumPy arrays"] - 10)
        assert row["device"] and row["versions"]["numpy"] and row["date"] and row["revision"]


def test_the_first_tenth_of_a_turn_is_not_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first call, which compiles, is in it."""
    now = iter(range(10**6))
    monkeypatch.setattr("time.perf_counter", lambda: next(now))
    slow = iter([*(5 for _ in range(2)), *(0 for _ in range(40))])  # of the clock, beyond one, in each call

    def call() -> None:
        for _ in range(next(slow)):
            next(now)

    assert call_overhead.medians_us({"one": call}, turns=1, each=20) == {"one": 1e6}


def test_an_empty_kernel_is_launched() -> None:
    assert 0 < call_overhead.empty_launch_us(batches=3, launches=2) < 1e6
