"""Written redistributions: what stands in registers is loaded in registers again, for threads that are not its owners."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest

import tilelang as tl
from tests.lowering.attention import attention, by_matrix_units
from tilelang.core.expr import INDEX, Var, index
from tilelang.lowering import ir
from tilelang.lowering.build.distribution.shuffle_plan import _sum
from tilelang.lowering.pipeline import lower
from tilelang.profiles.profile import Profile
from tilelang.schedules.schedule import Move, Schedule
from tilelang.testing.case import arrays
from tilelang.testing.checking import check_schedule

AMPERE = dataclasses.replace(tl.load_profile("ampere"), dialects=("cuda",))
CDNA = dataclasses.replace(tl.load_profile("cdna2"), dialects=("hip",))
POCL = tl.load_profile("sapphire_rapids")
COLUMNS = tl.layout("j", "i")


def check(plan: Schedule, *profiles: Profile, opencl: bool = False) -> None:
    for profile in profiles:
        for data in ("random", "integers"):
            given = arrays(plan.computation, data)
            faults = check_schedule(plan, given, profile=profile, opencl=opencl and profile is POCL, exactly=data == "integers")
            assert faults == [], f"{profile.name}: {faults}"


def used(plan: Schedule, profile: Profile) -> tuple[list[str], int, int]:
    """The instructions of a schedule's kernel, each once, how many stand there, and the bytes of shared memory."""
    (kernel,) = lower(plan.computation, plan.steps, profile).kernels
    names = [s.semantics.name for s in ir.statements(kernel.body) if isinstance(s, ir.Instruction)]
    return sorted(set(names)), len(names), kernel.shared_bytes


def by_threads(order: Any = None, **sizes: int) -> Move:
    return tl.move().tile(**sizes).to(tl.thread, order=order)


def double(I: int, J: int, type: tl.DType = tl.float32) -> tl.Tensor:
    i, j = tl.axes(i=I, j=J)
    X = tl.input("X", type, i, j)
    return tl.define("Y", X[i, j] + X[i, j], i, j)


def product(M: int, N: int, K: int) -> tl.Tensor:
    m, n, k = tl.axes(m=M, n=N, k=K)
    A, B = tl.input("A", tl.float32, m, k), tl.input("B", tl.float32, k, n)
    return tl.define("C", tl.sum(A[m, k] * B[k, n], over=k), m, n)


def turned(y: tl.Tensor, rows: int) -> Schedule:
    """Rows of a tile are fetched by neighbours, and read by columns."""
    start = tl.schedule(y).tile(i=rows, j=8).to(tl.block)
    held = start.load("X", tl.register, steps=by_threads(i=1, j=1)).load("X", tl.register)
    return held.tile(j=1, i=1).to(tl.thread, order=COLUMNS)


# ---------------------------------------------------------------- from register to register


def test_by_one_exchange_beside_a_warp_that_reads_nothing() -> None:
    start = tl.schedule(double(4, 8)).units(block=tl.warps(2)).tile(i=4, j=8).to(tl.block)
    held = start.load("X", tl.register, steps=by_threads(i=1, j=1)).load("X", tl.register)
    plan = held.tile(j=1, i=1).to(tl.thread, order=COLUMNS)
    assert used(plan, AMPERE) == (["shuffle_from_of_4_bytes"], 1, 0)
    check(plan, AMPERE)


@pytest.mark.parametrize("sizes", [(16, 16), (15, 13)], ids=str)
@pytest.mark.parametrize("type", [tl.float32, tl.float16, tl.int8, tl.float64], ids=str)
def test_within_a_warp_by_one_exchange(type: tl.DType, sizes: tuple[int, int]) -> None:
    plan = turned(double(*sizes, type), rows=4)
    size = f"{type.bytes}_byte{'s' if type.bytes > 1 else ''}"
    assert used(plan, AMPERE) == ([f"shuffle_from_of_{size}"], 1, 0)
    assert used(plan, POCL) == ([], 0, 32 * type.bytes)
    check(plan, AMPERE, POCL, opencl=type != tl.float64)


def test_a_wave_of_64() -> None:
    plan = turned(double(15, 13), rows=8)
    assert used(plan, CDNA) == (["shuffle_from_of_4_bytes_of_64_lanes"], 1, 0)
    check(plan, CDNA)


