"""What aspects make of times: of devices that are only imagined, whose numbers are known."""

import dataclasses
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from tests.autoschedule.profile.benches import Compiling
from tilelang.autoschedule.gpu.device import GpuDevice
from tilelang.autoschedule.gpu.streams import is_shared_memory_slow
from tilelang.autoschedule.profile.aspects import access, arithmetic, local, residence, threads, types, units
from tilelang.autoschedule.profile.aspects.shapes import cycle_ns
from tilelang.autoschedule.profile.findings import Findings
from tilelang.autoschedule.profile.measure import with_findings
from tilelang.autoschedule.profile.sampling import Run
from tilelang.autoschedule.profile.text import profile_text
from tilelang.errors import DeviceError
from tilelang.lowering.build.distribution.parallel_mapping import numbers
from tilelang.profiles.files import load_profile, parse_profile
from tilelang.profiles.profile import QUERIED
from tilelang.schedules.schedule import Schedule
from tilelang.schedules.steps import Split

Times = Callable[[str, int, int, int], float]  # of a text, its blocks, threads of a block, bytes of shared memory


class Imagined(Compiling):
    """A device whose times follow from what it is said to be."""

    def __init__(self, name: str, seconds: Times) -> None:
        super().__init__(load_profile(name), "opencl", False)
        self.seconds = seconds

    def of_text(self, body: str, blocks: int, threads: int, arrays: Sequence[Any], shared_bytes: int = 0) -> Run:
        taken = self.seconds(body, blocks, threads, shared_bytes)
        return lambda rounds: rounds * taken


def found_of(ask: Callable[..., None], bench: Imagined, **known: float) -> Findings:
    found = Findings(dict(bench.profile.rates) | known, repeats=2)
    ask(bench, found)
    return found


