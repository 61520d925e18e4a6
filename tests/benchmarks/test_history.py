"""What became slower is told by the last two runs on such a machine, and by no other."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks import history

HERE = {"model": "Zen", "cores": 2}


def operator(commit: str, ours: float, name: str = "M1", model: str = "Zen") -> dict[str, Any]:
    times = {"ours": ours, "NumPy": 10.0}
    return {"what": "times", "operator": name, "row_us": times, "processor": model, "processors": 2, "revision": commit}


def figure(commit: str, **changes: Any) -> dict[str, Any]:
    return {"what": "cold start", "ours": 0.4, "unit": "s", "ratio": None, "at_least": False,
            "machine": {**HERE, "commit": commit}, **changes}  # fmt: skip


def test_what_lost_more_than_the_threshold_is_told() -> None:
    rows = [operator("a", 5.0), operator("a", 5.0, "M2"), figure("a"), operator("b", 10.0), operator("b", 5.2, "M2"), figure("b")]
    found = history.compared(history.figures(rows))
    assert found is not None and (found.before, found.after, len(found.changes)) == ("a", "b", 3)
    assert [(c.what, c.quotient) for c in found.slower(0.1)] == [("M1 x best peer", 0.5)]
    assert [c.what for c in found.slower(0.01)] == ["M1 x best peer", "M2 x best peer"]
    assert "b beside a: 3 figures" in history.summary(found) and "M1 x best peer" in history.summary(found)


def test_a_time_that_grows_is_slower_and_a_quotient_that_grows_is_not() -> None:
    rows = [figure("a"), figure("b", ours=0.8)]
    found = history.compared(history.figures(rows))
    assert found is not None and [c.quotient for c in found.changes] == [pytest.approx(0.5)]
    better = [figure("a", ratio=1.0, at_least=True), figure("b", ratio=1.5, at_least=True)]
    found = history.compared(history.figures(better))
    assert found is not None and found.changes[0].quotient == 1.5 and not found.slower(0.1)
    copies = [figure("a", ratio=1.0), figure("b", ratio=1.5)]  # our time by a copy's: at most something is wanted
    found = history.compared(history.figures(copies))
    assert found is not None and found.changes[0].quotient == pytest.approx(2 / 3)


def test_another_machine_is_not_compared_with() -> None:
    rows = [operator("a", 5.0), operator("b", 1.0, model="Golden Cove"), operator("c", 5.0)]
    found = history.compared(history.figures(rows))
    assert found is not None and found.before == "a" and not found.slower(0.1)
    first = history.compared(history.figures(rows[1:]))
    assert first is not None and not first.before and "first run on such a machine" in history.summary(first)
    assert history.summary(history.compared([])) == "no figures: `make bench` measures some"


def test_the_command_ends_with_1_where_something_became_slower(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "bench.jsonl"
    path.write_text("\n".join([json.dumps(operator("a", 5.0)), "half of", json.dumps(operator("b", 9.0))]))
    assert history.main(["--results", str(path)]) == 1
    assert history.main(["--results", str(path), "--threshold", "0.9"]) == 0
    assert history.main(["--results", str(tmp_path / "none.jsonl")]) == 0
    assert "1 became slower by more than 10%" in capsys.readouterr().out
