"""Kernels for other processors give what the reference gives: the examples and random ones, on 64-bit Arm under QEMU, and for AVX2.

Many programs are compiled as one text and run in one process. What a profile of other vectors makes of a schedule is seen nowhere else
on a machine that has the widest.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterator

import numpy as np
import pytest

import tilelang as tl
from tests.machines.running import run, starter
from tests.test_examples import NAMES, SIZES, schedules_for
from tilelang import testing
from tilelang.errors import Refusal
from tilelang.lowering.compilers import native
from tilelang.semantics.reference import random_arrays
from tilelang.testing.planner import WARP

ARM, AVX2 = "neoverse-v2@aarch64-linux", "haswell@x86_64-linux"
PROFILES = {ARM: "neon", AVX2: "avx2"}
KERNELS = {ARM: 200, AVX2: 60}  # random ones
BATCH = 50

pytestmark = pytest.mark.slow
Item = tuple[str, tl.Kernel, testing.Expected]


def check(items: list[Item], architecture: str) -> None:
    """Runs kernels, and fails with all that is wrong."""
    runs = run([(kernel.program, expected.arrays) for _, kernel, expected in items], architecture)
    faults = []
    for (name, _, expected), result in zip(items, runs, strict=True):
        faults += [f"{name}: wrote outside {array}" for array in result.overrun]
        faults += [f"{name}: {fault}" for fault in expected.faults(result.outputs, architecture)]
    assert not faults, "\n".join(faults)


def require(architecture: str) -> None:
    """Skips where such code can be neither run nor emulated."""
    if not starter(architecture) and "__AVX2__" not in native.macros(native.NATIVE):
        pytest.skip("this processor has no AVX2")


@pytest.mark.parametrize("architecture", PROFILES)
@pytest.mark.parametrize("chosen", [0, 1, 2, 3])
def test_examples_agree(architecture: str, chosen: int) -> None:
    """Every schedule of every example, at its sizes: those that divide the tiles, odd ones, ones below a tile, empty ones."""
    require(architecture)
    target, items = tl.target("cpu", profile=PROFILES[architecture]), list[Item]()
    for name in NAMES:
        for sizes in SIZES[name][chosen : chosen + 1]:
            for label, schedule in schedules_for(name, sizes, target.profile).items():
                kernel = tl.compile(schedule, target)
                arrays = random_arrays(kernel.computation, seed=1)
                items.append((f"{name} {sizes} {label}", kernel, testing.Expected(kernel.computation, arrays)))
    check(items, architecture)


def accepted(architecture: str) -> Iterator[Item]:
    """Random cases that are not refused, for the profile of an architecture; the same ones in every run."""
    profile = tl.target("cpu", profile=PROFILES[architecture]).profile
    levels = tuple(dataclasses.replace(x, threads=WARP) if x.name == "warp" else x for x in profile.levels)
    target = dataclasses.replace(tl.target("cpu", profile=profile), profile=dataclasses.replace(profile, levels=levels))
    for number in itertools.count():
        try:
            case = testing.draw_case(testing.Seeded(number), profile=target.profile)
            kernel = tl.compile(case.schedule, target)
        except Refusal:
            continue
        yield f"case {number}", kernel, testing.Expected(case.computation, case.arrays(), case.exact, case.schedule.error_ulps)


@pytest.mark.parametrize("architecture", PROFILES)
def test_random_kernels_agree(architecture: str) -> None:
    require(architecture)
    items = list(itertools.islice(accepted(architecture), KERNELS[architecture]))
    for first in range(0, len(items), BATCH):
        check(items[first : first + BATCH], architecture)


def test_what_is_wrong_is_seen() -> None:
    """A kernel that gives something else, and one that writes beside its output."""
    i = tl.axes(i=37)
    kernel = tl.compile(tl.define("Y", tl.input("X", tl.float32, i)[i] * 2, i), tl.target("cpu", profile="neon"))
    x = np.arange(37, dtype=np.float32)
    right = testing.Expected(kernel.computation, {"X": x})
    wrong = testing.Expected(kernel.computation, {"X": x + 1})
    check([("right", kernel, right)], ARM)
    (result,) = run([(kernel.program, {"X": x})], ARM)
    assert wrong.faults(result.outputs, ARM) and not right.faults(result.outputs, ARM)
