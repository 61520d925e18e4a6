"""Every example's schedules through the compilers of both targets in C++: they compile, and those for threads keep to registers."""

from __future__ import annotations

from typing import Any

import pytest

import tilelang as tl
from tests.gate.machine_code import MachineCode, compile_for_architecture, multiply_adds
from tests.test_examples import NAMES, SIZES, for_threads, load, schedules_for
from tilelang.errors import Refusal
from tilelang.profiles.files import load_profile

PROFILES = {"cuda": ("volta", "ampere", "ada", "hopper", "blackwell", "blackwell_rtx"), "hip": ("cdna2", "cdna3", "rdna3")}
DIALECT_OF = {profile: dialect for dialect, profiles in PROFILES.items() for profile in profiles}
CACHES = ("`l1`", "`l2`")  # no memories of these profiles: prefetches of the schedules for a CPU are refused


def cases() -> list[Any]:
    """Every example at its odd sizes for every device, at the others for one of each maker."""
    return [
        pytest.param(name, sizes, profile, id=f"{name}-{'x'.join(map(str, sizes))}-{profile}")
        for name in NAMES
        for sizes in SIZES[name]
        for profile in DIALECT_OF
        if sizes == SIZES[name][1] or profile in ("ampere", "cdna2")
    ]


def compiled(schedule: tl.Schedule, profile: str) -> MachineCode:
    """A schedule's machine code; skips where the compiler is not installed."""
    kernel = tl.compile(schedule, target=tl.target(DIALECT_OF[profile], profile=profile))
    return compile_for_architecture(str(kernel.target.profile.architecture))(kernel.source)


@pytest.mark.parametrize(("name", "sizes", "profile"), cases())
def test_schedules_for_threads(name: str, sizes: tuple[int, ...], profile: str) -> None:
    for schedule in filter(for_threads, schedules_for(name, sizes, load_profile(profile)).values()):
        for used in compiled(schedule, profile).compiled.kernels:
            assert used.stack_bytes == 0 and not used.spills


@pytest.mark.parametrize("name", NAMES)
def test_schedules_for_threads_on_sm_90(name: str) -> None:
    """What is for sm_80 runs on any later device; sm_90 is none of a profile of its own, which has sm_90a."""
    target = tl.target("cuda", profile="ampere")
    for schedule in filter(for_threads, schedules_for(name, SIZES[name][1], target.profile).values()):
        for used in compile_for_architecture("sm_90")(tl.compile(schedule, target=target).source).compiled.kernels:
            assert used.stack_bytes == 0 and not used.spills


@pytest.mark.parametrize("profile", ["ampere", "cdna2", "rdna3"])
@pytest.mark.parametrize("name", NAMES)
def test_schedules_for_threads_at_their_own_sizes(name: str, profile: str) -> None:
    """With the tiles that they are run with."""
    for schedule in filter(for_threads, schedules_for(name, (), load_profile(profile), small=False).values()):
        for used in compiled(schedule, profile).compiled.kernels:
            assert used.stack_bytes == 0 and not used.spills


@pytest.mark.parametrize("profile", ["ampere", "cdna2"])
@pytest.mark.parametrize("name", NAMES)
def test_schedules_for_cores(name: str, profile: str) -> None:
    """One thread a block: no schedule for a GPU, but the text holds."""
    for schedule in schedules_for(name, SIZES[name][1], load_profile(profile)).values():
        if for_threads(schedule):
            continue
        try:
            assert compiled(schedule, profile).compiled.kernels
        except Refusal as refusal:
            assert refusal.code == "unknown-memory" and any(cache in refusal.message for cache in CACHES)


def product(profile: str) -> tl.Schedule:
    """The product of 512 x 512 x 256 by tiles of 128 x 128 x 8."""
    example = load("01_matmul")
    made: tl.Schedule = example.gemm_simt(example.matmul(512, 512, 256), columns=load_profile(profile).warp_size)
    return made


@pytest.mark.parametrize("profile", ["ampere", "hopper"])
def test_the_main_loop_of_a_product_on_nvidia(profile: str) -> None:
    """For each round along k: 8 x 8 multiply-adds of a thread, and its 8 + 8 elements of shared memory in vectors of 4."""
    code = compiled(product(profile), profile)
    loop = code.listing.main_loop("FFMA")
    rounds = loop.count("FFMA") // 64
    assert 8 % rounds == 0 and loop.count("FFMA") == multiply_adds(loop) == 64 * rounds
    assert loop.count("LDS.128") == 4 * rounds and code.listing.count("STG") == code.listing.count("STG.E.128") == 8 * 8 // 4
    assert code.listing.count("LDG.") == code.listing.count("LDG.E.128") > 0  # A, which is transposed on its way
    assert code.listing.count("LDGSTS") == code.listing.count("LDGSTS.E.BYPASS.128") > 0  # B
    assert not code.uses.spills and code.uses.registers <= 128  # two blocks of 256 threads on a multiprocessor


