"""Moves of 16 bytes by one thread between registers and global or shared memory.

The emitter writes the same access for a move that is vectorized that far; these say that it has to be one.
Source: CUDA C++ Programming Guide, "Device Memory Accesses"; AMD Instinct MI200 Instruction Set Architecture, GLOBAL_LOAD_DWORDX4,
DS_READ_B128.
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
from tilelang.instructions.instruction import Instruction, fragment, instruction, moves
from tilelang.instructions.operand import operand
from tilelang.instructions.shipped.ptx import FUNCTION, PACKED, places, slots_of_any

_TYPES: dict[int, tuple[DType, ...]] = {
    4: (float32, int32, uint32), 2: (float16, bfloat16, int16, uint16), 1: (int8, uint8, float8_e4m3, float8_e5m2),
}  # fmt: skip
_WORDS = """
struct alignas(16) Words {
    unsigned of[4];
};
"""


def _wrapper(name: str, count: int, load: bool) -> str:
    held = slots_of_any("d", count, 128 // count)
    if load:
        lines = ["const Words words = *(const Words*)address;", *held.unpacked("words.of")]
        parameters = f"{held.by_reference}, const void* address"
    else:
        lines = [f"*(Words*)address = Words{{{{{', '.join(held.packed if count > 4 else bits_of(held.names))}}}}};"]
        parameters = f"void* address, {held.by_value}"
    body = "".join(f"    {line}\n" for line in lines)
    return f"\ntemplate <class T>\n{FUNCTION} void {name}({parameters}) {{\n{body}}}\n"


def bits_of(names: list[str]) -> list[str]:
    """32-bit elements as their bits."""
    return [f"bits_of({name})" for name in names]


def _move(memory: str, size: int, load: bool) -> Instruction:
    count = 16 // size
    e = Axis("e", count)
    run = fragment(1, count, lambda lane, slot: slot)
    near = operand("D" if load else "S", _TYPES[size], "register", e, fragment=run)
    far = operand("S" if load else "D", _TYPES[size], memory, e, fragment=run, alignment_bytes=16)
    D, S = (near, far) if load else (far, near)
    word = "load" if load else "store"
    called = f"{word}_16_of_{size}"
    text = f"{called}({places('D', count)}, {{S.address}});" if load else f"{called}({{D.address}}, {places('S', count)});"
    definitions = (PACKED, _WORDS, _wrapper(called, count, load))
    ending = {4: "_of_4_bytes", 2: "", 1: "_of_1_byte"}[size]
    return instruction(
        f"{word}_{memory}_16{ending}",
        means=moves(D[e], S[e]),
        operands=(D, S),
        level="thread",
        template={"cuda": text, "hip": text},
        definitions={"cuda": definitions, "hip": definitions},
        source="CUDA C++ Programming Guide, Device Memory Accesses",
    )


MOVES = tuple(_move(memory, size, load) for memory in ("global", "shared") for size in (1, 2, 4) for load in (True, False))
