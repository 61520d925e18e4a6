"""CUDA C++ for NVIDIA GPUs, for NVRTC and nvcc.

Anything that is a single machine instruction is a named function in a header: conversions of floats of 8 and 16 bits,
asynchronous copies, streaming stores. A source text needs no include file. Errors of functions are from the appendix on
mathematical functions of the CUDA C++ Programming Guide, which states them relative to the correctly rounded result, so half an
ulp is added. expf: 2 ulps there, 1.67 measured.
"""

from __future__ import annotations

from tilelang.lowering.targets.c import cpp
from tilelang.lowering.targets.c.dialect import Dialect
from tilelang.lowering.targets.c.functions import fields
from tilelang.lowering.targets.cuda_roles import ROLES

_ULPS = {
    "exp": 2.5, "exp2": 2.5, "log": 1.5, "log2": 1.5, "log1p": 1.5, "expm1": 1.5, "sqrt": 0.5, "rsqrt": 2.5, "sin": 2.5, "cos": 2.5,
    "tanh": 2.5, "erf": 2.5, "pow": 4.5, "floor": 0.0, "ceil": 0.0, "round": 0.0, "abs": 0.0, "/": 0.5,
}  # fmt: skip

_UNUSED = ("__global__", "#pragma nv_diag_suppress 177  // names that are declared and not used\n")
_SPECIAL = "#define INFINITY __int_as_float(0x7f800000)\n#define NAN __int_as_float(0x7fffffff)\n"

_FLOAT16 = f"""
{cpp.INLINE} float float16_to_float(ushort bits) {{
    float x;
    asm("cvt.f32.f16 %0, %1;" : "=f"(x) : "h"(bits));
    return x;
}}
{cpp.INLINE} ushort float_to_float16(float x) {{
    ushort bits;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(x));
    return bits;
}}
{cpp.INLINE} uint pair_to_float16(float low, float high) {{
#if __CUDA_ARCH__ >= 800
    uint bits;
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(bits) : "f"(high), "f"(low));
    return bits;
#else
    return float_to_float16(low) | (uint)float_to_float16(high) << 16;
#endif
}}
"""

_BFLOAT16 = f"""
{cpp.INLINE} float bfloat16_to_float(ushort bits) {{
    return __uint_as_float((uint)bits << 16);
}}
{cpp.INLINE} ushort float_to_bfloat16(float x) {{  // to nearest, ties to even; NaN stays NaN
#if __CUDA_ARCH__ >= 800
    ushort bits;
    asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(bits) : "f"(x));
    return bits;
#else
    const uint bits = __float_as_uint(x);
    return (ushort)(x != x ? bits >> 16 | 0x40u : (bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
#endif
}}
{cpp.INLINE} uint pair_to_bfloat16(float low, float high) {{
#if __CUDA_ARCH__ >= 800
    uint bits;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(bits) : "f"(high), "f"(low));
    return bits;
#else
    return float_to_bfloat16(low) | (uint)float_to_bfloat16(high) << 16;
#endif
}}
"""

# The device's conversions (sm_89 and later) take pairs and saturate: code + 1 replaces the result for values out of range.
_FLOAT8 = f"""
#if __CUDA_ARCH__ >= 890
{cpp.INLINE} uint halves_of_$1(ushort pair) {{
    uint halves;
    asm("cvt.rn.f16x2.$2x2 %0, %1;" : "=r"(halves) : "h"(pair));
    return halves;
}}
{cpp.INLINE} ushort saturated_$1(float low, float high) {{
    ushort pair;
    asm("cvt.rn.satfinite.$2x2.f32 %0, %1, %2;" : "=h"(pair) : "f"(high), "f"(low));
    return pair;
}}
{cpp.INLINE} float $1_to_float(uchar bits) {{
    return float16_to_float((ushort)halves_of_$1(bits));
}}
{cpp.INLINE} void pair_from_$1(ushort bits, float& low, float& high) {{
    const uint halves = halves_of_$1(bits);
    low = float16_to_float((ushort)halves);
    high = float16_to_float((ushort)(halves >> 16));
}}
{cpp.INLINE} uint pair_to_$1(float low, float high) {{
    return saturated_$1(low, high) + (fabsf(low) $3) + ((fabsf(high) $3) << 8);
}}
{cpp.INLINE} uchar float_to_$1(float x) {{
    return (uchar)pair_to_$1(x, 0.0f);
}}
"""


