"""Matrix products on AMD GPUs: `mfma` of 64 lanes (CDNA), `wmma` of 32 lanes (RDNA 3); sums in float32.

With `mfma`, a lane holds four neighbours along k of one row of A and of one column of B; of the sums, it holds groups of four
rows of one column. With `wmma`, it holds a whole row of A and a whole column of B, and the upper half of the wave repeats those
of the lower half; of the sums, it holds every other row of one column. CDNA 2 flushes denormal 16-bit inputs to zero.

Source: AMD Matrix Instruction Calculator, "Matrix element to register mapping"; AMD Instinct MI200 Instruction Set Architecture,
VOP3P-MAI; RDNA3 Instruction Set Architecture, "Wave Matrix Multiply Accumulate".
"""

from tilelang.core.dtype import DType, bfloat16, float16, float32
from tilelang.core.expr import Axis, cast
from tilelang.instructions.instruction import Fragment, Instruction, fragment, instruction, updates
from tilelang.instructions.operand import operand
from tilelang.instructions.shipped.ptx import FUNCTION, Slots, places, slots

left_32x8: Fragment = fragment(64, 4, lambda lane, slot: (lane % 32, 4 * (lane // 32) + slot))
right_8x32: Fragment = fragment(64, 4, lambda lane, slot: (4 * (lane // 32) + slot, lane % 32))
sums_32x32: Fragment = fragment(64, 16, lambda lane, slot: (8 * (slot // 4) + 4 * (lane // 32) + slot % 4, lane % 32))

left_16x16: Fragment = fragment(64, 4, lambda lane, slot: (lane % 16, 4 * (lane // 16) + slot))
right_16x16: Fragment = fragment(64, 4, lambda lane, slot: (4 * (lane // 16) + slot, lane % 16))
sums_16x16: Fragment = fragment(64, 4, lambda lane, slot: (4 * (lane // 16) + slot, lane % 16))

left_rows: Fragment = fragment(32, 16, lambda lane, slot: (lane % 16, slot))
right_columns: Fragment = fragment(32, 16, lambda lane, slot: (slot, lane % 16))
sums_every_other: Fragment = fragment(32, 8, lambda lane, slot: (2 * slot + lane // 16, lane % 16))


def _wrapper(name: str, builtin: str, element: str, rest: str, a: Slots, b: Slots, c: Slots) -> str:
    """The C function for one of clang's builtins: C slot by slot by reference, A and B by value, as bits."""
    return f"""
{FUNCTION} void {name}({c.by_reference},
    {a.by_value},
    {b.by_value}) {{
    typedef float Sums __attribute__((ext_vector_type({c.count})));
    typedef unsigned short Bits __attribute__((ext_vector_type({a.count})));
    typedef {element} Elements __attribute__((ext_vector_type({a.count})));
    const Bits a = {{{", ".join(a.names)}}}, b = {{{", ".join(b.names)}}};
    Sums c = {{{", ".join(c.names)}}};
    c = {builtin}(__builtin_bit_cast(Elements, a), __builtin_bit_cast(Elements, b), c{rest});
    {" ".join(f"{slot} = c[{i}];" for i, slot in enumerate(c.names))}
}}
"""


def _product(
    name: str, shape: tuple[int, int, int], type: DType, maps: tuple[Fragment, Fragment, Fragment], builtin: str, needs: str
) -> Instruction:
    m, n, k = (Axis(axis, extent) for axis, extent in zip("mnk", shape, strict=True))
    A = operand("A", type, "register", m, k, fragment=maps[0])
    B = operand("B", type, "register", k, n, fragment=maps[1])
    C = operand("C", float32, "register", m, n, fragment=maps[2])
    a, b, c = slots("a", maps[0].slots, type), slots("b", maps[1].slots, type), slots("c", maps[2].slots, float32)
    element = "_Float16" if type == float16 else "short"
    wrapper = _wrapper(name, builtin, element, ", 0, 0, 0" if needs == "mfma" else "", a, b, c)
    return instruction(
        name,
        means=updates(C[m, n], cast(A[m, k], float32) * cast(B[k, n], float32)),
        operands=(A, B, C),
        level="warp",
        lanes=maps[0].lanes,
        error_ulps=1,
        needs=(needs,),
        template={"hip": f"{name}({places('C', c.count)}, {places('A', a.count)}, {places('B', b.count)});"},
        definitions={"hip": wrapper},
        source="AMD Matrix Instruction Calculator",
    )


_WIDE, _NARROW = (left_32x8, right_8x32, sums_32x32), (left_16x16, right_16x16, sums_16x16)
_WAVE_32 = (left_rows, right_columns, sums_every_other)
_BUILTIN = "__builtin_amdgcn"

mfma_32x32x8 = _product("mfma_32x32x8", (32, 32, 8), float16, _WIDE, f"{_BUILTIN}_mfma_f32_32x32x8f16", "mfma")
mfma_16x16x16 = _product("mfma_16x16x16", (16, 16, 16), float16, _NARROW, f"{_BUILTIN}_mfma_f32_16x16x16f16", "mfma")
mfma_32x32x8_bfloat16 = _product(
    "mfma_32x32x8_bfloat16", (32, 32, 8), bfloat16, _WIDE, f"{_BUILTIN}_mfma_f32_32x32x8bf16_1k", "mfma"
)
mfma_16x16x16_bfloat16 = _product(
    "mfma_16x16x16_bfloat16", (16, 16, 16), bfloat16, _NARROW, f"{_BUILTIN}_mfma_f32_16x16x16bf16_1k", "mfma"
)
wmma_16x16x16 = _product("wmma_16x16x16", (16, 16, 16), float16, _WAVE_32, f"{_BUILTIN}_wmma_f32_16x16x16_f16_w32", "wmma")
wmma_16x16x16_bfloat16 = _product(
    "wmma_16x16x16_bfloat16", (16, 16, 16), bfloat16, _WAVE_32, f"{_BUILTIN}_wmma_f32_16x16x16_bf16_w32", "wmma"
)
