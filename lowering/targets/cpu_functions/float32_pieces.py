"""tanh and erf of 32-bit floats for CPUs, as templates like those of `float32.py`.

With AVX-512, vectors of 16 lanes look up the coefficients of a polynomial of degree 5 for each lane, in tables of one register each,
with one instruction per table. The argument's magnitude selects one of 16 pieces. `benchmarks/cpu_functions_tables.py` fits them.
Elsewhere a polynomial near zero and a formula with an exponential far from it are both computed, and one is selected.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

# fmt: off
# For each piece: its centre c, f(c), and p1 to p5 of f(c + t) = f(c) + t (p1 + t (p2 + ...)). The first of erf is t + t (p1 + ...),
# because its slope at zero is not a float; that of tanh is 1.
_TANH_PIECES = (
    (0, 0.187501088, 0.312523425, 0.500103354, 0.750048041, 1.0001992,
     1.25002086, 1.62514412, 2.12539887, 2.6251359, 3.12518978,
     3.87510729, 4.87523794, 5.87636042, 6.88665819, 8.66409016),
    (0, 0.18533425, 0.302731007, 0.462198436, 0.635177612, 0.761677802,
     0.84828949, 0.925366938, 0.97189486, 0.989562571, 0.99614799,
     0.999139071, 0.999883473, 0.999984264, 0.999997914, 0.99999994),
    (1, 0.965651214, 0.908353925, 0.786372602, 0.596549392, 0.419846922,
     0.280404925, 0.143695951, 0.0554203726, 0.0207659211, 0.00768918404,
     0.00172115455, 0.000233045925, 3.14719218e-05, 4.17266665e-06, 1.2117377e-07),
    (3.02020737e-07, -0.178967848, -0.274986416, -0.363454819, -0.378914684, -0.319790095,
     -0.237866178, -0.132978693, -0.0538618565, -0.0205480866, -0.00765904645,
     -0.00171754952, -0.000232723411, -3.14317076e-05, -4.16765761e-06, -1.20738534e-07),
    (-0.333355099, -0.288713306, -0.219527408, -0.0941365957, 0.0418275036, 0.103627242,
     0.108313628, 0.0751589462, 0.0338765271, 0.0134123396, 0.00506670913,
     0.00114328228, 0.00015513711, 2.0953883e-05, 2.77445565e-06, 6.74539606e-08),
    (0.00046499868, 0.112839617, 0.157725617, 0.163562223, 0.0997101516, 0.028077906,
     -0.0122582354, -0.0248528309, -0.0150172571, -0.00647873804, -0.00252074678,
     -0.000596797152, -8.13022489e-05, -1.09872035e-05, -1.45524461e-06, -3.85982339e-08),
    (0.130019501, 0.0963223875, 0.0436390713, -0.0266014654, -0.0636149645, -0.046282094,
     -0.0194543581, 0.00115624582, 0.00445473706, 0.00235821819, 0.00097521412,
     0.000235762782, 3.2343647e-05, 4.38687175e-06, 5.96491191e-07, 3.30469234e-08),
)
_ERF_PIECES = (
    (0, 0.253035218, 0.506038547, 0.759021044, 1.01203287, 1.26502991,
     1.51806867, 1.77105832, 2.02404189, 2.27706122, 2.5305326,
     2.78305125, 3.03600264, 3.28986168, 3.54457617, 3.83244371),
    (0, 0.279541314, 0.525790393, 0.716916323, 0.847635865, 0.9263888,
     0.96819663, 0.987742901, 0.995795906, 0.998719215, 0.99965471,
     0.99991709, 0.999982417, 0.999996722, 0.999999464, 0.99999994),
    (0.128379166, 1.05839694, 0.873460174, 0.634238183, 0.405178219, 0.227747336,
     0.112618387, 0.0490034111, 0.0187612176, 0.00631880248, 0.0018681389,
     0.000488294696, 0.000112054149, 2.24908617e-05, 3.94440758e-06, 4.71811745e-07),
    (2.62993353e-07, -0.267807156, -0.441998959, -0.481397241, -0.410054326, -0.288109601,
     -0.170964539, -0.0867888033, -0.0379734859, -0.0143879708, -0.00472708466,
     -0.0013587774, -0.000340127503, -7.39731113e-05, -1.39812591e-05, -1.82025929e-06),
    (-0.376140743, -0.30762437, -0.142045021, 0.0321804993, 0.141595244, 0.167060509,
     0.135483801, 0.0861376002, 0.0449869893, 0.019735802, 0.00735219009,
     0.00235843984, 0.000651126611, 0.000154726979, 3.16847945e-05, 4.3977775e-06),
    (0.000272123725, 0.12727946, 0.18216221, 0.147677049, 0.0651636198, -0.00914993882,
     -0.0454299971, -0.0471659824, -0.0328705311, -0.0177404843, -0.00778696127,
     -0.00286300667, -0.000889431103, -0.000234566585, -5.25763498e-05, -6.94361643e-06),
    (0.111031584, 0.0791443735, 0.00588471256, -0.0542422161, -0.0683694556, -0.0451983325,
     -0.0129619511, 0.00754377292, 0.0130259423, 0.010166863, 0.0056425035,
     0.0024595065, 0.000877316168, 0.000261764537, 6.66259293e-05, 1.89554703e-05),
)
# fmt: on


def _by_pieces(index: str, first: int, most: str, rows: Sequence[Sequence[float]]) -> str:
    """The body of f(x). index: C of an integer whose low four bits select the piece of b, which is |x| clamped to `most`. first: those
    bits in the first piece."""

    def looked_up(row: Sequence[float]) -> str:
        floats = ", ".join(f"{v:.8e}f" for v in (*row[-first:], *row[:-first]))
        return f"__builtin_ia32_permvarsf512(($T){{{floats}}}, index)"

    centre, value, *powers = (looked_up(row) for row in rows)
    base = "value" if rows[2][0] == 1 else "(value == 0.0f ? t : value)"
    steps = "".join(f"    p = p * t + {c};\n" for c in reversed(powers[:-1]))
    return f"""\
    const $T b = a > {most} ? ($T)({most}) : a;
    const $I index = {index};
    const $T t = b - {centre};
    const $T value = {value};
    $T p = {powers[-1]};
{steps}\
    p = p * t + {base};
    return as_$T(as_$I(p) | (as_$I(x) & ~0x7fffffff));  // the sign of zero too
