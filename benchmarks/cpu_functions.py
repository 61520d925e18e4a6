"""Errors and times of the vector functions of native processors (32-bit floats), compiled here from their templates.

    python -m benchmarks.cpu_functions [--exhaustive] [--targets native x86-64-v3 x86-64] [--functions exp log] [--only times] [--peers]

Errors are in units in the last place of the result, against the C library's function of 64-bit floats (its own error is below
2^-28 of such a unit): over 2^24 bit patterns (`--samples`), or with `--exhaustive` over all 2^32 arguments; functions of two
arguments over random pairs and all pairs of special values. A wrong special value, or sign of a zero, counts as infinite.
Times are picoseconds an element, one thread, 4096 elements in L1, the minimum of interleaved repeats; `--peers` times NumPy's and
PyTorch's functions beside them.
"""

from __future__ import annotations

import argparse
import ctypes
import importlib.util
import itertools
import math
import platform
import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.cpu_functions_build import TABLE, TWO_ARGUMENTS, build

Array = np.ndarray[Any, Any]

ELEMENTS = 4096
LANES = {"native": 16, "x86-64-v4": 16, "x86-64-v3": 8}  # others: 4
CHUNK = 1024  # of the C loops that measure errors

# Where each function is timed: values that a program has, with no special case.
RANGES = {"log": (0.1, 100), "log2": (0.1, 100), "log1p": (-0.9, 100), "rsqrt": (0.1, 100), "erf": (-4, 4), "pow": (0.1, 10)}
NUMPY = {"pow": "power"} | {n: n for n in ("exp", "exp2", "expm1", "log", "log2", "log1p", "sin", "cos", "tanh", "fmod")}
TORCH = {n: n for n in (*NUMPY, "rsqrt", "erf", "sigmoid")}

_FINITE = [0.0, 1.0, 2.0, 3.0, 0.5, 1.5, 2.5, 7.0, 127.0, 128.0, 0.1, 10.0, 88.72283, 2.0**22, 2.0**23, 2.0**23 + 1, 2.0**24 - 1]
_FINITE += [2.0**24, 2.0**24 + 2, 2.0**30, 2.0**64, 1e-45, 3e-45, 1.17549421e-38, 2.0**-126, 3.4028235e38, 0.99999994, 1.0000001]
SPECIAL = np.array([s * v for v in (*_FINITE, math.inf, math.nan) for s in (1, -1)], np.float32)


def _pointer(x: Array) -> ctypes.c_void_p:
    return ctypes.c_void_p(x.ctypes.data)


