"""Functions of 32-bit floats for native processors, compiled and run: self-contained, and within the stated ulps of longdouble."""

from __future__ import annotations

import ctypes
import platform
import re
import sys
from pathlib import Path

import numpy as np
import pytest

from benchmarks import cpu_functions_build as build
from benchmarks import function_errors as fe
from tilelang.core.expr import FLOAT_FUNCTIONS
from tilelang.lowering.targets.cpu_functions import float32

# -march and lanes: all widths of this machine, then machines with and without fused multiply-add.
TARGETS = [("native", 1), ("native", 2), ("native", 4), ("native", 8), ("native", 16), ("x86-64-v3", 8), ("x86-64", 4)]
ELEMENTARY = {"sqrt", "floor", "ceil", "round"}  # instructions


def runs(target: str) -> str | None:
    """Why code for this target does not run here; None where it does."""
    if sys.platform != "linux":
        return "builds an ELF library"
    if build.zig() is None:
        return "needs the compiler of the ziglang wheel"
    if target == "native":
        return None
    if platform.machine() != "x86_64":
        return f"{target} is not this processor's kind"
    facts = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    return None if target == "x86-64" or (" avx2 " in facts and " fma " in facts) else f"this processor is older than {target}"


@pytest.fixture(params=TARGETS, ids=lambda t: f"{t[0]}-{t[1]}", scope="module")
def library(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    target, lanes = request.param
    reason = runs(target)
    if reason is not None:
        pytest.skip(reason)
    return ctypes.CDLL(str(build.compile_functions(target, lanes, tmp_path_factory.mktemp("functions"))))


def call(library: ctypes.CDLL, name: str, *arguments: fe.Array) -> fe.Array:
    found = np.empty_like(arguments[0])
    pointers = [ctypes.c_void_p(a.ctypes.data) for a in (*arguments, found)]
    getattr(library, f"run_{name}")(*pointers, ctypes.c_long(found.size), ctypes.c_long(1))
    return found


def exact(name: str, *arguments: fe.Array) -> fe.Array:
    """Rounded to 32-bit floats."""
    with np.errstate(all="ignore"):
        wide = [a.astype(np.longdouble) for a in arguments]
        return np.asarray(np.fmod(*wide) if name == "fmod" else fe.EXACT[name](*wide)).astype(np.float32)


def test_every_function_has_a_template() -> None:
    assert set(FLOAT_FUNCTIONS) - ELEMENTARY | {"pow", "fmod"} == set(float32.FUNCTIONS)
    assert all(f.ulps <= (1.0 if n in ("exp", "log") else 1.5) for n, f in float32.FUNCTIONS.items())


@pytest.mark.parametrize("name", [n for n in build.TABLE if n != "fmod"])
def test_errors_are_within_the_stated_ulps(library: ctypes.CDLL, name: str) -> None:
    meaning = name.removeprefix("fast_")
    x = fe.samples("float32", 1 << 12, 1)
    arguments = (x, np.random.default_rng(1).permutation(x)) if name in build.TWO_ARGUMENTS else (x,)
    found = call(library, name, *arguments)
    off = fe.errors(meaning, arguments, found)
    worst = int(off.argmax())
    assert off[worst] <= build.TABLE[name].ulps, (off[worst], [a[worst] for a in arguments], found[worst])
    rounded = exact(meaning, *arguments)
    assert (np.isinf(found) == np.isinf(rounded)).all()  # nothing overflows early
    nought = rounded == 0
    assert (np.signbit(found) == np.signbit(rounded))[nought & (found == 0)].all()


@pytest.mark.parametrize("name", build.TWO_ARGUMENTS)
def test_pairs_of_special_values(library: ctypes.CDLL, name: str) -> None:
    values = [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 7.0, 1e-45, 2.0**-126, 0.99999994, 1.0000001, 2.0**23 - 0.5, 2.0**24 - 1, 2.0**24]
    values += [2.0**30, 3.4028235e38, np.inf, np.nan]
    special = np.array([s * v for v in values for s in (1, -1)], np.float32)
    x, y = (np.resize(c, -(-c.size // 16) * 16) for c in map(np.ravel, np.meshgrid(special, special)))
    found, rounded = call(library, name, x, y), exact(name, x, y)
    if name == "fmod":
        right = (found.view(np.uint32) == rounded.view(np.uint32)) | (np.isnan(found) & np.isnan(rounded))
    else:
        right = (fe.errors(name, (x, y), found) <= float32.FUNCTIONS[name].ulps) & (np.signbit(found) == np.signbit(rounded))
        right |= np.isnan(found) & np.isnan(rounded)
    assert right.all(), [*zip(x[~right], y[~right], found[~right], rounded[~right], strict=True)][:4]


def test_remainders_are_exact(library: ctypes.CDLL) -> None:
    x = fe.samples("float32", 1 << 12, 2)
    y = np.random.default_rng(2).permutation(x)
    found, rounded = call(library, "fmod", x, y), exact("fmod", x, y)
    wrong = (found.view(np.uint32) != rounded.view(np.uint32)) & ~(np.isnan(found) & np.isnan(rounded))
    assert not wrong.any(), [*zip(x[wrong], y[wrong], found[wrong], rounded[wrong], strict=True)][:4]


def test_quotients_by_one_number_are_those_of_a_division(library: ctypes.CDLL) -> None:
    """Those of arguments that lose bits below the least float are within the stated ulps; the others are a division's, bit by bit."""
    rng = np.random.default_rng(3)
    values = [0.0, 1e-45, 2.0**-126, 2.0**-103, 0.99999994, 1.0, 1.0000001, 3.0, 2.0**126, 1.7e38, 3.4028235e38, np.inf, np.nan]
    special = np.array([s * v for v in values for s in (1, -1)], np.float32)
    near_most = special[-6] * rng.uniform(-1, -0.98, 2048).astype(np.float32)
    ordinary = rng.standard_normal(1 << 15).astype(np.float32)
    x = np.concatenate([fe.samples("float32", 1 << 14, 4), near_most, ordinary, np.tile(special, 64)])
    x = rng.permutation(np.resize(x, -(-x.size // 16) * 16))
    ordinary = rng.uniform(0.5, 2000, 4096).astype(np.float32)
    divisors = rng.choice(np.concatenate([x[:1024], special, ordinary, 1 - near_most / special[-6] / 50]), x.size // 16)
    y = np.repeat(divisors, 16)  # at most as many lanes share one
    found = call(library, "quotients", x, y)
    with np.errstate(all="ignore"):
        quotient = x / y
        off = np.abs(found.astype(np.longdouble) - x.astype(np.longdouble) / y)
        unit = np.spacing(np.maximum(np.abs(quotient), np.finfo(np.float32).tiny))
        near = (off <= float32.QUOTIENTS.ulps * unit) & (np.signbit(found) == np.signbit(quotient))
        right = (found.view(np.uint32) == quotient.view(np.uint32)) | (np.isnan(found) & np.isnan(quotient))
        right |= near & (np.abs(x) < 2.0**-103)
    assert right.all(), [*zip(x[~right], y[~right], found[~right], quotient[~right], strict=True)][:4]


def test_huge_arguments_of_the_waves_lane_by_lane(library: ctypes.CDLL) -> None:
    x = np.ones(64, np.float32)
    x[::5] = [3e38, 1e30, np.inf, 65537.0, -7e7, np.nan, 1e20, 65535.9, 3.4028235e38, -1e12, 2e5, -np.inf, 4e9]
    for name in ("sin", "cos"):
        assert (fe.errors(name, (x,), call(library, name, x)) <= float32.FUNCTIONS[name].ulps).all()


def test_the_roots_of_exp_are_nearly_floats_and_its_polynomial_takes_their_shift_back() -> None:
    """Nothing is added for what a root lacks: a table at another shift would cost up to half a unit in the last place."""
    shift, k, half = -0.01654559464751252, np.arange(16), np.log(2) / 32
    roots = np.array(float32._ROOTS, np.float32).astype(float)
    assert (np.abs(roots - np.exp2(k / 16 + shift)) < 0.19 * 2.0**-23).all()
    r = np.linspace(-half, half, 1001)
    found = [float(c) for c in re.findall(r"q = r \* (\S+)f \+ (\S+)f;", float32._EXP)[0]]
    found += [float(c) for c in re.findall(r"q = q \* r \+ (\S+)f;", float32._EXP)]
    p = np.polynomial.Polynomial([float(np.float32(c)) for c in reversed(found)])
    assert np.abs((1 + p(r)) * np.exp2(shift) / np.exp(r) - 1).max() < 0.03 * 2.0**-24
