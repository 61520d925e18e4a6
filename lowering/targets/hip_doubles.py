"""sin, cos, erf and pow of 64-bit floats for AMD GPUs, without a device library.

Polynomials are minimax fits (Remez exchange in 45 digits) with an error below 2^-57 of the result. Values that would lose digits are
kept as a sum of two doubles: the reduced angle, and the logarithm within pow. `ULPS` states the greatest error observed against
longdouble, and for erf against mpmath, over all magnitudes; tests/lowering/test_hip_functions.py fails above it.
"""

from __future__ import annotations

from tilelang.lowering.targets.c import cpp

_EXACT = "#pragma clang fp contract(off)"

# Below 2^31, quarter turns are subtracted in three steps; the first one is exact. Above, by multiplication with 192 bits of
# 2/pi, beginning at the bits that matter for the argument's 53 (Payne and Hanek, 1983).
TURNS = f"""
{cpp.INLINE} double far_quarter_turns(double x, double& rest, ulong& turns) {{
    const ulong two_over_pi[] = {{0x0ul, 0xa2f9836e4e441529ul, 0xfc2757d1f534ddc0ul, 0xdb6295993c439041ul, 0xfe5163abdebbc561ul,
        0xb7246e3a424dd2e0ul, 0x06492eea09d1921cul, 0xfe1deb1cb129a73eul, 0xe88235f52ebb4484ul, 0xe99c7026b45f7e41ul,
        0x3991d639835339f4ul, 0x9c845f8bbdf9283bul, 0x1ff897ffde05980ful, 0xef2f118b5a0a6d1ful, 0x6d367ecf27cb09b7ul,
        0x4f463f669e5fea2dul, 0x7527bac7ebe5f17bul, 0x3d0739f78a5292eaul, 0x6bfb5fb11f8d5d08ul, 0x56033046fc7b6babul}};
    const ulong bits = __builtin_bit_cast(ulong, x), mantissa = (bits & 0xffffffffffffful) | 0x10000000000000ul;
    const int skipped = (int)(bits >> 52 & 0x7fful) - 1013, word = skipped >> 6, shift = skipped & 63;
    ulong part[3];
    for (int i = 0; i < 3; ++i)
        part[i] = two_over_pi[word + i] << shift | (shift ? two_over_pi[word + i + 1] >> (64 - shift) : 0ul);
    unsigned __int128 product = ((unsigned __int128)mantissa * part[2] >> 64) + (unsigned __int128)mantissa * part[1];
    const ulong low = (ulong)product, high = mantissa * part[0] + (ulong)(product >> 64);  // 2 bits of turns, 126 of their fraction
    const long fraction = (long)(high << 2 | low >> 62);
    turns = (high >> 62) + (fraction < 0);
    const double first = (double)(fraction >> 32) * 2.3283064365386963e-10;
    const double second = (double)(ulong)(uint)fraction * 5.421010862427522e-20, third = (double)(low << 2) * 2.938735877055719e-39;
    const double sum = first + second, size = sum + (third + (second - (sum - first)));
    const double left = third + (second - (sum - first)) - (size - sum), r = size * 1.5707963267948966;
    rest = __builtin_fma(size, 1.5707963267948966, -r) + (size * 6.123233995736766e-17 + left * 1.5707963267948966);
    return r;
}}
{cpp.INLINE} double quarter_turns(double x, double& rest, ulong& turns) {{  // x is not negative; the sum of r and rest is left
    {_EXACT}
    if (x >= 2147483648.0) return far_quarter_turns(x, rest, turns);
    const double n = __builtin_rint(x * 0.6366197723675814), r = __builtin_fma(n, -1.5707963267948966, x);
    const double next = n * 6.123233995736766e-17, sum = r - next, lost = sum - r;
    rest = (r - (sum - lost)) - (next + lost) - __builtin_fma(n, 6.123233995736766e-17, -next) + n * 1.4973849048591698e-33;
    turns = (ulong)n;
    return sum;
}}
{cpp.INLINE} double sine_of_parts(double r, double rest) {{
    const double s = r * r;
    double p = s * 1.5896065395268252e-10 - 2.5050745010528443e-08;
    p = p * s + 2.7557313604448134e-06;
    p = p * s - 1.9841269829542831e-04;
    p = p * s + 8.333333333322063e-03;
    p = p * s - 1.666666666666663e-01;
    return r + (p * s * r + rest * (1.0 - 0.5 * s));
}}
{cpp.INLINE} double cosine_of_parts(double r, double rest) {{
    const double s = r * r, whole = 1.0 - 0.5 * s;
    double p = s * -1.1358369493967019e-11 + 2.0875697656821892e-09;
    p = p * s - 2.7557314156342317e-07;
    p = p * s + 2.4801587288775237e-05;
    p = p * s - 1.3888888888872943e-03;
    p = p * s + 4.1666666666666595e-02;
    return whole + (((1.0 - whole) - 0.5 * s) + (p * s * s - r * rest));
}}
"""

SIN = f"""
{cpp.INLINE} double sin(double x) {{
    double rest;
    ulong turns;
    const double size = __builtin_fabs(x), r = quarter_turns(size < __builtin_inf() ? size : 0.0, rest, turns);
    const double y = turns & 1 ? cosine_of_parts(r, rest) : sine_of_parts(r, rest);
    return size < __builtin_inf() ? __builtin_copysign(1.0, x) * (turns & 2 ? -y : y) : __builtin_nan("");
}}
"""

