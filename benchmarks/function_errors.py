"""The greatest error of every function on the device here, in units in the last place, against NumPy's longdouble.

    python -m benchmarks.function_errors [--samples 20000000] [--functions sin cos]

For each function, element type and vector width: the greatest error over random bit patterns (every exponent alike, denormals too)
and over numbers near 1, beside the error that is stated and enters every bound; special values must be NumPy's own. The tests run
the same on a small sample. Lanes are shuffled, for builtins that are wrong only beside certain neighbours.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from tilelang.semantics import error_bound

Array = np.ndarray[Any, Any]

_ERF = np.frompyfunc(math.erf, 1, 1)


def _sigmoid(x: Array) -> Array:
    small = np.exp(-np.abs(x))
    return np.where(x >= 0, 1 / (1 + small), small / (1 + small))


EXACT: dict[str, Callable[..., Array]] = {
    "exp": np.exp, "exp2": np.exp2, "expm1": np.expm1, "log": np.log, "log2": np.log2, "log1p": np.log1p, "sqrt": np.sqrt,
    "rsqrt": lambda x: 1 / np.sqrt(x), "sin": np.sin, "cos": np.cos, "tanh": np.tanh, "sigmoid": _sigmoid,
    "erf": lambda x: _ERF(x.astype(np.float64)).astype(np.longdouble), "floor": np.floor, "ceil": np.ceil, "round": np.rint,
    "abs": np.abs, "pow": np.power, "/": np.divide,
}  # fmt: skip
TWO_ARGUMENTS = ("pow", "/")


def samples(type: str, size: int, seed: int = 0) -> Array:
    """At least `size` numbers: random bit patterns, numbers near 1 and near quarter turns, special values; shuffled, 16 | length."""
    rng, t = np.random.default_rng(seed), np.dtype(type)
    patterns = rng.integers(0, 2 ** (8 * t.itemsize), size // 2, dtype=np.uint64).astype(f"u{t.itemsize}").view(t)
    near = np.concatenate([rng.normal(0, s, size // 16) for s in (0.01, 0.1, 1, 5, 30, 300, 5000)])
    turns = rng.integers(-5000, 5000, size // 16) * (np.pi / 2)
    info = np.finfo(t)
    ends = [0.0, info.tiny, info.smallest_subnormal, info.max, np.inf, np.nan]
    ends += [1.0, 0.5, 1.5, 2.5, 4.0, 0.625, 0.9277, 8192.0, 8193.0]  # and where our own functions change their formulas
    ends += [math.log(v) for v in (float(info.max), float(info.tiny))] + [float(info.maxexp), -float(info.minexp)]
    around = np.array([*ends, *(-v for v in ends)]).astype(t)
    with np.errstate(all="ignore"):
        edges = np.concatenate([around, np.nextafter(around, t.type(np.inf)), np.nextafter(around, t.type(-np.inf))])
    found = np.concatenate([patterns, near.astype(t), turns.astype(t), *[edges] * 4])
    return rng.permutation(np.concatenate([found, np.ones(-len(found) % 16, t)]))


def halves(type: Any) -> Array:
    """All numbers of a 16-bit type, shuffled."""
    return np.random.default_rng(0).permutation(np.arange(1 << 16, dtype=np.uint16)).view(type)


def errors(name: str, arguments: tuple[Array, ...], found: Array) -> Array:
    """|found - exact| in ulps of the result's type (of the least normal number below it); inf where a special value is another.

    Where the bound lets a function overflow early, an infinity is right.
    """
    with np.errstate(all="ignore"):
        exact = np.asarray(EXACT[name](*(x.astype(np.longdouble) for x in arguments)))
        rounded = exact.astype(found.dtype)
        finite = np.isfinite(rounded)
        ulp = np.spacing(np.maximum(np.abs(rounded), np.finfo(found.dtype).tiny)).astype(np.longdouble)
        off = np.abs(found.astype(np.longdouble) - exact) / ulp
        if name in error_bound.EARLY:
            early = (
                np.abs(exact) * (1 + error_bound.EARLY_ULPS * np.finfo(found.dtype).eps * np.abs(arguments[0]))
                > np.finfo(found.dtype).max
            )
            off = np.where(early & (np.abs(found) == np.inf), 0.0, off)
        same = (found == rounded) | (np.isnan(found) & np.isnan(rounded))
    return np.asarray(np.where(finite, np.where(np.isnan(off), np.inf, off), np.where(same, 0.0, np.inf)), np.float64)


def rounds_to(name: str, x: Array, found: Array, ulps: float) -> Array:
    """Whether a 16-bit result is what a float32 within `ulps` of the exact value rounds to."""
    wide = np.float32
    with np.errstate(all="ignore"):
        exact = np.asarray(EXACT[name](x.astype(np.longdouble)))
        spacing = np.spacing(np.maximum(np.abs(exact.astype(wide)), np.finfo(wide).tiny)).astype(np.longdouble)
        room = np.where(np.isfinite(spacing), ulps * spacing, 0.0)
        low, high = ((exact + r).astype(wide).astype(found.dtype).astype(wide) for r in (-room, room))
        got = found.astype(wide)
        return np.asarray(((low <= got) & (got <= high)) | (np.isnan(low) & np.isnan(got)))


def stated(type: str = "float32") -> Mapping[str, float]:
    """The error of each function that kernels for the device here state, of float32 or float64."""
    from tilelang.lowering.targets.c import emitter
    from tilelang.runtime.targets import DIALECTS, local_target

    return emitter.ulps(DIALECTS[local_target().dialect], {"float32": "float", "float64": "double"}[type])


def measure(name: str, arguments: tuple[Array, ...], lanes: int) -> Array:
    """The function by a kernel of its own, `lanes` elements at a time."""
    import tilelang as tl
    from tilelang.core.expr import Binary, Call

    i = tl.axes(i=len(arguments[0]))
    reads = [tl.input(n, arguments[0].dtype.name, i)[i] for n, _ in zip("XY", arguments, strict=False)]
    value = Binary(name, *reads) if name in TWO_ARGUMENTS else Call(name, (reads[0],))
    schedule = tl.schedule(tl.define("Z", value, i)).tile(i=min(4096, i.extent)).to(tl.block)
    kernel = tl.compile(schedule if lanes == 1 else schedule.vectorize(i=lanes))
    return np.asarray(kernel(*arguments))


def main() -> None:
    """The table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--samples", type=int, default=2_000_000)
    parser.add_argument("--functions", nargs="*", default=list(EXACT))
    chosen = parser.parse_args()
    for type in ("float32", "float64"):
        limits = stated(type)
        x = samples(type, chosen.samples)
        y = np.random.default_rng(1).permutation(x)
        for name in chosen.functions:
            arguments = (x, y) if name in TWO_ARGUMENTS else (x,)
            for lanes in (1, 2, 4, 8, 16):
                off = errors(name, arguments, measure(name, arguments, lanes))
                worst = int(off.argmax())
                at = ", ".join(repr(float(a[worst])) for a in arguments)
                verdict = "" if off[worst] <= limits[name] else "  WRONG"
                print(f"{type} {name:8} x{lanes:<2} {off[worst]:8.3f} of {limits[name]:4} ulps, at {at}{verdict}", flush=True)


if __name__ == "__main__":
    main()
