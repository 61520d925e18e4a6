"""Matrix instructions of a warp of 32: their products, and the loads that bring operands from shared memory into place.

Lane maps: group = lane / 4 and place = lane % 4 number the rows and columns; an accumulator of 16 x 8 has two rows a lane quad. The
loads' register maps are the operand maps of the products, so that nothing moves between them.
Source: Parallel Thread Execution ISA 8.5, "Matrix Fragments for mma.m16n8k8", "... mma.m16n8k16", and "ldmatrix".
"""

from tilelang.dtype import DType, bfloat16, float16, float32, int16, uint16
from tilelang.expr import Axis, cast
from tilelang.instruction import Fragment, Instruction, fragment, instruction, moves, operand, updates

PTX = "Parallel Thread Execution ISA 8.5"
SIXTEEN_BITS = (float16, bfloat16, int16, uint16)

accumulator_16x8: Fragment = fragment(32, 4, lambda lane, slot: (lane // 4 + 8 * (slot // 2), 2 * (lane % 4) + slot % 2))
left_16x16: Fragment = fragment(
    32, 8, lambda lane, slot: (lane // 4 + 8 * (slot // 2 % 2), 2 * (lane % 4) + slot % 2 + 8 * (slot // 4))
)
right_16x8: Fragment = fragment(32, 4, lambda lane, slot: (2 * (lane % 4) + slot % 2 + 8 * (slot // 2), lane // 4))
left_16x8: Fragment = fragment(32, 4, lambda lane, slot: (lane // 4 + 8 * (slot % 2), lane % 4 + 4 * (slot // 2)))
right_8x8: Fragment = fragment(32, 2, lambda lane, slot: (lane % 4 + 4 * slot, lane // 4))


def _simulated() -> Instruction:
    """float32 throughout, with the maps of the tf32 instruction of that shape: for the simulator, no device has it."""
    m, n, k = Axis("m", 16), Axis("n", 8), Axis("k", 8)
    A = operand("A", float32, "register", m, k, fragment=left_16x8)
    B = operand("B", float32, "register", k, n, fragment=right_8x8)
    C = operand("C", float32, "register", m, n, fragment=accumulator_16x8)
    return instruction(
        "simulated_mma_m16n8k8",
        means=updates(C[m, n], A[m, k] * B[k, n]),
        operands=(A, B, C),
        level="warp",
        needs=("simulated_mma_m16n8k8",),
        source=f"{PTX}, Matrix Fragments for mma.m16n8k8 (.tf32): the maps alone",
    )


simulated_mma_m16n8k8 = _simulated()


def _m16n8k16(name: str, type: DType) -> Instruction:
    m, n, k = Axis("m", 16), Axis("n", 8), Axis("k", 16)
    A = operand("A", type, "register", m, k, fragment=left_16x16)
    B = operand("B", type, "register", k, n, fragment=right_16x8)
    C = operand("C", float32, "register", m, n, fragment=accumulator_16x8)
    return instruction(
        name,
        means=updates(C[m, n], cast(A[m, k], float32) * cast(B[k, n], float32)),
        operands=(A, B, C),
        level="warp",
        error_ulps=1,  # sums are truncated, not rounded (Fasi et al., Numerical behavior of NVIDIA tensor cores, 2021)
        needs=("mma_m16n8k16",),
        source=f"{PTX}, Matrix Fragments for mma.m16n8k16 with floating point type",
    )


mma_m16n8k16 = _m16n8k16("mma_m16n8k16", float16)
mma_m16n8k16_bfloat16 = _m16n8k16("mma_m16n8k16_bfloat16", bfloat16)


def _ldmatrix(name: str, target: Fragment, rows: Fragment) -> Instruction:
    """Four 8 x 8 matrices; lane i supplies the address of row i % 8 of matrix i / 8: 8 elements, 16 bytes."""
    r, c = Axis("r", 16), Axis("c", 16)
    D = operand("D", SIXTEEN_BITS, "register", r, c, fragment=target)
    S = operand("S", SIXTEEN_BITS, "shared", r, c, fragment=rows, alignment_bytes=16)
    return instruction(
        name,
        means=moves(D[r, c], S[r, c]),
        operands=(D, S),
        level="warp",
        needs=("ldmatrix",),
        source=f"{PTX}, ldmatrix",
    )


# Matrices in the order (0, 0), (8, 0), (0, 8), (8, 8): what the left operand of m16n8k16 has in its four registers.
ldmatrix_x4 = _ldmatrix("ldmatrix_x4", left_16x16, fragment(32, 8, lambda lane, slot: (lane % 16, lane // 16 * 8 + slot)))

# The same matrices, each transposed on the way: from rows along k to two right operands of m16n8k16 side by side.
ldmatrix_x4_trans = _ldmatrix(
    "ldmatrix_x4_trans",
    fragment(32, 8, lambda lane, slot: (2 * (lane % 4) + slot % 2 + 8 * (slot // 2 % 2), lane // 4 + 8 * (slot // 4))),
    fragment(32, 8, lambda lane, slot: (lane % 16, lane // 16 * 8 + slot)),
)
