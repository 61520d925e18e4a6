"""Blocks with roles by construction: boxes copied by one team, products by others of operands in shared memory."""

import pytest

import tilelang as tl
from benchmarks.gpu_cases import example
from tests.gate.machine_code import compile_for_architecture
from tilelang.autoschedule.common.construct import Candidate, construct
from tilelang.autoschedule.common.loop_summary import loops_of
from tilelang.autoschedule.common.threads import threads_of
from tilelang.autoschedule.gpu.device import GpuDevice
from tilelang.autoschedule.gpu.model import registers
from tilelang.autoschedule.gpu.warp_specialized import block_roles
from tilelang.autoschedule.models import estimate_schedule
from tilelang.computations.computation import Computation, as_computation
from tilelang.instructions.instruction import use
from tilelang.profiles.profile import Profile
from tilelang.testing import arrays, check_schedule, lowered

HOPPER, H200 = tl.load_profile("hopper"), tl.load_profile("h200")


def transposed(m: int, n: int, k: int, type: tl.DType = tl.float16) -> Computation:
    return as_computation(example("15_matrix_units").transposed(m, n, k, type))


def with_roles(computation: Computation, profile: Profile = HOPPER) -> list[Candidate]:
    return [c for c in construct(computation, profile) if "consumer" in str(c.schedule)]


@pytest.mark.parametrize("type", [tl.float16, tl.bfloat16], ids=str)
def test_a_large_product_of_16_bits_has_roles_first(type: tl.DType) -> None:
    candidates = construct(transposed(8192, 8192, 8192, type), H200)
    texts = [str(c.schedule) for c in candidates]
    assert "units block = 1 warpgroup as producer + 2 warpgroup as consumer" in texts[0] and "-> block 132 order" in texts[0]
    assert "do tma_load_2d" in texts[0] and "do tma_store_2d" in texts[0] and "do wgmma_m64n256k16" in texts[0]
    for block in ("m=128 n=256", "m=256 n=128", "m=128 n=128"):
        assert any("consumer" in t and f"tile {block} -> block" in t for t in texts), block


@pytest.mark.slow
@pytest.mark.parametrize("shape", [(8192, 8192, 8192), (4096, 4096, 4096), (2048, 1000, 3000)], ids=str)
def test_first_candidates_keep_sums_in_registers(shape: tuple[int, int, int]) -> None:
    for candidate in with_roles(transposed(*shape), H200)[:2]:
        source = tl.compile(candidate.schedule, target=tl.target("cuda", profile="h200")).source
        code = compile_for_architecture("sm_90a")(source)
        assert not code.uses.spills and code.uses.stack_bytes == 0
        assert "serialized" not in code.compiled.log


def test_what_follows_the_product_is_part_of_its_schedule() -> None:
    layer = as_computation(example("01_matmul").linear(4096, 4096, 4096))
    first = construct(layer, H200)[0]
    assert "consumer" in str(first.schedule) and "load bias" not in str(first.schedule)
    lowered(first.schedule, H200)


@pytest.mark.slow
@pytest.mark.parametrize("shape", [(200, 136, 96), (64, 72, 40)], ids=str)
def test_they_are_right(shape: tuple[int, int, int]) -> None:
    computation = transposed(*shape)
    candidates = with_roles(computation)
    for candidate in (candidates[0], candidates[-1]):
        faults = check_schedule(candidate.schedule, arrays(computation), profile=HOPPER)
        assert not faults, f"{candidate.schedule}\n" + "\n".join(faults)


@pytest.mark.slow
def test_blocks_share_a_long_reduction() -> None:
    computation = transposed(64, 128, 4096)
    split = next(c for c in with_roles(computation) if "k=" in str(c.schedule).split("-> block")[0])
    faults = check_schedule(split.schedule, arrays(computation), profile=HOPPER)
    assert not faults, f"{split.schedule}\n" + "\n".join(faults)


@pytest.mark.slow
def test_tensors_that_boxes_do_not_reach_are_left_to_others() -> None:
    assert not with_roles(transposed(512, 512, 500))  # rows of 1000 bytes
    assert not with_roles(as_computation(example("01_matmul").matmul(512, 512, 512, tl.float16)))  # k not along the rows of B
    assert not with_roles(
        as_computation(example("15_matrix_units").transposed(512, 512, 512, tl.float16)), tl.load_profile("ampere")
    )


def test_registers_are_shared_out_where_an_even_share_is_too_small() -> None:
    device, made = GpuDevice(HOPPER), use("wgmma_m64n256k16")
    assert [t.registers for t in block_roles(device, made, 2, 128) or ()] == [None, None]
    assert [t.registers for t in block_roles(device, made, 2, 192) or ()] == [40, 232]
    assert block_roles(device, made, 2, 256) is None


def test_the_model_counts_the_teams_of_a_block() -> None:
    hand = example("01_matmul").gemm_hopper(example("15_matrix_units").transposed(8192, 8192, 8192, tl.float16))
    (loops,) = loops_of(hand, H200)
    threads = threads_of(loops, H200)
    assert (threads.count, threads.units, threads.width) == (384, 2, 128)
    assert 128 < registers(threads) < 168, "sums alone: the products read their operands from shared memory"
    found = estimate_schedule(hand, H200)
    assert found.seconds < 1.3 * found.bound, "its block asks the second-level cache for a little more than that gives"
