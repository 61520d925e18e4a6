"""Random computations and schedules as CUDA and HIP text on this processor; `benchmarks/emulated.py` is the large run."""

from __future__ import annotations

import hypothesis
import pytest
from hypothesis import given

from tests.test_properties import accepted
from tilelang import testing
from tilelang.testing import Case, Expected, emulation, lowered

pytestmark = pytest.mark.skipif(emulation.absent() is not None, reason=str(emulation.absent()))


@pytest.mark.parametrize("dialect", ["cuda", "hip"])
@given(case=testing.cases())
@hypothesis.settings(max_examples=max(5, hypothesis.settings().max_examples // 5))
def test_text_and_reference_agree(dialect: str, case: Case) -> None:
    accepted(case)
    arrays = case.arrays()
    expected = Expected(case.computation, arrays, case.exact, case.schedule.error_ulps)
    found = emulation.run_program(lowered(case.schedule), dialect, arrays, turns=1)
    faults = expected.faults(found, dialect)
    assert not faults, "\n".join(faults)
