"""Runs of `benchmarks/operators.py`: they go on where they stopped, say what is wrong with what they are given, and lose nothing."""

from __future__ import annotations

import importlib.util
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import tilelang as tl
from benchmarks import (
    harness,
    operators,
    operators_cases,
    operators_metaschedule,
    operators_ours,
    operators_peers,
    operators_results,
)

HEAD = {"what": "times", "operator": "M0", "class": "product", "extents": [1]}


def test_a_run_goes_on_and_its_table_is_whole(
    quick: tl.Target, small_set: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    results = ["--results", str(tmp_path / "rows.jsonl"), "--rounds", "1"]
    for what in ("times", "ranking", "sweep"):
        assert operators.main([*results, "--what", what, "--only", "M0,C0", "--worker"]) == 0
        assert (
            operators.main([*results, "--what", what, "--only", ",".join(o.id for o in operators_cases.read()), "--worker"]) == 0
        )
    rows, _ = operators_results.read(tmp_path / "rows.jsonl")
    assert len(rows) == 3 * len(operators_cases.CLASSES) and not any("begun" in row or row["wrong"] for row in rows.values())
    begun = (tmp_path / "rows.jsonl").read_text(encoding="utf-8").count('"begun"')
    assert begun == len(rows)  # nothing was measured twice
    capsys.readouterr()
    assert operators.main([*results, "--table"]) == 0
    table = capsys.readouterr().out
    assert all(
        f"\n{name}" in table for name in (*operators_cases.CLASSES.values(), "all", "TVM", "formula to schedule", "Shares of the")
    )


def test_what_never_ends_is_left_out_after_two_attempts(
    quick: tl.Target, small_set: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def crash(*_: object) -> None:
        raise SystemExit(9)

    monkeypatch.setitem(operators.MEASURED, "times", crash)
    arguments = ["--results", str(tmp_path / "rows.jsonl"), "--only", "M0"]
    for _ in range(operators.MOST_BEGUN):
        with pytest.raises(SystemExit):
            operators.main([*arguments, "--worker"])
    assert operators.main([*arguments, "--worker"]) == 0
    assert operators.main([*arguments, "--table"]) == 1
    assert "FAILED: M0 (times): begun 2 times, never ended" in capsys.readouterr().out


def test_an_operator_that_raises_has_a_row_that_says_why(
    quick: tl.Target, small_set: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def refused(*_: object) -> None:
        raise tl.TileLangError("no-way", "nothing fits")

    arguments = ["--results", str(tmp_path / "rows.jsonl")]
    with monkeypatch.context() as patch:
        patch.setitem(operators.MEASURED, "times", refused)
        assert operators.main([*arguments, "--only", "M0", "--worker"]) == 0
    assert "M0 FAILED: TileLangError: error[no-way]: nothing fits" in capsys.readouterr().out
    assert operators.main([*arguments, "--only", "M0,R0", "--worker"]) == 0
    assert operators.main([*arguments, "--table"]) == 1
    out = capsys.readouterr().out
    assert (
        "FAILED: M0 (times): ours: TileLangError" in out and "1 begun, without times: M0" in out and "not measured yet: C0" in out
    )


@pytest.mark.parametrize("who", ["ours", "called", "NumPy"])
def test_only_what_is_ours_fails_a_run(who: str, small_set: None, tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    operators_results.keep(path, {**HEAD, "wrong": {who: "1 of 2 elements"}}, "here")
    assert operators.main(["--results", str(path), "--table"]) == (who != "NumPy")


def test_an_interrupted_operator_is_measured_again_and_the_others_stay(
    quick: tl.Target, small_set: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    path = tmp_path / "rows.jsonl"
    arguments = ["--results", str(path), "--rounds", "1", "--only", "R0,E0", "--worker"]

    def interrupted(operator: operators_cases.Operator, *given: object) -> operators_results.Row:
        if operator.id == "E0":
            raise KeyboardInterrupt
        return {"failed": {"ours": "no time"}}

    with monkeypatch.context() as patch:
        patch.setitem(operators.MEASURED, "times", interrupted)
        for _ in range(operators.MOST_BEGUN + 1):
            assert operators.main(arguments) == operators.INTERRUPTED
    assert operators_results.begun(path, "times", "E0") == 0
    assert operators.main(arguments) == 0
    rows, _ = operators_results.read(path)
    assert rows["times", "R0"]["failed"] == {"ours": "no time"} and rows["times", "E0"]["row_us"]["ours"] > 0


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--only", "m1"], "--only: `m1` is not an operator of the set; like it are M1"),
        (["--only", "M1,C41"], "--only: C41 is C"),
        (["--what", "squares", "--only", "M1"], "--only: `M1` is not an operator of the set; like it are S1024, S2048, S3072"),
        (["--peers", "MKL"], "--peers: `MKL` is none of NumPy, PyTorch, torch.compile, Numba, TVM, onnxruntime, OpenVINO, JAX"),
        (["--rounds", "0"], "--rounds: at least 1"),
        (["--beside", "nowhere.jsonl"], "--beside: nowhere.jsonl does not exist"),
        (["--results", "."], "--results: . is a folder"),
    ],
)
def test_what_makes_no_sense_is_said(arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        operators.main(arguments)
    assert ended.value.code == 2 and said in capsys.readouterr().err


@pytest.mark.parametrize(
    ("what", "least"),
    [("times", set(operators.SELECTED)), ("squares", {"S1024", "S2048", "S3072"}), ("sweep", set(operators.SWEEP))],
)
def test_a_selection_is_never_empty(what: str, least: set[str]) -> None:
    assert {o.id for o in operators.asked(operators.arguments_of(["--selection", "--what", what]))} == least


def test_no_device_is_said(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def absent(dialect: str) -> tl.Target:
        raise tl.TileLangError("no-device", "no device is here")

    monkeypatch.setattr(tl, "target", absent)
    assert operators.main(["--results", str(tmp_path / "rows.jsonl"), "--worker"]) == operators.NO_DEVICE
    assert "There is nothing to measure on: error[no-device]: no device is here" in capsys.readouterr().out


def test_damaged_lines_cost_only_themselves(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "rows.jsonl"
    whole = json.dumps({**HEAD, "operator": "M1", "begun": 1, "device": "here"})
    path.write_bytes(
        b"\n".join([b'{"what": "times", "op', whole.encode(), b"[1]", b"\xff\x00", b'{"what": "times"}', b"", b"half of"])
    )
    harness.record(path, [HEAD], "here")
    rows, damaged = operators_results.read(path)
    assert set(rows) == {("times", "M1"), ("times", "M0")} and damaged == [1, 3, 4, 5, 7]
    assert operators.main(["--results", str(path), "--table"]) == 0
    assert f"{path}: passed over, as no results: lines 1, 3, 4, 5, 7" in capsys.readouterr().out


FULL = """
import resource, sys
from pathlib import Path
from benchmarks import operators_results
path = Path(sys.argv[1])
operators_results.keep(path, {"operator": "first"}, "here")
size = path.stat().st_size
resource.setrlimit(resource.RLIMIT_FSIZE, (size + 20, size + 20))
try:
    operators_results.keep(path, {"operator": "second"}, "here")
except OSError:
    sys.exit(0 if path.stat().st_size == size else 5)
"""


def test_a_full_disk_leaves_the_file_whole_and_the_row_on_the_screen(tmp_path: Path) -> None:
    path, root = tmp_path / "rows.jsonl", Path(operators.__file__).parent.parent
    ended = subprocess.run(
        [sys.executable, "-c", FULL, str(path)],
        capture_output=True,
        text=True,
        cwd=root,
        env={**os.environ, "PYTHONPATH": str(root)},
    )
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout == '{"operator": "second"}\n' and path.read_text(encoding="utf-8").count("\n") == 1


def test_a_row_that_cannot_be_kept_ends_the_run(
    quick: tl.Target, small_set: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    real = harness.record

    def full(path: Path, rows: list[operators_results.Row], device: str) -> None:
        if "begun" not in rows[0]:
            raise OSError(28, "No space left on device")
        real(path, rows, device)

    monkeypatch.setattr(harness, "record", full)
    arguments = ["--results", str(tmp_path / "rows.jsonl"), "--rounds", "1", "--only", "E0", "--worker"]
    assert operators.main(arguments) == operators.NOT_KEPT
    *_, row, said = capsys.readouterr().out.splitlines()
    assert json.loads(row)["row_us"]["ours"] > 0 and said.endswith("the row above could not be written: No space left on device")


# ---------------------------------------------------------------- workers


def started(code: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-c", code])


def test_workers_that_hang_or_crash_are_ended() -> None:
    assert operators.ended(started("import time; time.sleep(600)"), 0.1) == -signal.SIGKILL
    assert operators.ended(started("import os; os.abort()"), 60) == -signal.SIGABRT


def test_a_worker_that_crashes_before_it_measures_is_not_started_for_ever(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(operators, "ended", lambda worker, limit_s: (worker.kill(), worker.wait())[1])
    assert operators.main(["--results", str(tmp_path / "rows.jsonl")]) == 1
    assert "The worker was ended by signal 9 before it began to measure." in capsys.readouterr().out


def test_ctrl_c_says_where_the_results_are(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    class Worker:
        def wait(self, limit_s: float) -> int:
            if limit_s > operators.GRACE_S:
                raise KeyboardInterrupt
            return operators.INTERRUPTED

    monkeypatch.setattr(subprocess, "Popen", lambda command, env: Worker())
    assert operators.main(["--results", str(tmp_path / "rows.jsonl")]) == operators.INTERRUPTED
    assert "rows.jsonl; the same command goes on." in capsys.readouterr().out


def test_absent_peers_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    missing = operators_peers.absent()
    assert missing["PyTorch"] == missing["torch.compile"] == "torch is not installed"
    assert missing["Numba"] == "numba is not installed" and missing["TVM"] == "tvm is not installed"


def test_tvm_is_not_run_where_it_takes_minutes() -> None:
    by_id = {o.id: o for o in operators_cases.read()}
    assert "take minutes" in operators_peers.absent(by_id["M3"])["TVM"]
    assert "take minutes" not in operators_peers.absent(by_id["M1"]).get("TVM", "")


def test_a_slow_contestant_has_one_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(operators_ours, "SLOW_S", 0.0)
    calls: list[str] = []
    found = operators_ours.compare([operators_ours.Call("slow", "there", lambda: calls.append("slow"))], 5, 0)
    assert calls == ["slow"] and found["slow"][0] == found["slow"][1] > 0


def test_what_was_tuned_stands_beside_ours(capsys: pytest.CaptureFixture[str]) -> None:
    times = {"row_us": {"ours": 4.0, "a": 5.0, "b": 3.0}, "alone_us": {"ours": 4.0, "a": 5.0, "b": 8.0}}
    line = operators_metaschedule.show([{"operator": "M2", "trials": 16, **times}]).splitlines()[-1]
    assert line.split() == ["M2", "16", "4", "3", "0.75", "1.25"]
    with pytest.raises(SystemExit):
        operators_metaschedule.main(["tune", "somewhere", "--only", "M2,m3"])
    assert "--only: no operators of the set: m3" in capsys.readouterr().err
