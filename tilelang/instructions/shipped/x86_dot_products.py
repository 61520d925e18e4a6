"""Dot products along k in each 32-bit lane of a vector on x86 CPUs: of two bfloat16 (`vdpbf16ps`), or of four bytes (`vpdpbusd`).

A is a few neighbours along k of one row, which are broadcast to all lanes; B has the corresponding neighbours along k for each
lane. With the layout `(n // columns, k // 2, n % columns, k % 2)`, these are contiguous, and a single load fills a vector of B.
If the compiler's target lacks the instruction, the same function is plain C, so the source runs on every CPU.

`vdpbf16ps` ignores the rounding mode: it adds the odd product, then the even one, and rounds each sum to nearest, ties to even.
It flushes operands and results below 2^-126 in magnitude to 0, which neither the derived error bound nor the plain C does.
`vpdpbusd` wraps in 32 bits, as the language's int32 does; `vpdpbusds`, which is not used, saturates.

Source: Intel 64 and IA-32 Architectures Software Developer's Manual, volume 2, VDPBF16PS and VPDPBUSD.
"""

from tilelang.core.dtype import DType, bfloat16, float32, int8, int32, uint8
from tilelang.core.expr import Axis, cast
from tilelang.instructions.instruction import Instruction, fragment, instruction, updates
from tilelang.instructions.operand import operand

LANES = (16, 8, 4)  # of the registers of 512, 256 and 128 bits
_MANUAL = "Intel 64 and IA-32 Architectures Software Developer's Manual, volume 2"

_BFLOAT16 = """
static inline float{n} {name}(float{n} c, ushort2 a, ushort{all} b) {{  // c + a[0] * b[even] + a[1] * b[odd]; bfloat16 by their bits
#if defined(__AVX512BF16__){narrow}
    typedef __bf16 pairs __attribute__((vector_size({bytes})));
    const uint{n} row = __builtin_bit_cast(uint, a);
    return __builtin_ia32_dpbf16ps_{bits}(c, __builtin_bit_cast(pairs, row), __builtin_bit_cast(pairs, b));
#else
    const uint{n} both = __builtin_bit_cast(uint{n}, b);
    c += __builtin_bit_cast(float, (uint)a[1] << 16) * __builtin_bit_cast(float{n}, both & 0xffff0000u);
    c += __builtin_bit_cast(float, (uint)a[0] << 16) * __builtin_bit_cast(float{n}, both << 16);
    return c;
#endif
}}
"""

_BYTES = """
static inline int{n} {name}(int{n} c, uchar4 a, char{all} b) {{  // c + the sum over i of a[i] * b[4 * lane + i]
#if defined(__AVX512VNNI__){narrow}
    typedef int lanes __attribute__((vector_size({bytes})));
    const int{n} row = __builtin_bit_cast(int, a);
    return __builtin_ia32_vpdpbusd{bits}({arguments});
#else
    const int{n} four = __builtin_bit_cast(int{n}, b);
    c += (int)a[0] * (four << 24 >> 24);
    c += (int)a[1] * (four << 16 >> 24);
    c += (int)a[2] * (four << 8 >> 24);
    c += (int)a[3] * (four >> 24);
    return c;
#endif
}}
"""


def _product(stem: str, lanes: int, types: tuple[DType, DType, DType], text: str, need: str, arguments: str = "") -> Instruction:
    """C[n] += A[k] B[k, n] with the element types of A, B and C, k filling 32 bits."""
    name = stem if lanes == LANES[0] else f"{stem}_{lanes}"
    together = 32 // types[0].bits
    n, k = Axis("n", lanes), Axis("k", together)
    A = operand("A", types[0], "register", k)
    B = operand(
        "B", types[1], "register", k, n, fragment=fragment(1, lanes * together, lambda _, s: (s % together, s // together))
    )
    C = operand("C", types[2], "register", n)
    words = {
        "name": name, "n": lanes, "all": lanes * together, "bytes": 4 * lanes, "bits": 32 * lanes,
        "narrow": "" if lanes == LANES[0] else " && defined(__AVX512VL__)", "arguments": arguments,
    }  # fmt: skip
    return instruction(
        name,
        means=updates(C[n], cast(A[k], types[2]) * cast(B[k, n], types[2])),
        operands=(A, B, C),
        level="thread",
        needs=(need,),
        template={"cpu": f"{{C}} = {name}({{C}}, {{A}}, {{B}});"},
        definitions={"cpu": text.format(**words)},
        source=f"{_MANUAL}, {stem.removeprefix('x86_').upper()}",
    )


def _of_bfloat16(lanes: int) -> Instruction:
    return _product("x86_vdpbf16ps", lanes, (bfloat16, bfloat16, float32), _BFLOAT16, "avx512_bf16")


def _of_bytes(lanes: int) -> Instruction:
    given = "(lanes)c, (lanes)row, __builtin_bit_cast(lanes, b)"
    return _product("x86_vpdpbusd", lanes, (uint8, int8, int32), _BYTES, "avx512_vnni", given)


x86_vdpbf16ps, x86_vdpbf16ps_8, x86_vdpbf16ps_4 = map(_of_bfloat16, LANES)
x86_vpdpbusd, x86_vpdpbusd_8, x86_vpdpbusd_4 = map(_of_bytes, LANES)
