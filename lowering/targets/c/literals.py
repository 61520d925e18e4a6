"""Prints literals of the kernel IR as C: the shortest decimals that round-trip, and integers that C's rules do not widen."""

from __future__ import annotations

import math
import struct
from typing import Any

from tilelang.core.dtype import DType
from tilelang.core.expr import Const
from tilelang.lowering.targets.c.dialect import memory_type, value_type


def literal(const: Const, bits: bool = False, long: str = "L") -> str:
    """A literal in the C type of its value. bits: a float of 8 or 16 bits as its bits. long: the suffix of a 64-bit number."""
    t, v = const.type, const.value
    if t.kind == "bool":
        return "1" if v else "0"
    if t.is_float:
        x = float(v)
        if t.bits < 32:
            rounded = _rounded(x, t)
            if bits:
                return f"({memory_type(t)})0x{int(rounded.view(f'u{t.bytes}')):0{2 * t.bytes}x}"
            x = float(rounded)
        return _double(x) if t.bits == 64 else _float(x)
    number = int(v) & (2**t.bits - 1)
    if t.kind == "int" and number >= 2 ** (t.bits - 1):
        number -= 2**t.bits
    suffix = {"uint32": "u", "uint64": f"u{long.lower()}", "int64": long}.get(t.name, "")
    if t.kind == "int" and number == -(2 ** (t.bits - 1)) and t.bits >= 32:
        return f"({number + 1}{suffix} - 1)"  # C parses the minus and the number separately
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


def _rounded(x: float, t: DType) -> Any:
    """A number rounded to its NumPy type."""
    import numpy as np  # late: NumPy takes long to import

    with np.errstate(all="ignore"):
        return np.float64(x).astype(t.numpy)


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
