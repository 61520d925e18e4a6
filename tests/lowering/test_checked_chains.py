"""Steps in braces are checked as those of the schedule are, and names of axes mean what they mean where they were written.

Each program was found by a generator that knew only the documentation: it ended in a traceback, or gave another number.
"""

from __future__ import annotations

import numpy as np
import pytest

import tilelang as tl
from tilelang.errors import Refusal
from tilelang.semantics import reference

PROFILES = ("avx2", "sapphire_rapids", "ampere", "cdna3")


def check_simulated(text: str, profile: str) -> None:
    """Compiles and simulates a text, which must be right, with no faults found."""
    schedule = tl.parse(text).schedule()
    arrays = reference.random_arrays(schedule.computation, 1)
    report = tl.simulate(tl.compile(schedule, tl.target(profile=profile)), **arrays)
    assert not report.counts, report
    assert (found := reference.compare(schedule.computation, arrays, report.outputs)), found


SUMS = "computation f { input A: float32[i: 4, j: 4] Q[i] = sum[j] A[i, j] "
RIGHT = {
    "a_reader_with_the_name_of_the_reduction": SUMS + "output S[j] = Q[j] + 1.0 } schedule for f { }",
    "the_same_in_tiles": SUMS + "output S[j] = Q[j] + 1.0 } schedule for f { tile j=3 -> block }",
    "a_stage_with_that_name": SUMS
    + "S[j] = Q[j] + 1.0 output T[i, j] = S[j] * 2.0 } schedule for f { tile i=2 -> block; compute S in shared }",
    "the_same_in_memory": SUMS + "S[j] = Q[j] + 1.0 output T[i, j] = S[j] * 2.0 } schedule for f { compute S in global }",
    "two_reductions_over_each_others_axes": SUMS
    + "R[j] = max[i] A[i, j] output S[i] = R[i] + Q[i] } schedule for f { tile i=2 -> block }",
    "a_product_that_is_read_across": "computation f { input A: float32[i: 4, k: 4] axis j: 4 C[i, j] = sum[k] A[i, k] * A[k, j]"
    " output S[k, j] = C[k, j] + 1.0 } schedule for f { tile k=2 -> block }",
    "fused_below_registers": "computation f { input A: float32[j: 4, i: 5, s: 2] output S[j, i] = sum[s] A[j, i, s] }"
    " schedule for f { accumulate in register; fuse ji=(j, i); tile ji=3 -> thread }",
    "taken_apart_below_registers": "computation f { input A: float32[j: 6, i: 5, s: 7] output S[j, i] = sum[s] A[j, i, s] }"
    " schedule for f { tile i=2 -> block; accumulate in register; unfuse j=(a: 2, b: 3); split s=2; tile a=1 b=1 -> thread }",
    "a_reduction_taken_apart": "computation f { input A: float32[j: 6, s: 6] output S[j] = sum[s] A[j, s] }"
    " schedule for f { accumulate in register; unfuse s=(a: 2, b: 3); split a=1 }",
    "a_padded_copy": "computation f { input A: float32[i: 15] output Q[i] = A[i] * 2.0 } schedule for f { load A in global pad 1 }",
    "two_copies_of_one_input": "computation f { input B: float32[j: 3, k: 4] output P[j, k] = B[j, k] * 2.0 }"
    " schedule for f { load B in global layout (k, j); load B in global { tile j=1 -> thread } }",
}


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize("name", RIGHT)
def test_right_on_every_profile(name: str, profile: str) -> None:
    check_simulated(RIGHT[name], profile)


REFUSED = {
    "unknown-axis": "input A: float32[j: 3] axis k: 3 output Q[j] = sum[k] A[j] | load A in global { tile k=1 -> thread }",
    "nothing-to-accumulate": "input A: float32[i: 4, j: 4] P[i, j] = A[i, j] * 2.0 output Q[i] = sum[j] P[i, j]"
    " | compute P in global { accumulate in shared }",
    "tile-covered-twice": "input B: float32[j: 3, i: 4] axis k: 8 P[j, k] = B[j, k % 4] * 2.0 output Q[j, k] = P[j, k] + 1.0"
    " | compute P in global { tile k=7 j=4 -> block order (j, k, k % 2) }",
    "memory-above-block": "input A: float32[j: 2] output Q[j] = A[j] * 2.0 | via shared; tile j=1 -> block",
    "reads-scattered": "input A: float32[j: 5] input ids: int32[k: 3] in 0 .. 5 P[j] = A[j] * 2.0 output Q[k] = P[ids[k]]"
    " | tile k=1 -> block; compute P in shared",
    "not-lowered-yet": "input A: float32[j: 6, i: 5, s: 7] output S[j, i] = sum[s] A[j, i, s]"
    " | tile i=2 -> block; accumulate in register { tile j=1 -> thread }; unfuse j=(a: 2, b: 3); tile a=1 b=1 -> thread",
    "step-after-leaf": "input A: float32[i: 8, j: 8] output Q[i, j] = A[i, j] * 2.0"
    " | tile i=4 -> block; load A in shared { vectorize j=4; tile i=1 -> thread }",
}


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize("code", REFUSED)
def test_refused_with_the_step(code: str, profile: str) -> None:
    computation, steps = REFUSED[code].split(" | ")
    with pytest.raises(Refusal) as caught:
        tl.compile(
            tl.parse(f"computation f {{ {computation} }}\nschedule for f {{ {steps} }}").schedule(), tl.target(profile=profile)
        )
    assert caught.value.code == code and caught.value.span is not None and caught.value.help


def test_a_computation_that_is_given_no_schedule() -> None:
    kernel = tl.compile(tl.parse(RIGHT["a_reader_with_the_name_of_the_reduction"]).computation())
    a = np.arange(16, dtype=np.float32).reshape(4, 4)
    np.testing.assert_array_equal(kernel(a), a.sum(1) + 1)
