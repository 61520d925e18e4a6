"""Elementary functions of 32-bit floats for CPUs, as C with vector extensions: no call leaves the vector code.

Templates are strings over these placeholders, all given by `fields(type)` except `$inline`: `$T` the value type (`float` or
`float2` to `float16`), `$I` and `$U` its signed and unsigned integer types, `$D` and `$L` double and long with as many lanes;
`$wide` is a preprocessor condition for the instructions of AVX-512 on this type, and `$bits`, `$all` and `$rounding` complete
their builtins' names and arguments; `$sixteen` is the condition for vectors of 16 lanes. The surrounding text supplies as_T(...),
convert_T(...), any(mask), sqrt, rint, INFINITY, NAN, a `long` of 64 bits, and contraction of a * b + c within a statement, on
which the exact steps for machines with fused multiply-add rely. Scalar comparisons yield 1 in C and vector comparisons -1, so a
mask is built by `? ($I)(-1) : ($I)(0)` before it is passed to `any`.

Every function handles NaN, infinities, signed zeros and denormals. `ulps` is the maximum error, rounded up, with and without
fused multiply-add: over all 2^32 arguments with AVX-512, otherwise over those of magnitude 2^-8 to 2^7 and samples of the rest;
for pow over random pairs, with a margin; and for 1 / sqrt(x) without AVX-512 the bound that follows from its two roundings.
`benchmarks/cpu_functions.py` measures it. Polynomial coefficients are weighted minimax fits (Lawson's iteration), except that of
`exp` with AVX-512, a least-squares fit by `benchmarks/cpu_functions_tables.py`; they are rounded one by one from the lowest
power. sin, cos, pow and fmod are in `float32_waves.py`, tanh and erf in `float32_pieces.py`.
"""

from __future__ import annotations

from collections.abc import Sequence

from tilelang.lowering.targets.c.functions import Function
from tilelang.lowering.targets.cpu_functions.float32_pieces import ERF, TANH
from tilelang.lowering.targets.cpu_functions.float32_waves import COS, FMOD, POW, SIN
from tilelang.lowering.targets.cpu_functions.quotients import quotients

# 2^n p for p near 1 and n of -150 to 128, where the low bits of `shifted` are n + 254. AVX-512 has an instruction for it.
# Elsewhere two factors are used and the first product is exact, so denormal results are rounded once and only values out of range
# overflow.
_SCALED = """\
#if $wide
    return as_$T(__builtin_ia32_scalefps${bits}_mask(p, n, p, $all$rounding));
#else
    const $I first = as_$I(shifted) >> 1;
    return p * as_$T(first << 23) * as_$T((as_$I(shifted) - first) << 23);
#endif
"""

# 2^(k/16 + d) for k of 0 to 15, with d = -0.016545595, for which rounding the 16 constants to float32 costs at most 0.19 ulp
# each, so no correction table is needed. `benchmarks/cpu_functions_tables.py` finds d, and the polynomial of `exp` that
# compensates it. Then 2^(-k/16), and the relative rounding error of each.
# fmt: off
_ROOTS = (
    0.988596976, 1.03236592, 1.07807267, 1.12580299, 1.17564654, 1.2276969, 1.28205168, 1.33881295,
    1.39808726, 1.45998585, 1.52462494, 1.59212589, 1.6626153, 1.73622561, 1.81309485, 1.89336741,
)
_INVERSE_ROOTS = (
    (1, 0.957603276, 0.917004049, 0.878126085, 0.840896428, 0.805245161, 0.771105409, 0.738413095,
     0.707106769, 0.677127779, 0.648419797, 0.620928884, 0.594603539, 0.56939429, 0.545253873, 0.522136867),
    (0, 4.92266422e-09, -5.61963907e-09, -4.61788517e-09, -1.23776636e-08, 4.9181086e-09, 4.03545235e-09, -2.25044935e-08,
     1.21016171e-08, -5.06167449e-09, -2.00949969e-08, 2.24841908e-08, 1.89881769e-08, 2.69311107e-08, -6.5387701e-09, 2.41673507e-08),
)
# fmt: on


