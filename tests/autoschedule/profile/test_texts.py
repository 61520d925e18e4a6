"""The texts of probes run: as CUDA and HIP on this processor, one round of each, and by OpenCL here. No times are looked at."""

import pytest

from tests.gpu.emulated import PROFILES, Driver
from tilelang.autoschedule.profile import findings
from tilelang.autoschedule.profile.aspects import ASPECTS, access, local, residence, threads
from tilelang.autoschedule.profile.bench import Bench
from tilelang.autoschedule.profile.findings import Findings
from tilelang.autoschedule.profile.sampling import Run, Sample
from tilelang.machine import load_profile
from tilelang.targets import local_target
from tilelang.testing import emulation

ONES_BY_TEXT = (
    "KERNEL(probe, 1)(GLOBAL const int *rounds, GLOBAL float *out, GLOBAL const float *in) { out[0] = in[3] * rounds[0]; }"
)

TEXTS = ("lanes", "threads", "residents", "registers", "local", "contiguity", "near", "atomics", "shuffles", "types")
OWN_WORDS = ("atomics", "shuffles", "types")  # what HIP says in other words than CUDA


def emulated(dialect: str) -> Bench:
    """A bench of one core whose texts this processor runs."""
    driver = Driver(dialect)
    bench = Bench(driver.device, load_profile(PROFILES[dialect]).with_queried(compute_units=1))
    bench.driver = driver
    return bench


def once(run: Run, rounds: int = 1, repeats: int = 1) -> Sample:
    """One round, not timed but by the clock."""
    return Sample(run(1), 0.0, 1.0, 1, 1)


@pytest.mark.skipif(emulation.absent() is not None, reason=emulation.absent() or "")
@pytest.mark.parametrize(("aspect", "dialect"), [*((a, "cuda") for a in TEXTS), *((a, "hip") for a in OWN_WORDS)])
def test_texts_of_cuda_and_hip_do_nothing_forbidden(aspect: str, dialect: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """No access beyond an array, no race, no barrier that some threads miss."""
    monkeypatch.setattr(findings, "sampled", once)
    monkeypatch.setattr(threads, "MOST_THREADS", 2)
    monkeypatch.setattr(residence, "MOST_BLOCKS", 2)
    monkeypatch.setattr(residence, "WALKED_BYTES", 1 << 14)
    monkeypatch.setattr(residence, "UNIT_BYTES", 1 << 15)
    monkeypatch.setattr(residence, "HELD", (32,))
    monkeypatch.setattr(local, "STRIDES", (1, 32))
    monkeypatch.setattr(local, "STATIC_BYTES", 4096)
    monkeypatch.setattr(access, "SPAN_BYTES", 1 << 20)
    bench = emulated(dialect)
    found = Findings({"l2_bytes": 1 << 18, "l1_bytes": 1 << 14, "clock_ghz": 1.0})
    ASPECTS[aspect].ask(bench, found)
    assert found.rows and all(row.seconds > 0 for row in found.rows)


@pytest.mark.parametrize("aspect", ["lanes", "threads", "registers", "local", "contiguity", "atomics", "types", "images"])
def test_texts_of_opencl_run_here(aspect: str, monkeypatch: pytest.MonkeyPatch) -> None:
    target = local_target("pocl", "opencl")
    assert target.device is not None
    monkeypatch.setattr(findings, "sampled", once)
    monkeypatch.setattr(access, "SPAN_BYTES", 1 << 20)
    found = Findings({})
    ASPECTS[aspect].ask(Bench(target.device, target.profile), found)
    assert found.rows and all(row.seconds > 0 for row in found.rows)
    assert aspect != "images" or found.rates["image_outside_value"][0] == 0  # a clear border, says OpenCL of such images


def test_a_value_of_a_text() -> None:
    import numpy as np

    target = local_target("pocl", "opencl")
    assert target.device is not None
    assert Bench(target.device, target.profile).value_of_text(ONES_BY_TEXT, np.arange(4, dtype=np.float32)) == 3
