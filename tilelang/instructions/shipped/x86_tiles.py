"""Products of tiles on x86 CPUs with AMX: tiles of 16 rows of 64 bytes, accumulated in 16 x 16 floats or 32-bit integers.

The compiler configures the tile registers once per function (`ldtilecfg`) and allocates them. So the operands are arrays in
memory, in which each tile is 1024 contiguous bytes: A and B in shared memory, packed by a layout, and C an array of the thread.
One instruction loads C, A and B into tiles and stores C; `..._m32n32k128` and `..._m32n32k256` keep four tiles of C over four
steps of k, so that loads take less time than products. If the compiler's target lacks AMX, the same function is plain C.

`tdpbf16ps` ignores the rounding mode: it adds the even and the odd products of a row separately, rounds each sum to nearest, ties
to even, and then adds both to C. It flushes operands and results below 2^-126 in magnitude to 0, which the derived error bound
does not include. Integers wrap. On Linux, a process must request permission to use the tiles (lowering/drivers/extensions.py).

Source: Intel 64 and IA-32 Architectures Software Developer's Manual, volume 2, TDPBF16PS and TDPBSSD; Intel 64 and IA-32 Architectures
Optimization Reference Manual, chapter 20, Intel Advanced Matrix Extensions, for the blocks of four tiles.
"""

from tilelang.core.dtype import DType, bfloat16, float32, int8, int32, uint8
from tilelang.core.expr import Axis, cast
from tilelang.instructions.instruction import Fragment, Instruction, fragment, instruction, updates
from tilelang.instructions.operand import operand

ROWS, ROW_BYTES = 16, 64  # of a tile

_TILES = """
typedef int x86_tile __attribute__((vector_size(1024), aligned(64)));
"""

_PRODUCT = """
static inline void {name}({sum}* c, const {left}* a, const {right}* b) {{
    // c: {tiles} x {tiles} tiles of 16 x 16; a: {steps} x {tiles} of 16 rows; b: {steps} x {tiles} of 16 parts of k for 16 columns
#if defined({macro})
    x86_tile sums[{tiles}][{tiles}], rows[{tiles}];
#pragma unroll
    for (int i = 0; i < {tiles}; ++i)
#pragma unroll
        for (int j = 0; j < {tiles}; ++j) sums[i][j] = __builtin_ia32_tileloadd64_internal(16, 64, c + ({tiles} * i + j) * 256, 64);
#pragma unroll
    for (int step = 0; step < {steps}; ++step) {{
#pragma unroll
        for (int i = 0; i < {tiles}; ++i)
            rows[i] = __builtin_ia32_tileloadd64_internal(16, 64, a + ({tiles} * step + i) * {count}, 64);
#pragma unroll
        for (int j = 0; j < {tiles}; ++j) {{
            const x86_tile columns = __builtin_ia32_tileloadd64_internal(16, 64, b + ({tiles} * step + j) * {count}, 64);
#pragma unroll
            for (int i = 0; i < {tiles}; ++i)
                sums[i][j] = __builtin_ia32_{builtin}_internal(16, 64, 64, sums[i][j], rows[i], columns);
        }}
    }}
#pragma unroll
    for (int i = 0; i < {tiles}; ++i)
#pragma unroll
        for (int j = 0; j < {tiles}; ++j) __builtin_ia32_tilestored64_internal(16, 64, c + ({tiles} * i + j) * 256, 64, sums[i][j]);
#else
    for (int step = 0; step < {steps}; ++step)
        for (int i = 0; i < {rows}; ++i)
            for (int part = 0; part < 16; ++part)
                for (int k = 0; k < {together}; ++k) {{
                    const {left} x = a[({tiles} * step + i / 16) * {count} + i % 16 * {width} + part * {together} + k];
                    for (int j = 0; j < {rows}; ++j) {{
                        const {right} y = b[({tiles} * step + j / 16) * {count} + part * {width} + j % 16 * {together} + k];
                        c[({tiles} * (i / 16) + j / 16) * 256 + i % 16 * 16 + j % 16] += {product};
                    }}
                }}
#endif
}}
"""

