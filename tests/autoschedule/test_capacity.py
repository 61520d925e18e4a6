"""Tiles in closed form: as large as there is room for, as long along an axis as there is reuse."""

from __future__ import annotations

import pytest

import tilelang as tl
from tilelang.autoschedule.common.task_accesses import Nest, nest_of
from tilelang.autoschedule.cpu.tile_size_selection import largest_tile, reused_along
from tilelang.computations.computation import as_computation
from tilelang.schedules.task import plan


def matmul(m: int, n: int, k: int) -> tl.Tensor:
    m_, n_, k_ = tl.axes(m=m, n=n, k=k)
    A, B = tl.input("A", tl.float32, m_, k_), tl.input("B", tl.float32, k_, n_)
    return tl.define("C", tl.sum(A[m_, k_] * B[k_, n_], over=k_), m_, n_)


def nest(computation: tl.Tensor) -> Nest:
    return nest_of(plan(as_computation(computation), set())[-1])


def test_a_product_is_as_long_along_each_axis() -> None:
    tile = largest_tile(nest(matmul(4096, 4096, 4096)), {}, 3 * 4 * 300 * 300)
    assert all(295 <= n <= 300 for n in tile.values())


@pytest.mark.parametrize("room_bytes", [1 << 16, 1 << 20, 1 << 24])
def test_a_resident_operand_has_all_the_room_and_the_rest_passes_by(room_bytes: int) -> None:
    found = nest(matmul(3000, 4096, 4096))
    resident = next(r for r in found.reads if r.name == "B")
    tile = largest_tile(found, {"n": 16}, room_bytes, resident)
    assert tile["m"] == 3000 and tile["n"] == pytest.approx(tile["k"], abs=2)
    assert 0.9 * room_bytes < 4 * tile["n"] * tile["k"] <= room_bytes


def test_no_tile_is_smaller_than_its_piece_or_larger_than_the_axis() -> None:
    found = nest(matmul(7, 5, 3))
    assert largest_tile(found, {"m": 4, "n": 4}, 1) == {"m": 4, "n": 4, "k": 1}
    assert largest_tile(found, {"m": 4, "n": 4}, 1e12) == {"m": 7, "n": 5, "k": 3}


def test_axes_of_one_reuse_share_their_length_from_the_innermost_outward() -> None:
    n, p, q, f, c = tl.axes(n=4, p=8, q=16, f=32, c=64)
    X, W = tl.input("X", tl.float32, n, c, p, q), tl.input("W", tl.float32, f, c)
    found = nest(tl.define("Z", tl.sum(X[n, c, p, q] * W[f, c], over=c), n, f, p, q))
    assert [[a.name for a in axes] for _, axes in reused_along(found)] == [["c"], ["q", "p", "n"], ["f"]]
    resident = next(r for r in found.reads if r.name == "X")
    tile = largest_tile(found, {}, 4 * 40 * 40, resident)
    assert tile["f"] == 32 and tile["q"] == 16 and 2 <= tile["p"] <= 3 and tile["n"] == 1
