"""Copies that come to all blocks of a cluster: what the product of the language's description is with a cluster of two."""

from __future__ import annotations

from typing import Any

import pytest

import tilelang as tl
from tests.lowering.test_roles import check, linear, lowered
from tilelang import testing
from tilelang.errors import Refusal
from tilelang.instructions.instruction import BARRIER_BY_BYTES, ONE_LANE, instruction, moves
from tilelang.instructions.operand import operand
from tilelang.lowering import ir
from tilelang.lowering.printer import to_text
from tilelang.lowering.simulator import simulate
from tilelang.lowering.verify import InternalError, verify
from tilelang.schedules.schedule import Schedule

SWIZZLED = tl.layout().swizzle(128)
BY_EIGHT = tl.layout(lambda m, n: (n // 8, m, n % 8))
ALONE = tl.move().do("tma_load_2d")


def brought(loads: str = "tma_load_2d", **tile: int) -> tl.Move:
    return tl.move().tile(**tile).to(tl.block).do(loads)


def product(
    made: Any, columns: int = 256, blocks: int = 2, clusters: int | None = None, ahead: int = 2, rows: int = 128,
    a: tl.Move | None = None, b: tl.Move | None = None, whole: bool = False, order: Any = None,
) -> Schedule:  # fmt: skip
    """Blocks of 128 x columns, as many below each other as a cluster has: each brings its rows of A and its part of B to all."""
    roles = tl.warpgroups(1).as_role("producer", 40) + tl.warpgroups(2).as_role("consumer", 232)
    back = tl.move() if whole else tl.move().split(n=64)
    return (
        tl.schedule(made)
        .units(cluster=tl.blocks(blocks))
        .units(block=roles)
        .tile(m=rows * blocks, n=columns).to(tl.cluster, clusters, order=order)
        .accumulate(tl.register, steps=back.via(tl.shared, layout=SWIZZLED).do("tma_store_2d"))
        .split(k=64)
        .load("A", tl.shared, layout=SWIZZLED, ahead=ahead, on="producer", steps=a or brought(m=rows))
        .load("B", tl.shared, layout=SWIZZLED, ahead=ahead, on="producer",
              steps=b or brought("tma_load_2d_multicast", n=columns // blocks))
        .tile(m=rows).to(tl.block)
        .tile(m=64).to("consumer")
        .do(f"wgmma_m64n{columns}k16", m="m", n="n", k="k")
    )  # fmt: skip


def small(made: Any, **how: Any) -> Schedule:
    return product(made, 64, whole=True, **how)


# ---------------------------------------------------------------- what it is lowered to


def test_every_block_brings_its_part_to_all() -> None:
    (kernel,) = lowered(small(linear(512, 64, 192)), "hopper").kernels
    producer, consumer = kernel.roles
    assert (kernel.grid, kernel.cluster) == ((4, 1, 1), 2)
    assert to_text(kernel.body).splitlines()[:4] == [
        "if thread < 1:",
        "  phases A_B_full of 1 arrival",
        "  phases A_B_empty of 16 arrivals",
        "barrier of the cluster",
    ]
    assert to_text(producer.body).splitlines() == [
        "if thread < 1:",
        "  for k_2 in 0..3:",
        "    await A_B_empty[k_2] phase 1",
        "    arrive A_B_full[k_2] and await 24576 bytes",
        "    do tma_load_2d(D=A_shared[k_2, D_r_1, D_c_1 // 8 ^ D_r_1 % 8, D_c_1 % 8], S=A[block_x * 128 + S_r_1, k_2 * 64 + S_c_1])"
        " to A_B_full[k_2]",
        "    do tma_load_2d_multicast(D=B_shared[k_2, block_x % 2 * 32 + D_r_2, D_c_2 // 8 ^ D_r_2 % 8, D_c_2 % 8],"
        " S=B[block_x % 2 * 32 + S_r_2, k_2 * 64 + S_c_2]) to A_B_full[k_2] in the cluster",
        "barrier of the cluster",
    ]
    assert [line.strip() for line in to_text(consumer.body).splitlines() if "cluster" in line] == [
        "arrive A_B_empty[k - 1] in the cluster by 32 threads",
        "arrive A_B_empty[2] in the cluster by 32 threads",
        "barrier of the cluster",
    ]


def test_what_every_block_reads_whole_may_come_to_each_by_itself() -> None:
    alone = small(linear(512, 64, 192), a=ALONE, b=ALONE)
    (kernel,) = lowered(alone, "hopper").kernels
    assert kernel.cluster == 2 and "cluster" not in to_text(kernel.body)


def test_the_text_is_that_of_the_language_s_description() -> None:
    lines = product(linear(512, 512, 128), clusters=66, ahead=3, order=BY_EIGHT).text.splitlines()
    assert lines[1] == "  units cluster = 2 block"
    assert lines[3] == "  tile m=256 n=256 -> cluster 66 order (n / 8, m, n % 8)"
    assert lines[6:9] == [
        "  load A in shared swizzle 128 ahead 3 on producer { tile m=128 -> block; do tma_load_2d }",
        "  load B in shared swizzle 128 ahead 3 on producer { tile n=128 -> block; do tma_load_2d_multicast }",
        "  tile m=128 -> block",
    ]


# ---------------------------------------------------------------- what it computes


@pytest.mark.parametrize(
    ("size", "how", "order"),
    [
        ((256, 64, 192), {}, "early"),
        ((200, 72, 72), {"clusters": 1}, "late"),
        ((300, 40, 136), {"clusters": 1, "ahead": 0}, 1),
        ((300, 40, 72), {"a": ALONE, "b": ALONE}, 2),
        ((100, 64, 72), {"blocks": 4}, 3),
    ],
    ids=["whole", "persistent", "one slot", "nothing shared", "four blocks"],
)
def test_products_of_clusters(size: tuple[int, int, int], how: dict[str, Any], order: str | int) -> None:
    check(small(linear(*size), **how), "hopper", order, "random")


# ---------------------------------------------------------------- every part is needed


def changed(stmt: Any, function: Any) -> Any:
    """The statement tree with a function applied to every statement in it, inner ones first; None takes one away."""
    made = stmt.map_children(lambda c: changed(c, function) if isinstance(c, ir.Stmt) else c)
    found = function(made)
    return ir.seq() if found is None else found


def found_in(function: Any, only_roles: bool = False, order: str | int = "early") -> set[str]:
    """What the simulator finds in a kernel whose statements are changed."""
    plan = small(linear(256, 64, 192), ahead=1)
    program = lowered(plan, "hopper")
    (kernel,) = program.kernels
    body = (
        kernel.with_roles(changed(r.body, function) for r in kernel.roles).body if only_roles else changed(kernel.body, function)
    )
    wrong = program.replace(kernels=(kernel.replace(body=body),))
    arrays = testing.arrays(plan.computation, "random", 3)
    return set(simulate.run(wrong, arrays, order=order).counts)


def test_consumers_tell_all_blocks() -> None:
    def own_alone(s: ir.Stmt) -> ir.Stmt:
        if isinstance(s, ir.InitPhases) and s.arrivals == 16:
            return s.replace(arrivals=8)
        return s.replace(in_cluster=False) if isinstance(s, ir.Arrive) else s

    assert "data-race" in found_in(own_alone)


def test_a_block_waits_for_the_parts_of_all() -> None:
    def own_bytes(s: ir.Stmt) -> ir.Stmt:
        return s.replace(bytes=s.bytes - 4096) if isinstance(s, ir.Arrive) and s.bytes else s

    assert found_in(own_bytes) & {"deadlock", "data-race", "read-before-wait"}


def test_no_block_ends_before_the_others_are_done() -> None:
    assert "block-has-ended" in found_in(lambda s: None if isinstance(s, ir.ClusterBarrier) else s, only_roles=True)


def test_blocks_meet_before_they_touch_each_other() -> None:
    def apart(s: ir.Stmt) -> ir.Stmt:
        return ir.Barrier(("shared",)) if isinstance(s, ir.ClusterBarrier) else s

    plan = small(linear(256, 64, 64))
    (kernel,) = (program := lowered(plan, "hopper")).kernels
    *before, last = ir.flattened(kernel.body)
    wrong = program.replace(kernels=(kernel.replace(body=ir.seq(*(changed(s, apart) for s in before), last)),))
    assert "data-race" in simulate.run(wrong, testing.arrays(plan.computation, "random", 3)).counts


# ---------------------------------------------------------------- refusals


def refused(plan: Schedule, profile: str = "hopper") -> Refusal:
    with pytest.raises(Refusal) as found:
        plan.check(profile)
    return found.value


def test_what_is_shared_out_comes_to_all_and_by_an_instruction_that_can() -> None:
    made = linear(512, 64, 192)
    error = refused(small(made, b=brought(n=32)))
    assert error.code == "multicast" and "all blocks of the cluster read all of B" in error.message
    assert error.help == "do tma_load_2d_multicast"
    assert "the same number of whole parts" in refused(small(made, b=brought("tma_load_2d_multicast", n=64))).message
    assert "no tile says which part each" in refused(small(made, b=tl.move().do("tma_load_2d_multicast"))).message
    assert "only some blocks" in refused(small(made, a=brought("tma_load_2d_multicast", m=128))).message
    assert "only some blocks" in refused(small(made, a=brought(m=64))).message
    assert refused(small(made), "blackwell_rtx").code == "instruction-not-here"


@pytest.mark.parametrize("tensor", ["a", "b"])
def test_the_blocks_share_out_a_load_once(tensor: str) -> None:
    """The second tile cut each block's part again, so blocks waited for bytes that no block loaded."""
    first = tl.move().tile(n=32).to(tl.block).tile(n=16).to(tl.block).do("tma_load_2d_multicast")
    second = tl.move().tile(m=128).to(tl.block).tile(m=64).to(tl.block).do("tma_load_2d")
    made = small(linear(512, 64, 192), **({"a": second} if tensor == "a" else {"b": first}))
    error = refused(made)
    assert error.code == "blocks-twice" and f"`tile {'m=64' if tensor == 'a' else 'n=16'} -> block`" in error.message


def test_a_load_below_the_blocks_is_not_shared_out() -> None:
    plan = small(linear(512, 64, 192))
    *above, block, consumer, leaf = plan.steps
    first = next(k for k, s in enumerate(above) if getattr(s, "level", "") == "cluster" and hasattr(s, "sizes"))
    moved = (*above[: first + 1], block, *above[first + 1 :], consumer, leaf)
    assert refused(Schedule(plan.computation, moved)).code == "blocks-twice"
    assert refused(Schedule(plan.computation, (*above[:first], *moved[first + 1 :]))).code == "blocks-twice"


def test_boxes_in_a_walk_wait_for_the_phase_that_their_thread_awaits() -> None:
    """The thread that awaits the slot copies each box under a condition of its own: what it awaited holds there too."""
    made = tl.parse("""
        computation C {
          input A: bfloat16[m: 2, k: 64]
          input B: bfloat16[n: 8, k: 64]
          output C[m, n] = sum[k] A[m, k] * B[n, k]
        }
        schedule for C {
          units block = 1 warpgroup as producer + 2 warpgroup as consumer
          tile m=128 n=64 -> block
          load A in shared swizzle 128 ahead 2 on producer { split m=1 k=16 peel; do tma_load_2d }
          split k=64
          load B in shared swizzle 128 ahead 2 on producer
          tile n=64 -> consumer
          do wgmma_m64n64k16 (m=m, n=n, k=k)
        }""").schedule()
    program = testing.lowered(made, tl.target("cuda", profile="hopper").profile)
    (kernel,) = program.kernels
    assert not testing.check_simulated(program, testing.Expected(made.computation, testing.arrays(made.computation)))

    def hasty(stmt: ir.Stmt) -> ir.Stmt:
        return (
            ir.Seq(()) if isinstance(stmt, ir.Await) else stmt.map_children(lambda c: hasty(c) if isinstance(c, ir.Stmt) else c)
        )

    with pytest.raises(InternalError, match="is touched by several roles, and no phase is awaited before"):
        verify(ir.Program((kernel.replace(body=hasty(kernel.body)),), program.buffers), "build")


def test_a_tile_for_blocks_along_an_axis_that_the_load_has_not_is_refused() -> None:
    made = tl.parse(
        "computation C { input A: bfloat16[m: 64, k: 64] input B: bfloat16[n: 64, k: 64]"
        " output C[m, n] = sum[k] cast(A[m, k], float32) * cast(B[n, k], float32) }"
        " schedule for C { units cluster = 2 block; units block = 1 warpgroup as producer + 2 warpgroup as consumer;"
        " tile m=256 n=64 -> cluster; accumulate in register; split k=64;"
        " load A in shared swizzle 128 ahead 2 on producer { tile n=2 -> block; do tma_load_2d }; tile m=128 -> block }"
    ).schedule()
    with pytest.raises(Refusal, match="its dimensions are m, k"):
        testing.lowered(made, tl.load_profile("hopper"))


def test_a_box_store_that_nobody_can_wait_for_is_refused() -> None:
    """Bytes that arrive in a tensor are counted by no barrier: only a load on a role has one."""
    r, c = tl.axes(r=64, c=64)
    d = operand("D", tl.bfloat16, tl.global_, r, c, alignment_bytes=16)
    s = operand("S", tl.bfloat16, tl.shared, r, c, layouts=(tl.layout().swizzle(128),))
    instruction("store_by_bytes", means=moves(d[r, c], s[r, c]), operands=(d, s), level="block", issue=ONE_LANE, replace=True,
                completes=BARRIER_BY_BYTES, host="tensor map", limits={"r": 256, "c": 64}, outside=0.0)  # fmt: skip
    back = tl.move().via(tl.shared, layout=SWIZZLED).do("store_by_bytes")
    start = tl.schedule(linear(64, 64, 64)).units(block=tl.warps(1)).tile(m=64, n=64).to(tl.block)
    plan = start.accumulate(tl.register, steps=back).tile(m=2).to(tl.thread)
    with pytest.raises(Refusal, match="unless one role issues it and another role waits for it") as refused:
        lowered(plan, "hopper")
    assert refused.value.code == "not-lowered-yet"
