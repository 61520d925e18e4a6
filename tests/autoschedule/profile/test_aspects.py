"""The probes: they compile for every kind of device, and on the one here they find what must be so."""

import contextlib

import pytest

from tests.autoschedule.profile.benches import Compiling
from tilelang.autoschedule.profile.aspects import ASPECTS, access, arithmetic, bandwidth, latency, local, residence, threads
from tilelang.autoschedule.profile.bench import Bench
from tilelang.autoschedule.profile.findings import Findings, NotApplicable
from tilelang.autoschedule.profile.measure import with_findings
from tilelang.lowering.compilers.interface import tools
from tilelang.profiles.files import load_profile
from tilelang.runtime.targets import local_target

KNOWN = {"cycle_ns": 0.5}
UNITS = "ns us cycles bytes pages gflops scale lanes threads blocks registers instructions ratio value lines rows".split()
INSTALLED = {"cuda": bool(tools()[0].found), "hip": bool(tools()[1].found), "opencl": False, "cpu": True}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "dialect", "clock"),
    [("h200", "cuda", True), ("cdna3", "hip", True), ("volta", "opencl", True), ("sapphire_rapids", "opencl", True),
     ("mali_g76", "opencl", False), ("opencl_gpu", "opencl", False), ("avx2", "cpu", True), ("neon", "cpu", True)],
)  # fmt: skip
def test_probes_run_one_after_another_on_devices_that_are_not_here(
    name: str, dialect: str, clock: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each knows what the shipped profile says and what those before it found, as on a device; where the clock is only assumed, no
    cycles are said."""
    monkeypatch.setattr(bandwidth, "sizes", lambda bench, per_octave: [1 << 16, 1 << 20])
    monkeypatch.setattr(latency, "LARGEST_BYTES", 1 << 17)
    monkeypatch.setattr(arithmetic, "ROWS", (4,))
    monkeypatch.setattr(arithmetic, "VECTORS", (1, 2))
    monkeypatch.setattr(arithmetic, "SUSTAINED_SECONDS", 0.5)
    monkeypatch.setattr(threads, "MOST_THREADS", 4)
    monkeypatch.setattr(residence, "MOST_BLOCKS", 2)
    monkeypatch.setattr(residence, "HELD", (32,))
    monkeypatch.setattr(residence, "SHARES", (0.5,))
    monkeypatch.setattr(local, "STRIDES", (1, 32))
    monkeypatch.setattr(access, "RUNS", (4, 256))
    bench, measured = Compiling(load_profile(name), dialect, INSTALLED[dialect]), dict[str, Findings]()
    so_far = bench.profile
    for aspect in ASPECTS:
        measured[aspect] = found = Findings(dict(so_far.rates), repeats=2, so_far=so_far)
        with contextlib.suppress(NotApplicable):
            ASPECTS[aspect].ask(bench, found)
        so_far = with_findings(so_far, found)
    assert [aspect for aspect, found in measured.items() if not found.rows] == left_out(
        bench.lockstep, clock, dialect, bench.profile.async_copy
    )
    rates = {rate for found in measured.values() for rate in found.rates}
    assert all(rate.rsplit("_", 1)[-1] in UNITS or rate.endswith(("_per_s", "_per_cycle")) for rate in rates)
    assert {"latency_cycles", "exp_cycles"} & rates == ({"latency_cycles", "exp_cycles"} if clock else set())
    tiles = so_far.curve("register_tile")  # what the model of lanes asks for
    assert (tiles is not None) == bench.lockstep and (tiles is None or [x for x, _ in tiles.points] == [16, 32])


def left_out(lockstep: bool, clock: bool, dialect: str, copies: bool) -> list[str]:
    """The aspects that say nothing of such a device; nobody tells that it has images, or in OpenCL other types of floats."""
    cpu, units = dialect == "cpu", dialect in ("cuda", "hip")
    every = {
        "functions": not clock, "moves": lockstep, "near": not lockstep, "rows": lockstep, "shuffles": not units,
        "types": not lockstep and not cpu,
        "images": True, "matrix": not units, "copies": not copies, "lanes": cpu, "residents": cpu, "local": cpu, "atomics": cpu,
    }  # fmt: skip
    return [aspect for aspect in ASPECTS if every.get(aspect, False)]


@pytest.mark.needs_opencl
def test_no_probe_does_nothing() -> None:
    """On the device here every round takes time: the compiler took no work away."""
    target = local_target("sapphire_rapids", "cpu")
    assert target.device is not None
    bench = Bench(target.device, target.profile)
    for name in ("clock", "moves", "functions"):
        found = Findings(KNOWN, repeats=2)
        ASPECTS[name].ask(bench, found)
        assert found.rows and all(row.seconds > 0 and row.repeats == 2 for row in found.rows)
    assert found.rates["exp_cycles"][0] > 0 and found.rates["integer_divide_cycles"][0] > found.rates["from_int32_cycles"][0]


@pytest.mark.parametrize(("together", "cycle"), [(1.2, 0.36), (2.0, 0.3)])
def test_cores_that_others_use_do_not_slow_the_clock(together: float, cycle: float, monkeypatch: pytest.MonkeyPatch) -> None:
    bench, found = Compiling(load_profile("sapphire_rapids"), "opencl", False), Findings({})
    times = {1: 0.3e-9, bench.cores: 0.3e-9 * together}
    monkeypatch.setattr(bench, "of_text", lambda text, blocks, *rest: lambda rounds: rounds * arithmetic.CHAIN * times[blocks])
    arithmetic.clock(bench, found)
    assert found.rates["cycle_ns"][0] == pytest.approx(cycle)


def test_a_walk_visits_every_place_once() -> None:
    places = [0, 16, 32, 48, 64, 80]
    next = latency.walk(places, 81)
    seen, at = [], 0
    for _ in places:
        seen.append(at)
        at = int(next[at])
    assert sorted(seen) == places and at == 0


@pytest.mark.needs_opencl
def test_levels_are_named_as_the_profile_names_them() -> None:
    points = [(2 ** (k / 4), 600.0 if k <= 62 else 350.0 if k <= 84 else 56.0 if k <= 106 else 30.0) for k in range(54, 116)]
    target = local_target("sapphire_rapids", "cpu")
    assert target.device is not None
    found = Findings({"cycle_ns": 0.25})
    bench = Bench(target.device, load_profile("sapphire_rapids"))
    bandwidth.levels(bench, found, points)
    assert {fact.of: fact.value for fact in found.facts} == {"l1": 49152, "l2": 2 << 20}
    assert {name: value for name, (value, _) in found.rates.items()} == pytest.approx(
        {"l1_bytes_per_cycle": 75, "l2_bytes_per_cycle": 43.75, "global_gb_per_s": 56, "distant_gb_per_s": 30,
         "near_global_bytes": 2 * 2**26.6}, rel=0.05
    )  # fmt: skip


def test_levels_that_all_blocks_share() -> None:
    points = [(2 ** (k / 4), 9000.0 if k <= 68 else 4000.0 if k <= 84 else 1500.0) for k in range(54, 116)]
    found = Findings({})
    bandwidth.levels(Compiling(load_profile("volta"), "cuda", False), found, points)
    assert {name: value for name, (value, _) in found.rates.items()} == pytest.approx(
        {"global_gb_per_s": 1500, "l2_gb_per_s": 4000, "l2_bytes": 80 * 2**21, "l1_gb_per_s": 9000, "l1_bytes": 2**17}, rel=0.1
    )
    found = Findings({})
    bandwidth.levels(Compiling(load_profile("volta"), "cuda", False), found, [(x, 1500.0) for x, _ in points])
    assert list(found.rates) == ["global_gb_per_s"]


def test_pages_are_found_at_once_up_to_a_number() -> None:
    """A second table of pages costs little; a search costs much, and is what counts."""
    points = [(2 ** (k / 3), 0.0 if k <= 19 else 1.7 if k <= 33 else 16.0 + k % 3 * 4) for k in range(12, 43)]
    found = Findings({})
    latency.pages_found(found, points)
    assert found.rates["found_pages"][0] == 2048 and 16 <= found.rates["page_search_ns"][0] <= 24
    found = Findings({})
    latency.pages_found(found, [(x, min(y, 1.7)) for x, y in points])
    assert not found.rates
