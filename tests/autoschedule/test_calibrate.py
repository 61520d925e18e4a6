"""Scalars that are fitted: found again where they made the times, and good for schedules that were not among the samples."""

import math

import pytest

import tilelang as tl
from tilelang.autoschedule.common.construct import construct
from tilelang.autoschedule.common.cost import SCALES
from tilelang.autoschedule.models import estimate_schedule
from tilelang.autoschedule.tune.calibrate import calibrate, with_scales

POCL = tl.load_profile("sapphire_rapids")
TRUE = (1.4, 0.7, 1.2, 0.8)


def schedules() -> list[tl.Schedule]:
    """Of products, sums of rows and sums of elements, large and small: each leans on another part of the model."""
    found = []
    for m, n, k in ((64, 96, 256), (512, 480, 512), (256, 960, 48), (96, 96, 2048)):
        i, j, r = tl.axes(m=m, n=n, k=k)
        A, B = tl.input("A", tl.float32, i, r), tl.input("B", tl.float32, r, j)
        whole = tl.schedule(tl.define("C", tl.sum(A[i, r] * B[r, j], over=r), i, j)).tile(m=32, n=96).to(tl.block)
        for block in (whole, whole.load("A", tl.shared), whole.load("B", tl.shared, steps=tl.move().vectorize(n=16))):
            piece = block.split(m=8, n=48).accumulate(tl.register)
            found.append(piece.split(k=1).split(m=1, unroll=True).vectorize(n=16))
    for rows, columns in ((16, 64), (4000, 4096), (64, 4096)):
        i, j = tl.axes(i=rows, j=columns)
        X = tl.input("X", tl.float32, i, j)
        sums = tl.schedule(tl.define("Y", tl.sum(X[i, j], over=j), i)).tile(i=1).to(tl.block)
        found.append(sums.accumulate(tl.register).split(j=64).vectorize(j=64))
        found.append(tl.schedule(tl.define("Y", X[i, j] * 2, i, j)).tile(i=1).to(tl.block).split(j=64).vectorize(j=64))
    return found


def test_scalars_that_made_the_times_are_found_and_serve_others() -> None:
    device = with_scales(POCL, TRUE)
    every = schedules()
    samples, held_out = every[::2], every[1::2]
    noise = (1.02, 0.99, 0.98, 1.01)
    times = [(s, estimate_schedule(s, device).seconds * noise[n % 4]) for n, s in enumerate(samples)]
    fitted = calibrate(POCL, times)

    def off(profile: tl.profiles.profile.Profile) -> list[float]:
        pairs = [(estimate_schedule(s, profile).seconds, estimate_schedule(s, device).seconds) for s in held_out]
        return [abs(math.log(guess / truth)) for guess, truth in pairs]

    assert max(off(fitted)) < 0.1 < max(off(POCL))


def test_a_device_whose_threads_run_together_is_calibrated_too() -> None:
    volta = tl.load_profile("volta")
    i, j, k = tl.axes(i=512, j=512, k=512)
    A, B = tl.input("A", tl.float32, i, k), tl.input("B", tl.float32, k, j)
    small = construct(tl.schedule(tl.define("C", tl.sum(A[i, k] * B[k, j], over=k), i, j)).computation, volta)[:6]
    i, j = tl.axes(i=8192, j=4096)
    wide = construct(tl.schedule(tl.define("Y", tl.input("X", tl.float32, i, j)[i, j] * 2, i, j)).computation, volta)[:6]
    every = [(c.schedule, c.estimate.seconds) for c in (*small, *wide)]
    fitted = calibrate(volta, [(s, 3 * seconds) for s, seconds in every])
    assert [estimate_schedule(s, fitted).seconds / seconds for s, seconds in every] == pytest.approx([3.0] * len(every), rel=0.15)


def test_without_samples_every_scalar_is_one() -> None:
    assert [calibrate(POCL, []).rate(name) for name in SCALES] == pytest.approx([1.0] * len(SCALES))
