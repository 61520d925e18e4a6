"""Division of a vector by one number on CPUs, without a division per vector.

The reciprocal is computed once. A product with it and two fused steps yield the same quotient as a division (P. Markstein, "Computation
of elementary functions on the IBM RISC System/6000 processor", 1990), including infinities, NaN and signs of zeros. The first product
is kept finite, so that its excess over the dividend decides whether the quotient is infinite. The excess for a dividend below 2^-103
(2^-969 for 64-bit floats), or for a denormal quotient, may be rounded; then the quotient is off by up to 1.5 ulps.
"""

from __future__ import annotations

from tilelang.lowering.targets.c.functions import Function

_TEXT = """
${inline} $T quotients_$T($T x, SCALAR d) {
#if defined(__FMA__) || defined(__ARM_FEATURE_FMA)
    if (d >= LEAST && d <= GREATEST) {
        const SCALAR inverse = 1 / d;
        const $T product = x * inverse;
        const $T below = product > MOST ? ($T)(MOST) : product;
        const $T first = below < -MOST ? ($T)(-MOST) : below;
        const $T excess = first * d - x;
        return first - excess * inverse;
    }
#endif
    return x / d;
}
"""


def quotients(scalar: str, least: str, greatest: str, most: str) -> Function:
    """A template for vectors of a C scalar type. least, greatest: the divisors with normal reciprocals. most: the greatest number."""
    text = _TEXT
    for word, filled in {"SCALAR": scalar, "LEAST": least, "GREATEST": greatest, "MOST": most}.items():
        text = text.replace(word, filled)
    return Function(text, (), 1.5)
