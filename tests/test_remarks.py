"""What `explain` says of legal schedules that do something else than their author may expect, and that each of it is true."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import pytest

import tilelang as tl
from tilelang.cli.page import page
from tilelang.schedules.steps import Place

SIMULATED, ZEN5 = tl.target("opencl", profile="simulated"), tl.target("cpu", profile="zen5")


def product(staged: bool = False) -> Any:
    """A product of 96 x 128 x 64 elements. staged: of A's exponentials."""
    m, n, k = tl.axes(m=96, n=128, k=64)
    A, B = tl.input("A", tl.float32, m, k), tl.input("B", tl.float32, k, n)
    left = tl.define("S", tl.exp(A[m, k]), m, k) if staged else A
    return tl.define("C", tl.sum(left[m, k] * B[k, n], over=k), m, n)


def blocks(staged: bool = False) -> Any:
    return tl.schedule(product(staged)).tile(m=16, n=32).to(tl.block)


def notes(kernel: Any) -> list[str]:
    return [line.removeprefix("note: ") for line in kernel.explain().splitlines() if line.startswith("note: ")]


# ---------------------------------------------------------------- ahead


AHEAD: dict[str, tuple[Callable[[], Any], str]] = {
    "no loop": (lambda: blocks().load("A", tl.shared, ahead=1).tile(m=1, n=4).to(tl.thread),
                "this step is not directly inside a loop"),
    "one iteration": (lambda: blocks().split(k=64).load("A", tl.shared, ahead=2).tile(m=1, n=4).to(tl.thread),
                      "the loop of `split k=64` has a single iteration"),
    "a tile between": (lambda: blocks().split(k=8).tile(m=1, n=4).to(tl.thread).load("A", tl.register, ahead=1),
                       "`tile m=1 n=4 -> thread` is between this step and the loop of `split k=8`"),
    "an accumulator between": (
        lambda: blocks().split(m=8).accumulate(tl.register).load("A", tl.shared, ahead=1).tile(m=1, n=4).to(tl.thread),
        "`accumulate in register` is between this step and the loop of `split m=8`"),
    "a stage": (lambda: blocks(True).compute("S", tl.shared, ahead=1).tile(m=1, n=4).to(tl.thread),
                "this step is not directly inside a loop"),
    "in braces": (
        lambda: blocks(True).compute("S", tl.shared, steps=tl.move().load("A", tl.shared, ahead=1).tile(m=1, k=4).to(tl.thread))
        .tile(m=1, n=4).to(tl.thread), "this step is not directly inside a loop"),
}  # fmt: skip


@pytest.mark.parametrize("case", AHEAD)
def test_ahead_without_a_loop_changes_nothing_and_explain_says_so(case: str) -> None:
    """The programs with and without `ahead` are the same, so what the note says is true."""
    make, why = AHEAD[case]
    plan = make()
    kernel = tl.compile(plan, SIMULATED)
    found = [note for note in notes(kernel) if "`ahead`" in note]
    assert len(found) == 1 and found[0].endswith(f"`ahead` has no effect, because {why}"), found
    assert tl.compile(tl.Schedule(plan.computation, at_once(plan.steps)), kernel.target).source == kernel.source


def at_once(steps: Any) -> Any:
    """Steps without `ahead`, those in braces, too."""
    changed = [
        s.replace(ahead=0, steps=None if s.steps is None else at_once(s.steps)) if isinstance(s, Place) else s for s in steps
    ]
    return tuple(changed)


@pytest.mark.parametrize(
    "make",
    [
        lambda: blocks().split(k=8).load("A", tl.shared, ahead=1).load("B", tl.shared, ahead=2).tile(m=1, n=4).to(tl.thread),
        lambda: blocks(True).split(k=8).compute("S", tl.shared, ahead=1).tile(m=1, n=4).to(tl.thread),
        lambda: blocks().split(m=8, k=8).load("B", tl.shared).load("A", tl.shared, ahead=1).tile(m=1, n=4).to(tl.thread),
    ],
    ids=("loads", "a stage", "the inner of two loops"),
)
def test_ahead_in_a_loop_changes_the_program_and_needs_no_note(make: Callable[[], Any]) -> None:
    plan = make()
    kernel = tl.compile(plan, SIMULATED)
    assert not [note for note in notes(kernel) if "`ahead`" in note]
    assert tl.compile(tl.Schedule(plan.computation, at_once(plan.steps)), SIMULATED).source != kernel.source


