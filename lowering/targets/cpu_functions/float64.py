"""Functions of 64-bit floats for CPUs, in C with clang's vector extensions: every width from double to double16, no library calls.

Each is a template over the value type `$T` (double, double2, ...), its signed integer type `$I` and its unsigned one `$U` (long
and ulong of 64 bits and as many lanes); `${inline}` is the prefix of a function. They rely on the names that a kernel's text has:
as_TYPE, INFINITY, NAN, sqrt, and any(mask), which is whether a comparison holds in some lane. Arguments that need more work
(infinite, huge, denormal) are handled by a branch taken if any lane needs it; no code runs lane by lane. NaN propagates,
infinities, zeros and their signs are NumPy's, denormals are kept. `ulps` is a few hundredths above the greatest error that
benchmarks/cpu_functions_float64.py finds, with and without fused operations. Coefficients are minimax fits (Remez exchange in 180
bits) of the relative error, 2^-56 or less, then rounded to doubles.
"""

from __future__ import annotations

from tilelang.lowering.targets.c.functions import Function
from tilelang.lowering.targets.cpu_functions import float64_exact, float64_wide
from tilelang.lowering.targets.cpu_functions.float64_exact import EXP2, polynomial
from tilelang.lowering.targets.cpu_functions.float64_wide import CONDITION as WIDE
from tilelang.lowering.targets.cpu_functions.quotients import quotients

# e^r = 1 + r + r^2 p(r) for |r| <= log(2) / 2.
_EXP_TAIL = (
    0.5, 0.16666666666666685, 0.041666666666602646, 0.008333333333313923, 0.001388888892733464, 0.00019841269904935304,
    2.4801508001256738e-05, 2.7557226040288626e-06, 2.7625458587127287e-07, 2.51151130844639e-08,
)  # fmt: skip
_EXPM1_TAIL = (
    0.5, 0.16666666666666677, 0.04166666666666659, 0.00833333333332193, 0.001388888888893262, 0.00019841269885589714,
    2.48015872237684e-05, 2.755724458221762e-06, 2.7557360886676525e-07, 2.510895403520973e-08, 2.088822960620422e-09,
)  # fmt: skip

# log(2) in two parts: integers below 2^11 times the first are exact. The product with the second is rounded in r, not in the sum.
_SPLIT = """\
    const $T shifted = $scaled * 1.4426950408889634 + 0x1.8p52;  // the sum's low bits are n
    const $T n = shifted - 0x1.8p52;
    const $T nearly_r = $scaled - n * 0.6931471805598903;
    const $T rest = n * 5.49792301870721e-14;
    const $T r = nearly_r - rest;"""

_IN_TWO_FACTORS = """\
        const $I whole = as_$I(shifted) - 0x4338000000000000;
        const $I half_of_n = whole >> 1;  // as two factors, so that results can be denormal
        const $T scaled = power * as_$T((half_of_n + 1023) << 52) * as_$T((whole - half_of_n + 1023) << 52);"""

_EXP = f"""
${{inline}} $T exp_$T($T x) {{  // 2^n * e^r with n whole and |r| <= log(2) / 2
{WIDE}
{float64_wide.EXP}
#else
{_SPLIT.replace("$scaled", "x")}
{polynomial("p", "r", _EXP_TAIL)}
    const $T power = ((p * (r * r) - rest) + nearly_r) + 1.0;
    if (any((as_$T(as_$U(x) & 0x7fffffffffffffff) < 708.0) == 0)) {{  // NaN too
{_IN_TWO_FACTORS}
        const $T small = x < -745.1332191019412 ? ($T)(0.0) : scaled;
        return x > 709.782712893384 ? ($T)(INFINITY) : small;
    }}
    return as_$T(as_$U(power) + (as_$U(shifted) << 52));
#endif
}}
"""

_EXP2 = f"""
${{inline}} $T exp2_$T($T x) {{  // 2^n * 2^r with n whole and |r| <= 1/2
{WIDE}
{float64_wide.EXP2}
#else
    const $T shifted = x + 0x1.8p52;
    const $T r = x - (shifted - 0x1.8p52);
{polynomial("p", "r", EXP2)}
    const $T power = p * r + 1.0;
    if (any((as_$T(as_$U(x) & 0x7fffffffffffffff) < 1022.0) == 0)) {{
{_IN_TWO_FACTORS}
        const $T small = x < -1075.0 ? ($T)(0.0) : scaled;
        return x >= 1024.0 ? ($T)(INFINITY) : small;
    }}
    return as_$T(as_$U(power) + (as_$U(shifted) << 52));
#endif
}}
"""

