"""Lane maps beside what the makers publish, and instructions beside NumPy on random data, through their lanes."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

import tilelang as tl
from tests.instructions.kernels import SHIPPED
from tilelang.core.dtype import DType
from tilelang.instructions.fragment import Fragment
from tilelang.instructions.instruction import Instruction, use

# Layouts of NVIDIA CUTLASS (mma_traits_sm80.hpp): extents and strides over (lane, slot), the first part of each running fastest; the
# number that they give counts the matrix with the first coordinate (m, or n of B) fastest.
Layout = tuple[tuple[Sequence[int], Sequence[int]], tuple[Sequence[int], Sequence[int]]]
_ROWS_16X8: Layout = (((4, 8), (32, 1)), ((2, 2), (16, 8)))
_F16_K16: Layout = (((4, 8), (32, 1)), ((2, 2, 2), (16, 8, 128)))
CUTLASS: dict[str, tuple[Layout, Layout]] = {
    "mma_m16n8k8": (_ROWS_16X8, (((4, 8), (16, 1)), ((2,), (8,)))),
    "mma_m16n8k16": (_F16_K16, (((4, 8), (16, 1)), ((2, 2), (8, 64)))),
    "mma_m16n8k4_tf32": ((((4, 8), (16, 1)), ((2,), (8,))), (((4, 8), (8, 1)), ((1,), (0,)))),
    "mma_m16n8k8_tf32": ((((4, 8), (16, 1)), ((2, 2), (8, 64))), (((4, 8), (8, 1)), ((2,), (32,)))),
    "mma_m16n8k16_int8": ((((4, 8), (64, 1)), ((4, 2), (16, 8))), (((4, 8), (32, 1)), ((4,), (8,)))),
    "mma_m16n8k32_int8": ((((4, 8), (64, 1)), ((4, 2, 2), (16, 8, 256))), (((4, 8), (32, 1)), ((4, 2), (8, 128)))),
}
ALIKE = {
    "mma_m16n8k8": ("mma_m16n8k8_bfloat16", "mma_m16n8k8_float16_sum"),
    "mma_m16n8k16": ("mma_m16n8k16_bfloat16", "mma_m16n8k16_float16_sum"),
    "mma_m16n8k16_int8": ("mma_m16n8k16_uint8",),
    "mma_m16n8k32_int8": ("mma_m16n8k32_uint8", "mma_m16n8k32_float8_e4m3", "mma_m16n8k32_float8_e5m2"),
    "mma_m16n8k8_tf32": ("simulated_mma_m16n8k8",),
}


def held(name: str, operand: str) -> Fragment:
    found = use(name).fragment(operand)
    assert found is not None
    return found


def numbers(layout: tuple[Sequence[int], Sequence[int]]) -> list[int]:
    """What one half of a layout gives for 0, 1, 2, ..."""
    extents, strides = layout
    each = itertools.product(*(range(n) for n in reversed(extents)))
    return [sum(x * s for x, s in zip(reversed(at), strides, strict=True)) for at in each]


def table(layout: Layout, rows: int) -> Any:
    """The coordinates of every (lane, slot)."""
    flat = np.add.outer(numbers(layout[0]), numbers(layout[1]))
    return np.stack([flat % rows, flat // rows], axis=-1)


@pytest.mark.parametrize("name", CUTLASS)
def test_products_of_a_warp_have_the_published_maps(name: str) -> None:
    left, right = CUTLASS[name]
    for each in (name, *ALIKE.get(name, ())):
        assert np.array_equal(held(each, "A").table, table(left, 16))
        assert np.array_equal(held(each, "B").table[..., ::-1], table(right, 8))  # published as (n, k)
        assert np.array_equal(held(each, "C").table, table(_ROWS_16X8, 16))


# AMD's Matrix Instruction Calculator, "Register to matrix element mapping": element `slot` of a lane, halves of a register in order.
def published_by_amd(name: str, operand: str, lane: int, slot: int) -> tuple[int, int]:
    if name.startswith("wmma"):
        return {"A": (lane % 16, slot), "B": (slot, lane % 16), "C": (2 * slot + lane // 16, lane % 16)}[operand]
    wide = 32 if "32x32" in name else 16
    k = slot + 4 * (lane // wide)
    row = 8 * (slot // 4) + 4 * (lane // wide) + slot % 4
    return {"A": (lane % wide, k), "B": (k, lane % wide), "C": (row, lane % wide)}[operand]


@pytest.mark.parametrize("made", [i for i in SHIPPED if i.needs[:1] in (("mfma",), ("wmma",))], ids=lambda i: i.name)
def test_products_of_a_wave_have_the_published_maps(made: Instruction) -> None:
    for o in made.operands:
        found = held(made.name, o.name)
        for lane, slot in np.ndindex(found.lanes, found.slots):
            assert tuple(found.table[lane, slot]) == published_by_amd(made.name, o.name, lane, slot)


@pytest.mark.parametrize("made", [i for i in SHIPPED if i.needs in (("ldmatrix",), ("stmatrix",))], ids=lambda i: i.name)
def test_matrix_moves_hand_out_rows_as_the_isa_says(made: Instruction) -> None:
    """Lane l of a matrix has 32 bits of row l / 4, from its byte 4 (l % 4) on; transposed, elements 2 (l % 4) and the next of column
    l / 4. Lane 8 j + i names row i of matrix j."""
    far, near = ("D", "S") if made.name.startswith("stmatrix") else ("S", "D")
    rows, lanes = held(made.name, far).table, held(made.name, near).table
    size = made.operands[0].dtype.bytes
    per = 4 // size
    for lane, slot in np.ndindex(*lanes.shape[:2]):
        matrix, part = divmod(slot, per)
        row, column = lane // 4, per * (lane % 4) + part
        if "_trans" in made.name:
            row, column = column, row
        assert tuple(lanes[lane, slot]) == tuple(rows[8 * matrix + row, column]), (lane, slot)


@pytest.mark.parametrize("columns", range(64, 257, 8))
def test_sums_of_a_warpgroup_repeat_those_of_a_warp(columns: int) -> None:
    """Four warps of 16 rows each, eight columns after eight columns, each piece as in a product of a warp."""
    piece = held("mma_m16n8k16", "C").table
    for name in (f"wgmma_m64n{columns}k16", f"wgmma_m64n{columns}k16_float16"):
        found = held(name, "C").table
        for warp, block in np.ndindex(4, columns // 8):
            mine = found[32 * warp : 32 * warp + 32, 4 * block : 4 * block + 4]
            assert np.array_equal(mine, piece + np.array([16 * warp, 8 * block]))


# ---------------------------------------------------------------- beside NumPy


def random_values(generator: np.random.Generator, shape: tuple[int, ...], dtype: DType) -> Any:
    if dtype.is_float:
        return generator.standard_normal(shape).astype(dtype.numpy)
    low, high = (-128, 128) if dtype.kind == "int" and dtype.bits == 8 else (0, 200)
    return generator.integers(low, high, shape).astype(dtype.numpy)


def through_the_lanes(made: Instruction, dense: dict[str, Any]) -> Any:
    """The instruction on dense operands, scattered to lanes and gathered again."""
    given = {n: x if (f := made.fragment(n)) is None else f.scatter(x) for n, x in dense.items()}
    result = made.simulate(given)[made.writes]
    there = made.fragment(made.writes)
    return result if there is None else there.gather(result, made.operand(made.writes).shape)


@pytest.mark.parametrize("made", [i for i in SHIPPED if i.kind == "update" and "k" in i.shape], ids=lambda i: i.name)
def test_products_are_numpy_s(made: Instruction) -> None:
    generator = np.random.default_rng(7)
    dense = {o.name: random_values(generator, o.shape, o.dtype) for o in made.operands}
    whole = {name: x.astype(np.float64) for name, x in dense.items()}
    a, b = whole["A"], whole["B"]
    b = b.T if made.operand("B").dims[-1].name == "k" and a.ndim == 2 else b
    result = through_the_lanes(made, dense)
    assert result.dtype == made.operand("C").dtype.numpy
    steps = made.shape["k"] + 1
    unit = {tl.float32: 2.0**-23, tl.float16: 2.0**-10}.get(made.operand("C").dtype, 0.0)
    allowed = unit * steps * (np.abs(a) @ np.abs(b) + np.abs(whole["C"]))
    assert np.all(np.abs(result.astype(np.float64) - (whole["C"] + a @ b)) <= allowed)
