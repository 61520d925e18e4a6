"""What `make gpu-check` says where there is no GPU, and of checkers that are absent, do not start, or find something."""

from __future__ import annotations

import math
import os
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

import tilelang as tl
from benchmarks import gpu_watch
from tests.errors._computations import matmul, softmax
from tests.gpu import __main__ as check
from tests.gpu import examples
from tests.gpu.emulated import Driver
from tests.gpu.progress import OVER, OVERTIME_S, Progress, outcomes, unfinished
from tilelang.lowering.drivers import interface
from tilelang.testing import emulation


def test_without_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(check, "gpu", lambda done: None)
    assert check.main([]) == 3


def test_the_numeric_suite_is_there() -> None:
    for path in check.NUMERIC:
        file, _, name = path.partition("::")
        assert (check.ROOT / file).exists() and f"def {name}" in ((check.ROOT / file).read_text() if name else "def ")


@pytest.mark.parametrize(
    ("dialect", "why"), [("cuda", "compute-sanitizer is not here"), ("hip", "there is no such checker for hip")]
)
def test_checkers_that_are_not_there(
    dialect: str, why: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: None)
    assert check.check_with("memcheck", dialect) is None
    assert capsys.readouterr().out == f"memcheck: not run: {why}\n"


@pytest.mark.parametrize(
    ("script", "right", "said"),
    [
        ("echo Device not supported; exit 1", None, "memcheck: not run: it does not start here: Device not supported"),
        ("echo ERROR SUMMARY: 0 errors; exit 0", True, "memcheck: ERROR SUMMARY: 0 errors"),
        ("echo ERROR SUMMARY: 2 errors; exit 9", False, "memcheck: ERROR SUMMARY: 2 errors"),
        (
            'case "$*" in *tiny*) exit 0;; esac; echo FAILED first: why; echo between; echo last; echo ERROR SUMMARY: 0; exit 1',
            False,
            "memcheck: FAILED first: why / last / ERROR SUMMARY: 0",
        ),
        ('case "$*" in *tiny*) exit 0;; esac; echo it broke; exit 1', False, "memcheck: it broke"),
        ('case "$*" in *tiny*) exit 0;; esac; exec sleep 60', False, "memcheck: not run to the end: it did not end in 1 s"),
    ],
)
def test_what_a_checker_says(
    script: str, right: bool, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    program = tmp_path / "compute-sanitizer"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    monkeypatch.setattr(shutil, "which", lambda name: str(program))
    monkeypatch.setattr(check, "LEAST_S", 0)
    assert check.check_with("memcheck", "cuda", 1 if "sleep" in script else 60) is right
    assert capsys.readouterr().out == f"{said}\n"


def test_no_checker_is_started_when_the_time_is_over(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: "/nonesuch")
    assert check.check_with("racecheck", "cuda", 5) is None
    assert capsys.readouterr().out == "racecheck: not run: the time is over; `make gpu-check ARGUMENTS=racecheck` runs it alone\n"


SUITE = """
import pathlib
import pytest
from tilelang.errors import DeviceError

def test_first(): pass
def test_fault(): raise DeviceError("launch-failed", "an illegal memory access", help="none")
def test_wrong(): assert 1 == 2
@pytest.mark.skip(reason="not here")
def test_not_here(): pass
def test_last(): pass
"""


@pytest.fixture
def a_device(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> tl.Target:
    """A target whose device is not there, and a suite of few tests that need none."""
    (tmp_path / "test_suite.py").write_text(SUITE)
    monkeypatch.setattr(check, "NUMERIC", (str(tmp_path / "test_suite.py"),))
    monkeypatch.setattr(check, "sources", lambda: "these")
    return tl.target("cuda", device=Driver("cuda").device)


@pytest.mark.slow
def test_the_suite_goes_on_after_a_lost_context_and_in_the_next_run(
    a_device: tl.Target, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    progress = tmp_path / "build" / "progress.jsonl"
    assert not check.numeric(a_device, 0, progress)  # no time: not one test
    assert "is not at its end" in capfd.readouterr().out and not outcomes(progress)
    assert not check.numeric(a_device, 200, progress)
    shown = capfd.readouterr().out
    assert "another process goes on" in shown and "2 failed, 2 passed, 1 skipped" in shown and "is not at its end" not in shown
    assert "an illegal memory access" in shown.partition("FAILED")[2]
    assert not check.numeric(a_device, 200, progress)
    assert "5 tests have ended before" in capfd.readouterr().out
    progress.write_text(progress.read_text().replace("these", "others"))
    lines = [line for line in progress.read_text().splitlines() if "failed" not in line]
    progress.write_text("\n".join(lines))
    assert not check.numeric(a_device, 0, progress) and "0 tests have ended before" in capfd.readouterr().out


def test_a_test_that_does_not_end_has_failed(tmp_path: Path) -> None:
    left = threading.Event()
    progress = Progress(tmp_path / "progress.jsonl", math.inf, 0.05)
    progress.watch.leave = lambda code: left.set()
    progress.pytest_runtest_logstart("test_slow")
    assert left.wait(30)
    assert outcomes(progress.path)["test_slow"]["said"] == "it did not end in 0.05 s"


def test_a_test_in_whose_midst_the_time_is_over_is_run_again(tmp_path: Path) -> None:
    suite, path = tmp_path / "test_suite.py", tmp_path / "progress.jsonl"
    suite.write_text("import time\n\ndef test_slow(): time.sleep(100)\n")
    code = f"""
import sys, pytest
from tests.gpu import progress
progress.OVERTIME_S = 1
sys.exit(pytest.main(["-q", "-n0", "-p", "tests.gpu.progress", "--progress", {str(path)!r}, "--limit-s", "4", {str(suite)!r}]))
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=check.ROOT, capture_output=True, text=True, timeout=90)
    assert done.returncode == OVER and not outcomes(path) and str(unfinished(path)).endswith("test_slow")
    assert OVERTIME_S < gpu_watch.GRACE_S


@pytest.mark.parametrize("lost", [False, True])
def test_every_example_is_tried_after_one_that_fails(
    lost: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fault() -> tl.Schedule:
        raise tl.DeviceError("launch-failed", "Stub: cuLaunchKernel failed: a reason", help="none")

    def unknown() -> tl.Schedule:
        raise tl.DeviceError("kernel-failed", "lost", help="none")

    right = tl.schedule(matmul(2, 3, 4))
    monkeypatch.setattr(examples, "schedules", lambda: [("first", fault), ("second", lambda: right), ("third", fault)])
    if lost:
        monkeypatch.setattr(examples, "tiny", unknown)
    with pytest.raises(SystemExit) as ended:
        examples.every()
    said = "cuLaunchKernel failed: a reason"
    shown = capsys.readouterr().out.splitlines()
    assert ended.value.code == 1 and shown[0] == f"FAILED first: Stub: {said}"
    if lost:
        assert shown[1:] == [
            "0 kernels of examples ran, 1 failed, 0 are refused here; after first the device does nothing more: 2 were not run"
        ]
    else:
        assert shown[1:] == [f"FAILED third: Stub: {said}", "1 kernels of examples ran, 2 failed, 0 are refused here"]


def test_parts(monkeypatch: pytest.MonkeyPatch, a_device: tl.Target, capsys: pytest.CaptureFixture[str]) -> None:
    asked: list[str] = []

    def ask(part: str) -> bool:
        asked.append(part)
        return True

    monkeypatch.setattr(check, "gpu", lambda done: a_device)
    monkeypatch.setattr(check, "check_with", lambda tool, dialect, limit_s: ask(tool))
    monkeypatch.setattr(check, "numeric", lambda target, limit_s, progress: ask("numeric"))
    assert check.main([]) == 0 and asked == list(check.PARTS)
    assert check.main(["racecheck"]) == 0 and asked[5:] == ["racecheck"]
    with pytest.raises(SystemExit):
        check.main(["nonesuch"])


@pytest.mark.skipif(emulation.absent() is not None, reason=str(emulation.absent()))
@pytest.mark.parametrize("dialect", ["cuda", "hip"])
def test_the_runtime_drives_an_emulated_device(dialect: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Memory of its own, workspaces, outputs that are given: everything but the device."""
    driver, real = Driver(dialect), interface.load
    monkeypatch.setattr(interface, "load", lambda name: driver if name == dialect else real(name))
    target = tl.target(device=driver.device)
    assert target.dialect == dialect and target.profile.architecture == driver.device.architecture
    generator = np.random.default_rng(0)
    a, b = generator.integers(-4, 5, (5, 7)).astype(np.float32), generator.integers(-4, 5, (7, 6)).astype(np.float32)
    out = np.zeros((6, 5), np.float32).T
    assert tl.compile(matmul(5, 6, 7), target)(a, b, out=out) is out
    np.testing.assert_array_equal(out, a @ b)
    assert tl.compile(softmax(4, 9), target).check()


@pytest.mark.parametrize(
    ("found", "code", "said"),
    [
        ({"numeric": True, "memcheck": None}, 0, "right: numeric\nNOT right, or not at the end: none\nnot run: memcheck\n"),
        ({"numeric": True, "memcheck": False}, 1, "right: numeric\nNOT right, or not at the end: memcheck\nnot run: none\n"),
    ],
)
def test_the_last_lines_say_what_was_not_run(
    found: dict[str, bool | None], code: int, said: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(check, "gpu", lambda done: tl.target("cuda", profile="hopper"))
    monkeypatch.setattr(check, "numeric", lambda *_: found["numeric"])
    monkeypatch.setattr(check, "check_with", lambda tool, *_: found[tool])
    assert check.main(list(found)) == code
    assert capsys.readouterr().out.endswith(said)


def test_a_benchmark_without_a_group_says_which_there_are() -> None:
    done = subprocess.run(["make", "gpu-bench"], cwd=check.ROOT, capture_output=True, text=True, check=False)
    assert done.returncode and "GROUP=products, or convolutions, or memory" in done.stdout and "Traceback" not in done.stderr


def test_workers_find_what_this_process_finds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", "/elsewhere")
    assert check.environment("cuda")["PYTHONPATH"].split(os.pathsep) == [str(check.ROOT), "/elsewhere"]
    monkeypatch.delenv("PYTHONPATH")
    assert check.environment("cuda")["PYTHONPATH"] == str(check.ROOT)
