"""Matrix and dot products on 64-bit Arm CPUs: tiles of bfloat16 (`bfmmla`), and dot products of four bytes (`sdot`, `udot`).

If the compiler's target lacks the instruction, the same function is plain C, so the source runs on every CPU.

`bfmmla` ignores the rounding mode: the products of two neighbours along k are added and rounded to odd, then added to C and
rounded to odd, first for k = 0 and 1. Operands and results below 2^-126 in magnitude are flushed to 0, which the derived error
bound does not include. The plain C rounds to nearest.

Source: Arm Architecture Reference Manual for A-profile (DDI 0487), BFMMLA, SDOT and UDOT by vector.
"""

from tilelang.core.dtype import DType, bfloat16, float32, int8, int32, uint8, uint32
from tilelang.core.expr import Axis, cast
from tilelang.instructions.instruction import Instruction, fragment, instruction, updates
from tilelang.instructions.operand import operand

_MANUAL = "Arm Architecture Reference Manual for A-profile (DDI 0487)"

_BFMMLA = """
static inline float4 arm_bfmmla(float4 c, ushort8 a, ushort8 b) {  // c[2 i + j] + the sum over k of a[4 i + k] * b[4 j + k]
#if defined(__ARM_FEATURE_BF16_VECTOR_ARITHMETIC)
    typedef __bf16 rows __attribute__((neon_vector_type(8)));
    __asm__("bfmmla %0.4s, %1.8h, %2.8h" : "+w"(c) : "w"(__builtin_bit_cast(rows, a)), "w"(__builtin_bit_cast(rows, b)));
    return c;
#else
    for (int i = 0; i < 2; ++i)
        for (int j = 0; j < 2; ++j)
            for (int k = 0; k < 4; ++k) {
                const uint x = a[4 * i + k], y = b[4 * j + k];
                c[2 * i + j] += __builtin_bit_cast(float, x << 16) * __builtin_bit_cast(float, y << 16);
            }
    return c;
#endif
}
"""

_DOT = """
static inline {sum}4 arm_{name}({sum}4 c, {byte}4 a, {byte}16 b) {{  // c + the sum over i of a[i] * b[4 * lane + i]
#if defined(__ARM_FEATURE_DOTPROD)
    const uint4 row = __builtin_bit_cast(uint, a);
    __asm__("{name} %0.4s, %1.16b, %2.16b" : "+w"(c) : "w"(b), "w"(row));
    return c;
#else
    for (int i = 0; i < 16; ++i) c[i / 4] += ({sum})a[i % 4] * ({sum})b[i];
    return c;
#endif
}}
"""


def _bfmmla() -> Instruction:
    m, n, k = Axis("m", 2), Axis("n", 2), Axis("k", 4)
    A = operand("A", bfloat16, "register", m, k)
    B = operand("B", bfloat16, "register", k, n, fragment=fragment(1, 8, lambda _, slot: (slot % 4, slot // 4)))
    C = operand("C", float32, "register", m, n)
    return instruction(
        "arm_bfmmla",
        means=updates(C[m, n], cast(A[m, k], float32) * cast(B[k, n], float32)),
        operands=(A, B, C),
        level="thread",
        needs=("arm_bf16",),
        error_ulps=1,  # rounded to odd, not to nearest
        template={"cpu": "{C} = arm_bfmmla({C}, {A}, {B});"},
        definitions={"cpu": _BFMMLA},
        source=f"{_MANUAL}, BFMMLA",
    )


def _dot(name: str, byte: DType, sum: DType) -> Instruction:
    n, k = Axis("n", 4), Axis("k", 4)
    A = operand("A", byte, "register", k)
    B = operand("B", byte, "register", k, n, fragment=fragment(1, 16, lambda _, slot: (slot % 4, slot // 4)))
    C = operand("C", sum, "register", n)
    words = {"int8": "char", "uint8": "uchar", "int32": "int", "uint32": "uint"}
    return instruction(
        f"arm_{name}",
        means=updates(C[n], cast(A[k], sum) * cast(B[k, n], sum)),
        operands=(A, B, C),
        level="thread",
        needs=("arm_dotprod",),
        template={"cpu": f"{{C}} = arm_{name}({{C}}, {{A}}, {{B}});"},
        definitions={"cpu": _DOT.format(name=name, byte=words[byte.name], sum=words[sum.name])},
        source=f"{_MANUAL}, {name.upper()} (vector)",
    )


arm_bfmmla = _bfmmla()
arm_sdot, arm_udot = _dot("sdot", int8, int32), _dot("udot", uint8, uint32)
