"""Schedules with roles of units: what they are lowered to, and that it is right in whatever order roles and copies come."""

from __future__ import annotations

from typing import Any

import pytest

import tilelang as tl
from tests.lowering.small_kernels import ORDERS, kinds
from tilelang import testing
from tilelang.errors import Refusal
from tilelang.lowering import ir
from tilelang.lowering.pipeline import lower
from tilelang.lowering.printer import to_text
from tilelang.lowering.simulator import simulate
from tilelang.options import Options
from tilelang.profiles.files import load_profile
from tilelang.schedules.schedule import Schedule
from tilelang.semantics import reference

ROLES = tl.warps(1).as_role("producer") + tl.warps(2).as_role("consumer")


def matmul(M: int, N: int, K: int, type: Any = tl.float32) -> Any:
    m, n, k = tl.axes(m=M, n=N, k=K)
    A, B = tl.input("A", type, m, k), tl.input("B", type, k, n)
    return tl.define("C", tl.sum(A[m, k] * B[k, n], over=k), m, n)


def linear(M: int, N: int, K: int) -> Any:
    m, n, k = tl.axes(m=M, n=N, k=K)
    A, B = tl.input("A", tl.bfloat16, m, k), tl.input("B", tl.bfloat16, n, k)
    bias = tl.input("bias", tl.float32, n)
    acc = tl.define("acc", tl.sum(A[m, k] * B[n, k], over=k), m, n)
    return tl.define("C", tl.cast(tl.gelu(acc[m, n] + bias[n]), tl.bfloat16), m, n)


def by_hand(made: Any, ahead: int = 2, blocks: int | None = None, move: str = "") -> Schedule:
    """One warp loads, two compute. move: an instruction, else plain vectors."""
    roles = tl.warps(1).as_role("producer") + tl.warps(2).as_role("consumer")
    start = tl.schedule(made).units(block=roles).tile(m=16, n=32).to(tl.block, blocks).accumulate(tl.register).split(k=8)
    a, b = tl.move().tile(m=1, k=4).to(tl.thread), tl.move().tile(k=1, n=4).to(tl.thread)
    a, b = (a.do(move), b.do(move)) if move else (a.vectorize(k=4), b.vectorize(n=4))
    loaded = start.load("A", tl.shared, ahead=ahead, on="producer", steps=a).load(
        "B", tl.shared, ahead=ahead, on="producer", steps=b
    )
    return loaded.tile(m=8).to("consumer").tile(m=2, n=4).to(tl.thread).split(k=1).vectorize(n=4)


