"""Loads that run ahead on a device with asynchronous copies: copied where they can be, staged through registers where they cannot."""

from __future__ import annotations

from typing import Any

import pytest

import tilelang as tl
from tilelang.core.expr import Select
from tilelang.lowering import ir
from tilelang.lowering.drivers.interface import Device
from tilelang.lowering.pipeline import lower
from tilelang.profiles.profile import Profile
from tilelang.schedules.schedule import Schedule
from tilelang.testing.case import arrays
from tilelang.testing.checking import check_schedule
from tilelang.testing.mutations import Tally, decided

SIMULATED = tl.load_profile("simulated")


def check(plan: Schedule, profile: Profile = SIMULATED) -> None:
    """It is right, and the simulator has nothing to say, with copies as early and as late as allowed."""
    for data in ("random", "integers"):
        given = arrays(plan.computation, data)
        assert check_schedule(plan, given, profile=profile, exactly=data == "integers") == []


def kernel(plan: Schedule, profile: Profile = SIMULATED) -> ir.Kernel:
    (found,) = lower(plan.computation, plan.steps, profile).kernels
    return found


def brought(found: ir.Kernel, name: str = "A_shared") -> tuple[set[int], int]:
    """The sizes in bytes of the copies to a buffer, and how many stores to it there are."""
    statements = list(ir.statements(found.body))
    copies = {s.lanes * s.target.dtype.bytes for s in statements if isinstance(s, ir.Copy) and s.target.name == name}
    return copies, sum(isinstance(s, ir.Store) and s.buffer.name == name for s in statements)


def matmul(m: int, n: int, k: int, type: Any = tl.float32) -> tl.Tensor:
    i, j, r = tl.axes(m=m, n=n, k=k)
    A, B = tl.input("A", type, i, r), tl.input("B", type, r, j)
    return tl.define("C", tl.sum(A[i, r] * B[r, j], over=r), i, j)


def ahead(c: tl.Tensor, n: int = 1, steps: Any = None, layout: tl.Layout | None = None) -> Schedule:
    """A matrix product by 64 threads, A a number of rounds ahead."""
    return (
        tl.schedule(c).tile(m=32, n=32).to(tl.block).accumulate(tl.register).split(k=8)
        .load("A", tl.shared, ahead=n, steps=steps, layout=layout).load("B", tl.shared).tile(m=4, n=4).to(tl.thread)
    )  # fmt: skip


def by_fours() -> Any:
    return tl.move().tile(m=1, k=4).to(tl.thread).vectorize(k=4)


# ---------------------------------------------------------------- copied


@pytest.mark.parametrize("n", [1, 3])
@pytest.mark.parametrize("size", [(32, 32, 64), (33, 37, 20), (5, 3, 7), (7, 9, 0)], ids=str)
def test_a_plain_load_that_runs_ahead_is_copied(size: tuple[int, int, int], n: int) -> None:
    for steps in (None, by_fours()):
        check(ahead(matmul(*size), n, steps))


@pytest.mark.parametrize(
    ("columns", "elements", "bytes"), [(64, 4, 16), (66, 4, 8), (65, 4, 4), (64, 2, 8), (64, 8, 16), (64, 1, 4)], ids=str
)
def test_copies_are_as_wide_as_the_leaf_and_the_rows_allow(columns: int, elements: int, bytes: int) -> None:
    steps = tl.move().tile(m=1, k=elements).to(tl.thread).vectorize(k=elements)
    found = kernel(ahead(matmul(32, 32, columns), 1, steps))
    assert brought(found) == ({bytes}, 0)
    assert (
        f"`load A in shared ahead 1 {{ tile m=1 k={elements} -> thread; vectorize k={elements} }}`: asynchronous copies of"
        in (found.notes[0])
    )
    assert found.notes[0].endswith(f" {bytes} bytes")


def test_a_copy_waits_no_longer_than_it_must() -> None:
    found = kernel(ahead(matmul(32, 32, 256), 3))
    statements = list(ir.statements(found.body))
    assert [s.pending for s in statements if isinstance(s, ir.Wait)] == [2]
    assert sum(isinstance(s, ir.Commit) for s in statements) == 4  # three before the first round, one in the loop


def test_half_precision_is_copied_in_pairs() -> None:
    plan = ahead(matmul(33, 32, 40, tl.float16), 2, tl.move().tile(m=1, k=2).to(tl.thread).vectorize(k=2))
    assert brought(kernel(plan)) == ({4}, 0)
    check(plan)


