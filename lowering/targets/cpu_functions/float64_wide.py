"""Shorter forms of some functions of 64-bit floats for AVX-512: tables of 16 numbers in two registers, scaling, estimates.

Each is the body of a function in float64.py, which places it under `CONDITION`: for double8 only, on machines with AVX-512. (clang 22
miscompiles the permutation for double16, which needs two: both halves get the first one's numbers.) Coefficients are minimax fits as
there, for an argument smaller by a factor of 16.
"""

from __future__ import annotations

from collections.abc import Sequence

# The preprocessor does not know the other types' names, so they are 0.
CONDITION = """\
#define lanes_of_double8 8
#if defined(__AVX512F__) && lanes_of_$T"""

# 2^(i/16), rounded, and the rounding errors.
_POWERS = (
    1.0, 1.0442737824274138, 1.0905077326652577, 1.1387886347566916, 1.189207115002721, 1.241857812073484, 1.2968395546510096,
    1.3542555469368927, 1.4142135623730951, 1.4768261459394993, 1.5422108254079407, 1.6104903319492543, 1.681792830507429,
    1.7562521603732995, 1.8340080864093424, 1.9152065613971474,
)  # fmt: skip
_RESTS = (
    0.0, 8.551889705537965e-17, -3.046782079812471e-17, 8.912812676025408e-17, 3.982015231465646e-17, 4.658027591836937e-17,
    2.5382502794888315e-17, 7.70094837980299e-17, -9.667293313452913e-17, -3.483994556892796e-17, 7.949834809697621e-17,
    2.4707192569797888e-17, 8.199010020581497e-17, 2.960140695448873e-17, 3.283107224245627e-17, -1.0619946056195963e-16,
)  # fmt: skip


def _table(name: str, values: Sequence[float]) -> str:
    halves = (("low", values[:8]), ("high", values[8:]))
    return "\n".join(f"    const $T {name}_{half} = {{{', '.join(map(repr, part))}}};" for half, part in halves)


def _looked_up(name: str) -> str:
    return f"__builtin_ia32_vpermi2varpd512({name}_low, as_$I(shifted), {name}_high)"


# If n counts sixteenths, its fraction is in the low four bits of `shifted`; scaling by 2^n drops it, and may give infinite or
# denormal results.
_CLAMPED = """\
    $T y = x > 4096.0 ? ($T)(4096.0) : x;
    y = y < -4096.0 ? ($T)(-4096.0) : y;"""
_POWER = f"""\
{_table("powers", _POWERS)}
{_table("rests", _RESTS)}
    const $T power = {_looked_up("powers")};
    const $T rest = {_looked_up("rests")};
    const $T unscaled = (power * q + rest) + power;
    $T result = __builtin_ia32_scalefpd512_mask(unscaled, n, unscaled, (uchar)255, 4);"""

EXP = f"""\
{_CLAMPED}
    const $T shifted = y * 1.4426950408889634 + 0x1.8p48;
    const $T n = shifted - 0x1.8p48;
    $T r = __builtin_elementwise_fma(n, ($T)(-0.6931471805599453), y);
    r = __builtin_elementwise_fma(n, ($T)(-2.3190468138462996e-17), r);
    $T p = r * 0.0013889687358386333 + 0.00833347270981324;
    p = p * r + 0.041666666631633806;
    p = p * r + 0.1666666666439223;
    p = p * r + 0.5000000000000033;
    const $T q = p * (r * r) + r;
{_POWER}
    return result;"""

_EXP2_OF_R = f"""\
    $T u = r * 0.00015404404631028562 + 0.001333382150509782;
    u = u * r + 0.009618129098733046;
    u = u * r + 0.0555041086518394;
    u = u * r + 0.24022650695910291;
    u = u * r + 0.693147180559947;
    const $T q = u * r;
{_POWER}"""

EXP2 = f"""\
{_CLAMPED}
    const $T shifted = y + 0x1.8p48;
    const $T n = shifted - 0x1.8p48;
    const $T r = y - n;
{_EXP2_OF_R}
    return result;"""

# 2^(t + t_low), |t| <= 1100
POWER_OF_SUM = f"""\
    const $T shifted = (t + t_low) + 0x1.8p48;
    const $T n = shifted - 0x1.8p48;
    const $T r = (t - n) + t_low;
{_EXP2_OF_R}"""

RSQRT = """\
    const $T y = __builtin_ia32_rsqrt14pd512_mask(x, x, (uchar)255);  // to 2^-14, then three terms of a series
    const $T t = x * y;
    const $T e = 1.0 - t * y;
    $T p = e * 0.3125 + 0.375;
    p = p * e + 0.5;
    const $T r = (y * e) * p + y;
    return e == e ? r : y;  // of 0 and infinity the estimate is right"""
