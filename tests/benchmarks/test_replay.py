"""`make replay` compiles the same programs with two versions and tells which came out differently, and how."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks import replay

ONLY = "06_row_sum.tile simt @ ampere"


def test_the_same_version_twice_has_no_difference(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    kept = tmp_path / "before.jsonl"
    assert replay.main(["--record", str(kept), "--only", ONLY, "--processes", "1"]) == 0
    ((name, found),) = replay.read(kept).items()
    assert name == f"examples/{ONLY}"
    assert {"schedule cuda", "ir cuda", "source cuda", "estimate cuda", "ir opencl"} <= found.keys()
    assert replay.main(["--against", str(kept), "--only", ONLY, "--processes", "1"]) == 0
    assert "1 programs on both sides: 1 the same, 0 differ" in capsys.readouterr().out


def test_a_change_is_told_with_its_first_lines(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    kept = tmp_path / "before.jsonl"
    replay.main(["--record", str(kept), "--only", ONLY, "--processes", "1"])
    ((name, found),) = replay.read(kept).items()
    kept.write_text(json.dumps([name, found | {"ir cuda": "another\n" + found["ir cuda"]}]) + "\n")
    assert replay.main(["--against", str(kept), "--only", ONLY, "--processes", "1"]) == 1
    out = capsys.readouterr().out
    assert f"ir: 1\n  {name}" in out and "-another" in out


def test_differences_are_grouped_by_what_differs() -> None:
    before = {"a": {"ir cuda": "1", "source cuda": "1"}, "b": {"refusal cpu": "x"}, "c": {"ir cpu": "1"}, "old": {}}
    after = {"a": {"ir cuda": "2", "source cuda": "2"}, "b": {"ir cpu": "1"}, "c": {"ir cpu": "1"}, "new": {}}
    assert replay.differences(before, after) == {"ir + refusal": ["b"], "ir + source": ["a"]}
    text = replay.report(before, after, 5)
    assert text.startswith("3 programs on both sides: 1 the same, 2 differ\n2 on one side only: new, old")


def test_a_refused_program_is_recorded_with_its_counterexample() -> None:
    found = replay.recorded(replay.Program("examples/01_matmul.tile", "", "gemm_cpu", "ampere"))
    assert found["refusal cuda"].startswith("memory-over-capacity at line ") and found["counterexample cuda"]


def test_every_kept_program_reads_and_compiles_or_is_refused() -> None:
    kept = [p for p in replay.programs() if p.title and p.schedule == ""]
    assert len(kept) == 80 * len(replay.DRAWN_FOR)
    for program in kept[::40]:
        found = replay.recorded(program)
        assert found and not any(kind.startswith("traceback") for kind in found), (program, found)
