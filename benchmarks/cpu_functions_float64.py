"""The native CPU target's functions of 64-bit floats: greatest error in ulps against long double, and time an element beside NumPy's.

    python -m benchmarks.cpu_functions_float64 [--samples 100000000] [--functions sin pow] [--machine native x86-64-v3 x86-64]

For each function, machine and vector width: the greatest error over random bit patterns (every exponent alike, denormals too) and over
numbers near 0, near 1, near multiples of pi/2 and near the ends of the range; then picoseconds an element, one thread, 4096 elements,
the least of many repeats. Needs x86 with Linux: the reference is NumPy's longdouble of 80 bits, and erfl of the C library.
"""

from __future__ import annotations

import argparse
import ctypes
import functools
import importlib
import itertools
import math
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from string import Template
from typing import Any

import numpy as np

from tilelang.lowering.targets.cpu_functions.float64 import FUNCTIONS

Array = np.ndarray[Any, Any]

HELPERS = ("product_error", "far_remainder")
NAMES = tuple(name for name in FUNCTIONS if name not in HELPERS)
TWO_ARGUMENTS = ("pow", "fmod")
WIDTHS = (1, 2, 4, 8, 16)

# The names that the templates rely on, as a kernel's text has them.
_TYPES = """\
#define long long long
typedef unsigned long ulong;
typedef unsigned char uchar;
#define INFINITY __builtin_inff()
#define NAN __builtin_nanf("")
#define sqrt(...) __builtin_elementwise_sqrt(__VA_ARGS__)
#define as_double(...) __builtin_bit_cast(double, (__VA_ARGS__))
#define as_long(...) __builtin_bit_cast(long, (__VA_ARGS__))
#define as_ulong(...) __builtin_bit_cast(ulong, (__VA_ARGS__))
static inline __attribute__((overloadable)) int any(int x) { return x != 0; }
"""
_VECTORS = """\
typedef double double$n __attribute__((ext_vector_type($n)));
typedef long long$n __attribute__((ext_vector_type($n)));
typedef ulong ulong$n __attribute__((ext_vector_type($n)));
#define as_double$n(...) __builtin_bit_cast(double$n, (__VA_ARGS__))
#define as_long$n(...) __builtin_bit_cast(long$n, (__VA_ARGS__))
#define as_ulong$n(...) __builtin_bit_cast(ulong$n, (__VA_ARGS__))
typedef __typeof__((double$n){0} == (double$n){0}) mask$n;  // of long or of long long, by the system
static inline __attribute__((overloadable)) int any(mask$n x) { return __builtin_reduce_or(x) < 0; }
"""
_LOOP = """
void all_$name(const $T* x, const $T* y, $T* z, long count) {
    for (long i = 0; i < count; ++i) z[i] = ${name}_$T($arguments);
}
"""


def needed(name: str) -> Iterator[str]:
    """A function's helpers and the function, callees first, perhaps more than once."""
    for helper in FUNCTIONS[name].needs:
        yield from needed(helper)
    yield name


def source(names: tuple[str, ...], lanes: int) -> str:
    """C with a loop `all_NAME(x, y, z, vectors)` for each function, over vectors of so many lanes."""
    suffix = "" if lanes == 1 else str(lanes)
    fields = {"T": f"double{suffix}", "I": f"long{suffix}", "U": f"ulong{suffix}", "inline": "static inline"}
    every = dict.fromkeys(each for name in names for each in needed(name))
    parts = [_TYPES, *([] if lanes == 1 else [Template(_VECTORS).substitute(n=lanes)])]
    parts += [Template(FUNCTIONS[name].text).substitute(fields) for name in every]
    parts += [
        Template(_LOOP).substitute(fields, name=name, arguments="x[i], y[i]" if name in TWO_ARGUMENTS else "x[i]")
        for name in names
    ]
    return "".join(parts)


def zig() -> list[str]:
    """The command that runs the compiler of the ziglang package. Raises ModuleNotFoundError without it."""
    return [str(Path(str(importlib.import_module("ziglang").__file__)).parent / "zig")]


