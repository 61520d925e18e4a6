"""Functions of 64-bit floats that need more than 64-bit arithmetic: sin and cos of any argument, pow, and fmod.

Templates as in float64.py, which lists the placeholders. A product is carried with its rounding error (`product_error`): one
fused multiply-add where the machine has it, Dekker's split products elsewhere. Steps whose correctness depends on it use explicit
fused operations or sums in a fixed order, so they hold whether or not the compiler contracts a*b+c.
Source: T. J. Dekker, A floating-point technique for extending the available precision, 1971 (split products). M. Payne and R.
Hanek, Radian reduction for trigonometric functions, 1983 (sin and cos of large arguments).
"""

from __future__ import annotations

from collections.abc import Sequence

from tilelang.lowering.targets.c.functions import Function
from tilelang.lowering.targets.cpu_functions import float64_wide

# 2^r = 1 + r p(r) for |r| <= 1/2.
EXP2 = (
    0.6931471805599453, 0.24022650695910122, 0.055504108664821604, 0.009618129107594839, 0.0013333558146410513,
    0.00015403530459094308, 1.5252733839088568e-05, 1.3215433326138529e-06, 1.0178057509065498e-07, 7.0742331961670776e-09,
    4.455838623066806e-10,
)  # fmt: skip

FUSED = "#if defined(__FMA__) || defined(__FMA4__) || defined(__aarch64__) || defined(__riscv_d)"


def polynomial(name: str, variable: str, coefficients: Sequence[float], ways: int = 2) -> str:
    """Statements of a template that evaluate a polynomial; coefficients from the constant term upwards.

    ways: 1 for Horner's rule; 2 for even and odd powers separately, each by Horner's rule: the dependency chains are half as
    long, for one more multiplication (none if the square is already there).
    """
    lines, power = [], variable
    if ways == 2:
        power = f"{name}_{variable}2"
        lines.append(f"    const $T {power} = {variable} * {variable};")
    for way in range(ways):
        own = f"{name}_odd" if way else name
        first, second, *others = reversed(coefficients[way::ways])
        lines.append(f"    $T {own} = {power} * {_literal(first)} + {_literal(second)};")
        lines += [f"    {own} = {own} * {power} + {_literal(c)};" for c in others]
    return "\n".join([*lines, *([f"    {name} = {name}_odd * {variable} + {name};"] if ways == 2 else [])])


def _literal(value: float) -> str:
    return f"({value!r})" if value < 0 else repr(value)


_PRODUCT_ERROR = f"""
${{inline}} $T product_error_$T($T a, $T b, $T product) {{  // a * b - product exactly, for a product that is right to a few ulps
{FUSED}
    return __builtin_elementwise_fma(a, b, -product);
#else
    const $T a_high = as_$T(as_$U(a) & ~(ulong)0x7ffffff);  // 26 and 27 bits; b's have 26, so that all products are exact
    const $T b_high = as_$T((as_$U(b) + 0x4000000) & ~(ulong)0x7ffffff);
    const $T a_low = a - a_high;
    const $T b_low = b - b_high;
    return ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low;
#endif
}}
"""

# 34 bits before the binary point, then 1 / pi: 1216 bits in all.
_RECIPROCAL_OF_PI = (
    0x000000000A2F9836, 0xE4E441529FC2757D, 0x1F534DDC0DB62959, 0x93C439041FE5163A, 0xBDEBBC561B7246E3, 0xA424DD2E006492EE,
    0xA09D1921CFE1DEB1, 0xCB129A73EE88235F, 0x52EBB4484E99C702, 0x6B45F7E413991D63, 0x9835339F49C845F8, 0xBBDF9283B1FF897F,
    0xFDE05980FEF2F118, 0xB5A0A6D1F6D367EC, 0xF27CB09B74F463F6, 0x69E5FEA2D7527BAC, 0x7EBE5F17B3D0739F, 0x78A5292EA6BFB5FB,
    0x11F8D5D085603304,
)  # fmt: skip