def _root(roots: Sequence[float]) -> str:
    """C that looks up one of sixteen numbers per lane by the low four bits of `shifted`: one permutation of a register."""
    floats = ", ".join(f"{v:.8e}f" for v in roots)
    return f"__builtin_ia32_permvarsf512(($T){{{floats}}}, as_$I(shifted))"


_EXP = (
    """
${inline} $T exp_$T($T x) {  // 2^n e^r with n whole and |r| <= log(2) / 2
#if $sixteen  // n in sixteenths, whose fraction selects a root of 2, and |r| <= log(2) / 32
    const $T shifted = x * 1.44269504f + 786432.0f;
    const $T n = shifted - 786432.0f;
    const $T rest = (x - n * 0.693359375f) + n * 2.12194440e-4f;
    const $T most = 0.0218f;  // where n has no sixteenths, 2^n is 0 or inf and `rest` is anything; NaN is in n
    const $T r = as_$T(__builtin_ia32_rangeps${bits}_mask(rest, most, 2, rest, $all$rounding));
    $T q = r * 1.68532133e-01f + 5.05788088e-01f;
    q = q * r + 1.01153457e+00f;
    q = q * r + 1.15345465e-02f;
"""
    + f"    const $T root = {_root(_ROOTS)};\n    const $T p = root * q + root;\n"
    + """\
    return as_$T(__builtin_ia32_scalefps${bits}_mask(p, n, p, $all$rounding));  // times 2^n, with n rounded down
#else
    $T y = x > 89.0f ? ($T)(89.0f) : x;
    y = y < -104.0f ? ($T)(-104.0f) : y;
    const $T shifted = y * 1.44269504f + 12583166.0f;
    const $T n = shifted - 12583166.0f;
    const $T r = (y - n * 0.693359375f) + n * 2.12194440e-4f;
    $T p = r * 1.38189388e-3f + 8.36870354e-3f;
    p = p * r + 4.16682884e-2f;
    p = p * r + 1.66665211e-1f;
    p = p * r + 4.99999940e-1f;
#if defined(__FMA__) || defined(__ARM_FEATURE_FMA)
    p = p * r + 1.0f;
    p = p * r + 1.0f;
#else
    p = (p * (r * r) + r) + 1.0f;
#endif
"""
    + _SCALED
    + "#endif\n}\n"
)

_FAST_EXP = (
    """
${inline} $T fast_exp_$T($T x) {  // one degree less, and log(2) as one number where products are fused; least where both errors add
    $T y = x > 89.0f ? ($T)(89.0f) : x;
    y = y < -104.0f ? ($T)(-104.0f) : y;
    const $T shifted = y * 1.44269504f + 12583166.0f;
    const $T n = shifted - 12583166.0f;
#if defined(__FMA__) || defined(__ARM_FEATURE_FMA)
    const $T r = y - n * 0.693147182f;
#else
    const $T r = (y - n * 0.693359375f) + n * 2.12194440e-4f;
#endif
    $T p = r * 8.22769199e-3f + 4.18963954e-2f;
    p = p * r + 1.66687906e-1f;
    p = p * r + 4.99991685e-1f;
    p = p * r + 9.99999225e-1f;
    p = p * r + 1.0f;
"""
    + _SCALED
    + "}\n"
)

_EXP2 = (
    """
${inline} $T exp2_$T($T x) {  // 2^n 2^r with n whole and |r| <= 1/2
#if $wide
    const $T r = as_$T(__builtin_ia32_reduceps${bits}_mask(x, 0, x, $all$rounding));  // 0 of an infinity
    const $T n = x - r;
#else
    $T y = x > 128.0f ? ($T)(128.0f) : x;
    y = y < -150.0f ? ($T)(-150.0f) : y;
    const $T shifted = y + 12583166.0f;
    const $T r = y - (shifted - 12583166.0f);
#endif
    $T p = r * 1.53267814e-4f + 1.33910251e-3f;
    p = p * r + 9.61850584e-3f;
    p = p * r + 5.55035956e-2f;
    p = p * r + 2.40226477e-1f;
    p = p * r + 6.93147182e-1f;
    p = p * r + 1.0f;
"""
    + _SCALED
    + "}\n"
)

