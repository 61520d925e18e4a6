"""Products of tf32, bytes, 8-bit floats and of waves of 32: what their main loops are made of, and that they are right at odd sizes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import tilelang as tl
from tests.gate.machine_code import multiply_adds
from tests.gate.test_matrix_units import compiled
from tests.test_examples import load
from tilelang.testing import emulation

EXAMPLE = load("16_matrix_types")
# Each schedule by its profile and the sizes of its computation.
MADE: dict[str, tuple[str, Callable[..., tl.Schedule]]] = {
    "gemm_tf32": ("ampere", lambda *sizes: EXAMPLE.gemm_tf32(EXAMPLE.matmul(*sizes))),
    "gemm_int8": ("ampere", lambda *sizes: EXAMPLE.gemm_bytes(EXAMPLE.linear(*sizes))),
    "gemm_uint8": ("ampere", lambda *sizes: EXAMPLE.gemm_bytes(EXAMPLE.linear(*sizes, tl.uint8), tl.uint8)),
    "gemm_float8_e4m3": ("ada", lambda *sizes: EXAMPLE.gemm_bytes(EXAMPLE.linear(*sizes, tl.float8_e4m3), tl.float8_e4m3)),
    "gemm_float8_e5m2": ("ada", lambda *sizes: EXAMPLE.gemm_bytes(EXAMPLE.linear(*sizes, tl.float8_e5m2), tl.float8_e5m2)),
    "gemm_rdna": ("rdna3", lambda *sizes: EXAMPLE.gemm_rdna(EXAMPLE.matmul(*sizes, tl.float16))),
    "gemm_rdna_bfloat16": ("rdna3", lambda *sizes: EXAMPLE.gemm_rdna(EXAMPLE.matmul(*sizes, tl.bfloat16))),
}
LARGE = (4096, 4096, 4096)


def dialect_of(profile: str) -> str:
    return "hip" if profile == "rdna3" else "cuda"


@pytest.mark.parametrize("profile", ["ampere", "ada", "hopper"])
def test_gemm_tf32(profile: str) -> None:
    """A round of 16: two steps of 4 x 8 products; of A four moves of 16 x 8 a step, of B 16 elements; a thread copies 4 + 4 pieces."""
    loop = compiled(MADE["gemm_tf32"][1](*LARGE), "cuda", profile).listing.main_loop("HMMA")
    assert loop.count("HMMA.1688.F32.TF32") == loop.count("HMMA") == 2 * 4 * 8 and multiply_adds(loop) == 0
    assert loop.count("LDSM.16.M88.4") == loop.count("LDSM") == 2 * 4
    assert sum(i.name == "LDS" and i.predicate != "@!PT" for i in loop.instructions) == 2 * 16  # those are padding
    assert loop.count("LDGSTS.E.BYPASS.128") == loop.count("LDGSTS") == 4 + 4
    assert loop.count("LDL", "STL", "LDG.", "STS") == 0


@pytest.mark.parametrize(
    ("name", "profile", "mnemonic"),
    [
        ("gemm_int8", "ampere", "IMMA.16832.S8.S8"),
        ("gemm_int8", "hopper", "IMMA.16832.S8.S8"),
        ("gemm_uint8", "ampere", "IMMA.16832.U8.U8"),
        ("gemm_float8_e4m3", "ada", "QMMA.16832.F32.E4M3.E4M3"),
        ("gemm_float8_e5m2", "ada", "QMMA.16832.F32.E5M2.E5M2"),
        ("gemm_float8_e4m3", "blackwell_rtx", "QMMA.16832.F32.E4M3.E4M3"),
    ],
)
def test_gemm_bytes(name: str, profile: str, mnemonic: str) -> None:
    """A round of 64: two steps of 4 x 8 products, from four moves of A and four of B; a thread copies four pieces of each."""
    loop = compiled(MADE[name][1](*LARGE), "cuda", profile).listing.main_loop(mnemonic)
    assert loop.count(mnemonic) == loop.count("HMMA", "IMMA", "QMMA") == 2 * 4 * 8 and multiply_adds(loop) == 0
    assert loop.count("LDSM.16.M88.4") == loop.count("LDSM") == 2 * (4 + 4)
    assert loop.count("LDGSTS.E.BYPASS.128") == loop.count("LDGSTS") == 4 + 4
    assert loop.count("PRMT", "F2FP", "I2F", "LDL", "STL", "LDG.", "STS") == 0


@pytest.mark.parametrize(("name", "type"), [("gemm_rdna", "f16"), ("gemm_rdna_bfloat16", "bf16")])
def test_gemm_rdna(name: str, type: str) -> None:
    """A round of 32: two steps of 4 x 2 products, from rows of 16 elements in two reads; every access to memory is a vector."""
    loop = compiled(MADE[name][1](*LARGE), "hip", "rdna3").listing.main_loop("v_wmma")
    assert loop.count(f"v_wmma_f32_16x16x16_{type}") == loop.count("v_wmma") == 2 * 4 * 2 and multiply_adds(loop) == 0
    assert loop.count("ds_load_b128") == loop.count("ds_load") == 2 * (4 + 2) * 2
    assert loop.count("ds_store_b128") == loop.count("ds_store") == 2 + 2
    assert (loop.count("global_load_b128"), loop.count("global_load_b32"), loop.count("global_load")) == (2, 8, 10)
    assert loop.count("scratch", "buffer_load", "buffer_store", "flat_") == 0


@pytest.mark.parametrize("name", EXAMPLE.units())
def test_no_bank_conflicts(name: str) -> None:
    dialect, profile, schedule = EXAMPLE.units()[name]
    report = tl.simulate(tl.compile(schedule, target=tl.target(dialect, profile=profile)))
    assert report.findings == () and sum(count.total for count in report.conflicts) == 0
    assert sum(count.requests for count in report.conflicts) > 0


@pytest.mark.skipif(emulation.absent() is not None, reason=str(emulation.absent()))
@pytest.mark.parametrize("sizes", [(128, 128, 128), (72, 40, 80), (70, 33, 41)], ids=str)
@pytest.mark.parametrize("name", MADE)
def test_simulator_and_text_are_right(name: str, sizes: tuple[Any, ...]) -> None:
    """At whole sizes, at those whose rows still begin at multiples of 16 bytes, and at odd ones, where pieces are copied at once."""
    profile, make = MADE[name]
    kernel = tl.compile(make(*sizes), target=tl.target(dialect_of(profile), profile=profile))
    assert kernel.computation.check(lambda arrays: tl.simulate(kernel, order="late", **arrays).outputs)
    report = emulation.check(kernel)
    assert report, report