@pytest.mark.parametrize("n", [1, 2])
@pytest.mark.parametrize("rows", [16, 13])
def test_columns_of_one_element_are_copied_across_rows(rows: int, n: int) -> None:
    """B[k, n] with one n: four neighbours along k follow each other in memory, each in a row of its own."""
    plan = (
        tl.schedule(matmul(4, n, rows, tl.int32)).tile(m=4, n=1).to(tl.block).split(k=8)
        .load("B", tl.shared, layout=tl.layout("n", "k"), ahead=1, steps=tl.move().tile(k=4, n=1).to(tl.thread).vectorize(k=4))
        .tile(m=1, n=1).to(tl.thread)
    )  # fmt: skip
    copies = [s for s in ir.statements(kernel(plan).body) if isinstance(s, ir.Copy)]
    assert all(s.across and s.lanes == 4 for s in copies) and bool(copies) == (n == 1)
    check(plan)


def test_readers_wait_for_copies_across_rows() -> None:
    """Each thread copies four rows, and other threads read three of them after a barrier."""
    m, k, n = tl.axes(m=1, k=16, n=1)
    A, B = tl.input("A", tl.float32, m, k), tl.input("B", tl.float32, k, n)
    plan = (
        tl.schedule(tl.define("C", A[m, k] * B[k, n], m, k, n)).tile(m=1, n=1, k=16).to(tl.block).split(k=4)
        .load("B", tl.shared, ahead=1, steps=tl.move().tile(k=4, n=1).to(tl.thread).vectorize(k=4))
        .tile(k=1, m=1, n=1).to(tl.thread)
    )  # fmt: skip
    assert any(isinstance(s, ir.Copy) and s.across for s in ir.statements(kernel(plan).body))
    check(plan)


def test_a_padded_read_staged_by_access_is_copied() -> None:
    i, j = tl.axes(i=40, j=3)
    x = tl.input("A", tl.float32, n=40)
    plan = (
        tl.schedule(tl.define("Y", tl.sum(tl.pad(x[i + j - 1]), over=j), i)).tile(i=16).to(tl.block).accumulate(tl.register)
        .split(j=1).load("A", tl.shared, layout=tl.layout("i"), ahead=1).tile(i=1).to(tl.thread)
    )  # fmt: skip
    assert brought(kernel(plan)) == ({4}, 0)
    reads = [e for s in ir.statements(kernel(plan).body) if isinstance(s, ir.Store) for e in s.value.walk()]
    assert not any(isinstance(e, Select) for e in reads), "what is staged holds the fill"
    check(plan)


def test_a_block_of_one_thread_is_served_too() -> None:
    plan = (
        tl.schedule(matmul(5, 4, 11)).tile(m=4, n=4).to(tl.block).accumulate(tl.register).split(k=4).load("A", tl.shared, ahead=1)
    )
    assert brought(kernel(plan)) == ({4}, 0)
    check(plan)


def test_copies_and_registers_beside_each_other() -> None:
    """Two loads run ahead by different numbers of rounds, one copied, one staged; a third is by a written instruction."""
    c = matmul(33, 40, 40)
    plan = (
        tl.schedule(c).tile(m=32, n=32).to(tl.block).accumulate(tl.register).split(k=8)
        .load("A", tl.shared, layout=tl.layout("k", "m").pad(4), ahead=2, steps=by_fours()).load("B", tl.shared, ahead=1)
        .tile(m=4, n=4).to(tl.thread)
    )  # fmt: skip
    found = kernel(plan)
    assert not brought(found)[0] and brought(found, "B_shared") == ({4}, 0)
    check(plan)
    written = tl.move().tile(k=1, n=4).to(tl.thread).do("cp_async_16_of_4_bytes")
    check(ahead(c, 3).prefix(5).load("B", tl.shared, ahead=1, steps=written).tile(m=4, n=4).to(tl.thread))


# ---------------------------------------------------------------- staged


STAGED = "prefetched through registers; no asynchronous copies"


def reason(plan: Schedule, profile: Profile = SIMULATED) -> str:
    found = kernel(plan, profile)
    assert brought(found) == (set(), brought(found)[1]) and not any(isinstance(s, ir.Wait) for s in ir.statements(found.body))
    check(plan, profile)
    (note,) = found.notes
    return note.partition("`: ")[2]


def test_neighbours_that_part_on_the_way_are_staged() -> None:
    plan = ahead(matmul(33, 37, 20), 1, by_fours(), tl.layout("k", "m").pad(4))
    assert reason(plan) == f"{STAGED}, because neighbours along k are 36 elements apart in A_shared"


def test_elements_narrower_than_a_copy_are_staged() -> None:
    said = reason(ahead(matmul(33, 37, 20, tl.float16)))
    assert said == f"{STAGED}, because the innermost body copies 2 bytes, and the device copies 4, 8, 16 at a time"


