"""How far the model is off: times a dozen generated schedules and fits the model's scale factors to their times.

The schedules are the best of each of a few computations and two lower-ranked ones, so that every factor has samples that depend
on it.
"""

from __future__ import annotations

from tilelang.autoschedule.common.complete import candidates
from tilelang.autoschedule.common.cost import SCALES
from tilelang.autoschedule.profile.bench import Bench
from tilelang.autoschedule.profile.findings import Findings
from tilelang.autoschedule.tune.calibrate import calibrate
from tilelang.computations.computation import Computation, as_computation, axes, input
from tilelang.computations.define import define
from tilelang.computations.functions import pad, sum
from tilelang.core.dtype import float32

PLACES = (0, 5, 11)  # ranks among a computation's candidates


def model(bench: Bench, found: Findings) -> None:
    """Times a dozen schedules, each until the caller knows that it has finished."""
    profile = found.so_far or bench.profile  # including its curves and facts, which estimates use too
    samples = []
    for computation in computations(max(1, bench.cores // 8)):
        made = candidates(computation, profile)
        for place in PLACES:
            if place < len(made):
                run = bench.waited(bench.of_schedule(made[place].schedule))
                samples.append((made[place].schedule, found.time(computation.outputs[0].name, place, run).seconds))
    fitted = calibrate(profile, samples)
    for name in SCALES:
        found.rate(name, fitted.rate(name) or 1.0, f"calibrated with {len(samples)} schedules, each timed until it has finished")


def computations(grown: int) -> list[Computation]:
    """A product, windows over an image with its border, row sums, and a function of few elements, whose time is mostly a launch.

    grown: how many times larger than a few cores need, so that a device with many cores has work for all.
    """
    i, j, k = axes(i=256 * grown, j=480, k=512)
    A, B = input("A", float32, i, k), input("B", float32, k, j)
    product = define("product", sum(A[i, k] * B[k, j], over=k), i, j)
    c, p, q, r, s = axes(c=64 * grown, p=42, q=42, r=3, s=3)
    X, W = input("X", float32, c, p, q), input("W", float32, c, r, s)
    windows = define("windows", sum(pad(X[c, p + r - 1, q + s - 1], 0.0) * W[c, r, s], over=(r, s)), c, p, q)
    m, n = axes(m=4096 * grown, n=512)
    rows = define("rows", sum(input("Y", float32, m, n)[m, n], over=n), m)
    e = axes(e=1 << 12)
    return [as_computation(t) for t in (product, windows, rows, define("each", input("V", float32, e)[e] * 2, e))]
