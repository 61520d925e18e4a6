"""A matrix product in Triton, as its tutorial does it: tiles in order of the cache, a few shapes tried. Imports Triton."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import triton
import triton.language as tl

CONFIGURATIONS = [
    triton.Config({"M_TILE": m, "N_TILE": n, "K_TILE": k, "ORDER": 8}, num_stages=stages, num_warps=warps)
    for m, n, k, stages, warps in (
        (128, 256, 64, 3, 8), (128, 128, 64, 4, 4), (128, 128, 32, 4, 4), (64, 256, 32, 4, 4), (128, 64, 32, 4, 4), (64, 64, 32, 5, 2),
    )
]  # fmt: skip


@triton.autotune(configs=CONFIGURATIONS, key=["M", "N", "K", "step", "PRECISION"])  # type: ignore[untyped-decorator]
@triton.jit  # type: ignore[untyped-decorator]
def product(  # type: ignore[no-untyped-def]
    a, b, c, M, N, K, step, across, M_TILE: tl.constexpr, N_TILE: tl.constexpr, K_TILE: tl.constexpr, ORDER: tl.constexpr,
    PRECISION: tl.constexpr,
):  # fmt: skip
    """One tile of C = A B; from one element of B to the next along k: `step`, along n: `across`. K need not divide."""
    number = tl.program_id(0)
    rows, columns = tl.cdiv(M, M_TILE), tl.cdiv(N, N_TILE)
    group = number // (ORDER * columns)
    first = group * ORDER
    height = min(rows - first, ORDER)
    i = (first + (number % (ORDER * columns)) % height) * M_TILE + tl.arange(0, M_TILE)
    j = ((number % (ORDER * columns)) // height) * N_TILE + tl.arange(0, N_TILE)
    steps = tl.arange(0, K_TILE)
    left = a + (i % M)[:, None] * K + steps[None, :]
    right = b + steps[:, None] * step + (j % N)[None, :] * across
    total = tl.zeros((M_TILE, N_TILE), dtype=tl.float32)
    for k in range(tl.cdiv(K, K_TILE)):
        x = tl.load(left, mask=steps[None, :] < K - k * K_TILE, other=0.0)
        y = tl.load(right, mask=steps[:, None] < K - k * K_TILE, other=0.0)
        total = tl.dot(x, y, total, input_precision=PRECISION)
        left += K_TILE
        right += K_TILE * step
    tl.store(c + i[:, None] * N + j[None, :], total.to(c.dtype.element_ty), mask=(i[:, None] < M) & (j[None, :] < N))


def matmul(a: Any, b: Any, c: Any, tf32: bool = False) -> Any:
    """c = a b; b may be a transposed tensor."""
    (m, k), n = a.shape, b.shape[1]

    def grid(meta: Mapping[str, int]) -> tuple[int]:
        return (triton.cdiv(m, meta["M_TILE"]) * triton.cdiv(n, meta["N_TILE"]),)

    product[grid](a, b, c, m, n, k, *b.stride(), PRECISION="tf32" if tf32 else "ieee")
    return c
