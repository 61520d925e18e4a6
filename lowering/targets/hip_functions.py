"""Functions for AMD GPUs without a device library: those that clang's back end expands itself, and others built from them.

They are overloads of one name for float and double. The 64-bit ones are from fdlibm (Sun Microsystems, 1993), a Taylor series, or
from hip_doubles.py, within an ulp or two. 32-bit ones without a machine instruction use the 64-bit ones, so their result is
nearly always correctly rounded. tests/lowering/test_hip_functions.py measures them on a CPU.
"""

from __future__ import annotations

from tilelang.lowering.targets import hip_doubles
from tilelang.lowering.targets.c import cpp

_OF_THE_BACK_END = f"""
{cpp.INLINE} float $1(float x) {{ return __builtin_$1f(x); }}
{cpp.INLINE} double $1(double x) {{ return __builtin_$1(x); }}
"""

_FLOAT_OF_THE_BACK_END = f"""
{cpp.INLINE} float $1(float x) {{ return __builtin_$1f(x); }}
"""

_OF_TWO = f"""
{cpp.INLINE} float $1(float a, float b) {{ return __builtin_$1f(a, b); }}
{cpp.INLINE} double $1(double a, double b) {{ return __builtin_$1(a, b); }}
"""

_RECIPROCAL_ROOT = f"""
{cpp.INLINE} float rsqrt(float x) {{ return 1.0f / __builtin_sqrtf(x); }}
{cpp.INLINE} double rsqrt(double x) {{ return 1.0 / __builtin_sqrt(x); }}
"""

_EXP = f"""
{cpp.INLINE} double exp_of_parts(double r, double n) {{  // 2^n * e^r with n whole and |r| <= log(2) / 2: a Taylor series
    double p = r * 1.6059043836821613e-10 + 2.08767569878681e-09;
    p = p * r + 2.505210838544172e-08;
    p = p * r + 2.755731922398589e-07;
    p = p * r + 2.7557319223985893e-06;
    p = p * r + 2.48015873015873e-05;
    p = p * r + 1.984126984126984e-04;
    p = p * r + 1.388888888888889e-03;
    p = p * r + 8.333333333333333e-03;
    p = p * r + 4.1666666666666664e-02;
    p = p * r + 1.6666666666666666e-01;
    p = p * r + 0.5;
    return __builtin_ldexp(p * (r * r) + r + 1.0, (int)n);
}}
{cpp.INLINE} double exp(double x) {{
    const double n = __builtin_rint(x * 1.4426950408889634);
    const double r = __builtin_fma(n, -2.3190468138462996e-17, __builtin_fma(n, -0.6931471805599453, x));
    return x > 1024.0 ? __builtin_inf() : x < -1100.0 ? 0.0 : exp_of_parts(r, n);
}}
{cpp.INLINE} double exp2(double x) {{
    const double n = __builtin_rint(x);
    return x > 1100.0 ? __builtin_inf() : x < -1100.0 ? 0.0 : exp_of_parts((x - n) * 0.6931471805599453, n);
}}
"""

_LOG = f"""
{cpp.INLINE} double log(double x) {{  // e log(2) + log(1 + f) with 1 + f in sqrt(1/2) .. sqrt(2)
    int whole;
    double m = __builtin_frexp(x, &whole);
    const bool low = m < 0.7071067811865476;
    m = low ? m * 2.0 : m;
    const double e = (double)(low ? whole - 1 : whole), f = m - 1.0, s = f / (2.0 + f), z = s * s, half_of_square = 0.5 * f * f;
    double p = z * 0.1479819860511658591 + 0.1531383769920937332;
    p = p * z + 0.1818357216161805012;
    p = p * z + 0.2222219843214978396;
    p = p * z + 0.2857142874366239149;
    p = p * z + 0.3999999999940941908;
    p = (p * z + 0.6666666666666735130) * z;
    const double tail = half_of_square - (s * (half_of_square + p) + e * 1.90821492927058770002e-10);
    const double r = e * 6.93147180369123816490e-01 - (tail - f);
    return x > 0.0 ? (x == __builtin_inf() ? x : r) : x == 0.0 ? -__builtin_inf() : __builtin_nan("");
}}
{cpp.INLINE} double log2(double x) {{ return log(x) * 1.4426950408889634; }}
"""

_LOG1P = f"""
{cpp.INLINE} double log1p(double x) {{  // what 1 + x loses is put back
    const double u = 1.0 + x;
    return u == 1.0 || u == __builtin_inf() ? x : u == 0.0 ? -__builtin_inf() : log(u) + (x - (u - 1.0)) / u;
}}
{cpp.INLINE} float log1p(float x) {{ return (float)log1p((double)x); }}
"""

_EXPM1 = f"""
{cpp.INLINE} double expm1(double x) {{  // what exp(x) - 1 loses is put back by a factor
    const double u = exp(x), less = u - 1.0;
    return u == 1.0 ? x : less == -1.0 || x > 40.0 ? less : less * (x / log(u));
}}
{cpp.INLINE} float expm1(float x) {{ return (float)expm1((double)x); }}
"""

_TANH = f"""
{cpp.INLINE} double tanh(double x) {{
    const double e = expm1(-2.0 * __builtin_fabs(x));
    return __builtin_copysign(-e / (2.0 + e), x);
}}
"""