def _window() -> str:
    """Statements that select words `word` to `word` + 3 of the constant, for 0 <= word < 16, by halving the words at each step."""
    lines, names = [], [f"(ulong){word:#x}" for word in _RECIPROCAL_OF_PI]
    for step in (8, 4, 2, 1):
        lines.append(f"    const $I by_{step} = (word & {step}) != 0 ? ($I)(-1) : ($I)(0);")
        count = step + 3
        chosen = [f"w{step}_{i}" for i in range(count)]
        typed = "($U)({})" if step == 8 else "{}"
        lines += [
            f"    const $U {new} = by_{step} != 0 ? {typed.format(names[i + step])} : {typed.format(names[i])};"
            for i, new in enumerate(chosen)
        ]
        names = chosen
    return "\n".join(lines)


# x = m * 2^q with m of 53 bits. Bits of 1/pi above 2^-q give even multiples, so the product of m and the 192 bits that follow is
# x / pi modulo 2. 128 bits of it are kept: no double is closer than 2^-62 to a multiple of pi / 2.
_FAR = f"""
${{inline}} $T far_remainder_$T($T a, $U half, $I* turns) {{  // x - n pi in -pi/2 .. pi/2, for x >= 2^20 (plus pi/2); turns: n modulo 2
    const $U bits = as_$U(a);
    const $U from = (bits >> 52) - 1041;
    const $U word = (from >> 6) & 15;
    const $U by = from & 63;
{_window()}
    const $U high_word = (w1_0 << by) | ((w1_1 >> 1) >> (63 - by));
    const $U middle_word = (w1_1 << by) | ((w1_2 >> 1) >> (63 - by));
    const $U low_word = (w1_2 << by) | ((w1_3 >> 1) >> (63 - by));
    const ulong ones = 0xffffffff;
    const $U m0 = bits & ones;
    const $U m1 = ((bits >> 32) & 0xfffff) | 0x100000;
    const $U p0 = m0 * (low_word & ones);
    const $U p1 = m0 * (low_word >> 32);
    const $U p2 = m0 * (middle_word & ones);
    const $U p3 = m0 * (middle_word >> 32);
    const $U p4 = m0 * (high_word & ones);
    const $U p5 = m0 * (high_word >> 32);
    const $U q1 = m1 * (low_word & ones);
    const $U q2 = m1 * (low_word >> 32);
    const $U q3 = m1 * (middle_word & ones);
    const $U q4 = m1 * (middle_word >> 32);
    const $U q5 = m1 * (high_word & ones);
    const $U c1 = (p0 >> 32) + (p1 & ones) + (q1 & ones);
    const $U c2 = (c1 >> 32) + (p1 >> 32) + (p2 & ones) + (q1 >> 32) + (q2 & ones);
    const $U c3 = (c2 >> 32) + (p2 >> 32) + (p3 & ones) + (q2 >> 32) + (q3 & ones);
    const $U c4 = (c3 >> 32) + (p3 >> 32) + (p4 & ones) + (q3 >> 32) + (q4 & ones);
    const $U c5 = (c4 >> 32) + (p4 >> 32) + p5 + (q4 >> 32) + q5;
    const $U high = ((c5 << 32) | (c4 & ones)) + half;  // in units of 2^-63 of pi
    const $U low = (c3 << 32) | (c2 & ones);
    *turns = as_$I((high + 0x4000000000000000) >> 63);
    const $I fraction = as_$I((high << 1) | (low >> 63));
    const $U flip = fraction < 0 ? ($U)(~(ulong)0) : ($U)(0);
    const $U f1 = as_$U(fraction) ^ flip;
    const $U f0 = (low << 1) ^ flip;
    const ulong magic = 0x4330000000000000;  // 2^52: a whole number in its low bits is added
    const $T t3 = (as_$T((f1 >> 32) | magic) - 0x1p52) * 0x1p-32;
    const $T t2 = (as_$T((f1 & ones) | magic) - 0x1p52) * 0x1p-64;
    const $T t1 = (as_$T((f0 >> 32) | magic) - 0x1p52) * 0x1p-96;
    const $T t0 = (as_$T((f0 & ones) | magic) - 0x1p52) * 0x1p-128;
    const $T sum = t3 + t2;
    const $T rest = ((t3 - sum) + t2) + (t1 + t0);
    const $T r = sum * 3.141592653589793;
    const $T error = product_error_$T(sum, ($T)(3.141592653589793), r);
    const $T whole = r + (error + (sum * 1.2246467991473532e-16 + rest * 3.141592653589793));
    return as_$T(as_$U(whole) ^ (flip << 63));
}}
"""

