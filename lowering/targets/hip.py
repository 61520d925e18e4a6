"""HIP C++ for AMD GPUs, compiled by clang with ROCm's header or the one in lowering/compilers/include.

Nothing of ROCm's device libraries is called: hip_functions.py has the functions. A machine instruction or builtin is a named
function in a header, with the same name as in cuda.py. Copies from global to shared memory are synchronous, except those made by
an instruction that a schedule names.
"""

from __future__ import annotations

from tilelang.lowering.targets import hip_functions
from tilelang.lowering.targets.c import cpp, float8
from tilelang.lowering.targets.c.dialect import Dialect
from tilelang.lowering.targets.c.functions import FUNCTIONS, fields

_INCLUDE = ("__global__", "#include <hip/hip_runtime.h>\n")

_SPECIAL = """\
#undef INFINITY
#undef NAN
#define INFINITY __builtin_inff()
#define NAN __builtin_nanf("")
"""

_FLOAT16 = f"""
{cpp.INLINE} float float16_to_float(ushort bits) {{
    return (float)__builtin_bit_cast(_Float16, bits);
}}
{cpp.INLINE} ushort float_to_float16(float x) {{
    return __builtin_bit_cast(ushort, (_Float16)x);
}}
{cpp.INLINE} uint pair_to_float16(float low, float high) {{
    return float_to_float16(low) | (uint)float_to_float16(high) << 16;
}}
"""

_BFLOAT16 = f"""
{cpp.INLINE} float bfloat16_to_float(ushort bits) {{
    return __builtin_bit_cast(float, (uint)bits << 16);
}}
{cpp.INLINE} ushort float_to_bfloat16(float x) {{  // to nearest, ties to even; NaN stays NaN
#if defined(__gfx950__)
    return __builtin_bit_cast(ushort, (__bf16)x);
#else
    const uint bits = __builtin_bit_cast(uint, x);
    return (ushort)(x != x ? bits >> 16 | 0x40u : (bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
#endif
}}
{cpp.INLINE} uint pair_to_bfloat16(float low, float high) {{
    return float_to_bfloat16(low) | (uint)float_to_bfloat16(high) << 16;
}}
"""

_EXTREMES = f"""
{cpp.INLINE} float $1(float a, float b) {{  // NaN if either is NaN, as in NumPy
    return a != a || b != b ? a + b : __builtin_f$2f(a, b);
}}
{cpp.INLINE} double $1(double a, double b) {{
    return a != a || b != b ? a + b : __builtin_f$2(a, b);
}}
"""

_FAST_EXP = f"""
{cpp.INLINE} float fast_exp(float x) {{
    return __builtin_exp2f(x * 1.44269504f);
}}
"""

_STORE_STREAMING = f"""
template <class T, int N, int A, class P>
{cpp.INLINE} void store_streaming(P* p, const vec<T, N, A>& v) {{  // non-temporal, 16 bytes at a time
    typedef uint piece __attribute__((ext_vector_type(4)));
    const vec<uint, sizeof(T) * N / 4> w = reinterpret<vec<uint, sizeof(T) * N / 4>>(v);
    for (int i = 0; i < (int)sizeof(T) * N / 4; i += 4)
        __builtin_nontemporal_store(piece{{w.lane[i], w.lane[i + 1], w.lane[i + 2], w.lane[i + 3]}}, (piece*)((uint*)p + i));
}}
"""

_PREFETCH = f"""
{cpp.INLINE} void prefetch_l2(const void* p) {{
    __builtin_prefetch(p);
}}
"""

_COPIES_WAIT = f"""
{cpp.INLINE} void copies_wait() {{  // for all copies to shared memory that this wave began
    asm volatile("s_waitcnt vmcnt(0)" ::: "memory");
}}
"""

_SHARED_BARRIER = f"""
{cpp.INLINE} void shared_barrier() {{  // orders accesses to shared memory alone
    __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup", "local");
    __builtin_amdgcn_s_barrier();
    __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup", "local");
}}
"""

_FUNCTIONS = (
    (r"\b(?:INFINITY|NAN)\b", _SPECIAL),
    (r"\b(?:float16_to_float|float_to_float16|pair_to_float16)\b", _FLOAT16),
    (r"bfloat16", _BFLOAT16),
    *(cpp.float8(name) for name in float8.NAMES),  # CDNA 3 converts floats of 8 bits with another bias
    (r"\bmaximum\(", _EXTREMES.replace("$1", "maximum").replace("$2", "max")),
    (r"\bminimum\(", _EXTREMES.replace("$1", "minimum").replace("$2", "min")),
    (r"\bfast_exp\(", _FAST_EXP),
    (r"\bstore_streaming\(", _STORE_STREAMING),
    (r"\bprefetch_l2\(", _PREFETCH),
    (r"\bcopies_wait\(", _COPIES_WAIT),
    (r"\bshared_barrier\(", _SHARED_BARRIER),
    *hip_functions.HEADERS,
)

DIALECT = Dialect(
    name="hip",
    spaces={"global": "", "shared": "", "register": ""},
    shared="__shared__",
    around_constants="#pragma unroll 1",
    kernel='extern "C" __global__ void __launch_bounds__({threads})\n{name}',
    block_number=("blockIdx.x", "blockIdx.y", "blockIdx.z"),
    thread_number="threadIdx.x",
    fences={},
    barrier="__syncthreads();",
    prefetch="prefetch_l2({pointer});",
    no_contraction="#pragma clang fp contract(off)",
    reserved=cpp.RESERVED
    | frozenset(
        """copies_wait shared_barrier exp_of_parts log_of_parts quarter_turns far_quarter_turns sine_of cosine_of sine_of_parts
        cosine_of_parts as_int as_float""".split()
    ),
    functions=cpp.SHARED_FUNCTIONS,
    fast_functions={"exp": "fast_exp"},
    function_fields=fields,
    own={"float": {name: FUNCTIONS[name] for name in ("sin", "cos", "tanh", "erf", "sigmoid")}},
    ulps=hip_functions.ULPS,
    headers=(_INCLUDE, cpp.OPEN, *cpp.headers(cpp.LANES_OF_CLANG, cpp.CAST_OF_CLANG), *_FUNCTIONS, *cpp.TYPE_HEADERS),
    closing=cpp.CLOSING,
    wait="copies_wait();",
    shared_barrier="shared_barrier();",  # it neither waits for pending global loads nor flushes a cache
    restrict="__restrict__",
    vectors=cpp.VECTORS,
    inline=cpp.INLINE,
    argument_alignment=16,
    around_barriers="#pragma nounroll",  # clang unrolls whole loops, and then runs out of registers
)
