"""Definitions that would be written out exponentially often are kept in memory, or refused with their size."""

import numpy as np
import pytest

import tilelang as tl
from tilelang.inlining import kept_in_memory

TARGET = tl.target("opencl", profile="simulated")


def doubled(times: int) -> tl.Tensor:
    i = tl.axes(i=8)
    value = tl.input("X", tl.float32, i)
    for k in range(times):
        value = tl.define(f"A{k}", value[i] + value[i], i)
    return value


def stencil(steps: int) -> tl.Tensor:
    i, j = tl.axes(i=12, j=12)
    u = tl.input("X", tl.float32, i, j)
    for k in range(steps):
        beside = [tl.pad(u[i + a, j + b], 0) for a, b in ((1, 0), (-1, 0), (0, 1), (0, -1))]
        u = tl.define(f"u{k}", 0.25 * (beside[0] + beside[1] + beside[2] + beside[3]), i, j)
    return u


@pytest.mark.parametrize("value", [doubled(40), stencil(6)], ids=["doubled", "stencil"])
def test_construction_keeps_some_of_them_as_steps_that_it_prints(value: tl.Tensor) -> None:
    kept = kept_in_memory(tl.computation("c", value))
    assert kept
    for target in (tl.target("cpu"), tl.target("cuda", profile="ampere")):
        kernel = tl.compile(value, target)
        assert all(f"compute {name} in " in str(kernel.schedule) for name in kept)
        x = np.random.default_rng(0).integers(-3, 4, kernel.computation.inputs[0].shape).astype(np.float32)
        report = tl.simulate(kernel, X=x)
        assert not report.findings
        assert np.array_equal(report.outputs[value.name], kernel.computation.evaluate(X=x))


@pytest.mark.parametrize("value", [doubled(40), doubled(300), stencil(6)])
def test_a_given_schedule_is_refused_with_the_size_and_what_mends_it(value: tl.Tensor) -> None:
    made = tl.schedule(value)
    with pytest.raises(tl.Refusal) as refused:
        tl.compile(made, TARGET)
    assert refused.value.code == "value-too-large" and "operations once the definitions that it reads" in str(refused.value)
    kept = kept_in_memory(tl.computation("c", value))
    for name in kept:
        made = made.compute(name, tl.global_)
    assert len(tl.compile(made, TARGET).program.kernels) == len(kept) + 1


def test_chains_that_read_each_other_once_stay_substituted() -> None:
    i = tl.axes(i=8)
    value = tl.input("X", tl.float32, i)
    for k in range(100):
        value = tl.define(f"A{k}", value[i] * 2.0 + 1.0, i)
    assert kept_in_memory(tl.computation("c", value)) == ()
    assert len(tl.compile(value, tl.target("cpu")).program.kernels) == 1


def test_an_axis_is_cut_a_bounded_number_of_times() -> None:
    i = tl.axes(i=1 << 16)
    made = tl.schedule(tl.define("Y", tl.input("X", tl.float32, i)[i] * 2, i)).tile(i=4096).to(tl.block)
    with pytest.raises(tl.Refusal) as refused:
        for k in range(100):
            made = made.split(i=1000 - k)
    assert refused.value.code == "too-many-cuts"
