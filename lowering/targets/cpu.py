"""C with clang's vector extensions, for the CPU that this process runs on or for another one.

A program becomes one C file. Each kernel is a function over one block, and an exported function that runs a range of blocks:

    void NAME(void *const *arguments, char *scratch, long first, long last)

`arguments` holds the address of each buffer in the kernel's argument order. `scratch` is memory from the caller for the shared arrays
of one block: 64-byte aligned, at least the kernel's shared bytes. Blocks are numbered with x fastest. The text includes no header and
calls no library, so that every clang compiles it for every target and the text shown is the code that runs. A line that begins with `//
clang:` lists options to compile it with.
"""

from __future__ import annotations

from tilelang.lowering.targets.c.dialect import Dialect, Vectors
from tilelang.lowering.targets.cpu_functions import float32, float64

_SCALARS = "u?char|u?short|u?int|u?long|float|double"

# Every type has the width that its name has elsewhere in the C family: `char` is signed on every machine, `long` has 64 bits.
# clang's comparisons of bytes yield vectors of its own `char`, which must be signed to serve as masks of wider vectors; Arm needs
# an option.
_TYPES = """\
#if defined(__CHAR_UNSIGNED__)
#error "compile with -fsigned-char"
#endif
typedef unsigned char uchar;
typedef unsigned short ushort;
typedef unsigned int uint;
typedef unsigned long long ulong;
typedef __SIZE_TYPE__ size_t;
#define char signed char
#define long long long
"""

# For texts with an accumulator that starts as a splat: they contain explicit vectors, and clang's SLP vectorizer would
# additionally join the operands of different rows and spill the registers that it needs for them.
_SUMMING = "-fno-slp-vectorize"
_ACCUMULATOR = r"\n +(?:float|double)(?:2|4|8|16) \w+ = \(\w+\)\((?=[-\w.]+\);)"

# For texts that call vector functions and have no vector accumulator, for which the text would name an option already. A call is a
# long chain of dependent operations, and by default clang emits call after call; this scheduler interleaves several. The accumulators
# of products need the default scheduler.
_CALLS = "|".join(dict.fromkeys((*float32.FUNCTIONS, *float64.FUNCTIONS)))
_INDEPENDENT_CALLS = rf"\A(?!\nclang:)(?=[\s\S]*\n\w*(?:{_CALLS})_(?:float|double)(?:2|4|8|16)\()"

# clang 22 turns sums of |a - b|, and products of uint8 by int8, into `psadbw` and `vpdpbusd`. If a vector is summed by halves, it
# takes the number of halves from the narrowest vector and drops partial sums. An empty asm statement hides the origin of the last
# full register.
_HALVED = """\
#if defined(__x86_64__)
#define halved_$1(...) ({ $1 halved = (__VA_ARGS__); __asm__("" : "+x"(halved)); halved; })
#else
#define halved_$1(...) (__VA_ARGS__)
#endif
"""

_EXPORT = """\
#if defined(_WIN32)
#define EXPORT __declspec(dllexport)
#else
#define EXPORT __attribute__((visibility("default")))
#endif
"""


def _function_fields(type: str) -> dict[str, str]:
    """The values of a function template's placeholders for a value type."""
    return float32.fields(type) if type.startswith("float") else {}


_RESERVED = frozenset(
    """uchar ushort uint ulong size_t any any_of_one min max floor ceil rint sqrt fabs copysign block arguments scratch first last
    EXPORT defined halved sigmoid memcpy memmove memset memcmp""".split()
)

DIALECT = Dialect(
    name="cpu",
    spaces={"global": "", "shared": "", "register": ""},
    shared="",
    kernel="static inline __attribute__((always_inline)) void {name}_block",
    block_number=("block[0]", "block[1]", "block[2]"),
    thread_number="0",
    fences={},
    barrier="",
    prefetch="__builtin_prefetch({pointer});",
    no_contraction="#pragma STDC FP_CONTRACT OFF",
    reserved=_RESERVED,
    functions={"round": "rint", "abs": "fabs"},
    x86_builtins=True,
    converts_halves="defined(__F16C__) || defined(__aarch64__)",
    offsets_apart=True,
    own={"float": float32.FUNCTIONS, "double": float64.FUNCTIONS},
    fast={"float": float32.FAST},
    quotients={"float": float32.QUOTIENTS, "double": float64.QUOTIENTS},
    function_fields=_function_fields,
    ulps={"/": float32.QUOTIENTS.ulps, "sqrt": 0.5, "floor": 0.0, "ceil": 0.0, "round": 0.0, "abs": 0.0},
    vectors=Vectors(
        pack="({type}){{{items}}}",
        joins=False,
        join="joined{lanes}({first}, {second})",
        shuffle="__builtin_shufflevector({first}, {second}, {lanes})",
        widest=64,
    ),
    long_suffix="LL",
    around_long_bodies="#pragma nounroll",
    passes=("threads_in_loops", "arrays_in_scratch"),
    block_arguments="const long* restrict block",
    blocks="""\
EXPORT void {name}(void* const* arguments, char* scratch, long first, long last)
{{
#pragma nounroll
    for (long number = first; number < last; ++number) {{
        const long block[3] = {{number % {x}, number / {x} % {y}, number / {xy}}};
        {name}_block({arguments});
    }}
}}
""",
    halved="halved_{type}",
    summing=(_SUMMING,),
    headers=(
        (_INDEPENDENT_CALLS, "// clang: -mllvm -pre-RA-sched=list-ilp\n"),
        (_ACCUMULATOR, f"// clang: {_SUMMING}\n"),
        (r"\A", _TYPES),
        (rf"\b({_SCALARS})(2|4|8|16|32|64)\b", "typedef $1 $1$2 __attribute__((ext_vector_type($2)));\n"),
        *(
            (rf"\bjoined{n}\(", f"#define joined{n}(a, b) __builtin_shufflevector(a, b, {', '.join(map(str, range(n)))})\n")
            for n in (4, 8, 16, 32, 64)
        ),
        (rf"\bas_((?:{_SCALARS})(?:2|4|8|16)?)\(", "#define as_$1(...) __builtin_bit_cast($1, (__VA_ARGS__))\n"),
        (rf"\bconvert_((?:{_SCALARS}))\(", "#define convert_$1(...) (($1)(__VA_ARGS__))\n"),
        (
            rf"\bconvert_((?:{_SCALARS})(?:2|4|8|16))\(",
            "#define convert_$1(...) __builtin_convertvector((__VA_ARGS__), $1)\n",
        ),
        (r"\b(min|max|floor|ceil|rint|sqrt|copysign)\(", "#define $1(...) __builtin_elementwise_$1(__VA_ARGS__)\n"),
        (r"\bhalved_(u?int4)\(", _HALVED),
        (r"\bfabs\(", "#define fabs(...) __builtin_elementwise_abs(__VA_ARGS__)\n"),
        (r"\bINFINITY\b", "#define INFINITY __builtin_inff()\n"),
        (r"\bNAN\b", '#define NAN __builtin_nanf("")\n'),
        (r"\bEXPORT\b", _EXPORT),
        (r"\bany\(", "#define any(...) (__builtin_reduce_or(__VA_ARGS__) != 0)\n"),
        (r"\bany_of_one\(", "#define any_of_one(...) ((__VA_ARGS__) != 0)\n"),
    ),
)
