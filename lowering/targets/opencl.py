"""OpenCL C 1.2 with clang's vector extensions; all current OpenCL compilers except a few embedded ones are based on clang.

The dialect is tuned for PoCL on a CPU: our own functions replace builtins that are slow or inaccurate there, and prefetches are
clang's (PoCL's `prefetch` does nothing). a*b+c needs no build option, because clang contracts it within a statement by default.
"""

from __future__ import annotations

from tilelang.lowering.targets.c.dialect import Dialect
from tilelang.lowering.targets.c.functions import FAST, FUNCTIONS, fields

# Maximum errors of the builtins for 32-bit floats in ulps: OpenCL 1.2 specification, section 7.4.
_BUILTIN_ULPS = {
    "exp": 3.0, "exp2": 3.0, "log": 3.0, "log2": 3.0, "log1p": 2.0, "expm1": 3.0, "sqrt": 3.0, "rsqrt": 2.0, "sin": 4.0, "cos": 4.0,
    "tanh": 5.0, "erf": 16.0, "pow": 16.0, "floor": 0.0, "ceil": 0.0, "round": 0.0, "abs": 0.0, "/": 2.5,
}  # fmt: skip

_RESERVED = frozenset(
    """kernel global local constant private __kernel __global __local __constant __private read_only write_only read_write
    uchar ushort uint ulong half bool size_t ptrdiff_t intptr_t uintptr_t image1d_t image2d_t image3d_t sampler_t event_t
    barrier mem_fence read_mem_fence write_mem_fence prefetch async_work_group_copy wait_group_events
    get_work_dim get_global_size get_global_id get_local_size get_local_id get_num_groups get_group_id get_global_offset
    abs abs_diff acos acosh acospi add_sat all any asin asinh asinpi atan atan2 atanh atanpi bitselect cbrt ceil clamp clz copysign
    cos cosh cospi cross degrees distance dot erf erfc exp exp10 exp2 expm1 fabs fast_distance fast_length fast_normalize fdim
    floor fma fmax fmin fmod fract frexp hadd hypot ilogb isequal isfinite isgreater isinf isless isnan isnormal isordered ldexp
    length lgamma log log10 log1p log2 logb mad mad24 mad_hi mad_sat max maxmag min minmag mix modf mul24 mul_hi nan nextafter
    normalize pow pown powr popcount printf radians remainder remquo rhadd rint rootn rotate round rsqrt select shuffle shuffle2
    sign signbit sin sincos sinh sinpi smoothstep sqrt step sub_sat tan tanh tanpi tgamma trunc upsample vec_step
    atomic_add atomic_sub atomic_xchg atomic_inc atomic_dec atomic_cmpxchg atomic_min atomic_max atomic_and atomic_or atomic_xor
    cl_mem_fence_flags complex imaginary pipe generic near far sigmoid PREFETCH""".split()
)

_PREFETCH = """\
#if __has_builtin(__builtin_prefetch) && !defined(__SPIR__) && !defined(__SPIRV__)
#define PREFETCH(pointer) __builtin_prefetch((__global const void*)(pointer))
#else
#define PREFETCH(pointer) prefetch(pointer, 1)
#endif
"""

DIALECT = Dialect(
    name="opencl",
    spaces={"global": "__global", "shared": "__local", "register": ""},
    shared="__local",
    kernel="__kernel __attribute__((reqd_work_group_size({threads}, 1, 1)))\nvoid {name}",
    block_number=("get_group_id(0)", "get_group_id(1)", "get_group_id(2)"),
    thread_number="get_local_id(0)",
    fences={"shared": "CLK_LOCAL_MEM_FENCE", "global": "CLK_GLOBAL_MEM_FENCE"},
    barrier="barrier({flags});",
    prefetch="PREFETCH({pointer});",
    no_contraction="#pragma OPENCL FP_CONTRACT OFF",
    reserved=_RESERVED,
    functions={"round": "rint", "abs": "fabs"},
    x86_builtins=True,
    offsets_apart=True,
    function_fields=fields,
    own={"float": FUNCTIONS},
    fast={"float": FAST},
    ulps=_BUILTIN_ULPS,
    headers=(
        ("__has_builtin", "#ifndef __has_builtin\n#define __has_builtin(x) 0\n#endif\n"),
        ("PREFETCH", _PREFETCH),
        ("double", "#pragma OPENCL EXTENSION cl_khr_fp64 : enable\n"),
    ),
)
