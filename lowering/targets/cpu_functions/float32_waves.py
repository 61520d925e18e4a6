"""sin, cos, pow and fmod of 32-bit floats for CPUs, which use 64-bit floats internally: see `float32.py`.

`SIN` and `COS` reduce arguments of ordinary magnitude by quarter turns in 32-bit floats. If any lane is larger, all lanes also
compute the reduction for huge arguments, and each selects its own result. `POW` computes its exponent y log2(x) in 64-bit floats.
`FMOD` is exact: every step subtracts a multiple of the divisor whose product has at most 53 bits.
"""

from __future__ import annotations

_FUSED = "defined(__FMA__) || defined(__ARM_FEATURE_FMA)"

# 2/pi in pieces of 24 bits, down to 2^-192. A float times a piece is exact in 64 bits, and multiples of 4 quarter turns cancel.
_PIECES = """
            0x1.45f306p-1, 0x1.b9391p-26, 0x1.529fcp-52, 0x1.3abe88p-75, 0x1.ea69bap-97, 0x1.81b6c4p-121, 0x1.2b3278p-145,
            0x1.0e4104p-170"""

# sin(|x|) or cos(|x|): r is the remainder after `turns` quarter turns, then both polynomials.
_WAVE = f"""
${{inline}} $T $name($T x) {{
    const $T a = as_$T(as_$I(x) & 0x7fffffff);
    const $T limit = 65536.0f;
#if {_FUSED}
    const $T shifted = a * 6.36619772e-1f + 12582912.0f;
    const $T n = shifted - 12582912.0f;
    $I turns = as_$I(shifted);
    $T r = ((a - n * 1.57079637f) - n * -4.37113883e-8f) - n * -1.71512451e-15f;
#else
    const $D exact = convert_$D(a);
    const $D shifted = exact * 0.63661977236758134 + 0x1.8p52;
    const $D n = shifted - 0x1.8p52;
    $I turns = convert_$I(as_$L(shifted));
    $T r = convert_$T((exact - n * 0x1.921fb544p+0) - n * 0x1.0b4611a626331p-34);
#endif
    if (__builtin_expect(any(a > limit ? ($I)(-1) : ($I)(0)), 0)) {{
        const double pieces[8] = {{{_PIECES}}};
        const $D wide = convert_$D(a);
        $D rest = ($D)(0.0);
        $L count = ($L)(0);
        for (int i = 0; i < 8; ++i) {{
            $D product = wide * pieces[i];
            product = product >= 0x1p50 ? ($D)(0.0) : product;  // a multiple of 4
            const $D four = product * 0.25 + 0x1.8p52;
            rest = rest + (product - (four - 0x1.8p52) * 4.0);
            const $D one = rest + 0x1.8p52;
            rest = rest - (one - 0x1.8p52);
            count = count + as_$L(one);
        }}
        const $T small = convert_$T(rest * 1.5707963267948966);
        r = a > limit ? small : r;
        r = a == INFINITY ? ($T)(NAN) : r;
        turns = a > limit ? convert_$I(count) : turns;
    }}
    const $T s = r * r;
    $T p = s * -1.95919420e-4f + 8.33277032e-3f;
    p = p * s - 1.66666642e-1f;
    $T q = s * 2.44327725e-5f - 1.38873130e-3f;
    q = q * s + 4.16666456e-2f;
    q = q * s - 0.5f;
    const $T sine = p * (s * r) + r;
    const $T cosine = q * s + 1.0f;
    turns = turns$quarter;
    const $T size = (turns & 1) != 0 ? cosine : sine;
    return as_$T(as_$I(size) ^ ($sign(turns & 2) << 30));
}}
"""
SIN = _WAVE.replace("$name", "sin_$T").replace("    turns = turns$quarter;\n", "").replace("$sign", "(as_$I(x) & ~0x7fffffff) ^ ")
COS = _WAVE.replace("$name", "cos_$T").replace("$quarter", " + 1").replace("$sign", "")

