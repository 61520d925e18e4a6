"""Constructed schedules as CUDA and HIP text on this processor: rings of boxes, split reductions, rows in registers."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

import tilelang as tl
from benchmarks.gpu_cases import example
from tilelang.autoschedule.common.construct import construct
from tilelang.computations.computation import as_computation
from tilelang.testing import emulation

pytestmark = pytest.mark.skipif(emulation.absent() is not None, reason=str(emulation.absent()))

Case = tuple[str, str, Callable[[], tl.Tensor], str]

# By name: dialect, device, what is computed, and what its schedule has.
CASES: dict[str, Case] = {
    "roles": ("cuda", "hopper", lambda: example("15_matrix_units").transposed(200, 136, 96), "-> consumer"),
    "roles, split": ("cuda", "hopper", lambda: example("15_matrix_units").transposed(64, 128, 1024), r" k=\d+ -> block"),
    "roles, layer": ("cuda", "hopper", lambda: example("01_matmul").linear(128, 72, 64), "-> consumer"),
    "warps, split": ("cuda", "ampere", lambda: example("01_matmul").matmul(72, 64, 1024, tl.float16), r" k=\d+ -> block"),
    "tf32": ("cuda", "ampere", lambda: example("16_matrix_types").matmul(72, 80, 40), "do mma_m16n8k8_tf32"),
    "waves": ("hip", "cdna3", lambda: example("01_matmul").matmul(72, 80, 96, tl.float16), "via shared"),
    "softmax": ("cuda", "volta", lambda: example("08_softmax").softmax(9, 132), "compute peak in register"),
    "softmax, short": ("cuda", "volta", lambda: example("08_softmax").softmax(70, 12), "compute peak in register"),
    "layer norm": ("hip", "cdna3", lambda: example("09_layer_norm").layer_norm(6, 260), "compute count in register"),
}


@pytest.mark.parametrize("name", CASES)
def test_the_text_of_a_constructed_schedule_is_right(name: str) -> None:
    dialect, device, make, has = CASES[name]
    target = tl.target(dialect, profile=device)
    candidates = construct(as_computation(make()), target.profile)
    schedule = next(c.schedule for c in candidates if re.search(has, str(c.schedule)))
    report = emulation.check(tl.compile(schedule, target))
    assert report, f"{schedule}\n{report}"