_EXPM1 = """
${inline} $T expm1_$T($T x) {  // 2^n (1 + (e^r - 1)) - 1, its large and small parts added apart
    $T y = x > 89.0f ? ($T)(89.0f) : x;
    y = y < -18.0f ? ($T)(-18.0f) : y;
    const $T shifted = y * 1.44269504f + 12583038.0f;
    const $T n = shifted - 12583038.0f;
    const $T half = as_$T(as_$I(shifted) << 23);  // 2^(n - 1) does not overflow
    const $T large = y - n * 0.693359375f;  // exact
    const $T r = large + n * 2.12194440e-4f;
    $T p = r * 1.38189388e-3f + 8.36870354e-3f;
    p = p * r + 4.16682884e-2f;
    p = p * r + 1.66665211e-1f;
    p = p * r + 4.99999940e-1f;
    const $T small = p * (r * r) + n * 2.12194440e-4f;
    const $T sum = half * small + (half * large + (half - 0.5f));
    return as_$T(as_$I(x) & 0x7fffffff) < 0x1p-25f ? x : sum + sum;
}
"""

# m and e with x = 2^e m and m in 0.75 .. 1.5. With AVX-512 the instructions give -inf and inf as exponents of 0 and inf, and NaN
# as the significand of a negative number, so the common formula covers the logarithm of every argument.
_PARTED = """\
#if $wide
    const $T m = as_$T(__builtin_ia32_getmantps${bits}_mask(x, 15, x, $all$rounding));
    const $T e = as_$T(__builtin_ia32_getexpps${bits}_mask(x, x, $all$rounding))
                 - as_$T(__builtin_ia32_getexpps${bits}_mask(m, m, $all$rounding));
#else
    $T scaled = x;
    $T shift = 0.0f;
    const int rare = any(as_$U(x) - 0x00800000u >= 0x7f000000u ? ($I)(-1) : ($I)(0));  // denormal, 0, infinite, NaN, negative
    if (rare) {
        scaled = x < 0x1p-126f ? x * 0x1p23f : x;
        shift = x < 0x1p-126f ? ($T)(-23.0f) : ($T)(0.0f);
    }
    const $I exponent = (as_$I(scaled) - 0x3f400000) >> 23;
    const $T m = as_$T(as_$I(scaled) - (exponent << 23));
    const $T e = convert_$T(exponent) + shift;
#endif
"""
_UNPARTED = """\
#if !($wide)
    if (rare) {
        result = x == INFINITY ? x : result;
        result = x > 0.0f ? result : (x == 0.0f ? ($T)(-INFINITY) : ($T)(NAN));
    }
#endif
"""
# e log(2) + log(1 + f), f of -0.25 to 0.5
_LOG_OF_PARTS = """\
    $T p = f * -4.51522693e-2f + 1.04725510e-1f;
    p = p * f - 1.31639361e-1f;
    p = p * f + 1.44776300e-1f;
    p = p * f - 1.66468784e-1f;
    p = p * f + 1.99908480e-1f;
    p = p * f - 2.50001103e-1f;
    p = p * f + 3.33334506e-1f;
    p = p * f - 0.5f;
    $T result = e * 0.693145752f + (f + ((f * f) * p + e * 1.42860677e-6f));
"""

_LOG = (
    "\n${inline} $T log_$T($T x) {\n"
    + _PARTED
    + "    const $T f = m - 1.0f;\n"
    + _LOG_OF_PARTS
    + _UNPARTED
    + "    return result;\n}\n"
)

