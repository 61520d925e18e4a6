"""Small hand-written kernels through both compilers: what they use, and which instructions their main loops are made of."""

import pytest

from tests.gate.machine_code import AMD, NVIDIA, CompileFor, kernel_text, multiply_adds, values_kept
from tilelang.errors import DeviceError

DISASSEMBLED = tuple(a for a in NVIDIA if a != "sm_70")  # today's disassembler has forgotten it


@pytest.mark.parametrize("architecture", NVIDIA + AMD)
def test_what_a_plain_kernel_uses(architecture: str, compile_for: CompileFor) -> None:
    uses = compile_for(architecture)(kernel_text("simt.txt")).uses
    assert uses.name == "simt" and uses.shared_bytes == 2 * 8 * 32 * 4
    assert 16 < uses.registers <= 255 and not uses.spills and uses.stack_bytes == 0


@pytest.mark.parametrize("architecture", DISASSEMBLED)
def test_the_main_loop_of_a_plain_kernel_on_nvidia(architecture: str, compile_for: CompileFor) -> None:
    loop = compile_for(architecture)(kernel_text("simt.txt")).listing.main_loop("FFMA")
    assert (
        multiply_adds(loop) == loop.count("FFMA")
        and loop.count("FFMA") % (8 * 4 * 4) == 0
        and loop.count("LDS")
        and loop.count("BAR")
    )


@pytest.mark.parametrize("architecture", AMD)
def test_the_main_loop_of_a_plain_kernel_on_amd(architecture: str, compile_for: CompileFor) -> None:
    loop = compile_for(architecture)(kernel_text("simt.txt")).listing.main_loop("ds_load", "ds_read")
    products = loop.count("v_fma", "v_mac", "v_dual_fmac") + 2 * loop.count("v_pk_fma")
    assert products % (8 * 4 * 4) == 0 and multiply_adds(loop) == products - loop.count("v_pk_fma") > 0


@pytest.mark.parametrize("architecture", DISASSEMBLED)
def test_matrix_instructions_of_a_warp(architecture: str, compile_for: CompileFor) -> None:
    code = compile_for(architecture)(kernel_text("mma.cu"))
    loop = code.listing.main_loop("HMMA")
    assert loop.count("HMMA.16816.F32") == loop.count("HMMA") == 4 and multiply_adds(loop) == 0
    assert loop.count("LDGSTS") == 3 and loop.count("LDSM.16.M88.4") == 1 and loop.count("LDSM.16.M88.2") == 4
    assert code.uses.shared_bytes == 1536 and not code.uses.spills


def test_matrix_instructions_of_a_warpgroup(compile_for: CompileFor) -> None:
    code = compile_for("sm_90a")(kernel_text("wgmma.cu"))
    loop = code.listing.main_loop("HGMMA")
    assert loop.count("HGMMA.64x8x16.F32.BF16") == 4 and loop.count("UTMALDG.2D") == 2 and multiply_adds(loop) == 0


@pytest.mark.parametrize("architecture", ["gfx90a", "gfx942"])
def test_matrix_instructions_of_a_wave_of_64(architecture: str, compile_for: CompileFor) -> None:
    code = compile_for(architecture)(kernel_text("mfma.hip"))
    loop = code.listing.main_loop("v_mfma")
    assert loop.count("v_mfma_f32_16x16x16") == 4 and multiply_adds(loop) == 0 and not code.uses.spills


def test_matrix_instructions_of_a_wave_of_32(compile_for: CompileFor) -> None:
    code = compile_for("gfx1100")(kernel_text("wmma.hip"))
    loop = code.listing.main_loop("v_wmma")
    assert loop.count("v_wmma_f32_16x16x16_f16") == 2 and multiply_adds(loop) == 0 and not code.uses.spills


@pytest.mark.parametrize("architecture", ["sm_70", "sm_80", "sm_120", *AMD])
def test_registers_that_do_not_fit_are_spilled(architecture: str, compile_for: CompileFor) -> None:
    uses = compile_for(architecture)(values_kept(300, threads=1024)).uses
    assert uses.spills and uses.spill_store_bytes > 0 and uses.spill_load_bytes > 0 and uses.stack_bytes > 0


@pytest.mark.parametrize(
    ("architecture", "file", "words"),
    [
        ("sm_70", "mma.cu", "Feature 'cp.async' requires .target sm_80 or higher"),
        ("sm_90", "wgmma.cu", "Instruction 'wgmma.fence' not supported on .target 'sm_90'"),
        ("sm_100", "wgmma.cu", "Instruction 'wgmma.fence' not supported on .target 'sm_100'"),
        ("gfx1100", "mfma.hip", "'__builtin_amdgcn_mfma_f32_16x16x16f16' needs target feature mai-insts"),
        ("gfx90a", "wmma.hip", "needs target feature"),
    ],
)
def test_instructions_of_another_architecture_are_refused(
    architecture: str, file: str, words: str, compile_for: CompileFor
) -> None:
    with pytest.raises(DeviceError, match="does not compile the kernel for") as caught:
        compile_for(architecture)(kernel_text(file))
    assert caught.value.code == "compile-failed" and words in caught.value.message
