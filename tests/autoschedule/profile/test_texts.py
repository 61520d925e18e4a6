"""The texts of probes run: as CUDA and HIP on this processor, one round of each, and by OpenCL here. No times are looked at."""

import re

import pytest

from tests.autoschedule.profile.benches import Compiling
from tests.gpu.emulated import PROFILES, Driver
from tilelang.autoschedule.profile import findings
from tilelang.autoschedule.profile.aspects import ASPECTS, access, local, residence, threads, units
from tilelang.autoschedule.profile.bench import Bench
from tilelang.autoschedule.profile.findings import Findings
from tilelang.autoschedule.profile.sampling import Run, Sample
from tilelang.profiles.files import load_profile
from tilelang.runtime.targets import local_target
from tilelang.testing import emulation

EMULATED = pytest.mark.skipif(emulation.absent() is not None, reason=str(emulation.absent()))
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


def few_and_small(monkeypatch: pytest.MonkeyPatch) -> None:
    """One round of each text, and few texts."""
    monkeypatch.setattr(findings, "sampled", once)
    monkeypatch.setattr(threads, "MOST_THREADS", 2)
    monkeypatch.setattr(residence, "MOST_BLOCKS", 2)
    monkeypatch.setattr(residence, "WALKED_BYTES", 1 << 14)
    monkeypatch.setattr(residence, "UNIT_BYTES", 1 << 15)
    monkeypatch.setattr(residence, "HELD", (32,))
    monkeypatch.setattr(residence, "SHARES", (0.1, 0.5, 1.2))
    monkeypatch.setattr(local, "STRIDES", (1, 32))
    monkeypatch.setattr(local, "STATIC_BYTES", 4096)
    monkeypatch.setattr(access, "SPAN_BYTES", 1 << 20)


@pytest.mark.slow
@EMULATED
@pytest.mark.parametrize(("aspect", "dialect"), [*((a, "cuda") for a in TEXTS), *((a, "hip") for a in OWN_WORDS)])
def test_texts_of_cuda_and_hip_do_nothing_forbidden(aspect: str, dialect: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """No access beyond an array, no race, no barrier that some threads miss."""
    few_and_small(monkeypatch)
    bench = emulated(dialect)
    found = Findings({"l2_bytes": 1 << 18, "l1_bytes": 1 << 14, "clock_ghz": 1.0})
    ASPECTS[aspect].ask(bench, found)
    assert found.rows and all(row.seconds > 0 for row in found.rows)


@pytest.mark.needs_opencl
@pytest.mark.parametrize("profile", ["sapphire_rapids", "opencl_gpu"])
@pytest.mark.parametrize("aspect", [*TEXTS[:6], "atomics", "types", "images"])
def test_texts_of_opencl_run_here(aspect: str, profile: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a processor, and as on a graphics processor: what threads do together, the runtime does one after another."""
    target = local_target("sapphire_rapids", "cpu")
    assert target.device is not None
    few_and_small(monkeypatch)
    bench, found = Bench(target.device, load_profile(profile).with_queried(compute_units=2)), Findings({})
    ASPECTS[aspect].ask(bench, found)
    assert found.rows and all(row.seconds > 0 for row in found.rows)
    assert aspect != "images" or found.rates["image_outside_value"][0] == 0  # a clear border, says OpenCL of such images


@pytest.mark.parametrize("aspect", ["registers", "contiguity", "types", "threads", "clock"])
def test_texts_of_the_processor_run_here(aspect: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Their vectors are the machine's, and each exports the function that the driver calls."""
    target = local_target(dialect="cpu")
    assert target.device is not None
    few_and_small(monkeypatch)
    bench, found = Bench(target.device, target.profile), Findings({})
    ASPECTS[aspect].ask(bench, found)
    assert found.rows and all(row.seconds > 0 for row in found.rows)


def test_types_that_a_processor_only_converts_are_not_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    for features, names in ((frozenset({"avx512f"}), ["float64"]), (frozenset({"avx512_fp16"}), ["float64", "float16"])):
        monkeypatch.setattr(Bench, "extensions", features)
        bench, found = Compiling(load_profile("avx512"), "cpu", False), Findings({})
        ASPECTS["types"].ask(bench, found)
        assert list(found.rates) == [f"{name}_gflops" for name in names]


@pytest.mark.needs_opencl
def test_a_value_of_a_text() -> None:
    import numpy as np

    target = local_target("sapphire_rapids", "cpu")
    assert target.device is not None
    assert Bench(target.device, target.profile).value_of_text(ONES_BY_TEXT, np.arange(4, dtype=np.float32)) == 3


@pytest.mark.parametrize(("name", "dialect"), [("h200", "cuda"), ("ampere", "cuda"), ("cdna3", "hip"), ("rdna3", "hip")])
def test_every_matrix_instruction_has_a_schedule(name: str, dialect: str) -> None:
    """Of each kind a few widths; each multiplies as often as it says."""
    bench = Compiling(load_profile(name), dialect, False)
    made = units.instructions(bench)
    assert made and all(units.product(bench, i)[1] > 0 for i in made)
    words = [re.findall(r"\w*mm\w*|mfma\w*", dict(i.template)[dialect])[0] for i in made]
    assert all(word in text for word, text in zip(words, bench.sources, strict=True))


@EMULATED
@pytest.mark.parametrize(
    ("dialect", "name"),
    [("cuda", "mma_m16n8k16"), ("cuda", "mma_m16n8k32_int8"), ("cuda", "wgmma_m64n64k16_float16"), ("hip", "mfma_32x32x8")],
)
def test_matrix_probes_run(dialect: str, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(units, "LAUNCH_SECONDS", 0.0)
    bench = emulated(dialect)
    made = next(i for i in units.instructions(bench) if i.name == name)
    run, operations = units.product(bench, made)
    assert run(1) > 0 and operations % (2 * made.shape["m"] * made.shape["n"] * made.shape["k"]) == 0


@pytest.mark.slow
@EMULATED
def test_copies_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(units, "COPIED_BYTES", 1 << 15)
    monkeypatch.setattr(findings, "sampled", once)
    found = Findings({})
    units.copies(emulated("cuda"), found)
    assert set(found.rates) == {"staged_gb_per_s", "async_copy_gb_per_s"}


def test_a_measured_rate_of_a_type_never_falls_below_its_document(monkeypatch: pytest.MonkeyPatch) -> None:
    """A probe that does not reach the peak makes no bound; where no document says it, or one that is beaten, the measurement does."""
    bench = Compiling(load_profile("ampere"), "cuda", False)
    made = [i for i in units.instructions(bench) if i.name == "mma_m16n8k16"]
    monkeypatch.setattr(units, "instructions", lambda bench: made)
    for factor, noted in ((0.9, False), (1.1, True)):
        told = load_profile("ampere").rate("matrix_float16_gflops")
        assert told is not None
        taken = (lambda rounds: rounds * 1e-3, factor * told * 1e6)  # operations of the millisecond that every round takes
        monkeypatch.setattr(units, "product", lambda bench, made, taken=taken: taken)
        found = Findings({}, repeats=2)
        units.matrix(bench, found)
        assert "mma_m16n8k16_gflops" in found.rates and ("matrix_float16_gflops" in found.rates) == noted