def test_across_warps_through_shared_memory() -> None:
    plan = turned(double(15, 13), rows=8)
    assert used(plan, AMPERE) == ([], 0, 4 * 64)
    check(plan, AMPERE)


def test_what_not_all_dialects_of_a_profile_exchange_goes_through_memory() -> None:
    plan = turned(double(16, 16), rows=4)
    assert used(plan, tl.load_profile("ampere")) == ([], 0, 4 * 32)


@pytest.mark.parametrize("sizes", [(8, 32), (7, 29)], ids=str)
def test_lanes_choose_among_a_few_registers(sizes: tuple[int, int]) -> None:
    """An owner has four neighbours in a row; a reader has one in each of four rows: one of four registers of one lane."""
    start = tl.schedule(double(*sizes)).tile(i=4, j=32).to(tl.block).load("X", tl.register, steps=by_threads(i=1, j=4))
    plan = start.load("X", tl.register).tile(i=4, j=1).to(tl.thread)
    assert used(plan, AMPERE) == (["shuffle_from_of_4_bytes"], 4 * 4, 0)
    check(plan, AMPERE, POCL, opencl=True)


@pytest.mark.parametrize("sizes", [(32, 8), (31, 7)], ids=str)
def test_more_registers_to_choose_among_go_through_memory(sizes: tuple[int, int]) -> None:
    start = tl.schedule(double(*sizes)).tile(i=32, j=8).to(tl.block).load("X", tl.register, steps=by_threads(i=1, j=8))
    plan = start.load("X", tl.register, steps=by_threads(i=8, j=1)).tile(i=8, j=1).to(tl.thread)
    assert used(plan, AMPERE) == ([], 0, 4 * sizes[0] * sizes[1])
    check(plan, AMPERE, POCL, opencl=True)


CHAIN = """
computation chain {
  input X: float32[i: 2, j: 8]
  d0[i] = sum[j] X[min(i + 1, 1), j // 4] + pad(X[i, j + 2], 2.0)
  d1[i, j] = where(i % 2 == 0, d0[i], pad(X[i, j - 2], 0.0)) * 2.0 + 1.0
  output d2[i, j] = where(i % 2 == 0, d1[i, j], d0[i]) + 0.0
}
schedule for chain {
  fuse ij=(i, j)
  tile ij=16 -> block
  compute d0 in register
  compute d1 in register ahead 1
  split ij=3
  tile ij=1 -> thread
  load d1 in register
  vectorize ij=4
}
"""


def test_registers_that_lie_outside_the_buffer_in_other_rounds_go_through_memory() -> None:
    check(tl.parse(CHAIN).schedule(), tl.load_profile("ampere"))


@pytest.mark.parametrize("again", ["above the walk", "in the walk"])
@pytest.mark.parametrize("sizes", [(32, 32, 32), (30, 29, 31)], ids=str)
def test_owned_becomes_replicated(sizes: tuple[int, int, int], again: str) -> None:
    """Each of 32 threads brings one element of A, and reads all of them in the rounds of k."""
    start = (
        tl.schedule(product(*sizes)).units(block=tl.threads(32)).tile(m=4, n=32).to(tl.block).accumulate(tl.register).split(k=8)
    )
    held = start.load("A", tl.register, steps=by_threads(m=1, k=1))
    read = held.split(k=1).load("A", tl.register) if again == "in the walk" else held.load("A", tl.register).split(k=1)
    plan = read.tile(m=4, n=1).to(tl.thread)
    assert used(plan, AMPERE) == (["shuffle_from_of_4_bytes"], 4 if again == "in the walk" else 32, 0)
    check(plan, AMPERE, POCL, opencl=True)


@pytest.mark.parametrize("sizes", [(32, 32, 32), (30, 29, 31)], ids=str)
def test_readers_of_one_warp_find_it_there(sizes: tuple[int, int, int]) -> None:
    start = tl.schedule(product(*sizes)).units(block=tl.warps(2)).tile(m=8, n=32).to(tl.block).accumulate(tl.register).split(k=8)
    held = start.load("A", tl.register, steps=by_threads(m=1, k=1)).tile(m=4).to(tl.warp).load("A", tl.register)
    plan = held.split(k=1).tile(n=1).to(tl.thread)
    assert used(plan, AMPERE)[0] == ["shuffle_from_of_4_bytes"] and used(plan, AMPERE)[2] == 0
    check(plan, AMPERE, POCL)