def special_error(library: ctypes.CDLL, name: str) -> tuple[float, tuple[float, ...]]:
    """The greatest error over all special values, or pairs of them, and where."""
    count = 2 if name in TWO_ARGUMENTS else 1
    columns = np.array([*itertools.product(SPECIAL, repeat=count)], np.float32).T
    arguments = [np.ascontiguousarray(np.resize(c, -(-len(c) // 16) * 16)) for c in columns]
    found, at = np.empty_like(arguments[0]), (ctypes.c_float * 2)()
    pointers = [_pointer(a) for a in (*arguments, found)]
    worst = getattr(library, f"given_{name}")(*pointers, ctypes.c_uint64(len(arguments[0])), at)
    return float(worst), tuple(at)[:count]


def error(library: ctypes.CDLL, name: str, start: int, count: int, stride: int = 1) -> tuple[float, tuple[float, ...]]:
    """The greatest error in ulps over `count` arguments, bit patterns `start`, `start + stride` ..., or pairs of seed `start`."""
    at = (ctypes.c_float * 2)()
    called = getattr(library, f"errors_{name}")
    if name in TWO_ARGUMENTS:
        return float(called(ctypes.c_uint64(start), ctypes.c_uint64(count), at)), tuple(at)
    worst = called(ctypes.c_uint32(start), ctypes.c_uint32(stride), ctypes.c_uint64(count), at)
    return float(worst), tuple(at)[:1]


def errors(library: ctypes.CDLL, name: str, samples: int, threads: int) -> tuple[float, tuple[float, ...]]:
    """The greatest error over bit patterns evenly apart (all, for 2^32 samples), or over pairs, and over special values; and where."""
    each = -(-samples // (64 * threads) // CHUNK) * CHUNK
    stride = max(1, (1 << 32) // samples - 1) | 1  # odd, so that all low bits occur
    starts = [k if name in TWO_ARGUMENTS else k * each * stride % (1 << 32) for k in range(64 * threads)]
    with ThreadPoolExecutor(threads) as pool:
        found = [*pool.map(lambda start: error(library, name, start, each, stride), starts), special_error(library, name)]
    return max(found, key=lambda f: f[0])


def ours(library: ctypes.CDLL, name: str, arguments: Sequence[Array], out: Array, rounds: int) -> Callable[[], object]:
    """`rounds` passes over the arrays, in one call."""
    called = getattr(library, f"run_{name}")
    pointers = [_pointer(a) for a in (*arguments, out)]
    return lambda: called(*pointers, ctypes.c_long(len(out)), ctypes.c_long(rounds))


def peers(name: str, arguments: Sequence[Array], out: Array, rounds: int) -> dict[str, Callable[[], object]]:
    """The same by NumPy and by PyTorch, where they have the function and are installed."""
    found: dict[str, Callable[[], object]] = {}
    if name in NUMPY:
        of_numpy = getattr(np, NUMPY[name])
        found["numpy"] = lambda: [of_numpy(*arguments, out=out) for _ in range(rounds)]
    if name in TORCH and importlib.util.find_spec("torch"):
        torch = importlib.import_module("torch")
        torch.set_num_threads(1)
        of_torch = getattr(torch, TORCH[name])
        tensors, result = [torch.from_numpy(a) for a in arguments], torch.from_numpy(out)
        found["torch"] = lambda: [of_torch(*tensors, out=result) for _ in range(rounds)]
    return found


def times(libraries: dict[str, ctypes.CDLL], name: str, beside: bool, repeats: int = 15) -> dict[str, float]:
    """Picoseconds an element of each library's function, and of the peers': minima of interleaved repeats."""
    rng, plain = np.random.default_rng(0), name.removeprefix("fast_")
    x = rng.uniform(*RANGES.get(plain, (-10, 10)), ELEMENTS).astype(np.float32)
    arguments = [x, rng.uniform(-5, 5, ELEMENTS).astype(np.float32)][: 2 if name in TWO_ARGUMENTS else 1]
    out, rounds = np.empty_like(x), 200
    contestants = {target: ours(library, name, arguments, out, rounds) for target, library in libraries.items()}
    contestants |= peers(name, arguments, out, rounds) if beside else {}
    best = dict.fromkeys(contestants, math.inf)
    for _ in range(repeats):
        for who, call in contestants.items():
            started = time.perf_counter()
            call()
            best[who] = min(best[who], time.perf_counter() - started)
    return {who: seconds / rounds / ELEMENTS * 1e12 for who, seconds in best.items()}


def machine() -> str:
    """The processor's name."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor()
    facts = {key.strip(): value.strip() for key, _, value in (line.partition(":") for line in reversed(lines))}
    return f"{facts.get('model name')}, family {facts.get('cpu family')} model {facts.get('model')}"


def main() -> int:
    """The table; 1 where an error is above the stated one."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--exhaustive", action="store_true", help="all arguments, or 2^28 pairs")
    parser.add_argument("--samples", type=int, default=1 << 24)
    parser.add_argument("--targets", nargs="*", default=["native", "x86-64-v3", "x86-64"])
    parser.add_argument("--functions", nargs="*", default=list(TABLE), choices=list(TABLE))
    parser.add_argument("--only", choices=["errors", "times"])
    parser.add_argument("--peers", action="store_true")
    parser.add_argument("--threads", type=int, default=1)
    chosen = parser.parse_args()
    wrong = 0
    print(machine(), flush=True)
    with tempfile.TemporaryDirectory() as folder:
        libraries = {t: build(t, LANES.get(t, 4), Path(folder)) for t in chosen.targets}
        for name in chosen.functions:
            row = f"{name:9}"
            all_of_them = 1 << (28 if name in TWO_ARGUMENTS else 32)
            samples = all_of_them if chosen.exhaustive else chosen.samples
            for target, library in libraries.items() if chosen.only != "times" else ():
                worst, at = errors(library, name, samples, chosen.threads)
                wrong += worst > TABLE[name].ulps
                verdict = "" if worst <= TABLE[name].ulps else f" WRONG (stated {TABLE[name].ulps})"
                row += f"  {target} {worst:.4f} ulps at {', '.join(map(repr, at))}{verdict};"
            if chosen.only != "errors":
                row += "  ps: " + ", ".join(f"{who} {t:.0f}" for who, t in times(libraries, name, chosen.peers).items())
            print(row, flush=True)
    return int(wrong > 0)


if __name__ == "__main__":
    raise SystemExit(main())