@pytest.mark.parametrize("profile", ["cdna2", "cdna3", "rdna3"])
def test_the_main_loop_of_a_product_on_amd(profile: str) -> None:
    """The same; two multiply-adds are one packed instruction."""
    code = compiled(product(profile), profile)
    loop = code.listing.main_loop("ds_read_b128", "ds_load_b128")
    products = loop.count("v_fma", "v_fmac", "v_dual_fma") + 2 * loop.count("v_pk_fma")
    rounds = loop.count("ds_read_b128", "ds_load_b128") // 4
    assert rounds == 8 and loop.count("ds_read", "ds_load") == 4 * rounds
    assert products == 64 * rounds
    assert loop.count("global_load_dwordx4", "global_load_b128") == loop.count("global_load") == 2
    names = [i.name for i in code.listing.instructions]
    ahead = code.listing.instructions[
        max(n for n, name in enumerate(names) if name.startswith("global_load")) : names.index("s_barrier")
    ]
    assert ahead and not any("vmcnt" in i.operands for i in ahead)  # what is loaded ahead is not awaited by the barrier
    assert code.listing.count("buffer_gl0_inv") == 0
    assert code.listing.count("global_store_dwordx4", "global_store_b128") == code.listing.count("global_store") == 8 * 8 // 4
    assert not code.uses.spills


@pytest.mark.parametrize("profile", ["ampere", "ada", "blackwell_rtx"])
def test_the_main_loop_of_a_product_by_matrix_instructions(profile: str) -> None:
    """For each round of 32 along k: 2 x 4 x 8 products of a warp, whose operands come in 2 x (4 + 4) moves and stay whole registers."""
    example = load("01_matmul")
    code = compiled(example.gemm_ampere(example.matmul(512, 512, 512, tl.float16)), profile)
    loop = code.listing.main_loop("HMMA")
    assert loop.count("HMMA.16816.F32") == loop.count("HMMA") == 2 * 4 * 8 and multiply_adds(loop) == 0
    assert loop.count("LDSM.16.M88.4") == loop.count("LDSM.16.MT88.4") == 2 * 4
    assert loop.count("LDGSTS.E.BYPASS.128") == 8 and loop.count("PRMT") == 0
    assert code.uses.stack_bytes == 0 and not code.uses.spills


@pytest.mark.parametrize(
    ("profile", "wide"), [("ampere", "LDG.E.128 STG.E.128"), ("cdna2", "global_load_dwordx4 global_store_dwordx4")]
)
@pytest.mark.parametrize("type", [tl.float32, tl.float16, tl.bfloat16, tl.float8_e4m3, tl.float8_e5m2], ids=str)
def test_work_by_elements_moves_16_bytes_at_a_time(type: tl.DType, profile: str, wide: str) -> None:
    """Also where what is loaded goes straight into an operator, and where it is taken twice."""
    lanes = 16 // type.bytes
    i = tl.axes(i=1 << 16)
    x = tl.cast(tl.input("X", type, i)[i], tl.float32)
    for value in (x * 2.0, tl.gelu(x), tl.maximum(x, 0.0) + x):
        made = tl.schedule(tl.define("Y", tl.cast(value, type), i)).tile(i=256 * lanes).to(tl.block).tile(i=lanes).to(tl.thread)
        listing = compiled(made.vectorize(i=lanes), profile).listing
        load, store = wide.split()
        assert listing.count(load) == listing.count("LDG", "global_load") == 1
        assert listing.count(store) == listing.count("STG", "global_store") == 1


@pytest.mark.parametrize("type", [tl.float8_e4m3, tl.float8_e5m2], ids=str)
def test_floats_of_8_bits_are_converted_by_the_device_where_it_can(type: tl.DType) -> None:
    i = tl.axes(i=1 << 16)
    made = tl.schedule(tl.define("Y", tl.input("X", type, i)[i] * 2.0, i)).tile(i=4096).to(tl.block).tile(i=16).to(tl.thread)
    format = type.name.removeprefix("float8_").upper()
    for profile, unpacked, packed in (("ada", 8, 8), ("hopper", 8, 8), ("ampere", 0, 0)):
        listing = compiled(made.vectorize(i=16), profile).listing
        converted = [i.name for i in listing.instructions if format in i.name]
        assert sum("UNPACK" in name for name in converted) == unpacked and len(converted) == unpacked + packed
