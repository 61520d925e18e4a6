"""Copies from global memory directly to shared memory on AMD GPUs (CDNA): four bytes per thread, without registers.

A wave supplies one address in shared memory, in the register M0, and the words of its lanes are stored there consecutively,
whatever addresses they were read from. So if a layout permutes rows, the threads must be numbered in the same way. The copies
complete later, and a wait is for all of them, so more than two slots of a circular buffer gain nothing. If only the first bytes
of a thread's copy exist, its word is copied through registers, with zeros for the missing bytes.

Source: AMD Instinct MI200 Instruction Set Architecture, "Memory Buffer Load to LDS", "Manually Inserted Wait States"; LLVM,
Syntax of gfx90a and gfx942 Instructions, GLOBAL_LOAD_DWORD ... lds and GLOBAL_LOAD_LDS_DWORD.
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
from tilelang.instructions.shipped.ptx import FUNCTION

LANES = 64

# Inline assembly instead of clang's builtin: with the builtin, the compiler waits for the copy before the next read of any shared
# memory, including other slots of a circular buffer. M0 must be written one wait state before it is used.
COPY = f"""
{FUNCTION} void global_load_lds_4(void* target, const void* source, int existing) {{  // bytes beyond these become 0
    typedef __attribute__((address_space(3))) unsigned Shared;
    if (existing == 4) {{
        const unsigned lane = __builtin_amdgcn_mbcnt_hi(~0u, __builtin_amdgcn_mbcnt_lo(~0u, 0u));
        const int first = __builtin_amdgcn_readfirstlane((int)(unsigned)(Shared*)target - 4 * (int)lane);
#if defined(__gfx90a__)
        asm volatile("s_mov_b32 m0, %0\\n\\ts_nop 0\\n\\tglobal_load_dword %1, off lds" :: "s"(first), "v"(source) : "memory", "m0");
#else
        asm volatile("s_mov_b32 m0, %0\\n\\ts_nop 0\\n\\tglobal_load_lds_dword %1, off" :: "s"(first), "v"(source) : "memory", "m0");
#endif
    }} else {{
        unsigned word = 0;
        for (int i = 0; i < existing; ++i) word |= (unsigned)((const unsigned char*)source)[i] << 8 * i;
        *(unsigned*)target = word;
    }}
}}
"""


def _copy(name: str, types: tuple[DType, ...]) -> Instruction:
    count = 4 // types[0].bytes
    e = Axis("e", count)
    run = fragment(1, count, lambda lane, slot: slot)
    D = operand("D", types, "shared", e, fragment=run, alignment_bytes=4, neighbours=LANES)
    S = operand("S", types, "global", e, fragment=run, alignment_bytes=4)
    return instruction(
        name,
        means=moves(D[e], S[e]),
        operands=(D, S),
        level="thread",
        completes=IN_ORDER_GROUP,
        outside=0.0,
        needs=("direct_to_lds",),
        template={"hip": "global_load_lds_4({D.address}, {S.address}, {existing});"},
        definitions={"hip": COPY},
        source="AMD Instinct MI200 Instruction Set Architecture, Memory Buffer Load to LDS",
    )


global_load_lds_4 = _copy("global_load_lds_4", (float16, bfloat16, int16, uint16))
global_load_lds_4_of_4_bytes = _copy("global_load_lds_4_of_4_bytes", (float32, int32, uint32))
global_load_lds_4_of_1_byte = _copy("global_load_lds_4_of_1_byte", (int8, uint8, float8_e4m3, float8_e5m2))
