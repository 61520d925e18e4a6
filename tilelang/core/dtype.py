"""Element types: their names, sizes, NumPy types, promotion and accumulation types.

The table below is the documentation: promotion and accumulation are looked up in it, nowhere else. Types that NumPy lacks come from
`ml_dtypes`. Types marked `later` exist in the data model but are refused by the lowering. Floats of 8 bits follow the Open Compute
Project's specification: e5m2 has infinities; e4m3 has none, and values out of range become NaN.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

from tilelang.core.node import interned
from tilelang.errors import ComputationError

if TYPE_CHECKING:
    import numpy as np


@interned
class DType:
    """An element type. `kind` is one of "float", "int", "uint", "bool"; `later` marks types not lowered yet."""

    name: str
    kind: str
    bits: int
    later: bool = False

    def __repr__(self) -> str:
        return self.name

    @property
    def bytes(self) -> int:
        return max(1, self.bits // 8)

    @property
    def is_float(self) -> bool:
        return self.kind == "float"

    @property
    def is_integer(self) -> bool:
        return self.kind in ("int", "uint")

    @property
    def numpy(self) -> np.dtype[Any]:
        """The NumPy (or ml_dtypes) type of an array of this type."""
        return _numpy(self.name)

    @property
    def mantissa_bits(self) -> int:
        """Precision of a float in bits, including the hidden one: the unit roundoff is 2**-mantissa_bits."""
        return {"float16": 11, "bfloat16": 8, "float32": 24, "float64": 53, "float8_e4m3": 4, "float8_e5m2": 3}[self.name]

    @property
    def lowest(self) -> float | int:
        """The smallest value: -inf for floats that have it."""
        if self.is_float:
            return -self.highest
        return -(1 << (self.bits - 1)) if self.kind == "int" else 0

    @property
    def highest(self) -> float | int:
        """The largest value: inf for floats that have it."""
        if self.is_float:
            return 448.0 if self.name == "float8_e4m3" else float("inf")
        return (1 << (self.bits - (self.kind == "int"))) - 1

    def holds(self, value: float) -> bool:
        """Whether this type can represent a number: in range, and whole for an integer. A float may round it, but not to 0 or infinity
        (NaN if it has none)."""
        if self.is_float:
            zero, infinite = _FLOAT_RANGES[self.name]
            return value != value or value in (0, self.lowest, self.highest) or zero < abs(value) < infinite
        return self.lowest <= value <= self.highest and (isinstance(value, int) or value.is_integer())


# The greatest number that rounds to 0, and the least that rounds to infinity (to NaN in a type without infinity).
_FLOAT_RANGES: dict[str, tuple[float, float]] = {
    "float16": (2.0**-25, 65520),
    "bfloat16": (2.0**-134, 2.0**128 - 2.0**119),
    "float32": (2.0**-150, 2.0**128 - 2.0**103),
    "float64": (0.0, 2**1024 - 2**970),
    "float8_e4m3": (2.0**-10, 464 + 2.0**-15),  # 464 rounds to 448, as does everything that float32 rounds to 464
    "float8_e5m2": (2.0**-17, 61440),
}


@functools.cache
def _numpy(name: str) -> np.dtype[Any]:
    import ml_dtypes  # late: imports NumPy
    import numpy as np  # late: NumPy takes long to import

    special = {"float8_e4m3": "float8_e4m3fn"}
    beyond_numpy = name in ("bfloat16", "float8_e4m3", "float8_e5m2", "int4", "uint4")
    return np.dtype(getattr(ml_dtypes, special.get(name, name)) if beyond_numpy else name)


float16 = DType("float16", "float", 16)
bfloat16 = DType("bfloat16", "float", 16)
float32 = DType("float32", "float", 32)
float64 = DType("float64", "float", 64)
int8 = DType("int8", "int", 8)
int16 = DType("int16", "int", 16)
int32 = DType("int32", "int", 32)
int64 = DType("int64", "int", 64)
uint8 = DType("uint8", "uint", 8)
uint16 = DType("uint16", "uint", 16)
uint32 = DType("uint32", "uint", 32)
uint64 = DType("uint64", "uint", 64)
bool_ = DType("bool", "bool", 1)
float8_e4m3 = DType("float8_e4m3", "float", 8)
float8_e5m2 = DType("float8_e5m2", "float", 8)
int4 = DType("int4", "int", 4, later=True)
uint4 = DType("uint4", "uint", 4, later=True)

ALL: dict[str, DType] = {
    t.name: t
    for t in (
        float16, bfloat16, float32, float64, int8, int16, int32, int64, uint8, uint16, uint32, uint64, bool_,
        float8_e4m3, float8_e5m2, int4, uint4,
    )
}  # fmt: skip


def dtype(value: Any) -> DType:
    """The element type for a name, a NumPy type or a DType.

    Raises ComputationError for a type that the language does not have.
    """
    if isinstance(value, DType):
        return value
    name = value if isinstance(value, str) else getattr(value, "name", getattr(value, "__name__", str(value)))
    name = {"float8_e4m3fn": "float8_e4m3", "bool_": "bool", "float": "float64", "int": "int64"}.get(name, name)
    if name not in ALL:
        raise ComputationError("unknown-type", f"there is no element type {name!r}", help="use one of " + ", ".join(ALL))
    return ALL[name]


def promote(a: DType, b: DType) -> DType:
    """The type of an operation on a and b.

    bool < integers < floats. Two floats: the wider; float16 with bfloat16: float32. Two integers: the wider; if the signs differ, the
    narrowest signed type that holds both (int64 if there is none). An integer with a float: the float.
    """
    if a == b:
        return a
    if a.kind == "bool":
        return b
    if b.kind == "bool":
        return a
    if a.is_float != b.is_float:
        return a if a.is_float else b
    if a.is_float:
        if a.bits == b.bits:
            return float32
        return a if a.bits > b.bits else b
    if a.kind == b.kind:
        return a if a.bits > b.bits else b
    signed, unsigned = (a, b) if a.kind == "int" else (b, a)
    bits = max(signed.bits, min(64, 2 * unsigned.bits))
    return ALL[f"int{bits}"]


def accumulator(t: DType) -> DType:
    """The accumulator type of a reduction over values of type t: float32 for 8- and 16-bit floats, int32 (uint32) for 8- and 16-bit
    integers, int32 for bool, otherwise t itself."""
    if t.is_float:
        return float32 if t.bits < 32 else t
    if t.kind == "bool":
        return int32
    return t if t.bits >= 32 else ALL[f"{t.kind}32"]


def compute_type(t: DType) -> DType:
    """The type of pointwise computation on t: float32 for 8- and 16-bit floats (rounded at each definition), otherwise t itself."""
    return float32 if t.is_float and t.bits < 32 else t
