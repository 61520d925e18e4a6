"""Every shipped definition compiles for the lowest architecture that has its instruction, and for none below."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from tests.gate.machine_code import compile_for_architecture
from tests.instructions.kernels import AMD, NVIDIA, SHIPPED, kernel
from tilelang.errors import DeviceError
from tilelang.instructions.instruction import Instruction

CUDA = [i for i in SHIPPED if "cuda" in i.dialects and i.needs]
HIP = [i for i in SHIPPED if "hip" in i.dialects and i.needs and i.needs != ("shuffle",)]
AMD_SHUFFLES = [i for i in SHIPPED if "hip" in i.dialects and i.name.startswith("shuffle_xor")]
AMD_GATHERS = [i for i in SHIPPED if "hip" in i.dialects and i.name.startswith("shuffle_from")]
WIDTHS = {
    ("global", "load"): "LDG.E.128",
    ("global", "store"): "STG.E.128",
    ("shared", "load"): "LDS.128",
    ("shared", "store"): "STS.128",
}
REFUSALS = "requires .target|not supported on .target|not supported on this GPU|needs target feature|requires sm_"


FORGOTTEN = ("sm_61", "sm_70")  # by today's disassembler


def check(made: Instruction, dialect: str, lowest: str, mnemonic: str) -> None:
    for dtype in made.operands[0].dtypes:
        code = compile_for_architecture(lowest)(kernel(made, dialect, dtype))
        assert not code.uses.spills
        if dtype == made.operands[0].dtype and lowest not in FORGOTTEN:
            assert code.listing.count(mnemonic) == 1


@pytest.mark.parametrize(
    ("need", "dialect", "families"),
    [
        (need, dialect, families)
        for dialect, families in (("cuda", NVIDIA), ("hip", AMD))
        for need in families
        if families[need][1]
    ],
)
def test_an_architecture_below_refuses(need: str, dialect: str, families: dict[str, tuple[str, str | None, str]]) -> None:
    made = next(i for i in SHIPPED if i.needs[-1:] == (need,) and dialect in i.dialects)
    below = families[need][1]
    assert below is not None
    with pytest.raises(DeviceError, match=REFUSALS) as caught:
        compile_for_architecture(below)(kernel(made, dialect))
    assert caught.value.code == "compile-failed"


@pytest.mark.parametrize("made", CUDA, ids=lambda i: i.name)
def test_on_nvidia(made: Instruction) -> None:
    lowest, _, mnemonic = NVIDIA[made.needs[0]]
    check(made, "cuda", lowest, mnemonic)


@pytest.mark.parametrize("made", HIP, ids=lambda i: i.name)
def test_on_amd(made: Instruction) -> None:
    lowest, _, mnemonic = AMD[made.needs[0]]
    check(made, "hip", lowest, mnemonic)


def other_lane(instruction: str) -> Callable[[int], int]:
    """From which lane an instruction between lanes brings what it gives to one, as its modifiers say."""
    if (quad := re.search(r"quad_perm:\[(\d),(\d),(\d),(\d)\]", instruction)) is not None:
        return lambda lane: lane // 4 * 4 + int(quad[1 + lane % 4])
    if (by := re.search(r"row_ror:(\d+)", instruction)) is not None:
        return lambda lane: lane // 16 * 16 + (lane - int(by[1])) % 16
    if "row_half_mirror" in instruction:
        return lambda lane: lane // 8 * 8 + 7 - lane % 8
    if (mask := re.search(r"row_xmask:(\d+)", instruction)) is not None:
        return lambda lane: lane ^ int(mask[1])
    if (swapped := re.search(r"swizzle\(SWAP,(\d+)\)", instruction)) is not None:
        return lambda lane: lane ^ int(swapped[1])
    assert instruction.startswith("v_permlanex16_b32") and instruction.endswith("0xfedcba98 op_sel:[0,1]")
    return lambda lane: lane ^ 16


@pytest.mark.parametrize(
    ("made", "architecture"),
    [(i, a) for i in AMD_SHUFFLES for a in ("gfx90a", "gfx942", "gfx1100") if i.lanes == 32 or a != "gfx1100"],
    ids=lambda x: getattr(x, "name", x),
)
def test_shuffles_on_amd(made: Instruction, architecture: str) -> None:
    """Among 16 lanes without the crossbar of shared memory, and from the lane that is meant."""
    distance, dtype = int(made.name.split("_")[2]), made.operands[0].dtype
    code = compile_for_architecture(architecture)(kernel(made, "hip"))
    if distance == 32:
        assert code.listing.count("ds_bpermute_b32") == dtype.bytes // 4
        return
    moves = [f"{i.name} {i.operands}" for i in code.listing.instructions if re.search("dpp|permlane|ds_swizzle", i.name)]
    parts = 2 if distance == 4 and architecture != "gfx1100" else 1
    assert len(moves) == parts * dtype.bytes // 4 and code.listing.count("ds_bpermute") == 0
    assert (code.listing.count("ds_swizzle") > 0) == (distance == 16 and architecture != "gfx1100")
    words = moves[:: dtype.bytes // 4] if parts == 2 else moves[:1]
    for lane in range(32):
        source = lane
        for instruction in reversed(words):
            source = other_lane(instruction)(source)
        assert source == lane ^ distance


@pytest.mark.parametrize(
    ("made", "architecture"),
    [(i, a) for i in AMD_GATHERS for a in ("gfx90a", "gfx942", "gfx1100") if i.lanes == 32 or a != "gfx1100"],
    ids=lambda x: getattr(x, "name", x),
)
def test_lanes_that_are_named_on_amd(made: Instruction, architecture: str) -> None:
    for dtype in made.operands[0].dtypes:
        code = compile_for_architecture(architecture)(kernel(made, "hip", dtype))
        assert not code.uses.spills and code.listing.count("ds_bpermute_b32") == -(-dtype.bytes // 4)


@pytest.mark.parametrize("made", [i for i in SHIPPED if "hip" in i.dialects and not i.needs], ids=lambda i: i.name)
def test_moves_of_16_bytes(made: Instruction) -> None:
    memory, word = made.operands[1 if made.name.startswith("load") else 0].memory, made.name.split("_")[0]
    nvidia = compile_for_architecture("sm_80")(kernel(made, "cuda"))
    assert nvidia.listing.count(WIDTHS[memory, word]) >= 1
    amd = compile_for_architecture("gfx90a")(kernel(made, "hip"))
    names = ("global_load_dwordx4", "global_store_dwordx4") if memory == "global" else ("ds_read_b128", "ds_write_b128")
    assert amd.listing.count(names[word == "store"]) >= 1
