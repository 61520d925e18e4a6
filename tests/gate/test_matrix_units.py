"""Products and a convolution by matrix instructions: what their main loops are made of, and that nothing is spilled."""

from __future__ import annotations

from typing import Any

import pytest

import tilelang as tl
from tests.gate.machine_code import MachineCode, compile_for_architecture, multiply_adds
from tests.test_examples import load
from tilelang.lowering.compilers.listing import Listing
from tilelang.testing import emulation

EXAMPLE = load("15_matrix_units")
WITH_MMA = ("ampere", "ada", "hopper", "blackwell", "blackwell_rtx")


def compiled(schedule: tl.Schedule, dialect: str, profile: str) -> MachineCode:
    kernel = tl.compile(schedule, target=tl.target(dialect, profile=profile))
    code = compile_for_architecture(str(kernel.target.profile.architecture))(kernel.source)
    assert not code.uses.spills and code.uses.stack_bytes == 0
    return code


def rounds_of(code: MachineCode) -> tuple[Listing, int]:
    """The main loop, and how many rounds of it the compiler has written out: each closes one group of copies."""
    loop = code.listing.main_loop("HMMA")
    rounds = loop.count("LDGDEPBAR")
    assert rounds > 0
    return loop, rounds


@pytest.mark.parametrize("type", [tl.float16, tl.bfloat16], ids=str)
@pytest.mark.parametrize("profile", WITH_MMA)
def test_gemm_ampere(type: Any, profile: str) -> None:
    """A round of 32: two steps of 4 x 8 products, from four loads of A and four of B; a thread copies four pieces of each."""
    code = compiled(EXAMPLE.gemm_ampere(EXAMPLE.matmul(4096, 4096, 4096, type)), "cuda", profile)
    loop, rounds = rounds_of(code)
    ending = ".BF16" if type == tl.bfloat16 else ""
    assert loop.count("HMMA") == loop.count(f"HMMA.16816.F32{ending}") == 2 * 4 * 8 * rounds
    assert loop.count("LDSM.16.M88.4") == loop.count("LDSM.16.MT88.4") == 2 * 4 * rounds == loop.count("LDSM") / 2
    assert loop.count("LDGSTS.E.BYPASS.128") == loop.count("LDGSTS") == 8 * rounds
    assert multiply_adds(loop) == 0 and loop.count("PRMT", "LDL", "STL", "LDG.") == 0


@pytest.mark.parametrize(
    ("name", "type", "profile"),
    [("transposed", tl.float16, p) for p in WITH_MMA]
    + [("transposed", tl.bfloat16, "ampere"), ("linear", tl.bfloat16, "ampere"), ("linear", tl.float16, "ada")],
    ids=str,
)
def test_gemm_ampere_transposed(name: str, type: Any, profile: str) -> None:
    """As many of everything; no load turns what it brings. The layer's epilogue stands behind the loop."""
    make = EXAMPLE.transposed if name == "transposed" else load("01_matmul").linear
    code = compiled(EXAMPLE.gemm_ampere_transposed(make(4096, 4096, 4096, type)), "cuda", profile)
    loop, rounds = rounds_of(code)
    ending = ".BF16" if type == tl.bfloat16 else ""
    assert loop.count("HMMA") == loop.count(f"HMMA.16816.F32{ending}") == 2 * 4 * 8 * rounds
    assert loop.count("LDSM") == loop.count("LDSM.16.M88.4") == (2 * 4 + 2 * 4) * rounds
    assert loop.count("LDGSTS.E.BYPASS.128") == loop.count("LDGSTS") == 8 * rounds
    assert multiply_adds(loop) == 0 and loop.count("PRMT", "LDL", "STL", "LDG.") == 0


def test_the_results_of_gemm_ampere_go_through_the_bytes_of_its_ring() -> None:
    made = tl.compile(EXAMPLE.gemm_ampere(EXAMPLE.matmul(4096, 4096, 4096)), target=tl.target("cuda", profile="ampere"))
    assert made.resources[0].shared_bytes == 4 * 2 * 128 * 32 * 2  # four slots of A and B


@pytest.mark.parametrize("profile", WITH_MMA)
def test_conv_ampere(profile: str) -> None:
    """A round of 32 channels of one tap: two steps of 4 x 4 products; a thread copies four pieces of pixels and two of filters."""
    loop, rounds = rounds_of(compiled(EXAMPLE.conv_ampere(EXAMPLE.convolution(8, 56, 64, 64)), "cuda", profile))
    assert loop.count("HMMA.16816.F32") == loop.count("HMMA") == 2 * 4 * 4 * rounds
    assert loop.count("LDSM.16.M88.4") == 2 * 4 * rounds and loop.count("LDSM.16.MT88.4") == 2 * 2 * rounds
    assert loop.count("LDGSTS.E.BYPASS.128") == loop.count("LDGSTS") == (4 + 2) * rounds
    assert multiply_adds(loop) == 0 and loop.count("LDG.", "STS") == 0


