"""The C that `cpu_functions.py` measures: the templates in loops, a reference in 64-bit floats around them, and their compilation.

`build` compiles both with the clang of the `ziglang` wheel. The functions alone must link with no undefined symbol; the reference
takes the C library's functions from this process.
"""

from __future__ import annotations

import ctypes
import importlib.util
import itertools
import subprocess
from pathlib import Path
from string import Template

from tilelang.lowering.targets.cpu_functions import float32

TWO_ARGUMENTS = ("pow", "fmod")
FLAGS = ("-O2", "-mprefer-vector-width=512", "-fno-math-errno", "-fPIC", "-Wall", "-Werror", "-x", "c")

_REFERENCE = """
#include <stdint.h>
double exp(double), exp2(double), expm1(double), log(double), log2(double), log1p(double), sqrt(double), sin(double), cos(double);
double tanh(double), erf(double), pow(double, double), fmod(double, double), fabs(double);
static double sigmoid(double x) { return x >= 0 ? 1 / (1 + exp(-x)) : exp(x) / (1 + exp(x)); }
static double rsqrt(double x) { return 1 / sqrt(x); }
static double fast_exp(double x) { return exp(x); }
static inline float as_float(uint32_t x) { float f; __builtin_memcpy(&f, &x, 4); return f; }
static inline uint32_t as_uint(float x) { uint32_t u; __builtin_memcpy(&u, &x, 4); return u; }
static inline double off(float found, double exact) {
    const float rounded = (float)exact;
    const uint32_t bits = as_uint(rounded) & 0x7fffffff;
    if (bits >= 0x7f800000) return as_uint(found) == as_uint(rounded) || (bits > 0x7f800000 && found != found) ? 0 : __builtin_inf();
    if ((as_uint(found) & 0x7fffffff) >= 0x7f800000) return __builtin_inf();
    if (bits == 0 && found == 0 && as_uint(found) != as_uint(rounded)) return __builtin_inf();
    const uint64_t exponent = bits >> 23 ? bits >> 23 : 1;
    const uint64_t scale = (1023 + 150 - exponent) << 52;
    double per_unit;
    __builtin_memcpy(&per_unit, &scale, 8);
    return fabs(found - exact) * per_unit;
}
static inline uint64_t next(uint64_t* state) {  // splitmix64
    uint64_t z = (*state += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}
enum { CHUNK = 1024 };
"""
_ONE = """
void run_$name(const float*, float*, long, long);
double given_$name(const float* x, float* z, uint64_t count, float* at) {
    double worst = -1;
    run_$name(x, z, count, 1);
    for (uint64_t j = 0; j < count; ++j) {
        const double e = off(z[j], $name((double)x[j]));
        if (e > worst) worst = e, *at = x[j];
    }
    return worst;
}
double errors_$name(uint32_t start, uint32_t stride, uint64_t count, float* at) {
    double worst = -1;
    float x[CHUNK], z[CHUNK], where;
    for (uint64_t i = 0; i < count; i += CHUNK) {
        for (int j = 0; j < CHUNK; ++j, start += stride) x[j] = as_float(start);
        const double e = given_$name(x, z, CHUNK, &where);
        if (e > worst) worst = e, *at = where;
    }
    return worst;
}
"""
# Pairs in turn: any bits; a base near 1 with a large exponent; both of ordinary size; a whole second argument.
_TWO = """
void run_$name(const float*, const float*, float*, long, long);
double given_$name(const float* x, const float* y, float* z, uint64_t count, float* at) {
    double worst = -1;
    run_$name(x, y, z, count, 1);
    for (uint64_t j = 0; j < count; ++j) {
        const double e = off(z[j], $name((double)x[j], (double)y[j]));
        if (e > worst) worst = e, at[0] = x[j], at[1] = y[j];
    }
    return worst;
}
double errors_$name(uint64_t seed, uint64_t count, float* at) {
    double worst = -1;
    float x[CHUNK], y[CHUNK], z[CHUNK], where[2];
    for (uint64_t i = 0; i < count; i += CHUNK) {
        for (int j = 0; j < CHUNK; ++j) {
            const uint64_t bits = next(&seed), more = next(&seed);
            const float unit = (float)(more & 0xffffff) * 0x1p-24f, second = (float)(more >> 40) * 0x1p-24f;
            x[j] = as_float((uint32_t)bits), y[j] = as_float((uint32_t)(bits >> 32));
            if ((i / CHUNK & 3) == 1) {
                x[j] = 1 + (unit - 0.5f) * as_float(0x3f000000 - ((uint32_t)bits >> 28 << 23));
                y[j] = as_float((uint32_t)(bits >> 32 & 0x8fffffff) + 0x40000000);
            }
            if ((i / CHUNK & 3) == 2) x[j] = unit * 20, y[j] = (second - 0.5f) * 60;
            if ((i / CHUNK & 3) == 3) x[j] = (unit - 0.5f) * 20, y[j] = (float)((int)(second * 64) - 32);
        }
        const double e = given_$name(x, y, z, CHUNK, where);
        if (e > worst) worst = e, at[0] = where[0], at[1] = where[1];
    }
    return worst;
}
"""
_RUN = """
__attribute__((visibility("default"))) void run_$name(const float* x, $second float* z, long n, long rounds) {
    for (long k = 0; k < rounds; ++k) {
        for (long i = 0; i < n; i += $lanes) {
            const $T v = ${name}_$T($arguments);
            __builtin_memcpy(z + i, &v, sizeof v);
        }
        __asm__ volatile("" ::: "memory");
    }
}
"""