"""


TANH = f"""
${{inline}} $T tanh_$T($T x) {{
    const $T a = as_$T(as_$I(x) & 0x7fffffff);
#if $sixteen
{_by_pieces("as_$I(b + 0.625f) >> 21", 9, "9.3f", _TANH_PIECES)}\
#else  // an odd polynomial near zero; elsewhere 1 - 2 / (e^(2 |x|) + 1) with e^(2 |x|) = 2^n (1 + u) / (1 - u), u = tanh(r)
    const $T s = a * a;
    $T p = s * -5.22929942e-3f + 2.01898702e-2f;
    p = p * s - 5.35950512e-2f;
    p = p * s + 1.33296326e-1f;
    p = p * s - 3.33332121e-1f;
    const $T near = p * (s * a) + a;
    const $T y = a > 9.1f ? ($T)(9.1f) : a;
    const $T shifted = y * 2.88539004f + 12583038.0f;
    const $T n = shifted - 12583038.0f;
#if defined(__FMA__) || defined(__ARM_FEATURE_FMA)
    const $T r = y - n * 0.34657359f;
#else
    const $T r = (y - n * 0.3466796875f) + n * 1.06097220e-4f;
#endif
    const $T z = r * r;
    $T q = z * -5.27267642e-2f + 1.33311838e-1f;
    q = q * z - 3.33333224e-1f;
    const $T u = q * (z * r) + r;
    const $T half = as_$T(as_$I(shifted) << 23);  // 2^n / 2
    const $T far = 1.0f - (1.0f - u) / ((half - 0.5f) * u + (half + 0.5f));
    return as_$T(as_$I(a > 0.69f ? far : near) | (as_$I(x) & ~0x7fffffff));  // the sign of zero too
#endif
}}
"""

# -p6 to -p0 of erf(t) = 1 - e^-(t (p0 + t (p1 + ...))), divided by log(2).
_FAR = tuple(
    f"{-c / math.log(2):.8e}f"
    for c in (1.15259299e-5, -3.25755333e-4, 3.65447090e-3, -2.37874929e-2, 1.06266432e-1, 6.35133445e-1, 1.12865293)
)

ERF = f"""
${{inline}} $T erf_$T($T x) {{
    const $T a = as_$T(as_$I(x) & 0x7fffffff);
#if $sixteen
{_by_pieces("as_$I(b * 3.95256917f + 12582912.0f)", 0, "3.92f", _ERF_PIECES)}\
#else  // an odd polynomial near zero, 1 - 2^-(|x| q(|x|)) elsewhere
    const $T s = x * x;
    $T p = s * -5.96425263e-4f + 4.98800399e-3f;
    p = p * s - 2.67631244e-2f;
    p = p * s + 1.12817213e-1f;
    p = p * s - 3.76124859e-1f;
    p = p * s + 1.28379151e-1f;
    const $T near = p * x + x;
    const $T t = a > 4.0f ? ($T)(4.0f) : a;
    $T q = t * {_FAR[0]} + {_FAR[1]};
    q = q * t + {_FAR[2]};
    q = q * t + {_FAR[3]};
    q = q * t + {_FAR[4]};
    q = q * t + {_FAR[5]};
    q = q * t + {_FAR[6]};
    const $T shifted = q * t + 12582912.0f;
    const $T n = shifted - 12582912.0f;
#if defined(__FMA__) || defined(__ARM_FEATURE_FMA)
    const $T r = q * t - n;
#else
    const $T high = as_$T(as_$I(t) & ~0xfff);  // with 12 bits, as `most`: their product is exact
    const $T most = as_$T(as_$I(q) & ~0xfff);
    const $T r = ((most * high - n) + (q - most) * high) + q * (t - high);
#endif
    p = r * 1.32698927e-3f + 9.67149250e-3f;
    p = p * r + 5.55071086e-2f;
    p = p * r + 2.40222439e-1f;
    p = p * r + 6.93147004e-1f;
    p = p * r + 1.0f;
    const $T far = 1.0f - as_$T(as_$I(p) + (as_$I(shifted) << 23));
    return a > 0.9277f ? as_$T(as_$I(far) | (as_$I(x) & ~0x7fffffff)) : near;
#endif
}}
"""