# If the exponent is found by integer operations, m is in sqrt(1/2) .. sqrt(2): without fused multiply-add the wider range is too
# inexact.
_LOG2 = (
    "\n${inline} $T log2_$T($T x) {\n"
    + _PARTED.replace("0x3f400000", "0x3f3504f3")
    + """\
    const $T f = m - 1.0f;
#if $wide
    $T p = f * -6.52457997e-2f + 1.51153564e-1f;
    p = p * f - 1.89876005e-1f;
    p = p * f + 2.08835080e-1f;
    p = p * f - 2.40163192e-1f;
    p = p * f + 2.88410008e-1f;
    p = p * f - 3.60675663e-1f;
    p = p * f + 4.80899960e-1f;
    p = p * f - 7.21347511e-1f;
#else
    $T p = f * -1.10255882e-1f + 1.87088192e-1f;
    p = p * f - 1.91390827e-1f;
    p = p * f + 2.04486579e-1f;
    p = p * f - 2.39567354e-1f;
    p = p * f + 2.88571417e-1f;
    p = p * f - 3.60698670e-1f;
    p = p * f + 4.80898201e-1f;
    p = p * f - 7.21347332e-1f;
#endif
    const $T large = as_$T(as_$I(f) & ~0xfff);  // its product has 24 bits, and the rounding of the first sum is found exactly
    const $T sum = e + large * 1.44238281f;
    $T rest = ((e - sum) + large * 1.44238281f) + ((f - large) * 1.44238281f + f * 3.12228389e-4f);
#if $wide
    rest = rest < 1.0f ? rest : ($T)(1.0f);  // NaN where e is infinite
#endif
    $T result = sum + ((f * f) * p + rest);
"""
    + _UNPARTED
    + "    return result;\n}\n"
)

_LOG1P = (
    """
${inline} $T log1p_$T($T x) {  // the power of two is 1 + x's, and 1 + x = 2^e (1 + f) with f rounded once
    const $T sum = x + 1.0f;
    const $I power = (as_$I(sum) - 0x3f400000) & ~0x7fffff;
    const $T unit = as_$T(0x3f800000 - power);
    const int rare = any(as_$U(sum) - 1u >= 0x7e7fffffu ? ($I)(-1) : ($I)(0));  // from 2^126, -1 and below, NaN
    const $T e = convert_$T(power >> 23);
    $T f = x * unit + (unit - 1.0f);
    if (rare) f = x > 0x1p125f ? as_$T(as_$I(x) - power) - 1.0f : f;
"""
    + _LOG_OF_PARTS
    + """\
    if (rare) {
        result = x == INFINITY ? x : result;
        result = x > -1.0f ? result : (x == -1.0f ? ($T)(-INFINITY) : ($T)(NAN));
    }
    return as_$T(as_$I(result) | (as_$I(x) & ~0x7fffffff));  // the sign of zero
}
"""
)

_RSQRT = """
${inline} $T rsqrt_$T($T x) {
#if $wide
    const $T y = as_$T(__builtin_ia32_rsqrt14ps${bits}_mask(x, x, $all));
    const $T product = x * y;
    const $T off = 1.0f - product * y;  // NaN where x is 0 or infinite, whose y is right
    const $T result = y + (y * off) * (off * 0.375f + 0.5f);
    return off == off ? result : y;
#else
    return 1.0f / sqrt(x);
#endif
}
"""