def branches(lanes: int) -> Times:
    """Threads of which so many run together."""

    def seconds(text: str, blocks: int, threads: int, shared_bytes: int) -> float:
        side = next((1 << k for k in range(10) if f"THREAD / {1 << k} %" in text), None)
        steps = -(-threads // lanes) * blocks * 1e-3
        return steps if side is None else steps * (2 if side < lanes else 1)

    return seconds


@pytest.mark.parametrize("lanes", [8, 16, 32, 64])
def test_lanes_are_found_and_taken_where_they_were_assumed(lanes: int) -> None:
    bench = Imagined("opencl_gpu", branches(lanes))
    found = found_of(threads.together, bench)
    assert found.rates["lockstep_lanes"][0] == found.rates["granularity_threads"][0] == lanes
    profile = with_findings(bench.profile, found)
    assert profile.warp_size == lanes and profile.level("thread").max_count == lanes
    assert (profile.source("levels.warp.threads") or "").startswith("measured")
    assert parse_profile(profile_text(profile)) == profile


def test_what_documents_say_of_a_warp_stays() -> None:
    found = found_of(threads.together, Imagined("h200", branches(64)))
    assert found.rates["lockstep_lanes"][0] == 64 and not found.facts


def test_a_processor_runs_one_lane() -> None:
    found = found_of(threads.together, Imagined("sapphire_rapids", branches(1)))
    assert found.rates["lockstep_lanes"][0] == found.rates["granularity_threads"][0] == 1 and not found.facts


@dataclasses.dataclass(frozen=True)
class Core:
    """What one core has room for."""

    blocks: int
    threads: int
    shared_bytes: int
    registers: int
    cores: int

    def __call__(self, text: str, blocks: int, threads: int, shared_bytes: int) -> float:
        values = next((n for n in (1, *residence.HELD) if f"float x[{n}]" in text), 1)
        room = (
            self.blocks,
            self.threads // threads,
            self.shared_bytes // max(shared_bytes, 1),
            self.registers // (values * threads),
        )
        return -(-blocks // (self.cores * max(1, min(room)))) * 1e-3


@pytest.mark.parametrize(("blocks", "count", "room_bytes"), [(32, 2048, 100), (16, 1536, 64), (24, 1536, 32), (8, 1024, 33)])
def test_what_lives_on_a_core(blocks: int, count: int, room_bytes: int) -> None:
    profile = load_profile("opencl_gpu")
    bench = Imagined("opencl_gpu", Core(blocks, count, room_bytes << 10, 1 << 30, profile.compute_units or 1))
    found = found_of(residence.residents, bench)
    assert found.rates["core_blocks"][0] == min(blocks, count // profile.warp_size)
    assert found.rates.get("core_threads", (count, ""))[0] == count
    assert room_bytes - 3 <= found.rates["core_shared_bytes"][0] / 1024 <= room_bytes
    lanes = GpuDevice(with_findings(profile, found))
    assert lanes.room("core_blocks") == found.rates["core_blocks"][0] and lanes.core_shared_bytes <= room_bytes << 10


@pytest.mark.parametrize(("registers", "pool"), [(1 << 15, True), (1 << 30, False)])
def test_threads_share_a_pool_of_registers_or_have_their_own(registers: int, pool: bool) -> None:
    profile = load_profile("opencl_gpu")
    bench = Imagined("opencl_gpu", Core(32, 1024, 1 << 20, registers, profile.compute_units or 1))
    found = found_of(residence.registers, bench)
    assert ("core_registers" in found.rates) == pool
    assert not pool or registers / 2 < found.rates["core_registers"][0] <= registers
    curve = next(c for c, _ in found.curves if c.name == "core_threads_of_values")
    assert residence.pooled(list(curve.points)) == pool


def local_memory(gain: float, banks: int) -> Times:
    """Reads of local memory so many times as fast as those of a buffer, with so many banks."""

    def seconds(text: str, blocks: int, threads: int, shared_bytes: int) -> float:
        stride = next((s for s in local.STRIDES if f"THREAD * {s} +" in text), 1)
        return 1e-3 * min(stride, banks) / (gain if "LOCAL_ARRAY" in text else 1)

    return seconds


@pytest.mark.parametrize(("gain", "banks"), [(1.0, 16), (4.0, 32), (3.0, 64)])
def test_local_memory_is_real_or_in_disguise(gain: float, banks: int) -> None:
    bench = Imagined("opencl_gpu", local_memory(gain, banks))
    found = found_of(local.local, bench)
    assert found.rates["shared_reads_ratio"][0] == pytest.approx(gain)
    profile = with_findings(bench.profile, found)
    assert profile.memory("shared").banks == banks
    widths = next(c for c, _ in found.curves if c.name == "shared_bandwidth_of_width")
    assert profile.rate("shared_gb_per_s") == pytest.approx(max(y for _, y in widths.points), rel=1e-3)
    measured = GpuDevice(profile)
    assert measured.shared_rate == pytest.approx((profile.rate("shared_gb_per_s") or 0) * 1e9)
    assert is_shared_memory_slow(measured) == (measured.shared_rate <= measured.global_rate)


def test_bytes_that_are_moved_are_taken_where_nobody_knew_them() -> None:
    bench = Imagined(
        "opencl_gpu", lambda text, blocks, threads, shared: 1e-3 * max(64, *(s for s in access.RUNS if f"/ {s // 4} *" in text))
    )
    assert found_of(access.contiguity, bench).rates["least_moved_bytes"][0] == 64


def test_one_core_takes_what_its_block_reads() -> None:
    bench = Imagined("opencl_gpu", lambda text, blocks, threads, shared: 1e-3)
    found = found_of(access.near, bench, l2_bytes=1 << 21, l1_bytes=1 << 15, cycle_ns=1.0)
    assert found.rates["l2_bytes_per_cycle"][0] == pytest.approx(found.rates["l2_of_a_core_gb_per_s"][0])


def test_special_functions_are_counted_in_multiply_adds() -> None:
    bench = Imagined("opencl_gpu", lambda text, blocks, threads, shared: 4e-3 if "SPECIAL(x[k])" in text else 1e-3)
    found = found_of(types.types, bench)
    assert found.rates["special_instructions"][0] == pytest.approx(4)
    assert GpuDevice(with_findings(bench.profile, found)).rates["special_instructions"] == pytest.approx(4)


def test_a_clock_that_the_driver_tells_takes_the_place_of_an_assumed_one(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Imagined("opencl_gpu", lambda text, blocks, threads, shared: 1e-3)
    assert cycle_ns(bench, found_of(arithmetic.clock, bench)) is None
    monkeypatch.setattr(bench, "device", dataclasses.replace(bench.device, handle=SimpleNamespace(max_clock_frequency=1600)))
    found = found_of(arithmetic.clock, bench)
    assert found.rates["clock_ghz"] == (1.6, "queried: CL_DEVICE_MAX_CLOCK_FREQUENCY")
    profile = with_findings(bench.profile, found)
    assert cycle_ns(bench, Findings(dict(profile.rates), so_far=profile)) == pytest.approx(1 / 1.6)


def test_what_documents_count_stays_and_is_remarked_on() -> None:
    bench = Imagined("h200", Core(16, 2048, 228 << 10, 1 << 30, 132))
    found = found_of(residence.residents, bench)
    assert not {"core_blocks", "core_threads", "core_shared_bytes"} & set(found.rates)
    assert [w for w in found.warnings() if "documents" in w] == ["core_blocks seems to be 16, documents say 32"]


def test_an_instruction_that_is_refused_is_remarked_on(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(bench: Any, made: Any) -> Any:
        raise DeviceError("compile-failed", "the compiler is too old", help="a newer one")

    monkeypatch.setattr(units, "product", refused)
    found = Findings({})
    units.matrix(Compiling(load_profile("rdna3"), "hip", False), found)
    assert found.warnings()[0] == "wmma_16x16x16 is not measured: the compiler is too old"


def test_what_the_system_tells_of_a_cache_stands() -> None:
    """A sweep finds about where a cache ends; who reads its size from the system knows it."""
    queried = load_profile("sapphire_rapids").with_queried(memories={"l2": {"capacity_bytes": 1 << 20}}, source=QUERIED)
    found = Findings({})
    found.fact("l2", "capacity_bytes", 917504, "where reads fall")
    found.fact("l1", "capacity_bytes", 57344, "where reads fall")
    made = with_findings(queried, found)
    assert (made.memory("l2").capacity_bytes, made.memory("l1").capacity_bytes) == (1 << 20, 57344)


@pytest.mark.parametrize("followed", [4, 8, 32])
def test_rows_in_turn_are_fast_up_to_those_that_the_prefetcher_follows(followed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Imagined("zen3", lambda *of: 1e-3)

    def of_schedule(plan: Schedule) -> Run:
        (read,) = plan.computation.inputs
        rows = next((n for s in plan.steps if isinstance(s, Split) for a, n in numbers(s).items() if a == "i"), 1)
        return lambda rounds: rounds * read.shape[1] * (1e-6 if rows <= followed else 2e-6)

    monkeypatch.setattr(bench, "of_schedule", of_schedule)
    found = found_of(access.rows, bench)
    assert found.rates["followed_rows"][0] == followed
    assert with_findings(bench.profile, found).rate("followed_rows") == followed