def test_one_thread_renames_its_registers() -> None:
    start = tl.schedule(double(8, 8)).tile(i=4, j=8).to(tl.block).load("X", tl.register, steps=tl.move().split(j=3))
    plan = start.load("X", tl.register, steps=tl.move().split(i=3)).split(j=5)
    assert used(plan, POCL) == ([], 0, 0)
    check(plan, POCL, opencl=True)


# ---------------------------------------------------------------- below a unit's tile


MALI = tl.load_profile("mali_g76")  # warps of 8 without shuffles


def rows(I: int, J: int) -> tl.Tensor:
    i, j = tl.axes(i=I, j=J)
    X, V = tl.input("X", tl.float32, j), tl.input("V", tl.float32, i)
    return tl.define("Y", X[j] * V[i], i, j)


@pytest.mark.parametrize("sizes", [(16, 16), (15, 13)], ids=str)
@pytest.mark.parametrize("warps", [2, 3, 4])
def test_every_warp_has_a_place_of_its_own(warps: int, sizes: tuple[int, int]) -> None:
    """All warps have the same row, and the third and fourth have no tile."""
    start = tl.schedule(rows(*sizes)).units(block=tl.warps(warps)).tile(i=8, j=16).to(tl.block).tile(i=4, j=16).to(tl.warp)
    plan = start.load("X", tl.register, steps=by_threads(j=1)).load("X", tl.register).tile(i=1, j=4).to(tl.thread)
    assert used(plan, MALI) == ([], 0, 4 * warps * sizes[1])
    assert used(plan, AMPERE)[2] == 0
    check(plan, AMPERE, CDNA, MALI, POCL)


def test_every_warpgroup_has_a_place_of_its_own() -> None:
    hopper = dataclasses.replace(tl.load_profile("hopper"), dialects=("cuda",))
    start = tl.schedule(rows(15, 300)).units(block=tl.warps(8)).tile(i=8, j=256).to(tl.block).tile(i=4, j=256).to(tl.warpgroup)
    held = start.load("X", tl.register, steps=by_threads(j=1))
    for plan in (held.load("X", tl.register), held.tile(i=4, j=64).to(tl.warp).load("X", tl.register)):
        plan = plan.tile(i=1, j=4).to(tl.thread)
        assert used(plan, hopper) == ([], 0, 4 * 2 * 256)
        check(plan, hopper)


@pytest.mark.parametrize("sizes", [(4, 1, 3), (8, 32, 3), (7, 29, 9)], ids=str)
def test_warps_share_what_a_walk_brings(sizes: tuple[int, int, int]) -> None:
    """Two warps with the same elements of B, round for round; one of them may be beyond the extents."""
    m, n, k = tl.axes(m=sizes[0], n=sizes[1], k=sizes[2])
    A, B = tl.input("A", tl.float32, m, k), tl.input("B", tl.float32, n, k)
    start = tl.schedule(tl.define("C", tl.sum(A[m, k] * B[n, k], over=k), m, n)).units(block=tl.warps(2))
    start = start.tile(m=8, n=16).to(tl.block).accumulate(tl.register).split(k=8).tile(m=4, n=16).to(tl.warp).split(k=1)
    check(start.load("B", tl.register, steps=by_threads(k=1)).load("B", tl.register), AMPERE, CDNA, MALI, POCL)
    plan = start.load("B", tl.register, steps=by_threads(n=1)).load("B", tl.register).tile(m=1, n=1).to(tl.thread)
    check(plan, AMPERE, CDNA, MALI, POCL)


@pytest.mark.parametrize("sizes", [(16, 16), (15, 13)], ids=str)
def test_a_stage_below_a_warp_s_tile(sizes: tuple[int, int]) -> None:
    i, j = tl.axes(i=sizes[0], j=sizes[1])
    X = tl.input("X", tl.float32, j)
    Y = tl.define("Y", X[j] * 2.0, j)
    start = tl.schedule(tl.define("Z", Y[j] + 1.0, i, j)).units(block=tl.warps(2)).tile(i=8, j=8).to(tl.block)
    start = start.tile(i=4, j=8).to(tl.warp).compute("Y", tl.register, steps=by_threads(j=1)).load("Y", tl.register)
    check(start.tile(i=1, j=2).to(tl.thread), AMPERE, CDNA, MALI, POCL)


