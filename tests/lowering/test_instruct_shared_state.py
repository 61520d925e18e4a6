"""`do` of an update whose accumulator is in shared memory: every tile of it at its place, or refused with a reason."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tilelang as tl
from tilelang.errors import Refusal
from tilelang.instructions.fragment import fragment
from tilelang.instructions.instruction import Instruction, instruction, updates
from tilelang.instructions.operand import operand, queue
from tilelang.profiles.profile import Profile
from tilelang.schedules.schedule import Schedule
from tilelang.testing.case import arrays
from tilelang.testing.checking import check_schedule

SIMULATED, POCL = tl.load_profile("simulated"), tl.load_profile("sapphire_rapids")
PANELS = tl.layout(lambda m, n: (n // 4, m, n % 4))


def outer(m: int = 2, n: int = 4, k: int = 1, described: bool = False, **fields: Any) -> Instruction:
    """C += A B of one thread, with the rows of C one behind the other."""
    i, j, r = tl.axes(m=m, n=n, k=k)
    a, b = operand("A", tl.float32, tl.register, i, r), operand("B", tl.float32, tl.register, r, j)
    held = None if described else fragment(1, m * n, lambda lane, slot: (slot // n, slot % n))
    layouts = (tl.layout("m", "n"),) if described else ()
    c = operand("C", tl.float32, tl.shared, i, j, fragment=held, layouts=layouts)
    points = [(x, y, z) for x in range(m) for y in range(n) for z in range(k)]
    text = " ".join(f"((float*){{C.address}})[{x * n + y}] += {{A[{x * k + z}]}} * {{B[{z * n + y}]}};" for x, y, z in points)
    return instruction("outer_in_shared", means=updates(c[i, j], a[i, r] * b[r, j]), operands=(a, b, c), level=tl.thread,
                       replace=True, template={"cpu": text, "opencl": text}, **fields)  # fmt: skip


def matmul(m: int, n: int, k: int, transposed: bool = False) -> Any:
    i, j, r = tl.axes(m=m, n=n, k=k)
    A, B = tl.input("A", tl.float32, i, r), tl.input("B", tl.float32, r, j)
    return tl.define("C", tl.sum(A[i, r] * B[r, j], over=r), *((j, i) if transposed else (i, j)))


def blocks(c: tl.Tensor, m: int, n: int, layout: Any = None) -> Schedule:
    return tl.schedule(c).tile(m=m, n=n).to(tl.block).accumulate(tl.shared, layout=layout)


def by(plan: Any, made: Instruction | str) -> Any:
    return plan.load("A", tl.register).load("B", tl.register).do(made)


def check(plan: Schedule, *profiles: Profile) -> None:
    """It is right on a CPU, in OpenCL and in the simulator, within the derived bound, and to the bit on small integers."""
    for data in ("random", "integers"):
        given = arrays(plan.computation, data)
        for profile in profiles or (SIMULATED, POCL):
            found = check_schedule(plan, given, profile=profile, opencl=profile is POCL, exactly=data == "integers")
            assert found == []
    if not profiles:
        product = given["A"] @ given["B"]
        result = tl.compile(plan, target="cpu")(**given)
        assert np.array_equal(result, product if result.shape == product.shape else product.T)


def refused(plan: Callable[[], Schedule], profile: Profile = SIMULATED) -> Refusal:
    with pytest.raises(Refusal) as caught:
        plan().check(profile)
    assert caught.value.help and caught.value.span is not None
    return caught.value


def test_the_second_tile_begins_at_its_own_row() -> None:
    a, b = np.arange(1, 5, dtype=np.float32).reshape(4, 1), np.arange(1, 5, dtype=np.float32).reshape(1, 4)
    plan = by(blocks(matmul(4, 4, 1), 4, 4).split(k=1), outer())
    assert tl.compile(plan, target="cpu")(a, b).tolist() == [[1, 2, 3, 4], [2, 4, 6, 8], [3, 6, 9, 12], [4, 8, 12, 16]]


PLANS: dict[str, Callable[[int], Schedule]] = {
    "along m": lambda k: by(blocks(matmul(8, 4, 5), 4, 4).split(k=k), outer(k=k)),
    "along m, partial": lambda k: by(blocks(matmul(7, 3, 5), 4, 4).split(k=k), outer(k=k)),
    "along n": lambda k: by(blocks(matmul(5, 13, 5), 4, 8).split(k=k), outer(m=1, k=k)),
    "along both, in panels": lambda k: by(blocks(matmul(9, 11, 5), 4, 8, PANELS).split(k=k), outer(k=k)),
    "transposed output": lambda k: by(blocks(matmul(9, 4, 5, True), 4, 4).split(k=k), outer(k=k)),
    "described": lambda k: by(blocks(matmul(7, 3, 5), 4, 4).split(k=k), outer(k=k, described=True)),
    "by threads": lambda k: by(blocks(matmul(13, 21, 5), 8, 16, PANELS).split(k=2).tile(m=4, n=8).to(tl.thread), outer(k=k)),
    "by threads, described": lambda k: by(
        blocks(matmul(13, 4, 5), 8, 4).split(k=2).tile(m=2, n=4).to(tl.thread), outer(k=k, described=True)
    ),
    "tiles of threads, partial": lambda k: by(
        blocks(matmul(13, 4, 5), 12, 4).split(k=2).tile(m=6, n=4).to(tl.thread), outer(k=k)
    ),
    "no rounds": lambda k: by(blocks(matmul(4, 4, 0), 4, 4).split(k=k), outer(k=k)),
    "a walk outside": lambda k: by(
        tl.schedule(matmul(8, 4, 8)).tile(m=4, n=4).to(tl.block).split(k=4).accumulate(tl.shared).split(k=k), outer(k=k)
    ),
    "parts of the reduction": lambda k: by(
        tl.schedule(matmul(8, 4, 8)).tile(m=4, n=4, k=4).to(tl.block).accumulate(tl.shared).split(k=k), outer(k=k)
    ),
    "parts of an axis": lambda k: (
        tl.schedule(matmul(24, 4, 8)).unfuse(m={"i": 4, "j": 6}).tile(i=3, j=6, n=4).to(tl.block).accumulate(tl.shared)
        .split(k=k).load("A", tl.register).load("B", tl.register).do(outer(k=k), m="j")
    ),
}  # fmt: skip


@pytest.mark.parametrize("k", [1, 2])
@pytest.mark.parametrize("name", PLANS)
def test_tiles(name: str, k: int) -> None:
    check(PLANS[name](k))


def test_one_dimension() -> None:
    n, k = tl.axes(n=21, k=9)
    A, B = tl.input("A", tl.float32, k), tl.input("B", tl.float32, k, n)
    c = tl.define("C", tl.sum(A[k] * B[k, n], over=k), n)
    j = tl.axes(n=4)
    a, b = operand("A", tl.float32, tl.register), operand("B", tl.float32, tl.register, j)
    held = operand("C", tl.float32, tl.shared, j, fragment=fragment(1, 4, lambda lane, slot: slot))
    text = " ".join(f"{{C[{x}]}} += {{A}} * {{B[{x}]}};" for x in range(4))
    made = instruction("axpy_in_shared", means=updates(held[j], a[()] * b[j]), operands=(a, b, held), level=tl.thread,
                       replace=True, template={"cpu": text, "opencl": text})  # fmt: skip
    check(by(tl.schedule(c).tile(n=16).to(tl.block).accumulate(tl.shared).split(k=2).tile(n=8).to(tl.thread), made))


def test_every_operand_in_shared() -> None:
    i, j = tl.axes(m=2, n=4)
    a, b, c = (
        operand(x, tl.float32, tl.shared, *dims, fragment=fragment(1, slots, held))
        for x, dims, slots, held in (("A", (i,), 2, lambda _, slot: slot), ("B", (j,), 4, lambda _, slot: slot),
                                     ("C", (i, j), 8, lambda _, slot: (slot // 4, slot % 4)))
    )  # fmt: skip
    text = " ".join(f"{{C[{4 * x + y}]}} += {{A[{x}]}} * {{B[{y}]}};" for x in range(2) for y in range(4))
    made = instruction("all_in_shared", means=updates(c[i, j], a[i] * b[j]), operands=(a, b, c), level=tl.thread, replace=True,
                       template={"cpu": text, "opencl": text})  # fmt: skip
    columns = tl.layout(lambda m, k: (k, m))
    plan = blocks(matmul(13, 21, 9), 8, 16, PANELS).split(k=4).load("A", tl.shared, layout=columns).load("B", tl.shared)
    check(plan.do(made))
    check(plan.tile(m=4, n=8).to(tl.thread).do(made))


@pytest.mark.parametrize("described", [False, True])
@pytest.mark.parametrize("profile", ["ampere", "hopper"])
def test_by_warps(profile: str, described: bool) -> None:
    i, j, r = tl.axes(m=4, n=16, k=2)
    a = operand("A", tl.float32, tl.register, i, r, fragment=fragment(32, 8, lambda lane, slot: (slot // 2, slot % 2)))
    b = operand("B", tl.float32, tl.register, r, j, fragment=fragment(32, 32, lambda lane, slot: (slot // 16, slot % 16)))
    held = fragment(32, 2, lambda lane, slot: (lane // 8, lane % 8 * 2 + slot))
    c = operand("C", tl.float32, tl.shared, i, j, fragment=None if described else held)
    made = instruction("by_warp_in_shared", means=updates(c[i, j], a[i, r] * b[r, j]), operands=(a, b, c), level=tl.warp,
                       replace=True)  # fmt: skip
    plan = blocks(matmul(13, 15, 5), 8, 16).split(k=2).load("A", tl.shared, ahead=1).load("B", tl.shared)
    check(by(plan.tile(m=4, n=16).to(tl.warp), made), tl.load_profile(profile))


def test_one_lane_of_a_warp_updates() -> None:
    made = outer(issue="one elected lane")
    plan = tl.schedule(matmul(13, 4, 5)).units(block=tl.warps(1)).tile(m=8, n=4).to(tl.block).accumulate(tl.shared).split(k=1)
    check(by(plan, made), SIMULATED)


def test_a_stage_that_begins_before_the_first_element() -> None:
    m, k, p, s = tl.axes(m=24, k=6, p=24, s=3)
    A, B = tl.input("A", tl.float32, m, k), tl.input("B", tl.float32, k)
    C = tl.define("C", tl.sum(A[m, k] * B[k], over=k), m)
    d = tl.define("D", tl.sum(tl.pad(C[p + s - 1], 0), over=s), p)
    i = tl.axes(m=2)
    a, b = operand("A", tl.float32, tl.register, i), operand("B", tl.float32, tl.register)
    c = operand("C", tl.float32, tl.shared, i, fragment=fragment(1, 2, lambda lane, slot: slot))
    made = instruction("pairs_in_shared", means=updates(c[i], a[i] * b[()]), operands=(a, b, c), level=tl.thread, replace=True)
    plan = tl.schedule(d).tile(p=8).to(tl.block)
    check(plan.compute("C", tl.shared, steps=by(tl.move().accumulate(tl.shared).split(k=1), made)), SIMULATED)


# ---------------------------------------------------------------- refusals


def mismatch(plan: Callable[[], Schedule]) -> str:
    error = refused(plan)
    assert error.code == "instruction-mismatch"
    return error.counterexample or ""


def test_slots_that_are_not_in_a_row_are_refused() -> None:
    found = mismatch(lambda: by(blocks(matmul(4, 8, 1), 4, 8).split(k=1), outer()))
    assert found.endswith(
        "runs of 8 consecutive elements, but the step has layout (m, n), where elements (0, 3) and (1, 0) are 5 apart"
    )
    assert "are 2 apart" in mismatch(lambda: by(blocks(matmul(4, 4, 1), 4, 4, tl.layout().pad(1)).split(k=1), outer()))


def test_a_described_tile_needs_whole_rows() -> None:
    assert mismatch(lambda: by(blocks(matmul(4, 8, 1), 4, 8).split(k=1), outer(described=True))) == "it takes layout (m, n)"


@pytest.mark.parametrize("described", [False, True])
def test_an_accumulator_in_registers_is_refused(described: bool) -> None:
    plain = tl.schedule(matmul(8, 4, 8)).tile(m=4, n=4).to(tl.block)
    for plan in (
        plain.split(k=1),
        plain.accumulate(tl.register).split(k=1),
        plain.accumulate(tl.shared).split(k=1).accumulate(tl.register),
        plain.accumulate(tl.shared).tile(k=4).to(tl.thread),
    ):
        found = mismatch(lambda plan=plan: by(plan, outer(described=described)))  # type: ignore[misc]
        assert found == "memory of the accumulator of C: the instruction has shared, but the step has register"


def test_a_tile_beyond_the_accumulator_is_refused() -> None:
    error = refused(lambda: by(tl.schedule(matmul(5, 4, 4)).tile(n=4).to(tl.block).accumulate(tl.shared).split(k=1), outer()))
    assert error.code == "unguardable-do" and "the accumulator in shared has no elements there" in str(error)
    assert error.counterexample == "m = 5 is past the end, but the tile of 2 that begins at m = 4 includes it"


@pytest.mark.parametrize("fields", [
    {"completes": "barrier by bytes"}, {"completes": "in-order group"},
    {"completes": "in-order group", "queue": queue("of_shared", commit={"cuda": ";"}, wait={"cuda": ";"})},
], ids=["barrier", "group", "queue"])  # fmt: skip
def test_an_update_that_completes_later_is_refused(fields: dict[str, Any]) -> None:
    i, j, r = tl.axes(m=2, n=4, k=1)
    a, b = operand("A", tl.float32, tl.register, i, r), operand("B", tl.float32, tl.register, r, j)
    for memory in (tl.shared, tl.register) if "queue" not in fields else (tl.shared,):
        held = fragment(1, 8, lambda lane, slot: (slot // 4, slot % 4))
        c = operand("C", tl.float32, memory, i, j, fragment=held)
        made = instruction("later", means=updates(c[i, j], a[i, r] * b[r, j]), operands=(a, b, c), level=tl.thread,
                           replace=True, **fields)  # fmt: skip
        plain = tl.schedule(matmul(8, 4, 8)).tile(m=4, n=4).to(tl.block).accumulate(memory).split(k=1)
        error = refused(lambda: by(plain, made))  # noqa: B023
        said = f"updates an accumulator in {memory.name} and completes asynchronously"
        assert error.code == "not-lowered-yet" and said in str(error)


def halves(memory: Any) -> Instruction:
    """C += A B of one thread in float16, under the licence."""
    i, j = tl.axes(m=2, n=4)
    a, b = operand("A", tl.float16, tl.register, i), operand("B", tl.float16, tl.register, j)
    c = operand("C", tl.float16, memory, i, j, fragment=fragment(1, 8, lambda lane, slot: (slot // 4, slot % 4)))
    return instruction("halves", means=updates(c[i, j], a[i] * b[j]), operands=(a, b, c), level=tl.thread, replace=True,
                       licences=("float16_accumulate",))  # fmt: skip


def licensed(out: Any) -> Schedule:
    i, j, r = tl.axes(m=6, n=8, k=32)
    A, B = tl.input("A", tl.float16, i, r), tl.input("B", tl.float16, r, j)
    total = tl.cast(tl.sum(A[i, r] * B[r, j], over=r), out)
    return tl.schedule(tl.define("C", total, i, j, allow=("float16_accumulate",)))


IN_PARTS: dict[str, Callable[[Schedule], Any]] = {
    "one part": lambda s: s.tile(m=4, n=8).to(tl.block).accumulate(tl.register).split(k=8).tile(m=2, n=4).to(tl.thread),
    "a part a thread": lambda s: s.tile(m=4, n=8).to(tl.block).accumulate(tl.register).tile(m=2, n=4, k=8).to(tl.thread),
    "a part a block": lambda s: s.tile(m=4, n=8, k=16).to(tl.block).accumulate(tl.register).tile(m=2, n=4).to(tl.thread),
    "a part a chunk, in shared": lambda s: s.tile(m=4, n=8).to(tl.block).accumulate(tl.shared).split(k=8).accumulate(tl.register)
    .tile(m=2, n=4).to(tl.thread),
    "parts of threads, in shared": lambda s: s.tile(m=4, n=8).to(tl.block).accumulate(tl.shared).split(k=16)
    .accumulate(tl.register).tile(m=2, n=4, k=4).to(tl.thread),
}  # fmt: skip


@pytest.mark.parametrize("out", [tl.float16, tl.float32], ids=str)
@pytest.mark.parametrize("form", IN_PARTS)
def test_sums_in_float16_under_the_licence_in_several_parts(form: str, out: Any) -> None:
    check(by(IN_PARTS[form](licensed(out)).split(k=1), halves(tl.register)), SIMULATED)


@pytest.mark.parametrize("out", [tl.float16, tl.float32], ids=str)
def test_an_accumulator_in_shared_is_not_summed_in_float16(out: Any) -> None:
    """The licence lets an instruction keep its own registers in float16; what threads share has the accumulator's type."""
    plan = licensed(out).tile(m=4, n=8).to(tl.block).accumulate(tl.shared).split(k=8).tile(m=2, n=4).to(tl.thread).split(k=1)
    with pytest.raises(Refusal, match="the instruction has float16, but the step has float32"):
        check(by(plan, halves(tl.shared)), SIMULATED)
