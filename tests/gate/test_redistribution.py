"""Values that change owners in registers: which instructions carry them, and that attention's products carry nothing between them."""

from __future__ import annotations

import pytest

import tilelang as tl
from tests.gate.machine_code import compile_for_architecture
from tests.lowering.attention import attention, by_matrix_units
from tests.lowering.test_redistribute import double, turned
from tilelang.testing import emulation

EMULATED = pytest.mark.skipif(emulation.absent() is not None, reason=str(emulation.absent()))
TURNED = [("cuda", "ampere", 4), ("hip", "cdna2", 8), ("hip", "rdna3", 4), ("cuda", "ampere", 8), ("hip", "cdna2", 16)]
SIZES = [((64, 64, 64), 4), ((40, 20, 24), 2)]


@pytest.mark.parametrize(("dialect", "profile"), [("cuda", "ampere"), ("cuda", "hopper"), ("hip", "cdna3"), ("hip", "rdna3")])
def test_one_exchange_of_registers(dialect: str, profile: str) -> None:
    target = tl.target(dialect, profile=profile)
    lanes = target.profile.level("warp").threads or 32
    kernel = tl.compile(turned(double(64, 64), rows=lanes // 8), target=target)
    code = compile_for_architecture(str(target.profile.architecture))(kernel.source)
    assert code.uses.shared_bytes == 0 and not code.uses.spills
    assert code.listing.count("SHFL.IDX" if dialect == "cuda" else "ds_bpermute") == 1


def test_attention_between_its_products() -> None:
    """Per warp 8 x 4 products for 64 keys of depth 64, as many for their values; rows meet in two steps, twice two of them a lane."""
    kernel = tl.compile(by_matrix_units(attention(256, 64, 64), 4), target=tl.target("cuda", profile="ampere"))
    code = compile_for_architecture("sm_80")(kernel.source)
    assert not code.uses.spills and code.uses.stack_bytes == 0
    assert code.uses.shared_bytes == 3 * 64 * 64 * 2  # Q, K, V
    assert code.listing.count("SHFL.BFLY") == code.listing.count("SHFL") == 2 * 2 * 2


@EMULATED
@pytest.mark.parametrize(("dialect", "profile", "rows"), TURNED)
@pytest.mark.parametrize("type", [tl.float32, tl.float16, tl.int8, tl.int64], ids=str)
def test_text_that_exchanges_registers(dialect: str, profile: str, rows: int, type: tl.DType) -> None:
    report = emulation.check(tl.compile(turned(double(31, 13, type), rows), target=tl.target(dialect, profile=profile)))
    assert report, report


@EMULATED
@pytest.mark.parametrize(("sizes", "warps"), SIZES, ids=str)
def test_text_of_attention(sizes: tuple[int, int, int], warps: int) -> None:
    report = emulation.check(tl.compile(by_matrix_units(attention(*sizes), warps), target=tl.target("cuda", profile="ampere")))
    assert report, report