@pytest.mark.parametrize(("product", "count"), [("mfma_32x32x8", 4 * 2 * 2), ("mfma_16x16x16", 2 * 4 * 4)])
@pytest.mark.parametrize("type", [tl.float16, tl.bfloat16], ids=str)
@pytest.mark.parametrize("profile", ["cdna2", "cdna3"])
def test_gemm_cdna(product: str, count: int, type: Any, profile: str) -> None:
    """A round of 32, written out: every access to memory is a vector, rows of B are turned in registers."""
    loop = compiled(EXAMPLE.gemm_cdna(EXAMPLE.matmul(4096, 4096, 4096, type), product), "hip", profile).listing.main_loop(
        "v_mfma"
    )
    assert loop.count(f"v_mfma_f32_{product.removeprefix('mfma_')}") == loop.count("v_mfma") == count
    assert multiply_adds(loop) == 0 and loop.count("scratch", "buffer_load", "buffer_store", "flat_") == 0
    assert (loop.count("global_load_dwordx4"), loop.count("global_load_dwordx2"), loop.count("global_load")) == (2, 4, 6)
    assert (
        loop.count("v_perm_b32") == 8
        and loop.count("ds_read_u", "ds_read_b32", "ds_write_b16", "ds_write_b32", "ds_write_b8") == 0
    )


@pytest.mark.parametrize("type", [tl.float16, tl.bfloat16], ids=str)
@pytest.mark.parametrize(("profile", "copy"), [("cdna2", "global_load_dword"), ("cdna3", "global_load_lds_dword")])
def test_gemm_direct(type: Any, profile: str, copy: str) -> None:
    """Eight copies of A and eight of B a round, none of which anybody waits for before the next."""
    code = compiled(EXAMPLE.gemm_direct(EXAMPLE.transposed(4096, 4096, 4096, type)), "hip", profile)
    loop = code.listing.main_loop("v_mfma")
    assert loop.count("v_mfma_f32_32x32x8") == loop.count("v_mfma") == 4 * 2 * 2
    assert loop.count(copy) == loop.count("global_load", "buffer_load", "flat_load") == 16
    assert multiply_adds(loop) == 0 and loop.count("ds_write", "scratch") == 0
    waits = [i.operands for i in loop.instructions if i.name == "s_waitcnt"]
    assert sum("vmcnt" in w for w in waits) == 1 and "vmcnt(0)" in " ".join(waits)
    assert code.uses.shared_bytes == 32768


@pytest.mark.parametrize("name", EXAMPLE.units())
def test_no_bank_conflicts(name: str) -> None:
    dialect, profile, schedule = EXAMPLE.units()[name]
    report = tl.simulate(tl.compile(schedule, target=tl.target(dialect, profile=profile)))
    assert report.findings == () and sum(count.total for count in report.conflicts) == 0
    assert sum(count.requests for count in report.conflicts) > 0


SIZES: dict[str, list[tuple[int, ...]]] = {
    "gemm_ampere": [(128, 128, 64), (72, 40, 40)],
    "gemm_ampere_transposed": [(128, 128, 64), (72, 40, 40)],
    "gemm_cdna": [(128, 128, 32), (70, 33, 20)],
    "gemm_mi300": [(128, 128, 64), (70, 33, 20)],
    "gemm_direct": [(128, 128, 96), (70, 33, 42)],
    "conv_ampere": [(1, 10, 32, 64), (2, 7, 40, 24, 3, 2, 1)],
}


@pytest.mark.skipif(emulation.absent() is not None, reason=str(emulation.absent()))
@pytest.mark.parametrize(("name", "sizes"), [(name, sizes) for name in SIZES for sizes in SIZES[name]], ids=str)
def test_simulator_and_text_are_right(name: str, sizes: tuple[int, ...]) -> None:
    dialect, profile, _ = EXAMPLE.units()[name]
    rows = ("gemm_ampere_transposed", "gemm_direct")
    makes = {"conv_ampere": EXAMPLE.convolution} | dict.fromkeys(rows, EXAMPLE.transposed)
    c = makes.get(name, EXAMPLE.matmul)(*sizes)
    schedule = EXAMPLE.gemm_cdna(c, "mfma_16x16x16") if name == "gemm_mi300" else getattr(EXAMPLE, name)(c)
    kernel = tl.compile(schedule, target=tl.target(dialect, profile=profile))
    assert kernel.computation.check(lambda arrays: tl.simulate(kernel, order="late", **arrays).outputs)
    report = emulation.check(kernel)
    assert report, report
