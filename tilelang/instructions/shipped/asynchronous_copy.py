"""Asynchronous copies from global to shared memory: 4, 8 or 16 bytes per thread.

They complete later, group by group; their operands must not change until the wait. If only the first bytes of a copy exist in the
source, the others become zero.

Source: Parallel Thread Execution ISA 8.5, "cp.async", "cp.async.commit_group", "cp.async.wait_group".
"""

from tilelang.core.dtype import (
    DType,
    bfloat16,
    float8_e4m3,
    float8_e5m2,
    float16,
    float32,
    int8,
    int16,
    int32,
    uint8,
    uint16,
    uint32,
)
from tilelang.core.expr import Axis
from tilelang.instructions.instruction import IN_ORDER_GROUP, Instruction, fragment, instruction, moves
from tilelang.instructions.operand import operand
from tilelang.instructions.shipped.ptx import FUNCTION, ISA, SHARED_ADDRESS

BYTES = (4, 8, 16)


def wrapper(size: int) -> str:
    """The C function that copies up to `size` bytes; copies of 16 bytes bypass the L1 cache."""
    where = "cg" if size == 16 else "ca"
    return f"""
{FUNCTION} void cp_async_{size}(void* target, const void* source, int existing) {{  // bytes beyond these become 0
    asm volatile("cp.async.{where}.shared.global [%0], [%1], {size}, %2;"
        :: "r"(shared_address(target)), "l"(source), "r"(existing) : "memory");
}}
"""


GROUPS = f"""
{FUNCTION} void cp_async_commit() {{
    asm volatile("cp.async.commit_group;" ::: "memory");
}}
template <int PENDING>
{FUNCTION} void cp_async_wait() {{  // until at most that many of the latest groups are unfinished
    asm volatile("cp.async.wait_group %0;" :: "n"(PENDING) : "memory");
}}
"""


def _copy(name: str, size: int, types: tuple[DType, ...]) -> Instruction:
    count = size // types[0].bytes
    e = Axis("e", count)
    run = fragment(1, count, lambda lane, slot: slot)
    D = operand("D", types, "shared", e, fragment=run, alignment_bytes=size)
    S = operand("S", types, "global", e, fragment=run, alignment_bytes=size)
    return instruction(
        name,
        means=moves(D[e], S[e]),
        operands=(D, S),
        level="thread",
        completes=IN_ORDER_GROUP,
        outside=0.0,  # src-size below cp-size: the rest is zero
        needs=("cp_async",),
        template={"cuda": f"cp_async_{size}({{D.address}}, {{S.address}}, {{existing}});"},
        definitions={"cuda": (SHARED_ADDRESS, wrapper(size))},
        source=f"{ISA}, cp.async",
    )


_TWO, _FOUR, _ONE = (float16, bfloat16, int16, uint16), (float32, int32, uint32), (int8, uint8, float8_e4m3, float8_e5m2)
cp_async_16, cp_async_8, cp_async_4 = (_copy(f"cp_async_{n}", n, _TWO) for n in (16, 8, 4))
cp_async_16_of_4_bytes, cp_async_8_of_4_bytes, cp_async_4_of_4_bytes = (
    _copy(f"cp_async_{n}_of_4_bytes", n, _FOUR) for n in (16, 8, 4)
)
cp_async_16_of_1_byte, cp_async_8_of_1_byte, cp_async_4_of_1_byte = (
    _copy(f"cp_async_{n}_of_1_byte", n, _ONE) for n in (16, 8, 4)
)
