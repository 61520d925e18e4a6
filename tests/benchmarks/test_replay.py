"""`make replay` compiles the same programs with two versions and tells which came out differently, and how."""

from __future__ import annotations

import collections
import json
from pathlib import Path

import pytest

from benchmarks import replay

ONLY = "06_row_sum.tile simt @ ampere"


@pytest.fixture
def baseline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A baseline of one program, with explanations of its own."""
    monkeypatch.setattr(replay, "BASELINE", tmp_path / "baseline.json")
    monkeypatch.setattr(replay, "EXPLAINED", tmp_path / "explained.json")
    assert replay.main(["--baseline", "--only", ONLY, "--processes", "1"]) == 0
    return tmp_path / "baseline.json"


def change(baseline: Path) -> str:
    """Makes the baseline differ from what the compiler gives; the program's name."""
    ((name, found),) = json.loads(baseline.read_text()).items()
    baseline.write_text(json.dumps({name: found | {"ir cuda": "another"}}))
    return str(name)


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


def test_a_program_like_its_baseline_has_no_difference(baseline: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert replay.main(["--only", ONLY, "--processes", "1"]) == 0
    assert "1 the same, 0 differ" in capsys.readouterr().out


def test_a_difference_from_the_baseline_is_told_beside_its_text_then(
    baseline: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    name = change(baseline)
    (found,) = [replay.recorded(p) for p in replay.programs() if str(p) == name]
    then = {name: found | {"ir cuda": "another\n" + found["ir cuda"]}}
    monkeypatch.setattr(replay, "_texts_before", lambda names, processes: {n: then[n] for n in names})
    assert replay.main(["--only", ONLY, "--processes", "1"]) == 1
    out = capsys.readouterr().out
    assert f"ir: 1\n  {name}" in out and "-another" in out and "--explain" in out


def test_without_the_commit_of_the_baseline_a_difference_is_still_told(
    baseline: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    name = change(baseline)
    monkeypatch.setattr(replay, "baseline_commit", lambda: "")
    assert replay.main(["--only", ONLY, "--processes", "1"]) == 1
    assert f"  {name}\ngit does not have the text of the baseline" in capsys.readouterr().out


def test_an_explained_difference_is_accepted_with_its_reason(baseline: Path, capsys: pytest.CaptureFixture[str]) -> None:
    change(baseline)
    explained = ["--against", "baseline", "--explain", "rows are summed in turns"]  # as `make replay` says it
    assert replay.main([*explained, "--only", ONLY, "--processes", "1"]) == 0
    assert replay.main(["--only", ONLY, "--processes", "1"]) == 0
    assert "explained before: 1 programs: rows are summed in turns" in capsys.readouterr().out


def test_only_differences_from_the_baseline_are_explained(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        replay.main(["--against", "HEAD", "--explain", "rows are summed in turns", "--only", ONLY])
    assert "--explain is for differences from the baseline" in capsys.readouterr().err


def test_the_baseline_is_written_once(baseline: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        replay.main(["--baseline", "--only", ONLY, "--processes", "1"])
    assert "baseline.json exists" in capsys.readouterr().err


def test_a_refused_program_is_recorded_with_its_counterexample() -> None:
    found = replay.recorded(replay.Program("examples/01_matmul.tile", "", "gemm_cpu", "ampere"))
    assert found["refusal cuda"].startswith("memory-over-capacity at line ") and found["counterexample cuda"]


def test_there_are_as_many_programs_as_are_compared() -> None:
    count = collections.Counter(Path(p.file).parent.name for p in replay.programs() if p.title and p.schedule == "")
    assert count["drawn"] + count["steered"] >= 2_500 and count["constructed"] >= 1_000


def test_programs_come_out_as_the_baseline_or_an_explanation_says(capsys: pytest.CaptureFixture[str]) -> None:
    """A sample, in a process in which no other test has defined instructions; `make replay` compares all of them."""
    assert replay.main(["--every", "150", "--processes", "1"]) == 0, capsys.readouterr().out


def test_reworded_comments_are_no_difference() -> None:
    now = "barrier();  // read of S[i] at s.py:9, one iteration of `k` earlier, then write of S[i] at s.py:7"
    assert replay.in_words_then(now) == now.replace("iteration", "round")


def test_reworded_comments_occur_in_the_emitters() -> None:
    emitters = "".join(p.read_text(encoding="utf-8") for p in (replay.ROOT / "lowering").rglob("*.py"))
    pairs = json.loads(replay.REWORDED.read_text(encoding="utf-8"))
    assert [now for now, _ in pairs if now not in emitters] == []
    assert [then for _, then in pairs if then in emitters] == []