# sin(|x|) is sin(r) or -sin(r) for r = |x| - n pi, |r| <= pi / 2; cos(x) is the sine of x + pi / 2. Three parts of pi of 53 bits: the
# first difference is exact. Without fused operations the parts have 32 bits, so that their products with n < 2^21 are exact.
_WAVE = f"""
${{inline}} $T $name_$T($T x) {{
    const $T a = as_$T(as_$U(x) & 0x7fffffffffffffff);
    const $T shifted = a * 0.3183098861837907 + $offset;  // the sum's low bits are n
    const $T n = $whole;
    $I turns = as_$I(shifted);
{FUSED}
    const double limit = 0x1p29;
    $T r = __builtin_elementwise_fma(n, ($T)(-3.141592653589793), a);
    r = __builtin_elementwise_fma(n, ($T)(-1.2246467991473532e-16), r);
    r = __builtin_elementwise_fma(n, ($T)(2.9947698097183397e-33), r);
#else
    const double limit = 0x1p20;
    const $T r1 = a - n * 3.1415926534682512;
    const $T s2 = n * 1.2154201012607932e-10;
    const $T r2 = r1 - s2;
    const $T s3 = n * 4.044532497422333e-21;
    const $T r3 = r2 - s3;
    $T r = r3 + ((((r1 - r2) - s2) + ((r2 - r3) - s3)) - n * 1.6956855320696459e-31);
#endif
    if (any((a < limit) == 0)) {{  // NaN too
        $I far_turns;
        const $T far = far_remainder_$T(a, ($U)($half), &far_turns);
        r = a < limit ? r : (a < INFINITY ? far : ($T)(NAN));
        turns = a < limit ? turns : far_turns;
    }}
    const $T s = r * r;
$polynomial
    const $T sine = (s * r) * p + r;
    return as_$T(as_$U(sine) ^ (as_$U(turns) << 63)$sign);
}}
"""
_SINE = (
    -0.16666666666666666, 0.00833333333333324, -0.00019841269841221627, 2.7557319212728634e-06, -2.5052106979622296e-08,
    1.6058943500654525e-10, -7.643056834682948e-13, 2.721573343944694e-15,
)  # fmt: skip


def _wave(name: str, offset: str, whole: str, half: str, sign: str) -> str:
    fields = {
        "name": name,
        "offset": offset,
        "whole": whole,
        "half": half,
        "sign": sign,
        "polynomial": polynomial("p", "s", _SINE, ways=1),
    }
    text = _WAVE
    for key, value in fields.items():
        text = text.replace(f"${key}", value)
    return text


_SIN = _wave("sin", "0x1.8p52", "shifted - 0x1.8p52", "0", " ^ (as_$U(x) & 0x8000000000000000)")
_COS = _wave("cos", "0.5 + 0x1.8p52", "(shifted - 0x1.8p52) - 0.5", "0x4000000000000000", "")

