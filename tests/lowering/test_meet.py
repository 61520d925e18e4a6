"""Partial states of threads: exchanged within warps where the device can, in shared memory across them."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

import tilelang as tl
from tests.test_examples import load
from tilelang.lowering import ir
from tilelang.lowering.pipeline import lower
from tilelang.profiles.profile import Profile
from tilelang.schedules.schedule import Schedule
from tilelang.testing.case import arrays
from tilelang.testing.checking import check_schedule

AMPERE = dataclasses.replace(tl.load_profile("ampere"), dialects=("cuda",))
CDNA = dataclasses.replace(tl.load_profile("cdna2"), dialects=("hip",))


def check(plan: Schedule, profile: Profile) -> None:
    for data in ("random", "integers"):
        assert check_schedule(plan, arrays(plan.computation, data), profile=profile, exactly=data == "integers") == []


def used(plan: Schedule, profile: Profile) -> tuple[list[str], int, int]:
    """The instructions of a schedule's kernel, its barriers, and the bytes of shared memory."""
    (kernel,) = lower(plan.computation, plan.steps, profile).kernels
    statements = list(ir.statements(kernel.body))
    names = [s.semantics.name for s in statements if isinstance(s, ir.Instruction)]
    return names, sum(isinstance(s, ir.Barrier) for s in statements), kernel.shared_bytes


def reduced(combine: Any, rows: int, columns: int, type: Any = tl.float32) -> Any:
    i, k = tl.axes(i=rows, k=columns)
    X = tl.input("X", type, i, k)
    return tl.define("Y", combine(X[i, k], over=k), i)


def by_threads(y: Any, rows: int, threads: int) -> Schedule:
    """Rows of a block, each by so many threads, neighbours beside neighbours."""
    start = tl.schedule(y).tile(i=rows).to(tl.block).accumulate(tl.register).split(k=2 * threads)
    return start.tile(i=1, k=2).to(tl.thread)