# ---------------------------------------------------------------- stages


def scaled(I: int, J: int, K: int) -> tl.Tensor:
    """A product, whose rows are divided by what a reduction says."""
    i, j, k = tl.axes(i=I, j=J, k=K)
    X, W = tl.input("X", tl.float32, i, k), tl.input("W", tl.float32, k, j)
    R = tl.define("R", tl.sum(tl.abs(X[i, k]), over=k), i)
    return tl.define("Y", tl.sum(X[i, k] * W[k, j], over=k) / (1 + R[i]), i, j)


@pytest.mark.parametrize("sizes", [(32, 32, 64), (30, 29, 31)], ids=str)
@pytest.mark.parametrize(
    "owners", [by_threads(i=1, k=8), by_threads(i=1), tl.move().tile(i=1).to(tl.warp)], ids=lambda m: str(m.steps)
)
def test_every_thread_has_the_result_of_a_stage(owners: Move, sizes: tuple[int, int, int]) -> None:
    start = tl.schedule(scaled(*sizes)).units(block=tl.warps(2)).tile(i=8, j=32).to(tl.block)
    check(start.compute("R", tl.register, steps=owners).load("R", tl.register).tile(i=2, j=2).to(tl.thread), AMPERE, POCL)


def test_replicated_values_need_no_exchange() -> None:
    """All eight threads of a row hold its sum when they have met, and read it, in whatever order they are numbered."""
    start = tl.schedule(scaled(32, 8, 64)).tile(i=4, j=8).to(tl.block).compute("R", tl.register, steps=by_threads(i=1, k=8))
    plan = start.load("R", tl.register).tile(i=1, j=1).to(tl.thread)
    assert used(plan, AMPERE) == (["shuffle_xor_1", "shuffle_xor_2", "shuffle_xor_4"], 3, 0)
    check(plan, AMPERE)


# ---------------------------------------------------------------- instructions


@pytest.mark.parametrize(
    ("sizes", "warps"), [((16, 16, 16), 1), ((64, 32, 32), 2), ((40, 32, 32), 2), ((40, 20, 24), 2)], ids=str
)
def test_attention_exchanges_nothing_between_its_products(sizes: tuple[int, int, int], warps: int) -> None:
    plan = by_matrix_units(attention(*sizes), warps)
    names, _, shared = used(plan, AMPERE)
    (rows, keys, depth) = sizes
    assert names == ["mma_m16n8k16", "shuffle_xor_1", "shuffle_xor_2"]  # the sums and maxima of rows, which four lanes share
    assert shared <= 2 * (16 * warps * depth + 2 * keys * depth) + 128  # Q, K and V, and nothing else
    check(plan, AMPERE)


def test_scores_by_whole_rows_go_through_memory() -> None:
    """A thread has a row of what the instruction spreads over four lanes, and gives it back to the operand's map."""
    start = tl.schedule(attention(16, 16, 16)).units(block=tl.warps(1)).tile(i=16).to(tl.block)
    scores = tl.move().load("Q", tl.register).load("K", tl.register).do("mma_m16n8k16", m="i", n="j", k="d")
    rows = by_threads(i=1)
    made = start.load("Q", tl.shared).load("K", tl.shared).load("V", tl.shared).compute("S", tl.register, steps=scores)
    soft = made.load("S", tl.register, steps=rows).compute("peak", tl.register, steps=rows).compute("P", tl.register, steps=rows)
    total = soft.compute("total", tl.register, steps=rows).load("total", tl.shared).load("P", tl.register)
    plan = total.accumulate(tl.register).split(j=16).load("V", tl.register).do("mma_m16n8k16", m="i", n="e", k="j")
    check(plan, AMPERE)


def test_an_operand_from_threads_by_exchanges() -> None:
    """Elements that threads brought one by one become what an instruction's map wants of them."""
    m, n, k = tl.axes(m=16, n=8, k=16)
    A, B = tl.input("A", tl.float16, m, k), tl.input("B", tl.float16, k, n)
    c = tl.define("C", tl.sum(tl.cast(A[m, k], tl.float32) * tl.cast(B[k, n], tl.float32), over=k), m, n)
    start = tl.schedule(c).units(block=tl.warps(1)).tile(m=16, n=8).to(tl.block).accumulate(tl.register)
    brought = start.load("A", tl.register, steps=by_threads(m=1, k=8)).load("B", tl.shared)
    plan = brought.load("A", tl.register).load("B", tl.register).do("mma_m16n8k16", m="m", n="n", k="k")
    check(plan, AMPERE)