_POW = f"""
{cpp.INLINE} float pow(float x, float y) {{
    const float size = __builtin_fabsf(x);
    const double power = size == 1.0f || y == 0.0f ? 1.0 : exp((double)y * log((double)size));
    const bool whole = __builtin_rintf(y) == y, odd = whole && __builtin_fabsf(y) < 16777216.0f && ((int)y & 1);
    const float r = (float)(odd ? __builtin_copysign(power, (double)x) : power);
    const bool real = x >= 0.0f || whole || x == 0.0f || size == __builtin_inff();
    return x == 1.0f || y == 0.0f ? 1.0f : real || x != x ? r : __builtin_nanf("");
}}
"""

# |x| above 8192: reduction by an exact product with 2/pi (Payne and Hanek, 1983), then Taylor series of the remainder.
_TURNS = f"""
{cpp.INLINE} double quarter_turns(float x, int& turns) {{
    const uint two_over_pi[] = {{0x28be60dbu, 0x9391054au, 0x7f09d5f4u, 0x7d4d3770u, 0x36d8a566u, 0x4f10e410u}};
    const uint bits = __builtin_bit_cast(uint, x), mantissa = bits << 8 | 0x80000000u;
    const int exponent = (int)(bits >> 23 & 0xffu) - 126, word = exponent >> 5, shift = exponent & 31;
    uint part[3] = {{0, 0, 0}};
    for (int i = 0; i < 6; ++i)
        for (int k = 0; k < 3; ++k) {{
            if (i == word + k - 1) part[k] |= two_over_pi[i] << shift;
            if (i == word + k && shift) part[k] |= two_over_pi[i] >> (32 - shift);
        }}
    const ulong low = (ulong)mantissa * part[1] + ((ulong)mantissa * part[2] >> 32);
    const ulong product = ((ulong)(mantissa * part[0]) << 32) + low;  // 2 bits of turns, 62 of their fraction
    const long fraction = (long)(product << 2);                       // to the nearest turn: a sign and 63 bits
    turns = (int)(product >> 62) + (fraction < 0);
    return (double)fraction * 8.515303950216386e-20;  // pi / 2 / 2^64
}}
{cpp.INLINE} double sine_of(double r) {{
    const double s = r * r;
    double p = s * 2.7557319223985893e-06 - 1.984126984126984e-04;
    p = p * s + 8.333333333333333e-03;
    p = p * s - 1.6666666666666666e-01;
    return p * s * r + r;
}}
{cpp.INLINE} double cosine_of(double r) {{
    const double s = r * r;
    double p = s * -2.755731922398589e-07 + 2.48015873015873e-05;
    p = p * s - 1.388888888888889e-03;
    p = p * s + 4.1666666666666664e-02;
    return p * (s * s) + (1.0 - 0.5 * s);
}}
"""

_SIN = f"""
{cpp.INLINE} float sin(float x) {{  // of |x| above 8192
    int turns;
    const double r = quarter_turns(x, turns), size = turns & 1 ? cosine_of(r) : sine_of(r);
    const double signed_size = (turns & 2) != 0 ? -size : size;
    return __builtin_fabsf(x) < __builtin_inff() ? (float)(x < 0.0f ? -signed_size : signed_size) : __builtin_nanf("");
}}
"""

_COS = f"""
{cpp.INLINE} float cos(float x) {{  // of |x| above 8192
    int turns;
    const double r = quarter_turns(x, turns), size = turns & 1 ? sine_of(r) : cosine_of(r);
    return __builtin_fabsf(x) < __builtin_inff() ? (float)((turns + 1) & 2 ? -size : size) : __builtin_nanf("");
}}
"""


def _of_doubles(names: str) -> str:
    """A pattern for texts with 64-bit floats that call one of the functions."""
    return rf"(?s)\A(?=.*\bdouble\b)(?=.*\b(?:{names})\()"


HEADERS = (
    (r"\bas_(int|float)\(", "#define as_$1(x) __builtin_bit_cast($1, x)\n"),
    (r"\b(sqrt|floor|ceil|rint|fabs)\(", _OF_THE_BACK_END),
    (r"\b(exp|exp2|log|log2)\(", _FLOAT_OF_THE_BACK_END),
    (r"\b(fmod|copysign)\(", _OF_TWO),
    (r"\brsqrt\(", _RECIPROCAL_ROOT),
    (_of_doubles("exp|exp2|exp_of_parts"), _EXP),
    (_of_doubles("log|log2"), _LOG),
    (r"\blog1p\(", _LOG1P),
    (r"\bexpm1\(", _EXPM1),
    (_of_doubles("tanh"), _TANH),
    (r"\bpow\(", _POW),
    (r"\b(?:sin|cos)\(", _TURNS),
    (r"\bsin\(", _SIN),
    (r"\bcos\(", _COS),
    (_of_doubles("pow"), hip_doubles.POW),
    (_of_doubles("erf"), hip_doubles.ERF),
    (_of_doubles("sin|cos"), hip_doubles.TURNS),
    (_of_doubles("sin"), hip_doubles.SIN),
    (_of_doubles("cos"), hip_doubles.COS),
)

# In ulps of 32-bit floats. Those of the back end are from the HIP documentation 6.3, "HIP math API", plus half an ulp for the
# rounding of its reference; those computed in 64 bits are measured.
ULPS = {
    "exp": 1.5, "exp2": 1.5, "log": 2.5, "log2": 1.5, "log1p": 0.51, "expm1": 0.51, "sqrt": 0.5, "rsqrt": 1.5, "sin": 2.0, "cos": 2.0,
    "tanh": 2.0, "erf": 2.0, "pow": 0.51, "floor": 0.0, "ceil": 0.0, "round": 0.0, "abs": 0.0, "/": 0.5,
}  # fmt: skip