_EXPM1 = f"""
${{inline}} $T expm1_$T($T x) {{  // 2^n (e^r - 1) + (2^n - 1)
{_SPLIT.replace("$scaled", "x")}
{polynomial("p", "r", _EXPM1_TAIL)}
    const $T power = as_$T((as_$U(shifted) << 52) + 0x3ff0000000000000);
    $T result = power * (p * (r * r) - rest) + (power * nearly_r + (power - 1.0));
    if (any((as_$T(as_$U(x) & 0x7fffffffffffffff) < 708.0) == 0)) {{
        result = x > 707.0 ? exp_$T(x) : result;
        result = x < -707.0 ? ($T)(-1.0) : result;
    }}
    return as_$T(as_$U(result) | (as_$U(x) & 0x8000000000000000));  // the sign of zero
}}
"""

# log(2^e (1 + f)) with 1 + f in sqrt(1/2) .. sqrt(2), by s = f / (2 + f):
# log(1 + f) = 2 s + s^3 p(s^2) = f - f^2/2 + s (f^2/2 + s^2 p(s^2)).
_LOG_TAIL = (
    0.666666666666671, 0.3999999999951718, 0.28571428730011333, 0.222221990053931, 0.181835764308898, 0.1531303017859188,
    0.14811936240825588,
)  # fmt: skip
_PARTS = """\
    const $U moved = as_$U($positive) + 0x00095f6200000000;  // the exponent's field counts from sqrt(1/2)
    const $T e = as_$T((moved >> 52) | 0x4330000000000000) - bias;
    const $T m = as_$T((moved & 0x000fffffffffffff) + 0x3fe6a09e00000000);"""
_OF_SIGNIFICAND = f"""\
    const $T s = f / (f + 2.0);
    const $T z = s * s;
{polynomial("p", "z", _LOG_TAIL)}
    const $T half = 0.5 * f * f;"""

_LOGARITHM = f"""
${{inline}} $T $name_$T($T x) {{
    const int odd = any(((x >= 0x1p-1022) & (x < INFINITY)) == 0);
    $T normal = x;
    $T bias = 0x1p52 + 1023.0;
    if (odd) {{  // denormals
        normal = x < 0x1p-1022 ? x * 0x1p54 : x;
        bias = x < 0x1p-1022 ? bias + 54.0 : bias;
    }}
{_PARTS.replace("$positive", "normal")}
    const $T f = m - 1.0;
{_OF_SIGNIFICAND}
    $result
    if (odd) {{
        r = x < INFINITY ? r : x;
        r = x > 0.0 ? r : (x == 0.0 ? ($T)(-INFINITY) : ($T)(NAN));
    }}
    return r;
}}
"""
_LOG = _LOGARITHM.replace("$name", "log").replace(
    "$result", "$T r = e * 0.6931471805598903 + (f - (half - (s * (half + z * p) + e * 5.49792301870721e-14)));"
)
_LOG2 = _LOGARITHM.replace("$name", "log2").replace(
    "$result",
    """const $T tail = s * (half + z * p) - half;
    $T r = e + (f * 1.4426950408889634 + (tail * 1.4426950408889634 + (f + tail) * 2.0355273740931033e-17));""",
)

_LOG1P = f"""
${{inline}} $T log1p_$T($T x) {{  // log of u = 1 + x rounded, and what rounding took off added to f
    const int odd = any(((x > -1.0) & (x < 0x1p1000)) == 0);
    const $T u = x + 1.0;
    const $T bias = 0x1p52 + 1023.0;
{_PARTS.replace("$positive", "u")}
    $T rest = (x - (u - 1.0)) * as_$T(0x7fe0000000000000 - (moved & 0xfff0000000000000));
    if (odd) rest = x < 0x1p1000 ? rest : ($T)(0.0);
    const $T f = (m - 1.0) + rest;
{_OF_SIGNIFICAND}
    $T r = e * 0.6931471805598903 + (f - (half - (s * (half + z * p) + e * 5.49792301870721e-14)));
    if (odd) {{
        r = x < INFINITY ? r : x;
        r = x > -1.0 ? r : (x == -1.0 ? ($T)(-INFINITY) : ($T)(NAN));
    }}
    return as_$T(as_$U(r) | (as_$U(x) & 0x8000000000000000));  // the sign of zero
}}
"""

_RSQRT = f"""
${{inline}} $T rsqrt_$T($T x) {{
{WIDE}
{float64_wide.RSQRT}
#else
    return 1.0 / sqrt(x);
#endif
}}
"""