# log2(|x|) = e + s (c1 + c3 s^2 + ...) with s = (m - 1) / (m + 1) and m in sqrt(1/2) .. sqrt(2), to 2^-64 of itself: the quotient, the
# first two coefficients and all sums in pairs of doubles. Then 2^(y log2(|x|)).
_LOG2_TAIL = (  # the rounding error of c3, c5, c7, ...
    5.0577616648125907e-17, 0.5770780163555853, 0.4121985831111953, 0.32059889794828045, 0.2623081945240016, 0.22195253465027567,
    0.19239186524005025, 0.16862927281118573, 0.17144989425121807,
)  # fmt: skip
_POW = f"""
${{inline}} $T pow_$T($T x, $T y) {{
    const $T size = as_$T(as_$U(x) & 0x7fffffffffffffff);
    int odd = any(((x >= 0x1p-1022) & (x < INFINITY)) == 0);
    $T normal = size;
    $T bias = 0x1p52 + 1023.0;
    if (odd) {{  // denormals
        normal = size < 0x1p-1022 ? size * 0x1p54 : size;
        bias = size < 0x1p-1022 ? bias + 54.0 : bias;
    }}
    const $U moved = as_$U(normal) + 0x00095f6200000000;  // the exponent's field counts from sqrt(1/2)
    const $T e = as_$T((moved >> 52) | 0x4330000000000000) - bias;
    const $T m = as_$T((moved & 0x000fffffffffffff) + 0x3fe6a09e00000000);
    const $T f = m - 1.0;
    const $T d = m + 1.0;
    const $T d_low = m - (d - 1.0);
    const $T inverse = 1.0 / d;
    const $T s = f * inverse;
    const $T s_low = (-product_error_$T(s, d, f) - s * d_low) * inverse;
    const $T z = s * s;
    const $T z_low = product_error_$T(s, s, z) + (s + s) * s_low;
{polynomial("p", "z", _LOG2_TAIL, ways=1)}
    const $T w = z * 0.9617966939259756;
    const $T w_low = product_error_$T(z, ($T)(0.9617966939259756), w) + z_low * 0.9617966939259756;
    const $T v = w + 2.8853900817779268;
    const $T v_low = ((2.8853900817779268 - v) + w) + ((w_low + 4.0710547481862066e-17) + p * z);
    const $T l = s * v;
    const $T l_low = product_error_$T(s, v, l) + (s * v_low + s_low * v);
    $T log = e + l;
    const $T log_low = ((e - log) + l) + l_low;
    if (odd) log = size > 0.0 ? (size < INFINITY ? log : ($T)(INFINITY)) : ($T)(-INFINITY);
    $T t = y * log;
    $T t_low = product_error_$T(y, log, t) + y * log_low;
    const $T bound = as_$T(as_$U(t) & 0x7fffffffffffffff);
    odd |= any((bound < 1020.0) == 0);
    if (odd) {{
        t_low = bound < 1100.0 ? t_low : ($T)(0.0);
        t = t > 1100.0 ? ($T)(1100.0) : t;
        t = t < -1100.0 ? ($T)(-1100.0) : t;
    }}
{float64_wide.CONDITION}
{float64_wide.POWER_OF_SUM}
    if (!odd) return result;
#else
    const $T shifted = (t + t_low) + 0x1.8p52;
    const $T r = (t - (shifted - 0x1.8p52)) + t_low;
{polynomial("q", "r", EXP2)}
    const $T power = q * r + 1.0;
    if (!odd) return as_$T(as_$U(power) + (as_$U(shifted) << 52));
    const $I whole = as_$I(shifted) - 0x4338000000000000;
    const $I half_of_n = whole >> 1;  // as two factors, so that results can be infinite or denormal
    $T result = power * as_$T((half_of_n + 1023) << 52) * as_$T((whole - half_of_n + 1023) << 52);
#endif
    const $T y_size = as_$T(as_$U(y) & 0x7fffffffffffffff);
    const $T y_half = y_size * 0.5;
    const $I fractional = ((y_size < 0x1p52) & ((y_size + 0x1p52) - 0x1p52 != y_size)) ? ($I)(1) : ($I)(0);
    const $I uneven = ((y_size < 0x1p53) & ((y_half + 0x1p52) - 0x1p52 != y_half)) ? ($I)(1) : ($I)(0);
    const $I negative = as_$I(x) < 0 ? uneven & ~fractional : ($I)(0);
    result = as_$T(as_$U(result) | (as_$U(negative) << 63));
    result = ((x < 0.0) & (x > -INFINITY) & (fractional != 0)) ? ($T)(NAN) : result;
    result = ((x == x) & (y == y)) ? result : x + y;
    return ((y == 0.0) | (x == 1.0) | ((x == -1.0) & (y_size == INFINITY))) ? ($T)(1.0) : result;
}}
"""

