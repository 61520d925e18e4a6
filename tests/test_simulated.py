"""Schedules are checked by simulating them at small sizes: what is right passes, a fault of the compiler is found, limits are told."""

import logging
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tilelang as tl
from tests.cli.commands import of_json, tilelang
from tests.planted import leave_out_barriers
from tests.test_resize import tiled
from tilelang.errors import ComputationError, Refusal, TileLangError
from tilelang.lowering.simulator import simulate
from tilelang.options import Options
from tilelang.runtime import simulated_check

OPENCL = tl.target("opencl", profile="sapphire_rapids")
TEXT = """computation f(M = 2000, N = 64) {
  input X: float32[i: M, j: N]
  output Y[i] = sum[j] X[i, j]
}
schedule good for f { tile i=16 -> block; load X in shared; tile i=2 -> thread }
schedule plain for f { tile i=16 -> block }
"""


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = tmp_path / "f.tile"
    path.write_text(TEXT)
    return str(path)


def without_barriers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Breaks the compiler: no program has a barrier."""
    leave_out_barriers(monkeypatch, simulated_check, "lower")


def without_the_last_element(monkeypatch: pytest.MonkeyPatch) -> None:
    """Breaks the results: the last element of each is another one."""
    run = simulate.run

    def wrong(*given: Any, **named: Any) -> Any:
        report = run(*given, **named)
        for array in report.outputs.values():
            array.reshape(-1)[-1] += 1
        return report

    monkeypatch.setattr(simulate, "run", wrong)


def test_what_is_right_passes_whole_and_partial() -> None:
    verdict = simulated_check.check_simulated(tiled(), OPENCL)
    assert [dict(i.extents) for i in verdict.instances] == [{"m": 128, "n": 128, "k": 64}, {"m": 73, "n": 69, "k": 65}]
    assert verdict.faulty is None and not verdict.skipped


@pytest.mark.parametrize("broken", [without_barriers, without_the_last_element])
def test_a_fault_of_the_compiler_is_found(broken: Any, monkeypatch: pytest.MonkeyPatch, file: str) -> None:
    broken(monkeypatch)
    verdict = simulated_check.check_simulated(tl.read(file).schedule("good"), OPENCL)
    assert verdict.faulty is not None and all(i.faults for i in verdict.instances)
    with pytest.raises(Refusal) as caught:
        tl.compile(tl.read(file).schedule("good"), OPENCL, options=Options(check="simulate"))
    assert caught.value.code == "simulated-wrong" and caught.value.counterexample == verdict.faulty.faults[0]
    found = tilelang("check", file, "--simulate", "-p", "ampere")
    assert found.exit_code == 1 and "error[simulated-wrong]" in found.stderr and f"{file}:5:10" in found.stderr
    assert tilelang("check", file).exit_code == 0


def test_a_kernel_is_given_out_when_its_simulation_is_right(file: str) -> None:
    kernel = tl.compile(tl.read(file).schedule("good"), OPENCL, options=Options(check="simulate"))
    assert not tl.simulate(tl.compile(kernel.schedule, OPENCL)).counts
    assert Options.from_environment({"TILELANG_CHECK": "simulate", "TILELANG_CHECK_SECONDS": "5"}).check_seconds == 5
    for wrong in ("simulated", True):
        with pytest.raises(TileLangError, match="check="):
            Options(check=wrong)  # type: ignore[arg-type]
    with pytest.raises(TileLangError, match="TILELANG_CHECK"):
        Options.from_environment({"TILELANG_CHECK": "all"})


def test_a_time_that_is_over_is_told(file: str, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    verdict = simulated_check.check_simulated(tl.read(file).schedule("good"), OPENCL, seconds=0)
    assert not verdict.instances and verdict.skipped == ("the 0 s that it may take are over",)
    assert str(verdict) == "not simulated: the 0 s that it may take are over"
    monkeypatch.setattr("time.monotonic", iter(range(1000)).__next__)
    with caplog.at_level(logging.WARNING, logger="tilelang"):
        tl.compile(tl.read(file).schedule("good"), OPENCL, options=Options(check="simulate", check_seconds=1))
    assert "f: not simulated: the 1 s that it may take are over" in caplog.text


def test_what_is_too_much_is_told_and_not_found_right(file: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(simulated_check, "MOST_STATEMENTS", 1)
    verdict = simulated_check.check_simulated(tl.read(file).schedule("good"), OPENCL)
    assert not verdict.instances and len(verdict.skipped) == 2 and "too-much-to-simulate" in verdict.skipped[0]
    result = tilelang("check", file, "--simulate")
    assert result.exit_code == 0 and result.stdout.endswith("no errors found; not simulated at every size: good, plain\n")
    assert "no faults found" not in result.stdout


def test_large_tiles_are_simulated_with_shorter_loops() -> None:
    m, n, k = tl.axes(m=4096, n=4096, k=4096)
    A, B = tl.input("A", tl.float32, m, k), tl.input("B", tl.float32, k, n)
    c = tl.define("C", tl.sum(A[m, k] * B[k, n], over=k), m, n)
    large = tl.schedule(c).tile(m=512, n=512).to(tl.block).split(k=512).load("B", tl.shared).split(m=8, n=32).vectorize(n=8)
    verdict = simulated_check.check_simulated(large, tl.target("cpu", profile="avx512"))
    assert len(verdict.instances) == 2 and verdict.faulty is None and not verdict.skipped
    assert all(i.shorter and str(i).startswith("simulated with shorter loops at ") for i in verdict.instances)


def test_many_threads_are_simulated_as_threads_where_their_loops_are_too_much(monkeypatch: pytest.MonkeyPatch) -> None:
    m, n = tl.axes(m=64, n=64)
    shared = tl.schedule(tl.define("Y", tl.input("X", tl.float32, m, n)[m, n] + 1, m, n)).tile(m=16, n=16).to(tl.block)
    shared = shared.load("X", tl.shared).tile(m=1, n=1).to(tl.thread)
    monkeypatch.setattr(simulated_check, "MOST_STATEMENTS", 40)
    verdict = simulated_check.check_simulated(shared, tl.target("cpu", profile="avx2"))
    assert len(verdict.instances) == 2 and verdict.faulty is None and not verdict.skipped


def test_instructions_that_refuse_partial_tiles_are_simulated_with_whole_ones() -> None:
    half = tl.parse(
        "computation C(M = 256, N = 256, K = 256) { input A: float16[m: M, k: K] input B: float16[k: K, n: N]"
        " output C[m, n] = sum[k] cast(A[m, k], float32) * cast(B[k, n], float32) }\n"
        "schedule for C { tile m=32 n=16 -> block; accumulate in register; split k=16; load A in shared; load B in shared;"
        " tile m=16 n=8 -> warp; load A in register; load B in register; do mma_m16n8k16 }"
    ).schedule()
    verdict = simulated_check.check_simulated(half, tl.target("cuda", profile="ampere"))
    assert verdict.instances and verdict.faulty is None


def test_each_axis_along_which_tiles_can_be_partial_is_simulated(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not only the first one, where all of them together are refused; what is too much is told, whatever else was simulated."""
    run, tried = simulated_check._simulated, list[dict[str, int]]()
    refused = Refusal("instruction-tile", "all tiles must be whole, or all but one")
    too_much = ComputationError("too-much-to-simulate", "many statements would be simulated")

    def some(schedule: Any, target: Any, extents: Any, *rest: Any) -> Any:
        partial = [a for a, n in extents.items() if a != "k" and n % 2]
        tried.append(dict(extents))
        if len(partial) > 1:
            raise refused
        if partial == ["n"] and barred:
            raise too_much
        return run(schedule, target, extents, *rest)

    monkeypatch.setattr(simulated_check, "_simulated", some)
    barred = False
    verdict = simulated_check.check_simulated(tiled(), OPENCL)
    partial = [[a for a in "mn" if i.extents[a] % 2] for i in verdict.instances]
    assert ["m"] in partial and ["n"] in partial and not verdict.skipped
    barred = True
    verdict = simulated_check.check_simulated(tiled(), OPENCL)
    assert ["m"] in [[a for a in "mn" if i.extents[a] % 2] for i in verdict.instances]
    assert [why.split(": ")[1] for why in verdict.skipped] == ["too-much-to-simulate"]


