"""Matrix products of a warp of 32: `mma.sync` of 16 rows, 8 columns and 4 to 32 steps along k.

Lane maps: group = lane / 4 and place = lane % 4 number the rows and columns; in a 16 x 8 accumulator, four lanes share two rows.
In the operands, the elements of a 32-bit register (one tf32, two 16-bit floats, four bytes) are neighbours along k. The loads of
matrix_moves.py produce these maps, so no data is exchanged between a load and a product.

Source: Parallel Thread Execution ISA 8.5, "Matrix Fragments for mma.m16n8k4" and its neighbours; NVIDIA CUTLASS,
mma_traits_sm80.hpp.
"""

from tilelang.core.dtype import DType, bfloat16, float8_e4m3, float8_e5m2, float16, float32, int8, int32, uint8
from tilelang.core.expr import Axis, cast
from tilelang.instructions.instruction import Fragment, Instruction, fragment, instruction, updates
from tilelang.instructions.operand import operand
from tilelang.instructions.shipped.ptx import (
    FUNCTION,
    ISA,
    PACKED,
    ROUNDED_TO_TF32,
    Slots,
    handed,
    listed,
    numbered,
    places,
    registers,
    slots,
)

accumulator_16x8: Fragment = fragment(32, 4, lambda lane, slot: (lane // 4 + 8 * (slot // 2), 2 * (lane % 4) + slot % 2))

# Of 16-bit elements; two m16n8k8 operands side by side are one of m16n8k16.
left_16x8_pairs: Fragment = accumulator_16x8
right_8x8_pairs: Fragment = fragment(32, 2, lambda lane, slot: (2 * (lane % 4) + slot, lane // 4))
left_16x16: Fragment = fragment(
    32, 8, lambda lane, slot: (lane // 4 + 8 * (slot // 2 % 2), 2 * (lane % 4) + slot % 2 + 8 * (slot // 4))
)
right_16x8: Fragment = fragment(32, 4, lambda lane, slot: (2 * (lane % 4) + slot % 2 + 8 * (slot // 2), lane // 4))

# Of 32-bit elements.
left_16x4: Fragment = fragment(32, 2, lambda lane, slot: (lane // 4 + 8 * slot, lane % 4))
right_4x8: Fragment = fragment(32, 1, lambda lane, slot: (lane % 4, lane // 4))
left_16x8: Fragment = fragment(32, 4, lambda lane, slot: (lane // 4 + 8 * (slot % 2), lane % 4 + 4 * (slot // 2)))
right_8x8: Fragment = fragment(32, 2, lambda lane, slot: (lane % 4 + 4 * slot, lane // 4))

# Of bytes.
left_16x16_bytes: Fragment = fragment(32, 8, lambda lane, slot: (lane // 4 + 8 * (slot // 4), 4 * (lane % 4) + slot % 4))
right_16x8_bytes: Fragment = fragment(32, 4, lambda lane, slot: (4 * (lane % 4) + slot, lane // 4))
left_16x32: Fragment = fragment(
    32, 16, lambda lane, slot: (lane // 4 + 8 * (slot // 4 % 2), 4 * (lane % 4) + slot % 4 + 16 * (slot // 8))
)
right_32x8: Fragment = fragment(32, 8, lambda lane, slot: (4 * (lane % 4) + slot % 4 + 16 * (slot // 4), lane // 4))


def _simulated() -> Instruction:
    """A float32 instruction with the fragments of the tf32 instruction of that shape, for the simulator only."""
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
        source=f"{ISA}, Matrix Fragments for mma.m16n8k8 (.tf32): the maps alone",
    )


simulated_mma_m16n8k8 = _simulated()


def _registers(given: Slots, tf32: bool = False) -> tuple[str, list[str]]:
    """The constraint of an operand's registers in inline assembly, and their expressions."""
    if tf32:
        return "r", [f"rounded_to_tf32({name})" for name in given.names]
    if given.bits == 32:
        return ("f" if given.type == "float" else "r"), given.names
    return "r", given.packed


def _wrapper(name: str, mnemonic: str, a: Slots, b: Slots, c: Slots, tf32: bool) -> str:
    """The C function around one `mma.sync`: C slot by slot by reference, A and B by value."""
    held = 32 // c.bits  # elements of C in a register
    constraint, sums = _registers(c)
    before, after = "", ""
    if held > 1:
        sums = [f"c[{i}]" for i in range(c.count // held)]
        before = f"    unsigned c[] = {{{', '.join(c.packed)}}};\n"
        after = "".join(f"    {line}\n" for line in c.unpacked("c"))
    (kind, left), (_, right) = _registers(a, tf32), _registers(b, tf32)
    d = numbered(0, len(sums))
    operands = f"{d}, {numbered(len(sums), len(left))}, {numbered(len(sums) + len(left), len(right))}, {d};"
    return (
        f"\n{FUNCTION} void {name}({c.by_reference},\n    {a.by_value},\n    {b.by_value}) {{\n{before}"
        f'    asm volatile("mma.sync.aligned.{mnemonic} {operands}"\n'
        f"        : {listed('+' + constraint, sums)}\n"
        f"        : {listed(kind, left)},\n          {listed(kind, right)});\n{after}}}\n"
    )


def _product(
    name: str,
    k: int,
    types: tuple[DType, DType, DType],
    maps: tuple[Fragment, Fragment],
    mnemonic: str,
    needs: str,
    licences: tuple[str, ...] = (),
) -> Instruction:
    """C += A B with the element types of A, B and C. Floating-point sums are truncated, not rounded, which counts as one ulp."""
    m, n, kk = Axis("m", 16), Axis("n", 8), Axis("k", k)
    A = operand("A", types[0], "register", m, kk, fragment=maps[0])
    B = operand("B", types[1], "register", kk, n, fragment=maps[1])
    C = operand("C", types[2], "register", m, n, fragment=accumulator_16x8)
    wide = int32 if types[2] == int32 else float32
    a, b = (registers(o.name.lower(), held.slots, o.dtype) for o, held in zip((A, B), maps, strict=True))
    c = slots("c", accumulator_16x8.slots, C.dtype)
    factors = ", ".join(handed(o.name, held.slots, o.dtype.bits) for o, held in zip((A, B), maps, strict=True))
    tf32 = "tf32" in licences
    wrapper = _wrapper(name, mnemonic, a, b, c, tf32)
    return instruction(
        name,
        means=updates(C[m, n], cast(A[m, kk], wide) * cast(B[kk, n], wide)),
        operands=(A, B, C),
        level="warp",
        error_ulps=0 if wide == int32 else 1,  # Fasi et al., Numerical behavior of NVIDIA tensor cores, 2021
        needs=(needs,),
        licences=licences,
        template={"cuda": f"{name}({places('C', c.count)}, {factors});"},
        definitions={"cuda": (PACKED, *([ROUNDED_TO_TF32] if tf32 else []), wrapper)},
        source=f"{ISA}, mma, Matrix Fragments for mma.m16n8k{k}",
    )


_EIGHT, _SIXTEEN = (left_16x8_pairs, right_8x8_pairs), (left_16x16, right_16x8)
_BYTES_16, _BYTES_32 = (left_16x16_bytes, right_16x8_bytes), (left_16x32, right_32x8)
_HALF, _BRAIN, _TF32 = (float16, float16, float32), (bfloat16, bfloat16, float32), (float32, float32, float32)
_HALF_SUM = (float16, float16, float16)

mma_m16n8k8 = _product("mma_m16n8k8", 8, _HALF, _EIGHT, "m16n8k8.row.col.f32.f16.f16.f32", "mma_m16n8k8")
mma_m16n8k16 = _product("mma_m16n8k16", 16, _HALF, _SIXTEEN, "m16n8k16.row.col.f32.f16.f16.f32", "mma_m16n8k16")
mma_m16n8k8_bfloat16 = _product("mma_m16n8k8_bfloat16", 8, _BRAIN, _EIGHT, "m16n8k8.row.col.f32.bf16.bf16.f32", "mma_m16n8k16")
mma_m16n8k16_bfloat16 = _product(
    "mma_m16n8k16_bfloat16", 16, _BRAIN, _SIXTEEN, "m16n8k16.row.col.f32.bf16.bf16.f32", "mma_m16n8k16"
)
mma_m16n8k8_float16_sum = _product(
    "mma_m16n8k8_float16_sum", 8, _HALF_SUM, _EIGHT, "m16n8k8.row.col.f16.f16.f16.f16", "mma_m16n8k8", ("float16_accumulate",)
)
mma_m16n8k16_float16_sum = _product(
    "mma_m16n8k16_float16_sum",
    16,
    _HALF_SUM,
    _SIXTEEN,
    "m16n8k16.row.col.f16.f16.f16.f16",
    "mma_m16n8k16",
    ("float16_accumulate",),
)
mma_m16n8k4_tf32 = _product(
    "mma_m16n8k4_tf32", 4, _TF32, (left_16x4, right_4x8), "m16n8k4.row.col.f32.tf32.tf32.f32", "mma_tf32", ("tf32",)
)
mma_m16n8k8_tf32 = _product(
    "mma_m16n8k8_tf32", 8, _TF32, (left_16x8, right_8x8), "m16n8k8.row.col.f32.tf32.tf32.f32", "mma_tf32", ("tf32",)
)


def _of_bytes(k: int, left: DType, right: DType, result: DType, needs: str) -> Instruction:
    """Products of bytes, integers or floats, with k = 16 or 32."""
    short = {"int8": "s8", "uint8": "u8", "float8_e4m3": "e4m3", "float8_e5m2": "e5m2", "int32": "s32", "float32": "f32"}
    a, b, c = (short[t.name] for t in (left, right, result))
    name = f"mma_m16n8k{k}_{left.name}" + ("" if left == right else f"_{right.name}")
    maps = _BYTES_16 if k == 16 else _BYTES_32
    return _product(name, k, (left, right, result), maps, f"m16n8k{k}.row.col.{c}.{a}.{b}.{c}", needs)


mma_m16n8k16_int8, mma_m16n8k32_int8 = (_of_bytes(k, int8, int8, int32, "mma_int8") for k in (16, 32))
mma_m16n8k16_uint8, mma_m16n8k32_uint8 = (_of_bytes(k, uint8, uint8, int32, "mma_int8") for k in (16, 32))
mma_m16n8k32_float8_e4m3 = _of_bytes(32, float8_e4m3, float8_e4m3, float32, "mma_float8")
mma_m16n8k32_float8_e5m2 = _of_bytes(32, float8_e5m2, float8_e5m2, float32, "mma_float8")
