"""The runs over texts, in their small forms."""

import json
from pathlib import Path

import pytest

from benchmarks import fuzz_text, text_time


def test_the_text_form_under_fire(tmp_path: Path) -> None:
    path = tmp_path / "fuzz_text.json"
    assert fuzz_text.main(["--round-trips", "20", "--inputs", "60", "--json", str(path)]) == 0
    found = json.loads(path.read_text())
    assert found["inputs"] == 60 == sum(found["outcomes"].values()) and found["failures"] == 0 and found["round_trips"] >= 40


def test_schedules_are_checked_by_lowering_them() -> None:
    computation = "computation f { input X: float32[i: 4] output Y[i] = X[i] }\n"
    assert fuzz_text.outcome(computation + "schedule for f { tile i=4 -> block }") == "accepted"
    assert fuzz_text.outcome(computation + "schedule for f { tile i=4 -> blok }") == "refused when bound: level-not-here"
    assert fuzz_text.outcome(computation + "schedule for f { tile }") == "refused: size-without-axis"


def test_times_of_the_text_form(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "text_time.jsonl"
    text_time.main(["--bytes", "2000", "--record", str(path)])
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    assert len(rows) == 7 and "largest input" in capsys.readouterr().out
