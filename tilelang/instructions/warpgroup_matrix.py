"""Matrix products of a warpgroup of 128: both factors in shared memory, named by descriptors; the accumulator in registers.

Source: Parallel Thread Execution ISA 8.5, "Asynchronous Warpgroup Level Matrix Instructions", "Register Fragments and Shared Memory
Matrix Layouts".
"""

from tilelang.dtype import bfloat16, float32
from tilelang.expr import Axis, cast
from tilelang.instruction import IN_ORDER_GROUP, Instruction, fragment, instruction, operand, updates
from tilelang.tensor import Layout

SWIZZLES = tuple(Layout(swizzle_bytes=width) for width in (32, 64, 128))  # rows along k, 16-byte chunks exchanged


def _m64k16(columns: int) -> Instruction:
    m, n, k = Axis("m", 64), Axis("n", columns), Axis("k", 16)
    A = operand("A", bfloat16, "shared", m, k, layouts=SWIZZLES)
    B = operand("B", bfloat16, "shared", n, k, layouts=SWIZZLES)
    held = fragment(
        128,
        columns // 2,
        lambda lane, slot: (
            lane // 32 * 16 + lane % 32 // 4 + 8 * (slot // 2 % 2),
            8 * (slot // 4) + 2 * (lane % 4) + slot % 2,
        ),
    )
    C = operand("C", float32, "register", m, n, fragment=held)
    return instruction(
        f"wgmma_m64n{columns}k16",
        means=updates(C[m, n], cast(A[m, k], float32) * cast(B[n, k], float32)),
        operands=(A, B, C),
        level="warpgroup",
        completes=IN_ORDER_GROUP,
        error_ulps=1,  # sums are truncated, not rounded
        needs=("wgmma",),
        source="Parallel Thread Execution ISA 8.5, wgmma.mma_async",
    )


wgmma_m64n64k16, wgmma_m64n128k16, wgmma_m64n256k16 = (_m64k16(columns) for columns in (64, 128, 256))