def build(text: str, folder: Path, machine: str, *flags: str, defined: bool = True) -> Path:
    """A shared library of a C text. Raises CalledProcessError, its text in stderr; defined: for an undefined symbol too."""
    stem = folder / f"functions_{len(list(folder.iterdir()))}"
    code, binary, library = (stem.with_suffix(suffix) for suffix in (".c", ".o", ".so"))
    code.write_text(text)
    options = ["-O2", f"-march={machine}", "-mprefer-vector-width=512", "-fno-math-errno", "-fPIC", *flags]
    link = ["ld.lld", "-shared", *(["-z", "defs"] if defined else []), binary, "-o", library]
    for command in (["clang", *options, "-c", code, "-o", binary], link):
        subprocess.run([*zig(), *map(str, command)], check=True, capture_output=True, text=True)
    return library


def bound(library: Path, name: str, lanes: int, x: Array, y: Array, out: Array) -> Callable[[], object]:
    """A call over arrays from `aligned` whose length is a multiple of `lanes`; their addresses are taken here, once."""
    function = ctypes.CDLL(str(library))[f"all_{name}"]
    addresses = [ctypes.c_void_p(each.ctypes.data) for each in (x, y, out)]
    return functools.partial(function, *addresses, ctypes.c_longlong(len(x) // lanes))


def caller(library: Path, name: str, lanes: int) -> Callable[..., Array]:
    """A function of such arrays that returns one."""

    def call(x: Array, y: Array | None = None) -> Array:
        out = aligned(len(x))
        bound(library, name, lanes, x, x if y is None else y, out)()
        return out

    return call


def aligned(values: int | Array) -> Array:
    """An array at an address divisible by 128, as the widest vector needs: of so many elements, or a copy."""
    size = values if isinstance(values, int) else len(values)
    raw = np.empty(size + 16)
    start = -(raw.ctypes.data // 8) % 16
    found = raw[start : start + size]
    if not isinstance(values, int):
        found[:] = values
    return found


_ERFL = """
long double erfl(long double);
void all_erfl(const long double* x, long double* z, long count) {
    for (long i = 0; i < count; ++i) z[i] = erfl(x[i]);
}
"""


@functools.cache
def _erfl() -> Any:
    """A loop over the C library's erfl: NumPy has none. The library stays loaded for the process."""
    with tempfile.TemporaryDirectory() as folder:
        ctypes.CDLL("libm.so.6", ctypes.RTLD_GLOBAL)
        library = build(_ERFL, Path(folder), "x86-64", defined=False)
        function = ctypes.CDLL(str(library)).all_erfl
    function.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_longlong]
    return function


def _erf(x: Array) -> Array:
    x = np.ascontiguousarray(x, np.longdouble)
    found = np.empty_like(x)
    _erfl()(x.ctypes.data, found.ctypes.data, len(x))
    return found


def _sigmoid(x: Array) -> Array:
    small = np.exp(-np.abs(x))
    return np.where(x >= 0, 1 / (1 + small), small / (1 + small))


EXACT: dict[str, Callable[..., Array]] = {
    "exp": np.exp, "exp2": np.exp2, "expm1": np.expm1, "log": np.log, "log2": np.log2, "log1p": np.log1p, "sin": np.sin,
    "cos": np.cos, "tanh": np.tanh, "erf": _erf, "sigmoid": _sigmoid, "rsqrt": lambda x: 1 / np.sqrt(x), "pow": np.power,
    "fmod": np.fmod,
}  # fmt: skip


def errors(name: str, arguments: tuple[Array, ...], found: Array) -> Array:
    """|found - exact| in ulps of the result (of the least normal number below it); infinite where a special value is another.

    An infinity counts as 2^1024 where the exact value is finite in the wider type, so early and late overflow are measured too.
    """
    info = np.finfo(np.float64)
    with np.errstate(all="ignore"):
        exact = np.asarray(EXACT[name](*(x.astype(np.longdouble) for x in arguments)))
        size = np.minimum(np.maximum(np.abs(exact), info.tiny), info.max)
        ulp = np.spacing(size.astype(np.float64)).astype(np.longdouble)
        got = found.astype(np.longdouble)
        infinite = np.isinf(got) & np.isfinite(exact)
        got = np.where(infinite, np.copysign(np.ldexp(np.longdouble(1), 1024), got), got)
        off = np.abs(got - exact) / ulp
        same = (np.isnan(got) & np.isnan(exact)) | ((got == exact) & ((got != 0) | (np.signbit(got) == np.signbit(exact))))
        signs = (got == 0) & (exact == 0) & (np.signbit(got) != np.signbit(exact))
        late = np.isfinite(got) & np.isinf(exact)
    off = np.where(np.isnan(off) | signs | late, np.inf, off)
    return np.asarray(np.where(same, 0.0, off), np.float64)


SPECIAL = (
    0.0, 5e-324, 1e-310, 2.2250738585072014e-308, 1e-300, 1e-17, 0.5, 0.7071067811865475, 1.0, 1.5, 2.0, 2.5, 3.0, 4.0, 5.95, 20.0,
    708.0, 709.782712893384, 709.7827128933841, 745.1332191019411, 745.1332191019412, 1021.0, 1022.0, 1023.0, 1024.0, 1074.0,
    1075.0, 1e10, 2.0**29, 2.0**20, 2.0**52 - 0.5, 2.0**52 + 1, 2.0**53 - 1, 2.0**53, 1e22, 6381956970095103.0 * 2.0**797, 1e300,
    1.7976931348623157e308, math.inf, math.nan,
)  # fmt: skip


def special_values(name: str) -> tuple[Array, ...]:
    """Special values, where formulas change, and their neighbours, with both signs; each pair of them for two arguments."""
    values = np.array([*SPECIAL, *(-v for v in SPECIAL)])
    with np.errstate(all="ignore"):
        values = np.concatenate([values, np.nextafter(values, np.inf), np.nextafter(values, -np.inf)])
    found = np.meshgrid(values, values) if name in TWO_ARGUMENTS else [values]
    return tuple(aligned(np.resize(each.ravel(), each.size + -each.size % 16)) for each in found)


def patterns(rng: np.random.Generator, size: int) -> Array:
    """Random bit patterns."""
    return rng.integers(0, 1 << 64, size, dtype=np.uint64).view(np.float64)


def _one_argument(rng: np.random.Generator, size: int) -> Array:
    part = size // 8
    turns = np.rint(2.0 ** rng.uniform(0, 52, part)) * (np.pi / 2)
    near_turns = turns + rng.integers(-2, 3, part) * np.spacing(turns)
    around_one = 1 + rng.normal(0, 1, part) * 2.0 ** rng.uniform(-53, 0, part)
    small = rng.normal(0, 1, part) * 2.0 ** rng.uniform(-60, 0, part)
    others = [rng.uniform(-b, b, part // 2) for b in (1, 4, 25, 750, 1100, 1e5)]
    last = patterns(rng, size - 3 * part - 6 * (part // 2))
    return np.concatenate([near_turns * rng.choice([-1, 1], part), around_one, small, *others, last])


def _of_powers(rng: np.random.Generator, size: int) -> tuple[Array, Array]:
    part = size // 5
    base = np.abs(patterns(rng, part))
    near = 1 + rng.normal(0, 1, part) * 2.0 ** rng.uniform(-52, -1, part)
    usual = rng.uniform(0, 10, part)
    bases = np.concatenate([base, near, usual])
    with np.errstate(all="ignore"):
        exponents = rng.uniform(-1080, 1030, 3 * part) / np.log2(np.abs(bases))
    whole = rng.integers(-40, 40, part).astype(np.float64)
    rest = size - 4 * part
    return (
        np.concatenate([bases, rng.normal(0, 10, part), patterns(rng, rest)]),
        np.concatenate([exponents, whole, patterns(rng, rest)]),
    )


def _of_remainders(rng: np.random.Generator, size: int) -> tuple[Array, Array]:
    part = size // 4
    x = np.concatenate([rng.normal(0, 100, part), np.rint(rng.normal(0, 1e6, part)), patterns(rng, size - 2 * part)])
    y = np.concatenate([rng.normal(0, 1, part), np.rint(rng.normal(0, 1e3, part)), patterns(rng, size - 2 * part)])
    y[-part:] = x[-part:] * 2.0 ** rng.uniform(-60, 2, part)
    return x, y


def samples(name: str, size: int, seed: int) -> tuple[Array, ...]:
    """`size` (a multiple of 16) arguments of a function, shuffled: lanes are beside lanes of all kinds."""
    rng = np.random.default_rng(seed)
    with np.errstate(all="ignore"):
        if name in TWO_ARGUMENTS:
            found: tuple[Array, ...] = (_of_powers if name == "pow" else _of_remainders)(rng, size)
        else:
            found = (_one_argument(rng, size),)
    order = rng.permutation(size)
    return tuple(aligned(values[order]) for values in found)


def worst(name: str, call: Callable[..., Array], count: int) -> tuple[float, tuple[float, ...]]:
    """The greatest error over the special values and so many samples, and where it is."""
    greatest, place = -1.0, tuple[float, ...]()
    chunks = (samples(name, CHUNK, seed) for seed in range(-(-count // CHUNK)))
    for arguments in itertools.chain([special_values(name)], chunks):
        off = errors(name, arguments, call(*arguments))
        at = int(off.argmax())
        if off[at] > greatest:
            greatest, place = float(off[at]), tuple(float(x[at]) for x in arguments)
    return greatest, place


CHUNK = 1 << 18


def picoseconds(runs: dict[str, Callable[[], object]], elements: int, repeats: int = 60) -> dict[str, float]:
    """Least time an element of each, repeats interleaved."""
    least = dict.fromkeys(runs, math.inf)
    for _ in range(repeats):
        for label, run in runs.items():
            start = time.perf_counter()
            for _ in range(5):
                run()
            least[label] = min(least[label], (time.perf_counter() - start) / 5)
    return {label: seconds / elements * 1e12 for label, seconds in least.items()}


def timed(name: str, forms: dict[tuple[str, int], Path]) -> dict[str, float]:
    """Our function, in each form, and NumPy's where it has one, on numbers that need no special treatment."""
    rng = np.random.default_rng(0)
    x, y, z = aligned(rng.uniform(0.1, 10, 4096)), aligned(rng.uniform(0.5, 3, 4096)), aligned(4096)
    peer = getattr(np, {"pow": "power"}.get(name, name), None)
    arguments = (x, y) if name in TWO_ARGUMENTS else (x,)
    runs = {f"{machine} x{lanes}": bound(library, name, lanes, x, y, z) for (machine, lanes), library in forms.items()}
    if peer is not None:
        runs["numpy"] = functools.partial(peer, *arguments, out=z)
    return picoseconds(runs, 4096)


def main() -> None:
    """The table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--samples", type=int, default=1_000_000)
    parser.add_argument("--functions", nargs="*", default=list(NAMES))
    parser.add_argument("--machine", nargs="*", default=["native", "x86-64-v3", "x86-64"])
    parser.add_argument("--widths", nargs="*", type=int, default=[8])
    parser.add_argument("--flags", default="", help="more of the compiler's, as one word: -ffp-contract=off")
    chosen = parser.parse_args()
    names = tuple(chosen.functions)
    with tempfile.TemporaryDirectory() as folder:
        forms = {
            (machine, lanes): build(source(names, lanes), Path(folder), machine, *chosen.flags.split())
            for machine in chosen.machine
            for lanes in chosen.widths
        }
        for name in names:
            calls = {f"{machine} x{lanes}": caller(library, name, lanes) for (machine, lanes), library in forms.items()}
            times = timed(name, forms)
            for label, call in calls.items():
                off, place = worst(name, call, chosen.samples)
                verdict = "" if off <= FUNCTIONS[name].ulps else "  WRONG"
                at = ", ".join(map(repr, place))
                print(
                    f"{name:8} {label:14} {off:7.3f} of {FUNCTIONS[name].ulps:4} ulps at {at}{verdict}; {times[label]:6.0f} ps",
                    flush=True,
                )
            if "numpy" in times:
                print(f"{name:8} {'NumPy':14} {times['numpy']:6.0f} ps", flush=True)


if __name__ == "__main__":
    main()
