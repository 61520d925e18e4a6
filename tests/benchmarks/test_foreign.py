"""A few programs drawn from the documentation alone, of each kind: nothing about them is wrong."""

from __future__ import annotations

import pytest

from benchmarks.foreign import __main__ as foreign
from benchmarks.foreign.worker import case


@pytest.mark.parametrize(("kind", "seeds"), [("cpu", (1, 2, 3)), ("simulated", (1, 2, 3)), ("constructed", (1, 2, 20153, 21407))])
def test_drawn_programs_are_right(kind: str, seeds: tuple[int, ...]) -> None:
    found = [case(kind, seed) for seed in seeds]
    assert [r["faults"] for r in found] == [[]] * len(seeds)
    assert sum(r.get("ran", False) for r in found) >= 2


def test_a_case_that_does_not_end_is_a_fault_and_the_next_one_begins() -> None:
    found = list(foreign.reports("cpu", 1, 2, 60, 0.001))  # no process starts that fast
    assert [(r["seed"], r["faults"]) for r in found] == [(1, ["no end within 0.001 s"]), (2, ["no end within 0.001 s"])]
    assert foreign.summary(found) == "2 cases, 0 ran, 0 programs refused, 2 with faults"


def test_the_command_counts_what_was_drawn(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.argv", ["foreign", "--kind", "simulated", "--first", "1", "--count", "2"])
    assert foreign.main() == 0
    text = capsys.readouterr().out
    assert text.startswith("2 cases,") and "type: " in text and "index: " in text
