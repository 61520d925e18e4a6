"""Random schedules with roles: whatever is accepted is right in the simulator, in any order of the roles."""

from __future__ import annotations

import hypothesis
from hypothesis import given

from tilelang import testing
from tilelang.errors import Refusal
from tilelang.lowering import ir
from tilelang.testing import Case, lowered


def with_roles(case: Case) -> ir.Program:
    """The program of a case; one without roles, or refused, is set aside."""
    hypothesis.assume(any(getattr(step, "on", None) for step in case.schedule.steps))
    try:
        return lowered(case.schedule, testing.roles_profile())
    except Refusal:
        hypothesis.reject()


@given(testing.role_cases())
@hypothesis.settings(suppress_health_check=list(hypothesis.HealthCheck), max_examples=25)
def test_accepted_schedules_with_roles_are_right(case: Case) -> None:
    with_roles(case)
    faults = testing.check_schedule(case.schedule, case.arrays(), profile=testing.roles_profile(), exactly=case.exact)
    assert not faults, "\n".join(faults)


def test_a_schedule_with_roles_is_written_out() -> None:
    """The script that a fault is reported with builds the same schedule."""
    import tilelang as tl
    from tests.lowering.test_roles import by_hand, matmul

    made = by_hand(matmul(16, 32, 8))
    text = testing.schedule_text(made)
    assert 'tl.warps(1).as_role("producer"'.replace('"', "'") in text and "on='producer'" in text
    assert eval(text, {"c": made.computation, "tl": tl, "testing": testing}).steps == made.steps
