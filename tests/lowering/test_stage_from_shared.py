"""A stage in registers whose sums are in shared memory: every thread takes the elements that it holds, those of others, too."""

from __future__ import annotations

import pytest

import tilelang as tl
from tilelang.schedules.schedule import Schedule
from tilelang.testing.case import arrays
from tilelang.testing.checking import check_schedule

POCL = tl.load_profile("sapphire_rapids")


def plan(stage: str, below: str, units: str = "") -> Schedule:
    text = f"""
    computation c {{
      input X: float32[i: 8, j: 4]
      Q[i] = 2.0 * (sum[j] X[i, j])
      output Y[i, j] = X[i, j] + Q[i]
    }}
    schedule for c {{ {units} tile i=4 -> block compute Q in register {{ {stage} }} {below} }}
    """
    return tl.parse(text).schedule()


@pytest.mark.parametrize(
    ("stage", "below"),
    [
        ("accumulate in shared", "tile j=1 -> thread"),
        ("accumulate in shared", "tile i=1 -> thread"),
        ("accumulate in shared; split j=2", "tile i=2 j=2 -> thread"),
        ("accumulate in shared; unfuse j=(a: 2, b: 2); tile a=1 -> thread", "tile j=1 -> thread"),
        ("accumulate in shared; tile j=1 -> thread", "tile i=2 -> thread"),
        ("accumulate in shared; tile i=2 -> thread; vectorize i=2", "tile i=2 -> thread"),
        ("accumulate in shared; split j=2; accumulate in register; tile i=2 -> thread", "tile i=2 -> thread"),
    ],
)
def test_every_thread_has_what_it_reads(stage: str, below: str) -> None:
    made = plan(stage, below)
    assert check_schedule(made, arrays(made.computation, "integers"), profile=POCL, opencl=True, exactly=True) == []


@pytest.mark.parametrize(
    ("stage", "below", "code"),
    [
        ("accumulate in shared; tile i=2 -> thread", "tile j=1 -> thread", "reader-is-not-owner"),
        ("accumulate in shared { tile i=1 -> thread }", "tile i=1 -> thread", "owners-store"),
        ("accumulate in shared; tile i=1 j=1 -> thread", "tile i=2 -> thread", "not-lowered-yet"),
        ("accumulate in register { via shared }", "tile j=1 -> thread", "not-lowered-yet"),
        ("accumulate in register { via shared; tile i=1 -> thread }", "tile i=1 -> thread", "not-lowered-yet"),
    ],
)
def test_what_is_refused(stage: str, below: str, code: str) -> None:
    with pytest.raises(tl.Refusal) as caught:
        plan(stage, below).check(POCL)
    assert caught.value.code == code


@pytest.mark.parametrize(("block", "code"), [("units block = 4 thread", "not-lowered-yet"), ("", None)])
def test_a_stop_on_the_way_to_registers(block: str, code: str | None) -> None:
    """The threads of a block would each have what it stored; one thread has everything."""
    text = f"""
    computation c {{
      input X: float32[i: 8, j: 4]
      P[i, j] = 2.0 * X[i, j]
      output Y[i, j] = P[i, j] + P[i, 0]
    }}
    schedule for c {{ {block} tile i=4 -> block compute P in register {{ via shared }} }}
    """
    made = tl.parse(text).schedule()
    if code is None:
        assert check_schedule(made, arrays(made.computation, "integers"), profile=POCL, opencl=True, exactly=True) == []
        return
    with pytest.raises(tl.Refusal) as caught:
        made.check(POCL)
    assert caught.value.code == code
