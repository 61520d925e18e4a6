"""Dot products of four bytes by one thread, accumulated in 32 bits.

Source: Parallel Thread Execution ISA 8.5, "dp4a"; AMD Instinct MI200 Instruction Set Architecture, V_DOT4_I32_I8; RDNA3 Instruction Set
Architecture, V_DOT4_I32_IU8.
"""

from tilelang.core.dtype import DType, int8, int32, uint8, uint32
from tilelang.core.expr import Axis, cast
from tilelang.instructions.instruction import Instruction, instruction, updates
from tilelang.instructions.operand import operand
from tilelang.instructions.shipped.ptx import FUNCTION, ISA, PACKED, places, slots


def _dp4a(name: str, type: DType, result: DType) -> Instruction:
    k = Axis("k", 4)
    A, B = (operand(letter, type, "register", k) for letter in "AB")
    C = operand("C", result, "register")
    a, b, c = slots("a", 4, type), slots("b", 4, type), slots("c", 1, result)
    signed = type == int8
    head = f"\n{FUNCTION} void {name}({c.type}& c, {a.by_value}, {b.by_value}) {{\n"
    short = "s32" if signed else "u32"
    cuda = f'    asm("dp4a.{short}.{short} %0, %1, %2, %0;" : "+r"(c) : "r"({a.packed[0]}), "r"({b.packed[0]}));\n'
    older = "sdot4" if signed else "udot4"
    newer = f"sudot4(true, {a.packed[0]}, true, {b.packed[0]}, c, false)"
    hip = f"    c = __builtin_amdgcn_{older}({a.packed[0]}, {b.packed[0]}, c, false);\n"
    if signed:
        hip = f"#if defined(__GFX11__) || defined(__GFX12__)\n    c = __builtin_amdgcn_{newer};\n#else\n{hip}#endif\n"
    text = f"{name}({{C[0]}}, {places('A', 4)}, {places('B', 4)});"
    return instruction(
        name,
        means=updates(C[()], cast(A[k], result) * cast(B[k], result)),
        operands=(A, B, C),
        level="thread",
        needs=("dp4a",),
        template={"cuda": text, "hip": text},
        definitions={"cuda": (PACKED, f"{head}{cuda}}}\n"), "hip": (PACKED, f"{head}{hip}}}\n")},
        source=f"{ISA}, dp4a",
    )


dp4a = _dp4a("dp4a", int8, int32)
dp4a_uint8 = _dp4a("dp4a_uint8", uint8, uint32)