def prelude() -> str:
    """The names that the templates rely on, for clang."""
    lines = [
        "typedef unsigned char uchar; typedef unsigned short ushort; typedef unsigned int uint; typedef unsigned long ulong;"
    ]
    lines += ["#define INFINITY __builtin_inff()", '#define NAN __builtin_nanf("")']
    lines += ["#define OVERLOADED static inline __attribute__((overloadable, always_inline, unused))"]
    for type, lanes in itertools.product(("int", "uint", "long", "ulong", "float", "double"), (1, 2, 4, 8, 16)):
        vector = type if lanes == 1 else f"{type}{lanes}"
        convert = f"(({type})(__VA_ARGS__))" if lanes == 1 else f"__builtin_convertvector((__VA_ARGS__), {vector})"
        if lanes > 1:
            lines.append(f"typedef {type} {vector} __attribute__((ext_vector_type({lanes})));")
        lines.append(f"#define as_{vector}(...) __builtin_bit_cast({vector}, (__VA_ARGS__))")
        lines.append(f"#define convert_{vector}(...) {convert}")
    for lanes in (1, 2, 4, 8, 16):
        vector = "" if lanes == 1 else str(lanes)
        root = "__builtin_sqrtf(x)" if lanes == 1 else "__builtin_elementwise_sqrt(x)"
        if lanes > 1:
            lines.append(f"OVERLOADED double{vector} rint(double{vector} x) {{ return __builtin_elementwise_rint(x); }}")
        lines.append(f"OVERLOADED float{vector} sqrt(float{vector} x) {{ return {root}; }}")
        if lanes > 1:
            lines.append(f"typedef _Bool bool{lanes} __attribute__((ext_vector_type({lanes})));")
        found = "x < 0" if lanes == 1 else f"__builtin_reduce_or(__builtin_convertvector(x < 0, bool{lanes}))"
        lines.append(f"OVERLOADED int any(int{vector} x) {{ return {found}; }}")
    return "\n".join(lines) + "\n"


TABLE = float32.FUNCTIONS | {f"fast_{n}": f for n, f in float32.FAST.items()}


def source(lanes: int) -> str:
    """The functions for vectors of `lanes` floats, each with a loop `run_NAME` over arrays around it."""
    type = "float" if lanes == 1 else f"float{lanes}"
    text = prelude()
    packed = f"float packed __attribute__((ext_vector_type({lanes}), aligned(4)))" if lanes > 1 else "float packed"
    text += f"typedef {packed};\n"
    for name, function in TABLE.items():
        names = ("x", "y") if name in TWO_ARGUMENTS else ("x",)
        arguments = ", ".join(f"*(const packed*)({n} + i)" for n in names)
        text += Template(function.text).substitute(float32.fields(type), inline="static inline __attribute__((always_inline))")
        second = "const float* y, " if len(names) == 2 else ""
        text += Template(_RUN).substitute(name=name, T=type, lanes=lanes, second=second, arguments=arguments)
    text += Template(float32.QUOTIENTS.text).substitute(float32.fields(type), inline="OVERLOADED")
    arguments = "*(const packed*)(x + i), y[i]"  # one divisor for all lanes
    return text + Template(_RUN).substitute(name="quotients", T=type, lanes=lanes, second="const float* y, ", arguments=arguments)


def reference() -> str:
    """For each function its greatest error over many arguments, and over given pairs of arguments."""
    return _REFERENCE + "".join(Template(_TWO if name in TWO_ARGUMENTS else _ONE).substitute(name=name) for name in TABLE)


def zig() -> str | None:
    """The program of the `ziglang` wheel, if that is installed."""
    found = importlib.util.find_spec("ziglang")
    return None if found is None or found.origin is None else str(Path(found.origin).parent / "zig")


def _run(*command: str, text: str = "") -> str:
    done = subprocess.run(command, input=text, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)}\n{done.stderr}")
    return done.stdout


def _compile(text: str, path: Path, *flags: str) -> None:
    program = zig()
    if program is None:
        raise RuntimeError("no compiler: pip install ziglang")
    _run(program, "clang", *FLAGS, *flags, "-c", "-", "-o", str(path), text=text)


def _link(library: Path, *objects: Path, undefined: str) -> None:
    _run(str(zig()), "ld.lld", "-shared", f"--unresolved-symbols={undefined}", *map(str, objects), "-o", str(library))


def compile_functions(target: str, lanes: int, folder: Path) -> Path:
    """The functions alone as a shared library; RuntimeError where they need a symbol from elsewhere."""
    stem = folder / f"{target}-{lanes}"
    own, library = stem.with_suffix(".o"), stem.with_suffix(".alone.so")
    _compile(source(lanes), own, f"-march={target}", "-nostdlib")
    _link(library, own, undefined="report-all")
    return library


def build(target: str, lanes: int, folder: Path) -> ctypes.CDLL:
    """The functions and their reference for one `-march` and vector width, compiled in `folder` and loaded."""
    own = compile_functions(target, lanes, folder).with_suffix("").with_suffix(".o")
    other, library = folder / "reference.o", own.with_suffix(".so")
    if not other.exists():
        _compile(reference(), other, "-march=native", "-ffp-contract=off")
    _link(library, own, other, undefined="ignore-all")
    ctypes.CDLL("libm.so.6", mode=ctypes.RTLD_GLOBAL)
    found = ctypes.CDLL(str(library))
    for name, measure in itertools.product(TABLE, ("errors", "given")):
        getattr(found, f"{measure}_{name}").restype = ctypes.c_double
    return found
