"""Products of a warpgroup on boxes that tensor copies bring: a kernel written by hand, right, and wrong in every way that must show."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tilelang.core.dtype import DType, bfloat16, float32
from tilelang.instructions.instruction import use
from tilelang.lowering.drivers.tensor_maps import TensorMap
from tilelang.testing import emulation
from tilelang.testing.emulation import Launch, Mapped

pytestmark = pytest.mark.skipif(emulation.absent() is not None, reason=str(emulation.absent()))

NAMES = ("tma_load_2d", "tma_store_2d", "wgmma_m64n64k16", "wgmma_m64n128k16")
DEFINITIONS = "".join(dict.fromkeys(text for name in NAMES for text in use(name).definitions_in("cuda")))

# Blocks of 64 x 64 of C = A B^T; one thread copies, all multiply; the result leaves by a tensor copy.
PRODUCT = (
    DEFINITIONS
    + """
extern "C" __global__ void __launch_bounds__(128) product(
    const __grid_constant__ TensorMap ta, const __grid_constant__ TensorMap tb, const __grid_constant__ TensorMap tc, int k_extent) {
    __shared__ __align__(1024) unsigned short a[2][64 * 64];
    __shared__ __align__(1024) unsigned short b[2][64 * 64];
    __shared__ __align__(128) float c[64 * 64];
    __shared__ unsigned long long full[2];
    const int thread = threadIdx.x;
    if (thread == COPIER) {
        barrier_init(full, 1);
        barrier_init(full + 1, 1);
        barrier_init_fence();
    }
    __syncthreads();
    float d[32];
    for (int i = 0; i < 32; ++i) d[i] = 0.0f;
    const int rounds = k_extent / 64;
    for (int round = -1; round < rounds; ++round) {
        const int next = round + 1, slot = round & 1;
        if (thread == COPIER && next < rounds) {
            barrier_arrive_expecting(full + next % 2, 2 * 64 * 64 * 2);
            tensor_load_2d(a[next % 2], &ta, 64 * next, 64 * blockIdx.y, full + next % 2);
            tensor_load_2d(b[next % 2], &tb, 64 * next, 64 * blockIdx.x, full + next % 2);
        }
        if (round < 0) continue;
        barrier_wait(full + slot, round / 2 % 2);
        wgmma_fence();
        for (int k = 0; k < 64; k += 16)
            wgmma_m64n64k16<128, 128>(ACCUMULATORS, a[slot], k / 8, b[slot], k / 8);
        wgmma_commit();
        wgmma_wait<0>();
        __syncthreads();
    }
    for (int i = 0; i < 32; ++i)
        c[(thread / 32 * 16 + thread % 32 / 4 + 8 * (i / 2 % 2)) * 64 + 8 * (i / 4) + 2 * (thread % 4) + i % 2] = d[i];
    tensor_store_fence();
    __syncthreads();
    if (thread == COPIER) {
        tensor_store_2d(&tc, 64 * blockIdx.x, 64 * blockIdx.y, c);
        tensor_store_commit();
        tensor_store_wait<0>();
    }
}
""".replace("ACCUMULATORS", ", ".join(f"d[{i}]" for i in range(32)))
)


def mapped(name: str, shape: tuple[int, int], dtype: DType, swizzle_bytes: int) -> Mapped:
    """A tensor of rows side by side, copied in boxes of 64 x 64."""
    return Mapped(name, TensorMap(dtype, shape, (shape[1] * dtype.bytes, dtype.bytes), (64, 64), swizzle_bytes))


def product(
    source: str = PRODUCT, copier: int = 0, size: tuple[int, int, int] = (100, 136, 192), swizzle: int = 128, **how: Any
) -> tuple[Any, Any]:
    """The product that the kernel gives, and the right one; the sizes are m, n and k."""
    m, n, k = size
    generator = np.random.default_rng(0)
    a, b = (generator.integers(-3, 4, shape).astype(bfloat16.numpy) for shape in ((m, k), (n, k)))
    arrays = {"A": a, "B": b, "C": np.full((m, n), np.nan, np.float32)}
    maps = (mapped("A", (m, k), bfloat16, swizzle), mapped("B", (n, k), bfloat16, 128), mapped("C", (m, n), float32, 0))
    launch = Launch("product", (-(-n // 64), -(-m // 64), 1), 128, (*maps, np.int32(k)))
    found = emulation.run(source.replace("COPIER", str(copier)), [launch], arrays, **how)["C"]
    return found, a.astype(np.float32) @ b.astype(np.float32).T


@pytest.mark.parametrize("landing", ["early", "late", 3])
@pytest.mark.parametrize(("turns", "copier"), [("ascending", 0), ("ascending", 127), ("descending", 0), (7, 64)])
def test_a_product_by_warpgroups_and_tensor_copies(turns: str | int, copier: int, landing: str | int) -> None:
    found, wanted = product(copier=copier, turns=turns, landing=landing)
    assert np.array_equal(found, wanted)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("2 * 64 * 64 * 2", "64 * 64 * 2"),  # the second copy is not waited for
        ("round / 2 % 2)", "round % 2)"),  # of another phase
        ("wgmma_wait<0>();", "wgmma_wait<1>();"),  # the last group is still under way
        ("a[slot], k / 8, b", "a[slot], k / 16, b"),  # a wrong place along k
        ("eight_rows = 8 * SWIZZLE / 16", "eight_rows = 4 * SWIZZLE / 16"),  # groups of rows too near
        ("kind = SWIZZLE == 128 ? 1", "kind = SWIZZLE == 128 ? 2"),  # another swizzle than the copy's
        ("+ 2 * (thread % 4) + i % 2] = d[i]", "+ 2 * (thread % 4) + 1 - i % 2] = d[i]"),  # a wrong lane map
        ("64 * next, 64 * blockIdx.y", "64 * next, 64 * blockIdx.y + 1"),  # a wrong box
        ("tensor_store_fence();\n    __syncthreads();", ""),  # the store reads what is not there yet
    ],
)
def test_a_wrong_product_is_seen(old: str, new: str) -> None:
    """By a race that is told, or by its numbers."""
    assert old in PRODUCT
    try:
        found, wanted = product(PRODUCT.replace(old, new))
    except emulation.EmulationFault as fault:
        assert any(told in str(fault) for told in ("a race", "no fence behind", "which has ended"))
        return
    assert not np.array_equal(found, wanted)


def test_a_box_in_another_swizzle_is_seen() -> None:
    found, wanted = product(swizzle=0)
    assert not np.array_equal(found, wanted)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("barrier_wait(full + slot, round / 2 % 2);", "__syncthreads();", "more arrivals at a barrier in shared memory"),
        ("2 * 64 * 64 * 2", "3 * 64 * 64 * 2", "a phase of a barrier in shared memory"),
        ("tensor_load_2d(a[next % 2],", "tensor_load_2d(a[next % 2] + 32,", "not a multiple of 128"),
        ("tensor_store_fence();", "", "is read asynchronously, and thread 0 wrote it with no fence behind"),
        ("barrier_init_fence();", "", "with no fence since it was made"),
        ("tensor_store_wait<0>();", "", "ends before its copies from shared memory have been waited for"),
        ("wgmma_m64n64k16<128, 128>(", "if (thread < 96) wgmma_m64n64k16<128, 128>(", "wgmma_m64n64k16"),
        ("a[slot], k / 8, b", "a[slot], k / 8 + thread / 32 * 64, b", "its lanes have different descriptors"),
    ],
)
def test_a_fault_of_the_protocol_is_told(old: str, new: str, message: str) -> None:
    assert old in PRODUCT
    with pytest.raises(emulation.EmulationFault) as caught:
        product(PRODUCT.replace(old, new))
    assert message in str(caught.value)
