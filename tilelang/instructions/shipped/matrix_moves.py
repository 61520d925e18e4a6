"""Moves between shared memory and the operands of warp_matrix.py: `ldmatrix` and `stmatrix`, one, two or four matrices at a time.

A matrix is eight rows of 16 bytes; lane i supplies the address of row i % 8 of matrix i / 8. For loads, lanes past the last
matrix repeat the addresses of the first ones; stores always take four matrices, because two lanes must not write to the same
address. Each lane gets 32 bits of a row; in transposed form, the elements that a column of 16-bit elements has there. Names:
`left` and `right` are the operands of a product; `_trans` means that the tensor is stored transposed relative to the order that
the instruction needs.

Source: Parallel Thread Execution ISA 8.5, "ldmatrix", "stmatrix".
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
from tilelang.instructions.instruction import Fragment, Instruction, fragment, instruction, moves
from tilelang.instructions.operand import operand
from tilelang.instructions.shipped.ptx import FUNCTION, ISA, PACKED, SHARED_ADDRESS, handed, listed, numbered, registers_of_any
from tilelang.instructions.shipped.warp_matrix import (
    accumulator_16x8,
    left_16x8,
    left_16x16,
    left_16x32,
    right_8x8_pairs,
    right_16x8,
)

TWO_BYTES: tuple[DType, ...] = (float16, bfloat16, int16, uint16)
FOUR_BYTES: tuple[DType, ...] = (float32, int32, uint32)
ONE_BYTE: tuple[DType, ...] = (int8, uint8, float8_e4m3, float8_e5m2)


def _wrapper(matrices: int, bits: int, transposed: bool, store: bool) -> tuple[str, str]:
    """The name and the text of the C function around one form of the instruction."""
    word = "stmatrix" if store else "ldmatrix"
    name = f"{word}_x{matrices}" + ("_trans" if transposed else "") + ("" if bits == 16 else f"_of_{bits}_bits")
    held = registers_of_any("d", matrices * (32 // bits), bits)
    mnemonic = f"{word}.sync.aligned.m8n8.x{matrices}{'.trans' if transposed else ''}.shared.b16"
    if store:
        lines = [
            f'asm volatile("{mnemonic} [%0], {numbered(1, matrices)};"',
            f'    :: "r"(shared_address(address)), {listed("r", held.packed)} : "memory");',
        ]
        parameters = f"void* address, {held.by_value}"
    else:
        registers = [f"r[{i}]" for i in range(matrices)]
        lines = [
            f"unsigned r[{matrices}];",
            f'asm volatile("{mnemonic} {numbered(0, matrices)}, [%{matrices}];"',
            f'    : {listed("=r", registers)} : "r"(shared_address(address)) : "memory");',
            *held.unpacked("r"),
        ]
        parameters = f"{held.by_reference}, const void* address"
    body = "".join(f"    {line}\n" for line in lines)
    head = "template <class T>\n" if bits == 32 else ""
    return name, f"\n{head}{FUNCTION} void {name}({parameters}) {{\n{body}}}\n"


def _move(
    name: str, shape: tuple[int, int], types: tuple[DType, ...], held: Fragment, rows: Fragment, store: bool = False
) -> Instruction:
    """A copy of r x c elements, in the order of shared memory; held: the lanes' fragment in that order."""
    r, c = Axis("r", shape[0]), Axis("c", shape[1])
    near = operand("S" if store else "D", types, "register", r, c, fragment=held)
    far = operand("D" if store else "S", types, "shared", r, c, fragment=rows, alignment_bytes=16)
    D, S = (far, near) if store else (near, far)
    matrices = held.slots * types[0].bits // 32
    called, wrapper = _wrapper(matrices, types[0].bits, "_trans" in name, store)
    registers, address = handed(near.name, held.slots, types[0].bits), f"{{{far.name}.address}}"
    operands = f"{address}, {registers}" if store else f"{registers}, {address}"
    return instruction(
        name,
        means=moves(D[r, c], S[r, c]),
        operands=(D, S),
        level="warp",
        needs=("stmatrix" if store else "ldmatrix",),
        template={"cuda": f"{called}({operands});"},
        definitions={"cuda": (SHARED_ADDRESS, PACKED, wrapper)},
        source=f"{ISA}, {'stmatrix' if store else 'ldmatrix'}",
    )


