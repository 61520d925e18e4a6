"""Threads in loops: whole schedules give the same values before and after."""

from __future__ import annotations

from typing import Any

import hypothesis
import pytest
from hypothesis import given

from tests.lowering.gemm_kernels import matrices, tiled_product
from tests.lowering.test_fission import IN_LOOPS, arrays_of, found, same, split
from tests.test_examples import NAMES, SIZES, schedules_for
from tilelang import testing
from tilelang.errors import Refusal
from tilelang.lowering import ir
from tilelang.testing import Case, lowered
from tilelang.testing.checking import stored
from tilelang.testing.planner import tiny_profile


def test_a_tiled_product() -> None:
    kernel = split(tiled_product(16, 4), matrices(16))
    assert arrays_of(kernel) == {"acc_by_thread": (16, 1)}


@pytest.mark.parametrize("name", NAMES)
def test_examples(name: str) -> None:
    profile = tiny_profile()
    for sizes in SIZES[name]:
        for schedule in schedules_for(name, sizes, profile).values():
            try:
                before = lowered(schedule, profile)
            except Refusal:  # for warps of another width
                continue
            check(before, lowered(schedule, profile, IN_LOOPS), testing.arrays(schedule.computation))


def check(before: ir.Program, after: ir.Program, given: dict[str, Any]) -> None:
    inputs = {b.name: stored(given[b.name], b) for b in before.buffers if b.role == "input"}
    assert all(k.threads == 1 for k in after.kernels)
    assert same(found(before, inputs), found(after, inputs))


@given(testing.cases())
def test_random_schedules(case: Case) -> None:
    try:
        before = lowered(case.schedule)
    except Refusal:
        hypothesis.reject()
    hypothesis.assume(any(k.threads > 1 for k in before.kernels))
    check(before, lowered(case.schedule, None, IN_LOOPS), case.arrays())
