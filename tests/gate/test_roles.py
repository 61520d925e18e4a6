"""The product of the language's description for sm_90a: its roles, its copies of boxes and its matrix instructions, in machine code."""

from __future__ import annotations

import re

import pytest

import tilelang as tl
from tests.gate.machine_code import compile_for_architecture, multiply_adds
from tests.lowering.test_multicast import BY_EIGHT, product
from tests.lowering.test_roles import by_hand, linear, matmul
from tests.test_examples import load
from tilelang.lowering.compilers.listing import Instruction, Listing


def touching_sums(listing: Listing) -> list[Instruction]:
    """What touches the registers of the last product's 64 x 256 sums before all products are awaited."""
    instructions = listing.instructions
    last = max(n for n, i in enumerate(instructions) if i.name.startswith("HGMMA"))
    waits = (n for n, i in enumerate(instructions) if i.name.startswith("WARPGROUP.DEPBAR") and "0x0" in i.operands)
    waited = next(n for n in waits if n > last)
    first = int(instructions[last].operands.partition(",")[0].removeprefix("R"))
    sums = {f"R{r}" for r in range(first, first + 64 * 256 // 128)}
    return [i for i in instructions[last + 1 : waited] if sums & set(re.findall(r"\bR\d+", i.operands))]


@pytest.mark.parametrize(("type", "ending"), [(tl.bfloat16, ".BF16"), (tl.float16, "")], ids=str)
def test_the_hopper_product_of_the_examples(type: tl.DType, ending: str) -> None:
    """128 x 256 tiles: per round four instructions of 64 x 256 x 16, two boxes; at the end four boxes of 64 columns."""
    example = load("01_matmul")
    plan = example.gemm_hopper(example.linear(8192, 8192, 8192, type))
    kernel = tl.compile(plan, target=tl.target("cuda", profile="hopper"))
    code = compile_for_architecture("sm_90a")(kernel.source)
    assert not code.uses.spills and code.uses.stack_bytes == 0
    assert "serialized" not in code.compiled.log, "what the assembler says where products wait for each other"
    assert code.uses.registers == 168  # 65536 for 384 threads, until the roles share them out
    loop = code.listing.main_loop("HGMMA")
    rounds = loop.count("WARPGROUP.DEPBAR")  # each leaves one group of products in flight
    assert loop.count("HGMMA") == loop.count(f"HGMMA.64x256x16.F32{ending}") == 4 * rounds > 0
    assert loop.count("SYNCS.ARRIVE") == rounds, "each gives one slot back"
    assert multiply_adds(loop) == 0 and loop.count("STL", "LDL") == 0
    assert len(loop.instructions) <= 14 * loop.count("HGMMA"), "two additions a descriptor, and what each round of four asks for"
    assert loop.count("R2UR", "SHFL") == 0, "descriptors are made once for a warp, and in no thread's registers"
    waits = [i.operands for i in code.listing.instructions if i.name == "WARPGROUP.DEPBAR.LE"]
    assert sorted({w[-1] for w in waits}) == ["0", "1"], "a group is in flight in the loop, none behind it"
    producer = code.listing.main_loop("UTMALDG")
    assert code.listing.count("UTMALDG") == producer.count("UTMALDG.2D") == 2 * producer.count("SYNCS.ARRIVE") > 0, (
        "two a barrier"
    )
    assert len(producer.instructions) <= 13 * producer.count("UTMALDG.2D")
    assert code.listing.count("ELECT") == 5 and producer.count("ELECT", "BRA.U.ANY") == 0, "one thread copies, known to be alone"
    assert touching_sums(code.listing) == []
    assert code.listing.count("UTMASTG.2D") == 4
    assert code.listing.count("FENCE.VIEW.ASYNC") <= 4 + 1, "stores are published once for each box, barriers once for all"
    assert code.listing.count("USETMAXREG") == 2
    assert code.listing.count("UTMACCTL.PF") == 3, "the maps of A, B and Y are brought near"
    assert code.listing.count("STG") == 0, "all results leave by boxes"


@pytest.mark.parametrize(
    ("m", "n", "ahead"),
    [(256, 128, 3), (256, 192, 2), (128, 192, 3), (128, 128, 5)],
    ids=["256x128", "256x192", "128x192", "128x128"],
)
def test_other_tiles_of_the_hopper_product(m: int, n: int, ahead: int) -> None:
    """Each consumer has half of the tile's rows, in instructions of 64; no accumulators are spilled."""
    example = load("01_matmul")
    kernel = tl.compile(
        example.gemm_hopper(example.linear(8192, 8192, 8192), m, n, ahead), target=tl.target("cuda", profile="hopper")
    )
    code = compile_for_architecture("sm_90a")(kernel.source)
    assert not code.uses.spills and code.uses.stack_bytes == 0
    loop = code.listing.main_loop("HGMMA")
    assert loop.count("HGMMA") == loop.count(f"HGMMA.64x{n}x16.F32.BF16") and loop.count("HGMMA") % (m // 128 * 4) == 0
    assert len(loop.instructions) <= 14 * loop.count("HGMMA") and loop.count("R2UR", "SHFL") == 0


def test_a_producer_that_copies_by_hand() -> None:
    kernel = tl.compile(by_hand(matmul(64, 64, 64), blocks=3), target=tl.target("cuda", profile="hopper"))
    code = compile_for_architecture("sm_90a")(kernel.source)
    assert not code.uses.spills and code.listing.count("SYNCS.PHASECHK") > 0


def test_the_hopper_product_with_clusters_of_two() -> None:
    """Both blocks bring half of B to each other: one box of 128 x 64 for the own rows of A, one of 128 x 64 that comes to both."""
    plan = product(linear(8192, 8192, 8192), clusters=66, ahead=3, order=BY_EIGHT)
    kernel = tl.compile(plan, target=tl.target("cuda", profile="hopper"))
    assert "__cluster_dims__(2, 1, 1)" in kernel.source
    code = compile_for_architecture("sm_90a")(kernel.source)
    assert not code.uses.spills and code.uses.stack_bytes == 0
    loop = code.listing.main_loop("HGMMA")
    assert loop.count("HGMMA") == loop.count("HGMMA.64x256x16.F32.BF16") >= 4 and loop.count("HGMMA") % 4 == 0
    assert multiply_adds(loop) == 0 and loop.count("STL", "LDL") == 0
    boxes = code.listing.count("UTMALDG.2D")
    assert code.listing.count("UTMALDG.2D.MULTICAST") == boxes / 2 > 0
    assert code.listing.count("UCGABAR_ARV") >= 2
