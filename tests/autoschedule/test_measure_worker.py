"""What the process does that measures, here in this one: on a device with memory of its own, whose events tell the times."""

from pathlib import Path

import numpy as np
import pytest

import tilelang as tl
from tests.gpu.emulated import Driver
from tilelang.autoschedule.tune.programs import program_of
from tilelang.autoschedule.tune.worker import Bench, Program, Setting
from tilelang.lowering.drivers import interface as drivers
from tilelang.options import Options
from tilelang.testing import emulation

pytestmark = pytest.mark.skipif(emulation.absent() is not None, reason=str(emulation.absent()))

i, j = tl.axes(i=6, j=256)
X = tl.input("X", tl.float32, i, j)
Y = tl.define("Y", tl.sum(X[i, j], over=j), i)
TWO_KERNELS = tl.schedule(Y).tile(i=2, j=64).to(tl.block).tile(i=1, j=16).to(tl.thread)


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Bench:
    emulated, real = Driver("cuda"), drivers.load
    monkeypatch.setattr(drivers, "load", lambda name: emulated if name == "cuda" else real(name))
    np.arange(6 * 256, dtype=np.float32).tofile(tmp_path / "X")
    return Bench(Setting(emulated.device, "", ({"X": tmp_path / "X"},), {"Y": 24}))


def test_results_and_times_of_a_device_with_its_own_memory(bench: Bench, tmp_path: Path) -> None:
    program = program_of(TWO_KERNELS, tl.target("cuda", profile="hopper"), Options())
    assert isinstance(program, Program) and len(program.launches) > 1 and program.workspace
    bench.load(3, program)
    bench.run(3, 0, {"Y": tmp_path / "Y"})
    wanted = np.arange(6 * 256, dtype=np.float32).reshape(6, 256).sum(axis=1)
    assert np.fromfile(tmp_path / "Y", np.float32).tolist() == wanted.tolist()


def test_a_sample_has_as_many_calls_as_it_needs(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[int] = []

    def taken_s(self: Bench, number: int, count: int) -> float:
        calls.append(count)
        return 1e-4 * count

    monkeypatch.setattr(Bench, "_taken_s", taken_s)
    assert bench.sample(0, 1e-3) == {"seconds": pytest.approx(1e-4)}
    assert calls == [1, 1, 13] and bench.sample(0, 1e-3) and calls[3:] == [13]


def test_a_grid_without_blocks_ends(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Bench, "_taken_s", lambda self, number, count: 0.0)
    assert bench.sample(0, 1e-3) == {"seconds": 0.0}


def test_the_devices_own_events_are_summed(bench: Bench) -> None:
    program = program_of(TWO_KERNELS, tl.target("cuda", profile="hopper"), Options())
    assert isinstance(program, Program)
    bench.load(0, program)
    bench.driver.seconds = lambda event: 1.0  # type: ignore[method-assign]
    assert bench._taken_s(0, 3) == 3.0 * len(program.launches)
