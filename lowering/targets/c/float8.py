"""Conversions between float and 8-bit floats in integer arithmetic: one template for every dialect.

Placeholders for types: $F floats, $U their bits, $H bytes. For functions: $as_F and $as_U reinterpret bits, $wide and $narrow
convert values. Every code is converted exactly, and every float to the nearest code, ties to even, as in ml_dtypes. Values out of
range become infinity in e5m2 and NaN in e4m3, which has no infinities. NaN stays NaN, and signs are kept.
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

# shift: mantissa bits that float has in addition. bias: difference of the exponent biases. least: the smallest normal number.
# normal: its code. adds: the float whose last place is that of the denormals. special: the first code that is not a finite
# number.
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
    """The template of one conversion, filled in with the type's numbers."""
    return Template(FROM_FLOAT8 if to_float else TO_FLOAT8).safe_substitute(_NUMBERS[dtype_name])
