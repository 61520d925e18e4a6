"""Definitions that would be written out exponentially often are kept in memory, or refused with their size."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tilelang as tl
from tilelang.computations.inlining import kept_in_memory
from tilelang.semantics import reference

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


@pytest.mark.parametrize("make", [lambda: doubled(40), lambda: stencil(6)], ids=["doubled", "stencil"])
def test_construction_keeps_some_of_them_as_steps_that_it_prints(make: Callable[[], tl.Tensor]) -> None:
    value = make()
    kept = kept_in_memory(tl.computation("c", value))
    assert kept
    for target in (tl.target("cpu"), tl.target("cuda", profile="ampere")):
        kernel = tl.compile(value, target)
        assert all(f"compute {name} in " in str(kernel.schedule) for name in kept)
        x = np.random.default_rng(0).integers(-3, 4, kernel.computation.inputs[0].shape).astype(np.float32)
        report = tl.simulate(kernel, X=x)
        assert not report.findings
        assert np.array_equal(report.outputs[value.name], kernel.computation.evaluate(X=x))


@pytest.mark.parametrize(
    "make", [lambda: doubled(40), lambda: doubled(300), lambda: stencil(6)], ids=["doubled", "more", "stencil"]
)
def test_a_given_schedule_is_refused_with_the_size_and_what_mends_it(make: Callable[[], tl.Tensor]) -> None:
    value = make()
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
    for k in range(75):
        value = tl.define(f"A{k}", value[i] * 2.0 + 1.0, i)
    assert kept_in_memory(tl.computation("c", value)) == ()
    assert len(tl.compile(value, tl.target("cpu")).program.kernels) == 1


def chain(count: int, form: Callable[[tl.Tensor, tl.Axis], Any]) -> tl.Tensor:
    i = tl.axes(i=40)
    value = tl.input("X", tl.float32, i)
    for k in range(count):
        value = tl.define(f"A{k}", form(value, i), i)
    return value


LONG: dict[str, tuple[int, Callable[[tl.Tensor, tl.Axis], Any]]] = {
    "plain": (1000, lambda t, i: t[i] * 0.5 + 1.0),
    "beside": (300, lambda t, i: tl.pad(t[i - 1], 1) * 0.5 + 1.0),
    "clamped": (300, lambda t, i: t[tl.minimum(i + 1, 39)] * 0.5 + 1.0),
    "reversed": (300, lambda t, i: t[39 - i] * 0.5 + 1.0),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", LONG)
def test_long_chains_are_kept_in_memory_now_and_then(name: str) -> None:
    value = chain(*LONG[name])
    kernel = tl.compile(value, tl.target("cpu"), options=tl.Options(database=""))
    kept = kept_in_memory(kernel.computation)
    assert 0 < len(kept) < 60 and all(f"compute {k} in " in str(kernel.schedule) for k in kept)
    x = np.linspace(-3, 3, 40, dtype=np.float32)
    assert reference.compare(kernel.computation, {"X": x}, {value.name: kernel(x)})


def test_a_given_schedule_of_a_long_chain_is_refused_with_the_depth_and_what_mends_it() -> None:
    value = chain(300, lambda t, i: t[i] * 0.5 + 1.0)
    made = tl.schedule(value)
    with pytest.raises(tl.Refusal, match="nested operations once .* at most 256") as refused:
        tl.compile(made, TARGET)
    assert refused.value.code == "value-too-deep" and refused.value.help == (
        "compute one of these in memory, as in `compute A126 in global`"
    )
    for name in ("A70", "A140", "A210", "A280"):
        made = made.compute(name, tl.global_)
    assert len(tl.compile(made, TARGET).program.kernels) == 5


def test_an_axis_is_cut_a_bounded_number_of_times() -> None:
    i = tl.axes(i=1 << 16)
    made = tl.schedule(tl.define("Y", tl.input("X", tl.float32, i)[i] * 2, i)).tile(i=4096).to(tl.block)
    with pytest.raises(tl.Refusal) as refused:
        for k in range(100):
            made = made.split(i=1000 - k)
    assert refused.value.code == "too-many-cuts"
