"""Two profiles beside each other: schedules are checked, timed in turns, and their times are kept."""

from pathlib import Path

import pytest

import tilelang as tl
from benchmarks import operators_cases, operators_peers, profiles
from benchmarks.harness import record

TINY = operators_cases.tiny(next(o for o in operators_cases.read() if o.id == "E5"))


def schedules() -> dict[str, tl.Schedule]:
    plain = tl.schedule(TINY.computation())
    axis = plain.computation.definitions[-1].axes[0].name
    return {"old": plain, "new": plain.tile(**{axis: 4}).to(tl.block)}


def test_both_schedules_are_timed_and_kept(tmp_path: Path) -> None:
    row = profiles.measured(TINY, schedules(), tl.target("cpu"), 1)
    assert row["old"]["us"] > 0 and row["new"]["us"] > 0 and "wrong" not in row
    record(tmp_path / "rows.jsonl", [row], "here")
    (key,) = profiles.read(tmp_path / "rows.jsonl")
    assert key == (TINY.id, row["old"]["schedule"], row["new"]["schedule"]) and key[1] != key[2]


def test_a_wrong_result_is_no_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(operators_peers, "wrong", lambda *_: "3 elements differ")
    row = profiles.measured(TINY, schedules(), tl.target("cpu"), 1)
    assert row["wrong"] == "old: 3 elements differ" and "us" not in row["old"]
    assert "3 elements differ" in profiles.report([row])


def test_the_report_ends_with_the_mean_and_the_least() -> None:
    rows = [
        {"operator": name, "old": {"us": old}, "new": {"us": 10.0}, "old_estimate_us": 1.0, "new_estimate_us": 1.0}
        for name, old in (("A", 20.0), ("B", 5.0))
    ]
    assert [line.split()[-1] for line in profiles.report(rows).splitlines()[-2:]] == ["1.000", "0.500"]