# ---------------------------------------------------------------- refused


def test_who_reads_what_an_instruction_left_without_a_redistribution_is_refused() -> None:
    start = tl.schedule(attention(16, 16, 16)).units(block=tl.warps(1)).tile(i=16).to(tl.block)
    scores = tl.move().load("Q", tl.register).load("K", tl.register).do("mma_m16n8k16", m="i", n="j", k="d")
    made = (
        start.compute("S", tl.register, steps=scores).compute("peak", tl.register, steps=by_threads(i=1)).compute("P", tl.shared)
    )
    with pytest.raises(tl.Refusal, match="reader-is-not-owner") as caught:
        lower(made.computation, made.steps, AMPERE)
    assert "lane 0 has (0, 0), (0, 1), (8, 0), (8, 1)" in str(caught.value) and "load S in register again" in str(caught.value)


def test_a_redistribution_that_does_not_cover_its_reader_is_refused() -> None:
    """A thread is given one row, and reads two."""
    start = tl.schedule(double(16, 8)).tile(i=16, j=8).to(tl.block).load("X", tl.register, steps=by_threads(i=1, j=2))
    plan = start.load("X", tl.register, steps=by_threads(i=1, j=8)).tile(i=2, j=8).to(tl.thread)
    with pytest.raises(tl.Refusal, match="reader-is-not-owner") as caught:
        lower(plan.computation, plan.steps, POCL)
    assert "(i, j) = (1, 0)" in str(caught.value) and "is read by thread 0 but is in the registers of thread 1" in str(
        caught.value
    )


def test_a_tensor_of_which_nobody_owns_anything_is_handed_on() -> None:
    """Other threads read it than those that would own it: there is no element that any of them could miss."""
    m, k = tl.axes(m=0, k=128)
    X = tl.input("X", tl.float32, m, k)
    start = tl.schedule(tl.define("Y", X[m, k] * 2.0, m, k)).units(block=tl.warps(1)).tile(m=1).to(tl.block)
    held = start.load("X", tl.register, steps=by_threads(k=4)).split(k=32).load("X", tl.register)
    check(held.tile(k=1).to(tl.thread), AMPERE)


def test_a_table_is_a_sum_over_what_it_tells() -> None:
    """Values where it tells nothing are not looked at."""
    walk = Var("walk", INDEX, 0, 3)
    for values, known, expected in (
        ([1, 3, 5, 7], [1, 1, 1, 1], walk * 2 + 1),
        ([0, 5, 0, 5], [0, 1, 0, 1], index(5)),
        ([0, 3, 5, 0], [0, 1, 1, 0], walk * 2 + 1),
        ([1, 3, 6, 7], [1, 1, 1, 1], None),
    ):
        assert str(_sum(np.array(values), np.array(known, bool), [walk])) == str(expected)


def test_nobody_looks_for_values_in_a_table_of_millions(monkeypatch: pytest.MonkeyPatch) -> None:
    """Which of 32 threads have which of 32 elements: a table of 1024."""
    plan = turned(double(16, 16), rows=4)
    monkeypatch.setattr("tilelang.core.distribution.MOST_POINTS", 1024)
    assert used(plan, AMPERE)[1] == 1
    monkeypatch.setattr("tilelang.core.distribution.MOST_POINTS", 1023)
    with pytest.raises(tl.Refusal, match="reader-is-not-owner"):
        used(plan, AMPERE)


def test_the_lanes_of_many_threads_and_walks_are_not_enumerated() -> None:
    """1,024 threads, 256 walks and 16 registers, each beside the 32 lanes of a warp, take gigabytes: memory carries the values."""
    k, m = tl.axes(k=4096, m=4)
    X = tl.input("X", tl.float32, k)
    start = tl.schedule(tl.define("Y", X[k] * 2.0, m, k)).units(block=tl.warps(32)).tile(m=1).to(tl.block)
    held = start.load("X", tl.register, steps=tl.move().tile(k=4).to(tl.thread)).split(k=16).split(k=1)
    assert used(held.load("X", tl.register).tile(k=1).to(tl.thread), AMPERE) == ([], 0, 16384)
