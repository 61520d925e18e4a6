"""The tables of `lowering/targets/cpu_functions/float32_pieces.py`, polynomials in pieces, and the roots of two of `exp`, found here.

    python -m benchmarks.cpu_functions_tables [--degree 5]

Each piece has a centre c and the coefficients of f(c + t) = v + t (p1 + t (p2 + ...)). Its centre is moved by some units in the last
place until f(c) lies within a 2000th of a unit of a float, so that v has hardly an error of its own. The piece at zero is
f(t) = t + t (p1 + ...) unless its slope at zero is a float. Coefficients are least-squares fits at Chebyshev's points, rounded one by
one from the lowest power, the others fitted again after each. Prints the tables as Python, and the error of each piece before the
function's own roundings, in units of 2^-24 of the result.

The roots are 2^(k/16 + d), with d so that all are nearly floats: the best of 2^26 draws. Their polynomial is 2^-d e^r - 1.
"""

from __future__ import annotations

import argparse
import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
Pieces = Sequence[tuple[float, float]]

POINTS = 200
NEAR = 1 / 2000
OFFSET = 0.625  # of tanh: a + 0.625 has its piece in its exponent and two bits of its significand
STEP = 0.253  # of erf
ROOTS, DRAWS, AT_ONCE = 16, 2**26, 2**20


def pieces_of_tanh() -> Pieces:
    """Where the bits of a + 0.625 above the 21st change."""
    ends = [m * 2.0**e - OFFSET for e in (-3, -2, -1, 0, 1) for m in (4, 5, 6, 7)]
    return [*itertools.pairwise(ends[1:18])]  # from zero on


def pieces_of_erf() -> Pieces:
    """Where a / STEP rounds to 0, 1, ... 15."""
    return [(max(0.0, (n - 0.5) * STEP), (n + 0.5) * STEP) for n in range(16)]


def centre_of(f: Callable[[float], float], low: float, high: float) -> np.float32:
    """A float near the middle at which f nearly is a float."""
    centre = np.float32((low + high) / 2)
    while True:
        exact = f(float(centre))
        value = np.float32(exact)
        if abs(float(value) - exact) <= NEAR * float(np.spacing(value)):
            return centre
        centre = np.nextafter(centre, np.float32(high))


def coefficients(f: Callable[[float], float], low: float, high: float, degree: int) -> tuple[list[np.float32], float]:
    """The piece's centre, value and p1 to p`degree`; its error by 2^-24 of the result."""
    near_zero = low == 0.0
    apart = near_zero and f is not math.tanh  # whose slope is 1
    centre = np.float32(0) if near_zero else centre_of(f, low, high)
    value = np.float32(f(float(centre)))
    x = (low + high) / 2 + (high - low) / 2 * np.cos(math.pi * (np.arange(POINTS) + 0.5) / POINTS)
    t, exact = x - float(centre), np.array([f(float(a)) for a in x])
    rest = exact / t - 1 if apart else (exact - float(value)) / t
    found, weight = [], np.ones_like(t) if near_zero else np.abs(t)  # errors of the result, near zero by its size
    scale = float(np.abs(t).max())
    for k in range(degree):
        basis = (t[:, None] / scale) ** np.arange(degree - k)
        solved = np.linalg.lstsq(basis * weight[:, None], rest * weight, rcond=None)[0]
        found.append(np.float32(solved[0]))
        rest, weight = (rest - float(found[-1])) / t, weight * np.abs(t)
    at = np.full_like(t, float(found[-1]))
    for c in reversed(found[:-1]):
        at = at * t + float(c)
    made = (t if apart else float(value)) + t * at
    return [centre, value, *found], float(np.abs(made / exact - 1).max() * 2**24)


def shift_of_roots() -> tuple[float, float]:
    """The greatest error of a root as a float, in units of the last place of the result, and the shift d that gives it."""
    generator, best = np.random.default_rng(0), (1.0, 0.0)
    for _ in range(DRAWS // AT_ONCE):
        d = generator.uniform(-1 / (2 * ROOTS), 1 / (2 * ROOTS), AT_ONCE)
        worst = np.zeros_like(d)
        for k in range(ROOTS):
            exact = np.exp2(k / ROOTS + d)
            unit = 2.0**-23 if k else 2.0**-24  # the first root's results lie on both sides of 1
            worst = np.maximum(worst, np.abs(exact.astype(np.float32) - exact) / unit)
            d, worst = d[worst < best[0]], worst[worst < best[0]]
        best = min([best, *zip(worst.tolist(), d.tolist(), strict=True)])
    return best


def print_roots() -> None:
    """The roots and their polynomial from the lowest power."""
    error, d = shift_of_roots()
    print(f"# error: {error:.2f}, shift: {d}")
    print(f"_ROOTS = ({', '.join(f'{float(np.float32(2.0 ** (k / ROOTS + d))):.9g}' for k in range(ROOTS))})")
    half = math.log(2) / (2 * ROOTS)
    r = half * np.cos(math.pi * (np.arange(POINTS) + 0.5) / POINTS)
    rest = np.expm1(r - d * math.log(2))
    found, weight = [], np.ones_like(r)
    for degree in (3, 2, 1, 0):
        basis = (r[:, None] / half) ** np.arange(degree + 1)
        solved = np.linalg.lstsq(basis * weight[:, None], rest * weight, rcond=None)[0]
        found.append(np.float32(solved[0]))
        rest, weight = (rest - float(found[-1])) / r, weight * np.abs(r)
    print(f"# polynomial: {', '.join(f'{float(c):.8e}' for c in found)}")


def main() -> None:
    """Prints the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--degree", type=int, default=5)
    degree = parser.parse_args().degree
    functions: dict[str, tuple[Callable[[float], float], Pieces]] = {
        "TANH": (math.tanh, pieces_of_tanh()),
        "ERF": (math.erf, pieces_of_erf()),
    }
    for name, (f, pieces) in functions.items():
        made = [coefficients(f, low, high, degree) for low, high in pieces]
        print(f"# errors: {', '.join(f'{error:.2f}' for _, error in made)}")
        print(f"_{name}_PIECES = (")
        for row in zip(*(c for c, _ in made), strict=True):
            print(f"    ({', '.join(f'{float(v):.9g}' for v in row)}),")
        print(")")
    print_roots()


if __name__ == "__main__":
    main()
