"""Stages that read each other under `pad`, `where` and clamps: every element that some reader needs is made."""

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tilelang as tl
from tests.lowering.stage_chains import chain, schedule
from tilelang.lowering.build.frame import Frame
from tilelang.lowering.build.movement import access_regions
from tilelang.lowering.build.program import build_program
from tilelang.schedules.steps import Place
from tilelang.schedules.task import Task
from tilelang.semantics import reference

CUDA = tl.target("cuda", profile="ampere")


def check_simulated(what: Any, target: tl.Target, seed: int = 0) -> tl.Kernel:
    """Simulates a kernel on small integers: nothing is found, and the results are the reference's."""
    kernel = tl.compile(what, target)
    rng = np.random.default_rng(seed)
    arrays: dict[str, Any] = {}
    for t in kernel.computation.inputs:
        arrays[t.name] = rng.integers(*(t.range or (-3, 4)), t.shape).astype(t.dtype.numpy)
    report = tl.simulate(kernel, **arrays)
    assert not report.findings, f"{report}\n{kernel.computation.text}\n{kernel.schedule}"
    found = reference.compare(kernel.computation, arrays, report.outputs)
    assert found, f"{found}\n{kernel.computation.text}\n{kernel.schedule}"
    return kernel


def stencil(points: int, steps: int, own_axes: bool = False) -> tl.Tensor:
    u = tl.input("X", tl.float32, p=points)
    for k in range(steps):
        i = tl.axes(**{f"i{k}" if own_axes else "i": points})
        u = tl.define(f"u{k}", u[i] + tl.pad(u[i + 1], 0) + tl.pad(u[i - 1], 0), i)
    return u


@pytest.mark.parametrize("own_axes", [False, True])
@pytest.mark.parametrize("points, tile", [(8, 4), (7, 4), (16, 4), (9, 16), (5, 1)])
def test_three_stencils_keep_their_edges(points: int, tile: int, own_axes: bool) -> None:
    last = stencil(points, 3, own_axes)
    axis = last.dims[0].name
    made = tl.schedule(last).tile(**{axis: tile}).to(tl.block).compute("u0", tl.shared).compute("u1", tl.shared)
    kernel = check_simulated(made.tile(**{axis: 1}).to(tl.thread), CUDA)
    assert np.array_equal(tl.compile(kernel.schedule, tl.target("cpu"))(np.ones(points, np.float32)),
                          kernel.computation.evaluate(X=np.ones(points, np.float32)))  # fmt: skip


def test_a_walk_finds_nothing_of_the_round_before() -> None:
    last = stencil(16, 3)
    made = tl.schedule(last).tile(i=8).to(tl.block).split(i=4).compute("u0", tl.shared).compute("u1", tl.shared)
    check_simulated(made.tile(i=1).to(tl.thread), CUDA)


@pytest.mark.parametrize("fill", [0, 2])
@pytest.mark.parametrize("memory", [tl.shared, tl.register])
def test_a_stage_reads_a_repacked_input_under_pad(fill: int, memory: tl.Memory) -> None:
    i, j = tl.axes(i=11, j=5)
    X = tl.input("X", tl.float32, p=10)
    Y = tl.define("Y", tl.pad(X[i + 2], fill) * 3 + 1, i)
    Z = tl.define("Z", Y[i] + tl.cast(j, tl.float32), i, j)
    check_simulated(tl.schedule(Z).load("X", tl.global_).tile(j=1, i=16).to(tl.block).compute("Y", memory), CUDA)


@pytest.mark.parametrize("tile, split", [(8, 8), (3, 4), (8, 3)])
def test_a_stage_is_read_at_clamped_places(tile: int, split: int) -> None:
    i = tl.axes(i=17)
    X = tl.input("X", tl.float32, i)
    u0 = tl.define("u0", X[i] + X[tl.minimum(i + 1, 16)], i)
    u1 = tl.define("u1", u0[i] + u0[tl.maximum(tl.minimum(i + 2, 16), 1)], i)
    u2 = tl.define("u2", u1[16 - i] + u1[tl.maximum(i - 1, 0)], i)
    made = tl.schedule(u1).tile(i=tile).to(tl.block).split(i=split).compute("u0", tl.shared)
    check_simulated(made.tile(i=1).to(tl.thread), CUDA)
    check_simulated(u2, CUDA)


