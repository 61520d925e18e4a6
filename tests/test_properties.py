"""Whatever is accepted is right: random computations, schedules, shapes and data on the device, in the simulator, by the reference.

HYPOTHESIS_PROFILE chooses how many; `benchmarks/fuzz.py` is the large run, with a table of what was exercised.
"""

from __future__ import annotations

import hypothesis
from hypothesis import given

from tilelang import testing
from tilelang.errors import Refusal
from tilelang.testing import Case, lowered


def accepted(case: Case) -> None:
    """Sets aside schedules that are refused, which they may be; anything but a Refusal is a fault."""
    try:
        lowered(case.schedule)
    except Refusal:
        hypothesis.assume(False)


@given(testing.cases())
def test_the_simulator_finds_nothing_and_agrees_with_the_reference(case: Case) -> None:
    accepted(case)
    faults = testing.check_case(case)
    assert not faults, "\n".join(faults)


@given(testing.cases())
def test_two_lowerings_are_one_text(case: Case) -> None:
    accepted(case)
    assert not testing.check_determinism(case.schedule)


@given(testing.cases())
@hypothesis.settings(max_examples=max(10, hypothesis.settings().max_examples // 5))
def test_device_and_reference_agree(case: Case) -> None:
    accepted(case)
    faults = testing.check_case(case, opencl=True)
    assert not faults, "\n".join(faults)


@given(testing.cases())
@hypothesis.settings(max_examples=max(5, hypothesis.settings().max_examples // 10))
def test_every_prefix_runs(case: Case) -> None:
    accepted(case)
    faults = testing.check_prefixes(case.schedule, case.arrays())
    assert not faults, "\n".join(faults)