def _float8(name: str, beyond: str) -> tuple[str, str]:
    """The conversions of one type. beyond: the condition that a magnitude is out of range."""
    text = _FLOAT8.replace("$1", name).replace("$2", name.removeprefix("float8_")).replace("$3", beyond)
    return cpp.float8(name, text)


_EXTREMES = f"""
{cpp.INLINE} float $1(float a, float b) {{  // NaN if either is NaN, as in NumPy
#if __CUDA_ARCH__ >= 800
    float r;
    asm("$2.NaN.f32 %0, %1, %2;" : "=f"(r) : "f"(a), "f"(b));
    return r;
#else
    return a != a || b != b ? a + b : f$2f(a, b);
#endif
}}
{cpp.INLINE} double $1(double a, double b) {{
    return a != a || b != b ? a + b : f$2(a, b);
}}
"""

_FAST_EXP = f"""
{cpp.INLINE} float fast_exp(float x) {{
    return __expf(x);
}}
"""

_ROUNDED_PRODUCT = f"""
{cpp.INLINE} float rounded_product(float a, float b) {{
    return __fmul_rn(a, b);
}}
{cpp.INLINE} double rounded_product(double a, double b) {{
    return __dmul_rn(a, b);
}}
"""

_STORE_STREAMING = f"""
template <class T, int N, int A, class P>
{cpp.INLINE} void store_streaming(P* p, const vec<T, N, A>& v) {{  // non-temporal, 16 bytes at a time
    const vec<uint, sizeof(T) * N / 4> words = reinterpret<vec<uint, sizeof(T) * N / 4>>(v);
    for (int i = 0; i < (int)sizeof(T) * N / 16; ++i)
        asm volatile("st.global.cs.v4.b32 [%0], {{%1, %2, %3, %4}};" ::"l"((char*)p + 16 * i), "r"(words.lane[4 * i]),
                     "r"(words.lane[4 * i + 1]), "r"(words.lane[4 * i + 2]), "r"(words.lane[4 * i + 3])
                     : "memory");
}}
"""

_PREFETCH = f"""
{cpp.INLINE} void prefetch_l2(const void* p) {{
    asm volatile("prefetch.global.L2 [%0];" ::"l"(p));
}}
"""

_PREFETCH_MAP = f"""
{cpp.INLINE} void prefetch_tensor_map(const void* map) {{
#if __CUDA_ARCH__ >= 900
    asm volatile("prefetch.tensormap [%0];" ::"l"(map) : "memory");
#endif
}}
"""

_ALIKE = f"""
{cpp.INLINE} int alike_in_warp(int x) {{  // one value in all threads of a warp, which the compiler then knows
    int first;
    asm volatile("shfl.sync.idx.b32 %0, %1, 0, 31, 0xffffffff;" : "=r"(first) : "r"(x));
    return first;
}}
"""

# Copies 4, 8 or 16 bytes to shared memory: the first `existing` of them, then zeros. Synchronous on devices without cp.async.
_ASYNC_COPY = f"""
#if __CUDA_ARCH__ >= 800
{cpp.INLINE} void async_copy_first_$1(void* target, const void* source, int existing) {{
    asm volatile("cp.async.$2.shared.global [%0], [%1], $1, %2;" ::"r"((uint)__cvta_generic_to_shared(target)), "l"(source),
                 "r"(existing)
                 : "memory");
}}
{cpp.INLINE} void async_copy_$1(void* target, const void* source) {{
    asm volatile("cp.async.$2.shared.global [%0], [%1], $1;" ::"r"((uint)__cvta_generic_to_shared(target)), "l"(source)
                 : "memory");
}}
#else
{cpp.INLINE} void async_copy_first_$1(void* target, const void* source, int existing) {{
    for (int i = 0; i < $1; ++i) ((uchar*)target)[i] = i < existing ? ((const uchar*)source)[i] : (uchar)0;
}}
{cpp.INLINE} void async_copy_$1(void* target, const void* source) {{
    *(vec<uint, $1 / 4>*)target = *(const vec<uint, $1 / 4>*)source;
}}
#endif
"""