_SIGMOID = (
    """
${inline} $T sigmoid_$T($T x) {  // 2^w / (2^w + e^r), where x = w log(2) - r; the denominator with extra precision
    $T y = x > 25.0f ? ($T)(25.0f) : x;
    y = y < -104.0f ? ($T)(-104.0f) : y;
#if $sixteen  // w in sixteenths, whose fraction selects a root of 2, and |r| <= log(2) / 32
    const $T shifted = y * 1.44269504f + 786432.0f;
    const $T w = shifted - 786432.0f;
    const $T near = w * 0.693147182f - y;  // exact
    const $T r = near - w * 1.90465430e-9f;
    const $T q = (near * 1.66669795e-01f + 5.00016195e-01f) * (near * near) + r;
"""
    + f"    const $T power = {_root(_INVERSE_ROOTS[0])};\n    const $T p = power * q + {_root(_INVERSE_ROOTS[1])};\n"
    + """\
#else
    const $T power = 1.0f;
    const $T shifted = y * 1.44269504f + 12583063.0f;
    const $T w = shifted - 12583063.0f;
    const $T r = (w * 0.693359375f - y) - w * 2.12194440e-4f;
    $T p = r * 1.38189388e-3f + 8.36870354e-3f;
    p = p * r + 4.16682884e-2f;
    p = p * r + 1.66665211e-1f;
    p = p * r + 4.99999940e-1f;
    p = p * (r * r) + r;
#endif
#if $wide
    const $T one = ($T)(1.0f);
    const $T unit = as_$T(__builtin_ia32_scalefps${bits}_mask(one, w, one, $all$rounding));  // times 2^w, with w rounded down
    const $T sum = (unit + power) + p;
    const $T first = as_$T(__builtin_ia32_rcp14ps${bits}_mask(sum, sum, $all));
    const $T off = ((1.0f - power * first) - unit * first) - p * first;
    const $T inverse = off * first + first;
    return as_$T(__builtin_ia32_scalefps${bits}_mask(inverse, w, inverse, $all$rounding));
#else
    const $T scale = as_$T(as_$I(shifted) << 23);  // 2^(w + 24), which is never denormal
    const $T unit = scale * 0x1p-24f;
    const $T large = unit > power ? unit : power;
    const $T small = (unit > power ? power : unit) + p;
    const $T sum = large + small;
    const $T rest = small - (sum - large);
    const $T first = 1.0f / sum;
    return (first - (first * first) * rest) * scale * 0x1p-24f;
#endif
}
"""
)

FUNCTIONS: dict[str, Function] = {
    "exp": Function(_EXP, (), 1.0),
    "exp2": Function(_EXP2, (), 1.08),
    "expm1": Function(_EXPM1, (), 1.2),
    "log": Function(_LOG, (), 0.97),
    "log2": Function(_LOG2, (), 1.23),
    "log1p": Function(_LOG1P, (), 1.0),
    "rsqrt": Function(_RSQRT, (), 1.5),
    "tanh": Function(TANH, (), 1.46),
    "erf": Function(ERF, (), 1.45),
    "sigmoid": Function(_SIGMOID, (), 1.45),
    "sin": Function(SIN, (), 1.5),
    "cos": Function(COS, (), 1.5),
    "pow": Function(POW, (), 1.25),
    "fmod": Function(FMOD, (), 0.0),
}

# Only where permitted; within these ulps of the exact value.
FAST: dict[str, Function] = {"exp": Function(_FAST_EXP, (), 5.0)}

QUOTIENTS = quotients("float", "0x1p-126f", "0x1p126f", "0x1.fffffep127f")

ULPS = {name: function.ulps for name, function in FUNCTIONS.items()}


def fields(type: str) -> dict[str, str]:
    """The placeholders for a value type, `float` or `float2` to `float16`."""
    lanes = type.removeprefix("float")
    others = {"T": type, "I": f"int{lanes}", "U": f"uint{lanes}", "D": f"double{lanes}", "L": f"long{lanes}"}
    if lanes == "16":
        wide = {"wide": "defined(__AVX512DQ__)", "bits": "512", "all": "(ushort)0xffff", "rounding": ", 4"}
        wide["sixteen"] = wide["wide"]
    elif lanes in ("4", "8"):
        wide = {
            "wide": "defined(__AVX512DQ__) && defined(__AVX512VL__)",
            "bits": str(32 * int(lanes)),
            "all": "(uchar)0xff" if lanes == "8" else "(uchar)0xf",
            "rounding": "",
        }
    else:
        wide = {"wide": "0", "bits": "", "all": "", "rounding": ""}
    return {"sixteen": "0"} | others | wide