def test_check_simulates_every_schedule_that_holds(file: str) -> None:
    result = tilelang("check", file, "--simulate")
    assert result.exit_code == 0, result.stderr
    lines = result.stdout.splitlines()
    assert [line.split(":")[0] for line in lines[:-1]] == ["good", "good", "plain", "plain"]
    assert all(line.endswith("no faults found") for line in lines)
    found = of_json(tilelang("check", file, "--simulate", "-s", "plain", "--json"))
    (name,) = found["simulated"]
    assert name == "plain" and [i["faults"] for i in found["simulated"][name]["instances"]] == [[], []]


def test_check_simulates_what_has_no_schedule(tmp_path: Path) -> None:
    path = tmp_path / "g.tile"
    path.write_text("computation g(N = 5000) { input X: float32[i: N] output Y[i] = pad(X[i - 1]) + X[i] }\n")
    result = tilelang("check", str(path), "--simulate", "-p", "ampere")
    assert result.exit_code == 0 and "g: simulated at i=" in result.stdout


def test_run_with_check_simulates(file: str) -> None:
    found = of_json(tilelang("run", file, "-s", "plain", "--check", "--json"))
    assert found["check"]["right"] and len(found["check"]["simulated"]["instances"]) == 2
    assert "simulated" not in of_json(tilelang("run", file, "-s", "plain", "--check", "--no-simulate", "--json"))["check"]