def by_boxes(made: Any, columns: int, blocks: int | None, ahead: int = 2, back: str = "pieces") -> Schedule:
    """The bfloat16 product of the language's description, with tiles of 128 x columns. back: how results are stored."""
    roles = tl.warpgroups(1).as_role("producer", 40) + tl.warpgroups(2).as_role("consumer", 232)
    swizzled, empty = tl.layout().swizzle(128), tl.move()
    whole = tl.move().via(tl.shared, layout=swizzled).do("tma_store_2d")
    pieces = tl.move().split(n=64).via(tl.shared, layout=swizzled).do("tma_store_2d")
    return (
        tl.schedule(made)
        .units(block=roles)
        .tile(m=128, n=columns).to(tl.block, blocks, order=tl.layout(lambda m, n: (n // 8, m, n % 8)))
        .accumulate(tl.register, steps={"pieces": pieces, "whole": whole, "registers": empty}[back])
        .split(k=64)
        .load("A", tl.shared, layout=swizzled, ahead=ahead, on="producer", steps=tl.move().do("tma_load_2d"))
        .load("B", tl.shared, layout=swizzled, ahead=ahead, on="producer", steps=tl.move().do("tma_load_2d"))
        .tile(m=64).to("consumer")
        .do(f"wgmma_m64n{columns}k16", m="m", n="n", k="k")
    )  # fmt: skip


def lowered(plan: Schedule, profile: str) -> ir.Program:
    return lower(plan.computation, plan.steps, load_profile(profile), Options(verify=True))


def check(plan: Schedule, profile: str, order: str | int, kind: str = "integers") -> None:
    """Runs a schedule in the simulator: nothing is found, and the values are the reference's."""
    arrays = testing.arrays(plan.computation, kind, 3)
    report = simulate.run(lowered(plan, profile), arrays, order=order, costs=False)
    assert not report.counts, str(report)
    found = reference.compare(plan.computation, arrays, report.outputs, error_ulps=plan.error_ulps)
    assert found, found


# ---------------------------------------------------------------- what they are lowered to


def test_every_role_walks_alike() -> None:
    text = to_text(lowered(by_hand(matmul(32, 64, 32), blocks=3), "simulated").kernels[0])
    assert text.splitlines()[9:] == [
        "  if thread < 1:",
        "    phases A_B_full of 1 arrival",
        "    phases A_B_empty of 2 arrivals",
        "  barrier shared",
        "  role producer, threads 0..32:",
        "    for round_1 in 0..(0 - block_x) // 3 + 2:",
        "      let tile_1: int64 = round_1 * 3 + block_x",
        "      for k_2 in 0..4:",
        "        await A_B_empty[(round_1 * 4 + k_2) % 3] phase 1 - (round_1 * 4 + k_2) // 3 % 2",
        "        A_shared[(round_1 * 4 + k_2) % 3, thread // 2, thread % 2 * 4:4]"
        " = A[tile_1 // 2 * 16 + thread // 2, k_2 * 8 + thread % 2 * 4:4]",
        "        for k_round in 0..2:",
        "          B_shared[(round_1 * 4 + k_2) % 3, k_round * 4 + thread // 8, thread % 8 * 4:4]"
        " = B[k_2 * 8 + k_round * 4 + thread // 8, tile_1 % 2 * 32 + thread % 8 * 4:4]",
        "        arrive A_B_full[(round_1 * 4 + k_2) % 3] by 32 threads",
        "  role consumer, threads 32..96:",
        "    for round in 0..(0 - block_x) // 3 + 2:",
        "      let tile: int64 = round * 3 + block_x",
        "      C_state[0, 0:4] = pack(0.0, 0.0, 0.0, 0.0)",
        "      C_state[1, 0:4] = pack(0.0, 0.0, 0.0, 0.0)",
        "      for k in 0..4:",
        "        await A_B_full[(round * 4 + k) % 3] phase (round * 4 + k) // 3 % 2",
        "        for k_1 in 0..8:",
        "          C_state[0, 0:4] = C_state[0, 0:4]"
        " + A_shared[(round * 4 + k) % 3, thread // 32 * 8 + thread % 32 // 8 * 2, k_1]"
        " * B_shared[(round * 4 + k) % 3, k_1, thread % 8 * 4:4]",
        "          C_state[1, 0:4] = C_state[1, 0:4]"
        " + A_shared[(round * 4 + k) % 3, thread // 32 * 8 + thread % 32 // 8 * 2 + 1, k_1]"
        " * B_shared[(round * 4 + k) % 3, k_1, thread % 8 * 4:4]",
        "        arrive A_B_empty[(round * 4 + k) % 3] by 32 threads",
        "      C[`tile` // 2 * 16 + thread // 32 * 8 + thread % 32 // 8 * 2, `tile` % 2 * 32 + thread % 8 * 4:4] = C_state[0, 0:4]",
        "      C[`tile` // 2 * 16 + thread // 32 * 8 + thread % 32 // 8 * 2 + 1, `tile` % 2 * 32 + thread % 8 * 4:4]"
        " = C_state[1, 0:4]",
    ]


def test_boxes_announce_their_bytes_and_products_stand_in_groups() -> None:
    (kernel,) = lowered(by_boxes(linear(128, 64, 192), 64, None, back="whole"), "hopper").kernels
    producer, consumer = kernel.roles
    assert to_text(producer.body).splitlines() == [
        "if thread < 1:",
        "  for k_2 in 0..3:",
        "    await A_B_empty[k_2] phase 1",
        "    arrive A_B_full[k_2] and await 24576 bytes",
        "    do tma_load_2d(D=A_shared[k_2, D_r_1, D_c_1 // 8 ^ D_r_1 % 8, D_c_1 % 8], S=A[S_r_1, k_2 * 64 + S_c_1]) to A_B_full[k_2]",
        "    do tma_load_2d(D=B_shared[k_2, D_r_2, D_c_2 // 8 ^ D_r_2 % 8, D_c_2 % 8],"
        " S=B[block_x * 64 + S_r_2, k_2 * 64 + S_c_2]) to A_B_full[k_2]",
    ]
    lines = to_text(consumer.body).splitlines()
    start = lines.index("for k in 0..3:")
    product = "A=A_shared[k, unit * 64 + A_m, k_1 * 2 + A_k // 8 ^ A_m % 8, A_k % 8]"
    assert lines[start + 1 : start + 8] == [
        "  await A_B_full[k] phase 0",
        "  fence register for wgmma",
        "  for k_1 in 0..4:",
        f"    do wgmma_m64n64k16(C=acc_sum_state[0], {product}, B=B_shared[k, B_n, k_1 * 2 + B_k // 8 ^ B_n % 8, B_k % 8])"
        " by 128 threads",
        "  commit wgmma",
        "  wait 1 wgmma",
        "  if 0 < k:",
    ]
    assert lines[start + 8 : start + 11] == [
        "    arrive A_B_empty[k - 1] by 32 threads",
        "wait 0 wgmma",
        "arrive A_B_empty[2] by 32 threads",
    ]
    assert lines[-6:] == [
        "fence shared for tensor_store",
        "barrier shared",
        "if thread < 1:",
        "  do tma_store_2d(D=C[D_r, block_x * 64 + D_c], S=C_shared[S_r, S_c // 8 ^ S_r % 8, S_c % 8])",
        "  commit tensor_store",
        "wait 0 tensor_store",
    ]
    assert {b.name: b.offset % 1024 for b in kernel.shared if b.offset is not None and "shared" in b.name} == {
        "A_shared": 0, "B_shared": 0, "C_shared": 0,
    }  # fmt: skip


# ---------------------------------------------------------------- what they compute


@pytest.mark.parametrize("order", [*ORDERS, 2])
@pytest.mark.parametrize("ahead", [0, 1, 3])
@pytest.mark.parametrize("blocks", [None, 3], ids=["once", "persistent"])
def test_a_producer_that_copies_by_hand(ahead: int, blocks: int | None, order: str | int) -> None:
    check(by_hand(matmul(33, 70, 29), ahead, blocks), "simulated", order)


@pytest.mark.parametrize("size", [(1, 1, 1), (16, 32, 8), (17, 33, 9), (40, 10, 0)])
def test_few_and_no_points(size: tuple[int, int, int]) -> None:
    check(by_hand(matmul(*size), blocks=2), "simulated", "late")


@pytest.mark.parametrize("order", ["early", "late", 5])
def test_a_producer_whose_copies_are_asynchronous(order: str | int) -> None:
    check(by_hand(matmul(40, 64, 32), 2, 2, "cp_async_16_of_4_bytes"), "simulated", order)


@pytest.mark.parametrize("order", ["early", "late"])
@pytest.mark.parametrize(
    ("size", "columns", "blocks", "back"),
    [
        ((128, 64, 64), 64, None, "registers"),
        ((100, 72, 72), 64, 1, "whole"),
        ((72, 200, 72), 128, 1, "pieces"),
    ],
)
def test_products_of_a_warpgroup_from_boxes(
    size: tuple[int, int, int], columns: int, blocks: int | None, back: str, order: str | int
) -> None:
    check(by_boxes(linear(*size), columns, blocks, back=back), "hopper", order, "random")


def test_the_product_of_the_language_s_description() -> None:
    """128 x 256 a block, four buffers, stores of 64 columns: a tile is loaded while the one before it is stored."""
    check(by_boxes(linear(72, 264, 72), 256, 1, ahead=3), "hopper", 1)


def test_a_main_role_may_load_for_itself() -> None:
    roles = tl.warps(1).as_role("producer") + tl.warps(2).as_role("consumer")
    start = tl.schedule(matmul(24, 40, 20)).units(block=roles).tile(m=16, n=32).to(tl.block).accumulate(tl.register).split(k=8)
    loaded = start.load("A", tl.shared, ahead=1, on="producer").load("B", tl.shared, on="consumer")
    plan = loaded.tile(m=8).to("consumer").tile(m=2, n=4).to(tl.thread)
    kernel = lowered(plan, "simulated").kernels[0]
    barriers = [sum(isinstance(s, ir.Barrier) for s in ir.statements(r.body)) for r in kernel.roles]
    assert barriers == [0, 2], "the consumer's threads meet over what they share, the producer's over nothing"
    for order in ORDERS:
        check(plan, "simulated", order)


def test_two_roles_load() -> None:
    roles = tl.warps(1).as_role("left") + tl.warps(2).as_role("right") + tl.warps(2).as_role("consumer")
    start = tl.schedule(matmul(24, 40, 20)).units(block=roles).tile(m=16, n=32).to(tl.block, 2).accumulate(tl.register).split(k=8)
    loaded = start.load("A", tl.shared, ahead=1, on="left").load("B", tl.shared, ahead=2, on="right")
    plan = loaded.tile(m=8).to("consumer").tile(m=2, n=4).to(tl.thread)
    assert len({b.name for b in lowered(plan, "simulated").kernels[0].shared if b.role == "phases"}) == 4
    for order in (*ORDERS, 7, 8):
        check(plan, "simulated", order)


def test_units_begin_at_multiples_of_their_size() -> None:
    """Whatever order they are written in: an instruction of 128 threads takes whole warpgroups."""
    roles = tl.warps(1).as_role("producer") + tl.warpgroups(1).as_role("consumer")
    swizzled = tl.layout().swizzle(128)
    start = tl.schedule(linear(64, 64, 64)).units(block=roles).tile(m=64, n=64).to(tl.block).accumulate(tl.register).split(k=64)
    for name in "AB":
        start = start.load(name, tl.shared, layout=swizzled, on="producer", steps=tl.move().do("tma_load_2d"))
    plan = start.tile(m=64).to("consumer").do("wgmma_m64n64k16", m="m", n="n", k="k")
    kernel = lowered(plan, "hopper").kernels[0]
    assert [(r.name, r.first, r.threads) for r in kernel.roles] == [("consumer", 0, 128), ("producer", 128, 32)]
    check(plan, "hopper", "late")


def test_producers_that_store_publish_it_before_they_arrive() -> None:
    """Instructions that read shared memory by themselves do not see what threads wrote there, but for a fence."""
    roles = tl.warps(1).as_role("producer") + tl.warpgroups(1).as_role("consumer")
    swizzled = tl.layout().swizzle(128)
    start = tl.schedule(linear(64, 64, 64)).units(block=roles).tile(m=64, n=64).to(tl.block).accumulate(tl.register).split(k=64)
    for name in "AB":
        start = start.load(name, tl.shared, layout=swizzled, on="producer", steps=tl.move().vectorize(k=8))
    plan = start.tile(m=64).to("consumer").do("wgmma_m64n64k16", m="m", n="n", k="k")
    producer = next(r for r in lowered(plan, "hopper").kernels[0].roles if r.name == "producer")
    assert to_text(producer.body).splitlines()[-2:] == ["fence shared for wgmma", "arrive A_B_full[0] by 32 threads"]
    check(plan, "hopper", "late")


@pytest.mark.parametrize("order", ["early", "late", 2])
def test_a_ring_that_boxes_and_threads_fill_together(order: str | int) -> None:
    """All threads of the producer await its slots, and arrive beside the box's bytes."""
    roles = tl.warps(1).as_role("producer") + tl.warpgroups(1).as_role("consumer")
    swizzled = tl.layout().swizzle(128)
    start = tl.schedule(linear(64, 64, 320)).units(block=roles).tile(m=64, n=64).to(tl.block).accumulate(tl.register).split(k=64)
    start = start.load("A", tl.shared, layout=swizzled, ahead=1, on="producer", steps=tl.move().do("tma_load_2d"))
    start = start.load("B", tl.shared, layout=swizzled, ahead=1, on="producer", steps=tl.move().vectorize(k=8))
    plan = start.tile(m=64).to("consumer").do("wgmma_m64n64k16", m="m", n="n", k="k")
    producer = next(r for r in lowered(plan, "hopper").kernels[0].roles if r.name == "producer")
    assert [line.strip().split("[")[0] for line in to_text(producer.body).splitlines()[:2]] == [
        "for k_2 in 0..5:",
        "await A_B_empty",
    ]
    check(plan, "hopper", order)


def through_shared() -> Schedule:
    """Results without a reduction, which stop on their way: the role that loads has no part in that."""
    i, j = tl.axes(i=20, j=37)
    plan = (
        tl.schedule(tl.define("Y", tl.input("X", tl.float32, i, j)[i, j] + 1, i, j))
        .units(block=ROLES)
        .tile(i=8, j=16)
        .to(tl.block)
    )
    return plan.via(tl.shared).load("X", tl.shared, on="producer").tile(j=8).to("consumer")


def peeled() -> Schedule:
    """A main loop and its rest in one role and not in the other would count rounds apart."""
    plan = tl.schedule(matmul(16, 32, 20)).units(block=ROLES).tile(m=16, n=32).to(tl.block).accumulate(tl.register)
    return plan.split(k=8, peel=True).load("A", tl.shared, ahead=1, on="producer").tile(m=8).to("consumer")


def skipping() -> Schedule:
    """A lone thread leaves rounds out in which no point exists; not where another role fills a ring for them."""
    i, j, k = tl.axes(i=11, j=3, k=3)
    made = tl.define("Y", tl.sum(tl.input("X", tl.float32, j, k, i)[j, k, i], over=(j, k), where=j // 3 == i // 3), i)
    roles = tl.threads(1).as_role("consumer") + tl.warps(1).as_role("producer")
    plan = tl.schedule(made).units(block=roles).tile(i=3).to(tl.block).split(j=1).accumulate(tl.register).split(k=1)
    return plan.load("X", tl.shared, on="producer")


@pytest.mark.parametrize("order", ["early", "late", 0])
@pytest.mark.parametrize("make", [through_shared, peeled, skipping])
def test_both_roles_walk_over_the_same_rounds(make: Any, order: str | int) -> None:
    check(make(), "simulated", order)


@pytest.mark.parametrize("steps", [1, 2, 4, 5])
def test_every_prefix_runs(steps: int) -> None:
    """Until a tile says which role computes, the largest that does not load does."""
    check(by_hand(matmul(17, 33, 9), blocks=3).prefix(steps), "simulated", "late")


# ---------------------------------------------------------------- what is wrong is found


def without(program: ir.Program, kind: type[ir.Stmt], role: str) -> ir.Program:
    """The program with all statements of a kind taken out of a role."""

    def go(s: Any) -> Any:
        if isinstance(s, kind):
            return ir.Seq(())
        return s.map_children(go) if isinstance(s, ir.Stmt) else s

    (kernel,) = program.kernels
    bodies = [go(r.body) if r.name == role else r.body for r in kernel.roles]
    return program.replace(kernels=(kernel.with_roles(bodies),))


@pytest.mark.parametrize("order", ["early", "late", 0])
@pytest.mark.parametrize(
    ("kind", "role"), [(ir.Await, "consumer"), (ir.Await, "producer"), (ir.Arrive, "consumer"), (ir.Wait, "consumer")]
)
def test_whatever_orders_the_roles_is_needed(kind: type[ir.Stmt], role: str, order: str | int) -> None:
    plan = by_boxes(linear(64, 64, 320), 64, None, ahead=1, back="registers")
    broken = without(lowered(plan, "hopper"), kind, role)
    found = kinds(simulate.run(broken, testing.arrays(plan.computation, "integers", 3), order=order))
    assert found & {"data-race", "deadlock", "read-before-wait", "write-before-wait", "source-overwritten", "copy-never-awaited"}


@pytest.mark.parametrize(
    ("size", "text"),
    [((128, 64, 70), "whose rows begin at multiples of 16 bytes"), ((128, 70, 64), "whose rows begin at multiples of 16 bytes")],
)
def test_boxes_of_tensors_whose_rows_begin_anywhere_are_refused(size: tuple[int, int, int], text: str) -> None:
    with pytest.raises(Refusal) as caught:
        lowered(by_boxes(linear(*size), 64, None, back="whole"), "hopper")
    assert text in str(caught.value)


def test_boxes_that_end_inside_the_tensor_are_refused() -> None:
    """What is beyond the tile exists in the tensor: the device would bring it, and the tile's reader wants zero there."""
    roles = tl.warps(1).as_role("producer") + tl.warpgroups(1).as_role("consumer")
    start = tl.schedule(linear(64, 64, 192)).units(block=roles).tile(m=64, n=64).to(tl.block).accumulate(tl.register)
    walked = start.split(k=96).split(k=64).load("A", tl.shared, on="producer", steps=tl.move().do("tma_load_2d"))
    with pytest.raises(Refusal) as caught:
        lowered(walked.tile(m=64).to("consumer"), "hopper")
    assert caught.value.code in ("unguardable-do", "not-lowered-yet")


def test_rows_that_are_wider_than_their_swizzle_are_refused() -> None:
    roles = tl.warps(1).as_role("producer") + tl.warpgroups(1).as_role("consumer")
    start = tl.schedule(linear(64, 64, 128)).units(block=roles).tile(m=64, n=64).to(tl.block).accumulate(tl.register).split(k=128)
    loaded = start.load("A", tl.shared, layout=tl.layout().swizzle(128), on="producer", steps=tl.move().do("tma_load_2d"))
    with pytest.raises(Refusal) as caught:
        lowered(loaded.tile(m=64).to("consumer"), "hopper")
    assert caught.value.code == "instruction-mismatch" and "256 bytes wide" in str(caught.value)


@pytest.mark.parametrize(
    ("producer", "consumer", "refused"),
    [(24, 240, None), (40, 232, None), (16, 240, "24 to 256"), (40, 264, "24 to 256"), (36, 232, "in multiples of 8"),
     (256, 256, "more than the 65536 registers of a block")],
)  # fmt: skip
def test_a_role_can_have_as_many_registers_as_the_device_gives(producer: int, consumer: int, refused: str | None) -> None:
    roles = tl.warpgroups(1).as_role("producer", producer) + tl.warpgroups(2).as_role("consumer", consumer)
    start = tl.schedule(matmul(64, 64, 32)).units(block=roles).tile(m=64, n=64).to(tl.block).accumulate(tl.register).split(k=8)
    plan = start.load("A", tl.shared, on="producer", ahead=1).tile(m=32).to("consumer")
    if refused is None:
        assert lower(plan.computation, plan.steps, load_profile("hopper")).kernels
    else:
        with pytest.raises(Refusal, match=refused) as caught:
            lower(plan.computation, plan.steps, load_profile("hopper"))
        assert caught.value.code == "register-budget"