def test_a_stage_that_is_gathered_from_is_refused() -> None:
    i = tl.axes(i=8)
    X, numbers = tl.input("X", tl.float32, n=8), tl.input("I", tl.int32, i, range=(0, 8))
    T = tl.define("T", X[i] * 2, i)
    Y = tl.define("Y", T[numbers[i]] + 1, i)
    with pytest.raises(tl.Refusal) as refused:
        tl.compile(tl.schedule(Y).tile(i=4).to(tl.block).compute("T", tl.shared), CUDA)
    assert refused.value.code == "reads-scattered"
    check_simulated(tl.schedule(Y).compute("T", tl.global_).tile(i=4).to(tl.block), CUDA)


def test_a_read_that_is_made_with_and_without_padding() -> None:
    i = tl.axes(i=5)
    X = tl.input("X", tl.float32, i)
    T = tl.define("T", X[4 - i], i)
    inside = (i >= 2) & (i < 7)
    check_simulated(tl.define("Y", tl.pad(T[i - 2], -1) + tl.where(inside, T[i - 2], 3.0), i), CUDA)


def outputs_that_are_read() -> tl.Computation:
    """E = exp(X) and S = E / sum(E), both outputs: the stage that sums the rows reads E, which the same kernel stores."""
    i, j = tl.axes(i=8, j=16)
    X = tl.input("X", tl.float32, i, j)
    E = tl.define("E", tl.exp(X[i, j]), i, j)
    T = tl.define("T", tl.sum(E[i, j], over=j), i)
    return tl.computation("both", (E, tl.define("S", E[i, j] / T[i], i, j)))


READERS: dict[str, Callable[[tl.Computation], Any]] = {
    "constructed": lambda c: c,
    "plain": tl.schedule,
    "shared": lambda c: tl.schedule(c).tile(i=1).to(tl.block).compute("T", tl.shared),
    "threads": lambda c: tl.schedule(c).tile(i=4).to(tl.block).compute("T", tl.shared).tile(i=1).to(tl.thread),
    "kept": lambda c: tl.schedule(c).tile(i=1).to(tl.block).compute("E", tl.shared).compute("T", tl.shared),
}


@pytest.mark.parametrize("profile", ["ampere", "hopper", None])
@pytest.mark.parametrize("reader", READERS)
def test_a_stage_reads_an_output_of_its_own_kernel(reader: str, profile: str | None) -> None:
    target = tl.target("cuda", profile=profile) if profile else tl.target("cpu")
    kernel = tl.compile(READERS[reader](outputs_that_are_read()), target)
    x = np.random.default_rng(0).standard_normal((8, 16)).astype(np.float32)
    report = tl.simulate(kernel, X=x)
    assert not report.findings and reference.compare(kernel.computation, {"X": x}, report.outputs)


def test_an_output_is_not_read_from_where_it_will_be_stored() -> None:
    i, j, s = tl.axes(i=2, j=4, s=3)
    X = tl.input("X", tl.float32, x=4, y=4)
    window = tl.define("window", tl.sum(X[i + s, j], over=s), i, j)
    E = tl.define("E", window[i, j] + X[i, j], j, i)
    F = tl.define("F", E[j, i] * 2, j, i)
    made = tl.schedule(tl.computation("c", (F, E))).tile(j=3).to(tl.block).accumulate(tl.register).split(j=1)
    with pytest.raises(tl.Refusal) as refused:
        tl.compile(made.compute("E", tl.register), CUDA)
    assert refused.value.code == "stage-in-walk"
    check_simulated(tl.computation("c", (F, E)), CUDA)