_OF_BITS = "__builtin_bit_cast(float, (uint)x << 16) * __builtin_bit_cast(float, (uint)y << 16)"
_C_TYPES = {"bfloat16": "ushort", "int8": "char", "uint8": "uchar", "float32": "float", "int32": "int"}
_LETTERS = {"int8": "s", "uint8": "u"}


def _maps(tiles: int, steps: int, together: int) -> tuple[Fragment, Fragment, Fragment]:
    """The positions of the elements of A, B and C, tile after tile; together: the elements in 32 bits."""
    width = 16 * together
    count = ROWS * width
    a = fragment(1, steps * tiles * count, lambda _, s: (
        s // count % tiles * 16 + s % count // width, s // count // tiles * width + s % width))  # fmt: skip
    b = fragment(1, steps * tiles * count, lambda _, s: (
        s // count // tiles * width + s % count // width * together + s % together,
        s // count % tiles * 16 + s % width // together))  # fmt: skip
    c = fragment(1, tiles * tiles * 256, lambda _, s: (s // 256 // tiles * 16 + s % 256 // 16, s // 256 % tiles * 16 + s % 16))
    return a, b, c


def _tile_product(builtin: str, types: tuple[DType, DType, DType], need: str, tiles: int = 1, steps: int = 1) -> Instruction:
    """C += A B for tiles x tiles tiles of C, over several steps of 64 bytes along k."""
    together = 32 // types[0].bits
    rows, depth = ROWS * tiles, steps * 16 * together
    name = f"x86_{builtin}" if tiles == steps == 1 else f"x86_{builtin}_m{rows}n{rows}k{depth}"
    m, n, k = Axis("m", rows), Axis("n", rows), Axis("k", depth)
    maps = _maps(tiles, steps, together)
    A = operand("A", types[0], "shared", m, k, fragment=maps[0], alignment_bytes=64)
    B = operand("B", types[1], "shared", k, n, fragment=maps[1], alignment_bytes=64)
    C = operand("C", types[2], "register", m, n, fragment=maps[2])
    left, right, sum = (_C_TYPES[t.name] for t in types)
    text = _PRODUCT.format(
        name=name, builtin=builtin, macro=f"__{need.upper()}__", left=left, right=right, sum=sum, tiles=tiles, steps=steps, rows=rows,
        together=together, width=16 * together, count=256 * together,
        product=_OF_BITS if types[0] == bfloat16 else "(int)x * (int)y",
    )  # fmt: skip
    return instruction(
        name,
        means=updates(C[m, n], cast(A[m, k], types[2]) * cast(B[k, n], types[2])),
        operands=(A, B, C),
        level="thread",
        needs=(need,),
        template={"cpu": f"{name}({{C.address}}, {{A.address}}, {{B.address}});"},
        definitions={"cpu": (_TILES, text)},
        source=f"Intel 64 and IA-32 Architectures Software Developer's Manual, volume 2, {builtin.upper()}",
    )


def _of_bytes(left: DType, right: DType, tiles: int = 1, steps: int = 1) -> Instruction:
    return _tile_product(f"tdpb{_LETTERS[left.name]}{_LETTERS[right.name]}d", (left, right, int32), "amx_int8", tiles, steps)


x86_tdpbf16ps = _tile_product("tdpbf16ps", (bfloat16, bfloat16, float32), "amx_bf16")
x86_tdpbf16ps_m32n32k128 = _tile_product("tdpbf16ps", (bfloat16, bfloat16, float32), "amx_bf16", 2, 4)
x86_tdpbssd, x86_tdpbusd = (_of_bytes(left, int8) for left in (int8, uint8))
x86_tdpbssd_m32n32k256, x86_tdpbusd_m32n32k256 = (_of_bytes(left, int8, 2, 4) for left in (int8, uint8))
