"""Functions of 32-bit floats for vectors of any width: polynomials to replace builtins that are slow or inaccurate on a device.

Each is a template over the value type `$T` (float, float4, ...) and its integer type `$I`. It uses only arithmetic, comparison
with select, and reinterpretation, so that every dialect of the C family compiles it and every lane stays in registers. All
propagate NaN, treat infinities as NumPy does, and keep denormals if the device does. `ULPS` states the greatest error observed
against float64 over all magnitudes, with and without contraction of a*b+c (tests/lowering/test_function_errors.py measures it and
fails above it). Coefficients are weighted minimax fits (Lawson's iteration) with an error far below an ulp.
"""

from __future__ import annotations

import dataclasses

from tilelang.lowering.targets.c.dialect import LANE_DIGITS


@dataclasses.dataclass(frozen=True, slots=True)
class Function:
    """A template: its text, the functions it calls, and its maximum error in ulps."""

    text: str
    needs: tuple[str, ...] = ()
    ulps: float = 0.0


_EXP = """
${inline} $T exp_$T($T x) {  // 2^n * e^r with n whole and |r| <= log(2) / 2
    $T y = x > 89.0f ? ($T)(89.0f) : x;
    y = y < -104.0f ? ($T)(-104.0f) : y;
    const $T shifted = y * 1.44269504f + 12582912.0f;  // the sum's low bits are n
    const $T n = shifted - 12582912.0f;
    const $I whole = as_$I(shifted) - 0x4b400000;
    const $T r = (y - n * 0.693359375f) + n * 2.12194440e-4f;
    $T p = r * 1.38144649e-3f + 8.36878084e-3f;
    p = p * r + 4.16683927e-2f;
    p = p * r + 1.66665196e-1f;
    p = p * r + 4.99999940e-1f;
    p = p * (r * r) + r;
$scaled    const $I half_of_n = whole >> 1;  // as two factors, so that results can be infinite or denormal
    return (p + 1.0f) * as_$T((half_of_n + 127) << 23) * as_$T((whole - half_of_n + 127) << 23);
$end}
"""

_FAST_EXP = """
${inline} $T fast_exp_$T($T x) {  // 2^(x log2(e)) with the product rounded: the error grows with |x|
    $T y = x > 89.0f ? ($T)(89.0f) : x;
    y = y < -104.0f ? ($T)(-104.0f) : y;
    const $T shifted = y * 1.44269504f + 12582912.0f;
    const $T n = shifted - 12582912.0f;
    const $I whole = as_$I(shifted) - 0x4b400000;
    const $T r = y * 1.44269504f - n;
    $T p = r * 1.32647096e-3f + 9.67153784e-3f;
    p = p * r + 5.55073401e-2f;
    p = p * r + 2.40222417e-1f;
    p = p * r + 6.93146977e-1f;
    p = p * r;
$scaled    const $I half_of_n = whole >> 1;
    return (p + 1.0f) * as_$T((half_of_n + 127) << 23) * as_$T((whole - half_of_n + 127) << 23);
$end}
"""

# x86 scales by a power of two in one instruction, with correct infinite and denormal results.
_SCALED = """\
#if defined(__AVX512F__)
    return as_float16(__builtin_ia32_scalefps512_mask(as_float16(p + 1.0f), as_float16(n), as_float16(p), (ushort)0xffff, 4));
#else
"""

_EXP2 = """
${inline} $T exp2_$T($T x) {  // 2^n * 2^r with n whole and |r| <= 1/2
    $T y = x > 129.0f ? ($T)(129.0f) : x;
    y = y < -151.0f ? ($T)(-151.0f) : y;
    const $T shifted = y + 12582912.0f;
    const $T r = y - (shifted - 12582912.0f);
    const $I whole = as_$I(shifted) - 0x4b400000;
    $T p = r * 1.53531524e-4f + 1.33991335e-3f;
    p = p * r + 9.61843971e-3f;
    p = p * r + 5.55033199e-2f;
    p = p * r + 2.40226477e-1f;
    p = p * r + 6.93147182e-1f;
    const $I half_of_n = whole >> 1;
    return (p * r + 1.0f) * as_$T((half_of_n + 127) << 23) * as_$T((whole - half_of_n + 127) << 23);
}
"""

# log(2^e * (1 + f)) with f in sqrt(1/2)-1 .. sqrt(2)-1; $result combines e and log(1 + f).
_LOGARITHM = """
${inline} $T $name($T x) {
    const $T scaled = x < 1.17549435e-38f ? x * 8388608.0f : x;  // denormals
    const $T shift = x < 1.17549435e-38f ? ($T)(-23.0f) : ($T)(0.0f);
    const $I bits = as_$I(scaled);
    const $I exponent = (bits - 0x3f3504f3) >> 23;
    const $T e = (as_$T(exponent + 0x4b400000) - 12582912.0f) + shift;
    const $T f = as_$T(bits - (exponent << 23)) - 1.0f;
    $T p = f * 6.74660131e-2f - 1.16756409e-1f;
    p = p * f + 1.18881747e-1f;
    p = p * f - 1.24055915e-1f;
    p = p * f + 1.42195508e-1f;
    p = p * f - 1.66679963e-1f;
    p = p * f + 2.00021192e-1f;
    p = p * f - 2.50000089e-1f;
    p = p * f + 3.33333135e-1f;
    const $T s = f * f;
    const $T tail = s * f * p - 0.5f * s;
    $result
    r = x == INFINITY ? x : r;
    return x > 0.0f ? r : (x == 0.0f ? ($T)(-INFINITY) : ($T)(NAN));
}
"""
_LOG = _LOGARITHM.replace("$name", "log_$T").replace("$result", "$T r = e * 0.693359375f + (f + (tail - e * 2.12194440e-4f));")
_LOG2 = _LOGARITHM.replace("$name", "log2_$T").replace(
    "$result", "$T r = e + (f * 1.44269502f + (tail * 1.44269502f + (f + tail) * 1.92596299e-8f));"
)