@pytest.mark.parametrize("threads", [2, 8, 32])
def test_within_a_warp_nothing_goes_through_memory(threads: int) -> None:
    plan = by_threads(reduced(tl.sum, 37, 100), 64 // threads, threads)
    names, barriers, shared = used(plan, AMPERE)
    assert sorted(names) == sorted(f"shuffle_xor_{1 << bit}" for bit in range(threads.bit_length() - 1))
    assert barriers == shared == 0
    check(plan, AMPERE)


def test_across_warps_only_one_part_a_lane_goes_through_memory() -> None:
    plan = by_threads(reduced(tl.sum, 5, 700), 1, 256)
    names, barriers, shared = used(plan, AMPERE)
    assert len(names) == 5 and shared == 4 * 256
    assert barriers < used(plan, dataclasses.replace(AMPERE, capabilities=()))[1]
    check(plan, AMPERE)


def test_waves_of_64() -> None:
    plan = by_threads(reduced(tl.max, 7, 300), 2, 64)
    assert len(used(plan, CDNA)[0]) == 6 and used(plan, CDNA)[2] == 0
    check(plan, CDNA)


@pytest.mark.parametrize("combine, name", [(tl.sum, "add"), (tl.min, "min"), (tl.max, "max")])
@pytest.mark.parametrize("type", [tl.int32, tl.uint32], ids=str)
def test_whole_numbers_of_a_whole_warp_at_once(combine: Any, name: str, type: Any) -> None:
    plan = by_threads(reduced(combine, 9, 90, type), 2, 32)
    assert used(plan, AMPERE)[0] == [f"redux_{name}" + ("" if type == tl.int32 else "_uint32")]
    check(plan, AMPERE)
    assert len(used(by_threads(reduced(combine, 9, 90, type), 4, 16), AMPERE)[0]) == 4  # half a warp


def test_members_of_a_state_go_together() -> None:
    """The largest element and its place: two instructions in each step."""
    i, k = tl.axes(i=6, k=75)
    X = tl.input("X", tl.float32, i, k)
    plan = by_threads(tl.define("Y", tl.argmax(X[i, k], over=k), i), 2, 16)
    assert len(used(plan, AMPERE)[0]) == 8
    check(plan, AMPERE)


def test_states_of_8_bytes() -> None:
    plan = by_threads(reduced(tl.sum, 6, 75, tl.float64), 2, 16)
    assert used(plan, AMPERE)[0] == [f"shuffle_xor_{1 << bit}_of_8_bytes" for bit in range(4)]
    check(plan, AMPERE)


EXAMPLES = ["06_row_sum.simt", "08_softmax.softmax_rows", "09_layer_norm.simt", "10_argmax.simt"]


@pytest.mark.parametrize("example", EXAMPLES)
def test_examples_that_reduce_over_threads(example: str) -> None:
    file, schedule = example.split(".")
    plan = load(file).schedules(3, 70)[schedule]
    names = [s.semantics.name for k in lower(plan.computation, plan.steps, AMPERE).kernels for s in ir.statements(k.body)
             if isinstance(s, ir.Instruction)]  # fmt: skip
    assert any(name.startswith("shuffle") for name in names)
    for data in ("random", "integers"):
        assert check_schedule(plan, arrays(plan.computation, data), profile=AMPERE) == []


@pytest.mark.parametrize(
    "profile",
    [
        dataclasses.replace(AMPERE, capabilities=()),
        dataclasses.replace(AMPERE, dialects=("cuda", "opencl")),
        tl.load_profile("simulated"),
    ],
    ids=["no shuffle", "also in OpenCL", "simulated"],
)
def test_devices_without_exchanges_meet_in_shared_memory(profile: Profile) -> None:
    plan = by_threads(reduced(tl.sum, 5, 60), 2, 16)
    assert used(plan, profile)[0] == [] and used(plan, profile)[2] > 0


def test_idle_threads_bring_the_identity() -> None:
    """Three parts of a row, and as many threads as make a power of two with them; in the next block of rows the last ones are idle."""
    plan = tl.schedule(reduced(tl.sum, 37, 6)).tile(i=8).to(tl.block).accumulate(tl.register)
    plan = plan.tile(i=1, k=2).to(tl.thread)
    assert used(plan, AMPERE)[0] == []  # 24 threads are no warp
    check(plan, AMPERE)
    plan = tl.schedule(reduced(tl.sum, 37, 70)).tile(i=1).to(tl.block).accumulate(tl.register).tile(k=4).to(tl.thread, 64)
    names, _, shared = used(plan, AMPERE)
    assert len(names) == 5 and shared == 64 * 4  # the threads of the second warp are told
    check(plan, AMPERE)


def test_blocks_of_no_whole_warps() -> None:
    plan = by_threads(reduced(tl.sum, 9, 40), 3, 16)
    assert used(plan, AMPERE)[0] == []
    check(plan, AMPERE)


@pytest.mark.parametrize("profile", [AMPERE, CDNA], ids=lambda p: p.name)
@pytest.mark.parametrize("accumulator", ["", "accumulate in shared;"])
@pytest.mark.parametrize("tile, units", [("m=2 l=3", 64), ("m=1 l=3", 64), ("m=4 l=2", 64), ("m=1 l=3", 128)])
def test_units_that_are_not_a_multiple_of_the_parts(profile: Profile, accumulator: str, tile: str, units: int) -> None:
    """The last threads are idle, and some of the parts that would be theirs have no thread."""
    plan = tl.parse(f"""computation f {{
      input A: float32[m: 7, l: 16]
      output Y[m] = max[l] A[m, l]
    }}
    schedule s for f {{ tile m=4 -> block; {accumulator} tile {tile} -> thread {units} }}
    """).schedule()
    check(plan, profile)


def test_a_state_too_large_for_registers_meets_in_loops() -> None:
    """Written out, its 5,120 elements made a text that clang takes more than a minute for."""
    b, m, n, k = tl.axes(b=5, m=3, n=2, k=5)
    A, B = tl.input("A", tl.float32, b, m, k), tl.input("B", tl.float32, b, k, n)
    product = tl.define("C", tl.sum(A[b, m, k] * B[b, k, n], over=k), b, m, n)
    plan = tl.schedule(product).accumulate(tl.register).tile(n=32, m=32, k=1).to(tl.thread)
    profile = tl.load_profile("zen4")
    (kernel,) = lower(plan.computation, plan.steps, profile).kernels
    assert len(list(ir.statements(kernel.body))) < 100
    check(plan, profile)


def test_parts_of_warps_are_combined_element_by_element() -> None:
    """The other warps' parts of neighbouring elements are far apart in shared memory: a vector would have to be gathered."""
    plan = tl.schedule(reduced(tl.sum, 16, 64)).tile(i=8).to(tl.block).accumulate(tl.register).tile(k=1).to(tl.thread)
    (kernel,) = lower(plan.computation, plan.steps, AMPERE).kernels
    taken = [s for s in ir.statements(kernel.body) if isinstance(s, ir.Store) and s.buffer.name == "Y_state"]
    assert taken and all(ir.lanes(s.value) == 1 for s in taken)
    check(plan, AMPERE)
