"""The benchmark of what is constructed: what it counts and keeps; what was kept is of every shipped device."""

import json
import sys
from pathlib import Path

import pytest

from benchmarks import constructed
from tilelang.profiles.files import RENAMED, shipped_profiles


def test_counts_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = tmp_path / "constructed.jsonl"
    given = ["constructed.py", "--devices", "volta", "avx2", "--operators", "E1", "--top", "2", "--record", str(kept)]
    monkeypatch.setattr(sys, "argv", given)
    constructed.main()
    lines = [json.loads(line) for line in kept.read_text().splitlines()]
    assert [(x["profile"], x["operators"], x["schedules"], x["top"]) for x in lines] == [("volta", 1, 2, 2), ("avx2", 1, 2, 2)]
    assert all(x[what] == 0 for x in lines for what in constructed.WRONG) and all(x["revision"] for x in lines)
    assert all(0 < x["median_processor_s"] <= x["worst_processor_s"] for x in lines)


def test_rows_without_times_are_shown_beside_those_with(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    kept = tmp_path / "constructed.jsonl"
    old = {"profile": "volta", "operators": 119, "schedules": 357, **dict.fromkeys(constructed.WRONG, 0)}
    new = {**old, "profile": "avx2", "median_processor_s": 0.125, "worst_processor_s": 0.5}
    kept.write_text("".join(json.dumps(row) + "\n" for row in ({**new, "worst_processor_s": 9.0}, old, new)))
    monkeypatch.setattr(sys, "argv", ["constructed.py", "--table", str(kept)])
    constructed.main()
    lines = [line.split() for line in capsys.readouterr().out.splitlines()[2:]]
    assert lines == [["avx2", "119", "357", "0", "0", "0", "0.125", "0.5"], ["volta", "119", "357", "0", "0", "0"]]


def test_every_operator_was_looked_at_on_every_shipped_device() -> None:
    last = {x["profile"]: x for x in map(json.loads, constructed.RESULTS.read_text().splitlines())}
    last = {name: x for name, x in last.items() if name not in RENAMED}
    assert last.keys() == set(shipped_profiles())
    assert all(x["operators"] == 119 and not any(x[what] for what in constructed.WRONG) for x in last.values())
