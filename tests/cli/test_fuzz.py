"""`tilelang fuzz`: planted faults are found, made small and printed as files that show them again; what is right is counted."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import pytest

import tilelang as tl
from tests.cli.commands import GEMM, of_json, tilelang
from tests.planted import leave_out_barriers
from tilelang.errors import DeviceError
from tilelang.testing import Seeded, fuzzing, kernel_checks
from tilelang.testing.fuzz_worker import Outcome, Trial, tried

CPU = tl.target("cpu")
SIMULATED = tl.target("opencl", profile="simulated")
SUM = """computation total(N = 40, M, type = float32) {
  input X: type[i: M, j: N]
  output Y[i] = sum[j] X[i, j]
}
schedule staged(B = 4) for total { tile i=B -> block; load X in shared; tile i=1 -> thread; split j=8 }
"""


class Here:
    """Tries cases in this process, where a test can break the compiler."""

    def __init__(self, target: tl.Target) -> None:
        self.target = target

    def outcome(self, case: fuzzing.Case) -> Outcome:
        return tried(case.trial, self.target)

    def end(self) -> None:
        pass


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = tmp_path / "f.tile"
    path.write_text(SUM)
    return str(path)


@pytest.fixture
def broken(monkeypatch: pytest.MonkeyPatch) -> None:
    """No program has a barrier."""
    leave_out_barriers(monkeypatch, kernel_checks, "as_threads")
    monkeypatch.setattr(fuzzing, "Trials", Here)


@pytest.mark.usefixtures("broken")
def test_a_planted_fault_is_found_made_small_and_printed_as_a_file(file: str, tmp_path: Path) -> None:
    found = tmp_path / "found.tile"
    result = tilelang("fuzz", file, "--target", "opencl", "-p", "simulated", "--seconds", "30", "-o", str(found))
    assert result.exit_code == 1 and "a fault found" in result.stderr
    text = found.read_text()
    assert text.rstrip() == result.stdout.rstrip() and "data-race" in text
    plan = tl.parse(text).schedule()
    assert all(a.extent <= 4 for a in plan.computation.axes) and len(plan.steps) <= 3
    again = tilelang(
        *"fuzz FILE --target opencl --profile simulated --data integers --seed 0 --seconds 1".replace("FILE", str(found)).split()
    )
    assert again.exit_code == 1 and "# to reproduce it: tilelang fuzz FILE --target opencl --profile simulated --data" in text
    told = of_json(tilelang("fuzz", str(found), "--target", "opencl", "-p", "simulated", "--seconds", "1", "--json"))
    assert told["fault"]["kind"] == "wrong" and tl.parse(told["fault"]["text"]).schedule().hash == plan.hash


@pytest.mark.slow
def test_what_is_right_is_counted_and_refusals_by_code(file: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fuzzing, "Trials", Here)
    result = tilelang("fuzz", file, "--seconds", "3", "--seed", "3", "-S", "N=9", "--target", "opencl", "-p", "simulated")
    assert result.exit_code == 0 and "no faults found" in result.stdout and not result.stderr
    found = of_json(tilelang("fuzz", file, "--seconds", "3", "--json", "--target", "opencl", "-p", "simulated"))
    assert found["fault"] is None and found["right"] > 5
    assert found["cases"] == found["right"] + sum(found["refused"].values()) + sum(found["set_aside"].values())


@pytest.mark.slow
def test_cases_run_in_a_process_of_their_own(file: str) -> None:
    result = tilelang("fuzz", file, "--seconds", "1", "-s", "staged")
    assert result.exit_code == 0 and "no faults found" in result.stdout


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("-s", "other"), "unknown-schedule"), (("-S", "Q=3"), "unknown-parameter"), (("--seconds", "0"), "0"),
        (("--data", "odd"), "odd"), (("--target", "vulkan"), "unknown-dialect"),
    ],
)  # fmt: skip
def test_what_is_asked_wrongly_is_a_usage_error(file: str, arguments: tuple[str, ...], said: str) -> None:
    result = tilelang("fuzz", file, *arguments)
    assert result.exit_code == 2 and said in result.stderr


def test_a_text_with_faults_is_not_fuzzed(tmp_path: Path) -> None:
    path = tmp_path / "f.tile"
    path.write_text("computation f(N) { input X: float32[i: N] output Y[i] = Z[i] }\nschedule for f { tile i=4, -> block }")
    result = tilelang("fuzz", str(path))
    assert result.exit_code == 1 and "comma-between-sizes" in result.stderr
    path.write_text(GEMM)  # one of its schedules names an axis that is not there
    assert "unknown-axis" in tilelang("fuzz", str(path), "-s", "wrong").stderr


@pytest.mark.parametrize("text", ["", "# nothing", "when 1 > 2 { computation f { input A: float32[i: 4] output Y[i] = A[i] } }"])
def test_a_text_without_a_computation_is_not_fuzzed(text: str, tmp_path: Path) -> None:
    path = tmp_path / "empty.tile"
    path.write_text(text)
    result = tilelang("fuzz", str(path), "--seconds", "1")
    assert result.exit_code == 2 and "which-computation" in result.stderr


def test_an_interrupt_prints_the_summary(file: str, monkeypatch: pytest.MonkeyPatch) -> None:
    class Interrupted(Here):
        def outcome(self, case: fuzzing.Case) -> Outcome:
            raise KeyboardInterrupt

    monkeypatch.setattr(fuzzing, "Trials", Interrupted)
    result = tilelang("fuzz", file)
    assert (
        result.exit_code == 0
        and "0 cases" in result.stdout
        and "(interrupted)" in result.stdout
        and "the result is inconclusive" in result.stdout
    )


def test_computations_without_a_schedule_get_constructed_and_random_ones() -> None:
    i, j = tl.axes(i=5, j=6)
    X = tl.input("X", tl.float32, i, j)
    whole = tl.computation("f", tl.define("Y", tl.max(X[i, j], over=j), i))
    drawn = fuzzing.cases([fuzzing.Subject("f", whole)], SIMULATED, 0, fuzzing.DATA)
    made = [next(drawn) for _ in range(40)]
    plans = {case.schedule.text for case in made if isinstance(case, fuzzing.Case)}
    sizes = {a.extent for case in made if isinstance(case, fuzzing.Case) for a in case.schedule.computation.axes}
    assert len(plans) > 10 and {0, 1} < sizes
    assert [case.data for case in made[:7] if isinstance(case, fuzzing.Case)] == list(fuzzing.DATA)


def test_parameters_are_drawn_and_given_ones_stay(file: str) -> None:
    from tilelang.cli.common import Asked
    from tilelang.cli.fuzz import subjects_of

    asked = Asked(file, tl.parse(SUM), None, {"N": 40}, None)
    (subject,) = subjects_of(asked, SIMULATED)
    assert isinstance(subject.own, tl.Schedule) and {a.name: a.extent for a in subject.own.computation.axes} == {"i": 24, "j": 40}
    assert subject.draw is not None
    drawn = [subject.draw(Seeded(seed)) for seed in range(30)]
    extents = [{a.name: a.extent for a in plan.computation.axes} for plan in drawn if isinstance(plan, tl.Schedule)]
    assert {e["j"] for e in extents} == {40} and len({e["i"] for e in extents}) > 5
    assert len({plan.text for plan in drawn if isinstance(plan, tl.Schedule)}) > 2  # B, too


def test_outcomes() -> None:
    def of(text: str, data: str = "random") -> Outcome:
        return tried(Trial(text, data, 0), SIMULATED)

    head = "computation f { input X: float32[i: 4000] output Y[i] = X[i] + 1.0 }\n"
    assert of(head + "schedule for f { }").kind == "right"
    assert of(head + "schedule for f { tile q=4 -> block }") == Outcome("refused", "unknown-axis")
    large = head.replace("4000", "400000")
    assert of(large + "schedule for f { }") == Outcome("set aside", "too-much-to-simulate")
    assert of("computation f {").kind == "crashed" and "cannot be read" in of("computation f {").said[0]


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (AssertionError("odd"), "crashed"),
        (DeviceError("compile-failed", "no"), "wrong"),
        (DeviceError("no-driver", "no"), "set aside"),
    ],
)
def test_errors_that_are_faults(error: Exception, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*arguments: Any, **named: Any) -> Any:
        raise error

    monkeypatch.setattr("tilelang.runtime.kernel.compile", fails)
    found = tried(Trial("computation f { input X: float32[i: 4] output Y[i] = X[i] + 1.0 }", "random", 0), SIMULATED)
    assert found.kind == kind


class Calls:
    """What calls a function in the process that reads it."""

    def __init__(self, function: Any, *arguments: Any) -> None:
        self.call = function, arguments
        self.trial = self

    def __reduce__(self) -> Any:
        return self.call


@pytest.mark.slow
def test_a_process_that_is_taken_down_is_told_and_started_anew() -> None:
    case: Any = Calls(os._exit, 3)
    trials = fuzzing.Trials(CPU, seconds=2)
    try:
        assert trials.outcome(case) == Outcome(
            "crashed", "exit code 3", ("compiling or simulating it ended the process with exit code 3",)
        )
        slow: Any = Calls(time.sleep, 30)
        assert trials.outcome(slow) == Outcome("set aside", "took-too-long")
    finally:
        trials.end()


RUNNING = (  # what the process says before a kernel runs
    "import gc, io, os, time\n"
    "for f in gc.get_objects():\n"
    "    if isinstance(f, io.TextIOWrapper) and isinstance(f.name, int) and f.name > 2: print('\"running\"', file=f, flush=True)\n"
)


@pytest.mark.slow
def test_a_kernel_that_hangs_or_takes_its_process_down_is_a_fault() -> None:
    trials = fuzzing.Trials(CPU, seconds=2)
    hangs: Any = Calls(exec, RUNNING + "time.sleep(60)")
    assert trials.outcome(hangs) == Outcome("hung", said=("running the kernel: it did not end within 2 s",))
    dies: Any = Calls(exec, RUNNING + "os.abort()")
    found = trials.outcome(dies)
    assert (
        found.kind == "died" and found.is_fault and found.said[0].startswith("running the kernel ended the process with signal 6")
    )


@pytest.mark.skipif(not hasattr(os, "killpg"), reason="processes have no groups here")
def test_what_a_process_has_started_ends_with_it(tmp_path: Path) -> None:
    began = tmp_path / "began"
    case: Any = Calls(os.system, f"echo $$ > {began}; sleep 60")
    trials = fuzzing.Trials(CPU, seconds=4)
    assert trials.outcome(case).code == "took-too-long"
    with pytest.raises(ProcessLookupError):
        for _ in range(100):
            os.kill(int(began.read_text()), 0)
            time.sleep(0.05)


def test_a_process_that_does_not_start_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    target: Any = Calls(os._exit, 1)
    with pytest.raises(DeviceError) as caught:
        fuzzing.Trials(target).outcome(Calls(int))  # type: ignore[arg-type]
    assert caught.value.code == "no-fuzzing"
