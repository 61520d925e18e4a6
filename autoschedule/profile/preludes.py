"""Macros for the texts of probes, by dialect.

QUAD, PAIR: four and two floats of one access; WIDE: the floats of one operation; LOCAL_ARRAY: the shared memory of a block, which the
launch provides unless it is declared with its size. Texts for CPUs have blocks of one thread: LOCAL_ARRAY is scratch memory of the
caller, and there are no barriers or atomics, so a text with BARRIER or ATOMIC_ADD does not compile.
"""

from __future__ import annotations

from tilelang.lowering.targets import cpu
from tilelang.lowering.targets.c.headers import with_headers

PRELUDES = {
    "opencl": """
#define KERNEL(name, threads) __kernel __attribute__((reqd_work_group_size(threads, 1, 1))) void name
#define GLOBAL __global
#define RESTRICT restrict
#define BLOCK ((int)get_group_id(0))
#define THREAD ((int)get_local_id(0))
#define BARRIER barrier(CLK_LOCAL_MEM_FENCE)
#define LOCAL __local
#define ATOMIC_ADD(place, value) atomic_add(place, value)
#define LOCAL_ARRAY(type, name, count) __local type name[count] __attribute__((aligned(16)))
typedef float4 QUAD;
typedef float2 PAIR;
#define QUAD_OF(value) ((float4)(value))
#define SUM_2(v) ((v).x + (v).y)
#define SUM_4(v) ((v).x + (v).y + (v).z + (v).w)
#define SPECIAL(value) native_rsqrt(value)
typedef float16 WIDE;
#define WIDE_OF(value) ((float16)(value))
""",
    "cuda": """
#define KERNEL(name, threads) extern "C" __global__ void __launch_bounds__(threads) name
#define GLOBAL
#define RESTRICT __restrict__
#define BLOCK ((int)blockIdx.x)
#define THREAD ((int)threadIdx.x)
#define BARRIER __syncthreads()
#define LOCAL
#define ATOMIC_ADD(place, value) atomicAdd(place, value)
#define LOCAL_ARRAY(type, name, count) extern __shared__ __align__(16) type name[]
struct alignas(16) QUAD { float x, y, z, w; };
struct alignas(8) PAIR { float x, y; };
#define SUM_2(v) ((v).x + (v).y)
#define SUM_4(v) ((v).x + (v).y + (v).z + (v).w)
#define SPECIAL(value) rsqrtf(value)
#define QUAD_OF(value) QUAD{value, value, value, value}
typedef float WIDE;
#define WIDE_OF(value) (value)
""",
    "cpu": """
#define KERNEL(name, threads) static inline __attribute__((always_inline)) void PROBE
#define PROBE(...) probe_block(int number_of_block, char* scratch, __VA_ARGS__)
#define GLOBAL
#define RESTRICT restrict
#define BLOCK number_of_block
#define THREAD 0
#define LOCAL
#define LOCAL_ARRAY(type, name, count) type* name = (type*)scratch
typedef float4 QUAD;
typedef float2 PAIR;
#define QUAD_OF(value) ((float4)(value))
#define SUM_2(v) ((v).x + (v).y)
#define SUM_4(v) ((v).x + (v).y + (v).z + (v).w)
typedef float16 WIDE;
#define WIDE_OF(value) ((float16)(value))
""",
}
PRELUDES["hip"] = PRELUDES["cuda"]

# The function that the driver calls for a range of blocks; $1: the arguments of a block.
_BLOCKS = """
EXPORT void probe(void* const* arguments, char* scratch, long first, long last)
{
    for (long number = first; number < last; ++number) probe_block((int)number, scratch, $1);
}
"""


def text_of(dialect: str, body: str, lanes: int, arguments: int) -> str:
    """The source text of a kernel `probe` in a dialect. lanes: of its WIDE; arguments: the number of its arguments."""
    prelude = PRELUDES[dialect].replace("float16", f"float{lanes}" if lanes > 1 else "float")
    if dialect != cpu.DIALECT.name:
        return prelude + body
    given = ", ".join(f"arguments[{n}]" for n in range(arguments))
    return with_headers(prelude + body + _BLOCKS.replace("$1", given), cpu.DIALECT)
