"""What is left of the axes after each step is read in one way, and a step is read once, when it is written."""

from collections.abc import Iterator
from typing import Any

import hypothesis
import pytest
from hypothesis import given

import tilelang as tl
from tests.errors._computations import copy, matmul, softmax
from tests.test_layers import imports, modules
from tilelang import testing
from tilelang.lowering.build.frame import Build, Frame
from tilelang.schedules import check, checked_steps
from tilelang.schedules.steps import Step
from tilelang.schedules.walk import walk_steps
from tilelang.testing import Case


@pytest.fixture
def advanced(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Step]]:
    """The steps that `advance` was asked about."""
    found: list[Step] = []
    advance = check.advance

    def counted(spec: Any, step: Step, *rest: Any) -> Any:
        found.append(step)
        return advance(spec, step, *rest)

    for module in (check, checked_steps):
        monkeypatch.setattr(module, "advance", counted)
    yield found


# ---------------------------------------------------------------- one reading


@given(testing.cases())
def test_extents_are_those_of_the_specs(case: Case) -> None:
    specs = case.schedule.specs
    for w, before, after in zip(walk_steps(specs[0].extents, case.schedule.steps), specs[:-1], specs[1:], strict=True):
        for found, spec in ((w.before, before), (w.after, after)):
            assert (found.sizes, found.reduced) == (spec.extents.sizes, spec.extents.reduced)


@given(testing.cases())
def test_the_lowering_leaves_what_the_walk_says(case: Case) -> None:
    """Of the kernels and of what stands in braces: the spec that was lowered before each step."""
    try:
        program = testing.lowered(case.schedule)
    except tl.Refusal:
        hypothesis.assume(False)
    for chain in program.chains:
        first = min(chain.specs)
        for w in walk_steps(chain.specs[first].extents, chain.steps[first:], first):
            if w.number in chain.specs:
                assert dict(w.before.sizes) == dict(chain.specs[w.number].extents.sizes), (str(w.step), chain.steps)


def test_rounds_are_counted_up_and_there_is_at_least_one() -> None:
    made = tl.schedule(matmul(10, 0, 7)).tile(m=4, n=8).to(tl.block).split(k=8).split(m=1)
    assert [w.rounds for w in walk_steps(made.specs[0].extents, made.steps)] == [{"m": 3, "n": 1}, {"k": 1}, {"m": 4}]
    assert [w.loops for w in walk_steps(made.specs[0].extents, made.steps)] == [{"m": 3}, {}, {"m": 4}]


def test_axes_that_steps_make_of_a_reduction_are_reduced() -> None:
    made = tl.schedule(matmul(4, 6, 8)).fuse(mn=("m", "n")).unfuse(k={"a": 2, "b": 4}).split(b=2)
    left = made.specs[0].extents.after(made.steps)
    assert left.sizes == {"mn": 24, "a": 2, "b": 2}
    assert left.reduced == {"a", "b"}


def test_the_second_interpretation_and_the_simulator_read_steps_by_themselves() -> None:
    ours = {name: {imported for _, imported, _ in imports(path)} for path, name in modules()}
    readers = {"testing.naive"} | {name for name in ours if name.startswith("lowering.simulator")}
    while more := {o for r in readers if r.startswith("testing.") for o in ours[r] if o.startswith("testing.")} - readers:
        readers |= more
    assert {"testing.specs", "testing.points"} <= readers
    shared = {"schedules.walk", "schedules.spec", "schedules.check", "schedules.checked_steps", "lowering.build"}
    assert not {(r, other) for r in readers for other in ours[r] if other in shared or other.startswith("lowering.build.")}
    assert "schedules.walk" in ours["schedules.spec"]


# ---------------------------------------------------------------- each step once


def test_a_call_of_the_builder_checks_the_step_that_it_adds(advanced: list[Step]) -> None:
    made = tl.schedule(copy(64, 64)).tile(i=32).to(tl.block)
    advanced.clear()
    for _ in range(100):
        made = made.load("X", tl.register)
    assert len(advanced) == 100
    assert made.specs == tl.Schedule(made.computation, made.steps).specs


@given(testing.cases())
def test_written_one_by_one_or_together_steps_leave_the_same(case: Case) -> None:
    built = tl.Schedule(case.schedule.computation)
    for step in case.schedule.steps:
        built = built._then(step)
    assert built.specs == case.schedule.specs
    assert built.steps == case.schedule.steps


def test_a_stage_that_changes_the_task_has_the_steps_above_it_checked_again(advanced: list[Step]) -> None:
    """Until a `compute` places it, the maximum is made by a kernel of its own."""
    made = tl.schedule(softmax(8, 16)).tile(i=1).to(tl.block)
    advanced.clear()
    staged = made.compute("peak", tl.shared)
    assert [str(s) for s in advanced] == ["tile i=1 -> block", "compute peak in shared"]
    again = staged.compute("peak", tl.register)
    assert len(advanced) == 3
    assert again.specs == tl.Schedule(again.computation, again.steps).specs


def test_earlier_schedules_do_not_change_with_later_ones() -> None:
    base = tl.schedule(matmul(64, 64, 64)).tile(m=32, n=32).to(tl.block)
    one, other = base.split(k=8), base.split(k=16)
    assert [s.specs[-1].axis("k").extent for s in (base, one, other)] == [64, 8, 16]
    assert len(base.specs) == 2


def test_explain_of_a_kernel_takes_what_the_lowering_recorded(monkeypatch: pytest.MonkeyPatch) -> None:
    reached: list[int] = []
    reach = Build.reach

    def counted(self: Build, frame: Frame, i: int) -> None:
        reached.append(i)
        reach(self, frame, i)

    monkeypatch.setattr(Build, "reach", counted)
    made = tl.schedule(copy(64, 64)).tile(i=4, j=32).to(tl.block).load("X", tl.shared, steps=tl.move().split(j=8))
    kernel = tl.compile(made, tl.target("opencl", profile="simulated"))
    assert reached
    reached.clear()
    assert "  split j=8 " in kernel.explain()
    assert [str(r.spec) for r in kernel.refinements[2].inside][:2] == ["X  i:4 j:32  on block", "X  i:4 j:8  on block"]
    assert reached == []


def test_one_axis_is_cut_so_often_and_no_more_one_call_after_another() -> None:
    made = tl.schedule(copy(64, 64))
    for _ in range(checked_steps.MOST_CUTS):
        made = made.split(i=1)
    with pytest.raises(tl.Refusal, match="division 33 of `i`"):
        made.split(i=1)
    assert made.split(j=1).specs[-1].axis("j").extent == 1