@pytest.mark.parametrize("memory", ["register", "shared"])
def test_what_finished_results_read_stands_above_their_state(memory: str) -> None:
    q, k = tl.axes(q=32, k=8)
    B = tl.input("B", tl.float32, q, k)
    G = tl.define("G", tl.sum(B[q, k], over=k), q)
    D = tl.define("D", G[q] + 1, q)
    both = tl.computation("c", (G, tl.define("Z", D[q] * D[q], q)))
    made = tl.schedule(both).tile(q=8).to(tl.block).compute("G", tl.shared)
    with pytest.raises(tl.Refusal) as refused:
        made.accumulate(memory).compute("D", tl.register).check("simulated")
    assert refused.value.code == "stage-in-walk"
    assert not tl.simulate(tl.compile(made.compute("D", tl.register).accumulate(memory), CUDA)).findings


def test_an_output_that_a_stage_needs_whole_is_made_once() -> None:
    i, j = tl.axes(i=16, j=2)
    X = tl.input("X", tl.float32, i, j)
    d0 = tl.define("d0", tl.sum(X[i, j], over=j), i)
    d1 = tl.define("d1", tl.pad(d0[i - 2], 0) * 2, i)
    d2 = tl.define("d2", tl.sum(X[i, j] + d1[i], over=j), i)
    c = tl.computation("c", (d2, d0))
    kernel = check_simulated(tl.schedule(c).tile(i=1).to(tl.block).compute("d1", tl.shared), CUDA)
    assert [k.name for k in kernel.program.kernels] == ["d0", "d2_1"]


def test_a_reduction_reads_an_output_from_the_stage_that_makes_it() -> None:
    i, j = tl.axes(i=16, j=3)
    X = tl.input("X", tl.float32, i, j)
    d0 = tl.define("d0", tl.sum(X[i, j], over=j), i)
    d1 = tl.define("d1", d0[i] + X[i, j], i, j)
    d2 = tl.define("d2", tl.sum(tl.where(i > 0, d1[tl.maximum(i - 1, 0), j], d0[i]) + d0[i], over=j), i)
    made = tl.schedule(tl.computation("c", (d2, d0))).tile(i=1).to(tl.block).compute("d0", tl.shared).compute("d1", tl.shared)
    check_simulated(made, CUDA)


@given(st.integers(0, 2**32))
def test_random_chains_are_right_or_refused(seed: int) -> None:
    rng = random.Random(seed)
    computation = chain(rng)
    target = CUDA if rng.random() < 0.5 else tl.target("cpu")
    try:
        what = computation if rng.random() < 0.25 else schedule(rng, computation)
        tl.compile(what, target)
    except tl.Refusal:
        return
    check_simulated(what, target, seed)


def test_the_reads_of_each_stage_are_found_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lowering a chain of stages takes time in proportion to their number."""
    asked: list[str] = []
    found = access_regions._stage_uses

    def counted(task: Task, stage: Place, below: list[access_regions.Use], frame: Frame) -> list[access_regions.Use]:
        asked.append(task.name)
        return found(task, stage, below, frame)

    monkeypatch.setattr(access_regions, "_stage_uses", counted)
    made = tl.input("X", tl.float32, i=64)
    stages = []
    for n in range(12):
        i = tl.axes(i=64)
        made = tl.define(f"t{n}", made[i] * 2 + 1, i)
        stages.append(made)
    s = tl.schedule(made).tile(i=16).to(tl.block)
    for stage in stages[:-1]:
        s = s.compute(stage, tl.shared)
    build_program(s.computation, s.tile(i=1).to(tl.thread).steps, tl.load_profile("ampere"))
    assert sorted(asked) == sorted(t.name for t in stages[1:-1])  # nobody asks what the first one reads


def test_a_member_of_a_reduction_below_the_accumulator_that_reads_another_one() -> None:
    q, p = tl.axes(q=2, p=8)
    B = tl.input("B", tl.int8, q, p)
    best = tl.define("C", tl.argmin(B[q, p], over=p) * 2, q)
    with pytest.raises(tl.Refusal) as refused:
        made = tl.schedule(tl.computation("c", (tl.define("Z", tl.sum(B[q, p], over=p), q), best))).tile(q=1).to(tl.block)
        tl.compile(made.accumulate(tl.register).compute("C_argmin_0", tl.register), CUDA)
    assert refused.value.code == "stage-in-walk" and refused.value.message.startswith("`compute C_argmin_0 in register`")