_GROUPS = f"""
{cpp.INLINE} void async_commit() {{  // closes the group of this thread's copies
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}}
template <int PENDING>
{cpp.INLINE} void async_wait() {{  // until at most PENDING groups are unfinished
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.wait_group %0;" ::"n"(PENDING) : "memory");
#endif
}}
"""

_FUNCTIONS = (
    (r"\b(?:INFINITY|NAN)\b", _SPECIAL),
    (r"\b(?:float16_to_float|float_to_float16|pair_to_float16)\b", _FLOAT16),
    _float8("float8_e4m3", "> 464.0f"),
    _float8("float8_e5m2", ">= 61440.0f"),
    (r"bfloat16", _BFLOAT16),
    (r"\bmaximum\(", _EXTREMES.replace("$1", "maximum").replace("$2", "max")),
    (r"\bminimum\(", _EXTREMES.replace("$1", "minimum").replace("$2", "min")),
    (r"\bfast_exp\(", _FAST_EXP),
    (r"\brounded_product\(", _ROUNDED_PRODUCT),
    (r"\bstore_streaming\(", _STORE_STREAMING),
    (r"\bprefetch_l2\(", _PREFETCH),
    (r"\bprefetch_tensor_map\(", _PREFETCH_MAP),
    (r"\balike_in_warp\(", _ALIKE),
    *(
        (rf"\basync_copy_(?:first_)?{n}\(", _ASYNC_COPY.replace("$1", n).replace("$2", by))
        for n, by in (("4", "ca"), ("8", "ca"), ("16", "cg"))
    ),
    (r"\basync_(?:commit|wait)\b", _GROUPS),
)  # fmt: skip

_RESERVED = frozenset(
    """rounded_product async_copy_4 async_copy_8 async_copy_16 async_copy_first_4 async_copy_first_8 async_copy_first_16 async_commit
    async_wait halves_of_float8_e4m3 saturated_float8_e4m3 halves_of_float8_e5m2 saturated_float8_e5m2 alike_in_warp
    prefetch_tensor_map uint3 cudaError_t""".split()
)

DIALECT = Dialect(
    name="cuda",
    spaces={"global": "", "shared": "", "register": ""},
    shared="__shared__",
    around_constants="#pragma unroll 1",
    kernel='extern "C" __global__ void {cluster}__launch_bounds__({threads})\n{name}',
    block_number=("blockIdx.x", "blockIdx.y", "blockIdx.z"),
    thread_number="threadIdx.x",
    fences={},
    barrier="__syncthreads();",
    prefetch="prefetch_l2({pointer});",
    no_contraction="",
    rounded_product="rounded_product",
    reserved=cpp.RESERVED | _RESERVED,
    functions=cpp.SHARED_FUNCTIONS,
    fast_functions={"exp": "fast_exp"},
    own={},
    function_fields=fields,
    ulps=_ULPS,
    headers=(_UNUSED, cpp.OPEN, *cpp.headers(cpp.LANES_AS_BYTES, cpp.CAST_OF_BYTES), *_FUNCTIONS, *cpp.TYPE_HEADERS),
    closing=cpp.CLOSING,
    restrict="__restrict__",
    # NVRTC (12.9 and 13.0 were tried) drops stores to lanes of a vector if a kernel writes through a restricted pointer: after `v =
    # zeros; v[0] = x; *(float4*)registers = v` it takes `registers[0]` for 0.
    restrict_written=False,
    vectors=cpp.VECTORS,
    inline=cpp.INLINE,
    argument_alignment=16,
    static_shared_bytes=48 * 1024,
    dynamic_shared="extern __shared__ uchar {name}[] __attribute__((aligned(1024)));",
    copy="async_copy_{bytes}({target}, {source});",
    copy_first="async_copy_first_{bytes}({target}, {source}, {existing});",
    commit="async_commit();",
    wait="async_wait<{pending}>();",
    alike="alike_in_warp({value})",
    roles=ROLES,
    cluster="__cluster_dims__({blocks}, 1, 1) ",
    prefetch_map="prefetch_tensor_map({map});",
    tensor_map="const __grid_constant__ TensorMap {name}",
)  # fmt: skip