_TANH = f"""
${{inline}} $T tanh_$T($T x) {{  // t / (t + 2) with t = e^(2 |x|) - 1
    const $T a = as_$T(as_$U(x) & 0x7fffffffffffffff);
    const $T y = a > 20.0 ? ($T)(40.0) : a + a;
{_SPLIT.replace("$scaled", "y")}
{polynomial("p", "r", _EXPM1_TAIL)}
    const $T power = as_$T((as_$U(shifted) << 52) + 0x3ff0000000000000);
    const $T t = power * (p * (r * r) - rest) + (power * nearly_r + (power - 1.0));
    const $T d = t + 2.0;
    const $T d_low = a < 18.0 ? t - (d - 2.0) : ($T)(0.0);
    const $T q = t / d;
    const $T remainder = -product_error_$T(q, d, t) - q * d_low;
    const $T result = q + remainder * (0.5 - 0.5 * q);  // which is 1 / d
    return as_$T(as_$U(result) | (as_$U(x) & 0x8000000000000000));
}}
"""

# erf(x) / x = 1 + p(x^2) up to 1, erf(x) = 1 - exp(-x q(x)) from there.
_ERF_NEAR = (
    0.12837916709551256, -0.3761263890318352, 0.112837916709442, -0.026866170643113415, 0.005223977606130842,
    -0.0008548325929766244, 0.0001205529358693695, -1.4924712439534814e-05, 1.6447132699786621e-06, -1.6206318752969208e-07,
    1.3710988704190523e-08, -7.779462971761597e-10,
)  # fmt: skip
_ERF_FAR = (
    1.128379241881082, 0.636618934829377, 0.10277701034464254, -0.01914294879729368, -0.0001756922192488507,
    0.0016383932860767566, -0.0005127588845129648, -5.633132818198252e-05, 0.00013484053095338892, -7.848256257424684e-05,
    3.0668473483995404e-05, -9.211887326492248e-06, 2.2206698687817057e-06, -4.3607553004635023e-07, 6.987841416170358e-08,
    -9.07595439816894e-09, 9.417813369783485e-10, -7.625694182854153e-11, 4.6421809280780635e-12, -1.9977710659897768e-13,
    5.416385249472548e-15, -6.954348576311271e-17,
)  # fmt: skip
_ERF = f"""
${{inline}} $T erf_$T($T x) {{
    const $T a = as_$T(as_$U(x) & 0x7fffffffffffffff);
    const $T z = a < 1.0 ? a * a : ($T)(1.0);
{polynomial("near", "z", _ERF_NEAR)}
    near = near * a + a;
    const $T t = a > 5.95 ? ($T)(5.95) : a;
{polynomial("q", "t", _ERF_FAR)}
    const $T far = 1.0 - exp_$T(-(q * t));
    return as_$T(as_$U(a < 1.0 ? near : far) | (as_$U(x) & 0x8000000000000000));
}}
"""

_SIGMOID = """
${inline} $T sigmoid_$T($T x) {  // e^x / (1 + e^x) on the left, so that small results keep their precision
    const $T e = exp_$T(as_$T(as_$U(x) | 0x8000000000000000));
    const $T d = e + 1.0;
    const $T d_low = e - (d - 1.0);
    const $T numerator = x >= 0.0 ? ($T)(1.0) : e;
    const $T q = numerator / d;
    const $T remainder = -product_error_$T(q, d, numerator) - q * d_low;
    return q + remainder * (x >= 0.0 ? q : 1.0 - q);  // times 1 / d
}
"""

# The functions of the language and their helpers.
FUNCTIONS: dict[str, Function] = {
    "exp": Function(_EXP, (), 0.95),
    "exp2": Function(_EXP2, (), 1.45),
    "expm1": Function(_EXPM1, ("exp",), 1.35),
    "log": Function(_LOG, (), 0.85),
    "log2": Function(_LOG2, (), 2.0),
    "log1p": Function(_LOG1P, (), 1.4),
    "rsqrt": Function(_RSQRT, (), 1.6),
    "tanh": Function(_TANH, ("product_error",), 1.55),
    "erf": Function(_ERF, ("exp",), 1.5),
    "sigmoid": Function(_SIGMOID, ("exp", "product_error"), 1.6),
    **float64_exact.FUNCTIONS,
}

QUOTIENTS = quotients("double", "0x1p-1022", "0x1p1022", "0x1.fffffffffffffp1023")
