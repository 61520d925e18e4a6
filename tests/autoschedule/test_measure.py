"""Candidates are checked and timed in a process that they may take down; what fails is told, and the others go on."""

import dataclasses
import math
import os
import signal
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

import tilelang as tl
from tilelang.autoschedule.tune import measure as module
from tilelang.autoschedule.tune.measure import LIMIT_S, Measured, Trial, measure
from tilelang.autoschedule.tune.programs import program_of
from tilelang.autoschedule.tune.worker import Program
from tilelang.errors import DeviceError
from tilelang.schedules.schedule import Schedule
from tilelang.semantics import reference

i, j = tl.axes(i=40, j=24)
X = tl.input("X", tl.float32, i, j)
Y = tl.define("Y", tl.sum(X[i, j] * 2.0, over=j), i)
PLAIN = tl.schedule(Y)
CANDIDATES = [PLAIN.tile(i=n).to(tl.block) for n in (4, 8, 16)]
HANG = "for (volatile int x = 0; x >= 0; x = x & 7) {}"
CRASH = "*(volatile float*)8 = 1.0f;"
WRONG = "return;"


def measured(candidates: Sequence[Schedule] = CANDIDATES, **more: Any) -> Measured:
    return measure(PLAIN.computation, candidates, tl.target("cpu"), samples=4, **more)


@pytest.fixture
def sabotage(monkeypatch: pytest.MonkeyPatch) -> Callable[[Schedule, str], None]:
    """Puts a statement in front of a candidate's kernels."""
    texts: dict[str, str] = {}
    real = program_of

    def program(schedule: Schedule, *rest: Any) -> Any:
        made = real(schedule, *rest)
        if schedule.text not in texts or not isinstance(made, Program):
            return made
        head, brace, body = made.source.partition(") {")
        assert brace
        return dataclasses.replace(made, source=f"{head}{brace}\n{texts[schedule.text]}\n{body}")

    monkeypatch.setattr(module, "program_of", program)
    return lambda schedule, text: texts.update({schedule.text: text})


def test_every_candidate_is_checked_and_timed_in_turns() -> None:
    found = measured()
    assert [t.schedule for t in found.trials] == CANDIDATES and not any(t.code for t in found.trials)
    for trial in found.trials:
        assert len(trial.seconds) == 4 and trial.median_s > 0 <= trial.iqr_s
        assert trial.error_ratio is not None and 0 <= trial.error_ratio <= 1
    assert found.best is not None and found.best.median_s == min(t.median_s for t in found.trials)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "code"), [(HANG, "timeout"), (CRASH, "crashed"), (WRONG, "wrong"), ("nonsense;", "compile-failed")]
)
def test_a_candidate_that_fails_is_told_and_the_others_go_on(
    sabotage: Callable[[Schedule, str], None], text: str, code: str
) -> None:
    sabotage(CANDIDATES[1], text)
    first, second, third = measured(limit_s=8.0 if code == "timeout" else LIMIT_S).trials
    assert (first.code, second.code, third.code) == ("", code, "")
    assert second.why and not second.seconds and second.median_s == math.inf
    assert first.seconds and third.seconds


def test_what_cannot_be_lowered_is_told() -> None:
    impossible = PLAIN.tile(i=8).to(tl.block).tile(i=1).to(tl.warpgroup)
    found = measured([impossible, CANDIDATES[0]])
    assert found.trials[0].code and not found.trials[1].code
    assert str(found.trials[0]).startswith(f"{found.trials[0].code}: ")


def test_nothing_is_tried_after_one_that_is_near_the_bound() -> None:
    stages: list[tuple[str, int, int]] = []
    found = measured(bound_s=1.0, progress=lambda *told: stages.append(told))
    assert [t.code for t in found.trials] == ["", "not-tried", "not-tried"] and found.bound_s == 1.0
    assert stages == [("check", 0, 3), ("check", 3, 3), ("time", 3, 4), ("time", 4, 4)]


def test_where_nothing_is_right_nothing_is_best(sabotage: Callable[[Schedule, str], None]) -> None:
    sabotage(CANDIDATES[0], WRONG)
    assert measured(CANDIDATES[:1]).best is None


