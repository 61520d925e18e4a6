"""Copies that a device makes by itself between global and shared memory: 16 bytes a thread, or a box by one elected lane.

They complete later: the operands are held until the wait. A box's operands are named by descriptors, not by lanes: in global memory
by a tensor map that is encoded before the launch, in shared memory by an address and one of the known swizzles.
Source: Parallel Thread Execution ISA 8.5, "cp.async" and "cp.async.bulk.tensor"; CUDA Driver API, cuTensorMapEncodeTiled.
"""

from tilelang.dtype import DType, bfloat16, float16, float32, int8, int16, int32, uint8, uint16, uint32
from tilelang.expr import Axis
from tilelang.instruction import BARRIER_BY_BYTES, IN_ORDER_GROUP, ONE_LANE, Instruction, fragment, instruction, moves, operand
from tilelang.tensor import Layout

PTX = "Parallel Thread Execution ISA 8.5"


def _sixteen_bytes(name: str, types: tuple[DType, ...]) -> Instruction:
    count = 16 // types[0].bytes
    e = Axis("e", count)
    run = fragment(1, count, lambda lane, slot: slot)
    D = operand("D", types, "shared", e, fragment=run, alignment_bytes=16)
    S = operand("S", types, "global", e, fragment=run, alignment_bytes=16)
    return instruction(
        name,
        means=moves(D[e], S[e]),
        operands=(D, S),
        level="thread",
        completes=IN_ORDER_GROUP,
        outside=0.0,  # src-size below cp-size: the rest is zero
        needs=("cp_async",),
        source=f"{PTX}, cp.async",
    )


cp_async_16 = _sixteen_bytes("cp_async_16", (float16, bfloat16, int16, uint16))
cp_async_16_of_4_bytes = _sixteen_bytes("cp_async_16_of_4_bytes", (float32, int32, uint32))
cp_async_16_of_1_byte = _sixteen_bytes("cp_async_16_of_1_byte", (int8, uint8))


def _box(name: str, load: bool) -> Instruction:
    """16-bit elements, at most 256 rows of at most 128 bytes (what the widest swizzle takes)."""
    types = (float16, bfloat16, int16, uint16)
    r, c = Axis("r", 64), Axis("c", 64)
    D, S = (operand(n, types, "shared" if (n == "D") == load else "global", r, c, layouts=_layouts(n == "D", load)) for n in "DS")
    return instruction(
        name,
        means=moves(D[r, c], S[r, c]),
        operands=(D, S),
        level="block",
        issue=ONE_LANE,
        completes=BARRIER_BY_BYTES if load else IN_ORDER_GROUP,
        outside=0.0,
        host="tensor map",
        needs=("bulk_tensor_copy",),
        limits={"r": 256, "c": 64},
        source=f"{PTX}, cp.async.bulk.tensor",
    )


def _layouts(target: bool, load: bool) -> tuple[Layout, ...]:
    return tuple(Layout(swizzle_bytes=width) for width in (0, 32, 64, 128)) if target == load else ()


tma_load_2d, tma_store_2d = _box("tma_load_2d", load=True), _box("tma_store_2d", load=False)
