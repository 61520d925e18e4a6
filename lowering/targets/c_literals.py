"""Literals of the kernel IR as C: the shortest decimals that give back the same bits, and integers that no C rule widens."""

from __future__ import annotations

import math
import struct

from tilelang.expr import Const
from tilelang.lowering.targets.c_dialect import value_type


def literal(const: Const, bits: bool = False) -> str:
    """A literal in the C type of its values; `bits`: a 16-bit float as its bits."""
    t, v = const.type, const.value
    if t.kind == "bool":
        return "1" if v else "0"
    if t.is_float:
        x = float(v)
        if t.bits == 16:
            pattern = float16_bits(x) if t.name == "float16" else bfloat16_bits(x)
            if bits:
                return f"(ushort)0x{pattern:04x}"
            x = struct.unpack("<e", struct.pack("<H", pattern))[0] if t.name == "float16" else _from_bits32(pattern << 16)
        return _double(x) if t.bits == 64 else _float(x)
    number = int(v) & (2**t.bits - 1)
    if t.kind == "int" and number >= 2 ** (t.bits - 1):
        number -= 2**t.bits
    suffix = {"uint32": "u", "uint64": "ul", "int64": "L"}.get(t.name, "")
    if t.kind == "int" and number == -(2 ** (t.bits - 1)) and t.bits >= 32:
        return f"({number + 1}{suffix} - 1)"  # C reads the minus and the number apart
    return f"{number}{suffix}" if t.bits >= 32 else f"({value_type(t)}){number}"


def _from_bits32(pattern: int) -> float:
    found: float = struct.unpack("<f", struct.pack("<I", pattern))[0]
    return found


def _bits32(x: float) -> int:
    try:
        found: int = struct.unpack("<I", struct.pack("<f", x))[0]
    except OverflowError:
        return 0x7F800000 if x > 0 else 0xFF800000
    return found


def float16_bits(x: float) -> int:
    """The nearest float16, ties to even."""
    if math.isnan(x):
        return 0x7E00
    try:
        found: int = struct.unpack("<H", struct.pack("<e", x))[0]
    except OverflowError:
        return 0x7C00 if x > 0 else 0xFC00
    return found


def bfloat16_bits(x: float) -> int:
    """The nearest bfloat16 of the nearest float32, ties to even."""
    if math.isnan(x):
        return 0x7FC0
    pattern = _bits32(x)
    return (pattern + 0x7FFF + (pattern >> 16 & 1)) >> 16


def _special(x: float) -> str | None:
    if math.isnan(x):
        return "NAN"
    return None if math.isfinite(x) else "INFINITY" if x > 0 else "-INFINITY"


def _float(x: float) -> str:
    x = x if math.isnan(x) else _from_bits32(_bits32(x))
    special = _special(x)
    if special is not None:
        return special
    text = next(t for t in (f"{x:.{digits}g}" for digits in range(1, 10)) if _from_bits32(_bits32(float(t))) == x)
    return f"{text}f" if any(c in text for c in ".e") else f"{text}.0f"


def _double(x: float) -> str:
    special = _special(x)
    return repr(x) if special is None else f"(double){special}" if special[0] != "-" else f"-(double){special[1:]}"
