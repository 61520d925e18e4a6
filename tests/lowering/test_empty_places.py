"""Loads and stages of which no point is read: nothing is moved or made, and no index is asked for."""

from __future__ import annotations

import dataclasses

import pytest

import tilelang as tl
from tests.lowering.test_shares import faults
from tilelang import testing
from tilelang.testing import families


def test_rows_that_no_entry_of_an_empty_table_names() -> None:
    c = families.gather(rows=8, bag=0, width=13, table=5, dtype="float32", kind="max")
    s = tl.schedule(c).tile(b=4, e=5).to("block").tile(b=1).to("thread").accumulate("register").load("table", "register")
    assert not faults(s.split(e=1))


def test_a_stage_over_an_axis_without_points() -> None:
    c = families.two_products(m=4, n=7, k=5, p=0, dtype="int8")
    stage = tl.move().tile(k=2).to("thread")
    s = tl.schedule(c).tile(m=3, n=5).to("block").accumulate("shared").compute("T", "shared", steps=stage)
    assert not faults(s.accumulate("register").split(m=1).vectorize(p=8))


def test_an_instruction_over_an_axis_without_points() -> None:
    """It takes 2 of an axis of 0: its operands are never filled, and the sum is 0."""
    text = """computation drawn {
  input A: float32[n: 3, i: 0]
  input B: float32[i: 1]
  output C[n] = sum[i] A[n, i] * B[i]
}
schedule for drawn {
  tile n=2 -> block
  tile n=1 -> thread
  load A in register
  load B in register
  do opencl_dot2
}"""
    schedule = tl.parse(text, "drawn.tile").schedule()
    cuda = tl.target("cuda", profile="ampere")
    arrays = tl.testing.arrays(schedule.computation)
    assert not tl.testing.check_schedule(schedule, arrays, profile=dataclasses.replace(cuda.profile, dialects=("cuda",)))


def test_a_reduction_without_points_is_its_identity_by_one_block() -> None:
    i, k = tl.axes(i=5, k=0)
    y = tl.define("Y", tl.sum(tl.input("X", tl.float32, i, k)[i, k], over=k), i)
    for sizes in ({"i": 2, "k": 4}, {"k": 4}):
        made = tl.schedule(y).tile(**sizes).to(tl.block)
        assert not faults(made)
        assert [kernel.grid[0] for kernel in testing.lowered(made).kernels] == [3 if "i" in sizes else 1, 1]


@pytest.mark.parametrize(
    ("profile", "dialect", "tiles", "load"),
    [
        ("avx2", "cpu", "tile i=1 -> block", "load X in shared"),
        ("ampere", "cuda", "tile i=2 -> block\n  split i=1", "load X in shared ahead 1"),
    ],
)
def test_a_load_of_a_tensor_without_elements_moves_none(profile: str, dialect: str, tiles: str, load: str) -> None:
    """A stage reads it, though at no point; no step walks the axis without points."""
    text = f"""computation a {{
  input X: float32[i: 2, k: 0]
  C[i, k] = X[i, k]
  output Z[i] = sum[k] C[i, k]
}}
schedule for a {{
  {tiles}
  {load}
  compute C in register
}}"""
    kernel = tl.compile(tl.parse(text).schedule(), tl.target(dialect, profile=profile))
    simulated = tl.simulate(kernel)
    assert simulated.findings == () and simulated.outputs["Z"].tolist() == [0, 0]
    assert "X_shared" not in str(kernel.program.kernels[0].body)


LARGE = [
    "tile m=1 -> block; load X in shared; split j=32; accumulate in register",
    "tile j=1048576 -> block; load X in shared; split m=1 j=32; accumulate in register",
    "tile m=1 -> block; accumulate in register { via shared }; split k=2; load X in register",
]


@pytest.mark.parametrize("steps", LARGE)
@pytest.mark.parametrize(("m", "accepted"), [(0, True), (1, False)])
def test_what_no_block_runs_needs_no_memory(steps: str, m: int, accepted: bool) -> None:
    text = f"""computation Y {{
  input X: float32[m: {m}, k: 4, j: 1048576]
  output Y[m, j] = sum[k] X[m, k, j]
}}
schedule for Y {{ {steps} }}
"""
    made = tl.parse(text).schedule()
    if accepted:
        assert not faults(made)
        assert all(not k.shared and not k.registers for k in testing.lowered(made).kernels)
    else:
        with pytest.raises(tl.Refusal) as refused:
            testing.lowered(made)
        assert refused.value.code in ("memory-over-capacity", "registers-too-many")


@pytest.mark.parametrize("k", [0, 1])
def test_a_sum_over_no_points_keeps_none_of_its_operands(k: int) -> None:
    text = f"""computation Y {{
  input X: float32[m: 4, k: {k}, j: 64]
  output Y[m, j] = sum[k] X[m, k, j]
}}
schedule for Y {{ tile m=1 -> block; load X in shared; split j=8; accumulate in register }}
"""
    made = tl.parse(text).schedule()
    assert not faults(made)
    assert [b.name for kernel in testing.lowered(made).kernels for b in kernel.shared] == ["X_shared"] * k