def test_a_profile_without_a_device_is_refused() -> None:
    with pytest.raises(DeviceError) as caught:
        measure(PLAIN.computation, CANDIDATES, tl.target("opencl", profile="simulated"))
    assert caught.value.code == "no-device"


def test_a_process_that_cannot_begin_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.executable", "/bin/false")
    with pytest.raises(DeviceError) as caught:
        measured()
    assert caught.value.code == "no-measurement" and "exit code 1" in caught.value.message


def test_no_room_for_the_inputs_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "nowhere"))
    with pytest.raises(DeviceError) as caught:
        measured()
    assert caught.value.code == "no-measurement" and "No such file" in caught.value.message


def test_a_candidate_is_not_blamed_for_what_another_did(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that dies with one candidate is not held against it where others had run there before."""
    real, died = module._Process.ask, list[int]()

    def ask(self: Any, what: str, limit_s: float, *arguments: Any) -> Any:
        if what == "run" and arguments[0] == 1 and not died:
            died.append(1)
            os.killpg(self._child.pid, signal.SIGKILL)
        return real(self, what, limit_s, *arguments)

    monkeypatch.setattr(module._Process, "ask", ask)
    assert not any(t.code for t in measured().trials) and died == [1]


def test_the_reference_is_known_before_anything_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    real, order = reference.evaluate_and_bound, list[str]()

    def evaluated(*given: Any) -> Any:
        order.append("reference")
        return real(*given)

    def began(self: Any, setting: Any) -> None:
        order.append("process")
        start(self, setting)

    start = module._Process.__init__
    monkeypatch.setattr(reference, "evaluate_and_bound", evaluated)
    monkeypatch.setattr(module._Process, "__init__", began)
    measured()
    assert order == ["reference", "reference", "process"]


def test_only_what_is_outclassed_gets_fewer_samples(monkeypatch: pytest.MonkeyPatch) -> None:
    times = {0: 2.0, 1: 1.0, 2: 1.4}
    monkeypatch.setattr(module._Bench, "sample_s", lambda self, number: times[number])
    found = measure(PLAIN.computation, CANDIDATES, tl.target("cpu"))
    assert [len(t.seconds) for t in found.trials] == [5, 11, 11]


@pytest.mark.slow
@pytest.mark.parametrize("when", ["", "load", "run", "sample"])
def test_an_interrupt_leaves_no_process_and_no_files(when: str, tmp_path: Path) -> None:
    code = f"""
        import os, signal, tilelang as tl
        from tests.autoschedule.test_measure import CANDIDATES, PLAIN
        from tilelang.autoschedule.tune import best, measure

        real = measure._Process.ask

        def ask(self, what, *rest):
            if what == {when!r}:
                print(self._child.pid, flush=True)
                os.kill(os.getpid(), signal.SIGINT)
            return real(self, what, *rest)

        measure._Process.ask = ask
        try:
            best.best(PLAIN.computation, CANDIDATES, tl.target("cpu"), 2)
        except KeyboardInterrupt:
            os.waitpid(-1, os.WNOHANG)  # raises: no child is left
    """
    given = {**os.environ, "TMPDIR": str(tmp_path), "TILELANG_DATABASE": str(tmp_path / "none.sqlite")}
    start = f"import sys; sys.path[:] = {sys.path!r}\n" + textwrap.dedent(code)
    done = subprocess.run([sys.executable, "-c", start], env=given, capture_output=True, text=True)
    assert done.stderr.strip().endswith("ChildProcessError: [Errno 10] No child processes"), done.stderr
    with pytest.raises(ProcessLookupError):
        os.kill(int(done.stdout), 0)
    assert not list(tmp_path.glob("tilelang-*")) and not (tmp_path / "none.sqlite").exists()


def test_medians_and_quartiles() -> None:
    trial = Trial(PLAIN, (4.0, 1.0, 2.0, 3.0, 5.0))
    assert (trial.median_s, trial.iqr_s) == (3.0, 2.0) and Trial(PLAIN, (1.0,)).iqr_s == 0.0
    assert Measured((trial, Trial(PLAIN, (2.0,)), Trial(PLAIN, code="wrong", why=""))).best == Trial(PLAIN, (2.0,))