def test_rows_that_begin_between_copies_are_staged() -> None:
    plan = ahead(matmul(33, 37, 21, tl.float16), 1, tl.move().tile(m=1, k=2).to(tl.thread).vectorize(k=2))
    assert reason(plan) == f"{STAGED}, because some pieces of A do not begin at a multiple of 4 bytes"


def test_a_fill_that_a_copy_does_not_give_is_staged() -> None:
    i, j = tl.axes(i=33, j=21)
    plan = (
        tl.schedule(tl.define("Y", tl.max(tl.input("A", tl.float32, i, j)[i, j], over=j), i)).tile(i=32).to(tl.block)
        .accumulate(tl.register).split(j=8).load("A", tl.shared, ahead=1).tile(i=1).to(tl.thread)
    )  # fmt: skip
    assert reason(plan) == f"{STAGED}, because the padding is -inf, and a copy can only pad with 0"


def test_what_is_in_shared_memory_already_is_staged() -> None:
    c = matmul(33, 37, 32)
    plan = (
        tl.schedule(c).tile(m=32, n=32).to(tl.block).accumulate(tl.register).split(k=16).load("A", tl.shared)
        .split(k=4).load("A", tl.shared, ahead=1).tile(m=4, n=4).to(tl.thread)
    )  # fmt: skip
    drains, staged = kernel(plan).notes
    assert drains.endswith("drains in every iteration over k, because its source is in shared memory only during that iteration")
    assert staged.endswith(f"{STAGED}, because the source is in shared memory")
    check(plan)


def test_a_device_without_copies_stages() -> None:
    said = reason(ahead(matmul(33, 37, 20)), tl.load_profile("sapphire_rapids"))
    assert said == f"{STAGED}, because `sapphire_rapids` has none"


@pytest.mark.parametrize(
    ("k", "threads", "held", "how"),
    [
        (32, True, ["A_staged"], "prefetched through registers"),
        (36, True, [], "stored at once, because a thread's share of 72 elements is more than 64"),
        (32, False, [], "stored at once by a single thread"),
        (1, False, [], "stored at once by a single thread"),
    ],
)
def test_what_a_device_without_copies_does_instead(k: int, threads: bool, held: list[str], how: str) -> None:
    """A tile of 32 x k elements is loaded by 16 threads, or by one."""
    m, n, r = tl.axes(m=64, n=64, k=288)
    A, B = tl.input("A", tl.float32, m, r), tl.input("B", tl.float32, r, n)
    made = tl.schedule(tl.define("C", tl.sum(A[m, r] * B[r, n], over=r), m, n)).tile(m=32, n=32).to(tl.block)
    made = made.accumulate(tl.register).split(k=k).load("A", tl.shared, ahead=1)
    made = made.tile(m=8, n=8).to(tl.thread) if threads else made
    (kernel,) = lower(made.computation, made.steps, tl.load_profile("cdna3")).kernels
    assert [b.name for b in kernel.registers if b.name.startswith("A")] == held
    assert kernel.notes == (f"`load A in shared ahead 1`: {how}; no asynchronous copies, because `cdna3` has none",)


def test_explain_says_which_and_why() -> None:
    text = tl.compile(ahead(matmul(33, 37, 20)), target=tl.target("opencl", profile="simulated")).explain()
    assert "\n  `load A in shared ahead 1`: asynchronous copies of 4 bytes\n" in text


# ---------------------------------------------------------------- planted faults


def test_every_wait_and_barrier_is_needed() -> None:
    plan = ahead(matmul(9, 10, 40), 2)
    tally = Tally()
    tally.run(decided(plan, SIMULATED), plan.computation)
    assert tally.noticed["wait"] == tally.total["wait"] > 0, str(tally)
    assert tally.noticed["barrier"] == tally.total["barrier"] > 0, str(tally)
    assert not tally.missed, str(tally)


def test_copies_run_on_a_device_without_any(opencl_device: Device) -> None:
    """There they land at once: the kernel for a device with asynchronous copies is right on any."""
    i, j, r = tl.axes(i=37, j=21, r=19)
    A, B = tl.input("A", tl.float32, i, r), tl.input("B", tl.float32, r, j)
    made = tl.schedule(tl.define("C", tl.sum(A[i, r] * B[r, j], over=r), i, j)).tile(i=8, j=8).to("block").accumulate("register")
    made = made.split(r=4).load("A", "shared", ahead=2).load("B", "shared", ahead=1).tile(i=1, j=2).to("thread")
    kernel = tl.compile(made, tl.target("opencl", profile="simulated", device=opencl_device))
    assert any(isinstance(s, ir.Copy) for s in ir.statements(kernel.program.kernels[0].body))
    assert kernel.check()
