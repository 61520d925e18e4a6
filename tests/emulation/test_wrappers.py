"""Each emulated wrapper against its instruction's own meaning: the lane maps of definitions and emulations were written twice.

What completes later is in test_machine.py (copies by threads) and test_warpgroups.py.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.instructions.kernels import SHARED_BYTES, SHIPPED, kernel
from tilelang.core.dtype import DType
from tilelang.instructions.instruction import Instruction, use
from tilelang.testing import emulation
from tilelang.testing.emulation import text
from tilelang.testing.emulation.launch import wrappers

pytestmark = pytest.mark.skipif(emulation.absent() is not None, reason=str(emulation.absent()))

CASES = [
    (made, dialect) for made in SHIPPED for dialect in made.dialects if dialect in ("cuda", "hip") and made.completes == "at once"
]


def random_bits(dtype: DType, shape: tuple[int, ...], generator: np.random.Generator) -> Any:
    """Small numbers, of which sums are exact in any order."""
    return generator.integers(-3 if dtype.name[0] != "u" else 0, 4, shape).astype(dtype.numpy)


def held(made: Instruction, name: str, generator: np.random.Generator) -> Any:
    """What the lanes hold of an operand, (lanes, slots); copies of one element agree."""
    fragment, operand = made.fragment(name), made.operand(name)
    assert fragment is not None
    return fragment.scatter(random_bits(operand.dtype, operand.shape, generator))


def run_once(made: Instruction, source: str) -> tuple[Any, Any]:
    """What a kernel that issues the instruction once writes, and what it should."""
    generator = np.random.default_rng(1)
    given = {o.name: held(made, o.name, generator) for o in made.operands}
    arrays = {}
    for o in made.operands:
        flat = given[o.name].reshape(-1)
        arrays[f"{o.name}_in"] = np.resize(flat, SHARED_BYTES // o.dtype.bytes) if o.memory == "shared" else flat
    launch = emulation.Launch("one", (1, 1, 1), made.width, tuple(arrays))
    found = emulation.run(source, [launch], arrays, warp=max(made.width, 32))
    wanted = made.simulate(given)[made.writes]
    return found[f"{made.writes}_in"][: wanted.size].reshape(wanted.shape), wanted


@pytest.mark.parametrize(("made", "dialect"), CASES, ids=lambda x: str(getattr(x, "name", x)))
def test_a_wrapper_does_what_its_instruction_means(made: Instruction, dialect: str) -> None:
    found, wanted = run_once(made, kernel(made, dialect))
    assert np.array_equal(found, wanted)


def test_every_instruction_is_emulated() -> None:
    device_only = {
        found.name
        for made in SHIPPED
        for dialect in ("cuda", "hip")
        for definition in made.definitions_in(dialect)
        for found in text.definitions(definition)
        if found.device_only
    }
    assert device_only - set(wrappers()) == set()


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("mma_m16n8k16", "C[0], C[1], C[2], C[3]", "C[0], C[2], C[1], C[3]"),
        ("mma_m16n8k16", "((word*)A)[1], ((word*)A)[2]", "((word*)A)[2], ((word*)A)[1]"),
        ("ldmatrix_x4", "ldmatrix_x4(((word*)D", "ldmatrix_x4_trans(((word*)D"),
        ("ldmatrix_x4_trans", "((word*)D)[0], ((word*)D)[1]", "((word*)D)[1], ((word*)D)[0]"),
    ],
)
def test_a_wrong_lane_map_is_seen(name: str, old: str, new: str) -> None:
    made = use(name)
    other = use("ldmatrix_x4_trans").definitions_in("cuda")[-1] if "ldmatrix_x4_trans(" in new else ""
    source = other + kernel(made, "cuda")
    assert old in source
    found, wanted = run_once(made, source.replace(old, new))
    assert not np.array_equal(found, wanted)
