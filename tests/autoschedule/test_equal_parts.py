"""Kernels that differ in names alone are scheduled once, and their renamed steps are right."""

from collections.abc import Iterator

import pytest

import tilelang as tl
from benchmarks import graphs_random
from tilelang.autoschedule.common.complete import in_order
from tilelang.autoschedule.common.equal_parts import Signature, renamed
from tilelang.autoschedule.common.kernel_part import Part
from tilelang.autoschedule.common.partition import Partition, choices, of_task, steps_of
from tilelang.autoschedule.models import model_of
from tilelang.computations.computation import Computation, as_computation
from tilelang.schedules.schedule import Schedule

XEON, AMPERE = tl.load_profile("sapphire_rapids"), tl.load_profile("ampere")


def softmaxes(layers: int, rows: int, columns: int) -> Computation:
    i, j = tl.axes(i=rows, j=columns)
    x = tl.input("X", tl.float32, i, j)
    for n in range(layers):
        x = tl.define(f"Y{n}", tl.softmax(x[i, j] * 2.0, over=j), i, j)
    return as_computation(x)


def layered(layers: int, size: int) -> Computation:
    """Products and activations by turns; every layer has axes of its own."""
    i, j = tl.axes(i=size, j=size)
    x = tl.input("X", tl.float32, i, j)
    for n in range(layers):
        c, o = tl.axes(**{f"c{n}": size, f"o{n}": size})
        W, b = tl.input(f"W{n}", tl.float32, c, o), tl.input(f"b{n}", tl.float32, o)
        x = tl.define(f"Y{n}", tl.relu(tl.sum(x[i, c] * W[c, o], over=c) + b[o]), i, o)
    return as_computation(x)


def constructions(monkeypatch: pytest.MonkeyPatch, computation: Computation, profile: tl.Profile) -> int:
    """How many kernels are constructed for a computation."""
    found = []

    def counted(*given: object) -> Iterator[object]:
        found.append(given)
        return of_task(*given)  # type: ignore[arg-type]

    monkeypatch.setattr("tilelang.autoschedule.common.partition.of_task", counted)
    next(in_order(computation, profile))
    return len(found)


@pytest.mark.parametrize("profile", [XEON, AMPERE], ids=lambda p: p.name)
def test_more_equal_layers_are_no_more_constructions(monkeypatch: pytest.MonkeyPatch, profile: tl.Profile) -> None:
    few = constructions(monkeypatch, softmaxes(6, 64, 96), profile)
    assert constructions(monkeypatch, softmaxes(20, 64, 96), profile) <= few
    few = constructions(monkeypatch, layered(10, 32), profile)
    assert constructions(monkeypatch, layered(20, 32), profile) <= few


@pytest.mark.parametrize("profile", [XEON, AMPERE], ids=lambda p: p.name)
@pytest.mark.parametrize(
    "computation", [softmaxes(3, 5, 24), softmaxes(12, 3, 16), layered(4, 24)], ids=["few", "many", "products"]
)
def test_renamed_kernels_are_right(computation: Computation, profile: tl.Profile) -> None:
    """With everything in memory, where most kernels are renamed, and as the planner cuts."""
    partition = Partition(computation, profile, model_of(profile))
    every = partition.parts(partition.always | frozenset(choices(computation)))
    kernels = [k for part in every if (k := partition.scheduled(part)) is not None]
    assert len(kernels) == len(every) > len({Signature(part).key for part in every})
    for schedule in (Schedule(computation, steps_of(kernels)), next(in_order(computation, profile)).schedule):
        assert graphs_random.faults(schedule, profile) == []


def test_a_renamed_schedule_is_the_constructed_one() -> None:
    """Of a kernel with names of its own, those of the axes that it fuses included."""
    made = []
    for x, p, q in (("X", "i", "j"), ("Z", "a", "b")):
        axes = tl.axes(**{p: 640, q: 1000})
        read = tl.input(x, tl.float32, *axes)
        made.append(Part.whole(as_computation(tl.define(f"{x}2", tl.exp(read[axes]) + 1, *axes))))
    first, other = map(Signature, made)
    assert first.key == other.key
    ours, theirs = (next(of_task(part.task(), model_of(XEON))).steps for part in made)
    assert any(isinstance(step, tl.schedules.steps.Fuse) for step in ours)
    assert renamed(ours, first, other) == theirs


@pytest.mark.parametrize("change", ["extent", "type", "formula", "reads", "coincidence"])
def test_what_differs_in_more_than_names_is_scheduled_apart(change: str) -> None:
    def part(changed: str) -> Part:
        i, j = tl.axes(i=8 if changed == "extent" else 4, j=4)
        X = tl.input("X", tl.float64 if changed == "type" else tl.float32, i, j)
        Z = tl.input("Z", X.dtype, *tl.axes(i=i.extent, **{"k" if changed == "coincidence" else "j": 4}))
        read = X if changed == "reads" else Z
        return Part.whole(as_computation(tl.define("Y", X[i, j] * (3.0 if changed == "formula" else 2.0) + read[i, j], i, j)))

    assert Signature(part(change)).key != Signature(part("")).key
    assert Signature(part("")).key == Signature(part("")).key


def test_an_output_that_another_one_needs_whole_leaves_the_others_to_the_language() -> None:
    """The last kernel makes it once more; its steps are none of an earlier kernel."""
    computation = graphs_random.drawn(10)
    assert computation is not None
    assert graphs_random.faults(next(in_order(computation, AMPERE)).schedule, AMPERE) in ([], None)