def test_a_tensor_without_axes_is_simulated() -> None:
    i = tl.axes(i=4)
    x, b = tl.input("X", tl.float32, i), tl.input("B", tl.float32)
    schedule, target = tl.schedule(tl.define("Y", x[i] * b[()], i)), tl.target("opencl", profile="simulated")
    report = tl.simulate(tl.compile(schedule, target), X=np.ones(4, np.float32), B=np.array(3, np.float32))
    assert not report.findings
    assert report.outputs["Y"].tolist() == [3.0] * 4
    verdict = simulated_check.check_simulated(schedule, target)
    assert verdict.instances and not verdict.skipped and verdict.faulty is None


@pytest.mark.parametrize("dtype", [tl.float32, tl.bfloat16, tl.float8_e4m3, tl.uint8])
def test_simulated_outputs_have_the_shapes_and_types_of_their_tensors(dtype: tl.DType) -> None:
    i = tl.axes(i=4)
    X = tl.input("X", dtype, i)
    largest, above = tl.define("largest", tl.max(X[i], over=i)), tl.define("above", X[i] > 1, i)
    both = tl.computation("both", (largest, above))
    kernel = tl.compile(both, OPENCL)
    outputs = tl.simulate(kernel, X=np.arange(4).astype(dtype.numpy)).outputs
    assert {name: (a.shape, a.dtype) for name, a in outputs.items()} == {
        "largest": ((), np.dtype(dtype.numpy)),
        "above": ((4,), np.dtype(bool)),
    }
    assert both.check(lambda arrays: tl.simulate(kernel, **arrays).outputs).ok


def test_a_power_of_a_half_is_that_of_c() -> None:
    i = tl.axes(i=4)
    kernel = tl.compile(tl.define("Y", tl.input("X", tl.float32, i)[i] ** 0.5, i), tl.target("opencl", profile="simulated"))
    found = tl.simulate(kernel, X=np.array([-np.inf, np.inf, -0.0, 4.0], np.float32)).outputs["Y"]
    assert found.tolist() == [np.inf, np.inf, 0.0, 2.0]
    assert not np.signbit(found[2])


def test_a_result_beyond_the_bound_is_a_finding_of_the_simulator(monkeypatch: pytest.MonkeyPatch) -> None:
    i = tl.axes(i=4)
    kernel = tl.compile(tl.define("Y", tl.input("X", tl.float32, i)[i] * 2, i), OPENCL)
    assert str(tl.simulate(kernel)) == "no faults found"
    without_the_last_element(monkeypatch)
    report = tl.simulate(kernel, X=np.array([1, 2, 3, 4], np.float32))
    assert report.counts == {"wrong-value": 1}
    (finding,) = report.findings
    assert (finding.buffer, finding.element) == ("Y", (3,)) and "wrong-value: Y[3] is 9.0, expected 8.0" in str(finding)


def test_an_output_without_axes_is_simulated_and_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    i = tl.axes(i=40)
    total = tl.schedule(tl.define("S", tl.sum(tl.input("X", tl.float32, i)[i], over=i)))
    verdict = simulated_check.check_simulated(total, OPENCL)
    assert verdict.instances and not verdict.skipped and verdict.faulty is None
    without_the_last_element(monkeypatch)
    assert simulated_check.check_simulated(total, OPENCL).faulty is not None
    assert "wrong-value" in tl.simulate(tl.compile(total, OPENCL)).counts


def test_a_fault_that_only_special_values_show_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """A NaN that is lost."""
    i = tl.axes(i=1000)
    made = tl.schedule(tl.define("Y", tl.input("X", tl.float32, i)[i] * 2, i)).tile(i=64).to(tl.block)
    assert simulated_check.check_simulated(made, OPENCL).faulty is None
    run = simulate.run

    def wrong(*given: Any, **named: Any) -> Any:
        report = run(*given, **named)
        for array in report.outputs.values():
            array[np.isnan(array)] = 0
        return report

    monkeypatch.setattr(simulate, "run", wrong)
    verdict = simulated_check.check_simulated(made, OPENCL)
    assert [f.partition(" of ")[0] for i in verdict.instances for f in i.faults] == ["special values: 1"] * 2