# The quotient is rounded to an integer, so the remainder is in -b/2 .. b/2 and exact. For large quotients, the operands'
# significands are divided 48 bits of the quotient at a time.
_FMOD = f"""
${{inline}} $T fmod_$T($T x, $T y) {{
    const $T a = as_$T(as_$U(x) & 0x7fffffffffffffff);
    const $T b = as_$T(as_$U(y) & 0x7fffffffffffffff);
    const $T quotient = a / b;
    const $T q = (quotient + 0x1p52) - 0x1p52;
{FUSED}
    const double least = 0.0;
    $T r = __builtin_elementwise_fma(-q, b, a);
#else
    const double least = 0x1p-900;
    const $T product = q * b;
    $T r = (a - product) - product_error_$T(q, b, product);
#endif
    r = r < 0.0 ? r + b : r;
    r = a < b ? a : r;
    if (any(((quotient < 0x1p51) & (a < 0x1p1000) & (b > least)) == 0)) {{
        const $T a_normal = a < 0x1p-1022 ? a * 0x1p54 : a;
        const $T b_normal = b < 0x1p-1022 ? b * 0x1p54 : b;
        const $I a_exponent = as_$I(as_$U(a_normal) >> 52) - (a < 0x1p-1022 ? ($I)(54) : ($I)(0));
        const $I b_exponent = as_$I(as_$U(b_normal) >> 52) - (b < 0x1p-1022 ? ($I)(54) : ($I)(0));
        $T s = as_$T((as_$U(a_normal) & 0x000fffffffffffff) | 0x3ff0000000000000);
        const $T m = as_$T((as_$U(b_normal) & 0x000fffffffffffff) | 0x3ff0000000000000);
        const $T inverse = 1.0 / m;
        $I left = a_exponent - b_exponent;
        for (;;) {{
            const $T p = (s * inverse + 0x1.8p52) - 0x1.8p52;
            const $T whole = p * m;
            s = (s - whole) - product_error_$T(p, m, whole);
            if (!any(left > 0)) break;
            const $I by = left < 48 ? (left > 0 ? left : ($I)(0)) : ($I)(48);
            s = s * as_$T((by + 1023) << 52);
            left -= by;
        }}
        s = s < 0.0 ? s + m : s;
        const $I half = (b_exponent - 1023) >> 1;
        s = s * as_$T((half + 1023) << 52) * as_$T((b_exponent - half) << 52);
        r = a < b ? a : s;
        r = ((a < INFINITY) & (b > 0.0)) ? r : ($T)(NAN);
    }}
    return as_$T((as_$U(r) & 0x7fffffffffffffff) | (as_$U(x) & 0x8000000000000000));
}}
"""

FUNCTIONS = {
    "product_error": Function(_PRODUCT_ERROR),
    "far_remainder": Function(_FAR, ("product_error",)),
    "sin": Function(_SIN, ("far_remainder",), 1.95),
    "cos": Function(_COS, ("far_remainder",), 1.95),
    "pow": Function(_POW, ("product_error",), 1.9),
    "fmod": Function(_FMOD, ("product_error",)),
}