_TANH = """
${inline} $T tanh_$T($T x) {  // an odd polynomial near zero, 1 - 2 / (exp(2 |x|) + 1) elsewhere
    const $T a = as_$T(as_$I(x) & 0x7fffffff);
    const $T s = a * a;
    $T p = s * -5.71703678e-3f + 2.06505787e-2f;
    p = p * s - 5.37434965e-2f;
    p = p * s + 1.33314908e-1f;
    p = p * s - 3.33332837e-1f;
    const $T near = p * s * a + a;
    const $T far = 1.0f - 2.0f / (exp_$T(a + a) + 1.0f);
    return as_$T(as_$I(a < 0.625f ? near : far) | (as_$I(x) & ~0x7fffffff));  // the sign of zero too
}
"""

_ERF = """
${inline} $T erf_$T($T x) {  // an odd polynomial near zero, 1 - exp(-|x| q(|x|)) elsewhere
    const $T a = as_$T(as_$I(x) & 0x7fffffff);
    const $T s = x * x;
    $T p = s * -5.96425263e-4f + 4.98800399e-3f;
    p = p * s - 2.67631244e-2f;
    p = p * s + 1.12817213e-1f;
    p = p * s - 3.76124859e-1f;
    p = p * s + 1.28379151e-1f;
    const $T near = p * x + x;
    const $T t = a > 4.0f ? ($T)(4.0f) : a;
    $T q = t * 1.15259299e-5f - 3.25755333e-4f;
    q = q * t + 3.65447090e-3f;
    q = q * t - 2.37874929e-2f;
    q = q * t + 1.06266432e-1f;
    q = q * t + 6.35133445e-1f;
    q = q * t + 1.12865293e+0f;
    const $T far = 1.0f - exp_$T(-(q * t));
    return a < 0.9277f ? near : as_$T(as_$I(far) | (as_$I(x) & ~0x7fffffff));
}
"""

# sin(|x|) and cos(|x|): quarter turns subtracted in four steps that are exact below 8192, then both polynomials.
_WAVE = """
${inline} $T $name($T x) {
    const $T a = as_$T(as_$I(x) & 0x7fffffff);
    const $T shifted = a * 6.36619772e-1f + 12582912.0f;
    const $T n = shifted - 12582912.0f;
    const $T r = (((a - n * 1.5703125f) - n * 4.83751297e-4f) - n * 7.54953362e-8f) - n * 2.56334407e-12f;
    const $T s = r * r;
    $T p = s * -1.95149425e-4f + 8.33215830e-3f;
    p = p * s - 1.66666546e-1f;
    $T q = s * 2.44327725e-5f - 1.38873130e-3f;
    q = q * s + 4.16666456e-2f;
    const $T sine = p * (s * r) + r;
    const $T cosine = q * (s * s) + (1.0f - 0.5f * s);
    const $I turns = as_$I(shifted)$quarter;
    const $T size = (turns & 1) != 0 ? cosine : sine;
    const $T near = as_$T(as_$I(size) ^ ($sign(turns & 2) << 30));
$far}
"""
_SIN = (
    _WAVE.replace("$name", "sin_$T")
    .replace("$quarter", "")
    .replace("$sign", "(as_$I(x) & ~0x7fffffff) ^ ")
    .replace("$far", "$far_sin")
)
_COS = _WAVE.replace("$name", "cos_$T").replace("$quarter", " + 1").replace("$sign", "").replace("$far", "$far_cos")

_SIGMOID = """
${inline} $T sigmoid_$T($T x) {  // exp(x) / (1 + exp(x)) on the left, so that small results keep their precision
    const $T e = exp_$T(as_$T(as_$I(x) | ~0x7fffffff));
    const $T r = 1.0f / (1.0f + e);
    return x >= 0.0f ? r : e * r;
}
"""

FUNCTIONS = {
    "exp": Function(_EXP, (), 1.5),
    "exp2": Function(_EXP2, (), 1.5),
    "log": Function(_LOG, (), 1.5),
    "log2": Function(_LOG2, (), 2.0),
    "tanh": Function(_TANH, ("exp",), 2.0),
    "erf": Function(_ERF, ("exp",), 2.0),
    "sigmoid": Function(_SIGMOID, ("exp",), 3.0),
    "sin": Function(_SIN, (), 2.0),
    "cos": Function(_COS, (), 2.0),
}

# Only where permitted: within the ulps that `bound` allows for fast_exp, 7 + 2 |x|.
FAST = {"exp": Function(_FAST_EXP)}


def fields(type: str) -> dict[str, str]:
    """The placeholders of the templates for a value type besides its name: a fast path of `exp`, and the builtin for arguments
    far from 0. The latter is called lane by lane, because PoCL's sin and cos of a float vector are wrong in the neighbours of a
    lane that is huge, infinite or NaN."""
    short = {"scaled": _SCALED, "end": "#endif\n"} if type == "float16" else {"scaled": "", "end": ""}
    return short | {f"far_{name}": _far(name, type) for name in ("sin", "cos")}


def _far(name: str, type: str) -> str:
    if type == "float":
        return f"    return a > 8192.0f ? {name}(x) : near;\n"
    each = ", ".join(f"{name}(x.s{digit})" for digit in LANE_DIGITS[: int(type.removeprefix("float"))])
    return f"    if (!any(a > 8192.0f)) return near;\n    return a > 8192.0f ? ({type})({each}) : near;\n"


ULPS = {name: function.ulps for name, function in FUNCTIONS.items()}
