"""Conversions between float and floats of 8 bits in integer arithmetic: one text for every dialect, a template over what it names.

Types: $F of floats, $U of their bits, $H of bytes; functions between them: $as_F and $as_U keep the bits, $wide and $narrow the number.
Every code is converted exactly, every float to the nearest code, ties to even, as ml_dtypes does it. Beyond the greatest number e5m2
becomes infinite and e4m3, which has no infinities, NaN; NaN stays NaN, and the sign stays.
Source: Open Compute Project, OCP 8-bit Floating Point Specification (OFP8) 1.0; conversions that do not saturate.
"""

from __future__ import annotations

from string import Template

NAMES = ("float8_e4m3", "float8_e5m2")

FROM_FLOAT8 = """
$inline $F ${name}($H bits) {  // exact: the exponent moved to its new bias, denormals by subtraction
    const $U code = $wide(bits) & 0x7fu;
    const $U wide = (code << $shift) + $bias;
    const $U denormal = $as_U($as_F(wide + 0x00800000u) - $least);
    const $U magnitude = code >= $special ? (wide | 0x7f800000u) : (code < $normal ? denormal : wide);
    return $as_F(magnitude | (($wide(bits) & 0x80u) << 24));
}
"""
TO_FLOAT8 = """
$inline $H ${name}($F x) {  // to nearest, ties to even; NaN stays NaN
    const $U bits = $as_U(x);
    const $U a = bits & 0x7fffffffu;
    const $U denormal = $as_U($as_F(a) + $adds) - $adds_bits;
    const $U normal = (a - $bias + $half + ((a >> $shift) & 1u)) >> $shift;
    const $U beyond = a > 0x7f800000u ? ($U)($nan) : ($U)($special);
    const $U magnitude = a < $least_bits ? denormal : (normal >= $special ? beyond : normal);
    return $narrow(magnitude | ((bits >> 24) & 0x80u));
}
"""

# shift: bits of the mantissa that float has more. bias: what the exponent's bits differ by. least: the smallest normal number. normal:
# its code. adds: the float whose last place is that of the denormals. special: the code of the first that is no finite number.
_NUMBERS = {
    "float8_e4m3": {
        "shift": "20", "bias": "0x3c000000u", "half": "0x7ffffu", "least": "0.015625f", "least_bits": "0x3c800000u", "normal": "8u",
        "adds": "16384.0f", "adds_bits": "0x46800000u", "special": "0x7fu", "nan": "0x7fu",
    },
    "float8_e5m2": {
        "shift": "21", "bias": "0x38000000u", "half": "0xfffffu", "least": "6.103515625e-5f", "least_bits": "0x38800000u",
        "normal": "4u", "adds": "128.0f", "adds_bits": "0x43000000u", "special": "0x7cu", "nan": "0x7eu",
    },
}  # fmt: skip


def conversion(dtype_name: str, to_float: bool) -> str:
    """The template of one conversion, with the type's numbers filled in."""
    return Template(FROM_FLOAT8 if to_float else TO_FLOAT8).safe_substitute(_NUMBERS[dtype_name])