COS = f"""
{cpp.INLINE} double cos(double x) {{
    double rest;
    ulong turns;
    const double size = __builtin_fabs(x), r = quarter_turns(size < __builtin_inf() ? size : 0.0, rest, turns);
    const double y = turns & 1 ? sine_of_parts(r, rest) : cosine_of_parts(r, rest);
    return size < __builtin_inf() ? ((turns + 1) & 2 ? -y : y) : __builtin_nan("");
}}
"""

ERF = f"""
{cpp.INLINE} double erf(double x) {{  // an odd polynomial near zero, 1 - exp(-|x| q(|x|)) elsewhere
    const double size = __builtin_fabs(x), s = x * x, t = size > 6.0 ? 6.0 : size;
    double p = s * 6.486249896788621e-11 - 1.1648192473178335e-09;
    p = p * s + 1.472258060808122e-08;
    p = p * s - 1.6358555371528757e-07;
    p = p * s + 1.6461687423695356e-06;
    p = p * s - 1.4925633119133314e-05;
    p = p * s + 1.2055332503993244e-04;
    p = p * s - 8.548327014557777e-04;
    p = p * s + 5.223977625335734e-03;
    p = p * s - 2.6866170645123654e-02;
    p = p * s + 1.1283791670955097e-01;
    p = p * s - 3.7612638903183754e-01;
    p = p * s + 1.283791670955126e-01;
    double q = t * 1.95708262691564e-13 - 9.738383191589372e-12;
    q = q * t + 2.2813434166368036e-10;
    q = q * t - 3.3451405805244594e-09;
    q = q * t + 3.4407367205408024e-08;
    q = q * t - 2.6337439562180854e-07;
    q = q * t + 1.5499432057382594e-06;
    q = q * t - 7.114964442669541e-06;
    q = q * t + 2.5364021667902264e-05;
    q = q * t - 6.760762063308177e-05;
    q = q * t + 1.1680352637440867e-04;
    q = q * t - 3.2260934991738424e-05;
    q = q * t - 5.383521417275062e-04;
    q = q * t + 0.0016597415963630977;
    q = q * t - 1.8933496374817603e-04;
    q = q * t - 1.9136511334324573e-02;
    q = q * t + 1.0277490035209488e-01;
    q = q * t + 6.366193631702265e-01;
    q = q * t + 1.1283792013767608;
    return size < 0.9 ? p * x + x : __builtin_copysign(1.0 - exp(-(q * t)), x);
}}
"""

# log(x) = e log(2) + 2 atanh(f / (2 + f)) in double-double; the first two terms of the series of atanh are double-doubles each.
POW = f"""
{cpp.INLINE} double log_of_parts(double x, double& rest) {{  // of positive finite numbers
    {_EXACT}
    int whole;
    double m = __builtin_frexp(x, &whole);
    const bool low = m < 0.7071067811865476;
    m = low ? m * 2.0 : m;
    const double e = (double)(low ? whole - 1 : whole), f = m - 1.0, u = m + 1.0, u_rest = m - (u - 1.0);
    const double s = f / u, s_rest = (__builtin_fma(-s, u, f) - s * u_rest) / u;
    const double z = s * s, z_rest = __builtin_fma(s, s, -z) + 2.0 * s * s_rest;
    const double c = s * z, c_rest = __builtin_fma(s, z, -c) + (s * z_rest + s_rest * z);
    const double t = c * 0.3333333333333333;
    const double t_rest = __builtin_fma(c, 0.3333333333333333, -t) + (c * 1.850371707708594e-17 + c_rest * 0.3333333333333333);
    double p = z * 6.598412000425789e-02 + 6.628382633591874e-02;
    p = p * z + 7.693379768075055e-02;
    p = p * z + 9.090892160570024e-02;
    p = p * z + 1.1111111260200812e-01;
    p = p * z + 1.4285714285048753e-01;
    p = p * z + 2.0000000000001128e-01;
    const double h = s + t, h_rest = (t - (h - s)) + (s_rest + t_rest + p * z * c);
    const double a = e * 0.6931471805599453, a_rest = __builtin_fma(e, 0.6931471805599453, -a) + e * 2.3190468138462996e-17;
    const double sum = a + 2.0 * h;
    rest = (2.0 * h - (sum - a)) + (2.0 * h_rest + a_rest);
    return sum;
}}
{cpp.INLINE} double pow(double x, double y) {{
    {_EXACT}
    const double size = __builtin_fabs(x);
    double rest = 0.0;
    const bool ordinary = size > 0.0 && size < __builtin_inf();
    const double logarithm = ordinary ? log_of_parts(size, rest) : size == 0.0 ? -__builtin_inf() : size;
    const double z = y * logarithm, far = __builtin_fabs(z) < 2000.0 ? __builtin_fma(y, logarithm, -z) + y * rest : 0.0;
    const double n = __builtin_rint(z * 1.4426950408889634);
    const double r = __builtin_fma(n, -2.3190468138462996e-17, __builtin_fma(n, -0.6931471805599453, z)) + far;
    const double power = z > 1024.0 ? __builtin_inf() : z < -1100.0 ? 0.0 : exp_of_parts(r, n);
    const bool whole = __builtin_rint(y) == y, odd = whole && __builtin_fabs(y) < 9007199254740992.0 && ((long)y & 1);
    const bool real = x >= 0.0 || whole || x == 0.0 || size == __builtin_inf();
    const double signed_power = odd ? __builtin_copysign(power, x) : power;
    return x == 1.0 || y == 0.0 || (size == 1.0 && __builtin_fabs(y) == __builtin_inf()) ? 1.0
        : real || x != x ? signed_power : __builtin_nan("");
}}
"""

ULPS = {"sin": 0.8, "cos": 0.8, "erf": 1.5, "pow": 1.2}