POW = """
${inline} $T pow_$T($T x, $T y) {  // 2^(y log2(|x|)), the exponent in double precision
#if $wide
    const $T m = as_$T(__builtin_ia32_getmantps${bits}_mask(x, 7, x, $all$rounding));  // of |x|
    const $T e = as_$T(__builtin_ia32_getexpps${bits}_mask(x, x, $all$rounding))
                 - as_$T(__builtin_ia32_getexpps${bits}_mask(m, m, $all$rounding));
#else
    const $T size = as_$T(as_$I(x) & 0x7fffffff);
    const $T scaled = size < 0x1p-126f ? size * 0x1p23f : size;
    const $I exponent = (as_$I(scaled) - 0x3f400000) >> 23;
    const $T m = as_$T(as_$I(scaled) - (exponent << 23));
    const $T e = convert_$T(exponent) - (size < 0x1p-126f ? ($T)(23.0f) : ($T)(0.0f));
#endif
    const $D f = convert_$D(m - 1.0f);
    const $D t = f / (f + 2.0);
    const $D s = t * t;
    $D c = s * 0.34837279797945753 + 0.41120787598496905;
    c = c * s + 0.57709230761267671;
    c = c * s + 0.96179662202188321;
    c = c * s + 2.8853900818357343;
    $D z = convert_$D(y) * (t * c + convert_$D(e));
#if $wide
    const $D nearest = rint(z);
#else
    z = z > 129.0 ? ($D)(129.0) : z;
    z = z < -151.0 ? ($D)(-151.0) : z;
    const $D nearest = (z + 0x1.8p52) - 0x1.8p52;
#endif
    const $T r = convert_$T(z - nearest);
    const $T n = convert_$T(nearest);
    $T p = r * 1.53267814e-4f + 1.33910251e-3f;
    p = p * r + 9.61850584e-3f;
    p = p * r + 5.55035956e-2f;
    p = p * r + 2.40226477e-1f;
    p = p * r + 6.93147182e-1f;
    p = p * r + 1.0f;
#if $wide
    $T result = as_$T(__builtin_ia32_scalefps${bits}_mask(p, n, p, $all$rounding));
#else
    const $I whole_power = as_$I(n + 12583166.0f);
    const $I first = whole_power >> 1;
    $T result = p * as_$T(first << 23) * as_$T((whole_power - first) << 23);
#endif
    const $I usual = (as_$U(x) - 1u < 0x7f7fffffu) & (as_$U(y) << 1 < 0xff000000u);  // x positive and finite, y finite
    if (any(usual ? ($I)(0) : ($I)(-1))) {
        const $T a = as_$T(as_$I(x) & 0x7fffffff);
        const $T b = as_$T(as_$I(y) & 0x7fffffff);
        const $T huge = ($T)(INFINITY);
        const $T nought = ($T)(0.0f);
        result = a == 0.0f ? (y < 0.0f ? huge : nought) : result;
        result = a == INFINITY ? (y < 0.0f ? nought : huge) : result;
        result = b == INFINITY ? ((a > 1.0f) == (y > 0.0f) ? huge : nought) : result;
        result = a == 1.0f ? ($T)(1.0f) : result;
        const $I whole = convert_$I(b < 0x1p24f ? b : nought);
        const $I odd = as_$I(x) & (whole << 31);  // the sign of an odd power; whole is 0 where y is even because of its size
        const $I between = convert_$T(whole) != (b < 0x1p24f ? b : nought);
        result = as_$T(between ? as_$I(result) : as_$I(result) | odd);
        result = ((x < 0.0f) & (a < INFINITY) & between) ? ($T)(NAN) : result;
        result = ((x != x) | (y != y)) ? ($T)(NAN) : result;
        result = ((x == 1.0f) | (y == 0.0f)) ? ($T)(1.0f) : result;
    }
    return result;
}
"""

_FMOD_FUSED = """\
    const $T quotient = a / b;  // never below a whole number that the exact quotient has reached
    if (!any(((quotient < 0x1p22f) & (b < INFINITY)) ? ($I)(0) : ($I)(-1))) {
        const $T rounded = (quotient + 0x1p23f) - 0x1p23f;
        const $T down = rounded > quotient ? rounded - 1.0f : rounded;
        const $T left = a - down * b;
        return as_$T(as_$I(left < 0.0f ? left + b : left) | sign);
    }
"""

FMOD = f"""
${{inline}} $T fmod_$T($T x, $T y) {{  // exact: each step takes off the leading 28 bits of the quotient
    const $T a = as_$T(as_$I(x) & 0x7fffffff);
    const $T b = as_$T(as_$I(y) & 0x7fffffff);
    const $I sign = as_$I(x) & ~0x7fffffff;
#if {_FUSED}
{_FMOD_FUSED}#endif
    const $I valid = (a < INFINITY) & (b > 0.0f);
    $D divisor = convert_$D(valid ? b : ($T)(1.0f));
    divisor = divisor > 0x1p128 ? ($D)(0x1p128) : divisor;
    $D rest = convert_$D(valid ? a : ($T)(0.0f));
    while (any(convert_$T(rest) >= convert_$T(divisor) ? ($I)(-1) : ($I)(0))) {{
        const $D quotient = as_$D(as_$L(rest / divisor * (1.0 - 0x1p-50)) & ~0xffffff);  // at most the exact one
        const $D whole = quotient < 0x1p28 ? (quotient - 0.5 + 0x1.8p52) - 0x1.8p52 : quotient;
        rest = rest - whole * divisor;
        rest = ((quotient < 0x1p28) & (rest >= divisor)) ? rest - divisor : rest;
    }}
    return valid ? as_$T(as_$I(convert_$T(rest)) | sign) : ($T)(NAN);
}}
"""