# The addresses: 8, 16 or 32 consecutive rows of 16 or 32 bytes. `_down` visits the matrices of a column first, `_across` those of
# a row.
def _down(elements: int) -> Fragment:
    return fragment(32, elements, lambda lane, slot: (lane % 16, lane // 16 * elements + slot))


def _across(elements: int) -> Fragment:
    return fragment(32, elements, lambda lane, slot: (lane % 8 + 8 * (lane // 16), lane // 8 % 2 * elements + slot))


_ONE = fragment(32, 8, lambda lane, slot: (lane % 8, slot))
_TWO_DOWN = fragment(32, 8, lambda lane, slot: (lane % 16, slot))
_TWO_ACROSS = fragment(32, 8, lambda lane, slot: (lane % 8, lane // 8 % 2 * 8 + slot))


def _turned(held: Fragment) -> Fragment:
    """The fragment with rows and columns exchanged."""
    return Fragment(held.lanes, held.slots, held.coordinates[::-1])


# Left operands from rows along k: the matrices (0, 0), (8, 0), (0, 8), (8, 8) of a 16 x 16 tile.
ldmatrix_x4 = _move("ldmatrix_x4", (16, 16), TWO_BYTES, left_16x16, _down(8))
ldmatrix_x2 = _move("ldmatrix_x2", (16, 8), TWO_BYTES, accumulator_16x8, _TWO_DOWN)

# Right operands from rows along n, each matrix transposed on the way; x4: two of m16n8k16 side by side.
_right_16x16 = fragment(32, 8, lambda lane, slot: (2 * (lane % 4) + slot % 2 + 8 * (slot // 2 % 2), lane // 4 + 8 * (slot // 4)))
ldmatrix_x4_trans = _move("ldmatrix_x4_trans", (16, 16), TWO_BYTES, _right_16x16, _down(8))
ldmatrix_x2_trans = _move("ldmatrix_x2_trans", (16, 8), TWO_BYTES, right_16x8, _TWO_DOWN)
ldmatrix_x1_trans = _move("ldmatrix_x1_trans", (8, 8), TWO_BYTES, right_8x8_pairs, _ONE)

# Right operands from rows along k: B is stored as [n, k].
ldmatrix_x4_right = _move("ldmatrix_x4_right", (16, 16), TWO_BYTES, _turned(_right_16x16), _across(8))
ldmatrix_x2_right = _move("ldmatrix_x2_right", (8, 16), TWO_BYTES, _turned(right_16x8), _TWO_ACROSS)
ldmatrix_x1_right = _move("ldmatrix_x1_right", (8, 8), TWO_BYTES, _turned(right_8x8_pairs), _ONE)

# Left operands from rows along m: A is stored as [k, m].
ldmatrix_x4_left_trans = _move("ldmatrix_x4_left_trans", (16, 16), TWO_BYTES, _turned(left_16x16), _across(8))
ldmatrix_x2_left_trans = _move("ldmatrix_x2_left_trans", (8, 16), TWO_BYTES, _turned(accumulator_16x8), _TWO_ACROSS)

# Elements of four bytes and of one, which cannot be transposed: rows along k for both operands.
ldmatrix_x4_of_4_bytes = _move("ldmatrix_x4_of_4_bytes", (16, 8), FOUR_BYTES, left_16x8, _down(4))
ldmatrix_x4_of_1_byte = _move("ldmatrix_x4_of_1_byte", (16, 32), ONE_BYTE, left_16x32, _down(16))
ldmatrix_x4_right_of_4_bytes = _move(
    "ldmatrix_x4_right_of_4_bytes",
    (16, 8),
    FOUR_BYTES,
    fragment(32, 4, lambda lane, slot: (lane // 4 + 8 * (slot // 2), lane % 4 + 4 * (slot % 2))),
    _across(4),
)
ldmatrix_x4_right_of_1_byte = _move(
    "ldmatrix_x4_right_of_1_byte",
    (16, 32),
    ONE_BYTE,
    fragment(32, 16, lambda lane, slot: (lane // 4 + 8 * (slot // 8), 4 * (lane % 4) + slot % 4 + 16 * (slot // 4 % 2))),
    _across(16),
)

# Results in 16 bits to shared memory: rows along n as accumulators have them, or transposed on the way.
_two_accumulators: Fragment = fragment(
    32, 8, lambda lane, slot: (lane // 4 + 8 * (slot // 2 % 2), 8 * (slot // 4) + 2 * (lane % 4) + slot % 2)
)
stmatrix_x4 = _move("stmatrix_x4", (16, 16), TWO_BYTES, _two_accumulators, _down(8), store=True)
stmatrix_x4_trans = _move("stmatrix_x4_trans", (16, 16), TWO_BYTES, _turned(_two_accumulators), _across(8), store=True)
