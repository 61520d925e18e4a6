"""Attention as it is constructed: one kernel, both products by matrix instructions, and no register is spilled."""

from __future__ import annotations

from typing import Any

import pytest

import tilelang as tl
from tests.autoschedule.test_shared_loops_gpu import attention, shared
from tests.gate.machine_code import compile_for_architecture
from tilelang.testing import emulation

EMULATED = pytest.mark.skipif(emulation.absent() is not None, reason=str(emulation.absent()))


@pytest.mark.parametrize(("type", "width"), [(tl.float16, 64), (tl.bfloat16, 128)], ids=str)
@pytest.mark.parametrize(("dialect", "profile"), [("cuda", "ampere"), ("cuda", "hopper"), ("hip", "cdna3")])
def test_constructed_attention(dialect: str, profile: str, type: Any, width: int) -> None:
    kernel = tl.compile(shared(attention(2048, 2048, width, type, 16), profile)[0], target=tl.target(dialect, profile=profile))
    code = compile_for_architecture(str(kernel.target.profile.architecture))(kernel.source)
    assert not code.uses.spills and code.uses.stack_bytes == 0


def test_the_loop_of_constructed_attention() -> None:
    """In a chunk of 32 keys, a warp of 16 queries has 4 x 4 products for the scores and 2 x 8 for their mix. A lane computes an
    exponential for each of its 16 scores, and one for the repairs of each of its two rows."""
    made = shared(attention(2048, 2048, 64, tl.float16, 16), "ampere")[0]
    kernel = tl.compile(made, target=tl.target("cuda", profile="ampere"))
    loop = compile_for_architecture("sm_80")(kernel.source).listing.main_loop("HMMA")
    rounds = loop.count("LDGDEPBAR")
    assert "split j=32 of peak total mix" in made.text and rounds > 0
    assert loop.count("HMMA.16816.F32") == loop.count("HMMA") == (4 * 4 + 2 * 8) * rounds
    assert loop.count("MUFU.EX2") == loop.count("MUFU") == (16 + 2) * rounds
    assert loop.count("SHFL") == loop.count("SHFL.BFLY") == 2 * 2 * 2 * rounds
    assert loop.count("STG", "STS", "STL", "LDL", "LDG.") == 0


@EMULATED
@pytest.mark.parametrize(("dialect", "profile"), [("cuda", "ampere"), ("hip", "cdna3"), ("hip", "rdna3")])
def test_text_of_constructed_attention(dialect: str, profile: str) -> None:
    report = emulation.check(tl.compile(shared(attention(40, 72), profile)[0], target=tl.target(dialect, profile=profile)))
    assert report, report