def test_a_prefetch_without_a_loop_around_it_is_spread_over_the_loops_below() -> None:
    plan = blocks().load("A", tl.l1, ahead=2).vectorize(n=4)
    kernel = tl.compile(plan, ZEN5)
    assert not [note for note in notes(kernel) if "`ahead`" in note]
    assert tl.compile(tl.Schedule(plan.computation, at_once(plan.steps)), ZEN5).source != kernel.source


# ---------------------------------------------------------------- accumulators


def test_sums_apart_are_told_with_what_is_read_again() -> None:
    """Without `accumulate`, each of the 4 x 2 pieces of a tile walks all of k by itself."""
    plan = blocks().split(m=4, n=32).vectorize(n=16)
    (note,) = notes(tl.compile(plan, ZEN5))
    assert note == (
        "without `accumulate`, the whole loop over k runs 8 times in each piece, once for every m:1 n:16; it reads the same elements "
        "again: B in each iteration over m and A in each iteration over n"
    )
    assert note in plan.explain()  # it follows from the steps alone
    assert f"<li>{note}.</li>" in page(tl.compile(plan, ZEN5)).replace("&gt;", ">")
    held = blocks().split(m=4, n=32).accumulate(tl.register).vectorize(n=16)
    assert not notes(tl.compile(held, ZEN5))


def test_sums_that_share_nothing_are_no_surprise() -> None:
    """Each row is summed up by itself, which reads nothing twice."""
    i, j = tl.axes(i=64, j=256)
    rows = tl.schedule(tl.define("Y", tl.sum(tl.input("X", tl.float32, i, j)[i, j], over=j), i)).tile(i=8).to(tl.block)
    assert not notes(tl.compile(rows.vectorize(j=16), ZEN5))
    assert not notes(tl.compile(tl.schedule(product()), ZEN5))  # nothing cuts anything


def test_what_is_held_in_registers_is_not_read_again() -> None:
    plan = blocks().tile(m=4, n=2).to(tl.thread)
    (note,) = notes(tl.compile(plan.load("B", tl.register), SIMULATED))
    assert note.endswith("it reads the same elements again: A in each iteration over n")


IMPLIED = " is implied above the first cut of a reduction and"


@pytest.mark.parametrize(
    ("plan", "elements", "where"),
    [
        (blocks().split(k=16).split(m=4, n=32).split(k=1).vectorize(n=16), 512, IMPLIED),
        (blocks().accumulate(tl.register).split(m=4, n=32).split(k=1).vectorize(n=16), 512, ""),
        (blocks().split(k=16).split(m=4, n=32).vectorize(k=4), 2048, IMPLIED),
        (blocks().split(k=16).accumulate(tl.register).split(m=4, n=32).split(k=1).vectorize(n=16), 512, ""),
    ],
    ids=("implied", "written", "lanes of a reduction", "in a loop"),
)  # fmt: skip
def test_accumulators_that_are_more_than_registers_are_told_with_both_sizes(plan: Any, elements: int, where: str) -> None:
    small = tl.target("cpu", profile=dataclasses.replace(tl.load_profile("zen5"), registers_per_thread=128))
    kernel = tl.compile(plan, small)
    assert notes(kernel) == [
        f"`accumulate in register`{where} gives each thread {elements:,} accumulators ({4 * elements:,} bytes), more than the 512 "
        "bytes of registers of a thread of `zen5`"
    ]
    states = [b.elements for b in kernel.program.kernels[0].registers if b.name.startswith("C_state")]
    assert max(states) == elements  # the program holds what the note says
